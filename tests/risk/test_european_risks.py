"""Singling out and linkability: by hand, against Anonymeter's examples, and in the extreme cases."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.errors import PlanError, Undefined
from sdcmap.kernels.tables.attribution import same_nearest_probability
from sdcmap.risk.singling_out import (
    ABOVE,
    AT_LEAST,
    AT_MOST,
    BELOW,
    EQUAL,
    MISSING,
    UNEQUAL,
    _unique_conditions,
    find_single_matches,
)

RNG = np.random.default_rng(0)


def people(n: int, seed: int) -> pl.DataFrame:
    """Return a file with two categories and two amounts that few people share."""
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {"region": rng.integers(0, 6, n).astype(str), "sex": rng.choice(["f", "m"], n)}
        | {"wage": np.round(rng.lognormal(7, 1, n), 2), "rent": np.round(rng.lognormal(5, 1, n), 2)}
    )


def as_read(frame: pl.DataFrame) -> sm.Microdata:
    return sm.read(frame, keys=["region", "sex"], numeric=["wage", "rent"])


def scored(measure: sm.Measure, original: sm.Microdata, masked: sm.Microdata, seed: int = 0) -> sm.Estimate:
    return measure.apply(original, masked, np.random.default_rng(seed))


def test_single_matches_match_definition() -> None:
    x = np.array([[0, 1.5], [0, 3.0], [1, np.nan], [2, 3.0]])
    column = np.array([[0, 1], [0, 1], [1, 0], [1, 1], [1, 1], [0, 0]])
    test = np.array(
        [[EQUAL, AT_LEAST], [EQUAL, AT_MOST], [MISSING, EQUAL], [ABOVE, BELOW], [UNEQUAL, UNEQUAL], [AT_LEAST, AT_MOST]]
    )
    at = np.array([[0, 2.0], [0, 9.0], [0, 1.0], [1.0, 3.0], [3.0, 3.0], [0.0, 2.0]])
    assert find_single_matches(x, column, test, at).tolist() == [1, -1, 2, 0, -1, -1]


def test_univariate_statements_match_anonymeter() -> None:
    """Their test with a null: four names, three numbers, the two ends and the one missing value; column by column in
    turn."""
    released = np.array([[0, 2.0], [1, 1.0], [2, 3.0], [3, np.nan]])
    result = _unique_conditions(released, np.array([False, True]), 20, RNG)
    stated = {(int(c[0]), int(t[0]), float(a[0])) for c, t, a in zip(*result, strict=True)}
    ends = {(1, AT_MOST, 1.0), (1, AT_LEAST, 3.0), (1, MISSING, 0.0)}
    assert stated == {(0, EQUAL, float(v)) for v in range(4)} | {(1, EQUAL, v) for v in (1.0, 2.0, 3.0)} | ends
    assert result.column[:8, 0].tolist() == [0, 1] * 4


def test_linkability_matches_anonymeter_example() -> None:
    """Their test with one neighbor: of four people only the first is joined, 0.25."""
    known, released = np.array([[0, 0], [0, 1], [4, 9], [0, 4]]) / 9, np.array([[0, 0], [1, 1], [4, 4], [9, 9]]) / 9
    none = np.empty((4, 0), dtype=np.int64)
    sides = [(known[:, [j]].copy(), none, released[:, [j]].copy(), none, np.ones(1)) for j in (0, 1)]
    observed = same_nearest_probability(*sides[0], *sides[1])
    assert observed.tolist() == [1, 0, 0, 0]


def test_linkability_breaks_ties_at_random() -> None:
    """On the left three records tie, on the right two, and two of them are the same: 2 of 6 pairs."""
    code, none = np.array([[0]]), np.empty((1, 0))
    left, right = np.array([[0], [0], [0], [1]]), np.array([[0], [0], [1], [1]])
    nothing = np.empty((4, 0))
    sides = ((none, code, nothing, side, np.ones(1)) for side in (left, right))
    assert same_nearest_probability(*next(sides), *next(sides)).tolist() == [pytest.approx(2 / 6)]


@pytest.mark.parametrize(
    ("measure", "least"),
    [
        (sm.risk.Linkability(targets=150), 0.5),
        (sm.risk.SinglingOut(queries=150), 0.5),
        (sm.risk.SinglingOut("univariate"), 0.9),
    ],
)
def test_unmasked_file_has_high_risk(measure: sm.Measure, least: float) -> None:
    data = as_read(people(600, 1))
    result = scored(measure, data, data.change(None, {}))
    assert result.value > least and result.parts["members"] > 0.5 > result.parts["naive"]
    assert result.parts["residual"] >= result.value - 1e-12


@pytest.mark.parametrize(
    "measure",
    [sm.risk.Linkability(targets=100), sm.risk.SinglingOut(queries=80), sm.risk.SinglingOut("univariate", queries=80)],
)
def test_unrelated_release_has_risk_zero_on_average(measure: sm.Measure, tmp_path: Path) -> None:
    """The release is about other people than members and non-members: means over files within 4 standard errors of 0."""
    values = []
    for seed in range(12):
        others = tmp_path / f"{seed}.csv"
        people(300, 1000 + seed).write_csv(others)
        strangers = people(300, 2000 + seed)
        released = sm.Microdata(as_read(strangers).schema, as_read(strangers).columns, paired=False)
        controlled = type(measure)(**{**measure.__getstate__(), "control_file": str(others)})
        values.append(scored(controlled, as_read(people(300, seed)), released, seed).value)
    assert abs(np.mean(values)) < 4 * np.std(values, ddof=1) / math.sqrt(12) + 1e-12


def test_identical_records_cannot_be_singled_out() -> None:
    data = as_read(pl.concat([people(1, 1)] * 40))
    result = scored(sm.risk.SinglingOut(), data, data.change(None, {}))
    assert (result.value, result.parts["queries"]) == (0.0, 0.0) and result.se is not None


def test_invalid_input_is_reported() -> None:
    with pytest.raises(PlanError, match=r"Linkability.left and .right must not share a column"):
        sm.risk.Linkability(left=["a"], right=["a", "b"])
    with pytest.raises(PlanError, match=r"Linkability needs .left and .right, or neither"):
        sm.risk.Linkability(left=["a"])
    data = as_read(people(30, 1))
    labels = sm.Recode(on="wage", bins=3).mask(data, RNG)
    strangers = sm.Microdata(labels.schema, {n: labels.column(n) for n in labels.names}, paired=False)
    with pytest.raises(Undefined, match="a synthetic file needs a control file"):
        scored(sm.risk.SinglingOut(), data, strangers)
