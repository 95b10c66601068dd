"""Which relations a released file weakens, and which original coefficients a public note may state."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.bundle.note import MAX_RELATIONS, describe_relations
from sdcmap.kernels.arrays import Array
from sdcmap.utility.analysis_change import compare_analyses
from sdcmap.utility.changed_findings import ChangedRelation, find_changed_relations

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
    compared = compare_analyses(data, read(after), "all", [model])
    return [one for one in find_changed_relations(compared, data) if one.model == compared[0].analysis.title]


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
        assert one.original == pytest.approx(old, rel=1e-6) and one.share == pytest.approx(new / old, rel=1e-5)


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
    assert all((one.share, one.original, one.error) == (None, None, None) for one in found)
    assert not any("east" in one.term for one in found)


def test_model_with_products_states_no_number() -> None:
    model = "log(wage) ~ school + region + region:school"
    found = changed(make(), make(school=0.0), model)
    assert "school" in {one.term for one in found} and all(one.original is None for one in found)


def test_note_lists_the_most_serious_first_and_counts_the_others() -> None:
    data, lost = read(make()), read(make(effect=0.3, school=0.0))
    relations = describe_relations(data, lost, [MODEL])
    assert relations is not None and "lead to another conclusion" in relations["summary"]
    order = [one["change"] for one in relations["changed"]]
    ranks = {"opposite sign": 0, "lost": 1, "not in the original": 2, "weaker": 3}
    assert order == sorted(order, key=ranks.__getitem__) and order[0] == "opposite sign"
    assert len(order) <= MAX_RELATIONS
    for one in relations["changed"]:  # two digits
        assert one["original"] is None or one["original"] == float(f"{one['original']:.1e}")
    unchanged = describe_relations(data, data, [MODEL])
    assert unchanged is not None and unchanged["changed"] == [] and unchanged["left_out"] == 0


def test_columns_that_are_not_released_are_not_named() -> None:
    data = read(make())
    released = read(make(effect=0.3, school=0.0)).only(["region", "school", "wage"])
    relations = describe_relations(data, released, [])
    assert relations is not None and "school" in str(relations["changed"]) and "minority" not in str(relations)
    assert describe_relations(data, released, [MODEL]) is None
