"""What somebody believes about a number after he has seen a value that stands for it: means and variances.

With quadratic loss these two are all that decision theory asks of a belief: the best action is the mean, and the
uncertainty the variance.  Trottini (2001), par. 8; `sdcmap.theory.decision` has other losses
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sdcmap.kernels.arrays import Array

NODES = 97  # values at which a posterior is looked at
NEGLIGIBLE = 25.0  # a log density so far below the highest counts as none
MOST_ROUNDS = 16
NARROW = 1e-9  # an interval of this share of the prior's standard deviation is a point


def normal_posterior(prior: tuple[float, float], seen: Array, variance: Array) -> tuple[Array, Array]:
    """Mean and variance of N(prior) after seeing `seen` ~ N(theta, variance); variance 0: theta is seen itself."""
    mean, spread = prior
    share = spread / (spread + variance)  # of what was seen, in the posterior mean
    return mean + share * (seen - mean), share * variance


def posterior_moments(
    log_likelihood: Callable[[Array], Array], seen: Array, prior: tuple[float, float], ends: tuple[float, float]
) -> tuple[Array, Array]:
    """Mean and variance of theta, prior N(mean, variance), given each released value; NaN where all values are impossible.

    log_likelihood : of the released values (rows), at the values of theta in a row of nodes each. seen : the released
    values, at which the likelihood is not 0. ends : theta lies between, or within a standard deviation of what is seen.
    The posterior is looked at on a grid of nodes, which is drawn in round by round to where it has its mass.
    """
    mean, spread = prior[0], np.sqrt(prior[1])
    low, high = np.minimum(ends[0], seen - spread), np.maximum(ends[1], seen + spread)
    steps = np.linspace(0.0, 1.0, NODES)

    def log_posterior(nodes: Array) -> Array:
        return np.asarray(log_likelihood(nodes) - 0.5 * ((nodes - mean) / spread) ** 2)

    for _ in range(MOST_ROUNDS):
        even = low[:, None] + (high - low)[:, None] * steps
        nodes = np.sort(np.column_stack([even, np.clip(seen, low, high)]), axis=1)
        log_p = log_posterior(nodes)
        alive = log_p > log_p.max(axis=1, keepdims=True) - NEGLIGIBLE
        rough = (alive.sum(axis=1) < NODES // 2) & (high - low > NARROW * spread)
        if not rough.any():
            break
        before = np.maximum(alive.argmax(axis=1) - 1, 0)
        after = np.minimum(NODES + 1 - alive[:, ::-1].argmax(axis=1), NODES)
        drawn_in = [np.take_along_axis(nodes, place[:, None], 1)[:, 0] for place in (before, after)]
        low, high = np.where(rough, drawn_in[0], low), np.where(rough, drawn_in[1], high)
    even = low[:, None] + (high - low)[:, None] * steps  # of even steps the trapezoid rule is most exact
    return _moments(even, log_posterior(even))


def _moments(nodes: Array, log_p: Array) -> tuple[Array, Array]:
    """Mean and variance of the density exp(log_p) at the nodes, by the trapezoid rule; a point where they coincide."""
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
    """KL(N(truth) || N(belief)) in nats; infinite where the belief is certain."""
    spread = np.where(belief[1] > 0, belief[1], np.nan)
    ratio, apart = truth[1] / spread, (truth[0] - belief[0]) ** 2 / spread
    with np.errstate(divide="ignore"):  # the truth may be a point
        log_ratio = np.log(truth[1]) - np.log(spread)  # the ratio itself may be too small for a number
    return np.asarray(np.nan_to_num(0.5 * (ratio - 1 - log_ratio + apart), nan=np.inf))
