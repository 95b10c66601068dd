"""Vega, Vega-Lite and Vega-Embed in one script, of the bundle that vl-convert carries.

To make it takes seconds, so it is kept for each version of vl-convert, in the user's own cache folder and nowhere else: a
script among the files of a study could be anybody's.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from sdcmap.errors import SdcmapError

OTHERS_WRITE = 0o022


@cache
def vega_script() -> str:
    """The script; it sets `window.vegaEmbed`."""
    script = kept_script()
    if script is None:
        import vl_convert

        from sdcmap.data.whole import write_whole  # here: a server's first page needs no numpy

        script = str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
        with suppress(OSError, SdcmapError):  # a home that cannot be written to
            _place().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(_place(), script)
    return script


def kept_script() -> str | None:
    """The script as an earlier run kept it; None where there is none, or where somebody else can write to it."""
    with suppress(OSError, RuntimeError):  # the latter: the user has no home
        if all(_is_ours(path) for path in (_place().parent, _place())):
            return _place().read_text(encoding="utf-8")
    return None


def _place() -> Path:
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "sdcmap" / f"vega-{version('vl-convert-python')}.js"


def _is_ours(path: Path) -> bool:
    facts = path.lstat()
    return os.name != "posix" or (facts.st_uid == os.geteuid() and not facts.st_mode & OTHERS_WRITE)
