"""Analyses that users of a file make, as estimates with standard errors: regressions, tables, means and shares.

An analysis is stated for the original and repeated on the released file. What it needs from a file is read by `FileView`,
which also reads released classes: a user takes the midpoint of a class for its numbers, and the class for its categories.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import ClassVar, NamedTuple

import numpy as np
import polars as pl

from sdcmap.core import Array, Microdata
from sdcmap.core.formula import ModelKey
from sdcmap.data.amounts import amounts, has_numbers
from sdcmap.data.label_layers import assign_categories, parse_interval
from sdcmap.kernels.statistics.clustered_regression import (
    Coefficients,
    clustered_least_squares,
    clustered_logit,
    sums_by_unit,
)

MIN_RECORDS = 10  # for an estimate; with fewer its standard error means nothing


class Findings(NamedTuple):
    """The estimates of an analysis in one file and their standard errors; NaN where there is no estimate.

    has_null : whether 0 means "no relation", so that an estimate of several standard errors is a finding.
    """

    values: Array
    errors: Array
    has_null: bool = True

    @property
    def t(self) -> Array:
        """Return the estimates in standard errors; 0 where there is none or the error is 0."""
        known = np.isfinite(self.values) & (self.errors > 0)
        return np.divide(self.values, self.errors, out=np.zeros(len(self.values)), where=known)


class FileView:
    """The numbers, categories, weights and units of a file, as a user reads them.

    original : the file whose categories the analyses name.
    """

    def __init__(self, data: Microdata, original: Microdata) -> None:
        self.data, self.original = data, original
        self._numbers: dict[str, Array] = {}
        self._groups: dict[str, tuple[Array, dict[str, int]]] = {}

    def __len__(self) -> int:
        return len(self.data)

    @cached_property
    def weights(self) -> Array:
        """The survey weights; ones where the file has none, and 0 for weights that are missing or negative."""
        return np.asarray(np.maximum(np.nan_to_num(self.data.weights), 0.0))

    @cached_property
    def units(self) -> Array:
        """The household or person of each record, as codes from 0."""
        return np.asarray(np.unique(self.data.units, return_inverse=True)[1])

    def numbers(self, name: str) -> Array:
        """Return the numbers of a column; of classes such as "(20, 29]" the midpoints. NaN where there is no number."""
        if name not in self._numbers:
            self._numbers[name] = _read_numbers(self.data, name)
        return self._numbers[name]

    def groups(self, name: str) -> tuple[Array, dict[str, int]]:
        """Return the released category of each record (-1: missing), and that in which each original category is.

        Original categories that no released category contains are left out.
        """
        if name not in self._groups:
            self._groups[name] = _read_groups(self.data, self.original, name)
        return self._groups[name]

    def indicator(self, name: str, category: str) -> Array | None:
        """Return whether each record has a category, NaN where missing; None where the file does not tell it apart."""
        codes, groups = self.groups(name)
        own = groups.get(category)
        if own is None or sum(code == own for code in groups.values()) > 1:
            return None
        return np.where(codes < 0, np.nan, (codes == own).astype(np.float64))


def _read_numbers(data: Microdata, name: str) -> Array:
    column = data.column(name)
    if column.levels is None or has_numbers(column):
        return amounts(data, name)
    intervals = [None if label is None else parse_interval(str(label)) for label in column.levels.to_list()]
    middles = np.array([np.nan if one is None else _middle(one[0], one[1]) for one in intervals])
    return np.asarray(middles[column.values])


def _middle(low: float, high: float) -> float:
    """Return the middle of a class, or its end where it is open."""
    if np.isinf(low):
        return high
    return low if np.isinf(high) else (low + high) / 2


def _read_groups(data: Microdata, original: Microdata, name: str) -> tuple[Array, dict[str, int]]:
    levels, released = original.column(name).levels, data.column(name).levels
    if released is None:  # categories became numbers: read them as texts
        known = data.numbers(name)
        distinct, codes = np.unique(known[np.isfinite(known)], return_inverse=True)
        every = np.full(len(data), -1)
        every[np.isfinite(known)] = codes
        texts = [f"{value:g}" for value in distinct]
    else:
        every = np.where(data.missing(name), -1, data.column(name).values.astype(np.int64))
        texts = ["" if level is None else str(level) for level in released.to_list()]
    index = {text: code for code, text in enumerate(texts)}
    wanted = [] if levels is None else [str(level) for level in levels.to_list() if level is not None]
    groups = {text: index[text] for text in wanted if text in index}
    left = [text for text in wanted if text not in index]
    if left and released is not None:
        observed = [code for code in np.unique(every[every >= 0]).tolist() if texts[code] not in groups]
        values = pl.Series(left)
        if levels is not None and levels.dtype.is_numeric():
            values = values.cast(pl.Float64)
        assigned = assign_categories(values, [texts[code] for code in observed]) if observed else None
        if assigned is not None:
            groups |= {text: observed[at] for text, at in zip(left, assigned.tolist(), strict=True) if at >= 0}
    return every, groups


# ---- the analyses -------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Amount:
    """A numeric predictor or response. logged : its logarithm is used; values that are not positive are left out."""

    name: str
    logged: bool = False

    @property
    def label(self) -> str:
        return f"log({self.name})" if self.logged else self.name

    def read(self, view: FileView) -> Array:
        """Return the values, NaN where there is none."""
        x = view.numbers(self.name)
        return np.log(x, out=np.full(len(x), np.nan), where=x > 0) if self.logged else x


@dataclass(frozen=True)
class Category:
    """A categorical response: whether a record has the category."""

    name: str
    category: str

    @property
    def label(self) -> str:
        return f"{self.name}={self.category}"

    def read(self, view: FileView) -> Array | None:
        """Return 1 for the category, 0 for others and NaN where missing; None where the file does not tell it apart."""
        return view.indicator(self.name, self.category)


@dataclass(frozen=True)
class Categories:
    """A categorical predictor: an indicator of each of some categories, relative to a reference.

    All other categories together are one more indicator, which is not an estimate.
    """

    name: str
    reference: str
    categories: tuple[str, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(f"{self.name}={category}" for category in self.categories)


Predictor = Amount | Categories


@dataclass(frozen=True)
class Regression:
    """A linear regression of an amount, or a logistic one of a category, on other columns.

    Records with a missing value are left out. Standard errors are clustered by household or person.

    products : which predictors (by index) are multiplied with each other, in addition to each of them alone.
    """

    kind: ClassVar[str] = "regression"

    response: Amount | Category
    predictors: tuple[Predictor, ...]
    products: tuple[tuple[int, ...], ...] = ()

    @property
    def title(self) -> str:
        names = [p.label if isinstance(p, Amount) else p.name for p in self.predictors]
        terms = [*names, *(":".join(names[i] for i in term) for term in self.products)]
        return f"{self.response.label} ~ {' + '.join(terms)}"

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the estimates."""
        own = [(p.label,) if isinstance(p, Amount) else p.labels for p in self.predictors]
        mixed = (":".join(part) for term in self.products for part in product(*(own[i] for i in term)))
        return (*(label for labels in own for label in labels), *mixed)

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.response.name, *(predictor.name for predictor in self.predictors))

    @property
    def key(self) -> ModelKey:
        """Return what the regression explains by which terms, without their order and categories."""
        names = [p.label if isinstance(p, Amount) else p.name for p in self.predictors]
        products = (tuple(sorted(names[i] for i in term)) for term in self.products)
        response = self.response.label if isinstance(self.response, Amount) else self.response.name
        return response, frozenset([*((name,) for name in names), *products])

    def design(self, view: FileView) -> Design:
        """Return the complete records as numbers; there are none where the file does not tell the response apart."""
        response = self.response.read(view)
        y = np.full(len(view), np.nan) if response is None else response
        single = [_read_predictor(view, predictor) for predictor in self.predictors]
        blocks = [*single, *(_multiply([single[i] for i in term]) for term in self.products)]
        x = np.column_stack([np.ones(len(y)), *(block.columns for block in blocks)])
        rows = np.flatnonzero(np.isfinite(y) & np.isfinite(x).all(axis=1) & (view.weights > 0))
        starts = np.cumsum([1, *(block.columns.shape[1] for block in blocks)])
        places = np.concatenate(
            [np.where(block.places < 0, -1, block.places + start) for block, start in zip(blocks, starts, strict=False)]
        )
        return Design(rows, y[rows], x[rows], places)

    def find(self, view: FileView) -> Findings:
        """Return the coefficients in a file."""
        design = self.design(view)
        if len(design.rows) < max(MIN_RECORDS, design.x.shape[1] + 2):
            return Findings(*Coefficients.all_missing(len(self.labels)))
        rows, y, x, places = design
        weights = view.weights[rows]
        # Columns are centered so that large means do not hide their variation; this changes only the intercept.
        x[:, 1:] -= np.average(x[:, 1:], axis=0, weights=weights)
        units = np.unique(view.units[rows], return_inverse=True)[1]
        fit = clustered_least_squares if isinstance(self.response, Amount) else clustered_logit
        slopes, errors = fit(x, y, weights / weights.mean(), units)
        values, spread = (np.where(places < 0, np.nan, part[places]) for part in (slopes, errors))
        return Findings(values, spread)


class Design(NamedTuple):
    """The complete records of a regression, as numbers.

    rows : their positions in the file. y : the response. x : the intercept and the columns of all terms. places : the
        column of each estimate; -1: none has.
    """

    rows: Array
    y: Array
    x: Array
    places: Array


class _Block(NamedTuple):
    """The columns of a term, and for each of its estimates the column that has it; -1: none has."""

    columns: Array
    places: Array


def _read_predictor(view: FileView, predictor: Predictor) -> _Block:
    if isinstance(predictor, Amount):
        return _Block(predictor.read(view)[:, None], np.zeros(1, dtype=np.int64))
    codes, groups = view.groups(predictor.name)
    reference = groups.get(predictor.reference, -1)
    own = [groups.get(category, -1) for category in predictor.categories]
    # Released categories that contain one of ours and not the reference; what is left is the last indicator.
    distinct = [code for code in dict.fromkeys(own) if code not in (-1, reference)]
    rest = ~np.isin(codes, [*distinct, reference])
    columns = np.column_stack([*(codes == code for code in distinct), rest]).astype(np.float64)
    columns[codes < 0] = np.nan
    at = {code: i for i, code in enumerate(distinct)}
    # Where the reference does not occur, nothing is relative to it.
    return _Block(columns, np.array([at.get(code, -1) if reference >= 0 else -1 for code in own], dtype=np.int64))


def _multiply(blocks: Sequence[_Block]) -> _Block:
    """Return all products of one column of each block."""
    columns, places = blocks[0]
    for block in blocks[1:]:
        width = block.columns.shape[1]
        columns = (columns[:, :, None] * block.columns[:, None, :]).reshape(len(columns), -1)
        pairs = places[:, None] * width + block.places[None, :]
        places = np.where((places[:, None] < 0) | (block.places[None, :] < 0), -1, pairs).ravel()
    return _Block(columns, places)


@dataclass(frozen=True)
class TwoWayTable:
    """The association of two categorical columns: P(a, b) - P(a) P(b) for each pair of their categories."""

    kind: ClassVar[str] = "two-way table"

    rows: Categories
    cells: Categories

    @property
    def title(self) -> str:
        return f"{self.rows.name} by {self.cells.name}"

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(f"{a}, {b}" for a in self.rows.labels for b in self.cells.labels)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.rows.name, self.cells.name

    def find(self, view: FileView) -> Findings:
        """Return the associations in a file. A missing value is in no category."""
        first, second = (
            [view.indicator(side.name, category) for category in side.categories] for side in (self.rows, self.cells)
        )
        values, errors = Coefficients.all_missing(len(first) * len(second))
        pairs = list(product(first, second))
        known = [k for k, (one, other) in enumerate(pairs) if one is not None and other is not None]
        if not known or len(view) < MIN_RECORDS or not view.weights.sum() > 0:
            return Findings(values, errors)
        w = view.weights / view.weights.sum()
        a, b = (np.column_stack([np.nan_to_num(pairs[k][side]) for k in known]) for side in (0, 1))  # type: ignore[arg-type]
        share_a, share_b = w @ a, w @ b
        products = (a - share_a) * (b - share_b)
        values[known] = w @ products
        errors[known] = _mean_errors(products - values[known], w, view.units)
        return Findings(values, errors)


@dataclass(frozen=True)
class SubgroupMeans:
    """The mean of an amount in each of some categories, minus the mean of all."""

    kind: ClassVar[str] = "subgroup means"

    amount: Amount
    groups: Categories

    @property
    def title(self) -> str:
        return f"mean of {self.amount.label} by {self.groups.name}"

    @property
    def labels(self) -> tuple[str, ...]:
        return self.groups.labels

    @property
    def columns(self) -> tuple[str, ...]:
        return self.amount.name, self.groups.name

    def find(self, view: FileView) -> Findings:
        """Return the differences in a file."""
        x, members = self.amount.read(view), [view.indicator(self.groups.name, c) for c in self.groups.categories]
        values, errors = Coefficients.all_missing(len(members))
        known = np.isfinite(x) & (view.weights > 0)
        if known.sum() < MIN_RECORDS:
            return Findings(values, errors)
        w, y, units = view.weights[known], x[known], view.units[known]
        w = w / w.sum()
        mean = float(w @ y)
        for k, member in enumerate(members):
            if member is None:
                continue
            own = np.nan_to_num(member[known])
            share = float(w @ own)
            if own.sum() < MIN_RECORDS:
                continue
            difference = float(w @ (own * y)) / share - mean
            influence = own / share * (y - mean - difference) - (y - mean)
            values[k], errors[k] = difference, _mean_errors(influence[:, None], w, units)[0]
        return Findings(values, errors)


@dataclass(frozen=True)
class Distribution:
    """The mean of an amount, and the share of its values up to each of some points, which are quantiles of the original.

    shares : the share of the values that each quantile is for.
    """

    kind: ClassVar[str] = "distribution"

    amount: Amount
    points: tuple[float, ...]
    shares: tuple[float, ...]

    @property
    def title(self) -> str:
        return f"distribution of {self.amount.label}"

    @property
    def labels(self) -> tuple[str, ...]:
        return ("mean", *(f"share up to the {100 * share:g} % quantile" for share in self.shares))

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.amount.name,)

    def find(self, view: FileView) -> Findings:
        """Return mean and shares in a file. They are not compared with 0."""
        x = self.amount.read(view)
        known = np.isfinite(x) & (view.weights > 0)
        if known.sum() < MIN_RECORDS:
            return Findings(*Coefficients.all_missing(len(self.labels)), has_null=False)
        w, y = view.weights[known], x[known]
        w = w / w.sum()
        parts = np.column_stack([y, *(y <= point for point in self.points)])
        values = w @ parts
        return Findings(values, _mean_errors(parts - values, w, view.units[known]), has_null=False)


Analysis = Regression | TwoWayTable | SubgroupMeans | Distribution


def _mean_errors(deviations: Array, weights: Array, units: Array) -> Array:
    """Return the standard errors of weighted means, from the deviations of the records; weights sum to 1."""
    units = np.unique(units, return_inverse=True)[1]
    sums = sums_by_unit(deviations * weights[:, None], units)
    return np.asarray(np.sqrt(len(sums) / max(len(sums) - 1, 1) * (sums**2).sum(axis=0)))
