"""Robust intervals: records far from the center are recognized from further away."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.errors import Undefined

RNG = np.random.default_rng(0)


def people() -> sm.Microdata:
    x = np.random.default_rng(1).standard_normal((400, 2))
    x[0] = 30, -30
    return sm.read(pl.DataFrame(x, schema=["a", "b"]), numeric="all")


def test_unmasked_file_has_risk_one() -> None:
    data = people()
    result = sm.risk.DRiskRMD(k2=1e-6).score(data, data.change(None, {}), RNG)
    assert result.value == result.parts["near"] == 1


def test_outliers_have_wider_intervals() -> None:
    """All values move by 0.01 standard deviations."""
    data = people()
    x = data.matrix(("a", "b"))
    step = 0.01 * x.std(axis=0, ddof=1)
    masked = data.change(None, dict(zip(("a", "b"), (x + step * np.sign(RNG.random(x.shape) - 0.5)).T, strict=True)))
    near = sm.risk.DRiskRMD(k=0.01).score(data, masked, RNG).parts["near"]
    assert 1 / 400 <= near < 0.05


def test_released_neighbor_hides_record() -> None:
    x = np.repeat(np.random.default_rng(2).standard_normal((200, 2)), 2, axis=0)
    data = sm.read(pl.DataFrame(x, schema=["a", "b"]), numeric="all")
    result = sm.risk.DRiskRMD().score(data, data.change(None, {}), RNG)
    assert result.value == 0 and result.parts["near"] == 1


def test_records_in_a_plane_are_undefined() -> None:
    data = people()
    with pytest.raises(Undefined, match="plane"):
        flat = data.change(None, {"b": data["a"] * 2})
        sm.risk.DRiskRMD().score(flat, flat, RNG)
