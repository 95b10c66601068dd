"""Default risk measures, limits of single measures, and census files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from commands import sdcmap
from samples import release_with_overrides as release
from samples import same_rows
from sdcmap.data.microdata import Microdata
from sdcmap.errors import PlanError, SchemaError
from sdcmap.files.working_copy import open_copy, write_copy
from sdcmap.study.cost import count_refits, estimate_seconds
from sdcmap.study.plan import Candidate
from sdcmap.study.plan_remarks import remarks
from sdcmap.study.profiles import DEFAULT_RISK_CLASSES, default_risk, explain_unmeasured

SEED = 2**200 + 1
LIMITS = {"WorstLinkage": 0.5, "AttributeInference": 0.5, "ClosestRecord": 0.9}
ALL = ["sex", "area", "ill", "wage"]
SYNTHETIC = sm.methods.Synthesize(on=ALL)


def frame(n: int = 150) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "sex": rng.choice(["f", "m"], n),
            "area": rng.integers(0, 5, n).astype(str),
            "ill": rng.choice(["no", "yes"], n),
            "wage": rng.lognormal(7, 1, n).round(2),
        }
    )


def people(*, census: bool = False) -> Microdata:
    return sm.read(frame(), keys=["sex", "area"], sensitive=["ill"], numeric=["wage"], census=census)


def plan_of(**given: object) -> sm.Plan:
    return sm.Plan([SYNTHETIC, sm.Noise(on="wage", variance=0.5)], sm.Hellinger(), seed=SEED, **given)  # type: ignore[arg-type]


def synthetic_of(plan: sm.Plan) -> Candidate:
    return next(candidate for candidate in plan.candidates if candidate.method == SYNTHETIC)


# ---- default risk ---------------------------------------------------------------------------------------------
def test_default_risk_has_a_measure_or_a_reason_for_each_kind() -> None:
    measures, off = default_risk(people())
    infer = sm.risk.AttributeInference("ill", worst=True)
    assert measures == (sm.WorstLinkage(), infer, sm.risk.ClosestRecord())
    assert not off and tuple(type(measure).__name__ for measure in measures) == DEFAULT_RISK_CLASSES
    amounts = sm.read(frame(), sensitive=["ill"], numeric=["wage"], other=["sex", "area"])
    assert default_risk(amounts)[0][1] == sm.risk.AttributeInference("ill", ["wage"], worst=True)
    nobody = sm.read(frame(), keys=["sex", "area", "ill"], numeric=["wage"], census=True)
    measures, off = default_risk(nobody)
    inferred = {"sex": ("area", "ill", "wage"), "area": ("sex", "ill", "wage"), "ill": ("sex", "area", "wage"),
                "wage": ("sex", "area", "ill")}  # fmt: skip
    assert set(measures) == {
        sm.WorstLinkage(), *(sm.risk.AttributeInference(secret, known, worst=True) for secret, known in inferred.items())
    }  # fmt: skip
    alone = sm.read(frame().select("sex"), keys=["sex"])
    assert "not two that others could know" in default_risk(alone)[1]["AttributeInference"]
    assert "census" in off["ClosestRecord"]


def test_plan_with_a_risk_measure_is_unchanged() -> None:
    named = sm.Plan(SYNTHETIC, [sm.SmallCells(), sm.Hellinger()])
    assert named.with_risk(people()) is named
    losses = sm.Plan(SYNTHETIC, sm.Hellinger())  # it has no rule and no limits
    assert losses.with_risk(people()) is losses
    by_rule = sm.Plan(SYNTHETIC, sm.Hellinger(), rule=sm.Threshold(risk=0.1))
    assert len(by_rule.with_risk(people()).measures) == 4 and not by_rule.with_risk(people()).seed_stated
    assert explain_unmeasured(people(census=True), named.measures) == []


def test_plan_without_a_risk_measure_gets_all_three(tmp_path: Path) -> None:
    """The synthetic file has values of inference and membership but no linkage; the study stores all three."""
    data, plan = people(), plan_of(limits=LIMITS)
    scores = sm.sweep(data, plan, tmp_path / "study", workers=1)
    swept = scores.plan
    assert swept is not None and swept.risk == ("WorstLinkage",) and plan.risk == ()
    assert swept.limits == {
        "WorstLinkage": 0.5,
        "AttributeInference(secret='ill', worst=True)": 0.5,
        "ClosestRecord": 0.9,
    }
    synthetic = scores.candidate.filter(pl.col("method") == SYNTHETIC.text)["id"][0]
    status = dict(scores.score.filter(pl.col("candidate") == synthetic).select("measure", "status").iter_rows())
    assert status == {
        "Hellinger": "ok", "WorstLinkage": "unpaired", "AttributeInference(secret='ill', worst=True)": "ok",
        "ClosestRecord": "ok",
    }  # fmt: skip
    assert same_rows(scores, sm.sweep(data, plan, tmp_path / "study", workers=1))
    with sm.Study.open(tmp_path / "study") as study:
        assert study.plan == swept
    report = sm.report(tmp_path / "study").html
    assert "Membership inference (nearest record): 0.9" in report and "Not measured" not in report


def test_risk_axis_may_be_the_worst_share_of_limits() -> None:
    data = people()
    scores = sm.sweep(data, plan_of(risk=DEFAULT_RISK_CLASSES, limits=LIMITS), workers=1)
    assert scores.plan is not None and len(scores.plan.risk) == 3
    ru = sm.RUMap(scores, scores.plan.risk, "Hellinger", scores.plan.limits)
    assert set(ru.means["method"]) == {"Identity", SYNTHETIC.text, sm.Noise(on="wage", variance=0.5).text}
    assert "share of its limit" in ru.labels[0]


def test_remarks_and_cost_count_refits() -> None:
    data, written = people(), plan_of(replicates=3, limits={"ClosestRecord": 0.6})
    plan = written.with_risk(data)
    assert count_refits(data, plan) == 3 * 2 and count_refits(data, written) == 0
    result = list(remarks(data, plan, written))
    assert result[0].startswith(
        "The plan names no risk measure. These were added: WorstLinkage, AttributeInference(secret='ill'"
    )
    assert "6 more releases (refits) are made" in result[1] and "No limit is stated for AttributeInference" in result[2]
    assert next(remarks(data, plan, plan)) == result[1]
    assert estimate_seconds(data, plan) > 0


# ---- limits ---------------------------------------------------------------------------------------------------
def test_limits_by_measure_survive_toml_and_are_validated() -> None:
    two = [sm.SmallCells(), sm.SmallCells(n=2), sm.risk.ClosestRecord(), sm.Hellinger()]
    plan = sm.Plan(SYNTHETIC, two, limits={"SmallCells": 0.1, sm.SmallCells(n=2): 0.2, "ClosestRecord": 0.6})
    assert plan.limits == {"SmallCells": 0.1, "ClosestRecord": 0.6, "SmallCells(n=2)": 0.2}
    assert sm.Plan.from_toml(plan.toml()) == plan and "[limits]" in plan.toml() and isinstance(hash(plan), int)
    of_class = sm.Plan(SYNTHETIC, [sm.SmallCells(n=2), sm.SmallCells(n=4)], limits={"SmallCells": 0.1})
    assert of_class.limits == {"SmallCells(n=2)": 0.1, "SmallCells(n=4)": 0.1}
    with pytest.raises(PlanError) as wrong:
        sm.Plan(SYNTHETIC, two, limits={"SmallCell": 0.1, "ClosestRecord": -0.1})
    assert "Did you mean 'SmallCells'" in wrong.value.problems[0] and "must be at least 0" in wrong.value.problems[1]
    with pytest.raises(PlanError, match="limits a list or a table of numbers"):
        sm.Plan.from_toml(plan.toml().replace("0.6", "'much'"))


def test_release_is_compared_with_the_limit_of_every_measure(tmp_path: Path) -> None:
    """Linkage does not apply to a synthetic file, so the other limits decide, each in its own unit."""
    data = people()
    for most, names in ((0.9, set()), (0.4, {"risk"})):
        plan = plan_of(limits={**LIMITS, "ClosestRecord": most}).with_risk(data)
        checks = release(data, plan, synthetic_of(plan)).check()
        assert {check.name for check in checks if not check.passed} == names
        said = [check.reason for check in checks if check.name == "risk"]
        assert "Attribute inference" in said[0] and f"the limit of {most:g}" in said[1]
        assert said[2] == "WorstLinkage was not tested because the file is fully synthetic. The other limits decide."
    alone = plan_of(limits={"WorstLinkage": 0.9}).with_risk(data)
    checks = release(data, alone, synthetic_of(alone)).check()
    assert [check.name for check in checks if not check.passed] == ["risk"]
    line = next(check.reason for check in checks if check.name == "limit")
    assert line.endswith("none for AttributeInference(secret='ill', worst=True) and ClosestRecord.")


# ---- a census -------------------------------------------------------------------------------------------------
def test_membership_is_not_measured_in_a_census(tmp_path: Path) -> None:
    data = people(census=True)
    with pytest.raises(SchemaError, match="off: the file is a census"):
        sm.score(data, data, sm.risk.ClosestRecord())
    plan = plan_of(limits=LIMITS)
    scores = sm.sweep(data, plan, tmp_path / "study", workers=1)
    assert "ClosestRecord" not in scores.measure["name"].to_list()
    assert scores.plan is not None and set(scores.plan.limits) == {
        m for m in scores.measure["name"] if m != "Hellinger"
    }
    assert "Not measured: ClosestRecord is off: the file is a census" in sm.report(tmp_path / "study").html
    assert "census" in sm.Plan([SYNTHETIC], sm.risk.ClosestRecord()).problems_with(data)[0]


def test_census_flag_is_stored_with_the_file(tmp_path: Path) -> None:
    census, sample = people(census=True), people()
    assert census.digest != sample.digest and sm.read(census).schema.census
    assert open_copy(write_copy(census, tmp_path), census.digest).schema.census
    compared = sm.compare(census, replicates=1, seed=1, workers=1)
    assert compared.plan.risk[0].startswith("AttributeInference") and compared.inside.schema.census


def test_commands_report_a_census(tmp_path: Path) -> None:
    frame().write_csv(tmp_path / "people.csv")
    roles = ("--keys", "sex,area", "--sensitive", "ill", "--numeric", "wage")
    sdcmap("look", tmp_path / "people.csv", *roles, "--census", "-o", tmp_path / "look.toml")
    assert "census = true" in (tmp_path / "look.toml").read_text()
    source = sm.files.Source("people.csv", ("sex", "area"), ("wage",), ("ill",), census=True)
    plan_of(data=source).write(tmp_path / "plan.toml")
    out = sdcmap("check", tmp_path / "plan.toml").stdout
    assert "ClosestRecord is off: the file is a census" in out and "The plan names no risk measure" in out
    assert "2 more releases (refits) are made" in out
