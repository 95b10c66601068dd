"""Averaged weights: totals are preserved, no weight is unique, and equal weights stay equal."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sdcmap as sm
from sdcmap.core.streams import Stream
from sdcmap.errors import Infeasible, SchemaError
from sdcmap.methods.average_weights import average_neighbors

ONCE = Stream.of_seed(1)


@given(st.lists(st.integers(1, 12), min_size=3, max_size=80), st.integers(3, 20))
def test_averaging_preserves_totals_order_and_ties(own: list[int], size: int) -> None:
    before = np.array(own, dtype=float)
    after = average_neighbors(before, size)
    assert after.sum() == pytest.approx(before.sum())
    count = np.unique(after, return_counts=True)[1]
    assert count.min() >= min(size, len(own))
    order = np.argsort(before, kind="stable")
    assert (np.diff(after[order]) >= 0).all()
    assert all(len(set(after[before == weight])) == 1 for weight in set(own))


def survey(rows: int = 300) -> sm.Microdata:
    rng = np.random.default_rng(3)
    frame = pl.DataFrame({"region": rng.choice(["n", "s"], rows), "w": rng.lognormal(5, 0.4, rows).round(4)})
    return sm.read(frame, keys="region", weight="w")


def test_totals_are_preserved_within_strata() -> None:
    data = survey()
    masked = sm.AverageWeights(20, within="region").apply(data, ONCE)
    for region in (0, 1):
        rows = data.codes("region") == region
        assert masked.weights[rows].sum() == pytest.approx(data.weights[rows].sum())
        assert np.unique(masked.weights[rows], return_counts=True)[1].min() >= 20


def test_missing_weight_or_too_few_records_is_rejected() -> None:
    with pytest.raises(SchemaError, match="needs a file with a weight"):
        sm.AverageWeights().apply(sm.read(pl.DataFrame({"sex": ["f", "m"]}), keys="sex"), ONCE)
    with pytest.raises(Infeasible, match="needs at least"):
        sm.AverageWeights(500).apply(survey(), ONCE)
    with pytest.raises(SchemaError, match="it is the file's weight"):
        sm.Noise("w").apply(survey(), ONCE)
