"""A release made from another release of the same people: a public-use file from the scientific-use file that was released.

The second file is a study of its own whose data are the first file as it was written, so nothing of it comes from the
original again; its columns are columns of the first. The original stays in the study that released the first file, and a
release of the second looks there (`Source.within`) for two things:

alone : the second file attacked by who holds the truth, under the lines of its own plan.
both  : both files in one hand, the first with all its columns, which must find no more than the first one's profile
        tolerates or the first finds alone, for it is out; or than a limit that was stated when the two were chosen
        together. The second was made from the first alone, so beside it it says nothing more of anybody:
        P(truth | both) = P(truth | first). That is an argument about the best snooper; so the attacks that we have are run
        on both files side by side, rows that belong together told to him, and the larger number counts. Other releases of
        the same people, where they can be made again, lie beside these two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from sdcmap.bundle.checks import Check
from sdcmap.bundle.earlier import History, files_of, history
from sdcmap.bundle.ledger import Ledger
from sdcmap.bundle.limit_checks import check_together, score_file
from sdcmap.bundle.prepared_file import Prepared, in_format, prepare_candidate
from sdcmap.bundle.readback import aligned, check_read_back, read_released
from sdcmap.core import Column, Method, Microdata, SchemaError, Stream
from sdcmap.core.limit import Limit, Verdict
from sdcmap.data.schema import Schema
from sdcmap.errors import Refused
from sdcmap.methods import Chain
from sdcmap.risk import WorstLinkage
from sdcmap.study.folder import Study
from sdcmap.study.jobs import ScoreRow
from sdcmap.study.plan import Candidate, Plan
from sdcmap.study.profiles import PROFILES, Profile, find_profile

OTHER_MACHINE = 1e-9  # by how much a file that was made on another machine may differ, as a share of the largest number
FOR_CHOOSING = "data.study"  # the name of a file that nobody released yet, before its ending


@dataclass(frozen=True)
class Parent:
    """The release that another is made from.

    original : the file that was masked. plan, candidate, profile : how, and for whom. prepared : what was written, with the
    row of the original that each row came from, which stays in memory. file : the released file as read. joint : the
    largest share that both files in one hand may find, where one was stated; else as the first one's profile says.
    """

    original: Microdata
    plan: Plan
    candidate: Candidate
    profile: Profile
    prepared: Prepared
    file: Microdata
    joint: float | None = None

    def both_made_by(self, candidate: Candidate) -> Candidate:
        """The second release as the ledger keeps it: everything that was done to the original."""
        return Candidate(Chain((*self.candidate.method.steps, *candidate.method.steps)), candidate.replicate)

    def known(self, ledgers: Sequence[Ledger], candidate: Candidate) -> History:
        """What the ledgers know of these people beside the first file, and this one written before."""
        found = history(ledgers, self.original, self.plan, self.candidate)
        own = self.both_made_by(candidate).method.digest
        return replace(found, alike=tuple(method for method in found.alike if method.digest != own))


def parent_of(within: Path, file: Path) -> Parent:
    """The release that wrote `file`, or a file just like it, made again by the study `within`; Refused where there is none.

    Of a file that was made for choosing both together (see `choose_pair`) the release lies in another folder.
    """
    with Study.open(within) as study:
        entries = study.manifest.get("releases", [])[::-1]
        here = [entry for entry in entries if Path(entry["folder"]) == file.parent.resolve()][:1]
        if not here and not file.name.startswith(f"{FOR_CHOOSING}."):
            raise _not_nested(f"the study {within} has released no file in {file.parent}: name the study that did.")
        plan, data = study.plan, in_format(study.data, file.suffix.removeprefix("."))
    methods = {method.text: method for method in plan.all_methods}
    for entry in here or entries:
        if (method := methods.get(entry["method"])) is not None:
            made = unread_parent(data, plan, Candidate(method, int(entry["replicate"])))
            back = read_released(file, made.prepared)
            if check_read_back(made.prepared, back, OTHER_MACHINE).passed:
                return replace(made, file=back, profile=plan.profile or find_profile(str(entry["profile"])))
    if here and here[0]["method"] not in methods:
        raise _not_nested(f"the plan of {within} has no longer the method that made {file}.")
    told = "a nested release is made from that file as it is." if here else "release the scientific-use file first."
    raise _not_nested(f"{file} is not the file that {within} released: {told}")


def _not_nested(reason: str) -> Refused:
    return Refused([Check("nested", False, reason)])


def unread_parent(data: Microdata, plan: Plan, candidate: Candidate, joint: float | None = None) -> Parent:
    """A release that another could be made from, as it would be written."""
    prepared = prepare_candidate(data, candidate.method, candidate.stream(plan.seed))
    return Parent(data, plan, candidate, plan.profile or PROFILES["scientific-use"], prepared, prepared.data, joint)


def check_lineage(plan: Plan) -> list[Check]:
    """Data that lie in the folder of a release are a released file: which study released it must be said."""
    if plan.data is None or plan.data.within or not (Path(plan.data.path).parent / "note.json").is_file():
        return []
    told = "the data lie beside a method note, as a released file does: name the study that released it (`within`), so that"
    return [Check("ledger", False, f"{told} both are measured together, or state why that does not matter.")]


def check_only_parent(known: History, again: bool) -> Check:
    """Other releases of these people than the one that this is made from need `again`; then they lie beside these two."""
    if not known.others:
        none = "of these people the file that this one is made from is released, no other."
        return Check("earlier releases", True, none)
    releases = f"{known.others} release{'s' if known.others > 1 else ''} of the same people"
    end = "; the joint risk of all was computed"
    if known.lost:
        end = f", of which {known.lost} cannot be made again: what all of them tell together is not known"
    elif not again:
        end = ", and releases add up: state again=True to have the joint risk of all of them measured"
    sentence = f"the ledger knows {releases} beside the file it is made from{end}."
    return Check("earlier releases", again and not known.lost, sentence)


def check_nested(
    parent: Parent, prepared: Prepared, back: Microdata, limits: Sequence[Limit], stream: Stream, method: Method,
    known: History | None = None,
) -> list[Check]:  # fmt: skip
    """The second file, made by `method`, attacked by who holds the truth, and both files in one hand."""
    if not parent.prepared.data.paired or not prepared.data.paired:
        told = "a row of one of the two files is nobody's: who holds both knows what the first told, which was measured"
        return [Check("nested", True, f"{told} when it was released.")]
    first, second = in_one_order(parent, prepared, back)
    checks = seen_by_the_truth(parent, first, second, limits, stream, method)
    others = [] if known is None else files_of(known, parent.original, parent.plan, stream)
    beside = [file for file in others if file is not None and file.origin is None and file.paired]
    if len(beside) < len(others):
        told = "another release of these people has other rows, or synthetic ones: what all tell together is not known"
        return [*checks, Check("joint risk", False, f"{told}.")]
    ordered = [replace(file.take(parent.prepared.origin).only(_shown(parent)), origin=None) for file in beside]
    return [*checks, in_one_hand(parent, first, second, stream, ordered).check]


def seen_by_the_truth(
    parent: Parent, first: First, second: Microdata, limits: Sequence[Limit], stream: Stream, method: Method
) -> list[Check]:
    """Every risk limit of the second plan, by a snooper who holds the original records and has read both notes."""
    both, level = parent.both_made_by(Candidate(method)).method, parent.plan.policy.release_level
    return check_together("nested", limits, first.truth, second, stream, both, "by who holds the truth", level)


@dataclass(frozen=True)
class First:
    """The truth in the order of the first file, in the columns and roles of the second; and the first file with all its
    columns, as changes of the truth (`whole`)."""

    truth: Microdata
    whole: Microdata
    released: Microdata


def in_one_order(parent: Parent, prepared: Prepared, back: Microdata) -> tuple[First, Microdata]:
    """The truth, the first and the second file, each row of them the same person, in the columns of the second."""
    names = [name for name in back.names if name not in prepared.renumbered]
    if strange := [name for name in names if name not in parent.original.names]:
        raise SchemaError(f"no column {strange[0]!r} in the file that this one is made from.")
    roles = {v.name: v.role or "other" for v in prepared.data.schema.variables if v.name in names}
    whole = replace(parent.original.take(parent.prepared.origin), origin=None)
    truth = whole.only(names).with_roles(**roles)
    if unlike := [name for name in names if not _comparable(truth.column(name), back.column(name))]:
        reason = "was read in another kind than for the first file: state its kind alike."
        raise SchemaError(f"column {unlike[0]!r} {reason}")
    shown = _shown(parent)
    here = replace(parent.prepared, origin=np.arange(len(truth)), suppressed=_of(parent.prepared.suppressed, shown))
    first = aligned(whole.only(shown), parent.file.only(shown), here)
    second = aligned(truth, back.only(names), replace(prepared, suppressed=_of(prepared.suppressed, names)))
    return First(truth, whole.only(shown), first), second


def _shown(parent: Parent) -> list[str]:
    """The first file's columns that say something of its people."""
    return [name for name in parent.file.names if name not in parent.prepared.renumbered]


def _comparable(before: Column, after: Column) -> bool:
    """Numbers stay numbers or become texts such as "20 to 29"; categories stay categories."""
    if after.levels is None:
        return before.levels is None
    return before.levels is not None or after.levels.dtype == pl.String


def _of(codes: Mapping[str, float | str], names: Sequence[str]) -> dict[str, float | str]:
    return {name: code for name, code in codes.items() if name in names}


@dataclass(frozen=True)
class InOneHand:
    """People found by the best linkage: in the first file alone (of the same rows, where the second has not all), and in
    all files side by side. `stated`: the limit that was stated; else `tolerated`, the first one's, or what the first finds
    alone, for it is out. Confidence limits at `level` are compared, as everywhere."""

    alone: ScoreRow
    side_by_side: ScoreRow
    tolerated: float
    level: float
    stated: float | None = None
    part: bool = False
    files: int = 2

    @property
    def limit(self) -> Limit:
        """The largest tolerable share."""
        if self.stated is not None:
            return Limit(LINKAGE, self.stated, "the stated limit")
        own = Limit(LINKAGE, self.tolerated, "the first file").judge(self.alone.outcome, self.level)
        return replace(own.limit, value=max(self.tolerated, own.end or 0.0))

    @property
    def verdicts(self) -> list[Verdict]:
        """How the first file alone and all files side by side stand to the limit: who holds all can look at either."""
        return [self.limit.judge(score.outcome, self.level) for score in (self.alone, self.side_by_side)]

    @property
    def value(self) -> float | None:
        """The larger of the two shares; None where one was not computed."""
        alone, beside = self.alone.value, self.side_by_side.value
        return None if alone is None or beside is None else max(alone, beside)

    @property
    def check(self) -> Check:
        if self.value is None:
            return Check("joint risk", False, "the joint risk of both files could not be computed.")
        verdicts = self.verdicts
        passed = all(verdict.status == "met" for verdict in verdicts)
        files = "both files" if self.files == 2 else f"all {self.files} files of these people"
        rows = ", of the same rows," if self.part else ""
        line = f"its line: {self.tolerated:g}" if self.stated is None else f"the stated line: {self.stated:g}"
        alone, beside = map(_say_share, (self.alone, self.side_by_side), verdicts)
        parts = f"the first file{rows} alone: {alone}; side by side: {beside}; {line}"
        ends = ("the second adds to it", "the second adds nothing") if self.stated is None else ("over it", "within it")
        said = f"{LINKAGE.title} of {files} in one hand is {self.value:.4g} ({parts}): {ends[passed]}."
        return Check("joint risk", passed, said, verdict=max(verdicts, key=lambda verdict: verdict.end or 0.0))


LINKAGE = WorstLinkage()


def _say_share(score: ScoreRow, verdict: Verdict) -> str:
    """A share in words, with its upper confidence limit where that is another number."""
    value, end = score.value or 0.0, verdict.end or 0.0
    return f"{value:.4g} (at most {end:.4g})" if end > value else f"{value:.4g}"


def in_one_hand(
    parent: Parent, first: First, second: Microdata, stream: Stream, others: Sequence[Microdata] = ()
) -> InOneHand:
    """The best linkage of the first file alone, by who has read its note, and of all files side by side."""
    linkage, rows = [WorstLinkage(inclusion=parent.profile.inclusion)], second.origin
    shown, *more = [file if rows is None else file.take(rows) for file in (first.released, *others)]  # like with like
    (alone,) = score_file(linkage, first.whole, shown, stream.child("first"), parent.candidate.method, alone=False)
    known = side_by_side(first.whole, first.truth, *(first.whole for _ in others))
    (both,) = score_file(linkage, known, side_by_side(shown, second, *more), stream)
    found, level = parent.profile.found, parent.plan.policy.release_level
    return InOneHand(alone, both, found, level, parent.joint, rows is not None, 2 + len(others))


def side_by_side(first: Microdata, *others: Microdata) -> Microdata:
    """Files with the same people in the same order as one, the others' columns under other names; rows that belong
    together are told. A role that a file may have only once is the first file's."""
    columns = {name: first.column(name) for name in first.names}
    variables = list(first.schema.variables)
    for number, file in enumerate(others, 2):
        for variable in file.schema.variables:
            beside = f"{variable.name} (file {number})"
            role = "other" if variable.role in ("weight", "household", "stratum") else variable.role
            columns[beside] = file.column(variable.name)
            variables.append(replace(variable, name=beside, role=role))
    return Microdata(Schema(tuple(variables), first.schema.format), columns, first.origin)
