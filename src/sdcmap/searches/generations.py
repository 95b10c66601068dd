"""Generation after generation: each is a pure function of the seed and of the scores of those before it, read in the order
of proposal. No clock, no number of workers and no order of arrival has a say in what is proposed."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from sdcmap.core import Array, Method, Stream
from sdcmap.kernels.decision.pareto import hypervolume, picked
from sdcmap.searches.evaluation import SearchSession, method_id, screening_plan
from sdcmap.searches.objective_space import ObjectiveSpace, ObjectiveTable
from sdcmap.searches.search_proposals import OptionOutcomes, Parent, ProposedMethod, draw_children, draw_starts
from sdcmap.searches.search_space import Point, Space
from sdcmap.study.jobs import Kind
from sdcmap.study.plan import Candidate, Plan
from sdcmap.study.progress import Watch
from sdcmap.study.search_settings import START_COUNT, Proposal, Search

GENERATION_SIZE = 8  # candidates of a generation after the starts
CHILDREN_SCREENED = 24  # that are screened for it
MAX_PARENTS = 12
PATIENCE_GENERATIONS = 5  # generations that together must gain more than the tolerance
MIN_PAIRS_TO_SHIFT = 5  # candidates that are screened and scored, before screenings are moved to where scores lie
SCREENED_ONLY = -1  # the place of a child that was screened alone


def search_digest(plan: Plan, settings: Search) -> str:
    """Twelve digits of all that decides what a search proposes, but for seed and data."""
    facts = [
        [method.digest for method in plan.all_methods], [measure.digest for measure in plan.measures], plan.replicates,
        plan.risk, plan.utility, dict(plan.limits),
        plan.rule.digest if plan.rule else "", settings.what, GENERATION_SIZE, CHILDREN_SCREENED, START_COUNT,
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=list).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class SearchHistory:
    """What a search has proposed so far, the share of the area that is dominated after each generation, the plan's own candidates first, and where all of them lie in the plane."""

    proposals: tuple[Proposal, ...] = field(repr=False)
    areas: tuple[float, ...]
    table: ObjectiveTable = field(repr=False)
    stopped: str = ""

    @cached_property
    def full_evaluations(self) -> tuple[Proposal, ...]:
        """Those that were made of all rows, in the order of proposal."""
        return tuple(row for row in self.proposals if row.rank != SCREENED_ONLY)

    @cached_property
    def methods(self) -> tuple[Method, ...]:
        return tuple(row.method_value for row in self.full_evaluations)

    @property
    def generations(self) -> int:
        return max((row.generation for row in self.proposals), default=0)

    @property
    def front(self) -> tuple[Array, Array]:
        """Where everything lies that keeps the constraints."""
        return self.table.x[self.table.sound], self.table.y[self.table.sound]


@dataclass(frozen=True)
class SearchRunner:
    """All that a generation is grown from."""

    session: SearchSession
    space: Space
    plane: ObjectiveSpace
    settings: Search

    @cached_property
    def search(self) -> str:
        return search_digest(self.session.plan, self.settings)

    def run(self, watch: Watch) -> SearchHistory:
        """Generations until the search stops; what an earlier run proposed is taken up."""
        began = time.monotonic()
        stored = map(Proposal._make, self.session.study.database.rows("proposal"))
        kept = sorted((row for row in stored if row.search == self.search), key=_proposal_order)
        growth = self._extend((), ())
        while not (reason := self._stop_reason(growth, began)):
            number = growth.generations + 1
            rows = [row for row in kept if row.generation == number] or self._propose(number, growth)
            chosen = [row.method_value for row in rows if row.rank != SCREENED_ONLY]
            if not chosen:
                reason = "nothing new was left to try"
                break
            self.session.evaluate(chosen, self.plane.early_stop(growth.table))
            growth = self._extend((*growth.proposals, *rows), growth.areas)
            watch(len(growth.full_evaluations), self.settings.budget, growth.areas[-1])
        return replace(growth, stopped=reason)

    def _extend(self, proposals: tuple[Proposal, ...], areas: tuple[float, ...]) -> SearchHistory:
        """After one generation more, all of which is scored."""
        methods = [row.method_value for row in proposals if row.rank != SCREENED_ONLY]
        growth = SearchHistory(proposals, areas, self.plane.table(self.session.scores(methods), self.session.plan))
        return replace(growth, areas=(*areas, hypervolume(*growth.front)))

    # ---- when to stop -------------------------------------------------------------------------------------------
    def _stop_reason(self, growth: SearchHistory, began: float) -> str:
        """Return why the search stops here; empty: it goes on."""
        used = len(growth.full_evaluations)
        if growth.generations == 1 and not self._any_made(growth):
            return f"none of {used} could be made and scored: {self._most_frequent_reason(growth)}"
        return stop_reason(self.settings, used, growth.areas, time.monotonic() - began)

    def _any_made(self, growth: SearchHistory) -> bool:
        """Return whether a candidate could be made and scored; one that was left as beaten could."""
        ids, done = {Candidate(method).id for method in growth.methods}, self.session.study.candidate_states()
        return not ids.isdisjoint(growth.table.ids) or any(method_id(m, "bound") in done for m in growth.methods)

    def _most_frequent_reason(self, growth: SearchHistory) -> str:
        """Return the reason that was given most often."""
        scores = self.session.scores(growth.methods)
        counts = Counter(filter(None, [*scores.candidate["reason"], *scores.score["reason"]]))
        return min(counts, key=lambda reason: (-counts[reason], reason), default="no reason was given.")

    # ---- what to propose ----------------------------------------------------------------------------------------
    def _propose(self, number: int, growth: SearchHistory) -> list[Proposal]:
        """Return the proposals of a generation, screened, chosen and stored."""
        stream = Stream.of_seed(self.session.plan.seed, "search", self.search, f"generation {number}")
        taken = frozenset(
            m.digest for m in (*self.session.plan.all_methods, *(row.method_value for row in growth.proposals))
        )
        if number == 1:
            proposed = draw_starts(self.space, START_COUNT, stream.rng(), taken)
            self.session.screen([p.method for p in proposed])
            order = list(range(len(proposed)))
        else:
            parents, lessons = self._parents(growth), self._lessons(growth)
            proposed = draw_children(self.space, parents, lessons, CHILDREN_SCREENED, stream.rng(), taken)
            order = picked(*self._predict(proposed, growth), GENERATION_SIZE, growth.front)
        places = {place: rank for rank, place in enumerate(order)}
        rows = [self._row(p, number, places.get(at, SCREENED_ONLY)) for at, p in enumerate(proposed)]
        rows.sort(key=_proposal_order)
        self.session.study.propose(rows)
        return rows

    def _row(self, proposed: ProposedMethod, number: int, place: int) -> Proposal:
        facts = map(json.dumps, (proposed.method.spec(), proposed.parents, proposed.point))
        return Proposal(self.search, Candidate(proposed.method).id, number, place, *facts)

    def _parents(self, growth: SearchHistory) -> list[Parent]:
        """Return what is best so far: the candidates that make up most of the area, the plan's own among them."""
        known: dict[str, Parent] = {
            row.candidate: (row.candidate, row.method_value, point_of(row)) for row in growth.full_evaluations
        }
        known |= {c.id: (c.id, c.method, ()) for c in self.session.plan.candidates}
        best = growth.table.pick_by_area(np.flatnonzero(growth.table.sound), MAX_PARENTS)
        return [known[growth.table.ids[row]] for row in best]

    def _lessons(self, growth: SearchHistory) -> OptionOutcomes:
        """Return which options could be made, by the screenings of everything proposed so far."""
        made = {name for name, (status, _) in self.session.study.candidate_states().items() if status == "ok"}
        tried = [(point_of(row), method_id(row.method_value, "screening") in made) for row in growth.proposals]
        return OptionOutcomes.of(self.space, [(point, is_made) for point, is_made in tried if point])

    def _predict(self, proposed: Sequence[ProposedMethod], growth: SearchHistory) -> tuple[Array, Array]:
        """Return where the children would lie.

        Their screenings, moved by what lay between screening and score before.
        """
        plan = screening_plan(self.session.plan, self.session.data)
        new = self.plane.table(self.session.screen([p.method for p in proposed]), plan)
        at = new.select(tuple(method_id(p.method, "screening") for p in proposed))
        before, after = self._stored_points(growth, "screening", plan), self._scored_points(growth)
        return np.clip(at.x + _shift(before.x, after.x), 0, 1), np.clip(at.y + _shift(before.y, after.y), 0, 1)

    def _stored_points(self, growth: SearchHistory, kind: Kind, plan: Plan) -> ObjectiveTable:
        """Return where each method lies by its rows of another kind."""
        ids = tuple(method_id(method, kind) for method in growth.methods)
        return self.plane.table(self.session.study.scores_of(plan, ids), plan).select(ids)

    def _scored_points(self, growth: SearchHistory) -> ObjectiveTable:
        """Return where each method lies by its scores.

        Those that were left as beaten by what was measured until then, which is not so far from it as to lie nowhere.
        """
        known = growth.table.select(tuple(Candidate(method).id for method in growth.methods))
        left = self._stored_points(growth, "bound", self.session.plan)
        x, y = np.where(np.isnan(known.x), left.x, known.x), np.where(np.isnan(known.y), left.y, known.y)
        return replace(known, x=x, y=y)


def stop_reason(settings: Search, used: int, areas: Sequence[float], seconds: float) -> str:
    """Return why a search stops after so many evaluations and seconds, with this share of the area after each generation; empty: it goes on. The starts are always made."""
    if used + (GENERATION_SIZE if used else START_COUNT) > settings.budget:
        return f"the budget of {settings.budget} evaluations is used up"
    if settings.minutes and used and seconds >= 60 * settings.minutes:
        return f"{settings.minutes:g} minutes have passed"
    if len(areas) > PATIENCE_GENERATIONS + 1 and areas[-1] - areas[-1 - PATIENCE_GENERATIONS] < settings.tolerance:
        return f"{PATIENCE_GENERATIONS} generations gained less than {settings.tolerance:g} of the area"
    return ""


def point_of(row: Proposal) -> Point:
    """Return the place of a proposal in the space; empty where a method of the plan was changed."""
    return tuple(json.loads(row.point))


def _proposal_order(row: Proposal) -> tuple[int, bool, int, str]:
    """Return the order of proposal; of a generation those that were chosen come first."""
    return row.generation, row.rank == SCREENED_ONLY, row.rank, row.candidate


def _shift(screened: Array, scored: Array) -> float:
    """Return the median of what scores lie beyond screenings; 0 of few."""
    both = scored - screened
    both = both[np.isfinite(both)]
    return float(np.median(both)) if len(both) >= MIN_PAIRS_TO_SHIFT else 0.0
