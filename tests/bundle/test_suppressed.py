"""Not applicable, missing and suppressed values each have their own code in the released file and its codebook."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from notes import run_example

import sdcmap as sm
from samples import chosen, plan_of
from samples import release_with_overrides as release
from sdcmap.bundle.prepared_file import suppressed_cells

pytestmark = pytest.mark.usefixtures("read_here")
MEASURES: dict[str, Any] = {"measures": [sm.SmallCells(on=["age", "region"]), sm.Hellinger(on=["age", "region"])]}


def survey(rows: int = 300) -> pl.DataFrame:
    """Age is plainly missing in every 20th row and not applicable (-8) in every 30th."""
    rng = np.random.default_rng(8)
    age = pl.Series(rng.integers(18, 60, rows)).set(pl.Series(np.arange(rows) % 20 == 0), None)
    age = age.set(pl.Series(np.arange(rows) % 30 == 1), -8)
    return pl.DataFrame({"age": age, "region": rng.choice(["A", "B", "C", "rare"], rows, p=[0.5, 0.3, 0.19, 0.01])})


def missing_codes(folder: Path) -> dict[str, list[dict[str, Any]]]:
    return {entry["name"]: entry.get("missing", []) for entry in json.loads((folder / "codebook.json").read_text())}


@pytest.mark.parametrize("form", ["csv", "parquet", "sav", "dta", "xpt"])
def test_inapplicable_missing_and_suppressed_have_own_codes(tmp_path: Path, form: str) -> None:
    letters = form in ("dta", "xpt")
    frame = survey()
    data = sm.read(frame, keys=["age", "region"], missing={"age": {-8: "not applicable"}})
    path = tmp_path / f"survey.{form}"
    if form in ("csv", "parquet"):
        sm.write(data, path)
        data = sm.read(path, keys=["age", "region"], missing={"age": {-8: "not applicable"}})
    else:
        data = dataclasses.replace(data, schema=dataclasses.replace(data.schema, format=form))
    plan = plan_of(sm.Suppress(k=8, importance=["region"]), **MEASURES)
    blanked = sm.mask(data, plan.all_methods[1], seed=1)
    count = int((blanked.missing("age") & ~data.missing("age")).sum())
    assert count > 1
    folder = release(data, plan, chosen(plan)).write(tmp_path / "public")
    codes = {entry["label"]: entry["code"] for entry in missing_codes(folder)["age"]}
    assert codes["missing"] is None and codes["suppressed"] in ("s", "S", -97)
    stated = {"age": [-8, -97]} if form in ("csv", "parquet") else {}
    again = sm.read(folder / f"data.{form}", kinds={"age": "numeric"}, missing=stated)
    reasons, observed = again.column("age").reasons, again.schema["age"].reasons
    assert reasons is not None
    found = {str(code).lower(): int((reasons == place).sum()) for place, code in enumerate(observed, 1)}
    assert found["s" if letters else "-97" if form in ("csv", "parquet") else "-97.0"] == count
    assert found["a" if letters else "-8" if form in ("csv", "parquet") else "-8.0"] == 10
    assert codes["not applicable"] in (-8, "a", "A")
    assert again.missing("age").sum() == count + 15 + 10


def test_suppression_code_is_not_a_value_in_use(tmp_path: Path) -> None:
    frame = survey().with_columns(age=pl.col("age").replace(18, -97))
    data = sm.read(frame, keys=["age", "region"])
    plan = plan_of(sm.Suppress(k=8, importance=["region"]), **MEASURES)
    folder = release(data, plan, chosen(plan)).write(tmp_path / "public")
    assert {"code": -98, "label": "suppressed"} in missing_codes(folder)["age"]
    assert "| -98 | suppressed | missing |" in (folder / "codebook.md").read_text()


def test_swap_suppresses_nothing(tmp_path: Path) -> None:
    data = sm.read(survey(), keys=["age", "region"])
    plan = plan_of(sm.Swap(on=["age"], rate=0.2), **MEASURES)
    folder = release(data, plan, chosen(plan)).write(tmp_path / "public")
    assert [entry["label"] for entry in missing_codes(folder)["age"]] == ["missing"]


def test_note_lists_missing_codes(tmp_path: Path) -> None:
    """The example runs, and corrections do not take a code for an amount."""
    rng = np.random.default_rng(4)
    wage = np.where(np.arange(400) % 10 == 0, -8.0, rng.lognormal(8, 0.3, 400).round(2))
    frame = pl.DataFrame({"sex": rng.choice(["f", "m"], 400), "wage": wage})
    frame.write_csv(tmp_path / "x.csv")
    data = sm.read(tmp_path / "x.csv", keys="sex", numeric="wage", missing={"wage": [-8]})
    plan = plan_of(sm.Noise(on=["wage"], variance=0.1), measures=[sm.SmallCells(on=["sex"]), sm.IL1s(on=["wage"])])
    folder = release(data, plan, chosen(plan)).write(tmp_path / "public")
    assert (pl.read_csv(folder / "data.csv")["wage"] == -8).sum() == 40
    known = wage[wage > 0].mean()
    assert abs(run_example(folder) / known - 1) < 0.1
    table = sm.correct(folder / "data.csv", folder / "note.json").table
    (mean,) = table.filter(pl.col("statistic") == "mean")["corrected"].to_list()
    assert abs(mean / known - 1) < 0.1


def test_drawn_missing_values_are_not_marked_suppressed() -> None:
    """A partly synthetic file keeps rows: a code for suppressed values would reveal who gave no answer."""
    rng = np.random.default_rng(8)
    wage = np.where(rng.random(300) < 0.3, np.nan, rng.lognormal(7, 1, 300).round())
    frame = pl.DataFrame({"sex": rng.choice(["f", "m"], 300), "wage": pl.Series(wage, nan_to_null=True), "rent": 5.0})
    data = sm.read(frame.with_columns(total=pl.col("wage") + 5), keys="sex", numeric=["wage", "rent", "total"])
    steps = [sm.Synthesize("wage", given=["sex"]), sm.methods.Derive("total", "wage + rent")]
    method = sm.methods.Chain([*steps, sm.Suppress("sex", 200, unmet="leave")])
    masked = sm.mask(data, method, seed=3)
    for name in ("wage", "total"):
        assert (masked.missing(name) & ~data.missing(name)).any()
        assert not suppressed_cells(data, method, masked, name).any()
    assert np.array_equal(suppressed_cells(data, method, masked, "sex"), masked.missing("sex"))
