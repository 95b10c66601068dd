"""Honest ends: what a search found is drawn afresh, because the best of many scores is better than it will be again.

What was found on the frontier, what lies next behind it and the plan's own frontier get five fresh draws: by their means
the frontier is chosen, and by the share of draws under the limit the release. Who is in doubt gets five more. Five others,
with targets and queries of their own, say what to expect of those that are chosen: these are reported, and since they
chose nobody, further draws differ from them by chance alone. A method without randomness has one of each, since only its
measures are drawn.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Literal

import numpy as np
import polars as pl

from sdcmap.core import Array, Method
from sdcmap.kernels.decision.pareto import hypervolume, undominated
from sdcmap.map import RUMap
from sdcmap.searches.evaluation import SearchSession, replace_measures
from sdcmap.searches.objective_space import ObjectiveSpace, ObjectiveTable
from sdcmap.study.plan import Candidate, Plan
from sdcmap.study.scores import Scores

REDRAWS = 5  # to choose by, to report, and once more where a member is in doubt
MAX_FRONT_REDRAWN = 12  # members of a frontier that are drawn again: those that make up most of the area
MAX_BEHIND_REDRAWN = 4  # of those next behind it
Purpose = Literal["choose", "report", "race"]
DRAW_OFFSET: Mapping[Purpose, int] = {"choose": 0, "report": REDRAWS, "race": 2 * REDRAWS}
RESAMPLES: Mapping[Purpose, int] = {"choose": 1, "report": 2, "race": 1}  # which fresh sample of targets and queries


@dataclass(frozen=True)
class Member:
    """One method of the frontier. risk, utility : of the draw by which it was found. fresh_risk, fresh_utility .

    The mean of the draws by which it is reported, None where none could be made; draws : their number. under : the
    share of the draws to choose by that are under the limit, None without one; tried : their number. losses : every
    utility measure, in the mean of the reported draws.
    """

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
        numbers = ("risk", "utility", "fresh_risk", "fresh_utility", "draws")
        return {"name": self.name, "method": self.method.text, **{name: getattr(self, name) for name in numbers}}


def fresh_plan(plan: Plan, purpose: Purpose) -> Plan:
    """Return the plan with each measure on another sample, its axes and limits with it.

    To choose, only what is chosen by.
    """
    asked = [m for m in plan.measures if purpose == "report" or m.text in (*plan.risk, plan.utility, *plan.limits)]
    fresh = {m.text: reduce(lambda measure, _: measure.resample(), range(RESAMPLES[purpose]), m) for m in asked}
    return replace_measures(plan, fresh, plan.risk, plan.limits)


def number_redraws(plan: Plan, method: Method, purpose: Purpose) -> list[Candidate]:
    """Return the draws of a method for one purpose: numbers that no sweep of the plan and no other purpose has."""
    begin = max(plan.draws_of(method), 1) + DRAW_OFFSET[purpose]
    count = REDRAWS if method.random else 0 if purpose == "race" else 1
    return [Candidate(method, begin + draw) for draw in range(count)]


@dataclass(frozen=True)
class Draws:
    """Fresh draws of some methods, by method text. asked : how many of each were to be made."""

    plan: Plan  # with the fresh measures
    ru: RUMap
    plane: ObjectiveSpace
    table: ObjectiveTable
    asked: Counter[str]

    @cached_property
    def means(self) -> dict[str, tuple[float, float]]:
        """Pooled risk and utility."""
        means = self.ru.means.select("method", "risk", "utility").iter_rows()
        return {method: (risk, utility) for method, risk, utility in means}

    @cached_property
    def under(self) -> Counter[str]:
        """How many draws a rule would take: limits by measure hold with the standard errors of what is sampled."""
        limit = np.inf if self.plane.limit is None else self.plane.limit
        return self._count(self.table.sound & (self.table.risk <= limit) & self.ru.eligible(self._points))

    @cached_property
    def front(self) -> tuple[str, ...]:
        """Methods that no other has less risk and less loss than, in the mean, least risk first.

        Within every constraint in half of their draws or more.
        """
        signs, sound = self.plane.signs, self._count(self.table.sound)
        turned = {text: (signs[0] * risk, signs[1] * utility) for text, (risk, utility) in self.means.items()}
        return _front({text: at for text, at in turned.items() if 2 * sound[text] >= self.asked[text]})

    @property
    def unsure(self) -> frozenset[str]:
        """Methods that are on the frontier or off it, depending on a single draw.

        And those under the limit in some draws and not in others.
        """
        fronts = [frozenset(_front(self._without(draw))) for draw in range(REDRAWS)]
        near = {text for text, hits in self.under.items() if self.plane.limit is not None and hits < self.asked[text]}
        return (frozenset.union(*fronts) - frozenset.intersection(*fronts)) | near

    def _without(self, draw: int) -> dict[str, Array]:
        """Return the means of all but one draw of each method that has several."""
        rows: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for text, risk, loss in zip(self._points["method"], self.table.risk, self.table.loss, strict=True):
            rows[text].append((risk, loss))
        return {text: np.mean(own[:draw] + own[draw + 1 :] or own, axis=0) for text, own in rows.items()}

    @cached_property
    def _points(self) -> pl.DataFrame:
        return self.ru.points.filter(~pl.col("anchor"))

    def _count(self, flags: Array) -> Counter[str]:
        """Return how many draws of each method have the flag."""
        return Counter(self._points["method"].filter(pl.Series(flags)).to_list())

    def losses(self, plan: Plan, method: str) -> dict[str, float]:
        """Return every utility measure of a method, pooled, under its name in `plan`."""
        pairs = zip(self.plan.measures, plan.measures, strict=True)
        pooled = {own.text: self.ru.scores.pooled_estimates(new.text) for new, own in pairs if own.axis == "utility"}
        return {name: estimates[method].value for name, estimates in pooled.items() if method in estimates}


def _front(places: Mapping[str, Array | tuple[float, float]]) -> tuple[str, ...]:
    """Return names of the undominated, ties included, the first number rising; NaN is no place."""
    names = [name for name, place in places.items() if np.isfinite(place).all()]
    first, second = (np.array([places[name][axis] for name in names]) for axis in (0, 1))
    best = np.flatnonzero(undominated(first, second))
    return tuple(names[place] for place in best[np.lexsort((second[best], first[best]))])


@dataclass(frozen=True)
class FinalDraws:
    """The ends of a search: where it was made, its plane, and the candidates in it."""

    session: SearchSession
    plane: ObjectiveSpace
    table: ObjectiveTable
    scores: Scores

    @property
    def members(self) -> tuple[Member, ...]:
        """The members of the frontier, chosen by fresh draws and reported by others, least risk first."""
        pool = self._pool()
        unsure = self._draw(pool, "choose").unsure
        choose = self._draw(pool, "choose", [method for method in pool if method.text in unsure])
        by_text = {method.text: method for method in pool}
        front = {by_text[text]: pool[by_text[text]] for text in choose.front}
        report = self._draw(front, "report")
        return tuple(self._member(method, row, choose, report) for method, row in front.items())

    def _member(self, method: Method, row: int, choose: Draws, report: Draws) -> Member:
        text, tried, signs = method.text, choose.asked[method.text], self.plane.signs
        risk, utility = report.means.get(text, (None, None))
        return Member(
            self.scores.name_of(text), method, self.table.ids[row],
            risk=signs[0] * float(self.table.risk[row]), utility=signs[1] * float(self.table.loss[row]),
            under=None if self.plane.limit is None else choose.under[text] / tried, tried=tried,
            chosen_by=choose.means.get(text), fresh_risk=risk, fresh_utility=utility,
            draws=0 if risk is None else report.asked[text], losses=report.losses(self.session.plan, text),
        )  # fmt: skip

    def _pool(self) -> dict[Method, int]:
        """Return method -> the place of its candidate in the table.

        The frontier that was found, what lies next behind it, and the plan's own frontier, so that nothing that is
        chosen is worse than the plan by the same draws.
        """
        table, methods = self.table, dict(self.scores.candidate.select("id", "method").iter_rows())
        own = frozenset(candidate.id for candidate in self.session.plan.candidates)
        behind = table.front_among(~np.isin(np.arange(len(table)), table.front))
        stated = table.front_among(np.array([name in own for name in table.ids], dtype=bool))
        rows: dict[Method, int] = {}
        for front, count in (
            (table.front, MAX_FRONT_REDRAWN),
            (behind, MAX_BEHIND_REDRAWN),
            (stated, MAX_FRONT_REDRAWN),
        ):
            for row in table.pick_by_area(front, count):
                rows.setdefault(self.scores.methods[methods[table.ids[row]]], row)
        return rows

    def _draw(self, methods: Iterable[Method], purpose: Purpose, racing: Iterable[Method] = ()) -> Draws:
        """Return fresh draws of these methods, and more of those that race, made and read back."""
        plan = fresh_plan(self.session.plan, purpose)
        wanted = [candidate for method in methods for candidate in number_redraws(self.session.plan, method, purpose)]
        wanted += [candidate for method in racing for candidate in number_redraws(self.session.plan, method, "race")]
        self.session.draw_again(wanted, plan)
        asked = Counter(candidate.method.text for candidate in wanted)
        scores = self.session.study.scores_of(plan, [candidate.id for candidate in wanted])
        return Draws(plan, RUMap.of_plan(scores, plan), self.plane, self.plane.table(scores, plan), asked)


def fresh_area(members: Sequence[Member], plane: ObjectiveSpace) -> tuple[float, float]:
    """Return the share of the area that the members have, by the draws they were found by and by those they are reported by."""
    both = [m for m in members if m.fresh_risk is not None and m.fresh_utility is not None]
    places = [(m.risk, m.utility, m.fresh_risk, m.fresh_utility) for m in both]
    ends = np.array(places, dtype=float).reshape(-1, 2, 2) * plane.signs
    before, after = (
        hypervolume(plane.scale_risk(ends[:, end, 0]), plane.scale_loss(ends[:, end, 1])) for end in (0, 1)
    )
    return before, after


@dataclass(frozen=True)
class SearchChoice:
    """What a search would release: the member, None for nothing; and why, in words."""

    member: Member | None
    reason: str


def choose_member(members: Sequence[Member], plane: ObjectiveSpace, sure: float, tried: int) -> SearchChoice | None:
    """Return the member with the least loss, in the mean of the draws to choose by, of those that are under the limit in a share `sure` of these draws; None where there is no limit to choose by."""
    if plane.limit is None:
        return None
    limit = plane.signs[0] * plane.limit
    scored = [(m, m.under, *m.chosen_by) for m in members if m.chosen_by is not None and m.under is not None]
    fit = [row for row in scored if row[1] >= sure]
    searched = f"{tried:,} methods were searched"
    if fit:
        best, under, *_ = min(fit, key=lambda row: plane.signs[1] * row[3])
        reason = (
            f"Release {best.name}: it has the least loss of {len(fit)} members of the frontier that are under the limit "
            f"of {limit:g} in {sure:.0%} of fresh draws or more (it is in {round(under * best.tried)} of {best.tried} "
            f"fresh draws); {searched}."
        )
        return SearchChoice(best, reason)
    if not scored:
        return SearchChoice(None, f"Release nothing: nothing could be made and scored; {searched}.")
    near, _, risk, _ = min(scored, key=lambda row: (-row[1], plane.signs[0] * row[2]))
    reason = (
        f"Release nothing: of {tried:,} methods that were searched none is under the limit of {limit:g} in {sure:.0%} of "
        f"fresh draws. The nearest is {near.name} with a risk of {risk:.4g}."
    )
    return SearchChoice(None, reason)


def class_shares(members: Sequence[Member]) -> pl.DataFrame:
    """Return which methods stand where along the front.

    Place, risk, class, and the share of its steps that are of the class.
    """
    rows = [
        (place, member.risk, name, names.count(name) / len(names))
        for place, member in enumerate(members)
        for names in [[type(step).__name__ for step in member.method.steps]]
        for name in dict.fromkeys(names)
    ]
    schema = {"place": pl.Int64, "risk": pl.Float64, "class": pl.String, "share": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")
