"""Check the decoded size of a compressed file in a subprocess with limited memory.

A few kilobytes of Parquet, .sav or SAS can expand to terabytes. The header is checked first. Then the file is decoded once
in a subprocess with limited memory, so that a file with a false header can only end that subprocess.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from sdcmap.errors import SchemaError, SdcmapError
from sdcmap.files.dialect import reject_compressed
from sdcmap.files.formats import format_of
from sdcmap.files.reader import read
from sdcmap.files.subprocesses import python_command, subprocess_environment

INTERPRETER_BYTES = 2 << 30  # private memory of the interpreter and its libraries; about 1.3 GB was measured
TIMEOUT_SECONDS = 300  # for decoding one file
TOO_LARGE, UNREADABLE = 3, 4  # exit codes of the subprocess


def check_decoded(path: Path, limit: int) -> None:
    """Raise SchemaError if the decoded file needs more than `limit` bytes or cannot be read.

    Text files do not expand, so they pass, unless they are compressed: those are rejected.
    """
    form = format_of(path)
    if form.dialects:
        reject_compressed(path)
    if not form.packed:
        return
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "NUMBA")} | {"POLARS_MAX_THREADS": "1"}
    command = python_command("sdcmap.files.decoded_size:main", path.absolute(), limit)
    try:
        result = subprocess.run(
            command,
            env=subprocess_environment(**threads),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise SchemaError(f"{path.name} takes more than {TIMEOUT_SECONDS} seconds to read.") from None
    if result.returncode == UNREADABLE:
        raise SchemaError(result.stdout.decode().strip())
    if result.returncode:
        raise SchemaError(f"{path.name} is larger than {limit >> 20:,} MB when it is decoded.")


def main() -> int:
    """Decode the file in the subprocess; path and limit are its arguments."""
    path, limit = Path(sys.argv[1]), int(sys.argv[2])
    _limit_memory(limit + INTERPRETER_BYTES)
    try:
        if 8 * format_of(path).cells(path) > limit:
            return TOO_LARGE
        data = read(path)
        if 8 * len(data) * len(data.names) > limit:  # for formats whose header does not state it
            return TOO_LARGE
    except MemoryError:
        return TOO_LARGE
    except SdcmapError as error:
        print(error)
        return UNREADABLE
    except BaseException as error:  # errors and panics of the readers: their messages may quote the file
        print(f"{path.name} cannot be read ({type(error).__name__}).")
        return UNREADABLE
    return 0


def _limit_memory(size: int) -> None:
    """Limit private memory; on systems that cannot, only the counts are checked.

    Limiting the address space would fail by chance, because thread pools reserve different amounts of it.
    """
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))
