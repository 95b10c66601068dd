"""Records that link to an external file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate, Measure
from sdcmap.core.value import Range
from sdcmap.data.cells import common_codes, moves
from sdcmap.data.microdata import Microdata
from sdcmap.errors import SchemaError, Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.coding import compress, count_cells
from sdcmap.risk._archive import digest_problems, read_archive, stated_digest


def archive_matches(data: Microdata, archive: Microdata, names: tuple[str, ...]) -> Array:
    """How many records of the archive have the same values of `names` as each record of the data."""
    code, met = compress([common_codes(data, archive, name) for name in names])
    ours, theirs = np.split(code, [len(data)])
    matches: Array = count_cells(theirs, len(met))[ours]
    return matches


@dataclass(frozen=True)
class ExternalLink(Measure):
    """The share of unchanged records that link uniquely, or nearly so, to an external file.

    The snooper holds a file with names, an archive, and looks up the key values of each released record in it. He succeeds
    when few records of the archive have them, and the released record is one that the masking left alone.

    Parameters
    ----------
    archive : path of the snooper's file (CSV, Parquet, SPSS, Stata, SAS), with columns of the same names and categories.
    on : the variables he knows; by default the keys of the file.
    near : a record links when 1 to `near` records of the archive match it; 1 is unique, at least 1.
    sha256 : the first 16 digits of the archive's SHA-256, filled in when left out; another content is refused.

    Formula: #{unchanged records with 1..near matches in the archive} / #{unchanged records}; unchanged is as it was on
    these variables. Values match when they are equal.
    Missing is a category of its own: it matches what is missing in the archive. Weights and households are not used.
    Where every record has changed the value is undefined, never 0.
    Reference: Gomatam, Karr, Sanil (2003), section 2.1, last paragraph.

    Examples
    --------
    >>> ExternalLink("register.csv", near=2, sha256="9f86d081884c7d65").text
    "ExternalLink(archive='register.csv', near=2, sha256='9f86d081884c7d65')"
    """

    axis: ClassVar[Literal["risk", "utility"]] = "risk"
    unit: ClassVar[str] = "share of records"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    at_nothing: ClassVar[float | None] = 0.0

    archive: str
    on: tuple[str, ...] = ()
    near: Annotated[int, Range(1)] = 1
    sha256: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "sha256", stated_digest(type(self).__name__, self.archive, self.sha256))

    def problems(self) -> Iterator[str]:
        yield from digest_problems(self.sha256)

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or data.keys

    def misfits(self, data: Microdata) -> Iterator[str]:
        problems = list(super().misfits(data))
        yield from problems
        if not problems:
            try:
                self._links(data)
            except SchemaError as problem:
                yield f"ExternalLink: {problem}"

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        rows = moves(original, masked, self.checked(original)).rows
        links, linked = self._links(original)
        if masked.origin is not None:
            links = links[masked.origin]
            linked = int(links.sum())
        counted = len(masked) - len(rows)
        if counted == 0:
            raise Undefined("every record has changed on the measured variables, so none is left to count.")
        return Estimate(value=(linked - int(links[rows].sum())) / counted)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """1 where the record links, 0 elsewhere; NaN where it has changed."""
        rows = moves(original, masked, self.checked(original)).rows
        links = self._links(original)[0]
        exposed = (links if masked.origin is None else links[masked.origin]).astype(float)
        exposed[rows] = np.nan
        return exposed

    def _links(self, original: Microdata) -> tuple[Array, int]:
        """Which records of the original link to the archive, and how many: read once per file."""
        return original.remember(("archive links", self), lambda: self._read_links(original))

    def _read_links(self, original: Microdata) -> tuple[Array, int]:
        names = self.variables(original)
        matches = archive_matches(original, read_archive(self.archive, self.sha256, original, names), names)
        links: Array = (matches >= 1) & (matches <= self.near)
        return links, int(links.sum())
