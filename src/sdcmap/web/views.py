"""What is asked again and again, made once: data, masked files, and maps, which are served while they are made anew."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdcmap.core.limits import read_table
from sdcmap.core.named_files import files_below
from sdcmap.errors import PlanError
from sdcmap.web import models
from sdcmap.web.models import told
from sdcmap.web.room import Room

if TYPE_CHECKING:
    from sdcmap.data.microdata import Microdata
    from sdcmap.explore.looking import Look
    from sdcmap.files.reading import Source
    from sdcmap.map import RUMap
    from sdcmap.study.folder import Study
    from sdcmap.study.plan import Plan

FRESH_SECONDS = 2.0  # a map that is this young is not made again
KEPT = 6  # files and maps that are kept
MOST_METHODS = 20_000  # reading a plan makes each of them once
MOST_CANDIDATES = 1_000_000


@dataclass
class Kept:
    """A few results, the least used forgotten first; one thread at a time makes each."""

    size: int = KEPT
    _found: OrderedDict[Hashable, Any] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _making: dict[Hashable, threading.Lock] = field(default_factory=dict)

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                return self._found[key]
            making = self._making.setdefault(key, threading.Lock())
        with making:
            if key not in self._found:
                made = make()
                with self._lock:
                    self._found[key] = made
                    while len(self._found) > self.size:
                        self._found.popitem(last=False)
                    self._making.pop(key, None)
                return made
            return self._found[key]


@dataclass
class Fresh:
    """A result with its age and the state of the study it was made from."""

    body: bytes
    made: float
    state: Hashable


@dataclass
class Views:
    """The views of a room."""

    room: Room
    _data: Kept = field(default_factory=Kept)
    _looks: dict[Hashable, Look] = field(default_factory=dict)
    _maps: dict[Hashable, Fresh] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _busy: dict[Hashable, threading.Lock] = field(default_factory=dict)

    # ---- plans and data ---------------------------------------------------------------------------------------
    def plan(self, text: str) -> Plan:
        """The plan in a TOML text; one that is endless is refused unread, and files outside the room are not there."""
        from sdcmap.core.grid import members_of
        from sdcmap.study.plan import Plan

        table = read_table(text)
        methods = table.get("methods", [])
        count = (
            sum(members_of(method) for method in methods if isinstance(method, dict))
            if isinstance(methods, list)
            else 0
        )
        if count > MOST_METHODS:
            raise PlanError(f"a plan of the workbench has at most {MOST_METHODS:,} methods; this one has more.")
        replicates = table.get("replicates", 1)
        if isinstance(replicates, int) and count * replicates > MOST_CANDIDATES:
            raise PlanError(f"a plan of the workbench has at most {MOST_CANDIDATES:,} candidates; this one has more.")
        with files_below(self.room.folder):
            plan = Plan.from_toml(text)
        if plan.data is not None and (plan.data.ddi or plan.data.within):  # paths that nothing here holds to the room
            raise PlanError("the workbench reads no codebook and no other study: sweep such a plan by `sdcmap sweep`.")
        return plan

    def data(self, source: Source) -> Microdata:
        """The file that a plan names, below the room, with its roles; it is read once, whatever is stated of it."""
        from dataclasses import replace

        path, state = self._file(source)
        plain = replace(source, path=str(path)).unstated
        base: Microdata = self._data.get((plain, state), plain.read)
        data: Microdata = self._data.get((source, state), lambda: source.applied(base))
        return data

    def look(self, source: Source) -> Look:
        """A look at a file with its roles; what an earlier one counted is not counted again."""
        from sdcmap.explore.looking import look

        key = self._file(source)
        seen = look(self.data(source), self._looks.get(key))
        with self._lock:
            self._looks.pop(key, None)
            self._looks[key] = seen
            while len(self._looks) > KEPT:
                self._looks.pop(next(iter(self._looks)))
        return seen

    def _file(self, source: Source) -> tuple[Path, Hashable]:
        """Where a file lies, and what changes whenever it does."""
        path = self.room.file(source.path)
        facts = path.stat()
        return path, (facts.st_mtime_ns, facts.st_size)

    def data_of(self, plan: Plan, study: str = "") -> Microdata:
        """The data of a plan: the study's own copy where it was made from the same source, else the file."""
        if study and self.room.is_begun(study):
            swept, data = self.study_data(study)
            if plan.data is None or plan.data == swept.data:
                return data
        if plan.data is None:
            raise PlanError("the plan names no data: add a [data] part with path and roles.")
        return self.data(plan.data)

    # ---- studies ----------------------------------------------------------------------------------------------
    def study(self, name: str) -> Study:
        """A study opened for reading; close its connection."""
        from sdcmap.study.folder import Study

        return Study.open(self.room.study(name))

    def study_data(self, name: str) -> tuple[Plan, Microdata]:
        """The plan of a study with its seed, and its data, kept."""
        with self.study(name) as opened:
            digest = opened.manifest["data"]
            return opened.plan, self._data.get(("study", name, digest), lambda: opened.data)

    def masked(self, name: str, candidate: str) -> tuple[Microdata, Microdata]:
        """The data and one candidate made again."""
        plan, data = self.study_data(name)
        key = ("masked", name, data.digest, plan.seed, plan.find(candidate).id)
        return data, self._data.get(key, lambda: plan.make(data, candidate))

    def map(self, name: str, risk: tuple[str, ...] = (), utility: str = "") -> tuple[RUMap, Plan]:
        """The map of a study on these axes, by default its plan's."""
        from contextlib import closing

        from sdcmap.map import RUMap

        opened = self.study(name)
        with closing(opened.connection):
            plan = opened.plan
            scores = opened.scores(plan)
        if not (risk or plan.risk) or not (utility or plan.utility):
            raise PlanError("a map needs a risk measure and a utility measure in the plan.")
        return RUMap(scores, risk or plan.risk, utility or plan.utility, plan.limits_on(risk)), plan

    def map_json(self, name: str, risk: tuple[str, ...], utility: str) -> bytes:
        """The map as JSON. One that is older than the study is still given while one thread makes it anew."""
        key = (name, risk, utility)
        state = _state(self.room.study(name))
        now = time.monotonic()
        with self._lock:
            kept = self._maps.get(key)
            busy = self._busy.setdefault(key, threading.Lock())
        if kept is not None and (kept.state == state or now - kept.made < FRESH_SECONDS):
            return kept.body
        if kept is not None and not busy.acquire(blocking=False):
            return kept.body
        if kept is None:
            busy.acquire()
        try:
            again = self._maps.get(key)
            if kept is None and again is not None:
                return again.body
            body = told(map_told(*self.map(name, risk, utility))).body
            with self._lock:
                while len(self._maps) > 10 * KEPT:
                    self._maps.pop(next(iter(self._maps)))
                self._maps[key] = Fresh(bytes(body), time.monotonic(), state)
            return bytes(body)
        finally:
            busy.release()


def _state(study: Path) -> Hashable:
    """Changes whenever the study does."""
    marks = []
    for name in ("scores.sqlite", "scores.sqlite-wal", "plan.toml"):
        try:
            facts = (study / name).stat()
            marks.append((facts.st_mtime_ns, facts.st_size))
        except OSError:
            marks.append((0, 0))
    return tuple(marks)


def map_told(ru: RUMap, plan: Plan) -> models.Map:
    """The map in columns: points, means with their bands, anchors, and what the axes are."""
    methods = ru.means["method"].to_list()
    place = {method: number for number, method in enumerate(methods)}
    points = {name: ru.points[name].to_list() for name in ru.points.columns if name != "method"}
    points["method"] = [place[method] for method in ru.points["method"]]
    points["within"] = (ru.limit_shares(ru.points) <= 1).tolist()
    return models.Map.model_validate({
        "risk": list(ru.risk),
        "utility": ru.utility,
        "limits": list(ru.scales),
        "labels": list(ru.labels),
        "signs": list(ru.signs),
        "expectation": ru.is_expectation,
        "nothing": ru.nothing,
        "methods": methods,
        "names": [ru.scores.name_of(method) for method in methods],
        "points": points,
        "means": {name: ru.means[name].to_list() for name in ru.means.columns if name != "method"}
        | {"within": (ru.limit_shares(ru.means) <= 1).tolist()},
        "measures": ru.scores.measure.select("name", "axis", "unit", "direction").to_dicts(),
        "rule": None if plan.rule is None else plan.rule.spec(),
        "total": plan.count,
        "silent": _silent(ru),
    })  # fmt: skip


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
