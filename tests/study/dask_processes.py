"""A Dask scheduler and its workers, each in its own process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from waiting import children, until


@dataclass
class Processes:
    """A scheduler and its workers; `arguments` go to the workers. With `nannies` a worker that dies is started again."""

    folder: Path
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]
    arguments: tuple[str, ...] = ()
    nannies: bool = False

    @property
    def address(self) -> str:
        return str(json.loads((self.folder / "scheduler.json").read_text())["address"])

    @property
    def engine(self) -> str:
        return "dask://" + self.address.partition("://")[2]

    @property
    def working(self) -> list[int]:
        """The worker processes; each has a nanny."""
        return [pid for worker in self.workers for pid in children(worker.pid)]

    def add_worker(self, **environment: str) -> subprocess.Popen[bytes]:
        home = self.folder / f"worker-{len(self.workers)}"
        home.mkdir()
        words = ["worker", "--scheduler-file", str(self.folder / "scheduler.json"), "--nthreads", "1", "--no-dashboard"]
        words += [] if self.nannies else ["--no-nanny"]
        worker = _dask([*words, "--local-directory", str(home), *self.arguments], home, environment)
        self.workers.append(worker)
        return worker


def _dask(words: list[str], folder: Path, environment: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-W", "ignore", "-m", "dask", *words]
    quiet = {"DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False"}  # the profiler samples all the time
    with (folder / "log").open("wb") as log:
        given = {**quiet, **os.environ, **(environment or {})}
        return subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=given)


def _is_written(file: Path) -> bool:
    """Return whether the file exists and is complete."""
    try:
        return bool(json.loads(file.read_text())["address"])
    except (OSError, ValueError):
        return False


@contextmanager
def processes(
    folder: Path, count: int = 2, *arguments: str, dashboard: bool = False, nannies: bool = False, failures: int = 3,
    environment: dict[str, str] | None = None,
) -> Iterator[Processes]:  # fmt: skip
    """`arguments` go to the workers; a task may kill as many workers as `failures` says before it is given up."""
    folder.mkdir(exist_ok=True)
    words = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(folder / "scheduler.json")]
    allowed = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(failures), **(environment or {})}
    words += ["--protocol", "tls"] if environment else []
    view = ["--dashboard-address", "127.0.0.1:0"] if dashboard else ["--no-dashboard"]
    running = Processes(folder, _dask([*words, *view], folder, allowed), [], arguments, nannies)
    try:
        until(lambda: _is_written(folder / "scheduler.json"), "the scheduler")
        for _ in range(count):
            running.add_worker(**(environment or {}))
        yield running
    finally:
        for process in (*running.workers, running.scheduler):
            process.kill()
            process.wait()
