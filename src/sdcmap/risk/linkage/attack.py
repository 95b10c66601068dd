"""The linkage attacks as a measure: who the snooper is, which records he holds, and the share that he re-identifies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, Range, RiskMeasure, SchemaError, Undefined
from sdcmap.files.reader import read
from sdcmap.risk._archive import open_archive, read_archive
from sdcmap.risk.linkage.cost_models import CostModel
from sdcmap.risk.linkage.file_pair import LinkTable, Pair, lay_out


@dataclass(frozen=True)
class Attack(RiskMeasure):
    """The base of the linkage attacks: the share of released records that the snooper re-identifies.

    A subclass says how it links, in `link`. Knowable is every released column (that the archive has) but identifiers,
    weights, household numbers, strata, and what is stated to be known by the respondent only. An income is sensitive, and
    yet the tax office knows it.

    Parameters
    ----------
    on : the variables the attacker knows; by default every column that somebody could know (all but weights,
        households and strata).
    archive : path of the attacker's own file, with its own rows and errors; by default they hold the original
        records.
    row : the archive's column that says which row of the data, from 0, each record is (missing: somebody who is not
        in it); by default row i is row i.
    sha256 : the first 16 digits of the archive's SHA-256, filled in when left out; another content is refused.
    inclusion : the probability that the target is in the file, in (0, 1]; the share of re-identified records is
        multiplied by it, and stands without it in `parts` as "prosecutor".
    """

    example: ClassVar[str] = "Linkage"
    missing: ClassVar[str] = "a value that is missing in one of two records says nothing about the pair"
    growth: ClassVar[float] = 2.0

    on: tuple[str, ...] = field(default=(), kw_only=True)
    archive: str = field(default="", kw_only=True)
    row: str = field(default="", kw_only=True)
    sha256: str = field(default="", kw_only=True)
    inclusion: Annotated[float, Range(0, 1, "(]")] = field(default=1.0, kw_only=True)

    def problems(self) -> Iterator[str]:
        if self.row and not self.archive:
            yield ".row belongs to an archive, and .archive names none."

    def variables(self, data: Microdata) -> tuple[str, ...]:
        if self.on:
            return self.on
        names = tuple(name for name in data.knowable if name != self.row)
        if not self.archive:
            return names
        key = "archive names", self.archive, self.sha256
        theirs = data.remember(key, lambda: open_archive(self.archive, self.sha256).names)
        return tuple(name for name in names if name in theirs)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        try:
            if self.archive and not self.variables(data):
                yield f"{type(self).__name__}: {self.archive} has no variable in common with the data."
                return
            yield from super().incompatibilities(data)
        except SchemaError as problem:
            yield f"{type(self).__name__}: {problem}"

    def check_files(self, data: Microdata) -> None:
        self._snooper(data)

    def baseline(self, original: Microdata) -> float | None:
        """A guess: one of the n records at random."""
        return self.inclusion / len(original) if len(original) else None

    @property
    def by_column(self) -> bool:
        """Whether its costs are those of the columns, one for each."""
        return True

    def link(self, pair: Pair) -> LinkTable:
        """The links this snooper makes."""
        raise TypeError(f"{type(self).__name__} makes no links.")

    def courses(self, pair: Pair) -> list[CostModel]:
        """What pairs cost this snooper, field by field; Undefined where that cannot be said."""
        raise Undefined(f"{type(self).__name__} does not add up costs.")

    def links(self, original: Microdata, masked: Microdata) -> LinkTable:
        """The links, one line for each record of the masked file: what a link file is made of."""
        return self.linked(original, masked)[1]

    def linked(self, original: Microdata, masked: Microdata) -> tuple[Pair, LinkTable]:
        """The two files as they were laid out, and the links between them."""
        pair = self.pair(original, masked, self.check_variables(original))
        return pair, self.link(pair)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        table = self.links(original, masked)
        rate = table.rate
        believed = float(table.found[table.zone()].sum()) / len(table.found)
        return Estimate(value=self.inclusion * rate, parts={"prosecutor": rate, "zone": believed, **table.facts})

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The calibrated link probability of each record: the share of true links among links of such a margin."""
        return self.inclusion * self.links(original, masked).probability

    def pair(self, original: Microdata, masked: Microdata, names: tuple[str, ...]) -> Pair:
        """The snooper's file and the masked one, laid out for linking."""
        if masked.origin is None and len(masked) != len(original):
            raise Undefined(
                "the masked file does not say which record each of its rows was, so no link is true or false."
            )
        if len(masked) == 0:
            raise Undefined("the masked file has no records.")
        known, person = self._snooper(original)
        if len(known) == 0:
            raise Undefined("the snooper's file has no records.")
        return lay_out(known, person, original, masked, names)

    def _snooper(self, original: Microdata) -> tuple[Microdata, Array]:
        """The snooper's file, and the original's row that each of its records is."""
        if not self.archive:
            return original, np.arange(len(original))
        key = "archive", self.archive, self.sha256, self.row, self.variables(original)
        return original.remember(key, lambda: self._read(original))

    def _read(self, original: Microdata) -> tuple[Microdata, Array]:
        known = read_archive(self.archive, self.sha256, original, self.variables(original))
        if not self.row:
            if len(known) != len(original):
                raise SchemaError(
                    f"{self.archive} has {len(known)} records and the data {len(original)}: name in `row` the column "
                    "that says which row of the data each is."
                )
            return known, np.arange(len(known))
        whole = open_archive(self.archive, self.sha256)
        if self.row not in whole.names:
            raise SchemaError(f"{self.archive} has no column {self.row!r} of row numbers.")
        row = read(whole.only([self.row]), kinds={self.row: "numeric"}).numbers(self.row)
        held = row[~np.isnan(row)]
        if (held != held.astype(np.int64)).any() or (held < 0).any() or (held >= len(original)).any():
            raise SchemaError(f"{self.row!r} of {self.archive} must hold whole numbers from 0 to {len(original) - 1}.")
        if len(np.unique(held)) < len(held):
            raise SchemaError(f"{self.row!r} of {self.archive} names a row of the data twice.")
        return known, np.where(np.isnan(row), len(original), row).astype(np.int64)
