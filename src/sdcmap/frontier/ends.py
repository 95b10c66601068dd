"""Honest ends: what a search found is drawn afresh, because the best of many scores is better than it will be again.

What was found on the frontier, what lies next behind it and the plan's own frontier get five fresh draws: by their means
the frontier is chosen, and by the share of draws under the limit the release. Who is in doubt gets five more. Five others,
with targets and queries of their own, say what to expect of those that are chosen: these are reported, and since they
chose nobody, further draws differ from them by chance alone. A method without randomness has one of each, since only its
measures are drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
import polars as pl

from sdcmap.core import Array, Measure, Method
from sdcmap.frontier.evaluation import Workshop
from sdcmap.frontier.plane import Plane, Table
from sdcmap.kernels.decision.pareto import hypervolume, picked, undominated
from sdcmap.map import RUMap
from sdcmap.study.plan import Candidate, Plan
from sdcmap.study.scores import Scores

DRAWS = 5  # to choose by, to report, and once more where a member is in doubt
MOST = 12  # members of a frontier that are drawn again: those that make up most of the area
NEXT = 4  # of those next behind it
Purpose = Literal["choose", "report", "race"]
OFFSET: Mapping[Purpose, int] = {"choose": 0, "report": DRAWS, "race": 2 * DRAWS}
FRESHER: Mapping[Purpose, int] = {"choose": 1, "report": 2, "race": 1}  # which fresh sample of targets and queries


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
    asked = [m for m in plan.measures if purpose == "report" or m.text in (*plan.risk, plan.utility, *plan.limits)]
    fresh = {measure.text: _fresher(measure, FRESHER[purpose]) for measure in asked}
    limits = {fresh[name].text: limit for name, limit in plan.limits.items()}
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
class Draws:
    """Fresh draws of some methods, by method text. asked : how many of each were to be made."""

    scores: Scores
    plan: Plan  # with the fresh measures
    plane: Plane
    asked: Counter[str]

    @cached_property
    def means(self) -> dict[str, tuple[float, float]]:
        """Pooled risk and utility."""
        means = RUMap.of_plan(self.scores, self.plan).means.select("method", "risk", "utility")
        return {method: (risk, utility) for method, risk, utility in means.iter_rows()}

    @cached_property
    def under(self) -> Counter[str]:
        """How many draws a rule would take: limits by measure hold with the standard errors of what is sampled."""
        limit = np.inf if self.plane.limit is None else self.plane.limit
        passing = self._table.sound & (self._table.risk <= limit) & self._map.eligible(self._points)
        return Counter(self._points["method"].filter(pl.Series(passing)).to_list())

    @cached_property
    def front(self) -> tuple[str, ...]:
        """Methods that no other has less risk and less loss than, in the mean, least risk first; within every constraint
        in half of their draws or more."""
        turned = {text: (self.plane.signs[0] * risk, self.plane.signs[1] * u) for text, (risk, u) in self.means.items()}
        return _front({text: at for text, at in turned.items() if 2 * self._sound[text] >= self.asked[text]})

    @property
    def unsure(self) -> frozenset[str]:
        """Methods that are on the frontier or off it, depending on a single draw; and those under the limit in some draws
        and not in others."""
        fronts = [frozenset(_front(self._without(draw))) for draw in range(DRAWS)]
        near = {text for text, hits in self.under.items() if self.plane.limit is not None and hits < self.asked[text]}
        return (frozenset.union(*fronts) - frozenset.intersection(*fronts)) | near

    def _without(self, draw: int) -> dict[str, tuple[float, float]]:
        """The means of all but one draw of each method that has several."""
        singles: dict[str, list[tuple[float, float]]] = {}
        for text, risk, loss in zip(self._points["method"], self._table.risk, self._table.loss, strict=True):
            singles.setdefault(text, []).append((risk, loss))
        left = {text: rows[:draw] + rows[draw + 1 :] or rows for text, rows in singles.items()}
        means = {text: np.mean(rows, axis=0) for text, rows in left.items()}
        return {text: (float(risk), float(loss)) for text, (risk, loss) in means.items()}

    @cached_property
    def _map(self) -> RUMap:
        return RUMap.of_plan(self.scores, self.plan)

    @cached_property
    def _points(self) -> pl.DataFrame:
        return self._map.points.filter(~pl.col("anchor"))

    @cached_property
    def _table(self) -> Table:
        return self.plane.table(self.scores, self.plan)

    @cached_property
    def _sound(self) -> Counter[str]:
        return Counter(self._points["method"].filter(pl.Series(self._table.sound)).to_list())

    def losses(self, plan: Plan) -> dict[str, dict[str, float]]:
        """Every utility measure, pooled, under its name in `plan`."""
        pairs = [
            (new, own) for new, own in zip(self.plan.measures, plan.measures, strict=True) if own.axis == "utility"
        ]
        pooled = {own.text: self.scores.pooled(new.text) for new, own in pairs}
        told: dict[str, dict[str, float]] = {}
        for name, table in pooled.items():
            for method, value in table.select("method", "value").iter_rows():
                told.setdefault(method, {})[name] = value
        return told


def _front(places: Mapping[str, tuple[float, float]]) -> tuple[str, ...]:
    """Names of the undominated, ties included, the first number rising; NaN is no place."""
    names = [name for name, place in places.items() if np.isfinite(place).all()]
    first, second = (np.array([places[name][axis] for name in names]) for axis in (0, 1))
    best = np.flatnonzero(undominated(first, second))
    return tuple(names[place] for place in best[np.lexsort((second[best], first[best]))])


@dataclass(frozen=True)
class Ends:
    """The ends of a search: where it was made, its plane, and the candidates in it."""

    shop: Workshop
    plane: Plane
    table: Table
    scores: Scores

    @property
    def members(self) -> tuple[Member, ...]:
        """The members of the frontier, chosen by fresh draws and reported by others, least risk first."""
        pool = self._pool()
        unsure = self._drawn(pool, "choose").unsure
        doubtful = [method for method in pool if method.text in unsure]
        choose = self._drawn(pool, "choose", doubtful)
        by_text = {method.text: method for method in pool}
        front = {by_text[text]: pool[by_text[text]] for text in choose.front}
        report = self._drawn(front, "report")
        losses = report.losses(self.shop.plan)
        return tuple(self._member(method, row, choose, report, losses) for method, row in front.items())

    def _member(
        self, method: Method, row: int, choose: Draws, report: Draws, losses: Mapping[str, dict[str, float]]
    ) -> Member:
        text, tried = method.text, choose.asked[method.text]
        risk, utility = report.means.get(text, (None, None))
        return Member(
            self.scores.name_of(text), method, self.table.ids[row], *self._found_at(row),
            under=None if self.plane.limit is None else choose.under[text] / tried, tried=tried,
            chosen_by=choose.means.get(text), fresh_risk=risk, fresh_utility=utility,
            draws=0 if risk is None else report.asked[text], losses=losses.get(text, {}),
        )  # fmt: skip

    def _pool(self) -> dict[Method, int]:
        """Method -> the place of its candidate in the table: the frontier that was found, what lies next behind it, and the
        plan's own frontier, so that nothing that is chosen is worse than the plan by the same draws."""
        table, methods = self.table, dict(self.scores.candidate.select("id", "method").iter_rows())
        own = frozenset(candidate.id for candidate in self.shop.plan.candidates)
        front = self._most(table.front, MOST)
        behind = self._most(table.front_among(~np.isin(np.arange(len(table)), table.front)), NEXT)
        stated = self._most(table.front_among(np.array([name in own for name in table.ids], dtype=bool)), MOST)
        rows: dict[Method, int] = {}
        for row in (*front, *behind, *stated):
            rows.setdefault(self.scores.methods[methods[table.ids[row]]], row)
        return rows

    def _most(self, rows: Array, count: int) -> list[int]:
        """Those rows of the table that make up most of the area."""
        nothing = np.empty(0), np.empty(0)
        return [int(rows[place]) for place in picked(self.table.x[rows], self.table.y[rows], count, nothing)]

    def _drawn(self, methods: Iterable[Method], purpose: Purpose, racing: Iterable[Method] = ()) -> Draws:
        """Fresh draws of these methods, and more of those that race, made and read back."""
        plan = fresh_plan(self.shop.plan, purpose)
        wanted = [candidate for method in methods for candidate in redraws(self.shop.plan, method, purpose)]
        wanted += [candidate for method in racing for candidate in redraws(self.shop.plan, method, "race")]
        self.shop.draw_again(wanted, plan)
        asked = Counter(candidate.method.text for candidate in wanted)
        return Draws(self.shop.study.scores_of(plan, [c.id for c in wanted]), plan, self.plane, asked)

    def _found_at(self, row: int) -> tuple[float, float]:
        """Risk and utility of the draw by which a member was found, as the measures have them."""
        signs = self.plane.signs
        return signs[0] * float(self.table.risk[row]), signs[1] * float(self.table.loss[row])


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
