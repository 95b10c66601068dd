"""The best single attack on a file."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Annotated, ClassVar

import numpy as np

from sdcmap.core import Array, Generator, Infeasible, Method, Microdata, Range, SchemaError, Stream, Undefined
from sdcmap.core.estimate import Bound, Estimate, SampledShare, Skipped
from sdcmap.core.formatting import join_names
from sdcmap.core.measure import IsEnough, Measure, StoppedEarly
from sdcmap.core.steps import remove_steps
from sdcmap.kernels.tables.coding import compress
from sdcmap.risk.linkage import cost_models
from sdcmap.risk.linkage.attack import Attack
from sdcmap.risk.linkage.calibrated_attack import Calibrated
from sdcmap.risk.linkage.cost_models import NOBODY, BestSoFar, CostModel, Hits
from sdcmap.risk.linkage.file_pair import DENSE_PAIRS, ROUNDING, LinkTable, Pair
from sdcmap.risk.linkage.household_link import found_as_wholes, homes_of
from sdcmap.risk.linkage.informed_attack import Informed
from sdcmap.risk.linkage.nearest_record import NearestRecord
from sdcmap.risk.linkage.record_linkage import Linkage
from sdcmap.risk.linkage.stated_columns import overlapping

ATTACKS: dict[str, Attack] = {
    "d": Linkage("d"), "l": Linkage("l"), "nearest": NearestRecord("standardized"),
    "mahalanobis": NearestRecord("mahalanobis"), "gower": NearestRecord("gower"), "mixed": NearestRecord("mixed"),
}  # fmt: skip
TOLD = ("informed", "calibrated")  # attacks that know the method
PAIRS = 4_000_000_000  # up to so many pairs every released record is a target
SAMPLE = 2_500  # targets beyond: a standard error of .01 at most
QUICK = 400  # targets of a screening: a standard error of .025 at most, and of .007 where the risk is .02
BEGIN, EACH, PAIR, LINKED_PAIR = 0.1, 3e-6, 1e-9, 3e-9  # seconds: in all; of a value; of two, and where all are targets


@dataclass(frozen=True)
class WorstLinkage(Attack):
    """The share of records re-identified by the linkage attack that works best on this file.

    Nobody knows which attack a snooper will choose, and each sees what others do not: relative differences find what
    noise of a fixed size leaves near, whitened distances find what correlated noise leaves, a reader of the method note
    finds what windows and mixtures leave, and who has learned how reliable each column is finds what a chain of methods
    leaves, and every column left open. So the file is attacked in every way, and the best single attack counts.

    Parameters
    ----------
    method : how the file was made, for the snooper who has read the note; a sweep and a release fill it in.
    targets : how many of the released records, drawn at random, are attacked; 0: all of them up to 4 thousand million
        pairs of records, 2,500 beyond. The draw is the same for every candidate of a study.
    draw : another number, another draw of targets.

    Formula: the largest share of records found. Each released record is linked to the known record that is nearest by
    Linkage "d" and "l", by NearestRecord "standardized" and "mahalanobis" on the numeric variables and "gower" and
    "mixed" where there are keys too, by Informed where the method is known and states a likelihood, and by Calibrated (by a
    shadow of the method, or by true pairs where no method is known); of t that tie the true one is taken with probability
    1/t. A snooper who holds the original records and knows the method asks first that columns which it does not touch are
    equal, and that columns which only its deterministic steps touch are what he gets by doing these steps again. The
    attack that has the true record among its nearest most often is made one-to-one too, unless somebody finds everybody.
    An attack is left as soon as it cannot lead any more, whatever its other targets bring: the value is the same. `parts`
    holds the rate of each, `bounds` an upper bound for each that was left early, and `skipped` the reason of each that
    could not run; `rates` runs all to their end. Where only some records are targets, the value has a standard error, and
    its upper confidence limit is the end of Wilson's interval, simultaneous over the attacks. Where steps of a chain mask
    again what a random step has masked, and state no likelihood with it (a rank swap after noise), the best attack on the
    file before them, drawn anew, bounds what they leave ("the file before RankSwap"). That is never the value, and a
    release is held to it. The record form is the largest calibrated link probability over the
    attacks. "linked" is the least share of records that a one-to-one attack could link (below .99, on large files, rates
    are low by what is not linked).
    Households: where the file has a household number, the attack that leads, Informed and Calibrated compare households
    as wholes too, as in HouseholdLink ("informed, households as wholes"); and who finds one member has found all whose
    number is the same, so that the best attack on persons is counted so too ("informed, then the household"). Links and
    the record form are of persons.
    Missing values: as each attack says. Weights are not used. Releasing nothing leaves a guess: 1/n.
    Reference: Yancey, Winkler, Creecy (2002); the best of several attacks in place of their one.

    Examples
    --------
    >>> WorstLinkage(inclusion=0.1).text
    'WorstLinkage(inclusion=0.1)'
    """

    label: ClassVar[str] = "Re-identified by the best linkage attack"
    description: ClassVar[str] = "Share of records re-identified by whichever linkage attack works best."

    # 7: steps on one variable, and squares; 8: labels are read; 9: ties alike on every machine
    revision: ClassVar[int] = 9
    households: ClassVar[str] = "used: one member found gives the others away"

    method: Method | None = None
    targets: Annotated[int, Range(0)] = 0
    draw: Annotated[int, Range(0)] = 0

    def for_informed_attacker(self, method: Method) -> Measure:
        return replace(self, method=method)

    def cost_ratio(self, few: int, rows: int) -> float:
        return self._wanted(rows, rows) * rows / max(1, self._wanted(few, few) * few)

    def seconds(self, data: Microdata) -> float | None:
        rows, targets = len(data), self._wanted(len(data), len(data))
        pair = PAIR if targets < rows else LINKED_PAIR
        return BEGIN + len(self.variables(data)) * rows * (EACH + pair * targets)

    def resample(self) -> Measure:
        return replace(self, draw=self.draw + 1)

    def screening_variant(self, data: Microdata) -> Measure:
        """Some of the records as targets, and so no attack one to one; who gives a household away is seen in all alone."""
        return self if data.household else replace(self, targets=min(self.targets or QUICK, QUICK))

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        return self._estimated(original, self._siege(original, masked), rng)

    def score_until(self, original: Microdata, masked: Microdata, rng: Generator, enough: IsEnough) -> Estimate:
        def lead(rate: float) -> None:
            if enough(self.inclusion * rate):
                raise StoppedEarly(self.inclusion * rate)

        return self._estimated(original, self._siege(original, masked, tell=lead), rng)

    def _estimated(self, original: Microdata, attack_run: AttackRun, rng: Generator) -> Estimate:
        rates = attack_run.rates
        worst = max(rates, key=lambda name: rates[name])
        parts = {"prosecutor": rates[worst], "linked": attack_run.linked, **rates}
        left_early = attack_run.bounds.items()
        bounds = [Bound(attack=name, estimate=Estimate(value=self.inclusion * rate)) for name, rate in left_early]
        se, share, targets = None, None, len(attack_run.targets)
        if targets < len(attack_run.pair.released):
            left = 1 - targets / len(attack_run.pair.released)  # of the records, those that were no targets
            se = self.inclusion * math.sqrt(left * float(attack_run.found[worst].var()) / targets)
            share = SampledShare(trials=targets, comparisons=len(rates), scale=self.inclusion)
            parts["targets"] = float(targets)
        bounds += self._bounds_before(original, attack_run, rng) if rates[worst] < 1 else []
        skipped = tuple(Skipped(attack=name, reason=reason) for name, reason in attack_run.not_run.items())
        value = self.inclusion * rates[worst]
        return Estimate(value=value, se=se, share=share, parts=parts, bounds=tuple(bounds), skipped=skipped)

    def _bounds_before(self, original: Microdata, attack_run: AttackRun, rng: Generator) -> list[Bound]:
        """What is found in the file before the steps that mask again what others have masked and state no likelihood with
        them: no attack on what they leave of it can expect more, and perhaps none reaches it."""
        if self.method is None or not (steps := overlapping(self.method, attack_run.pair)):
            return []
        name = join_names(list(dict.fromkeys(type(step).__name__ for step in steps)))
        if any(step.needs_original for step in steps):
            attack_run.not_run[f"the file before {name}"] = (
                "it bounds nothing, since a step looks back at the original."
            )
            return []
        method = self.method.with_steps(remove_steps(self.method.steps, steps))
        attack = replace(self, method=method)

        def draw_anew() -> Estimate:
            """The estimate of a file that the method makes with a stream of its own."""
            return attack.score(original, method.apply(original, Stream.of_seed(0, "before", method.digest)), rng)

        try:
            bound = original.remember(("before", attack.digest), draw_anew)
        except (Infeasible, SchemaError, Undefined) as reason:
            attack_run.not_run[f"the file before {name}"] = str(reason)
            return []
        return [Bound(attack=f"the file before {name}", estimate=bound)]

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The largest calibrated link probability over the attacks."""
        tables = self.attacks(original, masked).values()
        return np.asarray(self.inclusion * np.max([table.probability for table in tables], axis=0))

    def linked(self, original: Microdata, masked: Microdata) -> tuple[Pair, LinkTable]:
        """The links of the attack that works best, all records being targets; of equals (to rounding), the first."""
        attack_run = self._siege(original, masked, every=True)
        return attack_run.pair, attack_run.table(attack_run.best)

    def linked_to_some(self, original: Microdata, masked: Microdata, named: Array) -> tuple[Pair, LinkTable, Array]:
        """As `linked`, but only the links to as many known records as there are targets, drawn at random, and to the
        `named` rows of the snooper's file; and the rows of these."""
        attack_run = self._siege(original, masked)
        pair = attack_run.pair
        rng = Stream.of_seed(0, "persons", str(self.draw)).rng()
        drawn = rng.choice(len(pair.known), min(len(attack_run.targets), len(pair.known)), replace=False)
        wanted = np.union1d(drawn, np.flatnonzero(np.isin(pair.known_rows, named)))
        return pair, cost_models.links_to(pair, attack_run.courses[attack_run.best], wanted), pair.known_rows[wanted]

    def draws_targets(self, known: int, released: int) -> bool:
        """Whether only some records of files of these sizes are targets."""
        return self._wanted(known, released) < released

    def rates(self, original: Microdata, masked: Microdata) -> dict[str, float]:
        """The share of records that each attack finds, all of them run to their end."""
        return self._siege(original, masked, every=True, to_the_end=True).rates

    def found_by_any(self, original: Microdata, masked: Microdata) -> float:
        """The share of records that some attack finds, each by its cheapest record or the leading one one-to-one: above
        what any snooper can do, because none knows which of his attacks found the truth. Every attack is run to its end."""
        found = self._siege(original, masked, every=True, to_the_end=True).found
        return float(reduce(np.maximum, found.values()).mean())

    def attacks(self, original: Microdata, masked: Microdata) -> dict[str, LinkTable]:
        """The links of every attack that fits the file, by its name."""
        attack_run = self._siege(original, masked, every=True, to_the_end=True)
        return {name: attack_run.table(name) for name in attack_run.found if name not in attack_run.revealed}

    def _siege(
        self, original: Microdata, masked: Microdata, *, every: bool = False, to_the_end: bool = False,
        tell: Callable[[float], None] = lambda rate: None,
    ) -> AttackRun:  # fmt: skip
        """Every attack on the file, those first that mostly lead; every: all records are targets, whatever it costs;
        to_the_end: no attack is left before; tell: is told after each how many the best has found."""
        pair = self.pair(original, masked, self.check_variables(original))
        targets = np.arange(len(pair.released)) if every else self._targets(pair)
        certain = cost_models.certain_fields(pair, self.method)
        attack_run = AttackRun(pair, targets)
        for name, attack in self._attacks(pair).items():
            try:
                courses = cost_models.asking_first(attack.courses(pair), certain, by_column=attack.by_column)
                attack_run.courses[name] = courses
                attack_run.hits[name] = cost_models.hits(
                    pair, courses, targets, NOBODY if to_the_end else attack_run.lead
                )
                if isinstance(attack, Informed):
                    attack_run.say_what_is_learned(attack.unstated(pair), [pair.names[place] for place in certain])
            except Undefined as reason:
                attack_run.try_links(name, attack, reason)
            tell(attack_run.lead.rate)
        if not attack_run.hits and not attack_run.made:
            raise Undefined(next(iter(attack_run.not_run.values())))
        attack_run.lead_one_to_one()
        tell(attack_run.lead.rate)
        if (home := masked.household) is not None and original.household == home and masked.paired:
            attack_run.compare_households(original, masked)
            attack_run.reveal_households(original, masked, home)
        return attack_run

    def _targets(self, pair: Pair) -> Array:
        """Places of the released records that are targets, in random order: the same people for every candidate."""
        n, m = len(pair.known), len(pair.released)
        rng = Stream.of_seed(0, "targets", str(self.draw)).rng()
        return pair.order_of_targets()[rng.choice(m, self._wanted(n, m), replace=False)]

    def _wanted(self, n: int, m: int) -> int:
        """How many of m released records are targets, where he knows n."""
        return min(m, self.targets or (m if m * n <= PAIRS else SAMPLE))

    def _attacks(self, pair: Pair) -> dict[str, Attack]:
        """The attacks that fit a file with numbers, or of numbers and categories, by name."""
        whitened = () if pair.categorical.all() else ("nearest", "mahalanobis")
        mixed = () if pair.categorical.all() else ("mixed",)
        fitting = (*(("gower", *mixed) if pair.categorical.any() else ()), *whitened, "l", "d")
        told: dict[str, Attack] = dict(zip(TOLD, (Informed(self.method), Calibrated(self.method)), strict=True))
        return told | {name: ATTACKS[name] for name in fitting}


@dataclass
class AttackRun:
    """How the attacks on one file fare, by their names."""

    pair: Pair
    targets: Array
    courses: dict[str, list[CostModel]] = field(default_factory=dict)
    hits: dict[str, Hits] = field(default_factory=dict)
    made: dict[str, LinkTable] = field(default_factory=dict)  # links that were made on the way
    revealed: dict[str, Array] = field(default_factory=dict)  # who is found because a member of the household is
    not_run: dict[str, str] = field(default_factory=dict)

    @property
    def found(self) -> dict[str, Array]:
        """The probability that each target is found, by each attack that was run to its end."""
        rows = self.pair.released_rows[self.targets]
        made = {name: table.found[rows] for name, table in self.made.items()}
        return {name: share.found for name, share in self.hits.items() if share.complete} | made | self.revealed

    @property
    def bounds(self) -> dict[str, float]:
        """What the attacks that were left early could have found at most."""
        return {name: share.rate for name, share in self.hits.items() if not share.complete}

    @property
    def lead(self) -> BestSoFar:
        """What an attack must reach to count."""
        potential = max((share.potential for share in self.hits.values() if share.complete), default=0.0)
        return BestSoFar(max(self.rates.values(), default=0.0), potential)

    @property
    def rates(self) -> dict[str, float]:
        """The share found; its sum is exact, so no order of rows makes one attack better than its equal."""
        return {name: math.fsum(share) / len(share) for name, share in self.found.items()}

    @property
    def best(self) -> str:
        """The attack on persons that works best; of equals (to rounding), the first."""
        rates = {name: rate for name, rate in self.rates.items() if name not in self.revealed}
        worst = max(rates.values())
        return next(name for name, rate in rates.items() if rate >= worst - ROUNDING)

    @property
    def linked(self) -> float:
        """The least share of records that a one-to-one attack could link."""
        return min((table.facts.get("linked", 1.0) for table in self.made.values()), default=1.0)

    def say_what_is_learned(self, unstated: Mapping[str, str], certain: Sequence[str]) -> None:
        """The columns of which the method states no likelihood."""
        for column, reason in unstated.items():
            if column not in certain:
                self.not_run[f"informed on {column}"] = f"{reason.rstrip('.')}; its errors were learned from a shadow."

    def try_links(self, name: str, attack: Attack, reason: Undefined) -> None:
        """An attack that states no costs may make links all the same."""
        try:
            if len(self.pair.known) * len(self.pair.released) > DENSE_PAIRS:
                raise reason
            self.made[name] = attack.link(self.pair)
        except Undefined as problem:
            self.not_run[name] = str(problem)

    def lead_one_to_one(self) -> None:
        """Make the attack one to one that has most of the true records among its best, unless somebody finds everybody."""
        if max(self.rates.values()) >= 1 or not self.hits:
            return
        leader, name = self._leader, f"{self._leader} one-to-one"
        if len(self.targets) < len(self.pair.released):
            self.not_run[name] = "only some of the records were targets."
            return
        try:
            self.made[name] = cost_models.links_one_to_one(self.pair, self.courses[leader])
        except Undefined as problem:
            self.not_run[name] = str(problem)

    @property
    def _leader(self) -> str:
        """The attack that has most of the true records among its best."""
        ended = [name for name, share in self.hits.items() if share.complete]
        return max(ended, key=lambda name: (self.hits[name].potential, self.hits[name].rate))

    def compare_households(self, original: Microdata, masked: Microdata) -> None:
        """The attack that leads, and those that know the method, on households as wholes: a family has no doubles where its
        members have many."""
        if max(self.rates.values()) >= 1 or not self.hits:
            return
        if len(self.targets) < len(self.pair.released):
            self.not_run["households as wholes"] = "only some of the records were targets."
            return
        homes = homes_of(self.pair, original, masked)
        for name in dict.fromkeys((self._leader, *(told for told in TOLD if told in self.courses))):
            found = found_as_wholes(self.pair, *homes, self.courses[name])
            self.revealed[f"{name}, households as wholes"] = found[self.targets]

    def reveal_households(self, original: Microdata, masked: Microdata, name: str) -> None:
        """Of the best attack: who finds one member of a released household (variable `name`) has found all of it."""
        rates = {name: rate for name, rate in self.rates.items() if name not in self.revealed}
        leader = max(rates, key=lambda attack: rates[attack])
        if len(self.targets) < len(self.pair.released):
            self.not_run[f"{leader}, then the household"] = "only some of the records were targets."
            return
        rows = self.pair.released_rows[self.targets]
        owners = rows if masked.origin is None else masked.origin[rows]
        alone = masked.missing(name)[rows] | original.missing(name)[owners]
        own = np.where(alone, np.arange(len(rows)) + 1, 0)  # nobody's number is shared where it is missing
        home = compress([masked.codes(name)[rows], original.codes(name)[owners], own])[0]
        most = np.zeros(int(home.max(initial=0)) + 1)
        np.maximum.at(most, home, self.found[leader])
        self.revealed[f"{leader}, then the household"] = most[home]

    def table(self, name: str) -> LinkTable:
        """The links of one attack."""
        return self.made[name] if name in self.made else cost_models.links_of_cheapest(self.pair, self.courses[name])
