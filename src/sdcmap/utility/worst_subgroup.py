"""The largest loss of a subgroup."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Measure, Method, Microdata, Range, Undefined, did_you_mean
from sdcmap.data.cells import distinct_cells


class Subgroup(NamedTuple):
    """A subgroup: its loss, its rows in the original, and its rows in the released file."""

    loss: float
    rows: Array
    released: Array


@dataclass(frozen=True)
class WorstSubgroup(Measure):
    """Largest loss over subgroups of the people, which a mean over all would hide.

    Parameters
    ----------
    measure : the loss, a utility measure that is better when lower and not random, such as "IL1s(on='wage')".
    by : the variables whose combinations are the subgroups, such as region, or sex and age, with their original values.
    fewest : subgroups with fewer original records are left out, at least 10.

    Formula: max over subgroups g of loss(original records of g, their released records). A mean over 50 regions can be
        small although one region was distorted.
    `parts`: "whole", the loss of the whole file; "median" over subgroups; "subgroups", their number, and "left out",
    the share of records in smaller ones; "1st", "2nd", "3rd", the largest losses, and their sizes "records of the 1st",
    ... A report never names the subgroups; the data show which they are.
    Missing is a subgroup of its own. Weights and households as in the measure. Subgroups for which the measure is
    undefined are left out; undefined if all are. Undefined for synthetic files, because their rows do not correspond to
    people.
    Reference: Purdam and Elliot (2007), who repeat published analyses, most of them of subgroups, on masked files.

    Examples
    --------
    >>> WorstSubgroup("IL1s(on='wage')", by=["region"]).text
    "WorstSubgroup(measure=IL1s(on='wage'), by='region')"
    """

    label: ClassVar[str] = "Largest loss in a subgroup"
    description: ClassVar[str] = "Largest loss over subgroups of the people, which an average over all would hide."

    axis: ClassVar[Literal["risk", "utility"]] = "utility"
    unit: ClassVar[str] = "unit of its measure"
    missing: ClassVar[str] = "a subgroup of its own; otherwise as in the measure"
    weights: ClassVar[str] = "as in the measure"
    bounds: ClassVar[tuple[float | None, float | None]] = (None, None)

    measure: Measure
    by: tuple[str, ...]
    fewest: Annotated[int, Range(10)] = 30

    def problems(self) -> Iterator[str]:
        if self.measure.axis != "utility" or self.measure.direction != "lower":
            yield ".measure must be a loss: a utility measure that is better when lower."
        if self.measure.sampled:
            yield ".measure must not be random: the largest of several losses with sampling error is biased upward."
        if not self.by:
            yield ".by must name at least one variable."

    def for_informed_attacker(self, method: Method) -> Measure:
        return replace(self, measure=self.measure.for_informed_attacker(method))

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.measure.variables(data)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from self.measure.incompatibilities(data)
        for name in self.by:
            if name not in data.schema:
                yield f"WorstSubgroup: no column {name!r}.{did_you_mean(name, data.names)}"

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        groups = self.subgroups(original, masked, rng)
        if not groups:
            raise Undefined(f"no subgroup with at least {self.fewest} records has a value.")
        losses, sizes = np.array([g.loss for g in groups]), np.array([len(g.rows) for g in groups])
        whole = self.measure.score(original, masked, rng).value
        return Estimate(value=float(losses.max()), parts=self._parts(losses, sizes, len(original)) | {"whole": whole})

    def subgroups(self, original: Microdata, masked: Microdata, rng: Generator) -> list[Subgroup]:
        """Return every subgroup with enough records for which the measure has a value."""
        self.check_variables(original)
        cells = original.view(distinct_cells, self.by)
        group_of = cells.code if masked.origin is None else cells.code[masked.origin]
        groups = []
        for group in np.flatnonzero(cells.count >= self.fewest):
            rows, released = np.flatnonzero(cells.code == group), np.flatnonzero(group_of == group)
            before, after = original.take(rows), masked.take(released)
            # each subgroup is scored as a separate file, so origins count within its rows
            index = np.searchsorted(rows, released if masked.origin is None else masked.origin[released])
            origin = None if np.array_equal(index, np.arange(len(rows))) else index
            files = Microdata(before.schema, before.columns), Microdata(after.schema, after.columns, origin)
            with suppress(Undefined):
                groups.append(Subgroup(self.measure.score(*files, rng).value, rows, released))
        return groups

    def _parts(self, losses: Array, sizes: Array, n: int) -> dict[str, float]:
        """Return the summaries over subgroups and the three largest losses."""
        left_out = 1 - float(sizes.sum() / n)
        parts = {"median": float(np.median(losses)), "subgroups": float(len(losses)), "left out": left_out}
        for rank, group in zip(("1st", "2nd", "3rd"), np.argsort(-losses, kind="stable"), strict=False):
            parts |= {rank: float(losses[group]), f"records of the {rank}": float(sizes[group])}
        return parts
