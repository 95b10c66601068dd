"""The best single linkage attack on a file."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Annotated, ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Generator, Infeasible, Method, Microdata, Range, SchemaError, Stream, Undefined
from sdcmap.core.estimate import Bound, Estimate, SampledShare, Skipped
from sdcmap.core.formatting import join_names
from sdcmap.core.measure import IsEnough, Measure, StoppedEarly
from sdcmap.core.steps import remove_steps
from sdcmap.kernels.tables.attribution import share_standard_error
from sdcmap.kernels.tables.coding import compress
from sdcmap.risk.individual_risk import household_numbers
from sdcmap.risk.linkage.attack import Attack, archive_parts
from sdcmap.risk.linkage.calibrated_attack import Calibrated
from sdcmap.risk.linkage.cell_pairs import (
    CellPairs,
    OneToOneLinks,
    attack_cells,
    cell_costs,
    find_cell_pairs,
    link_cells_one_to_one,
)
from sdcmap.risk.linkage.cost_models import (
    NO_RESULT,
    BestSoFar,
    CostModel,
    Hits,
    attack_persons,
    attack_targets,
    find_certain_fields,
    find_open_fields,
    link_one_to_one_by_cost,
    link_to_cheapest,
    link_to_known,
    require_equality,
)
from sdcmap.risk.linkage.field_costs import Cost
from sdcmap.risk.linkage.file_pair import (
    MAX_DENSE_PAIRS,
    SHARE_TOLERANCE,
    LinkTable,
    Pair,
    linked_share,
    mean_over_equals,
    one_to_one_table,
    true_shares,
)
from sdcmap.risk.linkage.household_link import find_households, match_whole_households
from sdcmap.risk.linkage.informed_attack import Informed
from sdcmap.risk.linkage.nearest_record import NearestRecord
from sdcmap.risk.linkage.record_linkage import Linkage
from sdcmap.risk.linkage.stated_columns import find_overlapping_steps

ATTACKS: dict[str, Attack] = {
    "unit-free d": Linkage("unit-free d"), "unit-free l": Linkage("unit-free l"), "nearest": NearestRecord("standardized"),
    "mahalanobis": NearestRecord("mahalanobis"), "gower": NearestRecord("gower"), "mixed": NearestRecord("mixed"),
}  # fmt: skip
MAX_PAIRS_EVERY_ATTACK = 25_000_000  # pairs of records; in larger files only the leading attack is run one-to-one
MAX_PAIRS_BESIDE_SAMPLE = 2_500_000_000  # pairs; up to here it is run one-to-one although only a sample is attacked
FEW_CANDIDATES = 100  # per released record, on average; up to here every attack is also run one-to-one
METHOD_AWARE_ATTACKS = ("informed", "calibrated")  # attacks that know the method
MAX_PAIRS_ALL_TARGETS = 4_000_000_000  # pairs; up to here every released record is a target
MAX_PAIRS_ARCHIVE = 400_000_000  # pairs of targets in an archive and released records; up to here all are attacked
SAMPLED_TARGETS = 2_500  # targets of larger files; the standard error is at most 0.01
SCREENING_TARGETS = 400  # targets of a screening; the standard error is at most 0.025, and 0.007 for a risk of 0.02
# Estimated run time; pairs take longer where all records are targets and are linked one to one.
SECONDS_TO_START, SECONDS_PER_VALUE = 0.1, 3e-6
SECONDS_PER_PAIR, SECONDS_PER_LINKED_PAIR = 1e-9, 3e-9


@dataclass(frozen=True)
class WorstLinkage(Attack):
    """The share of records re-identified by the linkage attack that works best on this file.

    It is not known which attack will be used, and each sees what others miss: relative differences see through noise
    of a fixed size, whitened distances through correlated noise, a reader of the method note through rank windows and
    mixtures, an attacker who has learned how reliable each column is through chains. So the file is attacked in every
    way, and the best single attack counts.

    Parameters
    ----------
    method : how the file was made, for an attacker who has read the method note; a sweep and a release fill it in.
    targets : number of targets, drawn at random, that are attacked; 0: all of them up to 4,000 million pairs of
        records (400 million with an archive), 2,500 beyond. Households are drawn as wholes. The draw is the same for
        every candidate of a study.
    draw : another number draws other targets.
    one_to_one : the attacks that are also run one-to-one. "leading": every attack up to 25 million pairs of records, and
        where the unchanged columns leave at most 100 candidates per record; else the attack that most often has the
        true record among its cheapest, with sampled targets up to 2,500 million pairs. "every": every attack in any
        case. "none": no attack. Beyond two million pairs each record is linked to one of its 50 best candidates; the
        best attack is then also run over all pairs.

    Formula: the largest share of re-identified records over Linkage "unit-free d" and "unit-free l"; NearestRecord
    "standardized" and "mahalanobis" on the numeric variables, "gower" and "mixed" where there are keys too; Informed
    where the method states a likelihood; and Calibrated. None depends on the units of the variables. Each links a
    released record to its nearest known one; of t that tie, each is taken with probability 1/t. An attacker with the
    original records first requires equality of columns that were released unchanged for all records; one who knows the
    method, also of columns that replaying its deterministic steps predicts. The attacks of `one_to_one` are also run
    one-to-one. An attack that cannot lead any more is stopped, which does not change the value. `parts` has the rate of
    each attack, `bounds` upper bounds of those stopped, `skipped` the reason of each that could not run. With sampled
    targets the value has a standard error, and Wilson's upper limit holds simultaneously over the attacks.
    Steps of a chain without a joint likelihood (a rank swap after noise) are bounded by the best attack on a new draw
    of the file before them ("the file before RankSwap"); a release must keep its limit for this bound too. "linked":
    the least share of records that a one-to-one attack could link.
    Households: if the file has a household number, the leading attack, Informed and Calibrated also compare whole
    households ("informed, households as wholes"), and a re-identified person re-identifies the whole household
    ("informed, then the household"). Links and the record form, the largest calibrated link probability over the
    attacks, are of persons.
    Missing values: as in each attack. Weights are not used. Releasing nothing leaves a guess: 1/n.
    Reference: Yancey, Winkler, Creecy (2002); the best of several attacks in place of their one.

    Examples
    --------
    >>> WorstLinkage(inclusion=0.1).text
    'WorstLinkage(inclusion=0.1)'
    """

    label: ClassVar[str] = "Re-identified by the best linkage attack"
    description: ClassVar[str] = "Share of records re-identified by whichever linkage attack works best."

    # 11: unchanged columns must be equal also for an attacker who does not know the method, and attacks within cells are
    # all run one-to-one; 12: an order that does not depend on the codes of categories; 13: every attack one-to-one in
    # files of up to 25 million pairs; 14: sampled targets are whole households, with the leading attack one-to-one
    revision: ClassVar[int] = 14
    households: ClassVar[str] = "used: a re-identified member re-identifies the household"

    method: Method | None = None
    targets: Annotated[int, Range(0)] = 0
    draw: Annotated[int, Range(0)] = 0
    one_to_one: Literal["leading", "every", "none"] = field(default="leading", kw_only=True)

    def for_informed_attacker(self, method: Method) -> Measure:
        return replace(self, method=method)

    def cost_ratio(self, few: int, rows: int) -> float:
        return self._target_count(rows, rows) * rows / max(1, self._target_count(few, few) * few)

    def seconds(self, data: Microdata) -> float | None:
        rows, targets = len(data), self._target_count(len(data), len(data))
        if targets == rows:
            per_record = SECONDS_PER_LINKED_PAIR * targets
        else:
            is_linked = self.one_to_one != "none" and rows * rows <= MAX_PAIRS_BESIDE_SAMPLE
            per_record = SECONDS_PER_PAIR * (targets + (rows if is_linked else 0))
        return SECONDS_TO_START + len(self.variables(data)) * rows * (SECONDS_PER_VALUE + per_record)

    def resample(self) -> Measure:
        return replace(self, draw=self.draw + 1)

    def error_at_baseline(self, data: Microdata, rows: int | None = None) -> float | None:
        """Return the error of a sample in which nobody is re-identified; 0 if everybody is attacked."""
        rows = rows or len(data)
        targets = self._target_count(rows, rows)
        if targets >= rows:
            return 0.0
        return self.inclusion * share_standard_error(0.0, targets) * math.sqrt(1 - targets / rows)

    def screening_variant(self, data: Microdata) -> Measure:
        """Return the measure with fewer targets, and so without one-to-one attacks.

        A file with households is screened in full, because one member re-identifies the others.
        """
        if data.household:
            return self
        return replace(self, targets=min(self.targets or SCREENING_TARGETS, SCREENING_TARGETS), one_to_one="none")

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        return self._estimate(original, self._run_attacks(original, masked), rng)

    def score_until(self, original: Microdata, masked: Microdata, rng: Generator, enough: IsEnough) -> Estimate:
        def stop_if_enough(rate: float) -> None:
            if enough(self.inclusion * rate):
                raise StoppedEarly(self.inclusion * rate)

        return self._estimate(original, self._run_attacks(original, masked, report_rate=stop_if_enough), rng)

    def _estimate(self, original: Microdata, attack_run: AttackRun, rng: Generator) -> Estimate:
        """Return the estimate with the parts, bounds and skipped attacks of a run."""
        rates = attack_run.rates
        worst = max(rates, key=lambda name: rates[name])
        parts = {"prosecutor": rates[worst], "linked": attack_run.linked_share, **rates}
        stopped = attack_run.bounds.items()
        bounds = [Bound(attack=name, estimate=Estimate(value=self.inclusion * rate)) for name, rate in stopped]
        se, share, targets = None, None, len(attack_run.targets)
        if attack_run.is_sample:
            # Targets are drawn without replacement, so the finite population correction applies.
            correction = 1 - targets / len(attack_run.pair.targets)
            units = attack_run.units_of_targets
            errors = np.bincount(units, attack_run.correct[worst] - rates[worst])
            se = self.inclusion * math.sqrt(correction * float((errors**2).sum())) / targets
            # Members of a household are re-identified together, so a household counts as one trial.
            share = SampledShare(trials=len(errors), comparisons=len(rates), scale=self.inclusion)
            parts["targets"] = float(targets)
        if self.archive:
            true_links = rates[worst] * len(attack_run.pair.targets)
            parts |= archive_parts(attack_run.pair, true_links, attack_run.link_count(worst))
        bounds += self._bounds_before(original, attack_run, rng) if rates[worst] < 1 else []
        skipped = tuple(Skipped(attack=name, reason=reason) for name, reason in attack_run.not_run.items())
        value = self.inclusion * rates[worst]
        return Estimate(value=value, se=se, share=share, parts=parts, bounds=tuple(bounds), skipped=skipped)

    def _bounds_before(self, original: Microdata, attack_run: AttackRun, rng: Generator) -> list[Bound]:
        """Return the risk of the file before steps that mask again what others have masked, without a joint
        likelihood.

        A step that draws only from that file cannot increase what an attack can expect to re-identify, so this is an
        upper bound; perhaps no attack reaches it.
        """
        if self.method is None or not (steps := find_overlapping_steps(self.method, attack_run.pair)):
            return []
        name = join_names(list(dict.fromkeys(type(step).__name__ for step in steps)))
        if any(step.needs_original for step in steps):
            reason = "it is no upper bound, because a step reads the original file."
            attack_run.not_run[f"the file before {name}"] = reason
            return []
        method = self.method.with_steps(remove_steps(self.method.steps, steps))
        attack = replace(self, method=method)

        def score_new_draw() -> Estimate:
            return attack.score(original, method.apply(original, Stream.of_seed(0, "before", method.digest)), rng)

        try:
            bound = original.remember(("before", attack.digest), score_new_draw)
        except (Infeasible, SchemaError, Undefined) as problem:
            attack_run.not_run[f"the file before {name}"] = str(problem)
            return []
        return [Bound(attack=f"the file before {name}", estimate=bound)]

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """Return the largest calibrated link probability of each record over the attacks."""
        tables = self.attacks(original, masked).values()
        return np.asarray(self.inclusion * np.max([table.probability for table in tables], axis=0))

    def link_files(self, original: Microdata, masked: Microdata) -> tuple[Pair, LinkTable]:
        """Return the links of the best attack, with all records as targets; of equally good attacks, the first."""
        attack_run = self._run_attacks(original, masked, all_targets=True)
        return attack_run.pair, attack_run.table(attack_run.best)

    def link_sample(self, original: Microdata, masked: Microdata, named: Array) -> tuple[Pair, LinkTable, Array]:
        """Return the links of the best attack to a sample of known records, and the rows of these.

        The sample has as many known records as there are targets, drawn at random, and the `named` rows of the
        attacker's file.
        """
        attack_run = replace(self, one_to_one="none")._run_attacks(original, masked)
        pair = attack_run.pair
        rng = Stream.of_seed(0, "persons", str(self.draw)).rng()
        drawn = rng.choice(len(pair.known), min(len(attack_run.targets), len(pair.known)), replace=False)
        known = np.union1d(drawn, np.flatnonzero(np.isin(pair.known_rows, named)))
        table = link_to_known(pair, attack_run.cost_models[attack_run.best], known)
        return pair, table, pair.known_rows[known]

    def draws_targets(self, known: int, released: int) -> bool:
        """Return whether only some records of files of these sizes are targets."""
        return self._target_count(known, released) < released

    def rates(self, original: Microdata, masked: Microdata) -> dict[str, float]:
        """Return the share of records that each attack re-identifies, all of them run to the end."""
        return self._run_attacks(original, masked, all_targets=True, to_the_end=True).rates

    def union_rate(self, original: Microdata, masked: Microdata) -> float:
        """Return the share of records that at least one attack re-identifies.

        No attacker can do as well, because they do not know which of their attacks is right for a record. Every attack
        is run to the end.
        """
        correct = self._run_attacks(original, masked, all_targets=True, to_the_end=True).correct
        return float(reduce(np.maximum, correct.values()).mean())

    def attacks(self, original: Microdata, masked: Microdata) -> dict[str, LinkTable]:
        """Return the links of every attack that fits the file, by name."""
        attack_run = self._run_attacks(original, masked, all_targets=True, to_the_end=True)
        return {name: attack_run.table(name) for name in attack_run.correct if name not in attack_run.household_hits}

    def _run_attacks(
        self,
        original: Microdata,
        masked: Microdata,
        *,
        all_targets: bool = False,
        to_the_end: bool = False,
        report_rate: Callable[[float], None] = lambda rate: None,
    ) -> AttackRun:
        """Run every attack on the file, those first that most often lead.

        Parameters
        ----------
        all_targets : attack all records, even where the file is large
        to_the_end : stop no attack early
        report_rate : called after each attack with the best rate so far
        """
        pair = self.pair(original, masked, self.check_variables(original))
        units = None if original.household is None else original.view(household_numbers, original.household)
        targets = pair.targets if all_targets else self._draw_targets(pair, units)
        # Columns that no record changed are required to be equal, as single attacks do (NearestRecord, Linkage).
        certain = find_open_fields(pair) | find_certain_fields(pair, self.method)
        released = targets if len(targets) < len(pair.targets) else np.arange(len(pair.released))
        attack_run = AttackRun(pair, targets, certain, find_cell_pairs(pair, certain, released), units)
        for name, attack in self._attacks(pair).items():
            try:
                models = require_equality(attack.cost_models(pair), certain, has_column_costs=attack.has_column_costs)
                attack_run.run_attack(name, models, to_the_end=to_the_end)
                if isinstance(attack, Informed):
                    attack_run.note_unstated_columns(
                        attack.unstated_columns(pair), [pair.names[index] for index in certain]
                    )
            except Undefined as reason:
                attack_run.try_links(name, attack, reason)
            report_rate(attack_run.best_so_far.rate)
        # If no attack could run, the first reason is that of the whole measure.
        if not attack_run.hits and not attack_run.link_tables:
            raise Undefined(next(iter(attack_run.not_run.values())))
        if self.one_to_one != "none":
            attack_run.run_one_to_one(every=self.one_to_one == "every", report_rate=report_rate)
        if (household := masked.household) is not None and original.household == household and masked.paired:
            if pair.holds_originals:
                attack_run.compare_households(original, masked)
            else:
                attack_run.not_run["households as wholes"] = "the attacker's own file lists persons, not households."
            attack_run.reveal_households(original, masked, household)
        return attack_run

    def _draw_targets(self, pair: Pair, units: Array | None) -> Array:
        """Return the positions of the targets to attack in random order; they are the same people for every candidate.

        units : the household of each original record. Households are drawn as wholes, so that attacks on them are complete.
        """
        m = len(pair.targets)
        count = self._target_count(len(pair.known), m)
        if not pair.holds_originals and not self.targets and m * len(pair.released) > MAX_PAIRS_ARCHIVE:
            count = min(m, SAMPLED_TARGETS)
        rng, ordered = Stream.of_seed(0, "targets", str(self.draw)).rng(), pair.order_of_targets()
        if units is None or not pair.holds_originals or count == m:
            return ordered[rng.choice(m, count, replace=False)]
        own = np.unique(units[pair.known_rows[pair.truth[ordered]]], return_inverse=True)[1]
        place = rng.permutation(own.max() + 1)[own]  # of the household of each target, in a random order
        in_turn = np.argsort(place, kind="stable")
        last = place[in_turn[count - 1]]  # the household of the last target is complete
        return np.asarray(ordered[in_turn[place[in_turn] <= last]])

    def _target_count(self, n: int, m: int) -> int:
        """Return how many of m targets are attacked by an attacker who knows n records."""
        return min(m, self.targets or (m if m * n <= MAX_PAIRS_ALL_TARGETS else SAMPLED_TARGETS))

    def _attacks(self, pair: Pair) -> dict[str, Attack]:
        """Return the attacks that fit the kinds of columns in the file, by name."""
        whitened = () if pair.categorical.all() else ("nearest", "mahalanobis")
        mixed = () if pair.categorical.all() else ("mixed",)
        fitting = (*(("gower", *mixed) if pair.categorical.any() else ()), *whitened, "unit-free l", "unit-free d")
        aware: dict[str, Attack] = {"informed": Informed(self.method), "calibrated": Calibrated(self.method)}
        return aware | {name: ATTACKS[name] for name in fitting}


@dataclass
class AttackRun:
    """The results of the attacks on one file, by attack name."""

    pair: Pair
    targets: Array
    certain: Mapping[int, Cost] = field(default_factory=dict)  # equality of columns that the attacker is certain about
    cells: CellPairs | None = None  # the pairs that agree on these columns, if they are few enough to list
    units: Array | None = None  # the household of each original record
    cost_models: dict[str, list[CostModel]] = field(default_factory=dict)
    hits: dict[str, Hits] = field(default_factory=dict)
    link_tables: dict[str, LinkTable] = field(default_factory=dict)  # of attacks that have been linked already
    cell_links: dict[str, OneToOneLinks] = field(default_factory=dict)  # one-to-one links within cells
    household_hits: dict[str, Array] = field(
        default_factory=dict
    )  # probability of each target, by way of its household
    not_run: dict[str, str] = field(default_factory=dict)  # reasons of attacks that could not run
    _cell_costs: dict[str, Array] = field(default_factory=dict)
    _rates: dict[str, float] = field(default_factory=dict)

    def run_attack(self, name: str, models: list[CostModel], *, to_the_end: bool) -> None:
        """Link each target to its cheapest known record; with an archive, name a record for each person.

        to_the_end : do not stop the attack when it cannot lead any more
        """
        self.cost_models[name] = models
        if self.cells is not None:
            costs = cell_costs(self.cells, models, self.certain)
            self.hits[name] = attack_cells(self.cells, costs, self.targets)
            if self._has_few_candidates:
                self._cell_costs[name] = costs
        elif self.pair.holds_originals:
            lead = NO_RESULT if to_the_end else self.best_so_far
            self.hits[name] = attack_targets(self.pair, models, self.targets, lead)
        else:
            self.hits[name] = attack_persons(self.pair, models, self.targets)

    @property
    def correct(self) -> dict[str, Array]:
        """Return the probability that each target is re-identified, for each attack that ran to the end."""
        by_cost = {name: hits.correct for name, hits in self.hits.items() if hits.complete}
        by_links = {name: self._by_target(table.correct) for name, table in self.link_tables.items()}
        by_cells = {name: self._by_target(self._cell_shares(links)) for name, links in self.cell_links.items()}
        return by_cost | by_links | by_cells | self.household_hits

    def _by_target(self, correct: Array) -> Array:
        """Return what holds for each row of the released file as one number for each target."""
        return self.pair.average_over_targets(correct)[self.targets]

    def _cell_shares(self, links: OneToOneLinks) -> Array:
        """Return the probability that the link of each row of the released file is true."""
        shares = true_shares(self.pair, links.released, links.known)
        return mean_over_equals(self.pair, links.released, shares)

    @property
    def bounds(self) -> dict[str, float]:
        """Return upper bounds for the rates of the attacks that were stopped early."""
        return {name: hits.rate for name, hits in self.hits.items() if not hits.complete}

    @property
    def best_so_far(self) -> BestSoFar:
        """Return what an attack must reach to be continued."""
        potential = max((hits.potential for hits in self.hits.values() if hits.complete), default=0.0)
        return BestSoFar(max(self.rates.values(), default=0.0), potential)

    @property
    def rates(self) -> dict[str, float]:
        """Return the share of re-identified targets, summed exactly, so that the order of rows cannot break a tie
        between attacks.
        """
        complete = {name for name, hits in self.hits.items() if hits.complete}
        names = complete | self.link_tables.keys() | self.cell_links.keys() | self.household_hits.keys()
        if names - self._rates.keys():
            shares = self.correct
            self._rates = {
                name: self._rates[name] if name in self._rates else math.fsum(share) / len(share)
                for name, share in shares.items()
            }
        return self._rates

    @property
    def best(self) -> str:
        """Return the best attack on persons; of equally good attacks, the first."""
        rates = {name: rate for name, rate in self.rates.items() if name not in self.household_hits}
        highest = max(rates.values())
        return next(name for name, rate in rates.items() if rate >= highest - SHARE_TOLERANCE)

    @property
    def units_of_targets(self) -> Array:
        """Return which targets were drawn together, as numbers from 0: the members of a household, or each one alone."""
        if self.units is None or not self.pair.holds_originals:
            return np.arange(len(self.targets))
        return np.unique(self.units[self.pair.known_rows[self.pair.truth[self.targets]]], return_inverse=True)[1]

    @property
    def is_sample(self) -> bool:
        """Return whether only some of the targets were attacked."""
        return len(self.targets) < len(self.pair.targets)

    def link_count(self, name: str) -> int:
        """Return how many links an attacker with an archive claims: one for each person, or those made one-to-one."""
        return self.link_tables[name].link_count if name in self.link_tables else len(self.pair.known)

    @property
    def linked_share(self) -> float:
        """Return the least share of records that a one-to-one attack could link."""
        shares = [table.facts.get("linked", 1.0) for table in self.link_tables.values()]
        shares += [linked_share(self.pair, links.released) for links in self.cell_links.values()]
        return min(shares, default=1.0)

    def note_unstated_columns(self, unstated: Mapping[str, str], certain: Sequence[str]) -> None:
        """Note the columns without a stated likelihood, for the list of what was not run."""
        for column, reason in unstated.items():
            if column not in certain:
                self.not_run[f"informed on {column}"] = f"{reason.rstrip('.')}; its errors were learned from a shadow."

    def try_links(self, name: str, attack: Attack, reason: Undefined) -> None:
        """Link with an attack that states no costs, if the file is small enough."""
        try:
            if len(self.pair.known) * len(self.pair.released) > MAX_DENSE_PAIRS:
                raise reason
            self.link_tables[name] = attack.link(self.pair)
        except Undefined as problem:
            self.not_run[name] = str(problem)

    def run_one_to_one(self, *, every: bool, report_rate: Callable[[float], None]) -> None:
        """Run attacks one-to-one, unless an attack already re-identifies every record: all of them, or the leading one.

        Parameters
        ----------
        every : run all attacks in any case
        report_rate : called after each attack with the best rate so far
        """
        if max(self.rates.values()) >= 1 or not self.hits:
            return
        leaders, pairs = self._leaders, len(self.pair.known) * len(self.pair.released)
        if self.is_sample:
            # The cells of a sample lack the other records, which compete for the same known ones.
            if pairs > MAX_PAIRS_BESIDE_SAMPLE:
                self.not_run[f"{leaders[0]} one-to-one"] = "only a sample of the records was attacked."
            else:
                self._link_one_to_one(leaders[0], widen=False)
        elif self._has_few_candidates:
            self._link_cells([leaders[0], *(name for name in self.cost_models if name != leaders[0])])
        elif every or pairs <= MAX_PAIRS_EVERY_ATTACK:
            self._link_every_attack(report_rate)
        else:
            self._link_one_to_one(leaders[0])
        report_rate(self.best_so_far.rate)

    @property
    def _has_few_candidates(self) -> bool:
        """Return whether the certain columns leave so few candidates that all of them can be linked one-to-one."""
        limit = FEW_CANDIDATES * len(self.pair.released)
        return self.cells is not None and len(self.cells.known) <= limit

    def _link_cells(self, names: Sequence[str]) -> None:
        """Run these attacks one-to-one within cells, each from the prices of the one before."""
        matching = None
        for name in names:
            assert self.cells is not None
            links = link_cells_one_to_one(self.cells, self._cell_costs[name], len(self.pair.known), matching)
            self.cell_links[f"{name} one-to-one"], matching = links, links.matching

    def _link_every_attack(self, report_rate: Callable[[float], None]) -> None:
        """Run every attack one-to-one among the best candidates of each record, and the best of them over all pairs."""
        for name in self.cost_models:
            self._link_one_to_one(name, widen=False)
            report_rate(self.best_so_far.rate)
        rates = {name: self.rates.get(f"{name} one-to-one", -1.0) for name in self.cost_models}
        self._link_one_to_one(max(rates, key=lambda name: rates[name]))

    def _link_one_to_one(self, name: str, *, widen: bool = True) -> None:
        """Run one attack one-to-one, if the sizes of the files allow it; of two runs, the one that finds more counts."""
        title = f"{name} one-to-one"
        try:
            table = link_one_to_one_by_cost(self.pair, self.cost_models[name], widen=widen)
        except Undefined as problem:
            self.not_run[title] = str(problem)
            return
        if title not in self.link_tables or table.true_links > self.link_tables[title].true_links:
            self.link_tables[title] = table
            self._rates.pop(title, None)

    @property
    def _leaders(self) -> list[str]:
        """Return the attacks that ran to the end; first those that most often have the true record among their cheapest."""
        complete = [name for name, hits in self.hits.items() if hits.complete]
        return sorted(complete, key=lambda name: (-self.hits[name].potential, -self.hits[name].rate))

    def compare_households(self, original: Microdata, masked: Microdata) -> None:
        """Compare whole households with the leading attack and with those that know the method.

        A family often has no double where its members have many.
        """
        if max(self.rates.values()) >= 1 or not self.hits:
            return
        households = find_households(self.pair, original, masked)
        aware = [name for name in METHOD_AWARE_ATTACKS if name in self.cost_models]
        for name in dict.fromkeys((self._leaders[0], *aware)):
            probability = match_whole_households(self.pair, *households, self.cost_models[name], self.targets)
            self.household_hits[f"{name}, households as wholes"] = probability[self.targets]

    def reveal_households(self, original: Microdata, masked: Microdata, name: str) -> None:
        """Count all members of a household (variable `name`) as re-identified if the best attack re-identifies one of
        them.
        """
        rates = {name: rate for name, rate in self.rates.items() if name not in self.household_hits}
        leader = max(rates, key=lambda attack: rates[attack])
        rows = self.pair.released_rows[self.targets]
        owners = rows if masked.origin is None else masked.origin[rows]
        # Persons without a household number are households of their own.
        without_number = masked.missing(name)[rows] | original.missing(name)[owners]
        own = np.where(without_number, np.arange(len(rows)) + 1, 0)
        # A household must be one in both files: the attacker knows the original number and sees the released one.
        household = compress([masked.codes(name)[rows], original.codes(name)[owners], own])[0]
        highest = np.zeros(int(household.max(initial=0)) + 1)
        np.maximum.at(highest, household, self.correct[leader])
        self.household_hits[f"{leader}, then the household"] = highest[household]

    def table(self, name: str) -> LinkTable:
        """Return the links of one attack."""
        if name in self.link_tables:
            return self.link_tables[name]
        if name in self.cell_links:
            links = self.cell_links[name]
            return one_to_one_table(self.pair, links.released, links.known, links.score, links.other, links.gap)
        return link_to_cheapest(self.pair, self.cost_models[name])
