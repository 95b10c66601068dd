"""The loss of the subgroup that lost most."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Measure, Method, Microdata, Range, Undefined, did_you_mean
from sdcmap.data.cells import distinct_cells


class Subgroup(NamedTuple):
    """A subgroup: what it lost, the rows of its people in the original, and their rows in the released file."""

    loss: float
    rows: Array
    released: Array


@dataclass(frozen=True)
class WorstSubgroup(Measure):
    """The largest loss over subgroups of the people, where a mean over all hides it.

    Parameters
    ----------
    measure : the loss, a utility measure that is better when lower and draws nothing, such as "IL1s(on='wage')".
    by : the variables whose combinations are the subgroups, such as region, or sex and age; as the original has them.
    fewest : subgroups with fewer original records are left out, at least 10.

    Formula: max over subgroups g of loss(original records of g, what was released of them). A mean over 50 regions can
        be small where one region was lost. `parts`: "whole", the loss of the whole file; "median" over subgroups;
        "subgroups", how many were looked at, and "left out", the share of records in smaller ones; "1st", "2nd", "3rd",
        the largest losses, and their sizes, "records of the 1st", ...: which they are is read off the data, never off a
        report.
    Missing is a subgroup of its own. Weights and households as the measure says. Subgroups for which the measure is
    undefined are left out; undefined where it is so for all. Undefined for synthetic files: nobody's released record is
    known.
    Reference: Purdam and Elliot (2007), who repeat published analyses, most of them of subgroups, on masked files.

    Examples
    --------
    >>> WorstSubgroup("IL1s(on='wage')", by=["region"]).text
    "WorstSubgroup(measure=IL1s(on='wage'), by='region')"
    """

    label: ClassVar[str] = "Largest loss in a subgroup"
    description: ClassVar[str] = "Largest loss over subgroups of the people, which an average over all would hide."

    axis: ClassVar[Literal["risk", "utility"]] = "utility"
    unit: ClassVar[str] = "as its measure"
    missing: ClassVar[str] = "a subgroup of its own; in the measure as that says"
    weights: ClassVar[str] = "as the measure says"
    bounds: ClassVar[tuple[float | None, float | None]] = (None, None)

    measure: Measure
    by: tuple[str, ...]
    fewest: Annotated[int, Range(10)] = 30

    def problems(self) -> Iterator[str]:
        if self.measure.axis != "utility" or self.measure.direction != "lower":
            yield ".measure must be a loss: a utility measure that is better when lower."
        if self.measure.sampled:
            yield ".measure must not draw at random: the largest of several losses with an error is too large."
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
            raise Undefined(f"no subgroup of {self.fewest} records or more has a value.")
        losses, sizes = np.array([g.loss for g in groups]), np.array([len(g.rows) for g in groups])
        whole = self.measure.score(original, masked, rng).value
        return Estimate(value=float(losses.max()), parts=self._parts(losses, sizes, len(original)) | {"whole": whole})

    def subgroups(self, original: Microdata, masked: Microdata, rng: Generator) -> list[Subgroup]:
        """Every subgroup of enough records for which the measure has a value."""
        self.check_variables(original)
        met = original.view(distinct_cells, self.by)
        group_of = met.code if masked.origin is None else met.code[masked.origin]
        groups = []
        for group in np.flatnonzero(met.count >= self.fewest):
            rows, released = np.flatnonzero(met.code == group), np.flatnonzero(group_of == group)
            part, made = original.take(rows), masked.take(released)
            came = np.searchsorted(rows, released if masked.origin is None else masked.origin[released])
            with suppress(Undefined):
                before = Microdata(part.schema, part.columns)
                origin = None if np.array_equal(came, np.arange(len(rows))) else came
                loss = self.measure.score(before, Microdata(made.schema, made.columns, origin), rng).value
                groups.append(Subgroup(loss, rows, released))
        return groups

    def _parts(self, losses: Array, sizes: Array, n: int) -> dict[str, float]:
        left_out = 1 - float(sizes.sum() / n)
        parts = {"median": float(np.median(losses)), "subgroups": float(len(losses)), "left out": left_out}
        for place, group in zip(("1st", "2nd", "3rd"), np.argsort(-losses, kind="stable"), strict=False):
            parts |= {place: float(losses[group]), f"records of the {place}": float(sizes[group])}
        return parts
