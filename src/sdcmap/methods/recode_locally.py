"""Recoding record by record, as far as each needs it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import polars as pl

from sdcmap.core import Array, Generator, Method, Range, Roles, Trials, did_you_mean, join_names
from sdcmap.data.hierarchy import ANYTHING, number_text
from sdcmap.data.microdata import Column, Microdata, smallest_unsigned
from sdcmap.data.schema import KINDS, Schema
from sdcmap.kernels.tables.coding import compress
from sdcmap.methods.recode import Recode

RARE = 0.1  # of the records: categories of a trial that fewer have come together first


@dataclass(frozen=True)
class RecodeLocally(Method):
    """Recode each record step by step, from fine to coarse, until k records share its combination, and no further.

    Recoding a column for all (`Recode`) takes the detail of thousands for the sake of a few. Here a record that has enough
    others like it keeps its values, and only who stands alone goes up the ladder.

    Parameters
    ----------
    steps_up : the ladder, recodings of one or more variables each, such as [Recode("age", width=5), Recode("age",
        width=20), Recode("region", hierarchy="regions.csv", level=1)]; each is of the original values, and takes the
        place of an earlier one of the same variable, which it must not split.
    k : how many records must share a combination, at least 2.
    on : the variables of the combination; by default the keys of the file. Variables that are recoded are among them
        always.

    Formula: at step s the records that are not settled yet are counted by their combination after s steps; those that k or
        more share are settled with it. So each released combination of settled records has k records or more, and the
        groups are apart.
    Who is still among fewer than k after the last step is released at the last step: a `Suppress` after it blanks what is
    left. A recoded column holds categories of several steps, such as 34, "(30, 40]" and "(20, 40]", in the order of the
    least value that each was made of.
    Missing is a category of its own and stays missing. Weights and households are not used: records are counted one by one.
    Reference: LeFevre, DeWitt, Ramakrishnan (2005), local recoding; ARX's local transformation, which settles records in
    rounds in the same way.

    Examples
    --------
    >>> RecodeLocally([Recode("age", width=5), Recode("age", width=20)], k=5).text
    "RecodeLocally(steps_up=[Recode(on='age', width=5.0), Recode(on='age', width=20.0)], k=5)"
    """

    label: ClassVar[str] = "Local recoding"
    description: ClassVar[str] = (
        "Values are replaced by broader categories, only as far as each record needs it to be shared with others."
    )

    kinds: ClassVar[tuple[str, ...]] = KINDS
    random: ClassVar[bool] = False
    kept: ClassVar[str] = "every value of records whose combination enough others share"
    distorted: ClassVar[str] = "the detail of rare combinations, each as far as it needs"

    steps_up: tuple[Method, ...]
    k: Annotated[int, Range(2)] = 3
    on: tuple[str, ...] = ()

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        steps = [step for name in reversed(roles.keys) for step in _ladder(roles, name)]
        return {f"{cls.__name__} {k}": cls(tuple(steps), k) for k in ((3, 10) if steps else ())}

    @classmethod
    def at_strength(cls, strength: float, names: tuple[str, ...], roles: Roles) -> Method | None:
        """A search does not try it: it leaves who is among fewer than k to a `Suppress`."""
        return None

    @property
    def action(self) -> str:
        return f"recoded record by record until {self.k} are alike"

    @property
    def title(self) -> str:
        return f"{join_names(self.masked_names)} {self.action}"

    @property
    def masked_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for step in self.steps_up for name in step.masked_names))

    def problems(self) -> Iterator[str]:
        if not self.steps_up:
            yield ".steps_up must hold at least one recoding."
        for step in self.steps_up:
            if not isinstance(step, Recode) or step.becomes != "label" or step.within:
                yield f".steps_up must hold recodings into labels, of the whole file: {type(step).__name__} is none."

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().incompatibilities(data)
        for step in self.steps_up:
            yield from step.incompatibilities(data)
        for name in self.on:
            if name not in data.names:
                yield f"RecodeLocally: no column {name!r}.{did_you_mean(name, data.names)}"

    def schema_after(self, schema: Schema) -> Schema:
        return schema.with_categories({name: "String" for name in self.masked_names if name in schema.names})

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        names = tuple(dict.fromkeys((*(self.on or data.keys), *self.masked_names)))
        ladder = [{name: _labeled(data, name) if name in self.masked_names else data.column(name) for name in names}]
        for step in self.steps_up:
            made = step.mask(data, rng)
            ladder.append(ladder[-1] | {name: made.column(name) for name in step.masked_names})
        height = settled([[columns[name].values for name in names] for columns in ladder], self.k)
        chosen = {name: _chosen([columns[name] for columns in ladder], height) for name in self.masked_names}
        levels = {name: column.levels for name, column in chosen.items() if column.levels is not None}
        return data.change(None, {name: column.values for name, column in chosen.items()}, levels)


def _ladder(roles: Roles, name: str) -> Iterator[Recode]:
    """Categories that few have together, then all of them."""
    levels = roles.data.column(name).levels
    every = () if levels is None else tuple(map(str, levels.drop_nulls().to_list()))
    rare = roles.rare(name, RARE)
    if 1 < len(rare) < len(every):
        yield Recode((name,), merge=(rare,), labels=("other",))
    if len(every) > 1:
        yield Recode((name,), merge=(every,), labels=(ANYTHING,))


def settled(ladder: list[list[Array]], k: int) -> Array:
    """The step at which each record is settled; `ladder`: the codes of every variable after each number of steps."""
    height = np.full(len(ladder[0][0]), len(ladder) - 1)
    left = np.arange(len(height))
    for step, columns in enumerate(ladder):
        if not len(left):
            break
        code, count = compress([np.unique(column[left], return_inverse=True)[1] for column in columns])
        enough = count[code] >= k
        height[left[enough]] = step
        left = left[~enough]
    return height


def _labeled(data: Microdata, name: str) -> Column:
    """The values themselves as texts."""
    column = data.column(name)
    if column.levels is not None:
        return Column(column.values, column.levels.cast(pl.String))
    distinct, place = np.unique(column.values, return_inverse=True)
    texts = [None if np.isnan(value) else number_text(value) for value in distinct]
    return Column(place.astype(smallest_unsigned(len(texts))), pl.Series(name, texts, dtype=pl.String))


def _chosen(columns: list[Column], height: Array) -> Column:
    """For each record the label of its step; labels in the order of the least original value that each was made of."""
    alphabet: dict[str | None, int] = {}
    values = np.empty(len(height), dtype=np.int64)
    for step, column in enumerate(columns):
        rows = np.flatnonzero(height == step)
        if not len(rows) or column.levels is None:
            continue
        met, place = np.unique(column.values[rows], return_inverse=True)
        own = column.levels.to_list()
        values[rows] = np.array([alphabet.setdefault(own[code], len(alphabet)) for code in met], dtype=np.int64)[place]
    least = np.full(len(alphabet), np.iinfo(np.int64).max)
    np.minimum.at(least, values, columns[0].values.astype(np.int64))
    texts = sorted(alphabet, key=lambda text: (text is None, least[alphabet[text]]))
    place = np.argsort([alphabet[text] for text in texts])
    return Column(place[values].astype(smallest_unsigned(len(texts))), pl.Series(texts, dtype=pl.String))
