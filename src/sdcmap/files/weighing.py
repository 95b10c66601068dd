"""What a file becomes when it is decoded, asked of a process that may not use more memory than that.

A few kilobytes of Parquet, .sav or SAS can stand for terabytes. The header is read first; then the file is decoded once
in a process of its own with limited memory, so that a file whose header lies ends that process and nothing else.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from sdcmap.errors import SchemaError, SdcmapError

ROOM = 2 << 30  # bytes of address space that the interpreter and its libraries take
PATIENCE = 300  # seconds
PACKED = (".parquet", ".pq", ".sav", ".zsav", ".dta", ".sas7bdat", ".xpt", ".xport")
TOO_LARGE, UNREADABLE = 3, 4


def check_decoded(path: Path, limit: int) -> None:
    """SchemaError where the decoded file needs more than `limit` bytes or cannot be read; text is as long as it is."""
    if path.suffix.lower() not in PACKED:
        return
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "NUMBA")} | {"POLARS_MAX_THREADS": "1"}
    command = [sys.executable, "-m", "sdcmap.files.weighing", str(path), str(limit)]
    try:
        done = subprocess.run(
            command, env=os.environ | threads, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        raise SchemaError(f"{path.name} takes more than {PATIENCE} seconds to read.") from None
    if done.returncode == UNREADABLE:
        raise SchemaError(done.stdout.decode().strip())
    if done.returncode:
        raise SchemaError(f"{path.name} is larger than {limit >> 20:,} MB when it is decoded.")


def cells_of(path: Path) -> int:
    """Rows times columns, as the header states them (0: it does not)."""
    if path.suffix.lower() in (".parquet", ".pq"):
        import polars as pl

        scan = pl.scan_parquet(path)
        return int(scan.select(pl.len()).collect().item()) * len(scan.collect_schema())
    import pyreadstat

    name = path.suffix.lower().lstrip(".")
    reader = {"zsav": "sav", "xpt": "xport"}.get(name, name)
    facts = getattr(pyreadstat, f"read_{reader}")(path, metadataonly=True)[1]
    return max(facts.number_rows or 0, 0) * max(facts.number_columns or 0, 0)


def _main(path: Path, limit: int) -> int:
    """Runs in the process of its own."""
    import resource

    from sdcmap.files.reading import read

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (limit + ROOM, limit + ROOM))
    try:
        if 8 * cells_of(path) > limit:
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


if __name__ == "__main__":
    sys.exit(_main(Path(sys.argv[1]), int(sys.argv[2])))
