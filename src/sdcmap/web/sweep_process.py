"""The process of one sweep or search.

The server holds the other end of the process's standard input, so the process notices when the server ends, and ends too.
"""

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


def _stop_with_server() -> None:
    """Wait until the server closes the pipe, then interrupt the main thread as Ctrl-C does; scores so far are kept."""
    # The pipe is read without a buffer: a buffered reader would hold its lock at interpreter exit.
    with suppress(OSError):
        while os.read(0, 1):
            pass
    if os.name == "posix":
        os.kill(os.getpid(), signal.SIGINT)  # wakes the main thread from any wait
    else:
        _thread.interrupt_main()


class ProgressNotes:
    """Write the current phase of the process, and the progress of a search, for the server to read."""

    def __init__(self, workspace: Workspace, study: str) -> None:
        self.workspace, self.study = workspace, study
        self.last = Phase()
        self.areas: list[float] = []

    def write(self, phase: Phase) -> None:
        if phase != self.last:
            self.last = phase
            self.workspace.write_note(f"{self.study}.phase", phase)

    def write_phase(self, phase: str) -> None:
        self.write(Phase(phase=phase))

    def on_candidate(self, done: int, total: int) -> None:
        """Write the phase only: the server counts candidates in the study itself."""
        self.write_phase("creating and scoring candidates")

    def on_generation(self, evaluations: int, budget: int, area: float) -> None:
        """Write the progress of a search; also called for the generations of an earlier process."""
        self.areas = [*self.areas, area]
        self.write(Phase(phase="searching", evaluations=evaluations, budget=budget, area=area, areas=self.areas))


def run_task(plan: Path, study: Path, workers: int, task: str) -> int:
    """Sweep `plan` into `study`, or search from it, and return the exit code; the study is in the served folder."""
    # A server that a shell started in the background ignores SIGINT, and its children inherit that.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    threading.Thread(target=_stop_with_server, daemon=True).start()
    import sdcmap as sm
    from sdcmap.web.workspace import Workspace

    workspace = Workspace(study.parent)
    try:
        _run(workspace, plan, study, workers, task)
    except KeyboardInterrupt:
        return 130
    except sm.errors.SdcmapError as error:
        print(error, file=sys.stderr)
        return 2
    except Exception as error:
        # The text of the error may contain a data value, so only its type and line are printed.
        frame = traceback.extract_tb(error.__traceback__)[-1]
        print(f"{type(error).__name__} in {Path(frame.filename).name}, line {frame.lineno}.", file=sys.stderr)
        return 1
    # The task is complete: the next server must not resume it.
    workspace.state_path(f"{study.name}.wish").unlink(missing_ok=True)
    return 0


def _run(workspace: Workspace, plan: Path, study: Path, workers: int, task: str) -> None:
    import sdcmap as sm
    from sdcmap.core.named_files import restrict_files_to
    from sdcmap.web.views import Views

    notes = ProgressNotes(workspace, study.name)
    notes.write_phase("reading the file")
    views = Views(workspace)
    parsed = views.plan(plan.read_text(encoding="utf-8"))
    data = views.data_of(parsed, study.name)
    notes.write_phase("starting the workers and, on the first run on this machine, compiling code")
    with restrict_files_to(study.parent):
        if task == "search":
            sm.search(
                data,
                parsed,
                study=study,
                workers=workers or None,
                progress=notes.on_candidate,
                watch=notes.on_generation,
            )
        else:
            sm.sweep(data, parsed, study, workers=workers or None, progress=notes.on_candidate)


def main() -> int:
    """Run as a process; its arguments are the plan, the study, the number of workers and the task."""
    return run_task(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
