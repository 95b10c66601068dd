"""The worst subgroup: its loss is that of the subgroup scored on its own."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.errors import PlanError, SchemaError, Undefined

RNG = np.random.default_rng(0)
LOSS = sm.utility.IL1s(on="wage")


@pytest.fixture
def people() -> sm.Microdata:
    rng = np.random.default_rng(1)
    region = np.repeat(["a", "b", "c", "d"], [100, 60, 40, 8])
    return sm.read(
        pl.DataFrame({"region": region, "wage": rng.lognormal(3, 1, 208)}), keys=["region"], numeric=["wage"]
    )


def test_the_region_that_was_masked_most_is_told(people: sm.Microdata) -> None:
    noise = RNG.normal(0, 5, 208) * np.select([people["region"] == r for r in "abc"], [0.0, 1.0, 4.0], 99.0)
    masked = people.change(None, {"wage": people["wage"] + noise})
    found = sm.utility.WorstSubgroup(LOSS, by=["region"]).score(people, masked, RNG)
    rows = np.flatnonzero(people["region"] == "c")
    own, made = (sm.Microdata(d.schema, d.take(rows).columns) for d in (people, masked))
    assert found.value == pytest.approx(LOSS.score(own, made, RNG).value)
    assert found.parts["1st"] == found.value > found.parts["2nd"] > found.parts["3rd"] == 0
    assert [found.parts[f"records of the {place}"] for place in ("1st", "2nd", "3rd")] == [40, 60, 100]
    assert found.parts["left out"] == pytest.approx(8 / 208) and found.parts["subgroups"] == 3
    assert found.parts["whole"] == pytest.approx(LOSS.score(people, masked, RNG).value)


def test_rows_in_another_order_and_a_sample_stay_with_their_people(people: sm.Microdata) -> None:
    measure = sm.utility.WorstSubgroup(LOSS, by=["region"], fewest=10)
    order = RNG.permutation(208)
    assert measure.score(people, people.take(order), RNG).value == 0
    assert measure.score(people, people.take(order[:150]), RNG).value == 0


def test_what_does_not_fit_is_named(people: sm.Microdata) -> None:
    with pytest.raises(PlanError, match="WorstSubgroup.measure must be a loss"):
        sm.utility.WorstSubgroup(sm.SmallCells(), by=["region"])
    with pytest.raises(PlanError, match="WorstSubgroup.measure must not draw at random"):
        sm.utility.WorstSubgroup(sm.utility.MMD(), by=["region"])
    with pytest.raises(SchemaError, match="no column 'regio'"):
        sm.utility.WorstSubgroup(LOSS, by=["regio"]).score(people, people, RNG)
    with pytest.raises(Undefined, match="no subgroup of 500 records"):
        sm.utility.WorstSubgroup(LOSS, by=["region"], fewest=500).score(people, people.change(None, {}), RNG)
