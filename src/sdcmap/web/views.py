"""Caches of data, masked files and maps; an outdated map is served while one thread computes the new one."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
import polars as pl
from cachetools import LRUCache, cached
from pydantic import TypeAdapter

from sdcmap.core import Column, Microdata, PlanError, SdcmapError
from sdcmap.core.grid import count_members
from sdcmap.core.limit import Limit
from sdcmap.core.named_files import restrict_files_to
from sdcmap.core.plan_text import read_table
from sdcmap.core.rule import Rule
from sdcmap.explore.column_bars import Bars, summarize_column
from sdcmap.explore.first_look import (
    IdentifyingSets,
    Look,
    UniquenessByPair,
    count_unique_by_pair,
    find_identifying_sets,
    look,
)
from sdcmap.files.missing_codes import check_columns, codes_for_column, parse_codes
from sdcmap.files.reader import Source, encode
from sdcmap.map import RUMap
from sdcmap.study.cost import Cost, estimate_cost
from sdcmap.study.folder import Study
from sdcmap.study.plan import Plan
from sdcmap.study.plan_layout import expand
from sdcmap.study.search_settings import Proposal
from sdcmap.web.response_models import Floor, Map, MapAxes, MapCurve, MapMeasure, Means, Points
from sdcmap.web.workspace import Workspace
from sdcmap.workflow import open_map, own_choice

T = TypeVar("T")
ColumnBars: TypeAlias = tuple[Column, Bars]
Results: TypeAlias = Callable[[Hashable, Callable[[], Any]], Any]
MAP_MAX_AGE_SECONDS = 2.0  # a younger map is served even if the study has changed
CACHE_SIZE = 6  # files, plans and maps per cache
CHOICE_CACHE_SIZE = 200  # studies in the list whose choice is cached
COLUMN_CACHE_SIZE = 60  # columns, read with the codes for missing values that the user tries
MAX_METHODS = 20_000  # reading a plan creates an object for each
MAX_CANDIDATES = 1_000_000


def make_cache(size: int = CACHE_SIZE) -> Results:
    """Return a function of a key and a maker that caches results; the least recently used are dropped first.

    Threads that ask for the same key wait for the first of them.
    """
    keep = cached(LRUCache(size), key=lambda key, make: key, condition=threading.Condition())
    return keep(lambda key, make: make())


class IdentifyingResult(NamedTuple):
    """The most identifying columns of a file, and the columns that this was computed from."""

    columns: list[Column]
    sets: IdentifyingSets
    pairs: UniquenessByPair


@dataclass
class CachedMap:
    """A map as JSON, when it was computed, and the version of the study that it shows."""

    body: bytes
    computed_at: float
    state: Hashable


@dataclass
class Views:
    """The caches of a workspace."""

    workspace: Workspace
    _data: Results = field(default_factory=make_cache)
    _choices: Results = field(default_factory=lambda: make_cache(CHOICE_CACHE_SIZE))
    _costs: Results = field(default_factory=make_cache)
    _columns: Results = field(default_factory=lambda: make_cache(COLUMN_CACHE_SIZE))
    _looks: LRUCache[Hashable, Look] = field(default_factory=lambda: LRUCache(CACHE_SIZE))
    _identifying: LRUCache[Hashable, IdentifyingResult] = field(default_factory=lambda: LRUCache(CACHE_SIZE))
    _bars: LRUCache[Hashable, dict[str, ColumnBars]] = field(default_factory=lambda: LRUCache(CACHE_SIZE))
    _maps: dict[Hashable, CachedMap] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _busy: dict[Hashable, threading.Lock] = field(default_factory=dict)

    # ---- plans and data ---------------------------------------------------------------------------------------
    def plan(self, text: str) -> Plan:
        """Return the plan in a TOML text; it must not be too large, and may only name files of the workspace."""
        # Count the candidates before the plan is built: a grid of a few lines can stand for millions of methods.
        table = expand(read_table(text), [])
        methods = table.get("methods", [])
        listed = methods if isinstance(methods, list) else []
        count = sum(count_members(method) for method in listed if isinstance(method, dict))
        if count > MAX_METHODS:
            raise PlanError(f"the workbench accepts at most {MAX_METHODS:,} methods in a plan; this one has more.")
        replicates = table.get("replicates", 1)
        if isinstance(replicates, int) and count * replicates > MAX_CANDIDATES:
            raise PlanError(
                f"the workbench accepts at most {MAX_CANDIDATES:,} candidates in a plan; this one has more."
            )
        with restrict_files_to(self.workspace.folder):
            plan = Plan.from_toml(text)
        if plan.data is not None and (
            plan.data.ddi or plan.data.within
        ):  # these paths are not confined to the workspace
            raise PlanError("the workbench cannot read codebooks or other studies. Run this plan with `sdcmap sweep`.")
        return plan

    def plan_of(self, study: str) -> Plan:
        """Return the saved plan of a study."""
        return self.plan(self.workspace.plan(study).read_text(encoding="utf-8"))

    def data(self, source: Source) -> Microdata:
        """Return the file that a plan names, with its roles. The file is read once, whatever roles are stated."""
        # The roles are applied last, so that a change of roles does not read the file again.
        path, state = self._file(source)
        there = replace(source, path=str(path))
        coded: Microdata = self._data((there.without_roles, state), there.without_roles.read)
        if source.missing:
            coded = self._data(
                (there.without_roles, there.missing, state), partial(self._apply_missing_codes, there, coded, state)
            )
        data: Microdata = self._data((source, state), lambda: source.apply_to(coded))
        return data

    def _apply_missing_codes(self, source: Source, base: Microdata, state: Hashable) -> Microdata:
        """Return a file with the stated codes for missing values; only the columns with codes are read again."""
        codes = parse_codes(source.missing)
        check_columns(codes, base.names)
        coded = {
            name: self._columns((source.without_roles, state, name, own), partial(source.read_coded_column, base, name))
            for name in base.names
            if (own := codes_for_column(codes, name))
        }
        variables = tuple(coded[v.name][0] if v.name in coded else v for v in base.schema.variables)
        columns = {**base.columns, **{name: column for name, (_, column) in coded.items()}}
        data = Microdata(replace(base.schema, variables=variables), columns)
        data.take_views(base, (encode,))
        return data

    def look(self, source: Source) -> Look:
        """Return a first look at a file with its roles; counts that do not change are reused."""
        data = self.data(source)

        def make(before: Look | None) -> Look:
            return before if before is not None and before.data is data else look(data, before, identifying=False)

        return self._update(self._looks, source, make)

    def identifying_columns(self, source: Source) -> IdentifyingResult:
        """Return the most identifying columns of a file, in sets and pairs; recomputed only if a column has changed."""
        data, released = self.data(source), self.look(source).released
        columns = [data.column(name) for name in released]

        def make(before: IdentifyingResult | None) -> IdentifyingResult:
            pairs = count_unique_by_pair(data, released, None if before is None else before.pairs)
            # Equal objects mean equal columns: only the pairs may depend on the roles.
            if before is not None and [*map(id, before.columns)] == [*map(id, columns)]:
                return before._replace(pairs=pairs)
            return IdentifyingResult(columns, find_identifying_sets(data, released), pairs)

        return self._update(self._identifying, source, make)

    def bars(self, source: Source) -> dict[str, Bars]:
        """Return the distribution of each column; columns that did not change are reused."""
        data = self.data(source)

        def make(before: dict[str, ColumnBars] | None) -> dict[str, ColumnBars]:
            columns = {name: (data.column(name), (before or {}).get(name)) for name in data.names}
            return {
                name: old if old is not None and old[0] is column else (column, summarize_column(data, name))
                for name, (column, old) in columns.items()
            }

        return {name: bars for name, (_, bars) in self._update(self._bars, source, make).items()}

    def _update(self, cache: LRUCache[Hashable, T], source: Source, make: Callable[[T | None], T]) -> T:
        """Compute a result from the cached result for this file, if there is one, and cache it instead."""
        key = self._file(source)
        with self._lock:
            before = cache.get(key)
        result = make(before)
        with self._lock:
            cache[key] = result
        return result

    def _file(self, source: Source) -> tuple[Path, Hashable]:
        """Return the path of a file and its version."""
        path = self.workspace.file(source.path)
        return path, _file_version(path)

    def data_of(self, plan: Plan, study: str = "") -> Microdata:
        """Return the data of a plan: the study's own copy if it has the same source, else the file."""
        if study and self.workspace.is_begun(study):
            swept, data = self.study_data(study)
            if plan.data is None or plan.data == swept.data:
                return data
        if plan.data is None:
            raise PlanError("the plan names no data. Add a [data] part with path and roles.")
        return self.data(plan.data)

    def cost(self, text: str, study: str = "") -> tuple[Plan, Microdata, Cost]:
        """Return a plan with its risk measures, its data, and the cost of its sweep."""
        written = self.plan(text)
        data = self.data_of(written, study)
        plan = written.with_risk(data)
        if problems := plan.problems_with(data):
            raise PlanError(problems)
        return plan, data, self._costs((text, data.digest), lambda: estimate_cost(data, plan))

    # ---- studies ----------------------------------------------------------------------------------------------
    def study(self, name: str) -> Study:
        """Open a study for reading; the caller closes it."""
        return Study.open(self.workspace.study(name))

    def study_data(self, name: str) -> tuple[Plan, Microdata]:
        """Return the plan of a study with its seed, and its data, cached."""
        with self.study(name) as opened:
            return opened.plan, self._data(("study", name, opened.manifest["data"]), lambda: opened.data)

    def remake(self, name: str, candidate: str) -> tuple[Plan, Microdata, Microdata]:
        """Return the plan, the data, and one candidate created again."""
        plan, data = self.study_data(name)
        key = ("masked", name, data.digest, plan.seed, plan.find(candidate).id)
        return plan, data, self._data(key, lambda: plan.make(data, candidate))

    def map(self, name: str, risk: tuple[str, ...] = (), utility: str = "") -> tuple[RUMap, Plan]:
        """Return the map of a study on these axes, by default its plan's."""
        with self.study(name) as opened:
            return open_map(opened, risk, utility), opened.plan

    def choice_name(self, name: str) -> str:
        """Return the name of what a study's rule chooses, cached until the study changes; empty: nothing yet."""
        if not self.workspace.is_begun(name):
            return ""
        study = self.workspace.study(name)

        def make() -> str:
            try:
                choice = own_choice(study)
            except SdcmapError:
                return ""
            return "" if choice is None else choice.name or "release nothing"

        words: str = self._choices((name, _study_version(study)), make)
        return words

    def forget(self, name: str) -> None:
        """Drop the cached maps of a study that was renamed or deleted: another study may get its name."""
        with self._lock:
            for key in [key for key in self._maps if isinstance(key, tuple) and key[0] == name]:
                del self._maps[key]

    def map_json(self, name: str, risk: tuple[str, ...], utility: str, limits: Mapping[str, float] | None) -> bytes:
        """Return the map as JSON; an outdated one while another thread computes the new one."""
        key = (name, risk, utility, None if limits is None else tuple(sorted(limits.items())))
        state = _study_version(self.workspace.study(name))
        now = time.monotonic()
        # One thread computes a map; the others get the last one, or wait if there is none.
        with self._lock:
            cached_map = self._maps.get(key)
            busy = self._busy.setdefault(key, threading.Lock())
        is_young = cached_map is not None and now - cached_map.computed_at < MAP_MAX_AGE_SECONDS
        if cached_map and (cached_map.state == state or is_young or not busy.acquire(blocking=False)):
            return cached_map.body
        if cached_map is None:
            busy.acquire()
        try:
            if cached_map is None and (newer := self._maps.get(key)):
                return newer.body
            with self.study(name) as opened:
                response = map_response(open_map(opened, risk, utility, limits), opened.plan, opened.proposals())
            body = TypeAdapter(Map).dump_json(response)
            with self._lock:
                while len(self._maps) > 10 * CACHE_SIZE:
                    self._maps.pop(next(iter(self._maps)))
                self._maps[key] = CachedMap(body, time.monotonic(), state)
            return body
        finally:
            busy.release()


def _study_version(study: Path) -> Hashable:
    """Return a value that changes whenever the study does."""
    return tuple(_file_version(study / name) for name in ("scores.sqlite", "scores.sqlite-wal", "plan.toml"))


def _file_version(file: Path) -> Hashable:
    """Return a value that changes whenever the file does."""
    try:
        facts = file.stat()
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_size


def map_response(ru: RUMap, plan: Plan, proposals: Sequence[Proposal] = ()) -> Map:
    """Return the map in columns: points, means with intervals, anchors, and the axes."""
    from sdcmap.charts.guides import floor_of
    from sdcmap.charts.method_names import groups_of, label_methods, short_names
    from sdcmap.charts.parameter_curves import default_layer

    methods = ru.means["method"].to_list()
    index = {method: number for number, method in enumerate(methods)}
    rows = label_methods(methods, ru.scores)
    families, short, floor = groups_of(rows, "method"), short_names(rows), floor_of(ru)
    eras, era = _generation_spans(plan, proposals, methods)
    measures = ru.scores.measure.select("name", "axis", "unit", "direction").iter_rows()
    curves = _curves(ru, index)
    layers = ("release", "mean", "curve") if curves else ("release", "mean")
    return Map(
        risk=ru.risk,
        utility=ru.utility,
        limits=ru.scales,
        measure_limits={name: limit for name, limit in ru.limits_by_name.items() if not math.isnan(limit)},
        labels=ru.labels,
        signs=ru.signs,
        expectation=ru.is_expectation,
        nothing=ru.nothing,
        floor=None if floor is None else Floor(*floor),
        methods=methods,
        names=[ru.scores.name_of(method) for method in methods],
        short=[short[method] for method in methods],
        families=[families[method] for method in methods],
        eras=eras,
        era=era,
        layer=default_layer(ru),
        axes={by: _axes(ru, by, plan.rule) for by in layers},
        curves=curves,
        points=Points(**_columns(ru, ru.points), method=[index[method] for method in ru.points["method"]]),
        means=Means(**_columns(ru, ru.means)),
        measures=[_describe_measure(ru, *row) for row in measures],
        rule=None if plan.rule is None else plan.rule.spec(),
        total=plan.count,
        empty_axes=_explain_empty_axes(ru),
    )


def _axes(ru: RUMap, by: str, rule: Rule | None) -> MapAxes:
    from sdcmap.charts.map_contents import map_axes

    x, y = map_axes(ru, by, rule)
    return MapAxes((x.low, x.high), (y.low, y.high), y.is_log, y.title)


def _curves(ru: RUMap, index: Mapping[str, int]) -> list[MapCurve]:
    """Return the lines of the map of curves, in the order of their key."""
    from sdcmap.charts.parameter_curves import curve_points, line_looks

    if not ru.families():
        return []
    points = curve_points(ru)
    curves = []
    for name, style in line_looks(points).items():
        line = points.filter(group=name)
        risk, utility, risk_se, utility_se = (
            line[column].to_list() for column in ("risk", "utility", "risk_se", "utility_se")
        )
        methods = [index[method] for method in line["method"]]
        parameter, measure = line["parameter"][0], line["measure"][0]
        values = methods, line["short"].to_list(), risk, utility, risk_se, utility_se
        curves.append(MapCurve(name, parameter, measure, style.color, style.shape, style.dash, *values))
    return curves


def _describe_measure(ru: RUMap, name: str, axis: Literal["risk", "utility"], unit: str, direction: Any) -> MapMeasure:
    measure = ru.scores.values.get(name)
    description = "" if measure is None else measure.description
    return MapMeasure(name, ru.scores.title_of(name), description, axis, unit, direction)


def measures_on(ru: RUMap, axis: str) -> list[str]:
    """Return the names of a study's risk or utility measures."""
    return ru.scores.measure.filter(ru.scores.measure["axis"] == axis)["name"].to_list()


def _columns(ru: RUMap, rows: pl.DataFrame) -> dict[str, Any]:
    """Return points or means in columns, and whether each is within the limits."""
    columns = {name: rows[name].to_list() for name in rows.columns if name != "method"}
    levels = {name: _limit_levels(ru, name, rows) for name in ru.scores.measure["name"]}
    return columns | {"within": ru.eligible(rows).tolist(), "levels": levels}


def _limit_levels(ru: RUMap, measure: str, rows: pl.DataFrame) -> list[float]:
    """Return the value of each row that a limit on a measure is compared with; if not tested, one that meets any limit."""
    column = ru.compare_limit(Limit(ru.scores.measure_named(measure), 1.0), rows)
    # The page compares these values with any limit that the user tries, so "not tested" must be within all of them.
    best = 0.0 if column.limit.is_upper else sys.float_info.max
    return [*map(float, np.where(column.applies, column.end, best))]


def _generation_spans(
    plan: Plan, proposals: Sequence[Proposal], methods: Sequence[str]
) -> tuple[list[str], list[int | None]]:
    """Return the spans of generations of a search in order, and the index of each method's span; none without a search."""
    from sdcmap.searches.search_review import name_generations

    if not proposals:
        return [], []
    generations = {
        row.method_value.text: row.generation for row in reversed(proposals)
    }  # of several searches, the first
    generations |= dict.fromkeys((method.text for method in plan.with_searched_methods(()).all_methods), 0)
    words = name_generations({method: number for method, number in generations.items() if method in set(methods)})
    order = list(dict.fromkeys(words.values()))
    return order, [order.index(words[method]) if method in words else None for method in methods]


def _explain_empty_axes(ru: RUMap) -> list[str]:
    """Return why an axis has no values, if so."""
    scores = ru.scores
    if not len(scores.candidate.filter(scores.candidate["status"] == "ok")):
        return ["No candidate has been scored yet."]
    reasons_by_axis = []
    for name in dict.fromkeys((*ru.risk, ru.utility)):
        if not len(scores.column(name)):
            reasons = scores.score.filter((scores.score["measure"] == name) & (scores.score["reason"] != ""))["reason"]
            why = str(reasons[0]) if len(reasons) else "it has not been measured yet. Start the sweep."
            reasons_by_axis.append(f"{name} has no value for any candidate: {why}")
    return reasons_by_axis
