"""A progress bar with the time left, on the error stream."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

Progress = Callable[[int, int], None]  # candidates done, candidates in all
Watch = Callable[[int, int, float], None]  # evaluations of a search, its budget, the share of the area that it has


@contextmanager
def progress_bar(show: bool | None = None, gpu: str = "") -> Iterator[Progress]:
    """`with bar() as report: report(done, total)`.

    By default shown where a person looks on. card: the GPU that is used.
    """
    if not (sys.stderr.isatty() if show is None else show):
        yield lambda done, total: None
        return
    with _show_bar(f"candidates on {gpu}" if gpu else "candidates", left=True) as update:
        yield lambda done, total: update(completed=done, total=total)


@contextmanager
def search_bar(watch: Watch | None = None, show: bool | None = None) -> Iterator[Watch]:
    """`with search_bar() as seen: seen(evaluations, budget, area)`, after each generation.

    `watch`, or a bar that is shown where a person looks on.
    """
    if watch is not None or not (sys.stderr.isatty() if show is None else show):
        yield watch or (lambda done, budget, area: None)
        return
    with _show_bar("evaluations, {task.description}", left=False) as update:
        yield lambda done, budget, area: update(completed=done, total=budget, description=f"{area:.1%} of the area")


@contextmanager
def _show_bar(words: str, *, left: bool) -> Iterator[Callable[..., None]]:
    """Return a bar on the error stream, with the time left where that is asked for, and how to update it."""
    from rich import progress
    from rich.console import Console

    columns = (progress.BarColumn(), progress.MofNCompleteColumn(), progress.TextColumn(words))
    ends = (progress.TextColumn("left"), progress.TimeRemainingColumn()) if left else ()
    with progress.Progress(*columns, progress.TimeElapsedColumn(), *ends, console=Console(stderr=True)) as shown:
        yield partial(shown.update, shown.add_task("starts", total=None))
