"""Recoding record by record: everybody goes up the ladder as far as he must, and no further."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.core.streams import Stream
from sdcmap.errors import PlanError, SchemaError

ONCE = Stream.of_seed(1)
LADDER = [sm.Recode(on="age", width=10), sm.Recode(on="age", width=40)]


def test_who_has_enough_others_keeps_his_value() -> None:
    """Three of 21 stay; 31, 32, 33 meet in ten years; 45, 58, 61 in 40, and 90 nowhere."""
    ages = [21.0, 21, 21, 31, 32, 33, 45, 58, 61, 90, None]
    data = sm.read(pl.DataFrame({"age": ages}), numeric="all")
    masked = sm.methods.RecodeLocally(LADDER, k=3).apply(data, ONCE)
    told = list(masked.frame()["age"])
    assert told[:6] == ["21"] * 3 + ["(30, 40]"] * 3
    assert told[6:9] == ["(40, 80]"] * 3 and told[9:] == [sm.mask(data, LADDER[1], seed=1).frame()["age"][9], None]
    levels = masked.column("age").levels
    assert levels is not None and masked.schema["age"].kind == "ordinal"
    assert levels.to_list() == ["21", "(30, 40]", "(40, 80]", told[9], None]


def test_every_settled_combination_has_k_records_and_nobody_goes_up_in_vain() -> None:
    data = sm.demo.population(2000, seed=1)
    merged = sm.Recode(on="Educ", merge=[data.column("Educ").levels.drop_nulls().to_list()])
    method = sm.methods.RecodeLocally([sm.Recode(on="Educ", prefix=1), merged], k=5, on=["Educ", "Age", "Sex"])
    masked = method.apply(data, ONCE)
    names = ["Educ", "Age", "Sex"]
    before, after = (d.frame().select(pl.col(names).cast(pl.String)) for d in (data, masked))
    size = after.select(pl.len().over(names)).to_series().to_numpy()
    last = (after["Educ"] == merged.apply(data, ONCE).frame()["Educ"]).to_numpy()
    assert (size[~last] >= 5).all()
    stay = before.select(pl.len().over(names)).to_series().to_numpy() >= 5
    assert (after["Educ"] == before["Educ"]).to_numpy()[stay].all() and 0 < last.mean() < 0.5
    everybody = sm.Chain([method, sm.Suppress(on=names, k=5)]).apply(data, ONCE)
    assert sm.KAnonymity(k=5, on=names).score(data, everybody, np.random.default_rng(0)).value == 0


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(PlanError, match="at least one recoding"):
        sm.methods.RecodeLocally([])
    with pytest.raises(PlanError, match="Noise is none"):
        sm.methods.RecodeLocally([sm.Noise(on="age")])
    data = sm.read(pl.DataFrame({"age": [1.0, 2.0]}), numeric="all")
    with pytest.raises(SchemaError, match="no column 'agee'"):
        sm.methods.RecodeLocally(LADDER, on="agee").apply(data, ONCE)
