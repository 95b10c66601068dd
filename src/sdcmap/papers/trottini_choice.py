"""Trottini's criterion on a real file: the choice among additive noise, correlated noise and rank swaps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sdcmap.charts.planes import draw_criterion
from sdcmap.choose import GlobalCriterion
from sdcmap.core import Choice, Microdata
from sdcmap.files.reading import read
from sdcmap.map import RUMap
from sdcmap.methods import Identity, Noise, RankSwap
from sdcmap.papers.reference import Document, Result, reference_file
from sdcmap.risk import DiscreditHarm, Informed, IntruderKnowledge
from sdcmap.study.plan import Plan
from sdcmap.study.sweeping import sweep
from sdcmap.utility import SocietyKnowledge, SocietyUtility

NAMES = ("AGI", "EMCONTRB", "FEDTAX", "INTVAL")
WANTED = "AGI"  # he knows the three others
LIMITS = (-0.5, -0.5)  # t_A and t_INT: he may learn half of what he did not know
METHODS = {
    **{f"noise {v:g}": Noise(on=NAMES, variance=v) for v in (0.01, 0.1)},
    **{f"correlated noise {v:g}": Noise(on=NAMES, variance=v, correlated=True) for v in (0.01, 0.05, 0.1)},
    **{f"rank swap {p:g}": RankSwap(on=NAMES, p=p) for p in (0.02, 0.05, 0.1)},
}
INTRUDER: dict[str, Any] = {"on": WANTED, "attack": Informed()}
SOCIETY: dict[str, Any] = {
    "on": WANTED, "of": "coefficient", "formula": f"FEDTAX ~ {WANTED}", "user": "informed", "prior_records": 100,
}  # fmt: skip
FOUR = (
    IntruderKnowledge(**INTRUDER),
    DiscreditHarm(**INTRUDER),
    SocietyKnowledge(**SOCIETY),
    SocietyUtility(**SOCIETY),
)


def worked_choice(*, data: Path | None = None, seed: int = 1, replicates: int = 4) -> Result:
    """The criterion on casc_census. An intruder who has read the method note and knows three variables of his target wants
    the fourth, AGI; society wants the coefficient of AGI in FEDTAX ~ AGI, and takes noise off where the note says how."""
    file, which = _file(data, seed)
    plan = Plan(methods=list(METHODS.values()), measures=list(FOUR), replicates=replicates, seed=seed)
    iek, rdh, sek, dus = (measure.text for measure in FOUR)
    ru = RUMap(sweep(file, plan), risk=(iek,), utility=sek)
    rule = GlobalCriterion(iek=iek, rdh=rdh, sek=sek, dus=dus, agency_limit=LIMITS[0], intruder_limit=LIMITS[1])
    choice = ru.choose(rule)
    names = {method.text: name for name, method in METHODS.items()} | {Identity().text: "as it is"}
    table = rule.table(ru).with_columns(pl.col("method").replace_strict(names).alias("name")).sort("distance")
    chart = draw_criterion(ru, choice, unit="of prior uncertainty", names=names)
    return Result(_document(table, choice, names, which), tuple(_lines(table, choice, names, which)), {"choice": chart})


def _document(table: pl.DataFrame, choice: Choice, names: dict[str, str], which: str) -> Document:
    rows = {
        row["name"]: {
            **{key.upper(): row[key] for key in ("iek", "rdh", "sek", "dus")},
            "distance": row["distance"], "region": row["region"],
        }
        for row in table.iter_rows(named=True)
    }  # fmt: skip
    chosen = None if choice.candidate is None else names[choice.method]
    limits = {"agency_limit": LIMITS[0], "intruder_limit": LIMITS[1]}
    return {"file": which, **limits, "candidates": rows, "choice": chosen}


def _lines(table: pl.DataFrame, choice: Choice, names: dict[str, str], which: str) -> list[str]:
    lines = [
        f"A worked choice ({which}): the intruder knows {', '.join(n for n in NAMES if n != WANTED)} and wants {WANTED};",
        f"society wants the slope of {SOCIETY['formula']}; as shares of the prior's uncertainty",
        f"  {'candidate':22}{'IEK':>9}{'RDH':>9}{'SEK':>9}{'DUS':>9}{'distance':>10}  region",
    ]
    for row in table.iter_rows(named=True):
        numbers = "".join(f"{row[key]:9.4f}" for key in ("iek", "rdh", "sek", "dus"))
        lines.append(f"  {row['name']:22}{numbers}{row['distance']:10.4f}  {row['region']}")
    chosen = "nothing" if choice.candidate is None else names[choice.method]
    return [*lines, f"  t_A = {LIMITS[0]:g}, t_INT = {LIMITS[1]:g}: release {chosen}"]


def _file(data: Path | None, seed: int) -> tuple[Microdata, str]:
    file = reference_file("casc_census.parquet", data) or reference_file("casc_census.csv", data)
    if file is not None:
        return read(file).only(NAMES), "casc_census"
    z = np.random.default_rng(seed).standard_normal((1_080, 4))
    income = np.exp(10.6 + 0.6 * z[:, 0])
    columns = (
        income,
        income**0.7 * np.exp(0.4 * z[:, 1]),
        0.12 * income * np.exp(0.3 * z[:, 2]),
        np.exp(5 + 1.5 * z[:, 3]),
    )
    return read(pl.DataFrame(dict(zip(NAMES, (np.round(column) for column in columns), strict=True))), numeric="all"), (
        "a generated stand-in"
    )
