"""The command line: one command a verb, thin callers of the package.

Exit codes: 0 done; 1 a fault of sdcmap; 2 bad input, said in one sentence; 3 nothing may be released; 130 Ctrl-C.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

from sdcmap.cli import decide, files, paper_duncan, paper_gomatam, prepare
from sdcmap.cli.app import app, note

_ORDER = ["look", "check", "sweep", "score", "mask", "map", "choose", "release", "report", "demo"]
app.registered_commands.sort(key=lambda command: _ORDER.index(command.name or str(command.callback.__name__)))  # type: ignore[union-attr]

__all__ = ["app", "decide", "files", "main", "paper_duncan", "paper_gomatam", "prepare"]


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
    except Exception as error:  # its text may hold a data value, so only type and place are told
        if "SDCMAP_TRACEBACK" in os.environ:
            raise
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}, line {place.lineno}"
        note(f"sdcmap failed: {type(error).__name__} in {where}. SDCMAP_TRACEBACK=1 shows more, and may show data.")
        sys.exit(1)
    except KeyboardInterrupt:
        note("stopped; what is done is kept, and the same command goes on from there.")
        sys.exit(130)
