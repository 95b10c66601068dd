"""Stronger masking for unsafe records alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.random import Generator

from sdcmap.core.method import Method, Trials
from sdcmap.core.roles import Roles
from sdcmap.core.streams import Stream
from sdcmap.core.value import Range
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Infeasible, SchemaError, Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.masking.granularity import rounded_as_others
from sdcmap.methods.chain import Chain
from sdcmap.methods.noise import Noise
from sdcmap.recordwise.neighbourhood import Unsafe, assess


@dataclass(frozen=True)
class Protect(Method):
    """Mask once more, with `method`, only the records that `rule` calls unsafe in what earlier steps of a chain have left.

    Parameters
    ----------
    rule : who is unsafe: `Unsafe(k, r, q, on, ...)`. It names the records anew from the data; no plan, spec or note ever
        lists them. The original is the file before the chain began; as a first step nothing is perturbed yet.
    method : how these records are masked.
    among : "file" runs the method on the whole file and keeps what it did to unsafe records, so that its strength refers
        to the whole file's spread; "unsafe" runs it among the unsafe records alone, so that a swap stays an exchange.
    rounds : how often at most unsafe records are named and masked, at least 1; a round without any ends it.

    Formula: y'_i = method(y)_i where record i is unsafe, else y_i. New numbers end in as many zeros as those beside them in
    size do, so that no digit tells who was unsafe.
    Missing values: as the method says; a record the rule cannot judge is left as it is. Weights and households: as the
    method says. What the method keeps for a whole file (such as a distribution) it need not keep for a part.
    Reference: Seri (2005), section 3: "the need for higher protection of the records in the unsafe zone".

    Examples
    --------
    >>> from sdcmap.methods import Noise
    >>> Protect(Unsafe(on="income", k=5), Noise(on="income", variance=0.5)).text
    "Protect(rule=Unsafe(on='income', k=5), method=Noise(on='income', variance=0.5))"
    """

    looks_back: ClassVar[bool] = True
    revision: ClassVar[int] = 2  # 2: new numbers are as round as others

    rule: Unsafe
    method: Method
    among: Literal["file", "unsafe"] = "file"
    rounds: Annotated[int, Range(1, 100)] = 1

    @property
    def deed(self) -> str:
        return f"of unsafe records {self.method.deed}"

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        """After noise, more of it for the records that are still unsafe."""
        if not roles.numbers:
            return {}
        more = cls(Unsafe(roles.numbers, scale="standardised"), Noise(roles.numbers, 0.5))
        return {f"{cls.__name__} after Noise .05": Chain((Noise(roles.numbers, 0.05), more))}

    def problems(self) -> Iterator[str]:
        if self.within:
            yield ".within belongs to the method that protects."

    @property
    def random(self) -> bool:  # type: ignore[override]
        """It is random when its method is."""
        return self.method.random

    @property
    def mixes(self) -> bool:  # type: ignore[override]
        """It mixes people's values when its method does."""
        return self.method.mixes

    @property
    def missing(self) -> str:  # type: ignore[override]
        return self.method.missing

    @property
    def kept(self) -> str:  # type: ignore[override]
        return "of records that are protected enough, what earlier steps left"

    @property
    def distorted(self) -> str:  # type: ignore[override]
        return (
            f"the values of records with few neighbours, as {type(self.method).__name__} does: {self.method.distorted}"
        )

    @property
    def masked_names(self) -> tuple[str, ...]:
        return self.method.masked_names

    def misfits(self, data: Microdata) -> Iterator[str]:
        yield from self.rule.misfits(data)
        yield from self.method.misfits(data)

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        if data.origin is not None:
            raise Infeasible(
                "Protect needs the original beside each record, and an earlier step took or moved records."
            )
        original = data if data.base is None else data.base
        for _ in range(self.rounds):
            stream = Stream(rng.bytes(32))
            try:
                assessed = assess(original, data, self.rule)
            except (SchemaError, Undefined) as reason:
                raise Infeasible(f"who is unsafe cannot be told: {reason}") from None
            unsafe = assessed.rows[~assessed.safe]
            if len(unsafe) == 0:
                break
            data = self._protected(data, unsafe, stream)
        return data.change(None, {})

    def _protected(self, data: Microdata, unsafe: Array, stream: Stream) -> Microdata:
        """The file with what the method does to these rows."""
        if self.among == "file":
            made, rows = self.method.apply(data, stream), unsafe
        else:
            part = data.take(unsafe)
            made, rows = self.method.apply(Microdata(part.schema, part.columns), stream), np.arange(len(unsafe))
        if made.origin is not None:
            raise Infeasible(f"Protect cannot use {type(self.method).__name__}: it takes or moves records.")
        for name in self.masked_names:
            column, before = made.column(name), data.column(name)
            if column.levels is not None and before.levels is not None and not column.levels.equals(before.levels):
                raise Infeasible(f"Protect cannot recode {name!r} for some records alone: it would have two codings.")
            new = column.values[rows]
            if column.levels is None and before.levels is None:
                new = rounded_as_others(new, before.values, stream.child(f"zeros of {name}").rng())
            data = data.change(unsafe, {name: new})
        return data
