"""The best guess of a number under losses other than the quadratic one, and the loss that it has.

A belief is a mixture of normals. It is evaluated as a distribution on points: each normal has equally likely ones.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from sdcmap.core import Array
from sdcmap.risk._beliefs import Components

if TYPE_CHECKING:
    from sdcmap.theory.decision import Discrete, Loss

NUMBER_LOSSES = ("quadratic", "absolute", "zero-one", "bounded")
MAX_ATOMS = 4_000_000  # points that are evaluated together; bounds the memory


@cache
def _normal_points(count: int) -> Array:
    """Return equally likely points of a standard normal, with variance 1."""
    from scipy.special import ndtri

    points = ndtri((np.arange(count) + 0.5) / count)
    return np.asarray(points / points.std())


MIN_POINTS, SHARED_POINTS = 15, 151  # of one normal; a mixture of few normals shares the larger number among them
PRIOR_POINTS = 101  # of the prior


def guess_numbers(
    loss: Loss, mixtures: Components, prior: tuple[float, float]
) -> tuple[Array, Array, tuple[float, float]]:
    """Return the best guess for each record and the loss that the intruder expects of it; then both of the prior alone."""
    from sdcmap.theory.decision import Discrete

    base = prior[0] + np.sqrt(prior[1]) * _normal_points(PRIOR_POINTS)
    before = Discrete(base, np.full(len(base), 1 / len(base)))
    prior_guess = float(np.asarray(loss.best(before)))
    prior_loss = float(loss.expected_loss(before, prior_guess))
    guess, expected = np.full(mixtures.groups, prior_guess), np.full(mixtures.groups, prior_loss)
    count = np.bincount(mixtures.source, minlength=mixtures.groups)
    start = np.cumsum(count) - count
    order = np.argsort(count, kind="stable")
    order = order[count[order] > 0]
    while len(order):
        # mixtures of similar size together; shorter ones are filled up with components of weight 0
        most = int(count[order[0]]) * 3 // 2
        points = _normal_points(max(MIN_POINTS, SHARED_POINTS // most))
        atoms = most * len(points) + len(base)
        together = min(int(np.searchsorted(count[order], most, side="right")), max(1, MAX_ATOMS // atoms))
        rows, order = order[:together], order[together:]
        belief = _discretize(mixtures, start[rows], count[rows], points, base)
        guess[rows] = loss.best(belief)
        expected[rows] = loss.expected_loss(belief, guess[rows])
    group = np.maximum(mixtures.group, 0)
    is_linked = mixtures.group >= 0
    if not mixtures.groups:
        n = len(mixtures.group)
        return np.full(n, prior_guess), np.full(n, prior_loss), (prior_guess, prior_loss)
    return (
        np.where(is_linked, guess[group], prior_guess), np.where(is_linked, expected[group], prior_loss),
        (prior_guess, prior_loss),
    )  # fmt: skip


def _discretize(mixtures: Components, start: Array, count: Array, spread: Array, base: Array) -> Discrete:
    """Return the mixtures of some groups as distributions on points."""
    from sdcmap.theory.decision import Discrete

    slot = np.arange(int(count.max()))
    is_used = slot < count[:, None]
    at = np.minimum(start[:, None] + slot, len(mixtures.weight) - 1)
    weight = np.where(is_used, mixtures.weight[at], 0.0)
    mean = np.where(is_used, mixtures.mean[at], base.mean())
    sd = np.where(is_used, np.sqrt(mixtures.variance[at]), 0.0)
    points = (mean[..., None] + sd[..., None] * spread).reshape(len(start), -1)
    shares = np.repeat(weight / len(spread), len(spread), axis=1)
    rest = np.maximum(1 - weight.sum(axis=1), 0.0)
    values = np.concatenate([points, np.broadcast_to(base, (len(start), len(base)))], axis=1)
    weights = np.concatenate([shares, np.repeat(rest[:, None] / len(base), len(base), axis=1)], axis=1)
    return Discrete(values, weights / weights.sum(axis=1, keepdims=True))


def agency_losses(loss: Loss, x: Array, own_variance: float, guess: Array) -> Array:
    """Return the loss that the agency expects of each guess; it knows x up to its own variance. NaN where x is missing."""
    from sdcmap.theory.decision import Discrete, Normal

    known = np.isfinite(x)
    result = np.full(len(x), np.nan)
    truth = (
        Normal(x[known], own_variance) if own_variance > 0 else Discrete(x[known][:, None], np.ones((known.sum(), 1)))
    )
    result[known] = loss.expected_loss(truth, guess[known])
    return result
