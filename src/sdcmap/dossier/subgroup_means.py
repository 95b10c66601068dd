"""Beside each mean, the three subgroups of the people whose own mean moved most."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from sdcmap.core.audience import significant
from sdcmap.core.measure import Measure
from sdcmap.data.microdata import Microdata
from sdcmap.dossier.questions import LEAST, WORST, groups_of, numbers_of
from sdcmap.errors import SchemaError, Undefined
from sdcmap.utility.moment_change import MomentChange
from sdcmap.utility.worst_subgroup import Subgroup, WorstSubgroup


class SubgroupMean(NamedTuple):
    """A mean within a subgroup: of whom, their records, both answers, and how far off, in their own standard deviations."""

    what: str
    where: str
    records: int
    before: str
    after: str
    off: float


def subgroup_means(original: Microdata, masked: Microdata, measures: Iterable[Measure] = ()) -> list[SubgroupMean]:
    """The three worst subgroups (30 records or more) of each number, by `WorstSubgroup`: over the variables that its
    measures in the plan name, or over each column of few categories. None for synthetic files: nobody's record is known
    there."""
    if not masked.paired:
        return []
    named = list(dict.fromkeys(measure.by for measure in measures if isinstance(measure, WorstSubgroup)))
    divisions = named or [(name,) for name in groups_of(original, masked)]
    return [row for number in numbers_of(original, masked) for row in _worst(original, masked, number, divisions)]


def _worst(original: Microdata, masked: Microdata, number: str, divisions: list[tuple[str, ...]]) -> list[SubgroupMean]:
    found: list[tuple[tuple[str, ...], Subgroup]] = []
    for by in divisions:
        measure = WorstSubgroup(MomentChange(on=(number,)), by=by, fewest=LEAST)
        try:
            found += [(by, group) for group in measure.subgroups(original, masked, np.random.default_rng(0))]
        except (SchemaError, Undefined):  # an order that has no mean
            continue
    worst = sorted(found, key=lambda pair: -pair[1].loss)[:WORST]
    return [_told(original, masked, number, by, group) for by, group in worst if group.loss > 0]


def _told(original: Microdata, masked: Microdata, number: str, by: tuple[str, ...], group: Subgroup) -> SubgroupMean:
    means = (
        np.nanmean(data.numbers(number)[rows]) for data, rows in ((original, group.rows), (masked, group.released))
    )
    first = original.take(group.rows[:1])
    where = " and ".join(f"{name} = {_word(first, name)}" for name in by)
    before, after = (significant(float(mean), 4) for mean in means)
    return SubgroupMean(f"mean of {number}", where, len(group.rows), before, after, group.loss)


def _word(first: Microdata, name: str) -> str:
    """The category of a record, as the file says it."""
    return "missing" if first.missing(name)[0] else str(first[name][0])
