"""What was computed of an array that nobody can write to, kept as long as the array lives."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

from sdcmap.kernels.arrays import Array

Result = TypeVar("Result")


class KeptByArray(Generic[Result]):
    """`compute(array)`, once for each array that is closed to writing; of any other, anew. Threads share it."""

    def __init__(self, compute: Callable[[Array], Result]) -> None:
        self.compute = compute
        self._kept: dict[int, tuple[weakref.ref[Array], Result]] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def __call__(self, array: Array) -> Result:
        if array.flags.writeable:
            return self.compute(array)
        with self._lock:
            kept = self._kept.get(id(array))
        if kept is not None and kept[0]() is array:
            return kept[1]
        result = self.compute(array)
        with self._lock:
            self._kept[id(array)] = weakref.ref(array, self._forget(id(array))), result
        return result

    def _forget(self, key: int) -> Callable[[weakref.ref[Array]], None]:
        """Once the array is gone; nothing, where another has its place already. No lock: it may be called at any time."""

        def forget(gone: weakref.ref[Array]) -> None:
            kept = self._kept.get(key)
            if kept is not None and kept[0] is gone:
                self._kept.pop(key, None)

        return forget
