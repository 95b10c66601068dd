"""The global criterion with several intruders and users, priors above a limit, and negative limits of a plan."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.core.limit import Limit, limit_problem, share_of_limit
from sdcmap.core.measure import Measure
from sdcmap.study.plan_remarks import remarks
from sdcmap.study.scores import Scores

IEK = [sm.risk.IntruderKnowledge(on="x"), sm.risk.IntruderKnowledge(on="y")]
RDH = [sm.risk.DiscreditHarm(on="x"), sm.risk.DiscreditHarm(on="y")]
SEK = [sm.utility.SocietyKnowledge(on="x"), sm.utility.SocietyKnowledge(on="y")]
DUS = [sm.utility.SocietyUtility(on="x"), sm.utility.SocietyUtility(on="y")]
MEASURES: list[Measure] = [*IEK, *RDH, *SEK, *DUS]
#            IEK x  IEK y  RDH x  RDH y  SEK x  SEK y  DUS x  DUS y
VALUES = {
    "Identity": (0.00, 0.00, 0.00, 0.00, -0.01, -0.01, -0.01, -0.01),
    "weak": (-0.70, -0.30, -0.80, -0.90, -0.02, -0.02, -0.02, -0.02),  # safe from the first intruder only
    "medium": (-0.70, -0.60, -0.80, -0.70, -0.04, -0.60, -0.03, -0.80),  # good for the first user only
    "strong": (-0.90, -0.80, -0.90, -0.90, -0.30, -0.40, -0.40, -0.30),
}


def scores_of(values: dict[str, tuple[float, ...]], nothing: tuple[float, ...] = (-1.0,) * 8) -> Scores:
    """Return scores with two equal draws of each method, so that pooled values are exact."""
    names = [measure.text for measure in MEASURES]
    draws = [(method, draw) for method in values for draw in range(1 if method == "Identity" else 2)]
    rows = [
        (f"{method}-{draw}", name, value, None, "{}", "ok", "")
        for method, draw in draws
        for name, value in zip(names, values[method], strict=True)
    ]
    columns = {
        "candidate": pl.String,
        "measure": pl.String,
        "value": pl.Float64,
        "se": pl.Float64,
        "details": pl.String,
    }
    candidate = pl.DataFrame(
        [(f"{method}-{draw}", method, draw, "ok", "", 0.0) for method, draw in draws],
        schema=["id", "method", "replicate", "status", "reason", "seconds"], orient="row",
    )  # fmt: skip
    is_identity = pl.col("method") == "Identity"
    candidate = candidate.with_columns(
        kind=pl.when(is_identity).then(pl.lit("identity")).otherwise(pl.lit("candidate"))
    )
    facts = {
        "name": names, "direction": [m.direction for m in MEASURES], "low": [None] * 8, "high": [0.0] * 8,
        "unit": ["prior uncertainty"] * 8, "axis": [m.axis for m in MEASURES], "baseline_value": nothing,
    }  # fmt: skip
    table = pl.DataFrame(rows, schema={**columns, "status": pl.String, "reason": pl.String}, orient="row")
    return Scores(candidate, table, pl.DataFrame(facts), {measure.text: measure for measure in MEASURES})


def map_of(**how: Any) -> sm.RUMap:
    return sm.RUMap(scores_of(VALUES, **how), risk=IEK[0], utility=SEK[0])


def rule(intruders: int = 2, users: int = 2, limit: float = -0.5, **how: Any) -> sm.GlobalCriterion:
    four = {"iek": IEK[:intruders], "rdh": RDH[:intruders], "sek": SEK[:users], "dus": DUS[:users]}
    return sm.GlobalCriterion(**four, agency_limit=limit, intruder_limit=limit, **how)  # type: ignore[arg-type]


def test_candidate_must_be_safe_from_every_intruder() -> None:
    assert map_of().choose(rule(intruders=1, users=1)).method == "weak"
    choice = map_of().choose(rule(users=1))
    assert choice.method == "medium" and "IEK and RDH are the largest of 2 intruders." in choice.reason
    table = rule().table(map_of())
    assert dict(zip(table["method"], table["region"], strict=True)) == {
        "Identity": "B", "weak": "C", "medium": "D", "strong": "D",
    }  # fmt: skip
    weak = table.row(by_predicate=pl.col("method") == "weak", named=True)
    assert (weak["iek"], weak["rdh"], weak["iek 1"], weak["iek 2"]) == (-0.3, -0.8, -0.7, -0.3)


@pytest.mark.parametrize("users", ["all", "worst"])
def test_every_user_counts(users: str) -> None:
    """medium: distances .05 and 1; strong: .5 and .5, so .707 over all coordinates."""
    criterion = sm.GlobalCriterion(
        iek=IEK,
        rdh=RDH,
        sek=SEK,
        dus=DUS,
        users=users,
        agency_limit=-0.5,
        intruder_limit=-0.5,  # type: ignore[arg-type]
    )
    choice = map_of().choose(criterion)
    assert choice.method == "strong"
    table = criterion.table(map_of())
    strong = table.row(by_predicate=pl.col("method") == "strong", named=True)
    assert strong["distance"] == pytest.approx(0.5 if users == "worst" else math.sqrt(0.5))
    medium = table.row(by_predicate=pl.col("method") == "medium", named=True)
    assert (medium["sek"], medium["dus"]) == (-0.6, -0.8)  # of the worst served user
    assert medium["distance"] == pytest.approx(1.0 if users == "worst" else math.hypot(0.04, 0.6, 0.03, 0.8))
    assert "worst served of 2 users" in choice.reason


def test_one_of_each_is_the_rule_of_the_paper() -> None:
    criterion = rule(intruders=1, users=1)
    table = criterion.table(map_of())
    assert (table["distance"] == np.hypot(table["sek"], table["dus"])).all()
    assert criterion.limits == {IEK[0].text: -0.5, RDH[0].text: -0.5}
    assert rule().limits.keys() == {m.text for m in (*IEK, *RDH)}
    assert sm.Plan.from_toml(plan(rule()).toml()).rule == rule()


def plan(chosen_by: Any, **how: Any) -> sm.Plan:
    return sm.Plan(sm.Noise(on=["x", "y"]), MEASURES, rule=chosen_by, **how)


def test_rule_is_proposed_for_all_intruders_and_users() -> None:
    proposed = sm.GlobalCriterion.propose(map_of(nothing=(-1.2, -0.8, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0)))
    assert proposed is not None and len(proposed.iek) == len(proposed.sek) == 2
    assert proposed.agency_limit == pytest.approx(-0.4) and proposed.intruder_limit == -0.5


def test_unequal_numbers_of_measures_are_rejected() -> None:
    with pytest.raises(sm.errors.PlanError, match=".iek and .rdh must name one measure for each intruder"):
        sm.GlobalCriterion(iek=IEK, rdh=RDH[0], sek=SEK[0], dus=DUS[0])  # type: ignore[arg-type]
    with pytest.raises(sm.errors.PlanError, match=".sek must name each measure once"):
        sm.GlobalCriterion(iek=IEK[0], rdh=RDH[0], sek=[SEK[0]] * 2, dus=DUS)  # type: ignore[arg-type]


def test_candidate_without_a_number_of_one_intruder_is_not_chosen() -> None:
    table = scores_of(VALUES)
    is_gone = pl.col("candidate").str.starts_with("medium") & (pl.col("measure") == IEK[1].text)
    lacking = Scores(table.candidate, table.score.filter(~is_gone), table.measure, table.values)
    ru = sm.RUMap(lacking, risk=IEK[0], utility=SEK[0])
    assert "medium" not in rule().table(ru)["method"].to_list()
    assert ru.choose(rule(users=1)).method == "strong"


# ---- the prior is above a limit -------------------------------------------------------------------------------
def test_reason_says_that_prior_is_above_limit() -> None:
    """The second intruder knows half of it before any release: IEK -0.4 is above -0.5."""
    nothing = (-1.0, -0.4, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0)
    words = (
        "Before any release, IEK is -0.4 (limit -0.5): the prior is already above the limit, so even releasing nothing"
    )
    assert words in map_of(nothing=nothing).choose(rule()).reason
    assert words not in map_of(nothing=nothing).choose(rule(intruders=1)).reason
    nobody = map_of(nothing=nothing).choose(rule(limit=-0.95))
    assert nobody.candidate is None and "IEK is -0.4 (limit -0.95)" in nobody.reason


def test_reason_says_that_prior_is_above_limit_of_plan() -> None:
    scores = scores_of(VALUES, nothing=(-0.2,) * 8)
    ru = sm.RUMap(scores, risk=IEK[0], utility=SEK[0], limits={IEK[0].text: -0.95})
    choice = ru.choose(sm.Linear(slope=1.0))
    assert choice.candidate is None and "the prior is already above the limit" in choice.reason


def test_threshold_says_that_prior_is_above_it() -> None:
    ru = sm.RUMap(scores_of(VALUES, nothing=(-0.2,) * 8), risk=IEK[0], utility=SEK[0])
    choice = ru.choose(sm.Threshold(risk=-0.95))
    assert choice.candidate is None and "is -0.2 (limit -0.95): the prior is already above the limit" in choice.reason
    fine = sm.RUMap(scores_of(VALUES, nothing=(-1.0,) * 8), risk=IEK[0], utility=SEK[0]).choose(
        sm.Threshold(risk=-0.95)
    )
    assert fine.candidate is None and "already above" not in fine.reason


def test_check_says_that_prior_is_above_limit() -> None:
    data = sm.read(pl.DataFrame({"x": [1.0, 2.0, 9.0, 4.0], "y": [3.0, 1.0, 2.0, 2.5]}), numeric="all")
    for limit, expected in ((-1.5, 1), (-0.5, 0)):
        stated = plan(rule(), limits={IEK[0].text: limit, SEK[0].text: -5.0})
        words = [line for line in remarks(data, stated, stated) if "already above the limit" in line]
        assert len(words) == expected and all("-1 before any release, limit -1.5" in line for line in words)


# ---- negative limits ------------------------------------------------------------------------------------------
def test_negative_limits_decide() -> None:
    """At most -0.75 of the second intruder's knowledge: only `strong`; SEK of at least -0.35: not `medium` for y."""
    for limits, method in (({IEK[1]: -0.75}, "strong"), ({IEK[1]: -0.5}, "medium"), ({SEK[1]: -0.5}, "weak")):
        by_name = {measure.text: value for measure, value in limits.items()}
        ru = sm.RUMap(scores_of(VALUES), risk=IEK[0], utility=SEK[0], limits=by_name)
        choice = ru.choose(sm.Threshold(risk=-0.6))
        assert choice.method == method and choice.verdicts[0].status == "met" and choice.verdicts[0].share <= 1
    assert plan(rule(), limits={IEK[1].text: -0.75}).limits == {IEK[1].text: -0.75}
    assert sm.Plan.from_toml(plan(rule(), limits={IEK[1].text: -0.75}).toml()).limits == {IEK[1].text: -0.75}


def test_shares_of_negative_limits_on_one_axis() -> None:
    """Two intruders on the axis as shares of their limits: more than 1 exceeds, and the worst counts."""
    ru = sm.RUMap(scores_of(VALUES), risk=IEK, utility=SEK[0], limits=[-0.5, -0.4])
    shares = dict(zip(ru.means["method"], ru.means["risk"], strict=True))
    expected = {"weak": max(0.5 / 0.7, 0.4 / 0.3), "medium": max(0.5 / 0.7, 0.4 / 0.6), "strong": 0.5 / 0.9}
    assert {name: shares[name] for name in expected} == pytest.approx(expected)
    assert shares["Identity"] == math.inf
    assert ru.choose(sm.Threshold(risk=1.0)).method == "medium"


def test_share_exceeds_1_exactly_where_limit_is_exceeded() -> None:
    values = np.array([-3.0, -0.5, -0.4999, -0.1, 0.0])
    for measure in (IEK[0], SEK[0]):
        limit = Limit(measure, -0.5)
        assert ((limit.share(values) <= 1) == limit.admits(values)).all()
    assert np.isnan(share_of_limit(math.nan, -0.5, is_upper=True))


@pytest.mark.parametrize(
    ("measure", "value", "words"),
    [(IEK[0], 0.0, "must be below 0"), (IEK[0], 0.2, "must be below 0"), (sm.SmallCells(), -0.1, "must be at least 0")],
)
def test_limits_outside_the_range_of_a_measure_are_rejected(measure: Measure, value: float, words: str) -> None:
    assert words in limit_problem(measure.bounds, value)
    with pytest.raises(sm.errors.PlanError, match=words):
        sm.Plan(sm.Noise(on="x"), [measure], limits={measure.text: value})
