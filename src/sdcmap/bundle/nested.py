"""A release made from another release of the same people: a public-use file from the scientific-use file that was released.

The second file is a study of its own whose data are the first file as it was written, so nothing of it comes from the
original again; its columns are columns of the first. The original stays in the study that released the first file, and a
release of the second looks there (`Source.within`) for two things:

alone : the second file attacked by who holds the truth, under the lines of its own plan.
both  : both files in one hand, which must find no more than the first one's profile tolerates or the first finds alone,
        for it is out. The second was made from the first alone, so
        beside it it says nothing more of anybody: P(truth | both) = P(truth | first). That is an argument about the best
        snooper; so the attacks that we have are run on both files side by side, rows that belong together told to him, and
        the larger number counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from sdcmap.bundle.checks import Check
from sdcmap.bundle.earlier import History, history
from sdcmap.bundle.ledger import Ledger
from sdcmap.bundle.note import Note
from sdcmap.bundle.prepare import Prepared, as_written, in_format, prepare
from sdcmap.bundle.readback import aligned, check_read_back, read_released
from sdcmap.bundle.risk_line import Line, scored, verdict
from sdcmap.core.method import Method
from sdcmap.core.streams import Stream
from sdcmap.core.value import decode
from sdcmap.data.microdata import Column, Microdata
from sdcmap.data.schema import Schema
from sdcmap.errors import Refused, SchemaError
from sdcmap.methods import Chain
from sdcmap.risk import WorstLinkage
from sdcmap.study.folder import Study
from sdcmap.study.plan import Candidate, Plan
from sdcmap.study.profiles import Profile, profile_named

BESIDE = " (second file)"  # what the second file's columns are called beside the first's


@dataclass(frozen=True)
class Parent:
    """The release that another is made from.

    original : the file that was masked. plan, candidate, profile : how, and for whom. file : the released file as read.
    origin : the row of the original that each of its rows came from, which stays in memory.
    """

    original: Microdata
    plan: Plan
    candidate: Candidate
    profile: Profile
    prepared: Prepared
    file: Microdata

    def both_made_by(self, candidate: Candidate) -> Candidate:
        """The second release as the ledger keeps it: everything that was done to the original."""
        return Candidate(Chain((*self.candidate.method.steps, *candidate.method.steps)), candidate.replicate)

    def known(self, ledgers: Sequence[Ledger], candidate: Candidate) -> History:
        """What the ledgers know of these people beside the first file, and this one written before."""
        found = history(ledgers, self.original, self.plan, self.candidate)
        own = self.both_made_by(candidate).method.digest
        return replace(found, alike=tuple(method for method in found.alike if method.digest != own))


def parent_of(within: Path, file: Path) -> Parent:
    """The release that wrote `file`, made again by the study `within`; Refused where it is another file."""
    with Study.open(within) as study:
        found = [
            entry for entry in study.manifest.get("releases", []) if Path(entry["folder"]) == file.parent.resolve()
        ]
        if not found:
            raise Refused([f"the study {within} has released no file in {file.parent}: name the study that did."])
        plan, data = study.plan, in_format(study.data, file.suffix.removeprefix("."))
        entry = found[-1]
        method = next((one for one in plan.expanded if one.text == entry["method"]), None)
        if method is None:
            raise Refused([f"the plan of {within} has no longer the method that made {file}."])
    candidate = Candidate(method, int(entry["replicate"]))
    stream = candidate.stream(plan.seed)
    prepared = prepare(data, method, as_written(data, method, method.apply(data, stream)), stream)
    back = read_released(file, prepared)
    if not check_read_back(prepared, back).passed:
        raise Refused(
            [f"{file} is not the file that {within} released: a nested release is made from that file as it is."]
        )
    profile = plan.profile or profile_named(str(entry["profile"]))
    return Parent(data, plan, candidate, profile, prepared, back)


def check_lineage(plan: Plan) -> list[Check]:
    """Data that lie in the folder of a release are a released file: which study released it must be said."""
    if plan.data is None or plan.data.within or not (Path(plan.data.path).parent / "note.json").is_file():
        return []
    told = "the data lie beside a method note, as a released file does: name the study that released it (`within`), so that"
    return [
        Check("ledger", False, f"{told} both are measured together, or state why that does not matter.", hard=False)
    ]


def check_only_parent(known: History) -> Check:
    """No other release of these people is known than the one that this is made from."""
    if not known.others:
        return Check(
            "earlier releases", True, "of these people the file that this one is made from is released, no other."
        )
    count = (
        f"{known.others} release{'s' if known.others > 1 else ''} of the same people beside the file it is made from"
    )
    return Check("earlier releases", False, f"the ledger knows {count}: the joint risk of all of them is not measured.")


def check_nested(
    parent: Parent, prepared: Prepared, back: Microdata, lines: Sequence[Line], stream: Stream, note: Note
) -> list[Check]:
    """The second file attacked by who holds the truth, and both files in one hand."""
    if not parent.prepared.data.paired or not prepared.data.paired:
        told = "a row of one of the two files is nobody's: who holds both knows what the first told, which was measured"
        return [Check("nested", True, f"{told} when it was released.")]
    first, second = in_one_order(parent, prepared, back)
    both = parent.both_made_by(Candidate(decode(note["method"], Method))).method
    known: Note = {**note, "method": both.spec()}
    own = scored([line.measure for line in lines], first.truth, second, stream, known, alone=False)
    checks = [verdict("nested", line, row, "by who holds the truth") for line, row in zip(lines, own, strict=True)]
    return [*checks, _in_one_hand(parent, first, second, stream, note)]


@dataclass(frozen=True)
class First:
    """The truth in the order of the first file, and the first file as changes of it."""

    truth: Microdata
    released: Microdata


def in_one_order(parent: Parent, prepared: Prepared, back: Microdata) -> tuple[First, Microdata]:
    """The truth, the first and the second file, each row of them the same person, in the columns of the second."""
    names = [name for name in back.names if name not in prepared.renumbered]
    strange = [name for name in names if name not in parent.original.names]
    if strange:
        raise SchemaError(f"no column {strange[0]!r} in the file that this one is made from.")
    roles = {variable.name: variable.role or "other" for variable in prepared.data.schema.variables}
    whole = parent.original.take(parent.prepared.origin)
    truth = replace(whole.only(names), origin=None).with_roles(**{name: roles[name] for name in names})
    unlike = [name for name in names if not _comparable(truth.column(name), back.column(name))]
    if unlike:
        raise SchemaError(
            f"column {unlike[0]!r} was read in another kind than for the first file: state its kind alike."
        )
    here = replace(parent.prepared, origin=np.arange(len(truth)), suppressed=_of(parent.prepared.suppressed, names))
    first = aligned(truth, parent.file.only(names), here)
    second = aligned(truth, back.only(names), replace(prepared, suppressed=_of(prepared.suppressed, names)))
    return First(truth, first), second


def _comparable(before: Column, after: Column) -> bool:
    """Numbers stay numbers or become texts such as "20 to 29"; categories stay categories."""
    if after.levels is None:
        return before.levels is None
    return before.levels is not None or after.levels.dtype == pl.String


def _of(codes: Mapping[str, float | str], names: Sequence[str]) -> dict[str, float | str]:
    return {name: code for name, code in codes.items() if name in names}


def _in_one_hand(parent: Parent, first: First, second: Microdata, stream: Stream, note: Note) -> Check:
    """The first file is out: what it tells alone, with its own reasons, is no more where the second lies beside it."""
    linkage, limit = WorstLinkage(inclusion=parent.profile.inclusion), parent.profile.found
    how: Note = {**note, "method": parent.candidate.method.spec()}
    shown = first.released if second.origin is None else first.released.take(second.origin)  # like is held against like
    (alone,) = scored([linkage], first.truth, shown, stream.child("first"), how, alone=False)
    (both,) = scored([linkage], side_by_side(first.truth, first.truth), side_by_side(first.released, second), stream)
    if alone.value is None or both.value is None:
        return Check("joint risk", False, "the joint risk of both files could not be computed.")
    passed = both.value <= max(limit, alone.value)
    told = f"{linkage.words} of both files in one hand is {max(alone.value, both.value):.4g}"
    rows = "" if second.origin is None else ", of the same rows,"
    parts = f"the first file{rows} alone: {alone.value:.4g}; side by side: {both.value:.4g}; its line: {limit:g}"
    return Check("joint risk", passed, f"{told} ({parts}): the second {'adds nothing' if passed else 'adds to it'}.")


def side_by_side(first: Microdata, second: Microdata) -> Microdata:
    """Both files as one, the second's columns under other names; rows that belong together are told. Of a second file with
    other rows, those that it has."""
    first = first if second.origin is None else first.take(second.origin)
    renamed = {name: f"{name}{BESIDE}" for name in second.names}
    columns = {name: first.column(name) for name in first.names}
    columns |= {new: second.column(name) for name, new in renamed.items()}
    more = tuple(replace(second.schema[name], name=new, role=_beside(second, name)) for name, new in renamed.items())
    return Microdata(Schema((*first.schema.variables, *more), first.schema.format), columns, second.origin)


def _beside(data: Microdata, name: str) -> str | None:
    """A role that a file may have only once is the first file's."""
    role = data.schema[name].role
    return "other" if role in ("weight", "household", "stratum") else role
