"""The process of one sweep: it ends with its server, which holds the other end of its standard input."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import traceback
from pathlib import Path


def _end_with_server() -> None:
    """As by Ctrl-C: what is scored is kept."""
    sys.stdin.buffer.read()
    if os.name == "posix":
        os.kill(os.getpid(), signal.SIGINT)  # wakes the main thread from any wait
    else:
        _thread.interrupt_main()


def sweep(plan: Path, study: Path, workers: int) -> int:
    """Sweep `plan` into `study`, which lies in the served folder."""
    for told in (signal.SIGINT, signal.SIGTERM):  # a server in the background of a shell ignores the first
        signal.signal(told, signal.default_int_handler)
    threading.Thread(target=_end_with_server, daemon=True).start()
    import sdcmap as sm
    from sdcmap.core.named_files import files_below
    from sdcmap.web.room import Room
    from sdcmap.web.views import Views

    def quiet(done: int, total: int) -> None:
        """The study itself tells how far it is."""

    try:
        views = Views(Room(study.parent))
        parsed = views.plan(plan.read_text(encoding="utf-8"))
        data = views.data_of(parsed, study.name)
        with files_below(study.parent):
            sm.sweep(data, parsed, study, workers=workers or None, progress=quiet)
    except KeyboardInterrupt:
        return 130
    except sm.errors.SdcmapError as error:
        print(error, file=sys.stderr)
        return 2
    except Exception as error:  # its text may hold a data value: type and place are told
        place = traceback.extract_tb(error.__traceback__)[-1]
        print(f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}.", file=sys.stderr)
        return 1
    return 0


def main() -> int:
    """The process of its own: plan, study and number of workers are its arguments."""
    return sweep(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
