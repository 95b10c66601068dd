"""The machine: its cores, and a limit of memory that belongs to one sweep alone."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from sdcmap.kernels.machine import cores
from sdcmap.kernels.scratch_memory import empty, room_limited, under_this_limit


def in_a_file() -> bool:
    return isinstance(empty(10_000, np.int64), np.memmap)


def test_cores_are_counted_wherever_python_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "process_cpu_count", lambda: 3, raising=False)
    assert cores() == 3
    monkeypatch.delattr(os, "process_cpu_count")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 5}, raising=False)
    assert cores() == 2
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores() == 1


def test_two_threads_do_not_share_a_limit(tmp_path: Path) -> None:
    both = threading.Barrier(2)

    def swept(limit: int) -> list[bool]:
        with room_limited(limit, tmp_path):
            both.wait(60)  # both limits hold now
            inside = in_a_file()
            both.wait(60)
        return [inside, in_a_file()]

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(swept, (64 << 10, 0))) == [[True, False], [False, False]]


def test_limits_nest_and_end_with_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="told"), room_limited(64 << 10, tmp_path):
        with room_limited(0, tmp_path):
            assert not in_a_file()
        assert in_a_file()
        raise ValueError("told")
    assert not in_a_file()


def test_a_task_takes_the_limit_to_the_threads_that_run_it(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        with room_limited(64 << 10, tmp_path):
            assert not pool.submit(in_a_file).result()
            assert pool.submit(under_this_limit(in_a_file)).result()
        assert not pool.submit(in_a_file).result()
