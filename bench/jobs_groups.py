"""Jobs of the benchmark for microaggregation, shuffling, household swapping and synthesis (jobs.py describes jobs)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

import sdcmap as sm
from jobs import seconds
from sdcmap.core.streams import Stream
from sdcmap.data.microdata import Microdata
from sdcmap.methods._gower_groups import group_means, optimal_groups
from sdcmap.methods._mdav import mdav_groups, squared_distances
from sdcmap.methods.household_swap import draw_moving_pairs


def numbers(n: int, variables: int = 8) -> np.ndarray:
    """Return skewed, slightly correlated numbers, standardized."""
    rng = np.random.default_rng(1)
    x = np.exp(0.8 * rng.standard_normal((n, variables)) + 0.6 * rng.standard_normal((n, 1)))
    return (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)


def plain_mdav(x: np.ndarray, size: int, rounds: int) -> None:
    """Run `rounds` rounds of MDAV by scanning all free rows."""
    free = np.arange(len(x))
    for _ in range(rounds):
        r = free[np.argmax(squared_distances(x[free], x[free].mean(axis=0)))]
        for start in (r, None):
            if start is None:
                start = free[np.argmax(squared_distances(x[free], x[r]))]
            free = np.delete(free, np.argsort(squared_distances(x[free], x[start]), kind="stable")[:size])


def mdav(n: int) -> tuple[float, float]:
    """Form groups of 3 on 8 variables by MDAV.

    The peer scans all free rows in numpy for 20 rounds. Its time is scaled to n/6 rounds with half of the rows free on
    average.
    """
    x = numbers(n)
    mdav_groups(x[:500], 3)
    ours = seconds(lambda: mdav_groups(x, 3))
    return ours, seconds(lambda: plain_mdav(x, 3, 20)) / 20 * (n / 6) / 2


def optimal(n: int) -> tuple[float, float]:
    """Form optimal groups of 3 on one variable; the peer is individual ranking in numpy, which only sorts."""
    x = numbers(n, 1)[:, 0]
    optimal_groups(x[:100], 3)
    ours = seconds(lambda: group_means(x, optimal_groups(x, 3)), 2)

    def ranked() -> None:
        order = np.argsort(x, kind="stable")
        blocks = x[order][: n // 3 * 3].reshape(-1, 3).mean(axis=1)
        y = np.empty(n)
        y[order[: n // 3 * 3]] = np.repeat(blocks, 3)

    return ours, seconds(ranked, 2)


def shuffle(n: int) -> tuple[float, float]:
    """Shuffle two variables given four others; the peer is the plain formula with scipy's ranks."""
    from scipy.stats import norm, rankdata

    x = numbers(n, 6)
    data = sm.read(pl.DataFrame(x, schema=[f"v{j}" for j in range(6)]), numeric="all")
    method = sm.methods.Shuffle(on=["v0", "v1"], given=["v2", "v3", "v4", "v5"])
    rng = np.random.default_rng(1)

    def plain() -> None:
        z = np.column_stack([norm.ppf((rankdata(column) - 0.5) / n) for column in x.T])
        s = np.column_stack([np.ones(n), z[:, 2:]])
        b = np.linalg.lstsq(s, z[:, :2])[0]
        e = rng.multivariate_normal([0, 0], np.cov((z[:, :2] - s @ b).T), size=n)
        for j in range(2):
            np.sort(x[:, j])[rankdata((s @ b + e)[:, j]).astype(int) - 1]

    uncached = sm.read(data.frame(), numeric="all")
    return seconds(lambda: method.apply(uncached, Stream.of_seed(1))), seconds(plain)


def census(persons: int) -> Microdata:
    """Return households in 8 regions, 80 districts and 800 wards, with three keys of the persons."""
    rng = np.random.default_rng(1)
    count = int(persons / 2.35)
    size = rng.choice([1, 2, 3, 4, 5], count, p=[0.3, 0.33, 0.16, 0.14, 0.07])
    own = np.repeat(np.arange(count), size)
    region = rng.integers(0, 8, count)
    district = region * 10 + rng.integers(0, 10, count)
    ward = district * 10 + rng.integers(0, 10, count)
    columns = {"region": region, "district": district, "ward": ward, "tenure": rng.integers(0, 4, count)}
    people = {"age": rng.integers(0, 18, len(own)), "sex": rng.integers(0, 2, len(own))}
    people["born"] = np.minimum(rng.geometric(0.7, len(own)), 6)
    frame = pl.DataFrame({name: values[own] for name, values in columns.items()} | people)
    frame = frame.with_columns(pl.all().cast(pl.String)).with_columns(hid=pl.Series(own))
    return sm.read(frame, keys=["age", "sex", "born"], household="hid")


def household_swap(n: int) -> tuple[float, float]:
    """Swap 5 % of the households, targeted at risky ones, without cached views.

    The peer counts the three levels in polars and joins households of the same size and tenure. It does not compare their
    areas.
    """
    method = sm.methods.HouseholdSwap(["region", "district", "ward"], similar=[["tenure"], []], k=3, partial=True)
    small = census(2000)
    method.apply(small, Stream.of_seed(1))
    data = census(n)
    ours = seconds(lambda: method.apply(data, Stream.of_seed(1)))
    frame = data.frame()

    def plain() -> None:
        risks = []
        for levels in (["region"], ["region", "district"], ["region", "district", "ward"]):
            counts = frame.select(pl.len().over([*levels, "age", "sex", "born"]).alias("n"), "hid")
            risks.append(counts.group_by("hid").agg(pl.col("n").min()))
        households = frame.unique("hid", maintain_order=True).with_columns(size=pl.len().over("hid"))
        first = households.sample(fraction=0.025, shuffle=True, seed=1)
        second = households.join(first, on="hid", how="anti").sample(fraction=1, shuffle=True, seed=2)
        first.join(second.unique(["tenure", "size"]), on=["tenure", "size"], how="left")

    return ours, seconds(plain)


def partners(n: int) -> tuple[float, float]:
    """Pair 10 % of n households within kinds and across areas.

    The peer lists all possible partners of each household. It runs on 1,000 of them and is scaled.
    """
    rng = np.random.default_rng(1)
    kind, area = rng.integers(0, 20, n), rng.integers(0, 80, n)
    visit = rng.permutation(n)[: n // 10]
    draw_moving_pairs(visit[:9], [kind], area, np.zeros(n, dtype=bool), 9, rng)
    ours = seconds(lambda: draw_moving_pairs(visit, [kind], area, np.zeros(n, dtype=bool), len(visit), rng))

    def plain() -> None:
        free = np.ones(n, dtype=bool)
        for household in visit[:1000]:
            if free[household]:
                possible = free & (kind == kind[household]) & (area != area[household])
                free[[household, rng.choice(np.flatnonzero(possible))]] = False

    return ours, seconds(plain) * len(visit) / 1000


def synthetic(n: int) -> tuple[float, float]:
    """Make a fully synthetic file of 8 variables by trees.

    The peer is the copula on the same file, which only sorts and multiplies.
    """
    x = numbers(n)
    frame = pl.DataFrame(x[:, :4], schema=[f"v{j}" for j in range(4)])
    frame = frame.with_columns(**{f"c{j}": pl.Series(np.clip((2 * x[:, j]).astype(int), -3, 3)) for j in range(4, 8)})
    data = sm.read(frame, keys=["c4", "c5", "c6", "c7"], numeric=["v0", "v1", "v2", "v3"])
    trees, copula = (sm.Synthesize(data.names, model=model) for model in ("trees", "copula"))
    for method in (trees, copula):
        method.apply(data.take(np.arange(100)), Stream.of_seed(1))
    return seconds(lambda: trees.apply(data, Stream.of_seed(1))), seconds(lambda: copula.apply(data, Stream.of_seed(1)))


JOBS: list[tuple[str, Callable[[int], tuple[float, float]], tuple[int, ...], str]] = [
    ("MDAV, groups of 3, 8 variables", mdav, (10_000, 60_000, 200_000), "plain scans in numpy, scaled"),
    ("optimal groups of 3, one variable", optimal, (10_000, 100_000, 1_000_000), "individual ranking in numpy"),
    ("shuffle of 2 variables given 4", shuffle, (10_000, 200_000, 1_000_000), "plain formula, scipy ranks"),
    ("targeted household swap, 5 %", household_swap, (50_000, 200_000, 1_000_000), "counts and joins in polars"),
    (
        "pairing of 10 % of the households",
        partners,
        (20_000, 60_000, 200_000),
        "lists of all partners in numpy, scaled",
    ),
    ("fully synthetic file by trees, 8 variables", synthetic, (10_000, 30_000, 100_000), "copula of the same file"),
]
