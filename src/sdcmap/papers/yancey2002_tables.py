"""Tables of Yancey, Winkler, Creecy (2002): rows as methods, printed cells, errata, and a comparison as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from sdcmap.core import Method
from sdcmap.methods import MixtureNoise, Noise, RankSwap
from sdcmap.papers.reference import PRINTED, Document

Table = dict[str, dict[str, float]]
Cells = dict[str, dict[str, Document]]  # row -> column -> mean, sd, paper, erratum; see `beside`


def method_of(row: str, on: tuple[str, ...]) -> Method:
    """Return the method of a row, such as "rnkswp05" or "scalmixadd10"."""
    strength = int(row[-2:]) / 100
    if row.startswith("rnkswp"):
        return RankSwap(on=on, p=strength)
    if row.startswith("add"):
        return Noise(on=on, variance=strength, correlated=True)
    return MixtureNoise(on=on, variance=strength, rescale=row.startswith("scal"))


def _table(columns: Sequence[str], rows: str, **_: str) -> Table:
    cells = (line.split() for line in rows.splitlines())
    return {name: dict(zip(columns, map(float, numbers), strict=True)) for name, *numbers in cells}


TABLES: dict[str, Table] = {f"table{k}": _table(**PRINTED["yancey2002"][f"table{k}"]) for k in range(1, 10)}
LOSSES = tuple(TABLES["table1"]["add01"])
WRONG_CELLS: dict[str, dict[tuple[str, str], str]] = {
    table: {
        cell: wrong["erratum"]
        for wrong in PRINTED["yancey2002"]["wrong_cells"]
        if wrong["table"] == table
        for cell in product(wrong["rows"], wrong["columns"])
    }
    for table in TABLES
}


def cells_beside(table: str, row: str, draws: Mapping[str, Sequence[float]]) -> dict[str, Document]:
    """Return the cells of a row: the mean of our draws and their standard deviation, and what the paper prints."""
    cells: dict[str, Document] = {}
    for name, values in draws.items():
        mean = float(np.mean(values)) if values else None
        sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
        cells[name] = {"mean": mean, "sd": sd, "paper": TABLES[table][row].get(name)}
        if (row, name) in WRONG_CELLS[table]:
            cells[name]["erratum"] = WRONG_CELLS[table][row, name]
    return cells


def beside(table: str, ours: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Iterator[str]:
    """Yield the lines of a table: its title, our means, the standard deviation of one run, and the printed cells.

    Cells of `ours` have mean, sd (None: one run), paper (None: not printed) and, if the print is wrong, erratum. * and **
    mark printed cells more than 2 and 3 standard deviations from our mean, apart from rounding; e marks an erratum.
    """
    columns, digits = list(next(iter(ours.values()))), 2 if table in ("table3", "table7") else 4
    width = max(10, *(len(name) + 2 for name in columns))
    yield from ("", PRINTED["yancey2002"][table]["title"])
    yield " " * 22 + "".join(f"{name:>{width}}" for name in columns)
    for row, cells in ours.items():
        for label, fact in (("ours", "mean"), ("sd", "sd"), ("paper", "paper")):
            if fact == "mean" or any(cell[fact] is not None for cell in cells.values()):
                marks = {name: mark(cells[name]) if fact == "paper" else "" for name in columns}
                line = "".join(_format_cell(cells[name][fact], width, digits, marks[name]) for name in columns)
                yield f"{row if fact == 'mean' else '':<14}{label:<8}{line}"


def mark(cell: Mapping[str, Any]) -> str:
    """Return * or ** if the printed cell is far from ours, and e if it is an erratum."""
    stars = "e" if "erratum" in cell else ""
    if cell["paper"] is None or cell["mean"] is None or cell["sd"] is None:
        return stars
    rounding = 0.5 * 10.0 ** -(2 if cell["paper"] > 1 else 4 if abs(cell["paper"] * 1000 % 1) > 1e-9 else 3)
    distance = max(0.0, abs(cell["paper"] - cell["mean"]) - rounding)
    return stars + ("**" if distance > 3 * cell["sd"] else "*" if distance > 2 * cell["sd"] else "")


def _format_cell(value: float | None, width: int, digits: int, marks: str) -> str:
    return f"{'-' if value is None else f'{value:.{digits}f}{marks}':>{width}}"
