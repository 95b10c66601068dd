"""Files are weighed and read also where a system cannot limit the memory of a process."""

from __future__ import annotations

import subprocess
import sys

import pytest

UNIX_ONLY = ("fcntl", "resource", "pwd", "grp", "termios", "syslog", "posix_ipc")
CODE = """
import sys
for name in {unix!r}:
    sys.modules[name] = None  # as on a system without it
{body}
"""


def without_unix(body: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(unix=UNIX_ONLY, body=body)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_files_are_weighed_and_read_where_memory_cannot_be_limited(tmp_path: object) -> None:
    body = f"""
import polars as pl
from pathlib import Path
from sdcmap.files.weighing import main, TOO_LARGE
from sdcmap.files.reading import read
from sdcmap.files.writing import write
path = write(read(pl.DataFrame({{"a": [1.0, 2.0]}})), Path({str(tmp_path)!r}) / "x.parquet")
def weigh(limit):
    sys.argv[1:] = [str(path), str(limit)]
    return main()
print(weigh(1 << 20), weigh(8) == TOO_LARGE)
from sdcmap.files.stat.process_apart import _limit
_limit(1)
"""
    assert without_unix(body) == "0 True"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere RLIMIT_DATA does not count what numpy and polars map")
def test_limited_process_cannot_map_more_memory() -> None:
    """A limit of ROOM bytes refuses one array of as many bytes; what the libraries map already is inside it."""
    code = "from sdcmap.files.weighing import ROOM, _limit; _limit(ROOM); import numpy; numpy.empty(ROOM // 8)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 1 and "Unable to allocate 2.00 GiB" in ran.stderr
