"""The laws of measures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sdcmap.core import Array, Estimate, Measure, Method, Microdata
from sdcmap.data.masked_batch import MaskedBatch
from sdcmap.errors import ContractBroken, Undefined
from sdcmap.testing import laws


# ---- measures -------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Files:
    original: Microdata
    masked: Microdata


def check_measure(
    measure: Measure, data: Microdata, methods: Sequence[Method] = (), *, may_refuse: bool = False
) -> bool:
    """Raise LawBroken with every law that `measure` violates on `data`, masked by each of `methods`.

    The laws: it survives pickle and TOML; the identity has loss 0; values are within the bounds; the same rng gives the
    same value, and so does scoring several files together; permuting the rows of both files changes nothing (a sampled
    measure: within 5 standard errors), and neither does permuting the masked rows alone if it is not `paired`; it does
    not change the files; pooling one estimate changes nothing; the record-level form has one number per record, which
    moves with it; one row, constant columns and missing values work, or raise our own errors. A measure without a value
    for any of the files violates a law too, because nothing was tested; with `may_refuse`, for random files, it does not.
    Returns whether it had a value.
    """
    broken = list(laws.value_laws(measure, Measure))
    data = laws.copy_writable(data)
    same = data.change(None, {})
    refusal = ""
    try:
        identity = measure.apply(data, same, laws.rng_of(0))
        if measure.axis == "utility" and measure.direction == "lower" and not _close(identity.value, 0.0, 0.0):
            broken.append("The identity has a loss that is not 0.")
    except laws.OWN_ERRORS as reason:
        refusal = str(reason)
    except ContractBroken as problem:
        raise laws.LawBroken(measure.text, [*broken, str(problem)]) from problem
    except Exception as error:
        raise laws.LawBroken(measure.text, [*broken, f"It raises {type(error).__name__} on good data."]) from error
    tried = False
    for masked in [same, *_mask_by_each(methods, data)]:
        try:
            broken += _score_laws(measure, _Files(data, masked))
            tried = True
        except laws.OWN_ERRORS:
            continue
    if not tried and not may_refuse:
        nothing = f"It has no value for any of the files, so nothing was tested: {refusal}"
        raise laws.LawBroken(measure.text, [*broken, nothing])

    def score_edge(edge: Microdata) -> Iterator[str]:
        return _bounds_law(measure, measure.score(edge, edge.change(None, {}), laws.rng_of(0)))

    broken += laws.edge_laws(data, score_edge)
    if broken:
        raise laws.LawBroken(measure.text, list(dict.fromkeys(broken)))
    return tried


def _mask_by_each(methods: Sequence[Method], data: Microdata) -> Iterator[Microdata]:
    """Yield the data masked by each method that can be applied."""
    for method in methods:
        try:
            yield laws.make_draw(method, data, 0)
        except laws.OWN_ERRORS:
            continue


def _score_laws(measure: Measure, files: _Files) -> Iterator[str]:
    before = laws.fingerprint(files.original), laws.fingerprint(files.masked)
    estimate = measure.score(files.original, files.masked, laws.rng_of(0))
    yield from _bounds_law(measure, estimate)
    if not _close(measure.score(files.original, files.masked, laws.rng_of(0)).value, estimate.value, 0):
        yield "The same rng gives another value."
    # another order of the records must not change the value, except by the sampling of targets
    order = np.random.default_rng(5).permutation(len(files.original))
    moved = _Files(laws.permute_rows(files.original, order), laws.permute_rows(files.masked, order))
    shifted = measure.score(moved.original, moved.masked, laws.rng_of(1 if measure.sampled else 0))
    slack = 5 * math.hypot(estimate.se or 0, shifted.se or 0) if measure.sampled else 0.0
    if not _close(shifted.value, estimate.value, slack):
        yield "A permutation of the rows of both files changes the value."
    yield from _batch_law(measure, files, estimate)
    if not measure.paired:
        # a measure with a control group removes rows of the file, which it finds by their origin
        has_control = type(measure).refits is not Measure.refits
        alone = files.masked.take(order) if has_control else moved.masked
        shuffled = measure.score(files.original, alone, laws.rng_of(0))
        if not _close(shuffled.value, estimate.value, slack):
            yield "It is not `paired`, yet a permutation of the masked rows alone changes the value."
    if measure.pool([estimate]).value != estimate.value:
        yield "Pooling one estimate changes it."
    yield from _bounds_law(measure, measure.pool([estimate, estimate, estimate]))
    yield from _records_laws(measure, files, moved, order)
    if (laws.fingerprint(files.original), laws.fingerprint(files.masked)) != before:
        yield "It changes the files it measures."


def _batch_law(measure: Measure, files: _Files, estimate: Estimate) -> Iterator[str]:
    if not measure.can_score_batch:
        return
    together = measure.score_batch(files.original, MaskedBatch.of_files(files.original, [files.masked, files.masked]))
    if together is not None and (
        [*together.values] != [estimate.value] * 2 or together.to_details() != [estimate.to_details()] * 2
    ):
        yield "Several files scored together (`score_batch`) have other values than one by one."


def _records_laws(measure: Measure, files: _Files, moved: _Files, order: Array) -> Iterator[str]:
    try:
        each = measure.records(files.original, files.masked)
    except Undefined:
        return
    if each.shape != (len(files.masked),):
        yield "Its record-level form has not one number a record."
    elif not np.allclose(measure.records(moved.original, moved.masked), each[order], equal_nan=True):
        yield "Its record-level form does not move with the records."


def _bounds_law(measure: Measure, estimate: Estimate) -> Iterator[str]:
    low, high = measure.bounds
    outside = (low is not None and estimate.value < low - 1e-12) or (high is not None and estimate.value > high + 1e-12)
    if outside or math.isnan(estimate.value):
        yield "Its value lies outside its bounds."
    if estimate.se is not None and not estimate.se >= 0:
        yield "Its standard error is not a number of at least 0."


def _close(first: float, second: float, slack: float) -> bool:
    return first == second or math.isclose(first, second, rel_tol=1e-9, abs_tol=max(slack, 1e-12))
