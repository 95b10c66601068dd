"""Memory for arrays with one number per record: in main memory, or in a temporary file where memory is limited.

The file is memory-mapped. The operating system loads its pages when they are needed, evicts them when memory is short, and
deletes the file when the array is gone. Results do not depend on it. A limit applies to one `with` block and one thread.
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

Args = ParamSpec("Args")
Result = TypeVar("Result")
LARGEST_ARRAY_DIVISOR = 64  # an array of more than 1/64 of the limit goes to a file


class MemoryLimit(NamedTuple):
    """The bytes of memory that may be used, and the folder for temporary files."""

    size: int
    folder: Path


_LIMIT: ContextVar[MemoryLimit | None] = ContextVar("sdcmap memory limit", default=None)


def limit_memory(size: int, folder: Path) -> AbstractContextManager[None]:
    """Keep large arrays of this block, in this thread only, in files below `folder`; size 0 means no limit."""
    return _set_limit(MemoryLimit(size, folder) if size else None)


@contextmanager
def _set_limit(limit: MemoryLimit | None) -> Iterator[None]:
    before = _LIMIT.set(limit)
    try:
        yield
    finally:
        _LIMIT.reset(before)


def bind_memory_limit(task: Callable[Args, Result]) -> Callable[Args, Result]:
    """Return `task` bound to the current limit, whichever thread of this process runs it."""
    limit = _LIMIT.get()

    def run(*args: Args.args, **kwargs: Args.kwargs) -> Result:
        with _set_limit(limit):
            return task(*args, **kwargs)

    return run


def empty(shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Return an array like `numpy.empty`, in a temporary file if it is large compared to the memory limit."""
    limit = _LIMIT.get()
    count = shape if isinstance(shape, int) else int(np.prod(shape))
    if limit is None or count * np.dtype(dtype).itemsize <= limit.size // LARGEST_ARRAY_DIVISOR:
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile(dir=limit.folder) as file:
        return np.memmap(file, dtype, "w+", shape=shape)
