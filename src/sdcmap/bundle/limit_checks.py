"""Limits of a release, and the scores of the written file compared with them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sdcmap.bundle.checks import Check
from sdcmap.choose import Threshold
from sdcmap.core import Measure, Method, Microdata, SchemaError, Stream, Undefined
from sdcmap.core.estimate import Bound, Estimate
from sdcmap.core.formatting import list_names
from sdcmap.core.limit import Absent, EfficiencyLimit, Limit, Verdict, axis_scales, format_limit, strictest
from sdcmap.core.rule import Rule
from sdcmap.kernels.machine import cores
from sdcmap.study.jobs import UNUSED_RNG, ScoreRow, absent_row, estimate_row, make_refitter, score_row
from sdcmap.study.plan import Plan

NO_EXPECTATION_OF_NESTED_FILES = """it is an expectation over random draws of both files, and one pair of files does \
not tell it. Limit a risk that is measured on one file, such as WorstLinkage or IntervalDisclosure"""


def limits_of(
    plan: Plan, data: Microdata, rules: Sequence[Rule | None], max_risk: float | None = None
) -> tuple[Limit, ...]:
    """Return the strictest limit of each measure that the plan, its rule, the choice's rule or `max_risk` limits.

    A threshold on the risk axis limits every measure on the axis. Where the axis shows shares of limits, the threshold is a
    share of each limit. An efficiency is relative to the unmasked data.
    """
    by_name = {measure.text: measure for measure in plan.measures}
    stated = [("the plan" if plan.profile is None else f"the plan for {plan.profile.name}", plan.limits)]
    stated += [("the rule", rule.limits) for rule in rules if rule is not None]
    # A threshold of 0.8 on an axis of shares means 0.8 times the limit of each measure.
    scales = axis_scales(plan.risk, plan.limits) or (1.0,) * len(plan.risk)
    thresholds = [("the rule", rule.risk) for rule in rules if isinstance(rule, Threshold)]
    thresholds += [] if max_risk is None else [("max_risk", float(max_risk))]
    for source, value in thresholds:
        # The share of a negative limit is limit/value, not value/limit.
        ends = {n: scale * value if scale > 0 else scale / value for n, scale in zip(plan.risk, scales, strict=True)}
        stated.append((source, ends))
    return strictest(
        Limit(by_name[n], _limit_number(value, by_name[n], data), source)
        for source, limits in stated
        for n, value in limits.items()
        if n in by_name
    )


def _limit_number(limit: float, measure: Measure, data: Microdata) -> float:
    """Return a limit as a number; one that is stated as an efficiency needs the precision of the unmasked data."""
    if not isinstance(limit, EfficiencyLimit):
        return limit
    try:
        return limit.relative_to(measure.apply(data, data, UNUSED_RNG).value)
    except Undefined:  # the measure has no value for this file, and the limit is met by none
        return limit


def score_file(
    measures: Sequence[Measure], original: Microdata, released: Microdata, stream: Stream,
    method: Method | None = None, *, alone: bool = True,
) -> list[ScoreRow]:  # fmt: skip
    """Score each measure of a written file, with samples and refits of its own, under the method that its note states.

    alone : the file was made by `method`, so refits are possible; several releases together cannot be made again.
    """
    make = make_refitter(original, method, stream, cores()) if method is not None and alone else None
    rows = [score_row(measure.release_variant(), original, released, stream, method, make) for measure in measures]
    return [row._replace(measure_id=m.id, measure=m.text) for m, row in zip(measures, rows, strict=True)]


def score_expectations(
    measures: Sequence[Measure], original: Microdata, draws: Iterable[Microdata], *, is_random: bool
) -> list[ScoreRow]:
    """Score measures that are functions of an expectation, pooled over draws of the released method.

    The error of a single file says little about an expectation. Comparing it with the limit would also reveal to readers
    where the true value is not.
    """
    estimates: list[list[Estimate]] = [[] for _ in measures]
    for masked in draws:
        for of_measure, measure in zip(estimates, measures, strict=True):
            try:
                of_measure.append(measure.apply(original, masked, UNUSED_RNG))
            except (Undefined, SchemaError) as reason:
                return [absent_row(m, "undefined", str(reason)) for m in measures]
    pooled = [m.pool_draws(own, is_random=is_random) for m, own in zip(measures, estimates, strict=True)]
    return [estimate_row(m, estimate) for m, estimate in zip(measures, pooled, strict=True)]


def check_limits_stated(plan: Plan, limits: Sequence[Limit]) -> Check:
    """Check that somebody stated how much risk is acceptable."""
    if not plan.risk:
        return Check("limit", False, "The plan has no risk measure, so no risk was measured.")
    limited = {limit.measure for limit in limits}
    if not any(measure.axis == "risk" for measure in limited):
        advice = "Give the plan limits, or a Threshold or GlobalCriterion rule, or state max_risk."
        return Check("limit", False, f"No risk limit is stated. {advice}")
    free = [m.text for m in plan.measures if m.axis == "risk" and m not in limited]
    return Check("limit", True, f"A risk limit is stated{f', but none for {list_names(free)}' if free else ''}.")


def check_limits(
    limits: Sequence[Limit], scores: Sequence[tuple[Measure, ScoreRow]], level: float, *,
    what: str = "of the written file", name: str = "risk",
) -> Iterator[Check]:  # fmt: skip
    """Compare each score with its limit, and report the scores of measures without a limit.

    A limit that does not apply to this file counts as not tested. Where no limit could be tested, the check fails.

    what : what was measured, for the sentences. name : the name of the check.
    """
    by_measure = {limit.measure: limit for limit in limits}
    verdicts = []
    for measure, score in scores:
        if measure in by_measure:
            verdicts.append(by_measure[measure].judge(score.outcome, level))
        else:
            outcome = Limit(measure, math.inf).judge(score.outcome, level)
            yield Check("other risk", True, f"{describe_outcome(measure, outcome, what, level)} (no limit is stated).")
    yield from (limit_check(name, verdict, what, level) for verdict in verdicts if verdict.status != "not tested")
    if untested := [verdict.limit.measure for verdict in verdicts if verdict.status == "not tested"]:
        names = list_names(list(dict.fromkeys(type(measure).__name__ for measure in untested)))
        why = f"{names} {'was' if len(untested) == 1 else 'were'} not tested because the file is fully synthetic"
        is_decided = len(untested) < len(verdicts)
        end = "The other limits decide" if is_decided else "No limit was tested"
        yield Check(name, is_decided, f"{why}. {end}.", tested=False)


def limit_check(name: str, verdict: Verdict, what: str, level: float) -> Check:
    """Return the check that one verdict amounts to."""
    limit, passed = verdict.limit, verdict.status == "met"
    outcome = describe_outcome(limit.measure, verdict, what, level)
    if verdict.estimate is None:
        return Check(name, passed, f"{outcome}. The limit is {format_limit(limit.value)}.", verdict=verdict)
    compared = "within" if passed else "above" if limit.is_upper else "below"
    return Check(name, passed, f"{outcome}, {compared} the limit of {format_limit(limit.value)}.", verdict=verdict)


def check_parts(scores: Mapping[Measure, ScoreRow]) -> list[Check]:
    """Return what measures say of the written file beside the value that has a limit, each sentence once."""
    estimates = ((measure, row.outcome) for measure, row in scores.items())
    said = (measure.describe_parts(own) for measure, own in estimates if isinstance(own, Estimate))
    return [Check("information", True, sentence) for sentence in dict.fromkeys(said) if sentence]


def check_combined_file(
    name: str, limits: Sequence[Limit], original: Microdata, released: Microdata, stream: Stream, method: Method,
    what: str, level: float, *, is_random: bool, draws: Iterable[Microdata] | None = None,
) -> list[Check]:  # fmt: skip
    """Compare a file that several methods or releases made with every risk limit; a limit without a value fails.

    is_random : whether any of the methods is. One such file says little about an expectation over draws.
    draws : further draws of such a file, over which expectations are pooled; None: their limits have no value.
    """
    risks = [limit for limit in limits if limit.measure.axis == "risk"]
    single, pooled = (
        [limit.measure for limit in risks if (limit.measure.expectation and is_random) == is_pooled]
        for is_pooled in (False, True)
    )
    rows = dict(zip(single, score_file(single, original, released, stream, method, alone=False), strict=True))
    if pooled and draws is not None:
        rows |= zip(pooled, score_expectations(pooled, original, draws, is_random=True), strict=True)
    unknown = Absent(applies=True, reason=NO_EXPECTATION_OF_NESTED_FILES)
    outcomes = [rows[limit.measure].outcome if limit.measure in rows else unknown for limit in risks]
    verdicts = [limit.judge(outcome, level) for limit, outcome in zip(risks, outcomes, strict=True)]
    return [limit_check(name, verdict, what, level) for verdict in verdicts]


def describe_outcome(measure: Measure, verdict: Verdict, what: str, level: float) -> str:
    """Return a measure's value in words, with its upper confidence limit where it is an estimate."""
    subject, estimate = f"{measure.title} ({type(measure).__name__}) {what}".rstrip(), verdict.estimate
    if estimate is None:
        return f"{subject}: no value could be computed ({verdict.reason.rstrip('.')})"
    if math.isinf(estimate.value):
        return f"{subject}: infinite"
    notes = []
    if estimate.share is not None:
        sample = f"estimated from a sample of {estimate.parts.get('targets', estimate.share.trials):,.0f} records"
        notes.append(f"upper confidence limit {estimate.upper(level):.4g}, {sample}")
    elif estimate.se == math.inf:
        notes.append("from one random draw, which does not tell its error: state more replicates in the plan")
    elif estimate.se and verdict.limit.is_upper:
        notes.append(f"upper confidence limit {round_up(estimate.upper(level)):g}")
    elif estimate.se:
        notes.append(f"lower confidence limit {-round_up(-estimate.lower(level)):g}")
    notes += [describe_bound(bound, level) for bound in decisive_bounds(estimate)]
    notes += [f"not tested: {'; '.join(map(str, estimate.skipped))}"] if estimate.skipped else []
    return f"{subject}: {estimate.value:.4g}" + "".join(f" ({note})" for note in notes)


def decisive_bounds(estimate: Estimate) -> list[Bound]:
    """Return the bounds above the value: attacks that could not be run and might re-identify more."""
    return [bound for bound in estimate.bounds if bound.estimate.value > estimate.value]


def describe_bound(bound: Bound, level: float) -> str:
    """Return a bound in words: the largest possible value, and the attack that it bounds."""
    return f"at most {bound.estimate.upper(level):.4g}: {bound.attack}"


def round_up(value: float, digits: int = 2) -> float:
    """Return an upper confidence limit with so many significant digits, never below itself.

    >>> round_up(0.01231), round_up(-0.0119), round_up(0.0)
    (0.013, -0.011, 0.0)
    """
    if value == 0 or not math.isfinite(value):
        return value
    step = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    # Without the small tolerance, floating-point error would round an exact multiple of the step up once more.
    return float(f"{math.ceil(value / step - 1e-9) * step:.12g}")
