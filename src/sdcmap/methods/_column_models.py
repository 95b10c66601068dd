"""Models that draw one column after the other, each given the predictors and the columns drawn before.

A model is fitted to the original columns and asked for the new ones. It draws the category of each row, or its number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from sdcmap.core import Array, Generator
from sdcmap.data.microdata import Column, Microdata
from sdcmap.data.missing_patterns import column_state
from sdcmap.kernels.masking.granularity import snap_to_grid
from sdcmap.kernels.statistics.network import MAX_PARENT_GROUPS, find_parents, group_bins
from sdcmap.kernels.statistics.regression import CACHED_CELLS, Design, logit_slopes, ridge_regression
from sdcmap.kernels.statistics.trees import MAX_BINS, Tree, assign_bins, bin_edges, draw_from_leaves, find_leaves, grow
from sdcmap.methods._column_bins import bin_column, bin_count

MIN_CATEGORY_RECORDS = 10  # a category with fewer is no regressor, and has no regression: it would describe its people
MAX_REGRESSED_CATEGORIES = 12  # the most frequent ones; the others are drawn by the shares in the leaf
MAX_CATEGORIES = 50  # columns with more are drawn from trees alone
MIN_NUMERIC_CATEGORIES = 10  # ordered categories from which on a column is drawn as a number, such as ages
SHRINKAGE = 2.0  # records without any relation that are added for each regressor
FREQUENT_SHARE = 0.1  # a number that so many records have, such as 0 or 40 hours, is drawn as a category
MIN_FREQUENT_RECORDS = 20
MAX_SKEWNESS, MAX_KURTOSIS = 1.5, 9.0  # beyond these, numbers are replaced by their normal scores
FOREST_TREES = 10
MIN_TRIED_PREDICTORS = 3  # at each node of a forest, or half of them; with fewer, strong relations are lost

Scaling: TypeAlias = Literal["automatic", "numbers", "logarithm"]


class KeptTerms(NamedTuple):
    """The terms of a regression that is kept, for the original and the new records, and the scale of its response."""

    regressors: tuple[tuple[Array, Array], ...]
    scale: Scaling


class Sample(NamedTuple):
    """The predictors of the records that a model is fitted to, and of those it is asked for.

    scale : of the response: that of a model that is kept, or "automatic".
    """

    bins: Array
    new_bins: Array
    sizes: Array
    ordered: Array
    regressors: tuple[Array, ...]
    new_regressors: tuple[Array, ...]
    scale: Scaling = "automatic"
    matrices: tuple[Array | None, Array | None] = (None, None)

    def add_bins(self, x: Array, new: Array) -> Sample:
        """Return the sample with one more predictor of trees, a number."""
        edges = bin_edges(x)
        return self._replace(
            bins=np.column_stack([self.bins, assign_bins(x, edges)]),
            new_bins=np.column_stack([self.new_bins, assign_bins(new, edges)]),
            sizes=np.append(self.sizes, len(edges) + 2),
            ordered=np.append(self.ordered, True),
        )

    def design(self) -> tuple[Design, Design]:
        """Return the terms of a regression, an intercept first, for both sets of records."""
        terms = ((), *((j,) for j in range(len(self.regressors))))
        fitted, asked = self.matrices
        return (
            Design(self.regressors, terms, len(self.bins), fitted),
            Design(self.new_regressors, terms, len(self.new_bins), asked),
        )


class ColumnModel(Protocol):
    """A model of a column given the predictors."""

    @property
    def has_frequent_numbers(self) -> bool:
        """Whether frequent numbers are drawn as categories, and ordered categories as numbers."""

    def draw_codes(self, y: Array, classes: int, x: Sample, rng: Generator) -> Array:
        """Draw a category for each record that is asked for; y are the codes of the fitted ones."""

    def draw_numbers(self, y: Array, x: Sample, rng: Generator) -> Array:
        """Draw a number for each record that is asked for; y are those of the fitted ones, none missing."""


@dataclass(frozen=True)
class TreeModel:
    """A classification or regression tree; the value of a random record of the leaf is drawn."""

    leaf: int
    has_frequent_numbers = False

    def draw_codes(self, y: Array, classes: int, x: Sample, rng: Generator) -> Array:
        tree = grow(x.bins, x.sizes, x.ordered, y, classes, self.leaf)
        return draw_from_leaves(tree, x.new_bins, y, rng)

    def draw_numbers(self, y: Array, x: Sample, rng: Generator) -> Array:
        return self.draw_codes(y, 0, x, rng)


@dataclass(frozen=True)
class ForestModel:
    """A random forest: each record gets the value of a random record of its leaf in a random tree.  Breiman (2001)"""

    leaf: int
    has_frequent_numbers = False

    def draw_codes(self, y: Array, classes: int, x: Sample, rng: Generator) -> Array:
        n, p = x.bins.shape
        tried = min(p, max(MIN_TRIED_PREDICTORS, -(-p // 2)))
        chosen, drawn = rng.integers(FOREST_TREES, size=len(x.new_bins)), np.empty(len(x.new_bins), dtype=y.dtype)
        for number in range(FOREST_TREES):
            bag, seed, asked = rng.integers(n, size=n), int(rng.integers(2**62)), np.flatnonzero(chosen == number)
            tree = grow(x.bins[bag], x.sizes, x.ordered, y[bag], classes, self.leaf, tried, seed)
            drawn[asked] = draw_from_leaves(tree, x.new_bins[asked], y[bag], rng)
        return drawn

    def draw_numbers(self, y: Array, x: Sample, rng: Generator) -> Array:
        return self.draw_codes(y, 0, x, rng)


@dataclass(frozen=True)
class NetworkModel:
    """A Bayesian network: a column depends on few others, its parents, and is drawn from the records that share them."""

    leaf: int
    has_frequent_numbers = False

    def draw_codes(self, y: Array, classes: int, x: Sample, rng: Generator) -> Array:
        return self._draw(y, y, classes, x, rng)

    def draw_numbers(self, y: Array, x: Sample, rng: Generator) -> Array:
        bins = assign_bins(y, bin_edges(y))
        groups = group_bins(bins, MAX_BINS, ordered=True)
        return self._draw(y, groups[bins], MAX_PARENT_GROUPS, x, rng)

    def _draw(self, y: Array, codes: Array, classes: int, x: Sample, rng: Generator) -> Array:
        groups = [group_bins(x.bins[:, j], size, x.ordered[j]) for j, size in enumerate(x.sizes.tolist())]
        columns = [group[x.bins[:, j]] for j, group in enumerate(groups)]
        parents = find_parents(codes, classes, columns)
        drawn, left = np.empty(len(x.new_bins), dtype=y.dtype), np.arange(len(x.new_bins))
        # Use fewer and fewer parents, until enough records share them.
        for count in range(len(parents), -1, -1):
            cell, asked = np.zeros(len(y), dtype=np.int64), np.zeros(len(left), dtype=np.int64)
            for j in parents[:count]:
                cell = cell * MAX_PARENT_GROUPS + columns[j]
                asked = asked * MAX_PARENT_GROUPS + groups[j][x.new_bins[left, j]]
            size = np.bincount(cell, minlength=MAX_PARENT_GROUPS**count)
            order, start = np.argsort(cell, kind="stable"), np.cumsum(size) - size
            enough = size[asked] >= (self.leaf if count else 1)
            index = asked[enough]
            drawn[left[enough]] = y[order[start[index] + (rng.random(len(index)) * size[index]).astype(np.int64)]]
            left = left[~enough]
        return drawn


@dataclass(frozen=True)
class RegressionModel:
    """A regression with a tree: what the regression does not explain is drawn from a leaf of the tree.

    A number is the prediction plus the residual of a random record of the leaf. A category is drawn with the probability
    of its logistic regression, times observed over expected frequency in the leaf. The tree also splits by the prediction.
    """

    leaf: int
    has_frequent_numbers = True

    def draw_numbers(self, y: Array, x: Sample, rng: Generator) -> Array:
        scale = _Scale.of(y, x.scale)
        z = scale.scores(y)
        fitted, asked = x.design()
        slopes = ridge_regression(fitted, z, SHRINKAGE)
        mean, new_mean = fitted.predict(slopes), asked.predict(slopes)
        new_mean = np.clip(new_mean, mean.min(), mean.max())
        x = x.add_bins(mean, new_mean)
        tree = grow(x.bins, x.sizes, x.ordered, z, 0, self.leaf)
        donor = draw_from_leaves(tree, x.new_bins, np.arange(len(y)), rng)
        drawn = scale.values(np.clip(z[donor] + new_mean - mean[donor], z.min(), z.max()))
        return snap_to_grid(drawn, y)

    def draw_codes(self, y: Array, classes: int, x: Sample, rng: Generator) -> Array:
        if classes > MAX_CATEGORIES:
            return TreeModel(self.leaf).draw_codes(y, classes, x, rng)
        p, new_p, regressed = self._probabilities(y, classes, x)
        if len(regressed) == 1:
            x = x.add_bins(p[:, regressed[0]], new_p[:, regressed[0]])
        tree = grow(x.bins, x.sizes, x.ordered, y, classes, self.leaf)
        leaf, new_leaf = find_leaves(tree, x.bins), find_leaves(tree, x.new_bins)
        return _draw_codes(new_p * _observed_over_expected(tree, leaf, y, p)[new_leaf], rng)

    def _probabilities(self, y: Array, classes: int, x: Sample) -> tuple[Array, Array, list[int]]:
        """Return the probability of each category by logistic regressions, and which categories have one."""
        count = np.bincount(y, minlength=classes)
        p = np.tile(count / len(y), (len(y), 1))
        new_p = np.tile(count / len(y), (len(x.new_bins), 1))
        order = np.argsort(-count, kind="stable")[:MAX_REGRESSED_CATEGORIES]
        regressed = [int(c) for c in order if min(count[c], len(y) - count[c]) >= MIN_CATEGORY_RECORDS]
        if len(regressed) == 2 and count[regressed].sum() == len(y):
            regressed = regressed[:1]  # the other one is its complement
        fitted, asked = x.design()
        if regressed:
            slopes = logit_slopes(fitted, y, regressed, SHRINKAGE).T
            p[:, regressed], new_p[:, regressed] = _logistic(fitted.predict(slopes)), _logistic(asked.predict(slopes))
        rest = np.setdiff1d(np.arange(classes), regressed)
        for each in (p, new_p):  # what one category leaves is shared by the others
            if len(regressed) == 1 and count[rest].sum():
                each[:, rest] = (1 - each[:, regressed]) * (count[rest] / count[rest].sum())
            each /= each.sum(axis=1, keepdims=True)
        return p, new_p, regressed


MODELS: dict[str, Callable[[int], ColumnModel]] = {
    "trees": TreeModel,
    "regressions": RegressionModel,
    "forest": ForestModel,
    "network": NetworkModel,
}


class GrowingDesign:
    """The terms of a regression as rows of a matrix, an intercept first; regressors are added from column to column."""

    def __init__(self, rows: int) -> None:
        self.rows, self._width, self._terms = rows, 1, np.ones((1, rows))

    def extend(self, regressors: Sequence[Array]) -> Array | None:
        """Return the terms of these regressors, of which the first ones are here already; None if they are too many."""
        width = 1 + len(regressors)
        if width * self.rows > CACHED_CELLS:
            return None
        if width > len(self._terms):
            larger = np.empty((2 * width, self.rows))
            larger[: self._width] = self._terms[: self._width]
            self._terms = larger
        for j in range(self._width, width):
            self._terms[j] = regressors[j - 1]
        self._width = max(width, self._width)
        return self._terms[:width]


class Predictors:
    """The columns that a variable is drawn from: the predictors, and the columns drawn before."""

    def __init__(self, data: Microdata, *, regressors: bool) -> None:
        self.data, self._needs_regressors = data, regressors
        self._bins: list[tuple[Array, Array]] = []
        self._sizes: list[int] = []
        self._ordered: list[bool] = []
        self._regressors: list[tuple[Array, Array]] = []
        self._scale: Scaling = "automatic"
        self._matrices = GrowingDesign(len(data)), GrowingDesign(len(data))

    def with_terms(self, kept: KeptTerms) -> Predictors:
        """Return the predictors of a column of which a regression is kept."""
        same = copy(self)
        same._regressors, same._scale = [*self._regressors, *kept.regressors], kept.scale
        same._matrices = GrowingDesign(len(self.data)), GrowingDesign(len(self.data))
        return same

    def add(self, name: str, new: Column) -> None:
        """Add a column of the file with its new values."""
        data = self.data
        self._ordered.append(data.schema[name].kind != "nominal")
        self._sizes.append(bin_count(data, name))
        self._bins.append((bin_column(data, name, data.column(name)), bin_column(data, name, new)))
        if self._needs_regressors:
            self._regressors += _regressors(data, name, new)

    def sample(self, rows: Array | slice, asked: Array | slice) -> Sample:
        """Return the predictors of the original records `rows`, and of the new records `asked`."""
        n, p = len(self.data), len(self._bins)
        bins, new_bins = (
            np.column_stack([own[i] for own in self._bins]) if p else np.empty((n, 0), dtype=np.int64) for i in (0, 1)
        )
        sizes, ordered = np.array(self._sizes, dtype=np.int64), np.array(self._ordered, dtype=np.bool_)
        return Sample(
            bins[rows], new_bins[asked], sizes, ordered,
            tuple(x[rows] for x, _ in self._regressors), tuple(x[asked] for _, x in self._regressors), self._scale,
            self._design_rows(rows, asked),
        )  # fmt: skip

    def _design_rows(self, rows: Array | slice, asked: Array | slice) -> tuple[Array | None, Array | None]:
        """Return these rows of the terms of both designs, where they fit into memory."""
        both = []
        for i, (matrix, at) in enumerate(zip(self._matrices, (rows, asked), strict=True)):
            terms = matrix.extend([pair[i] for pair in self._regressors]) if self._needs_regressors else None
            both.append(None if terms is None else terms[:, at])
        return both[0], both[1]


def draw_column(model: ColumnModel, data: Microdata, name: str, predictors: Predictors, rng: Generator) -> Column:
    """Draw new values of one column; for a number, first whether and why it is missing, or one of the frequent numbers."""
    column = data.column(name)
    state = column_state(column)
    if column.levels is None:
        drawn, new_state = _draw_numbers(model, column.values, state, predictors, rng)
        return Column(drawn, None, None if column.reasons is None else np.maximum(new_state - 1, 0))
    codes, classes = column.values.astype(np.int64), len(column.levels)
    known = classes - column.levels.null_count()
    is_number = data.schema[name].kind == "ordinal" and known >= MIN_NUMERIC_CATEGORIES
    if not (model.has_frequent_numbers and is_number):
        drawn = model.draw_codes(codes, classes, predictors.sample(slice(None), slice(None)), rng)
        return Column(drawn, column.levels)
    numbers = np.where(state == 0, codes.astype(np.float64), np.nan)
    drawn, new_state = _draw_numbers(model, numbers, state, predictors, rng)
    return Column(np.where(new_state > 0, known + new_state - 1, np.nan_to_num(drawn)).astype(np.int64), column.levels)


def _draw_numbers(
    model: ColumnModel, values: Array, state: Array, predictors: Predictors, rng: Generator
) -> tuple[Array, Array]:
    """Return drawn numbers, NaN for missing ones, and their missing states; `state`: those of the original."""
    missing, everyone = state > 0, np.arange(len(values))
    if (state == 1).all():
        return values.copy(), state
    frequent = _frequent_numbers(values[~missing], len(values)) if model.has_frequent_numbers else np.empty(0)
    drawn, new_state, rows, asked = (
        np.full(len(values), np.nan),
        np.zeros_like(state),
        np.flatnonzero(~missing),
        everyone,
    )
    if missing.any() or len(frequent):
        # 0: another number; 1: missing; 2, 3, ...: the frequent numbers; then the reasons why numbers are missing
        reasons = np.arange(2, state.max() + 1)
        number_of = np.array([np.nan, np.nan, *frequent, *np.full(len(reasons), np.nan)])
        state_of = np.array([0, 1, *np.zeros(len(frequent)), *reasons], dtype=np.int64)
        codes = np.where(state > 1, state + len(frequent), state)
        for i, number in enumerate(frequent):
            codes[values == number] = 2 + i
        new = model.draw_codes(codes, len(state_of), predictors.sample(slice(None), slice(None)), rng)
        drawn, new_state = number_of[new], state_of[new]
        rows, asked = np.flatnonzero(codes == 0), np.flatnonzero(new == 0)
    if len(rows) and len(asked):
        drawn[asked] = model.draw_numbers(values[rows], predictors.sample(rows, asked), rng)
    return drawn, new_state


def _frequent_numbers(known: Array, records: int) -> Array:
    numbers, count = np.unique(known, return_counts=True)
    return numbers[count >= max(FREQUENT_SHARE * records, MIN_FREQUENT_RECORDS)]


@dataclass(frozen=True)
class _Scale:
    """The scale on which a number is modeled: its own, its logarithm, or normal scores if it is skewed or heavy-tailed."""

    known: Array  # sorted; empty: no normal scores
    is_logged: bool = False

    @staticmethod
    def of(values: Array, scale: Scaling = "automatic") -> _Scale:
        if scale == "numbers":
            return _Scale(np.empty(0))
        if scale == "logarithm" and values.min() > 0:
            return _Scale(np.empty(0), is_logged=True)
        centered = values - values.mean()
        spread = float(centered.std())
        if spread == 0:
            return _Scale(np.empty(0))
        skewness, kurtosis = float((centered**3).mean()) / spread**3, float((centered**4).mean()) / spread**4
        is_plain = abs(skewness) <= MAX_SKEWNESS and kurtosis <= MAX_KURTOSIS
        return _Scale(np.empty(0) if is_plain else np.sort(values))

    @cached_property
    def distinct(self) -> tuple[Array, Array]:
        """The distinct values and their scores."""
        values = np.unique(self.known)
        return values, self._mid_rank_scores(values)

    def scores(self, x: Array) -> Array:
        if self.is_logged:
            return np.log(x)
        return self._mid_rank_scores(x) if len(self.known) else x

    def values(self, scores: Array) -> Array:
        if not len(self.known):
            return np.exp(scores) if self.is_logged else scores
        values, own = self.distinct
        return np.asarray(np.interp(scores, own, values))

    def _mid_rank_scores(self, x: Array) -> Array:
        from scipy.special import ndtri

        n = len(self.known)
        rank = (np.searchsorted(self.known, x, "left") + np.searchsorted(self.known, x, "right")) / 2
        return np.asarray(ndtri(np.clip(rank / n, 0.5 / n, 1 - 0.5 / n)))


def _regressors(data: Microdata, name: str, drawn: Column) -> list[tuple[Array, Array]]:
    """Return the regressors of a column: a standardized number, or indicators of categories that enough records have.

    Each reason why a number is missing has an indicator, too.
    """
    column = data.column(name)
    values, new, levels = column.values, drawn.values, column.levels
    if levels is not None and not (data.schema[name].kind == "ordinal" and len(levels) >= MIN_NUMERIC_CATEGORIES):
        count = np.bincount(values.astype(np.int64), minlength=len(levels))
        order = np.argsort(-count, kind="stable")
        frequent = order[1 : MAX_CATEGORIES + 1]
        return [(values == c, new == c) for c in frequent.tolist() if count[c] >= MIN_CATEGORY_RECORDS]
    state, new_state = column_state(column), column_state(drawn)
    missing, new_missing = state > 0, new_state > 0
    if levels is not None:  # ordered categories as numbers
        values, new = (np.where(gone, np.nan, v) for v, gone in ((values, missing), (new, new_missing)))
    count = np.bincount(state)
    columns = [(state == s, new_state == s) for s in range(1, len(count)) if count[s] >= MIN_CATEGORY_RECORDS]
    if (~missing).sum() < MIN_FREQUENT_RECORDS:
        return columns
    scale = _Scale.of(values[~missing])
    scores, new_scores = scale.scores(values), scale.scores(new)
    center, spread = float(scores[~missing].mean()), float(scores[~missing].std())
    if spread > 0:
        both = (scores, missing), (new_scores, new_missing)
        first, second = (np.where(gone, 0.0, (own - center) / spread) for own, gone in both)
        columns.append((first, second))
    return columns


def _observed_over_expected(tree: Tree, leaf: Array, y: Array, p: Array) -> Array:
    """Return for each node and category how many records have it, over the sum of their probabilities."""
    nodes, classes = len(tree.variable), p.shape[1]
    observed = np.bincount(leaf * classes + y, minlength=nodes * classes).reshape(nodes, classes)
    expected = np.column_stack([np.bincount(leaf, weights=own, minlength=nodes) for own in p.T])
    return np.divide(observed, expected, out=np.zeros_like(expected), where=expected > 0)


def _draw_codes(weights: Array, rng: Generator) -> Array:
    """Draw a category for each row, with probabilities proportional to the weights."""
    total = np.cumsum(weights, axis=1)
    u = rng.random(len(weights)) * total[:, -1]
    return np.asarray(np.minimum((total <= u[:, np.newaxis]).sum(axis=1), weights.shape[1] - 1))


def _logistic(x: Array) -> Array:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * x)))
