"""Jobs of the benchmark: attacks on numeric files beside the time of sdcMicro."""

from __future__ import annotations

import time

import numpy as np
import polars as pl

import sdcmap as sm
from sdcmap.core.streams import Stream
from sdcmap.data.microdata import Microdata

SDCMICRO_INTERVALS = 0.53 / 200_000  # CPU seconds a row of dRisk, 8 variables, one width
RNG = np.random.default_rng(0)


def masked_amounts(n: int) -> tuple[Microdata, Microdata]:
    """Eight skewed variables, and the same with noise."""
    x = np.random.default_rng(1).lognormal(8, 1, (n, 8))
    data = sm.read(pl.DataFrame(x, schema=[f"v{j}" for j in range(8)]), numeric="all")
    return data, sm.Noise(on=data.numeric).apply(data, Stream.of_seed(1))


def intervals_beside_sdcmicro(n: int) -> tuple[float, float]:
    """Ten intervals of the standard deviation, computed anew; the peer is the time of sdcMicro's dRisk, which has one."""
    data, masked = masked_amounts(n)
    found = []
    for _ in range(5):
        fresh = Microdata(data.schema, data.columns)
        start = time.process_time()
        sm.risk.IntervalDisclosure("sd").score(fresh, masked, RNG)
        found.append(time.process_time() - start)
    return min(found), n * SDCMICRO_INTERVALS


JOBS = [
    (
        "interval disclosure, 8 variables, beside sdcMicro",
        intervals_beside_sdcmicro,
        (20_000, 60_000, 200_000),
        "sdcMicro, CPU s",
    ),
]
