"""Limits: the comparison that maps, rules, releases and pages share; and the release policy."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator

import sdcmap as sm
from commands import sdcmap
from sdcmap import testing
from sdcmap.core.estimate import Estimate
from sdcmap.core.limit import Absent, Limit, count_verdicts, strictest
from sdcmap.core.measure import Measure
from sdcmap.core.method import Method
from sdcmap.core.release_policy import DEFAULT_POLICY, ReleasePolicy
from sdcmap.data.microdata import Microdata
from sdcmap.errors import ContractBroken, PlanError

RISK, GAIN = sm.SmallCells(), sm.utility.SignificanceAgreement(models="wage ~ Age")
KEYS = ("Sex", "Hours", "Educ")
SYNTHETIC = sm.Synthesize(on=[*KEYS, "wage"])


@given(st.floats(0, 2), st.floats(0, 1), st.floats(0.01, 2), st.floats(0.5, 0.999))
def test_limit_is_met_when_the_confidence_limit_is_within_it(
    value: float, se: float, limit: float, level: float
) -> None:
    estimate = Estimate(value=value, se=se)
    upper, lower = Limit(RISK, limit).judge(estimate, level), Limit(GAIN, limit).judge(estimate, level)
    assert (upper.status == "met") == (estimate.upper(level) <= limit)
    assert (lower.status == "met") == (estimate.lower(level) >= limit)
    assert upper.share == pytest.approx(estimate.upper(level) / limit)
    assert (upper.status == "met") == bool(Limit(RISK, limit).admits(estimate.upper(level)))


def test_limit_is_not_tested_where_its_measure_does_not_apply() -> None:
    limit = Limit(RISK, 0.1, "the profile public-use")
    untested = limit.judge(Absent(applies=False, reason="fully synthetic."), 0.95)
    lacking = limit.judge(Absent(applies=True, reason="the column is constant."), 0.95)
    observed, over = (limit.judge(Estimate(value=value), 0.95) for value in (0.05, 0.2))
    assert [v.status for v in (untested, lacking, observed, over)] == ["not tested", "no value", "met", "exceeded"]
    assert math.isnan(untested.share) and untested.end is None
    assert count_verdicts([observed, untested]) == "meets the one tested limit (1 not tested)"
    assert count_verdicts([observed, observed, over, untested]) == "meets 2 of 3 tested limits (1 not tested)"
    assert count_verdicts([observed, observed, lacking]) == "meets both tested limits (1 without a value)"


def test_strictest_keeps_the_strictest_of_several_limits() -> None:
    limits = strictest([Limit(RISK, 0.2, "a"), Limit(RISK, 0.1, "b"), Limit(GAIN, 0.5, "a"), Limit(GAIN, 0.6, "b")])
    assert [(limit.value, limit.source) for limit in limits] == [(0.1, "b"), (0.6, "b")]


@pytest.fixture(scope="module")
def persons() -> Microdata:
    return sm.demo.population(200, seed=1).only((*KEYS, "wage"))


def test_choice_states_how_many_limits_were_tested(persons: Microdata) -> None:
    """Two of four limits cannot be tested for a fully synthetic file; they do not count as met."""
    near = sm.risk.ClosestRecord(on=(*KEYS, "wage"))
    measures = [sm.risk.ExactMatch(on=KEYS), sm.risk.Linkage("d", on="wage"), near, sm.Hellinger(on=KEYS)]
    limits = dict.fromkeys(measures, 1.0)
    plan = sm.Plan(SYNTHETIC, measures, limits=limits, rule=sm.Threshold(risk=1.0), risk=measures[2], seed=2**200 + 1)
    scores = sm.sweep(persons, plan, workers=1)
    choice = sm.RUMap(scores, plan.risk, plan.utility, plan.limits).choose(sm.Threshold(risk=1.0))
    status = {type(verdict.limit.measure).__name__: verdict.status for verdict in choice.verdicts}
    assert status == {"ExactMatch": "not tested", "Linkage": "not tested", "ClosestRecord": "met", "Hellinger": "met"}
    assert "meets both tested limits (2 not tested)" in choice.reason


def test_candidate_without_a_tested_limit_is_not_chosen(persons: Microdata) -> None:
    measures = [sm.risk.ExactMatch(on=KEYS), sm.SmallCells(on=KEYS), sm.Hellinger(on=KEYS)]
    plan = sm.Plan(SYNTHETIC, measures, limits={measures[0]: 1.0}, risk=measures[1], seed=3)
    ru = sm.RUMap(sm.sweep(persons, plan, workers=1), plan.risk, plan.utility, plan.limits)
    assert not ru.eligible(ru.points.filter(~pl.col("anchor"))).any()
    assert ru.choose(sm.Threshold(risk=1.0)).candidate is None


def test_utility_measures_can_have_limits(persons: Microdata, tmp_path: Path) -> None:
    """The weak swap meets the limit on its loss, the strong one does not; the release checks compare it as well."""
    weak, strong = (sm.Swap("Educ", rate=rate) for rate in (0.02, 0.2))
    loss = sm.Hellinger(on=KEYS)
    measures = [sm.SmallCells(on=KEYS), loss]
    plan = sm.Plan([weak, strong], measures, rule=sm.Threshold(risk=1.0), seed=2**200 + 5)
    scores = sm.sweep(persons, plan, workers=1)
    losses = dict(scores.column(loss.text).select("method", "value").iter_rows())
    between = (losses[weak.text] + losses[strong.text]) / 2
    plan = sm.Plan([strong, weak], measures, limits={"Hellinger": between}, rule=plan.rule, seed=plan.seed)
    assert sm.Plan.from_toml(plan.toml()) == plan
    ru = sm.RUMap(scores, plan.risk, plan.utility, plan.limits)
    eligible = dict(zip(ru.points["method"], ru.eligible(ru.points).tolist(), strict=True))
    assert eligible[weak.text] and not eligible[strong.text]
    anyway = dict.fromkeys(
        ("unmasked", "profile"), "a test of the loss"
    )  # a failed check of another kind would come before any measurement
    over = sm.release(persons, plan, sm.study.plan.Candidate(strong), ledger=tmp_path, override=anyway)
    failed = [check for check in over.check() if check.name == "loss"]
    assert len(failed) == 1 and not failed[0].passed and failed[0].verdict is not None
    assert failed[0].verdict.limit.value == between and failed[0].is_measured and failed[0].is_hard


# ---- the release policy ---------------------------------------------------------------------------------------
def test_changed_policy_number_needs_a_reason_and_is_kept(tmp_path: Path, persons: Microdata) -> None:
    with pytest.raises(PlanError, match=r"ReleasePolicy\.reason must say why draws differs from the default"):
        ReleasePolicy(draws=5)
    policy = ReleasePolicy(draws=5, reason="a pilot")
    plan = sm.Plan(sm.Swap("Sex"), [sm.SmallCells(on=KEYS), sm.Hellinger(on=KEYS)], policy=policy, seed=3)
    again = sm.Plan.from_toml(plan.toml())
    assert again == plan and again.policy.changes == {"draws": 5} and again.policy.draws == 5
    assert "policy" not in sm.Plan(sm.Swap("Sex"), plan.measures).toml()
    sm.sweep(persons, plan, tmp_path / "study", workers=1)
    with sm.Study.open(tmp_path / "study") as study:
        assert study.manifest["policy"] == {"reason": "a pilot", **policy.numbers}
    with pytest.raises(PlanError, match="draw.*Did you mean 'draws'"):
        sm.Plan.from_toml(plan.toml().replace("draws", "draw"))


def test_check_command_prints_the_policy(tmp_path: Path, persons: Microdata) -> None:
    persons.frame().write_csv(tmp_path / "people.csv")
    place = tmp_path / "plan.toml"
    source = sm.files.Source("people.csv", KEYS, ("wage",))
    policy = ReleasePolicy(comparison_level=0.9, reason="a rehearsal")
    sm.Plan(sm.Swap("Sex"), [sm.SmallCells(on=KEYS), sm.Hellinger(on=KEYS)], policy=policy, data=source).write(place)
    result = json.loads(sdcmap("check", place, "--json").stdout)
    assert result["policy"] == {"reason": "a rehearsal", **DEFAULT_POLICY.numbers, "comparison_level": 0.9}
    printed = sdcmap("check", place).stdout
    assert "comparison_level 0.9 (changed)" in printed and "Changed because: a rehearsal" in printed
    assert "draws 3," in printed


# ---- classes that break their contract ------------------------------------------------------------------------
@dataclass(frozen=True)
class FloatRisk(Measure):
    """Returns a number instead of an Estimate."""

    axis: ClassVar[Literal["risk", "utility"]] = "risk"
    on: tuple[str, ...] = ("wage",)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        return 0.5  # type: ignore[return-value]


@dataclass(frozen=True)
class FrameMethod(Method):
    """Returns a frame instead of Microdata."""

    on: tuple[str, ...] = ("wage",)

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        return data.frame()  # type: ignore[return-value]


@dataclass(frozen=True)
class NeverApplied(Method):
    """Masks a column that no file has, so that no law can be tested."""

    on: str = "no such column"

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        raise AssertionError("it is never called")


def test_measure_that_returns_a_number_breaks_its_contract(persons: Microdata) -> None:
    plan = sm.Plan(sm.Noise("wage"), [FloatRisk(), sm.IL1s()], seed=1)
    with pytest.raises(
        ContractBroken, match=r"FloatRisk returned float, not an Estimate: return Estimate\(value=...\)"
    ):
        sm.sweep(persons, plan, workers=1)
    with pytest.raises(ContractBroken):
        sm.score(persons, persons, FloatRisk())
    with pytest.raises(testing.LawBroken, match="returned float"):
        testing.check_measure(FloatRisk(), persons)


def test_method_that_returns_a_frame_breaks_its_contract(persons: Microdata) -> None:
    with pytest.raises(ContractBroken, match="FrameMethod returned DataFrame, not Microdata"):
        sm.sweep(persons, sm.Plan(FrameMethod(), [sm.SmallCells(on=KEYS), sm.IL1s()], seed=1), workers=1)


def test_check_fails_when_no_law_could_be_tested(persons: Microdata) -> None:
    with pytest.raises(testing.LawBroken, match="cannot be applied to the data, so nothing was tested"):
        testing.check_method(NeverApplied(), persons)
    with pytest.raises(testing.LawBroken, match="no value for any of the files, so nothing was tested"):
        testing.check_measure(sm.risk.ExactMatch(on="no such column"), persons)


def test_measure_may_return_a_subclass_of_estimate() -> None:
    made: Any = Estimate(value=1.0)
    assert FloatRisk()._check_estimate(made) is made
