"""The best links of each known record among released records, by a score: `keep` candidates a record, best first."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import jit
from sdcmap.risk.linkage.box_search import Costs, cheapest

BLOCK_BYTES = 1 << 26  # of one block of scores
FAR = np.float32(3e38)  # stands for a missing released value: it agrees with none


class Links(NamedTuple):
    """Candidate links, a row for each known record."""

    index: Array  # type: ignore[assignment]  # n x k, int32: the released row; -1: none
    score: Array  # n x k, descending, -inf where there is none; ties stand by the lower released row


# ---- the scores, as plain formulas ----------------------------------------------------------------------------
def agreement_scores(known: Array, released: Array, reach: Array, low: Array, gain: Array) -> Array:
    """n x m: the sum over the fields present on both sides of low + gain max(0, 1 - |known - released| / reach).

    YWC (2002), section 4.1: low = wD, gain = wA - wD and reach = t max(|a|, 0.1) give the weight of the d metric.
    """
    total = np.zeros((len(known), len(released)))
    for f in range(known.shape[1]):
        far = np.abs(known[:, f, None] - released[None, :, f]) / reach[:, f, None]
        total += np.where(np.isnan(far), 0.0, low[f] + gain[f] * np.maximum(0.0, 1.0 - far))
    return total


def distance_scores(known: Array, released: Array) -> Array:
    """n x m: minus the squared Euclidean distance."""
    total = np.zeros((len(known), len(released)))
    for f in range(known.shape[1]):
        total -= (known[:, f, None] - released[None, :, f]) ** 2
    return total


# ---- the best of them -----------------------------------------------------------------------------------------
def agreement_links(
    known: Array, released: Array, reach: Array, low: Array, gain: Array, keep: int, threads: int | None = None
) -> Links:
    """The `keep` best released records of each known record by `agreement_scores`.

    known, reach: n x F; released: m x F; low, gain: F. Finite, or NaN for a missing value; reach > 0.
    threads: default one inside a worker, else all; the links are the same.

    Candidates are found in float32, a few more than `keep`, and then scored and ranked by the formula in float64: a
    link can differ from the best by brute force only where the scores differ by a few units of float32 rounding.
    """
    known, released, reach = (_doubles(part) for part in (known, released, reach))
    low, gain = np.asarray(low, dtype=float), np.asarray(gain, dtype=float)
    if (gain < 0).any():  # a field whose agreement speaks against a link: no cost to be pruned by
        return block_links(
            lambda rows: agreement_scores(known[rows], released, reach[rows], low, gain),
            len(known),
            len(released),
            keep,
        )

    def score(rows: Array, index: Array, out: Array) -> None:
        _agreements(known, released, reach, low, gain, rows, index, out)

    return Links(*cheapest(_agreement_costs(known, released, reach, low, gain), score, keep, threads))


def nearest_links(known: Array, released: Array, keep: int, threads: int | None = None) -> Links:
    """The `keep` nearest released records of each known record by `distance_scores`; as `agreement_links`, but that no
    value may be missing."""
    known, released = _doubles(known), _doubles(released)

    def score(rows: Array, index: Array, out: Array) -> None:
        _distances(known, released, rows, index, out)

    return Links(*cheapest(_distance_costs(known, released), score, keep, threads))


def block_links(block: Callable[[slice], Array], n: int, m: int, keep: int) -> Links:
    """The `keep` best by any score, given for a slice of known records against all released ones; -inf: not a link."""
    keep = min(keep, m)
    index, score = np.empty((n, keep), dtype=np.int32), np.empty((n, keep))
    step = max(1, BLOCK_BYTES // max(1, 8 * m))
    for start in range(0, n, step):
        rows = slice(start, min(n, start + step))
        index[rows], score[rows] = best_links(block(rows), keep)
    return Links(index, score)


def best_links(scores: Array, keep: int) -> Links:
    """The `keep` largest of each row of a matrix of scores, ties by the lower column."""
    keep = min(keep, scores.shape[1])
    if keep == 0:
        return Links(np.empty((len(scores), 0), dtype=np.int32), np.empty((len(scores), 0)))
    order = np.sort(np.argpartition(-scores, keep - 1, axis=1)[:, :keep], axis=1)
    worst = np.take_along_axis(scores, order, axis=1).min(axis=1)
    tied = np.flatnonzero((scores >= worst[:, np.newaxis]).sum(axis=1) > keep)  # there, which of them counts
    order[tied] = np.sort(np.argsort(-scores[tied], axis=1, kind="stable")[:, :keep], axis=1)
    best = np.take_along_axis(scores, order, axis=1)
    rank = np.argsort(-best, axis=1, kind="stable")
    index, best = np.take_along_axis(order, rank, axis=1), np.take_along_axis(best, rank, axis=1)
    return Links(np.where(best == -np.inf, -1, index).astype(np.int32), best)


# ---- scores as costs ------------------------------------------------------------------------------------------
def _agreement_costs(known: Array, released: Array, reach: Array, low: Array, gain: Array) -> Costs:
    """Best minus score: the sum over fields of min(gain, gain |a - b| / reach), in float32.

    Values are measured from the end of the released range that is nearer to zero, where a relative reach is short. A
    known value that is missing costs nothing anywhere; a released one costs `gain`. Where `low` counts and released
    values are missing, another field is 1 for the side that costs |low|: present if low < 0, missing if low > 0.
    """
    present = ~np.isnan(released)
    least = released.min(axis=0, initial=np.inf, where=present)
    most = released.max(axis=0, initial=-np.inf, where=present)
    zero = np.where(least > most, 0.0, np.clip(0.0, least, most))
    unit = np.abs(released - zero).max(axis=0, initial=0.0, where=present)
    unit[unit == 0] = 1.0
    a = np.nan_to_num((known - zero) / unit)
    b = np.where(present, (released - zero) / unit, FAR)
    slope = np.where(np.isnan(known), 0.0, np.clip(gain * (unit / reach), gain * 1e-30, 1e30))
    counts = np.flatnonzero(~present.all(axis=0) & (low != 0))
    costly = np.where(low[counts] < 0, present[:, counts], ~present[:, counts])
    weight = np.abs(low[counts])
    return Costs(
        np.hstack([a, np.zeros((len(a), len(counts)))]).astype(np.float32),
        np.hstack([slope, weight * ~np.isnan(known[:, counts])]).astype(np.float32),
        np.concatenate([gain, weight]).astype(np.float32),
        np.hstack([b, costly]).astype(np.float32),
        square=False,
    )


def _distance_costs(known: Array, released: Array) -> Costs:
    """The squared distance in float32, from the middle of each field and in units of the widest."""
    middle = np.median(released, axis=0) if len(released) else np.zeros(released.shape[1])
    unit = max(np.abs(released - middle).max(initial=0.0), np.abs(known - middle).max(initial=0.0)) or 1.0
    a = ((known - middle) / unit).astype(np.float32)
    ones = np.ones(a.shape[1], dtype=np.float32)
    return Costs(a, np.broadcast_to(ones, a.shape), ones, ((released - middle) / unit).astype(np.float32), square=True)


def _doubles(values: Array) -> Array:
    return np.ascontiguousarray(values, dtype=np.float64)


# ---- kept pairs by the formulas, value for value --------------------------------------------------------------
@jit
def _agreements(
    known: Array, released: Array, reach: Array, low: Array, gain: Array, rows: Array, index: Array, out: Array
) -> None:
    for i in range(len(rows)):
        for k in range(index.shape[1]):
            total = 0.0
            for f in range(known.shape[1]):
                far = abs(known[rows[i], f] - released[index[i, k], f]) / reach[rows[i], f]
                total += 0.0 if np.isnan(far) else low[f] + gain[f] * max(0.0, 1.0 - far)
            out[i, k] = total


@jit
def _distances(known: Array, released: Array, rows: Array, index: Array, out: Array) -> None:
    for i in range(len(rows)):
        for k in range(index.shape[1]):
            total = 0.0
            for f in range(known.shape[1]):
                total -= (known[rows[i], f] - released[index[i, k], f]) ** 2
            out[i, k] = total
