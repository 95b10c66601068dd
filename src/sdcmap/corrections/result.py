"""What a data user gets: corrected statistics with standard errors, and what to know about them."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True, repr=False)
class Corrected:
    """Statistics of a noise-masked file with the noise taken off.

    table : one row a statistic: the domain's categories (one column for each variable of `by`), statistic ("mean",
        "covariance", "correlation" or "coefficient"), of, with, released (computed from the file as it is), corrected, se,
        low and high (95 % confidence interval) and records. A value that does not exist is null.
    notes : sentences about the correction.
    semidefinite : whether every corrected covariance matrix is one, that is, positive semidefinite.
    """

    table: pl.DataFrame
    notes: tuple[str, ...]
    semidefinite: bool

    def of(self, statistic: str) -> pl.DataFrame:
        """The rows of one statistic, such as "coefficient"."""
        return self.table.filter(pl.col("statistic") == statistic).drop("statistic")

    def __repr__(self) -> str:
        rows = [self.table.columns, *([_shown(value) for value in row] for row in self.table.rows())]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([*lines, *self.notes])


def _shown(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
