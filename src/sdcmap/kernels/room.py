"""Room for arrays with a number for each record: in memory, or in a file without a name where memory is limited.

The file is mapped: the system reads and writes its pages as they are needed, takes them away when memory is short, and
forgets the file when the array is gone. Results are the same.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sdcmap.kernels.arrays import Array

PARTS = 64  # an array above this part of the limit goes to a file

_limit: list[tuple[int, Path]] = []  # bytes of memory that this process may use, and where its files may lie


def limit_memory(size: int, folder: Path) -> None:
    """From now on keep large arrays of this process in files below `folder`; 0: no limit."""
    _limit[:] = [(size, folder)] if size else []


def empty(shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """As `numpy.empty`, in a file where the array is large for the memory there is."""
    count = shape if isinstance(shape, int) else int(np.prod(shape))
    if not _limit or count * np.dtype(dtype).itemsize <= _limit[0][0] // PARTS:
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile(dir=_limit[0][1]) as file:
        return np.memmap(file, dtype, "w+", shape=shape)
