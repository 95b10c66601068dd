"""Weights of Gower's distance: the nearest record by the plain formula, for every attack that uses it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.errors import PlanError

ON = ("a", "b", "c")
WEIGHTS = (3.0, 1.0, 0.5)


@pytest.fixture(scope="module")
def files() -> tuple[sm.Microdata, sm.Microdata]:
    """Return 60 people with two numbers and a category, and the same with noise."""
    rng = np.random.default_rng(4)
    frame = pl.DataFrame({"a": rng.random(60), "b": rng.random(60), "c": rng.choice(list("xyz"), 60)})
    data = sm.read(frame, keys=["c"], numeric=["a", "b"])
    moved = {name: data[name] + rng.normal(0, 0.1, 60) for name in ("a", "b")}
    return data, data.change(None, moved)


def distances(data: sm.Microdata, masked: sm.Microdata) -> np.ndarray:
    """Of released records (rows) to people: the sum of w min(|x - y| / range, 1) and of w where categories differ."""
    total = np.zeros((len(masked), len(data)))
    for name, weight in zip(ON, WEIGHTS, strict=True):
        x, y = data[name], masked[name]
        apart = y[:, np.newaxis] != x if name == "c" else np.minimum(np.abs(y[:, np.newaxis] - x) / np.ptp(x), 1)
        total += weight * apart
    return total


def test_nearest_record_uses_weighted_distance(files: tuple[sm.Microdata, sm.Microdata]) -> None:
    data, masked = files
    rng = np.random.default_rng(0)
    near = distances(data, masked).argmin(axis=1)
    measure = sm.risk.NearestRecord("gower", on=ON, importance=WEIGHTS, open_columns="as any")
    assert measure.score(data, masked, rng).value == pytest.approx((near == np.arange(60)).mean())
    alike = sm.risk.NearestRecord("gower", on=ON, importance=(2.0, 2.0, 2.0), open_columns="as any")
    plain = sm.risk.NearestRecord("gower", on=ON, open_columns="as any")
    assert alike.score(data, masked, rng) == plain.score(data, masked, rng)


def test_closest_record_distance_is_weighted_mean(files: tuple[sm.Microdata, sm.Microdata]) -> None:
    """One person is held out, so the median over the others is that of all but one."""
    data, masked = files
    result = sm.risk.ClosestRecord(on=ON, importance=WEIGHTS, held_out=0.01).score(
        data, masked, np.random.default_rng(0)
    )
    near = distances(data, masked).min(axis=0) / sum(WEIGHTS)
    assert np.quantile(near, 0.45) <= result.parts["median distance, members"] <= np.quantile(near, 0.6)


def test_variable_with_tiny_weight_is_ignored(
    files: tuple[sm.Microdata, sm.Microdata],
) -> None:
    """In an unmasked file `a` re-identifies everyone; three categories re-identify nobody, and inference is a guess."""
    data = files[0]
    same = data.change(None, {"a": data["a"] + 1e-9})
    for weights, low, high in (((1.0, 1e-6), 1.0, 1.0), ((1e-12, 1.0), 0.0, 0.2)):
        infer = sm.risk.AttributeInference("b", on=["a", "c"], importance=weights, tolerance=0.0)
        apart = data.change(None, {"a": data["a"][::-1].copy()})
        inside = infer.score(data, same if low else apart, np.random.default_rng(0)).parts["members"]
        assert low <= inside <= high
    codes = data.column("c").values
    moved = data.change(None, {"c": ((codes + 1) % 3).astype(codes.dtype)})  # every category changes
    member = [sm.risk.WorstMembership(on=["a", "c"], importance=w, held_out=0.5) for w in ((1.0, 1e-6), (1e-6, 1.0))]
    values = [measure.score(data, moved, np.random.default_rng(0)).parts["closest"] for measure in member]
    assert values[0] == 1 and abs(values[1]) < 0.6


@pytest.mark.parametrize("name", ["NearestRecord", "AttributeInference", "ClosestRecord", "WorstMembership"])
def test_invalid_importance_is_rejected(name: str) -> None:
    kind = {"metric": "gower"} if name == "NearestRecord" else {}
    with pytest.raises(PlanError, match="a number above 0 for each of the 2 variables"):
        getattr(sm.risk, name)(on=["a", "b"], importance=[1.0], **kind)
    with pytest.raises(PlanError, match='importance needs metric "gower"'):
        sm.risk.NearestRecord(on=["a", "b"], importance=[1.0, 2.0])
