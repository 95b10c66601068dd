"""Beliefs about a number after a released value has been seen, as means and variances.

With quadratic loss, decision theory needs only these two: the best action is the mean, and the uncertainty is the variance.
Trottini (2001), par. 8; `sdcmap.theory.decision` has other losses
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sdcmap.kernels.arrays import Array

NODES = 97  # grid points at which a posterior is evaluated
NEGLIGIBLE_LOG = 25.0  # a log density this far below the highest counts as none
MAX_ROUNDS = 16  # of narrowing the grid
POINT_WIDTH = 1e-9  # an interval below this share of the prior's standard deviation is a point


def normal_posterior(prior: tuple[float, float], seen: Array, variance: Array) -> tuple[Array, Array]:
    """Return mean and variance of the belief N(prior) after seeing `seen` ~ N(theta, variance).

    A variance of 0 means that theta itself is seen.
    """
    mean, spread = prior
    share = spread / (spread + variance)  # weight of the seen value in the posterior mean
    return mean + share * (seen - mean), share * variance


def posterior_moments(
    log_likelihood: Callable[[Array], Array], seen: Array, prior: tuple[float, float], ends: tuple[float, float]
) -> tuple[Array, Array]:
    """Return mean and variance of theta, with prior N(mean, variance), given each released value.

    The posterior is evaluated on a grid, which is narrowed round by round to where the posterior has its mass. The result
    is NaN where no value of theta is possible.

    log_likelihood : of the released values (rows) at the values of theta in a row of nodes each. seen : the released
    values, at which the likelihood is not 0. ends : theta lies between them, or within a standard deviation of `seen`.
    """
    mean, spread = prior[0], np.sqrt(prior[1])
    low, high = np.minimum(ends[0], seen - spread), np.maximum(ends[1], seen + spread)
    steps = np.linspace(0.0, 1.0, NODES)

    def log_posterior(nodes: Array) -> Array:
        return np.asarray(log_likelihood(nodes) - 0.5 * ((nodes - mean) / spread) ** 2)

    for _ in range(MAX_ROUNDS):
        even = low[:, None] + (high - low)[:, None] * steps
        nodes = np.sort(np.column_stack([even, np.clip(seen, low, high)]), axis=1)
        log_p = log_posterior(nodes)
        # Narrow the grid to the nodes with a density that counts, where they are fewer than half.
        alive = log_p > log_p.max(axis=1, keepdims=True) - NEGLIGIBLE_LOG
        rough = (alive.sum(axis=1) < NODES // 2) & (high - low > POINT_WIDTH * spread)
        if not rough.any():
            break
        before = np.maximum(alive.argmax(axis=1) - 1, 0)
        after = np.minimum(NODES + 1 - alive[:, ::-1].argmax(axis=1), NODES)
        ends_now = [np.take_along_axis(nodes, index[:, None], 1)[:, 0] for index in (before, after)]
        low, high = np.where(rough, ends_now[0], low), np.where(rough, ends_now[1], high)
    even = low[:, None] + (high - low)[:, None] * steps  # the trapezoid rule is most accurate on even steps
    return _moments(even, log_posterior(even))


def _moments(nodes: Array, log_p: Array) -> tuple[Array, Array]:
    """Return mean and variance of the density exp(log_p) by the trapezoid rule; nodes that coincide are a point mass."""
    gaps = np.diff(nodes, axis=1)
    width = np.zeros(nodes.shape)
    width[:, 1:] += gaps
    width[:, :-1] += gaps
    width = np.where(width.any(axis=1, keepdims=True), width, 1.0)
    with np.errstate(invalid="ignore"):
        weight = width * np.exp(log_p - log_p.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    mean = (weight * nodes).sum(axis=1)
    return mean, (weight * (nodes - mean[:, None]) ** 2).sum(axis=1)


def normal_divergence(truth: tuple[Array, Array], belief: tuple[Array, Array]) -> Array:
    """Return KL(N(truth) || N(belief)) in nats; infinite where the belief has variance 0."""
    spread = np.where(belief[1] > 0, belief[1], np.nan)
    ratio, apart = truth[1] / spread, (truth[0] - belief[0]) ** 2 / spread
    with np.errstate(divide="ignore"):  # the truth may have variance 0
        log_ratio = np.log(truth[1]) - np.log(spread)  # a difference of logs, since the ratio may underflow
    return np.asarray(np.nan_to_num(0.5 * (ratio - 1 - log_ratio + apart), nan=np.inf))
