"""Microaggregation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Generator, Infeasible, Method, Microdata, Range, Roles, Strengths, Trials, did_you_mean
from sdcmap.data.schema import KINDS
from sdcmap.kernels.masking.own_values import CROWD
from sdcmap.methods import _gower_groups
from sdcmap.methods._mdav import mdav_groups, vmdav_groups

MAX_RECORDS_GOWER = (
    20_000  # records of a trial; with more, groups of mixed variables take longer than all other methods
)
UNIVARIATE = {"individual": _gower_groups.ranked_groups, "optimal": _gower_groups.optimal_groups}


def standardize(x: Array) -> Array:
    """z = (x - mean)/s column by column, missing values left out and a constant column 0."""
    present = np.isfinite(x)
    count = np.maximum(present.sum(axis=0), 1)
    middle = np.where(present, x, 0).sum(axis=0) / count
    gap = np.where(present, x - middle, 0)
    spread = np.sqrt((gap**2).sum(axis=0) / np.maximum(count - 1, 1))
    return np.where(present, gap / np.where(spread > 0, spread, 1), np.nan)


def divide_by_range(x: Array) -> Array:
    """x divided by its range column by column, missing values left out and a constant column 0."""
    low = np.fmin.reduce(x, axis=0)
    width = np.fmax.reduce(x, axis=0) - low
    return np.asarray((x - low) / np.where(width > 0, width, 1))


def missing_patterns(missing: Array) -> list[tuple[Array, Array]]:
    """(rows, columns) of the records that have values in the same variables, but for those without any."""
    if not missing.any():
        return [(np.arange(len(missing)), np.arange(missing.shape[1]))]
    kinds, pattern = np.unique(missing, axis=0, return_inverse=True)
    some = ((number, ~gone) for number, gone in enumerate(kinds) if not gone.all())
    return [(np.flatnonzero(pattern.ravel() == number), np.flatnonzero(known)) for number, known in some]


def pool_records(missing: Array, size: int) -> Iterator[tuple[Array, Array, Array]]:
    """(rows, guests, columns): records with values in the same columns, at least `size` of them, and those that join their
    groups: records of a rarer pattern, whose every value these records have too. Of several such patterns the guests go to
    the one with the fewest other columns, then to the one with most records. What no pattern takes in comes on its own.
    """
    by_pattern = missing_patterns(missing)
    hosts = [number for number, (rows, _) in enumerate(by_pattern) if len(rows) >= size]
    guests: dict[int, list[Array]] = {number: [] for number in hosts}
    for number, (rows, columns) in enumerate(by_pattern):
        able = [host for host in hosts if np.isin(columns, by_pattern[host][1]).all()]
        if len(rows) < size and able:
            guests[min(able, key=lambda host: (len(by_pattern[host][1]), -len(by_pattern[host][0])))].append(rows)
        elif len(rows) < size:
            guests[number] = []
    for number in sorted(guests):
        rows, columns = by_pattern[number]
        yield rows, np.concatenate([*guests[number], rows[:0]]), columns


def nearest_rows(x: Array, rows: Array, guests: Array, nominal: Array) -> Array:
    """For each guest the place in `rows` of the nearest record, in the columns that the guest has (not NaN): by the sum of
    |x_ij - x_lj|, and 1 for each nominal column that differs; the first of equally near ones."""
    positions = np.zeros(len(guests), dtype=np.int64)
    for number, guest in enumerate(guests):
        has = ~np.isnan(x[guest])
        gap = np.abs(x[np.ix_(rows, has)] - x[guest, has])
        positions[number] = np.argmin(np.where(nominal[has], gap > 0, gap).sum(axis=1))
    return positions


@dataclass(frozen=True)
class Microaggregate(Method):
    """Put records into small groups of near ones, and give each record the average of its group.

    Parameters
    ----------
    on : variables to mask; numeric ones, with "gower" of any kind.
    size : least number of records in a group, at least 3: the average of two tells each the other's value. No group has 2
        size or more, but for variable groups that take in the last few records.
    method : "mdav": near in all variables together, standardized; "gower": the same for variables of mixed kinds, by
        Gower's distance; "projection": neighbors on the first principal component of the standardized variables, or on
        the variable `axis`; "individual": each variable on its own, neighbors in its order; "optimal": each variable
        on its own, the groups with the least sum of squares.
    average : "mean", "median" or "mode" (the least of equally frequent values). Whatever it says, a nominal variable
        takes the mode, and an ordinal one the (lower) median unless it says "mode".
    groups : "fixed": `size` records, the last group up to 2 size - 1; "variable", with "mdav": `size` to 2 size - 1 as
        the data suggest.
    gain : with variable groups: a near record joins while its distance to the group is below gain times its distance to
        the nearest other free record; at least 0.
    axis : with "projection": a numeric variable to sort by; empty: the first principal component.
    weighted : means are weighted, so that weighted totals are kept.
    importance : with "gower": how much each variable of `on` counts in the distance, above 0, one number each; empty: all
        alike. sum_j w_j d_j / sum_j w_j, d_j the difference over the range, or whether the categories differ.

    Formula: y_i = average of x over the group of i. MDAV: the record r farthest from the mean and its size - 1 nearest
    make a group, the record farthest from r and its nearest another, and so on. Among equal distances and equal values
    the record that comes first in the file is taken.
    Missing values stay missing: with "individual" and "optimal" they are left out; with the others records are grouped with
    those that are missing in the same variables. Where fewer than `size` are, each joins the group of the record nearest to
    it in the variables that it has, among records that have all of these, and as few others as there are; so a group may
    have more than 2 size, and every average still has at least `size` values behind it. Infeasible where no `size` records
    have all of these variables. Which values are missing is told as it was. Weights are used by `weighted` alone.
    Households are not used: persons are grouped one by one.
    Reference: Domingo-Ferrer, Mateo-Sanz (2002); Domingo-Ferrer, Torra (2005); Hansen, Mukherjee (2003); Solanas,
    Martinez-Balleste (2006).

    Examples
    --------
    >>> Microaggregate(on=["wage", "rent"], size=5).text
    "Microaggregate(on=['wage', 'rent'], size=5)"
    """

    label: ClassVar[str] = "Microaggregation"
    description: ClassVar[str] = (
        "Records are put into small groups of similar records, and each value is replaced by the average of its group."
    )

    kinds: ClassVar[tuple[str, ...]] = KINDS
    weights: ClassVar[str] = "used for means with `weighted`, else every record counts once"
    households: ClassVar[str] = "not used; persons are grouped one by one"
    random: ClassVar[bool] = False
    growth: ClassVar[float] = 2.0
    kept: ClassVar[str] = "the mean of each numeric variable, with average='mean'; its weighted mean, if weighted"
    distorted: ClassVar[str] = "every value; variances shrink, and correlations grow"

    revision: ClassVar[int] = 2  # 2: records of a rare pattern of missing values join others; `importance`

    on: tuple[str, ...]
    size: Annotated[int, Range(CROWD)] = 3
    method: Literal["mdav", "individual", "optimal", "projection", "gower"] = "mdav"
    average: Literal["mean", "median", "mode"] = "mean"
    groups: Literal["fixed", "variable"] = "fixed"
    gain: Annotated[float, Range(0)] = 0.2
    axis: str = ""
    weighted: bool = False
    importance: tuple[float, ...] = ()

    @property
    def action(self) -> str:
        return f"{'each ' if self.method in UNIVARIATE else ''}microaggregated in groups of {self.size}"

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        sizes = (3, 10) if roles.numbers else ()
        trials: dict[str, Method | str] = {f"{cls.__name__} {size}": cls(roles.numbers, size) for size in sizes}
        if roles.keys:
            mixed = cls((*roles.keys, *roles.numbers), 3, method="gower")
            slow = len(roles.data) > MAX_RECORDS_GOWER
            trials[f"{cls.__name__} gower 3"] = (
                f"too slow for more than {MAX_RECORDS_GOWER:,} records." if slow else mixed
            )
        return trials

    @classmethod
    def at_strength(cls, strength: float, names: tuple[str, ...], roles: Roles) -> Method | None:
        """Groups of 3 to 100; of mixed variables by Gower's distance, where the file is not too long for it."""
        near = "mdav" if roles.are_numbers(names) else "gower"
        if near == "gower" and len(roles.data) > MAX_RECORDS_GOWER:
            return None
        largest = max(3, min(100, len(roles.data) // 2))
        return cls(names, Strengths("size", 3, largest).at(strength)["size"], method=near)  # type: ignore[arg-type]

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if len(set(self.on)) < len(self.on):
            yield ".on must name each variable once."
        if self.groups == "variable" and self.method != "mdav":
            yield f".groups = 'variable' needs method = 'mdav'; it is {self.method!r}."
        if self.axis and self.method != "projection":
            yield f".axis needs method = 'projection'; it is {self.method!r}."
        if self.importance and self.method != "gower":
            yield f".importance needs method = 'gower'; it is {self.method!r}."
        if self.importance and (len(self.importance) != len(self.on) or not min(self.importance) > 0):
            yield f".importance must hold a number above 0 for each of {len(self.on)} variables."
        if self.weighted and self.average != "mean":
            yield f".weighted needs average = 'mean'; it is {self.average!r}."

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().incompatibilities(data)
        for name in self.on if self.method != "gower" else ():
            if name in data.schema and data.schema[name].kind != "numeric":
                yield f"Microaggregate: method {self.method!r} needs numeric variables; {name!r} is not: use 'gower'."
        if self.axis and self.axis not in data.schema:
            yield f"Microaggregate.axis: no column {self.axis!r}.{did_you_mean(self.axis, data.names)}"
        elif self.axis and data.schema[self.axis].kind != "numeric":
            yield f"Microaggregate.axis must be numeric; {self.axis!r} is {data.schema[self.axis].kind}."
        elif self.axis and data.missing(self.axis).any():
            yield f"Microaggregate.axis must have no missing values; {self.axis!r} has some."
        if self.weighted and data.weight is None:
            yield "Microaggregate.weighted needs a file with a weight."
        elif self.weighted and not (data.weights > 0).all():
            yield f"Microaggregate.weighted needs weights above 0; {int((~(data.weights > 0)).sum())} are not."

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        values = {name: data.column(name).values.copy() for name in self.on}
        for rows, names, group in self._group_records(data):
            for name in names:
                known = ~data.missing(name)[rows]
                values[name][rows[known]] = self._averages(data, name, rows[known], group[known])
        return data.change(None, values)

    def _group_records(self, data: Microdata) -> Iterator[tuple[Array, tuple[str, ...], Array]]:
        """(rows, variables, group of each row) of each set of records that is grouped on its own."""
        missing = np.column_stack([data.missing(name) for name in self.on])
        if self.method in UNIVARIATE:
            for j, name in enumerate(self.on):
                if len(rows := np.flatnonzero(~missing[:, j])):
                    self._check_group_size(len(rows), f"records with a value of {name!r}")
                    yield rows, (name,), UNIVARIATE[self.method](data.numbers(name)[rows], self.size)
            return
        near = self._numbers(data)
        nominal = np.array([self.method == "gower" and data.schema[name].kind == "nominal" for name in self.on])
        for rows, guests, columns in pool_records(missing, self.size):
            self._check_group_size(len(rows), "records that have the same variables" if missing.any() else "records")
            group = self._find_groups(data, near, rows, columns)
            joined = group[nearest_rows(near, rows, guests, nominal)]
            yield np.append(rows, guests), tuple(self.on[j] for j in columns), np.append(group, joined)

    def _check_group_size(self, count: int, what: str) -> None:
        if count < self.size:
            raise Infeasible(f"a group needs {self.size} records, and there are {count} {what}.")

    def _numbers(self, data: Microdata) -> Array:
        """What is compared, a column each: standardized numbers, or codes and numbers divided by their range."""
        if self.method != "gower":
            return standardize(data.matrix(self.on))
        x = np.column_stack([np.where(data.missing(name), np.nan, data.column(name).values) for name in self.on])
        nominal = np.array([data.schema[name].kind == "nominal" for name in self.on])
        return np.where(nominal, x, divide_by_range(x) * np.array(self.importance or (1.0,)))

    def _find_groups(self, data: Microdata, near: Array, rows: Array, columns: Array) -> Array:
        x = np.ascontiguousarray(near[np.ix_(rows, columns)])
        if self.method == "gower":
            nominal = np.array([data.schema[self.on[j]].kind == "nominal" for j in columns])
            price = np.array(self.importance)[columns][nominal] if self.importance else None
            numbers, codes = np.ascontiguousarray(x[:, ~nominal]), x[:, nominal].astype(np.int64)
            return _gower_groups.gower_groups(numbers, codes, self.size, price)
        if self.method == "projection":
            line = data.numbers(self.axis)[rows] if self.axis else _gower_groups.first_component(x)
            return _gower_groups.ranked_groups(line, self.size)
        return mdav_groups(x, self.size) if self.groups == "fixed" else vmdav_groups(x, self.size, self.gain)

    def _averages(self, data: Microdata, name: str, rows: Array, group: Array) -> Array:
        x, kind = data.column(name).values[rows], data.schema[name].kind
        if kind == "nominal" or self.average == "mode":
            return _gower_groups.group_modes(x, group)
        if kind == "ordinal" or self.average == "median":
            return _gower_groups.group_medians(x, group, between=kind == "numeric")
        return _gower_groups.group_means(x, group, data.weights[rows] if self.weighted else None)
