"""People found by a snooper who also holds tables that were published of the same file."""

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

COUNT = "count"  # the column of a table that holds its counts
MOST_CELLS = 2000
ROUNDS = 200  # of proportional fitting
CLOSE = 1e-9


def fitted(prior: Array, margins: Sequence[tuple[Array, Array]]) -> Array:
    """Counts of cells scaled until they have these margins, each (the group of every cell, the count of every group)."""
    counts = prior.astype(np.float64)
    for _ in range(ROUNDS):
        before = counts.copy()
        for group, wanted in margins:
            have = np.bincount(group, counts, minlength=len(wanted))
            counts *= np.divide(wanted, have, out=np.zeros(len(wanted)), where=have > 0)[group]
        if np.abs(counts - before).max(initial=0.0) <= CLOSE * counts.sum():
            break
    return counts


def flows(chance: Array, true: Array, released: Array) -> Array:
    """How many people went from each true cell (row) to each released one: the chances of a change, scaled to both counts.

    Deming and Stephan (1940); the flows nearest to `chance` in relative entropy.
    """
    moved = chance.copy()
    for _ in range(ROUNDS):
        moved *= np.divide(true, rows := moved.sum(axis=1), out=np.zeros(len(true)), where=rows > 0)[:, None]
        columns = moved.sum(axis=0)
        moved *= np.divide(released, columns, out=np.zeros(len(released)), where=columns > 0)
        if np.abs(moved.sum(axis=1) - true).max() <= CLOSE * true.sum():
            break
    return moved


@dataclass(frozen=True)
class PublishedTables(RiskMeasure):
    """The share of released records that a snooper finds who also holds published tables of the file.

    The snooper knows some categories of a person as they are, and counts of the file before it was masked, as published in
    tables: of all these variables, or of some of them each (margins). Where the release has more records of a combination
    than there were people, some came from elsewhere; where it has fewer, some left. He works out how many people went from
    each combination to each other, and takes for his person a record of the combination that is likeliest for one record.

    Parameters
    ----------
    tables : paths of tables (CSV, Parquet, SPSS, Stata, SAS), at least one: columns named like variables, and `count`.
        Variables outside `on` are summed over. What a table does not list is 0; counts are scaled to the file.
    sha256 : the first 16 digits of the SHA-256 of each, filled in when left out; another content is refused.
    on : the variables he knows, categories all; by default the keys.
    slip : how often he thinks that masking changed a value, in [0.001, 0.5].

    Formula: (1/n) sum_i 1{y_i in Y(x_i)} / #{records in Y(x_i)}, x_i the person's combination, y_i the released one, Y(x)
    the combinations with the largest J_xy/r_y. r counts released records. t starts as what `slip` makes of r and is scaled
    to every table in turn; J starts as the chance of a change from x to y, prod_v (1 - slip) or slip/(L_v - 1), L_v
    categories, and is scaled to t and r. `parts`: "without tables", the same with t not scaled.
    Missing is a category of its own. Recoded variables: what he knows and the tables are put into the released categories
    first. Weights and households are not used. More than 2,000 combinations are `Undefined`: name fewer variables.
    Reference: Deming and Stephan (1940), proportional fitting.

    Examples
    --------
    >>> PublishedTables(["census.csv"], ["9f86d081884c7d65"], on="sex").text
    "PublishedTables(tables='census.csv', sha256='9f86d081884c7d65', on='sex')"
    """

    label: ClassVar[str] = "Disclosed together with tables"
    description: ClassVar[str] = "Share of records that published tables and the release together disclose."

    tables: tuple[str, ...]
    sha256: tuple[str, ...] = ()
    on: tuple[str, ...] = ()
    slip: Annotated[float, Range(0.001, 0.5)] = 0.1

    def problems(self) -> Iterator[str]:
        if not self.tables:
            yield ".tables must be given: the paths of published tables."

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        amounts = [name for name in self.variables(data) if name in data.names and data.column(name).levels is None]
        if amounts:
            yield f"{type(self).__name__}: tables are of categories, and {amounts[0]!r} holds amounts."

    def check_files(self, data: Microdata) -> None:
        strange = [name for name in self.named_columns(data) if name not in data.names]
        if strange:
            told = (f"a table has a column {n!r} and the data have none.{did_you_mean(n, data.names)}" for n in strange)
            raise SchemaError(" ".join(told))

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        with_tables, without = self._found(original, masked)
        return Estimate(value=float(with_tables.mean()), parts={"without tables": float(without.mean())})

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The chance that each record is found."""
        return self._found(original, masked)[0]

    def named_columns(self, data: Microdata) -> tuple[str, ...]:
        """The columns that the tables are of, each once; SchemaError where a table cannot be read."""
        return tuple(dict.fromkeys(name for table in self._tables(data) for name in table.columns if name != COUNT))

    def _tables(self, data: Microdata) -> list[pl.DataFrame]:
        return data.remember(("published tables", self.tables, self.sha256), self._read)

    def _read(self) -> list[pl.DataFrame]:
        tables = []
        for path, digest in zip(self.tables, self.sha256, strict=True):
            table = read(verify_file(path, digest)).frame()
            if COUNT not in table.columns or not table[COUNT].dtype.is_numeric() or (table[COUNT] < 0).any():
                raise SchemaError(f"{path} needs a column {COUNT!r} of counts, none below 0.")
            tables.append(table.with_columns(pl.exclude(COUNT).cast(pl.String)))
        return tables

    def _found(self, original: Microdata, masked: Microdata) -> tuple[Array, Array]:
        """The chance that each released record is found, with the tables and without."""
        names = self.check_variables(original)
        known = recode_to_released_categories(original, masked, names)
        codes = np.column_stack([common_codes(known, masked, name) for name in names])
        cell = compress(list(codes.T))[0]
        ours, theirs, size = cell[: len(known)], cell[len(known) :], int(cell.max(initial=0)) + 1
        if size > MOST_CELLS:
            raise Undefined(f"{size:,} combinations are more than {MOST_CELLS:,}: name fewer variables.")
        first = np.unique(cell, return_index=True)[1]
        released = np.bincount(theirs, minlength=size).astype(np.float64)
        chance = _chances(codes[first], self.slip)
        margins = list(self._margins(original, names, codes, first, len(masked)))
        origin = np.arange(len(masked)) if masked.origin is None else masked.origin
        hits = []
        for known_margins in (margins, []):
            true = fitted(chance @ released, known_margins)
            if true.sum() == 0:
                raise Undefined("the tables do not go together: no count has all their margins.")
            moved = flows(chance, true * len(masked) / true.sum(), released)
            hits.append(_hits(moved / np.maximum(released, 1.0), released, ours[origin], theirs))
        return hits[0], hits[1]

    def _margins(
        self, original: Microdata, names: Sequence[str], codes: Array, first: Array, rows: int
    ) -> Iterator[tuple[Array, Array]]:
        """Of each table the group of every cell, and the count of every group, scaled to the file."""
        for table in self._tables(original):
            within = [name for name in table.columns if name in names]
            if not within:
                continue
            places = [names.index(name) for name in within]
            cells = codes[first][:, places]
            group, met = compress(list(cells.T))
            code_of = [_code_of(original, name, codes[:, place]) for name, place in zip(within, places, strict=True)]
            group_of = dict(zip(map(tuple, cells.tolist()), group, strict=True))
            wanted = np.zeros(len(met))
            for *values, count in table.select(*within, COUNT).iter_rows():
                spot = group_of.get(tuple(code.get(value, -1) for code, value in zip(code_of, values, strict=True)))
                if spot is not None:
                    wanted[spot] += count or 0
            if wanted.sum() > 0:
                yield group, wanted * rows / wanted.sum()


def _code_of(original: Microdata, name: str, codes: Array) -> dict[str | None, int]:
    """The code of each value of the original, which may be that of a wider category of the release."""
    return dict(zip(original.frame()[name].cast(pl.String).to_list(), codes[: len(original)].tolist(), strict=True))


def _chances(cells: Array, slip: float) -> Array:
    """The chance that masking makes one combination of another, if it changes each value with probability `slip`."""
    chance = np.ones((len(cells), len(cells)))
    for code in cells.T:
        chance *= np.where(code[:, None] == code[None, :], 1 - slip, slip / max(1, len(np.unique(code)) - 1))
    return chance


def _hits(score: Array, released: Array, known: Array, got: Array) -> Array:
    """The chance that a person's own record is taken: one of the best-scoring combinations, all records of them alike."""
    there = np.where(released[None, :] > 0, score, -1.0)
    best = there >= there.max(axis=1, keepdims=True) * (1 - CLOSE)
    return np.asarray(best[known, got] / np.maximum((best @ released)[known], 1.0))
