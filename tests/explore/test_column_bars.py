"""The bars of a column count every record once."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.explore.column_bars import MAX_BARS, MAX_ORDERED_BARS, Bar, summarize_column

N = 600
DRAW = np.random.default_rng(3)
COLUMNS: dict[str, Any] = {
    "many": [f"c{int(x):02}" for x in DRAW.geometric(0.1, N).clip(0, 40)],
    "numbers": DRAW.lognormal(7, 1, N).round(2),
    "zeros": np.where(DRAW.random(N) < 0.7, 0, DRAW.integers(1, 10_000, N)),
    "gaps": [None if x < 2 else int(x) for x in DRAW.integers(0, 9, N)],
    "days": [date(2001, 1, 1) + timedelta(int(x)) for x in DRAW.integers(0, 2000, N)],
    "constant": [7.0] * N,
    "nothing": pl.Series([None] * N, dtype=pl.Float64),
    "far": [*np.arange(N - 1.0), 1e12],
}


@pytest.mark.parametrize("role", ["keys", "other"])
@pytest.mark.parametrize("name", COLUMNS)
def test_every_record_is_in_one_bar(name: str, role: str) -> None:
    data = sm.read(pl.DataFrame({name: COLUMNS[name]}), **{role: name})  # type: ignore[arg-type]
    bars = summarize_column(data, name)
    assert sum(bar.count for bar in bars.bars) + bars.others + bars.missing == N
    assert bars.missing == data.missing(name).sum()
    assert len(bars.bars) <= MAX_ORDERED_BARS and (bars.categories == 0) == (bars.others == 0)
    assert len({bar.label for bar in bars.bars}) == len(bars.bars)


def test_most_frequent_categories_have_their_own_bars() -> None:
    frame = pl.DataFrame({"many": COLUMNS["many"]})
    bars = summarize_column(sm.read(frame), "many")
    counts = dict(frame["many"].value_counts().iter_rows())
    assert {bar.label: bar.count for bar in bars.bars}.items() <= counts.items()
    assert len(bars.bars) == MAX_BARS - 1 and bars.categories == len(counts) - len(bars.bars)
    assert min(bar.count for bar in bars.bars) >= max(
        n for c, n in counts.items() if c not in {b.label for b in bars.bars}
    )


def test_outliers_and_zeros_do_not_hide_the_distribution() -> None:
    assert (
        max(bar.count for bar in summarize_column(sm.read(pl.DataFrame({"far": COLUMNS["far"]})), "far").bars) < N / 4
    )
    zeros = sm.read(pl.DataFrame({"zeros": COLUMNS["zeros"]}))
    assert summarize_column(zeros, "zeros").bars[0] == Bar("just 0", int((COLUMNS["zeros"] == 0).sum()))
