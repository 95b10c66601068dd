"""Synthesis that keeps stated regressions: coefficients, errors in the statement, and how the models are shown."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.core import Array, PlanError
from sdcmap.reports.changed_analyses import describe_analyses
from sdcmap.testing import check_method
from sdcmap.utility.analysis_change import compare_analyses

WAGES, UNIONS = "log(wage) ~ educ + sex + exper + educ:sex", "union ~ educ + region + educ:region"
COLUMNS = ("sex", "region", "educ", "exper", "wage", "union")
SEEDS = 8


def workers(rows: int = 3000) -> sm.Microdata:
    """Return workers whose returns to education differ by sex, and whose union membership differs by region with it."""
    rng = np.random.default_rng(1)
    educ, exper = rng.integers(8, 19, rows).astype(float), rng.integers(0, 40, rows).astype(float)
    sex, region = rng.choice(["f", "m"], rows), rng.choice(["n", "s", "e", "w"], rows)
    log_wage = 1.5 + 0.04 * educ + (sex == "f") * (0.05 * (educ - 13) - 0.3) + 0.03 * exper - 0.0006 * exper**2
    odds = np.exp(0.8 * (sex == "m") - 1 - 0.1 * (educ - 13) * (region == "n"))
    frame = {"educ": educ, "exper": exper, "sex": sex, "region": region}
    frame["wage"] = np.exp(log_wage + 0.4 * rng.normal(size=rows)).round(2)
    frame["union"] = np.where(rng.random(rows) < odds / (1 + odds), "yes", "no")
    return sm.read(pl.DataFrame(frame), keys=["sex", "region", "union"], numeric=["educ", "exper", "wage"])


def mean_differences(method: sm.Method) -> Array:
    """Return the mean difference of each coefficient of both models over draws, in standard errors of the original."""
    data, rows = workers(), []
    for seed in range(SEEDS):
        compared = compare_analyses(data, sm.mask(data, method, seed=seed), "search", (WAGES, UNIONS))[:2]
        rows.append(np.concatenate([(one.after.values - one.before.values) / one.before.errors for one in compared]))
    return np.asarray(np.mean(rows, axis=0))


def test_coefficients_of_stated_models_are_kept() -> None:
    """Products are lost without the statement. A draw has a standard deviation of 1, the mean of eight of 0.35."""
    kept = sm.Synthesize(COLUMNS, model="regressions", leaf=100, keep=(WAGES, UNIONS))
    assert np.abs(mean_differences(kept)).max() < 1.5
    plain = mean_differences(sm.Synthesize(COLUMNS, model="regressions", leaf=100))
    assert abs(plain[3]) > 3, "the product of education and sex"


def test_explained_variance_of_a_stated_model_is_kept() -> None:
    """The wage depends on experience by a curve, so a linear model of its logarithm is not the whole truth."""
    data = workers()

    def explained(file: sm.Microdata) -> float:
        x = np.column_stack([np.ones(len(file)), file.numbers("educ"), file["sex"] == "m", file.numbers("exper")])
        x = np.column_stack([x, x[:, 1] * x[:, 2]])
        y = np.log(file.numbers("wage"))
        return float(1 - (y - x @ np.linalg.lstsq(x, y)[0]).var() / y.var())

    method = sm.Synthesize(COLUMNS, model="regressions", leaf=100, keep=(WAGES,))
    drawn = [explained(sm.mask(data, method, seed=seed)) for seed in range(SEEDS)]
    assert explained(data) > 0.2 and np.mean(drawn) == pytest.approx(explained(data), rel=0.2)


def test_synthesis_with_kept_models_obeys_the_laws() -> None:
    check_method(sm.Synthesize(COLUMNS, model="regressions", leaf=20, keep=(WAGES, UNIONS)), workers(300))
    data = workers(300)
    gaps = data.change(np.arange(0, 300, 7), {"educ": np.full(43, np.nan), "wage": np.full(43, np.nan)})
    check_method(sm.Synthesize(COLUMNS, model="regressions", leaf=20, keep=("wage ~ educ*sex", UNIONS)), gaps)


@pytest.mark.parametrize(
    ("keep", "model", "words"),
    [
        (WAGES, "trees", 'keep needs model = "regressions"'),
        ("exper ~ educ + wage", "regressions", "needs 'wage' before 'exper' in `on`"),
        ("age ~ educ", "regressions", "explains 'age', which is not replaced"),
        ("wage ~ educ:sex", "regressions", "educ:sex needs"),
        (("wage ~ educ", "log(wage) ~ sex"), "regressions", "two models of 'wage'"),
    ],
)
def test_models_that_cannot_be_kept_are_refused(keep: str, model: str, words: str) -> None:
    with pytest.raises(PlanError) as raised:
        sm.Synthesize(COLUMNS, model=model, keep=keep)  # type: ignore[arg-type]
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("keep", "words"),
    [("wage ~ tenure", "'tenure' is neither replaced nor a predictor"), ("wage ~ log(sex)", "logarithm of 'sex'")],
)
def test_models_that_do_not_fit_the_file_are_refused(keep: str, words: str) -> None:
    method = sm.Synthesize(COLUMNS, model="regressions", keep=keep)
    assert any(words in problem for problem in method.incompatibilities(workers(100)))


def plan_of(keep: str, *counted: str) -> sm.Plan:
    method = sm.Synthesize(COLUMNS, model="regressions", leaf=100, keep=keep)
    measures = [sm.SmallCells(), sm.utility.AnalysisError(counted), sm.utility.ChangedConclusions(counted)]
    return sm.Plan([method], measures, seed=1)


def test_kept_models_are_shown_and_not_counted() -> None:
    data, plan = workers(), plan_of(WAGES, UNIONS)
    assert sm.Plan.from_toml(plan.toml(), seed=1) == plan and plan.kept_models == (WAGES,)
    found = describe_analyses(plan, data, sm.mask(data, plan.all_methods[1], seed=1))
    without = describe_analyses(plan_of("wage ~ exper", UNIONS), data, sm.mask(data, plan.all_methods[1], seed=1))
    assert found is not None and without is not None and found.sentence == without.sentence
    marked = [row.analysis for row in found.rows if "kept by the method, not counted" in row.conclusion]
    assert marked == [WAGES] and found.rows[0].analysis == UNIONS.replace("union", "union=yes", 1)
    with pytest.raises(PlanError, match="so it does not count as utility: remove it from the analyses"):
        plan_of(WAGES, WAGES)


def test_kept_model_among_the_automatic_analyses_does_not_count() -> None:
    """The battery explains the wage by the same columns; a plan that counts this is refused, and says what to state."""
    data = workers(800)
    battery = compare_analyses(data, data)
    terms = next(one.analysis.title for one in battery if one.analysis.title.startswith("wage ~ ")).partition(" ~ ")[2]
    keep = f"wage ~ {'+'.join(reversed(terms.split(' + ')))}"
    masked = sm.mask(data, sm.Noise("wage", variance=1.0), seed=1)
    for measure in (sm.utility.AnalysisError, sm.utility.ChangedConclusions):
        without = measure(kept=(keep,))
        assert len(without.compare(data, masked)) == len(battery) - 1
        assert f"wage ~ {terms}" not in {one.analysis.title for one in without.compare(data, masked)}
        method = sm.Synthesize((*COLUMNS[:4], "union", "wage"), model="regressions", leaf=100, keep=keep)
        counts, leaves_out = (sm.Plan([method], [sm.SmallCells(), own], seed=1) for own in (measure(), without))
        words = f"state it as `kept` of {measure.__name__}"
        assert [words in problem for problem in counts.problems_with(data)] == [True]
        assert leaves_out.problems_with(data) == []
        assert sm.Plan.from_toml(leaves_out.toml(), seed=1) == leaves_out


@pytest.mark.parametrize("model", ["log( wage )~exper+sex+educ + sex:educ", "log(wage) ~ exper + educ*sex"])
def test_kept_models_are_recognized_however_they_are_written(model: str) -> None:
    with pytest.raises(PlanError, match="so it does not count as utility"):
        plan_of(WAGES, model)
    with pytest.raises(PlanError, match="so it does not count as utility"):
        plan_of(UNIONS, "union = yes ~ region*educ")
    other = model.replace("exper", "log(exper)")
    assert plan_of(WAGES, other).kept_models == (WAGES,)
