"""The auction reaches prices within its epsilon of the optimum, on the CPU and in the rounds of the GPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.device import use_device
from sdcmap.kernels.gpu import cuda
from sdcmap.kernels.gpu.auction_rounds import plain_auction_prices
from sdcmap.risk.linkage import matching
from sdcmap.risk.linkage.auction import auction_prices, bid_exactly, epsilon_steps
from sdcmap.risk.linkage.graph import Graph, best_profit, reverse_graph


def has_gpu() -> bool:
    try:
        return bool(cuda.name())
    except cuda.GpuUnavailable:
        return False


WEIGHTS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "many values": lambda rng, count: rng.integers(1, 1 << 30, count).astype(float),
    "ties": lambda rng, count: 1000.0 * rng.integers(1, 4, count),
    "all equal": lambda rng, count: np.full(count, 77.0),
}


def random_graph(kind: str, n: int, m: int) -> tuple[Graph, Graph]:
    """Return a sparse graph of whole weights, and its reverse."""
    rng = np.random.default_rng(n + m)
    row, column = np.nonzero(rng.random((n, m)) < 0.3)
    start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))])
    graph = Graph(start, column.astype(np.int32), WEIGHTS[kind](rng, len(row)))
    return graph, reverse_graph(graph, m)


def heaviest(graph: Graph, m: int) -> float:
    """Return the largest weight of a matching, by scipy; a record without a partner counts 0."""
    n = len(graph.start) - 1
    dense = np.zeros((n, m))
    dense[np.repeat(np.arange(n), np.diff(graph.start)), graph.other] = graph.weight
    row, column = linear_sum_assignment(dense, maximize=True)
    return float(dense[row, column].sum())


@pytest.mark.parametrize("run", [auction_prices, plain_auction_prices], ids=["CPU", "rounds of the GPU"])
@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("shape", [(1, 1), (40, 40), (50, 30), (30, 50)])
def test_prices_are_within_epsilon_of_the_optimum(run: Callable[..., Array], kind: str, shape: tuple[int, int]) -> None:
    """The dual bound exceeds the optimum by at most epsilon for each possible link (Bertsekas 1988, section 2)."""
    graph, reverse = random_graph(kind, *shape)
    steps = epsilon_steps(graph.weight, warm=False)
    price = run(graph, reverse, np.zeros(shape[1]), steps)
    bound = best_profit(graph, price).sum() + price.sum()
    optimum = heaviest(graph, shape[1])
    assert (price >= 0).all() and (price == np.rint(price)).all()
    assert optimum <= bound <= optimum + sum(shape) * steps[-1]


@pytest.mark.parametrize("kind", WEIGHTS)
def test_exact_bids_leave_only_tight_pairs(kind: str) -> None:
    graph, _ = random_graph(kind, 60, 50)
    price, partner, owner = np.zeros(50), np.full(60, -1), np.full(50, -1)
    bid_exactly(graph, price, partner, owner)
    linked = np.flatnonzero(partner >= 0)
    assert len(linked) > 25 and (owner[partner[linked]] == linked).all()
    before = partner.copy()
    matching.release_loose(graph, best_profit(graph, price), price, partner, owner)
    np.testing.assert_array_equal(partner, before)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_steps_fall_and_are_whole(share: float) -> None:
    weight = 100.0 + share * np.arange(1000.0) ** 2
    steps = epsilon_steps(weight, warm=False)
    assert steps == sorted(steps, reverse=True) and steps[-1] >= 1 and all(step == round(step) for step in steps)
    assert len(epsilon_steps(weight, warm=True)) <= 2 and len(steps) <= 6


@pytest.mark.skipif(not has_gpu(), reason="needs a GPU")
@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("shape", [(40, 40), (50, 30), (30, 50), (1500, 1400)])
def test_gpu_prices_equal_plain_prices(kind: str, shape: tuple[int, int]) -> None:
    graph, reverse = random_graph(kind, *shape)
    steps = epsilon_steps(graph.weight, warm=False)
    with use_device("gpu"):
        price = auction_prices(graph, reverse, np.zeros(shape[1]), steps)
    np.testing.assert_array_equal(price, plain_auction_prices(graph, reverse, np.zeros(shape[1]), steps))
