"""Distances between records, and what an attacker infers from the nearest records.

The distances of a target are computed column by column, in blocks of records. Each step is then one operation on many
records, which uses vector lanes where the values of a column lie together in memory (Fortran order). Every record's sum is
added up in the same order, so the numbers do not depend on the lanes of the processor.
"""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.device import on_device
from sdcmap.kernels.jit import inner_jit, jit
from sdcmap.kernels.tables.coding import compress

TIE_TOLERANCE = 1e-12  # distances that differ by at most this are equal
ANY = -1  # code of a record that matches every code of a target
BLOCK_RECORDS = 1_024  # records whose distances stay in the cache while the columns are added


def attribution_probabilities(key: Array, pair: Array, key_in: Array, pair_in: Array) -> Array:
    """Return, for each record, the share of another file's records with its key that also have its target value.

    The share is NaN if no record has the key.  Taub, Elliot, Pampaka, Smith (2018)

    key, pair : codes of the keys, and of keys and target together, the same in both files.
    """
    keys = np.bincount(key_in, minlength=int(key.max(initial=0)) + 1)[key]
    both = np.bincount(pair_in, minlength=int(pair.max(initial=0)) + 1)[pair]
    return shares(both, keys)


def shares(part: Array, whole: Array) -> Array:
    """Return part/whole; NaN where the whole is 0."""
    return np.asarray(np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0))


@on_device
def nearest(
    x: Array, c: Array, y: Array, d: Array, weight: Array, secret: Array, guess: Array, tolerance: float
) -> tuple[Array, Array]:
    """Return the distance of each target to the nearest record, and the share of the nearest records that guess right.

    The distance is Gower's, times the sum of the weights: weight min(|x - y|, 1) for each number, and the weight of each
    code that differs. A missing number is at distance 1 from a known one and 0 from another missing one.  Gower (1971)

    x, c : numbers (each divided by its range) and codes of the targets; y, d : those of the records.
    weight : of the numbers, then of the codes. secret, guess : the value to guess and the guess of each record; a guess
    is right within tolerance |secret|.
    """
    if y.shape[1] == 0:  # without numbers many records are equal: compare each distinct one once
        cell, _ = compress([*(d.T + 1), np.unique(guess, return_inverse=True)[1]])
        _, first, times = np.unique(cell, return_index=True, return_counts=True)
        return _nearest(x, c, y[first], d[first], weight, secret, guess[first], times, tolerance)
    return _nearest(x, c, y, d, weight, secret, guess, np.ones(len(y), dtype=np.int64), tolerance)


@jit
def _nearest(
    x: Array, c: Array, y: Array, d: Array, weight: Array, secret: Array, guess: Array, times: Array, tolerance: float
) -> tuple[Array, Array]:
    distance, right = np.empty(len(x)), np.empty(len(x))
    away = np.empty(len(y))
    for t in range(len(x)):
        gower_distances(x[t], c[t], y, d, weight, away)
        least, ties, hits = np.inf, 0, 0
        for r in range(len(y)):
            if away[r] > least + TIE_TOLERANCE:
                continue
            if away[r] < least - TIE_TOLERANCE:
                least, ties, hits = away[r], 0, 0
            ties += times[r]
            if abs(guess[r] - secret[t]) <= tolerance * abs(secret[t]):
                hits += times[r]
        distance[t] = least
        right[t] = hits / ties
    return distance, right


@inner_jit
def gower_distances(x: Array, c: Array, y: Array, d: Array, weight: Array, out: Array) -> None:
    """Write the distances of one target (numbers x, codes c) to each record: Gower's, times the sum of the weights."""
    numbers = len(x)
    for start in range(0, len(y), BLOCK_RECORDS):
        total = out[start : start + BLOCK_RECORDS]
        total[:] = 0.0
        for j in range(len(c)):
            add_codes(c[j], d[start : start + BLOCK_RECORDS, j], weight[numbers + j], total)
        for j in range(numbers):
            add_numbers(x[j], y[start : start + BLOCK_RECORDS, j], weight[j], total)


@inner_jit
def add_codes(code: int, codes: Array, weight: float, total: Array) -> None:
    """Add the distance of a code to each of several: `weight` where they differ, else 0."""
    for r in range(len(total)):
        total[r] += weight if (codes[r] != code) & (codes[r] != ANY) else 0.0


@inner_jit
def add_numbers(number: float, numbers: Array, weight: float, total: Array) -> None:
    """Add the distance of a number to each of several: at most `weight`, as from a missing one; 0 between missing ones."""
    if np.isnan(number):
        for r in range(len(total)):
            total[r] += 0.0 if np.isnan(numbers[r]) else weight
    else:
        for r in range(len(total)):
            gap = abs(number - numbers[r])
            total[r] += weight * (gap if gap < 1.0 else 1.0)


@jit
def same_nearest_probability(
    x: Array, c: Array, y: Array, d: Array, weight: Array, x2: Array, c2: Array, y2: Array, d2: Array, weight2: Array
) -> Array:
    """Return the probability that the nearest records on two sets of variables are the same record.

    Ties are broken at random: with the sets A and B of nearest records it is |A and B| / (|A| |B|).  Giomi et al. (2023),
    linkability
    """
    probability = np.empty(len(x))
    left, right = np.empty(len(y)), np.empty(len(y))
    for t in range(len(x)):
        gower_distances(x[t], c[t], y, d, weight, left)
        gower_distances(x2[t], c2[t], y2, d2, weight2, right)
        a, b = left <= left.min() + TIE_TOLERANCE, right <= right.min() + TIE_TOLERANCE
        probability[t] = (a & b).sum() / (a.sum() * b.sum())
    return probability


@jit
def two_nearest_distances(x: Array, c: Array, y: Array, d: Array, weight: Array) -> Array:
    """Return the distances of each target to its nearest and its second nearest record; infinite if there is none.

    The distance is Gower's, times the sum of the weights.
    """
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
def describe_neighborhoods(
    x: Array, c: Array, y: Array, d: Array, weight: Array, few: int, many: int
) -> Array:  # fmt: skip
    """Return how many records are near each target, in seven columns.

    They are the distance to the nearest record and the mean distances to the `few` and the `many` nearest ones, by Gower's
    distance times the sum of the weights; the same for the nearest and the `few` by the numbers alone; and the shares of
    the records that have all codes of the target, and all but one at most. Empty files give NaN.
    """
    described = np.full((len(x), 7), np.nan)
    if len(y) == 0:
        return described
    few, many = min(few, len(y)), min(many, len(y))
    away, apart, differing = np.empty(len(y)), np.empty(len(y)), np.empty(len(y), dtype=np.int64)
    for t in range(len(x)):
        gower_distances(x[t], c[t], y, d, weight, away)
        apart[:], differing[:] = 0.0, 0
        for j in range(c.shape[1]):
            codes, code, cost = d[:, j], c[t, j], weight[x.shape[1] + j]
            for r in range(len(y)):
                differs = (codes[r] != code) & (codes[r] != ANY)
                differing[r] += differs
                apart[r] += cost if differs else 0.0
        same, similar = 0, 0
        for r in range(len(y)):
            same += differing[r] == 0
            similar += differing[r] <= 1
            apart[r] = away[r] - apart[r]
        near = np.sort(np.partition(away, many - 1)[:many])
        described[t, 0], described[t, 1], described[t, 2] = near[0], near[:few].mean(), near.mean()
        near = np.sort(np.partition(apart, few - 1)[:few])
        described[t, 3], described[t, 4] = near[0], near.mean()
        described[t, 5], described[t, 6] = same / len(y), similar / len(y)
    return described


@jit
def neighbor_densities(x: Array, c: Array, y: Array, d: Array, weight: Array, width: float) -> Array:
    """Return, for each target, the share of records within `width` and a density, the mean of exp(-distance/width)."""
    density = np.zeros((len(x), 2))
    away = np.empty(len(y))
    for t in range(len(x)):
        gower_distances(x[t], c[t], y, d, weight, away)
        for r in range(len(away)):
            density[t, 0] += away[r] <= width + TIE_TOLERANCE
            density[t, 1] += np.exp(-away[r] / width)
    return density / len(y)


def closer_share(inside: Array, outside: Array) -> float:
    """Return P(inside < outside) + P(equal) / 2 over all pairs: the AUC of an attack that compares distances."""
    order = np.sort(outside)
    above = len(order) - np.searchsorted(order, inside, side="right")
    equal = len(order) - above - np.searchsorted(order, inside, side="left")
    return float((above + equal / 2).mean() / len(order))


def share_standard_error(share: float, size: int) -> float:
    """Return the standard error of a share of `size` trials.

    It is computed at (successes + 1) / (size + 2), so that it is never 0.
    """
    shrunk = (share * size + 1) / (size + 2)
    return float(np.sqrt(shrunk * (1 - shrunk) / size))
