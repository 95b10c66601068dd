"""The jobs of the non-perturbative methods and of PRAM, in the shape of jobs.py: (name, function of n, sizes, peer)."""

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


def fresh(data: Microdata) -> Microdata:
    """The same file without what it remembers."""
    return Microdata(data.schema, data.columns)


def plain_matches(codes: Array) -> Array:
    """Records that match each record, missing values matching everything, record by record in numpy."""
    found = np.empty(len(codes))
    for i, row in enumerate(codes):
        found[i] = ((codes == row) | (codes < 0) | (row < 0)).all(axis=1).sum()
    return found


def plain_suppression(codes: Array, k: int) -> Array:
    """Blank the fewest values of each record that has fewer than k matches, one after the other, on the distinct cells."""
    met, place, count = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    released = met.copy()
    for i in np.flatnonzero(count < k):
        for size in range(1, codes.shape[1] + 1):
            for chosen in combinations(range(codes.shape[1]), size):
                row = met[i].copy()
                row[list(chosen)] = -1
                if count[((released == row) | (released < 0) | (row < 0)).all(axis=1)].sum() >= k:
                    released[i] = row
                    break
            if (released[i] < 0).any():
                break
    return released[place]


def suppression(n: int) -> tuple[float, float]:
    """3-anonymity of eight keys, verified; the peer blanks cell by cell in numpy."""
    data, method = persons(n), sm.Suppress(k=3)
    method.apply(data, STREAM)
    codes = np.column_stack([data.codes(name).astype(np.int32) for name in data.keys])
    return seconds(lambda: method.apply(fresh(data), STREAM), 3), seconds(lambda: plain_suppression(codes, 3))


def frequencies(n: int, gone: float) -> tuple[float, float]:
    """Matching records of each record where `gone` of the values are missing; the peer counts without wildcards."""
    rng = np.random.default_rng(1)
    whole = persons(n)
    columns = {name: with_missing(whole.column(name), rng.random(n) < gone) for name in whole.names}
    data = Microdata(whole.schema, columns)

    def ours() -> Array:
        met = fresh(data).view(distinct_cells, data.keys)
        return wildcard_sums(met.codes, met.count)[met.code]

    def plain() -> Array:
        table = fresh(data).view(cells, data.keys)
        return table.count[table.code]

    ours(), plain()
    return seconds(ours, 3), seconds(plain, 3)


def frequencies_one_percent_missing(n: int) -> tuple[float, float]:
    return frequencies(n, 0.01)


def frequencies_five_percent_missing(n: int) -> tuple[float, float]:
    return frequencies(n, 0.05)


def frequencies_by_pairs(n: int) -> tuple[float, float]:
    """The same beside the definition, record by record, on as many records as it can take."""
    rng = np.random.default_rng(1)
    codes = np.column_stack([persons(n).codes(name).astype(np.int32) for name in persons(n).names])
    codes[rng.random(codes.shape) < 0.01] = -1
    few = codes[:2000]
    wildcard_sums(few, np.ones(len(few)))
    scale = (n / len(few)) ** 2
    return seconds(lambda: wildcard_sums(codes, np.ones(n)), 2), seconds(lambda: plain_matches(few)) * scale


def pram(n: int) -> tuple[float, float]:
    """Invariant PRAM of eight variables; the peer draws each category's records with numpy."""
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
    """A stratified sample of a tenth, weights adjusted; the peer is one random permutation."""
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
        "missing a category",
    ),
    (
        "frequencies, 5 % of values missing",
        frequencies_five_percent_missing,
        (48_842, 200_000, 1_000_000),
        "missing a category",
    ),
    (
        "frequencies with missing values, by pairs",
        frequencies_by_pairs,
        (10_000, 20_000, 48_842),
        "every pair in numpy, scaled",
    ),
    ("PRAM of 8 variables", pram, (48_842, 200_000, 1_000_000), "numpy, category by category"),
    ("stratified sample", sample, (10_000, 100_000, 1_000_000), "one permutation"),
]
