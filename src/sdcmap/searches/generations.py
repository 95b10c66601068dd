"""The generations of a search.

A generation is a pure function of the seed and of the scores of earlier generations, in the order of proposal. Time,
the number of workers and the order of arrival have no influence on what is proposed.
"""

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
from sdcmap.core.limit import state_limits
from sdcmap.kernels.decision.pareto import hypervolume, pick_by_hypervolume
from sdcmap.searches.evaluation import SearchSession, method_id, screening_plan
from sdcmap.searches.objective_space import ObjectiveSpace, ObjectiveTable
from sdcmap.searches.search_proposals import OptionOutcomes, Parent, ProposedMethod, draw_children, draw_starts
from sdcmap.searches.search_space import Point, Space
from sdcmap.study.jobs import Kind
from sdcmap.study.plan import Candidate, Plan
from sdcmap.study.progress import Watch
from sdcmap.study.search_settings import START_COUNT, Proposal, Search

GENERATION_SIZE = 8  # full evaluations of a generation after the starts: 22 generations of the default budget
CHILDREN_SCREENED = 24  # children per generation; a third of them is evaluated fully
MAX_PARENTS = 12  # the candidates that contribute most to the area
PATIENCE_GENERATIONS = 5  # the search stops when these together gain less than the tolerance
MIN_PAIRS_TO_SHIFT = 5  # candidates with a screening and a full score, before screenings are corrected by their median
SCREENED_ONLY = -1  # the rank of a child that was not evaluated fully


def search_digest(plan: Plan, settings: Search, space: Space) -> str:
    """Return twelve digits of everything, except seed and data, that determines what a search proposes."""
    facts = [
        [method.digest for method in plan.all_methods], [measure.digest for measure in plan.measures], plan.replicates,
        plan.risk, plan.utility, state_limits(plan.limits),
        plan.rule.digest if plan.rule else "", settings.what, GENERATION_SIZE, CHILDREN_SCREENED, START_COUNT,
        [[dimension.name, dimension.options] for dimension in space.dimensions],
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=list).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class SearchHistory:
    """The state of a search: proposals so far, the dominated share of the area after each generation, and all objectives.

    The first area is that of the plan's own candidates.
    """

    proposals: tuple[Proposal, ...] = field(repr=False)
    areas: tuple[float, ...]
    table: ObjectiveTable = field(repr=False)
    stopped: str = ""

    @cached_property
    def full_evaluations(self) -> tuple[Proposal, ...]:
        """The proposals that were evaluated on all rows, in the order of proposal."""
        return tuple(row for row in self.proposals if row.rank != SCREENED_ONLY)

    @cached_property
    def methods(self) -> tuple[Method, ...]:
        return tuple(row.method_value for row in self.full_evaluations)

    @property
    def generations(self) -> int:
        return max((row.generation for row in self.proposals), default=0)

    @property
    def front(self) -> tuple[Array, Array]:
        """Objectives of every candidate that meets the constraints."""
        return self.table.x[self.table.sound], self.table.y[self.table.sound]


@dataclass(frozen=True)
class SearchRunner:
    """Runs the generations of a search."""

    session: SearchSession
    space: Space
    objectives: ObjectiveSpace
    settings: Search

    @cached_property
    def search(self) -> str:
        return search_digest(self.session.plan, self.settings, self.space)

    def run(self, watch: Watch) -> SearchHistory:
        """Run generations until the search stops. Proposals of an earlier, interrupted run are used again."""
        began = time.monotonic()
        every = map(Proposal._make, self.session.study.database.rows("proposal"))
        stored = sorted((row for row in every if row.search == self.search), key=_proposal_order)
        history = self._extend((), ())  # the plan's own candidates, which the sweep has scored
        while not (reason := self._stop_reason(history, began)):
            number = history.generations + 1
            # 1. Propose, unless an interrupted run has already stored this generation. Its scores may be incomplete;
            #    `evaluate` computes only what is missing.
            rows = [row for row in stored if row.generation == number] or self._propose(number, history)
            selected = [row.method_value for row in rows if row.rank != SCREENED_ONLY]
            if not selected:
                reason = "nothing new was left to try"
                break
            # 2. Evaluate on all rows. A candidate that the frontier already dominates is not measured to the end.
            self.session.evaluate(selected, self.objectives.early_stop(history.table))
            # 3. Read all scores again in the order of proposal, so that the order of arrival does not matter.
            history = self._extend((*history.proposals, *rows), history.areas)
            watch(len(history.full_evaluations), self.settings.budget, history.areas[-1])
        return replace(history, stopped=reason)

    def _extend(self, proposals: tuple[Proposal, ...], areas: tuple[float, ...]) -> SearchHistory:
        """Return the history after one more generation, all of which is scored."""
        methods = [row.method_value for row in proposals if row.rank != SCREENED_ONLY]
        history = SearchHistory(
            proposals, areas, self.objectives.table(self.session.scores(methods), self.session.plan)
        )
        return replace(history, areas=(*areas, hypervolume(*history.front)))

    # ---- when to stop -------------------------------------------------------------------------------------------
    def _stop_reason(self, history: SearchHistory, began: float) -> str:
        """Return why the search stops here; empty: it goes on."""
        used = len(history.full_evaluations)
        if history.generations == 1 and not self._any_made(history):
            return f"none of {used} could be made and scored: {self._most_frequent_reason(history)}"
        return stop_reason(self.settings, used, history.areas, time.monotonic() - began)

    def _any_made(self, history: SearchHistory) -> bool:
        """Return whether any candidate could be made and scored; a dominated one could."""
        ids, done = {Candidate(method).id for method in history.methods}, self.session.study.candidate_states()
        return not ids.isdisjoint(history.table.ids) or any(method_id(m, "bound") in done for m in history.methods)

    def _most_frequent_reason(self, history: SearchHistory) -> str:
        """Return the most frequent reason for failures."""
        scores = self.session.scores(history.methods)
        counts = Counter(filter(None, [*scores.candidate["reason"], *scores.score["reason"]]))
        return min(counts, key=lambda reason: (-counts[reason], reason), default="no reason was given.")

    # ---- what to propose ----------------------------------------------------------------------------------------
    def _propose(self, number: int, history: SearchHistory) -> list[Proposal]:
        """Propose, screen, select and store a generation."""
        stream = Stream.of_seed(self.session.plan.seed, "search", self.search, f"generation {number}")
        taken = frozenset(
            m.digest for m in (*self.session.plan.all_methods, *(row.method_value for row in history.proposals))
        )
        if number == 1:
            # The starts are all evaluated. They are screened as well: the pairs of screening and full scores
            # calibrate the predictions of later generations.
            proposed = draw_starts(self.space, START_COUNT, stream.rng(), taken)
            self.session.screen([p.method for p in proposed])
            order = list(range(len(proposed)))
        else:
            # Of three times as many children as can be evaluated, take those whose predicted objectives add most to
            # the dominated area, one after the other (greedy hypervolume selection).
            parents, lessons = self._parents(history), self._lessons(history)
            proposed = draw_children(self.space, parents, lessons, CHILDREN_SCREENED, stream.rng(), taken)
            order = pick_by_hypervolume(*self._predict(proposed, history), GENERATION_SIZE, history.front)
        ranks = {index: rank for rank, index in enumerate(order)}
        rows = [self._row(p, number, ranks.get(index, SCREENED_ONLY)) for index, p in enumerate(proposed)]
        rows.sort(key=_proposal_order)
        # stored before they are evaluated, so that a killed search continues with the same generation
        self.session.study.propose(rows)
        return rows

    def _row(self, proposed: ProposedMethod, number: int, rank: int) -> Proposal:
        facts = map(json.dumps, (proposed.method.spec(), proposed.parents, proposed.point))
        return Proposal(self.search, Candidate(proposed.method).id, number, rank, *facts)

    def _parents(self, history: SearchHistory) -> list[Parent]:
        """Return the best candidates so far: those that contribute most to the area, including the plan's own."""
        known: dict[str, Parent] = {
            row.candidate: (row.candidate, row.method_value, point_of(row)) for row in history.full_evaluations
        }
        known |= {c.id: (c.id, c.method, ()) for c in self.session.plan.candidates}
        best = history.table.pick_by_area(np.flatnonzero(history.table.sound), MAX_PARENTS)
        return [known[history.table.ids[row]] for row in best]

    def _lessons(self, history: SearchHistory) -> OptionOutcomes:
        """Return which options could be made, from the screenings of everything proposed so far."""
        feasible = {name for name, (status, _) in self.session.study.candidate_states().items() if status == "ok"}
        tried = [(point_of(row), method_id(row.method_value, "screening") in feasible) for row in history.proposals]
        return OptionOutcomes.of(self.space, [(point, is_made) for point, is_made in tried if point])

    def _predict(self, proposed: Sequence[ProposedMethod], history: SearchHistory) -> tuple[Array, Array]:
        """Return the predicted objectives of children: their screening scores, shifted to the level of full scores."""
        plan = screening_plan(self.session.plan, self.session.data)
        new = self.objectives.table(self.session.screen([p.method for p in proposed]), plan)
        screened = new.select(tuple(method_id(p.method, "screening") for p in proposed))
        # A quarter of the rows has other levels of risk and loss than the whole file. The median difference of earlier
        # candidates corrects it; the ranking among children needs no correction.
        before, after = self._stored_points(history, "screening", plan), self._scored_points(history)
        x, y = screened.x + _shift(before.x, after.x), screened.y + _shift(before.y, after.y)
        return np.clip(x, 0, 1), np.clip(y, 0, 1)

    def _stored_points(self, history: SearchHistory, kind: Kind, plan: Plan) -> ObjectiveTable:
        """Return the objectives of each method from its rows of another kind."""
        ids = tuple(method_id(method, kind) for method in history.methods)
        return self.objectives.table(self.session.study.scores_of(plan, ids), plan).select(ids)

    def _scored_points(self, history: SearchHistory) -> ObjectiveTable:
        """Return the objectives of each method from its scores; for dominated ones, from what was measured until then.

        Such a bound is close enough to count for the shift.
        """
        known = history.table.select(tuple(Candidate(method).id for method in history.methods))
        bounds = self._stored_points(history, "bound", self.session.plan)
        x, y = np.where(np.isnan(known.x), bounds.x, known.x), np.where(np.isnan(known.y), bounds.y, known.y)
        return replace(known, x=x, y=y)


def stop_reason(settings: Search, used: int, areas: Sequence[float], seconds: float) -> str:
    """Return why a search stops; empty: it goes on. The starts are always evaluated.

    used : full evaluations so far. areas : share of the area after each generation. seconds : time since the start.
    """
    if used + (GENERATION_SIZE if used else START_COUNT) > settings.budget:
        return f"the budget of {settings.budget} evaluations is used up"
    if settings.minutes and used and seconds >= 60 * settings.minutes:
        return f"{settings.minutes:g} minutes have passed"
    if len(areas) > PATIENCE_GENERATIONS + 1 and areas[-1] - areas[-1 - PATIENCE_GENERATIONS] < settings.tolerance:
        return f"{PATIENCE_GENERATIONS} generations gained less than {settings.tolerance:g} of the area"
    return ""


def point_of(row: Proposal) -> Point:
    """Return the point of a proposal in the search space; empty where a method of the plan was changed."""
    return tuple(json.loads(row.point))


def _proposal_order(row: Proposal) -> tuple[int, bool, int, str]:
    """Return the sort key of a proposal: by generation, fully evaluated ones first."""
    return row.generation, row.rank == SCREENED_ONLY, row.rank, row.candidate


def _shift(screened: Array, scored: Array) -> float:
    """Return the median difference between full and screening scores; 0 where there are few pairs."""
    both = scored - screened
    both = both[np.isfinite(both)]
    return float(np.median(both)) if len(both) >= MIN_PAIRS_TO_SHIFT else 0.0
