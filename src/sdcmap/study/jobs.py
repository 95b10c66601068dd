"""Make and score one candidate of a sweep, one masked file, or a file made elsewhere."""

from __future__ import annotations

import hashlib
import math
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import repeat
from pathlib import Path
from typing import Literal, NamedTuple

from sdcmap.core import Infeasible, Method, Microdata, SchemaError, Stream, Undefined
from sdcmap.core.estimate import NO_DETAILS, Estimate, EstimateColumns
from sdcmap.core.limit import Absent
from sdcmap.core.measure import IsEnough, Measure, StoppedEarly
from sdcmap.core.refits import Refit, RefitRequest, refit_without
from sdcmap.data.readable import Readable
from sdcmap.errors import ContractBroken
from sdcmap.files.alignment import align, without_id
from sdcmap.files.reader import read
from sdcmap.kernels.device import GpuUnavailable, use_device
from sdcmap.study.device_choice import explain_gpu_loss, resolve_device
from sdcmap.study.early_stop import EarlyStop
from sdcmap.study.plan import Candidate
from sdcmap.study.screening_sample import screening_sample
from sdcmap.study.spared_measures import Sparing

Kind = Literal["candidate", "identity", "file", "fresh", "screening", "bound"]
# candidate: a release; identity: the unmasked file; file: made elsewhere; fresh: a redraw; screening: scores of a sample
# of the rows; bound: scores up to the point where the candidate was dominated


@dataclass(frozen=True)
class Job:
    """One candidate to make and the measures still missing. It contains the candidate's own key, never the seed.

    kind : of the resulting row; None: the candidate's own. part : the key of the screening sample to use; empty: all rows.
    early_stop : when the remaining measures can be skipped. sparing : which measures need not be computed.
    """

    candidate: Candidate
    key: bytes = field(repr=False)
    measures: tuple[Measure, ...]
    kind: Kind | None = None
    part: bytes = field(default=b"", repr=False)
    early_stop: EarlyStop | None = None
    sparing: Sparing | None = None
    device: str = "cpu"


class ScoreRow(NamedTuple):
    """One row of the score table. `measure_id` identifies the measure exactly, `measure` is its text."""

    measure_id: str
    measure: str
    value: float | None
    se: float | None
    details: str  # versioned JSON: parts, bounds, skipped attacks and the kind of interval (`Estimate.to_details`)
    # ok, infinite, undefined, unpaired (it compares records; the file is synthetic), spared (`Sparing`), bound, failed
    status: str
    reason: str

    @property
    def outcome(self) -> Estimate | Absent:
        """The estimate of the row, or why there is none."""
        if self.status == "infinite":
            return Estimate.from_details(math.inf, None, self.details)
        if self.value is None:
            return Absent(applies=self.status != "unpaired", reason=self.reason)
        return Estimate.from_details(self.value, self.se, self.details)


_make_score_row = partial(tuple.__new__, ScoreRow)  # a third of the time of a call of the class


class CandidateRow(NamedTuple):
    """One row of the candidate table with its scores."""

    id: str
    kind: Kind
    method: str
    replicate: int
    status: str  # ok, infeasible, failed
    reason: str
    seconds: float
    stream_id: str  # identifies the random stream of the candidate
    scores: tuple[ScoreRow, ...] = ()


def run_job(data: Microdata, job: Job) -> CandidateRow:
    """Make one candidate and score it.

    It raises only where a required GPU is lost or a class breaks its contract. Errors of sdcmap are stored with their
    sentence, all others with type and line only, because their text may contain a data value.
    """
    started = time.perf_counter()
    status, reason, scores = "ok", "", list[ScoreRow]()
    try:
        with use_device(job.device):
            scores = _score_candidate(screening_sample(data, job.part) if job.part else data, job)
    except (Infeasible, SchemaError) as error:
        status, reason = "infeasible", str(error)
    except (GpuUnavailable, ContractBroken):
        raise
    except Exception as error:
        status, reason = "failed", _describe_error(error)
    return candidate_row(job, status, reason, time.perf_counter() - started, scores)


def _score_candidate(data: Microdata, job: Job) -> list[ScoreRow]:
    """Make the candidate and score it, until everything is measured or it is dominated."""
    stream, method = Stream(job.key), job.candidate.method
    masked, refit = method.apply(data, stream), make_refitter(data, method, stream)
    scores: list[ScoreRow] = []
    for measure in job.measures:
        known = {row.measure: row.value for row in scores}
        applies = masked.paired or not measure.paired
        if job.sparing is not None and applies and (reason := job.sparing.reason(measure, known)):
            scores.append(absent_row(measure, "spared", reason))
            continue
        # a measure that works in parts, such as several attacks, may stop as soon as the candidate is dominated
        enough = None if job.early_stop is None else partial(_is_dominated, job.early_stop, scores, measure.text)
        scores.append(score_row(measure, data, masked, stream, method, refit, enough))
        if enough is not None and enough(scores[-1].value):
            break
    return scores


def _is_dominated(early_stop: EarlyStop, scores: Sequence[ScoreRow], measure: str, value: float | None) -> bool:
    """Return whether a candidate with these scores is dominated if the measure has this value or a worse one."""
    return early_stop.is_dominated({**{row.measure: row.value for row in scores}, measure: value})


def candidate_row(job: Job, status: str, reason: str, seconds: float, scores: Sequence[ScoreRow] = ()) -> CandidateRow:
    """Return the row of a job. A job that stopped before its last measure gives a bound."""
    may_be_early = job.early_stop is not None
    early = may_be_early and (len(scores) < len(job.measures) or any(score.status == "bound" for score in scores))
    made, row = job.candidate, (status, reason, seconds, Stream(job.key).stream_id, tuple(scores))
    kind = "bound" if status == "ok" and early else job.kind or made.kind
    return CandidateRow(row_id(made, kind), kind, made.method.text, made.replicate, *row)


def row_id(candidate: Candidate, kind: Kind) -> str:
    """Return the id of a candidate's row of this kind.

    Screenings and bounds have ids of their own, so that none of them counts as a release.
    """
    if kind not in ("screening", "bound"):
        return candidate.id
    return hashlib.sha256(f"{kind}/{candidate.id}".encode()).hexdigest()[:12]


Refitter = Callable[[RefitRequest], tuple[Refit, ...]]


def make_refitter(data: Microdata, method: Method, stream: Stream, threads: int = 1) -> Refitter:
    """Return a function that refits the method without some of the people. Measures of one release share its results."""
    return cache(partial(refit_without, data, method, stream, threads=threads))


def score_row(
    measure: Measure, original: Microdata, masked: Microdata, stream: Stream, method: Method | None = None,
    refit: Refitter | None = None, enough: IsEnough | None = None,
) -> ScoreRow:  # fmt: skip
    """Return one measure of one masked file as a row. An undefined value has a reason; a stopped measure gives a bound.

    method : the method that made the file, where it is known. refit : makes the refits that the measure requests. enough :
    whether a partial value is enough.
    """
    try:
        return estimate_row(measure, _estimate(measure, original, masked, stream, method, refit, enough))
    except StoppedEarly as seen:
        reason = "other candidates have less risk and less loss."
        return ScoreRow(measure.id, measure.text, seen.value, None, NO_DETAILS, "bound", reason)
    except (Undefined, SchemaError) as error:
        # "unpaired" means that the measure does not apply, so that its limit is not tested instead of exceeded
        unpaired = measure.paired and not masked.paired
        return absent_row(measure, "unpaired" if unpaired else "undefined", str(error))
    except (GpuUnavailable, ContractBroken):
        raise
    except Exception as error:
        return absent_row(measure, "failed", _describe_error(error))


def _estimate(
    measure: Measure, original: Microdata, masked: Microdata, stream: Stream, method: Method | None, refit: Refitter | None,
    enough: IsEnough | None = None,
) -> Estimate:  # fmt: skip
    informed = measure if method is None else measure.for_informed_attacker(method)
    request = None if refit is None else informed.refits(masked)
    refits = () if refit is None or request is None else refit(request)
    # Draws depend on the name and content of a control file, not on the folder it is in.
    path = getattr(measure, "control_file", "")
    key = replace(measure, control_file=Path(path).name) if path else measure  # type: ignore[call-arg]
    # Only sampled measures draw random numbers; deriving a stream for the others would cost time.
    rng = stream.child(f"measure {key.digest}").rng() if measure.sampled else UNUSED_RNG
    return informed.apply(original, masked, rng, refits, enough)


def estimate_row(measure: Measure, estimate: Estimate, details: str = "") -> ScoreRow:
    """Return an estimate as a row of the score table, with its details as JSON. Infinity is stored as a status."""
    details = details or estimate.to_details()
    if math.isfinite(estimate.value):
        se = None if estimate.se is None else float(estimate.se)
        value = float(estimate.value) + 0.0  # turns -0.0 into 0.0
        return ScoreRow(measure.id, measure.text, value, se, details, "ok", "")
    if math.isinf(estimate.value):
        return absent_row(measure, "infinite", "", details)
    return absent_row(measure, "undefined", "the value is not a number.", details)


def estimate_rows(measure: Measure, estimates: EstimateColumns) -> list[ScoreRow]:
    """Return `estimate_row` of each of several files."""
    details = estimates.to_details()
    if not all(map(math.isfinite, estimates.values)):
        pairs = zip(estimates.values, details, strict=True)
        return [estimate_row(measure, Estimate(value=value), more) for value, more in pairs]
    values = [value + 0.0 for value in estimates.values]  # turns -0.0 into 0.0
    fields = repeat(measure.id), repeat(measure.text), values, repeat(None), details, repeat("ok"), repeat("")
    return [*map(_make_score_row, zip(*fields))]  # noqa: B905 - `repeat` has no end


def absent_row(measure: Measure, status: str, reason: str, details: str = NO_DETAILS) -> ScoreRow:
    """Return the row of a measure that has no value here."""
    return ScoreRow(measure.id, measure.text, None, None, details, status, reason)


UNUSED_RNG = Stream(bytes(32)).rng()


def _describe_error(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(frame.filename).name}, line {frame.lineno}"


def mask(data: Microdata, method: Method, *, seed: int) -> Microdata:
    """Return one masked file for study: replicate 0 of `method`, without a plan. It may not be released.

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
    """Measure a masked file from any tool. The results are keyed by the text of each measure.

    Parameters
    ----------
    original : Microdata, with keys, numeric variables and weight stated; or a path or frame.
    masked : Microdata, path or frame with the same columns; rows in the same order, or matched by a column.
    by : name of an id column in both files that matches the records; it is not treated as a released column.
    paired : False where rows do not correspond to original records, as in a synthetic file of any length.
    method : the method that made the file, where it is known: for attackers who have read the method note, and for
        measures that need refits as a control group.
    seed : for measures that draw random numbers.
    device : "cpu"; "gpu" for attacks with GPU kernels, an error without a GPU; "auto": a GPU where one is usable.

    A measure without a value raises Undefined with the reason. So do measures that compare records, for unpaired files.
    Rows that agree with the original in no column cause the warning `OtherOrder`.
    """
    original = without_id(original if isinstance(original, Microdata) else read(original), by)
    aligned = align(original, masked, by=by, paired=paired)
    measures = [measures] if isinstance(measures, Measure) else list(measures)
    stream = Stream.of_seed(seed, "score")
    refit = None if method is None else make_refitter(original, method, stream)
    with explain_gpu_loss(), use_device(resolve_device(device).name):
        return {m.text: _estimate(m, original, aligned, stream, method, refit) for m in measures}


@dataclass(frozen=True)
class OutsideFile:
    """A file made elsewhere: its name, a digest of its content, and a row for each measure."""

    name: str
    digest: str = field(repr=False)
    scores: tuple[ScoreRow, ...]

    @property
    def id(self) -> str:
        """Twelve digits that identify this content under this name in every study."""
        return hashlib.sha256(f"file/{self.name}/{self.digest}".encode()).hexdigest()[:12]


def score_file(
    original: Microdata, masked: Readable, measures: Sequence[Measure], *, by: str | None = None, paired: bool = True,
    seed: int = 0, name: str = "file", device: str = "cpu",
) -> OutsideFile:  # fmt: skip
    """Measure a file as `score` does, but return one row per measure, with status and reason where there is no value."""
    original = without_id(original, by)
    aligned = align(original, masked, by=by, paired=paired)
    stream = Stream.of_seed(seed, "score")
    with explain_gpu_loss(), use_device(resolve_device(device).name):
        return OutsideFile(name, aligned.digest, tuple(score_row(m, original, aligned, stream) for m in measures))
