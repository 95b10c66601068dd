"""Making and scoring: one candidate of a sweep, one masked file, or a file made elsewhere."""

from __future__ import annotations

import json
import math
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from sdcmap.errors import Infeasible, SchemaError, Undefined
from sdcmap.io import read
from sdcmap.measure import Estimate, Measure
from sdcmap.method import Method
from sdcmap.microdata import Array, Column, Microdata
from sdcmap.plan import Candidate
from sdcmap.randomness import Stream


@dataclass(frozen=True)
class Job:
    """One candidate to make and the measures still missing; it carries the candidate's own key, never the seed."""

    candidate: Candidate
    key: bytes = field(repr=False)
    measures: tuple[Measure, ...]


class ScoreRow(NamedTuple):
    """One row of the score table."""

    measure: str
    value: float | None
    se: float | None
    parts: str
    status: str  # ok, infinite, undefined, failed
    reason: str


class CandidateRow(NamedTuple):
    """One row of the candidate table with its scores."""

    id: str
    method: str
    replicate: int
    status: str  # ok, infeasible, failed
    reason: str
    seconds: float
    scores: tuple[ScoreRow, ...] = ()


def run_job(data: Microdata, job: Job) -> CandidateRow:
    """Make one candidate and score it. It never raises: our own errors are recorded with their sentence, any other
    with its type and place only, since its text may hold a data value."""
    started = time.perf_counter()
    stream = Stream(job.key)
    candidate = job.candidate
    status, reason = "ok", ""
    scores: tuple[ScoreRow, ...] = ()
    try:
        masked = candidate.method.apply(data, stream)
        scores = tuple(score_row(m, data, masked, stream, candidate.method) for m in job.measures)
    except (Infeasible, SchemaError) as error:
        status, reason = "infeasible", str(error)
    except Exception as error:
        status, reason = "failed", _type_and_place(error)
    seconds = time.perf_counter() - started
    return CandidateRow(candidate.id, candidate.method.text, candidate.replicate, status, reason, seconds, scores)


def score_row(
    measure: Measure, original: Microdata, masked: Microdata, stream: Stream, method: Method | None = None
) -> ScoreRow:
    """One measure of one masked file, made by `method` where that is known; an undefined value has its reason."""
    try:
        informed = measure if method is None else measure.knowing(method)
        estimate = informed.apply(original, masked, _rng_of(measure, stream))
    except (Undefined, SchemaError) as error:
        return ScoreRow(measure.text, None, None, "{}", "undefined", str(error))
    except Exception as error:
        return ScoreRow(measure.text, None, None, "{}", "failed", _type_and_place(error))
    return row_of(measure, estimate)


def row_of(measure: Measure, estimate: Estimate) -> ScoreRow:
    """An estimate as a row of the score table; infinity is a status."""
    parts = _json(estimate.parts)
    if math.isfinite(estimate.value):
        se = None if estimate.se is None else float(estimate.se)
        return ScoreRow(measure.text, float(estimate.value) + 0.0, se, parts, "ok", "")  # 0 for -0
    if math.isinf(estimate.value):
        return ScoreRow(measure.text, None, None, parts, "infinite", "")
    return ScoreRow(measure.text, None, None, parts, "undefined", "the value is not a number.")


def _json(parts: Mapping[str, float]) -> str:
    """Parts as JSON, the keys sorted; `repr` of a finite float is JSON's own, and this is a hot path."""
    if len(parts) == 1:
        ((name, value),) = parts.items()
        return f"{{{_quoted(name)}: {float(value)!r}}}"
    return "{" + ", ".join([f"{_quoted(name)}: {float(parts[name])!r}" for name in sorted(parts)]) + "}"


_quoted = cache(json.dumps)


def _rng_of(measure: Measure, stream: Stream) -> Generator:
    """The generator of a measure; only sampled measures have a stream of their own, the others draw nothing."""
    return stream.child(f"measure {measure.digest}").rng() if measure.sampled else UNUSED


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
    original: Any, masked: Any, measures: Measure | Sequence[Measure], *, by: str | None = None, seed: int = 0
) -> dict[str, Estimate]:
    """The measures of a masked file from any tool, named by their text.

    Parameters
    ----------
    original : Microdata, with keys, numeric variables and weight stated; or a path or frame.
    masked : Microdata, path or frame with the same columns; rows in the same order, or matched by a column.
    by : name of an id column in both files that says which record is which.
    seed : for measures that draw random numbers.

    A measure that has no value raises Undefined with the reason.
    """
    original = original if isinstance(original, Microdata) else read(original)
    aligned = align(original, masked, by=by)
    measures = [measures] if isinstance(measures, Measure) else list(measures)
    stream = Stream.of_seed(seed, "score")
    return {m.text: m.apply(original, aligned, _rng_of(m, stream)) for m in measures}


def score_file(
    original: Microdata, masked: Any, measures: Sequence[Measure], *, by: str | None = None, seed: int = 0
) -> list[ScoreRow]:
    """As `score`, but one row a measure, with status and reason where there is no value."""
    aligned = align(original, masked, by=by)
    return [score_row(measure, original, aligned, Stream.of_seed(seed, "score")) for measure in measures]


def align(original: Microdata, masked: Any, *, by: str | None = None) -> Microdata:
    """A masked file as changes of the original: columns matched by name, rows by order or by the id column `by`."""
    if isinstance(masked, Microdata) and (masked.base is original or masked.origin is not None):
        return masked
    kinds = {v.name: v.kind for v in original.schema.variables}
    if not isinstance(masked, Microdata):
        raw = read(masked)
        masked = read(raw, kinds={name: kind for name, kind in kinds.items() if name in raw.names})
    if by is not None:
        masked = masked.take(_matching_rows(original[by], masked[by], by))
    if len(masked) != len(original):
        raise SchemaError(
            f"the masked file has {len(masked)} rows and the original {len(original)}: "
            "give files of the same rows, or an id column that matches them."
        )
    columns = {name: masked.column(name) for name in original.names if name in masked.names and name != by}
    if not columns:
        raise SchemaError("the two files have no column in common.")
    return _as_changes(original, columns)


def _as_changes(original: Microdata, columns: dict[str, Column]) -> Microdata:
    changed = original.change(None, {})
    for name, column in columns.items():
        before = original.column(name)
        if before.levels is None or column.levels is None:
            differs = ~np.isclose(before.values, column.values, rtol=0, atol=0, equal_nan=True)
            if differs.any():
                changed = changed.change(None, {name: column.values})
        elif before.levels.equals(column.levels):
            rows = np.flatnonzero(before.values != column.values)
            changed = changed.change(rows, {name: column.values[rows]}) if len(rows) else changed
        else:
            changed = changed.change(None, {name: column.values}, {name: column.levels})
    return changed


def _matching_rows(ours: Array, theirs: Array, by: str) -> Array:
    place = {value: row for row, value in enumerate(theirs.tolist())}
    if len(place) < len(theirs) or len(set(ours.tolist())) < len(ours):
        raise SchemaError(f"the id column {by!r} has a value twice, so it cannot match records.")
    rows = [place.get(value, -1) for value in ours.tolist()]
    lost = sum(row < 0 for row in rows)
    if lost or len(theirs) != len(ours):
        raise SchemaError(f"the id column {by!r} does not match: {lost} records of the original are not in the file.")
    return np.array(rows)
