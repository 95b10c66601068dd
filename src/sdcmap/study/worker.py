"""Worker functions: open the working copy once, limit libraries to one thread, and run chunks of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from threadpoolctl import threadpool_limits

from sdcmap.core.named_files import restrict_files_to
from sdcmap.data.microdata import Microdata
from sdcmap.files.working_copy import open_copy
from sdcmap.kernels.scratch_memory import limit_memory
from sdcmap.study.batches import run_jobs
from sdcmap.study.jobs import CandidateRow, Job


def run_here(data: Microdata, jobs: Sequence[Job]) -> list[CandidateRow]:
    """Run jobs on data of this process."""
    return run_jobs(data, jobs)


def run_on_copy(path: str, digest: str, memory: int, root: Path | None, jobs: Sequence[Job]) -> list[CandidateRow]:
    """Run jobs on the working copy at `path`, opened once per worker, within this much memory (0: no limit).

    root : the folder below which methods and measures may name files; None: anywhere.
    """
    limit_to_one_thread()
    with limit_memory(memory, Path(path)), restrict_files_to(root):
        return run_here(open_cached_copy(path, digest), jobs)


@cache
def limit_to_one_thread() -> None:
    """Limit BLAS to one thread in this worker, so that sums are the same everywhere."""
    threadpool_limits(1)


@cache
def open_cached_copy(path: str, digest: str) -> Microdata:
    """Return the working copy at `path`, opened once per worker."""
    return open_copy(Path(path), digest)
