"""Relations between columns: how well unmasked columns predict a masked one, and where they predict nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.bundle.prepared_file import round_like_original
from sdcmap.bundle.recoverable_columns import check_recoverable
from sdcmap.bundle.relations import Relation, relations
from sdcmap.core.release_policy import DEFAULT_POLICY
from sdcmap.core.streams import Stream

ROWS = 1500


def people(rows: int = ROWS) -> dict[str, Any]:
    """Columns that have nothing to do with each other."""
    rng = np.random.default_rng(7)
    return {
        "wage": np.exp(rng.normal(10, 0.7, rows)).round(0),
        "rent": np.exp(rng.normal(8, 1.0, rows)).round(0),
        "height": rng.normal(170, 9, rows).round(0),
        "age": rng.integers(15, 90, rows),
        "cigarettes": np.where(rng.random(rows) < 0.3, rng.integers(1, 40, rows), 0),
        "sex": rng.choice(["f", "m"], rows),
    }


def tax(wage: Any) -> Any:
    return np.interp(wage, [0, 10_000, 30_000, 80_000, 1e7], [0, 0, 4_000, 24_000, 4.984e6])


def reported_relations(columns: dict[str, Any], method: sm.Method, **roles: Any) -> dict[str, Relation]:
    """Return the reported relation of each masked column when these columns are released under a method."""
    frame = pl.DataFrame(columns)
    texts = [name for name in frame.columns if frame[name].dtype == pl.String]
    given: dict[str, Any] = {"keys": texts, "numeric": [n for n in frame.columns if n not in texts], **roles}
    data = sm.read(frame, **given)
    masked = round_like_original(data, method.apply(data, Stream.of_seed(3, "test")))
    found = relations(data, masked, method.masks(data), data.schema.of_role("household", "stratum"))
    return {relation.name: relation for relation in found}


# ---- relations that give a masked column back -----------------------------------------------------------------
Made = Callable[[dict[str, Any], np.random.Generator], Any]
NUMBERS: dict[str, tuple[Made, set[str]]] = {
    "total": (lambda c, _: c["wage"] + c["rent"] - 300 * c["height"], {"wage", "rent", "height"}),
    "product": (lambda c, _: c["wage"] * c["rent"] / 1000, {"wage", "rent"}),
    "ratio": (lambda c, _: c["rent"] / c["wage"], {"wage", "rent"}),
    "power": (lambda c, _: (c["rent"] / (c["height"] / 100) ** 2).round(1), {"rent", "height"}),
    "square": (lambda c, _: c["wage"] ** 2, {"wage"}),
    "log": (lambda c, _: np.log(c["wage"]), {"wage"}),
    "max": (lambda c, _: np.maximum(c["wage"], c["rent"]), {"wage", "rent"}),
    "rank": (lambda c, _: c["wage"].argsort().argsort().astype(float), {"wage"}),
    "rounded total": (lambda c, _: (c["wage"] + c["rent"]).round(-3), {"wage", "rent"}),
    "rounded tax": (lambda c, _: tax(c["wage"]).round(-1), {"wage"}),
    "piecewise tax": (lambda c, _: tax(c["wage"]), {"wage"}),
    "tax by sex": (lambda c, _: np.where(np.array(c["sex"]) == "f", 1.0, 1.2) * tax(c["wage"]), {"wage", "sex"}),
    "right in 98 %": (
        lambda c, rng: np.where(rng.random(ROWS) < 0.02, c["wage"], c["wage"] + c["rent"]), {"wage", "rent"},
    ),
    "jittered copy": (lambda c, rng: c["wage"] * (1 + 0.005 * rng.normal(size=ROWS)), {"wage"}),
}  # fmt: skip


@pytest.mark.parametrize("story", NUMBERS)
def test_number_recoverable_from_unmasked_columns(story: str) -> None:
    columns = people()
    made, by = NUMBERS[story]
    columns["made"] = made(columns, np.random.default_rng(8))
    relation = reported_relations(columns, sm.Noise(on="made", variance=0.2))["made"]
    assert relation.is_recovered() and set(relation.by) == by
    assert relation.baseline < 0.3, "the noisy column alone predicts little"


@pytest.mark.parametrize("story", ["total", "product", "ratio", "power", "square", "log", "rank", "right in 98 %"])
def test_part_recoverable_from_unmasked_total(story: str) -> None:
    """The whole is released as it is: with the other parts it gives a masked part away as well."""
    columns = people()
    columns["made"] = NUMBERS[story][0](columns, np.random.default_rng(8))
    part = "rent" if "rent" in NUMBERS[story][1] else "wage"
    relation = reported_relations(columns, sm.Noise(on=part, variance=0.2))[part]
    assert relation.is_recovered() and "made" in relation.by


def test_categories_recoverable_from_unmasked_columns() -> None:
    """Smoking is fixed by the cigarettes but for one in 280; being at work by a wage that is missing; a level by age."""
    columns = people()
    rng = np.random.default_rng(9)
    columns["smokes"] = np.where((columns["cigarettes"] > 0) ^ (rng.random(ROWS) < 1 / 280), "yes", "no")
    columns["works"] = rng.choice(["yes", "no"], ROWS)
    columns["wage"] = np.where(columns["works"] == "yes", columns["wage"], np.nan)
    columns["level"] = [f"{age // 10}{sex}" for age, sex in zip(columns["age"], columns["sex"], strict=True)]
    found = reported_relations(
        columns, sm.Chain([sm.Swap(on=[name], rate=0.2) for name in ("smokes", "works", "level")])
    )
    assert {name: relation.by for name, relation in found.items()} == {
        "smokes": ("cigarettes",), "works": ("wage",), "level": ("age", "sex"),
    }  # fmt: skip
    assert all(relation.is_recovered() for relation in found.values())


def test_relation_is_learned_from_unchanged_half() -> None:
    """A column that was swapped in a few records is as good as open for all others."""
    columns = people()
    columns["group"] = [f"{age // 10}0s" for age in columns["age"]]
    columns["ages"] = [f"{age}" for age in columns["age"]]
    del columns["age"]
    found = reported_relations(columns, sm.Chain([sm.Swap(on=["group"], rate=0.2), sm.Swap(on=["ages"], rate=0.01)]))
    assert found["group"].is_recovered() and found["group"].by == ("ages",)


def test_weaker_relation_passes_and_is_reported() -> None:
    columns = people()
    columns["made"] = columns["wage"] * np.where(np.random.default_rng(1).random(ROWS) < 0.15, 3.0, 1.0)
    data = sm.read(pl.DataFrame(columns), keys="sex", numeric=[name for name in columns if name != "sex"])
    masked = sm.mask(data, sm.Noise(on="made"), seed=1)
    check = check_recoverable(data, masked, ["made"], DEFAULT_POLICY)
    assert check.passed and "'wage' predicts 8" in check.reason and "of the changed values of 'made'" in check.reason


def test_masked_column_itself_is_the_baseline() -> None:
    """After noise of a thousandth, the masked column predicts itself, so a copy adds nothing."""
    columns = people()
    columns["made"] = columns["wage"] * 1.0001
    assert reported_relations(columns, sm.Noise(on="made", variance=1e-6)) == {}


# ---- no false alarm -------------------------------------------------------------------------------------------
def test_independent_columns_predict_nothing() -> None:
    steps = [sm.Noise(on=["wage", "height"], variance=0.2), sm.Swap(on=["sex"], rate=0.2)]
    assert reported_relations(people(), sm.Chain(steps)) == {}


def test_unique_combinations_predict_nothing() -> None:
    """Three columns of fifty values leave nearly everybody alone: everything would 'depend' on them."""
    rng = np.random.default_rng(4)
    columns: dict[str, Any] = {name: [f"{code}" for code in rng.integers(0, 50, ROWS)] for name in "abc"}
    columns["region"] = rng.choice(list("NSEW"), ROWS)
    assert pl.DataFrame(columns).select("a", "b", "c").n_unique() > 0.98 * ROWS
    assert reported_relations(columns, sm.Swap(on=["region"], rate=0.2)) == {}


def households(size: int) -> dict[str, Any]:
    """Households of one size, each in one region, with a rent of its own."""
    rng = np.random.default_rng(5)
    count = ROWS // size
    region, rent = rng.choice(list("NSEW"), count), rng.normal(900, 300, count).round(2)
    home = np.repeat(np.arange(count), size)
    return {"home": home, "region": region[home], "rent": rent[home], "age": rng.integers(0, 90, len(home))}


def test_household_number_does_not_predict_swapped_region() -> None:
    """The numbers are drawn anew, and the members move together; a rent of one's own is no more than a household number."""
    columns = households(4)
    frame = pl.DataFrame(columns)
    data = sm.read(frame, keys="region", numeric=["rent", "age"], household="home")
    moved = sm.methods.HouseholdSwap(on=["region"], rate=0.2, k=0)
    masked = moved.apply(data, Stream.of_seed(3, "test"))
    assert (masked["region"] != data["region"]).mean() > 0.1
    check = check_recoverable(data, masked, ["region"], DEFAULT_POLICY)
    assert check.passed and "predict" not in check.reason


@pytest.mark.parametrize(("size", "given_back"), [(5, True), (2, False)])
def test_household_members_reveal_changed_member(size: int, given_back: bool) -> None:
    """One person moved out of a household of five is revealed by the four others; in a household of two, nobody is."""
    columns = households(size)
    found = reported_relations(
        columns, sm.Swap(on=["region"], rate=0.02), keys="region", numeric=["rent", "age"], household="home"
    )
    assert (found["region"].is_recovered() if "region" in found else False) == given_back


def test_few_records_and_selected_rows_are_handled() -> None:
    """Under a hundred records nothing is learned; of a sample, its own rows are looked at."""
    columns = people(60)
    columns["made"] = columns["wage"] ** 2
    assert reported_relations(columns, sm.Noise(on="made")) == {}
    columns = people()
    columns["made"] = columns["wage"] ** 2
    sampled = sm.Chain([sm.methods.Sample(rate=0.7), sm.Noise(on="made")])
    assert reported_relations(columns, sampled)["made"].by == ("wage",)


def test_relation_among_many_columns_is_detected() -> None:
    """Of many columns, the forty most predictive are used; empty, constant and infinite ones do no harm."""
    rng = np.random.default_rng(6)
    columns = people()
    columns |= {f"other {place}": rng.normal(size=ROWS).round(3) for place in range(45)}
    columns |= {"empty": np.full(ROWS, np.nan), "constant": np.ones(ROWS)}
    columns["endless"] = np.where(rng.random(ROWS) < 0.01, 1e300, columns["rent"])
    columns["made"] = columns["wage"] * columns["height"]
    found = reported_relations(columns, sm.Noise(on="made", variance=0.2))
    assert set(found) == {"made"} and set(found["made"].by) == {"wage", "height"} and found["made"].is_recovered()


def test_weighted_sum_is_detected_despite_missing_codes() -> None:
    rng = np.random.default_rng(8)
    pay, rent = rng.lognormal(7.5, 0.5, 1500).round(2), rng.lognormal(6.3, 0.4, 1500).round(2)
    sums, gone = (pay + 12 * rent).round(2), rng.random((2, 1500)) < 0.06
    sums[gone.any(axis=0)], pay[gone[0]], rent[gone[1]] = -8.0, -8.0, -9.0
    frame = pl.DataFrame({"pay": pay, "rent": rent, "sums": sums, "other": rng.lognormal(5, 1, 1500).round(2)})
    data = sm.read(frame, numeric=["pay", "rent", "sums", "other"])
    for name, found in (("pay", True), ("other", False)):
        masked = sm.Noise(name, 0.5).apply(data, Stream.of_seed(1))
        recovered = [relation for relation in relations(data, masked, (name,)) if relation.is_recovered()]
        assert [relation.by for relation in recovered] == ([("rent", "sums")] if found else [])
