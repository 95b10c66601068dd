"""A column told from others: relations are learned on some records and judged on others.

Plain and quick learners: the values of records that lie nearest along one number, the commonest or middle value of the
records in one group or in one leaf of a tree, and a line that a quarter of the records may miss. What they are taught is
a number or a category's code, never missing; where there is nothing to go by they answer with the value of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sdcmap.kernels.arrays import Array, Floats
from sdcmap.kernels.statistics.trees import grow, leaves_of

FEWEST = 3  # records of a group that tell something: fewer are unique combinations, and everything "depends" on these
NEAREST = 5  # records along a number whose middle value smooths outliers away
KEPT = 0.75  # of the records, those that a trimmed line is fitted to
STARTS, SCREENED = 40, 500  # small sets of records from which a line may start, and records on which these are compared
TRIMS = 10
DENSE = 1 << 16  # cells that are counted in a table of all there may be


@dataclass(frozen=True)
class Target:
    """What is to be told: `taught` values of the records learned from and `true` ones of those judged.

    tolerance : numbers this near are told; None: categories, which must be equal.
    """

    taught: Floats
    true: Floats
    tolerance: float | None

    def share(self, answers: Floats) -> float:
        """The share of records that these answers tell."""
        near = np.abs(answers - self.true) <= self.tolerance if self.tolerance is not None else answers == self.true
        return float(near.mean())

    @cached_property
    def rising(self) -> Array:
        """The taught values' rows, smallest first."""
        return np.argsort(self.taught, kind="stable")

    @cached_property
    def center(self) -> float:
        """The answer where there is nothing to go by: the middle value, or the commonest category."""
        return float(self.centers(np.zeros(len(self.taught), dtype=np.int64), 1)[0][0])

    def centers(self, group: Array, count: int) -> tuple[Floats, Array]:
        """The middle value (numbers) or the commonest (categories) of each group of taught records, and their number."""
        sizes = np.bincount(group, minlength=count)
        if self.tolerance is None:
            return _commonest(group, self.taught, count), sizes
        small = np.uint16 if count <= 1 << 16 else np.int64  # numpy sorts 16 bits by radix
        order = self.rising[np.argsort(group[self.rising].astype(small), kind="stable")]
        middles = np.minimum(np.cumsum(sizes) - sizes + np.maximum(sizes - 1, 0) // 2, len(order) - 1)
        return self.taught[order[middles]], sizes

    def only(self, rows: Array) -> Target:
        """The same with some of the taught records alone."""
        return self if rows.all() else Target(self.taught[rows], self.true, self.tolerance)

    def share_by_chance(self) -> float:
        """The share that the best single answer tells, the same for every record, in hindsight."""
        y = np.sort(self.true)
        reach = np.searchsorted(y, y + 2 * (self.tolerance or 0.0), side="right") - np.arange(len(y))
        return float(reach.max() / len(y))


def told_along(known: Floats, asked: Floats, target: Target) -> Floats:
    """Answers read off the records nearest in one number: between the middle values of five (numbers), or the category
    of the nearest unless its two neighbors agree on another."""
    there = np.isfinite(known)
    rest = target.only(~there).center if (~there).sum() >= FEWEST else target.center
    if not there.any():
        return np.full(len(asked), rest)
    places, group = np.unique(known[there], return_inverse=True)
    centers, sizes = target.only(there).centers(group, len(places))
    read = _between if target.tolerance is not None else _nearest
    return np.where(np.isfinite(asked), read(places, centers, sizes, np.where(np.isfinite(asked), asked, 0.0)), rest)


def _between(places: Floats, centers: Floats, sizes: Array, asked: Floats) -> Floats:
    padded = np.pad(centers, NEAREST // 2, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, NEAREST)
    smooth = np.partition(windows, NEAREST // 2, axis=1)[:, NEAREST // 2]
    return np.interp(asked, places, np.where(sizes < FEWEST, smooth, centers))


def _nearest(places: Floats, centers: Floats, sizes: Array, asked: Floats) -> Floats:
    before, after = np.r_[centers[0], centers[:-1]], np.r_[centers[1:], centers[-1]]
    own = np.where((sizes < FEWEST) & (before == after), before, centers)
    return np.asarray(own[np.searchsorted((places[:-1] + places[1:]) / 2, asked)])


def told_in_groups(known: Array, asked: Array, count: int, target: Target) -> Floats:
    """Answers read off the group 0, 1, ... `count` - 1 that a record is in, where at least three were met in it."""
    centers, sizes = target.centers(known, count)
    return np.asarray(np.where(sizes >= FEWEST, centers, target.center)[asked])


def _commonest(group: Array, codes: Floats, count: int) -> Floats:
    span = int(codes.max()) + 1
    cells = group.astype(np.int64) * span + codes.astype(np.int64)
    if count * span <= DENSE:
        table = np.bincount(cells, minlength=count * span).reshape(count, span)
        return np.asarray(table.argmax(axis=1), dtype=np.float64)
    met, times = np.unique(cells, return_counts=True)
    order = np.lexsort((times, met // span))  # the commonest of a group comes last
    commonest = np.zeros(count)
    commonest[met[order] // span] = met[order] % span
    return commonest


def trimmed_slopes(x: Floats, y: Floats) -> Floats:
    """Least trimmed squares (Rousseeuw 1984): the line through three quarters of the records, the worst left out in turn.

    It starts from all records, or from a few drawn ones, whichever leaves the smaller misses (Rousseeuw and Van Driessen
    1999): codes for missing values among the numbers bend a line through all. Columns of x and y are scaled by the caller;
    the constant is fitted, and not given back.
    """
    rng = np.random.default_rng(0)  # it decides nothing that is released
    x = np.column_stack([x, np.ones(len(y))])
    some = rng.permutation(len(y))[:SCREENED]
    tried = [_least_squares(x, y)]
    for _ in range(STARTS if len(y) > 2 * x.shape[1] else 0):
        few = rng.choice(len(y), x.shape[1] + 1, replace=False)
        tried.append(_least_squares(x[few], y[few]))
    slopes = min(tried, key=lambda start: np.quantile(np.abs(y[some] - x[some] @ start), KEPT))
    for _ in range(TRIMS):
        misses = np.abs(y - x @ slopes)
        kept = misses <= np.quantile(misses, KEPT)
        slopes = _least_squares(x[kept], y[kept])
    return slopes[:-1]


def _least_squares(x: Floats, y: Floats) -> Floats:
    return np.asarray(np.linalg.lstsq(x, y, rcond=None)[0], dtype=np.float64)


def rank_agreement(columns: Floats, y: Floats) -> Floats:
    """Spearman's correlation of each column with y, without its sign; values that are not finite count as the median."""
    ranks = np.argsort(np.argsort(columns, axis=0, kind="stable"), axis=0).astype(float)
    ranks = np.where(np.isfinite(columns), ranks - ranks.mean(axis=0), 0.0)
    own = np.argsort(np.argsort(y, kind="stable")) - (len(y) - 1) / 2
    scale = np.linalg.norm(ranks, axis=0) * np.linalg.norm(own)
    return np.asarray(np.abs(ranks.T @ own) / np.where(scale > 0, scale, 1.0))


def told_by_tree(known: Array, asked: Array, sizes: Array, ordered: Array, target: Target) -> tuple[Floats, Array]:
    """Answers read off the leaves of a tree over binned columns, and how many records each column's questions sorted."""
    classes = 0 if target.tolerance is not None else int(target.taught.max()) + 1
    tree = grow(known, sizes, ordered, target.taught, classes, FEWEST)
    centers, _ = target.centers(leaves_of(tree, known), len(tree.variable))
    asks = tree.variable >= 0
    sorted_by = np.bincount(tree.variable[asks], weights=tree.size[asks], minlength=known.shape[1])
    return centers[leaves_of(tree, asked)], sorted_by
