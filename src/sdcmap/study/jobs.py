"""Making and scoring: one candidate of a sweep, one masked file, or a file made elsewhere."""

from __future__ import annotations

import hashlib
import math
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Literal, NamedTuple

from sdcmap.core import Infeasible, Method, Microdata, SchemaError, Stream, Undefined
from sdcmap.core.estimate import NO_DETAILS, Estimate
from sdcmap.core.limit import Absent
from sdcmap.core.making import Folds, Making, made_without
from sdcmap.core.measure import Enough, IsEnough, Measure
from sdcmap.data.readable import Readable
from sdcmap.errors import ContractBroken
from sdcmap.files.aligning import align, without_id
from sdcmap.files.reading import read
from sdcmap.kernels.device import NoCard, running_on
from sdcmap.study.device_choice import settled, told_if_lost
from sdcmap.study.halting import Halt
from sdcmap.study.parts import part_of
from sdcmap.study.plan import Candidate

Kind = Literal["candidate", "identity", "file", "fresh", "screening", "bound"]
# a release, the file as it is, a file made elsewhere, a redraw, scores of a part of the rows, scores left when they were
# beaten already


@dataclass(frozen=True)
class Job:
    """One candidate to make and the measures still missing; it carries the candidate's own key, never the seed.

    kind : of the row that comes of it; None: the candidate's own. part : the key of the part of the rows that it is made
    of; empty: all. halt : when its other measures need not be taken any more.
    """

    candidate: Candidate
    key: bytes = field(repr=False)
    measures: tuple[Measure, ...]
    kind: Kind | None = None
    part: bytes = field(default=b"", repr=False)
    halt: Halt | None = None
    device: str = "cpu"


class ScoreRow(NamedTuple):
    """One row of the score table; `measure_id` says which value made the number, `measure` is its label."""

    measure_id: str
    measure: str
    value: float | None
    se: float | None
    details: str  # versioned JSON: parts, bounds, skipped attacks and the kind of interval (`Estimate.to_details`)
    status: str  # ok, infinite, undefined, unpaired (it compares records, and these are nobody's), bound, failed
    reason: str

    @property
    def outcome(self) -> Estimate | Absent:
        """The estimate that the row holds, or why there is none."""
        if self.status == "infinite":
            return Estimate.from_details(math.inf, None, self.details)
        if self.value is None:
            return Absent(applies=self.status != "unpaired", reason=self.reason)
        return Estimate.from_details(self.value, self.se, self.details)


class CandidateRow(NamedTuple):
    """One row of the candidate table with its scores."""

    id: str
    kind: Kind
    method: str
    replicate: int
    status: str  # ok, infeasible, failed
    reason: str
    seconds: float
    seal: str  # of the stream that it was drawn from
    scores: tuple[ScoreRow, ...] = ()


def run_job(data: Microdata, job: Job) -> CandidateRow:
    """Make one candidate and score it.

    It raises only where a GPU that must be used is lost, or a class breaks its contract. Our own errors are recorded with
    their sentence, any other with its type and place only, since its text may hold a data value.
    """
    started = time.perf_counter()
    status, reason, scores = "ok", "", list[ScoreRow]()
    try:
        with running_on(job.device):
            scores = _scored(part_of(data, job.part) if job.part else data, job)
    except (Infeasible, SchemaError) as error:
        status, reason = "infeasible", str(error)
    except (NoCard, ContractBroken):
        raise
    except Exception as error:
        status, reason = "failed", _type_and_place(error)
    return candidate_row(job, status, reason, time.perf_counter() - started, scores)


def _scored(data: Microdata, job: Job) -> list[ScoreRow]:
    """The candidate made and scored, until all is measured or it is seen to be beaten."""
    stream, method = Stream(job.key), job.candidate.method
    masked, make = method.apply(data, stream), maker(data, method, stream)
    scores: list[ScoreRow] = []
    for measure in job.measures:
        enough = None if job.halt is None else partial(_beaten_at, job.halt, scores, measure.text)
        scores.append(score_row(measure, data, masked, stream, method, make, enough))
        if enough is not None and enough(scores[-1].value):
            break
    return scores


def _beaten_at(halt: Halt, scores: Sequence[ScoreRow], measure: str, value: float | None) -> bool:
    """Whether a candidate with these scores is beaten, if the measure has this value or a worse one."""
    return halt.beaten({**{row.measure: row.value for row in scores}, measure: value})


def candidate_row(job: Job, status: str, reason: str, seconds: float, scores: Sequence[ScoreRow] = ()) -> CandidateRow:
    """The row of a job; one that was left before its last measure was taken to its end is a bound."""
    early = len(scores) < len(job.measures) or any(score.status == "bound" for score in scores)
    made, row = job.candidate, (status, reason, seconds, Stream(job.key).seal, tuple(scores))
    kind = "bound" if status == "ok" and early else job.kind or made.kind
    return CandidateRow(row_id(made, kind), kind, made.method.text, made.replicate, *row)


def row_id(candidate: Candidate, kind: Kind) -> str:
    """The id of a candidate's row of this kind; what is no release has one of its own, so that it is never taken for it."""
    if kind not in ("screening", "bound"):
        return candidate.id
    return hashlib.sha256(f"{kind}/{candidate.id}".encode()).hexdigest()[:12]


Maker = Callable[[Folds], tuple[Making, ...]]


def maker(data: Microdata, method: Method, stream: Stream) -> Maker:
    """Makes the method again without some of the people, for the measures that ask for it; measures of one release share
    what is made."""
    return cache(partial(made_without, data, method, stream))


def score_row(
    measure: Measure, original: Microdata, masked: Microdata, stream: Stream, method: Method | None = None,
    make: Maker | None = None, enough: IsEnough | None = None,
) -> ScoreRow:  # fmt: skip
    """One measure of one masked file, made by `method` where that is known, and made again without some of the people by
    `make` where the measure asks for it; an undefined value has its reason, and one that was left with `enough` is a
    bound."""
    try:
        return row_of(measure, _estimate(measure, original, masked, stream, method, make, enough))
    except Enough as seen:
        reason = "others have less risk and less loss."
        return ScoreRow(measure.id, measure.text, seen.value, None, NO_DETAILS, "bound", reason)
    except (Undefined, SchemaError) as error:
        unpaired = measure.paired and not masked.paired
        return no_value(measure, "unpaired" if unpaired else "undefined", str(error))
    except (NoCard, ContractBroken):
        raise
    except Exception as error:
        return no_value(measure, "failed", _type_and_place(error))


def _estimate(
    measure: Measure, original: Microdata, masked: Microdata, stream: Stream, method: Method | None, make: Maker | None,
    enough: IsEnough | None = None,
) -> Estimate:  # fmt: skip
    informed = measure if method is None else measure.knowing(method)
    folds = None if make is None else informed.makings(masked)
    makings = () if make is None or folds is None else make(folds)
    path = getattr(measure, "control_file", "")  # its name and content count, not where it lies
    key = replace(measure, control_file=Path(path).name) if path else measure  # type: ignore[call-arg]
    rng = stream.child(f"measure {key.digest}").rng() if measure.sampled else UNUSED  # the others draw nothing
    return informed.apply(original, masked, rng, makings, enough)


def row_of(measure: Measure, estimate: Estimate) -> ScoreRow:
    """An estimate as a row of the score table; infinity is a status."""
    details = estimate.to_details()
    if math.isfinite(estimate.value):
        se = None if estimate.se is None else float(estimate.se)
        return ScoreRow(measure.id, measure.text, float(estimate.value) + 0.0, se, details, "ok", "")  # 0 for -0
    if math.isinf(estimate.value):
        return no_value(measure, "infinite", "", details)
    return no_value(measure, "undefined", "the value is not a number.", details)


def no_value(measure: Measure, status: str, reason: str, details: str = NO_DETAILS) -> ScoreRow:
    """The row of a measure that has no value here."""
    return ScoreRow(measure.id, measure.text, None, None, details, status, reason)


UNUSED = Stream(bytes(32)).rng()


def _type_and_place(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(frame.filename).name}, line {frame.lineno}"


def mask(data: Microdata, method: Method, *, seed: int) -> Microdata:
    """One masked file for study, replicate 0 of `method`, without a plan. It may not be released.

    >>> from sdcmap import Noise, demo
    >>> persons = demo.population(100, seed=1)
    >>> len(mask(persons, Noise(on="wage"), seed=1))
    100
    """
    return method.apply(data, Candidate(method).stream(seed))


def score(
    original: Readable, masked: Readable, measures: Measure | Sequence[Measure], *, by: str | None = None,
    paired: bool = True, method: Method | None = None, seed: int = 0, device: str = "cpu",
) -> dict[str, Estimate]:  # fmt: skip
    """The measures of a masked file from any tool, named by their text.

    Parameters
    ----------
    original : Microdata, with keys, numeric variables and weight stated; or a path or frame.
    masked : Microdata, path or frame with the same columns; rows in the same order, or matched by a column.
    by : name of an id column in both files that says which record is which; it is no column of the release.
    paired : False where the rows are nobody's, as of a synthetic file, however many they are.
    method : how it was made, where that is known and can be done here: for snoopers who have read the method note, and to
        make it again without some of the people, where a measure needs them as a control group.
    seed : for measures that draw random numbers.
    device : "cpu"; "gpu" for attacks that have kernels there, an error without one; "auto": a GPU where one can be used.

    A measure that has no value raises Undefined with the reason: so do those that compare records, of unpaired files.
    Rows that agree with the original's in no column get the warning `OtherOrder`.
    """
    original = without_id(original if isinstance(original, Microdata) else read(original), by)
    aligned = align(original, masked, by=by, paired=paired)
    measures = [measures] if isinstance(measures, Measure) else list(measures)
    stream = Stream.of_seed(seed, "score")
    make = None if method is None else maker(original, method, stream)
    with told_if_lost(), running_on(settled(device).name):
        return {m.text: _estimate(m, original, aligned, stream, method, make) for m in measures}


@dataclass(frozen=True)
class OutsideFile:
    """A file made elsewhere, by name and by a digest of its content, with a row a measure."""

    name: str
    digest: str = field(repr=False)
    scores: tuple[ScoreRow, ...]

    @property
    def id(self) -> str:
        """Twelve digits that name this content under this name in every study."""
        return hashlib.sha256(f"file/{self.name}/{self.digest}".encode()).hexdigest()[:12]


def score_file(
    original: Microdata, masked: Readable, measures: Sequence[Measure], *, by: str | None = None, paired: bool = True,
    seed: int = 0, name: str = "file", device: str = "cpu",
) -> OutsideFile:  # fmt: skip
    """As `score`, but one row a measure, with status and reason where there is no value."""
    original = without_id(original, by)
    aligned = align(original, masked, by=by, paired=paired)
    stream = Stream.of_seed(seed, "score")
    with told_if_lost(), running_on(settled(device).name):
        return OutsideFile(name, aligned.digest, tuple(score_row(m, original, aligned, stream) for m in measures))
