"""Jobs of the benchmark. A job is a function of n that returns our seconds and those of a peer on the same data.

A peer is the plain formula, or the same computation in another library. It runs in the same process on the same data. If
it is slow, it runs on a part of the data, and its time is scaled.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

import sdcmap as sm
from sdcmap.core.streams import Stream
from sdcmap.data.cells import cells
from sdcmap.data.microdata import Column, Microdata
from sdcmap.data.schema import Schema, Variable
from sdcmap.kernels.tables.coding import in_small_cells, move_cells, recount
from sdcmap.methods._swap_pairs import matching_pairs
from sdcmap.methods.rank_swap import rank_swap
from sdcmap.methods.swap import stack_codes
from sdcmap.study.jobs import Job
from sdcmap.study.worker import run_here
from sdcmap.utility.table_losses import hellinger

KEYS = ("Age", "WrkTyp", "Educ", "MarStat", "Race", "Sex", "Hours", "Income")
MEASURES = (sm.SmallCells(), sm.Hellinger())


def seconds(run: Callable[[], object], repeat: int = 1) -> float:
    """Return the wall time of one run; with `repeat` above 1, the smallest mean of three series of `repeat` runs."""
    best = float("inf")
    for _ in range(3 if repeat > 1 else 1):
        start = time.perf_counter()
        for _ in range(repeat):
            run()
        best = min(best, (time.perf_counter() - start) / repeat)
    return best


def persons(n: int) -> Microdata:
    """Return the file CPS-8d if it is available and n is its size; else the eight keys of the demo population, as text."""
    folder = Path(os.environ.get("SDCMAP_DATA", Path(__file__).resolve().parents[2] / "shared"))
    file = folder / "data" / "cps8d.parquet"
    if n == 48_842 and file.exists():
        return sm.read(file, keys="all")
    people = sm.demo.population(n, seed=1).only(KEYS).frame()
    return sm.read(people.with_columns(pl.all().cast(pl.String)), keys="all")


def swap_plan(candidates: int) -> sm.Plan:
    methods = sm.grid(sm.Swap, on=sm.subsets(KEYS, 1, 2), rate=[0.005, 0.01, 0.05])
    return sm.Plan(methods, MEASURES, replicates=-(-candidates // 108), seed=2**130)


def plain_swap(frame: pl.DataFrame, rng: np.random.Generator, on: list[str], rate: float) -> tuple[float, float]:
    """Swap with numpy and polars, and return the risk and the Hellinger distance."""
    n = len(frame)
    order = rng.permutation(n)[: n // 2 * 2].reshape(-1, 2)
    columns = {name: frame[name].to_numpy() for name in on}
    admissible = np.all([values[order[:, 0]] != values[order[:, 1]] for values in columns.values()], axis=0)
    pairs = order[admissible][: round(rate * n)]
    swapped = frame.clone()
    changed = np.zeros(n, dtype=bool)
    for name, values in columns.items():
        new = values.copy()
        new[pairs[:, 0]], new[pairs[:, 1]] = values[pairs[:, 1]], values[pairs[:, 0]]
        changed |= new != values
        swapped = swapped.with_columns(pl.Series(name, new))
    after = (
        swapped.with_columns(pl.Series("changed", changed))
        .group_by(KEYS)
        .agg(pl.len(), (~pl.col("changed")).sum().alias("kept"))
    )
    before = frame.group_by(KEYS).len()
    both = before.join(after, on=KEYS, how="full")
    f, g = both["len"].fill_null(0).to_numpy() / n, both["len_right"].fill_null(0).to_numpy() / n
    risk = after.filter(pl.col("len") < 3)["kept"].sum() / (~changed).sum()
    return float(risk), float(np.sqrt(0.5 * ((np.sqrt(f) - np.sqrt(g)) ** 2).sum()))


# ---- jobs -----------------------------------------------------------------------------------------------------
def sweep_of_swaps(n: int) -> tuple[float, float]:
    """Sweep n swap candidates of 48,842 records with two measures and two workers, and store the scores.

    The start of the workers is included. Peak memory does not grow with n, because masked files are not kept.
    """
    data, plan = persons(48_842), swap_plan(n)
    run_here(data, [Job(c, c.stream(1).key, MEASURES) for c in list(plan.candidates)[:2]])  # compiles the kernels
    with tempfile.TemporaryDirectory() as folder:
        ours = seconds(lambda: sm.sweep(data, plan, Path(folder) / "study", workers=2))
    frame, rng = data.frame(), np.random.default_rng(1)
    one = seconds(lambda: plain_swap(frame, rng, ["Educ"], 0.01), 3)
    return ours, one * plan.count


def one_swap(n: int) -> tuple[float, float]:
    """Swap Educ at 0.01 and score it with both measures."""
    data = persons(n)
    stream, method = Stream.of_seed(2**130), sm.Swap(on="Educ", rate=0.01)
    rng = np.random.default_rng(0)

    def ours() -> None:
        masked = method.apply(data, stream)
        for measure in MEASURES:
            measure.score(data, masked, rng)

    ours()
    frame = data.frame()
    return seconds(ours, 20), seconds(lambda: plain_swap(frame, rng, ["Educ"], 0.01), 2)


def rank_swaps(n: int) -> tuple[float, float]:
    """Swap the ranks of 8 variables with p = 0.05.

    The peer lists the free ranks of each window. It runs on one variable of 2,000 rows and is scaled by n^2, because its
    windows grow with n.
    """
    x = np.random.default_rng(1).lognormal(8, 1, (8, n))
    rng = np.random.default_rng(2)
    rank_swap(x[0, :100], 0.1, rng)
    ours = seconds(lambda: [rank_swap(column, 0.05, rng) for column in x])
    small = min(n, 2000)
    plain = seconds(lambda: plain_rank_swap(x[0, :small], 0.05, rng))
    return ours, plain * 8 * (n / small) ** 2


def plain_rank_swap(x: np.ndarray, p: float, rng: np.random.Generator) -> np.ndarray:
    order = np.argsort(x, kind="stable")
    free = np.ones(len(x), dtype=bool)
    ranked = x[order]
    for i in range(len(x)):
        if free[i]:
            window = i + 1 + np.flatnonzero(free[i + 1 : min(len(x), i + int(np.ceil(p * len(x))))])
            if len(window):
                k = rng.choice(window)
                ranked[i], ranked[k] = ranked[k], ranked[i]
                free[i] = free[k] = False
    out = np.empty_like(x)
    out[order] = ranked
    return out


def correlated_noise(n: int) -> tuple[float, float]:
    """Add correlated noise to 8 variables and compute IL1s; the peer is the plain formula in numpy."""
    x = np.random.default_rng(1).lognormal(8, 1, (n, 8))
    data = sm.read(pl.DataFrame(x, schema=[f"v{j}" for j in range(8)]), numeric="all")
    method, measure, rng = sm.Noise(on=data.numeric, correlated=True), sm.IL1s(), np.random.default_rng(0)
    ours = seconds(lambda: measure.score(data, method.apply(data, Stream.of_seed(1)), rng), 2)

    def plain() -> float:
        z = x + rng.multivariate_normal(np.zeros(8), 0.1 * np.cov(x, rowvar=False), size=n)
        return float(np.mean(np.abs(x - z) / (np.sqrt(2) * x.std(axis=0, ddof=1))))

    return ours, seconds(plain, 2)


def read_parquet(n: int) -> tuple[float, float]:
    """Read eight text columns from Parquet as codes; the peer is polars, which reads them and casts to Categorical."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "persons.parquet"
        persons(n).frame().with_columns(pl.all().cast(pl.String)).write_parquet(path)
        ours = seconds(lambda: sm.read(path, keys="all"))
        return ours, seconds(lambda: pl.read_parquet(path).with_columns(pl.all().cast(pl.Categorical)))


def map_to_png(n: int) -> tuple[float, float]:
    """Draw a map of n points as PNG.

    The peer is altair with the same specification and a quarter of the points. Its time is multiplied by four, because it
    grows with the points.
    """
    import altair as alt

    data = persons(2000)
    plan = swap_plan(n)
    scores = sm.sweep(data, plan, workers=1)
    ru = sm.RUMap(scores, *MEASURES)
    ours = seconds(lambda: ru.draw(mark=ru.choose(sm.Threshold(risk=0.1))).png())
    quarter = sm.sweep(data, swap_plan(n // 4), workers=1)
    spec = sm.RUMap(quarter, *MEASURES).draw().to_dict()

    def draw_with_altair() -> None:
        with alt.data_transformers.disable_max_rows(), tempfile.NamedTemporaryFile(suffix=".png") as file:
            alt.Chart.from_dict(spec).save(file.name, scale_factor=2)

    start = time.perf_counter()
    draw_with_altair()
    return ours, 4 * (time.perf_counter() - start)


def conditions() -> list[sm.Method]:
    """Return the 107 feasible swaps of Gomatam et al.: one or two keys at three rates, without Race and Income at 0.05."""
    swaps = list(sm.grid(sm.Swap, on=sm.subsets(KEYS, 1, 2), rate=[0.005, 0.01, 0.05]))
    return [swap for swap in swaps if not (set(swap.on) == {"Race", "Income"} and swap.rate == 0.05)]


def kernel(data: Microdata, method: sm.Swap, rng: np.random.Generator) -> tuple[float, float]:
    """Return both measures of a swap: draw the pairs, count the cells and score, on arrays only."""
    table, codes = data.view(cells, KEYS), data.view(stack_codes, method.on)
    first, second = matching_pairs(int(method.rate * len(data) + 0.5), codes, np.empty(0, np.int32), rng)
    rows, partners = np.concatenate([first, second]), np.concatenate([second, first])
    old = table.code[rows]
    new = old.astype(np.int64)
    for name in method.on:
        before = data.codes(name)
        move_cells(new, table.strides[KEYS.index(name)], before, rows, before[partners])
    after = recount(table.count, old, new)
    exposed, changed = in_small_cells(after, new, 3)
    return (exposed - changed) / (len(data) - len(rows)), hellinger(table.count, after)


def codes_of(data: Microdata) -> pl.DataFrame:
    return pl.DataFrame({name: data.codes(name) for name in KEYS})


def duckdb_swap(codes: pl.DataFrame, rng: np.random.Generator, on: list[str], rate: float) -> tuple[float, float]:
    """Return both measures of a swap: swap with numpy, count in DuckDB SQL."""
    import duckdb

    n = len(codes)
    order = rng.permutation(n)[: n // 2 * 2].reshape(-1, 2)
    before = {name: codes[name].to_numpy() for name in on}
    admissible = np.all([values[order[:, 0]] != values[order[:, 1]] for values in before.values()], axis=0)
    pairs = order[admissible][: round(rate * n)]
    changed = np.zeros(n, dtype=bool)
    new = {}
    for name, values in before.items():
        new[name] = values.copy()
        new[name][pairs[:, 0]], new[name][pairs[:, 1]] = values[pairs[:, 1]], values[pairs[:, 0]]
        changed |= new[name] != values
    columns = [pl.Series(name, values) for name, values in new.items()]
    connection = duckdb.connect()
    connection.register("codes", codes.to_arrow())
    connection.register("swapped", codes.with_columns(*columns, kept=pl.Series(~changed)).to_arrow())
    keys = ", ".join(KEYS)
    both = f"""
        with f as (select {keys}, count(*) as n from codes group by all),
             g as (select {keys}, count(*) as n, sum(kept::int) as kept from swapped group by {keys})
        select sum(case when g.n < 3 then kept else 0 end) / sum(kept),
               sqrt(0.5 * sum(pow(sqrt(coalesce(f.n, 0) / {n}) - sqrt(coalesce(g.n, 0) / {n}), 2)))
        from f full join g using ({keys})"""
    return connection.sql(both).fetchall()[0]  # type: ignore[no-any-return]


def mean_kernel(n: int) -> tuple[float, float]:
    """Run the kernel on the 107 conditions and take the mean; the peer is polars on the same codes, Educ at 0.01."""
    data, rng = persons(n), np.random.default_rng(1)
    swaps = conditions()
    ours = seconds(lambda: [kernel(data, method, rng) for method in swaps], 2) / len(swaps)
    frame = codes_of(data)
    return ours, seconds(lambda: plain_swap(frame, rng, ["Educ"], 0.01), 3)


def kernel_and_duckdb(n: int) -> tuple[float, float]:
    """Swap Educ at 0.01 with the kernel; the peer is DuckDB."""
    data, rng, method = persons(n), np.random.default_rng(1), sm.Swap(on="Educ", rate=0.01)
    frame = codes_of(data)
    return seconds(lambda: kernel(data, method, rng), 5), seconds(lambda: duckdb_swap(frame, rng, ["Educ"], 0.01), 2)


def kernel_and_polars(n: int) -> tuple[float, float]:
    """Swap Educ at 0.01 with the kernel; the peer is polars on the same codes."""
    data, rng, method = persons(n), np.random.default_rng(1), sm.Swap(on="Educ", rate=0.01)
    frame = codes_of(data)
    return seconds(lambda: kernel(data, method, rng), 5), seconds(lambda: plain_swap(frame, rng, ["Educ"], 0.01), 2)


def rare_pairs(n: int) -> tuple[float, float]:
    """Swap work type and race at 0.05, where few pairs are admissible; the peer is polars on the same codes."""
    data, rng, method = persons(n), np.random.default_rng(1), sm.Swap(on=["WrkTyp", "Race"], rate=0.05)
    frame = codes_of(data)
    ours = seconds(lambda: kernel(data, method, rng), 3)
    return ours, seconds(lambda: plain_swap(frame, rng, ["WrkTyp", "Race"], 0.05), 1)


def count_a_census(n: int) -> tuple[float, float]:
    """Code and count the 8-way table of n records with one byte per value; the peer is a copy of the same bytes."""
    sizes = {"Age": 3, "WrkTyp": 4, "Educ": 5, "MarStat": 2, "Race": 2, "Sex": 2, "Hours": 3, "Income": 2}
    data = generated_census(n, sizes)
    cells(generated_census(1000, sizes), KEYS)  # compiles the kernels
    ours = seconds(lambda: cells(data, KEYS))
    columns = [data.codes(name) for name in KEYS]
    return ours, seconds(lambda: [column.copy() for column in columns])


def sweep_a_census(n: int) -> tuple[float, float]:
    """Make and score one candidate (Educ at 0.01) after the base table was counted; the peer is that count."""
    sizes = {"Age": 3, "WrkTyp": 4, "Educ": 5, "MarStat": 2, "Race": 2, "Sex": 2, "Hours": 3, "Income": 2}
    data = generated_census(n, sizes)
    plan = sm.Plan(sm.Swap(on="Educ", rate=0.01), MEASURES, seed=2**130)
    job = [Job(c, c.stream(1).key, MEASURES) for c in plan.candidates if c.method.random]
    run_here(data, job)
    return seconds(lambda: run_here(data, job)), seconds(lambda: cells(data, KEYS))


def generated_census(n: int, sizes: dict[str, int]) -> Microdata:
    rng = np.random.default_rng(1)
    variables = tuple(Variable(name, "nominal", "key", storage="String") for name in sizes)
    columns = {}
    for name, size in sizes.items():
        codes = (
            np.minimum(rng.geometric(0.5, n).astype(np.uint8) - 1, size - 1) if n <= 10**6 else _skewed(rng, n, size)
        )
        columns[name] = Column(codes, pl.Series([str(level) for level in range(size)]))
    return Microdata(Schema(variables), columns)


def _skewed(rng: np.random.Generator, n: int, size: int) -> np.ndarray:
    raw = np.frombuffer(rng.bytes(n), dtype=np.uint8)
    return np.minimum(raw >> 5, size - 1).astype(np.uint8)


def empirical_map(n: int) -> tuple[float, float]:
    """Sweep n noise candidates on 177 records in one process: 6 targets, 2 kinds of knowledge, and the mean's precision.

    The candidates have 20 noise levels. The peer computes the same squared errors in plain numpy and stores nothing.
    """
    replicates, size = n // 20, 177
    x = np.random.default_rng(3).lognormal(9.7, 0.6, size)
    data = sm.read(pl.DataFrame({"income": x}), numeric="all")
    targets = ("maximum", "minimum", 0.01, 0.1, 0.9, 0.99)
    measures = [sm.utility.MeanPrecision(on="income")]
    measures += [knows(on="income", target=target) for knows in (sm.risk.Position, sm.risk.Index) for target in targets]
    levels = [round(0.05 * step, 2) for step in range(1, 21)]
    plan = sm.Plan(sm.grid(sm.Noise, on="income", variance=levels, lower=0), measures, replicates=replicates, seed=1)
    sm.sweep(data, replace(plan, replicates=2), workers=1)  # imports the modules
    ours = seconds(lambda: sm.sweep(data, plan, workers=1), 2)
    rng, ranks = np.random.default_rng(1), [size - 1, 0, *(max(1, int(np.ceil(size * p))) - 1 for p in targets[2:])]
    order = np.argsort(x)[ranks]

    def plain() -> None:
        for level in levels:
            for _ in range(replicates):
                y = np.maximum(0, x + np.sqrt(level) * x.std(ddof=1) * rng.standard_normal(size))
                ranked = np.sort(y)
                for rank, record in zip(ranks, order, strict=True):
                    (ranked[rank] - x[record]) ** 2, (y[record] - x[record]) ** 2
                y.mean(), y.var(ddof=1)

    return ours, seconds(plain, 2)


def targets_in_a_million(n: int) -> tuple[float, float]:
    """Make and score one noise candidate of n records with three measures; the peer sorts the column once."""
    x = np.random.default_rng(3).lognormal(9.7, 0.6, n)
    data = sm.read(pl.DataFrame({"income": x}), numeric="all")
    measures = (
        sm.risk.Position(on="income", target=0.99),
        sm.risk.Index(on="income"),
        sm.utility.MeanPrecision(on="income"),
    )
    candidate = list(sm.Plan(sm.Noise(on="income"), measures, seed=1).candidates)[1]
    job = [Job(candidate, candidate.stream(1).key, measures)]
    run_here(data, job)
    return seconds(lambda: run_here(data, job)), seconds(lambda: np.sort(x))


JOBS: list[tuple[str, Callable[[int], tuple[float, float]], tuple[int, ...], str]] = [
    ("n swap candidates of 48,842 records, stored", sweep_of_swaps, (1000, 3000, 10_000), "numpy + polars, scaled"),
    ("swap kernel, mean of 107 conditions", mean_kernel, (48_842, 200_000, 1_000_000), "polars on codes, Educ at 0.01"),
    (
        "swap kernel, Educ at 0.01, compared with polars",
        kernel_and_polars,
        (48_842, 1_000_000, 10_000_000),
        "numpy + polars on codes",
    ),
    (
        "swap kernel, Educ at 0.01, compared with DuckDB",
        kernel_and_duckdb,
        (48_842, 1_000_000, 10_000_000),
        "numpy + DuckDB SQL on codes",
    ),
    ("swap kernel, WrkTyp and Race at 0.05", rare_pairs, (48_842, 1_000_000, 10_000_000), "numpy + polars on codes"),
    ("code and count an 8-way table", count_a_census, (1_000_000, 10_000_000, 100_000_000), "copy of the same bytes"),
    (
        "one candidate of a census, base table already counted",
        sweep_a_census,
        (1_000_000, 10_000_000, 100_000_000),
        "counting the base table",
    ),
    ("empirical map of n candidates, 13 measures", empirical_map, (1000, 2000, 4000), "plain numpy, nothing stored"),
    ("noise, position, index and mean of one column", targets_in_a_million, (10_000, 100_000, 1_000_000), "one sort"),
    ("one swap, risk and Hellinger", one_swap, (50_000, 500_000, 5_000_000), "numpy + polars"),
    ("rank swap, 8 variables", rank_swaps, (10_000, 60_000, 200_000), "plain formula, scaled"),
    ("correlated noise and IL1s, 8 variables", correlated_noise, (10_000, 100_000, 1_000_000), "plain numpy"),
    ("read Parquet, 8 text columns", read_parquet, (100_000, 1_000_000, 10_000_000), "polars to Categorical"),
    ("draw a map of n points as PNG", map_to_png, (1080, 3240, 10_800), "altair, scaled"),
]
