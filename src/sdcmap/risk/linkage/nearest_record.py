"""Distance-based record linkage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Microdata, Undefined
from sdcmap.risk.linkage import cost_models
from sdcmap.risk.linkage.attack import Attack
from sdcmap.risk.linkage.column_readings import as_read
from sdcmap.risk.linkage.cost_models import CostModel, cost_model_of
from sdcmap.risk.linkage.field_costs import GAP, SAME, SQUARE, Cost, importance_problems, relative_weights
from sdcmap.risk.linkage.file_pair import LinkTable, Pair, link_nearest, link_one_to_one, scored_by_distance
from sdcmap.risk.linkage.link_search import nearest_links

OF_ALL = ("gower", "mixed")  # metrics of numbers and categories
FLAT = 1e-10  # directions with less of the largest variance are null


def filled(x: Array) -> Array:
    """The same with missing values at the mean of their column; a column without any value at 0."""
    present = ~np.isnan(x)
    mean = np.where(present, x, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
    return np.where(present, x, mean)


def standardized(x: Array, like: Array, *, centered: bool = True) -> Array:
    """Each column minus its mean in `like` (if `centered`), over its standard deviation there; missing values at the
    mean, constant columns at 0."""
    count = (~np.isnan(like)).sum(axis=0)
    mean = filled(like).mean(axis=0)
    spread = np.sqrt(((filled(like) - mean) ** 2).sum(axis=0) / np.maximum(count - 1, 1))
    return (filled(x) - mean if centered else filled(x)) / np.where(spread > 0, spread, np.inf)


def whitening(x: Array) -> Array:
    """T, so that the columns of x T have unit variance and no covariance; null directions dropped."""
    centered = filled(x) - filled(x).mean(axis=0)
    spread = np.sqrt((centered**2).mean(axis=0))
    scale = np.where(spread > 0, spread, np.inf)
    correlation = (centered / scale).T @ (centered / scale) / max(len(x) - 1, 1)
    if not np.isfinite(correlation).all():
        raise Undefined("the numbers are too large to have a covariance: divide them by a constant.")
    values, vectors = np.linalg.eigh(correlation)
    kept = values > FLAT * max(values.max(), FLAT)
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]) / scale[:, np.newaxis])


@dataclass(frozen=True)
class NearestRecord(Attack):
    """The share of released records that are nearest to the record they were made from.

    The snooper holds the records of people he can name, measures how far each released record is from each of them, and
    takes the nearest for its owner; or he knows that both files hold the same people, and takes the pairs, one to one,
    that are nearest in sum. He succeeds when the record is the true one.

    Parameters
    ----------
    metric : "standardized" takes each variable's mean off and divides by its standard deviation, in each file; "scaled"
        divides alone, as experiments of the literature do: where a mean is large against the spread, noise then moves all
        records together; "mahalanobis" turns the variables so that his records have unit variance and no covariance (what
        undoes noise of the same shape); "gower" adds |a - b| / range for a number and a != b for a category; "mixed" adds
        the square of a standardized number's difference and, for a category, 1 where it differs. An archive may hold other
        people, so with one the released file's means, standard deviations, covariance and range serve both.
    one_to_one : each of his records takes one released record at most, and the sum of squared distances (Gower: of
        distances) is the smallest; otherwise each released record is linked to the nearest of his.
    open_columns : of columns that are released as they were, for everybody. "exact": a snooper who holds the original
        records reads in the note which these are, and asks first that they are equal; "as any": he compares them as all
        others, as experiments of the literature do.
    importance : with "gower": how much each variable of `on` counts, above 0, one number each; empty: all alike.
    on : the variables he knows; by default the numeric variables; with "gower" and "mixed" every column that somebody could
        know (all but weights, households and strata).

    Formula: expected hits / released records. Of t nearest records that tie the true one is taken with probability 1/t;
    records with equal values are exchanged at random. Null directions of the covariance and constant columns are left out.
    A column that was recoded is read as its labels say: 37 is behind "37", "(35, 40]" and "*", a list "a|b" names its
    values, and other labels stand for whoever has them; a value costs nothing where it may be behind the label.
    Missing values stand at the mean ("gower": the field is left out; with `importance`, among labels of several depths and
    in categories of "mixed": one half); in an open column missing is a value of its own. Weights and households are not
    used. Releasing nothing leaves a guess: 1/n.
    Reference: Domingo-Ferrer, Torra (2001), distance-based record linkage; Gower (1971).

    Examples
    --------
    >>> NearestRecord("mahalanobis", one_to_one=True).text
    "NearestRecord(metric='mahalanobis', one_to_one=True)"
    """

    label: ClassVar[str] = "Re-identified by the nearest record"
    description: ClassVar[str] = (
        "Share of records re-identified by linking each known person to the most similar released record."
    )

    missing: ClassVar[str] = (
        'a missing value stands at the mean; with "gower" the field is left out; categories of "mixed" cost one half'
    )

    # 4: open columns are exact; 5: labels read, `importance`; 6: ties alike on every machine
    revision: ClassVar[int] = 6

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
    def by_column(self) -> bool:
        return self.metric == "gower"

    def variables(self, data: Microdata) -> tuple[str, ...]:
        names = super().variables(data)
        return names if self.on or self.metric in OF_ALL else tuple(n for n in names if n in data.numeric)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        problems = list(super().incompatibilities(data))
        yield from problems
        for name in self.on if self.metric not in OF_ALL and not problems else ():
            if data.schema[name].kind != "numeric":
                yield f'NearestRecord({self.metric!r}) measures numeric variables; {name!r} is not one: use "gower".'

    def courses(self, pair: Pair) -> list[CostModel]:
        if self.metric == "gower":
            gaps = bool(np.isnan(pair.known).any() or np.isnan(pair.released).any()) and not self.importance
            return [cost_model_of(pair, self._gower_fields(pair), mean=gaps)]
        known, released = self._known_columns(pair), self._released_coordinates(pair)
        numbers = [Cost(SQUARE, a, b) for a, b in zip(known, released.T, strict=True)]
        return [cost_model_of(pair, [*numbers, *(self._categories(pair) if self.metric == "mixed" else ())])]

    def _categories(self, pair: Pair) -> list[Cost]:
        """1 where two values differ, one half where one is not known."""
        places = [place for place, category in enumerate(pair.categorical) if category]
        same = {f: Cost(SAME, pair.known_columns[f], pair.released[:, f], cap=1.0, both=0.5, one=0.5) for f in places}
        return [as_read(pair, f, cost, 0.5) for f, cost in same.items()]

    def _gower_fields(self, pair: Pair) -> list[Cost]:
        """What the values of each column cost."""
        span = pair.of_known("ranges", lambda: ranges(pair.known)) if pair.originals else ranges(pair.released)
        weight = relative_weights(self.importance, len(pair.names))
        half = 0.5 if self.importance else 0.0  # where one is missing: the mean leaves such fields out
        costs = []
        for f, (is_category, width, w) in enumerate(zip(pair.categorical, span, weight.tolist(), strict=True)):
            values = pair.known_columns[f], pair.released[:, f]
            cost = Cost(SAME if is_category else GAP, *values, width, w, half * w, half * w)
            costs.append(as_read(pair, f, cost, 0.5 * w) if is_category else cost)
        return costs

    def _coordinates(self, pair: Pair) -> tuple[Array, Array]:
        """Both files' numbers as the metric sees them."""
        known, released = self._known_columns(pair), self._released_coordinates(pair)
        return np.column_stack(known) if known else np.zeros((len(pair.known_rows), 0)), released

    def _known_columns(self, pair: Pair) -> tuple[Array, ...]:
        """The known file's coordinates, one by one; an archive's in the units of the released file."""
        known = pair.known[:, ~pair.categorical]
        if not pair.originals:
            return tuple(self._as_seen(pair, known, pair.released[:, ~pair.categorical]).T)
        key = "coordinates", self.metric
        return pair.of_known(key, lambda: tuple(self._as_seen(pair, known, known).T.copy()))

    def _released_coordinates(self, pair: Pair) -> Array:
        released = pair.released[:, ~pair.categorical]
        return self._as_seen(pair, released, released)

    def _as_seen(self, pair: Pair, numbers: Array, like: Array) -> Array:
        """The numbers of a file as the metric sees them."""
        if self.metric == "mahalanobis":
            return filled(numbers) @ self._turn(pair)
        return standardized(numbers, like, centered=self.metric != "scaled")

    def _turn(self, pair: Pair) -> Array:
        """What turns the variables so that they have unit variance and no covariance."""
        if not pair.originals:
            return whitening(pair.released[:, ~pair.categorical])
        return pair.of_known("whitening", lambda: whitening(pair.known[:, ~pair.categorical]))

    def link(self, pair: Pair) -> LinkTable:
        opened = cost_models.open_fields(pair) if self.open_columns == "exact" else {}
        if opened or self.metric in OF_ALL:
            courses = cost_models.asking_first(self.courses(pair), opened, by_column=self.by_column)
            link = cost_models.links_one_to_one if self.one_to_one else cost_models.links_of_cheapest
            return link(pair, courses)
        a, b = self._coordinates(pair)
        if self.one_to_one:
            return link_one_to_one(pair, scored_by_distance(a, b))
        return link_nearest(pair, lambda first, keep: nearest_links(b, a[first], keep))


def ranges(x: Array) -> Array:
    """The width of each column's values, missing ones left out; 1 where it has none."""
    some = (~np.isnan(x)).any(axis=0)
    width = np.ones(x.shape[1])
    width[some] = np.nanmax(x[:, some], axis=0) - np.nanmin(x[:, some], axis=0)
    return np.where(width > 0, width, 1.0)
