"""Several releases of one file add up: the check for earlier ones, and the risk of all of them together.

The joint view is a cautious reading of what somebody with all releases in hand knows. A value that any release left as
it was counts as known. Any other number is the mean of the releases, the more precise ones weighing more (by one over
their mean squared error, the best that averaging can do); any other category is the latest release's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sdcmap.bundle.checks import Check
from sdcmap.bundle.ledger import Earlier, Ledger
from sdcmap.bundle.note import Note
from sdcmap.bundle.prepare import as_written
from sdcmap.bundle.risk_line import Line, scored, verdict
from sdcmap.bundle.sketch import fingerprints, overlaps
from sdcmap.core.measure import Measure
from sdcmap.core.method import Method
from sdcmap.core.streams import Stream
from sdcmap.core.value import decode
from sdcmap.data.microdata import Microdata
from sdcmap.errors import SdcmapError
from sdcmap.kernels.arrays import Array
from sdcmap.study.plan import Candidate, Plan


@dataclass(frozen=True)
class History:
    """What the ledger knows of these records: the same release, other releases of the same data, and of other files
    or seeds with the same records."""

    same: int
    remade: tuple[Candidate, ...]
    foreign: int


def history(ledger: Ledger, data: Microdata, plan: Plan, candidate: Candidate) -> History:
    """The earlier releases of the same or overlapping records."""
    ours, seed = ledger.fingerprint(data.digest), ledger.fingerprint(hex(plan.seed))
    same, foreign, remade = 0, 0, []
    prints: dict[tuple[str, ...], Array] = {}
    for entry in ledger.earlier():
        if entry.data == ours and entry.seed == seed:
            if (entry.digest, entry.replicate) == (candidate.method.digest, candidate.replicate):
                same += 1
                continue
            again = _candidate(entry)
            if again is not None:
                remade.append(again)
            foreign += again is None
        elif entry.data == ours or _same_records(entry, data, ledger, prints):
            foreign += 1
    return History(same, tuple(dict.fromkeys(remade)), foreign)


def _candidate(entry: Earlier) -> Candidate | None:
    """The earlier candidate, where this version of the program still makes it the same way."""
    try:
        method = decode(entry.method, Method)
    except SdcmapError:
        return None
    return Candidate(method, entry.replicate) if method.digest == entry.digest else None


def _same_records(entry: Earlier, data: Microdata, ledger: Ledger, prints: dict[tuple[str, ...], Array]) -> bool:
    if not set(entry.columns) <= set(data.names):
        return False
    if entry.columns not in prints:
        prints[entry.columns] = fingerprints(data, entry.columns, ledger.key)
    return overlaps(entry.sketch, prints[entry.columns], ledger.key)


def check_earlier(known: History, again: bool) -> Check:
    """Another release of the same or overlapping records needs `again`, and a joint risk that can be computed."""
    others = len(known.remade) + known.foreign
    if not others:
        what = "this very release was written before and tells nothing new" if known.same else "none is known"
        return Check("earlier releases", True, f"of earlier releases of these records, {what}.")
    count = f"{others} earlier release{'s' if others > 1 else ''} of the same or overlapping records"
    if not again:
        sentence = f"the ledger knows {count}, and releases add up: state again=True to have their joint risk checked."
        return Check("earlier releases", False, sentence)
    if known.foreign:
        sentence = f"the joint risk with {known.foreign} of {count} cannot be computed: other data, seed or version."
        return Check("earlier releases", False, sentence)
    return Check("earlier releases", True, f"the ledger knows {count}; the joint risk was computed.")


def check_joint(
    known: History, data: Microdata, released: Microdata, plan: Plan, lines: Sequence[Line], stream: Stream, note: Note
) -> list[Check]:
    """All releases of these data together are under the line."""
    made = [as_written(data, c.method, c.method.apply(data, c.stream(plan.seed))) for c in known.remade]
    if not made:
        return []
    if any(file.origin is not None or not file.paired for file in (*made, released)):
        return [Check("joint risk", False, "the joint risk of files with other rows, or synthetic ones, is unknown.")]
    view = joint_view(data, [*made, released])
    measures: list[Measure] = [line.measure for line in lines]
    scores = scored(measures, data, view, stream.child("joint"), note, alone=False)
    return [verdict("joint risk", ln, s, "of all releases together") for ln, s in zip(lines, scores, strict=True)]


def joint_view(data: Microdata, releases: Sequence[Microdata]) -> Microdata:
    """What all releases together tell, as one masked file; the rule stands at the head of this file."""
    view = data.change(None, {})
    for name in dict.fromkeys(name for release in releases for name in release.changes):
        truth = data.column(name)
        if any(release.column(name).levels is not truth.levels for release in releases):
            view = view.change(None, {name: truth.values})  # other categories cannot be compared: taken as known
            continue
        values = [release.column(name).values for release in releases]
        if truth.levels is not None:
            known = np.any([value == truth.values for value in values], axis=0)
            view = view.change(None, {name: np.where(known, truth.values, values[-1])})
        else:
            view = view.change(None, {name: _best_mean(truth.values, values)})
    return view


def _best_mean(truth: Array, values: Sequence[Array]) -> Array:
    errors = np.array([value - truth for value in values])
    told = ~np.isnan(np.array(values))
    squared = np.array([np.mean(e[~np.isnan(e)] ** 2) if (~np.isnan(e)).any() else np.inf for e in errors])
    if (squared == 0).any():
        return truth.copy()
    weights = np.where(told, 1 / squared[:, None], 0.0)
    total = weights.sum(axis=0)
    mean = np.full(len(truth), np.nan)
    np.divide(np.nansum(np.where(told, np.array(values), 0.0) * weights, axis=0), total, out=mean, where=total > 0)
    known = np.any(errors == 0, axis=0)
    return np.where(known, truth, mean)
