"""Jobs of the benchmark for suppression, sampling and PRAM (jobs.py describes jobs)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np

import sdcmap as sm
from jobs import persons, seconds
from sdcmap.core.streams import Stream
from sdcmap.data.cells import cells, distinct_cells
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.wildcards import wildcard_sums
from sdcmap.testing.laws import with_missing

STREAM = Stream.of_seed(2**130)


def without_cache(data: Microdata) -> Microdata:
    """Return the same file without cached views."""
    return Microdata(data.schema, data.columns)


def plain_matches(codes: Array) -> Array:
    """Count the records that match each record, record by record in numpy; a missing value matches everything."""
    matches = np.empty(len(codes))
    for i, row in enumerate(codes):
        matches[i] = ((codes == row) | (codes < 0) | (row < 0)).all(axis=1).sum()
    return matches


def plain_suppression(codes: Array, k: int) -> Array:
    """Suppress the fewest values of each record with fewer than k matches, one after the other, on the distinct cells."""
    observed, cell, count = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    released = observed.copy()
    for i in np.flatnonzero(count < k):
        for size in range(1, codes.shape[1] + 1):
            for chosen in combinations(range(codes.shape[1]), size):
                row = observed[i].copy()
                row[list(chosen)] = -1
                if count[((released == row) | (released < 0) | (row < 0)).all(axis=1)].sum() >= k:
                    released[i] = row
                    break
            if (released[i] < 0).any():
                break
    return released[cell]


def suppression(n: int) -> tuple[float, float]:
    """Suppress values until eight keys are 3-anonymous, and verify it; the peer suppresses cell by cell in numpy."""
    data, method = persons(n), sm.Suppress(k=3)
    method.apply(data, STREAM)
    codes = np.column_stack([data.codes(name).astype(np.int32) for name in data.keys])
    return seconds(lambda: method.apply(without_cache(data), STREAM), 3), seconds(lambda: plain_suppression(codes, 3))


def frequencies(n: int, missing: float) -> tuple[float, float]:
    """Count the matches of each record if a share `missing` of the values is missing; the peer has no wildcards."""
    rng = np.random.default_rng(1)
    whole = persons(n)
    columns = {name: with_missing(whole.column(name), rng.random(n) < missing) for name in whole.names}
    data = Microdata(whole.schema, columns)

    def ours() -> Array:
        distinct = without_cache(data).view(distinct_cells, data.keys)
        return wildcard_sums(distinct.codes, distinct.count)[distinct.code]

    def plain() -> Array:
        table = without_cache(data).view(cells, data.keys)
        return table.count[table.code]

    ours(), plain()
    return seconds(ours, 3), seconds(plain, 3)


def frequencies_one_percent_missing(n: int) -> tuple[float, float]:
    return frequencies(n, 0.01)


def frequencies_five_percent_missing(n: int) -> tuple[float, float]:
    return frequencies(n, 0.05)


def frequencies_by_pairs(n: int) -> tuple[float, float]:
    """Count the same matches; the peer applies the definition record by record to 2,000 records, scaled."""
    rng = np.random.default_rng(1)
    codes = np.column_stack([persons(n).codes(name).astype(np.int32) for name in persons(n).names])
    codes[rng.random(codes.shape) < 0.01] = -1
    few = codes[:2000]
    wildcard_sums(few, np.ones(len(few)))
    scale = (n / len(few)) ** 2
    return seconds(lambda: wildcard_sums(codes, np.ones(n)), 2), seconds(lambda: plain_matches(few)) * scale


def pram(n: int) -> tuple[float, float]:
    """Apply invariant PRAM to eight variables; the peer draws category by category in numpy."""
    data = persons(n)
    method = sm.PRAM(on=data.names)
    method.apply(data, STREAM)
    rng = np.random.default_rng(1)

    def plain() -> None:
        for name in data.names:
            codes, column = data.codes(name), data.column(name)
            matrix = method._matrix(name, column)
            released = codes.copy()
            for a in range(len(matrix)):
                rows = np.flatnonzero(codes == a)
                released[rows] = rng.choice(len(matrix), len(rows), p=matrix[a])

    return seconds(lambda: method.apply(data, STREAM), 3), seconds(plain)


def sample(n: int) -> tuple[float, float]:
    """Draw a stratified sample of 10 % and adjust the weights; the peer is one random permutation."""
    data = sm.demo.population(n, seed=1)
    method = sm.methods.Sample(rate=0.1, within="Sex")
    method.apply(data, STREAM)
    rng = np.random.default_rng(1)
    return seconds(lambda: method.apply(data, STREAM), 3), seconds(lambda: rng.permutation(n), 3)


JOBS: list[tuple[str, Callable[[int], tuple[float, float]], tuple[int, ...], str]] = [
    ("suppression to 3-anonymity, 8 keys", suppression, (48_842, 200_000, 1_000_000), "cell by cell in numpy"),
    (
        "frequencies, 1 % of values missing",
        frequencies_one_percent_missing,
        (48_842, 200_000, 1_000_000),
        "missing counted as a category",
    ),
    (
        "frequencies, 5 % of values missing",
        frequencies_five_percent_missing,
        (48_842, 200_000, 1_000_000),
        "missing counted as a category",
    ),
    (
        "frequencies, 1 % of values missing, compared with all pairs",
        frequencies_by_pairs,
        (10_000, 20_000, 48_842),
        "every pair in numpy, scaled",
    ),
    ("PRAM of 8 variables", pram, (48_842, 200_000, 1_000_000), "numpy, category by category"),
    ("stratified sample", sample, (10_000, 100_000, 1_000_000), "one permutation"),
]
