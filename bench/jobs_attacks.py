"""Jobs of the benchmark for attacks: on mixed files, and on numeric files compared with the time of sdcMicro."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import polars as pl

import sdcmap as sm
from sdcmap.core.streams import Stream
from sdcmap.data.microdata import Microdata

SDCMICRO_INTERVALS = 0.53 / 200_000  # CPU seconds per row of dRisk, 8 variables, one interval width
RNG = np.random.default_rng(0)


def masked_amounts(n: int) -> tuple[Microdata, Microdata]:
    """Return eight skewed variables, and the same with noise."""
    x = np.random.default_rng(1).lognormal(8, 1, (n, 8))
    data = sm.read(pl.DataFrame(x, schema=[f"v{j}" for j in range(8)]), numeric="all")
    return data, sm.Noise(on=data.numeric).apply(data, Stream.of_seed(1))


def intervals_beside_sdcmicro(n: int) -> tuple[float, float]:
    """Compute ten intervals by standard deviations, without cached views.

    The peer is the time of sdcMicro's dRisk for one interval.
    """
    data, masked = masked_amounts(n)
    times = []
    for _ in range(5):
        uncached = Microdata(data.schema, data.columns)
        start = time.process_time()
        sm.risk.IntervalDisclosure("sd").score(uncached, masked, RNG)
        times.append(time.process_time() - start)
    return min(times), n * SDCMICRO_INTERVALS


LEVELS = (2, 2, 5, 7, 9, 15, 16, 41)  # numbers of categories of the keys


def masked_mixture(n: int, extra: int = 0) -> tuple[Microdata, sm.Chain, Microdata]:
    """Return a file of eight keys and six numbers (and `extra` more) with ties and zeros, a chain, and the masked file.

    The chain masks all columns.
    """
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
    """Return the seconds of one pass over all pairs in numpy: Gower's distance and the nearest record.

    Only `rows` released records are compared; the time is scaled to all.
    """
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
    """Run seven attacks, and the best one also one-to-one; the peer is one pass over all pairs in numpy."""
    data, chain, masked = masked_mixture(n)
    measure = sm.WorstLinkage().for_informed_attacker(chain)
    measure.score(*(masked_mixture(200)[k] for k in (0, 2)), RNG)  # compiles the kernels
    start = time.perf_counter()
    measure.score(data, masked, RNG)
    return time.perf_counter() - start, plain_pass(data, masked, min(n, 300))


def worst_of_drawn_targets(n: int) -> tuple[float, float]:
    """Run the attacks of WorstLinkage on 2,500 targets with 17 columns.

    The peer is one pass over the pairs of as many targets in numpy.
    """
    data, chain, masked = masked_mixture(n, extra=3)
    measure = sm.WorstLinkage(targets=2_500).for_informed_attacker(chain)
    measure.score(*(masked_mixture(200, extra=3)[k] for k in (0, 2)), RNG)  # compiles the kernels
    start = time.perf_counter()
    measure.score(data, masked, RNG)
    return time.perf_counter() - start, plain_pass(data, masked, 100) * 2_500 / n


ADULT_KEYS = (
    "workclass", "education", "marital_status", "occupation", "relationship", "race", "sex", "native_country",
)  # fmt: skip
ADULT_NUMBERS = ("age", "capital_gain", "capital_loss", "hours_per_week")
ADULT_LEVELS = (9, 16, 7, 15, 6, 5, 2, 41)  # categories of the keys


def adults(n: int) -> Microdata:
    """Return n rows of the Adult file with eight keys and four numbers, or a file of the same kind if it is missing."""
    folder = Path(os.environ.get("SDCMAP_DATA", Path(__file__).resolve().parents[2] / "shared"))
    file = folder / "data" / "adult.parquet"
    if file.exists():
        frame = pl.read_parquet(file).select(*ADULT_KEYS, *ADULT_NUMBERS).head(n)
    else:
        rng = np.random.default_rng(1)
        keys = {name: rng.zipf(1.6, n) % levels for name, levels in zip(ADULT_KEYS, ADULT_LEVELS, strict=True)}
        rare = [np.where(rng.random(n) < share, rng.lognormal(8, 1, n).round(), 0.0) for share in (0.08, 0.05)]
        hours = np.where(rng.random(n) < 0.5, 40, rng.integers(1, 100, n))
        numbers = dict(zip(ADULT_NUMBERS, (rng.integers(17, 91, n), *rare, hours), strict=True))
        frame = pl.DataFrame({**keys, **numbers})
    frame = frame.with_columns(pl.col(*ADULT_KEYS).cast(pl.String))
    return sm.read(frame, keys=list(ADULT_KEYS), numeric=list(ADULT_NUMBERS))


def worst_of_adults(n: int) -> tuple[float, float]:
    """Run WorstLinkage on the Adult file, with one key swapped and noise added to the numbers.

    The attacker knows the method. The peer is one pass over all pairs in numpy. Both take the best of three runs.
    """
    data = adults(n)
    chain = sm.Chain((sm.Swap("sex", 0.05), sm.Noise(ADULT_NUMBERS, 0.1)))
    masked = chain.apply(data, Stream.of_seed(1))
    measure = sm.WorstLinkage().for_informed_attacker(chain)
    few = adults(1_500)
    measure.score(few, chain.apply(few, Stream.of_seed(1)), RNG)  # compiles the kernels
    times = []
    for _ in range(3):
        uncached = Microdata(data.schema, data.columns)
        start = time.perf_counter()
        measure.score(uncached, masked, RNG)
        times.append(time.perf_counter() - start)
    return min(times), min(plain_pass(data, masked, min(n, 1_000)) for _ in range(3))


def knowledge_of_drawn_records(n: int) -> tuple[float, float]:
    """Measure what an intruder who knows 16 columns learns about an amount of 1,000 targets.

    The peer is one pass over as many pairs in numpy.
    """
    data, chain, masked = masked_mixture(n, extra=3)
    measure = sm.risk.IntruderKnowledge("a1", attack=sm.WorstLinkage(targets=1_000)).for_informed_attacker(chain)
    measure.score(*(masked_mixture(1_200, extra=3)[k] for k in (0, 2)), RNG)  # compiles the kernels
    start = time.perf_counter()
    measure.score(data, masked, RNG)
    return time.perf_counter() - start, plain_pass(data, masked, 100) * 1_000 / n


JOBS = [
    (
        "WorstLinkage, 14 mixed columns, masked by a chain",
        worst_of_all_targets,
        (5_000, 20_000, 50_000),
        "one pass over all pairs in numpy",
    ),
    (
        "WorstLinkage, Adult with 8 keys and 4 numbers, one key swapped and noise",
        worst_of_adults,
        (2_500, 5_000, 20_000),
        "one pass over all pairs in numpy",
    ),
    (
        "WorstLinkage, 17 columns, 2,500 targets",
        worst_of_drawn_targets,
        (20_000, 60_000, 204_309),
        "one pass over all pairs in numpy",
    ),
    (
        "IntruderKnowledge, 17 columns, 1,000 targets",
        knowledge_of_drawn_records,
        (20_000, 60_000, 200_000),
        "one pass over all pairs in numpy",
    ),
    (
        "interval disclosure, 8 variables, compared with sdcMicro",
        intervals_beside_sdcmicro,
        (20_000, 60_000, 200_000),
        "sdcMicro, CPU s",
    ),
]
