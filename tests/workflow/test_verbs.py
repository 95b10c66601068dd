"""What is chosen in a study when nothing, a rule, other axes or a candidate is given."""

from __future__ import annotations

from pathlib import Path

import pytest

import sdcmap as sm
from samples import PROFILE_OVERRIDES
from sdcmap.errors import PlanError, SdcmapError
from sdcmap.workflow import choose, open_map, own_choice, prepare_release, report
from web_workspace import ALIKE, COUNTED, plan_of, sweep_study


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("verbs").resolve()
    sweep_study(home, rates=(0.05,), replicates=2, measures=[COUNTED, ALIKE], risk="SmallCells")
    return home / "cps"


@pytest.fixture(scope="module")
def no_rule(study: Path) -> Path:
    """A study whose plan states no rule and no utility measure."""
    plan = plan_of(study.parent, rates=(0.05,), replicates=1)
    bare = sm.Plan(plan.methods, [sm.SmallCells()], data=plan.data, seed=(1 << 200) + 7)
    sm.sweep(plan.data.read(study.parent), bare, study.parent / "bare", workers=1)  # type: ignore[union-attr]
    return study.parent / "bare"


def test_open_map_uses_plan_unless_axes_or_limits_are_given(study: Path) -> None:
    with sm.Study.open(study) as opened:
        plan, scores = opened.plan, opened.scores()
        assert open_map(opened).points.equals(sm.RUMap(scores, plan.risk, plan.utility).points)
    other = open_map(study, [ALIKE.text], COUNTED.text, {"SmallCells": 0.5})
    assert (other.risk, other.utility, other.limits_by_name) == (
        (ALIKE.text,),
        COUNTED.text,
        {"SmallCells": 0.5},
    )


def test_choose_uses_plans_rule_unless_another_is_given(study: Path) -> None:
    ru = open_map(study)
    plan = ru.scores.plan
    assert plan is not None and plan.rule is not None
    assert choose(study) == ru.choose(plan.rule) == own_choice(study)
    assert choose(study, sm.Linear(slope=0.3)) == ru.choose(sm.Linear(slope=0.3))
    other = open_map(study, [ALIKE.text])
    assert own_choice(study, other) is None, "the rule speaks of another risk"
    assert choose(study, sm.Threshold(risk=1.0), on=other) == other.choose(sm.Threshold(risk=1.0))


def test_candidate_named_by_person_is_rules_choice_or_pick_with_reason(study: Path) -> None:
    own = choose(study)
    assert choose(study, candidate=own.name) == own, "its runners-up are known too"
    ru = open_map(study)
    row = next(row for row in ru.points.to_dicts() if row["id"] != own.candidate)
    picked = choose(study, candidate=row["id"], reason="the board prefers it")
    assert picked.is_picked and picked.reason.endswith(
        "was picked by a person, not by the rule. Reason: the board prefers it"
    )
    assert (picked.candidate, picked.risk, picked.utility) == (row["id"], row["risk"], row["utility"])
    with pytest.raises(PlanError, match="no candidate"):
        choose(study, candidate="nobody")


def test_plan_without_rule_needs_named_candidate(no_rule: Path, tmp_path: Path) -> None:
    with sm.Study.open(no_rule) as opened:
        candidate = next(one for one in opened.plan.candidates if one.kind == "candidate").id
        with pytest.raises(PlanError, match="needs a risk measure"):
            choose(opened)
        picked = choose(opened, candidate=candidate)
        made = prepare_release(opened, picked, override=PROFILE_OVERRIDES, ledger=tmp_path / "ledger")
        assert made.candidate.id == candidate and made.study is opened
    with pytest.raises(SdcmapError, match="needs a risk measure|no score on the axes"):
        report(no_rule, picked)
