"""Generalization hierarchies: for each value its label at level 0 (itself), 1, 2, ..., each coarser than the one before."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import pairwise
from pathlib import Path

import numpy as np

from sdcmap.data.private_folder import write_whole
from sdcmap.errors import SchemaError
from sdcmap.kernels.masking.breaks import interval_labels, interval_of, whole_steps

ANYTHING = "*"


@dataclass(frozen=True)
class Hierarchy:
    """Values and their labels at each level, as ARX keeps them: one row a value, one column a level.

    Examples
    --------
    >>> zip_codes = Hierarchy.prefixes(["81667", "81675"])
    >>> zip_codes.at(1)
    {'81667': '8166*', '81675': '8167*'}
    >>> ages = Hierarchy.intervals([21, 29, 34], widths=[10, 20])
    >>> ages.at(1)
    {'21': '[20, 30)', '29': '[20, 30)', '34': '[30, 40)'}
    """

    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        if not self.rows:
            raise SchemaError("a hierarchy needs at least one value.")
        if len({len(row) for row in self.rows}) > 1:
            raise SchemaError("a hierarchy needs a label for each value at each level: its rows have unequal lengths.")
        if len({row[0] for row in self.rows}) < len(self.rows):
            raise SchemaError("a hierarchy names a value twice in its first column.")
        for level, (fine, coarse) in enumerate(pairwise(zip(*self.rows, strict=True))):
            if len(set(zip(fine, coarse, strict=True))) > len(set(fine)):
                raise SchemaError(f"level {level + 1} of the hierarchy splits a label of level {level}.")

    @property
    def levels(self) -> int:
        """The number of the coarsest level."""
        return len(self.rows[0]) - 1

    def at(self, level: int) -> dict[str, str]:
        """The label of each value at one level, in the order of the rows."""
        if not 0 <= level <= self.levels:
            raise SchemaError(f"the hierarchy has levels 0 to {self.levels}, and level {level} is asked for.")
        return {row[0]: row[level] for row in self.rows}

    @classmethod
    def read(cls, path: str) -> Hierarchy:
        """A hierarchy from a CSV file without a header; fields parted by semicolon (as ARX writes them), tab or comma."""
        try:
            return cls.parse(Path(path).read_bytes(), path)
        except OSError:
            raise SchemaError(f"{path} cannot be read as a hierarchy: a UTF-8 CSV file without a header.") from None

    @classmethod
    def parse(cls, content: bytes, path: str) -> Hierarchy:
        """The hierarchy that such a file holds."""
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise SchemaError(f"{path} cannot be read as a hierarchy: a UTF-8 CSV file without a header.") from None
        first = text.partition("\n")[0]
        parted = next((mark for mark in (";", "\t", ",") if mark in first), ";")
        return cls(tuple(tuple(row) for row in csv.reader(text.splitlines(), delimiter=parted) if row))

    @property
    def text(self) -> str:
        """What such a file holds, parted by semicolons."""
        text = StringIO(newline="")
        csv.writer(text, delimiter=";").writerows(self.rows)
        return text.getvalue()

    def write(self, path: str) -> None:
        """The same file again, parted by semicolons."""
        write_whole(Path(path), self.text, private=False)

    @classmethod
    def prefixes(cls, values: Iterable[str], *, hidden: str = ANYTHING) -> Hierarchy:
        """Texts whose last characters are hidden one by one, until none is left."""
        texts = [str(value) for value in values]
        longest = max(map(len, texts), default=0)
        kept = range(longest - 1, -1, -1)  # characters that are shown
        return cls(tuple((text, *(text[:k].ljust(longest, hidden) for k in kept)) for text in texts))

    @classmethod
    def intervals(cls, values: Iterable[float], widths: Sequence[float], *, start: float = 0.0) -> Hierarchy:
        """Numbers in intervals [start + i w, start + (i + 1) w) for each width w, and everything at the last level."""
        numbers = np.array(sorted(set(map(float, values))))
        if len(numbers) == 0 or not all(width > 0 for width in widths):
            raise SchemaError("a hierarchy of intervals needs values, and widths above 0.")
        columns = [[number_text(number) for number in numbers]]
        for width in widths:
            breaks = whole_steps(numbers, width, start)
            labels = interval_labels(breaks.tolist(), "left")
            columns.append([labels[place] for place in interval_of(numbers, breaks, "left")])
        return cls(tuple(zip(*columns, [ANYTHING] * len(numbers), strict=True)))


def number_text(number: float) -> str:
    """A number as a hierarchy writes it: 21, not 21.0."""
    return str(int(number)) if number == int(number) else repr(float(number))
