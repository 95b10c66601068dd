"""Gomatam, Karr, Sanil (2003), A risk-utility framework for categorical data swapping.

The 108 unconstrained swaps of one or two of eight variables at three rates, and two collections of constrained swaps, over
many seeds: figures 2 to 4, the linear optimum, how often each swap is on the frontier, and a check of the paper's claims.
"""

from __future__ import annotations

import operator
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import polars as pl

from sdcmap import Microdata, Plan, RUMap, Scores, Swap, demo, read, subsets, sweep
from sdcmap.charts import draw_map
from sdcmap.core.chart import Chart
from sdcmap.papers.reference import Document, Result, reference_file
from sdcmap.risk import SmallCells
from sdcmap.utility import Hellinger

LETTERS = {"Age": "A", "WrkTyp": "W", "Educ": "E", "MarStat": "M", "Race": "R", "Sex": "S", "Hours": "H", "Income": "I"}
RATES = (0.005, 0.01, 0.05)
UNCONSTRAINED, SAME_SEX, OTHER_MARITAL = "unconstrained", "same Sex", "MarStat differs"


@dataclass(frozen=True)
class Condition:
    """One swap of the paper: its variables, rate and collection."""

    variables: tuple[str, ...]
    rate: float
    collection: str

    @property
    def letters(self) -> str:
        return "".join(LETTERS[name] for name in self.variables)

    @cached_property
    def method(self) -> Swap | None:
        """The swap; None if the collection holds a variable fixed that is to be swapped."""
        if self.collection == SAME_SEX:
            return None if "Sex" in self.variables else Swap(on=self.variables, rate=self.rate, same=("Sex",))
        is_free = self.collection == UNCONSTRAINED or "MarStat" in self.variables  # a swapped variable differs anyway
        return Swap(on=self.variables, rate=self.rate, differ=() if is_free else ("MarStat",))


def conditions() -> list[Condition]:
    """Return the 108 unconstrained conditions, and 36 of each constrained collection at the rate 0.01."""
    sets = list(subsets(tuple(LETTERS), 1, 2))
    free = [Condition(names, rate, UNCONSTRAINED) for rate in RATES for names in sets]
    return free + [Condition(names, 0.01, collection) for collection in (SAME_SEX, OTHER_MARITAL) for names in sets]


def persons(data: Path | None) -> tuple[Microdata, str]:
    """Return the eight variables of CPS-8d, or of the demo population without the reference file; and which it is."""
    file = reference_file("cps8d.parquet", data) or reference_file("cps8d.csv", data)
    if file is not None:
        return read(file, keys="all"), f"reference file {file.name}"
    return read(demo.population(48_842).only(LETTERS).frame(), keys="all"), "generated stand-in (demo population)"


def run(*, seeds: int = 100, data: Path | None = None, seed: int | None = None, workers: int | None = None) -> Result:
    """Run the experiment.

    seeds : random draws of each condition.
    data : folder of reference files.
    seed : of the whole run; by default a random one.
    """
    people, which = persons(data)
    every = conditions()
    methods = [condition.method for condition in every if condition.method is not None]
    key = secrets.randbits(256) if seed is None else seed
    plan = Plan(methods, [SmallCells(), Hellinger()], replicates=seeds, seed=key)
    collections = Collections(sweep(people, plan, workers=workers), every, seeds)
    document = {
        "conditions": collections.rows, "linear_optimum": collections.linear_optimum, "claims": collections.claims,
        "data": which, "seeds": seeds,
    }  # fmt: skip
    return Result(document, tuple(_lines(collections, which)), collections.figures())


@dataclass(frozen=True)
class Collections:
    """The scores of all conditions, by collection and rate."""

    scores: Scores
    conditions: list[Condition]
    seeds: int

    def map_of(self, chosen: Iterable[Condition]) -> RUMap:
        """Return the map of some conditions only."""
        texts = pl.Series([c.method.text for c in chosen if c.method is not None])
        is_chosen = pl.col("method").is_in(texts.implode()) | (pl.col("kind") == "identity")
        candidate = self.scores.candidate.filter(is_chosen)
        score = self.scores.score.filter(pl.col("candidate").is_in(candidate["id"].implode()))
        scores = replace(self.scores, candidate=candidate, score=score)
        # The paper's frontier is that of swaps alone; the unswapped file is drawn beside it.
        return RUMap(scores, ("SmallCells",), "Hellinger", compares_unmasked=False)

    def of(self, collection: str, rate: float | None = None) -> list[Condition]:
        return [c for c in self.conditions if c.collection == collection and rate in (None, c.rate)]

    @cached_property
    def free(self) -> RUMap:
        """The map of the 108 unconstrained conditions."""
        return self.map_of(self.of(UNCONSTRAINED))

    @cached_property
    def rows(self) -> list[Document]:
        """One row per condition.

        `frontier_frequency` refers to all conditions of the collection, `frontier_frequency_at_rate` to those of its rate.
        """
        rows: list[Document] = []
        for collection in (UNCONSTRAINED, SAME_SEX, OTHER_MARITAL):
            whole = _by_method(self.map_of(self.of(collection)))
            for rate in RATES:
                at_rate = self.of(collection, rate)
                same_rate = _by_method(self.map_of(at_rate)) if at_rate else {}
                rows += [_row(condition, whole, same_rate) for condition in at_rate]
        return rows

    @cached_property
    def linear_optimum(self) -> list[Document]:
        """The conditions with the least mean risk + a x mean Hellinger distance, as a goes from 0 to infinity."""
        condition_of = {c.method.text: c for c in self.of(UNCONSTRAINED) if c.method is not None}
        return [
            {"from": r["from"], "to": r["to"], "vars": condition_of[r["method"]].letters,
             "rate": condition_of[r["method"]].rate, "risk": r["risk"], "hellinger": r["utility"]}
            for r in self.free.linear_path().iter_rows(named=True)
        ]  # fmt: skip

    @cached_property
    def claims(self) -> Document:
        """The claims of the paper about its figures, checked on the means over seeds."""
        axes = ("risk_mean", "hellinger_mean")
        feasible = pl.DataFrame([row for row in self.rows if row["feasible"]])
        free = feasible.filter(pl.col("collection") == UNCONSTRAINED).with_columns(size=pl.col("vars").str.len_chars())
        by_rate = free.group_by("rate").agg(pl.col(axes).mean(), pl.col(axes).std().name.suffix("_sd")).sort("rate")
        risks = free.group_by("rate", "size").agg(pl.mean("risk_mean")).sort("rate", "size")["risk_mean"].to_list()
        # The paper finds that swapping Educ at 0.05 is dominated by several swaps at 0.01.
        educ = free.filter((pl.col("vars") == "E") & (pl.col("rate") == 0.05)).select(axes).rows()
        better = [free.filter(pl.col("rate") == 0.01, *(pl.col(axes[i]) < at[i] for i in (0, 1))) for at in educ]
        lacking = [f"{row['vars']} {row['rate']:g} {row['collection']}" for row in self.rows if not row["feasible"]]
        return {
            "distortion rises and risk falls with the rate": _rises(by_rate["hellinger_mean"])
            and _rises(-by_rate["risk_mean"]),
            "single swaps are riskier than double ones": all(map(operator.gt, risks[::2], risks[1::2])),
            "variability over variables rises with the rate": all(_rises(by_rate[f"{axis}_sd"]) for axis in axes),
            "number of 0.01 swaps that dominate Educ 0.05": sum(map(len, better)),
            "infeasible": lacking,
        }

    def figures(self) -> dict[str, Chart]:
        """Return figures 2, 3 and 4, of means over seeds, with the letters of the paper."""
        names = {c.method.text: c.letters for c in self.conditions if c.method is not None}
        constrained = [c for c in self.conditions if c.collection != UNCONSTRAINED]
        panels = {c.method.text: c.collection for c in constrained if c.method is not None}
        figures = {
            f"figure2_rate_{rate:g}": draw_map(
                self.map_of(self.of(UNCONSTRAINED, rate)), by="mean", names=names, label="all"
            )
            for rate in RATES
        }
        figures["figure3"] = draw_map(self.free, by="mean", color="rate", names=names, width=700, height=520)
        both = self.map_of(constrained)
        figures["figure4"] = draw_map(both, by="mean", facet=panels, names=names, label="all", width=420, height=340)
        return figures


def _by_method(ru: RUMap) -> dict[str, Document]:
    spread = ru.points.group_by("method").agg(risk_sd=pl.col("risk").std(), utility_sd=pl.col("utility").std())
    return {row["method"]: row for row in ru.means.join(spread, on="method", how="left").iter_rows(named=True)}


def _row(condition: Condition, whole: dict[str, Document], same_rate: dict[str, Document]) -> Document:
    text = "" if condition.method is None else condition.method.text
    mean = whole.get(text, {})
    return {
        "vars": condition.letters, "rate": condition.rate, "collection": condition.collection,
        "risk_mean": mean.get("risk"), "risk_sd": mean.get("risk_sd"), "hellinger_mean": mean.get("utility"),
        "hellinger_sd": mean.get("utility_sd"), "feasible": bool(mean), "frontier_frequency": mean.get("membership"),
        "frontier_frequency_at_rate": same_rate.get(text, {}).get("membership"),
    }  # fmt: skip


def _rises(values: pl.Series) -> bool:
    return bool((values.diff().drop_nulls() > 0).all())


def _lines(collections: Collections, which: str) -> list[str]:
    often = sorted((row for row in collections.rows if row["feasible"] and row["collection"] == UNCONSTRAINED),
                   key=lambda row: -row["frontier_frequency"])  # fmt: skip
    optimum = [
        f"  {r['vars']} at {r['rate']:g} for a from {r['from']:.5f} to {r['to']:.5f}: risk {r['risk']:.6f}, "
        f"H {r['hellinger']:.6f}"
        for r in collections.linear_optimum
    ]
    claims = collections.claims
    checks = [f"  {'holds' if value is True else 'FAILS' if value is False else value}: {claim}"
            for claim, value in claims.items() if claim != "infeasible"]  # fmt: skip
    return [
        "Gomatam, Karr, Sanil (2003)",
        f"{which}; {len(collections.conditions)} conditions, {collections.seeds} seeds each",
        "Claims of the paper, on the means over seeds:",
        *checks,
        f"  infeasible: {', '.join(claims['infeasible'])}",
        "Least risk + a x Hellinger distance:",
        *optimum,
        "Most often on the combined frontier: "
        + ", ".join(f"{row['vars']} {row['rate']:g} ({row['frontier_frequency']:.0%})" for row in often[:10]),
        "Erratum: figure 1 mentions utility, but the plots show distortion. So the frontier is at the lower left, and the",
        "linear rule is the least risk + a x distortion. Feasible: one random matching has m admissible pairs.",
    ]
