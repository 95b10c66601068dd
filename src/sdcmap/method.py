"""Methods: a masking method is a frozen value with one verb, `mask(data, rng)`.

What all methods share is served once, here: columns and kinds are checked, missing values refused where a method
cannot take them, and strata masked apart, each with a random stream of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from sdcmap.cells import cells
from sdcmap.errors import Infeasible, SchemaError, Undefined, did_you_mean
from sdcmap.likelihood import Field
from sdcmap.microdata import Array, Microdata
from sdcmap.randomness import Stream
from sdcmap.value import Value


@dataclass(frozen=True)
class Method(Value):
    """The base of every masking method.

    Class data: `kinds` it masks; `missing` "kept" (missing values stay as they are), "category" (missing is a category
    like any other) or "refused"; `weights` and `households`: a sentence on what it does with them; `random`: whether
    replicates differ; `at_zero`: the parameters at which it is the identity; `kept` and `distorted`: for the method
    note, what it keeps exactly and what it distorts.
    """

    kinds: ClassVar[tuple[str, ...]] = ("numeric",)
    missing: ClassVar[str] = "kept"
    weights: ClassVar[str] = "not used; every record counts once"
    households: ClassVar[str] = "not used; persons are masked one by one"
    random: ClassVar[bool] = True
    at_zero: ClassVar[Mapping[str, Any] | None] = None
    kept: ClassVar[str] = ""
    distorted: ClassVar[str] = ""

    within: tuple[str, ...] = field(default=(), kw_only=True)  # mask each stratum of these variables apart

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        """A masked copy of `data`, drawn with `rng` alone."""
        raise TypeError(f"{type(self).__name__} has no mask.")

    def log_likelihood(self, known: Microdata, released: Microdata) -> tuple[Field, ...]:
        """log P(released record j | known record i) as fields to add up: what a reader of the method note can compute.

        It speaks of the masked variables alone. `known` is the snooper's file and may have other rows than `released`.
        """
        raise Undefined(f"{type(self).__name__} states no likelihood of its released values.")

    @property
    def masked_names(self) -> tuple[str, ...]:
        """Names of the variables this method may change."""
        return tuple(getattr(self, "on", ()))

    def misfits(self, data: Microdata) -> Iterator[str]:
        """Every reason why this method does not fit these data, a sentence each."""
        for name in self._columns():
            if name not in data.names:
                yield f"{type(self).__name__}: no column {name!r}.{did_you_mean(name, data.names)}"
        for name in self.masked_names:
            if name not in data.names:
                continue
            variable = data.schema[name]
            if variable.kind not in self.kinds:
                yield f"{type(self).__name__} masks {' and '.join(self.kinds)} variables; {name!r} is {variable.kind}."
            if variable.role in ("identifier", "weight", "household"):
                yield f"{type(self).__name__} cannot mask {name!r}: it is the file's {variable.role}."
            if self.missing == "refused" and data.missing(name).any():
                yield f"{type(self).__name__} needs a variable without missing values; {name!r} has some."

    def _columns(self) -> tuple[str, ...]:
        return (*self.masked_names, *self.within)

    def apply(self, data: Microdata, stream: Stream) -> Microdata:
        """`mask`, after all checks, in each stratum of `within` with a stream of its own."""
        problems = list(self.misfits(data))
        if problems:
            raise SchemaError(" ".join(problems))
        if not self.within:
            return self.mask(data, stream.rng())
        stratum = data.view(cells, self.within).code
        order = np.argsort(stratum, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(stratum[order])) + 1)
        return _join(data, [(rows, self._mask_stratum(data, rows, stream, len(parts))) for rows in parts])

    def _mask_stratum(self, data: Microdata, rows: Array, stream: Stream, count: int) -> Microdata:
        part = data.take(rows)
        label = "|".join(str(part[name][0]) for name in self.within)  # a hash takes it in; it is never shown
        try:
            return self.mask(Microdata(part.schema, part.columns), stream.child(f"stratum {label}").rng())
        except Infeasible as reason:
            raise Infeasible(f"in one of {count} strata: {reason}") from None


def _join(data: Microdata, parts: list[tuple[Array, Microdata]]) -> Microdata:
    """The strata put back together, row by row."""
    names = dict.fromkeys(name for _, part in parts for name in part.changes)
    values = {name: data.column(name).values.copy() for name in names}
    for rows, part in parts:
        for name in part.changes:
            values[name][rows] = part.column(name).values
    return data.change(None, values) if names else data
