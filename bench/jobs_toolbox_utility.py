"""Jobs of the benchmark for utility measures (jobs.py describes jobs). The peers are plain formulas."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np

import sdcmap as sm
from jobs import persons, seconds
from jobs_attacks import masked_mixture
from sdcmap.core.streams import Stream
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.utility.query_error import range_sums

STREAM = Stream.of_seed(2**130)
AMOUNTS = ("wage", "interest")


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def without_cache(data: Microdata) -> Microdata:
    """Return the same file without cached views."""
    return Microdata(data.schema, data.columns, data.origin, data.base, data.changes)


def margins(n: int) -> tuple[float, float]:
    """Compute Kolmogorov-Smirnov distances of two noisy amounts; the peer uses numpy's searchsorted."""
    data = sm.demo.population(n, seed=1)
    masked = sm.Noise(on=AMOUNTS).apply(data, STREAM)
    measure = sm.utility.KolmogorovSmirnov(on=AMOUNTS)
    measure.apply(data, masked, rng())

    def plain() -> None:
        for name in AMOUNTS:
            x, y = np.sort(data[name]), np.sort(masked[name])
            at = np.concatenate([x, y])
            np.abs(np.searchsorted(x, at, "right") / n - np.searchsorted(y, at, "right") / n).max()

    return seconds(lambda: measure.apply(data, without_cache(masked), rng()), 2), seconds(plain)


def tables(n: int) -> tuple[float, float]:
    """Compute the relative error of all tables of up to three of eight keys; the peer counts each table in numpy."""
    data = persons(n)
    masked = sm.Swap(on=["Educ", "Race"], rate=0.05).apply(data, STREAM)
    measure = sm.utility.TableError()
    measure.apply(data, masked, rng())
    codes = [np.column_stack([d.codes(name) for name in data.keys]).astype(np.int64) for d in (data, masked)]

    def plain() -> None:
        for size in (1, 2, 3):
            for chosen in combinations(range(8), size):
                space = 64 ** np.arange(size)
                before, after = (np.bincount(c[:, chosen] @ space, minlength=64**size) for c in codes)
                observed = before > 0
                (np.abs(after[observed] - before[observed]) / before[observed]).mean()

    return seconds(lambda: measure.apply(data, without_cache(masked), rng()), 2), seconds(plain)


def two_way_logit(x: Array, y: Array) -> Array:
    """Return the fitted probabilities of a logit, by Newton's method on the whole design matrix."""
    slopes = np.zeros(x.shape[1])
    for _ in range(6):
        p = 1 / (1 + np.exp(-x @ slopes))
        ridge = 1e-6 * np.eye(len(slopes))
        slopes = slopes + np.linalg.solve((x * (p * (1 - p))[:, np.newaxis]).T @ x + ridge, x.T @ (y - p))
    probabilities: Array = 1 / (1 + np.exp(-x @ slopes))
    return probabilities


def propensity(n: int) -> tuple[float, float]:
    """Compute the pMSE of four keys with two-way terms on distinct combinations; the peer uses all rows at once."""
    data = persons(n)
    masked = sm.Swap(on=["Educ", "Race"], rate=0.05).apply(data, STREAM)
    on = ("Age", "Educ", "Race", "Sex")
    measure = sm.utility.Propensity(on=on)
    measure.apply(data, masked, rng())

    def plain() -> None:
        dummies = []
        for name in on:
            codes = np.concatenate([data.codes(name), masked.codes(name)])
            dummies.append([codes == level for level in np.unique(codes)[1:]])
        columns = [one for own in dummies for one in own]
        columns += [a * b for first, second in combinations(dummies, 2) for a in first for b in second]
        x = np.column_stack([np.ones(2 * n), *columns]).astype(float)
        two_way_logit(x, np.repeat([0.0, 1.0], n))

    return seconds(lambda: measure.apply(data, without_cache(masked), rng()), 2), seconds(plain)


def propensity_of_amounts(n: int) -> tuple[float, float]:
    """Compute the pMSE of two keys and two amounts in blocks of rows, with its null distribution.

    The peer uses the whole design matrix and computes no null distribution.
    """
    data = sm.demo.population(n, seed=1)
    masked = sm.Noise(on=AMOUNTS).apply(data, STREAM)
    measure = sm.utility.Propensity(on=("Educ", "Sex", *AMOUNTS))
    measure.apply(data, masked, rng())

    def plain() -> None:
        own = []
        for name in ("Educ", "Sex"):
            codes = np.concatenate([data.codes(name), masked.codes(name)])
            own.append([codes == level for level in np.unique(codes)[1:]])
        for name in AMOUNTS:
            both = np.concatenate([data[name], masked[name]])
            own.append([(both - data[name].mean()) / data[name].std()])
        columns = [one for each in own for one in each] + [own[2][0] ** 2, own[3][0] ** 2]
        columns += [a * b for first, second in combinations(own, 2) for a in first for b in second]
        x = np.column_stack([np.ones(2 * n), *columns]).astype(float)
        two_way_logit(x, np.repeat([0.0, 1.0], n))

    return seconds(lambda: measure.apply(data, without_cache(masked), rng())), seconds(plain)


def propensity_of_many_terms(n: int) -> tuple[float, float]:
    """Compute the pMSE of 14 mixed columns, about 4,000 two-way terms, with its null distribution.

    The peer computes X'X of as many terms in numpy from 2,000 rows, scaled. A dense fit needs this in each of its steps.
    """
    data, _, masked = masked_mixture(n)
    measure = sm.utility.Propensity()
    measure.apply(*(masked_mixture(300)[k] for k in (0, 2)), rng())
    x = rng().normal(size=(2000, 4000))
    return seconds(lambda: measure.apply(data, without_cache(masked), rng())), seconds(lambda: x.T @ x) * 2 * n / 2000


def queries(n: int) -> tuple[float, float]:
    """Answer 1,000 two-way range queries on eight columns; the peer answers 20 of them in numpy, scaled."""
    draw = rng()
    columns, no_weights = draw.random((8, n)), np.empty(0)
    low = np.full((1000, 8), np.nan)
    for q in range(1000):
        low[q, draw.choice(8, 2, replace=False)] = draw.random(2) * 0.7
    high = low + 0.3
    range_sums(columns[:, :10].copy(), no_weights, low, high)

    def plain() -> None:
        for q in range(20):
            bounded = np.flatnonzero(~np.isnan(low[q]))
            np.logical_and.reduce([(columns[v] >= low[q, v]) & (columns[v] <= high[q, v]) for v in bounded]).sum()

    return seconds(lambda: range_sums(columns, no_weights, low, high)), 50 * seconds(plain)


JOBS: list[tuple[str, Callable[[int], tuple[float, float]], tuple[int, ...], str]] = [
    ("Kolmogorov-Smirnov, 2 amounts", margins, (10_000, 100_000, 1_000_000), "searchsorted in numpy"),
    ("error of all tables of up to 3 of 8 keys", tables, (48_842, 200_000, 1_000_000), "numpy, table by table"),
    ("pMSE of 4 keys, two-way terms", propensity, (48_842, 200_000, 1_000_000), "numpy, all rows"),
    (
        "pMSE of 2 keys and 2 amounts, two-way terms",
        propensity_of_amounts,
        (48_842, 200_000, 1_000_000),
        "numpy, all rows",
    ),
    ("pMSE of 14 mixed columns, 4,000 terms", propensity_of_many_terms, (5_000, 20_000, 48_842), "one X'X in numpy"),
    ("1,000 range queries", queries, (10_000, 100_000, 1_000_000), "numpy, query by query"),
]
