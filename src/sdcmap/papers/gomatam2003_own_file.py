"""Gomatam, Karr, Sanil (2003) on a user's file: swaps of one or two categorical variables, figures 1 to 4."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from sdcmap import Linear, Plan, RUMap, Scores, Swap, grid, subsets
from sdcmap.charts import draw_map
from sdcmap.core.grid import Grid
from sdcmap.core.rule import Choice
from sdcmap.errors import PlanError
from sdcmap.papers.analysis import Section
from sdcmap.papers.gomatam2003 import RATES, UNCONSTRAINED, Collections, Condition, list_conditions
from sdcmap.papers.own_file import OnRole, OwnFile
from sdcmap.papers.reference import Document
from sdcmap.risk import SmallCells
from sdcmap.utility import Hellinger

CITATION = "Gomatam, Karr, Sanil (2003)"
ON_ROLE: OnRole = "keys"
NEEDS = "at least two variables with categories"
REPLICATES = 20  # draws of each swap
MAX_CATEGORIES = 12  # of a variable in a table that is proposed: more make nearly every cell small
FULL_RISK = 0.9  # risk of the unswapped file from which on a table has too many cells to be studied
MAX_PROPOSED = 8  # variables that are swapped unless stated, as in the paper
MIDDLE_RATE = 0.01  # of constrained swaps, as in the paper
MAX_LISTED = 8  # swaps in a sentence


@dataclass(frozen=True)
class Design:
    """What is studied on this file: the table, the swapped variables, rates, and constraints.

    table : the variables of the table. same, differ : the variable of each constrained collection, or "".
    """

    own: OwnFile
    table: tuple[str, ...]
    on: tuple[str, ...]
    rates: tuple[float, ...]
    same: str
    differ: str
    slope: float | None
    replicates: int
    stated: tuple[str, ...]
    keys_stated: bool

    @property
    def measures(self) -> tuple[SmallCells, Hellinger]:
        return SmallCells(on=self.table), Hellinger(on=self.table)

    @property
    def constrained_rate(self) -> float:
        """The rate of constrained swaps: the paper's, or the middle one of those stated."""
        return MIDDLE_RATE if MIDDLE_RATE in self.rates else sorted(self.rates)[len(self.rates) // 2]

    @cached_property
    def letters(self) -> dict[str, str]:
        return shortest_prefixes(self.on)

    @cached_property
    def conditions(self) -> list[Condition]:
        both: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        if self.same:
            both[f"same {self.same}"] = (self.same,), ()
        if self.differ:
            both[f"{self.differ} differs"] = (), (self.differ,)
        return list_conditions(self.letters, self.rates, self.constrained_rate, both)

    def plan(self, seed: int | None) -> Plan:
        """Return the swaps as grids; a rule only where its slope is stated."""
        rule = None if self.slope is None else Linear(slope=self.slope, by="mean")
        risk, loss = self.measures
        return Plan(
            list(self._grids()), [risk, loss], replicates=self.replicates, rule=rule, data=self.own.source, seed=seed
        )

    def _grids(self) -> list[Grid[Swap]]:
        grids = [grid(Swap, on=subsets(self.on, 1, 2), rate=list(self.rates))]
        for name, fixed in ((self.same, "same"), (self.differ, "differ")):
            if name:
                others = [other for other in self.on if other != name]
                sizes = (1, 2) if len(others) > 1 else (1,)
                grids.append(grid(Swap, on=subsets(others, *sizes), rate=[self.constrained_rate], **{fixed: (name,)}))
        return grids

    def introduction(self) -> list[str]:
        own, n = self.own, len(self.own.data)
        pairs = ", ".join(f"{rate:g} ({round(rate * n):,} pairs)" for rate in self.rates)
        missing = sum(int(own.data.missing(name).any()) for name in self.table)
        notes = " A missing value counts as a category." if missing else ""
        if own.data.weight is not None:
            notes += f" The weight {own.data.weight} is not used: cells and pairs are counted in the file."
        wide = [name for name in own.categories if name not in self.table]
        if wide and not self.keys_stated:
            many = f"more than {MAX_CATEGORIES} categories and"
            verbs = ("has", "was left out; state it") if len(wide) == 1 else ("have", "were left out; state them")
            notes += f" {', '.join(wide)} {verbs[0]} {many} {verbs[1]} with `keys`."
        table = ", ".join(self.table)
        letters = ", ".join(f"{short} {name}" for name, short in self.letters.items())
        constraints = [f"the same {self.same}"] * bool(self.same) + [f"different {self.differ}"] * bool(self.differ)
        limits = f" At the rate {self.constrained_rate:g} also between records with {' or with '.join(constraints)}."
        return [
            f"Table: {table}. Swapped variables, one or two at a time: {self._describe_variables()}.{notes}",
            f"Rates: {pairs}. Each swap is drawn {self.replicates} times.{limits if constraints else ''} In figures and "
            f"tables the variables are {letters}.",
            "Risk is the share of unswapped records in cells of one or two records (SmallCells), distortion the Hellinger "
            "distance between the tables before and after. Both are better when lower, so the frontier is at the "
            "lower left.",
        ]

    def _describe_variables(self) -> str:
        """Return the swapped variables, with where they come from."""
        has_all = not self.own.on and self.keys_stated and self.on == self.table
        return "all of the table" if has_all else self.own.describe_choice(self.on)

    def sections(self, scores: Scores) -> tuple[list[Section], Choice | None]:
        risk, loss = self.measures
        collections = Collections(scores, self.conditions, self.replicates, risk.text, loss.text)
        return Swaps(self, collections).sections()


def design(
    own: OwnFile, *, rates: Sequence[float] = RATES, same: str = "", differ: str = "", slope: float | None = None,
    replicates: int = REPLICATES,
) -> Design:  # fmt: skip
    """Return what is studied on this file.

    rates : pairs as shares of the records. same, differ : the two records of a constrained swap agree, or differ, in this
    variable; by default the two variables with the fewest categories. slope : of the rule risk + slope * distortion.
    """
    has_keys = bool(own.stated_keys)
    table = tuple(name for name in own.categories if name in own.stated_keys) if has_keys else _few_categories(own)
    if len(table) < 2:
        what = "no column has" if not table else "only one column has"
        raise own.refuse(NEEDS, f"{what} categories that an attacker may know", "State them with `keys`.")
    for name in (*own.on, *(name for name in (same, differ) if name)):
        own.require_columns(name)
        if name not in table:
            raise own.refuse(NEEDS, f"column {name!r} is numeric", "Recode it to categories, or leave it out.")
    on = own.on or table[:MAX_PROPOSED]
    if len(on) < 2:
        raise PlanError(f"{own.paper} swaps one or two of several variables, and `on` names one. Name at least two.")
    if same and same == differ:
        raise PlanError("`same` and `differ` name the same variable. Name two variables, or one of them.")
    if not rates or not all(0 < rate <= 0.5 for rate in rates):
        raise PlanError("rates must be above 0 and at most 0.5: half of the records can be the first of a pair.")
    few = sorted(on, key=lambda name: own.data.level_count(name))
    proposed = [name for name in few if name not in (same, differ)] if len(on) > 2 else []
    stated = tuple(word for word, name in (("same", same), ("differ", differ)) if name)
    same = same or (proposed.pop(0) if proposed else "")
    differ = differ or (proposed.pop(0) if proposed else "")
    rates = tuple(dict.fromkeys(rates))
    return Design(own, table, on, rates, same, differ, slope, replicates, stated, has_keys)


def _few_categories(own: OwnFile) -> tuple[str, ...]:
    """Return the proposed variables of the table: those with few categories, and those that are swapped."""
    return tuple(name for name in own.categories if name in own.on or own.data.level_count(name) <= MAX_CATEGORIES)


def shortest_prefixes(names: Sequence[str]) -> dict[str, str]:
    """Return for each name its shortest beginning that no other name has, with a capital letter.

    >>> shortest_prefixes(["sex", "age", "marital", "maid"])
    {'sex': 'S', 'age': 'A', 'marital': 'Mar', 'maid': 'Mai'}
    """

    def prefix(name: str) -> str:
        others = [other.casefold() for other in names if other != name]
        for length in range(1, len(name)):
            if not any(other.startswith(name[:length].casefold()) for other in others):
                return name[:length]
        return name

    return {name: (short := prefix(name))[:1].upper() + short[1:] for name in names}


@dataclass(frozen=True)
class Swaps:
    """The results on the file."""

    design: Design
    collections: Collections

    @cached_property
    def names(self) -> dict[str, str]:
        """The letters of each swap, by the text of its method."""
        return {c.method.text: c.letters for c in self.collections.conditions if c.method is not None}

    @cached_property
    def names_with_rates(self) -> dict[str, str]:
        """The letters and the rate of each swap, by the text of its method."""
        return {
            c.method.text: f"{c.letters} at {c.rate:g}" for c in self.collections.conditions if c.method is not None
        }

    @cached_property
    def rows(self) -> pl.DataFrame:
        return pl.DataFrame(self.collections.rows)

    def sections(self) -> tuple[list[Section], Choice | None]:
        """Return figures 1 to 4 and the tables, and the choice where the slope is stated."""
        figures = self.collections.figures()
        chosen = self.choose()
        parts = [self._linear(chosen)]
        for rate in self.design.rates:
            title = f"Figure 2: swaps at the rate {rate:g}"
            parts.append(
                Section(f"figure2_rate_{rate:g}", title, self._at_rate(rate), figures[f"figure2_rate_{rate:g}"])
            )
        parts.append(Section("figure3", "Figure 3: all rates", self._all_rates(), figures["figure3"]))
        if "figure4" in figures:
            parts.append(
                Section("figure4", "Figure 4: constrained swaps", self._describe_constraints(), figures["figure4"])
            )
        parts.append(Section("swaps", "Table: all swaps", TABLE_TEXT, table=self.table()))
        return parts, chosen if self.design.slope is not None else None

    # ---- numbers ----------------------------------------------------------------------------------------------
    def _name(self, row: Mapping[str, object]) -> str:
        return f"{row['vars']} at {row['rate']:g}"

    def feasible(self, collection: str, rate: float | None = None) -> pl.DataFrame:
        rows = self.rows.filter(pl.col("collection") == collection, "feasible")
        return rows if rate is None else rows.filter(pl.col("rate") == rate)

    def table(self) -> pl.DataFrame:
        """Return a row for each swap."""
        return self.rows.rename(
            {"vars": "swapped", "hellinger_mean": "distortion_mean", "hellinger_sd": "distortion_sd"}
        )

    def choose(self) -> Choice:
        """Return the choice of the linear rule; without a stated slope, for the slope in the middle of its path."""
        ru = self.collections.free
        slope = self.design.slope
        if slope is None:
            path = [row for row in self.collections.linear_optimum if math.isfinite(row["to"])]
            slope = float(f"{path[len(path) // 2]['to']:.2g}") if path else 1.0
        return ru.choose(Linear(slope=slope, by="mean"))

    # ---- figures ----------------------------------------------------------------------------------------------
    def _linear(self, choice: Choice) -> Section:
        path: list[Document] = self.collections.linear_optimum
        steps = [
            f"{self._name(row)} for slopes {_slopes(row)} (risk {row['risk']:.4g}, distortion {row['hellinger']:.3g})"
            for row in path[:MAX_LISTED]
        ]
        more = f"; {len(path) - MAX_LISTED} more" if len(path) > MAX_LISTED else ""
        slope = getattr(choice.rule, "slope", 0.0)
        drawn = (
            f"The figure shows the stated slope {slope:g}."
            if self.design.slope is not None
            else f"The figure shows the slope {slope:g} as an example; state your own with `slope`."
        )
        chosen = f" It chooses {self.names_with_rates.get(choice.method, choice.name)}." if choice.candidate else ""
        text = f"The least risk + slope × distortion: {'; '.join(steps)}{more}. {drawn}{chosen}"
        chart = draw_map(self.collections.free, by="mean", mark=choice, names=self.names_with_rates)
        table = pl.DataFrame(path).rename({"vars": "swapped", "hellinger": "distortion"})
        return Section("figure1", "Figure 1: the linear rule", text, chart, table)

    def _at_rate(self, rate: float) -> str:
        pairs, rows = round(rate * len(self.design.own.data)), self.feasible(UNCONSTRAINED, rate)
        if not len(rows):
            return f"None of the swaps of {pairs:,} pairs can be made: too few pairs differ in the swapped variables."
        ru = self.collections.map_of(self.collections.of(UNCONSTRAINED, rate))
        front = [self.names[method] for method in ru.means.filter("frontier").sort("utility")["method"]]
        risk, loss = rows["risk_mean"].to_numpy(), rows["hellinger_mean"].to_numpy()
        return (
            f"{pairs:,} pairs of records. Of {len(rows)} swaps, the mean risk lies between {risk.min():.4g} and "
            f"{risk.max():.4g} and the distortion between {loss.min():.3g} and {loss.max():.3g}. On the frontier, where "
            f"no other swap at this rate is better in both: {_list_first(front)}. {self._chance(rows)}"
        )

    def _chance(self, rows: pl.DataFrame) -> str:
        """Return how large a difference of two mean risks can be by chance, and whether the ranking can be trusted."""
        if self.design.replicates < 2:
            return "One draw of each swap says nothing about chance: state more draws."
        error = float(rows["risk_sd"].fill_null(0.0).to_numpy().mean()) / math.sqrt(self.design.replicates)
        chance, spread = 1.96 * math.sqrt(2) * error, float(np.ptp(rows["risk_mean"].to_numpy()))
        rank = (
            "so the order of the risks is mostly chance"
            if spread < 2 * chance
            else "and the largest and the smallest risk differ by more than that"
        )
        return f"Two mean risks differ by up to {chance:.2g} by chance, {rank}."

    def _all_rates(self) -> str:
        free, unmasked = self.collections.free, self._unmasked_risk
        front = free.means.filter("frontier").sort("utility")["method"].to_list()
        claims = [f"{claim}: {'yes' if holds else 'no'}" for claim, holds in self.collections.general_claims.items()]
        text = (
            f"The unswapped file has risk {unmasked:.4g} and no distortion. On the frontier of all rates: "
            f"{_list_first([self.names_with_rates[method] for method in front])}. Claims of the paper on this file: "
            f"{'; '.join(claims)}."
        )
        if unmasked > FULL_RISK:
            text += (
                " Nearly every record is in a small cell, so that swaps hardly change the risk: recode variables with many "
                "categories, or state fewer `keys`."
            )
        risk, loss = self.design.measures
        compared = RUMap(free.scores, risk, loss).means
        worse = compared.filter("worse").height
        if worse:
            share = f"{worse} of {compared.height - 1} swaps"
            text += (
                f" {share} have more risk than the unswapped file, so they are worse than not masking; no rule chooses "
                "them."
            )
        if lacking := self.collections.infeasible:
            count = sum(c.method is not None for c in self.collections.conditions) - len(self.rows.filter("feasible"))
            if count > 0:
                text += (
                    f" {count} swaps cannot be made ({_list_first(lacking)})."
                    if count == len(lacking)
                    else (f" {count} swaps cannot be made, because too few pairs are admissible.")
                )
        return text

    @property
    def _unmasked_risk(self) -> float:
        return float(self.collections.free.points.filter("anchor")["risk"][0])

    def _describe_constraints(self) -> str:
        rate, sentences = self.design.constrained_rate, []
        names = dict.fromkeys(c.collection for c in self.collections.conditions)
        for collection in names:
            rows = self.feasible(collection, rate)
            if not len(rows):
                sentences.append(f"{collection}: no swap can be made")
                continue
            sentences.append(
                f"{collection}: {len(rows)} swaps, mean risk {rows['risk_mean'].to_numpy().mean():.4g}, mean distortion "
                f"{rows['hellinger_mean'].to_numpy().mean():.3g}"
            )
        how = (
            "stated"
            if len(self.design.stated) == len(names) - 1
            else "by default the variables with the fewest categories"
        )
        return (
            f"Swaps at the rate {rate:g} between records that agree or differ in a variable ({how}). "
            f"{'; '.join(sentences)}."
        )


def _slopes(row: Document) -> str:
    if math.isinf(row["to"]):
        return f"above {row['from']:.3g}"
    return f"up to {row['to']:.3g}" if row["from"] == 0 else f"{row['from']:.3g} to {row['to']:.3g}"


def _list_first(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return ", ".join(names[:MAX_LISTED]) + more


TABLE_TEXT = (
    "Means and standard deviations over the draws. frontier_frequency is the share of draws in which no other swap of the "
    "collection was better in both; frontier_frequency_at_rate compares only swaps at the same rate."
)
