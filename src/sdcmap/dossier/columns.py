"""Every column: who could know it, what was done to it, and whom it gives away, alone and with two others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sdcmap.core.method import Method
from sdcmap.data.microdata import Microdata
from sdcmap.data.schema import NEVER_RELEASED
from sdcmap.risk import ExactMatch

NUMBERED_ANEW = ("household", "stratum")  # equal numbers belong together; the numbers themselves tell nothing
MOST_OTHERS = 2  # columns known beside the one
MOST_WORK = 400_000_000  # records times sets of columns that are looked at for the most telling others


class Given(NamedTuple):
    """Records found by looking up what is known, and the other columns that are known beside this one."""

    records: int
    others: tuple[str, ...] = ()


class ColumnRow(NamedTuple):
    """One column; alone and together : whom it gives away by itself, and with two others; None where it is held back, or
    where there are too many columns to look at all sets."""

    name: str
    label: str
    role: str
    known_by: str
    done: str
    alone: tuple[Given, Given] | None
    together: tuple[Given, Given] | None


def column_rows(original: Microdata, masked: Microdata, method: Method) -> list[ColumnRow]:
    """One row a column of the original; whom it gives away in the unmasked file, and in the release."""
    apart = (*NEVER_RELEASED, *NUMBERED_ANEW)
    released = [v.name for v in original.schema.variables if v.role not in apart and v.name in masked.names]
    searched = 4 * len(released) ** 2 * len(original) <= MOST_WORK
    rows = []
    for variable in original.schema.variables:
        name, role, alone, together = variable.name, variable.role or "", None, None
        if name in released:
            alone = (_given(original, original, (name,)), _given(original, masked, (name,)))
        if name in released and searched:
            others = [other for other in released if other != name]
            together = (_most_given(original, original, name, others), _most_given(original, masked, name, others))
        done, known_by = _done(original, method, name, role), variable.known_by or "anybody"
        rows.append(ColumnRow(name, variable.label, role or "not stated", known_by, done, alone, together))
    return rows


def _given(original: Microdata, file: Microdata, names: tuple[str, ...]) -> Given:
    return Given(int(ExactMatch(on=names).records(original, file).sum()), names[1:])


def _most_given(original: Microdata, file: Microdata, name: str, others: Sequence[str]) -> Given:
    """With up to two others, each the one that gives most records away when it is added."""
    best = _given(original, file, (name,))
    while len(best.others) < MOST_OTHERS:
        tried = [_given(original, file, (name, *best.others, other)) for other in others if other not in best.others]
        more = max(tried, key=lambda given: given.records, default=best)
        if more.records <= best.records:
            break
        best = more
    return best


def _done(data: Microdata, method: Method, name: str, role: str) -> str:
    if role in NEVER_RELEASED:
        return "held back"
    if role in NUMBERED_ANEW:
        return "numbered anew at random"
    deeds = dict.fromkeys(step.deed for step in method.steps if name in step.masks(data))
    return ", then ".join(deeds) or "nothing"
