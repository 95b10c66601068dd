"""The line a release must be under, and the scores of the written file against it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from sdcmap.bundle.checks import SOFT, Check
from sdcmap.bundle.note import Note
from sdcmap.choose import Threshold
from sdcmap.core.measure import BEFORE, NOT_RUN, UPPER, Estimate, Measure
from sdcmap.core.method import Method
from sdcmap.core.rule import Rule, named_limits, scales_of
from sdcmap.core.streams import Stream
from sdcmap.core.value import decode
from sdcmap.data.microdata import Microdata
from sdcmap.errors import SchemaError, Undefined
from sdcmap.study.jobs import UNUSED, ScoreRow, maker, no_value, row_of, score_row
from sdcmap.study.plan import Plan

AT_MOST = "at most: "  # the words with which a part begins that is a bound
ONE_SIDED = 1.6449  # normal quantile of .95


@dataclass(frozen=True)
class Line:
    """The largest tolerable value of one risk measure (the smallest, where a higher number is less risk)."""

    measure: Measure
    limit: float

    def holds(self, score: ScoreRow) -> bool:
        value = math.inf if score.status == "infinite" else score.value
        if value is None:
            return False
        if self.measure.direction == "lower":
            return upper_end(self.measure, score, value) <= self.limit
        return value >= self.limit


def upper_end(measure: Measure, score: ScoreRow, value: float) -> float:
    """The upper end of a value that was measured on a sample, as the measure states it or by its standard error; where an
    attack could not be stated, its bound. What is pooled over draws is an expectation, and held to its limit as it is."""
    spread = 0.0 if score.se is None or measure.expectation else ONE_SIDED * score.se
    parts = _parts(score)
    bounds = (bound for name, bound in parts.items() if name.startswith(BEFORE))
    return max(value, parts.get(UPPER, value + spread), *bounds)


def _parts(score: ScoreRow) -> dict[str, float]:
    parts: dict[str, float] = json.loads(score.parts)
    return parts


def lines_of(plan: Plan, rules: Sequence[Rule | None], max_risk: float | None) -> list[Line]:
    """A line for each measure on the risk axis: the strictest of the limits stated by the plan, its rule, the choice's
    rule and `max_risk`, none where nothing was stated; where the axis is a share of limits these speak of value/limit, at
    most 1. And one for each measure that the plan or a rule limits by name."""
    by_name = {measure.text: measure for measure in plan.measures}
    named = [(by_name[name], limit) for rule in rules if rule for name, limit in rule.limits.items() if name in by_name]
    named += [(by_name[name], limit) for name, limit in named_limits(plan.limits).items() if name in by_name]
    stated = [rule.risk for rule in rules if isinstance(rule, Threshold)]
    stated += [] if max_risk is None else [float(max_risk)]
    scales = scales_of(plan.risk, plan.limits)
    stated += [1.0] if scales else []
    units = scales or (1.0,) * len(plan.risk)
    axis = zip((by_name[name] for name in plan.risk), units, strict=True)
    limits_of: dict[Measure, list[float]] = {}
    for measure, limit in [*named, *((measure, unit * most) for measure, unit in axis for most in stated)]:
        limits_of.setdefault(measure, []).append(limit)
    strictest: dict[str, Callable[[Iterable[float]], float]] = {"lower": min, "higher": max}
    return [Line(measure, strictest[measure.direction](limits)) for measure, limits in limits_of.items()]


def scored(
    measures: Sequence[Measure], original: Microdata, released: Microdata, stream: Stream,
    told: Note | Method | None = None, *, alone: bool = True,
) -> list[ScoreRow]:  # fmt: skip
    """Each measure of the released file, scored under the very method that this note states, and on a sample and makings
    of its own where it looks at these. Several releases together (not `alone`) are no method that could be run again."""
    method = told if told is None or isinstance(told, Method) else decode(told["method"], Method)
    make = maker(original, method, stream) if method is not None and alone else None
    rows = [score_row(measure.fresh(), original, released, stream, method, make) for measure in measures]
    return [row._replace(measure_id=m.id, measure=m.text) for m, row in zip(measures, rows, strict=True)]


def expected(measures: Sequence[Measure], original: Microdata, draws: Iterable[Microdata]) -> list[ScoreRow]:
    """Measures that are functions of an expectation, pooled over draws of the released method: one file's own error says
    little of them, and holding that file to the line would tell its reader where the truth is not."""
    estimates: list[list[Estimate]] = [[] for _ in measures]
    for masked in draws:
        for of_measure, measure in zip(estimates, measures, strict=True):
            try:
                of_measure.append(measure.apply(original, masked, UNUSED))
            except (Undefined, SchemaError) as reason:
                return [no_value(m, "undefined", str(reason)) for m in measures]
    return [row_of(m, m.pool(of_measure)) for m, of_measure in zip(measures, estimates, strict=True)]


def check_line(plan: Plan, lines: Sequence[Line]) -> Check:
    """Somebody stated how much risk is tolerable."""
    if not plan.risk:
        return Check("line", False, "the plan has no risk measure, so no risk was measured.")
    if not lines:
        advice = "give the plan limits or a Threshold or GlobalCriterion rule, or state max_risk"
        return Check("line", False, f"no risk line was stated: {advice}.")
    limited = {line.measure for line in lines}
    free = [m.text for m in plan.measures if m.axis == "risk" and m not in limited]
    return Check("line", True, f"a risk line was stated{f', none for {_and(free)}' if free else ''}.")


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def check_risks(
    lines: Sequence[Line], measures: Sequence[Measure], scores: Sequence[ScoreRow], what: str = "of the written file",
    name: str = "risk",
) -> Iterator[Check]:  # fmt: skip
    """The written file is under every line; the other risk measures are reported. A line of a measure that compares records
    says nothing of a file whose rows are nobody's, where another line sees it."""
    seen = any(not line.measure.paired for line in lines)
    limits = {line.measure: line for line in lines}
    silent = []
    for measure, score in zip(measures, scores, strict=True):
        if measure in limits and score.status == "unpaired" and seen:
            silent.append(type(measure).__name__)
        elif measure in limits:
            yield verdict(name, limits[measure], score, what)
        else:
            yield Check("other risk", True, f"{said(measure, score, what)} (without a line).")
    if silent:
        told = f"no row is anybody's, so {_and(list(dict.fromkeys(silent)))}, which compare records, say nothing"
        yield Check(name, True, f"{told}; the other lines decide.")


def verdict(name: str, line: Line, score: ScoreRow, what: str) -> Check:
    """Whether one score is under its line."""
    passed = line.holds(score)
    lower = line.measure.direction == "lower"
    word = ("at most" if passed else "over") if lower else ("at least" if passed else "under")
    return Check(name, passed, f"{said(line.measure, score, what)}, {word} the line {line.limit:g}.", name not in SOFT)


def said(measure: Measure, score: ScoreRow, what: str) -> str:
    about = f"{measure.words} {what}".rstrip()
    if score.status == "infinite":
        return f"{about} is infinite"
    if score.value is None:
        return f"{about} could not be computed ({score.reason.rstrip('.')})"
    parts = _parts(score)
    sampled = f" (at most {parts[UPPER]:.4g} by a sample of {parts['targets']:g} records)" if UPPER in parts else ""
    if not sampled and score.se and not measure.expectation:
        sampled = f" (at most {rounded_up(upper_end(measure, score, score.value)):g} by its standard error)"
    lacking = untried(score)
    not_tried = f" (not tried: {'; '.join(lacking)})" if lacking else ""
    bounds = bounded(score)
    at_most = f" ({'; '.join(bounds)})" if bounds else ""
    return f"{about} is {score.value:.4g}{sampled}{at_most}{not_tried}"


def bounded(score: ScoreRow) -> list[str]:
    """What bounds an attack that could not be stated, in words."""
    parts = _parts(score).items()
    return [f"at most {bound:.4g}: {name.removeprefix(AT_MOST)}" for name, bound in parts if name.startswith(BEFORE)]


def untried(score: ScoreRow) -> list[str]:
    """The attacks that a measure could not try, each with its reason."""
    return [name.removeprefix(NOT_RUN).rstrip(".") for name in _parts(score) if name.startswith(NOT_RUN)]


def rounded_up(value: float, digits: int = 2) -> float:
    """An upper end to so many significant digits, never below itself.

    >>> rounded_up(0.01231), rounded_up(-0.0119), rounded_up(0.0)
    (0.013, -0.011, 0.0)
    """
    if value == 0 or not math.isfinite(value):
        return value
    step = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    return float(f"{math.ceil(value / step - 1e-9) * step:.12g}")
