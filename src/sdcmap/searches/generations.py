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
from sdcmap.searches.objective_space import Plane, Table
from sdcmap.searches.search_proposals import Lessons, Parent, Proposed, children, starts
from sdcmap.searches.space import Point, Space
from sdcmap.study.jobs import Kind
from sdcmap.study.plan import Candidate, Plan
from sdcmap.study.progress import Watch
from sdcmap.study.search_settings import STARTS, Proposal, Search

SIZE = 8  # candidates of a generation after the starts
CHILDREN = 24  # that are screened for it
PARENTS = 12
PATIENCE = 5  # generations that together must gain more than the tolerance
PAIRS = 5  # candidates that are screened and scored, before screenings are moved to where scores lie
NOT_CHOSEN = -1  # the place of a child that was screened alone


def lineage(plan: Plan, settings: Search) -> str:
    """Twelve digits of all that decides what a search proposes, but for seed and data."""
    facts = [
        [method.digest for method in plan.expanded], [measure.digest for measure in plan.measures], plan.replicates,
        plan.risk, plan.utility, dict(plan.limits),
        plan.rule.digest if plan.rule else "", settings.what, SIZE, CHILDREN, STARTS,
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=list).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Growth:
    """What a search has proposed so far, the share of the area that is dominated after each generation, the plan's own
    candidates first, and where all of them lie in the plane."""

    proposals: tuple[Proposal, ...] = field(repr=False)
    areas: tuple[float, ...]
    table: Table = field(repr=False)
    stopped: str = ""

    @cached_property
    def chosen(self) -> tuple[Proposal, ...]:
        """Those that were made of all rows, in the order of proposal."""
        return tuple(row for row in self.proposals if row.place != NOT_CHOSEN)

    @cached_property
    def methods(self) -> tuple[Method, ...]:
        return tuple(row.decoded for row in self.chosen)

    @property
    def generations(self) -> int:
        return max((row.generation for row in self.proposals), default=0)

    @property
    def front(self) -> tuple[Array, Array]:
        """Where everything lies that keeps the constraints."""
        return self.table.x[self.table.sound], self.table.y[self.table.sound]


@dataclass(frozen=True)
class Grower:
    """All that a generation is grown from."""

    shop: SearchSession
    space: Space
    plane: Plane
    settings: Search

    @cached_property
    def search(self) -> str:
        return lineage(self.shop.plan, self.settings)

    def grow(self, watch: Watch) -> Growth:
        """Generations until the search stops; what an earlier run proposed is taken up."""
        began = time.monotonic()
        stored = map(Proposal._make, self.shop.study.database.rows("proposal"))
        kept = sorted((row for row in stored if row.search == self.search), key=_order)
        growth = self._grown((), ())
        while not (reason := self._reason(growth, began)):
            number = growth.generations + 1
            rows = [row for row in kept if row.generation == number] or self._proposed(number, growth)
            chosen = [row.decoded for row in rows if row.place != NOT_CHOSEN]
            if not chosen:
                reason = "nothing new was left to try"
                break
            self.shop.evaluate(chosen, self.plane.halt(growth.table))
            growth = self._grown((*growth.proposals, *rows), growth.areas)
            watch(len(growth.chosen), self.settings.budget, growth.areas[-1])
        return replace(growth, stopped=reason)

    def _grown(self, proposals: tuple[Proposal, ...], areas: tuple[float, ...]) -> Growth:
        """After one generation more, all of which is scored."""
        methods = [row.decoded for row in proposals if row.place != NOT_CHOSEN]
        growth = Growth(proposals, areas, self.plane.table(self.shop.scores(methods), self.shop.plan))
        return replace(growth, areas=(*areas, hypervolume(*growth.front)))

    # ---- when to stop -------------------------------------------------------------------------------------------
    def _reason(self, growth: Growth, began: float) -> str:
        """Why the search stops here; empty: it goes on."""
        used = len(growth.chosen)
        if growth.generations == 1 and not self._any_made(growth):
            return f"none of {used} could be made and scored: {self._why(growth)}"
        return stop_reason(self.settings, used, growth.areas, time.monotonic() - began)

    def _any_made(self, growth: Growth) -> bool:
        """Whether a candidate could be made and scored; one that was left as beaten could."""
        ids, done = {Candidate(method).id for method in growth.methods}, self.shop.study.done()
        return not ids.isdisjoint(growth.table.ids) or any(method_id(m, "bound") in done for m in growth.methods)

    def _why(self, growth: Growth) -> str:
        """The reason that was given most often."""
        scores = self.shop.scores(growth.methods)
        counts = Counter(filter(None, [*scores.candidate["reason"], *scores.score["reason"]]))
        return min(counts, key=lambda reason: (-counts[reason], reason), default="no reason was given.")

    # ---- what to propose ----------------------------------------------------------------------------------------
    def _proposed(self, number: int, growth: Growth) -> list[Proposal]:
        """The proposals of a generation, screened, chosen and stored."""
        stream = Stream.of_seed(self.shop.plan.seed, "search", self.search, f"generation {number}")
        taken = frozenset(m.digest for m in (*self.shop.plan.expanded, *(row.decoded for row in growth.proposals)))
        if number == 1:
            proposed = starts(self.space, STARTS, stream.rng(), taken)
            self.shop.screen([p.method for p in proposed])
            order = list(range(len(proposed)))
        else:
            parents, lessons = self._parents(growth), self._lessons(growth)
            proposed = children(self.space, parents, lessons, CHILDREN, stream.rng(), taken)
            order = picked(*self._predicted(proposed, growth), SIZE, growth.front)
        places = {place: rank for rank, place in enumerate(order)}
        rows = [self._row(p, number, places.get(at, NOT_CHOSEN)) for at, p in enumerate(proposed)]
        rows.sort(key=_order)
        self.shop.study.propose(rows)
        return rows

    def _row(self, proposed: Proposed, number: int, place: int) -> Proposal:
        facts = map(json.dumps, (proposed.method.spec(), proposed.parents, proposed.point))
        return Proposal(self.search, Candidate(proposed.method).id, number, place, *facts)

    def _parents(self, growth: Growth) -> list[Parent]:
        """What is best so far: the candidates that make up most of the area, the plan's own among them."""
        known: dict[str, Parent] = {row.candidate: (row.candidate, row.decoded, point_of(row)) for row in growth.chosen}
        known |= {c.id: (c.id, c.method, ()) for c in self.shop.plan.candidates}
        best = growth.table.pick(np.flatnonzero(growth.table.sound), PARENTS)
        return [known[growth.table.ids[row]] for row in best]

    def _lessons(self, growth: Growth) -> Lessons:
        """Which options could be made, by the screenings of everything proposed so far."""
        made = {name for name, (status, _) in self.shop.study.done().items() if status == "ok"}
        tried = [(point_of(row), method_id(row.decoded, "screening") in made) for row in growth.proposals]
        return Lessons.of(self.space, [(point, is_made) for point, is_made in tried if point])

    def _predicted(self, proposed: Sequence[Proposed], growth: Growth) -> tuple[Array, Array]:
        """Where the children would lie: their screenings, moved by what lay between screening and score before."""
        plan = screening_plan(self.shop.plan, self.shop.data)
        new = self.plane.table(self.shop.screen([p.method for p in proposed]), plan)
        at = new.among(tuple(method_id(p.method, "screening") for p in proposed))
        before, after = self._stored_places(growth, "screening", plan), self._scored(growth)
        return np.clip(at.x + _shift(before.x, after.x), 0, 1), np.clip(at.y + _shift(before.y, after.y), 0, 1)

    def _stored_places(self, growth: Growth, kind: Kind, plan: Plan) -> Table:
        """Where each method lies by its rows of another kind."""
        ids = tuple(method_id(method, kind) for method in growth.methods)
        return self.plane.table(self.shop.study.scores_of(plan, ids), plan).among(ids)

    def _scored(self, growth: Growth) -> Table:
        """Where each method lies by its scores; those that were left as beaten by what was measured until then, which is
        not so far from it as to lie nowhere."""
        known = growth.table.among(tuple(Candidate(method).id for method in growth.methods))
        left = self._stored_places(growth, "bound", self.shop.plan)
        x, y = np.where(np.isnan(known.x), left.x, known.x), np.where(np.isnan(known.y), left.y, known.y)
        return replace(known, x=x, y=y)


def stop_reason(settings: Search, used: int, areas: Sequence[float], seconds: float) -> str:
    """Why a search stops after so many evaluations and seconds, with this share of the area after each generation; empty:
    it goes on. The starts are always made."""
    if used + (SIZE if used else STARTS) > settings.budget:
        return f"the budget of {settings.budget} evaluations is used up"
    if settings.minutes and used and seconds >= 60 * settings.minutes:
        return f"{settings.minutes:g} minutes have passed"
    if len(areas) > PATIENCE + 1 and areas[-1] - areas[-1 - PATIENCE] < settings.tolerance:
        return f"{PATIENCE} generations gained less than {settings.tolerance:g} of the area"
    return ""


def point_of(row: Proposal) -> Point:
    """The place of a proposal in the space; empty where a method of the plan was changed."""
    return tuple(json.loads(row.point))


def _order(row: Proposal) -> tuple[int, bool, int, str]:
    """The order of proposal; of a generation those that were chosen come first."""
    return row.generation, row.place == NOT_CHOSEN, row.place, row.candidate


def _shift(screened: Array, scored: Array) -> float:
    """The median of what scores lie beyond screenings; 0 of few."""
    both = scored - screened
    both = both[np.isfinite(both)]
    return float(np.median(both)) if len(both) >= PAIRS else 0.0
