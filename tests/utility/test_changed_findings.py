"""Which relations a released file weakens, and which original coefficients a public note may state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.bundle.note import MAX_RELATIONS, describe_relations
from sdcmap.kernels.arrays import Array
from sdcmap.utility.changed_findings import (
    ChangedRelation,
    RepeatedAnalyses,
    describe_other_analyses,
    find_changed_relations,
    repeat_analyses,
    summarize,
)
from sdcmap.utility.stated_model import parse_model

MODEL = "log(wage) ~ school + minority"
ROWS = 900


def make(seed: int = 5, effect: float = -0.3, school: float = 0.08) -> pl.DataFrame:
    """Return employees: wages rise with school and differ for a minority."""
    rng = np.random.default_rng(seed)
    years, minority = rng.integers(8, 20, ROWS).astype(float), (rng.random(ROWS) < 0.3).astype(float)
    wage = np.exp(1 + school * years + effect * minority + 0.3 * rng.normal(size=ROWS)).round(3)
    region = rng.choice(["north", "south", "west"], ROWS)
    return pl.DataFrame({"region": region, "minority": minority, "school": years, "wage": wage})


def read(frame: pl.DataFrame) -> sm.Microdata:
    return sm.read(frame, keys=["region"], numeric=["minority", "school", "wage"])


def plain_slopes(frame: pl.DataFrame) -> Array:
    """Return the coefficients of MODEL by numpy alone."""
    x = np.column_stack([np.ones(len(frame)), frame["school"], frame["minority"]])
    return np.asarray(np.linalg.lstsq(x, np.log(frame["wage"].to_numpy()))[0][1:])


def changed(before: pl.DataFrame, after: pl.DataFrame, model: str = MODEL) -> list[ChangedRelation]:
    data = read(before)
    title = parse_model(model, data).title
    return [one for one in find_changed_relations(repeat(data, read(after), model)) if one.model == title]


def repeat(original: sm.Microdata, released: sm.Microdata, *models: str, kept: Sequence[str] = ()) -> RepeatedAnalyses:
    found = repeat_analyses(original, released, models, kept)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("effect", "change"), [(0.3, "opposite sign"), (0.0, "lost"), (-0.15, "weaker"), (-0.3, ""), (-0.5, "")]
)
def test_changed_relation_has_both_coefficients(effect: float, change: str) -> None:
    before, after = make(), make(effect=effect)
    found = {one.term: one for one in changed(before, after)}
    assert "school" not in found and ("minority" in found) == bool(change)
    if change:
        one, old, new = found["minority"], plain_slopes(before)[1], plain_slopes(after)[1]
        assert one.change == change
        assert one.numbers is not None
        assert one.numbers.original == pytest.approx(old, rel=1e-6)
        assert one.numbers.share == pytest.approx(new / old, rel=1e-5)


def test_relation_that_the_original_does_not_have() -> None:
    found = changed(make(effect=0.0), make(effect=-0.3))
    assert [(one.term, one.change) for one in found] == [("minority", "not in the original")]


@pytest.mark.parametrize("model", ["wage ~ region + school", "region=east ~ school + minority"])
def test_model_with_a_small_category_states_no_number(model: str) -> None:
    """Six people live in the east: no coefficient of a model that tells them apart is published."""
    frame = make()
    few = frame.with_columns(region=pl.Series(["east"] * 6 + frame["region"].to_list()[6:]))
    shuffled = few.with_columns(school=pl.Series(np.random.default_rng(2).permutation(few["school"].to_numpy())))
    found = changed(few, shuffled, model)
    assert bool(found) == model.startswith("wage")
    assert all(one.numbers is None for one in found)
    assert not any("east" in one.term for one in found)


def test_model_with_products_states_no_number() -> None:
    model = "log(wage) ~ school + region + region:school"
    found = changed(make(), make(school=0.0), model)
    assert "school" in {one.term for one in found} and all(one.numbers is None for one in found)


def test_note_lists_the_most_serious_first_and_counts_the_others() -> None:
    data, lost = read(make()), read(make(effect=0.3, school=0.0))
    relations = describe_relations(repeat(data, lost, MODEL))
    assert "lead to another conclusion" in relations["summary"]
    order = [one["change"] for one in relations["changed"]]
    ranks = {"opposite sign": 0, "lost": 1, "not in the original": 2, "weaker": 3}
    assert order == sorted(order, key=ranks.__getitem__) and order[0] == "opposite sign"
    assert len(order) <= MAX_RELATIONS
    for one in relations["changed"]:  # two digits
        assert one["original"] is None or one["original"] == float(f"{one['original']:.1e}")
    unchanged = describe_relations(repeat(data, data, MODEL))
    assert unchanged["changed"] == [] and unchanged["left_out"] == 0


def test_columns_that_are_not_released_are_not_named() -> None:
    data = read(make())
    released = read(make(effect=0.3, school=0.0)).only(["region", "school", "wage"])
    relations = describe_relations(repeat(data, released))
    assert "school" in str(relations["changed"]) and "minority" not in str(relations)
    assert repeat_analyses(data, released, [MODEL]) is None


# ---- what may be published ----------------------------------------------------------------------------------------
def make_workers(east: int = 40, seed: int = 3) -> pl.DataFrame:
    """Return workers of whom some live in the east, where wages and unions are lower; school raises both."""
    rng = np.random.default_rng(seed)
    region = np.array(["east"] * east + ["north"] * 500 + ["south"] * (ROWS - 500 - east))
    years, is_east = rng.integers(8, 20, ROWS).astype(float), region == "east"
    wage = np.exp(1 + 0.1 * years - 0.8 * is_east + 0.2 * rng.normal(size=ROWS)).round(3)
    union = np.where(rng.random(ROWS) < np.where(is_east, 0.5, 1 / (1 + np.exp(5 - 0.5 * years))), "yes", "no")
    frame = pl.DataFrame({"region": region, "school": years, "wage": wage, "union": union})
    return frame.with_columns(home=np.arange(ROWS), bonus=pl.Series(rng.normal(5, 1, ROWS).round(2)))


def published(frame: pl.DataFrame, model: str) -> set[str]:
    """Return the terms whose original coefficient is published for a release in which the response is shuffled."""
    roles = {"keys": ["region", "union"], "numeric": ["school", "wage", "bonus"], "household": "home"}
    data = sm.read(frame, **roles)
    name = parse_model(model, data).response.name
    order = np.random.default_rng(1).permutation(len(frame))
    released = sm.read(frame.with_columns(frame[name][order.tolist()]), **roles)
    found = repeat(data, released, model)
    title = found.compared[0].analysis.title
    return {one.term for one in find_changed_relations(found) if one.numbers is not None and one.model == title}


WAGES, UNIONS = "log(wage) ~ school + region", "union=yes ~ school + region"


def test_models_with_large_groups_are_published() -> None:
    assert {"school", "region=east"} <= published(make_workers(), WAGES)
    assert "school" in published(make_workers(), UNIONS)


def test_categories_are_counted_among_complete_records() -> None:
    """Forty people live in the east, and three of them state a wage."""
    frame = make_workers().with_columns(wage=pl.when(pl.int_range(ROWS) < 37).then(None).otherwise("wage"))
    assert published(frame, WAGES) == set()


def test_reference_is_counted_among_complete_records() -> None:
    """Most people live in the north, but only four of them state a wage: all coefficients would be relative to them."""
    is_silent = pl.int_range(ROWS).is_between(44, 539)
    assert published(make_workers().with_columns(wage=pl.when(~is_silent).then("wage")), WAGES) == set()


@pytest.mark.parametrize(("homes", "is_published"), [(4, False), (12, True)])
def test_households_are_counted_instead_of_records(homes: int, is_published: bool) -> None:
    frame = make_workers(48)
    own = np.where(np.arange(ROWS) < 48, np.arange(ROWS) % homes, np.arange(ROWS))
    assert ("region=east" in published(frame.with_columns(home=own), WAGES)) == is_published


@pytest.mark.parametrize("usual", [0.0, 7.0])
@pytest.mark.parametrize(("people", "is_published"), [(3, False), (12, True)])
def test_amounts_need_people_away_from_the_most_frequent_value(people: int, is_published: bool, usual: float) -> None:
    """All others have the same bonus, whether it is nothing or not."""
    frame = make_workers()
    rare = pl.when(pl.int_range(ROWS) % (ROWS // people) == 0).then(pl.int_range(ROWS) % 7 + 8).otherwise(usual)
    wage = pl.when(rare != usual).then(pl.col("wage") * 20).otherwise("wage")
    frame = frame.with_columns(bonus=rare.cast(pl.Float64), wage=wage)
    assert bool(published(frame, "log(wage) ~ school + bonus")) == is_published


@pytest.mark.parametrize(("east", "is_published"), [(40, False), (200, True)])
def test_response_needs_people_away_from_its_most_frequent_value(east: int, is_published: bool) -> None:
    """A sixth of the people have a bonus, under ten of 40 in the east: a coefficient of the east would tell their mean."""
    bonus = pl.when((pl.col("school") >= 16) & (pl.int_range(ROWS) % 2 == 0)).then(9.0 + pl.col("school")).otherwise(0)
    found = published(make_workers(east).with_columns(bonus=bonus), "bonus ~ school + region")
    assert ("school" in found) == is_published


@pytest.mark.parametrize(("members", "is_published"), [(5, False), (20, True)])
def test_logits_need_people_of_each_response_in_each_category(members: int, is_published: bool) -> None:
    union = (
        pl.when(pl.int_range(ROWS) < 40)
        .then(pl.when(pl.int_range(ROWS) < members).then(pl.lit("yes")).otherwise(pl.lit("no")))
        .otherwise("union")
    )
    assert bool(published(make_workers().with_columns(union=union), UNIONS)) == is_published


def test_saturated_model_is_not_published() -> None:
    """The coefficients of a single categorical predictor are differences of cell means; so are those of one indicator."""
    assert published(make_workers(), "log(wage) ~ region") == set()
    assert published(make_workers().with_columns(bonus=(pl.int_range(ROWS) < 300).cast(float)), "wage ~ bonus") == set()


def test_repeated_school_years_are_not_saturated() -> None:
    assert published(make_workers(), "log(wage) ~ school") == {"school"}


# ---- what counts --------------------------------------------------------------------------------------------------
def test_analyses_that_cannot_change_are_not_counted() -> None:
    """Distributions have no null hypothesis, so they lead to no other conclusion, however far they move."""
    data = read(make())
    found = repeat(data, read(make(effect=0.3, school=0.0)), MODEL)
    kinds = {one.analysis.kind for one in found.compared}
    assert "distribution" in kinds and "distribution" not in {one.analysis.kind for one in found.counted}
    assert all((one.conclusions.clear | one.conclusions.null).any() for one in found.counted)
    assert summarize(found.counted).startswith(f"Of {len(found.counted)} analyses, ")
    assert summarize([]) == "No analysis has a conclusion that could change."


def test_note_names_other_analyses_without_values() -> None:
    frame = make()
    higher = frame.with_columns(wage=pl.col("wage") * 1.5)
    found = repeat(read(frame), read(higher))
    others = [one for one in found.compared if one.analysis.kind != "regression"]
    changed = [one for one in others if one.differences.max() > 2]
    words = describe_other_analyses(found)
    assert words.startswith(
        f"Of {len(others)} tables, sets of means and distributions, {len(changed)} moved by more than 2 "
    )
    assert changed and all(one.analysis.title in words for one in changed)
    assert "none moved" in describe_other_analyses(repeat(read(frame), read(frame)))


def test_kept_model_of_the_battery_does_not_count() -> None:
    """The automatic analyses contain the same regression, with its terms in another order."""
    data = read(make())
    lost = read(make(effect=0.3, school=0.0))
    equal = next(one.analysis for one in repeat(data, lost).compared if one.analysis.kind == "regression")
    response, _, terms = equal.title.partition(" ~ ")
    kept = f"{response} ~ {'+'.join(terms.split(' + ')[::-1])}"
    found = repeat(data, lost, kept=[kept])
    assert equal not in {one.analysis for one in found.compared}
    assert len(found.counted) == len(repeat(data, lost).counted) - 1
    assert parse_model(kept, data) in {one.analysis for one in found.compared}
