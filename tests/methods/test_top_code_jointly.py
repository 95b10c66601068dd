"""Joint top coding: records with unusual combinations of numbers are moved onto an ellipse."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import chi2

import sdcmap as sm
from sdcmap.errors import Infeasible, PlanError
from sdcmap.kernels.statistics.robust_scatter import robust_scatter


def people(count: int = 2000) -> sm.Microdata:
    x = np.random.default_rng(1).multivariate_normal([5, 5], [[1, 0.9], [0.9, 1]], count)
    x[0] = 3, 6  # each value is common, but not the combination
    return sm.read(pl.DataFrame(x, schema=["a", "b"]), numeric="all")


def test_outliers_move_straight_onto_the_ellipse() -> None:
    data = people()
    x = data.matrix(("a", "b"))
    z = sm.mask(data, sm.methods.TopCodeJointly(on=["a", "b"]), seed=1).matrix(("a", "b"))
    scatter = robust_scatter(x)
    assert scatter is not None
    q, before = chi2.ppf(0.975, 2), scatter.distances(x)
    moved = before > q
    assert moved[0] and 0.01 < moved.mean() < 0.05
    assert (z[~moved] == x[~moved]).all()
    assert scatter.distances(z[moved]) == pytest.approx(q)
    turned = (z[moved] - scatter.center) / (x[moved] - scatter.center)
    assert turned[:, 0] == pytest.approx(turned[:, 1]) and (turned < 1).all()


def test_records_with_missing_values_do_not_change() -> None:
    data = people()
    data = data.change(None, {"a": np.where(np.arange(2000) == 0, np.nan, data["a"])})
    assert sm.mask(data, sm.methods.TopCodeJointly(on=["a", "b"]), seed=1)["b"][0] == 6


def test_impossible_requests_are_rejected() -> None:
    with pytest.raises(PlanError, match="at least two variables"):
        sm.methods.TopCodeJointly(on="a")
    with pytest.raises(Infeasible, match="no ellipse"):
        flat = people().change(None, {"a": np.zeros(2000)})
        sm.mask(flat, sm.methods.TopCodeJointly(on=["a", "b"]), seed=1)
