"""Charts of what masking changed: densities on one axis, and tables of two columns."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.charts import draw_density_change, draw_table_change
from sdcmap.charts.change_charts import MAX_TABLE_LEVELS, bandwidth, cell_shares, density, has_density


def test_density_is_sum_of_kernels() -> None:
    """sum_i phi((t - x_i) / h) / (n h), by its definition."""
    values = np.random.default_rng(3).gamma(2.0, 10.0, 400)
    grid, h = np.linspace(-20, 120, 401), bandwidth(values)
    exact = np.exp(-0.5 * ((grid[:, None] - values) / h) ** 2).sum(axis=1) / (400 * h * np.sqrt(2 * np.pi))
    found = density(values, grid, h)
    assert np.abs(found - exact).max() < 0.01 * exact.max()
    assert np.trapezoid(found, grid) == pytest.approx(1, abs=0.01)


def test_bandwidth_is_silvermans_even_with_equal_quartiles() -> None:
    values = np.arange(100.0)
    spread, quartiles = values.std(ddof=1), 49.5 / 1.34
    assert bandwidth(values) == pytest.approx(0.9 * min(spread, quartiles) * 100**-0.2)
    piled = np.r_[np.zeros(90), np.arange(10.0)]  # both quartiles are 0
    assert bandwidth(piled) == pytest.approx(0.9 * piled.std(ddof=1) * 100**-0.2)
    assert bandwidth(np.ones(50)) == 0


def test_density_chart_skips_missing_values_and_categories() -> None:
    frame = pl.DataFrame({"a": [None, *range(60)], "b": [1.0] * 61, "g": ["x", *["y"] * 60]})
    data = sm.read(frame, keys="g")
    masked = sm.mask(data, sm.Noise(on="a", variance=0.1), seed=1)
    rows = draw_density_change(data, masked, "a").spec["data"]["values"]
    assert {row["file"] for row in rows} == {"before", "after"} and all(np.isfinite(row["density"]) for row in rows)
    assert draw_density_change(data, masked, "b").spec  # one value alone
    assert has_density(data, masked, "a") and not has_density(data, masked, "g")
    recoded = sm.mask(data, sm.Recode(on="a", width=10), seed=1)
    assert not has_density(data, recoded, "a")


def test_table_contains_shares_of_both_files() -> None:
    frame = pl.DataFrame({"a": ["x"] * 30 + ["y"] * 50 + [None] * 20, "b": ["p", "q"] * 50})
    data = sm.read(frame, keys=["a", "b"])
    masked = sm.mask(data, sm.Recode(on="a", merge=[["x", "y"]]), seed=1)
    cells = cell_shares(data, masked, "a", "b")
    assert cells["before"].sum() == pytest.approx(100) and cells["after"].sum() == pytest.approx(100)
    before = {(a, b): share for a, b, share, *_ in cells.iter_rows()}
    assert before["x", "p"] == 15 and before["missing", "q"] == 10
    assert cells.filter(pl.col("down") == "y")["after"].to_list() == [0, 0]
    assert cells["change"].abs().sum() == pytest.approx(160)  # 80 records left two categories for one
    assert draw_table_change(data, masked, "a", "b").svg().startswith("<svg")


def test_largest_categories_are_drawn() -> None:
    sizes = range(1, 21)
    frame = pl.DataFrame({"a": [f"c{n:02d}" for n in sizes for _ in range(n)], "b": ["p"] * sum(sizes)})
    data = sm.read(frame, keys=["a", "b"])
    spec = draw_table_change(data, data, "a", "b").spec
    drawn = {row["down"] for row in spec["concat"][0]["data"]["values"]}
    assert drawn == {f"c{n:02d}" for n in range(21 - MAX_TABLE_LEVELS, 21)}
