"""Honest ends: what a search found is drawn afresh, because the best of many scores is better than it will be again.

Five fresh draws say how often each member of the frontier is under the limit: by them it is chosen, and who is in doubt
gets five more. Five others, with targets of their own, say what to expect of it: these are reported. A method without
randomness has one of each, since only its measures are drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import polars as pl

from sdcmap.core.measure import Measure
from sdcmap.core.method import Method
from sdcmap.core.rule import named_limits
from sdcmap.frontier.making import Workshop
from sdcmap.frontier.plane import Plane, Table, map_of
from sdcmap.kernels.decision.hypervolume import hypervolume, picked
from sdcmap.study.plan import Candidate, Plan
from sdcmap.study.scores import Scores

DRAWS = 5  # to choose by, to report, and once more where a member is in doubt
MOST = 12  # members of the frontier that are drawn again: those that make up most of the area
Purpose = Literal["choose", "report", "race"]
OFFSET: Mapping[Purpose, int] = {"choose": 0, "report": DRAWS, "race": 2 * DRAWS}
FRESHER: Mapping[Purpose, int] = {"choose": 1, "report": 2, "race": 1}  # which fresh sample of targets


@dataclass(frozen=True)
class Member:
    """One method of the frontier. risk, utility : of the draw by which it was found. fresh_risk, fresh_utility : the mean
    of the draws by which it is reported, None where none could be made; draws : their number. under : the share of the
    draws to choose by that are under the limit, None without one; tried : their number. losses : every utility measure, in
    the mean of the reported draws."""

    name: str
    method: Method
    candidate: str
    risk: float
    utility: float
    under: float | None
    tried: int
    chosen_by: tuple[float, float] | None  # mean risk and utility of the draws to choose by
    fresh_risk: float | None
    fresh_utility: float | None
    draws: int
    losses: Mapping[str, float] = field(default_factory=dict)

    @property
    def facts(self) -> dict[str, object]:
        """As the report of a search has it."""
        return {
            "name": self.name, "method": self.method.text, "risk": self.risk, "utility": self.utility,
            "fresh_risk": self.fresh_risk, "fresh_utility": self.fresh_utility, "draws": self.draws,
        }  # fmt: skip


def fresh_plan(plan: Plan, purpose: Purpose) -> Plan:
    """The plan with each measure on another sample, its axes and limits with it; to choose, only what is chosen by."""
    limited = named_limits(plan.limits)
    asked = [m for m in plan.measures if purpose == "report" or m.text in (*plan.risk, plan.utility, *limited)]
    fresh = {measure.text: _fresher(measure, FRESHER[purpose]) for measure in asked}
    limits = {fresh[name].text: limit for name, limit in limited.items()} if limited else plan.limits
    risk = tuple(fresh[name].text for name in plan.risk)
    return replace(plan, measures=tuple(fresh.values()), risk=risk, utility=fresh[plan.utility].text, limits=limits,
                   rule=None, profile=None, search=None, found=())  # fmt: skip


def _fresher(measure: Measure, times: int) -> Measure:
    for _ in range(times):
        measure = measure.fresh()
    return measure


def redraws(plan: Plan, method: Method, purpose: Purpose) -> list[Candidate]:
    """The draws of a method for one purpose: numbers that no sweep of the plan and no other purpose has."""
    begin = max(plan.draws_of(method), 1) + OFFSET[purpose]
    count = DRAWS if method.random else 0 if purpose == "race" else 1
    return [Candidate(method, begin + draw) for draw in range(count)]


@dataclass(frozen=True)
class Ends:
    """The ends of a search: its shop, its plane, and the candidates in it. sure : share of draws under the limit that a
    choice needs."""

    shop: Workshop
    plane: Plane
    table: Table
    scores: Scores

    @property
    def members(self) -> tuple[Member, ...]:
        """The members of the frontier, drawn afresh, least risk first."""
        methods = self._methods()
        plan = self.shop.plan
        self._draw(methods, "choose")
        doubtful = [m for m in methods if self._in_doubt(self._under(m, ("choose",)))]
        self._draw(doubtful, "race")
        self._draw(methods, "report")
        return tuple(self._member(plan, method, row, method in doubtful) for method, row in methods.items())

    def _methods(self) -> dict[Method, int]:
        """Method -> the place of its candidate in the table, of those that make up most of the area."""
        front = self.table.front
        best = picked(self.table.x[front], self.table.y[front], MOST, (np.empty(0), np.empty(0)))
        methods = dict(self.scores.candidate.select("id", "method").iter_rows())
        rows: dict[Method, int] = {}
        for place in sorted(best):
            row = int(front[place])
            rows.setdefault(self.scores.methods[methods[self.table.ids[row]]], row)
        return rows

    def _draw(self, methods: Sequence[Method] | Mapping[Method, int], purpose: Purpose) -> None:
        plan = self.shop.plan
        wanted = [c for method in methods for c in redraws(plan, method, purpose)]
        self.shop.draw_again(wanted, fresh_plan(plan, purpose))

    def _drawn(self, method: Method, purpose: Purpose) -> Scores:
        ids = [candidate.id for candidate in redraws(self.shop.plan, method, purpose)]
        return self.shop.study.scores_of(fresh_plan(self.shop.plan, purpose), ids)

    def _under(self, method: Method, purposes: Sequence[Purpose]) -> tuple[int, int]:
        """How many draws are under the limit, of how many."""
        hits, count = 0, 0
        for purpose in purposes:
            hits += self._hits(self._drawn(method, purpose), fresh_plan(self.shop.plan, purpose))
            count += len(redraws(self.shop.plan, method, purpose))
        return hits, count

    def _hits(self, scores: Scores, plan: Plan) -> int:
        """How many of these draws a rule would take: limits by measure hold with the standard errors of what is sampled."""
        table, ru = self.plane.table(scores, plan), map_of(scores, plan)
        limit = np.inf if self.plane.limit is None else self.plane.limit
        within = ru.limit_shares(ru.points.filter(~pl.col("anchor"))) <= 1
        return int((table.sound & (table.risk <= limit) & within).sum())

    def _in_doubt(self, under: tuple[int, int]) -> bool:
        return self.plane.limit is not None and 0 < under[0] < under[1]

    def _member(self, plan: Plan, method: Method, row: int, raced: bool) -> Member:
        purposes: tuple[Purpose, ...] = ("choose", "race") if raced else ("choose",)
        hits, tried = self._under(method, purposes)
        signs = self.plane.signs
        chosen_by = _mean(self._drawn(method, "choose"), fresh_plan(plan, "choose"))
        reported, judged = self._drawn(method, "report"), fresh_plan(plan, "report")
        risk, utility = _mean(reported, judged) or (None, None)
        return Member(
            self.scores.name_of(method.text), method, self.table.ids[row], signs[0] * float(self.table.risk[row]),
            signs[1] * float(self.table.loss[row]), None if self.plane.limit is None else hits / max(tried, 1), tried,
            chosen_by, risk, utility, 0 if risk is None else len(redraws(plan, method, "report")),
            _losses(reported, judged, plan),
        )  # fmt: skip


def _mean(scores: Scores, plan: Plan) -> tuple[float, float] | None:
    """The pooled risk and utility of the draws of one method; None where none has both."""
    means = map_of(scores, plan).means
    return (float(means["risk"][0]), float(means["utility"][0])) if len(means) else None


def _losses(scores: Scores, fresh: Plan, plan: Plan) -> dict[str, float]:
    """Every utility measure of a plan, pooled over the draws, under its own name."""
    pairs = [
        (new.text, own.text) for new, own in zip(fresh.measures, plan.measures, strict=True) if own.axis == "utility"
    ]
    pooled = {own: scores.pooled(new) for new, own in pairs}
    return {name: float(table["value"][0]) for name, table in pooled.items() if len(table)}


def fresh_area(members: Sequence[Member], plane: Plane) -> tuple[float, float]:
    """The share of the area that the members have, by the draws they were found by and by those they are reported by."""
    both = [m for m in members if m.fresh_risk is not None and m.fresh_utility is not None]
    ends = [
        ([m.risk for m in both], [m.utility for m in both]),
        ([m.fresh_risk for m in both], [m.fresh_utility for m in both]),
    ]
    before, after = (
        hypervolume(
            plane.across(plane.signs[0] * np.array(risk, dtype=float)),
            plane.up(plane.signs[1] * np.array(u, dtype=float)),
        )
        for risk, u in ends
    )
    return before, after


@dataclass(frozen=True)
class Chosen:
    """What a search would release: the member, None for nothing; and why, in words."""

    member: Member | None
    reason: str


def chosen(members: Sequence[Member], plane: Plane, sure: float, tried: int) -> Chosen | None:
    """The member with the least loss, in the mean of the draws to choose by, of those that are under the limit in a share
    `sure` of these draws; None where there is no limit to choose by."""
    if plane.limit is None:
        return None
    limit = plane.signs[0] * plane.limit
    scored = [member for member in members if member.chosen_by is not None and member.under is not None]
    fit = [member for member in scored if (member.under or 0.0) >= sure]
    searched = f"{tried:,} methods were searched"
    if fit:
        best = min(fit, key=lambda m: plane.signs[1] * _by(m)[1])
        draws = f"{round((best.under or 0.0) * best.tried)} of {best.tried} fresh draws"
        return Chosen(
            best,
            f"Release {best.name}: it has the least loss of {len(fit)} members of the frontier that are under the limit "
            f"of {limit:g} in {sure:.0%} of fresh draws or more (it is in {draws}); {searched}.",
        )
    if not scored:
        return Chosen(None, f"Release nothing: nothing could be made and scored; {searched}.")
    near = min(scored, key=lambda m: (-(m.under or 0.0), plane.signs[0] * _by(m)[0]))
    return Chosen(
        None,
        f"Release nothing: of {tried:,} methods that were searched none is under the limit of {limit:g} in {sure:.0%} of "
        f"fresh draws. The nearest is {near.name} with a risk of {_by(near)[0]:.4g}.",
    )


def _by(member: Member) -> tuple[float, float]:
    return member.chosen_by or (float("nan"), float("nan"))


def shares_along(members: Sequence[Member]) -> pl.DataFrame:
    """Which methods stand where along the front: place, risk, class, and the share of its steps that are of the class."""
    rows = [
        (place, member.risk, name, names.count(name) / len(names))
        for place, member in enumerate(members)
        for names in [[type(step).__name__ for step in member.method.steps]]
        for name in dict.fromkeys(names)
    ]
    schema = {"place": pl.Int64, "risk": pl.Float64, "class": pl.String, "share": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")
