"""The command line: one command a verb, thin callers of the package.

Exit codes: 0 done; 2 bad input, said in one sentence; 3 nothing may be released; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import sys

from sdcmap.cli import decide, files, prepare
from sdcmap.cli.app import app, note

_ORDER = ["look", "check", "sweep", "score", "mask", "map", "choose", "release", "report", "demo"]
app.registered_commands.sort(key=lambda command: _ORDER.index(command.name or str(command.callback.__name__)))  # type: ignore[union-attr]

__all__ = ["app", "decide", "files", "main", "prepare"]


def main() -> None:
    """Run the command line; our errors become one sentence and an exit code."""
    from sdcmap.errors import Refused, SdcmapError

    try:
        app()
    except Refused as error:
        note("not released:\n" + "\n".join(f"- {check}" for check in error.checks))
        sys.exit(3)
    except SdcmapError as error:
        note(f"error: {error}")
        sys.exit(2)
    except KeyboardInterrupt:
        note("stopped; what is done is kept, and the same command goes on from there.")
        sys.exit(130)
