"""Yancey, Winkler, Creecy (2002) on a user's file: tables 1 to 3 of losses, re-identified shares and scores, and more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from sdcmap import Measure, Method, Plan, RUMap, Scores
from sdcmap.core.chart import Chart
from sdcmap.core.rule import Choice
from sdcmap.errors import PlanError
from sdcmap.papers.analysis import Section
from sdcmap.papers.own_file import OnRole, OwnFile, percent
from sdcmap.papers.yancey2002 import ROWS
from sdcmap.papers.yancey2002_tables import method_of
from sdcmap.reports.score_tables import ScoreTables, make_score_tables
from sdcmap.risk import Linkage, WorstLinkage
from sdcmap.risk.linkage.file_pair import LinkTable
from sdcmap.study.plan import Candidate
from sdcmap.utility import S0, S1, S2

CITATION = "Yancey, Winkler, Creecy (2002)"
ON_ROLE: OnRole = "numeric"
NEEDS = "at least two numeric variables"
REPLICATES = 5  # draws of each masking
MIN_VALUES = 5  # different numbers of a variable
TOP_LINKS = (10, 20, 50, 100)  # best links of a link file
MIN_SUBPOPULATION = 30  # records, below which a subpopulation is not measured


@dataclass(frozen=True)
class Design:
    """What is studied on this file: the variables, and the subpopulations of tables 8 and 9."""

    own: OwnFile
    on: tuple[str, ...]
    within: tuple[str, ...]
    replicates: int

    @cached_property
    def methods(self) -> dict[str, Method]:
        """The maskings by the paper's names of their rows."""
        return {row: method_of(row, self.on) for row in ROWS}

    @property
    def weighted(self) -> bool:
        return self.own.data.weight is not None

    @property
    def losses(self) -> list[Measure]:
        return [summary(on=self.on, weighted=self.weighted) for summary in (S0, S1, S2)]

    @property
    def attacks(self) -> dict[str, Measure]:
        """The paper's linkage with the metrics d and l, and the worst of all attacks."""
        paper = {metric: Linkage(metric, on=self.on, open_columns="as any") for metric in ("d", "l")}
        return {**paper, "worst": WorstLinkage(on=self.on)}

    @property
    def subpopulation_losses(self) -> list[Measure]:
        """The losses of tables 8 and 9: with and without the correction for noise."""
        if not self.within:
            return []
        return [S1(on=self.on, by=self.within, weighted=self.weighted, corrected=how) for how in (True, False)]

    def plan(self, seed: int | None) -> Plan:
        attacks = self.attacks
        return Plan(
            list(self.methods.values()), [*attacks.values(), *self.losses, *self.subpopulation_losses],
            replicates=self.replicates, risk=attacks["l"], utility=self.losses[-1], data=self.own.source,
            names={method: row for row, method in self.methods.items()}, seed=seed,
        )  # fmt: skip

    def introduction(self) -> list[str]:
        own = self.own
        missing = int(np.isnan(own.data.matrix(self.on)).any(axis=1).sum())
        notes = []
        if missing:
            notes.append(
                f"{missing:,} record{' lacks' if missing == 1 else 's lack'} a value: it stays missing, and a missing "
                "field weighs 0 in the linkage."
            )
        if self.weighted:
            notes.append(f"Losses are weighted by {own.data.weight}; linkage counts every record once.")
        return [
            f"Variables: {own.describe_choice(self.on)}. {' '.join(notes)}".rstrip(),
            f"Maskings, {self.replicates} draws each, by the paper's names: rnkswpNN, rank swapping in a window of "
            "NN % of the "
            "ranks; addNN, noise with NN % of the covariance; mixaddNN, mixture noise; scalmixaddNN, the same with the "
            "covariance restored.",
            "The attacker holds the original values of these variables and links one-to-one, by the metric d (relative "
            "difference) or l (difference of logarithms). `worst` is the largest share of all attacks of sdcmap, "
            "among them "
            "one who has read the method note.",
        ]

    def sections(self, scores: Scores) -> tuple[list[Section], Choice | None]:
        return Tables(self, scores).sections(), None


def design(own: OwnFile, *, within: Sequence[str] = (), replicates: int = REPLICATES) -> Design:
    """Return what is studied on this file.

    within : variables that divide the file into subpopulations, for tables 8 and 9.
    """
    own.require_columns(*within)
    proposed = tuple(n for n in own.amounts if len(np.unique(own.values(n))) >= MIN_VALUES and n not in within)
    on = own.on or proposed
    if len(on) < 2:
        if own.on:
            raise PlanError(f"{own.paper} needs {NEEDS}, and `on` names one. Name at least two.")
        what = "it has none" if not on else f"it has one, {on[0]!r}"
        raise own.refuse(NEEDS, what, "State them with `on`, if their numbers are amounts.")
    for name in on:
        own.require_numeric(name, NEEDS, MIN_VALUES)
    if both := [name for name in on if name in within]:
        raise PlanError(f"`on` and `within` both name {', '.join(both)}. Name each in one of them.")
    return Design(own, on, tuple(within), replicates)


@dataclass(frozen=True)
class Tables:
    """The results on the file."""

    design: Design
    scores: Scores

    @cached_property
    def tables(self) -> ScoreTables:
        """Tables 1 to 3, without the losses of subpopulations."""
        others = [loss.text for loss in self.design.subpopulation_losses]
        return make_score_tables(
            replace(self.scores, measure=self.scores.measure.filter(~pl.col("name").is_in(others)))
        )

    def sections(self) -> list[Section]:
        """Return tables 1 to 3, a map, the link file, and the subpopulations."""
        parts = [
            Section("table1", "Table 1: information losses", self._losses(), table=self._only(self.tables.losses)),
            Section("table2", "Table 2: re-identified records", self._risks(), table=self._only(self.tables.risks)),
            Section("table3", "Table 3: overall scores", self._scores(), table=self._only(self.tables.overall)),
            Section("map", "Losses against re-identification", *self._map()),
            Section("links", "Tables 4 to 7: what the attacker believes", *self._links()),
        ]
        return [*parts, *self._subpopulations()]

    def pool(self, measure: Measure) -> dict[str, float]:
        """Return the mean of a measure for each row."""
        pooled = self.scores.pooled_estimates(measure.text)
        return {row: pooled[m.text].value for row, m in self.design.methods.items() if m.text in pooled}

    def _only(self, table: pl.DataFrame) -> pl.DataFrame:
        """Return a table without the unmasked file, with the names of the attacks as in the paper."""
        for name, attack in self.design.attacks.items():
            for brief in (self.scores.brief_of(attack.text), type(attack).__name__):
                names = {column: column.replace(brief, name) for column in table.columns if _is_about(column, brief)}
                table = table.rename(names)
        return table.filter(pl.col("method").is_in([*self.design.methods]))

    # ---- paragraphs -------------------------------------------------------------------------------------------
    def _losses(self) -> str:
        s2 = self.pool(self.design.losses[-1])
        if not s2:
            return "The losses have no value on this file."
        best, worst = min(s2, key=s2.__getitem__), max(s2, key=s2.__getitem__)
        return (
            f"By s2 = (IL1s + IL2 + IL4 + IL5)/4, {best} changes the file least ({s2[best]:.3g}) and {worst} most "
            f"({s2[worst]:.3g}). Means over {self.design.replicates} draws; the column se is the standard error of "
            "the mean."
        )

    def _risks(self) -> str:
        linked = {name: self.pool(attack) for name, attack in self.design.attacks.items()}
        worst, parts = linked.pop("worst"), []
        for name, shares in linked.items():
            low, high = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
            parts.append(f"by {name} between {percent(shares[low])} ({low}) and {percent(shares[high])} ({high})")
        more = sum(worst[row] > max(shares[row] for shares in linked.values()) + 0.01 for row in worst)
        return (
            f"The share of records linked correctly lies {' and '.join(parts)}. For {more} of {len(worst)} maskings, the "
            "worst of all attacks links more than both, by at least 1 % of the records; its share goes up to "
            f"{percent(max(worst.values()))}."
        )

    def _scores(self) -> str:
        table = self._only(self.tables.overall)
        columns = [name for name in table.columns if name not in ("method", "draws") and not name.endswith(" se")]
        lowest = {column: table.sort(column, nulls_last=True)["method"][0] for column in columns}
        best = "; ".join(
            f"{column}: {row} ({table.filter(method=row)[column][0]:.3g})" for column, row in lowest.items()
        )
        return (
            "The score is 50 (loss + re-identified share), A with s0, D with s1, S with s2; lower is better. Best: "
            f"{best}."
        )

    def _map(self) -> tuple[str, Chart]:
        risk, loss = self.design.attacks["l"], self.design.losses[-1]
        ru = RUMap(self.scores, risk, loss)
        front = [self.scores.name_of(method) for method in ru.means.filter("frontier").sort("risk")["method"]]
        text = f"No other masking is better both in the share linked by l and in s2 than {', '.join(front)}."
        return text, ru.draw(by="mean", label="all")

    def _links(self) -> tuple[str, None, pl.DataFrame]:
        """Return the link file of the first draw of each masking, by weight, and the records that survive all noise."""
        attack = Linkage("l", on=self.design.on, open_columns="as any")
        links = {row: self._link_file(attack, method) for row, method in self.design.methods.items()}
        rows = []
        for row, table in links.items():
            ranked, precision = table.rank_links()
            zone = table.zone()
            facts = {"method": row, "linked correctly": float(table.correct.mean()), "zone": len(zone)}
            facts["true links in the zone"] = float(table.correct[zone].sum()) / len(table.correct)
            rows.append(facts | {f"true among the best {top}": float(precision[top - 1]) if top <= len(ranked) else None
                                 for top in TOP_LINKS})  # fmt: skip
        every = np.logical_and.reduce([table.correct == 1 for row, table in links.items() if "mixadd" in row])
        text = (
            "The attacker sorts the links by weight and believes those at the top (the zone: down to where a fifth "
            "of the links "
            f"is true). {int(every.sum()):,} records are linked correctly under every mixture "
            f"noise{self._survivors(every)}."
        )
        return text, None, pl.DataFrame(rows)

    def _link_file(self, attack: Linkage, method: Method) -> LinkTable:
        if self.scores.plan is None:
            raise PlanError("these scores belong to no plan.")
        data = self.design.own.data
        return attack.links(data, self.scores.plan.make(data, Candidate(method)))

    def _survivors(self, every: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> str:
        """Return how far from the mean the records are that survive all noise."""
        if not every.any():
            return ""
        x = self.design.own.data.matrix(self.design.on)
        distance = np.nanmax(np.abs(x - np.nanmean(x, axis=0)) / np.nanstd(x, axis=0, ddof=1), axis=1)
        return (
            f"; their most extreme value is {np.nanmedian(distance[every]):.1f} standard deviations from the mean "
            "(median; all "
            f"records: {np.nanmedian(distance):.1f})"
        )

    def _subpopulations(self) -> list[Section]:
        """Return tables 8 and 9 where subpopulations are stated."""
        if not self.design.within:
            return []
        corrected, plain = (self.pool(loss) for loss in self.design.subpopulation_losses)
        rows = [
            {"method": row, "s1 as released": plain.get(row), "s1 corrected for noise": corrected.get(row)}
            for row in self.design.methods
        ]
        name = ", ".join(self.design.within)
        gains = [row for row in corrected if row in plain and corrected[row] < plain[row]]
        text = (
            f"Mean of s1 over the subpopulations by {name} with at least {MIN_SUBPOPULATION} records. Correcting for the "
            f"published noise lowers it for {len(gains)} of {len(corrected)} maskings."
            if corrected or plain
            else f"No subpopulation by {name} has at least {MIN_SUBPOPULATION} records, so these tables are empty."
        )
        return [Section("table8", "Tables 8 and 9: subpopulations", text, table=pl.DataFrame(rows))]


def _is_about(column: str, attack: str) -> bool:
    """Return whether a column of a table shows this attack: its risk, a score with it, or a standard error of these."""
    return column.removesuffix(" se").rpartition("-score, ")[2] == attack
