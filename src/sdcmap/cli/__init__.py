"""The command line: each command calls one function of the package.

Exit codes: 0 success; 1 internal error; 2 invalid input; 3 nothing can be released; 130 Ctrl-C; 143 SIGTERM.
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

from sdcmap.cli.app import StrictCommand, app, note

_ORDER = [
    "look", "check", "schema", "sweep", "score", "scores", "mask", "map", "planes", "choose", "pair", "records", "release",
    "report",
    "correct", "compare", "search", "serve", "demo", "docs",
]  # fmt: skip
# Importing a module registers its commands.
for _module in iter_modules(__path__):
    if _module.name not in ("__main__", "app"):
        import_module(f"{__name__}.{_module.name}")
app.registered_commands.sort(key=lambda command: _ORDER.index(command.name or str(command.callback.__name__)))  # type: ignore[union-attr]
for _typer in (app, *(_group.typer_instance for _group in app.registered_groups)):
    for _command in _typer.registered_commands if _typer else ():
        _command.cls = StrictCommand

DISK_ERRORS = (
    errno.ENOSPC,
    errno.EROFS,
    errno.EACCES,
    errno.EDQUOT,
    errno.EIO,
)  # reported as invalid input, not as a bug


def main() -> None:
    """Run the command line; print errors and warnings as one sentence each."""
    from sdcmap.errors import OtherOrder, StudyChanged

    with warnings.catch_warnings():
        warnings.simplefilter("always", StudyChanged)
        warnings.simplefilter("always", OtherOrder)
        warnings.filterwarnings("always", "the attacks run on the CPU")
        warnings.showwarning = lambda message, *_, **__: note(str(message))
        with _exit_on_sigterm():
            # Temporary folders of a killed command contain data: among the temporary files, and beside its output.
            if any(Path(tempfile.gettempdir()).glob("sdcmap-*/lock")) or any(Path().glob(".part-*/lock")):
                from sdcmap.data.private_folder import remove_abandoned

                remove_abandoned()
                remove_abandoned(Path())
            _run()


@contextmanager
def _exit_on_sigterm() -> Iterator[None]:
    """Let SIGTERM end a command like Ctrl-C does, so that its temporary folders are deleted."""
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
        note("Not released. These checks failed:\n" + "\n".join(f"- {check}" for check in error.checks))
        sys.exit(3)
    except SdcmapError as error:
        note(f"error: {error}")
        sys.exit(2)
    except Exception as error:
        if "SDCMAP_TRACEBACK" in os.environ:
            raise
        if isinstance(error, OSError) and error.errno in DISK_ERRORS:
            note(f"error: {error.filename or 'a file'} cannot be written ({error.strerror}).")
            sys.exit(2)
        # The text of the error may contain a data value, so only its type and line are printed.
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}, line {frame.lineno}"
        note(
            f"sdcmap failed: {type(error).__name__} in {where}. SDCMAP_TRACEBACK=1 prints details, which may include data."
        )
        sys.exit(1)
    except KeyboardInterrupt:
        note("Stopped. Results so far are saved; run the same command again to continue.")
        sys.exit(130)
