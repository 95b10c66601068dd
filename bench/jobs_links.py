"""Jobs of the benchmark for linkage: candidate links and one-to-one linkage (see jobs.py for the shape of a job).

Candidates are 50 a record on 8 fields by the d weight of Yancey, Winkler and Creecy, tolerance .2. Pairs per second are n^2
over the seconds of the table.
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
from sdcmap.risk.linkage import link_search
from sdcmap.risk.linkage.assignment import assign_from_candidates
from sdcmap.risk.linkage.link_search import Links, agreement_links, agreement_scores, block_links

FIELDS = ("TOTINC", "AGI", "WAGES", "TAXINT", "DIVID", "BUSFARM", "NTXINT", "SOCSEC")
KEEP = 50
LOW, GAIN = np.full(len(FIELDS), -1.0), np.full(len(FIELDS), 2.0)
PART = 200  # known records of the plain formula, scaled to all


def incomes(n: int) -> Array:
    """n records: the stand-in for tax returns where it is at hand (drawn again beyond its size), else skewed with zeros."""
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
    """Noise on every value, zeros too: boxes do not help."""
    return x + 0.1 * x.std(axis=0) * np.random.default_rng(2).standard_normal(x.shape)


def zeros_kept(x: Array) -> Array:
    return x * np.exp(0.1 * np.random.default_rng(2).standard_normal(x.shape))


def timed_links(known: Array, released: Array) -> tuple[Links, float, float]:
    """The links, our seconds, and those of the plain formula in numpy on a part, scaled."""
    reach = 0.2 * np.maximum(np.abs(known), 0.1)
    few = slice(0, 2 * link_search.CHUNK_RECORDS)
    usual, link_search.MIN_PAIRS_FOR_SAMPLE = link_search.MIN_PAIRS_FOR_SAMPLE, 0
    agreement_links(known[few], released, reach[few], LOW, GAIN, KEEP)  # kernels of both ways compiled
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
            link_search.MAX_LEAF_SHARE_FOR_BOXES = 0.0  # a job has a process of its own
        return timed_links(known, mask(known))[1:]

    return job


def linked_once(n: int) -> tuple[float, float]:
    """One-to-one on 50 candidates of a rank-swapped file, beside scipy's sparse matcher with a place alone for each."""
    known = incomes(n)
    links = timed_links(known, swapped(known))[0]
    few = Links(links.index[:9], links.score[:9])
    assign_from_candidates(few, lambda rows, k: few, n, limit=0)  # kernels compiled
    start = time.perf_counter()
    found, _ = assign_from_candidates(links, lambda rows, k: links, n, limit=0)
    ours = time.perf_counter() - start
    alone = 2 * links.score.min() - links.score.max() - 1
    row = np.repeat(np.arange(n), KEEP + 1)
    column = np.hstack([links.index, n + np.arange(n)[:, None]]).ravel()
    weight = np.hstack([links.score, np.full((n, 1), alone)]).ravel()
    cost = csr_array((1 + weight.max() - weight, (row, column)), shape=(n, 2 * n))
    start = time.perf_counter()
    by_row, partner = min_weight_full_bipartite_matching(cost)
    peer = time.perf_counter() - start
    theirs = (1 + weight.max() - cost[by_row, partner]).sum()
    linked = links.score[links.index == found[:, None]].sum()
    assert np.isclose(linked + alone * (found < 0).sum(), theirs)
    return ours, peer


JOBS: list[tuple[str, Callable[[int], tuple[float, float]], tuple[int, ...], str]] = [
    (
        "links, every pair looked at, 50 kept",
        links_of(noisy, boxes=False),
        (15_000, 30_000, 59_315),
        "plain numpy, scaled",
    ),
    ("links of rank swapping, 50 kept", links_of(swapped, boxes=True), (15_000, 30_000, 59_315), "plain numpy, scaled"),
    (
        "links, zeros kept at zero, 50 kept",
        links_of(zeros_kept, boxes=True),
        (59_315, 200_000, 1_000_000),
        "plain numpy, scaled",
    ),
    ("one-to-one on 50 candidates", linked_once, (5_000, 15_000, 59_315), "scipy sparse matcher"),
]
