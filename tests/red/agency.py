"""A careless agency: random files of a random population, masked by random chains, and released."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import sdcmap as sm
from sdcmap.bundle import release
from sdcmap.bundle.checks import Check
from sdcmap.bundle.prepared_file import as_written, prepare
from sdcmap.bundle.procedure import release_draw
from sdcmap.recordwise import Unsafe
from sdcmap.study.plan import Candidate

KEYS, AMOUNTS = ("region", "sex", "age", "school", "job"), ("income", "rent", "wealth")
SECRETS = ("income", "wealth")
ANYWAY = dict.fromkeys(
    ("identifier", "weight", "missing patterns", "unmasked", "profile"),
    "made-up people, for an attack on their release",
)


@dataclass(frozen=True)
class Outcome:
    """A release as its referee sees it: the folder that anybody may read; everybody of the population, the released people
    first; the row of the population that each released row came from (None: nobody's); what the gate stated; the file and
    how it was masked."""

    folder: Path
    everybody: pl.DataFrame
    inside: int
    origin: np.ndarray | None
    stated: list[Check]
    data: sm.Microdata
    method: sm.Method


# ---- files ----------------------------------------------------------------------------------------------------
def population(rng: np.random.Generator) -> tuple[pl.DataFrame, int]:
    """Return people in households, those of a random half of the households first, and the size of that half."""
    homes = int(rng.integers(120, 260))
    home = np.repeat(np.arange(homes), rng.integers(1, 5, homes))
    count, place = len(home), rng.choice([3, 6, 12])
    region = rng.integers(0, place, homes)[home]
    sex, age, school = rng.integers(0, 2, count), rng.integers(16, 90, count), rng.integers(0, 5, count)
    grid = np.where(
        rng.random(count) < rng.choice([0.0, 0.8]), 1000.0, float(rng.choice([1, 10, 50, 100]))
    )  # people round
    income = grid * np.rint(np.exp(8 + 0.2 * school + 0.3 * sex + 0.6 * rng.standard_normal(count)) / grid)
    rent = np.round(0.3 * income * np.exp(0.4 * rng.standard_normal(count)), 2)
    wealth = np.where(rng.random(count) < 0.3, 0.0, np.rint(np.exp(10 + 1.5 * rng.standard_normal(count))))
    frame = pl.DataFrame(
        {
            "pid": [f"P{number:06d}" for number in rng.permutation(10**6)[:count]],
            "home": 50_000 + 7 * home,
            "region": [f"{'NSEW'[number % 4]}{number}" for number in region],
            "sex": np.where(sex == 1, "m", "f"),
            "age": age,
            "school": school,
            "job": [f"job {number}" for number in np.minimum(rng.geometric(0.15, count), 25)],
            "income": income,
            "rent": rent,
            "wealth": wealth,
            "weight": rng.choice(rng.uniform(50, 500, int(rng.choice([4, 40]))).round(2), homes)[home],
        }
    )
    for name in rng.choice(["school", "job", "income", "rent"], rng.integers(0, 3), replace=False):
        gone = rng.random(count) < 0.08
        code = pl.lit(
            -9.0 if name in AMOUNTS and rng.random() < 0.5 else None, dtype=frame[name].dtype, allow_object=False
        )
        frame = frame.with_columns(pl.when(pl.Series(gone)).then(code).otherwise(pl.col(name)).alias(name))
    if rng.random() < 0.3:
        tax = 0.2 * income + 0.2 * np.maximum(income - 6000, 0)
        frame = frame.with_columns(tax=pl.Series(np.rint(tax)))
    in_file = np.isin(home, rng.permutation(homes)[: homes // 2])
    order = np.argsort(~in_file, kind="stable")
    return frame[order], int(in_file.sum())


def read(frame: pl.DataFrame, rng: np.random.Generator, folder: Path) -> sm.Microdata:
    """Return the file as an agency reads it: from a frame or a CSV file, with or without survey columns."""
    survey: dict[str, Any] = {"household": "home"} if rng.random() < 0.6 else {"drop": "home"}
    if rng.random() < 0.5:
        survey["weight"] = "weight"
    else:
        survey["drop"] = [name for name in (survey.get("drop"), "weight") if name]
    source: Any = frame
    if rng.random() < 0.3:
        source = folder / "people.csv"
        frame.write_csv(source)
    amounts = [name for name in (*AMOUNTS, "tax") if name in frame.columns]
    return sm.read(
        source, keys=list(KEYS), sensitive=list(SECRETS), other=[name for name in amounts if name not in SECRETS],
        numeric=amounts, identifiers="pid", kinds={"age": "ordinal", "school": "ordinal"}, missing={"*": [-9]},
        **survey,
    )  # fmt: skip


# ---- plans ----------------------------------------------------------------------------------------------------
def some(rng: np.random.Generator, names: tuple[str, ...], least: int = 1) -> list[str]:
    """Return a few of these names, or all."""
    return sorted(rng.choice(names, rng.integers(min(least, len(names)), len(names) + 1), replace=False).tolist())


def methods(rng: np.random.Generator, data: sm.Microdata) -> dict[str, Callable[[], sm.Method]]:
    """Return one random method of each class."""
    m, amounts, keys, whole = sm.methods, data.numeric, data.keys, data.knowable
    share, size = float(rng.choice([0.01, 0.05, 0.2, 0.5])), int(rng.choice([3, 5, 10]))
    pick = lambda *choices: choices[int(rng.integers(len(choices)))]
    unsafe = Unsafe(on=pick(*amounts), k=10, distance="absolute", scale="standardized")
    ends, bins = (
        {"top_share": pick(0.02, 0.1), "replaced_by": pick("mean", "bound", "median")},
        {"bins": size + 3, "by": "quantiles"},
    )
    numbers = {
        "Noise": lambda: m.Noise(on=some(rng, amounts), variance=share, correlated=pick(True, False)),
        "MixtureNoise": lambda: m.MixtureNoise(on=some(rng, amounts), variance=share),
        "MultiplicativeNoise": lambda: m.MultiplicativeNoise(on=some(rng, amounts), variance=share / 2),
        "RankSwap": lambda: m.RankSwap(on=some(rng, amounts), p=share / 2),
        "Microaggregate": lambda: m.Microaggregate(
            on=some(rng, amounts), size=size, method=pick("individual", "optimal")
        ),
        "Round": lambda: m.Round(on=some(rng, amounts), base=float(pick(10, 100, 1000)), unbiased=pick(True, False)),
        "TopCode": lambda: m.TopCode(on=some(rng, amounts), **ends),
        "Shuffle": lambda: m.Shuffle(on=some(rng, amounts)),
        "Protect": lambda: m.Protect(unsafe, m.Noise(on=some(rng, amounts), variance=share)),
        "Recode numbers": lambda: m.Recode(on=some(rng, amounts), **bins, becomes=pick("label", "mean")),
    }
    categories = {
        "PRAM": lambda: m.PRAM(on=some(rng, keys), stay=1 - share),
        "RandomizedResponse": lambda: m.RandomizedResponse(on=some(rng, keys), epsilon=pick(0.5, 2.0)),
        "Swap": lambda: m.Swap(on=some(rng, ("region", "job")), rate=share / 2),
        "SwapReidentified": lambda: m.SwapReidentified(on=some(rng, amounts)),
        "Recode ages": lambda: m.Recode(on="age", width=pick(5, 10)),
        "Recode jobs": lambda: m.Recode(on="region", prefix=1),
        "Suppress": lambda: m.Suppress(on=some(rng, keys[:4], 2), k=pick(2, 3)),
    }
    both = {
        "Synthesize": lambda: m.Synthesize(on=some(rng, whole), model=pick("trees", "copula")),
        "Synthesize all": lambda: m.Synthesize(on=rng.permutation(whole).tolist(), model=pick("trees", "copula")),
        "MaskMissing": lambda: m.MaskMissing(on=whole, k=size),
        "ProtectTails": lambda: m.ProtectTails(on=some(rng, amounts), k=10 + size),
        "Sample": lambda: m.Sample(rate=pick(0.5, 0.8)),
        "Gower": lambda: m.Microaggregate(on=some(rng, whole, 2), size=size, method="gower"),
    }
    if data.household:
        both["HouseholdSwap"] = lambda: m.HouseholdSwap(on="region", rate=max(share, 0.05), partial=True)
    return numbers | categories | both


def chain(rng: np.random.Generator, data: sm.Microdata) -> sm.Method:
    """Return one to five random steps; half of the time they begin with strong steps on every column."""
    makers = methods(rng, data)
    steps = [makers[name]() for name in rng.choice(list(makers), rng.integers(1, 5), replace=False)]
    if rng.random() < 0.5:
        steps = [*strong(rng, data), *steps[: int(rng.integers(2))]]
    return sm.methods.Chain(tuple(steps)) if len(steps) > 1 else steps[0]


def strong(rng: np.random.Generator, data: sm.Microdata) -> list[sm.Method]:
    """Return two steps that mask every column."""
    m, amounts, keys = sm.methods, data.numeric, data.keys
    numbers: list[sm.Method] = [
        m.Noise(on=amounts, variance=float(rng.choice([0.5, 2.0]))), m.RankSwap(on=amounts, p=0.3), m.Shuffle(on=amounts),
        m.MultiplicativeNoise(on=amounts, variance=0.5), m.Microaggregate(on=amounts, size=20), m.Synthesize(on=amounts),
    ]  # fmt: skip
    categories: list[sm.Method] = [
        m.PRAM(on=keys, stay=0.3), m.RandomizedResponse(on=keys, epsilon=0.5), m.Synthesize(on=keys),
        m.Microaggregate(on=keys, size=20, method="gower"),
    ]  # fmt: skip
    return [numbers[int(rng.integers(len(numbers)))], categories[int(rng.integers(len(categories)))]]


# ---- releases -------------------------------------------------------------------------------------------------
def released(rng: np.random.Generator, folder: Path) -> Outcome | None:
    """Return a random release; None if it cannot be made, or is rejected by the release checks."""
    folder.mkdir()
    everybody, inside = population(rng)
    data = read(everybody[:inside], rng, folder)
    method = chain(rng, data)
    measures = [sm.risk.KAnonymity(), sm.Hellinger()]
    plan = sm.Plan([method], measures, rule=sm.Threshold(risk=1.0), seed=int(rng.integers(1 << 62)) << 150)
    made, stated = Candidate(method), []
    profile = str(rng.choice(["public-use", "public-use", "business"]))
    try:
        going = release(data, plan, made, profile=profile, override=ANYWAY, ledger=folder / "ledger")
        going.write(folder / "public", on_checks=stated.extend)
        stream = release_draw(made).stream(plan.seed)
        masked = as_written(data, method, method.apply(data, stream))
        prepared = prepare(data, method, masked, stream)
    except (sm.errors.Infeasible, sm.errors.Refused, sm.errors.SchemaError):
        return None
    origin = prepared.origin if prepared.data.paired else None
    return Outcome(folder / "public", everybody, inside, origin, stated, data, method)
