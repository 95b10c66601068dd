"""Several releases of the same people add up: the check for earlier ones, and the risk of all of them together.

The joint view is a cautious reading of what somebody with all releases in hand knows. A value that any release left as
it was counts as known. Any other number is the mean of the releases, the more precise ones weighing more (by one over
their mean squared error, the best that averaging can do); any other category is the latest release's.

An earlier release of the same data and seed is made again as it was. One of another file, seed or version with the same
people has its method run on these data with a stream of its own: its errors are others, and as large. Where the method
does not fit these columns, the release cannot be made again, and counts as if it had told every value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sdcmap.bundle.checks import Check
from sdcmap.bundle.ledger import Earlier, Ledger
from sdcmap.bundle.limit_checks import check_together
from sdcmap.bundle.prepared_file import as_written
from sdcmap.bundle.sketch import People, recognized
from sdcmap.core import Array, Method, Microdata, SdcmapError, Stream
from sdcmap.core.limit import Limit
from sdcmap.core.release_policy import ReleasePolicy
from sdcmap.core.value import decode
from sdcmap.study.plan import Candidate, Plan


@dataclass(frozen=True)
class History:
    """What the ledgers know of these people: the same release, others that can be made again, methods of releases from
    another file, seed or version, and how many releases cannot be made again."""

    same: int = 0
    remade: tuple[Candidate, ...] = ()
    alike: tuple[Method, ...] = ()
    lost: int = 0

    @property
    def others(self) -> int:
        return len(self.remade) + len(self.alike) + self.lost


def history(ledgers: Sequence[Ledger], data: Microdata, plan: Plan, candidate: Candidate) -> History:
    """The earlier releases of the same or overlapping people, in all these ledgers."""
    same, lost = 0, 0
    remade: list[Candidate] = []
    alike: list[Method] = []
    for ledger in ledgers:
        ours = ledger.fingerprint(data.digest), ledger.fingerprint(hex(plan.seed))
        for entry in _of_these_people(ledger, data, plan.policy):
            exact = (entry.data, entry.seed) == ours
            if exact and (entry.digest, entry.replicate) == (candidate.method.digest, candidate.replicate):
                same += 1
            elif (method := _method(entry, data)) is None:
                lost += 1
            elif exact and method.digest == entry.digest:
                remade.append(Candidate(method, entry.replicate))
            else:
                alike.append(method)
    return History(same, tuple(dict.fromkeys(remade)), tuple(alike), lost)


def _of_these_people(ledger: Ledger, data: Microdata, policy: ReleasePolicy) -> list[Earlier]:
    """The ledger's releases of these people, each once however often it was written."""
    entries = {(entry.data, entry.seed, entry.digest, entry.replicate): entry for entry in ledger.earlier()}
    ours = ledger.fingerprint(data.digest)
    unsure = {name: entry.sketches for name, entry in entries.items() if entry.data != ours}
    met = recognized([*unsure.values()], People(data, ledger.key), policy) if unsure else []
    known = dict(zip(unsure, met, strict=True))
    return [entry for name, entry in entries.items() if known.get(name, True)]


def _method(entry: Earlier, data: Microdata) -> Method | None:
    """The earlier release's method, where this version of the program has it and it fits these columns.

    An earlier name that differs from a present one in upper and lower case alone is that one.
    """
    present = {name.casefold(): name for name in data.names}
    names = {n: present[n.casefold()] for n in entry.columns if n not in data.names and n.casefold() in present}
    try:
        method = decode(_renamed(entry.method, names), Method)
        return None if list(method.incompatibilities(data)) else method
    except SdcmapError:
        return None


def _renamed(spec: Any, names: Mapping[str, str]) -> Any:
    """A spec with other names of columns."""
    if isinstance(spec, dict):
        return {key: _renamed(value, names) for key, value in spec.items()}
    if isinstance(spec, list):
        return [_renamed(value, names) for value in spec]
    return names.get(spec, spec) if isinstance(spec, str) else spec


def check_earlier(known: History, again: bool) -> Check:
    """Another release of the same or overlapping people needs `again`; then their joint risk decides."""
    if not known.others:
        what = "this very release was written before and tells nothing new" if known.same else "none is known"
        return Check("earlier releases", True, f"of earlier releases of these records, {what}.")
    count = f"{known.others} earlier release{'s' if known.others > 1 else ''} of the same or overlapping records"
    if not again:
        sentence = f"the ledger knows {count}, and releases add up: state again=True to have their joint risk checked."
        return Check("earlier releases", False, sentence)
    alike = f"; {len(known.alike)} came from another file, seed or version and were made anew" if known.alike else ""
    lost = f"; {known.lost} cannot be made again and count as if they had told every value" if known.lost else ""
    return Check("earlier releases", True, f"the ledger knows {count}; the joint risk was computed{alike}{lost}.")


def check_ledgers(ledger: Ledger, more: Sequence[Ledger], closed: int, noted: Sequence[str]) -> Check:
    """Every release of this study is in a ledger that was looked into; `noted` are the ids that the study remembers."""
    elsewhere = dict.fromkeys(name for name in noted if name not in {one.id for one in (ledger, *more)})
    name = f"the ledger {ledger.id}" if ledger.exists else "a new ledger"
    looked = f"{name} is used; {len(more)} other{'' if len(more) == 1 else 's'} of this user were looked into as well"
    problems = [f"earlier releases of this study are in another ledger ({', '.join(elsewhere)})"] if elsewhere else []
    problems += [f"{closed} of this user's ledgers cannot be read"] if closed else []
    if not problems:
        return Check("ledger", True, f"{looked}.")
    advice = "name that ledger, or state why its releases do not matter"
    return Check("ledger", False, f"{looked}, but {' and '.join(problems)}: {advice}.")


def check_joint(
    known: History, data: Microdata, released: Microdata, plan: Plan, limits: Sequence[Limit], stream: Stream,
    method: Method,
) -> list[Check]:  # fmt: skip
    """All releases of these people together are within every risk limit."""
    if not known.others:
        return []
    made = files_of(known, data, plan, stream)
    told = [data] if known.lost or None in made else []
    files = [*told, *(file for file in made if file is not None), released]
    if any(file.origin is not None or not file.paired for file in files):
        return [Check("joint risk", False, "the joint risk of files with other rows, or synthetic ones, is unknown.")]
    view, own, level = joint_view(data, files), stream.child("joint"), plan.policy.release_level
    return check_together("joint risk", limits, data, view, own, method, "of all releases together", level)


def files_of(known: History, data: Microdata, plan: Plan, stream: Stream) -> list[Microdata | None]:
    """The earlier releases that can be made again, as changes of the data; None where making one failed."""
    made = [_made(data, c.method, c.stream(plan.seed)) for c in known.remade]
    return made + [_made(data, m, stream.child(f"earlier release {number}")) for number, m in enumerate(known.alike)]


def _made(data: Microdata, method: Method, stream: Stream) -> Microdata | None:
    try:
        return as_written(data, method, method.apply(data, stream))
    except SdcmapError:
        return None


def joint_view(data: Microdata, releases: Sequence[Microdata]) -> Microdata:
    """What all releases together tell, as one masked file; the rule stands at the head of this file."""
    view = data.change(None, {})
    for name in dict.fromkeys(name for release in releases for name in release.changes):
        truth, columns = data.column(name), [release.column(name) for release in releases]
        values = [column.values for column in columns]
        if any(column.levels is not truth.levels for column in columns):
            told = truth.values  # other categories cannot be compared: taken as known
        elif truth.levels is None:
            told = _best_mean(truth.values, values)
        else:
            told = np.where(np.any([value == truth.values for value in values], axis=0), truth.values, values[-1])
        view = view.change(None, {name: told})
    return view


def _best_mean(truth: Array, values: Sequence[Array]) -> Array:
    numbers = np.array(values)
    errors, told = numbers - truth, ~np.isnan(numbers)
    squared = np.array([np.mean(e[~np.isnan(e)] ** 2) if (~np.isnan(e)).any() else np.inf for e in errors])
    if (squared == 0).any():
        return truth.copy()
    weights = np.where(told, 1 / squared[:, None], 0.0)
    total = weights.sum(axis=0)
    mean = np.full(len(truth), np.nan)
    np.divide(np.nansum(np.where(told, numbers, 0.0) * weights, axis=0), total, out=mean, where=total > 0)
    return np.where(np.any(errors == 0, axis=0), truth, mean)
