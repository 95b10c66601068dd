"""The public candidates that can be made from one scientific file, and what a pair of both is worth.

The scientific file is written as it would be released, with its codebook, and is the data of a study of public candidates:
nothing of these comes from the original again. A pair is measured as its release would be.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict

from sdcmap.bundle import nested
from sdcmap.bundle.checks import Check
from sdcmap.bundle.codebook import codebook
from sdcmap.bundle.ddi_codebook import codebook_xml
from sdcmap.bundle.limit_checks import limits_of, score_file
from sdcmap.bundle.nested import LINKAGE, Parent, in_one_hand, in_one_order
from sdcmap.bundle.note import Tried, method_note
from sdcmap.bundle.prepared_file import prepare_candidate
from sdcmap.bundle.readme import About
from sdcmap.core import Choice, Microdata, PlanError, SdcmapError, Stream
from sdcmap.data.private_folder import write_atomically
from sdcmap.errors import Refused, StudyDamaged, StudyMismatch
from sdcmap.files.reader import Source
from sdcmap.files.writer import write as write_file
from sdcmap.map import RUMap
from sdcmap.study.folder import lock_folder
from sdcmap.study.jobs import ScoreRow, absent_row
from sdcmap.study.plan import Candidate, Plan
from sdcmap.study.progress import Progress
from sdcmap.study.public_view import PublicView
from sdcmap.study.sweep import sweep

# The pairs that were measured, kept in pair.json of their folder: what was measured once is not measured again.


NAME = "pair.json"


class Measured(TypedDict):
    """What was measured of a pair: what the public file loses against the original, the shares found in the scientific file
    alone and in both side by side (each a row of a score table), and what failed by who holds the truth."""

    loss: float | None
    alone: ScoreRow
    side_by_side: ScoreRow
    failed: list[str]


@contextmanager
def measured_pairs(folder: Path, data: Microdata, plan: Plan) -> Iterator[Callable[[str, MeasurePair], Measured]]:
    """What gives the measured pair under a key, which says what was measured of what; where none is kept in the folder, it
    is measured and kept at once.

    The folder is made where it is not there, private, and locked meanwhile; StudyMismatch where it belongs to other data or
    another seed than those of the scientific study.
    """
    path, whose = folder / NAME, Stream.of_seed(plan.seed, "pairs", data.digest).stream_id
    if folder.exists() and any(folder.iterdir()) and not path.exists() and not (folder / "first").exists():
        raise StudyDamaged(f"{folder} is not empty and holds no pairs: name another folder.")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SdcmapError(f"{folder} cannot be written ({error.strerror}).") from None
    with lock_folder(folder):
        pairs = _read(path, whose)

        def recall(key: str, measure: MeasurePair) -> Measured:
            if key not in pairs:
                pairs[key] = measure()
                write_atomically(path, json.dumps({"whose": whose, "pairs": pairs}, indent=1))
            return pairs[key]

        yield recall


def _read(path: Path, whose: str) -> dict[str, Measured]:
    if not path.exists():
        return {}
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        every = kept["pairs"].items()
        pairs = {key: _restored(pair) for key, pair in every if isinstance(pair["alone"], list)}  # others: version 0.1
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise StudyDamaged(f"{path} cannot be read: remove it, and the pairs are measured again.") from None
    if kept["whose"] != whose:
        raise StudyMismatch(f"{path.parent} belongs to another scientific study: name another folder.")
    return pairs


def _restored(pair: Mapping[str, Any]) -> Measured:
    alone, beside = ScoreRow(*pair["alone"]), ScoreRow(*pair["side_by_side"])
    return {"loss": pair["loss"], "alone": alone, "side_by_side": beside, "failed": pair["failed"]}


MeasurePair = Callable[[], Measured]
NOBODYS = "a row of a synthetic file is nobody's, so both files have no joint linkage."


@dataclass(frozen=True)
class PublicCandidates:
    """What can be made from one scientific file: the file, its study's plan and data, and the map of its candidates."""

    parent: Parent
    plan: Plan
    data: Microdata
    map: RUMap

    def measured(self, second: Choice) -> Measured:
        """The pair with this public candidate: the public file by who holds the truth, its loss against the original, and
        both files in one hand; by draws of its own, so that a release measures anew."""
        candidate = self.plan.resolve_choice(second)
        method, stream = candidate.method, candidate.stream(self.plan.seed)
        made, fresh = prepare_candidate(self.data, method, stream), stream.child("pair scores")
        if not made.data.paired:
            none = absent_row(LINKAGE, "unpaired", NOBODYS)
            return {"loss": None, "alone": none, "side_by_side": none, "failed": [NOBODYS]}
        first, file = in_one_order(self.parent, made, made.data)
        limits = limits_of(self.plan, [self.plan.rule], None)
        checks = nested.seen_by_the_truth(self.parent, first, file, limits, fresh, method)
        utility = [measure for measure in self.plan.measures if measure.text == self.plan.utility]
        (loss,) = score_file(utility, first.truth, file, fresh)
        hand = in_one_hand(self.parent, first, file, fresh)
        failed = [check.reason for check in checks if not check.passed]
        return {"loss": loss.value, "alone": hand.alone, "side_by_side": hand.side_by_side, "failed": failed}


@dataclass(frozen=True)
class PublicStudies:
    """Studies of public candidates, one for each scientific file, below a folder.

    within, plan, data : the study of the scientific file, its plan and the original. public : the plan of the public file.
    """

    within: Path
    plan: Plan
    data: Microdata
    public: Plan
    folder: Path
    joint: float | None

    def study_of(self, first: str) -> Path:
        return self.folder / "second" / first

    def made_from(
        self, first: Candidate, workers: int | None, engine: str | None, progress: Progress | None
    ) -> PublicCandidates:
        """The public candidates of one scientific file, swept; an error with the reason where it cannot be their source."""
        parent = nested.unread_parent(self.data, self.plan, first, self.joint)
        if not parent.prepared.data.paired:
            raise Refused([Check("pair", False, NOBODYS)])
        source = self._written(parent)
        plan = replace(self.public, data=source)
        object.__setattr__(plan, "seed_stated", self.public.seed_stated)
        data = source.read()
        scores = sweep(data, plan, self.study_of(first.id), workers=workers, engine=engine, progress=progress)
        bound = scores.plan or plan
        if not bound.risk:
            raise PlanError("the public plan has no risk measure.")
        return PublicCandidates(parent, bound, data, RUMap.of_plan(scores, bound))

    def _written(self, parent: Parent) -> Source:
        """The scientific file as it would be released, with its codebook; and how it is read for the public plan."""
        place = self.folder / "first" / parent.candidate.id
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        prepared, method = parent.prepared, parent.candidate.method
        path = write_file(prepared.data, place / f"{nested.FOR_CHOOSING}.{prepared.data.schema.format}")
        view = PublicView.of(self.plan, self.data)
        note = method_note(view, method, prepared, parent.profile.name, Tried(1, 1, 0))
        entries = codebook(prepared, method, view.method(method.text))
        about = About(prepared.data.schema.title or "Microdata", "", datetime.now(UTC).date().isoformat())
        book = write_atomically(place / "codebook.xml", codebook_xml(about, entries, prepared, note))
        stated = source_of(self.public.data or Source(""), prepared.data.names)
        return replace(stated, path=str(path), ddi=str(book), within=str(self.within))


def source_of(stated: Source, names: Sequence[str]) -> Source:
    """What is stated of the columns, for a file with these that we wrote: identifiers and dropped columns may be gone, and
    how another file was written says nothing of ours."""
    identifiers, drop, proposed = (
        tuple(name for name in listed if name in names) for listed in (stated.identifiers, stated.drop, stated.proposed)
    )
    return replace(
        stated, identifiers=identifiers, drop=drop, proposed=proposed, missing=(), sep="", decimal="", thousands="",
        quote="", encoding="",
    )  # fmt: skip
