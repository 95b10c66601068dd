"""The base class of linkage attacks: what the attacker knows, and the share of records that they re-identify."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Annotated, ClassVar

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, Range, RiskMeasure, SchemaError, Undefined
from sdcmap.core.audience import TARGET_SHARE
from sdcmap.files.alignment import read_row_numbers
from sdcmap.risk._archive import open_archive, read_archive
from sdcmap.risk.linkage.cost_models import CostModel, attack_persons
from sdcmap.risk.linkage.file_pair import LinkTable, Pair, lay_out


def archive_parts(pair: Pair, true_links: float, links: int) -> dict[str, float]:
    """Return what else a share of the targets in an archive should be read with; links: those that are claimed."""
    return {
        "targets in file": float(len(pair.targets)),
        "precision of links": true_links / max(links, 1),
        "share of released records": true_links / len(pair.released),
    }


@dataclass(frozen=True)
class Attack(RiskMeasure):
    """The base of the linkage attacks: the share of the targets in the file that the attacker re-identifies.

    A target is a released record whose person is in the attacker's file; without an archive, every released record. A
    subclass implements `link`. By default the attacker knows every released column (that their archive has) except
    identifiers, weights, household numbers, strata, and columns stated to be known by the respondent only. Sensitive
    columns are included: an income is sensitive, and yet the tax office knows it.

    Parameters
    ----------
    on : the variables the attacker knows; by default every column that an attacker could know (all but weights,
        households and strata).
    archive : path of the attacker's own file, with its own rows and errors; by default they hold the original
        records. They then name one released record for each person, and the value is the share of the archive's
        people in the released file who are re-identified. `parts` has their number ("targets in file"), the
        "precision of links" and the "share of released records".
    row : the archive's column with the row number in the data, from 0, of each record (missing: a person who is not
        in the data); by default row i of the archive is row i of the data.
    sha256 : the first 16 digits of the archive's SHA-256, filled in when left out; a file with another content is
        refused.
    inclusion : the probability that the target is in the file, in (0, 1]. The share of re-identified records is
        multiplied by it; `parts` has the share without it as "prosecutor".
    """

    example: ClassVar[str] = "Linkage"
    missing: ClassVar[str] = "a value that is missing in one of two records does not count for or against the pair"
    growth: ClassVar[float] = 2.0

    on: tuple[str, ...] = field(default=(), kw_only=True)
    archive: str = field(default="", kw_only=True)
    row: str = field(default="", kw_only=True)
    sha256: str = field(default="", kw_only=True)
    inclusion: Annotated[float, Range(0, 1, "(]")] = field(default=1.0, kw_only=True)

    @property
    def title(self) -> str:
        """Return the title of the measure, with the attacker's file if it has one: the value is a share of its people."""
        return f"{super().title}, of the people in {PurePath(self.archive).name}" if self.archive else super().title

    @property
    def value_unit(self) -> str:
        """Return the unit of the value: with an archive, a share of the attacker's targets in the file."""
        return TARGET_SHARE if self.archive else self.unit

    def problems(self) -> Iterator[str]:
        if self.row and not self.archive:
            yield ".row needs an archive; name its file in .archive."

    def variables(self, data: Microdata) -> tuple[str, ...]:
        if self.on:
            return self.on
        names = tuple(name for name in data.knowable if name != self.row)
        if not self.archive:
            return names
        key = "archive names", self.archive, self.sha256
        archive_names = data.remember(key, lambda: open_archive(self.archive, self.sha256).names)
        return tuple(name for name in names if name in archive_names)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        try:
            if self.archive and not self.variables(data):
                yield f"{type(self).__name__}: {self.archive} has no variable in common with the data."
                return
            yield from super().incompatibilities(data)
        except SchemaError as problem:
            yield f"{type(self).__name__}: {problem}"

    def check_files(self, data: Microdata) -> None:
        self._known_file(data)

    def baseline(self, original: Microdata) -> float | None:
        """Return the value of guessing: one of the n records at random."""
        return self.inclusion / len(original) if len(original) else None

    @property
    def is_one_to_one(self) -> bool:
        """Return whether each known record is linked to at most one released record."""
        return bool(getattr(self, "one_to_one", True))

    @property
    def has_column_costs(self) -> bool:
        """Return whether the cost model has exactly one cost for each column."""
        return True

    def link(self, pair: Pair) -> LinkTable:
        """Return the links that this attacker makes."""
        raise TypeError(f"{type(self).__name__} makes no links.")

    def cost_models(self, pair: Pair) -> list[CostModel]:
        """Return the costs of pairs, field by field; Undefined where the attack has none."""
        raise Undefined(f"{type(self).__name__} does not state costs of pairs.")

    def links(self, original: Microdata, masked: Microdata) -> LinkTable:
        """Return the links, one row for each record of the masked file."""
        return self.link_files(original, masked)[1]

    def link_files(self, original: Microdata, masked: Microdata) -> tuple[Pair, LinkTable]:
        """Return the two files as laid out for linking, and the links between them."""
        pair = self.pair(original, masked, self.check_variables(original))
        return pair, self.link(pair)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        pair = self.pair(original, masked, self.check_variables(original))
        targets = len(pair.targets)
        if self.archive and not self.is_one_to_one:
            rate = attack_persons(pair, self.cost_models(pair), pair.targets).rate
            parts = {"prosecutor": rate, **archive_parts(pair, rate * targets, len(pair.known))}
            return Estimate(value=self.inclusion * rate, parts=parts)
        table = self.link(pair)
        rate = table.true_links / targets
        believed = float(table.correct[table.zone()].sum()) / targets
        parts = {"prosecutor": rate, "zone": believed, **table.facts}
        if self.archive:
            parts |= archive_parts(pair, table.true_links, table.link_count)
        return Estimate(value=self.inclusion * rate, parts=parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """Return the calibrated link probability of each record.

        It is the share of true links among links with such a margin.
        """
        return self.inclusion * self.links(original, masked).probability

    def pair(self, original: Microdata, masked: Microdata, names: tuple[str, ...]) -> Pair:
        """Lay out the attacker's file and the masked file for linking."""
        if masked.origin is None and len(masked) != len(original):
            raise Undefined(
                "the masked file does not tell which original record each row comes from, so links cannot be checked."
            )
        if len(masked) == 0:
            raise Undefined("the masked file has no records.")
        known, person = self._known_file(original)
        if len(known) == 0:
            raise Undefined("the attacker's file has no records.")
        return lay_out(known, person, original, masked, names)

    def _known_file(self, original: Microdata) -> tuple[Microdata, Array]:
        """Return the attacker's file, and the original row of each of its records."""
        if not self.archive:
            return original, np.arange(len(original))
        key = "archive", self.archive, self.sha256, self.row, self.variables(original)
        return original.remember(key, lambda: self._read_archive(original))

    def _read_archive(self, original: Microdata) -> tuple[Microdata, Array]:
        """Read the archive, and the original row of each of its records (number of rows: not in the data)."""
        known = read_archive(self.archive, self.sha256, original, self.variables(original))
        if not self.row:
            if len(known) != len(original):
                raise SchemaError(
                    f"{self.archive} has {len(known)} records and the data {len(original)}. Name in `row` the column "
                    "of the archive with the row number in the data."
                )
            return known, np.arange(len(known))
        whole = open_archive(self.archive, self.sha256)
        if self.row not in whole.names:
            raise SchemaError(f"{self.archive} has no column {self.row!r} of row numbers.")
        row = read_row_numbers(whole, self.row, len(original), self.archive)
        return known, np.where(row < 0, len(original), row)
