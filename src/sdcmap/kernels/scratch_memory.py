"""Room for arrays with a number for each record: in memory, or in a file without a name where memory is limited.

The file is mapped: the system reads and writes its pages as they are needed, takes them away when memory is short, and
forgets the file when the array is gone. Results are the same. A limit holds in its own `with` block and thread.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from sdcmap.kernels.arrays import Array

Given = ParamSpec("Given")
Result = TypeVar("Result")
PARTS = 64  # an array above this part of the limit goes to a file


class Limit(NamedTuple):
    """Bytes of memory that may be used, and the folder where files may lie."""

    size: int
    folder: Path


_LIMIT: ContextVar[Limit | None] = ContextVar("sdcmap memory limit", default=None)


def room_limited(size: int, folder: Path) -> AbstractContextManager[None]:
    """In this block, and in this thread alone, keep large arrays in files below `folder`; size 0: no limit."""
    return _under(Limit(size, folder) if size else None)


@contextmanager
def _under(limit: Limit | None) -> Iterator[None]:
    before = _LIMIT.set(limit)
    try:
        yield
    finally:
        _LIMIT.reset(before)


def under_this_limit(task: Callable[Given, Result]) -> Callable[Given, Result]:
    """`task` under the limit that holds here, whichever thread of this process runs it."""
    limit = _LIMIT.get()

    def run(*given: Given.args, **named: Given.kwargs) -> Result:
        with _under(limit):
            return task(*given, **named)

    return run


def empty(shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """As `numpy.empty`, in a file where the array is large for the memory there is."""
    limit = _LIMIT.get()
    count = shape if isinstance(shape, int) else int(np.prod(shape))
    if limit is None or count * np.dtype(dtype).itemsize <= limit.size // PARTS:
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile(dir=limit.folder) as file:
        return np.memmap(file, dtype, "w+", shape=shape)
