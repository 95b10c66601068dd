"""Random subsamples of the original, scored as releases are: what the scores of a release cost, in records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import polars as pl

from sdcmap.core.measure import Estimate, Measure
from sdcmap.core.method import Method
from sdcmap.core.rule import Choice
from sdcmap.core.streams import Stream
from sdcmap.data.microdata import Microdata
from sdcmap.errors import PlanError
from sdcmap.methods import Identity, Sample
from sdcmap.study.cost import cost_guess
from sdcmap.study.parts import part_of
from sdcmap.study.plan import Plan
from sdcmap.study.scores import Scores
from sdcmap.study.subsample_curve import Reading, SubsampleCurve
from sdcmap.study.sweeping import sweep

KEPT = (0.99, 0.9, 0.75, 0.5, 0.25, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)  # shares of the records in a subsample
FEWEST = 20  # records of the smallest one
DRAWS = 20


def subsamples(
    data: Microdata, measures: Iterable[Measure], *, draws: int = DRAWS, seed: int = 0, workers: int | None = 1
) -> Scores:
    """Scores of random subsamples of the original, from 99 % of its records down to 0.03 %, and at least 20 of them.

    Households are drawn whole where the file has them. For `as_subsample`, and for `RUMap.draw(subsamples=...)`, which
    draws them as a curve: what lies beyond it costs more, at the same risk, than throwing records away.
    """
    return _swept(data, _samples(data), measures, draws, seed, workers)


def price_of_subsamples(data: Microdata, measures: Iterable[Measure], draws: int = DRAWS) -> tuple[int, float]:
    """How many subsamples are scored, and about how many seconds one core needs for that: each costs its share of what
    the whole file does."""
    samples = _samples(data)
    kept = sum(sample.rate or 0.0 for sample in samples)
    return draws * len(samples), draws * kept * cost_guess(data, Plan(Identity(), list(measures), 1, seed=0))


def as_subsample(
    data: Microdata,
    scores: Scores,
    method: Choice | Method | str,
    measures: Iterable[Measure] | None = None,
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> tuple[Reading, ...]:
    """Every utility score of one method, read as "costs as much as throwing away 38 % of the records".

    Parameters
    ----------
    data : the original.
    scores : of a sweep, with the method among its rows.
    method : the method, its text, or a choice.
    measures : utility measures that were scored; by default all.
    draws : random subsamples of each share, at least 2.
    seed : of the subsamples.

    A reading is withheld, with the reason, where leaving records out does not move a measure one way, as of measures
    that compare each record with its own. Bias stays when a file grows, and costs ever more of its records; what chance
    does costs the same share. So the method is done to a quarter of the people as well, and what the odds (records
    thrown away for each that is kept) have grown by since tells the share of bias. It is not known of a file made
    elsewhere, nor of a score beyond the shares that were tried.
    Price: about 4 times `draws` scores of the whole file a measure (`price_of_subsamples`), and `draws` releases of a
    quarter.
    """
    if draws < 2:
        raise PlanError("as_subsample needs at least 2 draws of each share.")
    text = method.method if isinstance(method, Choice) else str(method)
    asked = [m for m in scores.values.values() if m.axis == "utility"] if measures is None else list(measures)
    if any(measure.axis != "utility" for measure in asked):
        raise PlanError("as_subsample reads utility measures: a risk is not the price of anything.")
    stated = {measure.text: _estimates(scores, measure, text) for measure in asked}
    if not asked:
        return ()
    made = subsamples(data, asked, draws=draws, seed=seed)
    readings = [_reading(curve_of(made, m, len(data)), stated[m.text], seed) for m in asked]
    masking, moved = scores.methods.get(text), [m for m, r in zip(asked, readings, strict=True) if r.thrown]
    if masking is None or not moved:
        return tuple(readings)
    part = part_of(data, Stream.of_seed(seed, "as_subsample", "quarter").key)
    again = _swept(part, [*_samples(part), masking], moved, draws, seed, workers=1)
    bias = {
        m.text: _bias_share(
            curve_of(made, m, len(data)), stated[m.text], curve_of(again, m, len(part)), _estimates(again, m, text)
        )
        for m in moved
    }
    return tuple(replace(reading, bias=bias.get(reading.measure)) for reading in readings)


def curve_of(scores: Scores, measure: Measure, records: int) -> SubsampleCurve:
    """The curve of one measure, from the scores of subsamples; a share without a value for each draw is left out."""
    whole = _estimates(scores, measure, Identity().text)
    shares = sorted((thrown, _estimates(scores, measure, text)) for text, thrown in thrown_away(scores).items())
    most = max((len(draws) for _, draws in shares), default=0)
    told = [(thrown, tuple(draws)) for thrown, draws in shares if len(draws) == most > 1 and _finite(draws)]
    value = whole[0].value if whole else float("nan")
    return SubsampleCurve(measure, records, value, tuple(t for t, _ in told), tuple(draws for _, draws in told))


def thrown_away(scores: Scores) -> dict[str, float]:
    """Method text -> the share of the records that it leaves out, of the samples among the methods."""
    return {text: 1 - m.rate for text, m in scores.methods.items() if isinstance(m, Sample) and m.rate is not None}


def _samples(data: Microdata) -> list[Sample]:
    kept = [share for share in KEPT if share * len(data) >= FEWEST]
    return [Sample(share, whole_households=data.household is not None) for share in kept]


def _swept(
    data: Microdata, methods: Sequence[Method], measures: Iterable[Measure], draws: int, seed: int, workers: int | None
) -> Scores:
    own = int.from_bytes(Stream.of_seed(seed, "subsamples").key, "big")  # no stream of a release
    return sweep(data, Plan(methods, list(measures), draws, seed=own), workers=workers, progress=_silent)


def _finite(draws: Iterable[Estimate]) -> bool:
    return all(abs(draw.value) < float("inf") for draw in draws)


def _reading(curve: SubsampleCurve, scored: list[Estimate], seed: int) -> Reading:
    if not scored or not _finite(scored):
        return Reading(curve.measure.text, curve.records, withheld="this release has no value of it.")
    return curve.read(scored, Stream.of_seed(seed, "as_subsample", curve.measure.digest).rng())


def _bias_share(
    curve: SubsampleCurve, scored: list[Estimate], small: SubsampleCurve, again: list[Estimate]
) -> float | None:
    """What of the odds grows with the file: the odds of a bias b and a variance v/n, in units of the variance of one
    record, are n b^2 + v, those of a quarter of the file n b^2/4 + v."""
    if not (scored and again and _finite(scored) and _finite(again)):
        return None
    odds, fewer = curve.odds_of(scored), small.odds_of(again)
    if not odds or fewer is None:
        return None
    return min(1.0, max(0.0, (1 - fewer / odds) / (1 - small.records / curve.records)))


def _estimates(scores: Scores, measure: Measure, method: str) -> list[Estimate]:
    own = scores.column(measure.text).filter(pl.col("method") == method)["id"]
    return [scores.estimates(measure.text)[candidate] for candidate in own]


def _silent(done: int, total: int) -> None:
    """No bar: a report or a notebook tells when it is done."""
