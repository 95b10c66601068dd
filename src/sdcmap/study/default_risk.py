"""The risk of a plan that names none: what a snooper finds, what he infers, and whether he learns who is in the file.

Each sees what the others do not. Linkage is blind for files whose rows are nobody's; what somebody's record tells of him is
attribute inference, which a file without a single link may still allow; and being in the file may itself be the secret.
They have different units, so each is held against a limit of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sdcmap.core.measure import Measure
from sdcmap.core.roles import Roles
from sdcmap.data.microdata import Microdata

NAMES = ("WorstLinkage", "AttributeInference", "ClosestRecord")


class DefaultRisk(NamedTuple):
    """The measures, the first of which is on the axis of the map; and by class name why others are off, in a sentence that
    names the class."""

    measures: tuple[Measure, ...]
    off: Mapping[str, str]


def default_risk(data: Microdata) -> DefaultRisk:
    """Linkage by the best attack, inference of each sensitive variable from the keys (without keys: from the other numbers)
    at its worst category, and membership; what does not fit the data is off, with the reason."""
    from sdcmap.risk import AttributeInference, ClosestRecord, WorstLinkage  # only where a plan names no risk

    known = () if set(data.keys) - set(data.sensitive) else Roles(data).known
    infers = [AttributeInference(secret, known, worst=True) for secret in data.sensitive]
    measures: list[Measure] = []
    off = {} if infers else {"AttributeInference": "AttributeInference is off: no column is stated as sensitive."}
    for measure in (WorstLinkage(), *infers, ClosestRecord()):
        problem = next(measure.misfits(data), None)
        if problem is None:
            measures.append(measure)
        else:
            off[type(measure).__name__] = problem
    return DefaultRisk(tuple(measures), off)


def not_measured(data: Microdata, measures: Iterable[Measure]) -> list[str]:
    """Say why a side of the default risk is off, where these measures hold another of its sides, a sentence each."""
    kinds = {type(measure).__name__ for measure in measures}
    if kinds.isdisjoint(NAMES):
        return []
    return [reason for name, reason in default_risk(data).off.items() if name not in kinds]
