"""The best links match the formula, for any fields, missing values, threads and scans."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from sdcmap.kernels.arrays import Array
from sdcmap.risk.linkage import link_search
from sdcmap.risk.linkage.link_search import (
    LEAF_RECORDS,
    Links,
    agreement_links,
    agreement_scores,
    block_links,
    distance_scores,
    nearest_links,
    spatial_order,
)

SCORE_TOLERANCE = 1e-5  # rounding of float32 scores with a few fields of weight about 1


def records(n: int, m: int, fields: int, seed: int, missing: float = 0.0) -> tuple[Array, Array, Array, Array, Array]:
    """Skewed values with many zeros, as incomes have, masked by noise; weights of either sign."""
    rng = np.random.default_rng(seed)
    released = np.round(np.exp(rng.normal(3, 2, (m, fields)))) * (rng.random((m, fields)) < 0.6)
    known = released[rng.integers(0, m, n)] * np.exp(rng.normal(0, 0.1, (n, fields)))
    for values in (known, released):
        values[rng.random(values.shape) < missing] = np.nan
    reach = 0.2 * np.maximum(np.abs(np.nan_to_num(known)), 0.1)
    return known, released, reach, rng.normal(-1, 1, fields), rng.uniform(0.5, 2, fields)


def by_force(scores: Array, keep: int) -> Links:
    return block_links(lambda rows: scores[rows], *scores.shape, keep)


def same(links: Links, scores: Array, keep: int) -> None:
    """Scores equal to the formula value for value, in order, and none better left out but for float32 rounding."""
    best = by_force(scores, keep)
    assert links.index.shape == links.score.shape == best.index.shape
    np.testing.assert_array_equal(links.score, np.take_along_axis(scores, links.index.astype(int), axis=1))
    assert (np.diff(links.score, axis=1) <= 0).all()
    tied = np.diff(links.score, axis=1) == 0
    assert (np.diff(links.index, axis=1)[tied] > 0).all()
    np.testing.assert_allclose(links.score, best.score, atol=SCORE_TOLERANCE * max(1.0, np.abs(scores).max()))


@pytest.mark.parametrize("fields", range(1, 21))
def test_agreement_links_match_formula(fields: int) -> None:
    case = records(70, 600, fields, seed=fields, missing=0.1 * (fields % 3))
    same(agreement_links(*case, keep=7), agreement_scores(*case), 7)


@pytest.mark.parametrize("fields", [1, 2, 3, 4, 5, 8, 13, 20])
def test_nearest_links_match_formula(fields: int) -> None:
    rng = np.random.default_rng(fields)
    known, released = rng.normal(5000, 1, (90, fields)), rng.normal(5000, 1, (700, fields))
    same(nearest_links(known, released, keep=9), distance_scores(known, released), 9)


@pytest.mark.parametrize(
    ("n", "m", "keep"), [(1, 1, 1), (1, 1, 50), (1, 700, 5), (300, 3, 10), (5, 512, 512), (257, 513, 100), (40, 65, 1)]
)
def test_links_of_files_of_any_size(n: int, m: int, keep: int) -> None:
    case = records(n, m, 3, seed=n + m)
    same(agreement_links(*case, keep=keep), agreement_scores(*case), keep)
    same(nearest_links(case[0], case[1], keep=keep), distance_scores(case[0], case[1]), keep)


def test_links_of_empty_files() -> None:
    case = records(4, 6, 2, seed=1)
    assert agreement_links(case[0][:0], case[1], case[2][:0], *case[3:], keep=3).index.shape == (0, 3)
    assert agreement_links(case[0], case[1][:0], *case[2:], keep=3).index.shape == (4, 0)
    assert nearest_links(case[0], case[1][:0], keep=3).score.shape == (4, 0)


def test_ties_are_ordered_by_row() -> None:
    known, released = np.ones((300, 2)), np.ones((2000, 2))
    one = np.ones(2)
    for links in (
        agreement_links(known, released, known, -one, one, keep=20),
        nearest_links(known, released, keep=20),
    ):
        np.testing.assert_array_equal(links.index, np.tile(np.arange(20), (300, 1)))


def test_missing_fields_score_zero() -> None:
    known, released, reach, low, gain = records(10, 30, 2, seed=4)
    known[:, 0], released[:, 1] = np.nan, np.nan
    links = agreement_links(known, released, reach, low, gain, keep=4)
    assert (links.score == 0).all() and (links.index == np.arange(4)).all()


def test_links_with_extreme_values() -> None:
    rng = np.random.default_rng(6)
    known, released = rng.random((50, 4)), rng.random((400, 4))
    reach, low, gain = np.full((50, 4), 0.3), np.zeros(4), np.ones(4)
    plain = agreement_links(known, released, reach, low, gain, keep=5)
    size, shift = np.array([1e-30, 1e30, 1.0, 1e6]), np.array([0.0, 0.0, 100.0, -1e6])
    moved = agreement_links(known * size + shift, released * size + shift, reach * size, low, gain, keep=5)
    np.testing.assert_array_equal(plain.index, moved.index)
    np.testing.assert_allclose(plain.score, moved.score, atol=1e-9)


WAYS: dict[str, Callable[[link_search.Costs, int], link_search.Scan]] = {
    "all pairs": link_search.make_pair_scan,
    "boxes": lambda costs, enough: link_search.make_box_scan(costs, enough)[1],
}


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("way", WAYS)
def test_links_do_not_depend_on_scan_or_threads(way: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = records(1500, 9000, 5, seed=7, missing=0.02)
    plain = agreement_links(*case, keep=12, threads=1)
    near = nearest_links(*(np.nan_to_num(part) for part in case[:2]), keep=12, threads=1)
    monkeypatch.setattr(link_search, "scan_of", lambda costs, chunks, enough: WAYS[way](costs, enough))
    for expected, links in (
        (plain, agreement_links(*case, keep=12, threads=threads)),
        (near, nearest_links(*(np.nan_to_num(part) for part in case[:2]), keep=12, threads=threads)),
    ):
        np.testing.assert_array_equal(links.index, expected.index)
        np.testing.assert_array_equal(links.score, expected.score)


def test_boxes_are_used_where_they_are_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Incomes with unchanged zeros: few leaves are scanned. Wide noise on twelve fields: nearly all of them."""
    monkeypatch.setattr(link_search, "MIN_PAIRS_FOR_SAMPLE", 0)
    taken: list[bool] = []
    original = link_search.make_pair_scan
    monkeypatch.setattr(link_search, "make_pair_scan", lambda *args: taken.append(True) or original(*args))
    case = records(2000, 9000, 5, seed=8)
    same_as = agreement_links(*case, keep=5)
    assert not taken
    rng = np.random.default_rng(9)
    nearest_links(rng.normal(size=(2000, 12)), rng.normal(size=(9000, 12)), keep=5)
    assert taken
    part = np.arange(50)
    same(
        Links(same_as.index[part], same_as.score[part]),
        agreement_scores(case[0][part], case[1], case[2][part], *case[3:]),
        5,
    )


@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000, 5000])
def test_spatial_order_is_permutation_with_full_leaves(n: int) -> None:
    position = np.random.default_rng(n).normal(size=(n, 3))
    order = spatial_order(position)
    np.testing.assert_array_equal(np.sort(order), np.arange(n))
    if n == 5000:
        leaves = position[order[: n - n % LEAF_RECORDS]].reshape(-1, LEAF_RECORDS, 3)
        assert np.ptp(leaves, axis=1).mean() < 0.5 * np.ptp(position, axis=0).mean()


def test_block_links_omit_impossible_pairs() -> None:
    scores = np.array([[1.0, -np.inf, 3.0, 1.0], [-np.inf] * 4])
    links = block_links(lambda rows: scores[rows], 2, 4, 3)
    np.testing.assert_array_equal(links.index, [[2, 0, 3], [-1, -1, -1]])
    np.testing.assert_array_equal(links.score[0], [3, 1, 1])
