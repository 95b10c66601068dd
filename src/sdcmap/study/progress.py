"""A progress bar with the remaining time, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

Progress = Callable[[int, int], None]  # candidates done, candidates in all
Watch = Callable[[int, int, float], None]  # evaluations of a search, its budget, the share of the area that it has


@contextmanager
def progress_bar(show: bool | None = None, gpu: str = "") -> Iterator[Progress]:
    """Show a bar: `with progress_bar() as report: report(done, total)`; by default only on a terminal.

    gpu : the name of the GPU in use.
    """
    if not (sys.stderr.isatty() if show is None else show):
        yield lambda done, total: None
        return
    with _show_bar(f"candidates on {gpu}" if gpu else "candidates", left=True) as update:
        yield lambda done, total: update(completed=done, total=total)


@contextmanager
def search_bar(watch: Watch | None = None, show: bool | None = None) -> Iterator[Watch]:
    """Yield a function to call after each generation with (evaluations, budget, area): `watch`, or a bar on a terminal."""
    if watch is not None or not (sys.stderr.isatty() if show is None else show):
        yield watch or (lambda done, budget, area: None)
        return
    with _show_bar("evaluations, {task.description}", left=False) as update:
        yield lambda done, budget, area: update(completed=done, total=budget, description=f"{area:.1%} of the area")


@contextmanager
def _show_bar(words: str, *, left: bool) -> Iterator[Callable[..., None]]:
    """Show a bar on standard error, with the remaining time if `left`, and yield the function that updates it."""
    from rich import progress
    from rich.console import Console

    columns = (progress.BarColumn(), progress.MofNCompleteColumn(), progress.TextColumn(words))
    ends = (progress.TextColumn("left"), progress.TimeRemainingColumn()) if left else ()
    with progress.Progress(*columns, progress.TimeElapsedColumn(), *ends, console=Console(stderr=True)) as shown:
        yield partial(shown.update, shown.add_task("starts", total=None))
