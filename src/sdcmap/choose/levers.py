"""Levers: what a rule chooses at every value of one number (a limit, a slope, a weight), all else fixed.

The choice is constant between breakpoints, so a web page can look it up while a user moves the number. At every value it is
the choice of `RUMap.choose`.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import polars as pl

from sdcmap.choose.by_release import ByRelease
from sdcmap.choose.two_axes import Weighing
from sdcmap.core.limit import Limit
from sdcmap.core.rule import LimitColumn, RiskUtilityMap, Rule
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.decision.pareto import linear_optima

MIN_BREAKPOINT = 1e-300  # smaller breakpoints count as 0
Path = list[tuple[float, int]]  # (start, row): the row chosen from this value on; before the first start, none


@dataclass(frozen=True)
class Lever:
    """The choice at every value of one number.

    starts : ascending; the first is minus infinity.
    candidates : the id that is chosen from each start on, up to the next; None: release nothing.

    Where a rule weighs two costs, neighbors cost the same at a start, up to rounding: close to it either may be chosen.
    """

    starts: tuple[float, ...]
    candidates: tuple[str | None, ...]

    def at(self, value: float) -> str | None:
        """Return the candidate that is chosen at this value."""
        return self.candidates[bisect_right(self.starts, value) - 1]


@dataclass(frozen=True)
class Levers:
    """The levers of a rule by its fields, and of limits by the names of their measures."""

    rule: Mapping[str, Lever]
    limits: Mapping[str, Lever]


def find_levers(ru: RiskUtilityMap, rule: Rule, limits: Iterable[Limit] = ()) -> Levers:
    """Return what a rule chooses on a map while one of its numbers, or one of these limits, moves and all else stays.

    limits : the limits that may be moved, whether the map has them or not. They have no lever where the risk axis shows
        shares of limits: there the points themselves move.

    A rule of another package has no levers.
    """
    if not isinstance(rule, ByRelease):
        return Levers({}, {})
    comparison = _Comparison(ru, rule, {} if ru.scales else {limit.measure.text: limit for limit in limits})
    return Levers(
        {name: comparison.lever(_rule_move(rule, name)) for name in rule.levers},
        {name: comparison.lever(_limit_move(name, limit)) for name, limit in comparison.limits.items()},
    )


@dataclass(frozen=True, eq=False)
class _Rows:
    """The candidates or methods that a rule compares on a map, and their comparison with limits."""

    ru: RiskUtilityMap
    rule: ByRelease
    limits: Mapping[str, Limit]  # that may be moved, by measure
    table: pl.DataFrame
    quantile: float | None
    are_draws: bool  # draws of a chosen method: the first of equals is taken

    @cached_property
    def order(self) -> Array:
        """The rows in the order of the rule's preference."""
        return self.sort(self.rule._cost(self.ru, self.table), np.arange(len(self.table)))

    @cached_property
    def columns(self) -> dict[str, LimitColumn]:
        limits = {**self.limits, **{limit.measure.text: limit for limit in self.ru.limits}}
        return {name: self.ru.compare_limit(limit, self.table, self.quantile) for name, limit in limits.items()}

    def sort(self, cost: Array, rows: Array) -> Array:
        """Return these rows by their costs."""
        if self.are_draws:
            return rows[np.argsort(cost, kind="stable")]
        return rows[self.rule._order(self.ru, self.table[rows], cost)]

    def eligible(self, moved: str = "") -> Array:
        """Whether each row meets every limit of the map that was tested but the one that is moved."""
        stated = [limit.measure.text for limit in self.ru.limits if limit.measure.text != moved]
        is_met: Array = ~(self.table["anchor"] | self.table["worse"]).to_numpy()
        for name in stated:
            is_met = is_met & (self.columns[name].is_met | ~self.columns[name].applies)
        named = [*stated, moved] if moved else stated
        return is_met & np.logical_or.reduce([self.columns[name].applies for name in named]) if named else is_met

    def among(self, rows: Array) -> _Rows:
        """Return only these rows."""
        part = replace(self, table=self.table[rows])
        columns = {name: LimitColumn(c.limit, c.end[rows], c.applies[rows]) for name, c in self.columns.items()}
        part.__dict__["columns"] = columns
        return part


Move = Callable[[_Rows], Path]


class _Comparison:
    """A rule on a map: the rows that it compares, and the draws of each method."""

    def __init__(self, ru: RiskUtilityMap, rule: ByRelease, limits: Mapping[str, Limit]) -> None:
        self.ru, self.rule, self.limits = ru, rule, limits
        table = rule._rows_to_compare(ru)
        self.rows = _Rows(ru, rule, limits, table, rule._limit_quantile, are_draws=False)
        self.ids: list[str] | None = table["id"].to_list() if "id" in table.columns else None

    @cached_property
    def draws(self) -> _Rows:
        return _Rows(self.ru, self.rule, self.limits, self.ru.points.filter("compared"), None, are_draws=True)

    @cached_property
    def draws_of(self) -> dict[str, Array]:
        """The draws of each method, as rows of `draws`."""
        methods = self.draws.table["method"].to_numpy()
        return {method: np.flatnonzero(methods == method) for method in self.rows.table["method"]}

    def lever(self, move: Move) -> Lever:
        """Return the chosen candidate at every value of the number that moves."""
        path = move(self.rows)
        steps: list[tuple[float, str | None]] = [(-math.inf, None)]
        # Where methods are compared, the chosen draw of a method can change between two breakpoints.
        for (start, row), (stop, _) in pairwise([*path, (math.inf, -1)]):
            for at, candidate in self._candidates(row, move, start, stop):
                if at == steps[-1][0]:
                    steps.pop()
                if not steps or candidate != steps[-1][1]:
                    steps.append((at, candidate))
        return Lever(tuple(at for at, _ in steps), tuple(candidate for _, candidate in steps))

    def _candidates(self, row: int, move: Move, start: float, stop: float) -> list[tuple[float, str | None]]:
        """Return the candidates that stand for a row between two values, each with its start."""
        if row < 0:
            return [(start, None)]
        if self.ids is not None:
            return [(start, self.ids[row])]
        own = self.draws_of[self.rows.table["method"][row]]
        names = self.draws.table["id"].gather(own).to_list()
        if self.rule._is_expectation(self.ru):
            return [(start, names[int(np.argmin(self.draws.table["replicate"].gather(own).to_numpy()))])]
        path = [(-math.inf, 0), *move(self.draws.among(own))]  # where no draw passes by itself, take the first
        parts = pairwise([*path, (math.inf, 0)])
        inside = [(max(at, start), draw) for (at, draw), (end, _) in parts if at < stop and end > start]
        return [(at, names[max(draw, 0)]) for at, draw in inside]


# ---- thresholds: a row is admitted from its level on ----------------------------------------------------------
def _limit_move(name: str, limit: Limit) -> Move:
    def move(rows: _Rows) -> Path:
        column, sign = rows.columns[name], 1.0 if limit.is_upper else -1.0
        level = np.where(column.applies, sign * column.end, -np.inf)
        return _admit(rows, rows.eligible(name) & rows.rule._passes(rows.ru, rows.table), level, sign)

    return move


def _rule_move(rule: ByRelease, name: str) -> Move:
    if isinstance(rule, Weighing):
        return lambda rows: _weigh(rows, rule, name)
    return lambda rows: _admit(rows, rows.eligible(), *rule.admission(rows.ru, rows.table, name))


def _admit(rows: _Rows, allowed: Array, level: Array, sign: float) -> Path:
    """Return the best admitted row at every value; a row is admitted from its level on (times the sign).

    A row is chosen at values below the levels of all better rows. From the best row to the worst, these are the rows whose
    level is a new minimum.
    """
    order = rows.order[(allowed & ~np.isnan(level))[rows.order]]
    levels = level[order]
    best = np.minimum.accumulate(np.concatenate([[np.inf], levels]))[:-1]
    chosen = np.flatnonzero(levels < best)[::-1]
    path = [(float(levels[i]), int(order[i])) for i in chosen]
    return path if sign > 0 else _mirror(path)


def _mirror(path: Path) -> Path:
    """Return the path of the negative value: a row is chosen up to minus its start, and not above."""
    if not path:
        return path
    ends = [math.nextafter(-start, math.inf) for start, _ in reversed(path)]  # from these on the next row is chosen
    mirrored = zip([-math.inf, *ends], [*(row for _, row in reversed(path)), -1], strict=True)
    return [(start, row) for start, row in mirrored if start < math.inf]


# ---- weights: two parts of each row are weighed ---------------------------------------------------------------
def _weigh(rows: _Rows, rule: Weighing, name: str) -> Path:
    """Return the row of least cost at every weight.

    The lower convex hull gives approximate breakpoints; the rule's own costs decide which row is chosen at them.
    """
    first, second = rule.parts(rows.ru, rows.table)
    allowed = np.flatnonzero(rows.eligible() & np.isfinite(first) & np.isfinite(second))
    if not len(allowed):
        return []

    def best(value: float, among: Array = allowed) -> int:
        moved: Weighing = replace(rule, **{name: value})  # type: ignore[arg-type]
        cost = moved.weigh(first[among], second[among])
        near = among[cost == cost.min()]  # ties are rare, and sorting all rows is slow
        return int(rows.sort(np.zeros(len(near)), near)[0])

    breaks = [rule.lever_value(end) for _, end, _ in linear_optima(first[allowed], second[allowed])]
    # Probe between neighboring breakpoints, then bisect for the exact float at which the choice changes.
    probes = [0.0]
    for low, high in zip([0.0, *breaks[:-1]], breaks, strict=True):
        probes += [(low + high) / 2 if math.isfinite(high) else 2 * low + 1]
    probes += [breaks[-1]] if math.isfinite(breaks[-1]) else []
    path = [(-math.inf, best(0.0))]
    for low, high in pairwise(probes):
        before, after = path[-1][1], best(high)
        if before != after:
            pair = np.array(sorted((before, after)))
            path.append((_first(low, high, lambda value: best(value, pair) == after), after))  # noqa: B023
    return path


def _first(low: float, high: float, is_after: Callable[[float], bool]) -> float:
    """Return the least float at which `is_after` is true; it is false at `low` and true at `high`."""
    while low < (middle := (low + high) / 2) < high and high > MIN_BREAKPOINT:
        low, high = (low, middle) if is_after(middle) else (middle, high)
    return high
