"""Pictures, reports and the charts' JavaScript, made in a process of their own: vl-convert lets no other thread run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sdcmap.core.named_files import files_below
from sdcmap.errors import SdcmapError


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
        """Vega, Vega-Lite and Vega-Embed from the bundle that vl-convert carries, made once."""
        with self._vega_lock:
            self._vega = self._vega or self.run(make_vega)
        return self._vega

    def close(self) -> None:
        """End the worker."""
        from sdcmap.study.engines import stop

        with self._lock:
            if self._pool is not None:
                stop(self._pool)
            self._pool = None


def make_vega() -> bytes:
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")).encode()


def make_picture(folder: Path, name: str, form: str, risk: tuple[str, ...], utility: str, by: str) -> bytes:
    """The map of a study as PNG or SVG, with the choice of the plan's rule on the plan's axes."""
    from sdcmap.web.room import Room
    from sdcmap.web.views import Views

    with files_below(folder):
        ru, plan = Views(Room(folder)).map(name, risk, utility)
    chart = ru.draw(mark=ru.choose(plan.rule) if plan.rule is not None and not risk else None, by=by or None)
    made: bytes = chart.png() if form == "png" else chart.svg().encode()
    return made


def make_report(study: Path, audience: str) -> bytes:
    """The report of a study as one page."""
    from sdcmap.dossier import report
    from sdcmap.study.folder import Study

    with files_below(study.parent), Study.open(study) as opened:
        return report(opened, audience=audience).html.encode()
