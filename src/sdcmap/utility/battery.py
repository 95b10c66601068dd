"""The battery of analyses that a file is tested with: chosen from its columns and roles, before anything is masked.

Each amount, sensitive column and indicator is explained by the columns that are most associated with it; columns are
cross-tabulated, means are compared between groups, and the distributions of amounts are described. The choice depends
on the original alone, so every candidate gets the same analyses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np

from sdcmap.core import Array, Microdata, Roles
from sdcmap.data.amounts import MIN_DISTINCT_AMOUNTS, amounts, is_amount
from sdcmap.data.column_formulas import find_inputs
from sdcmap.utility.analyses import (
    Amount,
    Analysis,
    Categories,
    Category,
    Distribution,
    Regression,
    SubgroupMeans,
    TwoWayTable,
)

MAX_REGRESSIONS = 24
MAX_PREDICTORS = 8  # of a regression
MAX_EXPLAINED_CATEGORIES = 4  # of a sensitive column, the most frequent ones
MAX_TABLES, MAX_MEANS, MAX_DISTRIBUTIONS = 12, 12, 8
MAX_CATEGORIES = 6  # of a column, beside the reference; the rest is one group
MAX_TABLE_CATEGORIES = 4
MIN_CATEGORY_RECORDS = 30  # ... and 1 % of the file, for a category that is estimated
MAX_MISSING_OF_PREDICTOR = 0.2  # share; columns with more would leave too few complete records
MAX_EXPLAINED = 0.98  # share of variance; a column that explains more is another form of the same
SKEWED = 1.5  # skewness from which the logarithm of a positive amount is analyzed
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
MAX_RECORDS_FOR_CHOICE = 20_000  # of the file, evenly spaced, by which predictors are chosen
Item = TypeVar("Item")


def propose_battery(data: Microdata) -> tuple[Analysis, ...]:
    """Return the analyses of a file, the same for the same data and roles."""
    return data.view(_propose, data.names)


def _propose(data: Microdata, names: tuple[str, ...]) -> tuple[Analysis, ...]:
    columns = _Columns(data)
    return (*_regressions(columns), *_tables(columns), *_means(columns), *_distributions(columns))


class _Columns:
    """The columns of a file as an analyst uses them: amounts, and categories that enough records have."""

    def __init__(self, data: Microdata) -> None:
        self.data = data
        self.rows = np.arange(0, len(data), max(1, len(data) // MAX_RECORDS_FOR_CHOICE))
        self.names = tuple(name for name in Roles(data).descriptive_columns if name in data.content_columns)
        self.amounts = {name: amount for name in self.names if (amount := self._amount(name)) is not None}
        self.categories = {name: own for name in self.names if (own := self._categories(name)) is not None}
        self.inputs = find_inputs({name: amounts(data, name)[self.rows] for name in self.amounts})
        self._scores: dict[str, Array] = {}

    def _amount(self, name: str) -> Amount | None:
        if not is_amount(self.data, name):
            return None
        x = amounts(self.data, name)[self.rows]
        x = x[np.isfinite(x)]
        distinct = len(np.unique(x))
        if distinct < 2:
            return None
        return Amount(name, logged=bool(distinct >= MIN_DISTINCT_AMOUNTS and x.min() > 0 and _skewness(x) > SKEWED))

    def _categories(self, name: str) -> Categories | None:
        levels = self.data.column(name).levels
        if levels is None or is_amount(self.data, name):
            return None
        known = ~self.data.missing(name)
        count = np.bincount(self.data.codes(name)[known], minlength=len(levels))
        order = np.argsort(-count, kind="stable")
        enough = [code for code in order.tolist() if count[code] >= max(MIN_CATEGORY_RECORDS, 0.01 * len(self.data))]
        if len(enough) < 2:
            return None
        texts = [str(levels[code]) for code in enough[: MAX_CATEGORIES + 1]]
        return Categories(name, texts[0], tuple(texts[1:]))

    def is_computed_from(self, first: str, second: str) -> bool:
        """Return whether one of two columns is computed from the other, as a sum is from its parts."""
        return first in self.inputs.get(second, ()) or second in self.inputs.get(first, ())

    def is_binary(self, name: str) -> bool:
        """Return whether a column has two values."""
        if name in self.amounts:
            x = amounts(self.data, name)
            return len(np.unique(x[np.isfinite(x)])) == 2
        own = self.categories.get(name)
        return own is not None and len(own.categories) == 1 and self.data.level_count(name) <= 3

    def missing_share(self, name: str) -> float:
        return float(self.data.missing(name).mean())

    def score(self, name: str) -> Array:
        """Return the column as numbers to associate it by: ranks of an amount, standardized; NaN where missing."""
        if name not in self._scores:
            x = amounts(self.data, name)[self.rows]
            known = np.isfinite(x)
            ranks = np.full(len(x), np.nan)
            ranks[known] = np.unique(x[known], return_inverse=True)[1]
            self._scores[name] = ranks
        return self._scores[name]

    def indicators(self, name: str) -> Array:
        """Return an indicator of each category, one per column; rows without a value are NaN."""
        own, data = self.categories[name], self.data
        levels = data.column(name).levels
        codes, missing = data.codes(name)[self.rows], data.missing(name)[self.rows]
        texts = [] if levels is None else [str(level) for level in levels.to_list()]
        wanted = [texts.index(text) for text in (own.reference, *own.categories)]
        columns = np.column_stack([codes == code for code in wanted]).astype(np.float64)
        columns[missing] = np.nan
        return columns

    def association(self, response: Array, name: str) -> float:
        """Return the share of a response's variance that a column explains alone: R^2 of ranks or of category means."""
        x = self.score(name)[:, None] if name in self.amounts else self.indicators(name)
        known = np.isfinite(response) & np.isfinite(x).all(axis=1)
        if known.sum() < MIN_CATEGORY_RECORDS:
            return 0.0
        y, x = response[known], x[known]
        total = float(((y - y.mean()) ** 2).sum())
        if total <= 0:
            return 0.0
        if name in self.amounts:
            x = x - x.mean(axis=0)
            own = float((x**2).sum())
            return float((x[:, 0] @ (y - y.mean())) ** 2 / (own * total)) if own > 0 else 0.0
        count = x.sum(axis=0)
        mean = (x.T @ (y - y.mean())) / np.maximum(count, 1)
        return float((count * mean**2).sum() / total)


def _skewness(x: Array) -> float:
    centered = x - x.mean()
    spread = float(centered.std())
    return float((centered**3).mean() / spread**3) if spread > 0 else 0.0


def _responses(columns: _Columns) -> list[Amount | Category]:
    """Return what is explained: sensitive columns, amounts, and columns with two values.

    Of a sensitive column with more than two categories, the most frequent ones are explained.
    """
    first = list[tuple[int, Amount | Category]]()  # the most frequent category of each sensitive column comes first
    rest = list[Amount | Category]()
    for name in columns.names:
        is_sensitive = name in columns.data.sensitive
        responses = [*_forms(columns, name, is_sensitive=is_sensitive)]
        if is_sensitive:
            first += enumerate(responses)
        else:
            rest += responses
    chosen = [response for _, response in sorted(first, key=lambda ranked: ranked[0])][:MAX_REGRESSIONS]
    return [*chosen, *_pick_evenly(rest, MAX_REGRESSIONS - len(chosen))]


def _forms(columns: _Columns, name: str, *, is_sensitive: bool) -> Iterable[Amount | Category]:
    """Yield the forms in which a column is explained: an amount, or indicators of categories."""
    amount, own = columns.amounts.get(name), columns.categories.get(name)
    if amount is not None:
        distinct = len(np.unique(columns.score(name)[np.isfinite(columns.score(name))]))
        # of two numbers, a linear probability model
        if columns.is_binary(name) or distinct >= MIN_DISTINCT_AMOUNTS or is_sensitive:
            yield amount
    elif own is not None and columns.is_binary(name):
        yield Category(name, own.categories[0])
    elif own is not None and is_sensitive:
        yield from (Category(name, text) for text in (own.reference, *own.categories)[:MAX_EXPLAINED_CATEGORIES])


def _pick_evenly(items: Sequence[Item], most: int) -> list[Item]:
    """Return at most so many items, evenly spaced."""
    if most <= 0:
        return []
    return [items[i * len(items) // min(most, len(items))] for i in range(min(most, len(items)))]


def _response_scores(columns: _Columns, response: Amount | Category) -> Array:
    if isinstance(response, Amount):
        return columns.score(response.name)
    own = columns.categories[response.name]
    return columns.indicators(response.name)[:, (own.reference, *own.categories).index(response.category)]


def _regressions(columns: _Columns) -> Iterable[Regression]:
    for response in _responses(columns):
        y = _response_scores(columns, response)
        candidates = [
            (columns.association(y, name), -i, name)
            for i, name in enumerate(columns.names)
            if name != response.name
            and not columns.is_computed_from(name, response.name)
            and (name in columns.amounts or name in columns.categories)
            and columns.missing_share(name) <= MAX_MISSING_OF_PREDICTOR
        ]
        chosen: list[str] = []
        for explained, _, name in sorted(candidates, reverse=True):
            if explained > MAX_EXPLAINED or len(chosen) == MAX_PREDICTORS:
                continue
            if not any(columns.is_computed_from(name, own) or _is_same(columns, name, own) for own in chosen):
                chosen.append(name)
        if chosen:
            ordered = [name for name in columns.names if name in chosen]
            yield Regression(response, tuple(columns.amounts.get(n) or columns.categories[n] for n in ordered))


def _is_same(columns: _Columns, first: str, second: str) -> bool:
    """Return whether two columns are forms of each other, so that a regression needs only one."""
    if first in columns.amounts:
        return columns.association(columns.score(first), second) > MAX_EXPLAINED
    return all(columns.association(each, second) > MAX_EXPLAINED for each in columns.indicators(first).T)


def _keep_frequent(own: Categories, most: int) -> Categories:
    """Return a column with its most frequent categories, the reference among them, for tables and means."""
    if len(own.categories) == 1:  # the other category says the same with the opposite sign
        return own
    return Categories(own.name, own.reference, (own.reference, *own.categories)[:most])


def _tables(columns: _Columns) -> list[TwoWayTable]:
    """Return tables of the most associated pairs of columns, and of others evenly spaced in the order of association."""
    names = [name for name in columns.names if name in columns.categories]
    pairs: list[tuple[float, int, str, str]] = []
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            each = columns.indicators(first).T
            pairs.append((max(columns.association(own, second) for own in each), -len(pairs), first, second))
    ranked = [(a, b) for strength, _, a, b in sorted(pairs, reverse=True) if strength <= MAX_EXPLAINED]
    half = MAX_TABLES // 2
    picked = [*ranked[:half], *_pick_evenly(ranked[half:], MAX_TABLES - half)]
    return [
        TwoWayTable(*(_keep_frequent(columns.categories[n], MAX_TABLE_CATEGORIES) for n in pair)) for pair in picked
    ]


def _means(columns: _Columns) -> list[SubgroupMeans]:
    """Return the means of amounts in groups, for pairs of columns evenly spaced over the file."""
    numbers = [amount for name, amount in columns.amounts.items() if not columns.is_binary(name)]
    keys = [name for name in columns.data.keys if name in columns.categories] or [*columns.categories]
    pairs = [(amount, name) for amount in numbers for name in keys]
    return [
        SubgroupMeans(a, _keep_frequent(columns.categories[n], MAX_CATEGORIES))
        for a, n in _pick_evenly(pairs, MAX_MEANS)
    ]


def _distributions(columns: _Columns) -> list[Distribution]:
    """Return the distributions of amounts, described at the quantiles of the original."""
    numbers = [amount for name, amount in columns.amounts.items() if not columns.is_binary(name)]
    described = []
    for amount in _pick_evenly(numbers, MAX_DISTRIBUTIONS):
        x = amounts(columns.data, amount.name)
        x = x[np.isfinite(x)]
        points = np.quantile(x, QUANTILES, method="inverted_cdf")
        last = {float(point): share for point, share in zip(points, QUANTILES, strict=True) if point < x.max()}
        described.append(Distribution(Amount(amount.name), tuple(last), tuple(last.values())))
    return described
