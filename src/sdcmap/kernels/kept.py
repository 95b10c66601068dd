"""What was computed of an array that nobody can write to, kept as long as the array lives, and bounded by bytes."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable

from sdcmap.kernels.arrays import Array

MOST_BYTES = 1 << 28  # of all that is kept; beyond, the oldest goes

Arrays = tuple[Array, ...]


class KeptByArray:
    """`compute(array)`, once for each array that is closed to writing; of any other, anew. Threads share it."""

    def __init__(self, compute: Callable[[Array], Arrays], most: int = MOST_BYTES) -> None:
        self.compute, self.most = compute, most
        self._kept: dict[int, tuple[weakref.ref[Array], Arrays]] = {}  # by the array's address, oldest first
        self._lock = threading.RLock()  # an array may end, and be forgotten, while it is held

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for _, result in self._kept.values() for part in result)

    def __call__(self, array: Array) -> Arrays:
        if array.flags.writeable:
            return self.compute(array)
        with self._lock:
            kept = self._kept.get(id(array))
        if kept is not None and kept[0]() is array:
            return kept[1]
        result = self.compute(array)
        with self._lock:
            self._kept[id(array)] = weakref.ref(array, self._forget(id(array))), result
            while self.nbytes > self.most and len(self._kept) > 1:
                del self._kept[next(iter(self._kept))]
        return result

    def _forget(self, key: int) -> Callable[[weakref.ref[Array]], None]:
        """Once the array is gone; nothing, where another has its place already."""

        def forget(gone: weakref.ref[Array]) -> None:
            with self._lock:
                kept = self._kept.get(key)
                if kept is not None and kept[0] is gone:
                    del self._kept[key]

        return forget
