"""The jobs of the risk measures of key combinations and of attacks, in the shape of jobs.py: (name, function of n, sizes,
peer)."""

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


def fresh(data: Microdata) -> Microdata:
    """The same file without what it remembers."""
    return Microdata(data.schema, data.columns)


def survey(n: int) -> Microdata:
    """The eight keys of `persons` with a weight."""
    data = persons(n)
    weight = Variable("weight", "numeric", "weight", storage="Float64")
    columns = {**data.columns, "weight": Column(np.random.default_rng(2).uniform(10, 500, n))}
    return Microdata(Schema((*data.schema.variables, weight)), columns)


def timed(measure: sm.Measure, data: Microdata, repeat: int = 5) -> float:
    """Seconds of one score of a file seen for the first time, kernels compiled."""
    measure.score(data, fresh(data), RNG)
    return seconds(lambda: measure.score(data, fresh(data), RNG), repeat)


def individual_risk(n: int) -> tuple[float, float]:
    """Frequencies and individual risk of eight keys with weights; the peer groups and joins in polars."""
    data = survey(n)
    codes = pl.DataFrame({name: data.codes(name) for name in data.keys}).with_columns(w=data.weights)

    def plain() -> float:
        sums = pl.len().over(data.keys).alias("f"), pl.col("w").sum().over(data.keys).alias("total")
        f, total = (column.to_numpy() for column in codes.select(*sums).get_columns())
        p = f / total
        odds, log = p / (1 - p), np.log(1 / p)
        return float(np.where(f == 1, odds * log, np.where(f == 2, odds - odds**2 * log, p / (f - (1 - p)))).mean())

    assert math.isclose(plain(), sm.risk.IndividualRisk().score(data, data, RNG).value, rel_tol=1e-9)
    return timed(sm.risk.IndividualRisk(), data), seconds(plain, 3)


def individual_risk_with_missing(n: int, gone: float) -> tuple[float, float]:
    """The same with missing values that match everything; the peer is our own time without missing values."""
    data, rng = survey(n), np.random.default_rng(1)
    part = {name: with_missing(data.column(name), rng.random(n) < gone) for name in data.keys}
    masked = Microdata(data.schema, {**data.columns, **part})
    return timed(sm.risk.IndividualRisk(), masked, 3), timed(sm.risk.IndividualRisk(), data, 3)


def individual_risk_one_percent_missing(n: int) -> tuple[float, float]:
    return individual_risk_with_missing(n, 0.01)


def individual_risk_five_percent_missing(n: int) -> tuple[float, float]:
    return individual_risk_with_missing(n, 0.05)


def plain_suda(codes: Array, count: Array) -> Array:
    """SUDA scores of cells: for each set of variables the cells that are alone, in numpy."""
    cells, width = codes.shape
    alone: dict[tuple[int, ...], Array] = {}
    score = np.zeros(cells)
    for size in range(1, width + 1):
        for chosen in combinations(range(width), size):
            key = np.ravel_multi_index(tuple(codes[:, list(chosen)].T), tuple(codes[:, list(chosen)].max(axis=0) + 1))
            alone[chosen] = np.bincount(key, count)[key] == 1
            minimal = alone[chosen].copy()
            for j in chosen if size > 1 else ():
                minimal &= ~alone[tuple(one for one in chosen if one != j)]
            score += minimal * math.factorial(width - size)
    return score


def suda(n: int) -> tuple[float, float]:
    """SUDA2 of eight keys, the count of the file included; the peer runs on the counted cells in numpy."""
    data, measure = persons(n), sm.risk.SUDA()
    met = data.view(distinct_cells, data.keys)
    assert np.array_equal(plain_suda(met.codes, met.count)[met.code], measure.suda(data))
    return timed(measure, data), seconds(lambda: plain_suda(met.codes, met.count), 3)


def suda_of_counted_cells(n: int) -> tuple[float, float]:
    """The same where the file's cells are known, as for every measure after the first."""
    data, measure = persons(n), sm.risk.SUDA()
    met = data.view(distinct_cells, data.keys)
    measure.score(data, data, RNG)
    return seconds(lambda: measure.score(data, data, RNG), 10), seconds(lambda: plain_suda(met.codes, met.count), 3)


def l_diversity(n: int) -> tuple[float, float]:
    """Distinct l-diversity of seven keys; the peer groups in polars."""
    data = persons(n)
    keys, secret = data.names[:7], data.names[7]
    codes = pl.DataFrame({name: data.codes(name) for name in data.names})
    measure = sm.risk.LDiversity(secret, on=keys)
    return timed(measure, data), seconds(lambda: codes.select((pl.col(secret).n_unique().over(keys) < 2).mean()), 3)


def unsafe_combinations(n: int) -> tuple[float, float]:
    """Combinations of up to three of eight keys; the peer counts each set in polars."""
    data = persons(n)
    codes = pl.DataFrame({name: data.codes(name) for name in data.names})

    def plain() -> None:
        for size in (1, 2, 3):
            for chosen in combinations(data.names, size):
                codes.select(pl.len().over(chosen) < 3)

    return timed(sm.risk.UnsafeCombinations(), data), seconds(plain)


def attribute_inference(n: int) -> tuple[float, float]:
    """1,000 people in and 1,000 outside the file; the peer compares each with every record in numpy, 20 people, scaled."""
    data = persons(n)
    keys, secret = data.names[:7], data.names[7]
    codes = np.column_stack([data.codes(name) for name in keys])
    hidden = data.codes(secret)

    def plain() -> None:
        for person in range(20):
            far = (codes != codes[person]).sum(axis=1)
            (hidden[far == far.min()] == hidden[person]).mean()

    return timed(sm.risk.AttributeInference(secret, on=keys), data, 1), seconds(plain, 2) * 100


JOBS: list[tuple[str, Callable[[int], tuple[float, float]], tuple[int, ...], str]] = [
    ("frequencies and individual risk, 8 keys", individual_risk, (48_842, 200_000, 1_000_000), "polars group and join"),
    (
        "the same, 1 % of values missing",
        individual_risk_one_percent_missing,
        (48_842, 200_000, 1_000_000),
        "none missing",
    ),
    (
        "the same, 5 % of values missing",
        individual_risk_five_percent_missing,
        (48_842, 200_000, 1_000_000),
        "none missing",
    ),
    ("SUDA2, 8 keys", suda, (48_842, 200_000, 1_000_000), "numpy on the counted cells"),
    ("SUDA2 of counted cells, 8 keys", suda_of_counted_cells, (10_000, 20_000, 48_842), "numpy on the counted cells"),
    ("l-diversity, 7 keys", l_diversity, (48_842, 200_000, 1_000_000), "polars"),
    ("unsafe combinations of up to 3 of 8 keys", unsafe_combinations, (48_842, 200_000, 1_000_000), "polars"),
    ("attribute inference, 2 x 1,000 people", attribute_inference, (10_000, 20_000, 48_842), "numpy, scaled"),
]
