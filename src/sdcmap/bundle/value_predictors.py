"""Predict one column from others: simple, fast learners that are trained on some records and tested on others.

There are four: the values of the records nearest along one number; the most common or median value of the records in one
group, or in one leaf of a tree; and a regression that a quarter of the records may miss. Training values are numbers or
codes of categories, never missing. Without information a learner answers with the center of all values.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sdcmap.kernels.arrays import Array, Floats
from sdcmap.kernels.statistics.trees import find_leaves, grow

MIN_GROUP_RECORDS = 3  # fewer records are a unique combination, and everything seems to depend on those
SMOOTHING_WINDOW = 5  # neighboring values along a number whose median smooths outliers away
FITTED_SHARE = 0.75  # of the records, those to which a trimmed regression is fitted
RANDOM_STARTS = 40  # small sets of records from which a trimmed regression may start ...
START_COMPARISON_RECORDS = 500  # ... and the records on which these starts are compared
TRIM_STEPS = 10  # the concentration steps of least trimmed squares usually converge in fewer
MAX_DENSE_CELLS = 1 << 16  # a table with more cells is counted by sorting


@dataclass(frozen=True)
class Target:
    """The column to predict: its values in the training and in the test records."""

    training: Floats
    test: Floats
    tolerance: float | None  # predictions this close are correct; None: categories, which must be equal

    def share(self, answers: Floats) -> float:
        """Return the share of test records that these answers predict correctly."""
        is_correct = (
            np.abs(answers - self.test) <= self.tolerance if self.tolerance is not None else answers == self.test
        )
        return float(is_correct.mean())

    @cached_property
    def sorted_rows(self) -> Array:
        """The training rows in ascending order of their values."""
        return np.argsort(self.training, kind="stable")

    @cached_property
    def center(self) -> float:
        """The answer without information: the median, or the most common category."""
        return float(self.centers(np.zeros(len(self.training), dtype=np.int64), 1)[0][0])

    def centers(self, group: Array, count: int) -> tuple[Floats, Array]:
        """Return the median (numbers) or most common value (categories) of each group of training records, and its size."""
        sizes = np.bincount(group, minlength=count)
        if self.tolerance is None:
            return _most_common(group, self.training, count), sizes
        small = np.uint16 if count <= 1 << 16 else np.int64  # numpy sorts 16 bits by radix
        # Sort by group, then by value: the median of a group is in the middle of its part.
        order = self.sorted_rows[np.argsort(group[self.sorted_rows].astype(small), kind="stable")]
        middles = np.minimum(np.cumsum(sizes) - sizes + np.maximum(sizes - 1, 0) // 2, len(order) - 1)
        return self.training[order[middles]], sizes

    def only(self, rows: Array) -> Target:
        """Return the target with only some of its training records."""
        return self if rows.all() else Target(self.training[rows], self.test, self.tolerance)

    def share_by_chance(self) -> float:
        """Return the share that the best single answer for all records predicts, chosen in hindsight."""
        y = np.sort(self.test)
        # The best single number covers as many test values as possible within its tolerance on both sides.
        reach = np.searchsorted(y, y + 2 * (self.tolerance or 0.0), side="right") - np.arange(len(y))
        return float(reach.max() / len(y))


def predict_along(known: Floats, queries: Floats, target: Target) -> Floats:
    """Predict from the training records nearest in one number.

    Numbers are interpolated between medians of five; a category is that of the nearest value, unless its two neighbors
    agree on another one.
    """
    finite = np.isfinite(known)
    # Records without a number form a group of their own.
    rest = target.only(~finite).center if (~finite).sum() >= MIN_GROUP_RECORDS else target.center
    if not finite.any():
        return np.full(len(queries), rest)
    points, group = np.unique(known[finite], return_inverse=True)
    centers, sizes = target.only(finite).centers(group, len(points))
    read = _between if target.tolerance is not None else _nearest
    has_number = np.isfinite(queries)
    return np.where(has_number, read(points, centers, sizes, np.where(has_number, queries, 0.0)), rest)


def _between(points: Floats, centers: Floats, sizes: Array, queries: Floats) -> Floats:
    # Values with few records are smoothed by the median of their neighbors.
    padded = np.pad(centers, SMOOTHING_WINDOW // 2, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, SMOOTHING_WINDOW)
    smooth = np.partition(windows, SMOOTHING_WINDOW // 2, axis=1)[:, SMOOTHING_WINDOW // 2]
    return np.interp(queries, points, np.where(sizes < MIN_GROUP_RECORDS, smooth, centers))


def _nearest(points: Floats, centers: Floats, sizes: Array, queries: Floats) -> Floats:
    before, after = np.r_[centers[0], centers[:-1]], np.r_[centers[1:], centers[-1]]
    own = np.where((sizes < MIN_GROUP_RECORDS) & (before == after), before, centers)
    return np.asarray(own[np.searchsorted((points[:-1] + points[1:]) / 2, queries)])


def predict_by_group(known: Array, queries: Array, count: int, target: Target) -> Floats:
    """Predict by the center of the group 0, 1, ... `count` - 1 of each record, if the group has enough training records."""
    centers, sizes = target.centers(known, count)
    return np.asarray(np.where(sizes >= MIN_GROUP_RECORDS, centers, target.center)[queries])


def _most_common(group: Array, codes: Floats, count: int) -> Floats:
    span = int(codes.max()) + 1
    cells = group.astype(np.int64) * span + codes.astype(np.int64)
    if count * span <= MAX_DENSE_CELLS:
        table = np.bincount(cells, minlength=count * span).reshape(count, span)
        return np.asarray(table.argmax(axis=1), dtype=np.float64)
    observed, times = np.unique(cells, return_counts=True)
    order = np.lexsort((times, observed // span))  # the most common value of a group comes last and stays
    most_common = np.zeros(count)
    most_common[observed[order] // span] = observed[order] % span
    return most_common


def fit_trimmed_slopes(x: Floats, y: Floats) -> Floats:
    """Return the slopes of a least trimmed squares regression (Rousseeuw 1984) through three quarters of the records.

    The regression starts from all records, or from a few random ones, whichever has smaller residuals (Rousseeuw and Van
    Driessen 1999): missing-value codes among the numbers would distort a fit to all records. The caller scales the columns
    of x and y. The intercept is fitted but not returned.
    """
    rng = np.random.default_rng(0)  # no released value depends on it
    x = np.column_stack([x, np.ones(len(y))])
    some = rng.permutation(len(y))[:START_COMPARISON_RECORDS]
    # Candidate starts: all records, and small random subsets.
    starts = [_least_squares(x, y)]
    for _ in range(RANDOM_STARTS if len(y) > 2 * x.shape[1] else 0):
        few = rng.choice(len(y), x.shape[1] + 1, replace=False)
        starts.append(_least_squares(x[few], y[few]))
    slopes = min(starts, key=lambda start: np.quantile(np.abs(y[some] - x[some] @ start), FITTED_SHARE))
    # Concentration steps: fit again to the records with the smallest residuals.
    for _ in range(TRIM_STEPS):
        residuals = np.abs(y - x @ slopes)
        fitted = residuals <= np.quantile(residuals, FITTED_SHARE)
        slopes = _least_squares(x[fitted], y[fitted])
    return slopes[:-1]


def _least_squares(x: Floats, y: Floats) -> Floats:
    return np.asarray(np.linalg.lstsq(x, y, rcond=None)[0], dtype=np.float64)


def rank_agreement(columns: Floats, y: Floats) -> Floats:
    """Return the absolute Spearman correlation of each column with y; values that are not finite count as the median."""
    ranks = np.argsort(np.argsort(columns, axis=0, kind="stable"), axis=0).astype(float)
    ranks = np.where(np.isfinite(columns), ranks - ranks.mean(axis=0), 0.0)
    own = np.argsort(np.argsort(y, kind="stable")) - (len(y) - 1) / 2
    scale = np.linalg.norm(ranks, axis=0) * np.linalg.norm(own)
    return np.asarray(np.abs(ranks.T @ own) / np.where(scale > 0, scale, 1.0))


def predict_by_tree(known: Array, queries: Array, sizes: Array, ordered: Array, target: Target) -> tuple[Floats, Array]:
    """Predict by the leaves of a tree over binned columns; also return how many records each column's splits divide."""
    classes = 0 if target.tolerance is not None else int(target.training.max()) + 1
    tree = grow(known, sizes, ordered, target.training, classes, MIN_GROUP_RECORDS)
    centers, _ = target.centers(find_leaves(tree, known), len(tree.variable))
    is_split = tree.variable >= 0
    divided = np.bincount(tree.variable[is_split], weights=tree.size[is_split], minlength=known.shape[1])
    return centers[find_leaves(tree, queries)], divided
