"""A progress bar with the time left, on the error stream."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int, int], None]  # candidates done, candidates in all
Watch = Callable[[int, int, float], None]  # evaluations of a search, its budget, the share of the area that it has


@contextmanager
def bar(show: bool | None = None, card: str = "") -> Iterator[Progress]:
    """`with bar() as report: report(done, total)`; by default shown where a person looks on. card: the GPU that is used."""
    if not (sys.stderr.isatty() if show is None else show):
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    words = TextColumn(f"candidates on {card}" if card else "candidates")
    columns = (BarColumn(), MofNCompleteColumn(), words, TimeElapsedColumn(), TextColumn("left"))
    with Bar(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as shown:
        task = shown.add_task("sweep", total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


@contextmanager
def search_bar(watch: Watch | None = None, show: bool | None = None) -> Iterator[Watch]:
    """`with search_bar() as seen: seen(evaluations, budget, area)`, after each generation: `watch`, or a bar that is shown
    where a person looks on."""
    if watch is not None or not (sys.stderr.isatty() if show is None else show):
        yield watch or (lambda done, budget, area: None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("evaluations, {task.description}"), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True)) as shown:
        task = shown.add_task("starts", total=None)

        def seen(done: int, budget: int, area: float) -> None:
            shown.update(task, completed=done, total=budget, description=f"{area:.1%} of the area")

        yield seen
