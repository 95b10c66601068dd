"""Jobs of the benchmark for risk measures of key combinations and for attribute inference (jobs.py describes jobs)."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations

import numpy as np
import polars as pl

import sdcmap as sm
from jobs import persons, seconds
from sdcmap.data.cells import distinct_cells
from sdcmap.data.microdata import Column, Microdata
from sdcmap.data.schema import Schema, Variable
from sdcmap.kernels.arrays import Array
from sdcmap.testing.laws import with_missing

RNG = np.random.default_rng(1)


def without_cache(data: Microdata) -> Microdata:
    """Return the same file without cached views."""
    return Microdata(data.schema, data.columns)


def survey(n: int) -> Microdata:
    """Return the eight keys of `persons` with a weight."""
    data = persons(n)
    weight = Variable("weight", "numeric", "weight", storage="Float64")
    columns = {**data.columns, "weight": Column(np.random.default_rng(2).uniform(10, 500, n))}
    return Microdata(Schema((*data.schema.variables, weight)), columns)


def score_seconds(measure: sm.Measure, data: Microdata, repeat: int = 5) -> float:
    """Return the seconds of one score of a masked file without cached views, after the kernels were compiled."""
    measure.score(data, without_cache(data), RNG)
    return seconds(lambda: measure.score(data, without_cache(data), RNG), repeat)


def individual_risk(n: int) -> tuple[float, float]:
    """Compute frequencies and individual risk of eight keys with weights; the peer groups and joins in polars."""
    data = survey(n)
    codes = pl.DataFrame({name: data.codes(name) for name in data.keys}).with_columns(w=data.weights)

    def plain() -> float:
        sums = pl.len().over(data.keys).alias("f"), pl.col("w").sum().over(data.keys).alias("total")
        f, total = (column.to_numpy() for column in codes.select(*sums).get_columns())
        p = f / total
        odds, log = p / (1 - p), np.log(1 / p)
        return float(np.where(f == 1, odds * log, np.where(f == 2, odds - odds**2 * log, p / (f - (1 - p)))).mean())

    assert math.isclose(plain(), sm.risk.IndividualRisk().score(data, data, RNG).value, rel_tol=1e-9)
    return score_seconds(sm.risk.IndividualRisk(), data), seconds(plain, 3)


def individual_risk_with_missing(n: int, missing: float) -> tuple[float, float]:
    """Do the same with missing values that match everything; the peer is our own time without missing values."""
    data, rng = survey(n), np.random.default_rng(1)
    part = {name: with_missing(data.column(name), rng.random(n) < missing) for name in data.keys}
    masked = Microdata(data.schema, {**data.columns, **part})
    return score_seconds(sm.risk.IndividualRisk(), masked, 3), score_seconds(sm.risk.IndividualRisk(), data, 3)


def individual_risk_one_percent_missing(n: int) -> tuple[float, float]:
    return individual_risk_with_missing(n, 0.01)


def individual_risk_five_percent_missing(n: int) -> tuple[float, float]:
    return individual_risk_with_missing(n, 0.05)


def plain_suda(codes: Array, count: Array) -> Array:
    """Return the SUDA scores of cells in numpy: for each set of variables, find the cells that are unique on it."""
    cells, width = codes.shape
    unique: dict[tuple[int, ...], Array] = {}
    score = np.zeros(cells)
    for size in range(1, width + 1):
        for chosen in combinations(range(width), size):
            key = np.ravel_multi_index(tuple(codes[:, list(chosen)].T), tuple(codes[:, list(chosen)].max(axis=0) + 1))
            unique[chosen] = np.bincount(key, count)[key] == 1
            minimal = unique[chosen].copy()
            for j in chosen if size > 1 else ():
                minimal &= ~unique[tuple(one for one in chosen if one != j)]
            score += minimal * math.factorial(width - size)
    return score


def suda(n: int) -> tuple[float, float]:
    """Run SUDA2 on eight keys, including the count of the cells; the peer runs on counted cells in numpy."""
    data, measure = persons(n), sm.risk.SUDA()
    distinct = data.view(distinct_cells, data.keys)
    assert np.array_equal(plain_suda(distinct.codes, distinct.count)[distinct.code], measure.suda(data))
    return score_seconds(measure, data), seconds(lambda: plain_suda(distinct.codes, distinct.count), 3)


def suda_of_counted_cells(n: int) -> tuple[float, float]:
    """Do the same after the cells were counted, as for every measure after the first."""
    data, measure = persons(n), sm.risk.SUDA()
    distinct = data.view(distinct_cells, data.keys)
    measure.score(data, data, RNG)
    return seconds(lambda: measure.score(data, data, RNG), 10), seconds(
        lambda: plain_suda(distinct.codes, distinct.count), 3
    )


def l_diversity(n: int) -> tuple[float, float]:
    """Compute distinct l-diversity of seven keys; the peer groups in polars."""
    data = persons(n)
    keys, secret = data.names[:7], data.names[7]
    codes = pl.DataFrame({name: data.codes(name) for name in data.names})
    measure = sm.risk.LDiversity(secret, on=keys)
    return score_seconds(measure, data), seconds(
        lambda: codes.select((pl.col(secret).n_unique().over(keys) < 2).mean()), 3
    )


def unsafe_combinations(n: int) -> tuple[float, float]:
    """Count all combinations of up to three of eight keys; the peer counts each set in polars."""
    data = persons(n)
    codes = pl.DataFrame({name: data.codes(name) for name in data.names})

    def plain() -> None:
        for size in (1, 2, 3):
            for chosen in combinations(data.names, size):
                codes.select(pl.len().over(chosen) < 3)

    return score_seconds(sm.risk.UnsafeCombinations(), data), seconds(plain)


def attribute_inference(n: int) -> tuple[float, float]:
    """Infer an attribute of 1,000 members and 1,000 non-members.

    The peer compares 20 people with every record in numpy, scaled.
    """
    data = persons(n)
    keys, secret = data.names[:7], data.names[7]
    codes = np.column_stack([data.codes(name) for name in keys])
    hidden = data.codes(secret)

    def plain() -> None:
        for person in range(20):
            far = (codes != codes[person]).sum(axis=1)
            (hidden[far == far.min()] == hidden[person]).mean()

    return score_seconds(sm.risk.AttributeInference(secret, on=keys), data, 1), seconds(plain, 2) * 100


JOBS: list[tuple[str, Callable[[int], tuple[float, float]], tuple[int, ...], str]] = [
    ("frequencies and individual risk, 8 keys", individual_risk, (48_842, 200_000, 1_000_000), "polars group and join"),
    (
        "individual risk, 1 % of values missing",
        individual_risk_one_percent_missing,
        (48_842, 200_000, 1_000_000),
        "the same without missing values",
    ),
    (
        "individual risk, 5 % of values missing",
        individual_risk_five_percent_missing,
        (48_842, 200_000, 1_000_000),
        "the same without missing values",
    ),
    ("SUDA2, 8 keys", suda, (48_842, 200_000, 1_000_000), "numpy on cells already counted"),
    (
        "SUDA2, 8 keys, cells already counted",
        suda_of_counted_cells,
        (10_000, 20_000, 48_842),
        "numpy on cells already counted",
    ),
    ("l-diversity, 7 keys", l_diversity, (48_842, 200_000, 1_000_000), "polars"),
    ("unsafe combinations of up to 3 of 8 keys", unsafe_combinations, (48_842, 200_000, 1_000_000), "polars"),
    ("attribute inference, 2 x 1,000 people", attribute_inference, (10_000, 20_000, 48_842), "numpy, scaled"),
]
