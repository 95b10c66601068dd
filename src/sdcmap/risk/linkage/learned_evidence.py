"""The evidence that two values belong to the same person: learned from true pairs, looked up for all others.

The evidence of a field is log P(values | true pair) / P(values | random pair). It is stored as a cost, the field's
highest evidence minus it, so that costs are never negative and a sum can only grow. Numbers are looked up by their
distance, on a scale with equal steps in each octave; categories by the two codes. No shape of the error distribution
is assumed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.risk.linkage.field_costs import CATEGORY, NUMBER, STEPS_PER_OCTAVE, Cost

MAX_BINS = 32  # bins for the distances of true pairs
PAIRS_PER_BIN = 50  # true pairs in a bin, at least about; fewer would make the evidence too noisy
RANDOM_PAIR_VALUES = 500  # known values whose distances to all released values stand for random pairs
MIN_DISTANCE, MAX_DISTANCE = 1e-300, 1e300  # distances are clipped to this range, so that their logarithms are finite


class Evidence(NamedTuple):
    """The cost table of one field."""

    kind: int
    table: Array  # number: its states, then the distances; category: (known code, released code), flattened
    width: int  # category: number of released codes
    low: float  # number: the first distance of the table

    def cost(self, known: Array, released: Array) -> Cost:
        """Return the cost of this field of two files."""
        scale = 1.0 / self.low if self.kind == NUMBER else float(self.width)
        return Cost(self.kind, known.astype(float), released.astype(float), scale, table=self.table)

    def __call__(self, known: Array, released: Array) -> Array:
        """Return the costs of these values, pair by pair."""
        return self.cost(known, released).pairs(slice(None), slice(None))


# ---- learning -------------------------------------------------------------------------------------------------
def number_evidence(known: Array, released: Array, all_known: Array, all_released: Array) -> Evidence:
    """Learn the evidence of a number (NaN: missing) from true pairs (known, released) and from both files.

    The distances of true pairs are put into bins of about equal counts. The evidence of a bin is its share among true
    pairs over its share among random pairs. Beyond the farthest true pair, half a pair is assumed.
    """
    n = max(len(known), 1)
    known_missing, released_missing = np.isnan(known), np.isnan(released)
    missing = float(np.isnan(all_released).mean()) if len(all_released) else 0.0
    # States with a missing value: both, known only, released only.
    missing_states = [
        _log_ratio((known_missing & released_missing).sum(), known_missing.sum(), missing),
        _log_ratio((known_missing & ~released_missing).sum(), known_missing.sum(), 1 - missing),
        _log_ratio((~known_missing & released_missing).sum(), (~known_missing).sum(), missing),
    ]
    present = _log_ratio((~known_missing & ~released_missing).sum(), (~known_missing).sum(), 1 - missing)
    with np.errstate(over="ignore", invalid="ignore"):
        distance = np.clip(np.abs(released - known)[~known_missing & ~released_missing], 0.0, MAX_DISTANCE)
    released_values = np.sort(all_released[~np.isnan(all_released)])
    known_values = all_known[~np.isnan(all_known)]
    # Equal values are a state of their own: masking often leaves values exactly as they were.
    equal_share = _share_equal(known_values, released_values)
    equal = _log_ratio((distance == 0).sum(), len(distance), equal_share)
    positive = np.sort(distance[distance > 0])
    if len(positive) == 0 or len(released_values) == 0:
        far = math.log(0.5 / (len(distance) + 1)) - math.log(max(1 - equal_share, 0.5 / n))
        return _evidence_from(
            NUMBER, np.array([*missing_states, present + equal, present + far, present + far]), 0, 1.0
        )
    # Bins of equal counts of true pairs, and the share of random pairs in each of them.
    bins = int(np.clip(len(positive) // PAIRS_PER_BIN, 2, MAX_BINS))
    edges = np.unique(np.quantile(positive, np.linspace(0, 1, bins + 1)))
    count = np.histogram(positive, edges)[0] if len(edges) > 1 else np.array([len(positive)])
    random = np.maximum(_share_within(known_values, released_values, edges) - equal_share, 0.0)
    share = np.diff(random) if len(edges) > 1 else random[-1:]
    share[0] = random[1] if len(edges) > 1 else random[0]  # the first bin begins at distance 0
    beyond_share = max(1.0 - equal_share - random[-1], 0.5 / n)
    log_ratio = np.log((count + 0.5) / (len(distance) + 1)) - np.log(
        np.maximum(share, 0.5 / n / max(len(released_values), 1))
    )
    tail = math.log(0.5 / (len(distance) + 1)) - math.log(beyond_share)
    # Resample the evidence, linear in the log distance, at the cells of the lookup table.
    centers = np.sqrt(edges[:-1]) * np.sqrt(edges[1:]) if len(edges) > 1 else edges
    low, high = max(centers[0], MIN_DISTANCE), 1.1 * max(edges[-1], MIN_DISTANCE)
    knots = low * _octave_powers(
        np.arange(2 + math.ceil(STEPS_PER_OCTAVE * (math.log2(high / low) + 1))) / STEPS_PER_OCTAVE
    )
    points = np.log(np.concatenate([np.maximum(centers, low), [max(edges[-1], low), high]]))
    curve = np.interp(np.log(knots), points, np.concatenate([log_ratio, [log_ratio[-1], tail]]))
    return _evidence_from(NUMBER, np.concatenate([missing_states, [present + equal], present + curve]), 0, low)


def category_evidence(known: Array, released: Array, all_released: Array, levels: int, comparable: bool) -> Evidence:
    """Learn the evidence of a category in codes 0 to levels - 1 (missing is one of them) from true pairs.

    P(b | a) = (n_ab + q(b | a)) / (n_a + 1). The prior q agrees as often as all true pairs do, and otherwise follows
    the released file. If equal codes do not mean equal values (not `comparable`), q is the distribution of the
    released file.
    """
    share = (np.bincount(all_released.astype(np.intp), minlength=levels) + 0.5) / (len(all_released) + 0.5 * levels)
    joint = np.bincount((known * levels + released).astype(np.intp), minlength=levels * levels).reshape(levels, levels)
    agree = ((known == released).sum() + 0.5) / (len(known) + 1) if comparable else 0.0
    prior = agree * np.eye(levels) + (1 - agree) * share
    given = (joint + prior) / (joint.sum(axis=1, keepdims=True) + 1)
    return _evidence_from(CATEGORY, np.log(given / share).ravel(), levels, 1.0)


def _evidence_from(kind: int, log_ratio: Array, width: int, low: float) -> Evidence:
    """Return the evidence as costs: the highest log ratio minus each."""
    return Evidence(kind, log_ratio.max() - log_ratio, width, low)


def _log_ratio(true: float, of: float, random: float) -> float:
    """Return the log ratio of the shares of true and of random pairs in a state.

    It is 0 for a state that random pairs never have.
    """
    return 0.0 if random <= 0 else math.log((true + random) / (of + 1)) - math.log(random)


def _octave_powers(octaves: Array) -> Array:
    """Return 2 to these powers, linear between whole powers, as the table of distances is."""
    whole = np.floor(octaves)
    return np.ldexp(1.0 + (octaves - whole), whole.astype(np.int64))


def _share_equal(known_values: Array, released_values: Array) -> float:
    """Return the share of random pairs with equal values; the released values are sorted."""
    if len(known_values) == 0 or len(released_values) == 0:
        return 0.0
    values, count = np.unique(known_values, return_counts=True)
    matches = np.searchsorted(released_values, values, "right") - np.searchsorted(released_values, values, "left")
    return float((count / len(known_values)) @ (matches / len(released_values)))


def _share_within(known_values: Array, released_values: Array, reach: Array) -> Array:
    """Return the share of random pairs at most `reach` apart; the released values are sorted."""
    known_values = np.sort(known_values)
    sample = known_values[
        np.linspace(0, len(known_values) - 1, min(len(known_values), RANDOM_PAIR_VALUES)).astype(np.int64)
    ][:, np.newaxis]
    with np.errstate(over="ignore"):
        within = np.searchsorted(released_values, sample + reach, "right") - np.searchsorted(
            released_values, sample - reach, "left"
        )
    return np.asarray(within.mean(axis=0) / len(released_values))
