"""Jobs of the benchmark for the confidentiality plot: classification, exact delta and exact counts of neighbors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
from scipy.spatial import cKDTree

import sdcmap as sm
from jobs import seconds
from sdcmap.kernels.neighbors.counting import Pairs
from sdcmap.kernels.quantiles import quantile_rank

KEYS = ("turnover", "employees")


def firms(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return log turnover and log employees with the moments of the paper, and the same with noise (sd 0.1)."""
    rng = np.random.default_rng(1)
    x = rng.multivariate_normal([3.6, 9.8], [[0.64, 0.528], [0.528, 1.21]], n)
    return x, x + 0.1 * rng.standard_normal(x.shape)


def classify(n: int) -> tuple[float, float]:
    """Classify every record as safe or unsafe at a given delta with 15 neighbors on average.

    The peer is scipy's search for the 15 nearest neighbors.
    """
    x, y = firms(n)
    frames = [pl.DataFrame(part, schema=list(KEYS)) for part in (x, y)]
    data = sm.read(frames[0])
    masked = data.change(None, {name: frames[1][name].to_numpy() for name in KEYS})
    delta = 0.62 / n**0.5
    sm.records(*(frame.head(100) for frame in frames), on=KEYS, delta=0.1)  # compiles the kernels
    ours = seconds(lambda: sm.records(data, masked, KEYS, delta=delta, count_to=15))
    return ours, seconds(lambda: cKDTree(x).query(y, k=15, workers=2))


def critical_distance(n: int) -> tuple[float, float]:
    """Compute the exact delta at alpha = 0.05.

    The peer partitions the distances of all pairs. It runs on at most 4,000 records and is scaled by n^2.
    """
    x, y = firms(n)
    pairs = _pairs(x, y)
    pairs.critical_distance(1)
    rank = quantile_rank(0.05, pairs.nonlinks)
    part = min(n, 4000)
    x, y = x[:part], y[:part]

    def plain() -> None:
        z = np.sqrt(((y[:, None] - x[None]) ** 2).sum(axis=2)) / np.sqrt((y**2).sum(axis=1))[:, None]
        np.partition(z[~np.eye(part, dtype=bool)], quantile_rank(0.05, part * (part - 1)))

    return seconds(lambda: pairs.critical_distance(rank)), seconds(plain) * (n / part) ** 2


def count_all(n: int) -> tuple[float, float]:
    """Count all neighbors of every record, on average 5 % of the file.

    The peer is scipy's range count on 2,000 records, scaled.
    """
    x, y = firms(n)
    pairs = _pairs(x, y)
    delta = 0.0364
    pairs.count(delta)
    tree, some = cKDTree(x), y[:2000]
    radius = delta * np.sqrt((some**2).sum(axis=1))
    peer = seconds(lambda: tree.query_ball_point(some, radius, return_length=True, workers=2))
    return seconds(lambda: pairs.count(delta)), peer * n / len(some)


def _pairs(x: np.ndarray, y: np.ndarray) -> Pairs:
    return Pairs.of(y, x, np.sqrt((y**2).sum(axis=1)), np.arange(len(x)), threads=2)


JOBS: list[tuple[str, Callable[[int], tuple[float, float]], tuple[int, ...], str]] = [
    ("confidentiality plot, safe or unsafe", classify, (100_000, 300_000, 1_000_000), "scipy, 15 nearest"),
    ("confidentiality plot, exact delta, alpha 0.05", critical_distance, (2_000, 6_000, 20_000), "numpy, all pairs"),
    ("confidentiality plot, all neighbors, 5 %", count_all, (20_000, 45_000, 100_000), "scipy, range count"),
]
