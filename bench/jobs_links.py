"""Jobs of the benchmark for record linkage: candidate links and one-to-one links (jobs.py describes jobs).

Each record gets its best 50 candidates on 8 fields, by the weight d of Yancey, Winkler and Creecy with tolerance 0.2. The
number of pairs per second is n^2 divided by the seconds in the table.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from scipy.sparse import csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from sdcmap.kernels.arrays import Array
from sdcmap.methods.rank_swap import rank_swap
from sdcmap.risk.linkage import link_search, matching
from sdcmap.risk.linkage.agreement_patterns import count_patterns
from sdcmap.risk.linkage.assignment import assign_from_candidates
from sdcmap.risk.linkage.link_search import Links, agreement_links, agreement_scores, block_links, nearest_links

FIELDS = ("TOTINC", "AGI", "WAGES", "TAXINT", "DIVID", "BUSFARM", "NTXINT", "SOCSEC")
KEEP = 50
LOW, GAIN = np.full(len(FIELDS), -1.0), np.full(len(FIELDS), 2.0)
PART = 200  # known records that the plain formula compares; its time is scaled to all


def incomes(n: int) -> Array:
    """Return n records of eight incomes.

    They come from the substitute for tax returns if it is available, and are drawn with replacement beyond its size.
    Otherwise they are skewed random numbers with zeros.
    """
    rng = np.random.default_rng(1)
    folder = Path(os.environ.get("SDCMAP_DATA", Path(__file__).resolve().parents[2] / "shared"))
    file = folder / "data" / "cps_tax_income.parquet"
    if not file.exists():
        return np.round(np.exp(rng.normal(8, 2, (n, len(FIELDS))))) * (rng.random((n, len(FIELDS))) < 0.4)
    values = pl.read_parquet(file).select(FIELDS).to_numpy().astype(float)
    return values[:n] if n <= len(values) else values[rng.integers(0, len(values), n)]


def swapped(x: Array) -> Array:
    rng = np.random.default_rng(2)
    return np.column_stack([rank_swap(column, 0.05, rng) for column in x.T])


def noisy(x: Array) -> Array:
    """Add noise to every value, also to zeros, so that boxes of records cannot be skipped."""
    return x + 0.1 * x.std(axis=0) * np.random.default_rng(2).standard_normal(x.shape)


def zeros_unchanged(x: Array) -> Array:
    return x * np.exp(0.1 * np.random.default_rng(2).standard_normal(x.shape))


def timed_links(known: Array, released: Array) -> tuple[Links, float, float]:
    """Return the links, our seconds, and the seconds of the plain formula in numpy on a part, scaled."""
    reach = 0.2 * np.maximum(np.abs(known), 0.1)
    few = slice(0, 2 * link_search.CHUNK_RECORDS)
    usual, link_search.MIN_PAIRS_FOR_SAMPLE = link_search.MIN_PAIRS_FOR_SAMPLE, 0
    agreement_links(
        known[few], released, reach[few], LOW, GAIN, KEEP
    )  # compiles the kernels with and without the sample
    link_search.MIN_PAIRS_FOR_SAMPLE = usual
    start = time.perf_counter()
    links = agreement_links(known, released, reach, LOW, GAIN, KEEP)
    ours = time.perf_counter() - start
    part = min(PART, len(known))
    start = time.perf_counter()
    plain = block_links(
        lambda rows: agreement_scores(known[rows], released, reach[rows], LOW, GAIN), part, len(released), KEEP
    )
    peer = (time.perf_counter() - start) * len(known) / part
    assert np.allclose(plain.score, links.score[:part], atol=1e-5)
    return links, ours, peer


def links_of(mask: Callable[[Array], Array], *, boxes: bool) -> Callable[[int], tuple[float, float]]:
    def job(n: int) -> tuple[float, float]:
        known = incomes(n)
        if not boxes:
            link_search.MAX_LEAF_SHARE_FOR_BOXES = 0.0  # each job has its own process
        return timed_links(known, mask(known))[1:]

    return job


def count_agreements(n: int) -> tuple[float, float]:
    """Count the agreement patterns of all pairs, from which EM estimates the weights.

    The peer compares all pairs of a part of the known records in numpy; its time is scaled.
    """
    known = incomes(n)
    released, reach = swapped(known), 0.2 * np.maximum(np.abs(known), 0.1)
    count_patterns(known[:9], released, reach[:9])  # compiles the kernels
    start = time.perf_counter()
    patterns = count_patterns(known, released, reach)
    ours = time.perf_counter() - start
    part, radix = PART // 4, 2 ** np.arange(len(FIELDS))
    start = time.perf_counter()
    agree = np.abs(known[:part, np.newaxis] - released) <= reach[:part, np.newaxis]
    count = np.bincount((agree @ radix).ravel(), minlength=2 ** len(FIELDS))
    peer = (time.perf_counter() - start) * n / part
    checked = count_patterns(known[:part], released, reach[:part])
    assert np.array_equal(count[(checked.field == 1) @ radix], checked.pairs)
    assert patterns.pairs.sum() == n * n
    return ours, peer


def swapped_links(n: int) -> Links:
    """Return 50 candidates of each record in a rank-swapped file: many ties, and too few targets for all records."""
    known = incomes(n)
    return timed_links(known, swapped(known))[0]


def noisy_links(n: int) -> Links:
    """Return 50 candidates of each record among normal numbers with noise: no ties, and long chains of moves."""
    rng = np.random.default_rng(3)
    known = rng.normal(size=(n, 6))
    return nearest_links(known, known + 0.5 * rng.normal(size=known.shape), KEEP)


def timed_assignment(links: Links, *, auction: bool = True) -> tuple[Array, float]:
    """Return the partners and the seconds, without the auction by the exact search alone."""
    usual, least = matching.MIN_RECORDS_FOR_AUCTION, 1 if auction else len(links.index) + 1
    few = Links(links.index[:9], links.score[:9])
    matching.MIN_RECORDS_FOR_AUCTION = min(least, 10)  # compiles the kernels
    assign_from_candidates(few, lambda rows, k: few, len(links.index), limit=0)
    matching.MIN_RECORDS_FOR_AUCTION = least
    start = time.perf_counter()
    partner, _ = assign_from_candidates(links, lambda rows, k: links, len(links.index), limit=0)
    seconds = time.perf_counter() - start
    matching.MIN_RECORDS_FOR_AUCTION = usual
    return partner, seconds


def unlinked_score(links: Links) -> float:
    """Return a score of staying unlinked that is so low that as many records as possible are linked."""
    return float(2 * links.score.min() - links.score.max() - 1)


def total_score(links: Links, partner: Array) -> float:
    linked = links.score[links.index == partner[:, None]].sum()
    return float(linked + unlinked_score(links) * (partner < 0).sum())


def assign_beside_search(make: Callable[[int], Links]) -> Callable[[int], tuple[float, float]]:
    """Return a job whose peer is the exact search without an auction."""

    def job(n: int) -> tuple[float, float]:
        links = make(n)
        (partner, ours), (other, peer) = (timed_assignment(links, auction=auction) for auction in (True, False))
        assert np.isclose(total_score(links, partner), total_score(links, other), rtol=1e-9)
        return ours, peer

    return job


def assign_beside_scipy(make: Callable[[int], Links]) -> Callable[[int], tuple[float, float]]:
    """Return a job whose peer is scipy's sparse matcher.

    Each record gets an additional partner of its own there, so that it may stay unlinked.
    """

    def job(n: int) -> tuple[float, float]:
        links = make(n)
        partner, ours = timed_assignment(links)
        row = np.repeat(np.arange(n), KEEP + 1)
        column = np.hstack([links.index, n + np.arange(n)[:, None]]).ravel()
        weight = np.hstack([links.score, np.full((n, 1), unlinked_score(links))]).ravel()
        cost = csr_array((1 + weight.max() - weight, (row, column)), shape=(n, 2 * n))
        start = time.perf_counter()
        rows, columns = min_weight_full_bipartite_matching(cost)
        peer = time.perf_counter() - start
        theirs = (1 + weight.max() - cost[rows, columns]).sum()
        assert np.isclose(total_score(links, partner), theirs, rtol=1e-9)
        return ours, peer

    return job


JOBS: list[tuple[str, Callable[[int], tuple[float, float]], tuple[int, ...], str]] = [
    (
        "best 50 links per record, all pairs compared",
        links_of(noisy, boxes=False),
        (15_000, 30_000, 59_315),
        "plain numpy, scaled",
    ),
    (
        "best 50 links per record, rank-swapped file",
        links_of(swapped, boxes=True),
        (15_000, 30_000, 59_315),
        "plain numpy, scaled",
    ),
    (
        "best 50 links per record, zeros unchanged",
        links_of(zeros_unchanged, boxes=True),
        (59_315, 200_000, 1_000_000),
        "plain numpy, scaled",
    ),
    (
        "agreement patterns of all pairs, for EM",
        count_agreements,
        (5_000, 15_000, 59_315),
        "plain numpy, scaled",
    ),
    (
        "one-to-one links among 50 candidates per record",
        assign_beside_scipy(swapped_links),
        (5_000, 15_000, 59_315),
        "scipy sparse matcher",
    ),
    (
        "one-to-one links, rank-swapped file, beside the search alone",
        assign_beside_search(swapped_links),
        (15_000, 30_000, 59_315),
        "the exact search without an auction",
    ),
    (
        "one-to-one links, 6 numbers with noise, beside the search alone",
        assign_beside_search(noisy_links),
        (15_000, 30_000, 59_315),
        "the exact search without an auction",
    ),
    (
        "one-to-one links, 6 numbers with noise, beside scipy",
        assign_beside_scipy(noisy_links),
        (5_000, 10_000, 15_000),
        "scipy sparse matcher",
    ),
]
