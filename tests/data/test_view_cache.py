"""The view cache: each key is computed once, memory is limited, and keys do not block each other."""

from __future__ import annotations

import gc
import threading
import weakref
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.data.view_cache import ViewCache
from sdcmap.errors import SchemaError

THREADS = 8


def together(task: Callable[[int], object]) -> list[object]:
    """Return `task(i)` of THREADS threads that start at the same moment."""
    start = threading.Barrier(THREADS)

    def run(i: int) -> object:
        start.wait()
        return task(i)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))


def test_view_is_computed_once_for_many_threads() -> None:
    views, computed, asked = ViewCache(), Counter[int](), threading.Semaphore(0)

    def compute(key: int) -> list[int]:
        computed[key] += 1
        asked.acquire(timeout=0.05)  # never released: gives the other threads time to ask for the key
        return [key]

    answers = together(lambda i: [views.get(key, lambda key=key: compute(key)) for key in (0, 1)])
    assert computed == {0: 1, 1: 1}
    first = answers[0]
    assert isinstance(first, list)
    assert all(isinstance(answer, list) and answer[0] is first[0] for answer in answers)


def test_views_of_other_keys_do_not_wait() -> None:
    views, inside, go_on = ViewCache(), threading.Event(), threading.Event()

    def slow() -> int:
        inside.set()
        assert go_on.wait(60)
        return 1

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(views.get, "slow", slow)
        assert inside.wait(60)
        assert views.get("fast", lambda: 2) == 2  # while the slow one is being computed
        go_on.set()
        assert waiting.result() == 1


def test_views_can_depend_on_views() -> None:
    views = ViewCache()

    def tower(height: int) -> int:
        return views.get(height, lambda: 0 if height == 0 else tower(height - 1) + 1)

    assert together(lambda i: tower(20 + i % 3)) == [20 + i % 3 for i in range(THREADS)]
    with pytest.raises(RecursionError):
        views.get("itself", lambda: views.get("itself", lambda: 1))


def test_failed_views_are_not_cached() -> None:
    views, tries = ViewCache(), Counter[str]()

    def compute() -> int:
        tries["all"] += 1
        if tries["all"] == 1:
            raise SchemaError("not yet.")
        return 7

    def ask(_: int) -> object:
        try:
            return views.get("key", compute)
        except SchemaError:
            return None

    assert Counter(together(ask)) == {None: 1, 7: THREADS - 1}
    assert tries["all"] == 2


def test_eviction_is_thread_safe_and_limits_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sdcmap.data.view_cache.MAX_BYTES_PER_FILE", 2_000)
    views = ViewCache()

    def ask(i: int) -> bool:
        keys = [(i * step) % 97 for step in range(2_000)]
        return all(views.get(key, lambda key=key: np.full(10, key))[0] == key for key in keys)

    assert all(together(ask))
    assert len(views) <= 2_000 // np.zeros(10).nbytes
    assert views._bytes == len(views) * np.zeros(10).nbytes


def test_measure_does_not_keep_file_alive() -> None:
    data = sm.read(pl.DataFrame({"age": [1, 2, 2], "sex": ["f", "m", "m"]}), keys=["age", "sex"])
    measure = sm.SmallCells()
    assert measure.check_variables(data) == ("age", "sex")
    measure.apply(data, data, np.random.default_rng(1))
    file = weakref.ref(data)
    del data
    gc.collect()
    assert file() is None


def test_measure_checks_a_file_once(monkeypatch: pytest.MonkeyPatch) -> None:
    data = sm.read(pl.DataFrame({"age": [1, 2], "sex": ["f", "m"]}), keys=["age", "sex"])
    other = sm.read(pl.DataFrame({"age": [1, 2]}), other=["age"])
    looks = Counter[int]()
    incompatibilities = sm.SmallCells.incompatibilities
    monkeypatch.setattr(
        sm.SmallCells,
        "incompatibilities",
        lambda self, file: (looks.update([id(file)]), incompatibilities(self, file))[1],
    )
    for file in (data, other, data, other):
        if file is data:
            sm.SmallCells().check_variables(file)
        else:
            with pytest.raises(SchemaError, match="no variables to measure"):
                sm.SmallCells().check_variables(file)
    assert looks == {id(data): 1, id(other): 2}
