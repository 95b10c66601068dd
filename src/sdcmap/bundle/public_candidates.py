"""The public candidates that can be made from one scientific file, and what a pair of both is worth.

The scientific file is written as it would be released, with its codebook, and is the data of a study of public candidates:
nothing of these comes from the original again. A pair is measured as its release would be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from sdcmap.bundle.about import About
from sdcmap.bundle.checks import Check
from sdcmap.bundle.codebook import codebook
from sdcmap.bundle.ddi_codebook import codebook_xml
from sdcmap.bundle.limit_checks import limits_of, score_file
from sdcmap.bundle.measured_pairs import Measured
from sdcmap.bundle.nested import FOR_CHOOSING, Parent, in_one_hand, in_one_order, seen_by_the_truth, unread_parent
from sdcmap.bundle.note import Tried, method_note, public_note
from sdcmap.bundle.prepare import as_written, prepare
from sdcmap.core.rule import Choice
from sdcmap.data.microdata import Microdata
from sdcmap.data.whole import write_whole
from sdcmap.errors import PlanError, Refused
from sdcmap.files.reading import Source
from sdcmap.files.writing import write as write_file
from sdcmap.map import RUMap
from sdcmap.study.plan import Candidate, Plan
from sdcmap.study.progress import Progress
from sdcmap.study.sweeping import sweep

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
        candidate = self.plan.chosen(second)
        method, stream = candidate.method, candidate.stream(self.plan.seed)
        made = prepare(self.data, method, as_written(self.data, method, method.apply(self.data, stream)), stream)
        if not made.data.paired:
            return {"loss": None, "alone": None, "side_by_side": None, "failed": [NOBODYS]}
        first, file = in_one_order(self.parent, made, made.data)
        fresh = stream.child("pair scores")
        checks = seen_by_the_truth(
            self.parent, first, file, limits_of(self.plan, [self.plan.rule], None), fresh, method
        )
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
        parent = unread_parent(self.data, self.plan, first, self.joint)
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
        path = write_file(prepared.data, place / f"{FOR_CHOOSING}.{prepared.data.schema.format}")
        name = self.plan.method_names[method.text]
        note = method_note(name, method, prepared, parent.profile.name, Tried(1, 1, 0), [])
        public = public_note(note, self.plan, self.data)
        about = About(prepared.data.schema.title or "Microdata", "", datetime.now(UTC).date().isoformat())
        book = write_whole(place / "codebook.xml", codebook_xml(about, codebook(prepared, method), prepared, public))
        stated = source_of(self.public.data or Source(""), prepared.data.names)
        return replace(stated, path=str(path), ddi=str(book), within=str(self.within))


def source_of(stated: Source, names: Sequence[str]) -> Source:
    """What is stated of the columns, for a file with these that we wrote: identifiers and dropped columns may be gone, and
    how another file was written says nothing of ours."""

    def here(listed: Sequence[str]) -> tuple[str, ...]:
        return tuple(name for name in listed if name in names)

    return replace(
        stated, identifiers=here(stated.identifiers), drop=here(stated.drop), proposed=here(stated.proposed),
        missing=(), sep="", decimal="", thousands="", quote="", encoding="",
    )  # fmt: skip
