"""Trottini's criterion on a real file: a choice among additive noise, correlated noise and rank swaps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sdcmap import Microdata, Plan, RankSwap, RUMap, read, sweep
from sdcmap.charts.planes import draw_criterion
from sdcmap.choose import GlobalCriterion
from sdcmap.methods import Identity, Noise
from sdcmap.papers.reference import Document, Result, reference_file
from sdcmap.risk import DiscreditHarm, Informed, IntruderKnowledge
from sdcmap.utility import SocietyKnowledge, SocietyUtility

NAMES = ("AGI", "EMCONTRB", "FEDTAX", "INTVAL")
TARGET_VARIABLE = "AGI"  # the intruder knows the three others
LIMITS = (-0.5, -0.5)  # t_A and t_INT: the intruder may learn half of what they did not know
METHODS = {
    **{f"noise {v:g}": Noise(on=NAMES, variance=v) for v in (0.01, 0.1)},
    **{f"correlated noise {v:g}": Noise(on=NAMES, variance=v, correlated=True) for v in (0.01, 0.05, 0.1)},
    **{f"rank swap {p:g}": RankSwap(on=NAMES, p=p) for p in (0.02, 0.05, 0.1)},
}
INTRUDER: dict[str, Any] = {"on": TARGET_VARIABLE, "attack": Informed()}
SOCIETY: dict[str, Any] = {
    "on": TARGET_VARIABLE, "of": "coefficient", "formula": f"FEDTAX ~ {TARGET_VARIABLE}", "user": "informed",
    "prior_records": 100,
}  # fmt: skip
FOUR_MEASURES = {
    "iek": IntruderKnowledge(**INTRUDER), "rdh": DiscreditHarm(**INTRUDER),
    "sek": SocietyKnowledge(**SOCIETY), "dus": SocietyUtility(**SOCIETY),
}  # fmt: skip


def run_worked_choice(*, data: Path | None = None, seed: int = 1, replicates: int = 10) -> Result:
    """Apply the criterion to casc_census.

    An intruder who has read the method note and knows three variables of a target wants the fourth, AGI. Society wants the
    coefficient of AGI in FEDTAX ~ AGI, and corrects for noise if the note allows it.
    """
    file, which = _file(data, seed)
    plan = Plan(methods=list(METHODS.values()), measures=list(FOUR_MEASURES.values()), replicates=replicates, seed=seed)
    axes: dict[str, Any] = {key: measure.text for key, measure in FOUR_MEASURES.items()}
    limits: dict[str, Any] = {
        "agency_limit": LIMITS[0],
        "intruder_limit": LIMITS[1],
    }
    rule = GlobalCriterion(**axes, **limits)
    ru = RUMap(sweep(file, plan), risk=(axes["iek"],), utility=axes["sek"])
    choice = ru.choose(rule)
    names = {method.text: name for name, method in METHODS.items()} | {Identity().text: "unmasked"}
    table = rule.table(ru).with_columns(pl.col("method").replace_strict(names).alias("name")).sort("distance")
    chosen = None if choice.candidate is None else names[choice.method]
    rows = {
        row["name"]: {key.upper(): row[key] for key in FOUR_MEASURES}
        | {key: row[key] for key in ("distance", "region")}
        for row in table.iter_rows(named=True)
    }
    document: Document = {"file": which, **limits, "candidates": rows, "choice": chosen}
    chart = draw_criterion(ru, choice, unit="of prior uncertainty", names=names)
    return Result(document, tuple(_lines(document)), {"choice": chart})


def _lines(document: Document) -> Iterator[str]:
    known = ", ".join(name for name in NAMES if name != TARGET_VARIABLE)
    yield f"A worked choice ({document['file']}): the intruder knows {known} and wants {TARGET_VARIABLE};"
    yield f"society wants the slope of {SOCIETY['formula']}; as shares of the prior's uncertainty"
    yield f"  {'candidate':22}{'IEK':>9}{'RDH':>9}{'SEK':>9}{'DUS':>9}{'distance':>10}  region"
    for name, row in document["candidates"].items():
        numbers = "".join(f"{row[key.upper()]:9.4f}" for key in FOUR_MEASURES)
        yield f"  {name:22}{numbers}{row['distance']:10.4f}  {row['region']}"
    yield f"  t_A = {LIMITS[0]:g}, t_INT = {LIMITS[1]:g}: release {document['choice'] or 'nothing'}"


def _file(data: Path | None, seed: int) -> tuple[Microdata, str]:
    file = reference_file("casc_census.parquet", data) or reference_file("casc_census.csv", data)
    if file is not None:
        return read(file).only(NAMES), "casc_census"
    z = np.random.default_rng(seed).standard_normal((1_080, 4))
    income = np.exp(10.6 + 0.6 * z[:, 0])
    columns = {
        "AGI": income, "EMCONTRB": income**0.7 * np.exp(0.4 * z[:, 1]),
        "FEDTAX": 0.12 * income * np.exp(0.3 * z[:, 2]), "INTVAL": np.exp(5 + 1.5 * z[:, 3]),
    }  # fmt: skip
    return read(pl.DataFrame(columns).select(pl.all().round()), numeric="all"), "a generated stand-in"
