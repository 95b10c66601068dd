"""Decisions on an expectation R = 1/MSE: pooled values with intervals, margins of limits, draws that are needed, units.

Duncan, Keller-McNulty, Stokes (2001), section 4, eq. 12 to 14. The expected numbers are computed in plain numpy.
"""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from commands import sdcmap
from sdcmap.bundle.limit_checks import limits_of
from sdcmap.charts.map_contents import map_info
from sdcmap.core.limit import EfficiencyLimit, ErrorLimit, Limit
from sdcmap.errors import PlanError
from sdcmap.map import RUMap
from sdcmap.reports.decision import decision_sentences, limit_rows, risk_changes
from sdcmap.study.scores import Scores

SEED = 2**200 + 5
DRAWS = 100
POSITION, MEAN = sm.risk.Position(on="income"), sm.utility.MeanPrecision(on="income")
LIMIT = 4e-8  # a typical error of 5,000


@pytest.fixture(scope="module")
def incomes() -> np.ndarray:
    return np.exp(np.random.default_rng(3).normal(10.2, 0.6, 500)).round()


@pytest.fixture(scope="module")
def data(incomes: np.ndarray) -> sm.Microdata:
    return sm.read(pl.DataFrame({"income": incomes}), numeric=["income"], sensitive=["income"])


@pytest.fixture(scope="module")
def plan() -> sm.Plan:
    methods = [sm.Noise(on="income", variance=variance) for variance in (0.05, 0.3)]
    limits = {"Position": {"error": 5000}}
    return sm.Plan(methods, [POSITION, MEAN], DRAWS, limits=limits, rule=sm.Threshold(risk=LIMIT), seed=SEED)


@pytest.fixture(scope="module")
def study(data: sm.Microdata, plan: sm.Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("incomes") / "study"
    sm.sweep(data, plan, folder, workers=1)
    return folder


@pytest.fixture(scope="module")
def scores(study: Path) -> Scores:
    with sm.Study.open(study) as opened:
        return opened.scores()


@pytest.fixture(scope="module")
def ru(scores: Scores, plan: sm.Plan) -> RUMap:
    return RUMap.of_plan(scores, plan)


@pytest.fixture(scope="module")
def squared_errors(incomes: np.ndarray, data: sm.Microdata, plan: sm.Plan) -> np.ndarray:
    """The squared error of the largest value in each of the 100 files with 30 % noise, read off the files themselves."""
    files = (plan.make(data, candidate) for candidate in plan.candidates if "0.3" in candidate.method.text)
    return np.array([(masked.numbers("income").max() - incomes.max()) ** 2 for masked in files])


# ---- the pooled value with its interval is shown, not one draw ---------------------------------------------------
def test_choice_and_report_show_the_pooled_risk(ru: RUMap, plan: sm.Plan, squared_errors: np.ndarray) -> None:
    choice = ru.choose(sm.Threshold(risk=LIMIT))
    assert "0.3" in choice.method and len(squared_errors) == DRAWS
    pooled, own = 1 / squared_errors.mean(), 1 / squared_errors[0]
    assert abs(own / pooled - 1) > 0.2  # the released draw alone says something else
    assert choice.risk == pytest.approx(pooled, rel=1e-9)
    low, high = choice.risk_interval or (0, 0)
    error = squared_errors.std(ddof=1) / np.sqrt(DRAWS)
    assert high == pytest.approx(1 / (squared_errors.mean() - 1.959964 * error), rel=1e-6) and low < pooled
    # The board reads the same number in the sentences, the table of limits and the chart.
    sentences = decision_sentences(plan, ru.scores, choice, 500)
    assert f"the risk is {pooled:.2e} (pooled over 100 draws; 95 % interval {low:.2e} to {high:.2e}" in sentences[1]
    assert f"typical error {pooled**-0.5:,.0f}"[:17] in sentences[1]
    (row,) = limit_rows(ru.scores, choice)
    assert row.after == f"{pooled:.2e}" and "pooled over 100 draws" in row.note
    assert row.limit_note == "typical error 5,000 in income"
    (change,) = risk_changes(plan, ru.scores, choice).values()
    assert change.after == pytest.approx(pooled / LIMIT)
    assert change.interval == pytest.approx((low / LIMIT, high / LIMIT))


def test_commands_show_the_pooled_risk(study: Path, squared_errors: np.ndarray, tmp_path: Path) -> None:
    chosen = json.loads(sdcmap("choose", study, "--json").stdout)
    assert chosen["risk"] == pytest.approx(1 / squared_errors.mean())
    assert chosen["risk_interval"][0] < chosen["risk"] < chosen["risk_interval"][1]
    assert chosen["limits"][0]["value"] == chosen["risk"] < chosen["limits"][0]["compared"]
    sdcmap("report", study, "-o", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "pooled over 100 draws; 95 % interval" in page and f"{1 / squared_errors[0]:.3g}" not in page


def test_realized_and_pooled_knowledge_are_shown(data: sm.Microdata) -> None:
    """IEK and SEK are defined given the released data (Trottini 2001, definitions 3 and 7); the pooled value decides."""
    iek = sm.risk.IntruderKnowledge(on="income", scenario="noise")
    sek = sm.utility.SocietyKnowledge(on="income")
    rule = sm.Threshold(risk=-0.001)
    plan = sm.Plan(sm.Noise(on="income", variance=0.5), [iek, sek], 10, rule=rule, limits={}, seed=SEED)
    ru = RUMap.of_plan(sm.sweep(data, plan, workers=1), plan)
    choice = ru.choose(rule)
    draws = ru.scores.column(iek.text).filter(pl.col("method") == choice.method)["value"]
    assert choice.risk == pytest.approx(draws.mean())
    own = ru.scores.estimates(iek.text)[choice.candidate or ""].value
    assert f"this release alone: {own:.3g}; the pooled value decides" in choice.reason
    assert "this release alone" in decision_sentences(plan, ru.scores, choice, 500)[1]


# ---- a limit has a Monte-Carlo margin ------------------------------------------------------------------------------
def test_limit_on_expectation_is_not_met_by_luck() -> None:
    """Exact R is 4.77e-8 against a limit of 4e-8: the pooled value of 100 draws is within the limit in 12 % of cases."""
    rng = np.random.default_rng(0)
    limit = Limit(POSITION, LIMIT)
    by_value = by_limit = 0
    for _ in range(1000):
        errors = rng.normal(0, 4.77e-8**-0.5, 100) ** 2
        draws = [sm.Estimate(value=1 / error, parts={"squared_error": error}) for error in errors.tolist()]
        pooled = POSITION.pool_draws(draws, is_random=True)
        by_value += pooled.value <= LIMIT
        by_limit += limit.judge(pooled, 0.95).status == "met"
    assert 60 < by_value < 180  # what the rule compared before
    assert by_limit < 10


def test_one_draw_of_a_random_method_meets_no_limit() -> None:
    one = [sm.Estimate(value=1e-12, parts={"squared_error": 1e12})]
    limit = Limit(POSITION, LIMIT)
    assert limit.judge(POSITION.pool_draws(one, is_random=True), 0.95).status == "exceeded"
    assert limit.judge(POSITION.pool_draws(one, is_random=False), 0.95).status == "met"  # exact: there is only one draw


def test_threshold_compares_the_eligibility_limit(ru: RUMap, squared_errors: np.ndarray) -> None:
    """The release is expected to have the error s of the study: its margin is 2.33 s + 1.5 sqrt(s^2 + s^2)."""
    z = 2.33 + 1.5 * np.sqrt(2)
    end = 1 / (squared_errors.mean() - z * squared_errors.std(ddof=1) / np.sqrt(DRAWS))
    row = ru.means.filter(pl.col("method").str.contains("0.3")).row(0, named=True)
    assert row["risk_end"] == pytest.approx(end, rel=1e-5)
    without_limits = RUMap(ru.scores, ru.risk, ru.utility)
    assert without_limits.choose(sm.Threshold(risk=end * 1.001)).candidate is not None
    miss = without_limits.choose(sm.Threshold(risk=end * 0.999))
    assert row["risk"] < end * 0.999 and miss.candidate is None and f"with {end:.4g}" in miss.reason


@pytest.mark.parametrize(
    ("measure", "needed"), [(POSITION, 72), (sm.risk.Index(on="income"), 72), (sm.risk.KnownIndex(on="income"), 10)]
)
def test_plan_with_too_few_draws_is_refused(data: sm.Microdata, measure: sm.Measure, needed: int) -> None:
    """With M draws the upper limit of R is R/(1 - z sqrt(2/M)): twice R at z = 3 for M = 72."""
    methods, measures = sm.Noise(on="income"), [measure, sm.IL1s(on="income")]
    few, enough = (sm.Plan(methods, measures, count, limits={measure: 1.0}) for count in (needed - 1, needed))
    (problem,) = few.problems_with(data)
    assert f"needs at least {needed} draws" in problem and f"replicates = {needed} or more" in problem
    assert not enough.problems_with(data)
    with pytest.raises(PlanError, match="at least"):
        sm.sweep(data, few, workers=1)
    # A plan that only measures, or whose methods have no randomness, needs no more draws.
    assert not sm.Plan(methods, measures).problems_with(data)
    assert not sm.Plan(sm.TopCode(on="income", top=0.05), measures, limits={measure: 1.0}).problems_with(data)


def test_check_says_how_many_draws_are_needed(tmp_path: Path, incomes: np.ndarray) -> None:
    pl.DataFrame({"income": incomes}).write_csv(tmp_path / "incomes.csv")
    plan = """
    [data]
    path = "incomes.csv"
    numeric = ["income"]
    sensitive = ["income"]
    [limits]
    Position = {error = 5000}
    [[methods]]
    type = "Noise"
    on = ["income"]
    [[measures]]
    type = "Position"
    on = "income"
    [[measures]]
    type = "MeanPrecision"
    on = "income"
    """
    (tmp_path / "plan.toml").write_text(plan)
    said = sdcmap("check", tmp_path / "plan.toml", code=2)
    assert "needs at least 72 draws of each method. The plan has 1: state replicates = 72 or more." in said.stdout
    (tmp_path / "plan.toml").write_text(f"replicates = 72\n{plan}")
    assert "is valid" in sdcmap("check", tmp_path / "plan.toml").stdout


# ---- readable units ------------------------------------------------------------------------------------------------
def test_limit_stated_as_an_error(plan: sm.Plan) -> None:
    assert plan.limits == {POSITION.text: pytest.approx(LIMIT)}
    assert "error = 5000" in plan.toml()
    again = sm.Plan.from_toml(plan.toml())
    assert again == plan and again.toml() == plan.toml()
    assert pickle.loads(pickle.dumps(ErrorLimit(5000))).error == 5000
    for limits, message in (
        ({"Position": {"error": -1}}, "must be a number above 0"),
        ({"Position": {"mistake": 1}}, "must be a number, or a table such as"),
        ({"IL1s": {"error": 1}}, "cannot be stated as an error"),
    ):
        with pytest.raises(PlanError, match=message):
            sm.Plan(sm.Noise(on="income"), [POSITION, sm.IL1s(on="income")], limits=limits)


def test_limit_stated_as_an_efficiency(ru: RUMap, data: sm.Microdata, incomes: np.ndarray) -> None:
    """U is at least 0.8 times n/S^2 of the unmasked file: the limit that map, choice and release compare."""
    methods = [sm.Noise(on="income", variance=variance) for variance in (0.05, 0.3)]
    plan = sm.Plan(methods, [POSITION, MEAN], DRAWS, limits={"MeanPrecision": {"efficiency": 0.8}}, seed=SEED)
    assert "efficiency = 0.8" in plan.toml() and sm.Plan.from_toml(plan.toml()) == plan
    assert plan != sm.Plan(methods, [POSITION, MEAN], DRAWS, limits={MEAN: {"efficiency": 0.9}}, seed=SEED)
    unmasked = len(incomes) / incomes.var(ddof=1)
    limited = RUMap.of_plan(ru.scores, plan)
    (limit,) = limited.limits
    assert limit.value == pytest.approx(0.8 * unmasked) and not limit.is_upper
    (checked,) = limits_of(plan, data, [plan.rule])
    assert checked.value == pytest.approx(0.8 * unmasked)
    assert pickle.loads(pickle.dumps(limit.value)) == limit.value == plan.limits[MEAN.text]
    assert float(pickle.loads(pickle.dumps(limit.value))) == pytest.approx(0.8 * unmasked)
    # Noise of 30 % leaves about 1/1.3 = 77 % of the precision, noise of 5 % about 95 %.
    assert "0.05" in limited.choose(sm.Threshold(risk=1.0)).method
    strict = RUMap.of_plan(ru.scores, plan, limits={MEAN.text: {"efficiency": 0.99}})
    assert "99 % of the precision of the unmasked file" in strict.choose(sm.Threshold(risk=1.0)).reason
    assert any("80 % of the precision of the unmasked file" in text for text in map_info(limited).lines["text"])


def test_efficiency_of_an_unknown_unmasked_file_is_met_by_nothing(ru: RUMap) -> None:
    assert not Limit(MEAN, EfficiencyLimit(0.1)).admits(1e9)
    assert not Limit(MEAN, EfficiencyLimit(0.1).relative_to(np.inf)).admits(1e9)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"Position": {"efficiency": 0.9}}, "it is no user's precision"),
        ({"MeanPrecision": {"efficiency": 90}}, "above 0 and at most 1"),
        ({"MeanPrecision": {"efficiency": 0.9, "error": 1}}, "must be a number, or a table such as"),
        ({"IL1s": {"efficiency": 0.9}}, "cannot be stated as an efficiency"),
    ],
)
def test_plan_refuses_efficiencies_without_a_meaning(limits: dict[str, object], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        sm.Plan(sm.Noise(on="income"), [POSITION, MEAN, sm.IL1s(on="income")], limits=limits)


def test_commands_take_limits_as_efficiencies(study: Path) -> None:
    weak, strong = ("--limit", "MeanPrecision=efficiency:0.5"), ("--limit", "MeanPrecision=efficiency:0.99")
    assert "95 % interval" in sdcmap("choose", study, *weak).stdout
    refused = sdcmap("choose", study, *strong, code=3).stdout
    assert refused.startswith("Release nothing") and "99 % of the precision of the unmasked file" in refused
    wrong = sdcmap("choose", study, "--limit", "MeanPrecision=efficiency:much", code=2).stderr
    assert "MeanPrecision=efficiency:0.9" in wrong


def test_map_labels_errors_and_efficiency(ru: RUMap) -> None:
    info = map_info(ru, mark=ru.choose(sm.Threshold(risk=LIMIT)))
    assert "as the attacker's typical error" in info.y.title and info.y.label.startswith("format(1 / sqrt")
    errors = sorted(tick**-0.5 for tick in info.y.ticks)
    assert len(errors) >= 3 and all(error == pytest.approx(round(error, -2)) for error in errors)
    assert "relative to the unmasked file" in info.x.title
    whole = ru.points.filter("anchor")["utility"][0]
    assert {round(tick / whole, 6) for tick in info.x.ticks} <= {round(share / 20, 6) for share in range(30)}
    assert any("typical error 5,000 in income" in text for text in info.lines["text"])
    own = map_info(ru, units="own")
    assert not own.y.ticks and "1/(variable's unit)^2" in own.y.title
    with pytest.raises(PlanError, match="'readable' or 'own'"):
        map_info(ru, units="dollars")


def test_axis_of_several_attackers_shows_typical_errors(data: sm.Microdata) -> None:
    methods = [sm.Noise(on="income", variance=variance) for variance in (0.1, 0.3, 1.0)]
    known = sm.risk.KnownIndex(on="income")
    plan = sm.Plan(methods, [POSITION, known, MEAN], 2, seed=SEED)
    ru = RUMap(sm.sweep(data, plan, workers=1), [POSITION, known], MEAN)
    axis = map_info(ru).y
    assert axis.title == "Risk of each attacker, as the typical error in income"
    assert axis.label.startswith("format(1 / sqrt") and len(axis.ticks) >= 3
    shares = RUMap(ru.scores, [POSITION, known], MEAN, {POSITION: LIMIT, known: LIMIT})
    assert "sqrt" not in map_info(shares).y.label  # shares of limits have no error


def test_choose_by_the_attackers_error(study: Path, tmp_path: Path) -> None:
    by_error = sdcmap("choose", study, "--min-error", 5000)
    assert by_error.stdout == sdcmap("choose", study, "--max-risk", LIMIT).stdout
    assert "typical error" in by_error.stdout and "% of the precision of the unmasked file" in by_error.stdout
    assert "1 over a squared error" in sdcmap("choose", study, "--min-error", -1, code=2).stderr
    for units, label in (("readable", "sqrt(datum.value)"), ("own", "format(datum.value")):
        sdcmap("map", study, "-o", tmp_path / "map.html", "--units", units)
        assert label in (tmp_path / "map.html").read_text()


def test_wide_risk_axis_is_logarithmic(data: sm.Microdata) -> None:
    methods = [sm.Noise(on="income", variance=variance) for variance in (0.01, 0.1, 1.0)]
    known = sm.risk.KnownIndex(on="income")
    ru = RUMap.of_plan(scores := sm.sweep(data, plan := sm.Plan(methods, [known, MEAN], 2, seed=SEED), workers=1), plan)
    info = map_info(ru)
    assert info.y.is_log and not info.x.is_log and len(info.y.ticks) >= 4
    assert info.y.share(float(np.sqrt(info.y.low * info.y.high))) == pytest.approx(0.5)
    assert [info.y.at(info.y.share(y)) for y in info.means["y"]] == pytest.approx(info.means["y"].to_list())
    (panel,) = (part for part in ru.draw().to_dict()["hconcat"] if "encoding" in part)
    assert panel["encoding"]["y"]["scale"]["type"] == "log"
    narrow = RUMap.of_plan(scores, plan).among(means=ru.means.filter(pl.col("risk") < 20 * pl.col("risk").min()))
    assert not map_info(narrow, by="mean").y.is_log
    # A line of equal cost is a curve there, and its pieces join.
    lines = map_info(ru, mark=ru.choose(sm.Linear(slope=0.1))).lines.filter(kind="tangent")
    assert len(lines) > 10 and lines["x2"].to_list()[:-1] == lines["x"].to_list()[1:]
