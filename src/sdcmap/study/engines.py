"""Engines that run jobs. Each is a `concurrent.futures.Executor`: serial, threads, processes, Dask, or a user's own.

Worker processes start by forkserver or spawn, never by fork, and end with their parent. A broken pool is rebuilt. A
chunk of jobs that kills its worker twice is halved until a single candidate remains, which is tried alone a few more
times: a worker that was killed from outside must not cost a candidate.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from concurrent.futures.process import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from sdcmap.core import Microdata, PlanError, SdcmapError, did_you_mean
from sdcmap.core.named_files import current_file_root, with_current_file_root
from sdcmap.files.subprocesses import safe_path
from sdcmap.kernels.scratch_memory import bind_memory_limit
from sdcmap.study.cluster import Cluster, open_client, unwrap_client
from sdcmap.study.jobs import CandidateRow, Job, candidate_row
from sdcmap.study.worker import run_here, run_on_copy

ENGINES = ("serial", "threads", "processes", "dask")  # and dask://HOST:PORT
CHUNK_SECONDS = 0.05  # work in one chunk: long enough to outweigh its transfer, short enough for a smooth progress bar
CHUNKS_TIMED = 5  # the median of so many sets the size of the next: one chunk that had to wait for a core does not
CHUNKS_PER_WORKER = 4  # in flight, so that no worker waits for the driver
MAX_DEATHS_ALONE = 4  # a candidate that runs alone is given up after its worker has died this often
MAX_POOL_STARTS = 3  # attempts to start a pool
WORKERS_CANNOT_START = """the worker processes could not start. Put the call under `if __name__ == "__main__":`, because \
workers import the script, or use workers=1."""
WORKER_KILLED = "its worker process was killed every time (out of memory, or a crash in compiled code)"
Run = Callable[[Sequence[Job]], list[CandidateRow]]


class SerialExecutor(Executor):
    """Runs each task when it is submitted."""

    workers = 0.25  # times CHUNKS_PER_WORKER: one chunk at a time

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class BorrowedExecutor(Executor):
    """An executor that belongs to the user: it is used and never shut down."""

    def __init__(self, owner: Executor) -> None:
        self.owner = owner

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        try:
            return self.owner.submit(fn, *args, **kwargs)
        except BrokenExecutor:
            raise SdcmapError("the given executor is broken. Stored scores are kept.") from None


class SharedExecutor(Executor):
    """An executor that serves several runs: the end of a run ends its tasks, not the executor."""

    def __init__(self, owner: Executor) -> None:
        self.owner = owner
        self.shared_fate = getattr(owner, "shared_fate", True)

    def __getattr__(self, name: str) -> object:
        """Return the number of workers, where the owner has it."""
        if name == "workers":
            return getattr(self.owner, name)
        raise AttributeError(name)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return self.owner.submit(fn, *args, **kwargs)


class WorkerProcesses(ProcessPoolExecutor):
    """Worker processes that import nothing from the current folder."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        with safe_path():  # `submit` may start a worker
            return super().submit(fn, *args, **kwargs)


@contextmanager
def worker_pool(
    engine: str, workers: int, executor: Executor | None, data: Microdata, copy: Path | None, memory: int = 0
) -> Iterator[tuple[Callable[[], Executor], Run]]:
    """Yield a function that makes (or remakes) the executor of an engine, and what its workers do with a chunk of jobs."""
    run: Run = partial(with_current_file_root(bind_memory_limit(run_here)), data)
    if copy is not None:
        run = partial(run_on_copy, str(copy), data.digest, memory, current_file_root())
    client = None if executor is None else unwrap_client(executor)
    with (
        open_client(engine, workers) if executor is None and engine.startswith("dask") else nullcontext(client) as dask
    ):
        if dask is not None and copy is not None:
            yield partial(Cluster, dask, data, copy), run
        elif executor is not None:
            yield partial(BorrowedExecutor, executor), run
        else:
            yield partial(make_executor, engine, workers), run


@contextmanager
def share_executor(make: Callable[[], Executor]) -> Iterator[Callable[[], Executor]]:
    """Yield `make` for several runs: one executor serves all of them, and is made again when it is broken."""
    current: list[Executor] = []  # at most one

    def reuse() -> Executor:
        if current and getattr(current[-1], "_broken", False):
            stop_executor(current.pop())
        if not current:
            current.append(make())
        return SharedExecutor(current[-1])

    try:
        yield reuse
    finally:
        for executor in current:
            stop_executor(executor)


def check_engine(engine: str) -> None:
    """Raise PlanError unless the engine is one of ENGINES or the address of a Dask scheduler."""
    if engine not in ENGINES and not engine.startswith("dask://"):
        known = f"{', '.join(ENGINES)} or dask://HOST:PORT"
        raise PlanError(f"the engine must be one of {known}.{did_you_mean(engine, ENGINES)}")


def make_executor(engine: str, workers: int) -> Executor:
    """Return a new executor: serial, threads or processes."""
    if engine == "serial":
        return SerialExecutor()
    if engine == "threads":
        return ThreadPoolExecutor(workers)
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        os._exit(1)  # a worker imports a script without a main guard; the parent reports it
    how = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    for _ in range(MAX_POOL_STARTS):
        with safe_path():  # the pool starts a process for its locks
            pool = WorkerProcesses(workers, multiprocessing.get_context(how), initializer=_start_worker)
        try:
            pool.submit(os.getpid).result()
            return pool
        except BrokenExecutor:
            pool.shutdown()
    raise SdcmapError(WORKERS_CANNOT_START)


def _start_worker() -> None:
    """Initialize a worker: one thread for every library, no reaction to Ctrl-C, and an end with the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in ("POLARS_MAX_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = "1"
    if (parent := multiprocessing.parent_process()) is not None:
        threading.Thread(target=_exit_with_parent, args=(parent,), daemon=True).start()


def _exit_with_parent(parent: Any) -> None:
    parent.join()
    os._exit(1)


def run_all(jobs: Iterator[Job], run: Run, make: Callable[[], Executor], workers: int) -> Iterator[list[CandidateRow]]:
    """Yield rows as they arrive.

    At most CHUNKS_PER_WORKER chunks per worker are in flight. Chunks grow until each has CHUNK_SECONDS of work.
    """
    executor = make()
    suspects: deque[tuple[list[Job], int]] = deque()  # chunks whose worker died, and how often; they run alone
    flying: dict[Future[list[CandidateRow]], tuple[list[Job], int]] = {}
    speeds: deque[float] = deque(maxlen=CHUNKS_TIMED)  # seconds per job of the last chunks
    size = 1
    try:
        while True:
            # While there are suspects, one chunk runs at a time: if the pool breaks again, it is this chunk's fault.
            window = 1 if suspects else CHUNKS_PER_WORKER * getattr(executor, "workers", workers)
            while len(flying) < window:
                chunk, deaths = suspects.popleft() if suspects else (list(islice(jobs, size)), 0)
                if not chunk:
                    break
                try:
                    flying[executor.submit(run, chunk)] = chunk, deaths
                except BrokenExecutor:  # a worker died in the meantime; this chunk was not started
                    suspects.appendleft((chunk, deaths))
                    if flying:
                        break  # the chunks in flight are handled first
                    stop_executor(executor)
                    executor = make()
                    continue
                if deaths:
                    break
            if not flying:
                return
            broken: list[tuple[list[Job], int]] = []
            for future in wait(flying, return_when=FIRST_COMPLETED).done:
                chunk, deaths = flying.pop(future)
                try:
                    rows = future.result()
                except BrokenExecutor:
                    broken.append((chunk, deaths + 1))
                    continue
                # adapt the size of the next chunks to the speed of the last ones, by at most a factor of 4
                speeds.append(sum(row.seconds for row in rows) / len(rows))
                size = max(1, min(1000, 4 * size, int(CHUNK_SECONDS / max(median(speeds), 1e-6))))
                yield rows
            # In a process pool one death breaks all workers, so every chunk in flight is a suspect.
            if broken and getattr(executor, "shared_fate", True):
                broken += [(chunk, deaths + 1) for chunk, deaths in flying.values()]
                flying.clear()
                stop_executor(executor)
                executor = make()
            for chunk, deaths in broken:
                # A first death may have another cause. After the second, halving the chunk finds the candidate.
                if deaths < (2 if len(chunk) > 1 else MAX_DEATHS_ALONE):
                    suspects.append((chunk, deaths))
                elif len(chunk) == 1:
                    yield [candidate_row(chunk[0], "failed", WORKER_KILLED, 0.0)]
                else:
                    half = len(chunk) // 2
                    suspects += [(chunk[:half], 1), (chunk[half:], 1)]
    finally:
        for future in flying:
            future.cancel()
        stop_executor(executor)


def stop_executor(executor: Executor) -> None:
    """Stop an executor at once. Chunks in flight are lost; the next sweep makes them again."""
    for process in list((getattr(executor, "_processes", None) or {}).values()):
        process.terminate()
    executor.shutdown(wait=True, cancel_futures=True)
