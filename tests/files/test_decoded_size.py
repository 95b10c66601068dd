"""Files are checked and read on systems that cannot limit the memory of a process."""

from __future__ import annotations

import subprocess
import sys

import pytest

UNIX_ONLY = ("fcntl", "resource", "pwd", "grp", "termios", "syslog", "posix_ipc")
CODE = """
import sys
for name in {unix!r}:
    sys.modules[name] = None  # as on a system without this module
{body}
"""


def without_unix(body: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(unix=UNIX_ONLY, body=body)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_files_are_read_without_resource_limits(tmp_path: object) -> None:
    body = f"""
import polars as pl
from pathlib import Path
from sdcmap.files.decoded_size import main, TOO_LARGE
from sdcmap.files.reader import read
from sdcmap.files.writer import write
path = write(read(pl.DataFrame({{"a": [1.0, 2.0]}})), Path({str(tmp_path)!r}) / "x.parquet")
def weigh(limit):
    sys.argv[1:] = [str(path), str(limit)]
    return main()
print(weigh(1 << 20), weigh(8) == TOO_LARGE)
from sdcmap.files.stat.reader_process import _limit_resources
_limit_resources(1)
"""
    assert without_unix(body) == "0 True"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere RLIMIT_DATA does not count what numpy and polars map")
def test_limited_process_cannot_map_more_memory() -> None:
    """A limit refuses one array of as many bytes: memory that the libraries already use counts too."""
    code = (
        "from sdcmap.files.decoded_size import INTERPRETER_BYTES as size, _limit_memory; _limit_memory(size); "
        "import numpy; numpy.empty(size // 8)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 1 and "Unable to allocate 2.00 GiB" in ran.stderr
