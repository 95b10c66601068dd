"""Local recoding: each record is recoded only as far as needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import polars as pl

from sdcmap.core import Array, Generator, Method, Range, Roles, Trials, did_you_mean, join_names
from sdcmap.core.method import Origin
from sdcmap.data.hierarchy import ANYTHING, number_text
from sdcmap.data.microdata import Column, Microdata, smallest_unsigned
from sdcmap.data.schema import KINDS, Schema
from sdcmap.kernels.tables.coding import compress
from sdcmap.methods.recode import Recode

RARE_SHARE = 0.1  # of the records; in a trial, categories below this share are merged first


@dataclass(frozen=True)
class RecodeLocally(Method):
    """Recode each record from fine to coarse, only until at least k records share its combination of values.

    `Recode` changes a column for all records, even if only a few need it. Here a record that enough others share keeps
    its values, and only rare combinations are recoded.

    Parameters
    ----------
    steps_up : recodings from fine to coarse, such as [Recode("age", width=5), Recode("age", width=20), Recode("region",
        hierarchy="regions.csv", level=1)]. Each applies to the original values and replaces an earlier one of the same
        variable; it must not split categories of the earlier one.
    k : the number of records that must share a combination, at least 2.
    on : the variables of the combination; by default the keys of the file. The recoded variables are always included.

    Formula: at step s, the remaining records are counted by their combination after s steps. Those that k or more share
        are released with it. Each of these combinations thus has at least k records, and no record belongs to two.
    Records that are still among fewer than k after the last step are released as of the last step; use `Suppress`
    afterward to blank them. A recoded column contains categories of several steps, such as 34, "(30, 40]" and
    "(20, 40]", sorted by the smallest original value in each.
    Missing is a category of its own and stays missing. Weights and households are not used: records are counted one by one.
    Reference: LeFevre, DeWitt, Ramakrishnan (2005), local recoding; ARX's local transformation, which proceeds in the same
    rounds.

    Examples
    --------
    >>> RecodeLocally([Recode("age", width=5), Recode("age", width=20)], k=5).text
    "RecodeLocally(steps_up=[Recode(on='age', width=5.0), Recode(on='age', width=20.0)], k=5)"
    """

    label: ClassVar[str] = "Local recoding"
    description: ClassVar[str] = (
        "Values are replaced by broader categories, in each record only until enough others share its combination."
    )

    kinds: ClassVar[tuple[str, ...]] = KINDS
    random: ClassVar[bool] = False
    value_origin: ClassVar[Origin] = "derived"
    kept: ClassVar[str] = "all values of records whose combination enough other records share"
    distorted: ClassVar[str] = "the detail of rare combinations, each only as far as needed"

    steps_up: tuple[Method, ...]
    k: Annotated[int, Range(2)] = 3
    on: tuple[str, ...] = ()

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        steps = [step for name in reversed(roles.keys) for step in _ladder(roles, name)]
        return {f"{cls.__name__} {k}": cls(tuple(steps), k) for k in ((3, 10) if steps else ())}

    @classmethod
    def at_strength(cls, strength: float, names: tuple[str, ...], roles: Roles) -> Method | None:
        """Return None: a search does not try it, because rare combinations may remain that need `Suppress`."""
        return None

    @property
    def action(self) -> str:
        return f"locally recoded to k = {self.k}"

    @property
    def title(self) -> str:
        return f"{join_names(self.masked_names)} {self.action}"

    @property
    def masked_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for step in self.steps_up for name in step.masked_names))

    def problems(self) -> Iterator[str]:
        if not self.steps_up:
            yield ".steps_up must contain at least one recoding."
        for step in self.steps_up:
            if not isinstance(step, Recode) or step.becomes != "label" or step.within:
                yield f".steps_up must contain Recode with becomes = 'label', without .within. Got {type(step).__name__}."

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
        ladder = [
            {name: _label_values(data, name) if name in self.masked_names else data.column(name) for name in names}
        ]
        for step in self.steps_up:
            recoded = step.mask(data, rng)
            ladder.append(ladder[-1] | {name: recoded.column(name) for name in step.masked_names})
        step_of = choose_steps([[columns[name].values for name in names] for columns in ladder], self.k)
        columns_out = {name: _pick_labels([columns[name] for columns in ladder], step_of) for name in self.masked_names}
        levels = {name: column.levels for name, column in columns_out.items() if column.levels is not None}
        return data.change(None, {name: column.values for name, column in columns_out.items()}, levels)


def _ladder(roles: Roles, name: str) -> Iterator[Recode]:
    """Yield recodings of a trial: first the rare categories are merged, then all of them."""
    levels = roles.data.column(name).levels
    every = () if levels is None else tuple(map(str, levels.drop_nulls().to_list()))
    rare = roles.rare(name, RARE_SHARE)
    if 1 < len(rare) < len(every):
        yield Recode((name,), merge=(rare,), labels=("other",))
    if len(every) > 1:
        yield Recode((name,), merge=(every,), labels=(ANYTHING,))


def choose_steps(ladder: list[list[Array]], k: int) -> Array:
    """Return the number of steps that each record needs. ladder : the codes of all variables after each step."""
    step_of = np.full(len(ladder[0][0]), len(ladder) - 1)
    left = np.arange(len(step_of))
    for step, columns in enumerate(ladder):
        if not len(left):
            break
        # Only records without a step yet are counted, so that a combination consists of records of one step.
        code, count = compress([np.unique(column[left], return_inverse=True)[1] for column in columns])
        enough = count[code] >= k
        step_of[left[enough]] = step
        left = left[~enough]
    return step_of


def _label_values(data: Microdata, name: str) -> Column:
    """Return the original values of a column as text labels."""
    column = data.column(name)
    if column.levels is not None:
        return Column(column.values, column.levels.cast(pl.String))
    distinct, index = np.unique(column.values, return_inverse=True)
    texts = [None if np.isnan(value) else number_text(value) for value in distinct]
    return Column(index.astype(smallest_unsigned(len(texts))), pl.Series(name, texts, dtype=pl.String))


def _pick_labels(columns: list[Column], step_of: Array) -> Column:
    """Return each record's label after its own number of steps.

    Labels are sorted by the smallest original value that each contains, so that an ordinal column stays in order.
    """
    alphabet: dict[str | None, int] = {}
    values = np.empty(len(step_of), dtype=np.int64)
    for step, column in enumerate(columns):
        rows = np.flatnonzero(step_of == step)
        if not len(rows) or column.levels is None:
            continue
        observed, index = np.unique(column.values[rows], return_inverse=True)
        own = column.levels.to_list()
        values[rows] = np.array([alphabet.setdefault(own[code], len(alphabet)) for code in observed], dtype=np.int64)[
            index
        ]
    least = np.full(len(alphabet), np.iinfo(np.int64).max)
    np.minimum.at(least, values, columns[0].values.astype(np.int64))
    texts = sorted(alphabet, key=lambda text: (text is None, least[alphabet[text]]))
    rank = np.argsort([alphabet[text] for text in texts])
    return Column(rank[values].astype(smallest_unsigned(len(texts))), pl.Series(texts, dtype=pl.String))
