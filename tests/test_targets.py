"""The targets of the benchmarks in short: few runs with fixed seeds, and bands so wide that only a large change fails.

The scripts in bench/targets/ run the whole targets. Here each attack must also succeed where it should: a test that nothing
can fail would say nothing.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import demo_refusals
import kept_relations
import largest_value
import measure_errors
import resumable_runs
import rival_syntheses
import sdcmap as sm
import shadow_models
import simulated_studies
import toy_runs
import whole_workflow
import within_limits
from made_files import FILES, METHODS
from resumable_runs import FIRST_SEED, Facts, Figure, Target, binomial_band, missing_runs, read_lines
from sdcmap.core import Estimate, Stream
from sdcmap.methods import Identity, Synthesize
from sdcmap.risk import ClosestRecord

SCRIPTS = (
    largest_value,
    shadow_models,
    simulated_studies,
    measure_errors,
    within_limits,
    demo_refusals,
    kept_relations,
    rival_syntheses,
    whole_workflow,
)


# ---- runs that can be continued -------------------------------------------------------------------------------
def mean_figure(lines: list[Facts]) -> list[Figure]:
    mean = float(np.mean([line["doubled"] for line in lines]))
    return [Figure("mean", mean, (mean, mean), 5.0, len(lines))]


def test_finished_runs_are_continued_and_failed_ones_are_made_again(tmp_path: Path) -> None:
    out, target = tmp_path / "out.jsonl", Target("Count.", toy_runs.double, mean_figure, 5)
    assert resumable_runs.main(target, ["--out", str(out), "--part", "2/2", "--runs", "5"]) == 1, "run 3 fails"
    assert [line["run"] for line in read_lines(out)] == [1]
    assert missing_runs(out, 5) == [0, 2, 3, 4] and missing_runs(out, 5, (1, 2)) == [0, 2, 4]
    with out.open("a") as lines:  # a process was killed while it wrote
        lines.write('{"run": 4, "se')
    assert resumable_runs.main(target, ["--out", str(out), "--part", "1/2"]) == 1
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert sorted(line["run"] for line in lines) == [0, 1, 2, 3, 4]
    assert [line["run"] for line in lines if "error" in line] == [3]
    assert all(line["seed"] == FIRST_SEED + line["run"] for line in lines)


def test_runs_that_take_longer_than_the_time_are_given_up(tmp_path: Path) -> None:
    out, start = tmp_path / "out.jsonl", time.monotonic()
    target = Target("Sleep.", toy_runs.sleep, lambda lines: [], 3)
    resumable_runs.main(target, ["--out", str(out), "--minutes", "0.1"])
    assert time.monotonic() - start < 50
    assert [line["run"] for line in read_lines(out)] in ([0], [])


def test_bands() -> None:
    """Clopper and Pearson (1934): 0 of 200 is [0, 0.0183], 5 of 100 is [0.0164, 0.1128]."""
    assert binomial_band(0, 200) == pytest.approx((0, 0.0183), abs=1e-4)
    assert binomial_band(5, 100) == pytest.approx((0.0164, 0.1128), abs=1e-4)
    assert binomial_band(3, 3)[1] == 1.0
    assert not Figure("share", 0.07, (0.05, 0.09), 0.065, 1000).is_met


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_every_script_states_its_target(script: object) -> None:
    target = script.TARGET  # type: ignore[attr-defined]
    assert target.description.startswith("Target: ") and target.runs >= 4


# ---- made files -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_one_unit_has_the_largest_value(file: object) -> None:
    frame = file.frame(300, np.random.default_rng(1))  # type: ignore[attr-defined]
    values = np.sort(file.read(frame).numbers(file.amount))  # type: ignore[attr-defined]
    assert values[-1] == file.largest and values[-2] < 0.75 * file.largest  # type: ignore[attr-defined]
    without = file.frame(300, np.random.default_rng(1), has_person=False)  # type: ignore[attr-defined]
    assert len(without) == 300 and without[file.amount].max() == values[-2]  # type: ignore[attr-defined]
    data = file.read(frame)  # type: ignore[attr-defined]
    methods = {name: make(data) for name, make in METHODS.items()}
    assert any(isinstance(step, Synthesize) and step.leaf == 5 for step in methods["synthetic"].steps)
    assert not methods["synthetic"].keeps_pairs(data) and methods["masked"].keeps_pairs(data)


# ---- the largest value ----------------------------------------------------------------------------------------
def test_largest_released_number_does_not_tell_who_is_in() -> None:
    """20 releases with and 20 without on each file: an area of 0.5 has a standard error of 0.09."""
    lines = [largest_value.run(number, FIRST_SEED + number, others=200) for number in range(120)]
    for figure in largest_value.find_figures(lines):
        assert figure.value <= figure.limit + 0.2, figure


def test_attack_on_an_unprotected_file_succeeds() -> None:
    inside, outside = np.full(20, 100.0), np.arange(20.0)
    assert largest_value.area_under_curve(inside, outside) == 1.0
    lines = [{"file": "incomes", "has_person": has, "released": 90_000.0 if has else 1.0} for has in (True, False) * 10]
    assert [figure.is_met for figure in largest_value.find_figures(lines)] == [False, False]


# ---- membership of outlying people ----------------------------------------------------------------------------
def test_shadow_models_agree_with_the_stated_membership() -> None:
    """The default synthetic method on one file, with 40 releases of the attacker: both have an error of about 0.02."""
    line = shadow_models.run(2, FIRST_SEED + 2, shadows=40)
    assert line["method"] == "synthetic" and line["people"] == 30
    assert abs(line["attacked"] - line["stated"]) < 0.15, line


def test_shadow_models_recognize_people_in_an_unmasked_file() -> None:
    file = FILES[0]
    data = file.read(file.frame(600, np.random.default_rng(1)))
    measure = shadow_models.OutlierMembership(on=data.knowable)
    assert shadow_models.attack(file, data, Identity(), measure, 1, shadows=30)["attacked"] > 0.95
    noise = np.random.default_rng(1).standard_normal((60, 30, 5))
    guessed = shadow_models.judge(noise, np.random.default_rng(2).random((60, 30)) < 0.5)["attacked"]
    assert abs(guessed - 0.5) < 0.06, "nothing to learn from"


# ---- limits and tries -----------------------------------------------------------------------------------------
def test_simulated_studies_rarely_write_a_file_above_a_limit() -> None:
    """100 studies: at a rate of 5 %, 5 with a standard deviation of 2.2."""
    lines = [simulated_studies.run(number, FIRST_SEED + number) for number in range(100)]
    count = {name: sum(line[name] for line in lines) for name in simulated_studies.SITUATIONS}
    assert count["one limit"] >= 1 and max(count.values()) <= 14, count


def test_released_studies_are_counted_by_the_errors_of_the_estimates() -> None:
    """With right standard errors 5 % of the studies release a file, with errors of a quarter nearly half of them."""
    rng = np.random.default_rng(1)
    values = 0.5 + 0.02 * rng.standard_normal(3 * 600)
    for se, low, high in ((0.02, 0.03, 0.075), (0.005, 0.3, 0.9)):
        released, studies = measure_errors.count_released([Estimate(value=x, se=se) for x in values], ClosestRecord())
        assert studies == 600 and low <= released / studies <= high, se


def test_measures_at_release_have_errors() -> None:
    line = measure_errors.run(0, FIRST_SEED, rows=150)
    assert line["method"] == "synthetic" and len(line["scores"]) >= 2
    for facts in line["scores"].values():
        estimate = measure_errors._to_estimate(json.loads(json.dumps(facts)))
        assert estimate.upper(0.97) > estimate.value


def test_margins_are_in_standard_errors_of_a_release() -> None:
    file = FILES[0]
    data = file.read(file.frame(300, np.random.default_rng(1)))
    profile = within_limits.find_profile("public-use")
    margin, nearest = within_limits.find_margin(data, Identity(), profile, 1, 1)
    assert margin < 0 and nearest, "the unmasked file"
    lines = [{"margin": m, "refused": r} for m, r in [(5.0, False), (4.5, True), (3.0, True)]]
    (figure,) = within_limits.find_figures(lines)
    assert (figure.runs, figure.value, figure.is_met) == (2, 0.5, False)


def test_a_demo_is_run_up_to_its_release() -> None:
    line = {"refused": False}
    assert [figure.is_met for figure in demo_refusals.find_figures([line])] == [True]
    assert [figure.is_met for figure in demo_refusals.find_figures([line, {"refused": True}])] == [False]
    assert Stream.of_seed(resumable_runs.plan_seed(1)) and resumable_runs.plan_seed(1).bit_length() > 128


# ---- relations that users study -------------------------------------------------------------------------------
def test_plain_regressions_find_the_relations_of_made_files() -> None:
    """The slopes of the wage equation and of the deaths are those that the files are drawn with, within 4 errors."""
    rng = np.random.default_rng(3)
    wages, patients = kept_relations.draw_wages(20_000, rng), kept_relations.draw_patients(20_000, rng)
    for frame, response, name, truth in (
        (wages, "log(wage)", "minority=yes", -0.14),
        (patients, "died=yes", "group=treated", -1.9),
    ):
        case = next(case for case in kept_relations.MADE if response in case.models)
        columns = [kept_relations.read_column(frame, each) for each in (response, *case.models[response])]
        x = np.column_stack([np.ones(len(frame)), *columns[1:]])
        slopes, errors, r2 = (kept_relations.fit_logit if "=" in response else kept_relations.fit_line)(x, columns[0])
        place = 1 + case.models[response].index(name)
        assert abs(slopes[place] - truth) < 4 * errors[place] < 0.5 and 0.1 < r2 < 0.6


def test_turned_coefficients_are_counted() -> None:
    frame = kept_relations.draw_wages(2_000, np.random.default_rng(4))
    mirrored = frame.with_columns(minority=frame["minority"].replace_strict({"yes": "no", "no": "yes"}))
    regressors = kept_relations.MADE[0].models["log(wage)"]
    assert kept_relations.compare(frame, frame, "log(wage)", regressors)["turned"] == []
    turned = kept_relations.compare(frame, mirrored, "log(wage)", regressors)
    facts = {"file": "wages", "changed": 0.3, "changed before": 0.4, "models": {"log(wage)": turned}}
    assert turned["turned"] == ["minority=yes"]
    signs, r2, changed = kept_relations.find_figures([facts])
    assert (signs.value, signs.runs, signs.is_met) == (1, 4, False)
    assert r2.is_met and (changed.limit, changed.is_met) == (0.2, False)


# ---- synthetic files of other tools ---------------------------------------------------------------------------
def test_families_draw_files_of_the_same_form_and_the_copied_file_is_recognized() -> None:
    """Every family gives the columns and categories of the file. A released copy tells all members apart."""
    frame = rival_syntheses.fill_gaps(kept_relations.draw_wages(300, np.random.default_rng(5)))
    data = sm.read(frame, keys=["region", "minority", "union"], numeric=["educ", "exper", "wage"])
    for name, (family, strengths) in rival_syntheses.FAMILIES.items():
        drawn = family(data, strengths[1], 1)
        assert drawn.columns == frame.columns and len(drawn) == len(frame), name
        assert set(drawn["region"].cast(pl.String)) <= set(frame["region"])
        assert kept_relations.read_column(drawn, "wage").max() < 2 * kept_relations.read_column(frame, "wage").max()
        assert family(data, strengths[1], 1).equals(drawn), "the seed decides"
    values = rival_syntheses.Coded(frame).values
    ranges, categories = np.ptp(values, axis=0), rival_syntheses.Coded(frame).is_category
    inside, outside = values[:150], values[150:]
    assert rival_syntheses.attack(inside, outside, inside, ranges, categories) > 0.95
    assert rival_syntheses.attack(inside, outside, outside, ranges, categories) < 0.05
    assert len(rival_syntheses.find_outlying(inside, ranges, categories)) == 30


def test_plain_formulas_of_rivals_keep_what_they_should() -> None:
    """Small leaves of CART keep the slope of education, and a copula without correlations loses it."""
    frame = kept_relations.draw_wages(3_000, np.random.default_rng(6))
    data = sm.read(frame, keys=["region", "minority", "union"], numeric=["educ", "exper", "wage"])

    def slope_t(file: pl.DataFrame) -> float:
        return float(kept_relations.regress(file, "log(wage)", ("educ", "exper"))[0][0])

    assert slope_t(rival_syntheses.by_cart(data, 5, 1)) > 0.5 * slope_t(frame) > 10
    assert slope_t(rival_syntheses.by_copula(data, 1.0, 1)) > 0.5 * slope_t(frame)
    assert abs(slope_t(rival_syntheses.by_copula(data, 0.0, 1))) < 5


def test_losses_are_compared_where_the_risk_meets_its_limit() -> None:
    curve = np.array([[[0.65, 0.1], [0.55, 0.2], [0.45, 0.4]]])
    assert rival_syntheses.loss_at_limit(curve, 0.5) == pytest.approx(0.3)
    assert rival_syntheses.loss_at_limit(curve, 0.7) == 0.1 and np.isnan(rival_syntheses.loss_at_limit(curve, 0.4))
    above, below = [[0.7, 0.5]] * 5, [[0.5, 0.3]] * 5
    about = {"run": 0, "seed": 1, "seconds": 2.0, "processor": 1.0, "file": "a"}
    lines = [about | {rival_syntheses.OURS: below, "CART": [[0.5, 0.2]] * 5, "copula": above}] * 3
    worse, cart, copula = rival_syntheses.find_figures(lines)
    assert (worse.name, worse.value, worse.is_met) == ("a: loss beyond CART, lower end", pytest.approx(0.1), False)
    assert (cart.value, copula.value, copula.note) == (3, 2, "1 files, clearly on 1"), (
        "a rival that cannot reach the risk is worse"
    )
    lines = [{"file": "a", rival_syntheses.OURS: above, "CART": below}] * 3
    missed, _ = rival_syntheses.find_figures(lines)
    assert missed.name == "a: risk that CART reaches and ours does not" and not missed.is_met


# ---- time and cost of the whole workflow ----------------------------------------------------------------------
def test_commands_of_the_workflow_are_timed(tmp_path: Path) -> None:
    """A command runs as a process of its own, its seconds are counted, and an error ends the run."""
    frame = whole_workflow.draw_survey(300, 11, np.random.default_rng(2))
    assert frame.shape == (300, 11) and frame["wage"].min() == 0
    frame.write_csv(tmp_path / "people.csv")
    printed, seconds, processor = whole_workflow.call(tmp_path, "look", "people.csv", "--json")
    assert json.loads(printed)["rows"] == 300 and seconds > 0 and processor > 0.2
    with pytest.raises(RuntimeError, match="sdcmap check ended with exit code"):
        whole_workflow.call(tmp_path, "check", "no-plan.toml")


def test_slow_workflow_and_wrong_guess_miss_their_targets() -> None:
    size = whole_workflow.SIZES[0]
    seconds = dict.fromkeys(whole_workflow.COMMANDS, 60.0)
    line = {"file": size.name, "seconds of": seconds, "minutes": 5.0, "guess": 100.0, "cost": 140.0}
    minutes, factor = whole_workflow.find_figures([line])
    assert minutes.is_met and factor.is_met and factor.value == pytest.approx(1.4)
    minutes, factor = whole_workflow.find_figures([line, line | {"minutes": 7.0, "guess": 250.0}])
    assert not minutes.is_met and not factor.is_met
