"""What is asked again and again, made once: data, masked files, and maps, which are served while they are made anew."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import polars as pl
from cachetools import LRUCache, cached
from pydantic import TypeAdapter

from sdcmap.core import Column, Microdata, PlanError, SdcmapError
from sdcmap.core.grid import count_members
from sdcmap.core.limit import Limit
from sdcmap.core.named_files import restrict_files_to
from sdcmap.core.plan_text import read_table
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
from sdcmap.study.search_settings import Proposal
from sdcmap.web.models import Floor, Map, MapAxes, MapMeasure, Means, Points
from sdcmap.web.workspace import Workspace
from sdcmap.workflow import open_map, own_choice

T = TypeVar("T")
ColumnBars: TypeAlias = tuple[Column, Bars]
Results: TypeAlias = Callable[[Hashable, Callable[[], Any]], Any]
FRESH_SECONDS = 2.0  # a map that is this young is not made again
KEPT = 6  # files and maps that are kept
MOST_CHOICES = 200  # of studies in the list
COLUMNS = 60  # columns that are kept with the codes for missing values that were tried on them
MOST_METHODS = 20_000  # reading a plan makes each of them once
MOST_CANDIDATES = 1_000_000


def few_results(size: int = KEPT) -> Results:
    """Return a function of a key and a maker: it keeps a few results, and the least used are forgotten first.

    Threads that ask for one key wait for the first of them.
    """
    keep = cached(LRUCache(size), key=lambda key, make: key, condition=threading.Condition())
    return keep(lambda key, make: make())


class Told(NamedTuple):
    """Which columns of a file tell the most, and the columns that this was counted of."""

    columns: list[Column]
    sets: IdentifyingSets
    pairs: UniquenessByPair


@dataclass
class Fresh:
    """A result with its age and the state of the study it was made from."""

    body: bytes
    made: float
    state: Hashable


@dataclass
class Views:
    """The views of a room."""

    room: Workspace
    _data: Results = field(default_factory=few_results)
    _choices: Results = field(default_factory=lambda: few_results(MOST_CHOICES))
    _costs: Results = field(default_factory=few_results)
    _columns: Results = field(default_factory=lambda: few_results(COLUMNS))
    _looks: LRUCache[Hashable, Look] = field(default_factory=lambda: LRUCache(KEPT))
    _told: LRUCache[Hashable, Told] = field(default_factory=lambda: LRUCache(KEPT))
    _bars: LRUCache[Hashable, dict[str, ColumnBars]] = field(default_factory=lambda: LRUCache(KEPT))
    _maps: dict[Hashable, Fresh] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _busy: dict[Hashable, threading.Lock] = field(default_factory=dict)

    # ---- plans and data ---------------------------------------------------------------------------------------
    def plan(self, text: str) -> Plan:
        """The plan in a TOML text; one that is endless is refused unread, and files outside the room are not there."""
        table = read_table(text)
        methods = table.get("methods", [])
        listed = methods if isinstance(methods, list) else []
        count = sum(count_members(method) for method in listed if isinstance(method, dict))
        if count > MOST_METHODS:
            raise PlanError(f"a plan of the workbench has at most {MOST_METHODS:,} methods; this one has more.")
        replicates = table.get("replicates", 1)
        if isinstance(replicates, int) and count * replicates > MOST_CANDIDATES:
            raise PlanError(f"a plan of the workbench has at most {MOST_CANDIDATES:,} candidates; this one has more.")
        with restrict_files_to(self.room.folder):
            plan = Plan.from_toml(text)
        if plan.data is not None and (plan.data.ddi or plan.data.within):  # paths that nothing here holds to the room
            raise PlanError("the workbench reads no codebook and no other study: sweep such a plan by `sdcmap sweep`.")
        return plan

    def plan_of(self, study: str) -> Plan:
        """The plan of a study, as it is saved."""
        return self.plan(self.room.plan(study).read_text(encoding="utf-8"))

    def data(self, source: Source) -> Microdata:
        """The file that a plan names, below the room, with its roles; it is read once, whatever is stated of it."""
        path, state = self._file(source)
        there = replace(source, path=str(path))
        coded: Microdata = self._data((there.without_roles, state), there.without_roles.read)
        if source.missing:
            coded = self._data((there.without_roles, there.missing, state), partial(self._coded, there, coded, state))
        data: Microdata = self._data((source, state), lambda: source.apply_to(coded))
        return data

    def _coded(self, source: Source, base: Microdata, state: Hashable) -> Microdata:
        """A file that was read, with the codes for missing values that are stated: each column of them is read once."""
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
        """A look at a file with its roles; what an earlier one counted is not counted again."""
        data = self.data(source)

        def make(before: Look | None) -> Look:
            return before if before is not None and before.data is data else look(data, before, identifying=False)

        return self._latest(self._looks, source, make)

    def telling(self, source: Source) -> Told:
        """Which columns of a file tell the most, in sets and in pairs; counted anew where a column is another."""
        data, released = self.data(source), self.look(source).released
        columns = [data.column(name) for name in released]

        def make(before: Told | None) -> Told:
            pairs = count_unique_by_pair(data, released, None if before is None else before.pairs)
            if before is not None and [*map(id, before.columns)] == [*map(id, columns)]:
                return before._replace(pairs=pairs)
            return Told(columns, find_identifying_sets(data, released), pairs)

        return self._latest(self._told, source, make)

    def bars(self, source: Source) -> dict[str, Bars]:
        """How the values of each column are spread; of columns that were counted before, as they were."""
        data = self.data(source)

        def make(before: dict[str, ColumnBars] | None) -> dict[str, ColumnBars]:
            made = {name: (data.column(name), (before or {}).get(name)) for name in data.names}
            return {
                name: kept if kept is not None and kept[0] is column else (column, summarize_column(data, name))
                for name, (column, kept) in made.items()
            }

        return {name: bars for name, (_, bars) in self._latest(self._bars, source, make).items()}

    def _latest(self, kept: LRUCache[Hashable, T], source: Source, make: Callable[[T | None], T]) -> T:
        """What is made of what was kept of this file before, whose place it takes."""
        key = self._file(source)
        with self._lock:
            before = kept.get(key)
        made = make(before)
        with self._lock:
            kept[key] = made
        return made

    def _file(self, source: Source) -> tuple[Path, Hashable]:
        """Where a file lies, and what changes whenever it does."""
        path = self.room.file(source.path)
        return path, _stamp(path)

    def data_of(self, plan: Plan, study: str = "") -> Microdata:
        """The data of a plan: the study's own copy where it was made from the same source, else the file."""
        if study and self.room.is_begun(study):
            swept, data = self.study_data(study)
            if plan.data is None or plan.data == swept.data:
                return data
        if plan.data is None:
            raise PlanError("the plan names no data: add a [data] part with path and roles.")
        return self.data(plan.data)

    def cost(self, text: str, study: str = "") -> tuple[Plan, Microdata, Cost]:
        """A plan with its risk measures, its data, and what a sweep of it costs."""
        written = self.plan(text)
        data = self.data_of(written, study)
        plan = written.with_risk(data)
        if problems := plan.problems_with(data):
            raise PlanError(problems)
        return plan, data, self._costs((text, data.digest), lambda: estimate_cost(data, plan))

    # ---- studies ----------------------------------------------------------------------------------------------
    def study(self, name: str) -> Study:
        """A study opened for reading; close its connection."""
        return Study.open(self.room.study(name))

    def study_data(self, name: str) -> tuple[Plan, Microdata]:
        """The plan of a study with its seed, and its data, kept."""
        with self.study(name) as opened:
            return opened.plan, self._data(("study", name, opened.manifest["data"]), lambda: opened.data)

    def masked(self, name: str, candidate: str) -> tuple[Plan, Microdata, Microdata]:
        """The plan, the data and one candidate made again."""
        plan, data = self.study_data(name)
        key = ("masked", name, data.digest, plan.seed, plan.find(candidate).id)
        return plan, data, self._data(key, lambda: plan.make(data, candidate))

    def map(self, name: str, risk: tuple[str, ...] = (), utility: str = "") -> tuple[RUMap, Plan]:
        """The map of a study on these axes, by default its plan's."""
        with self.study(name) as opened:
            return open_map(opened, risk, utility), opened.plan

    def choice_words(self, name: str) -> str:
        """What the rule of a study chooses, in words, kept until the study changes; empty: nothing can be chosen yet."""
        if not self.room.is_begun(name):
            return ""
        study = self.room.study(name)

        def make() -> str:
            try:
                choice = own_choice(study)
            except SdcmapError:
                return ""
            return "" if choice is None else choice.name or "release nothing"

        words: str = self._choices((name, _state(study)), make)
        return words

    def forget(self, name: str) -> None:
        """Drop the maps of a study whose name may soon be another's."""
        with self._lock:
            for key in [key for key in self._maps if isinstance(key, tuple) and key[0] == name]:
                del self._maps[key]

    def map_json(self, name: str, risk: tuple[str, ...], utility: str, limits: Mapping[str, float] | None) -> bytes:
        """The map as JSON. One that is older than the study is still given while one thread makes it anew."""
        key = (name, risk, utility, None if limits is None else tuple(sorted(limits.items())))
        state = _state(self.room.study(name))
        now = time.monotonic()
        with self._lock:
            kept = self._maps.get(key)
            busy = self._busy.setdefault(key, threading.Lock())
        if kept and (kept.state == state or now - kept.made < FRESH_SECONDS or not busy.acquire(blocking=False)):
            return kept.body
        if kept is None:
            busy.acquire()
        try:
            if kept is None and (again := self._maps.get(key)):
                return again.body
            with self.study(name) as opened:
                told = map_told(open_map(opened, risk, utility, limits), opened.plan, opened.proposals())
            body = TypeAdapter(Map).dump_json(told)
            with self._lock:
                while len(self._maps) > 10 * KEPT:
                    self._maps.pop(next(iter(self._maps)))
                self._maps[key] = Fresh(body, time.monotonic(), state)
            return body
        finally:
            busy.release()


def _state(study: Path) -> Hashable:
    """Changes whenever the study does."""
    return tuple(_stamp(study / name) for name in ("scores.sqlite", "scores.sqlite-wal", "plan.toml"))


def _stamp(file: Path) -> Hashable:
    """Changes whenever the file does."""
    try:
        facts = file.stat()
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_size


def map_told(ru: RUMap, plan: Plan, proposals: Sequence[Proposal] = ()) -> Map:
    """The map in columns: points, means with their bands, anchors, and what the axes are."""
    from sdcmap.charts.guides import floor_of
    from sdcmap.charts.map_contents import map_axes
    from sdcmap.charts.method_names import groups_of, labeled, short_names

    methods = ru.means["method"].to_list()
    place = {method: number for number, method in enumerate(methods)}
    rows = labeled(methods, ru.scores)
    families, short, floor = groups_of(rows, "method"), short_names(rows), floor_of(ru)
    eras, era = _eras(plan, proposals, methods)
    measures = ru.scores.measure.select("name", "axis", "unit", "direction").iter_rows()
    return Map(
        risk=ru.risk, utility=ru.utility, limits=ru.scales, held=ru.limits_by_name, labels=ru.labels, signs=ru.signs,
        expectation=ru.is_expectation, nothing=ru.nothing, floor=None if floor is None else Floor(*floor),
        methods=methods, names=[ru.scores.name_of(method) for method in methods],
        short=[short[method] for method in methods], families=[families[method] for method in methods],
        eras=eras, era=era,
        axes={by: MapAxes(**map_axes(ru, by, plan.rule)) for by in ("release", "mean")},
        points=Points(**_columns(ru, ru.points), method=[place[method] for method in ru.points["method"]]),
        means=Means(**_columns(ru, ru.means)), measures=[MapMeasure(*row) for row in measures],
        rule=None if plan.rule is None else plan.rule.spec(), total=plan.count, silent=_silent(ru),
    )  # fmt: skip


def measures_on(ru: RUMap, axis: str) -> list[str]:
    """The names of a study's measures of risk, or of utility."""
    return ru.scores.measure.filter(ru.scores.measure["axis"] == axis)["name"].to_list()


def _columns(ru: RUMap, rows: pl.DataFrame) -> dict[str, Any]:
    """Points or means, and how each stands to limits."""
    columns = {name: rows[name].to_list() for name in rows.columns if name != "method"}
    levels = {name: _compared(ru, name, rows) for name in measures_on(ru, "risk")}
    return columns | {"within": ru.eligible(rows).tolist(), "levels": levels}


def _compared(ru: RUMap, measure: str, rows: pl.DataFrame) -> list[float]:
    """What a limit on a measure is compared with, of each row; where it is not tested, a value that meets any limit."""
    column = ru.compare_limit(Limit(ru.scores.measure_named(measure), 1.0), rows)
    best = 0.0 if column.limit.is_upper else sys.float_info.max
    return [*map(float, np.where(column.applies, column.end, best))]


def _eras(plan: Plan, proposals: Sequence[Proposal], methods: Sequence[str]) -> tuple[list[str], list[int | None]]:
    """Spans of generations of a search in order, and the place of each method among them; none without a search."""
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


def _silent(ru: RUMap) -> list[str]:
    """Why an axis has no values, where it has none."""
    scores = ru.scores
    if not len(scores.candidate.filter(scores.candidate["status"] == "ok")):
        return ["No candidate has been made and scored yet."]
    told = []
    for name in dict.fromkeys((*ru.risk, ru.utility)):
        if not len(scores.column(name)):
            reasons = scores.score.filter((scores.score["measure"] == name) & (scores.score["reason"] != ""))["reason"]
            why = str(reasons[0]) if len(reasons) else "it has not been measured yet: start the sweep."
            told.append(f"{name} has no value for any candidate: {why}")
    return told
