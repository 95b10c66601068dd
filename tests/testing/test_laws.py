"""Every method and measure obeys the laws of sdcmap.testing; for each law something broken is caught."""

from __future__ import annotations

import dataclasses
import typing
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator

import sdcmap as sm
from sdcmap.core.measure import Estimate, Measure
from sdcmap.core.method import Method
from sdcmap.core.value import Range, field_types
from sdcmap.data.microdata import Microdata
from sdcmap.methods import METHODS
from sdcmap.risk import RISKS
from sdcmap.risk.linkage.attack import Attack
from sdcmap.testing import LawBroken, check_measure, check_method
from sdcmap.theory.decision import Prior
from sdcmap.utility import UTILITIES
from sdcmap.utility._numeric import NumericMeasure, WeightedMeasure
from sdcmap.utility.table_losses import TableMeasure

CATEGORIES, NUMBERS = ("region", "sex", "age"), ("wage", "rent")


@lru_cache(maxsize=256)
def small_file(rows: int, number: int) -> Microdata:
    """One of many small files with categories, numbers, ties, zeros, missing values and a weight."""
    rng = np.random.default_rng((rows, number))
    gone = rng.choice([0.0, 0.2])
    frame = pl.DataFrame(
        {name: rng.integers(0, rng.integers(1, 5), rows).astype(str) for name in CATEGORIES}
        | {"wage": np.round(rng.lognormal(3, 1, rows)), "rent": rng.integers(-3, 4, rows).astype(float)}
        | {"weight": rng.integers(1, 4, rows).astype(float)}
    )
    for name in (*CATEGORIES, *NUMBERS):
        frame = frame.with_columns(pl.when(pl.Series(rng.random(rows) >= gone)).then(pl.col(name)).alias(name))
    return sm.read(frame, keys=CATEGORIES, numeric=NUMBERS, weight="weight")


@st.composite
def files(draw: st.DrawFn) -> Microdata:
    """Any file of 2 to 40 records in a soak; otherwise one of a hundred, made once."""
    if settings.get_current_profile_name() == "soak":
        return small_file(draw(st.integers(2, 40)), draw(st.integers(0, 10_000)))
    return small_file(draw(st.sampled_from([2, 3, 6, 12, 20])), draw(st.integers(0, 19)))


def of_kind(cls: type[Method] | type[Measure]) -> tuple[str, ...]:
    if issubclass(cls, Attack | sm.risk.IntruderKnowledge):
        return (*CATEGORIES, *NUMBERS)
    if cls.kinds == ("numeric",) or issubclass(cls, sm.utility.SocietyKnowledge | NumericMeasure):
        return NUMBERS
    if issubclass(cls, TableMeasure):
        return CATEGORIES
    if issubclass(cls, Method | WeightedMeasure) and "numeric" in cls.kinds and len(cls.kinds) > 1:
        return (*NUMBERS, *CATEGORIES)
    return CATEGORIES


@cache
def archive() -> str:
    """An attacker's file for measures that need one."""
    path = Path(mkdtemp(prefix="sdcmap-test-")) / "archive.csv"
    rng = np.random.default_rng(7)
    pl.DataFrame({name: rng.integers(0, 4, 30).astype(str) for name in CATEGORIES}).write_csv(path)
    return str(path)


@cache
def table() -> str:
    """A published table of the small files."""
    path = Path(mkdtemp(prefix="sdcmap-test-")) / "table.csv"
    path.write_text("region,sex,count\n0,0,4\n0,1,1\n1,0,2\n2,3,5\n", encoding="utf-8")
    return str(path)


@cache
def hierarchy() -> str:
    """One of the categories of the small files."""
    path = Path(mkdtemp(prefix="sdcmap-test-")) / "hierarchy.csv"
    path.write_text("0;low;*\n1;low;*\n2;high;*\n3;high;*\n", encoding="utf-8")
    return str(path)


def parameter(cls: Any, name: str, hint: Any) -> st.SearchStrategy[Any]:
    """A strategy for one field, from its annotation only: a new method is tested without further code."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        limits = next((limit for limit in arguments[1:] if isinstance(limit, Range)), Range())
        return numbers(arguments[0], limits)
    if origin is Literal:
        return st.sampled_from(arguments)
    if name == "on" and hint is str:
        return st.sampled_from(of_kind(cls))
    if name == "on":
        return st.lists(st.sampled_from(of_kind(cls)), min_size=1, max_size=2, unique=True)
    if name in ("left", "right"):
        return st.sampled_from([(), ("wage", "sex") if name == "left" else ("rent", "age")])
    if name in ("secret", "area"):
        return st.sampled_from((*CATEGORIES, *NUMBERS))
    if name == "target":
        return st.sampled_from(["maximum", "minimum", 0.5, 0.9])
    if hint is bool:
        return st.booleans()
    if name == "hierarchy" and cls is sm.utility.Precision:
        return st.just(hierarchy())
    if hint is str:
        named = (name == "archive" and cls is sm.risk.ExternalLink) or name == "population"
        return st.just(archive() if named else "")
    if hint is Method:
        return st.sampled_from([sm.Noise(on="wage"), sm.RankSwap(on=NUMBERS, p=0.5), sm.Swap(on="sex", rate=0.2)])
    if hint is sm.recordwise.Unsafe:
        rules = [
            sm.recordwise.Unsafe(on="wage", k=3),
            sm.recordwise.Unsafe(on=NUMBERS, k=2, scale="standardized"), sm.recordwise.Unsafe(on=["sex", "age"], k=4),
            sm.recordwise.Unsafe(on=NUMBERS, k=3, alpha=0.3, neighborhood="fellegi-sunter", distance="absolute"),
        ]  # fmt: skip
        return st.sampled_from(rules)
    if hint == tuple[Method, ...]:
        return st.lists(
            st.sampled_from(
                [
                    sm.Swap(on="sex", rate=0.1),
                    sm.Noise(on="wage"),
                    sm.methods.SwapReidentified(on="wage"),
                    sm.Identity(),
                ]
            ),
            min_size=1,
            max_size=3,
        )
    if name == "made_by":  # a correction for noise that was not added is a loss of the identity too
        return st.none()
    if hint is Attack:
        return st.sampled_from(
            [sm.risk.NearestRecord("gower", inclusion=0.7), sm.risk.Linkage(on="age"), sm.WorstLinkage()]
        )
    if name == "loss":
        return st.sampled_from([(), ("zero-one",), ("absolute", "bounded"), ("zero-one", "brier"), ("quadratic",)])
    if hint == tuple[Prior, ...]:
        return st.sampled_from(
            [(), (Prior(mean=(2, 30), variance=50, points=2),), (Prior(categories=["0", "1", "9"], counts=[1, 2, 3]),)]
        )
    if name == "targets":
        return st.sampled_from([(), ("maximum",), (0.5, "minimum")])
    if hint == Method | None:
        return st.none() | st.just(sm.Noise(on=NUMBERS))
    if hint is Measure:
        return st.sampled_from([sm.utility.IL1s(on="wage"), sm.Hellinger(on=("sex", "age")), sm.utility.CategoryLoss()])
    if name == "tables":
        return st.just((table(),))
    if name == "by" and cls is sm.utility.WorstSubgroup:
        return st.sampled_from([("region",), ("sex", "age")])
    if name == "by":
        return st.sampled_from([(), ("region",)])
    if name == "weights":
        return st.sampled_from(["freq", "equal", "em", "known", (1.0, 2.0)])
    if hint == float | None:
        return st.none() | st.floats(-100, 100)
    if name == "within":
        return st.sampled_from([(), ("region",)]) if cls not in (sm.Chain, sm.methods.Protect) else st.just(())
    return st.just(())


def numbers(kind: Any, limits: Range) -> st.SearchStrategy[Any]:
    low = limits.low if limits.low is not None else -100
    high = limits.high if limits.high is not None else low + 10
    if kind is int or int in typing.get_args(kind):
        whole = st.integers(int(low), int(high))
        return whole if kind is int else st.none() | whole
    found = st.floats(
        low, high, exclude_min=limits.ends[0] == "(", exclude_max=limits.ends[1] == ")" and limits.high is not None
    )
    return st.none() | found if type(None) in typing.get_args(kind) else found


ALTERNATIVES: dict[str, tuple[dict[str, Any], ...]] = {  # classes that need one of several fields
    "Derive": ({"on": "wage", "formula": "rent * 2"}, {"on": "rent", "formula": "log(wage) / age"}),
    "EditViolations": (
        {"edits": ["wage < 5 -> rent < 9"]},
        {"edits": ["age != 1 -> wage > 3", "wage = 2 -> age >= 1"]},
    ),
    "MarkedRecords": ({"edits": ["wage < 5 -> rent < 9"]}, {"edits": ["age != 1 -> wage > 3"]}),
    "Repair": ({"edits": ["wage < 5 -> rent < 9"]}, {"edits": ["age != 1 -> wage > 3", "wage = 2 -> age >= 1"]}),
    "ImportanceAgreement": ({"predicts": "sex", "model": "linear", "fewest": 20},),
    "TrainOnRelease": ({"predicts": ["wage", "sex"], "model": "linear", "fewest": 20},),
    "IntervalOverlap": ({}, {"models": ["wage ~ rent + sex"]}, {"models": ["wage ~ age:rent"], "on": ["sex"]}),
    "IntervalWidth": ({}, {"models": ["rent ~ age"]}),
    "KMap": (
        {"estimate": "weights", "fraction": None},
        {"estimate": "poisson", "fraction": 0.2, "population": ""},
        {"estimate": "zero-truncated", "fraction": None, "population": ""},
    ),
    "RAPID": ({"model": "linear", "fewest": 20},),
    "Recode": ({"bins": 3}, {"width": 2.5}, {"breaks": [0, 5]}, {"prefix": 1}, {"merge": [["0", "1"], ["2", "3"]]}),
    "RecodeLocally": (
        {"steps_up": [sm.Recode(on="wage", width=5), sm.Recode(on="wage", width=50)], "k": 2},
        {"steps_up": [sm.Recode(on="age", merge=[["0", "1"], ["2", "3"]]), sm.Recode(on="wage", breaks=[3])], "k": 3},
    ),
    "SignificanceAgreement": ({"models": ["wage ~ rent + sex"]}, {"models": ["rent ~ age", "wage ~ rent"]}),
    "Sample": ({"rate": 0.4}, {"size": 2}),
    "TopCodeJointly": ({"on": NUMBERS},),
    "UnsafeRecords": (
        {"on": ["wage"], "alpha": 0.3, "leave_out": True},
        {"on": NUMBERS, "scale": "standardized", "within": ["sex"], "amounts": NUMBERS, "r": 0.4, "q": 0.5},
        {"on": ["sex", "age"], "neighborhood": "frequency", "frequency": "sample", "distance": None, "delta": None},
    ),
    "TopCode": ({"top": 5}, {"bottom": 0, "top": 20}, {"top_share": 0.2}, {"bottom_share": 0.3}),
}


@st.composite
def values(draw: st.DrawFn, cls: Any) -> Any:
    """Any value of a class that its own checks accept."""
    given = {name: draw(parameter(cls, name, hint)) for name, hint in field_types(cls).items()}
    needed = {f.name: given[f.name] for f in dataclasses.fields(cls) if f.default is dataclasses.MISSING}
    ways = ALTERNATIVES.get(cls.__name__, ({},))
    chosen = draw(st.sampled_from(ways))
    given = {name: value for name, value in given.items() if not any(name in way for way in ways)}
    try:
        return cls(**given | chosen)
    except sm.errors.PlanError:
        return cls(**needed | chosen)


@pytest.mark.parametrize("cls", METHODS, ids=lambda cls: cls.__name__)
@given(data=st.data())
def test_every_method_obeys_the_laws(cls: type[Method], data: st.DataObject) -> None:
    check_method(data.draw(values(cls)), data.draw(files()), may_refuse=True)


@pytest.mark.parametrize("cls", (*RISKS, *UTILITIES), ids=lambda cls: cls.__name__)
@given(data=st.data())
def test_every_measure_obeys_the_laws(cls: type[Measure], data: st.DataObject) -> None:
    method = data.draw(
        st.sampled_from(
            [
                sm.Swap(on="sex", rate=0.3),
                sm.Noise(on=NUMBERS),
                sm.Chain([sm.RankSwap(on="wage", p=0.5), sm.Swap(on=["age"], rate=0.2)]),
            ]
        )
    )
    check_measure(data.draw(values(cls)), data.draw(files()), [method], may_refuse=True)


# ---- broken on purpose ----------------------------------------------------------------------------------------
@pytest.fixture
def data() -> Microdata:
    return sm.demo.population(60, seed=3)


@dataclass(frozen=True)
class Broken(Method):
    """Adds a random number to the wage; each subclass breaks one law."""

    on: tuple[str, ...] = ("wage",)

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        return data.change(None, {"wage": data["wage"] + rng.random(len(data))})


class Leaks(Broken):
    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        return super().mask(data, rng).change(None, {"interest": data["wage"] * 1.0})


class IgnoresRng(Broken):
    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        return data.change(None, {"wage": data["wage"] + 1})


class OwnRandomness(Broken):
    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        return super().mask(data, np.random.default_rng())


class GlobalRandomness(Broken):
    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        return data.change(None, {"wage": data["wage"] + np.random.rand(len(data))})  # noqa: NPY002


class Mutates(Broken):
    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        values = data.column("wage").values
        values += rng.random(len(values))
        return data.change(None, {"wage": values})


class Shuffles(Broken):
    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        moved = super().mask(data, rng).take(rng.permutation(len(data)))
        return Microdata(moved.schema, moved.columns)


class DropsRows(Broken):
    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        part = super().mask(data, rng).take(np.arange(len(data) - 1))
        return Microdata(part.schema, part.columns)


class FillsMissing(Broken):
    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        return data.change(None, {"wage": np.nan_to_num(data["wage"]) + rng.random(len(data))})


class NeverZero(Broken):
    at_zero: ClassVar[dict[str, Any]] = {}


class Crashes(Broken):
    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        return data.change(None, {"wage": data["wage"] + rng.random(len(data)) * data["wage"].tolist()[1]})


class BadCode(Broken):
    kinds: ClassVar[tuple[str, ...]] = ("nominal", "ordinal")
    missing: ClassVar[str] = "category"

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        return data.change(None, {"Sex": rng.integers(0, 99, len(data)).astype(np.uint8)})


def unpicklable() -> Method:
    @dataclass(frozen=True)
    class Local(Broken):
        """A class inside a function: no worker process can find it."""

    return Local()


@pytest.mark.parametrize(
    ("method", "law"),
    [
        (Leaks(), "It changes 'interest', which it does not mask."),
        (IgnoresRng(), "it ignores its rng"),
        (OwnRandomness(), "it draws from something else than its rng"),
        (GlobalRandomness(), "numpy's global random state"),
        (Mutates(), "It changes its input."),
        (Shuffles(), "It changes the row order without recording it in origin."),
        (DropsRows(), "It changes the number of rows without an origin."),
        (FillsMissing(), "which values of 'wage' are missing"),
        (NeverZero(), "Its zero strength is not the identity."),
        (Crashes(), "With one row it raises IndexError"),
        (BadCode(on=("Sex",)), "a code without a category"),
        (unpicklable(), "It cannot be pickled"),
    ],
    ids=lambda part: type(part).__name__ if isinstance(part, Method) else "",
)
def test_check_method_catches_a_broken_method(method: Method, law: str, data: Microdata) -> None:
    with pytest.raises(LawBroken) as broken:
        check_method(method, data)
    assert any(law in sentence for sentence in broken.value.laws), broken.value.laws


def test_unbroken_method_passes(data: Microdata) -> None:
    check_method(Broken(), data)


@dataclass(frozen=True)
class BrokenMeasure(Measure):
    """The mean change of the wage; each subclass breaks one law."""

    axis: ClassVar[Literal["risk", "utility"]] = "utility"
    on: tuple[str, ...] = ("wage",)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        return Estimate(value=float(np.nansum(np.abs(masked["wage"] - original["wage"]))))


class NotZero(BrokenMeasure):
    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        return Estimate(value=super().score(original, masked, rng).value + 1)


class OutOfBounds(BrokenMeasure):
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1e-9)


class RowOrder(BrokenMeasure):
    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        change = np.nan_to_num(np.abs(masked["wage"] - original["wage"]))
        return Estimate(value=float((change * np.arange(len(change))).sum()))


class NotPaired(BrokenMeasure):
    paired: ClassVar[bool] = False


class MovingTarget(BrokenMeasure):
    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        return Estimate(value=super().score(original, masked, rng).value * np.random.default_rng().random())


class MeasureMutates(BrokenMeasure):
    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        found = super().score(original, masked, rng)
        values = masked.column("wage").values
        (values if values.flags.writeable else values.base)[:] = 0
        return found


class BadPool(BrokenMeasure):
    def pool(self, estimates: Any) -> Estimate:
        return Estimate(value=estimates[0].value * 2 + 1)


class BadRecords(BrokenMeasure):
    def records(self, original: Microdata, masked: Microdata) -> Any:
        return np.arange(float(len(masked)))


class MeasureCrashes(BrokenMeasure):
    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        return Estimate(value=float(abs(masked["wage"][1] - original["wage"][1])))


@pytest.mark.parametrize(
    ("measure", "law"),
    [
        (NotZero(), "The identity has a loss that is not 0."),
        (OutOfBounds(), "outside its bounds"),
        (RowOrder(), "A permutation of the rows"),
        (NotPaired(), "It is not `paired`"),
        (MovingTarget(), "The same rng gives another value."),
        (MeasureMutates(), "It changes the files it measures."),
        (BadPool(), "Pooling one estimate changes it."),
        (BadRecords(), "does not move with the records"),
        (MeasureCrashes(), "With one row it raises IndexError"),
    ],
    ids=lambda part: type(part).__name__ if isinstance(part, Measure) else "",
)
def test_check_measure_catches_a_broken_measure(measure: Measure, law: str, data: Microdata) -> None:
    with pytest.raises(LawBroken) as broken:
        check_measure(measure, data, [Broken()])
    assert any(law in sentence for sentence in broken.value.laws), broken.value.laws


def test_unbroken_measure_passes(data: Microdata) -> None:
    check_measure(BrokenMeasure(), data, [Broken()])
