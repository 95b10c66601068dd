"""Python processes that import from where this one does, and never from the folder that they stand in.

`python -m` and `python -c` look for modules in the working folder first, so a file `pickle.py` beside the data would run.
A helper is started with a safe path (-P) and told the absolute folders that this process imports from: that holds for a
source tree on PYTHONPATH, an editable installation and one of the user alike.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def python(call: str, *arguments: object) -> list[str]:
    """The command that runs "module:function" in a Python process apart; `environment()` goes with it."""
    module, _, function = call.partition(":")
    code = f"import sys; from {module} import {function}; sys.exit({function}())"
    return [sys.executable, "-P", "-c", code, *map(str, arguments)]


def environment(**more: str) -> dict[str, str]:
    """The environment of such a process: ours, with every folder of the path absolute, and `more`."""
    places = [place for place in sys.path if Path(place).is_absolute()]
    return os.environ | {"PYTHONPATH": os.pathsep.join(places)} | more


@contextmanager
def safe_path() -> Iterator[None]:
    """In this block, processes that a library starts for us (multiprocessing, Dask) keep the safe path too."""
    global _blocks
    with _lock:
        stated = _blocks == 0 and bool(os.environ.get(SAFE))
        _blocks += 1 + stated  # what the user stated stays
        os.environ[SAFE] = os.environ.get(SAFE) or "1"
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            if _blocks == 0:
                os.environ[SAFE] = ""  # as if it were not there; a thread that copies the environment finds it still


SAFE = "PYTHONSAFEPATH"
_blocks = 0  # threads that are in such a block
_lock = threading.Lock()


def import_nothing_from(folder: Path) -> None:
    """Take a folder of data, and what is relative to wherever we stand, off this process's own path."""
    home, ours = folder.resolve(), Path(__file__).resolve().parents[2]
    places = [Path(place) for place in sys.path]
    sys.path[:] = [str(place) for place in places if (place.is_absolute() and place.resolve() != home) or place == ours]
