"""One stored value of every method and measure on a tiny file: a value or a default that changed without a raised
`revision` fails, because a study would take the old number for done.

    python tests/testing/test_revisions.py --write

writes revisions.json anew; it refuses to change the value of a class whose revision did not rise.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.core.measure import Measure
from sdcmap.core.method import Method
from sdcmap.core.streams import Stream
from sdcmap.core.value import Value
from sdcmap.data.microdata import Microdata
from sdcmap.methods import METHODS
from sdcmap.risk import RISKS
from sdcmap.testing import check_measure, check_method
from sdcmap.utility import UTILITIES

sys.path.append(str(Path(__file__).resolve().parents[1]))  # where this file is run as a command
from stored_numbers import is_same_number

STORED = Path(__file__).with_name("revisions.json")
COMMAND = "python tests/testing/test_revisions.py --write"
CLASSES: Mapping[str, type[Value]] = {cls.__name__: cls for cls in (*METHODS, *RISKS, *UTILITIES)}
LEARNED = ("ImportanceAgreement", "RAPID", "TrainOnRelease")
ROWS = 24
KEYS, NUMBERS = ("region", "sex", "age"), ("wage", "rent")

FIELDS: Mapping[str, Mapping[str, Any]] = {  # of classes that need some; the others have a value without
    "AverageWeights": {"size": 5},
    "Chain": {"methods": [sm.Swap(on="sex", rate=0.2), sm.Noise(on="wage", variance=0.2)]},
    "Derive": {"on": "rent", "formula": "wage / 3 + 1"},
    "HouseholdSwap": {"on": ["area"], "rate": 0.4, "partial": True},
    "MaskMissing": {"on": KEYS, "k": 2},
    "Microaggregate": {"on": NUMBERS},
    "MixtureNoise": {"on": NUMBERS, "root": "cholesky"},  # the sign of an eigenvector is arbitrary
    "MultiplicativeNoise": {"on": ["wage"]},
    "Noise": {"on": NUMBERS, "above": 20.0, "variance_above": 0.3},
    "PRAM": {"on": ["region"], "stay": 0.5},
    "Repair": {"edits": ['sex = "f" -> wage < 40', "rent > 5 -> wage >= 12"]},
    "Protect": {"rule": sm.recordwise.Unsafe(on="wage", k=3), "method": sm.Noise(on="wage")},
    "ProtectTails": {"on": ["wage"]},
    "RandomizedResponse": {"on": ["age"]},
    "RankSwap": {"on": ["wage"], "p": 0.3},
    "Recode": {"on": ["wage"], "bins": 3},
    "RecodeLocally": {"steps_up": [sm.Recode(on="wage", width=10), sm.Recode(on="wage", width=40)]},
    "RestoreMoments": {"on": NUMBERS},
    "Round": {"on": ["wage"], "base": 5, "unbiased": True},
    "Sample": {"rate": 0.5},
    "Shuffle": {"on": ["wage"], "given": ["sex"]},
    "Suppress": {"on": KEYS},
    "Swap": {"on": ["sex"], "rate": 0.3},
    "SwapReidentified": {"on": ["wage"]},
    "Synthesize": {"on": ["wage", "sex"], "given": ["age"], "leaf": 3},
    "TopCodeJointly": {"on": NUMBERS, "alpha": 0.3},
    "TopCode": {"on": ["wage"], "top_share": 0.2, "replaced_by": "mean"},
    "AlphaKAnonymity": {"secret": "sex", "on": ["region", "age"]},
    "AreaFromDesign": {"area": "region", "by": ["weight", "area"], "knows": "design"},
    "AttributeInference": {"secret": "sex", "on": ["region", "wage"]},
    "BetaLikeness": {"secret": "sex", "on": ["region", "age"]},
    "CorrectAttribution": {"secret": "sex", "on": ["region", "age"]},
    "DeltaDisclosure": {"secret": "sex", "on": ["region", "age"]},
    "DiscreditHarm": {"on": "wage"},
    "HouseholdLink": {"attack": sm.risk.NearestRecord("gower", on=["sex", "rent"])},
    "Index": {"on": "wage"},
    "Informed": {"method": sm.Noise(on=NUMBERS)},
    "IntruderKnowledge": {"on": "wage"},
    "KnownIndex": {"on": "wage"},
    "LargestUnits": {"on": "wage", "within": ["sex"]},
    "LDiversity": {"secret": "sex", "on": ["region", "age"]},
    "MeanGuess": {"on": "wage"},
    "OutlierMembership": {"fewest": 6, "most": 0.6, "method": sm.Noise(on=NUMBERS, variance=9.0)},
    "PPercent": {"on": "wage", "by": ["region"], "p": 20.0},
    "Position": {"on": "wage", "target": "minimum"},
    "PositionNoiseGuessed": {"on": "wage", "believed_sd": 14.0},
    "PositionNoiseKnown": {"on": "wage", "method": sm.Noise(on="wage", variance=0.3)},
    "RAPID": {"secret": "sex", "on": ["region", "wage"], "model": "linear", "fewest": 5},
    "TCloseness": {"secret": "wage", "on": ["region", "sex"]},
    "MarkedRecords": {"edits": ['sex = "f" -> wage < 40', "rent > 0 -> wage >= 1"]},
    "UnsafeRecords": {"on": NUMBERS, "k": 3, "within": ["sex"]},
    "WorstMembership": {"held_out": 0.5},
    "EditViolations": {"edits": ['sex = "f" -> wage < 40', "rent > 5 -> wage >= 12"]},
    "IntervalOverlap": {"weighted": True, "models": ["wage ~ sex + rent", "sex ~ wage"]},
    "IntervalWidth": {"weighted": True, "models": ["wage ~ sex + rent", "sex ~ wage"]},
    "ImportanceAgreement": {"predicts": "wage", "model": "linear", "fewest": 5},
    "TrainOnRelease": {"predicts": ["wage", "sex"], "model": "linear", "fewest": 5},
    "Precision": {"on": "region"},
    "MeanPrecision": {"on": "wage"},
    "SignificanceAgreement": {"models": ["wage ~ sex + rent", "sex ~ wage"]},
    "SocietyKnowledge": {"on": "wage"},
    "WorstSubgroup": {"measure": sm.utility.IL1s(on="wage"), "by": ["sex"], "fewest": 10},
    "SocietyUtility": {"on": "wage"},
}


# ---- the tiny file, and a masked one that no method made ------------------------------------------------------
REGION = "abcabbca-cbbaccabacbcaba"
SEX = "mffmmfmfmffmfmmfmfmfmmff"
AGE = "231123413212312431223131"  # tens of years
AREA = "xyzzyxxyzyxz"  # of the household
WAGE = (21, 35, 8, 48, 17, 29, 53, 12, 35, 26, 9, 41, 30, 14, 22, 67, 19, 38, 26, 11, 45, 33, 16, 24)
RENT = (7, 9, 3, 12, 6, 8, 15, 4, 11, 6, 3, 10, 9, 5, 5, 18, 7, 10, 8, 2, 13, 6, 6, 9)


@cache
def tiny() -> Microdata:
    """24 persons in 12 households, with one missing region."""
    frame = pl.DataFrame(
        {
            "household": [row // 2 for row in range(ROWS)],
            "area": [AREA[row // 2] for row in range(ROWS)],
            "region": [None if letter == "-" else letter for letter in REGION],
            "sex": list(SEX),
            "age": [f"{tens}0" for tens in AGE],
            "wage": np.array(WAGE, dtype=float),
            "rent": np.array(RENT, dtype=float),
            "weight": [1.0 + row % 3 for row in range(ROWS)],
        }
    )
    return sm.read(frame, keys=KEYS, numeric=NUMBERS, weight="weight", household="household")


@cache
def tiny_masked() -> Microdata:
    """The same with some values exchanged and others moved."""
    data = tiny()
    row = np.arange(ROWS)
    other = np.where(row % 4 == 1, (row + 7) % ROWS, row)
    return data.change(
        None,
        {name: data.column(name).values[other] for name in ("region", "sex")}
        | {"wage": data["wage"] + 4 * (row * 5 % 7 - 3.0), "rent": data["rent"] * (1 + (row % 4 - 1.5) / 4)},
    )


@cache
def archive(folder: str) -> str:
    """An attacker's file."""
    path = Path(folder) / "archive.csv"
    tiny().frame().select("region", "sex", "age").head(10).write_csv(path)
    return str(path)


@cache
def tables(folder: str) -> list[str]:
    """A table that was published of these people."""
    path = Path(folder) / "table.csv"
    tiny().frame().group_by("region", "sex").len("count").sort("region", "sex").write_csv(path)
    return [str(path)]


@cache
def tree(folder: str) -> str:
    """A hierarchy of the regions."""
    path = Path(folder) / "regions.csv"
    path.write_text("a;ab;*\nb;ab;*\nc;c;*\n", encoding="utf-8")
    return str(path)


# ---- what is stored -------------------------------------------------------------------------------------------
def instance(cls: type[Value], folder: str) -> Value:
    """A value of the class with few fields set."""
    files = {
        "ExternalLink": {"archive": archive},
        "DeltaPresence": {"population": archive},
        "PublishedTables": {"tables": tables},
        "Precision": {"hierarchy": tree},
    }
    named = {name: file(folder) for name, file in files.get(cls.__name__, {}).items()}
    fields = {**FIELDS.get(cls.__name__, {}), **named}
    try:
        return cls(**fields)
    except (TypeError, sm.errors.PlanError) as problem:
        raise AssertionError(f"{cls.__name__} needs fields: give them in FIELDS of {Path(__file__).name}.") from problem


def defaults(cls: type[Value]) -> dict[str, str]:
    """Return the fields of a class and their defaults."""
    shown = {field.name: field.default for field in dataclasses.fields(cls)}
    return {
        name: "needed"
        if default is dataclasses.MISSING
        else default.text
        if isinstance(default, Value)
        else repr(default)
        for name, default in shown.items()
    }


def digest(data: Microdata) -> str:
    """A digest of a file's rows, its numbers to 9 significant digits."""
    texts = [f"origin {None if data.origin is None else data.origin.tolist()}"]
    for name in data.names:
        values = data[name].tolist()
        texts.append(f"{name} {[f'{value + 0.0:.9g}' if isinstance(value, float) else value for value in values]}")
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def value_of(value: Value) -> str | float:
    """Return a digest of the tiny file masked by a method, or a measure's value for its masked copy."""
    if isinstance(value, sm.methods.SwapReidentified):  # a later step: it links with the original
        value = sm.Chain([sm.Noise(on=value.on, variance=0.01), value])
    if isinstance(value, sm.methods.Repair):  # a later step: it repairs what was masked
        return digest(value.apply(tiny_masked(), Stream.of_seed(20, "revisions")))
    if isinstance(value, Method):
        return digest(value.apply(tiny(), Stream.of_seed(20, "revisions")))
    if isinstance(value, Measure):
        rng = Stream.of_seed(20, "revisions").rng()
        return float(f"{value.apply(tiny(), tiny_masked(), rng).value:.9g}")
    raise TypeError(f"{value} is neither a method nor a measure.")


def record(cls: type[Value], folder: str) -> dict[str, Any]:
    """Return what is stored of a class."""
    value = instance(cls, folder)
    # a field that the identity leaves out at its default is new, and changes no earlier number
    shown = {name: default for name, default in defaults(cls).items() if name in value.identity()}
    return {"revision": cls.revision, "defaults": shown, "value": value_of(value)}


def stored() -> dict[str, dict[str, Any]]:
    return json.loads(STORED.read_text("utf-8")) if STORED.exists() else {}


def offense(name: str, now: Mapping[str, Any], before: Mapping[str, Any] | None) -> str:
    """Return why this class needs a raised revision; empty where nothing changed."""
    if before is None:
        return f"{name} has no stored value: run `{COMMAND}`."
    parts = ("defaults", "value", "revision")
    changed = " and ".join(part for part in parts if not is_same_number(before[part], now[part]))
    if not changed:
        return ""
    if now["revision"] > before["revision"]:
        return f"{name} has a new revision: run `{COMMAND}`."
    return f"{name} changed in {changed} and its revision, {before['revision']}, did not rise: raise it in the class."


# ---- tests ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", CLASSES)
def test_value_changes_only_with_a_raised_revision(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    if name in LEARNED:
        pytest.importorskip("sklearn", reason=f"{name} needs scikit-learn: pip install 'sdcmap[learn]'")
    folder = str(tmp_path_factory.getbasetemp())
    problem = offense(name, record(CLASSES[name], folder), stored().get(name))
    assert not problem, problem


@pytest.mark.parametrize("name", CLASSES)
def test_every_class_runs_and_obeys_the_laws_on_the_tiny_file(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Random files may be refused, and some classes refuse nearly all of them; here every class is run."""
    if name in LEARNED:
        pytest.importorskip("sklearn", reason=f"{name} needs scikit-learn: pip install 'sdcmap[learn]'")
    feasible = {"Swap": sm.Swap(on="sex", rate=0.1), "Chain": sm.Chain([sm.Swap("sex", 0.1), sm.Noise("wage", 0.2)])}
    value = feasible.get(name) or instance(CLASSES[name], str(tmp_path_factory.getbasetemp()))
    if isinstance(value, Measure):
        check_measure(value, tiny(), [sm.Swap(on="sex", rate=0.3), sm.Noise(on=NUMBERS)])
    elif isinstance(value, sm.methods.SwapReidentified | sm.methods.Repair):  # later steps, after one that masks
        check_method(sm.Chain([sm.Noise(on=NUMBERS, variance=0.01), value]), tiny())
    elif isinstance(value, Method):
        check_method(value, tiny())


def test_stored_values_belong_to_existing_classes() -> None:
    assert not stored().keys() - CLASSES.keys(), f"run `{COMMAND}`"


def test_changed_value_default_or_revision_is_reported() -> None:
    before = {"revision": 1, "defaults": {"k": "3"}, "value": 0.5}
    assert offense("A", before, before) == ""
    assert offense("A", before | {"value": 0.5 * (1 + 1e-9)}, before) == ""  # rounding
    assert offense("A", before | {"value": 1.1e-16}, before | {"value": 0.0}) == ""
    assert "A has no stored value: run `python" in offense("A", before, None)
    assert "A changed in value and its revision, 1, did not rise" in offense("A", before | {"value": 0.6}, before)
    assert "A changed in defaults and" in offense("A", before | {"defaults": {"k": "4"}}, before)
    assert "A changed in revision and" in offense("A", before | {"revision": 0}, before)
    assert "A has a new revision: run" in offense("A", before | {"revision": 2, "value": 0.6}, before)


def test_write_refuses_a_value_without_a_raised_revision() -> None:
    before = {"A": {"revision": 1, "defaults": {}, "value": 1.0}, "Gone": {"revision": 1, "defaults": {}, "value": 1.0}}
    risen, fallen = {"revision": 2, "defaults": {}, "value": 2.0}, {"revision": 1, "defaults": {}, "value": 2.0}
    assert written({"A": risen, "B": fallen}, before) == {"A": risen, "B": fallen}
    with pytest.raises(SystemExit, match="A changed in value"):
        written({"A": fallen}, before)
    rounded = before["A"] | {"value": 1.0 + 1e-12}
    assert written({"A": rounded}, before) == {"A": before["A"]}  # another machine changes no stored value


# ---- the command ----------------------------------------------------------------------------------------------
def written(now: dict[str, dict[str, Any]], before: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return what is to be stored, or raise the refusal."""
    problems = [offense(name, part, before[name]) for name, part in now.items() if name in before]
    refused = [problem for problem in problems if "did not rise" in problem]
    if refused:
        raise SystemExit("\n".join(refused))
    return {name: part | {"value": _kept_value(part, before.get(name))} for name, part in now.items()}


def _kept_value(now: Mapping[str, Any], before: Mapping[str, Any] | None) -> Any:
    """The stored value where the new one is the same up to rounding, so that writing on another machine changes nothing."""
    return before["value"] if before and is_same_number(before["value"], now["value"]) else now["value"]


def write() -> None:
    with TemporaryDirectory(prefix="sdcmap-test-") as folder:
        now = {name: record(cls, folder) for name, cls in sorted(CLASSES.items())}
    STORED.write_text(json.dumps(written(now, stored()), indent=1, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        raise SystemExit(f"usage: {COMMAND}")
    write()
