"""What a file becomes when it is decoded, asked of a process that may not use more memory than that.

A few kilobytes of Parquet, .sav or SAS can stand for terabytes. The header is read first; then the file is decoded once
in a process of its own with limited memory, so that a file whose header lies ends that process and nothing else.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from sdcmap.errors import SchemaError, SdcmapError
from sdcmap.files.apart import environment, python
from sdcmap.files.dialect import refuse_packed
from sdcmap.files.formats import format_of
from sdcmap.files.reading import read

ROOM = 2 << 30  # bytes of private memory that the interpreter and its libraries map; 1.3 GB on a quiet machine
PATIENCE = 300  # seconds
TOO_LARGE, UNREADABLE = 3, 4


def check_decoded(path: Path, limit: int) -> None:
    """SchemaError where the decoded file needs more than `limit` bytes or cannot be read; a text is what it is, but for
    packed ones, which are refused."""
    form = format_of(path)
    if form.dialects:
        refuse_packed(path)
    if not form.packed:
        return
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "NUMBA")} | {"POLARS_MAX_THREADS": "1"}
    command = python("sdcmap.files.weighing:main", path.absolute(), limit)
    try:
        done = subprocess.run(
            command, env=environment(**threads), stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        raise SchemaError(f"{path.name} takes more than {PATIENCE} seconds to read.") from None
    if done.returncode == UNREADABLE:
        raise SchemaError(done.stdout.decode().strip())
    if done.returncode:
        raise SchemaError(f"{path.name} is larger than {limit >> 20:,} MB when it is decoded.")


def main() -> int:
    """The process of its own: path and limit are its arguments."""
    path, limit = Path(sys.argv[1]), int(sys.argv[2])
    _limit(limit + ROOM)
    try:
        if 8 * format_of(path).cells(path) > limit:
            return TOO_LARGE
        data = read(path)
        if 8 * len(data) * len(data.names) > limit:  # the header did not say
            return TOO_LARGE
    except MemoryError:
        return TOO_LARGE
    except SdcmapError as error:
        print(error)
        return UNREADABLE
    except BaseException as error:  # the readers' own, and panics: their texts may quote the file
        print(f"{path.name} cannot be read ({type(error).__name__}).")
        return UNREADABLE
    return 0


def _limit(size: int) -> None:
    """Bound private memory where the system can; elsewhere the counts alone are looked at.

    The address space is no measure of it: the pools of a few threads reserve more or less of it by chance.
    """
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))
