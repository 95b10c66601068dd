"""Microaggregation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Generator, Infeasible, Method, Microdata, Range, Roles, Strengths, Trials, did_you_mean
from sdcmap.core.method import Origin
from sdcmap.data.schema import KINDS
from sdcmap.kernels.masking.rare_values import MIN_SHARING_RECORDS
from sdcmap.methods import _gower_groups
from sdcmap.methods._mdav import mdav_groups, vmdav_groups

MAX_RECORDS_GOWER = 20_000  # records; grouping more by Gower's distance takes longer than all other trials together
UNIVARIATE = {"individual": _gower_groups.ranked_groups, "optimal": _gower_groups.optimal_groups}


def standardize(x: Array) -> Array:
    """Return (x - mean)/s for each column. Missing values are left out; a constant column becomes 0."""
    present = np.isfinite(x)
    count = np.maximum(present.sum(axis=0), 1)
    middle = np.where(present, x, 0).sum(axis=0) / count
    gap = np.where(present, x - middle, 0)
    spread = np.sqrt((gap**2).sum(axis=0) / np.maximum(count - 1, 1))
    return np.where(present, gap / np.where(spread > 0, spread, 1), np.nan)


def divide_by_range(x: Array) -> Array:
    """Return (x - minimum)/range for each column. Missing values are left out; a constant column becomes 0."""
    low = np.fmin.reduce(x, axis=0)
    width = np.fmax.reduce(x, axis=0) - low
    return np.asarray((x - low) / np.where(width > 0, width, 1))


def missing_patterns(missing: Array) -> list[tuple[Array, Array]]:
    """Return (rows, columns) for each set of records with values in the same variables, omitting empty records."""
    if not missing.any():
        return [(np.arange(len(missing)), np.arange(missing.shape[1]))]
    kinds, pattern = np.unique(missing, axis=0, return_inverse=True)
    some = ((number, ~is_missing) for number, is_missing in enumerate(kinds) if not is_missing.all())
    return [(np.flatnonzero(pattern.ravel() == number), np.flatnonzero(known)) for number, known in some]


def pool_records(missing: Array, size: int) -> Iterator[tuple[Array, Array, Array]]:
    """Yield (rows, guests, columns) for each set of records that is grouped together.

    rows : at least `size` records with values in the same columns. guests : records of a pattern with fewer than `size`
    records, whose values are all present in these rows too; they join the groups of the rows. If several patterns could
    take them, they go to the one with the fewest other columns, then to the one with most records. A rare pattern that
    no other can take is yielded on its own.
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
    """Return for each guest the index in `rows` of its nearest record.

    Only the columns that the guest has (not NaN) are compared. The distance is the sum of |x_ij - x_lj|, plus 1 for each
    nominal column that differs. Ties go to the first record.
    """
    positions = np.zeros(len(guests), dtype=np.int64)
    for number, guest in enumerate(guests):
        has = ~np.isnan(x[guest])
        gap = np.abs(x[np.ix_(rows, has)] - x[guest, has])
        positions[number] = np.argmin(np.where(nominal[has], gap > 0, gap).sum(axis=1))
    return positions


@dataclass(frozen=True)
class Microaggregate(Method):
    """Put records into small groups of similar records, and replace each value by the average of its group.

    Parameters
    ----------
    on : variables to mask: numeric, or of any kind with "gower".
    size : the minimum number of records in a group, at least 3: in a group of two, each could compute the other's value.
        Groups have fewer than 2 size records, except variable groups that take in the last few records.
    method : "mdav": records close in all variables together, standardized; "gower": the same for variables of mixed
        kinds, by Gower's distance; "projection": neighbors on the first principal component of the standardized
        variables, or on the variable `axis`; "individual": neighbors in each variable separately; "optimal": each
        variable separately, the groups with the least sum of squares.
    average : "mean", "median" or "mode" (the smallest of equally frequent values). A nominal variable always takes the
        mode, and an ordinal one the lower median unless this is "mode".
    groups : "fixed": `size` records, the last group up to 2 size - 1; "variable", with "mdav": `size` to 2 size - 1
        records, depending on the data.
    gain : with variable groups: a record joins while its distance to the group is below gain times its distance to the
        nearest other free record; at least 0.
    axis : with "projection": a numeric variable to sort by; empty: the first principal component.
    weighted : use weighted means, which preserves weighted totals.
    importance : with "gower": the weight of each variable of `on` in the distance sum_j w_j d_j / sum_j w_j, where d_j is
        the difference over the range, or 1 if categories differ; one number above 0 each; empty: equal weights.

    Formula: y_i = average of x over the group of i. MDAV: the record r farthest from the mean and its size - 1 nearest
    records form a group, the record farthest from r and its nearest form another, and so on. Ties go to the record that
    comes first in the file.
    Missing values stay missing, and it stays visible which they are. "individual" and "optimal" leave them out; the other
    methods group records that are missing in the same variables. If there are fewer than `size` of these, each joins
    the group of its nearest record among those that have all of its variables and the fewest others. Every average is
    thus over at least `size` values. Infeasible if fewer than `size` records have all of these variables.
    Weights are used only with `weighted`. Households are not used: persons are grouped one by one.
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
    weights: ClassVar[str] = "used for the means if `weighted` is set; otherwise every record counts once"
    households: ClassVar[str] = "not used; persons are grouped one by one"
    random: ClassVar[bool] = False
    mixes_records: ClassVar[bool] = True  # the averages of a group are released in the rows of all its members
    growth: ClassVar[float] = 2.0
    value_origin: ClassVar[Origin] = "derived"
    kept: ClassVar[str] = "the mean of each numeric variable, with average = 'mean'; its weighted mean, with `weighted`"
    distorted: ClassVar[str] = "every single value; variances become smaller, and correlations larger"

    # 2: records with a rare pattern of missing values join other groups; `importance`; 3: measured with refits
    revision: ClassVar[int] = 3

    on: tuple[str, ...]
    size: Annotated[int, Range(MIN_SHARING_RECORDS)] = 3
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
        """Return a variant with groups of 3 to 100 records, by Gower's distance for mixed variables in small files."""
        method = "mdav" if roles.are_numbers(names) else "gower"
        if method == "gower" and len(roles.data) > MAX_RECORDS_GOWER:
            return None
        largest = max(3, min(100, len(roles.data) // 2))
        return cls(names, Strengths("size", 3, largest).at(strength)["size"], method=method)  # type: ignore[arg-type]

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
            yield f".importance must contain a number above 0 for each of the {len(self.on)} variables."
        if self.weighted and self.average != "mean":
            yield f".weighted needs average = 'mean'; it is {self.average!r}."

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().incompatibilities(data)
        for name in self.on if self.method != "gower" else ():
            if name in data.schema and data.schema[name].kind != "numeric":
                yield f"Microaggregate: method {self.method!r} needs numeric variables; {name!r} is not. Use 'gower'."
        if self.axis and self.axis not in data.schema:
            yield f"Microaggregate.axis: no column {self.axis!r}.{did_you_mean(self.axis, data.names)}"
        elif self.axis and data.schema[self.axis].kind != "numeric":
            yield f"Microaggregate.axis must be numeric; {self.axis!r} is {data.schema[self.axis].kind}."
        elif self.axis and data.missing(self.axis).any():
            yield f"Microaggregate.axis must have no missing values; {self.axis!r} has some."
        if self.weighted and data.weight is None:
            yield "Microaggregate.weighted needs a file with a weight column."
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
        """Yield (rows, variables, group of each row) for each set of records that is grouped separately."""
        missing = np.column_stack([data.missing(name) for name in self.on])
        if self.method in UNIVARIATE:
            for j, name in enumerate(self.on):
                if len(rows := np.flatnonzero(~missing[:, j])):
                    self._check_group_size(len(rows), f"records with a value of {name!r}")
                    yield rows, (name,), UNIVARIATE[self.method](data.numbers(name)[rows], self.size)
            return
        compared = self._numbers(data)
        nominal = np.array([self.method == "gower" and data.schema[name].kind == "nominal" for name in self.on])
        for rows, guests, columns in pool_records(missing, self.size):
            self._check_group_size(
                len(rows), "records with values in the same variables" if missing.any() else "records"
            )
            group = self._find_groups(data, compared, rows, columns)
            # A guest takes the group of its nearest record, so that its values are averaged over `size` records too.
            joined = group[nearest_rows(compared, rows, guests, nominal)]
            yield np.append(rows, guests), tuple(self.on[j] for j in columns), np.append(group, joined)

    def _check_group_size(self, count: int, what: str) -> None:
        if count < self.size:
            raise Infeasible(f"a group needs {self.size} records, but there are only {count} {what}.")

    def _numbers(self, data: Microdata) -> Array:
        """Return the columns to compare: standardized numbers, or (for Gower) codes and numbers divided by their range."""
        if self.method != "gower":
            return standardize(data.matrix(self.on))
        x = np.column_stack([np.where(data.missing(name), np.nan, data.column(name).values) for name in self.on])
        nominal = np.array([data.schema[name].kind == "nominal" for name in self.on])
        return np.where(nominal, x, divide_by_range(x) * np.array(self.importance or (1.0,)))

    def _find_groups(self, data: Microdata, compared: Array, rows: Array, columns: Array) -> Array:
        x = np.ascontiguousarray(compared[np.ix_(rows, columns)])
        if self.method == "gower":
            nominal = np.array([data.schema[self.on[j]].kind == "nominal" for j in columns])
            cost_of_codes = np.array(self.importance)[columns][nominal] if self.importance else None
            numbers, codes = np.ascontiguousarray(x[:, ~nominal]), x[:, nominal].astype(np.int64)
            return _gower_groups.gower_groups(numbers, codes, self.size, cost_of_codes)
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
