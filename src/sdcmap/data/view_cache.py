"""A cache of results computed from a file: limited in bytes, shared by threads, each key computed once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np

Result = TypeVar("Result")
MAX_BYTES_PER_FILE = 1 << 30  # beyond this the oldest results of a file are dropped

# One lock for the tables of all caches. It is never held while a result is computed.
_LOCK = threading.Lock()
_COMPUTED = threading.Condition(_LOCK)  # notified when a result that a thread waits for is ready, or failed


class ViewCache:
    """Results by key. If several threads ask for a key, the first computes the result and the others wait for it.

    Results of other keys can be computed at the same time, including those that a result depends on.
    """

    __slots__ = ("_bytes", "_computing", "_results", "_waiting")

    def __init__(self) -> None:
        self._results: dict[Hashable, tuple[Any, int]] = {}  # key -> result and bytes, oldest first
        self._computing: dict[Hashable, int] = {}  # key -> the thread that computes it
        self._bytes = self._waiting = 0

    def __len__(self) -> int:
        return len(self._results)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._results

    def items(self) -> list[tuple[Hashable, Any]]:
        """Return the cached keys and results."""
        with _LOCK:
            return [(key, result) for key, (result, _) in self._results.items()]

    def get(self, key: Hashable, compute: Callable[[], Result]) -> Result:
        """Return `compute()`, computed once per `key`. After an exception, the next caller computes it again."""
        entry: tuple[Result, int] | None = self._results.get(key) or self._claim(key)
        if entry is not None:
            return entry[0]
        try:
            result = compute()
            entry = result, _bytes_of(result)
            return result
        finally:
            with _LOCK:
                del self._computing[key]
                if entry is not None:
                    self._store(key, entry)
                if self._waiting:
                    _COMPUTED.notify_all()

    def _claim(self, key: Hashable) -> tuple[Any, int] | None:
        """Wait if another thread computes the key, and return its result; None if this thread has to compute it."""
        me = threading.get_ident()
        with _LOCK:
            while key in self._computing:
                if self._computing[key] == me:
                    raise RecursionError("a view cannot depend on itself.")
                self._waiting += 1
                _COMPUTED.wait()
                self._waiting -= 1
            entry = self._results.get(key)
            if entry is None:
                self._computing[key] = me
            return entry

    def _store(self, key: Hashable, entry: tuple[Any, int]) -> None:
        self._results[key] = entry
        self._bytes += entry[1]
        while self._bytes > MAX_BYTES_PER_FILE and len(self._results) > 1:
            self._bytes -= self._results.pop(next(iter(self._results)))[1]


def _bytes_of(result: object) -> int:
    """Return the bytes of the arrays in a result, without memory-mapped ones. It must be fast: it runs for every view."""
    size, parts = 0, [result]
    for part in parts:  # the list grows during the loop
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
