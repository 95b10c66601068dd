"""What every kernel takes and gives: arrays of numpy, of any type or of floating numbers; signs of eigenvectors; a cache
of what was computed of an array."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

MAX_CACHED_BYTES = 1 << 28  # of the results that one function keeps
SAME_SIZE = 1e-9  # relative: entries of an eigenvector so near to each other are equal but for rounding


def with_fixed_signs(vectors: Array) -> Array:
    """The eigenvectors, a column each, with the largest entry positive; of entries that are equal but for rounding, the
    first. The sign that LAPACK returns depends on the processor."""
    size = np.abs(vectors)
    leading = np.argmax(size >= (1 - SAME_SIZE) * size.max(axis=0), axis=0)
    fixed: Array = vectors * np.sign(vectors[leading, np.arange(vectors.shape[1])])
    return fixed


def cached_by_array(
    compute: Callable[[Array], tuple[Array, ...]], max_bytes: int = MAX_CACHED_BYTES
) -> Callable[[Array], tuple[Array, ...]]:
    """Return `compute` with a cache: an array that is closed to writing is computed once, and its result is kept as long
    as the array lives, bounded by bytes. Threads may share it."""
    from cachetools import LRUCache, cached

    cache: LRUCache[int, tuple[Array, ...]] = LRUCache(max_bytes, lambda arrays: sum(part.nbytes for part in arrays))
    lock = threading.RLock()  # an array may end, and be forgotten, while this thread holds the lock

    def forget(key: int) -> None:
        with lock:
            cache.pop(key, None)

    @cached(cache, key=id, lock=lock)
    def computed_once(array: Array) -> tuple[Array, ...]:
        weakref.finalize(array, forget, id(array)).atexit = False
        return compute(array)

    return lambda array: compute(array) if array.flags.writeable else computed_once(array)
