"""Start Python subprocesses that import from the same folders as this process, and never from the working folder.

`python -m` and `python -c` search the working folder for modules first, so a file `pickle.py` beside the data would be run.
A subprocess is therefore started with a safe path (-P) and gets the absolute import folders of this process. This works for
a source tree on PYTHONPATH, an editable installation and a user installation.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def python_command(call: str, *arguments: object) -> list[str]:
    """Return the command that runs "module:function" in a subprocess; use it with `subprocess_environment()`."""
    module, _, function = call.partition(":")
    code = f"import sys; from {module} import {function}; sys.exit({function}())"
    return [sys.executable, "-P", "-c", code, *map(str, arguments)]


def subprocess_environment(**more: str) -> dict[str, str]:
    """Return the environment of a subprocess: that of this process, its absolute import folders, and `more`."""
    folders = [folder for folder in sys.path if Path(folder).is_absolute()]
    return os.environ | {"PYTHONPATH": os.pathsep.join(folders)} | more


@contextmanager
def safe_path() -> Iterator[None]:
    """Give the safe path to processes that a library (multiprocessing, Dask) starts in this block, too."""
    global _open_blocks
    with _lock:
        stated = _open_blocks == 0 and bool(os.environ.get(SAFE_PATH_VARIABLE))
        _open_blocks += 1 + stated  # a value set by the user is never reset
        os.environ[SAFE_PATH_VARIABLE] = os.environ.get(SAFE_PATH_VARIABLE) or "1"
    try:
        yield
    finally:
        with _lock:
            _open_blocks -= 1
            if _open_blocks == 0:
                os.environ[SAFE_PATH_VARIABLE] = (
                    ""  # counts as unset; deleting it could break a thread that copies the environment
                )


SAFE_PATH_VARIABLE = "PYTHONSAFEPATH"
_open_blocks = 0  # number of threads inside such a block
_lock = threading.Lock()


def remove_from_import_path(folder: Path) -> None:
    """Remove a data folder and all relative folders from the import path of this process."""
    home, ours = folder.resolve(), Path(__file__).resolve().parents[2]
    paths = [Path(folder) for folder in sys.path]
    sys.path[:] = [str(path) for path in paths if (path.is_absolute() and path.resolve() != home) or path == ours]
