"""Read a statistics or R file in a subprocess, because a damaged file can crash or hang its reader, or use all memory.

Of about 1,800 damaged .sav files, 11 crashed the process that read them (tests/files/test_fuzz.py). An R file of 200 bytes
can state a sequence of 10^13 numbers. The subprocess costs a few tenths of a second. Its memory is limited to that of the
machine, and its processor time in proportion to the file. It returns the columns through an unnamed temporary file.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl

from sdcmap.data.schema import Variable
from sdcmap.errors import SchemaError
from sdcmap.files.r_files import read_r
from sdcmap.files.stat.statfile_reader import read_statfile
from sdcmap.files.subprocesses import python_command, subprocess_environment

BASE_CPU_SECONDS, CPU_SECONDS_PER_MB = 60, 20  # CPU limit for one file: generous, only to stop endless loops


def read_in_subprocess(path: Path, form: str) -> tuple[pl.DataFrame, dict[str, Variable]]:
    """Return the result of `read_statfile` or `read_r`; SchemaError if the subprocess fails for any reason."""
    command = python_command("sdcmap.files.stat.reader_process:main", path.absolute(), form)
    with tempfile.TemporaryFile() as file:
        nothing = subprocess.DEVNULL
        code = subprocess.run(
            command, stdin=nothing, stdout=file, stderr=nothing, env=subprocess_environment()
        ).returncode
        file.seek(0)
        problem = pickle.load(file) if code == 0 else _error_message(path, form, f"the reader ended with code {code}")
        if problem:
            raise SchemaError(problem) from None
        variables: dict[str, Variable] = pickle.load(file)
        loaded = {name: pickle.load(file) for name in variables}
    lists = {name: pl.Series(name, cells, dtype=pl.Object) for name, cells in loaded.items() if isinstance(cells, list)}
    return pl.DataFrame([*(loaded | lists).values()]), variables


def main() -> None:
    """Read the file given by the arguments (path and format) and write the result to the original stdout."""
    with os.fdopen(os.dup(1), "wb") as file:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # anything that a library prints must not reach the result
        path, form = Path(sys.argv[1]), sys.argv[2]
        _limit_resources(path.stat().st_size)
        try:
            frame, variables = read_r(path) if form == "rds" else read_statfile(path, form)
        except MemoryError:
            pickle.dump(f"{path.name} needs more memory than is available when it is read.", file)
            return
        except BaseException as error:  # messages of libraries may quote a value
            ours = isinstance(error, SchemaError)
            pickle.dump(str(error) if ours else _error_message(path, form, type(error).__name__), file)
            return
        pickle.dump("", file)
        pickle.dump(variables, file)
        for column in frame.get_columns():  # columns of numbers and letters are passed as lists
            pickle.dump(column.to_list() if column.dtype == pl.Object else column, file, protocol=5)


def _error_message(path: Path, form: str, why: str) -> str:
    return f"{path.name} cannot be read as {form} ({why})."


def _limit_resources(size: int) -> None:
    """Limit processor time and memory, on systems that can."""
    try:
        import resource
    except ImportError:
        return
    seconds = BASE_CPU_SECONDS + CPU_SECONDS_PER_MB * (size >> 20)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for kind, most in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_DATA, memory), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
