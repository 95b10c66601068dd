"""The kernels of costs are the plain formula, value for value: of pairs, of who is outrun, and of the cheapest."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.random import Generator, default_rng
from scipy.stats import norm

from sdcmap.kernels.arrays import Array
from sdcmap.risk.linkage.field_costs import (
    BELOW,
    CELL,
    GAP,
    MIXTURE,
    RELATIVE,
    SAME,
    SQUARE,
    WINDOW,
    Cost,
    block_costs,
    mean_costs,
)
from sdcmap.risk.linkage.learned_evidence import category_evidence, number_evidence
from sdcmap.risk.linkage.pair_search import BLOCK, Race, Search, _lay_out

N, M = 2600, 60  # known records fill several blocks of the kernels


def numbers(rng: Generator, gaps: float = 0.2) -> tuple[Array, Array]:
    """Few values, so that many tie; some missing."""
    known = np.where(rng.random(N) < gaps, np.nan, rng.integers(-4, 9, N))
    released = known[:M] + rng.integers(-1, 2, M)
    return known, np.where(rng.random(M) < gaps, np.nan, released)


def fields(rng: Generator, mean: bool) -> list[Cost]:
    """One of every kind; those that are looked up have costs for missing values of their own, and no mean."""
    codes = rng.integers(0, 5, N)
    changed = np.where(rng.random(M) < 0.3, rng.integers(0, 5, M), codes[:M])
    a, b = numbers(rng)
    learned = [
        category_evidence(codes[:M], changed, changed, 5, comparable=True).cost(codes, changed),
        number_evidence(a[:M], b, a, b).cost(a, b),
    ]
    mixture = np.array([-0.5, -1.0, 2.0, -0.7, 1.0, 1.5, 0.1])
    return [
        *([] if mean else learned), Cost(SQUARE, *numbers(rng), scale=0.3, cap=4.0, both=0.1, one=0.4),
        Cost(GAP, *numbers(rng), scale=5.0, cap=2.0, one=0.5), Cost(RELATIVE, *numbers(rng), scale=0.5, cap=1.5),
        Cost(SAME, *numbers(rng), cap=3.0, one=3.0), Cost(WINDOW, *numbers(rng), scale=2.0, cap=2.5, both=1.0),
        Cost(BELOW, *numbers(rng), scale=1.0, cap=1.0), Cost(MIXTURE, *numbers(rng), cap=6.0, table=mixture),
        in_cells(rng),
    ]  # fmt: skip


def in_cells(rng: Generator) -> Cost:
    """Released values as the numbers of cells: half-open below, five wide ones, a single value, and half-open above."""
    known, released = numbers(rng)
    low, high = np.array([-np.inf, -2, 0, 1, 2, 4, 5, 7]), np.array([-2, 0, 1, 2, 4, 5, 5, np.inf])
    top = np.array([0.0, -0.3, -0.6, -0.6, -0.3, -0.6, 0.0, 0.0])
    cell = np.where(np.isnan(released), np.nan, np.clip(released + 4, 0, 7))
    return Cost(
        CELL, known, cell, cap=6.0, one=0.5, table=np.concatenate([[0.6], np.column_stack([low, high, top]).ravel()])
    )


def plain_costs(costs: list[Cost], mean: bool) -> Array:
    every = [cost.pairs(np.arange(N)[:, np.newaxis], np.arange(M)[np.newaxis, :]) for cost in costs]
    if not mean:
        return np.sum(every, axis=0)
    there = [~(np.isnan(cost.known)[:, np.newaxis] | np.isnan(cost.released)[np.newaxis, :]) for cost in costs]
    count = np.sum(there, axis=0)
    total = np.sum([np.where(both, cost, 0.0) for cost, both in zip(every, there, strict=True)], axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), 1.0)


CASES = [(seed, mean) for seed in range(6) for mean in (False, True)]


@pytest.mark.parametrize(("seed", "mean"), CASES)
def test_block_reader(seed: int, mean: bool) -> None:
    costs = fields(default_rng(seed), mean)
    rows = np.array([3, 60, 5])
    block = (mean_costs if mean else block_costs)(costs, rows)
    np.testing.assert_allclose(block, plain_costs(costs, mean)[rows], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("seed", "mean"), CASES)
def test_who_is_outrun(seed: int, mean: bool) -> None:
    rng = default_rng(seed)
    costs = fields(rng, mean)
    costs = [costs[f] for f in rng.permutation(len(costs))[: 2 + seed]]
    plain = plain_costs(costs, mean)
    truth = np.arange(M)
    truth[7] = -1
    targets = rng.permutation(M)[:50]
    own = plain[truth, np.arange(M)]
    slack = 1e-9 * own + 1e-12
    for threads in (1, 2):
        beaten, ties = Race(costs, truth, mean=mean)(targets, threads=threads)
        for t, j in enumerate(targets):
            assert beaten[t] == (truth[j] < 0 or (plain[:, j] < own[j] - slack[j]).any())
            if not beaten[t]:
                assert ties[t] == (plain[:, j] <= own[j] + slack[j]).sum()


@pytest.mark.parametrize(("seed", "mean"), CASES)
@pytest.mark.parametrize("keep", [1, 7, N])
def test_the_cheapest(seed: int, mean: bool, keep: int) -> None:
    costs = fields(default_rng(seed), mean)[seed:]
    plain = plain_costs(costs, mean)
    targets = np.array([0, 31, 59, 8])
    for threads in (1, 2):
        links = Search(costs, mean=mean)(targets, keep, threads=threads)
        here = plain[links.index, targets[:, np.newaxis]]
        np.testing.assert_allclose(-links.score, here, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(here, np.sort(plain[:, targets].T, axis=1)[:, :keep], rtol=1e-12, atol=1e-12)
        assert all(len(set(row)) == keep for row in links.index.tolist())


def test_the_cheapest_of_many_equals_are_others_for_each() -> None:
    """All 5,000 known records cost nothing: each target lists other ones, so that one-to-one links find partners."""
    known, released = np.zeros(5000), np.zeros(40)
    links = Search([Cost(WINDOW, known, released, scale=1.0, cap=1.0)])(np.arange(40), 50)
    assert (links.score == 0).all() and len(np.unique(links.index)) > 1500


def test_a_cell_costs_by_the_chance_that_normal_noise_falls_into_it() -> None:
    cost = in_cells(default_rng(1))
    sd = 1 / (0.6 * math.sqrt(2))
    for cell in range(8):
        low, high, top = cost.table[1 + 3 * cell : 4 + 3 * cell]
        for a in (-4.0, 0.5, 9.0, 18.0, -15.0):
            (found,) = cost._replace(known=np.array([a]), released=np.array([float(cell)]), cap=1e6).pairs([0], [0])
            if low == high:
                wanted = 0.5 * ((low - a) / sd) ** 2
            elif a > high:
                wanted = top - math.log(norm.cdf((high - a) / sd) - norm.cdf((low - a) / sd))
            else:
                wanted = top - math.log(norm.sf((low - a) / sd) - norm.sf((high - a) / sd))
            assert found == pytest.approx(max(wanted, 0.0), rel=1e-9, abs=1e-12)


def test_blocks_hold_every_record_once_and_their_bounds() -> None:
    laid, order = _lay_out(fields(default_rng(1), mean=False))
    assert sorted(order.tolist()) == list(range(N)) and laid.block[0] == 0 and laid.block[-1] == N
    assert len(laid.block) > N / BLOCK and np.diff(laid.block).min() > 0 and np.diff(laid.block).max() <= BLOCK
    for place, (first, last) in enumerate(zip(laid.block, laid.block[1:], strict=False)):
        inside = laid.a[:, first:last]
        np.testing.assert_array_equal(laid.low[place], inside.min(axis=1))  # NaN where one is missing
        np.testing.assert_array_equal(laid.high[place], inside.max(axis=1))
        np.testing.assert_array_equal(laid.last[place], laid.code[:, first:last].max(axis=1))


def test_records_that_are_all_alike_make_blocks_too() -> None:
    same = np.zeros(3 * BLOCK + 5)
    beaten, ties = Race([Cost(SAME, same, same[:2], cap=1.0)], np.array([7, 1500]))(np.arange(2))
    assert not beaten.any() and ties.tolist() == [len(same)] * 2
