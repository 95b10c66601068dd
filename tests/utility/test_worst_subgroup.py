"""The worst subgroup: its loss equals that of the subgroup scored separately."""

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


def test_worst_subgroup_is_most_masked_region(people: sm.Microdata) -> None:
    noise = RNG.normal(0, 5, 208) * np.select([people["region"] == r for r in "abc"], [0.0, 1.0, 4.0], 99.0)
    masked = people.change(None, {"wage": people["wage"] + noise})
    result = sm.utility.WorstSubgroup(LOSS, by=["region"]).score(people, masked, RNG)
    rows = np.flatnonzero(people["region"] == "c")
    own, made = (sm.Microdata(d.schema, d.take(rows).columns) for d in (people, masked))
    assert result.value == pytest.approx(LOSS.score(own, made, RNG).value)
    assert result.parts["1st"] == result.value > result.parts["2nd"] > result.parts["3rd"] == 0
    assert [result.parts[f"records of the {place}"] for place in ("1st", "2nd", "3rd")] == [40, 60, 100]
    assert result.parts["left out"] == pytest.approx(8 / 208) and result.parts["subgroups"] == 3
    assert result.parts["whole"] == pytest.approx(LOSS.score(people, masked, RNG).value)


def test_subgroups_follow_origin_of_rows(people: sm.Microdata) -> None:
    measure = sm.utility.WorstSubgroup(LOSS, by=["region"], fewest=10)
    order = RNG.permutation(208)
    assert measure.score(people, people.take(order), RNG).value == 0
    assert measure.score(people, people.take(order[:150]), RNG).value == 0


def test_invalid_input_is_reported(people: sm.Microdata) -> None:
    with pytest.raises(PlanError, match="WorstSubgroup.measure must be a loss"):
        sm.utility.WorstSubgroup(sm.SmallCells(), by=["region"])
    with pytest.raises(PlanError, match="WorstSubgroup.measure must not be random"):
        sm.utility.WorstSubgroup(sm.utility.MMD(), by=["region"])
    with pytest.raises(SchemaError, match="no column 'regio'"):
        sm.utility.WorstSubgroup(LOSS, by=["regio"]).score(people, people, RNG)
    with pytest.raises(Undefined, match="no subgroup with at least 500 records"):
        sm.utility.WorstSubgroup(LOSS, by=["region"], fewest=500).score(people, people.change(None, {}), RNG)
