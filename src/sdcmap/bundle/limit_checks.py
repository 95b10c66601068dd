"""Limits of a release, and the scores of the written file compared with them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from sdcmap.bundle.checks import Check, join_names
from sdcmap.choose import Threshold
from sdcmap.core import Measure, Method, Microdata, SchemaError, Stream, Undefined
from sdcmap.core.estimate import Bound, Estimate
from sdcmap.core.limit import Limit, Verdict, axis_scales, strictest
from sdcmap.core.rule import Rule
from sdcmap.study.jobs import UNUSED_RNG, ScoreRow, absent_row, estimate_row, make_refitter, score_row
from sdcmap.study.plan import Plan


def limits_of(plan: Plan, rules: Sequence[Rule | None], max_risk: float | None) -> tuple[Limit, ...]:
    """Return the strictest limit of each measure that the plan, its rule, the choice's rule or `max_risk` limits.

    A threshold on the risk axis limits every measure on it; where the axis is a share of limits, it is a share of each.
    """
    by_name = {measure.text: measure for measure in plan.measures}
    stated = [("the plan" if plan.profile is None else f"the plan for {plan.profile.name}", plan.limits)]
    stated += [("the rule", rule.limits) for rule in rules if rule is not None]
    scales = axis_scales(plan.risk, plan.limits) or (1.0,) * len(plan.risk)
    thresholds = [("the rule", rule.risk) for rule in rules if isinstance(rule, Threshold)]
    thresholds += [] if max_risk is None else [("max_risk", float(max_risk))]
    stated += [(who, {n: scale * most for n, scale in zip(plan.risk, scales, strict=True)}) for who, most in thresholds]
    return strictest(Limit(by_name[n], most, who) for who, own in stated for n, most in own.items() if n in by_name)


def score_file(
    measures: Sequence[Measure], original: Microdata, released: Microdata, stream: Stream,
    method: Method | None = None, *, alone: bool = True,
) -> list[ScoreRow]:  # fmt: skip
    """Score each measure of a written file under the very method that its note states, with samples and refits of its own.

    Several releases together (not `alone`) are no method that could be run again.
    """
    make = make_refitter(original, method, stream) if method is not None and alone else None
    rows = [score_row(measure.resample(), original, released, stream, method, make) for measure in measures]
    return [row._replace(measure_id=m.id, measure=m.text) for m, row in zip(measures, rows, strict=True)]


def score_expectations(measures: Sequence[Measure], original: Microdata, draws: Iterable[Microdata]) -> list[ScoreRow]:
    """Score measures that are functions of an expectation, pooled over draws of the released method.

    One file's own error says little of them, and comparing it with the limit would tell its reader where the truth is not.
    """
    estimates: list[list[Estimate]] = [[] for _ in measures]
    for masked in draws:
        for of_measure, measure in zip(estimates, measures, strict=True):
            try:
                of_measure.append(measure.apply(original, masked, UNUSED_RNG))
            except (Undefined, SchemaError) as reason:
                return [absent_row(m, "undefined", str(reason)) for m in measures]
    return [estimate_row(m, m.pool(of_measure)) for m, of_measure in zip(measures, estimates, strict=True)]


def check_limits_stated(plan: Plan, limits: Sequence[Limit]) -> Check:
    """Somebody stated how much risk is tolerable."""
    if not plan.risk:
        return Check("line", False, "the plan has no risk measure, so no risk was measured.")
    limited = {limit.measure for limit in limits}
    if not any(measure.axis == "risk" for measure in limited):
        advice = "give the plan limits or a Threshold or GlobalCriterion rule, or state max_risk"
        return Check("line", False, f"no risk limit was stated: {advice}.")
    free = [m.text for m in plan.measures if m.axis == "risk" and m not in limited]
    return Check("line", True, f"a risk limit was stated{f', none for {join_names(free)}' if free else ''}.")


def check_limits(
    limits: Sequence[Limit], scores: Sequence[tuple[Measure, ScoreRow]], level: float, *,
    what: str = "of the written file", name: str = "risk",
) -> Iterator[Check]:  # fmt: skip
    """Compare each score with its limit; measures without a limit are reported.

    A limit that cannot be tested on this file is said to be untested. Where none can be tested, the check fails.
    """
    by_measure = {limit.measure: limit for limit in limits}
    verdicts = []
    for measure, score in scores:
        if measure in by_measure:
            verdicts.append(by_measure[measure].judge(score.outcome, level))
        else:
            outcome = Limit(measure, math.inf).judge(score.outcome, level)
            yield Check("other risk", True, f"{say_outcome(measure, outcome, what, level)} (without a limit).")
    yield from (limit_check(name, verdict, what, level) for verdict in verdicts if verdict.status != "not tested")
    if untested := [verdict.limit.measure for verdict in verdicts if verdict.status == "not tested"]:
        names = join_names(list(dict.fromkeys(type(measure).__name__ for measure in untested)))
        why = f"{names} {'was' if len(untested) == 1 else 'were'} not tested because the file is fully synthetic"
        decided = len(untested) < len(verdicts)
        end = "the other limits decide" if decided else "no limit was tested"
        yield Check(name, decided, f"{why}; {end}.", tested=False)


def limit_check(name: str, verdict: Verdict, what: str, level: float) -> Check:
    """The check that one verdict amounts to."""
    limit, passed = verdict.limit, verdict.status == "met"
    word = ("at most" if passed else "above") if limit.is_upper else ("at least" if passed else "below")
    said = say_outcome(limit.measure, verdict, what, level)
    return Check(name, passed, f"{said}, {word} the limit {limit.value:g}.", verdict=verdict)


def check_together(
    name: str, limits: Sequence[Limit], original: Microdata, released: Microdata, stream: Stream, method: Method,
    what: str, level: float,
) -> list[Check]:  # fmt: skip
    """A check for every risk limit, of a file that several methods or releases made; one that could not be tested fails."""
    risks = [limit for limit in limits if limit.measure.axis == "risk"]
    scores = score_file([limit.measure for limit in risks], original, released, stream, method, alone=False)
    verdicts = [limit.judge(score.outcome, level) for limit, score in zip(risks, scores, strict=True)]
    return [limit_check(name, verdict, what, level) for verdict in verdicts]


def say_outcome(measure: Measure, verdict: Verdict, what: str, level: float) -> str:
    """A measure's outcome in words, with its upper confidence limit where it was measured on a sample."""
    about, estimate = f"{measure.title} {what}".rstrip(), verdict.estimate
    if estimate is None:
        return f"{about} could not be computed ({verdict.reason.rstrip('.')})"
    if math.isinf(estimate.value):
        return f"{about} is infinite"
    notes = []
    if estimate.share is not None:
        notes.append(f"at most {estimate.upper(level):.4g} by a sample of {estimate.share.trials} records")
    elif estimate.se and not measure.expectation:
        notes.append(f"at most {rounded_up(estimate.upper(level)):g} by its standard error")
    notes += [say_bound(bound, level) for bound in decisive_bounds(estimate)]
    notes += [f"not tried: {'; '.join(map(str, estimate.skipped))}"] if estimate.skipped else []
    return f"{about} is {estimate.value:.4g}" + "".join(f" ({note})" for note in notes)


def decisive_bounds(estimate: Estimate) -> list[Bound]:
    """The bounds above the value: attacks that could not be stated, and might find more."""
    return [bound for bound in estimate.bounds if bound.estimate.value > estimate.value]


def say_bound(bound: Bound, level: float) -> str:
    return f"at most {bound.estimate.upper(level):.4g}: {bound.attack}"


def rounded_up(value: float, digits: int = 2) -> float:
    """An upper end to so many significant digits, never below itself.

    >>> rounded_up(0.01231), rounded_up(-0.0119), rounded_up(0.0)
    (0.013, -0.011, 0.0)
    """
    if value == 0 or not math.isfinite(value):
        return value
    step = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    return float(f"{math.ceil(value / step - 1e-9) * step:.12g}")
