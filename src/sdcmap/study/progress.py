"""A progress bar with the time left, on the error stream."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int, int], None]  # candidates done, candidates in all


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
