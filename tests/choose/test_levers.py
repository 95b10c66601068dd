"""Levers: at every breakpoint, beside it and between them, the choice is what `RUMap.choose` gives there."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import polars as pl
from hypothesis import assume, given
from hypothesis import strategies as st

import sdcmap as sm
from sdcmap.choose.levers import Lever, Levers, find_levers
from sdcmap.choose.two_axes import Weighing
from sdcmap.core.limit import Limit
from sdcmap.core.rule import Rule
from sdcmap.study.scores import Scores

FEW = st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 0.7, 1.0, 1.5])  # with equals, and without rounding between them
Draw = dict[str, Any]  # measure: value; None: no value; "unpaired": the measure does not apply
DRAW = st.fixed_dictionaries({
    "R": FEW, "U": FEW, "K": FEW | st.none() | st.just("unpaired"), "L": FEW | st.just("unpaired"),
})  # fmt: skip
METHODS = st.integers(1, 3).flatmap(
    lambda draws: st.lists(st.lists(DRAW, min_size=draws, max_size=draws), min_size=1, max_size=7)
)
DIRECTIONS = st.fixed_dictionaries({name: st.sampled_from(["lower", "higher"]) for name in ("R", "U", "K", "L")})


def scores_of(methods: list[list[Draw]], directions: dict[str, str]) -> Scores:
    """Scores of these methods and of the original; R and K, L are risks."""
    made = {"Identity": [{"R": 1.0, "U": 0.0, "K": 1.0, "L": 1.0}]}
    made |= {f"M{number}": draws for number, draws in enumerate(methods)}
    rows = [
        (f"{method}-{number}", method, number, draw) for method, of in made.items() for number, draw in enumerate(of)
    ]
    candidate = pl.DataFrame(
        [
            (name, method, number, "ok", "", 0.0, "identity" if method == "Identity" else "candidate")
            for name, method, number, _ in rows
        ],
        schema=["id", "method", "replicate", "status", "reason", "seconds", "kind"],
        orient="row",
    )
    score = [
        (name, measure, value, None, "{}", "ok", "")
        if isinstance(value, float)
        else (name, measure, None, None, "{}", "undefined" if value is None else value, "")
        for name, _, _, draw in rows
        for measure, value in draw.items()
    ]
    texts, numbers = ("candidate", "measure", "details", "status", "reason"), ("value", "se")
    columns = ["candidate", "measure", "value", "se", "details", "status", "reason"]
    kinds = dict.fromkeys(texts, pl.String) | dict.fromkeys(numbers, pl.Float64)
    measure = pl.DataFrame({
        "name": list(directions), "direction": list(directions.values()), "low": [0.0] * 4, "high": [2.0] * 4,
        "unit": ["share"] * 4, "axis": ["risk", "utility", "risk", "risk"], "baseline_value": [0.0, 2.0, None, None],
    })  # fmt: skip
    return Scores(candidate, pl.DataFrame(score, schema={name: kinds[name] for name in columns}, orient="row"), measure)


def values_of(lever: Lever, low: float, high: float, *, exact: bool) -> list[float]:
    """Values at, beside and between breakpoints, within the range of the number.

    Beside is the next float where numbers are compared as they are. Where they are weighed, rounding decides so near to a
    breakpoint: there it is a little farther, and the breakpoint itself is asked as the page sets a lever, to six digits.
    """
    inner = [start for start in lever.starts if low <= start <= high and (exact or start > 1e-9)]
    ways = (-math.inf, math.inf)
    beside = [math.nextafter(at, way) if exact else at + math.copysign(1e-9, way) for at in inner for way in ways]
    between = [(a + b) / 2 for a, b in pairwise([low, *inner, high])]
    at = inner if exact else [float(f"{value:.6g}") for value in inner]
    return [value for value in {low, high, *at, *beside, *between} if low <= value <= high]


def check_rule(ru: sm.RUMap, rule: Any, ranges: dict[str, tuple[float, float]]) -> None:
    levers = find_levers(ru, rule).rule
    assert levers.keys() == ranges.keys()
    for name, lever in levers.items():
        for value in values_of(lever, *ranges[name], exact=not isinstance(rule, Weighing)):
            assert lever.at(value) == ru.choose(replace(rule, **{name: value})).candidate, (rule, name, value)


def check_limits(ru: sm.RUMap, rule: Any) -> None:
    limits = [Limit(ru.scores.measure_named(name), 1.0) for name in "KL"]
    for name, lever in find_levers(ru, rule, limits).limits.items():
        for value in values_of(lever, 1e-6, 3.0, exact=True):
            moved = sm.RUMap(ru.scores, ru.risk, ru.utility, {**ru.limits_by_name, name: value})
            assert lever.at(value) == moved.choose(rule).candidate, (rule, name, value)


RULES: list[tuple[Any, dict[str, tuple[float, float]]]] = [
    (sm.Threshold(risk=0.3), {"risk": (-2.0, 3.0)}),
    (sm.Linear(slope=0.5), {"slope": (0.0, 50.0)}),
    (sm.IdealPoint(weight=0.25, scale="bounds"), {"weight": (0.0, 1.0)}),
]
LIMITS = st.dictionaries(st.sampled_from("KL"), FEW.filter(bool))


@given(st.sampled_from(RULES), st.sampled_from(["release", "mean", "quantile"]), METHODS, DIRECTIONS, LIMITS)
def test_levers_choose_what_the_map_chooses(
    stated: tuple[Any, dict[str, tuple[float, float]]], by: str, methods: list[list[Draw]], directions: dict[str, str],
    limits: dict[str, float],
) -> None:  # fmt: skip
    assume(by != "quantile" or len(methods[0]) > 1)
    ru = sm.RUMap(scores_of(methods, directions), "R", "U", limits)
    rule = replace(stated[0], by=by, quantile=0.5)
    check_rule(ru, rule, stated[1])
    check_limits(ru, rule)


@given(st.sampled_from(["release", "mean"]), METHODS, LIMITS)
def test_levers_of_global_criterion_match_map(by: Any, methods: list[list[Draw]], limits: dict[str, float]) -> None:
    """Its four numbers are at most 0, and so are its two limits."""
    negative = [
        [{name: -draw[name] for name in "RU"} | {"K": -draw["R"], "L": draw["L"]} for draw in of] for of in methods
    ]
    ru = sm.RUMap(
        scores_of(negative, dict.fromkeys("RUKL", "lower")), "R", "U", {n: v for n, v in limits.items() if n == "L"}
    )
    rule = sm.choose.GlobalCriterion(iek="R", rdh="K", sek="U", dus="U", agency_limit=-0.3, intruder_limit=-0.5, by=by)
    check_rule(ru, rule, {"agency_limit": (-2.0, 0.0), "intruder_limit": (-2.0, 0.0)})


def test_axis_of_limit_shares_has_no_limit_levers() -> None:
    """No lever can be looked up there: the points themselves move."""
    draws = [[{"R": 0.1 * n, "U": 1.0 - 0.1 * n, "K": 0.2, "L": 0.05 * n}] for n in range(1, 8)]
    ru = sm.RUMap(scores_of(draws, dict.fromkeys("RUKL", "lower")), ["R", "L"], "U", {"R": 0.4, "L": 0.5})
    check_rule(ru, sm.Threshold(risk=1.0), {"risk": (0.0, 3.0)})
    levers = find_levers(ru, sm.Threshold(risk=1.0), ru.limits)
    assert levers.limits == {}
    assert levers.rule["risk"].candidates == (None, "M0-0", "M1-0", "M2-0", "M3-0")  # no other meets both limits


def test_rule_of_another_package_has_no_levers() -> None:
    ru = sm.RUMap(scores_of([[{"R": 0.1, "U": 0.1, "K": 0.1, "L": 0.1}]], dict.fromkeys("RUKL", "lower")), "R", "U")
    assert find_levers(ru, Rule(), ru.limits) == Levers({}, {})
