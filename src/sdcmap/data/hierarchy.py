"""Generalization hierarchies: the label of each value at level 0 (the value itself), 1, 2, ..., coarser at each level."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import pairwise
from pathlib import Path

import numpy as np

from sdcmap.data.private_folder import write_atomically
from sdcmap.errors import SchemaError
from sdcmap.kernels.masking.breaks import interval_labels, interval_of, whole_steps

ANYTHING = "*"


@dataclass(frozen=True)
class Hierarchy:
    """Values and their labels at each level, as in ARX: one row per value, one column per level.

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
            raise SchemaError(
                "a hierarchy needs a label for each value at each level, but its rows have unequal lengths."
            )
        if len({row[0] for row in self.rows}) < len(self.rows):
            raise SchemaError("the first column of a hierarchy has the same value twice: remove one of the rows.")
        for level, (fine, coarse) in enumerate(pairwise(zip(*self.rows, strict=True))):
            if len(set(zip(fine, coarse, strict=True))) > len(set(fine)):
                raise SchemaError(
                    f"level {level + 1} of the hierarchy splits a label of level {level}: each level must be coarser."
                )

    @property
    def levels(self) -> int:
        """The number of the coarsest level; level 0 holds the values."""
        return len(self.rows[0]) - 1

    def at(self, level: int) -> dict[str, str]:
        """Return the label of each value at one level, in the order of the rows."""
        if not 0 <= level <= self.levels:
            raise SchemaError(f"the hierarchy has levels 0 to {self.levels}, but level {level} was requested.")
        return {row[0]: row[level] for row in self.rows}

    @classmethod
    def read(cls, path: str) -> Hierarchy:
        """Read a hierarchy from a CSV file without a header; fields separated by semicolons (as in ARX), tabs or commas."""
        try:
            return cls.parse(Path(path).read_bytes(), path)
        except OSError:
            raise SchemaError(f"{path} cannot be read as a hierarchy: a UTF-8 CSV file without a header.") from None

    @classmethod
    def parse(cls, content: bytes, path: str) -> Hierarchy:
        """Parse the content of such a file; `path` is only named in errors."""
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise SchemaError(f"{path} cannot be read as a hierarchy: a UTF-8 CSV file without a header.") from None
        first = text.partition("\n")[0]
        separator = next((mark for mark in (";", "\t", ",") if mark in first), ";")
        return cls(tuple(tuple(row) for row in csv.reader(text.splitlines(), delimiter=separator) if row))

    @property
    def text(self) -> str:
        """The content of such a file, fields separated by semicolons."""
        text = StringIO(newline="")
        csv.writer(text, delimiter=";").writerows(self.rows)
        return text.getvalue()

    def write(self, path: str) -> None:
        """Write such a file, fields separated by semicolons."""
        write_atomically(Path(path), self.text, private=False)

    @classmethod
    def prefixes(cls, values: Iterable[str], *, hidden: str = ANYTHING) -> Hierarchy:
        """Build a hierarchy that hides the last characters of texts one by one, until none is left."""
        texts = [str(value) for value in values]
        longest = max(map(len, texts), default=0)
        shown = range(longest - 1, -1, -1)  # characters shown at each level
        return cls(tuple((text, *(text[:k].ljust(longest, hidden) for k in shown)) for text in texts))

    @classmethod
    def intervals(cls, values: Iterable[float], widths: Sequence[float], *, start: float = 0.0) -> Hierarchy:
        """Build a hierarchy of intervals [start + i w, start + (i + 1) w), one level per width w; the last level is "*"."""
        numbers = np.array(sorted(set(map(float, values))))
        if len(numbers) == 0 or not all(width > 0 for width in widths):
            raise SchemaError("a hierarchy of intervals needs at least one value, and widths above 0.")
        columns = [[number_text(number) for number in numbers]]
        for width in widths:
            breaks = whole_steps(numbers, width, start)
            labels = interval_labels(breaks.tolist(), "left")
            columns.append([labels[index] for index in interval_of(numbers, breaks, "left")])
        return cls(tuple(zip(*columns, [ANYTHING] * len(numbers), strict=True)))


def number_text(number: float) -> str:
    """Return a number as a hierarchy writes it: 21, not 21.0."""
    return str(int(number)) if number == int(number) else repr(float(number))
