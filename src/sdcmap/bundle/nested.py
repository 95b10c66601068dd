"""Nested releases: a file made from a released file, such as a public-use file made from a scientific-use file.

The second file belongs to a study of its own, whose data are the first file as it was written. So it contains nothing new
from the original, and its columns are columns of the first. The study that released the first file keeps the original
(`Source.within`), and a release of the second file is checked there in two ways:

alone : the second file, attacked with the original records, is within the limits of its own plan.
both  : both files, the first with all its columns, held by one attacker. They must not re-identify more than the first
        file's profile allows, or than the first file does alone, since that one is already public; or than a joint limit
        stated when the two were chosen together.

The second file was made from the first alone, so P(truth | both) = P(truth | first): an ideal attacker gains nothing from
it. Our attacks are not ideal. They are therefore run on both files side by side, with matching rows known, and the larger
number counts. Other releases of the same people that can be made again are added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from sdcmap.bundle.checks import Check
from sdcmap.bundle.earlier_releases import History, history, remake_files
from sdcmap.bundle.ledger import Ledger
from sdcmap.bundle.limit_checks import check_combined_file, score_file
from sdcmap.bundle.prepared_file import Prepared, in_format, prepare_candidate
from sdcmap.bundle.round_trip import align_with_original, check_round_trip, read_released
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

CROSS_MACHINE_TOLERANCE = 1e-9  # of the largest number of a column: files made on another machine differ in last bits
DRAFT_FILE_STEM = "data.study"  # name, without its ending, of a file that is not released yet


@dataclass(frozen=True)
class Parent:
    """The release that another release is made from."""

    original: Microdata  # the file that was masked
    plan: Plan
    candidate: Candidate
    profile: Profile
    prepared: Prepared  # the file to write, with the row of the original that each row came from (never written)
    file: Microdata  # the released file as read
    joint: float | None = None  # stated limit on the share re-identified from both files; None: the profile's

    def combined_candidate(self, candidate: Candidate) -> Candidate:
        """Return the second release as the ledger records it: all steps from the original on."""
        return Candidate(Chain((*self.candidate.method.steps, *candidate.method.steps)), candidate.replicate)

    def find_history(self, ledgers: Sequence[Ledger], candidate: Candidate) -> History:
        """Return the earlier releases of these people, except the first file and this very file."""
        every = history(ledgers, self.original, self.plan, self.candidate)
        own = self.combined_candidate(candidate).method.digest
        return replace(every, similar=tuple(method for method in every.similar if method.digest != own))


def find_parent(within: Path, file: Path) -> Parent:
    """Return the release of the study `within` that wrote `file`, made again; raise `Refused` where there is none.

    A draft file, made to choose both files together (see `choose_pair`), is compared with every release of the study.
    """
    with Study.open(within) as study:
        entries = study.manifest.get("releases", [])[::-1]
        here = [entry for entry in entries if Path(entry["folder"]) == file.parent.resolve()][:1]
        if not here and not file.name.startswith(f"{DRAFT_FILE_STEM}."):
            raise _not_nested(f"The study {within} has released no file in {file.parent}. Name the study that did.")
        plan, data = study.plan, in_format(study.data, file.suffix.removeprefix("."))
    methods = {method.text: method for method in plan.all_methods}
    # Make each release again until one equals the file: paths and formats may have changed since.
    for entry in here or entries:
        if (method := methods.get(entry["method"])) is not None:
            parent = planned_parent(data, plan, Candidate(method, int(entry["replicate"])))
            back = read_released(file, parent.prepared)
            if check_round_trip(parent.prepared, back, CROSS_MACHINE_TOLERANCE).passed:
                return replace(parent, file=back, profile=plan.profile or find_profile(str(entry["profile"])))
    if here and here[0]["method"] not in methods:
        raise _not_nested(f"The plan of {within} no longer contains the method that made {file}.")
    advice = "A nested release needs that file unchanged." if here else "Release the scientific-use file first."
    raise _not_nested(f"{file} is not the file that {within} released. {advice}")


def _not_nested(reason: str) -> Refused:
    return Refused([Check("nested", False, reason)])


def planned_parent(data: Microdata, plan: Plan, candidate: Candidate, joint: float | None = None) -> Parent:
    """Return a release that another could be made from, before it is written."""
    prepared = prepare_candidate(data, candidate.method, candidate.stream(plan.seed))
    return Parent(data, plan, candidate, plan.profile or PROFILES["scientific-use"], prepared, prepared.data, joint)


def check_lineage(plan: Plan) -> list[Check]:
    """Check that data in the folder of a release name the study that released them."""
    if plan.data is None or plan.data.within or not (Path(plan.data.path).parent / "note.json").is_file():
        return []
    problem = "The data are in a folder with a method note, so they seem to be a released file."
    advice = "Name the study that released it (`within`), so that both files are measured together, or state why not."
    return [Check("ledger", False, f"{problem} {advice}")]


def check_other_releases(earlier: History, again: bool) -> Check:
    """Check that no release of these people exists beside the first file, or that `again` allows it to be included."""
    if not earlier.others:
        return Check(
            "earlier releases", True, "Only the file that this one is made from was released about these people."
        )
    plural = "s" if earlier.others > 1 else ""
    count = f"The ledger contains {earlier.others} release{plural} of the same people beside the file it is made from"
    if earlier.unavailable:
        end = f"; {earlier.unavailable} of them cannot be made again, so the joint risk of all files is unknown."
    elif not again:
        end = ". The risks of several releases add up: state again=True to have the joint risk of all measured."
    else:
        end = "; the joint risk of all was measured."
    return Check("earlier releases", again and not earlier.unavailable, count + end)


def check_nested(
    parent: Parent, prepared: Prepared, back: Microdata, limits: Sequence[Limit], stream: Stream, method: Method,
    level: float, earlier: History | None = None,
) -> list[Check]:  # fmt: skip
    """Check the second file, made by `method`, against the original, and both files held by one attacker."""
    if not parent.prepared.data.paired or not prepared.data.paired:
        reason = "Joint linkage was not tested because one of the two files is fully synthetic."
        return [Check("nested", True, f"{reason} The first file was checked when it was released.", tested=False)]
    first, second = align_files(parent, prepared, back)
    checks = check_against_original(parent, first, second, limits, stream, method, level)
    others = [] if earlier is None else remake_files(earlier, parent.original, parent.plan, stream)
    matched = [file for file in others if file is not None and file.origin is None and file.paired]
    if len(matched) < len(others):
        reason = "The joint risk was not tested: another release is synthetic or has other rows."
        return [*checks, Check("joint risk", False, reason, tested=False)]
    ordered = [
        replace(file.take(parent.prepared.origin).only(_informative_columns(parent)), origin=None) for file in matched
    ]
    return [*checks, measure_joint_linkage(parent, first, second, stream, level, ordered).check]


def check_against_original(
    parent: Parent, first: FirstFile, second: Microdata, limits: Sequence[Limit], stream: Stream, method: Method,
    level: float,
) -> list[Check]:  # fmt: skip
    """Check every risk limit of the second plan for an attacker who holds the original records and both method notes."""
    both = parent.combined_candidate(Candidate(method)).method
    return check_combined_file(
        "nested", limits, first.truth, second, stream, both, "for an attacker with the original records", level,
        is_random=both.random,
    )  # fmt: skip


@dataclass(frozen=True)
class FirstFile:
    """The original records and the first file, both in the row order of the first file."""

    truth: Microdata  # the original, in the columns and roles of the second file
    whole: Microdata  # the original, in all columns of the first file
    released: Microdata  # the first file, as changes of `whole`


def align_files(parent: Parent, prepared: Prepared, back: Microdata) -> tuple[FirstFile, Microdata]:
    """Return the original with the first file, and the second file, so that each row is the same person in all of them."""
    names = [name for name in back.names if name not in prepared.renumbered]
    if unknown := [name for name in names if name not in parent.original.names]:
        raise SchemaError(f"no column {unknown[0]!r} in the file that this one is made from.")
    roles = {v.name: v.role or "other" for v in prepared.data.schema.variables if v.name in names}
    whole = replace(parent.original.take(parent.prepared.origin), origin=None)
    truth = whole.only(names).with_roles(**roles)
    if unlike := [name for name in names if not _comparable(truth.column(name), back.column(name))]:
        reason = "was read as another kind than for the first file. State the same kind for both."
        raise SchemaError(f"column {unlike[0]!r} {reason}")
    informative = _informative_columns(parent)
    here = replace(
        parent.prepared, origin=np.arange(len(truth)), suppressed=_select_codes(parent.prepared.suppressed, informative)
    )
    first = align_with_original(whole.only(informative), parent.file.only(informative), here)
    second = align_with_original(
        truth, back.only(names), replace(prepared, suppressed=_select_codes(prepared.suppressed, names))
    )
    return FirstFile(truth, whole.only(informative), first), second


def _informative_columns(parent: Parent) -> list[str]:
    """Return the columns of the first file that contain information about people: all but random numbers."""
    return [name for name in parent.file.names if name not in parent.prepared.renumbered]


def _comparable(before: Column, after: Column) -> bool:
    """Return whether two columns can be compared: numbers may become texts such as "20 to 29", not the reverse."""
    if after.levels is None:
        return before.levels is None
    return before.levels is not None or after.levels.dtype == pl.String


def _select_codes(codes: Mapping[str, float | str], names: Sequence[str]) -> dict[str, float | str]:
    return {name: code for name, code in codes.items() if name in names}


@dataclass(frozen=True)
class JointLinkage:
    """The share of people re-identified by the best linkage attack, from the first file alone and from all files together.

    Confidence limits at `level` are compared with the limit, as everywhere.
    """

    alone: ScoreRow  # the first file, restricted to the rows of the second
    side_by_side: ScoreRow  # all files
    profile_limit: float  # of the first file's profile
    level: float
    stated_limit: float | None = None  # replaces the profile's
    is_subset: bool = False  # whether the second file lacks rows of the first
    files: int = 2

    @property
    def limit(self) -> Limit:
        """The largest acceptable share: the stated limit, or that of the profile or the first file, if larger."""
        if self.stated_limit is not None:
            return Limit(LINKAGE, self.stated_limit, "the stated limit")
        own = Limit(LINKAGE, self.profile_limit, "the first file").judge(self.alone.outcome, self.level)
        return replace(own.limit, value=max(self.profile_limit, own.end or 0.0))

    @property
    def verdicts(self) -> list[Verdict]:
        """The first file alone and all files side by side, each compared with the limit: an attacker can use either."""
        return [self.limit.judge(score.outcome, self.level) for score in (self.alone, self.side_by_side)]

    @property
    def value(self) -> float | None:
        """The larger of the two shares; None where one was not computed."""
        alone, together = self.alone.value, self.side_by_side.value
        return None if alone is None or together is None else max(alone, together)

    @property
    def check(self) -> Check:
        """The check of the joint risk."""
        if self.value is None:
            return Check("joint risk", False, "The joint risk of both files could not be computed.")
        verdicts = self.verdicts
        passed = all(verdict.status == "met" for verdict in verdicts)
        files = "both files" if self.files == 2 else f"all {self.files} files of these people"
        rows = ", same rows," if self.is_subset else ""
        limit = f"limit of its profile: {self.profile_limit:g}"
        ends = ("The second file adds to the risk", "The second file adds no risk")
        if self.stated_limit is not None:
            limit = f"stated limit: {self.stated_limit:g}"
            ends = ("It exceeds the limit", "It is within the limit")
        alone, together = map(_describe_share, (self.alone, self.side_by_side), verdicts)
        parts = f"first file{rows} alone: {alone}; side by side: {together}; {limit}"
        sentence = f"{LINKAGE.title} from {files} held by one attacker: {self.value:.4g} ({parts}). {ends[passed]}."
        return Check("joint risk", passed, sentence, verdict=max(verdicts, key=lambda verdict: verdict.end or 0.0))


LINKAGE = WorstLinkage()


def _describe_share(score: ScoreRow, verdict: Verdict) -> str:
    """Return a share in words, with its upper confidence limit where that is larger."""
    value, end = score.value or 0.0, verdict.end or 0.0
    return f"{value:.4g} (upper confidence limit {end:.4g})" if end > value else f"{value:.4g}"


def measure_joint_linkage(
    parent: Parent, first: FirstFile, second: Microdata, stream: Stream, level: float,
    others: Sequence[Microdata] = (),
) -> JointLinkage:  # fmt: skip
    """Attack the first file alone, with its method known, and all files side by side, each by the best linkage."""
    linkage, rows = [WorstLinkage(inclusion=parent.profile.inclusion)], second.origin
    # Compare like with like: where the second file lacks rows, the other files are restricted to its rows.
    released, *more = [file if rows is None else file.take(rows) for file in (first.released, *others)]
    (alone,) = score_file(linkage, first.whole, released, stream.child("first"), parent.candidate.method, alone=False)
    original = side_by_side(first.whole, first.truth, *(first.whole for _ in others))
    (both,) = score_file(linkage, original, side_by_side(released, second, *more), stream)
    return JointLinkage(
        alone, both, parent.profile.reidentification, level, parent.joint, rows is not None, 2 + len(others)
    )


def side_by_side(first: Microdata, *others: Microdata) -> Microdata:
    """Return files of the same people, in the same row order, as one file with all columns, renamed where needed.

    A role that a file can have only once (weight, household, stratum) belongs to the first file.
    """
    columns = {name: first.column(name) for name in first.names}
    variables = list(first.schema.variables)
    for number, file in enumerate(others, 2):
        for variable in file.schema.variables:
            new_name = f"{variable.name} (file {number})"
            role = "other" if variable.role in ("weight", "household", "stratum") else variable.role
            columns[new_name] = file.column(variable.name)
            variables.append(replace(variable, name=new_name, role=role))
    return Microdata(Schema(tuple(variables), first.schema.format), columns, first.origin)
