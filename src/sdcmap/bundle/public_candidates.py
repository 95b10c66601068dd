"""The public candidates that can be made from one scientific file, and what each pair of both is worth.

The scientific file is written as it would be released, with its codebook, and becomes the data of a study of public
candidates: they contain nothing new from the original. A pair is measured as its release would be.
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
from sdcmap.bundle.nested import LINKAGE, Parent, align_files, measure_joint_linkage
from sdcmap.bundle.note import SearchEffort, method_note
from sdcmap.bundle.prepared_file import prepare_candidate
from sdcmap.bundle.procedure import release_draw
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

CACHE_FILE = "pair.json"  # measured pairs, in the folder of the choice: no pair is measured twice


class PairMeasurement(TypedDict):
    """The measured values of one pair."""

    loss: float | None  # of the public file, compared with the original
    alone: ScoreRow  # share re-identified from the scientific file alone
    side_by_side: ScoreRow  # ... and from both files
    failed: list[str]  # failed checks of the public file against the original records


@contextmanager
def open_pair_cache(
    folder: Path, data: Microdata, plan: Plan
) -> Iterator[Callable[[str, MeasurePair], PairMeasurement]]:
    """Open the cache of measured pairs and yield a function that returns a pair by its key, measuring it if needed.

    The folder is created if needed, private, and locked meanwhile. Raise StudyMismatch where it belongs to other data or
    another seed than the scientific study.
    """
    path, owner = folder / CACHE_FILE, Stream.of_seed(plan.seed, "pairs", data.digest).stream_id
    if folder.exists() and any(folder.iterdir()) and not path.exists() and not (folder / "first").exists():
        raise StudyDamaged(f"{folder} is not empty and holds no pairs. Name another folder.")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SdcmapError(f"{folder} cannot be written ({error.strerror}).") from None
    with lock_folder(folder):
        pairs = _read(path, owner)

        def recall(key: str, measure: MeasurePair) -> PairMeasurement:
            if key not in pairs:
                pairs[key] = measure()
                write_atomically(path, json.dumps({"whose": owner, "pairs": pairs}, indent=1))
            return pairs[key]

        yield recall


def _read(path: Path, owner: str) -> dict[str, PairMeasurement]:
    if not path.exists():
        return {}
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        entries = stored["pairs"].items()
        # Version 0.1 stored other values; such pairs are measured again.
        pairs = {key: _restore(pair) for key, pair in entries if isinstance(pair["alone"], list)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise StudyDamaged(f"{path} cannot be read. Remove it, and the pairs are measured again.") from None
    if stored["whose"] != owner:
        raise StudyMismatch(f"{path.parent} belongs to another scientific study. Name another folder.")
    return pairs


def _restore(pair: Mapping[str, Any]) -> PairMeasurement:
    alone, together = ScoreRow(*pair["alone"]), ScoreRow(*pair["side_by_side"])
    return {"loss": pair["loss"], "alone": alone, "side_by_side": together, "failed": pair["failed"]}


MeasurePair = Callable[[], PairMeasurement]
SYNTHETIC_REASON = "Joint linkage cannot be tested: one of the files is fully synthetic."


@dataclass(frozen=True)
class PublicCandidates:
    """The public candidates made from one scientific file: that file, the plan and data of their study, and their map."""

    parent: Parent
    plan: Plan
    data: Microdata
    map: RUMap

    def measure_pair(self, second: Choice) -> PairMeasurement:
        """Measure the pair with this public candidate, with random draws of its own, so that a release measures anew.

        The public file is attacked with the original records, its loss is computed against the original, and both files
        are attacked together.
        """
        candidate = self.plan.resolve_choice(second)
        method, stream = candidate.method, candidate.stream(self.plan.seed)
        prepared, fresh = prepare_candidate(self.data, method, stream), stream.child("pair scores")
        if not prepared.data.paired:
            none = absent_row(LINKAGE, "unpaired", SYNTHETIC_REASON)
            return {"loss": None, "alone": none, "side_by_side": none, "failed": [SYNTHETIC_REASON]}
        first, file = align_files(self.parent, prepared, prepared.data)
        limits, level = limits_of(self.plan, self.data, [self.plan.rule]), self.parent.plan.policy.first_level
        checks = nested.check_against_original(self.parent, first, file, limits, fresh, method, level)
        utility = [measure for measure in self.plan.measures if measure.text == self.plan.utility]
        (loss,) = score_file(utility, first.truth, file, fresh)
        joint = measure_joint_linkage(self.parent, first, file, fresh, level)
        failed = [check.reason for check in checks if not check.passed]
        return {"loss": loss.value, "alone": joint.alone, "side_by_side": joint.side_by_side, "failed": failed}


@dataclass(frozen=True)
class PublicStudies:
    """The studies of public candidates in one folder, one study for each scientific file."""

    within: Path  # the study of the scientific file
    plan: Plan  # its plan
    data: Microdata  # the original
    public: Plan  # the plan of the public file
    folder: Path
    joint: float | None  # the stated joint limit

    def study_of(self, first: str) -> Path:
        """Return the folder of the study of public candidates made from the scientific candidate with this id."""
        return self.folder / "second" / first

    def sweep_candidates_from(
        self, first: Candidate, workers: int | None, engine: str | None, progress: Progress | None
    ) -> PublicCandidates:
        """Sweep the public candidates made from one scientific file; raise an error where it cannot be their source.

        The scientific file is the draw that the first try of its release makes.
        """
        parent = nested.planned_parent(self.data, self.plan, release_draw(first), self.joint)
        if not parent.prepared.data.paired:
            raise Refused([Check("pair", False, SYNTHETIC_REASON)])
        source = self._write_scientific_file(first.id, parent)
        plan = replace(self.public, data=source)
        object.__setattr__(plan, "seed_stated", self.public.seed_stated)
        data = source.read()
        scores = sweep(data, plan, self.study_of(first.id), workers=workers, engine=engine, progress=progress)
        complete = scores.plan or plan  # with the measures that the plan left to sdcmap
        if not complete.risk:
            raise PlanError("the public plan has no risk measure.")
        return PublicCandidates(parent, complete, data, RUMap.of_plan(scores, complete))

    def _write_scientific_file(self, first: str, parent: Parent) -> Source:
        """Write the scientific file as it would be released, with its codebook; return how the public plan reads it."""
        folder = self.folder / "first" / first
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        prepared, method = parent.prepared, parent.candidate.method
        path = write_file(prepared.data, folder / f"{nested.DRAFT_FILE_STEM}.{prepared.data.schema.format}")
        view = PublicView.of(self.plan, self.data)
        note = method_note(view, method, prepared, parent.profile.name, SearchEffort(1, 1, 0))
        entries = codebook(prepared, method, view.method(method.text))
        about = About(prepared.data.schema.title or "Microdata", "", datetime.now(UTC).date().isoformat())
        book = write_atomically(folder / "codebook.xml", codebook_xml(about, entries, prepared, note))
        stated = source_of(self.public.data or Source(""), prepared.data.names)
        return replace(stated, path=str(path), ddi=str(book), within=str(self.within))


def source_of(stated: Source, names: Sequence[str]) -> Source:
    """Return the stated source, adapted to a file with these columns that sdcmap wrote.

    Columns that are not in the file are removed from it, and so are the format options of the file it was stated for.
    """
    identifiers, drop, proposed = (
        tuple(name for name in listed if name in names) for listed in (stated.identifiers, stated.drop, stated.proposed)
    )
    return replace(
        stated, identifiers=identifiers, drop=drop, proposed=proposed, missing=(), sep="", decimal="", thousands="",
        quote="", encoding="",
    )  # fmt: skip
