"""Gomatam, Karr, Sanil (2003), A risk-utility framework for categorical data swapping.

The 108 unconstrained swaps of one or two of eight variables at three rates, and two collections of constrained swaps, over
many seeds: figures 2 to 4, the linear optimum, how often each swap is on the frontier, and a check of the paper's claims.
"""

from __future__ import annotations

import operator
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from sdcmap import Microdata, Plan, RUMap, Scores, Swap, demo, read, subsets, sweep
from sdcmap.charts import draw_map
from sdcmap.core.chart import Chart
from sdcmap.papers.own_file import only_methods
from sdcmap.papers.reference import Document, Result, reference_file
from sdcmap.risk import SmallCells
from sdcmap.utility import Hellinger

LETTERS = {"Age": "A", "WrkTyp": "W", "Educ": "E", "MarStat": "M", "Race": "R", "Sex": "S", "Hours": "H", "Income": "I"}
RATES = (0.005, 0.01, 0.05)
AXES = ("risk_mean", "hellinger_mean")
UNCONSTRAINED, SAME_SEX, OTHER_MARITAL = "unconstrained", "same Sex", "MarStat differs"


@dataclass(frozen=True)
class Condition:
    """One swap: its variables, rate and collection, the letters of its variables, and what the two records share or not.

    same, differ : variables in which the two records of a pair must agree, or differ.
    """

    variables: tuple[str, ...]
    rate: float
    collection: str
    letters: str
    same: tuple[str, ...] = ()
    differ: tuple[str, ...] = ()

    @cached_property
    def method(self) -> Swap | None:
        """The swap; None if the collection holds a variable fixed that is to be swapped."""
        if set(self.same) & set(self.variables):
            return None
        differ = tuple(name for name in self.differ if name not in self.variables)  # a swapped variable differs anyway
        return Swap(on=self.variables, rate=self.rate, same=self.same, differ=differ)


def conditions() -> list[Condition]:
    """Return the 108 unconstrained conditions, and 36 of each constrained collection at the rate 0.01."""
    return list_conditions(LETTERS, RATES, 0.01, {SAME_SEX: (("Sex",), ()), OTHER_MARITAL: ((), ("MarStat",))})


def list_conditions(
    letters: Mapping[str, str], rates: Sequence[float], constrained_rate: float,
    constraints: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]],
) -> list[Condition]:  # fmt: skip
    """Return swaps of one and of two variables at every rate, and constrained ones at one rate.

    letters : by variable. constraints : the name of a collection -> its `same` and its `differ`.
    """
    sets = [(names, "".join(letters[name] for name in names)) for names in subsets(tuple(letters), 1, 2)]
    free = [Condition(names, rate, UNCONSTRAINED, short) for rate in rates for names, short in sets]
    return free + [
        Condition(names, constrained_rate, collection, short, same, differ)
        for collection, (same, differ) in constraints.items()
        for names, short in sets
    ]


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
    risk: str = "SmallCells"
    utility: str = "Hellinger"

    def map_of(self, chosen: Iterable[Condition]) -> RUMap:
        """Return the map of some conditions only."""
        scores = only_methods(self.scores, [c.method for c in chosen if c.method is not None])
        # The paper's frontier is that of swaps alone; the unswapped file is drawn beside it.
        return RUMap(scores, (self.risk,), self.utility, compares_unmasked=False)

    @property
    def rates(self) -> list[float]:
        """The rates of the conditions, in their order."""
        return list(dict.fromkeys(condition.rate for condition in self.conditions))

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
        for collection in dict.fromkeys(condition.collection for condition in self.conditions):
            whole = _by_method(self.map_of(self.of(collection)))
            for rate in self.rates:
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
        # The paper finds that swapping Educ at 0.05 is dominated by several swaps at 0.01.
        free = self._feasible_swaps
        educ = free.filter((pl.col("vars") == "E") & (pl.col("rate") == 0.05)).select(AXES).rows()
        better = [free.filter(pl.col("rate") == 0.01, *(pl.col(AXES[i]) < at[i] for i in (0, 1))) for at in educ]
        number = {"number of 0.01 swaps that dominate Educ 0.05": sum(map(len, better))}
        return {**self.general_claims, **number, "infeasible": self.infeasible}

    @cached_property
    def general_claims(self) -> dict[str, bool]:
        """The claims of the paper that can be checked on any file."""
        free = self._feasible_swaps
        by_rate = free.group_by("rate").agg(pl.col(AXES).mean(), pl.col(AXES).std().name.suffix("_sd")).sort("rate")
        risks = free.group_by("rate", "size").agg(pl.mean("risk_mean")).sort("rate", "size")["risk_mean"].to_list()
        return {
            "distortion rises and risk falls with the rate": _rises(by_rate["hellinger_mean"])
            and _rises(-by_rate["risk_mean"]),
            "single swaps are riskier than double ones": all(map(operator.gt, risks[::2], risks[1::2])),
            "variability over variables rises with the rate": all(_rises(by_rate[f"{axis}_sd"]) for axis in AXES),
        }

    @cached_property
    def infeasible(self) -> list[str]:
        """The conditions that cannot be made."""
        return [f"{row['vars']} {row['rate']:g} {row['collection']}" for row in self.rows if not row["feasible"]]

    @property
    def _feasible_swaps(self) -> pl.DataFrame:
        """The unconstrained swaps that can be made, with the number of their variables as `size`."""
        sizes = {condition.letters: len(condition.variables) for condition in self.conditions}
        rows = [row for row in self.rows if row["feasible"] and row["collection"] == UNCONSTRAINED]
        return pl.DataFrame([{**row, "size": sizes[row["vars"]]} for row in rows])

    def figures(self) -> dict[str, Chart]:
        """Return figures 2, 3 and 4, of means over seeds, with the letters of the paper."""
        names = {c.method.text: c.letters for c in self.conditions if c.method is not None}
        constrained = [c for c in self.conditions if c.collection != UNCONSTRAINED]
        panels = {c.method.text: c.collection for c in constrained if c.method is not None}
        figures = {
            f"figure2_rate_{rate:g}": draw_map(
                self.map_of(self.of(UNCONSTRAINED, rate)), by="mean", names=names, label="all"
            )
            for rate in self.rates
        }
        figures["figure3"] = draw_map(self.free, by="mean", color="rate", names=names, width=700, height=520)
        if constrained:
            both = self.map_of(constrained)
            figures["figure4"] = draw_map(
                both, by="mean", facet=panels, names=names, label="all", width=420, height=340
            )
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
