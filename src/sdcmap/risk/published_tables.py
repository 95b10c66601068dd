"""Re-identification by an attacker who also has published tables of the same file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import polars as pl

from sdcmap.core import Array, Estimate, Generator, Microdata, Range, RiskMeasure, SchemaError, Undefined, did_you_mean
from sdcmap.core.named_files import verify_file
from sdcmap.data.cells import common_codes, recode_to_released_categories
from sdcmap.files.reader import read
from sdcmap.kernels.tables.coding import compress

COUNT_COLUMN = "count"  # the column of a table with its counts
MAX_COMBINATIONS = 2000  # of categories; the flows between them are a dense square matrix
MAX_FITTING_ROUNDS = 200  # of proportional fitting
FITTING_TOLERANCE = 1e-9  # change or difference of a margin, as a share of the total


def fit_margins(prior: Array, margins: Sequence[tuple[Array, Array]]) -> Array:
    """Scale the counts of cells until they have these margins (iterative proportional fitting).

    margins : for each, the group of every cell and the count of every group
    """
    counts = prior.astype(np.float64)
    for _ in range(MAX_FITTING_ROUNDS):
        before = counts.copy()
        for group, wanted in margins:
            have = np.bincount(group, counts, minlength=len(wanted))
            counts *= np.divide(wanted, have, out=np.zeros(len(wanted)), where=have > 0)[group]
        if np.abs(counts - before).max(initial=0.0) <= FITTING_TOLERANCE * counts.sum():
            break
    return counts


def estimate_flows(chance: Array, true: Array, released: Array) -> Array:
    """Estimate how many people moved from each true cell (row) to each released cell (column).

    The probabilities of a change are scaled to both counts. Deming and Stephan (1940): the flows closest to `chance` in
    relative entropy.
    """
    moved = chance.copy()
    for _ in range(MAX_FITTING_ROUNDS):
        moved *= np.divide(true, rows := moved.sum(axis=1), out=np.zeros(len(true)), where=rows > 0)[:, None]
        columns = moved.sum(axis=0)
        moved *= np.divide(released, columns, out=np.zeros(len(released)), where=columns > 0)
        if np.abs(moved.sum(axis=1) - true).max() <= FITTING_TOLERANCE * true.sum():
            break
    return moved


@dataclass(frozen=True)
class PublishedTables(RiskMeasure):
    """Share of released records re-identified by an attacker who also has published tables of the file.

    The attacker knows some categories of a person, and counts of the unmasked file from published tables: of all these
    variables together, or of some at a time (margins). If the release has more records of a combination than there were
    people, some were moved there; if fewer, some were moved away. The attacker estimates how many people moved between
    combinations, and picks for the person a record of the combination with the highest probability per record.

    Parameters
    ----------
    tables : paths of tables (CSV, Parquet, SPSS, Stata, SAS), at least one: columns named like variables, and `count`.
        Variables outside `on` are summed over. Combinations that are not listed have count 0; counts are scaled to the
        file.
    sha256 : the first 16 digits of the SHA-256 of each, filled in when left out; a file with another digest is
        rejected.
    on : the variables the attacker knows, all categorical; by default the keys.
    slip : the attacker's estimate of how often masking changed a value, in [0.001, 0.5].

    Formula: (1/n) sum_i 1{y_i in Y(x_i)} / #{records in Y(x_i)}, x_i the person's combination, y_i the released one,
        Y(x) the combinations with the largest J_xy/r_y. r counts released records. t starts from r and `slip` and is
        scaled to every table in turn; J starts as the probability of a change from x to y, prod_v (1 - slip) or
        slip/(L_v - 1), L_v categories, and is scaled to t and r. `parts`: "without tables", the same with t not scaled.
    Missing is a category. Recoded variables: the known values and the tables are first recoded to the released
    categories. Weights and households are not used. Undefined with more than 2,000 combinations.
    Reference: Deming and Stephan (1940), proportional fitting.

    Examples
    --------
    >>> PublishedTables(["census.csv"], ["9f86d081884c7d65"], on="sex").text
    "PublishedTables(tables='census.csv', sha256='9f86d081884c7d65', on='sex')"
    """

    label: ClassVar[str] = "Re-identified with published tables"
    description: ClassVar[str] = (
        "Share of records that an attacker re-identifies by combining the release with published tables of the file."
    )

    tables: tuple[str, ...]
    sha256: tuple[str, ...] = ()
    on: tuple[str, ...] = ()
    slip: Annotated[float, Range(0.001, 0.5)] = 0.1

    def problems(self) -> Iterator[str]:
        if not self.tables:
            yield ".tables is required: the paths of published tables."

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        amounts = [name for name in self.variables(data) if name in data.names and data.column(name).levels is None]
        if amounts:
            yield f"{type(self).__name__} needs categorical variables; {amounts[0]!r} is numeric."

    def check_files(self, data: Microdata) -> None:
        unknown = [name for name in self.table_columns(data) if name not in data.names]
        if unknown:
            messages = (
                f"a table has a column {n!r}, but the data do not.{did_you_mean(n, data.names)}" for n in unknown
            )
            raise SchemaError(" ".join(messages))

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        with_tables, without = self._success_chances(original, masked)
        return Estimate(value=float(with_tables.mean()), parts={"without tables": float(without.mean())})

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """Return the probability that each record is re-identified."""
        return self._success_chances(original, masked)[0]

    def table_columns(self, data: Microdata) -> tuple[str, ...]:
        """Return the columns of all tables, each once; raise `SchemaError` if a table cannot be read."""
        return tuple(
            dict.fromkeys(name for table in self._tables(data) for name in table.columns if name != COUNT_COLUMN)
        )

    def _tables(self, data: Microdata) -> list[pl.DataFrame]:
        return data.remember(("published tables", self.tables, self.sha256), self._read)

    def _read(self) -> list[pl.DataFrame]:
        tables = []
        for path, digest in zip(self.tables, self.sha256, strict=True):
            table = read(verify_file(path, digest)).frame()
            if (
                COUNT_COLUMN not in table.columns
                or not table[COUNT_COLUMN].dtype.is_numeric()
                or (table[COUNT_COLUMN] < 0).any()
            ):
                raise SchemaError(f"{path} needs a numeric column {COUNT_COLUMN!r} without negative counts.")
            tables.append(table.with_columns(pl.exclude(COUNT_COLUMN).cast(pl.String)))
        return tables

    def _success_chances(self, original: Microdata, masked: Microdata) -> tuple[Array, Array]:
        """Return the probability that each released record is re-identified, with the tables and without."""
        names = self.check_variables(original)
        known = recode_to_released_categories(original, masked, names)
        codes = np.column_stack([common_codes(known, masked, name) for name in names])
        cell = compress(list(codes.T))[0]
        ours, theirs, size = cell[: len(known)], cell[len(known) :], int(cell.max(initial=0)) + 1
        if size > MAX_COMBINATIONS:
            raise Undefined(f"there are {size:,} combinations, at most {MAX_COMBINATIONS:,} work: name fewer in `on`.")
        first = np.unique(cell, return_index=True)[1]
        released = np.bincount(theirs, minlength=size).astype(np.float64)
        chance = _chances(codes[first], self.slip)
        margins = list(self._margins(original, names, codes, first, len(masked)))
        origin = np.arange(len(masked)) if masked.origin is None else masked.origin
        hits = []
        # once with the tables, once without, to show what they add
        for known_margins in (margins, []):
            true = fit_margins(chance @ released, known_margins)
            if true.sum() == 0:
                raise Undefined("the tables contradict each other or the release: no counts have all their margins.")
            moved = estimate_flows(chance, true * len(masked) / true.sum(), released)
            hits.append(_hits(moved / np.maximum(released, 1.0), released, ours[origin], theirs))
        return hits[0], hits[1]

    def _margins(
        self, original: Microdata, names: Sequence[str], codes: Array, first: Array, rows: int
    ) -> Iterator[tuple[Array, Array]]:
        """Yield for each table the group of every cell, and the count of every group, scaled to the file."""
        for table in self._tables(original):
            within = [name for name in table.columns if name in names]
            if not within:
                continue
            positions = [names.index(name) for name in within]
            cells = codes[first][:, positions]
            group, group_sizes = compress(list(cells.T))
            code_of = [_code_of(original, name, codes[:, at]) for name, at in zip(within, positions, strict=True)]
            group_of = dict(zip(map(tuple, cells.tolist()), group, strict=True))
            wanted = np.zeros(len(group_sizes))
            for *values, count in table.select(*within, COUNT_COLUMN).iter_rows():
                key = tuple(code.get(value, -1) for code, value in zip(code_of, values, strict=True))
                if (index := group_of.get(key)) is not None:
                    wanted[index] += count or 0
            if wanted.sum() > 0:
                yield group, wanted * rows / wanted.sum()


def _code_of(original: Microdata, name: str, codes: Array) -> dict[str | None, int]:
    """Return the code of each original value, which may be that of a wider released category."""
    return dict(zip(original.frame()[name].cast(pl.String).to_list(), codes[: len(original)].tolist(), strict=True))


def _chances(cells: Array, slip: float) -> Array:
    """Return the probability of a move from one combination to another if each value changes with probability `slip`."""
    chance = np.ones((len(cells), len(cells)))
    for code in cells.T:
        chance *= np.where(code[:, None] == code[None, :], 1 - slip, slip / max(1, len(np.unique(code)) - 1))
    return chance


def _hits(score: Array, released: Array, true_cell: Array, released_cell: Array) -> Array:
    """Return the probability that a person's own record is picked from the best-scoring combinations."""
    possible = np.where(released[None, :] > 0, score, -1.0)
    best = possible >= possible.max(axis=1, keepdims=True) * (1 - FITTING_TOLERANCE)
    return np.asarray(best[true_cell, released_cell] / np.maximum((best @ released)[true_cell], 1.0))
