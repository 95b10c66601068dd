"""What a snooper attributes to people from records like theirs."""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.device import on_device
from sdcmap.kernels.jit import inner_jit, jit
from sdcmap.kernels.tables.coding import compress

ROUNDING = 1e-12
ANY = -1  # a record's code that every target's equals


def attribution_probabilities(key: Array, pair: Array, key_in: Array, pair_in: Array) -> Array:
    """For each record, the share of another file's records with its key that have its target too; NaN with none.

    key, pair : codes of the keys, and of keys and target together, the same in both files.
    Taub, Elliot, Pampaka, Smith (2018)
    """
    keys = np.bincount(key_in, minlength=int(key.max(initial=0)) + 1)[key]
    both = np.bincount(pair_in, minlength=int(pair.max(initial=0)) + 1)[pair]
    return shares(both, keys)


def shares(part: Array, whole: Array) -> Array:
    """The share of each; NaN of nothing."""
    return np.asarray(np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0))


@on_device
def nearest(
    x: Array, c: Array, y: Array, d: Array, weight: Array, secret: Array, guess: Array, tolerance: float
) -> tuple[Array, Array]:
    """The distance of each target to the nearest record, and the share of the records at that distance that guess right.

    x, c : numbers (each divided by its range) and codes of the targets; y, d : those of the records; Gower's distance
    times the sum of the weights: sum of weight |x - y| (1 at most; a missing number is at 1 from a known one, at 0 from
    another missing one) and of the weights of codes that differ (ANY differs from none). weight : of the numbers, then of
    the codes.
    secret, guess : what is to be guessed; right within tolerance |secret|. Gower (1971)
    """
    if y.shape[1] == 0:  # records that are the same are looked at once
        cell, _ = compress([*(d.T + 1), np.unique(guess, return_inverse=True)[1]])
        _, first, times = np.unique(cell, return_index=True, return_counts=True)
        return _nearest(x, c, y[first], d[first], weight, secret, guess[first], times, tolerance)
    return _nearest(x, c, y, d, weight, secret, guess, np.ones(len(y), dtype=np.int64), tolerance)


@jit
def _nearest(
    x: Array, c: Array, y: Array, d: Array, weight: Array, secret: Array, guess: Array, times: Array, tolerance: float
) -> tuple[Array, Array]:
    numbers = x.shape[1]
    distance = np.empty(len(x))
    right = np.empty(len(x))
    for t in range(len(x)):
        least, ties, hits = np.inf, 0, 0
        for r in range(len(y)):
            total = 0.0
            for j in range(c.shape[1]):
                if c[t, j] != d[r, j] and d[r, j] != ANY:
                    total += weight[numbers + j]
            for j in range(numbers):
                if total > least + ROUNDING:
                    break
                gap = abs(x[t, j] - y[r, j])
                if np.isnan(gap):
                    gap = 0.0 if np.isnan(x[t, j]) and np.isnan(y[r, j]) else 1.0
                total += weight[j] * min(gap, 1.0)
            if total > least + ROUNDING:
                continue
            if total < least - ROUNDING:
                least, ties, hits = total, 0, 0
            ties += times[r]
            if abs(guess[r] - secret[t]) <= tolerance * abs(secret[t]):
                hits += times[r]
        distance[t] = least
        right[t] = hits / ties
    return distance, right


@inner_jit
def gower_distances(x: Array, c: Array, y: Array, d: Array, weight: Array, out: Array) -> None:
    """Gower's distance, times the sum of the weights, of one target with numbers x and codes c to each record."""
    numbers = len(x)
    for r in range(len(y)):
        total = 0.0
        for j in range(len(c)):
            if c[j] != d[r, j] and d[r, j] != ANY:
                total += weight[numbers + j]
        for j in range(numbers):
            gap = abs(x[j] - y[r, j])
            if np.isnan(gap):
                gap = 0.0 if np.isnan(x[j]) and np.isnan(y[r, j]) else 1.0
            total += weight[j] * min(gap, 1.0)
        out[r] = total


@jit
def shared_nearest(
    x: Array, c: Array, y: Array, d: Array, weight: Array, x2: Array, c2: Array, y2: Array, d2: Array, weight2: Array
) -> Array:
    """For each target the chance that a record drawn among the nearest on one set of variables is the one drawn among the
    nearest on another: |A and B| / (|A| |B|).  Giomi et al. (2023), linkability, ties at random"""
    met = np.empty(len(x))
    left, right = np.empty(len(y)), np.empty(len(y))
    for t in range(len(x)):
        gower_distances(x[t], c[t], y, d, weight, left)
        gower_distances(x2[t], c2[t], y2, d2, weight2, right)
        a, b = left <= left.min() + ROUNDING, right <= right.min() + ROUNDING
        met[t] = (a & b).sum() / (a.sum() * b.sum())
    return met


@jit
def two_nearest(x: Array, c: Array, y: Array, d: Array, weight: Array) -> Array:
    """Gower's distance, times the sum of the weights, of each target to the nearest and to the second nearest record;
    infinite where there is none."""
    nearest = np.full((len(x), 2), np.inf)
    away = np.empty(len(y))
    for t in range(len(x)):
        gower_distances(x[t], c[t], y, d, weight, away)
        for r in range(len(away)):
            if away[r] < nearest[t, 0]:
                nearest[t, 1] = nearest[t, 0]
                nearest[t, 0] = away[r]
            elif away[r] < nearest[t, 1]:
                nearest[t, 1] = away[r]
    return nearest


@jit
def crowds(x: Array, c: Array, y: Array, d: Array, weight: Array, width: float) -> Array:
    """For each target the share of records within `width`, and the mean of exp(-distance/width): a count and a density."""
    crowd = np.zeros((len(x), 2))
    away = np.empty(len(y))
    for t in range(len(x)):
        gower_distances(x[t], c[t], y, d, weight, away)
        for r in range(len(away)):
            crowd[t, 0] += away[r] <= width + ROUNDING
            crowd[t, 1] += np.exp(-away[r] / width)
    return crowd / len(y)


def closer_share(inside: Array, outside: Array) -> float:
    """P(inside < outside) + P(equal) / 2 over all pairs: the area under the curve of an attack on distances."""
    order = np.sort(outside)
    above = len(order) - np.searchsorted(order, inside, side="right")
    equal = len(order) - above - np.searchsorted(order, inside, side="left")
    return float((above + equal / 2).mean() / len(order))


def share_error(share: float, size: int) -> float:
    """The standard error of a share of `size` trials, from (successes + 1) / (size + 2), so that it is never 0."""
    shrunk = (share * size + 1) / (size + 2)
    return float(np.sqrt(shrunk * (1 - shrunk) / size))
