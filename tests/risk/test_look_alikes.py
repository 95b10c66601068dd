"""Records that resemble real people: replicated uniques, identifiability and dRisk against their definitions."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sdcmap as sm
from sdcmap.errors import SchemaError, Undefined
from sdcmap.kernels.arrays import Array

RNG = np.random.default_rng(0)


def file_of(seed: int, n: int = 30) -> sm.Microdata:
    rng = np.random.default_rng(seed)
    frame = {
        "a": rng.integers(0, 5, n).astype(str),
        "b": rng.integers(0, 4, n).astype(str),
        "x": rng.integers(0, 9, n) / 2,
    }
    return sm.read(pl.DataFrame(frame), keys=["a", "b"], numeric=["x"])


def synthetic(seed: int, n: int = 30) -> sm.Microdata:
    data = file_of(seed, n)
    return sm.Microdata(data.schema, data.columns, paired=False)


def scored(measure: sm.Measure, original: sm.Microdata, masked: sm.Microdata) -> sm.Estimate:
    return measure.apply(original, masked, np.random.default_rng(0))


@given(seed=st.integers(0, 10_000))
def test_replicated_uniques_match_definition(seed: int) -> None:
    original, released = file_of(seed), synthetic(seed + 1, 25)
    ours, theirs = (list(zip(d["a"], d["b"], strict=True)) for d in (original, released))
    before, after = Counter(ours), Counter(theirs)
    result = scored(sm.risk.ReplicatedUniques(), original, released)
    assert result.value == pytest.approx(np.mean([before[k] == 1 and after[k] == 1 for k in ours]))
    assert result.parts["unique in the original"] == pytest.approx(np.mean([before[k] == 1 for k in ours]))
    assert result.parts["unique in the release"] == pytest.approx(np.mean([after[k] == 1 for k in theirs]))


@given(seed=st.integers(0, 10_000))
def test_identifiability_matches_definition(seed: int) -> None:
    original, released = file_of(seed), synthetic(seed + 1, 25)
    mine, theirs = ([d[name] for name in "abx"] for d in (original, released))

    def away(other: list[Array]) -> Array:
        differ = sum((a[:, np.newaxis] != b).astype(float) for a, b in zip(mine[:2], other[:2], strict=True))
        apart: Array = differ + np.minimum(np.abs(mine[2][:, np.newaxis] - other[2]) / np.ptp(mine[2]), 1.0)
        return apart

    nearer = away(theirs).min(axis=1) < (away(mine) + 9 * np.eye(30)).min(axis=1) - 1e-12
    result = scored(sm.risk.Identifiability(on=["a", "b", "x"]), original, released)
    assert result.value == pytest.approx(np.mean(nearer)) and result.se == 0


def test_copy_identifies_all_unique_people() -> None:
    data = file_of(3, 60)
    alone = Counter(data.frame().rows())
    result = scored(sm.risk.Identifiability(on=["a", "b", "x"]), data, data.change(None, {}))
    assert result.value == pytest.approx(np.mean([alone[row] == 1 for row in data.frame().rows()]))
    with pytest.raises(SchemaError, match="Identifiability needs at least 2 people"):
        scored(sm.risk.Identifiability(), file_of(1, 1), file_of(1, 1))


def test_drisk_counts_records_with_all_values_close() -> None:
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0, None], "y": [1.0, 2.0, 3.0, None]})
    data = sm.read(frame, numeric=["x", "y"])
    masked = data.change(None, {"x": np.array([1.0, 2.05, 4.0, np.nan]), "y": np.array([1.0, 9.0, np.nan, np.nan])})
    result = scored(sm.risk.DRisk(k=0.1, scale="original"), data, masked)
    assert result.value == pytest.approx(1 / 3)
    assert result.parts == {"x": pytest.approx(2 / 3), "y": pytest.approx(1 / 2)}
    assert np.isnan(sm.risk.DRisk().records(data, masked)).tolist() == [False, False, False, True]
    with pytest.raises(Undefined, match="recoded into categories"):
        scored(sm.risk.DRisk(), data, sm.Recode(on="x", breaks=[2]).mask(data, RNG))
