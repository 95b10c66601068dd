"""Trottini (2001) on a user's file: global risk, global utility, the criterion, and its choice as the limits vary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from sdcmap import GlobalCriterion, Measure, Method, Plan, RankSwap, RUMap, Scores, Swap
from sdcmap.charts.planes import REGIONS, draw_criterion
from sdcmap.core import format_percent
from sdcmap.core.rule import Choice
from sdcmap.errors import PlanError
from sdcmap.methods import PRAM, Noise
from sdcmap.papers.analysis import Section
from sdcmap.papers.own_file import OnRole, OwnFile, percent
from sdcmap.risk import DiscreditHarm, Informed, IntruderKnowledge
from sdcmap.utility import SocietyKnowledge, SocietyUtility

CITATION = "Trottini (2001)"
ON_ROLE: OnRole = "any"
NEEDS = "a variable that an intruder wants to know, and others by which the intruder finds a record"
REPLICATES = 20  # draws of each masking: IEK and SEK are expectations
LIMIT = -0.5  # t_A and t_INT: the intruder may learn half of what they did not know
PRIOR_SHARE = 0.1  # society knew before as much as this share of the records tells
NOISE_VARIANCES = (0.1, 0.3, 1.0, 3.0)
RANK_WINDOWS = (0.05, 0.15, 0.3, 0.6)
SWAP_RATES = (0.05, 0.15, 0.3)
STAYING_SHARES = (0.9, 0.7, 0.5)
OTHER_LIMITS = (-0.9, -0.7, -0.5, -0.3, -0.1)


@dataclass(frozen=True)
class Design:
    """What is studied on this file: the variable that the intruder wants, what they know, and the limits.

    known : the columns that the intruder knows; all others that somebody could know where none are stated.
    """

    own: OwnFile
    on: str
    known: tuple[str, ...]
    agency_limit: float
    intruder_limit: float
    replicates: int
    knows_stated: bool

    @property
    def is_number(self) -> bool:
        return self.own.data.schema[self.on].kind == "numeric"

    @cached_property
    def masked_names(self) -> tuple[str, ...]:
        """The variables that are masked: all of the kind of the target."""
        own = self.own
        others = own.amounts if self.is_number else own.categories
        return tuple(dict.fromkeys([self.on, *others]))

    @cached_property
    def methods(self) -> dict[str, Method]:
        """The maskings by name."""
        if not self.is_number:
            swaps: dict[str, Method] = {
                f"swap {format_percent(rate)}": Swap(on=(self.on,), rate=rate) for rate in SWAP_RATES
            }
            stays = {
                f"PRAM, {percent(stay)} stay": PRAM(on=(self.on,), stay=stay, alpha=1.0) for stay in STAYING_SHARES
            }
            return {**swaps, **stays}
        on = self.masked_names
        kinds = (False, True) if len(on) > 1 else (False,)
        noise: dict[str, Method] = {
            f"{'correlated ' if correlated else ''}noise {format_percent(variance)}": Noise(
                on=on, variance=variance, correlated=correlated
            )
            for correlated in kinds
            for variance in NOISE_VARIANCES
        }
        return {**noise, **{f"rank swap {format_percent(p)}": RankSwap(on=on, p=p) for p in RANK_WINDOWS}}

    @cached_property
    def measures(self) -> dict[str, Measure]:
        """The four measures: IEK, RDH, SEK and DUS."""
        attack = Informed(on=self.known) if self.knows_stated else Informed()
        weighted = self.own.data.weight is not None
        society: dict[str, Any] = {
            "on": self.on, "user": "informed", "weighted": weighted,
            "prior_records": float(max(1, round(PRIOR_SHARE * len(self.own.data)))),
        }  # fmt: skip
        if not self.is_number:
            society |= {"of": "proportion", "category": self.category}
        return {
            "iek": IntruderKnowledge(on=self.on, attack=attack), "rdh": DiscreditHarm(on=self.on, attack=attack),
            "sek": SocietyKnowledge(**society), "dus": SocietyUtility(**society),
        }  # fmt: skip

    @cached_property
    def category(self) -> str:
        """The most frequent category of the target, whose proportion society wants."""
        data, levels = self.own.data, self.own.data.column(self.on).levels
        if levels is None:
            return ""
        counts = np.bincount(data.codes(self.on)[~data.missing(self.on)], minlength=len(levels))
        return str(levels.cast(pl.String)[int(counts.argmax())])

    @property
    def rule(self) -> GlobalCriterion:
        names: dict[str, Any] = {short: (measure.text,) for short, measure in self.measures.items()}
        return GlobalCriterion(**names, agency_limit=self.agency_limit, intruder_limit=self.intruder_limit)

    def plan(self, seed: int | None) -> Plan:
        return Plan(
            list(self.methods.values()), list(self.measures.values()), replicates=self.replicates,
            risk=self.measures["iek"], utility=self.measures["sek"], rule=self.rule, data=self.own.source,
            names={method: name for name, method in self.methods.items()}, seed=seed,
        )  # fmt: skip

    def introduction(self) -> list[str]:
        own = self.own
        known = ", ".join(self.known)
        wanted = (
            f"the mean of {self.on}" if self.is_number else f"the proportion of the most frequent category of {self.on}"
        )
        weighted = f", weighted by {own.data.weight}" if own.data.weight is not None else ""
        masked = ", ".join(self.masked_names) if self.is_number else self.on
        return [
            f"The intruder wants to know {own.describe_choice([self.on])}. They know {known} "
            f"({'stated' if self.knows_stated else 'all other columns that somebody could know'}) and have read the method "
            "note. A wrong guess costs "
            f"{'its squared error' if self.is_number else 'the same whatever it is'}; before the release they know the "
            "distribution in the file.",
            f"Society wants {wanted}{weighted}, corrects for noise where the note allows it, and knew before as much as "
            f"{percent(PRIOR_SHARE)} of the records tell. All four numbers are shares of the uncertainty before "
            "the release: 0 is perfect knowledge, about -1 no more than before.",
            f"Masked: {masked}. {len(self.methods)} maskings, {self.replicates} draws each. Limits: t_A = "
            f"{self.agency_limit:g} for IEK and t_INT = {self.intruder_limit:g} for RDH.",
        ]

    def sections(self, scores: Scores) -> tuple[list[Section], Choice | None]:
        rule, iek, sek = self.rule, self.measures["iek"], self.measures["sek"]
        ru = RUMap(scores, iek, sek)
        choice = ru.choose(rule)
        table = rule.table(ru)
        parts = [
            Section(
                "figure1", "Figure 1: global risk", _risk(rule, ru, table), draw_criterion(ru, choice, utility=False)
            ),
            Section(
                "figure2",
                "Figure 2: global risk and global utility",
                _utility(choice, table),
                draw_criterion(ru, choice),
            ),
            Section("limits", "Other limits (paragraph 29)", *_vary_limits(rule, ru, scores)),
            Section("candidates", "Table: all candidates", TABLE_TEXT, table=rule.describe(ru, choice)),
        ]
        return parts, choice


def design(
    own: OwnFile, *, agency_limit: float = LIMIT, intruder_limit: float = LIMIT, replicates: int = REPLICATES
) -> Design:
    """Return what is studied on this file.

    agency_limit, intruder_limit : t_A for IEK and t_INT for RDH, below 0, as shares of the uncertainty before the release.
    """
    if len(own.on) > 1:
        raise PlanError(f"{own.paper} studies one variable, and `on` names {len(own.on)}. Name one of them.")
    wanted = own.on or own.data.sensitive or own.amounts or own.categories
    if not wanted:
        raise own.refuse(NEEDS, "it has no such column", "State them with `on` and `keys`.")
    on = wanted[0]
    stated = {v.name for v in own.overview.variables if v.stated and v.role == "key"} - {on}
    known = tuple(name for name in own.data.knowable if name != on and (not stated or name in stated))
    if not known:
        raise own.refuse(NEEDS, f"beside {on!r} it has no column that an intruder could know", "State one with `keys`.")
    if own.data.schema[on].kind == "numeric":
        own.require_numeric(on, NEEDS)
    elif own.data.level_count(on) < 2:
        raise own.refuse(NEEDS, f"column {on!r} has one category", "State another variable with `on`.")
    for name, limit in (("agency_limit", agency_limit), ("intruder_limit", intruder_limit)):
        if not limit < 0:
            raise PlanError(f"{name} must be below 0: 0 would allow the intruder to know the value. Got {limit:g}.")
    return Design(own, on, known, agency_limit, intruder_limit, replicates, bool(stated))


def _risk(rule: GlobalCriterion, ru: RUMap, table: pl.DataFrame) -> str:
    """Return how many maskings are in each region, the unmasked file, and the prior."""
    masked = table.filter(~pl.col("anchor"))
    counts = dict(masked.group_by("region").len().iter_rows())
    regions = "; ".join(f"{letter} ({words}) {counts.get(letter, 0)}" for letter, (_, words, _) in REGIONS.items())
    text = f"Of {len(masked)} maskings, by region: {regions}."
    for row in table.filter("anchor").to_dicts():
        text += (
            f" The unmasked file has IEK {_clean(row['iek'])} and RDH {_clean(row['rdh'])} (region {row['region']})."
        )
    prior = rule.prior(ru)
    if prior is not None:
        text += f" Before the release they are {prior['iek']:.3g} and {prior['rdh']:.3g}."
        if prior["iek"] > rule.agency_limit or prior["rdh"] > rule.intruder_limit:
            text += " The prior is already above a limit: even releasing nothing breaks it."
    return text


def _utility(choice: Choice, table: pl.DataFrame) -> str:
    best = table.filter(~pl.col("anchor")).sort("distance").row(0, named=True) if len(table) > 1 else None
    text = choice.reason
    if best is not None and choice.candidate and best["method"] != choice.method:
        text += (
            f" The masking with the best utility of all (distance {best['distance']:.3g}) is in region "
            f"{best['region']}, so "
            "it is not safe."
        )
    return text


def _vary_limits(rule: GlobalCriterion, ru: RUMap, scores: Scores) -> tuple[str, None, pl.DataFrame]:
    """Return the choice for a grid of limits: a sentence and a table."""
    rows: list[dict[str, Any]] = []
    for agency in OTHER_LIMITS:
        row: dict[str, Any] = {"t_A": agency}
        for intruder in OTHER_LIMITS:
            choice = ru.choose(replace(rule, agency_limit=agency, intruder_limit=intruder))
            row[f"t_INT = {intruder:g}"] = _chosen_name(choice, scores)
        rows.append(row)
    names = {name for row in rows for column, name in row.items() if column != "t_A"}
    winners = sorted(names - {"nothing"})
    empty = sum(name == "nothing" for row in rows for name in row.values())
    cells = len(OTHER_LIMITS) ** 2
    text = f"The choice for {cells} pairs of limits: {_count_words(winners)} chosen at some pair"
    text += f" ({', '.join(winners)})" if winners else ""
    text += f"; at {empty} of {cells} pairs nothing can be released."
    return text, None, pl.DataFrame(rows)


def _chosen_name(choice: Choice, scores: Scores) -> str:
    return "nothing" if choice.candidate is None else scores.name_of(choice.method)


def _count_words(names: Sequence[str]) -> str:
    return "no masking is" if not names else "one masking is" if len(names) == 1 else f"{len(names)} maskings are"


TABLE_TEXT = (
    "IEK and RDH are the risk, SEK and DUS the utility; distance is that of (SEK, DUS) from (0, 0). A gain is what "
    "is known "
    "more than before the release, as a share of what was not known then."
)


def _clean(value: float) -> str:
    """Return a number with three digits; what is only rounding error is 0."""
    return f"{0.0 if abs(value) < 1e-12 else value:.3g}"
