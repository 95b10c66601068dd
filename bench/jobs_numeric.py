"""Jobs of the benchmark for numeric methods, compared with the plain formula and with the times of sdcMicro.

The time of sdcMicro is in CPU seconds. It was measured once at 200,000 rows on two ARM cores (Neoverse-N1) and is scaled
by n. Our time in the same row is also in CPU seconds.
"""

from __future__ import annotations

import time

import numpy as np
import polars as pl

import sdcmap as sm
from jobs import seconds
from sdcmap.core.streams import Stream
from sdcmap.data.microdata import Microdata
from sdcmap.methods.protect import own_is_nearest

SDCMICRO_NOISE = 0.37 / 200_000  # CPU seconds per row of addNoise(additive), 8 variables
SDCMICRO_IL1S = 0.29 / 200_000  # of dUtility(IL1s)


def amounts(n: int) -> tuple[np.ndarray, Microdata]:
    """Return eight skewed variables as an array and as microdata."""
    x = np.random.default_rng(1).lognormal(8, 1, (n, 8))
    return x, sm.read(pl.DataFrame(x, schema=[f"v{j}" for j in range(8)]), numeric="all")


def noise_like_sdcmicro(n: int) -> tuple[float, float]:
    """Add independent noise to 8 variables, without cached variances; the peer is the time of sdcMicro's addNoise."""
    _, data = amounts(n)
    method, times = sm.Noise(on=data.numeric), []
    for _ in range(5):
        uncached = Microdata(data.schema, data.columns)
        start = time.process_time()
        method.apply(uncached, Stream.of_seed(1))
        times.append(time.process_time() - start)
    return min(times), n * SDCMICRO_NOISE


def il1s_like_sdcmicro(n: int) -> tuple[float, float]:
    """Compute IL1s of 8 variables with noise, without cached views; the peer is the time of sdcMicro's dUtility."""
    _, data = amounts(n)
    masked = sm.Noise(on=data.numeric).apply(data, Stream.of_seed(1))
    measure, rng, times = sm.IL1s(on=data.numeric), np.random.default_rng(1), []
    for _ in range(5):
        uncached = Microdata(data.schema, data.columns)
        noisy = uncached.change(None, {name: masked.numbers(name) for name in data.numeric})
        start = time.process_time()
        measure.score(uncached, noisy, rng)
        times.append(time.process_time() - start)
    return min(times), n * SDCMICRO_IL1S


def noise(n: int) -> tuple[float, float]:
    """Add independent noise to 8 variables, with cached variances; the peer is the plain formula in numpy."""
    x, data = amounts(n)
    method, rng = sm.Noise(on=data.numeric), np.random.default_rng(1)
    ours = seconds(lambda: method.apply(data, Stream.of_seed(1)), 3)
    return ours, seconds(lambda: x + rng.normal(0, np.sqrt(0.1) * x.std(axis=0, ddof=1), x.shape), 3)


def mixture(n: int) -> tuple[float, float]:
    """Add mixture noise to 8 variables; the peer is the plain formula in numpy."""
    x, data = amounts(n)
    method, rng = sm.methods.MixtureNoise(on=data.numeric), np.random.default_rng(1)
    ours = seconds(lambda: method.apply(data, Stream.of_seed(1)), 3)

    def plain() -> np.ndarray:
        w = rng.choice([-1, 1], x.shape) * np.sqrt(0.975) + rng.normal(0, np.sqrt(0.025), x.shape)
        values, vectors = np.linalg.eigh(np.cov(x, rowvar=False))
        return x + np.sqrt(0.1) * w @ (vectors * np.sqrt(values)).T

    return ours, seconds(plain, 3)


def nearest_to_original(n: int) -> tuple[float, float]:
    """Find the noisy records that are nearest to their own original; the peer compares 500 of them with all, scaled."""
    x, data = amounts(n)
    z = sm.Noise(on=data.numeric, variance=0.01).apply(data, Stream.of_seed(1)).matrix(data.numeric)
    ours = seconds(lambda: own_is_nearest(x, z))
    some = min(n, 500)
    plain = seconds(lambda: [((z[i] - x) ** 2).sum(axis=1).argmin() for i in range(some)])
    return ours, plain * n / some


JOBS = [
    ("noise, 8 variables, compared with sdcMicro", noise_like_sdcmicro, (10_000, 60_000, 200_000), "sdcMicro, CPU s"),
    ("IL1s, 8 variables, compared with sdcMicro", il1s_like_sdcmicro, (10_000, 60_000, 200_000), "sdcMicro, CPU s"),
    ("noise, 8 variables", noise, (10_000, 60_000, 200_000), "plain numpy"),
    ("mixture noise, 8 variables", mixture, (10_000, 60_000, 200_000), "plain numpy"),
    (
        "records nearest to their own original after noise",
        nearest_to_original,
        (10_000, 25_000, 60_000),
        "all pairs in numpy, scaled",
    ),
]
