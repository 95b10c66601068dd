"""Pictures, reports and the charts' JavaScript, rendered in a separate process because vl-convert holds the GIL."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sdcmap.core.chart import read_cached_script, vega_script
from sdcmap.core.named_files import restrict_files_to
from sdcmap.errors import SdcmapError


@dataclass
class Renderer:
    """One worker process that renders; it starts with the first task and ends with the server."""

    _pool: Executor | None = None
    _vega: bytes = b""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _vega_lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, make: Callable[..., Any], *arguments: Any) -> Any:
        """Return `make(*arguments)`, computed in the worker."""
        from sdcmap.study.engines import make_executor

        with self._lock:
            self._pool = self._pool or make_executor("processes", 1)
            pool = self._pool
        try:
            return pool.submit(make, *arguments).result()
        except (BrokenExecutor, RuntimeError) as error:
            # A broken pool accepts no more tasks: the next request starts a new one.
            with self._lock:
                self._pool = None
            if isinstance(error, BrokenExecutor):
                raise SdcmapError("the rendering process ended unexpectedly. Try again.") from None
            raise

    def vega(self) -> bytes:
        """Return the charts' JavaScript; the worker creates it unless an earlier run cached it."""
        with self._vega_lock:
            self._vega = self._vega or (read_cached_script() or self.run(vega_script)).encode()
        return self._vega

    def close(self) -> None:
        """End the worker."""
        from sdcmap.study.engines import stop_executor

        with self._lock:
            if self._pool is not None:
                stop_executor(self._pool)
            self._pool = None


def render_map(study: Path, form: str, risk: tuple[str, ...], utility: str, by: str) -> bytes:
    """Return the map of a study as PNG or SVG; the study's choice is marked if the risk axis is the plan's.

    by : a layer of the map, or "all" for small maps of all measures.
    """
    from sdcmap.workflow import open_map, own_choice

    with restrict_files_to(study.parent):
        ru = open_map(study, risk, utility)
        mark = own_choice(study, ru)
        chart = ru.draw_all(mark=mark) if by == "all" else ru.draw(mark=mark, by=by or None)
    return chart.png() if form == "png" else chart.svg().encode()


def render_report(study: Path, audience: str, candidate: str = "", reason: str = "") -> bytes:
    """Return the report of a study as one page, for the rule's choice or for a candidate that a person picked."""
    from sdcmap.workflow import choose, report

    with restrict_files_to(study.parent):
        choice = choose(study, candidate=candidate, reason=reason) if candidate else None
        return report(study, choice, audience=audience).html.encode()
