"""Distance-based record linkage: link each released record to the nearest known record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Microdata, Undefined
from sdcmap.risk.linkage.attack import Attack
from sdcmap.risk.linkage.column_readings import apply_labels
from sdcmap.risk.linkage.cost_models import (
    CostModel,
    build_cost_model,
    find_open_fields,
    link_one_to_one_by_cost,
    link_to_cheapest,
    require_equality,
)
from sdcmap.risk.linkage.field_costs import GAP, SAME, SQUARE, Cost, importance_problems, relative_weights
from sdcmap.risk.linkage.file_pair import LinkTable, Pair, link_nearest, link_one_to_one, score_by_distance
from sdcmap.risk.linkage.link_search import nearest_links

MIXED_METRICS = ("gower", "mixed")  # metrics of numbers and categories together
NULL_VARIANCE_RATIO = 1e-10  # directions with a smaller share of the largest variance are dropped


def fill_with_means(x: Array) -> Array:
    """Return the values with missing ones at the mean of their column, or at 0 in an empty column."""
    present = ~np.isnan(x)
    mean = np.where(present, x, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
    return np.where(present, x, mean)


def standardize(x: Array, like: Array, *, centered: bool = True) -> Array:
    """Return each column in standard deviations of the same column in `like`, centered at its mean if `centered`.

    Missing values are at the mean, constant columns at 0.
    """
    count = (~np.isnan(like)).sum(axis=0)
    mean = fill_with_means(like).mean(axis=0)
    spread = np.sqrt(((fill_with_means(like) - mean) ** 2).sum(axis=0) / np.maximum(count - 1, 1))
    return (fill_with_means(x) - mean if centered else fill_with_means(x)) / np.where(spread > 0, spread, np.inf)


def whitening_matrix(x: Array) -> Array:
    """Return T such that the columns of x T have unit variance and no covariance, without null directions."""
    centered = fill_with_means(x) - fill_with_means(x).mean(axis=0)
    spread = np.sqrt((centered**2).mean(axis=0))
    scale = np.where(spread > 0, spread, np.inf)
    correlation = (centered / scale).T @ (centered / scale) / max(len(x) - 1, 1)
    if not np.isfinite(correlation).all():
        raise Undefined("the numbers are too large to compute a covariance. Divide them by a constant.")
    values, vectors = np.linalg.eigh(correlation)
    retained = values > NULL_VARIANCE_RATIO * max(values.max(), NULL_VARIANCE_RATIO)
    return np.asarray(vectors[:, retained] / np.sqrt(values[retained]) / scale[:, np.newaxis])


@dataclass(frozen=True)
class NearestRecord(Attack):
    """The share of released records that are nearest to the record they were made from.

    The attacker holds records of people whom they can name, and measures the distance of each released record to each
    of them. They link each released record to the nearest; or, knowing that both files hold the same people, they
    choose one-to-one pairs with the smallest sum of distances. They succeed when the link is true.

    Parameters
    ----------
    metric : "standardized" subtracts each variable's mean and divides by its standard deviation, in each file;
        "scaled" only divides, as experiments of the literature do: if a mean is large against the spread, noise then
        moves all records together; "mahalanobis" transforms the variables so that the known records have unit variance
        and no covariance (which undoes noise of the same shape); "gower" adds |a - b| / range for a number and a != b
        for a category; "mixed" adds the squared difference of a standardized number and, for a category, 1 if it
        differs. An archive may hold other people, so with one the released file's means, standard deviations,
        covariance and ranges serve both.
    one_to_one : each known record is linked to at most one released record, so that the sum of squared distances
        (Gower: of distances) is smallest; otherwise each released record is linked to the nearest known one.
    open_columns : columns that were released unchanged for all records. "exact": an attacker who holds the original
        records reads in the method note which these are, and requires them to be equal; "as any": they are compared as
        all others, as in experiments of the literature.
    importance : with "gower": the weight of each variable of `on`, above 0; empty: equal weights.
    on : the variables the attacker knows; by default the numeric variables; with "gower" and "mixed" every column that
        an attacker could know (all but weights, households and strata).

    Formula: expected true links / targets in the file. Of t nearest records that tie, each is taken with probability 1/t;
    records with equal values are exchanged at random. Null directions of the covariance and constant columns are left
    out. A recoded column is compared by its labels: 37 matches "37", "(35, 40]" and "*", a list "a|b" matches its
    values, and other labels match the values that were released under them; a match costs nothing.
    Missing values are set to the mean ("gower": the field is left out; with `importance`, among labels of several
    depths and in categories of "mixed": one half); in an open column missing is a value of its own. Weights and
    households are not used. Releasing nothing leaves a guess: 1/n.
    Reference: Domingo-Ferrer, Torra (2001), distance-based record linkage; Gower (1971).

    Examples
    --------
    >>> NearestRecord("mahalanobis", one_to_one=True).text
    "NearestRecord(metric='mahalanobis', one_to_one=True)"
    """

    label: ClassVar[str] = "Re-identified by the nearest record"
    description: ClassVar[str] = (
        "Share of records re-identified by linking each released record to the most similar known person."
    )

    missing: ClassVar[str] = (
        'a missing value is set to the mean; with "gower" the field is left out; categories of "mixed" cost one half'
    )

    # 7: the share of targets in the file; 8: "gower" takes a missing value of an unchanged column as a value of its own;
    # 9: an order that does not depend on the codes of categories
    revision: ClassVar[int] = 9

    metric: Literal["standardized", "scaled", "mahalanobis", "gower", "mixed"] = "standardized"
    one_to_one: bool = False
    open_columns: Literal["exact", "as any"] = field(default="exact", kw_only=True)
    importance: tuple[float, ...] = field(default=(), kw_only=True)

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        yield from importance_problems(self.importance, self.on)
        if self.importance and self.metric != "gower":
            yield f'.importance needs metric "gower"; it is {self.metric!r}.'

    @property
    def has_column_costs(self) -> bool:
        return self.metric == "gower"

    def variables(self, data: Microdata) -> tuple[str, ...]:
        names = super().variables(data)
        return names if self.on or self.metric in MIXED_METRICS else tuple(n for n in names if n in data.numeric)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        problems = list(super().incompatibilities(data))
        yield from problems
        for name in self.on if self.metric not in MIXED_METRICS and not problems else ():
            if data.schema[name].kind != "numeric":
                yield f'NearestRecord({self.metric!r}) needs numeric variables, and {name!r} is not: use "gower".'

    def cost_models(self, pair: Pair) -> list[CostModel]:
        if self.metric == "gower":
            has_missing = bool(np.isnan(pair.known).any() or np.isnan(pair.released).any()) and not self.importance
            return [build_cost_model(pair, self._gower_fields(pair), mean=has_missing)]
        known, released = self._known_coordinates(pair), self._released_coordinates(pair)
        numbers = [Cost(SQUARE, a, b) for a, b in zip(known, released.T, strict=True)]
        return [build_cost_model(pair, [*numbers, *(self._categories(pair) if self.metric == "mixed" else ())])]

    def _categories(self, pair: Pair) -> list[Cost]:
        """Return the costs of categories: 1 if two values differ, one half if one is missing."""
        indices = [index for index, category in enumerate(pair.categorical) if category]
        same = {f: Cost(SAME, pair.known_columns[f], pair.released[:, f], cap=1.0, both=0.5, one=0.5) for f in indices}
        return [apply_labels(pair, f, cost, 0.5) for f, cost in same.items()]

    def _gower_fields(self, pair: Pair) -> list[Cost]:
        """Return the cost of each column by Gower's distance."""
        span = (
            pair.remember_known("ranges", lambda: column_ranges(pair.known))
            if pair.holds_originals
            else column_ranges(pair.released)
        )
        weight = relative_weights(self.importance, len(pair.names))
        half = (
            0.5 if self.importance else 0.0
        )  # cost of a missing value; without weights the mean leaves such fields out
        costs = []
        for f, (is_category, width, w) in enumerate(zip(pair.categorical, span, weight.tolist(), strict=True)):
            values = pair.known_columns[f], pair.released[:, f]
            cost = Cost(SAME if is_category else GAP, *values, width, w, half * w, half * w)
            costs.append(apply_labels(pair, f, cost, 0.5 * w) if is_category else cost)
        return costs

    def _coordinates(self, pair: Pair) -> tuple[Array, Array]:
        """Return the numbers of both files in the coordinates of the metric."""
        known, released = self._known_coordinates(pair), self._released_coordinates(pair)
        return np.column_stack(known) if known else np.zeros((len(pair.known_rows), 0)), released

    def _known_coordinates(self, pair: Pair) -> tuple[Array, ...]:
        """Return the coordinates of the known file, column by column; those of an archive in units of the released
        file.
        """
        known = pair.known[:, ~pair.categorical]
        if not pair.holds_originals:
            return tuple(self._transform(pair, known, pair.released[:, ~pair.categorical]).T)
        key = "coordinates", self.metric
        return pair.remember_known(key, lambda: tuple(self._transform(pair, known, known).T.copy()))

    def _released_coordinates(self, pair: Pair) -> Array:
        """Return the coordinates of the released file."""
        released = pair.released[:, ~pair.categorical]
        return self._transform(pair, released, released)

    def _transform(self, pair: Pair, numbers: Array, like: Array) -> Array:
        """Return the numbers of a file in the coordinates of the metric."""
        if self.metric == "mahalanobis":
            return fill_with_means(numbers) @ self._whitening(pair)
        return standardize(numbers, like, centered=self.metric != "scaled")

    def _whitening(self, pair: Pair) -> Array:
        """Return the whitening matrix of the known records, or of the released file for an archive."""
        if not pair.holds_originals:
            return whitening_matrix(pair.released[:, ~pair.categorical])
        return pair.remember_known("whitening", lambda: whitening_matrix(pair.known[:, ~pair.categorical]))

    def link(self, pair: Pair) -> LinkTable:
        open_costs = find_open_fields(pair) if self.open_columns == "exact" else {}
        if open_costs or self.metric in MIXED_METRICS:
            models = require_equality(self.cost_models(pair), open_costs, has_column_costs=self.has_column_costs)
            link = link_one_to_one_by_cost if self.one_to_one else link_to_cheapest
            return link(pair, models)
        a, b = self._coordinates(pair)
        if self.one_to_one:
            return link_one_to_one(pair, score_by_distance(a, b))
        return link_nearest(pair, lambda first, keep: nearest_links(b, a[first], keep))


def column_ranges(x: Array) -> Array:
    """Return the range of each column without missing values; 1 where it is 0 or the column is empty."""
    some = (~np.isnan(x)).any(axis=0)
    width = np.ones(x.shape[1])
    width[some] = np.nanmax(x[:, some], axis=0) - np.nanmin(x[:, some], axis=0)
    return np.where(width > 0, width, 1.0)
