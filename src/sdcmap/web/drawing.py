"""Pictures, reports and the charts' JavaScript, made in a process of their own: vl-convert lets no other thread run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdcmap.core.named_files import files_below
from sdcmap.core.vega_script import kept_script, vega_script
from sdcmap.errors import SdcmapError

if TYPE_CHECKING:
    from sdcmap.core.rule import Choice
    from sdcmap.study.folder import Study


@dataclass
class Drawing:
    """One worker process that draws, started when it is first needed; it ends with the server."""

    _pool: Executor | None = None
    _vega: bytes = b""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _vega_lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, make: Callable[..., Any], *given: Any) -> Any:
        """`make(*given)` in the worker."""
        from sdcmap.study.engines import make_executor

        with self._lock:
            self._pool = self._pool or make_executor("processes", 1)
            pool = self._pool
        try:
            return pool.submit(make, *given).result()
        except (BrokenExecutor, RuntimeError) as error:
            with self._lock:
                self._pool = None
            if isinstance(error, BrokenExecutor):
                raise SdcmapError("the process that draws has ended; ask again.") from None
            raise

    def vega(self) -> bytes:
        """The charts' JavaScript, made by the worker where no earlier run has kept it."""
        with self._vega_lock:
            self._vega = self._vega or (kept_script() or self.run(vega_script)).encode()
        return self._vega

    def close(self) -> None:
        """End the worker."""
        from sdcmap.study.engines import stop

        with self._lock:
            if self._pool is not None:
                stop(self._pool)
            self._pool = None


def make_picture(folder: Path, name: str, form: str, risk: tuple[str, ...], utility: str, by: str) -> bytes:
    """The map of a study as PNG or SVG, with the choice of the plan's rule on the plan's axes."""
    from sdcmap.web.room import Room
    from sdcmap.web.views import Views

    with files_below(folder):
        ru, plan = Views(Room(folder)).map(name, risk, utility)
    chart = ru.draw(mark=ru.choose(plan.rule) if plan.rule is not None and not risk else None, by=by or None)
    made: bytes = chart.png() if form == "png" else chart.svg().encode()
    return made


def make_report(study: Path, audience: str, candidate: str = "", reason: str = "") -> bytes:
    """The report of a study as one page: of what its rule chooses, or of a candidate that a person picked."""
    from sdcmap.dossier import report
    from sdcmap.study.folder import Study

    with files_below(study.parent), Study.open(study) as opened:
        choice = picked(opened, candidate, reason) if candidate else None
        return report(opened, choice, audience=audience).html.encode()


def picked(study: Study, candidate: str, reason: str) -> Choice:
    """The choice of a person, with the reason that was given; where the plan's rule chooses the same, it is the rule's."""
    from sdcmap.core.rule import Choice, Rule
    from sdcmap.map import RUMap

    plan = study.plan
    made = plan.find(candidate)
    ru = RUMap(study.scores(plan), plan.risk, plan.utility, plan.limits)
    by_rule = None if plan.rule is None else ru.choose(plan.rule)
    if by_rule is not None and by_rule.candidate == made.id:
        return by_rule
    row = ru.points.filter(ru.points["id"] == made.id)
    if not len(row):
        raise SdcmapError("that candidate has no score on the axes of the plan.")
    name = plan.name_of(made)
    words = f"{name} was picked by a person{f': {reason}' if reason else ', who stated no reason.'}"
    return Choice(
        made.id, made.method.text, made.replicate, row["risk"][0], row["utility"][0], Rule(), words,
        searched=plan.draws_of(made.method), name=name,
    )  # fmt: skip
