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


LEVELS = (2, 2, 5, 7, 9, 15, 16, 41)  # of the categories


def masked_mixture(n: int, extra: int = 0) -> tuple[Microdata, sm.Chain, Microdata]:
    """Eight categories and six numbers (and `extra` more) with ties and zeros, masked whole by a chain; with the chain."""
    rng = np.random.default_rng(1)
    keys = {f"c{j}": rng.zipf(1.6, n) % levels for j, levels in enumerate(LEVELS)}
    whole = {"age": rng.integers(16, 90, n), "hours": rng.integers(0, 99, n), "years": rng.integers(1, 17, n)}
    amounts = {
        f"a{j}": np.where(rng.random(n) < 0.7 * (j < 2), 0.0, rng.lognormal(8, 1, n).round()) for j in range(3 + extra)
    }
    frame = pl.DataFrame({**keys, **whole, **amounts}).with_columns(pl.col(*keys).cast(pl.String))
    data = sm.read(frame, keys=list(keys), numeric=[*whole, *amounts])
    chain = sm.Chain((sm.methods.RandomizedResponse(tuple(keys), 2.0), sm.Noise(data.numeric, 0.05)))
    return data, chain, chain.apply(data, Stream.of_seed(1))


def plain_pass(data: Microdata, masked: Microdata, rows: int) -> float:
    """Seconds of one plain pass over all pairs, Gower's distance and the nearest, from so many released rows."""
    columns = [(data.codes(k), masked.codes(k), 0.0) for k in data.keys]
    columns += [(data.numbers(v), masked.numbers(v), np.ptp(data.numbers(v))) for v in data.numeric]
    start = time.perf_counter()
    for row in range(rows):
        apart = np.zeros(len(data))
        for known, released, span in columns:
            apart += np.abs(known - released[row]) / span if span else known != released[row]
        apart.argmin()
    return (time.perf_counter() - start) * len(masked) / rows


def worst_of_all_targets(n: int) -> tuple[float, float]:
    """Seven attacks and the leading one one-to-one; the peer is one plain pass over the pairs."""
    data, chain, masked = masked_mixture(n)
    measure = sm.WorstLinkage().for_informed_attacker(chain)
    measure.score(*(masked_mixture(200)[k] for k in (0, 2)), RNG)  # compiled
    start = time.perf_counter()
    measure.score(data, masked, RNG)
    return time.perf_counter() - start, plain_pass(data, masked, min(n, 300))


def worst_of_drawn_targets(n: int) -> tuple[float, float]:
    """17 columns, 2,500 targets; the peer is one plain pass over the pairs of as many targets."""
    data, chain, masked = masked_mixture(n, extra=3)
    measure = sm.WorstLinkage(targets=2_500).for_informed_attacker(chain)
    measure.score(*(masked_mixture(200, extra=3)[k] for k in (0, 2)), RNG)  # compiled
    start = time.perf_counter()
    measure.score(data, masked, RNG)
    return time.perf_counter() - start, plain_pass(data, masked, 100) * 2_500 / n


def knowledge_of_drawn_records(n: int) -> tuple[float, float]:
    """What an intruder learns of an amount, 1,000 records drawn, 16 columns known; the peer is one plain pass over as many
    pairs."""
    data, chain, masked = masked_mixture(n, extra=3)
    measure = sm.risk.IntruderKnowledge("a1", attack=sm.WorstLinkage(targets=1_000)).for_informed_attacker(chain)
    measure.score(*(masked_mixture(1_200, extra=3)[k] for k in (0, 2)), RNG)  # compiled
    start = time.perf_counter()
    measure.score(data, masked, RNG)
    return time.perf_counter() - start, plain_pass(data, masked, 100) * 1_000 / n


JOBS = [
    ("WorstLinkage, 14 mixed columns, a chain", worst_of_all_targets, (5_000, 20_000, 50_000), "one plain pass"),
    ("WorstLinkage, 17 columns, 2,500 targets", worst_of_drawn_targets, (20_000, 60_000, 204_309), "one plain pass"),
    (
        "IntruderKnowledge, 17 columns, 1,000 records drawn",
        knowledge_of_drawn_records,
        (20_000, 60_000, 200_000),
        "one plain pass",
    ),
    (
        "interval disclosure, 8 variables, beside sdcMicro",
        intervals_beside_sdcmicro,
        (20_000, 60_000, 200_000),
        "sdcMicro, CPU s",
    ),
]
