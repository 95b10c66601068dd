"""Compute the tables of docs/decide: methods, attacks, measures and limits on artificial files of several kinds.

Run it after a change of the classes in the tables. Names of tables as arguments select some:

    python docs/make_decide.py limits abilities
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

import sdcmap as sm
from sdcmap.core.measure import Measure
from sdcmap.core.method import Method
from sdcmap.core.value import field_types
from sdcmap.methods import METHODS
from sdcmap.study.profiles import find_profile

FOLDER = Path(__file__).with_name("decide")
SEED, DRAWS = 2026, 3
KEYS = ("Age", "Educ", "Sex", "MarStat", "Hours")
AMOUNTS = ("turnover", "wages", "costs", "stock")
MIXED = (*KEYS, "wage")


# ---- files -----------------------------------------------------------------------------------------------------
def people(n: int = 1000) -> sm.Microdata:
    """Return artificial persons with five keys and a wage."""
    return sm.demo.population(n).only(MIXED)


def firms(sigma: float, n: int = 600) -> sm.Microdata:
    """Return firms with four correlated amounts: lognormal with this sigma, or normal around 100 if sigma is 0."""
    rng = np.random.default_rng(SEED)
    z = 0.8 * rng.normal(size=(n, 1)) + 0.6 * rng.normal(size=(n, 4))
    amounts = np.exp(4 + sigma * z) if sigma else 100 + 15 * z
    return sm.read(pl.DataFrame(amounts.round(2), schema=list(AMOUNTS)), numeric="all")


def families(n: int = 800) -> sm.Microdata:
    """Return persons in households, with keys and a wage."""
    return sm.demo.population(n).only((*MIXED, "household"))


# ---- a sweep as a table ----------------------------------------------------------------------------------------
def sweep_table(data: sm.Microdata, methods: Mapping[str, Method], measures: Mapping[str, Measure]) -> list[list[str]]:
    """Return the pooled values of the measures, one row for each method; the unchanged file comes first."""
    plan = sm.Plan(list(methods.values()), list(measures.values()), replicates=DRAWS, seed=SEED)
    scores = sm.sweep(data, plan, workers=1)
    pooled = [dict(scores.pooled(m.text).select("method", "value").iter_rows()) for m in measures.values()]
    named = {"unchanged file": "Identity"} | {name: method.text for name, method in methods.items()}
    return [[name, *(_format_value(column.get(text)) for column in pooled)] for name, text in named.items()]


def _format_value(value: float | None) -> str:
    if value is None:
        return "-"
    return "0" if abs(value) < 0.0005 else f"{value:.3f}" if abs(value) < 0.9995 else f"{value:.2f}"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: bool = True) -> list[str]:
    """Return a Markdown table. numbers : align all columns but the first to the right."""
    rule = "|---|" + ("---:|" if numbers else "---|") * (len(header) - 1)
    return ["| " + " | ".join(header) + " |", rule, *("| " + " | ".join(row) + " |" for row in rows)]


# ---- which method ----------------------------------------------------------------------------------------------
def categories() -> list[str]:
    methods = {
        "swap of Age and Educ, 10 % of the pairs": sm.Swap(on=("Age", "Educ"), rate=0.1),
        "PRAM, at least 80 % stay": sm.PRAM(on=KEYS, stay=0.8),
        "PRAM, at least 40 % stay": sm.PRAM(on=KEYS, stay=0.4),
        "suppress to k = 3": sm.Suppress(on=KEYS, k=3),
        "suppress to k = 10": sm.Suppress(on=KEYS, k=10),
        "microaggregation, groups of 5": sm.Microaggregate(on=KEYS, size=5, method="gower"),
        "synthetic given Sex, leaves of 50": sm.Synthesize(
            on=("Age", "Educ", "MarStat", "Hours"), given="Sex", leaf=50
        ),
    }
    measures: dict[str, Measure] = {
        "re-identified by linkage": sm.WorstLinkage(),
        "re-identified by exact match": sm.risk.ExactMatch(),
        "Hellinger": sm.Hellinger(),
        "error of counts": sm.utility.QueryError(on=KEYS),
    }
    return markdown_table(["1,000 persons, five keys", *measures], sweep_table(people().only(KEYS), methods, measures))


def amounts() -> list[str]:
    methods = {
        "noise 10 %": sm.Noise(on=AMOUNTS, variance=0.1),
        "noise 50 %, correlated": sm.Noise(on=AMOUNTS, variance=0.5, correlated=True),
        "factors, variance 0.1": sm.methods.MultiplicativeNoise(on=AMOUNTS, variance=0.1),
        "rank swap 10 %": sm.RankSwap(on=AMOUNTS, p=0.1),
        "rank swap 40 %": sm.RankSwap(on=AMOUNTS, p=0.4),
        "microaggregation, groups of 3": sm.Microaggregate(on=AMOUNTS, size=3),
        "microaggregation, groups of 20": sm.Microaggregate(on=AMOUNTS, size=20),
        "synthetic, copula": sm.Synthesize(on=AMOUNTS, model="copula"),
    }
    measures: dict[str, Measure] = {
        "re-identified": sm.WorstLinkage(),
        "ten largest re-identified": sm.risk.LargestUnits(on="turnover"),
        "Kolmogorov-Smirnov": sm.utility.KolmogorovSmirnov(),
        "loss of correlations": sm.utility.CorrelationLoss(),
    }
    header = ["600 firms, four amounts", *(f"{name}, {kind}" for kind in ("symmetric", "skewed") for name in measures)]
    even, skewed = (sweep_table(firms(sigma), methods, measures) for sigma in (0.0, 1.5))
    return markdown_table(header, [[*left, *right[1:]] for left, right in zip(even, skewed, strict=True)])


def mixed() -> list[str]:
    chain = lambda keys, number: sm.Chain([keys, number])
    methods = {
        "PRAM 40 % of the keys, wage unchanged": sm.PRAM(on=KEYS, stay=0.4),
        "keys unchanged, rank swap 40 % of the wage": sm.RankSwap(on="wage", p=0.4),
        "PRAM 80 %, rank swap 10 %": chain(sm.PRAM(on=KEYS, stay=0.8), sm.RankSwap(on="wage", p=0.1)),
        "PRAM 40 %, rank swap 40 %": chain(sm.PRAM(on=KEYS, stay=0.4), sm.RankSwap(on="wage", p=0.4)),
        "microaggregation of whole records, groups of 5": sm.Microaggregate(on=MIXED, size=5, method="gower"),
        "microaggregation of whole records, groups of 25": sm.Microaggregate(on=MIXED, size=25, method="gower"),
        "synthetic given Sex": sm.Synthesize(on=tuple(n for n in MIXED if n != "Sex"), given="Sex", leaf=50),
    }
    measures: dict[str, Measure] = {
        "re-identified by linkage": sm.WorstLinkage(),
        "attribute inference, wage": sm.risk.AttributeInference(secret="wage", on=KEYS),
        "membership inference": sm.risk.ClosestRecord(),
        "error of counts": sm.utility.QueryError(),
    }
    return markdown_table(["1,000 persons, five keys and a wage", *measures], sweep_table(people(), methods, measures))


def households() -> list[str]:
    methods = {
        "swap of Educ, 20 % of the pairs": sm.Swap(on="Educ", rate=0.2),
        "PRAM, at least 40 % stay": sm.PRAM(on=KEYS, stay=0.4),
        "PRAM 40 %, rank swap 40 % of the wage": sm.Chain([sm.PRAM(on=KEYS, stay=0.4), sm.RankSwap(on="wage", p=0.4)]),
    }
    measures: dict[str, Measure] = {
        "persons linked one by one": sm.risk.NearestRecord(metric="gower"),
        "persons linked by household": sm.risk.HouseholdLink(),
        "error of counts": sm.utility.QueryError(on=KEYS),
    }
    return markdown_table(["800 persons in households", *measures], sweep_table(families(), methods, measures))


def abilities() -> list[str]:
    """Return the facts that each method states as class data."""
    missing = {"kept": "stay missing", "category": "a category", "added": "values become missing", "refused": "refused"}
    rows = [
        [
            f"[{cls.__name__}](../reference/{cls.__name__}.md)",
            ", ".join(cls.kinds) if "on" in field_types(cls) else "all",
            _format_fact(cls.missing, missing), _format_fact(cls.weights), _format_fact(cls.households),
            "yes" if cls.random is True else "no" if cls.random is False else "depends on the parameters",
        ]
        for cls in METHODS
    ]  # fmt: skip
    return markdown_table(["method", "kinds", "missing values", "weights", "households", "random"], rows, numbers=False)


def _format_fact(fact: object, names: Mapping[str, str] | None = None) -> str:
    text = fact if isinstance(fact, str) else "depends on the parameters"
    return (names or {}).get(text, text).replace("|", "\\|") or "-"


# ---- which attack ----------------------------------------------------------------------------------------------
def attackers() -> list[str]:
    data = people(800)
    chains = {
        "PRAM 80 %, rank swap 10 %": sm.Chain([sm.PRAM(on=KEYS, stay=0.8), sm.RankSwap(on="wage", p=0.1)]),
        "PRAM 40 %, rank swap 40 %": sm.Chain([sm.PRAM(on=KEYS, stay=0.4), sm.RankSwap(on="wage", p=0.4)]),
        "groups of 5": sm.Microaggregate(on=MIXED, size=5, method="gower"),
    }
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "archive.parquet"
        old = sm.mask(data, sm.Chain([sm.PRAM(on=KEYS, stay=0.9), sm.Noise(on="wage", variance=0.05)]), seed=SEED)
        old.frame().write_parquet(archive)
        attacks: dict[str, Measure] = {
            "neighbor: Age, Sex, MarStat": sm.WorstLinkage(on=("Age", "Sex", "MarStat")),
            "company with a register: five keys": sm.WorstLinkage(on=KEYS),
            "employer: keys and wage": sm.WorstLinkage(),
            "employer with an old file that has errors": sm.WorstLinkage(archive=str(archive)),
            "employer, nearest record only": sm.risk.NearestRecord(metric="gower"),
            "journalist: 1 in 100 is in the file": sm.WorstLinkage(inclusion=0.01),
        }
        rows = sweep_table(data, chains, attacks)
    return markdown_table(
        ["attacker", *(row[0] for row in rows)],
        [[name, *(row[k] for row in rows)] for k, name in enumerate(attacks, 1)],
    )


# ---- which utility ---------------------------------------------------------------------------------------------
def users() -> list[str]:
    data = people()
    rest = tuple(n for n in MIXED if n != "Sex")
    methods = {
        "noise, wage": sm.Noise(on="wage", variance=0.5),
        "rank swap 30 %, wage": sm.RankSwap(on="wage", p=0.3),
        "PRAM 60 %, keys": sm.PRAM(on=KEYS, stay=0.6),
        "microaggregation, groups of 10": sm.Microaggregate(on=MIXED, size=10, method="gower"),
        "synthetic, leaves of 50": sm.Synthesize(on=rest, given="Sex", leaf=50),
    }
    model = "wage ~ Age + Sex + Hours"
    measures: dict[str, Measure] = {
        "tables: error of two-way counts": sm.utility.TableError(on=KEYS, order=2),
        "distribution of the wage (KS)": sm.utility.KolmogorovSmirnov(on="wage"),
        "means: overlap of intervals (1 is best)": sm.utility.IntervalOverlap(on="wage"),
        "regression: overlap of intervals (1 is best)": sm.utility.IntervalOverlap(models=model),
        "worst age group: change of the wage (IL1s)": sm.utility.WorstSubgroup(sm.IL1s(on="wage"), by="Age"),
        "prediction of Hours (loss)": sm.utility.TrainOnRelease(predicts="Hours", on=("Age", "Educ", "Sex", "wage")),
        "whole file: propensity": sm.utility.Propensity(),
    }
    rows = sweep_table(data, methods, measures)
    return markdown_table(
        ["use of the file", *(row[0] for row in rows)],
        [[name, *(row[k] for row in rows)] for k, name in enumerate(measures, 1)],
    )


# ---- which limit -----------------------------------------------------------------------------------------------
def limits() -> list[str]:
    shown = (
        "reidentification",
        "people",
        "record",
        "subgroup",
        "k",
        "small",
        "special",
        "inference",
        "membership",
        "largest",
        "totals",
    )
    profiles = {name: find_profile(name) for name in ("public-use", "scientific-use", "teaching", "business")}
    rows = [
        [f"`{field}`", *(f"{value:g}" if (value := getattr(p, field)) is not None else "-" for p in profiles.values())]
        for field in shown
    ]
    return markdown_table(["limit", *profiles], rows)


def prices() -> list[str]:
    """Return the smallest loss within each risk limit, for three sizes of file."""
    loss, risk = sm.utility.QueryError(), sm.WorstLinkage()
    chains = [
        sm.Chain([sm.PRAM(on=KEYS, stay=stay), sm.RankSwap(on="wage", p=p)])
        for stay in (0.9, 0.7, 0.5, 0.3, 0.15)
        for p in (0.05, 0.2, 0.5, 0.8)
    ]
    maps = []
    for n in (250, 1000, 4000):
        scores = sm.sweep(people(n), sm.Plan(chains, [risk, loss], replicates=2, seed=SEED), workers=1)
        maps.append(sm.RUMap(scores, risk=risk, utility=loss))
    rows = []
    for limit in (0.5, 0.2, 0.1, 0.05, 0.02, 0.01):
        choices = [ru.choose(sm.Threshold(risk=limit, by="mean")) for ru in maps]
        rows.append([f"{limit:g}", *(_format_value(c.utility) if c.candidate else "nothing" for c in choices)])
    return markdown_table(["limit on the share re-identified", "250 persons", "1,000 persons", "4,000 persons"], rows)


TABLES: dict[str, Callable[[], list[str]]] = {
    "method.md categories": categories, "method.md amounts": amounts, "method.md mixed": mixed,
    "method.md households": households, "method.md abilities": abilities, "attack.md attackers": attackers,
    "utility.md users": users, "limit.md limits": limits, "limit.md prices": prices,
}  # fmt: skip


def write(place: str) -> None:
    """Write a table between its markers on its page. place : page and name of the table."""
    page, name = place.split()
    path = FOLDER / page
    begin, end = f"<!-- {name} -->", f"<!-- end {name} -->"
    before, mark, rest = path.read_text(encoding="utf-8").partition(begin)
    assert mark, f"{page} has no markers for the table {name}"
    path.write_text(
        "\n".join([before + begin, "", *TABLES[place](), "", end]) + rest.partition(end)[2], encoding="utf-8"
    )


if __name__ == "__main__":
    for place in [place for place in TABLES if not sys.argv[1:] or place.split()[1] in sys.argv[1:]]:
        write(place)
        print(place)
