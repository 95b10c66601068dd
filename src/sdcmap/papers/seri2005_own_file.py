"""Seri (2005) on a user's file: the confidentiality plot of figure 3, the zoom of figure 1, and the strength of noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl

from sdcmap import Microdata, Plan, RUMap, Scores, Threshold
from sdcmap.core.chart import Chart
from sdcmap.core.rule import Choice
from sdcmap.errors import PlanError
from sdcmap.methods import MultiplicativeNoise, Noise
from sdcmap.papers.analysis import Section
from sdcmap.papers.own_file import OnRole, OwnFile, percent
from sdcmap.recordwise.neighborhood import Unsafe
from sdcmap.recordwise.table import RecordTable, compare_records, records
from sdcmap.risk import UnsafeRecords
from sdcmap.study.plan import Candidate
from sdcmap.utility import IL1s

CITATION = "Seri (2005)"
ON_ROLE: OnRole = "numeric"
NEEDS = "numeric variables that an attacker could know, such as turnover and employees"
REPLICATES = 10  # draws of each strength
NOISE_SDS = (0.05, 0.1, 0.2, 0.3, 0.6, 1.0)  # on the log scale, or in standard deviations
UNSAFE_LIMIT = 0.05  # share of unsafe records
MIN_VALUES = 20  # different numbers of a variable
PROPOSED = 2  # variables that are compared unless stated, as in the paper
BIGGEST = 10  # units whose rank an attacker knows


@dataclass(frozen=True)
class Design:
    """What is studied on this file: the compared variables, the rule, and the limit of unsafe records."""

    own: OwnFile
    on: tuple[str, ...]
    within: tuple[str, ...]
    scale: Literal["log", "standardized"]
    left_out: int
    alpha: float
    k: int
    r: float
    unsafe: float
    replicates: int

    @cached_property
    def options(self) -> dict[str, Any]:
        """The fields of the safety rule."""
        return {
            "on": self.on, "within": self.within, "alpha": self.alpha, "k": self.k, "r": self.r, "scale": self.scale,
            "leave_out": self.left_out > 0, "amounts": self.on,
        }  # fmt: skip

    @property
    def risk(self) -> UnsafeRecords:
        return UnsafeRecords(**self.options)

    @property
    def loss(self) -> IL1s:
        return IL1s(on=self.on)

    @cached_property
    def methods(self) -> dict[float, Noise | MultiplicativeNoise]:
        """The masking of each standard deviation of the noise."""
        if self.scale == "standardized":
            return {sd: Noise(on=self.on, variance=_short(sd**2)) for sd in NOISE_SDS}
        # log u ~ N(-t/2, t) with t = log(1 + variance)
        return {sd: MultiplicativeNoise(on=self.on, variance=_short(math.expm1(sd**2))) for sd in NOISE_SDS}

    @property
    def rule(self) -> Threshold:
        return Threshold(risk=self.unsafe, by="mean")

    def plan(self, seed: int | None) -> Plan:
        return Plan(
            list(self.methods.values()), [self.risk, self.loss], replicates=self.replicates, rule=self.rule,
            data=self.own.source, names={method: self.name(sd) for sd, method in self.methods.items()}, seed=seed,
        )  # fmt: skip

    def name(self, sd: float) -> str:
        return f"noise {sd:g}{' on logs' if self.scale == 'log' else ' sd'}"

    def introduction(self) -> list[str]:
        own, n = self.own, len(self.own.data)
        how = (
            "on the log scale, as in the paper; z depends on the units of the variables, so the table of other "
            "distances adds the log-difference, which does not"
            if self.scale == "log"
            else "in standard deviations, because a variable has negative or mostly zero values and so no logarithm"
        )
        missing = int(np.isnan(own.data.matrix(self.on)).any(axis=1).sum())
        notes = []
        if missing:
            verbs = ("lacks", "is") if missing == 1 else ("lack", "are")
            notes.append(f"{missing:,} of {n:,} records {verbs[0]} a value, and {verbs[1]} not judged.")
        if self.left_out:
            left_out = "1 record has" if self.left_out == 1 else f"{self.left_out:,} records have"
            verb = "is" if self.left_out == 1 else "are"
            notes.append(f"{left_out} a value that is not above 0, and {verb} left out.")
        if self.within:
            notes.append(f"Records are compared only with units of the same {', '.join(self.within)}.")
        if own.data.weight is not None:
            notes.append(f"The weight {own.data.weight} is not used: units are counted in the file.")
        return [
            f"Compared variables: {own.describe_choice(self.on)}, {how}. {' '.join(notes)}".rstrip(),
            f"Neighbors of a released record are the units closer than delta, the distance within which "
            f"{percent(self.alpha)} of all wrong pairs lie. A record with {self.k} neighbors is safe, and one that "
            f"was moved by {self.r:g} is safe; in "
            "between a straight line (or a curve) decides.",
            f"Masking: {'log-normal' if self.scale == 'log' else 'normal'} noise of {NOISE_SDS[0]:g} to {NOISE_SDS[-1]:g}, "
            f"{self.replicates} draws each; the masking of the paper is not published. Rule: the least change of values "
            f"among strengths with at most {percent(self.unsafe)} unsafe records.",
        ]

    def sections(self, scores: Scores) -> tuple[list[Section], Choice | None]:
        return Plots(self, scores).sections()


def design(
    own: OwnFile, *, within: Sequence[str] = (), alpha: float = 0.05, k: int = 15, r: float = 0.15,
    unsafe: float = UNSAFE_LIMIT, replicates: int = REPLICATES,
) -> Design:  # fmt: skip
    """Return what is studied on this file.

    within : categories that must agree. alpha, k, r : of the paper's rule. unsafe : the largest tolerable share of unsafe
    records.
    """
    own.require_columns(*within)
    proposed = [name for name in own.amounts if len(np.unique(own.values(name))) >= MIN_VALUES and name not in within]
    if not own.on and not proposed:
        raise own.refuse(NEEDS, f"no column has at least {MIN_VALUES} different numbers", "State them with `on`.")
    on = own.on or tuple(proposed[:PROPOSED])
    for name in on:
        own.require_numeric(name, NEEDS, MIN_VALUES)
    if not 0 < unsafe < 1:
        raise PlanError("unsafe must be a share above 0 and below 1.")
    x = own.data.matrix(on)
    known = x[~np.isnan(x).any(axis=1)]
    if len(known) <= k:
        raise own.refuse(
            NEEDS, f"{len(known):,} records have all of them, and k is {k}", "State other variables, or k."
        )
    not_positive = int((known <= 0).any(axis=1).sum())
    has_logs = not (known < 0).any() and 2 * not_positive < len(known)
    scale: Literal["log", "standardized"] = "log" if has_logs else "standardized"
    return Design(
        own, on, tuple(within), scale, not_positive if has_logs else 0, alpha, k, r, unsafe, replicates
    )  # fmt: skip


def _short(value: float) -> float:
    return float(f"{value:.4g}")


@dataclass(frozen=True)
class Plots:
    """The results on the file."""

    design: Design
    scores: Scores

    def sections(self) -> tuple[list[Section], Choice | None]:
        """Return figures 1 and 3, the densities, the strengths and the tables, and the choice."""
        ru = RUMap(self.scores, self.design.risk, self.design.loss)
        choice = ru.choose(self.design.rule)
        masked = self._make(choice if choice.candidate else Candidate(self.design.methods[NOISE_SDS[-1]]))
        table = self._assess(masked)
        parts = [
            Section("figure3", "Figure 3: the confidentiality plot", self._plot(table, choice), table.draw()),
            Section(
                "densities", "Equation 3: distances of true and wrong pairs", _densities(table), table.draw_densities()
            ),
            Section("strengths", "Unsafe records as the noise grows", *self._strengths(ru, choice)),
            Section("distances", "Table: other distances", *self._distances(masked)),
            Section("biggest", "Table: the biggest units", *_biggest(table)),
        ]
        if len(self.design.on) > 1:
            zoom = Section(
                "figure1", "Figure 1: records among the originals", _zoom(table, self.design), table.draw_zoom()
            )
            parts.insert(0, zoom)
        return parts, choice

    def _assess(self, masked: Microdata) -> RecordTable:
        return records(self.design.own.data, masked, rule=Unsafe(**self.design.options))

    def _make(self, choice: Choice | Candidate) -> Microdata:
        if self.scores.plan is None:
            raise PlanError("these scores belong to no plan.")
        return self.scores.plan.make(self.design.own.data, choice)

    def _plot(self, table: RecordTable, choice: Choice) -> str:
        facts, n = table.summary(), len(table)
        strongest = f"{self.design.name(NOISE_SDS[-1])}, the strongest; no strength is within the limit"
        return (
            f"The file is {f'{choice.name}, the choice of the rule' if choice.candidate else strongest}. Of {n:,} "
            f"judged records, {facts['unsafe_line']:,} are unsafe by the "
            f"line and {facts['unsafe_curve']:,} by the curve; {facts['links_in_reach']:,} have their own original "
            "among their "
            f"neighbors, for {facts['nearest_links']:,} it is the nearest unit, and {facts['empty']:,} have no "
            "neighbor. The "
            f"mean perturbation is {facts['mean_perturbation']:.3g}."
        )

    def _strengths(self, ru: RUMap, choice: Choice) -> tuple[str, Chart, pl.DataFrame]:
        rows = []
        pooled = self.scores.pooled_estimates(self.design.risk.text)
        losses = self.scores.pooled_estimates(self.design.loss.text)
        for sd, method in self.design.methods.items():
            facts = self._assess(self._make(Candidate(method))).summary()
            row: dict[str, float | None] = {
                "noise": sd,
                "variance": method.variance,
                "unsafe share": pooled[method.text].value,
                "IL1s": losses[method.text].value,
            }
            names = (
                "delta",
                "links_in_reach",
                "nearest_links",
                "empty",
                "unsafe_line",
                "unsafe_curve",
                "mean_perturbation",
            )
            rows.append(row | {f"{name}, first draw": facts[name] for name in names})
        table = pl.DataFrame(rows)
        first, last = table.row(0, named=True), table.row(-1, named=True)
        text = (
            f"The share of unsafe records goes from {percent(first['unsafe share'])} with noise {first['noise']:g} to "
            f"{percent(last['unsafe share'])} with noise {last['noise']:g}, while values change by {first['IL1s']:.3g} to "
            f"{last['IL1s']:.3g} (IL1s). The numbers at the points are variances, as in the table. {choice.reason}"
        )
        return text, ru.draw(curve="variance", mark=choice), table

    def _distances(self, masked: Microdata) -> tuple[str, None, pl.DataFrame]:
        """Return the counts with the paper's distance and with one without units."""
        common = {name: value for name, value in self.design.options.items() if name != "scale"}
        attacks: dict[str, dict[str, object]] = {"standard deviations": {"scale": "standardized"}}
        if self.design.scale == "log":
            attacks = {
                "relative distance of logs (paper)": {"scale": "log"},
                "log-difference (no units)": {"scale": "log", "distance": "absolute"}, **attacks,
            }  # fmt: skip
        table = compare_records(self.design.own.data, masked, attacks, **common).frame()
        counts = ", ".join(f"{row['attack']} {row['unsafe']:,}" for row in table.to_dicts())
        text = f"Unsafe records of the same draw by distance: {counts}. r = {self.design.r:g} means something else in each."
        return text, None, table


def _zoom(table: RecordTable, design: Design) -> str:
    index = int(np.flatnonzero(table.rows == table.largest)[0])
    biggest, typical = int(table.neighbors[index]), float(np.median(table.neighbors))
    return (
        f"The unit with the largest {table.size} and one in the densest part of the cloud, among the originals by "
        f"{design.on[0]} and {design.on[1]}. The largest unit has {biggest:,} neighbors, the median record "
        f"{typical:g}; it was "
        f"moved by {table.perturbation[index]:.3g} and is {'safe' if table.safe[index] else 'unsafe'}."
    )


def _densities(table: RecordTable) -> str:
    if table.pairs is None or table.delta is None:
        return "The distances of true pairs (links) and of wrong pairs (nonlinks)."
    share = table.links_in_reach / max(len(table), 1)
    return (
        f"delta is {table.delta:.4g}: {percent(share)} of the true pairs are closer than delta, against "
        f"{percent(table.rule.alpha)} of the wrong ones. The nearer the two shares, the less the distance tells an "
        "attacker."
    )


def _biggest(table: RecordTable) -> tuple[str, None, pl.DataFrame]:
    biggest = table.biggest(BIGGEST).drop("row")
    linked = float(biggest["chance"].sum())
    text = (
        f"An attacker who knows the order of the {len(biggest)} largest units by {table.size} and sorts the "
        "released file links "
        f"{linked:.3g} of them correctly, in expectation."
    )
    return text, None, biggest
