"""The map: frontier, anchors, bands, membership, linear path; and the rules that choose on it."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sdcmap as sm
from samples import with_file
from sdcmap.kernels.decision.pareto import is_undominated, linear_optima
from sdcmap.study.scores import Scores

FEW = st.integers(0, 5).map(float) | st.sampled_from([math.inf, -math.inf, math.nan])


@given(st.lists(st.tuples(FEW, FEW), max_size=30))
def test_undominated_equals_definition(points: list[tuple[float, float]]) -> None:
    first, second = np.array([p[0] for p in points]), np.array([p[1] for p in points])

    def dominated(i: int) -> bool:
        x, y = points[i]
        return math.isnan(x) or math.isnan(y) or any(
            u <= x and v <= y and (u < x or v < y) for u, v in points if not (math.isnan(u) or math.isnan(v))
        )  # fmt: skip

    assert is_undominated(first, second).tolist() == [not dominated(i) for i in range(len(points))]


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=25), st.floats(0, 50))
def test_linear_path_contains_optimum_of_every_slope(points: list[tuple[int, int]], slope: float) -> None:
    first, second = np.array(points, dtype=float).T
    path = linear_optima(first, second)
    assert path[0][0] == 0
    assert path[-1][1] == math.inf
    assert all(a[1] == b[0] and a[0] < a[1] for a, b in itertools.pairwise(path))
    chosen = next(index for low, high, index in path if low <= slope <= high)
    best = (first + slope * second).min()
    assert first[chosen] + slope * second[chosen] == pytest.approx(best, abs=1e-9 * (1 + slope) * 40)


KIND = pl.when(pl.col("method") == "Identity").then(pl.lit("identity")).otherwise(pl.lit("candidate"))


def scores_of(values: dict[str, list[tuple[float | None, float]]], **facts: Any) -> Scores:
    """Return artificial scores: method -> (risk, utility) of each replicate; risk None: infeasible."""
    candidate, score = [], []
    for method, draws in values.items():
        for replicate, (risk, utility) in enumerate(draws):
            name = f"{method}-{replicate}"
            candidate.append((name, method, replicate, "infeasible" if risk is None else "ok", "", 0.0))
            for measure, value in (("R", risk), ("U", utility)):
                if risk is not None and value is not None:
                    endless = math.isinf(value)
                    score.append(
                        (name, measure, None if endless else value, None, "{}", "infinite" if endless else "ok", "")
                    )
    names = ["id", "method", "replicate", "status", "reason", "seconds"]
    columns = {
        "candidate": pl.String,
        "measure": pl.String,
        "value": pl.Float64,
        "se": pl.Float64,
        "details": pl.String,
    }
    measure = pl.DataFrame({
        "name": ["R", "U"], "direction": ["lower", facts.get("utility", "lower")], "low": [0.0, 0.0], "high": [1.0, 1.0],
        "unit": ["share", facts.get("unit", "share")], "axis": ["risk", "utility"], "baseline_value": [0.0, 1.0],
    })  # fmt: skip
    return Scores(
        pl.DataFrame(candidate, schema=names, orient="row").with_columns(kind=KIND),
        pl.DataFrame(score, schema={**columns, "status": pl.String, "reason": pl.String}, orient="row"),
        measure,
    )


@pytest.fixture
def ru() -> sm.RUMap:
    return sm.RUMap(
        scores_of({
            "Identity": [(0.5, 0.0)],
            "A": [(0.1, 0.8), (0.2, 0.7)],
            "B": [(0.3, 0.3), (0.1, 0.4)],
            "C": [(0.4, 0.4), (0.4, 0.35)],
            "D": [(0.1, 0.8), (None, 0.0)],
        }),
        risk="R", utility="U",
    )  # fmt: skip


def test_points_frontier_and_ties(ru: sm.RUMap) -> None:
    """Frontier of the candidates: B-1 (.1, .4) and B-0 (.3, .3); A-0 and D-0 tie at (.1, .8) and lose to B-1."""
    assert ru.frontier["id"].to_list() == ["B-1", "B-0"]
    tied = sm.RUMap(scores_of({"A": [(0.1, 0.8)], "B": [(0.1, 0.8)], "C": [(0.2, 0.8)]}), "R", "U")
    assert sorted(tied.frontier["method"]) == ["A", "B"]


def test_anchor_is_not_on_frontier(ru: sm.RUMap) -> None:
    identity = ru.points.filter(pl.col("method") == "Identity").row(0, named=True)
    assert identity["anchor"]
    assert not identity["frontier"]
    assert ru.nothing == (0.0, 1.0)


def test_means_have_two_bands(ru: sm.RUMap) -> None:
    row = ru.means.filter(pl.col("method") == "A").row(0, named=True)
    assert row["risk"] == pytest.approx(0.15)
    assert row["risk_se"] == pytest.approx(0.1 / math.sqrt(2) / math.sqrt(2))  # sd of (.1, .2) over sqrt 2
    assert (row["risk_low"], row["risk_high"], row["count"]) == (None, None, 2)  # 97.5 % needs 40 replicates
    draws = [(r / 100, 0.5) for r in range(41)]
    many = sm.RUMap(scores_of({"A": draws}), "R", "U").means.row(0, named=True)
    assert (many["risk_low"], many["risk_high"]) == pytest.approx((0.01, 0.39))


def test_membership_is_share_of_replicates(ru: sm.RUMap) -> None:
    """Replicate 0: A, D (.1, .8) and B (.3, .3) are undominated; replicate 1: B (.1, .4) and C (.4, .35)."""
    shares = dict(ru.membership.select("method", "membership").iter_rows())
    assert shares == {"A": 0.5, "B": 1.0, "C": 0.5, "D": 0.5}
    row = ru.membership.filter(pl.col("method") == "A").row(0, named=True)
    assert (row["membership_low"], row["membership_high"]) == pytest.approx(
        (0.0945, 0.9055), abs=1e-4
    )  # Wilson, 1 of 2


def test_deterministic_method_is_in_every_replicate() -> None:
    scores = scores_of({"N": [(0.2, 0.2)], "A": [(0.1, 0.9), (0.3, 0.3), (0.1, 0.1)]})
    shares = dict(sm.RUMap(scores, "R", "U").membership.select("method", "membership").iter_rows())
    assert shares == {"N": pytest.approx(2 / 3), "A": pytest.approx(2 / 3)}


def test_adding_candidate_moves_no_other(ru: sm.RUMap) -> None:
    more = scores_of({"Identity": [(0.5, 0.0)], "A": [(0.1, 0.8), (0.2, 0.7)], "Z": [(9.0, 9.0)]})
    before = ru.points.filter(pl.col("method") == "A").select("risk", "utility")
    assert sm.RUMap(more, "R", "U").points.filter(pl.col("method") == "A").select("risk", "utility").equals(before)


def test_utility_better_when_higher() -> None:
    ru = sm.RUMap(scores_of({"A": [(0.1, 5.0)], "B": [(0.1, 7.0)], "C": [(0.3, 9.0)]}, utility="higher"), "R", "U")
    assert ru.frontier["method"].to_list() == ["B", "C"]
    assert ru.choose(sm.Threshold(risk=0.2)).method == "B"
    assert ru.choose(sm.Linear(slope=1)).method == "C"
    assert ru.choose(sm.Linear(slope=0.01)).method == "B"


def test_worst_of_several_risks_is_on_axis() -> None:
    people = sm.demo.population(300)
    strict, lax = sm.SmallCells(n=5), sm.SmallCells(n=2)
    plan = sm.Plan(
        sm.Swap(on="Sex", rate=0.1), [strict, lax, sm.risk.KnownIndex(on="wage"), sm.Hellinger()], replicates=3, seed=1
    )
    scores = sm.sweep(people, plan, workers=1)
    worst = sm.RUMap(scores, [lax, strict], sm.Hellinger())
    assert worst.points["risk"].to_list() == sm.RUMap(scores, strict, sm.Hellinger()).points["risk"].to_list()
    scaled = sm.RUMap(scores, [lax, strict], sm.Hellinger(), limits=[0.01, 1.0])
    both = [sm.RUMap(scores, one, sm.Hellinger()).points["risk"].to_numpy() for one in (lax, strict)]
    assert scaled.points["risk"].to_list() == np.maximum(both[0] / 0.01, both[1]).tolist()
    assert "share of its limit" in scaled.labels[0]
    # A label that two measures share would not say which one is meant, so both have their title.
    assert strict.title in worst.labels[0] and lax.title in worst.labels[0]
    assert worst.labels[1].startswith(f"{sm.Hellinger.label} (")
    with pytest.raises(sm.errors.PlanError, match="different units"):
        sm.RUMap(scores, [strict, sm.risk.KnownIndex(on="wage")], sm.Hellinger())
    with pytest.raises(sm.errors.PlanError, match="one limit for each of 2 risk measures"):
        sm.RUMap(scores, [strict, lax], sm.Hellinger(), limits=[0.1])
    with pytest.raises(sm.errors.PlanError, match="Did you mean 'Hellinger'"):
        sm.RUMap(scores, strict, "Helinger")


def with_measure(scores: Scores, name: str, values: dict[str, float | None], **facts: Any) -> Scores:
    """Return the scores with one more measure: candidate -> value; None if it does not apply to a synthetic file."""
    rows = [
        (candidate, name, value, None, "{}", "unpaired" if value is None else "ok", "")
        for candidate, value in values.items()
    ]
    fact = {"name": name, "direction": "lower", "low": 0.0, "high": 1.0, "unit": "chance", "axis": "risk"} | facts
    measure = pl.DataFrame([{**fact, "baseline_value": 0.0}], schema=scores.measure.schema)
    more = pl.DataFrame(rows, schema=scores.score.schema, orient="row")
    return replace(scores, score=scores.score.vstack(more), measure=scores.measure.vstack(measure))


def test_rules_choose_what_is_within_the_limit_of_every_measure() -> None:
    """A has the least loss but exceeds the limit of M; B is within it; C has no value of M; D has too much R."""
    draws = {"Identity": [(0.9, 0.0)], "A": [(0.2, 0.1)], "B": [(0.2, 0.3)], "C": [(0.1, 0.2)], "D": [(0.8, 0.05)]}
    plain = scores_of({name: [*rows] for name, rows in draws.items()})
    scores = with_measure(plain, "M", {"Identity-0": 1.0, "A-0": 0.7, "B-0": 0.6, "D-0": 0.5})
    rule = sm.Threshold(risk=0.5)
    assert sm.RUMap(scores, "R", "U").choose(rule).method == "A"
    ru = sm.RUMap(scores, "R", "U", {"M": 0.6})
    assert ru.labels[0] == "R (share)" and ru.points.filter(pl.col("method") == "A")["risk"].to_list() == [0.2]
    assert ru.choose(rule).method == "B" and "It meets the one tested limit: M at most 0.6." in str(ru.choose(rule))
    assert "Of 5 candidates, 3 have a risk (R) of at most 0.5, and 1 of these also meets" in str(ru.choose(rule))
    assert ru.choose(sm.Threshold(risk=0.5, by="mean")).method == "B"
    assert ru.choose(sm.Linear(slope=0.01)).method == "B"
    assert ru.choose(sm.IdealPoint(weight=0.0)).method == "D"  # the utility alone; the anchors still set the scale
    none = sm.RUMap(scores, "R", "U", {"M": 0.3}).choose(rule)
    assert none.candidate is None
    assert "none of the 3 candidates that pass the rule meets every limit (M at most 0.3)." in none.reason
    assert "The nearest miss is B with 2 times a limit." in none.reason
    assert "nearest miss" in sm.RUMap(scores, "R", "U", {"M": 0.3}).choose(sm.Threshold(risk=0.01)).reason
    higher = with_measure(plain, "K", {"A-0": 2.0, "B-0": 5.0}, direction="higher")
    assert sm.RUMap(higher, "R", "U", {"K": 3}).choose(rule).method == "B"
    for wrong, words in (({"M": -0.1}, "must be at least 0"), ({"N": 1.0}, "no measure 'N'")):
        with pytest.raises(sm.errors.PlanError, match=words):
            sm.RUMap(scores, "R", "U", wrong)
    strict = sm.RUMap(scores, "R", "U", {"M": 0}).choose(rule)
    assert strict.candidate is None, "a limit of 0 is met by 0 alone"


def test_synthetic_file_is_judged_by_applicable_measures() -> None:
    """L compares records and does not apply to S; M applies to both. With limits only on L, S has no applicable limit."""
    scores = scores_of({"A": [(0.5, 0.3)], "S": [(0.5, 0.1)]})
    scores = with_measure(scores, "L", {"A-0": 0.02, "S-0": None})
    scores = with_measure(scores, "M", {"A-0": 0.55, "S-0": 0.6})
    limits = {"L": 0.1, "M": 0.6}
    assert sm.RUMap(scores, "R", "U", limits).choose(sm.Threshold(risk=1)).method == "S"
    assert sm.RUMap(scores, "R", "U", {"L": 0.1}).choose(sm.Threshold(risk=1)).method == "A"
    worst = sm.RUMap(scores, ["L", "M"], "U", limits)
    assert dict(worst.points.select("method", "risk").iter_rows()) == pytest.approx({"A": 0.55 / 0.6, "S": 1.0})
    assert dict(worst.means.select("method", "risk").iter_rows()) == pytest.approx({"A": 0.55 / 0.6, "S": 1.0})
    assert "share of its limit" in worst.labels[0]
    assert sm.RUMap(scores, "L", "U").points["method"].to_list() == ["A"]


def test_the_best_of_many_draws_is_compared_over_as_many_draws_of_each() -> None:
    """A has four draws, B two: the third and fourth draw of A are ignored."""
    draws = [(0.5, 0.5), (0.5, 0.4), (0.1, 0.1), (0.0, 0.0)]
    ru = sm.RUMap(scores_of({"Identity": [(0.9, 0.0)], "A": draws, "B": [(0.3, 0.3), (None, 0.0)]}), "R", "U")
    assert ru.frontier["id"].to_list() == ["B-0"]
    choice = ru.choose(sm.Threshold(risk=0.6))
    assert (choice.candidate, choice.searched) == ("B-0", 1)
    assert len(ru.points) == 6


def test_all_methods_share_the_axes() -> None:
    """As the paper concludes, other methods can use the same measures of risk and distortion."""
    frame = sm.demo.population(400, seed=5).frame().with_columns(age=pl.arange(400) % 60 + 20)
    data = sm.read(frame, keys=["Sex", "Educ", "age"], kinds={"age": "numeric"}, weight="weight")
    methods = [sm.Swap(on="Sex", rate=0.1), sm.RankSwap(on="age", p=0.1), sm.Noise(on="age", variance=0.05)]
    methods.append(sm.Chain([methods[0], methods[1]]))
    measures = [
        sm.SmallCells(n=20, counting="all"),
        sm.Hellinger(on=["Sex", "Educ"]),
        sm.Hellinger(on=["Sex", "Educ"], weighted=True),
    ]
    scores = sm.sweep(data, sm.Plan(methods, measures, replicates=3, seed=2), workers=1)
    for utility in measures[1:]:
        ru = sm.RUMap(scores, measures[0], utility)
        assert len(ru.points) == 1 + 3 * 4
        assert ru.means.filter(pl.col("method") == methods[1].text)["utility"][0] == 0  # it leaves these two alone
    assert ru.means.filter(pl.col("method") == methods[3].text)["utility"][0] > 0


# ---- rules ----------------------------------------------------------------------------------------------------
def test_threshold_takes_best_utility_within_limit(ru: sm.RUMap) -> None:
    choice = ru.choose(sm.Threshold(risk=0.3))
    assert (choice.candidate, choice.method, choice.replicate) == ("B-0", "B", 0)
    assert choice.reason.startswith("Recommended: B, draw 1. Of 8 candidates, 5 have a risk (")
    assert "; this one has the smallest utility loss (U: 0.3)." in choice.reason
    assert "2 random draws of this method were compared." in choice.reason
    assert choice.runners_up[0].name == "B, draw 2"
    assert len(choice.runners_up) == 3


def test_no_rule_chooses_unmasked_original(ru: sm.RUMap) -> None:
    assert ru.choose(sm.Threshold(risk=0.5)).method == "B"
    alone = sm.RUMap(scores_of({"Identity": [(0.5, 0.0)], "A": [(0.9, 0.1)]}), "R", "U").choose(sm.Threshold(risk=0.6))
    assert alone.candidate is None and "only the unmasked original meets the rule" in alone.reason


def test_choice_names_nearest_miss_if_nothing_passes(ru: sm.RUMap) -> None:
    choice = ru.choose(sm.Threshold(risk=0.05))
    assert choice.candidate is None
    assert choice.reason.startswith("Release nothing: ")
    assert "The nearest miss is A, draw 1 with 0.1." in choice.reason


def test_rules_on_means_choose_one_candidate(ru: sm.RUMap) -> None:
    # B has the mean risk 0.2 with a standard error of 0.1: 0.2 + 2.33 * 0.1 + 1.5 * sqrt(2) * 0.1 = 0.6451
    choice = ru.choose(sm.Threshold(risk=0.646, by="mean"))
    assert choice.method == "B"  # mean loss 0.35
    assert choice.candidate == "B-0"  # the draw of B with the least loss that is within the limit itself
    assert ru.choose(sm.Threshold(risk=0.645, by="mean")).method != "B"
    assert "mean risk" in choice.reason


def test_quantile_needs_enough_replicates(ru: sm.RUMap) -> None:
    with pytest.raises(sm.errors.PlanError, match="needs at least 20 replicates"):
        ru.choose(sm.Threshold(risk=0.3, by="quantile"))
    draws = [(0.1, 0.5)] * 18 + [(0.3, 0.5)] * 2  # mean 0.12, and 0.22 with the margin of a release
    many = sm.RUMap(scores_of({"A": draws, "B": [(0.18, 0.6)] * 20}), "R", "U")
    assert many.choose(sm.Threshold(risk=0.25, by="quantile")).method == "B"
    assert many.choose(sm.Threshold(risk=0.25, by="mean")).method == "A"


def test_linear_rule_agrees_with_path(ru: sm.RUMap) -> None:
    for low, high, name in ru.linear_path(by="release").select("from", "to", "id").iter_rows():
        slope = (low + min(high, low + 2)) / 2
        assert ru.choose(sm.Linear(slope=slope)).candidate == name
    assert ru.linear_path()["method"].to_list() == [
        "D",
        "B",
    ]  # means (.1, .8), (.2, .35); A lies above their line


def test_ideal_point_scales_by_anchors_or_bounds_never_by_candidates(ru: sm.RUMap) -> None:
    by_hand = ru.points.filter(~pl.col("anchor")).with_columns(
        d=((pl.col("risk") / 0.5) ** 2 + pl.col("utility") ** 2) / 2
    )
    assert ru.choose(sm.IdealPoint()).candidate == by_hand.sort("d")["id"][0]
    assert ru.choose(sm.IdealPoint(scale="bounds", weight=1)).risk == 0.1
    open_end = sm.RUMap(scores_of({"Identity": [(math.inf, 0.0)], "A": [(0.1, 0.2)]}), "R", "U")
    with pytest.raises(sm.errors.PlanError, match="two different finite ends"):
        open_end.choose(sm.IdealPoint())


def test_infinite_risk_never_passes() -> None:
    ru = sm.RUMap(scores_of({"A": [(math.inf, 0.1)], "B": [(0.2, 0.5)]}), "R", "U")
    assert ru.choose(sm.Threshold(risk=1e300)).method == "B"
    assert ru.choose(sm.Linear(slope=1)).method == "B"


def test_expectations_choose_method_and_draw_zero() -> None:
    people = sm.demo.population(200)
    measures = [sm.risk.KnownIndex(on="wage"), sm.utility.MeanPrecision(on="wage")]
    plan = sm.Plan(sm.grid(sm.Noise, on="wage", variance=[0.1, 0.5]), measures, replicates=30, seed=6)
    scores = sm.sweep(people, plan, workers=1)
    ru = sm.RUMap(scores, *measures)
    pooled = dict(scores.pooled(measures[0].text).select("method", "value").iter_rows())
    weak = "Noise(on='wage')"
    single = scores.column(measures[0].text).filter(pl.col("method") == weak)
    mse = [scores.estimates(measures[0].text)[one].parts["mse"] for one in single["id"]]
    assert pooled[weak] == pytest.approx(1 / np.mean(mse))
    choice = ru.choose(sm.Threshold(risk=pooled[weak] * 1.5))
    assert (choice.method, choice.replicate, choice.searched) == (weak, 0, 1)
    assert "fixed in advance" in choice.reason


def test_external_file_is_compared_with_candidates(ru: sm.RUMap) -> None:
    more = with_file(ru.scores, "argus.csv", {"R": sm.Estimate(value=0.05), "U": sm.Estimate(value=0.2)})
    assert sm.RUMap(more, "R", "U").frontier["method"].to_list() == ["argus.csv"]


def test_choice_among_releases_pools_no_draws() -> None:
    """Pooling the draws of every method takes most of the time of a choice; only an expectation is shown pooled."""
    ru = sm.RUMap(scores_of({"Identity": [(1.0, 0.0)], "A": [(0.2, 0.3), (0.1, 0.4)], "B": [(0.4, 0.1)]}), "R", "U")
    choice = ru.choose(sm.Threshold(risk=0.3))
    assert (choice.candidate, choice.risk, choice.utility) == ("A-0", 0.2, 0.3)
    assert "means" not in ru.__dict__
