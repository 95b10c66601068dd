"""New draws of the frontier, because the best of many scores is better than its next draw would be.

The frontier, the candidates next behind it and the plan's own frontier get five new draws. Their means determine the
frontier, and their share within the limit the release. Candidates in doubt get five more. Five other draws, with their
own targets and queries, are reported: since nothing was chosen by them, further draws differ from them by chance only.
A method without randomness has one of each, because only its measures are random.
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
from sdcmap.core.estimate import quantile
from sdcmap.kernels.decision.pareto import hypervolume, is_undominated
from sdcmap.map import RUMap
from sdcmap.searches.evaluation import SearchSession, replace_measures
from sdcmap.searches.objective_space import ObjectiveSpace, ObjectiveTable
from sdcmap.study.plan import Candidate, Plan
from sdcmap.study.scores import Scores

REDRAWS = 5  # draws per purpose; a compromise between cost and the standard error of the mean
MAX_FRONT_REDRAWN = 12  # members of a frontier: those that contribute most to the area
MAX_BEHIND_REDRAWN = 4  # of the candidates next behind it
Purpose = Literal["choose", "report", "tiebreak"]
DRAW_OFFSET: Mapping[Purpose, int] = {"choose": 0, "report": REDRAWS, "tiebreak": 2 * REDRAWS}
RESAMPLES: Mapping[Purpose, int] = {"choose": 1, "report": 2, "tiebreak": 1}  # number of the new sample of targets


@dataclass(frozen=True)
class Member:
    """One method of the frontier.

    risk, utility : of the draw that found it. under : the share of draws to choose by that are within the limit, None
    without one; tried : their number. fresh_risk, fresh_utility : the mean of the reported draws, None where none could be
    made; draws : their number. losses : every utility measure, in the mean of the reported draws.
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
        """The member as part of the report of a search."""
        numbers = ("risk", "utility", "fresh_risk", "fresh_utility", "draws")
        return {"name": self.name, "method": self.method.text, **{name: getattr(self, name) for name in numbers}}


def fresh_plan(plan: Plan, purpose: Purpose) -> Plan:
    """Return the plan with each measure on a new sample; for choosing, only the measures that decide."""
    asked = [m for m in plan.measures if purpose == "report" or m.text in (*plan.risk, plan.utility, *plan.limits)]
    fresh = {m.text: reduce(lambda measure, _: measure.resample(), range(RESAMPLES[purpose]), m) for m in asked}
    return replace_measures(plan, fresh, plan.risk, plan.limits)


def number_redraws(plan: Plan, method: Method, purpose: Purpose) -> list[Candidate]:
    """Return the draws of a method for one purpose, with numbers that no sweep and no other purpose uses."""
    begin = max(plan.draws_of(method), 1) + DRAW_OFFSET[purpose]
    count = REDRAWS if method.random else 0 if purpose == "tiebreak" else 1
    return [Candidate(method, begin + draw) for draw in range(count)]


@dataclass(frozen=True)
class Draws:
    """New draws of some methods, by method text. asked : how many of each were requested."""

    plan: Plan  # with the fresh measures
    ru: RUMap
    objectives: ObjectiveSpace
    table: ObjectiveTable
    asked: Counter[str]

    @cached_property
    def means(self) -> dict[str, tuple[float, float]]:
        """Method text -> pooled risk and utility."""
        means = self.ru.means.select("method", "risk", "utility").iter_rows()
        return {method: (risk, utility) for method, risk, utility in means}

    @cached_property
    def under(self) -> Counter[str]:
        """How many draws a rule would accept: each with the margins of a release within every limit."""
        limit = np.inf if self.objectives.limit is None else self.objectives.limit
        compared = self.objectives.signs[0] * self._points["risk_end"].to_numpy()
        return self._count(self.table.sound & (compared <= limit) & self.ru.eligible(self._points))

    @cached_property
    def front(self) -> tuple[str, ...]:
        """Methods that are undominated in the mean and meet all constraints in most of their draws, least risk first.

        Methods that are worse than not masking are left out.
        """
        signs, sound = self.objectives.signs, self._count(self.table.sound)
        signed = {text: (signs[0] * risk, signs[1] * utility) for text, (risk, utility) in self.means.items()}
        kept = {text for text in signed if 2 * sound[text] >= self.asked[text]} - self.worse
        return _front({text: point for text, point in signed.items() if text in kept})

    @cached_property
    def worse(self) -> frozenset[str]:
        """Methods with more risk and more loss than the unmasked file in the mean, beyond the error of that mean."""
        z, signs = quantile(self.ru.policy.comparison_level), self.objectives.signs
        rows = self.ru.means.select("method", "risk", "risk_se", "utility", "utility_se").iter_rows()
        return frozenset(
            method
            for method, risk, risk_error, utility, loss_error in rows
            if signs[0] * risk - z * (risk_error or 0.0) > self.objectives.most
            and signs[1] * utility - z * (loss_error or 0.0) > self.objectives.best
        )

    @property
    def unsure(self) -> frozenset[str]:
        """Methods whose place on the frontier depends on a single draw, and those within the limit in only some draws."""
        fronts = [frozenset(_front(self._without(draw))) for draw in range(REDRAWS)]
        # leave-one-out: a method is unsure if it is on the frontier without one draw and off it without another
        mixed = {
            text for text, hits in self.under.items() if self.objectives.limit is not None and hits < self.asked[text]
        }
        return (frozenset.union(*fronts) - frozenset.intersection(*fronts)) | mixed

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


def _front(points: Mapping[str, Array | tuple[float, float]]) -> tuple[str, ...]:
    """Return the names of the undominated, including ties, in increasing order of the first number; NaN is left out."""
    names = [name for name, point in points.items() if np.isfinite(point).all()]
    first, second = (np.array([points[name][axis] for name in names]) for axis in (0, 1))
    best = np.flatnonzero(is_undominated(first, second))
    return tuple(names[index] for index in best[np.lexsort((second[best], first[best]))])


@dataclass(frozen=True)
class FinalDraws:
    """Draws the frontier of a search again."""

    session: SearchSession
    objectives: ObjectiveSpace
    table: ObjectiveTable
    scores: Scores

    @property
    def members(self) -> tuple[Member, ...]:
        """The members of the frontier, chosen by new draws and reported by others, least risk first."""
        pool = self._pool()
        # 1. Five draws of all. The draw that found a candidate is not used: it was selected for its good score.
        unsure = self._draw(pool, "choose").unsure
        # 2. Five more where one draw would change the decision; the frontier follows from all of these.
        choose = self._draw(pool, "choose", [method for method in pool if method.text in unsure])
        by_text = {method.text: method for method in pool}
        front = {by_text[text]: pool[by_text[text]] for text in choose.front}
        # 3. Five others to report, which had no influence on the selection and therefore are unbiased.
        report = self._draw(front, "report")
        return tuple(self._member(method, row, choose, report) for method, row in front.items())

    def _member(self, method: Method, row: int, choose: Draws, report: Draws) -> Member:
        text, tried, signs = method.text, choose.asked[method.text], self.objectives.signs
        risk, utility = report.means.get(text, (None, None))
        return Member(
            self.scores.name_of(text), method, self.table.ids[row],
            risk=signs[0] * float(self.table.risk[row]), utility=signs[1] * float(self.table.loss[row]),
            under=None if self.objectives.limit is None else choose.under[text] / tried, tried=tried,
            chosen_by=choose.means.get(text), fresh_risk=risk, fresh_utility=utility,
            draws=0 if risk is None else report.asked[text], losses=report.losses(self.session.plan, text),
        )  # fmt: skip

    def _pool(self) -> dict[Method, int]:
        """Return method -> its row in the table, for the methods to draw again.

        These are the frontier, the candidates next behind it, and the plan's own frontier, so that nothing is chosen that
        is worse than the plan by the same draws.
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

    def _draw(self, methods: Iterable[Method], purpose: Purpose, unsure: Iterable[Method] = ()) -> Draws:
        """Draw these methods again for a purpose, with more draws of those in doubt, and read the scores."""
        plan = fresh_plan(self.session.plan, purpose)
        wanted = [candidate for method in methods for candidate in number_redraws(self.session.plan, method, purpose)]
        wanted += [
            candidate for method in unsure for candidate in number_redraws(self.session.plan, method, "tiebreak")
        ]
        self.session.draw_again(wanted, plan)
        asked = Counter(candidate.method.text for candidate in wanted)
        scores = self.session.study.scores_of(plan, [candidate.id for candidate in wanted])
        return Draws(plan, RUMap.of_plan(scores, plan), self.objectives, self.objectives.table(scores, plan), asked)


def fresh_area(members: Sequence[Member], objectives: ObjectiveSpace) -> tuple[float, float]:
    """Return the share of the area that the members have, by the draws that found them and by the reported draws."""
    both = [m for m in members if m.fresh_risk is not None and m.fresh_utility is not None]
    scores = [(m.risk, m.utility, m.fresh_risk, m.fresh_utility) for m in both]
    ends = np.array(scores, dtype=float).reshape(-1, 2, 2) * objectives.signs
    before, after = (
        hypervolume(objectives.scale_risk(ends[:, end, 0]), objectives.scale_loss(ends[:, end, 1])) for end in (0, 1)
    )
    return before, after


@dataclass(frozen=True)
class SearchChoice:
    """What to release: a member, or None for nothing; and why."""

    member: Member | None
    reason: str


def choose_member(
    members: Sequence[Member], objectives: ObjectiveSpace, sure: float, tried: int
) -> SearchChoice | None:
    """Return the member with the least loss of those within the limit in a share `sure` of the draws to choose by.

    None where there is no limit to choose by.
    """
    if objectives.limit is None:
        return None
    limit = objectives.signs[0] * objectives.limit
    scored = [(m, m.under, *m.chosen_by) for m in members if m.chosen_by is not None and m.under is not None]
    fit = [row for row in scored if row[1] >= sure]
    searched = f"{tried:,} methods were searched"
    if fit:
        best, under, *_ = min(fit, key=lambda row: objectives.signs[1] * row[3])
        reason = (
            f"Release {best.name}: it has the smallest loss of {len(fit)} members of the frontier that are within the "
            f"limit of {limit:g} in at least {sure:.0%} of new draws ({round(under * best.tried)} of {best.tried} for "
            f"this one); {searched}."
        )
        return SearchChoice(best, reason)
    if not scored:
        return SearchChoice(None, f"Release nothing: no method could be applied and scored; {searched}.")
    nearest, _, risk, _ = min(scored, key=lambda row: (-row[1], objectives.signs[0] * row[2]))
    reason = (
        f"Release nothing: of {tried:,} methods that were searched none is within the limit of {limit:g} in {sure:.0%} of "
        f"new draws. The nearest is {nearest.name} with a risk of {risk:.4g}."
    )
    return SearchChoice(None, reason)


def class_shares(members: Sequence[Member]) -> pl.DataFrame:
    """Return the classes along the frontier: place, risk, class, and the share of its steps that are of the class."""
    rows = [
        (place, member.risk, name, names.count(name) / len(names))
        for place, member in enumerate(members)
        for names in [[type(step).__name__ for step in member.method.steps]]
        for name in dict.fromkeys(names)
    ]
    schema = {"place": pl.Int64, "risk": pl.Float64, "class": pl.String, "share": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")
