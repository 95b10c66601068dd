"""The battery of analyses, its estimates against plain formulas, and what counts as a changed conclusion."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.core import Microdata
from sdcmap.core.limit import Limit
from sdcmap.explore.starting_plan import starting_plan
from sdcmap.study.profiles import find_profile, to_profile
from sdcmap.utility import AnalysisError, ChangedConclusions
from sdcmap.utility.analyses import (
    Amount,
    Categories,
    Category,
    Distribution,
    FileView,
    Regression,
    SubgroupMeans,
    TwoWayTable,
)
from sdcmap.utility.analysis_change import Comparison, compare_analyses, measure_change, saturate, select_half
from sdcmap.utility.battery import MAX_PREDICTORS, MAX_REGRESSIONS, propose_battery
from sdcmap.utility.stated_model import parse_model

ROLES = {"keys": ["sex", "region", "union"], "sensitive": ["wage"], "household": "home", "weight": "w"}
RNG = np.random.default_rng(0)


def make_frame(n: int = 1200, seed: int = 3) -> pl.DataFrame:
    """Return employees of households: wages fall with being in a minority, and do not depend on the shoe size."""
    rng = np.random.default_rng(seed)
    home = np.sort(rng.integers(0, n // 2, n))
    shared = rng.normal(size=n)[home]
    sex, minority = rng.choice(["f", "m"], n), rng.random(n) < 0.3
    educ = rng.integers(6, 20, n).astype(float)
    log_wage = 1 + 0.08 * educ - 0.25 * minority + 0.2 * (sex == "m") + 0.3 * shared + rng.normal(size=n) * 0.4
    return pl.DataFrame(
        {
            "home": home, "sex": sex, "region": rng.choice(["north", "south", "east", "west"], n),
            "union": np.where(rng.random(n) < 0.2 + 0.02 * educ, "yes", "no"), "minority": minority.astype(float),
            "educ": educ, "shoe": rng.normal(40, 2, n).round(1), "wage": np.exp(log_wage).round(3),
            "w": rng.uniform(1, 5, n).round(2),
        }
    )  # fmt: skip


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    return make_frame()


@pytest.fixture(scope="module")
def people(frame: pl.DataFrame) -> Microdata:
    return sm.read(frame, **ROLES)


def replaced(people: Microdata, **columns: np.ndarray) -> Microdata:
    return people.change(None, columns)


# ---- estimates ----------------------------------------------------------------------------------------------------
def test_regression_equals_plain_weighted_least_squares(frame: pl.DataFrame, people: Microdata) -> None:
    model = Regression(Amount("wage", logged=True), (Amount("educ"), Categories("region", "north", ("east", "south"))))
    assert model.title == "log(wage) ~ educ + region" and model.labels == ("educ", "region=east", "region=south")
    found = model.find(FileView(people, people))
    region, w, home = frame["region"].to_numpy(), frame["w"].to_numpy(), frame["home"].to_numpy()
    x = np.column_stack(
        [np.ones(len(frame)), frame["educ"], region == "east", region == "south", region == "west"]
    ).astype(float)
    y = np.log(frame["wage"].to_numpy())
    bread = np.linalg.inv((x * w[:, None]).T @ x)
    slopes = bread @ (x * w[:, None]).T @ y
    scores = x * (w * (y - x @ slopes))[:, None]
    totals = np.array([scores[home == one].sum(axis=0) for one in np.unique(home)])
    g, (n, k) = len(totals), x.shape
    errors = np.sqrt(np.diag(bread @ totals.T @ totals @ bread) * g / (g - 1) * (n - 1) / (n - k))
    assert found.values == pytest.approx(slopes[1:4], rel=1e-8)
    assert found.errors == pytest.approx(errors[1:4], rel=1e-8)


@pytest.mark.parametrize(
    "analysis",
    [
        Regression(Category("union", "yes"), (Amount("educ"), Categories("sex", "f", ("m",)))),
        TwoWayTable(Categories("union", "no", ("yes",)), Categories("region", "north", ("east", "west"))),
        SubgroupMeans(Amount("wage"), Categories("region", "north", ("north", "east"))),
        Distribution(Amount("wage"), (3.0, 6.0), (0.25, 0.75)),
    ],
    ids=lambda analysis: analysis.kind,
)
def test_standard_errors_equal_jackknife_of_households(analysis: Regression, frame: pl.DataFrame) -> None:
    """The delete-one-household jackknife knows no formula; both are estimates of the same error."""
    few = frame.head(400)
    data = sm.read(few, **ROLES)
    found = analysis.find(FileView(data, data))
    homes = few["home"].unique().to_list()
    left = [sm.read(few.filter(pl.col("home") != home), **ROLES) for home in homes]
    values = np.array([analysis.find(FileView(one, data)).values for one in left])
    g = len(homes)
    jackknife = np.sqrt((g - 1) / g * ((values - values.mean(axis=0)) ** 2).sum(axis=0))
    assert found.errors == pytest.approx(jackknife, rel=0.04)


def test_released_classes_are_read_as_a_user_reads_them(people: Microdata) -> None:
    codes = np.digitize(people.numbers("educ"), [10.5, 15.5]).astype(np.uint8)
    classes = people.change(None, {"educ": codes}, {"educ": pl.Series(["<= 10", "(10, 15]", "> 15"])})
    assert np.unique(FileView(classes, people).numbers("educ")).tolist() == [10.0, 12.5, 15.0]
    merged = people.change(
        None,
        {"region": np.isin(people["region"], ["east", "west"]).astype(np.uint8)},
        {"region": pl.Series(["north|south", "east|west"])},
    )
    model = Regression(Amount("wage"), (Categories("region", "north", ("south", "east", "west")),))
    values = model.find(FileView(merged, people)).values
    assert np.isnan(values[0]), "south is not told apart from the reference"
    assert values[1] == values[2], "east and west have one coefficient"
    table = TwoWayTable(Categories("sex", "f", ("m",)), Categories("region", "north", ("east",)))
    assert np.isnan(table.find(FileView(merged, people)).values).all()


# ---- the battery --------------------------------------------------------------------------------------------------
def test_battery_explains_amounts_sensitive_columns_and_indicators(people: Microdata) -> None:
    battery = propose_battery(people)
    models = {one.title for one in battery if isinstance(one, Regression)}
    assert any(title.startswith("log(wage) ~ ") and "minority" in title and "educ" in title for title in models)
    assert {"minority", "union=yes", "sex=m"} <= {title.split(" ~ ")[0] for title in models} | {"sex=m", "union=yes"}
    assert {one.kind for one in battery} == {"regression", "two-way table", "subgroup means", "distribution"}
    assert all(len(one.predictors) <= MAX_PREDICTORS for one in battery if isinstance(one, Regression))
    assert len(models) <= MAX_REGRESSIONS
    assert not any({"home", "w"} & set(one.columns) for one in battery)


def test_battery_does_not_depend_on_the_order_of_rows(people: Microdata, frame: pl.DataFrame) -> None:
    shuffled = sm.read(frame.sample(fraction=1.0, shuffle=True, seed=5), **ROLES)
    assert {one.title for one in propose_battery(shuffled)} == {one.title for one in propose_battery(people)}


def test_forms_of_a_column_do_not_explain_it(frame: pl.DataFrame) -> None:
    data = sm.read(frame.with_columns(cents=pl.col("wage") * 100), **ROLES)
    for model in (one for one in propose_battery(data) if isinstance(one, Regression)):
        assert not {"wage", "cents"} <= set(model.columns)


def test_computed_columns_do_not_explain_their_inputs(frame: pl.DataFrame) -> None:
    """A sum and its parts are no two of the columns of a model: an identity is no finding."""
    bonus = RNG.gamma(2, 2, len(frame)).round(3)
    data = sm.read(frame.with_columns(bonus=bonus, total=(pl.col("wage") + bonus).round(3)), **ROLES)
    models = [set(one.columns) for one in propose_battery(data) if isinstance(one, Regression)]
    assert not any("total" in own and own & {"wage", "bonus"} for own in models)
    assert any("total" in own for own in models) and any("bonus" in own for own in models)


def test_the_most_frequent_categories_of_a_sensitive_column_are_explained(frame: pl.DataFrame) -> None:
    illness = np.random.default_rng(1).choice(list("abcdef"), len(frame), p=[0.1, 0.3, 0.25, 0.2, 0.1, 0.05])
    roles = ROLES | {"sensitive": ["wage", "illness", "union"], "keys": ["sex", "region"]}
    models = [
        one
        for one in propose_battery(sm.read(frame.with_columns(illness=illness), **roles))
        if isinstance(one, Regression)
    ]
    explained = [one.response.category for one in models if one.response.name == "illness"]
    assert explained[:3] == ["b", "c", "d"] and len(explained) == 4
    assert [one.response.name for one in models][:3] == ["union", "wage", "illness"], "each column first"
    assert not any(
        "illness" in {own.name for own in one.predictors} for one in models if one.response.name == "illness"
    )


def test_search_and_report_see_different_halves(people: Microdata) -> None:
    battery = propose_battery(people)
    search, report = select_half(battery, "search"), select_half(battery, "report")
    assert not set(search) & set(report) and {*search, *report} == set(battery)
    assert abs(len(search) - len(report)) <= len({one.kind for one in battery})


# ---- what changes -------------------------------------------------------------------------------------------------
def test_reversed_sign_is_found(people: Microdata) -> None:
    """The wages of the minority are moved above those of the others: the sign of their coefficient changes."""
    wage, minority = people.numbers("wage"), people.numbers("minority") == 1
    moved = replaced(people, wage=np.where(minority, wage * np.exp(0.5), wage))
    wages = next(one for one in compare_analyses(people, moved) if one.analysis.title.startswith("log(wage)"))
    at = wages.analysis.labels.index("minority")
    assert wages.before.t[at] < -3 and wages.after.t[at] > 2
    assert wages.conclusions.reversed[at] and not wages.conclusions.lost[at]
    result = ChangedConclusions().score(people, moved, RNG)
    assert result.parts["reversed"] >= 1 and result.value > 0
    rest = ChangedConclusions().score(people, replaced(people, shoe=people.numbers("shoe") + 1), RNG)
    assert rest.parts["reversed"] == rest.parts["lost"] == rest.parts["new findings"] == rest.value == 0


def test_file_that_reverses_a_finding_is_over_its_limit(people: Microdata) -> None:
    """The share of changed conclusions alone allows it: one finding of many."""
    wage, minority = people.numbers("wage"), people.numbers("minority") == 1
    moved = replaced(people, wage=np.where(minority, wage * np.exp(0.5), wage))
    share, count = ChangedConclusions(), ChangedConclusions(statistic="reversed")
    assert count.score(people, moved, RNG).value >= 1 and count.score(people, people, RNG).value == 0
    assert share.title != count.title and share.digest != count.digest
    profile = find_profile("public-use")
    assert profile.limit_of(share) == 0.1 and profile.limit_of(count) == 0
    limit = Limit(count, 0.0)
    assert limit.judge(count.score(people, people, RNG), 0.97).status == "met"
    verdict = limit.judge(count.score(people, moved, RNG), 0.97)
    assert verdict.status == "exceeded" and limit.share(verdict.end) == np.inf and limit.share(0.0) == 0
    off = to_profile({"name": "public-use", "reversed": "none"})
    assert off.limit_of(count) is None and to_profile(off.table()) == off and to_profile(profile.table()) == profile
    one = to_profile({"name": "public-use", "reversed": 1})
    assert to_profile(one.table()) == one


def test_starting_plan_limits_reversed_findings(people: Microdata) -> None:
    plan = starting_plan(people, find_profile("public-use"))
    assert plan.limits[ChangedConclusions(statistic="reversed").text] == 0


def test_lost_and_new_findings_are_counted(people: Microdata) -> None:
    order = np.random.default_rng(1).permutation(len(people))
    lost = ChangedConclusions().score(people, replaced(people, wage=people.numbers("wage")[order]), RNG)
    assert lost.parts["lost"] >= 5 and lost.value > 0.05
    linked = replaced(people, shoe=people.numbers("shoe") + 3 * people.numbers("minority") + people.numbers("educ"))
    assert ChangedConclusions().score(people, linked, RNG).parts["new findings"] >= 1


def test_change_by_chance_equals_bootstrap(frame: pl.DataFrame, people: Microdata) -> None:
    """The expectation for normal t against resamples of households: 60 of them have a standard error of about 0.002."""
    homes = frame.partition_by("home")
    rng, shares = np.random.default_rng(8), []
    for _ in range(60):
        drawn = rng.integers(0, len(homes), len(homes)).tolist()
        copies = [homes[one].with_columns(home=pl.lit(k)) for k, one in enumerate(drawn)]
        shares.append(measure_change(compare_analyses(people, sm.read(pl.concat(copies), **ROLES))))
    chance = ChangedConclusions().score(people, people, RNG).parts["by chance"]
    assert chance == pytest.approx(np.mean(shares), abs=0.012)


def test_loss_grows_with_noise_and_saturates(people: Microdata) -> None:
    wage = people.numbers("wage")
    losses = []
    for size in (0.0, 0.1, 0.5, 2.0, 50.0):
        noise = np.random.default_rng(3).normal(size=len(wage)) * wage.std() * size
        losses.append(AnalysisError().score(people, replaced(people, wage=wage + noise), RNG).value)
    assert losses == sorted(losses) and losses[0] == 0 and losses[-1] < 1
    assert saturate(np.array([5.0])).tolist() == [0.5]


def test_lost_estimates_count_fully(people: Microdata) -> None:
    constant = people.change(None, {"sex": np.zeros(len(people), dtype=np.uint8)}, {"sex": pl.Series(["*"])})
    kept = [one for one in compare_analyses(people, constant) if "sex" in one.analysis.columns[1:]]
    assert kept and all(np.isinf(one.differences).any() for one in kept if not isinstance(one.analysis, Regression))


def test_comparison_of_original_with_itself_changes_nothing(people: Microdata) -> None:
    for one in compare_analyses(people, people):
        assert isinstance(one, Comparison) and (one.differences == 0).all()


# ---- models that users state --------------------------------------------------------------------------------------
def test_stated_models_always_count(people: Microdata) -> None:
    stated = "log(wage) ~ educ + minority + educ:minority + sex"
    for half in ("search", "report"):
        measure = AnalysisError([stated], half=half)  # type: ignore[arg-type]
        first = measure.compare(people, people)[0].analysis
        assert isinstance(first, Regression) and first.title == "log(wage) ~ educ + minority + sex + educ:minority"
        assert measure.text == f"AnalysisError(models='{stated}', half='{half}')"


def test_products_equal_plain_least_squares(frame: pl.DataFrame, people: Microdata) -> None:
    found = parse_model("wage ~ educ*region", people).find(FileView(people, people))
    order = frame["region"].value_counts(sort=True)["region"].to_list()
    region, educ, w = frame["region"].to_numpy(), frame["educ"].to_numpy(), frame["w"].to_numpy()
    dummies = [(region == one).astype(float) for one in order[1:]]
    x = np.column_stack([np.ones(len(educ)), educ, *dummies, *(educ * one for one in dummies)])
    slopes = np.linalg.lstsq(x * np.sqrt(w)[:, None], frame["wage"].to_numpy() * np.sqrt(w), rcond=None)[0]
    assert found.values == pytest.approx(slopes[1:], rel=1e-7)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("wage ~ eduk", "names 'eduk', which is no released column. Did you mean 'educ'?"),
        ("region ~ educ", "Name one of its categories: 'region=CATEGORY ~ ...'."),
        ("region=centre ~ educ", "names a category of 'region' that no record has"),
        ("log(sex) ~ educ", "takes the logarithm of 'sex', which has categories"),
        ("wage educ", "cannot be read"),
    ],
)
def test_models_that_a_file_does_not_allow_are_refused(people: Microdata, model: str, words: str) -> None:
    with pytest.raises(sm.errors.SdcmapError, match=re.escape(words)):
        AnalysisError([model]).score(people, people, RNG)


def test_stated_category_is_explained(people: Microdata) -> None:
    model = parse_model("region=north ~ educ + union", people)
    assert model.response == Category("region", "north")
    assert np.isfinite(model.find(FileView(people, people)).values).all()


def test_ordered_categories_that_are_many_numbers_are_amounts(frame: pl.DataFrame) -> None:
    """Years of education read as ordered categories are explained and used as an amount, also after a recode."""
    ages = frame.with_columns(educ=pl.col("educ").cast(pl.Int64))
    as_numbers = sm.read(ages, **ROLES, numeric=["educ"])
    as_categories = sm.read(ages, **(ROLES | {"keys": [*ROLES["keys"], "educ"]}), kinds={"educ": "ordinal"})
    model = "log(wage) ~ educ + minority"
    found = [parse_model(model, data).find(FileView(data, data)) for data in (as_numbers, as_categories)]
    assert found[1].values == pytest.approx(found[0].values) and found[1].errors == pytest.approx(found[0].errors)
    assert Amount("educ") in {
        p for one in propose_battery(as_categories) if isinstance(one, Regression) for p in one.predictors
    }
    recoded = sm.mask(as_categories, sm.Recode(on="educ", bins=5), seed=1)
    (compared,) = compare_analyses(as_categories, recoded, models=[model])[:1]
    assert np.isfinite(compared.after.values).all()
