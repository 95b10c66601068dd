"""Read a statistics file in a process apart: a damaged file can crash the C library that reads it, or let it run wild.

Files come from elsewhere, and 11 of about 1,800 damaged .sav files ended the process that read it (tests/test_fuzz.py). The
process apart costs a few tenths of a second; it may use the memory of this machine and no more, and a processor time that
grows with the file. Its answer comes by way of a nameless temporary file, column by column.
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
from sdcmap.files.apart import environment, python
from sdcmap.files.stat.statfile_reader import read_statfile

SECONDS, SECONDS_PER_MB = 60, 20  # processor time for one file: generous, to end what would never end


def read_apart(path: Path, form: str) -> tuple[pl.DataFrame, dict[str, Variable]]:
    """What `read_statfile` finds; SchemaError when it finds nothing, whatever the reason."""
    command = python("sdcmap.files.stat.process_apart:answer", path.absolute(), form)
    with tempfile.TemporaryFile() as file:
        nothing = subprocess.DEVNULL
        code = subprocess.run(command, stdin=nothing, stdout=file, stderr=nothing, env=environment()).returncode
        file.seek(0)
        problem = pickle.load(file) if code == 0 else _sentence(path, form, f"the reader ended with code {code}")
        if problem:
            raise SchemaError(problem) from None
        variables: dict[str, Variable] = pickle.load(file)
        loaded = {name: pickle.load(file) for name in variables}
    lists = {name: pl.Series(name, cells, dtype=pl.Object) for name, cells in loaded.items() if isinstance(cells, list)}
    return pl.DataFrame([*(loaded | lists).values()]), variables


def answer() -> None:
    """The process apart: read the file that the arguments name, path and format; the answer goes to where stdout went."""
    with os.fdopen(os.dup(1), "wb") as file:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a library may print is not part of it
        path, form = Path(sys.argv[1]), sys.argv[2]
        _limit(path.stat().st_size)
        try:
            frame, variables = read_statfile(path, form)
        except BaseException as error:  # the text of another's may hold a value: only its type is told
            ours = isinstance(error, SchemaError)
            pickle.dump(str(error) if ours else _sentence(path, form, type(error).__name__), file)
            return
        pickle.dump("", file)
        pickle.dump(variables, file)
        for column in frame.get_columns():  # letters among numbers travel as a list
            pickle.dump(column.to_list() if column.dtype == pl.Object else column, file, protocol=5)


def _sentence(path: Path, form: str, why: str) -> str:
    return f"{path.name} cannot be read as {form} ({why})."


def _limit(size: int) -> None:
    """Bound processor time and memory where the system can."""
    try:
        import resource
    except ImportError:
        return
    seconds = SECONDS + SECONDS_PER_MB * (size >> 20)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for kind, most in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_DATA, memory), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
