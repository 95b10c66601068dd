"""The command line: one command a verb, thin callers of the package.

Exit codes: 0 done; 1 a fault of sdcmap; 2 bad input, in one sentence; 3 nothing may be released; 130 Ctrl-C; 143 SIGTERM.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from sdcmap.cli.app import app, note

_ORDER = [
    "look", "check", "schema", "sweep", "score", "mask", "map", "choose", "pair", "records", "release", "report",
    "correct", "compare", "search", "serve", "demo", "docs",
]  # fmt: skip
for _module in iter_modules(__path__):  # each adds its commands to the app
    if _module.name not in ("__main__", "app"):
        import_module(f"{__name__}.{_module.name}")
app.registered_commands.sort(key=lambda command: _ORDER.index(command.name or str(command.callback.__name__)))  # type: ignore[union-attr]

DISK = (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT, errno.EIO)  # the disk's fault, not ours


def main() -> None:
    """Run the command line: our errors become one sentence and an exit code, and a warning a note."""
    from sdcmap.errors import OtherOrder, StudyChanged

    with warnings.catch_warnings():
        warnings.simplefilter("always", StudyChanged)
        warnings.simplefilter("always", OtherOrder)
        warnings.filterwarnings("always", "the attacks run on the CPU")
        warnings.showwarning = lambda message, *_, **__: note(str(message))
        with _told_to_go():
            if any(Path(tempfile.gettempdir()).glob("sdcmap-*/lock")):  # a command that was killed left them
                from sdcmap.data.private_folder import remove_abandoned

                remove_abandoned()
            _run()


@contextmanager
def _told_to_go() -> Iterator[None]:
    """SIGTERM ends a command as Ctrl-C does, so that its temporary folders go with it."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _run() -> None:
    from sdcmap.errors import Refused, SdcmapError

    try:
        app()
    except Refused as error:
        note("not released:\n" + "\n".join(f"- {check}" for check in error.checks))
        sys.exit(3)
    except SdcmapError as error:
        note(f"error: {error}")
        sys.exit(2)
    except Exception as error:
        if "SDCMAP_TRACEBACK" in os.environ:
            raise
        if isinstance(error, OSError) and error.errno in DISK:
            note(f"error: {error.filename or 'a file'} cannot be written ({error.strerror}).")
            sys.exit(2)
        place = traceback.extract_tb(error.__traceback__)[-1]  # the text may hold a data value: type and place are told
        where = f"{Path(place.filename).name}, line {place.lineno}"
        note(f"sdcmap failed: {type(error).__name__} in {where}. SDCMAP_TRACEBACK=1 shows more, and may show data.")
        sys.exit(1)
    except KeyboardInterrupt:
        note("stopped; what is done is kept, and the same command goes on from there.")
        sys.exit(130)
