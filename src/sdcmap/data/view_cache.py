"""What was computed of a file and is kept beside it: bounded by bytes, shared by threads, computed once per key."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np

Result = TypeVar("Result")
VIEW_BYTES = 1 << 30  # views of one file above this are dropped, oldest first


_LOCK = threading.Lock()  # of the tables of all views: held while they are looked into, never while a view is computed
_SETTLED = threading.Condition(_LOCK)  # told when a view that somebody waits for is computed or given up


class Views:
    """Results by key. Several threads may ask for one key: the first computes it and the others wait for it.

    Views of other keys, and views that a view is made of, go their way meanwhile.
    """

    __slots__ = ("_bytes", "_kept", "_underway", "_waiting")

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[Any, int]] = {}  # key -> result and bytes, oldest first
        self._underway: dict[Hashable, int] = {}  # key -> the thread that computes it at present
        self._bytes = self._waiting = 0

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._kept

    def items(self) -> list[tuple[Hashable, Any]]:
        """What is kept at present: keys and results."""
        with _LOCK:
            return [(key, result) for key, (result, _) in self._kept.items()]

    def get(self, key: Hashable, compute: Callable[[], Result]) -> Result:
        """What `compute` gives, computed once per `key`; what raises is not kept, and the next to ask tries again."""
        kept: tuple[Result, int] | None = self._kept.get(key) or self._claimed(key)
        if kept is not None:
            return kept[0]
        try:
            result = compute()
            kept = result, _size(result)
            return result
        finally:
            with _LOCK:
                del self._underway[key]
                if kept is not None:
                    self._keep(key, kept)
                if self._waiting:
                    _SETTLED.notify_all()

    def _claimed(self, key: Hashable) -> tuple[Any, int] | None:
        """What another thread has computed by now, or is computing; None: the view is this thread's to compute."""
        me = threading.get_ident()
        with _LOCK:
            while key in self._underway:
                if self._underway[key] == me:
                    raise RecursionError("a view cannot be made of itself.")
                self._waiting += 1
                _SETTLED.wait()
                self._waiting -= 1
            kept = self._kept.get(key)
            if kept is None:
                self._underway[key] = me
            return kept

    def _keep(self, key: Hashable, kept: tuple[Any, int]) -> None:
        self._kept[key] = kept
        self._bytes += kept[1]
        while self._bytes > VIEW_BYTES and len(self._kept) > 1:
            self._bytes -= self._kept.pop(next(iter(self._kept)))[1]


def _size(result: object) -> int:
    """Bytes of the arrays in a result; those that lie in files count nothing. It runs for every masked file."""
    size, parts = 0, [result]
    for part in parts:  # it grows meanwhile
        kind = type(part)
        if kind is np.ndarray:
            size += part.nbytes  # type: ignore[attr-defined]
        elif kind is np.memmap:
            continue
        elif isinstance(part, tuple):
            parts += part
        elif hasattr(part, "__dict__"):
            parts += vars(part).values()
        else:
            size += 64
    return size
