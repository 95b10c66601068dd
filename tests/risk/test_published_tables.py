"""An attacker who has published tables beside the release."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.core.value import parse
from sdcmap.errors import PlanError, Undefined
from sdcmap.methods import Recode
from sdcmap.risk.published_tables import estimate_flows, fit_margins
from sdcmap.study.public_view import PublicValues

TRUE = pl.DataFrame({"age": ["34", "34", "50"], "region": ["A", "C", "B"]})
OTHERS = pl.DataFrame({"age": [str(age) for age in range(60, 70)], "region": [*"BC"] * 5})  # an age is one of many


def data_of(frame: pl.DataFrame) -> sm.Microdata:
    return sm.read(frame, keys=frame.columns)


def table(frame: pl.DataFrame, path: Path, *names: str) -> str:
    frame.group_by(names).len("count").write_csv(path)
    return str(path)


def score(measure: sm.Measure, original: sm.Microdata, masked: sm.Microdata) -> tuple[float, float]:
    result = measure.score(original, masked, np.random.default_rng(0))
    return result.value, result.parts["without tables"]


def test_table_reveals_swapped_record(tmp_path: Path) -> None:
    """The person aged 34 in A was swapped with the one aged 50 in B.

    Two records aged 34 are equally near; only a table shows that the one in C belongs to someone else, and that no
    person aged 34 lives in B.
    """
    everybody = pl.concat([TRUE, OTHERS])
    original = data_of(everybody)
    masked = original.change(np.arange(3), {"region": np.array([1, 2, 0])})
    assert masked.frame()["region"].to_list()[:3] == ["B", "C", "A"]
    whole = sm.risk.PublishedTables([table(everybody, tmp_path / "t.csv", "age", "region")])
    assert score(whole, original, masked) == (pytest.approx(1.0), pytest.approx(12 / 13))
    assert whole.records(original, masked) == pytest.approx(np.ones(13))


def test_tables_raise_risk_on_average_after_swapping(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    age = rng.integers(0, 40, 200)
    homes = np.array([*"ABCDEFGH"])[(3 * age + 5 * rng.integers(0, 2, 200)) % 8]  # of an age people live in two regions
    frame = pl.DataFrame({"age": age.astype(str), "region": homes})
    original = data_of(frame)
    measure = sm.risk.PublishedTables([table(frame, tmp_path / "t.csv", "age", "region")])
    gains = []
    for seed in range(12):
        result, without = score(measure, original, sm.mask(original, sm.Swap("region", 0.2), seed=seed))
        gains.append(result - without)
    assert np.mean(gains) > 4 * np.std(gains, ddof=1) / np.sqrt(12) > 0


def test_unmasked_file_has_one_over_cell_size(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    frame = pl.DataFrame({"age": rng.integers(0, 9, 80).astype(str), "region": rng.choice([*"ABC"], 80)})
    original = data_of(frame)
    cells = frame.n_unique()
    measure = sm.risk.PublishedTables([table(frame, tmp_path / "t.csv", "age", "region")])
    assert score(measure, original, original)[0] == pytest.approx(cells / 80)


def test_fits_match_margins() -> None:
    group, wanted = np.array([0, 0, 1, 1]), np.array([3.0, 1.0])
    other, needed = np.array([0, 1, 0, 1]), np.array([2.0, 2.0])
    counts = fit_margins(np.array([1.0, 2.0, 3.0, 4.0]), [(group, wanted), (other, needed)])
    assert np.bincount(group, counts) == pytest.approx(wanted) and np.bincount(other, counts) == pytest.approx(needed)
    assert counts[0] * counts[3] / (counts[1] * counts[2]) == pytest.approx(4 / 6), "the odds ratio stays"
    true, released = np.array([2.0, 0.0, 1.0]), np.array([1.0, 1.0, 1.0])
    moved = estimate_flows(np.full((3, 3), 0.1) + np.eye(3), true, released)
    assert moved.sum(axis=1) == pytest.approx(true) and moved.sum(axis=0) == pytest.approx(released)


def test_tables_are_recoded_to_released_categories(tmp_path: Path) -> None:
    original = data_of(TRUE)
    masked = sm.mask(original, Recode("region", merge=[["A", "C"]]), seed=1)
    measure = sm.risk.PublishedTables([table(TRUE, tmp_path / "t.csv", "age", "region")])
    assert score(measure, original, masked)[0] == pytest.approx((0.5 + 0.5 + 1) / 3)


def test_invalid_tables_are_reported(tmp_path: Path) -> None:
    original = data_of(TRUE)
    with pytest.raises(PlanError, match="tables is required"):
        sm.risk.PublishedTables([])
    with pytest.raises(PlanError, match="there is no file"):
        sm.risk.PublishedTables([str(tmp_path / "none.csv")])
    (tmp_path / "bad.csv").write_text("age,people\n34,2\n50,1\n")
    (bad,) = sm.risk.PublishedTables([str(tmp_path / "bad.csv")]).incompatibilities(original)
    assert "needs a numeric column 'count'" in bad
    (tmp_path / "other.csv").write_text("agee,count\nx,2\ny,1\n")
    (other,) = sm.risk.PublishedTables([str(tmp_path / "other.csv")]).incompatibilities(original)
    assert "a column 'agee'" in other and "'age'" in other
    amounts = sm.read(TRUE.with_columns(wage=pl.Series([1.0, 2.0, 3.5])), keys=["age"], numeric=["wage"])
    assert any("is numeric" in p for p in sm.risk.PublishedTables([table(TRUE, tmp_path / "t.csv", "age")], on="wage")
               .incompatibilities(amounts))  # fmt: skip


def test_too_many_combinations_are_undefined(tmp_path: Path) -> None:
    frame = pl.DataFrame({"number": [f"n{i}" for i in range(2100)], "region": ["A"] * 2100})
    original = data_of(frame)
    with pytest.raises(Undefined, match="name fewer in"):
        sm.risk.PublishedTables([table(frame, tmp_path / "t.csv", "region")]).records(original, original)


def test_public_text_hides_table_paths(tmp_path: Path) -> None:
    measure = sm.risk.PublishedTables([table(TRUE, tmp_path / "secret-name.csv", "age")], on="age")
    assert PublicValues().of(measure).text == "PublishedTables(tables='tables 1', on='age')"
    assert parse(measure.text, sm.Measure) == measure
