"""The bridge to R: data frames pass unchanged in both directions; the R package is checked if R is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.core.measure import Estimate
from sdcmap.files.r_bridge import call_verb, estimates_table, from_r, to_r
from sizes import SOAK

ROOT = Path(__file__).resolve().parents[2]
NA = np.array([0x7FF00000_000007A2], dtype="<u8")  # of R
TAGGED_A = NA | np.uint64(ord("a") << 32)  # haven::tagged_na("a")


def column(name: str, kind: str, values: list[float] | np.ndarray[Any, Any], **more: Any) -> dict[str, Any]:
    """Return a column as R passes it."""
    numbers = values if isinstance(values, np.ndarray) else np.array(values, dtype="<f8")
    plain = {"levels": [], "ordered": False, "label": "", "codes": bytearray(), "words": [], "na_range": bytearray()}
    said = {"na_values": bytearray(), "format": "", **plain, **more}
    return {"name": name, "kind": kind, "values": bytearray(numbers.tobytes()), **said}


def doubles(*values: float) -> bytearray:
    return bytearray(np.array(values, dtype="<f8").tobytes())


NAN = float(NA.view("<f8")[0])
PEOPLE = [
    column("age", "whole", [31, NAN, 25]),
    column("sex", "factor", [1, 2, NAN], levels=["m", "f", "x"]),
    column("school", "factor", [2, 1, 1], levels=["low", "high"], ordered=True),
    column("wage", "number", [1.5, NAN, 2.0], label="Monthly wage", format="F8.2"),
    column("town", "text", [1, NAN, 2], levels=["Zürich", "b"]),
    column("born", "date", [0, 18321, NAN]),
    column("seen", "time", [0.5, NAN, 1.5e9]),
    column("ok", "truth", [1, 0, NAN]),
    column("region", "number", [1, 2, -8], codes=doubles(1, -8), words=["North", "Not asked"], na_values=doubles(-8)),
]


def test_r_round_trip_is_exact() -> None:
    data = sm.read(from_r(PEOPLE), keys=["age", "sex"])
    assert to_r(data) == PEOPLE
    assert data.frame()["seen"].dt.year().to_list() == [1970, None, 2017]
    assert data.missing("region").tolist() == [False, False, True]
    assert data.schema["school"].kind == "ordinal" and data.schema["wage"].label == "Monthly wage"


def test_letters_of_stata_are_tagged_na() -> None:
    values = np.concatenate([TAGGED_A, NA, np.array([2.0]).view("<u8")]).view("<f8")
    label = {"codes": bytearray(TAGGED_A.tobytes()), "words": ["refused"]}
    data = sm.read(from_r([column("rooms", "number", values, **label)]))
    assert data.schema["rooms"].values == (("a", "refused"),) and data.schema["rooms"].reasons == ("a",)
    (back,) = to_r(data)
    assert back["values"] == bytearray(values.tobytes()) and back["codes"] == label["codes"]


def test_ranges_and_texts_as_codes() -> None:
    ends = column("x", "number", [1.0, 97, 99], na_range=doubles(90, 99))
    texts = column("s", "text", [1, 2, 1], levels=["a", "zz"], codes=["zz"], words=["unknown"], na_values=["zz"])
    data = sm.read(from_r([ends, texts]))
    assert data.missing("x").tolist() == [False, True, True] and data.missing("s").tolist() == [False, True, False]
    assert to_r(data) == [ends, texts]


def test_a_masked_frame_keeps_its_labels() -> None:
    data = sm.read(from_r(PEOPLE), keys=["sex"])
    masked = sm.mask(data, sm.PRAM("sex"), seed=1)
    sex, before = (next(c for c in to_r(d) if c["name"] == "sex") for d in (masked, data))
    assert {k: v for k, v in sex.items() if k != "values"} == {k: v for k, v in before.items() if k != "values"}


def test_any_table_can_be_passed_to_r() -> None:
    table = pl.DataFrame({"n": [1, 2**40], "name": ["a", None], "big": [2**31, None], "none": [None, None]})
    table = table.with_columns(kind=pl.Series(["u", "v"], dtype=pl.Enum(["v", "u"])), took=pl.duration(seconds="n"))
    kinds = {c["name"]: c["kind"] for c in to_r(table)}
    assert kinds == {"n": "number", "name": "text", "big": "number", "none": "text", "kind": "factor", "took": "number"}
    assert estimates_table({"A()": Estimate(value=0.5), "B()": Estimate(value=1.0, se=0.1)}).rows() == [
        ("A()", 0.5, None),
        ("B()", 1.0, 0.1),
    ]


def test_errors_are_returned_as_class_and_message() -> None:
    assert call_verb(sm.Swap, ["sex"], {"rate": 0.1}) == [sm.Swap("sex", rate=0.1)]
    kind, sentence = call_verb(sm.Swap, ["sex"], {"rate": 5})
    assert kind == "PlanError" and sentence.startswith("Swap.rate must be in")
    with pytest.raises(sm.errors.SchemaError, match="column 'z' has an R type that cannot be read"):
        from_r([column("z", "other", [0.0])])
    with pytest.raises(sm.errors.SchemaError, match="two columns with the same name"):
        from_r([PEOPLE[0], PEOPLE[0]])


def test_the_package_states_the_version_and_verbs_of_python() -> None:
    said = (ROOT / "r" / "DESCRIPTION").read_text(encoding="utf-8")
    assert f"\nVersion: {sm.__version__}\n" in said
    exported = set(re.findall(r"\b[a-z_]+\b", " ".join(re.findall(r"export\((.*)\)", namespace()))))
    documented = set(re.findall(r"\\alias\{(.*?)\}", "".join(p.read_text("utf-8") for p in manual())))
    verbs = {"read", "write", "look", "compare", "sweep", "search", "mask", "score", "release", "report", "records"}
    assert verbs | {"grid", "subsets", "correct"} <= exported & set(sm.__all__)
    assert exported <= documented


def namespace() -> str:
    return (ROOT / "r" / "NAMESPACE").read_text(encoding="utf-8")


def manual() -> list[Path]:
    return sorted((ROOT / "r" / "man").glob("*.Rd"))


# ---- with R -------------------------------------------------------------------------------------------------------
def r_is_missing() -> str:
    """Return why the package cannot be checked here; empty if it can."""
    if shutil.which("R") is None:
        return "R is absent: install Debian's r-base-core and r-cran-reticulate"
    found = subprocess.run(["Rscript", "-e", "library(reticulate)"], capture_output=True)
    return "" if found.returncode == 0 else "R lacks reticulate: install Debian's r-cran-reticulate"


@pytest.fixture(scope="module")
def with_r() -> dict[str, str]:
    if not SOAK:
        pytest.skip("R is tried in make soak (SDCMAP_SOAK=1)")
    if why := r_is_missing():
        pytest.skip(why)
    source = str(Path(sm.__file__).resolve().parents[1])
    return os.environ | {"RETICULATE_PYTHON": sys.executable, "PYTHONPATH": source, "LC_ALL": "C.UTF-8"}


def run(*command: object, folder: Path, env: dict[str, str]) -> str:
    done = subprocess.run([*map(str, command)], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def test_r_cmd_check_is_clean(tmp_path: Path, with_r: dict[str, str]) -> None:
    run("R", "CMD", "build", ROOT / "r", folder=tmp_path, env=with_r)
    said = run("R", "CMD", "check", "--no-manual", *tmp_path.glob("*.tar.gz"), folder=tmp_path, env=with_r)
    assert "Status: OK" in said
    assert "all checks of the interface passed" in (tmp_path / "sdcmap.Rcheck" / "tests" / "bridge.Rout").read_text(
        encoding="utf-8"
    )


def test_the_code_of_the_page_on_r_runs(tmp_path: Path, with_r: dict[str, str]) -> None:
    page = (ROOT / "docs" / "r.md").read_text(encoding="utf-8")
    script = "\n".join(re.findall(r"^```r\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
    assert script.count("\n") > 20
    (tmp_path / "page.R").write_text(script, encoding="utf-8")
    (tmp_path / "library").mkdir()
    run("R", "CMD", "INSTALL", "-l", tmp_path / "library", ROOT / "r", folder=tmp_path, env=with_r)
    env = with_r | {"R_LIBS": str(tmp_path / "library"), "SDCMAP_LEDGER": str(tmp_path / "ledger")}
    run("Rscript", "page.R", folder=tmp_path, env=env)
