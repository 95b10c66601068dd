"""What was computed of a file and is kept beside it: bounded by bytes, shared by threads, computed once per key."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast

import numpy as np

Result = TypeVar("Result")
VIEW_BYTES = 1 << 30  # views of one file above this are dropped, oldest first


@dataclass(frozen=True)
class _Kept(Generic[Result]):
    result: Result
    size: int


@dataclass(frozen=True)
class _Underway:
    """A view that a thread computes at present; the others wait until it is `over`."""

    thread: int = field(default_factory=threading.get_ident)
    over: threading.Event = field(default_factory=threading.Event)


class Views:
    """Results by key. Several threads may ask for one key: the first computes it and the others wait for it.

    The lock is held while the tables are looked into, never while a view is computed, so that views of other keys, and
    views that a view is made of, go their way.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[Hashable, _Kept[object]] = {}  # oldest first
        self._underway: dict[Hashable, _Underway] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._kept

    def get(self, key: Hashable, compute: Callable[[], Result]) -> Result:
        """What `compute` gives, computed once per `key`; what raises is not kept, and the next to ask tries again."""
        while True:
            with self._lock:
                kept = self._kept.get(key)
                if kept is not None:
                    return cast(Result, kept.result)
                underway = self._underway.get(key)
                if underway is None:
                    mine = self._underway[key] = _Underway()
                    break
            if underway.thread == threading.get_ident():
                raise RecursionError("a view cannot be made of itself.")
            underway.over.wait()
        try:
            result = compute()
            self._keep(key, result)
            return result
        finally:
            with self._lock:
                del self._underway[key]
            mine.over.set()

    def _keep(self, key: Hashable, result: object) -> None:
        kept = _Kept(result, _size(result))
        with self._lock:
            self._kept[key] = kept
            self._bytes += kept.size
            while self._bytes > VIEW_BYTES and len(self._kept) > 1:
                self._bytes -= self._kept.pop(next(iter(self._kept))).size


def _size(result: object) -> int:
    """Bytes of the arrays in a result; those that lie in files count nothing."""
    if isinstance(result, np.ndarray):
        return 0 if isinstance(result, np.memmap) else result.nbytes
    if isinstance(result, tuple):
        return sum(_size(part) for part in result)
    return sum(_size(part) for part in tuple(vars(result).values())) if hasattr(result, "__dict__") else 64
