"""What two values tell about whether two records are one person's: learned from true pairs, looked up for all others.

A field's evidence is log P(values | true pair) / P(values | random pair), kept as a cost: the field's highest evidence
minus it, so that costs are never negative and a sum can only grow. Numbers are looked up by how far they are apart, on a
scale whose steps are equal shares of an octave; categories by the two codes. Nothing is assumed of the shape of an error.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.risk.linkage.field_costs import CATEGORY, NUMBER, STEPS, Cost

MOST_BINS, IN_A_BIN = 32, 50  # of the distances of true pairs: at most so many bins, of about so many pairs
SAMPLE = 500  # known values from which the distances of random pairs are counted
NEAREST, FARTHEST = 1e-300, 1e300  # distances beyond are these


class Evidence(NamedTuple):
    """The cost of one field."""

    kind: int
    table: Array  # of a number: its states, then the distances; of a category: (known code, released code), in a row
    width: int  # of a category: number of released codes
    low: float  # of a number: the first distance of the table

    def cost(self, known: Array, released: Array) -> Cost:
        """The field of two files that costs what was learned."""
        scale = 1.0 / self.low if self.kind == NUMBER else float(self.width)
        return Cost(self.kind, known.astype(float), released.astype(float), scale, table=self.table)

    def __call__(self, known: Array, released: Array) -> Array:
        """The costs of these values, one by one."""
        return self.cost(known, released).pairs(slice(None), slice(None))


# ---- learning -------------------------------------------------------------------------------------------------
def number_evidence(known: Array, released: Array, all_known: Array, all_released: Array) -> Evidence:
    """The evidence of a number, NaN where missing, from true pairs (known, released) and from both files.

    The distances of true pairs are put into bins of about equal counts; a bin's evidence is its share among true pairs over
    its share among random pairs. Beyond the farthest true pair stands half a pair.
    """
    n = max(len(known), 1)
    lost, gone = np.isnan(known), np.isnan(released)
    missing = float(np.isnan(all_released).mean()) if len(all_released) else 0.0
    heads = [
        _log_ratio((lost & gone).sum(), lost.sum(), missing), _log_ratio((lost & ~gone).sum(), lost.sum(), 1 - missing),
        _log_ratio((~lost & gone).sum(), (~lost).sum(), missing),
    ]  # fmt: skip
    present = _log_ratio((~lost & ~gone).sum(), (~lost).sum(), 1 - missing)
    with np.errstate(over="ignore", invalid="ignore"):
        apart = np.clip(np.abs(released - known)[~lost & ~gone], 0.0, FARTHEST)
    theirs = np.sort(all_released[~np.isnan(all_released)])
    ours = all_known[~np.isnan(all_known)]
    same = _share_equal(ours, theirs)
    equal = _log_ratio((apart == 0).sum(), len(apart), same)
    positive = np.sort(apart[apart > 0])
    if len(positive) == 0 or len(theirs) == 0:
        far = math.log(0.5 / (len(apart) + 1)) - math.log(max(1 - same, 0.5 / n))
        return _shifted(NUMBER, np.array([*heads, present + equal, present + far, present + far]), 0, 1.0)
    bins = int(np.clip(len(positive) // IN_A_BIN, 2, MOST_BINS))
    edges = np.unique(np.quantile(positive, np.linspace(0, 1, bins + 1)))
    count = np.histogram(positive, edges)[0] if len(edges) > 1 else np.array([len(positive)])
    random = np.maximum(_within(ours, theirs, edges) - same, 0.0)
    share = np.diff(random) if len(edges) > 1 else random[-1:]
    share[0] = random[1] if len(edges) > 1 else random[0]  # from distance 0 on
    beyond = max(1.0 - same - random[-1], 0.5 / n)
    log_ratio = np.log((count + 0.5) / (len(apart) + 1)) - np.log(np.maximum(share, 0.5 / n / max(len(theirs), 1)))
    tail = math.log(0.5 / (len(apart) + 1)) - math.log(beyond)
    centers = np.sqrt(edges[:-1]) * np.sqrt(edges[1:]) if len(edges) > 1 else edges
    low, high = max(centers[0], NEAREST), 1.1 * max(edges[-1], NEAREST)
    knots = low * _powers(np.arange(2 + math.ceil(STEPS * (math.log2(high / low) + 1))) / STEPS)
    points = np.log(np.concatenate([np.maximum(centers, low), [max(edges[-1], low), high]]))
    curve = np.interp(np.log(knots), points, np.concatenate([log_ratio, [log_ratio[-1], tail]]))
    return _shifted(NUMBER, np.concatenate([heads, [present + equal], present + curve]), 0, low)


def category_evidence(known: Array, released: Array, all_released: Array, levels: int, comparable: bool) -> Evidence:
    """The evidence of a category in codes 0 to levels - 1, missing among them, from true pairs.

    P(b | a) = (n_ab + q(b | a)) / (n_a + 1), where q agrees as often as all pairs do and else follows the released file;
    with codes that cannot agree (not `comparable`) q is the released file's.
    """
    share = (np.bincount(all_released.astype(np.intp), minlength=levels) + 0.5) / (len(all_released) + 0.5 * levels)
    joint = np.bincount((known * levels + released).astype(np.intp), minlength=levels * levels).reshape(levels, levels)
    agree = ((known == released).sum() + 0.5) / (len(known) + 1) if comparable else 0.0
    prior = agree * np.eye(levels) + (1 - agree) * share
    given = (joint + prior) / (joint.sum(axis=1, keepdims=True) + 1)
    return _shifted(CATEGORY, np.log(given / share).ravel(), levels, 1.0)


def _shifted(kind: int, log_ratio: Array, width: int, low: float) -> Evidence:
    return Evidence(kind, log_ratio.max() - log_ratio, width, low)


def _log_ratio(true: float, of: float, random: float) -> float:
    """log of the share of true pairs in a state over that of random pairs; a state that random pairs never have: 0."""
    return 0.0 if random <= 0 else math.log((true + random) / (of + 1)) - math.log(random)


def _powers(octaves: Array) -> Array:
    """Two to this, straight between the whole ones, as a table of distances is."""
    whole = np.floor(octaves)
    return np.ldexp(1.0 + (octaves - whole), whole.astype(np.int64))


def _share_equal(ours: Array, theirs: Array) -> float:
    """The share of random pairs whose values are equal; theirs are sorted."""
    if len(ours) == 0 or len(theirs) == 0:
        return 0.0
    values, count = np.unique(ours, return_counts=True)
    met = np.searchsorted(theirs, values, "right") - np.searchsorted(theirs, values, "left")
    return float((count / len(ours)) @ (met / len(theirs)))


def _within(ours: Array, theirs: Array, reach: Array) -> Array:
    """The share of random pairs at most `reach` apart, from evenly spaced known values; theirs are sorted."""
    ours = np.sort(ours)
    some = ours[np.linspace(0, len(ours) - 1, min(len(ours), SAMPLE)).astype(np.int64)][:, np.newaxis]
    with np.errstate(over="ignore"):
        found = np.searchsorted(theirs, some + reach, "right") - np.searchsorted(theirs, some - reach, "left")
    return np.asarray(found.mean(axis=0) / len(theirs))
