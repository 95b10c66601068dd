"""Attacks within cells: the same as comparing all pairs, and one-to-one links with the least cost."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

import sdcmap as sm
from sdcmap.core.streams import Stream
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.risk.linkage import cell_pairs, cost_models
from sdcmap.risk.linkage.cell_pairs import CellPairs, attack_cells, link_cells_one_to_one
from sdcmap.risk.linkage.field_costs import CATEGORY
from sdcmap.risk.linkage.informed_attack import density_cost

RNG = np.random.default_rng(0)
NUMBERS = ("wage", "rent")


def persons(n: int = 150, seed: int = 1) -> Microdata:
    """Return persons with two keys, one of them with missing values, and two amounts without ties."""
    rng = np.random.default_rng(seed)
    region = np.where(rng.random(n) < 0.1, None, rng.choice(list("abcdefgh"), n)).tolist()
    frame = pl.DataFrame(
        {"region": pl.Series(region, dtype=pl.String), "sex": rng.choice(["f", "m"], n)}
        | {name: rng.lognormal(5, 1, n) for name in NUMBERS}
    )
    return sm.read(frame, keys=["region", "sex"], numeric=list(NUMBERS))


CHAIN = sm.Chain((sm.Swap("sex", 0.1), sm.Noise(NUMBERS, 0.3)))


def list_all_pairs(cell_of_known: Array, cell_of_released: Array, truth: Array) -> CellPairs:
    """List the pairs within cells by comparing all pairs."""
    released, known = np.nonzero(cell_of_released[:, np.newaxis] == cell_of_known)
    start = np.concatenate([[0], np.cumsum(np.bincount(released, minlength=len(cell_of_released)))])
    true = [np.flatnonzero((released == j) & (known == truth[j])) for j in range(len(truth))]
    return CellPairs(start, known, released, np.array([found[0] if len(found) else -1 for found in true]))


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 4), st.booleans())
def test_one_to_one_links_have_the_least_cost(seed: int, n: int, cells: int, ties: bool) -> None:
    """As scipy's dense assignment, where a pair of two cells costs more than all links together."""
    rng = np.random.default_rng(seed)
    cell = rng.integers(0, cells, n)
    order = rng.permutation(n)
    pairs = list_all_pairs(cell, cell[order], order)
    cost = rng.integers(0, 4, len(pairs.known)).astype(float) if ties else rng.random(len(pairs.known))
    dense = np.full((n, n), 1e3)
    dense[pairs.released, pairs.known] = cost
    least = dense[linear_sum_assignment(dense)].sum()
    links = link_cells_one_to_one(pairs, cost, n)
    assert len(links.released) == len(set(links.known.tolist())) == n
    assert dense[links.released, links.known].sum() == pytest.approx(least, rel=1e-6)
    assert links.gap == 0  # prices prove the optimum
    other = np.sort(np.where(np.arange(n) == links.known[:, np.newaxis], np.inf, dense[links.released]), axis=1)[:, 0]
    assert np.where(other < 1e3, -other, -np.inf) == pytest.approx(links.other, rel=1e-6)
    # Prices of another attack change the start, not the result.
    start = link_cells_one_to_one(pairs, rng.random(len(cost)), n).matching
    again = link_cells_one_to_one(pairs, cost, n, start)
    assert dense[again.released, again.known].sum() == pytest.approx(least, rel=1e-6)
    assert again.gap == 0


def test_hits_share_ties_and_need_the_cheapest_record() -> None:
    """By hand: of three known records, the true one ties with one, is beaten, and is alone in its cell."""
    pairs = list_all_pairs(np.array([0, 0, 0, 1]), np.array([0, 0, 1]), np.array([0, 1, 3]))
    hits = attack_cells(pairs, np.array([1.0, 1.0, 2.0, 1.0, 2.0, 3.0, 9.0]), np.arange(3))
    assert hits.correct.tolist() == [0.5, 0.0, 1.0]
    assert hits.is_cheapest.tolist() == [True, False, True]


@pytest.mark.parametrize("method", [CHAIN, None], ids=["method known", "method unknown"])
def test_rates_equal_those_of_all_pairs(monkeypatch: pytest.MonkeyPatch, method: sm.Method | None) -> None:
    data = persons()
    masked = CHAIN.apply(data, Stream.of_seed(1))
    attack = sm.WorstLinkage(method, one_to_one="every")
    within_cells = attack.rates(data, masked)
    monkeypatch.setattr(cell_pairs, "MAX_CELL_PAIRS", 0)
    among_all = attack.rates(data, masked)
    assert len(within_cells) == 16 - 2 * (method is None)
    # Several assignments tie, so that one-to-one rates may differ by a few links. The costs of Linkage are capped. Gower's
    # distance adds absolute differences, and for a < b < c < d the links a-c, b-d and a-d, b-c have the same sum. With ties
    # broken at random, scipy's assignments of this file all have the same cost, and 48 to 52 true links of 150.
    tied = {"unit-free d one-to-one", "unit-free l one-to-one", "gower one-to-one"}
    assert within_cells.keys() == among_all.keys() > tied
    for name in within_cells:
        assert within_cells[name] == pytest.approx(among_all[name], abs=0.05 if name in tied else 1e-9), name


def test_links_of_cells_have_the_rates_of_the_attacks() -> None:
    data = persons()
    masked = CHAIN.apply(data, Stream.of_seed(1))
    attack = sm.WorstLinkage().for_informed_attacker(CHAIN)
    tables, rates = attack.attacks(data, masked), attack.rates(data, masked)
    assert {name: table.rate for name, table in tables.items()} == pytest.approx(rates)
    assert attack.score(data, masked, RNG).parts["linked"] == 1.0


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_single_attack_finds_more_than_the_worst_of_all(seed: int) -> None:
    data = persons(seed=seed)
    masked = CHAIN.apply(data, Stream.of_seed(seed))
    singles = [
        sm.risk.NearestRecord(metric, one_to_one, on=on)
        for one_to_one in (False, True)
        for metric, on in (("standardized", ()), ("mahalanobis", ()), ("gower", ()), ("mixed", ()))
    ]
    worst = sm.WorstLinkage(one_to_one="every").score(data, masked, RNG).value
    for single in [*singles, sm.risk.Linkage("unit-free d"), sm.risk.Linkage("unit-free l")]:
        assert single.score(data, masked, RNG).value <= worst + 1e-12, single.text


@pytest.mark.parametrize(("candidates", "slack"), [(30, 0.05), (3, 1.0)])
def test_attacks_on_large_files_are_linked_among_candidates_and_the_best_over_all_pairs(
    candidates: int, slack: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is small, so that all pairs can be compared too. Three candidates are too few without longer lists."""
    data = persons()
    chain = sm.Chain((sm.methods.RandomizedResponse(data.keys, 1.0), sm.Noise(NUMBERS, 0.05)))
    masked = chain.apply(data, Stream.of_seed(1))
    attack = sm.WorstLinkage(chain, one_to_one="every")
    all_pairs = {name: rate for name, rate in attack.rates(data, masked).items() if "one-to-one" in name}
    monkeypatch.setattr(cost_models, "MAX_MATRIX_PAIRS", 0)
    monkeypatch.setattr(cost_models, "CANDIDATES_PER_RECORD", candidates)
    listed = attack.rates(data, masked)
    best = max(all_pairs, key=lambda name: all_pairs[name])
    assert listed[best] == pytest.approx(all_pairs[best]) and len(all_pairs) == 8
    assert attack.attacks(data, masked)[best].facts["gap"] == 0
    for name, rate in all_pairs.items():
        assert listed[name] == pytest.approx(rate, abs=slack), name


def test_column_that_breaks_the_promise_of_the_method_is_compared_anyway() -> None:
    """The method says that it does not touch the region, but the released regions were changed afterwards."""
    data = persons()
    noise = sm.Noise(NUMBERS, 0.01)
    masked = noise.apply(data, Stream.of_seed(1))
    changed = sm.methods.RandomizedResponse(("region",), 0.5).apply(masked, Stream.of_seed(2))
    assert 0 < sm.WorstLinkage().for_informed_attacker(noise).score(data, changed, RNG).value < 1


def test_density_with_few_values_becomes_a_table() -> None:
    """The cost of a pair is the highest log probability of a swap minus its own, as the density states it."""
    data = persons()
    swap = sm.Swap("sex", 0.1)
    masked = swap.apply(data, Stream.of_seed(1))
    (field,) = swap.log_likelihood(data, masked)
    cost = density_cost(field, 7.0)
    log_p = field.block(slice(None))
    known, released = np.indices(log_p.shape)
    assert cost.kind == CATEGORY
    assert cost.pairs(known, released) == pytest.approx(np.minimum(log_p.max() - log_p, 7.0))


def test_missing_value_of_an_unchanged_column_is_a_value_of_its_own() -> None:
    """Gower's distance: three people differ only in a region that is missing for one of them."""
    frame = pl.DataFrame({"region": ["a", "b", None], "wage": [1.0, 1.0, 1.0], "rent": [1.0, 2.0, None]})
    data = sm.read(frame, keys=["region"], numeric=["wage", "rent"])
    assert sm.risk.NearestRecord("gower", on=["region", "wage"]).score(data, data, RNG).value == 1.0
