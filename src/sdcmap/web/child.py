"""The process of one sweep or search: it ends with its server, which holds the other end of its standard input."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import traceback
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sdcmap.web.sweeps import Phase

if TYPE_CHECKING:
    from sdcmap.web.workspace import Workspace


def _end_with_server() -> None:
    """As by Ctrl-C: what is scored is kept. The pipe is read without a buffer, whose lock would be held at the end."""
    with suppress(OSError):
        while os.read(0, 1):
            pass
    if os.name == "posix":
        os.kill(os.getpid(), signal.SIGINT)  # wakes the main thread from any wait
    else:
        _thread.interrupt_main()


class Telling:
    """What the process is at, noted for the server: a phase in words, and how far a search is."""

    def __init__(self, room: Workspace, study: str) -> None:
        self.room, self.study = room, study
        self.said = Phase()
        self.areas: list[float] = []

    def say(self, phase: Phase) -> None:
        if phase != self.said:
            self.said = phase
            self.room.write_note(f"{self.study}.phase", phase)

    def at(self, phase: str) -> None:
        self.say(Phase(phase=phase))

    def swept(self, done: int, total: int) -> None:
        """The study itself tells how far it is."""
        self.at("making and scoring candidates")

    def searched(self, evaluations: int, budget: int, area: float) -> None:
        """Told after each generation, those of an earlier process too."""
        self.areas = [*self.areas, area]
        self.say(Phase(phase="searching", evaluations=evaluations, budget=budget, area=area, areas=self.areas))


def work(plan: Path, study: Path, workers: int, task: str) -> int:
    """Sweep `plan` into `study`, which lies in the served folder, or search from it."""
    for told in (signal.SIGINT, signal.SIGTERM):  # a server in the background of a shell ignores the first
        signal.signal(told, signal.default_int_handler)
    threading.Thread(target=_end_with_server, daemon=True).start()
    import sdcmap as sm
    from sdcmap.web.workspace import Workspace

    room = Workspace(study.parent)
    try:
        _run(room, plan, study, workers, task)
    except KeyboardInterrupt:
        return 130
    except sm.errors.SdcmapError as error:
        print(error, file=sys.stderr)
        return 2
    except Exception as error:  # its text may hold a data value: type and place are told
        place = traceback.extract_tb(error.__traceback__)[-1]
        print(f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}.", file=sys.stderr)
        return 1
    room.kept(f"{study.name}.wish").unlink(missing_ok=True)  # it is done: no later server goes on with it
    return 0


def _run(room: Workspace, plan: Path, study: Path, workers: int, task: str) -> None:
    import sdcmap as sm
    from sdcmap.core.named_files import restrict_files_to
    from sdcmap.web.views import Views

    tell = Telling(room, study.name)
    tell.at("reading the file")
    views = Views(room)
    parsed = views.plan(plan.read_text(encoding="utf-8"))
    data = views.data_of(parsed, study.name)
    tell.at("getting ready: workers start, and code is compiled where this machine runs it for the first time")
    with restrict_files_to(study.parent):
        if task == "search":
            sm.search(data, parsed, study=study, workers=workers or None, progress=tell.swept, watch=tell.searched)
        else:
            sm.sweep(data, parsed, study, workers=workers or None, progress=tell.swept)


def main() -> int:
    """The process of its own: plan, study, number of workers and task are its arguments."""
    return work(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
