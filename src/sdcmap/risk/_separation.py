"""Telling two groups apart by scores: a threshold learnt on one half of both, and tried on the other."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array

RIDGE = 1e-3  # of a covariance of ranks


class Advantage(NamedTuple):
    """True positives less false positives at a threshold that was learnt on others, and its standard error."""

    value: float
    se: float


def best_threshold(first: Array, second: Array) -> float:
    """The score from which on more of the first group than of the second are found, by the largest difference of
    shares; half way to the next lower score, and infinite where no threshold is better than none."""
    scores = np.unique(np.concatenate([first, second]))
    found = [1 - np.searchsorted(np.sort(group), scores) / len(group) for group in (first, second)]
    gain = found[0] - found[1]
    place = int(gain.argmax())
    if gain[place] <= 0:
        return math.inf
    below = scores[place - 1] if place and np.isfinite(scores[place - 1]) else scores[place]
    return float((scores[place] + below) / 2) if np.isfinite(scores[place]) else float(scores[place])


def cross_fitted(first: Array, second: Array) -> Advantage:
    """The advantage over both halves of each group, each judged by the threshold of the other half; the groups lie in
    random order. Learning on those who are judged would find an advantage in noise."""
    hits, false = np.zeros(len(first)), np.zeros(len(second))
    for half in (0, 1):
        threshold = best_threshold(first[half::2], second[half::2])
        hits[1 - half :: 2] = first[1 - half :: 2] >= threshold
        false[1 - half :: 2] = second[1 - half :: 2] >= threshold
    spread = [(share * n + 1) / (n + 2) for share, n in ((hits.mean(), len(hits)), (false.mean(), len(false)))]
    variances = [p * (1 - p) / n for p, n in zip(spread, (len(hits), len(false)), strict=True)]
    return Advantage(float(hits.mean() - false.mean()), math.sqrt(sum(variances)))


def ranks_of(scores: Array, like: Array) -> Array:
    """The share of `like` that is below each score, ties by halves: the same scale for every score."""
    order = np.sort(like)
    below, upto = np.searchsorted(order, scores, side="left"), np.searchsorted(order, scores, side="right")
    share: Array = (below + upto) / 2 / len(order)
    return share


def discriminant(first: Array, second: Array) -> Array:
    """The direction along which two groups of points differ most against their spread.  Fisher (1936), with a ridge"""
    spread = sum(len(group) * np.atleast_2d(np.cov(group.T, bias=True)) for group in (first, second))
    spread = spread / (len(first) + len(second)) + RIDGE * np.eye(first.shape[1])
    direction: Array = np.linalg.solve(spread, first.mean(axis=0) - second.mean(axis=0))
    return direction
