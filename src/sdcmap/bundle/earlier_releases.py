"""Earlier releases of the same people: find them, and measure the risk of all releases together.

The joint view is a cautious estimate of what an attacker with all releases knows. A value that any release left unchanged
counts as known. Any other number is the mean of the releases, weighted by one over their mean squared errors (the best
weights for averaging). Any other category is that of the latest release.

An earlier release of the same data and seed is made again exactly. For a release from another file, seed or version of the
same people, its method is run on these data with a random stream of its own: its errors are different but equally large. A
release whose method does not fit these columns cannot be made again; it counts as if it had disclosed every value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sdcmap.bundle.checks import Check
from sdcmap.bundle.ledger import Ledger, LedgerEntry
from sdcmap.bundle.limit_checks import check_combined_file
from sdcmap.bundle.prepared_file import as_written
from sdcmap.bundle.sketch import People, recognize
from sdcmap.core import Array, Method, Microdata, SdcmapError, Stream
from sdcmap.core.limit import Limit
from sdcmap.core.release_policy import ReleasePolicy
from sdcmap.core.value import decode
from sdcmap.study.plan import Candidate, Plan


@dataclass(frozen=True)
class History:
    """The earlier releases of the same people that the ledgers contain."""

    identical: int = 0  # entries of this very release
    reproducible: tuple[Candidate, ...] = ()  # releases of the same data and seed
    similar: tuple[Method, ...] = ()  # methods of releases from another file, seed or version
    unavailable: int = 0  # releases that cannot be made again

    @property
    def others(self) -> int:
        """How many different releases there are beside this one."""
        return len(self.reproducible) + len(self.similar) + self.unavailable


def history(ledgers: Sequence[Ledger], data: Microdata, plan: Plan, candidate: Candidate) -> History:
    """Return the earlier releases of the same or overlapping people in these ledgers."""
    identical, unavailable = 0, 0
    reproducible: list[Candidate] = []
    similar: list[Method] = []
    for ledger in ledgers:
        ours = ledger.fingerprint(data.digest), ledger.fingerprint(hex(plan.seed))
        for entry in _entries_of_same_people(ledger, data, plan.policy):
            is_same_study = (entry.data, entry.seed) == ours
            if is_same_study and (entry.digest, entry.replicate) == (candidate.method.digest, candidate.replicate):
                identical += 1
            elif (method := _method(entry, data)) is None:
                unavailable += 1
            elif is_same_study and method.digest == entry.digest:
                reproducible.append(Candidate(method, entry.replicate))
            else:
                similar.append(method)
    return History(identical, tuple(dict.fromkeys(reproducible)), tuple(similar), unavailable)


def _entries_of_same_people(ledger: Ledger, data: Microdata, policy: ReleasePolicy) -> list[LedgerEntry]:
    """Return the ledger's releases of these people, each once however often it was written."""
    entries = {(entry.data, entry.seed, entry.digest, entry.replicate): entry for entry in ledger.entries()}
    ours = ledger.fingerprint(data.digest)
    # The same data need no comparison. Entries of other data are compared by their sketches.
    uncertain = {key: entry.sketches for key, entry in entries.items() if entry.data != ours}
    matches = recognize([*uncertain.values()], People(data, ledger.key), policy) if uncertain else []
    is_match = dict(zip(uncertain, matches, strict=True))
    return [entry for key, entry in entries.items() if is_match.get(key, True)]


def _method(entry: LedgerEntry, data: Microdata) -> Method | None:
    """Return the method of an earlier release, if this version of sdcmap has it and it fits these columns; else None.

    Column names that differ only in upper and lower case count as equal.
    """
    present = {name.casefold(): name for name in data.names}
    names = {n: present[n.casefold()] for n in entry.columns if n not in data.names and n.casefold() in present}
    try:
        method = decode(_rename_columns(entry.method, names), Method)
        return None if list(method.incompatibilities(data)) else method
    except SdcmapError:
        return None


def _rename_columns(spec: Any, names: Mapping[str, str]) -> Any:
    """Return a spec with renamed columns."""
    if isinstance(spec, dict):
        return {key: _rename_columns(value, names) for key, value in spec.items()}
    if isinstance(spec, list):
        return [_rename_columns(value, names) for value in spec]
    return names.get(spec, spec) if isinstance(spec, str) else spec


def check_earlier(earlier: History, again: bool) -> Check:
    """Check that no other release of the same people exists, or that `again` allows one; then the joint risk decides."""
    if not earlier.others:
        if earlier.identical:
            return Check("earlier releases", True, "This very release was written before; it discloses nothing new.")
        return Check("earlier releases", True, "The ledger contains no earlier release of these records.")
    plural = "s" if earlier.others > 1 else ""
    count = f"The ledger contains {earlier.others} earlier release{plural} of the same or overlapping records"
    if not again:
        sentence = f"{count}. The risks of several releases add up: state again=True to have the joint risk checked."
        return Check("earlier releases", False, sentence)
    notes = (
        [f"{len(earlier.similar)} came from another file, seed or version and were simulated"]
        if earlier.similar
        else []
    )
    if earlier.unavailable:
        notes.append(f"{earlier.unavailable} cannot be made again and count as if every value had been disclosed")
    return Check("earlier releases", True, "; ".join([f"{count}; the joint risk was measured", *notes]) + ".")


def check_joint(
    earlier: History, data: Microdata, released: Microdata, plan: Plan, limits: Sequence[Limit], stream: Stream,
    method: Method, level: float,
) -> list[Check]:  # fmt: skip
    """Check that all releases of these people together are within every risk limit."""
    if not earlier.others:
        return []
    remade = remake_files(earlier, data, plan, stream)
    # A release that cannot be made again counts as full disclosure: the original itself joins the view.
    disclosed = [data] if earlier.unavailable or None in remade else []
    files = [*disclosed, *(file for file in remade if file is not None), released]
    if any(file.origin is not None or not file.paired for file in files):
        reason = "The joint risk was not tested: a release is synthetic or has other rows, so rows cannot be matched."
        return [Check("joint risk", False, reason, tested=False)]
    view, own = joint_view(data, files), stream.child("joint")
    methods = [*(candidate.method for candidate in earlier.reproducible), *earlier.similar, method]
    return check_combined_file(
        "joint risk", limits, data, view, own, method, "of all releases together", level,
        is_random=any(made_by.random for made_by in methods),
        draws=_draw_joint_views(methods, data, disclosed, plan.replicates, own),
    )  # fmt: skip


def _draw_joint_views(
    methods: Sequence[Method], data: Microdata, disclosed: Sequence[Microdata], count: int, stream: Stream
) -> Iterator[Microdata]:
    """Yield what all releases together disclose in further draws of their methods, for expectations over draws."""
    for draw in range(count):
        streams = (stream.child(f"draw {draw} of release {number}") for number in range(len(methods)))
        files = [_remake(data, method, own) for method, own in zip(methods, streams, strict=True)]
        made = [file for file in files if file is not None]
        if len(made) == len(files):  # a draw that cannot be made is left out, as in a sweep
            yield joint_view(data, [*disclosed, *made])


def remake_files(earlier: History, data: Microdata, plan: Plan, stream: Stream) -> list[Microdata | None]:
    """Return the earlier releases that can be made again, as changes of the data; None where making one failed."""
    exact = [_remake(data, c.method, c.stream(plan.seed)) for c in earlier.reproducible]
    streams = (stream.child(f"earlier release {number}") for number in range(len(earlier.similar)))
    return exact + [_remake(data, method, own) for method, own in zip(earlier.similar, streams, strict=True)]


def _remake(data: Microdata, method: Method, stream: Stream) -> Microdata | None:
    try:
        return as_written(data, method, method.apply(data, stream))
    except SdcmapError:
        return None


def joint_view(data: Microdata, releases: Sequence[Microdata]) -> Microdata:
    """Return what all releases together disclose, as one masked file; the head of this file states the rule."""
    view = data.change(None, {})
    for name in dict.fromkeys(name for release in releases for name in release.changes):
        truth, columns = data.column(name), [release.column(name) for release in releases]
        values = [column.values for column in columns]
        if any(column.levels is not truth.levels for column in columns):
            combined = truth.values  # recoded categories cannot be compared, so the column counts as known
        elif truth.levels is None:
            combined = _best_mean(truth.values, values)
        else:
            combined = np.where(np.any([value == truth.values for value in values], axis=0), truth.values, values[-1])
        view = view.change(None, {name: combined})
    return view


def _best_mean(truth: Array, values: Sequence[Array]) -> Array:
    """Return the mean of several masked versions of a number, weighted by one over their mean squared errors."""
    numbers = np.array(values)
    errors, known = numbers - truth, ~np.isnan(numbers)
    squared = np.array([np.mean(e[~np.isnan(e)] ** 2) if (~np.isnan(e)).any() else np.inf for e in errors])
    if (squared == 0).any():
        return truth.copy()
    weights = np.where(known, 1 / squared[:, None], 0.0)
    total = weights.sum(axis=0)
    mean = np.full(len(truth), np.nan)
    np.divide(np.nansum(np.where(known, numbers, 0.0) * weights, axis=0), total, out=mean, where=total > 0)
    # A value that one release left unchanged is known, whatever the others say.
    return np.where(np.any(errors == 0, axis=0), truth, mean)
