"""The number of cores, and memory limits that apply to one block and thread."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from sdcmap.kernels.machine import cores
from sdcmap.kernels.scratch_memory import bind_memory_limit, empty, limit_memory


def is_in_file() -> bool:
    return isinstance(empty(10_000, np.int64), np.memmap)


def test_cores_are_counted_on_every_python_and_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "process_cpu_count", lambda: 3, raising=False)
    assert cores() == 3
    monkeypatch.delattr(os, "process_cpu_count")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 5}, raising=False)
    assert cores() == 2
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores() == 1


def test_memory_limit_is_not_shared_between_threads(tmp_path: Path) -> None:
    both = threading.Barrier(2)

    def use_limit(limit: int) -> list[bool]:
        with limit_memory(limit, tmp_path):
            both.wait(60)  # both limits are set now
            inside = is_in_file()
            both.wait(60)
        return [inside, is_in_file()]

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(use_limit, (64 << 10, 0))) == [[True, False], [False, False]]


def test_memory_limits_nest_and_end_on_errors(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="inside the block"), limit_memory(64 << 10, tmp_path):
        with limit_memory(0, tmp_path):
            assert not is_in_file()
        assert is_in_file()
        raise ValueError("inside the block")
    assert not is_in_file()


def test_bound_task_keeps_the_limit_in_other_threads(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        with limit_memory(64 << 10, tmp_path):
            assert not pool.submit(is_in_file).result()
            assert pool.submit(bind_memory_limit(is_in_file)).result()
        assert not pool.submit(is_in_file).result()
