"""The population that a sample was drawn from, as a file: how many of its people match each released record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from typing import NamedTuple

import numpy as np

from sdcmap.core.named_files import digest_of
from sdcmap.data.cells import common_codes, in_released_categories, stacked
from sdcmap.data.covering import explained, layers_of, mixed_names
from sdcmap.data.microdata import Microdata
from sdcmap.errors import SchemaError, Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.coding import compress
from sdcmap.kernels.tables.wildcards import MISSING, wildcard_sums
from sdcmap.risk._archive import digest_problems, read_archive
from sdcmap.risk._frequencies import KeyMeasure


class Matches(NamedTuple):
    """Combinations of keys that occur in the release or in the population: the one of each released record, how many
    persons of the population have each, and how many released records and persons match it."""

    code: Array
    persons: Array
    released: Array
    population: Array


@dataclass(frozen=True)
class PopulationMeasure(KeyMeasure):
    """A measure of keys that may look them up in a file of the population.

    population : path of the file. sha256 : of its content.

    Parameters
    ----------
    sha256 : the first 16 digits of the population file's SHA-256, filled in when left out; another content is
        refused.
    population : path of a file of the population with columns of the same names and categories (CSV, Parquet, SPSS,
        Stata, SAS); without one the number of persons is estimated.
    """

    _: KW_ONLY
    population: str = ""
    sha256: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.population and not self.sha256:
            object.__setattr__(self, "sha256", digest_of(self.population, f"{type(self).__name__}.population"))

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        yield from digest_problems(self.sha256)

    def misfits(self, data: Microdata) -> Iterator[str]:
        problems = list(super().misfits(data))
        yield from problems
        if not problems and self.population:
            try:
                self.people(data)
            except SchemaError as problem:
                yield f"{type(self).__name__}: {problem}"

    def people(self, data: Microdata) -> Microdata:
        """The keys of the population, read once."""
        names = self.variables(data)
        read = lambda: read_archive(self.population, self.sha256, data, names)
        return data.remember(("population", self.population, self.sha256, names), read)

    def matches(self, original: Microdata, masked: Microdata) -> Matches:
        """Who matches whom, in the categories of the release."""
        if len(masked) == 0:
            raise Undefined("the file has no records.")
        names = self.variables(original)
        known = in_released_categories(original, masked, names)
        masked = explained(known, masked, names)
        mixed = mixed_names(known, masked, names)
        people = _in_categories_of(original, masked, self.people(original), names)
        columns = [column for name in names for column in self._codes(masked, people, name, name in mixed)]
        cell, _ = compress([column + 1 for column in columns])
        _, first = np.unique(cell, return_index=True)
        code, theirs = np.split(cell, [len(masked)])
        count = [np.bincount(side, minlength=len(first)).astype(np.float64) for side in (code, theirs)]
        cells, sums = np.column_stack(columns)[first], np.column_stack(count)
        sums = wildcard_sums(cells, sums) if (cells < 0).any() else sums
        return Matches(code, count[1], sums[:, 0], sums[:, 1])

    def _codes(self, masked: Microdata, people: Microdata, name: str, mixed: bool) -> list[Array]:
        """One column of both files, coded alike, or one for each layer of labels of several depths: MISSING where any
        value matches; Undefined where one has numbers, the other categories."""
        gone = np.concatenate([masked.missing(name), people.missing(name)])
        layers = layers_of(people, masked, name) if mixed else None
        if layers is not None:
            columns = list(np.vstack([layers.released, layers.known]).T)
        elif (masked.column(name).levels is None) != (people.column(name).levels is None):
            raise Undefined(f"{name!r} was recoded, and nobody can say which released category each value went into.")
        else:
            codes = common_codes(masked, people, name).astype(np.int64)
            columns = [np.where(gone, codes.max(initial=0) + 1, codes)]
        return [np.where(gone, MISSING, code) for code in columns] if self.missing_is == "any value" else columns


def _in_categories_of(original: Microdata, masked: Microdata, people: Microdata, names: tuple[str, ...]) -> Microdata:
    """The people in the categories that masking made, as the original's records tell them; without those who have a value
    that no record of the original has, for nobody knows its category."""
    recoded = [name for name in names if masked.column(name).levels is not original.column(name).levels]
    if not recoded:
        return people
    columns = {name: stacked([file.column(name) for file in (original, people)]) for name in recoded}
    everybody = Microdata(original.schema.only(recoded), columns)
    came = np.arange(len(masked)) if masked.origin is None else masked.origin
    seen = in_released_categories(everybody, replace(masked, origin=came), recoded)
    lost = np.logical_or.reduce([seen.missing(name) & ~everybody.missing(name) for name in recoded])[len(original) :]
    theirs = seen.take(np.arange(len(original), len(everybody)))
    schema = people.schema.recoded({name: "String" for name in recoded if theirs.column(name).levels is not None})
    both = {name: theirs.column(name) if name in recoded else people.column(name) for name in names}
    return Microdata(schema, both).take(np.flatnonzero(~lost))
