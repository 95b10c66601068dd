"""Robust intervals: records that are far from the middle are known from further away."""

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


def test_the_file_as_it_is_has_every_record_near_and_each_alone_found() -> None:
    data = people()
    found = sm.risk.DRiskRMD(k2=1e-6).score(data, data.change(None, {}), RNG)
    assert found.value == found.parts["near"] == 1


def test_an_outlier_is_near_from_further_away() -> None:
    """All values move by a hundredth of a standard deviation."""
    data = people()
    x = data.matrix(("a", "b"))
    step = 0.01 * x.std(axis=0, ddof=1)
    masked = data.change(None, dict(zip(("a", "b"), (x + step * np.sign(RNG.random(x.shape) - 0.5)).T, strict=True)))
    near = sm.risk.DRiskRMD(k=0.01).score(data, masked, RNG).parts["near"]
    assert 1 / 400 <= near < 0.05


def test_a_released_record_with_another_beside_it_is_hidden() -> None:
    x = np.repeat(np.random.default_rng(2).standard_normal((200, 2)), 2, axis=0)
    data = sm.read(pl.DataFrame(x, schema=["a", "b"]), numeric="all")
    found = sm.risk.DRiskRMD().score(data, data.change(None, {}), RNG)
    assert found.value == 0 and found.parts["near"] == 1


def test_a_file_in_a_plane_is_undefined() -> None:
    data = people()
    with pytest.raises(Undefined, match="plane"):
        flat = data.change(None, {"b": data["a"] * 2})
        sm.risk.DRiskRMD().score(flat, flat, RNG)
