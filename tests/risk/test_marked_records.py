"""Masked records that an edit rule reveals."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.risk import MarkedRecords

RULE = 'age < 15 -> marital = "never"'


def people(age: list[int | None], marital: list[str | None]) -> sm.Microdata:
    return sm.read(pl.DataFrame({"age": age, "marital": marital}), keys="marital", numeric="age")


def value(data: sm.Microdata, masked: sm.Microdata) -> sm.Estimate:
    return MarkedRecords(RULE).apply(data, masked, np.random.default_rng(0))


def test_share_of_marked_records_by_hand() -> None:
    """Three of six records are masked; one of them is a married child."""
    data = people([10, 12, 30, 40, 50, None], ["never", "never", "married", "never", "married", "married"])
    code = {level: place for place, level in enumerate(data.column("marital").levels)}  # type: ignore[arg-type]
    new = np.array([code["married"], code["never"], code["never"], code["married"]])
    masked = data.change(np.array([0, 1, 2, 3]), {"marital": new.astype(np.uint8)})
    estimate = value(data, masked)
    assert estimate.value == pytest.approx(1 / 3)
    assert estimate.parts == {"masked": 3 / 6, "marked": 1 / 6}
    assert MarkedRecords(RULE).records(data, masked).tolist() == [1, 0, 0, 0, 0, 0]


def test_rule_broken_in_original_marks_nobody() -> None:
    data = people([10, 12, 30], ["married", "never", "married"])
    codes = data.column("marital").values
    masked = data.change(None, {"marital": codes[[0, 2, 1]]})
    assert value(data, masked).value == 0


def test_unmasked_file_scores_zero_and_synthetic_is_undefined() -> None:
    data = people(list(range(60)), ["never"] * 20 + ["married"] * 40)
    assert value(data, data.change(None, {})).value == 0
    with pytest.raises(sm.errors.Undefined, match="synthetic"):
        value(data, sm.mask(data, sm.Synthesize(on=["marital", "age"]), seed=1))


def test_recoded_column_of_rule_is_undefined() -> None:
    data = people(list(range(60)), ["never"] * 20 + ["married"] * 20 + ["widowed"] * 20)
    masked = sm.mask(data, sm.Recode(on=["marital"], merge=[["never", "widowed"]]), seed=1)
    with pytest.raises(sm.errors.Undefined, match="'marital' was recoded"):
        value(data, masked)


def test_limit_on_marked_records_is_respected() -> None:
    """The swap loses nothing in pay and would be chosen, except for the records it marks."""
    age = [a % 80 for a in range(800)]
    frame = {"age": age, "marital": ["never" if a < 15 else "married" for a in age], "pay": [100.0 + a for a in age]}
    data = sm.read(pl.DataFrame(frame), keys="marital", numeric=["age", "pay"])
    methods = [sm.Swap(on=["marital"], rate=0.1), sm.Noise(on="pay")]
    measures = [MarkedRecords(RULE), sm.utility.KolmogorovSmirnov(on="pay")]
    plan = sm.Plan(methods, measures, seed=2**200)
    scores = sm.sweep(data, plan, workers=1)
    maps = [sm.RUMap(scores, plan.risk, plan.utility, limits) for limits in ({}, {plan.risk[0]: 0.05})]
    chosen = [ru.choose(sm.Threshold(risk=1.0)).name for ru in maps]
    assert [name.split()[0] for name in chosen] == ["marital", "pay"]
