"""Scores from a table of risks and utilities made elsewhere (Gomatam, Karr, Sanil 2003, figure 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from sdcmap.core import SchemaError, join_names
from sdcmap.core.estimate import NO_DETAILS
from sdcmap.data.readable import Readable
from sdcmap.files.reader import read_frame
from sdcmap.study.scores import Scores

LOSS_COLUMNS = ("loss", "distortion")  # names of columns in which lower is better
MAX_ROWS_NAMED = 5  # rows of a table that an error names


@dataclass(frozen=True)
class PairColumns:
    """Which columns of a table are the names, the risks and the utility, and whether the utility is a loss."""

    name: str
    risk: tuple[str, ...]
    utility: str
    is_loss: bool

    @staticmethod
    def of(table: pl.DataFrame, name: str, risk: Sequence[str], utility: str, loss: bool) -> PairColumns:
        """Return the stated columns; by default `risk`, and `utility`, or else `loss` or `distortion`."""
        known = (column for column in ("utility", *LOSS_COLUMNS) if column in table.columns)
        across = utility or next(known, "utility")
        return PairColumns(name, tuple(risk) or ("risk",), across, loss or across in LOSS_COLUMNS)

    @property
    def all(self) -> tuple[str, ...]:
        return (self.name, *self.risk, self.utility)


def read_pairs(
    table: Readable, name: str, risk: Sequence[str], utility: str, loss: bool, original: str
) -> tuple[Scores, PairColumns]:
    """Return the scores of a file or frame of pairs, and the columns that were used; parameters as in `RUMap.of_pairs`."""
    frame = read_frame(table)
    columns = PairColumns.of(frame, name, risk, utility, loss)
    return scores_of_pairs(frame, columns, original), columns


def scores_of_pairs(table: pl.DataFrame, columns: PairColumns, original: str) -> Scores:
    """Return the scores of a table with a row for each release: its name, its risks and its utility.

    Rows with the same name are draws of the same method. The row with the name `original` is the unmasked file. Further
    columns that are the same for all draws of a method are its parameters.
    """
    _check_columns(table, columns)
    names = table[columns.name].cast(pl.String)
    measures = {column: _numbers(table, column) for column in (*columns.risk, columns.utility)}
    _refuse_rows(names.is_null(), f"column {columns.name!r} has no name")
    ids = pl.Series("id", [f"row {number}" for number in range(1, len(table) + 1)], dtype=pl.String)
    kind = pl.when(pl.col("method") == original).then(pl.lit("identity")).otherwise(pl.lit("candidate"))
    candidate = pl.DataFrame([ids, names.alias("method")]).with_columns(
        kind=kind, replicate=pl.int_range(pl.len(), dtype=pl.Int64).over("method"), status=pl.lit("ok"), reason=pl.lit(""),
        seconds=pl.lit(0.0),
    )  # fmt: skip
    score = pl.concat([_score_rows(ids, name, values) for name, values in measures.items()])
    facts = [
        {"name": name, "direction": "lower" if name in columns.risk or columns.is_loss else "higher", "low": None,
         "high": None, "unit": "", "axis": "risk" if name in columns.risk else "utility", "baseline_value": None}
        for name in measures
    ]  # fmt: skip
    numbers = dict.fromkeys(("low", "high", "baseline_value"), pl.Float64)
    return Scores(
        candidate, score, pl.DataFrame(facts, schema_overrides=numbers),
        names={name: name for name in names.unique(maintain_order=True)}, columns=_parameters(table, columns, original),
    )  # fmt: skip


def _check_columns(table: pl.DataFrame, columns: PairColumns) -> None:
    if lacking := [name for name in columns.all if name not in table.columns]:
        what = f"column{'s' if len(lacking) > 1 else ''} {', '.join(map(repr, lacking))}"
        known = f"Its columns are {join_names(table.columns)}." if table.columns else "It has no columns."
        raise SchemaError(f"the table has no {what}. {known} A table of pairs has a name, a risk and a utility.")
    if len(set(columns.all)) < len(columns.all):
        raise SchemaError("name, risk and utility must be different columns of the table.")
    if not len(table):
        raise SchemaError("the table has no rows.")


def _numbers(table: pl.DataFrame, column: str) -> pl.Series:
    """Return a column as numbers; infinity is a number, missing values are not."""
    values = table[column].cast(pl.Float64, strict=False)
    _refuse_rows(values.is_null() | values.is_nan(), f"column {column!r} is not a number")
    return values


def _refuse_rows(is_bad: pl.Series, problem: str) -> None:
    """Raise SchemaError that names the rows of the table, never a value."""
    if is_bad.any():
        rows = [str(number + 1) for number in is_bad.arg_true()]
        more = f" and {len(rows) - MAX_ROWS_NAMED} more" if len(rows) > MAX_ROWS_NAMED else ""
        where = f"row{'s' if len(rows) > 1 else ''} {', '.join(rows[:MAX_ROWS_NAMED])}{more}"
        raise SchemaError(f"{problem} in {where} of the table. Fill it in, or remove the row.")


def _score_rows(ids: pl.Series, measure: str, values: pl.Series) -> pl.DataFrame:
    infinite = values.is_infinite()
    return pl.DataFrame({"candidate": ids, "value": values, "infinite": infinite}).select(
        "candidate", pl.lit(measure).alias("measure"), pl.when(~pl.col("infinite")).then(pl.col("value")).alias("value"),
        pl.lit(None, dtype=pl.Float64).alias("se"), pl.lit(NO_DETAILS).alias("details"),
        pl.when("infinite").then(pl.lit("infinite")).otherwise(pl.lit("ok")).alias("status"), pl.lit("").alias("reason"),
    )  # fmt: skip


def _parameters(table: pl.DataFrame, columns: PairColumns, original: str) -> dict[str, dict[str, object]]:
    """Return the further columns of each method that all its draws share."""
    further = [name for name in table.columns if name not in columns.all]
    by_name = table.with_columns(pl.col(columns.name).cast(pl.String)).group_by(columns.name, maintain_order=True)
    varying = by_name.agg(pl.col(further).n_unique()) if further else table.clear()
    shared = [name for name in further if varying[name].max() == 1]
    rows = by_name.agg(pl.col(shared).first()).to_dicts() if shared else []
    return {row.pop(columns.name): row for row in rows if row[columns.name] != original}
