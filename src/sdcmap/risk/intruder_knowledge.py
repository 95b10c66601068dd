"""What an intruder learns about their targets, and how certain they are, as the agency estimates it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Measure, Method, Microdata, Range, RiskMeasure, Undefined
from sdcmap.kernels.quantiles import quantile_index
from sdcmap.kernels.statistics.beliefs import normal_divergence
from sdcmap.risk._beliefs import Beliefs, beliefs_from_links, beliefs_from_noise, estimate_prior, find_released_rows
from sdcmap.risk.linkage.attack import Attack
from sdcmap.risk.linkage.worst_linkage import SAMPLED_TARGETS, WorstLinkage

LINKING_COST_FACTOR = 2.0  # cost of the best attack with its links, relative to finding the best attack


@dataclass(frozen=True)
class IntruderKnowledge(RiskMeasure):
    """Minus the error that the agency expects in the intruder's best guess: Trottini's IEK, at most 0.

    The intruder knows some variables of the target and wants a numeric one, `on`. They link the target to the released
    file and believe the linked record as far as they can trust the link and its masked value; for the rest they keep
    the prior. The agency knows the original and sees how far the best guess is from the truth. 0: the intruder knows
    the value. -1: they know no more than before, on average over all records.

    Parameters
    ----------
    on : the numeric variable that the intruder wants to know.
    scenario : "links", for any method; or "noise": the intruder knows the target's record, and its value is x + e under
        normal models, for methods that add plain noise.
    attack : how the intruder links, and by which variables (not `on`); for "links". Its `inclusion` is the probability
        that the target is in the file; the rest keeps the prior.
    targets : "maximum", "minimum" or a share p, the record whose value has rank ceil(n p); a list of these; by default
        every record. A rule rather than row numbers, because a specification is published.
    over : "mean" over the targets, or "worst", the largest. Among many records one is guessed by luck, so "worst" is
        near 0 for any release unless `targets` names few.
    harm : a numeric column with a harm weight above 0 for each record; the risk is divided by it. Empty: all weights
        are 1.
    divergence : "loss", the squared error of the guess; "kl", as in the paper, for normal beliefs, in nats.
    scale : "prior" divides by the variance of the intruder's prior; "raw" does not. "kl" needs "raw".
    measured : the variance of the agency's own knowledge, as a share of the prior variance; "kl" needs one above 0.
    method : how the file was made, as the method note states it; a sweep or release fills it in.

    Formula: IEK = -[D(agency, intruder) + U(agency)]; with quadratic loss -[(x - a)^2 + v]/U(prior), a the intruder's
        posterior mean. Links: a = sum w_j E(x | y_j) + (1 - sum w_j) mean, w_j the calibrated probability that record j
        is the target's, times `inclusion`. E(x | y_j) uses the prior N(mean, variance) of the file and the likelihood
        of the method; it is y_j for a variable that is not masked or whose method states no likelihood. Noise: E(x | y)
        in closed form. Replicates are averaged.
    `parts`: "linked", the mean weight of the links. Large files: if the attack draws its targets (`WorstLinkage`
    without an archive, above 4,000 million pairs of records or if its `targets` is set), the value is the mean over as
    many drawn records, with a standard error and "targets" in `parts`; up to 2,500 named `targets` are all used. Links
    then go to the nearest record, not one-to-one, and are calibrated on these records.
    Missing: a record with a missing value is no target; a missing released value leaves the prior. Weights and
    households are not used: every target counts once. The value is an expectation: choosing a draw by it would reveal
    where the truth is not.
    Releasing nothing leaves the prior: -[(x - mean)^2 + v]/U(prior).
    Reference: Trottini (2001), def. 3; Duncan, Lambert (1986); harm: Duncan, Keller-McNulty, Stokes (2001), section 2.

    Examples
    --------
    >>> IntruderKnowledge(on="wage", targets="maximum").text
    "IntruderKnowledge(on='wage', targets='maximum')"
    """

    label: ClassVar[str] = "Intruder's estimated knowledge (IEK)"
    description: ClassVar[str] = (
        "How well the agency expects an intruder to know a person's value after the release; 0 means exactly."
    )

    revision: ClassVar[int] = 9  # 7: several steps on one variable; 8: ties alike everywhere; 9: unit-free metrics
    unit: ClassVar[str] = "prior uncertainty"
    bounds: ClassVar[tuple[float | None, float | None]] = (None, 0.0)
    expectation: ClassVar[bool] = True
    has_release_value: ClassVar[bool] = True  # definition 3 is given the released data
    kinds: ClassVar[tuple[str, ...]] = ("numeric",)
    missing: ClassVar[str] = "a record with a missing value is no target; a missing released value leaves the prior"

    on: str
    scenario: Literal["links", "noise"] = "links"
    attack: Attack = WorstLinkage()  # noqa: RUF009 - a frozen value
    targets: tuple[Literal["maximum", "minimum"] | Annotated[float, Range(0, 1, "()")], ...] = ()
    over: Literal["mean", "worst"] = "mean"
    harm: str = ""
    divergence: Literal["loss", "kl"] = "loss"
    scale: Literal["prior", "raw"] = "prior"
    measured: Annotated[float, Range(0)] = 0.0
    method: Method | None = None

    def cost_ratio(self, few: int, rows: int) -> float:
        return self.attack.cost_ratio(few, rows) if self.scenario == "links" else super().cost_ratio(few, rows)

    def seconds(self, data: Microdata) -> float | None:
        attack_run = self.attack.seconds(data) if self.scenario == "links" else None
        return None if attack_run is None else LINKING_COST_FACTOR * attack_run

    def problems(self) -> Iterator[str]:
        if self.divergence == "kl" and (self.scale != "raw" or not self.measured):
            yield '.divergence "kl" is in nats: it needs .scale "raw" and .measured above 0.'
        if self.on in self.attack.on:
            yield f".attack must not use {self.on!r}: it is the variable that the intruder wants to know."

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        if self.harm and (self.harm not in data.schema or data.schema[self.harm].kind != "numeric"):
            yield f"{type(self).__name__}.harm must name a numeric column; {self.harm!r} is not one."
        if self.scenario == "links" and not self._linking_variables(data):
            yield f"{type(self).__name__}: the attack has no variables but {self.on!r}: name others in attack.on."
        elif self.scenario == "links":
            yield from self._attack(data).incompatibilities(data)

    def resample(self) -> Measure:
        attack = self.attack.resample()
        return replace(self, attack=attack if isinstance(attack, Attack) else self.attack)

    def for_informed_attacker(self, method: Method) -> Measure:
        attack = self.attack.for_informed_attacker(method)
        return replace(self, method=method, attack=attack if isinstance(attack, Attack) else self.attack)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        beliefs = self.beliefs(original, masked)
        every = chosen = self._targets(original)
        if beliefs.linked_rows is not None:
            chosen = np.intersect1d(every, beliefs.linked_rows)
        if len(chosen) == 0 or (len(chosen) < len(every) and self.over == "worst"):
            raise Undefined(f"of {len(every):,} targets only a sample was attacked: name fewer in `targets`.")
        each = self._record_risks(original, beliefs)[chosen]
        if not np.isfinite(each).all():
            raise Undefined("the intruder is certain about a target, so the divergence is infinite.")
        parts = {"linked": float(beliefs.weight[chosen].mean())}
        if len(chosen) == len(every):
            return Estimate(value=self._summarize(each), parts=parts)
        not_drawn = 1 - len(chosen) / len(every)  # finite population correction
        se = math.sqrt(not_drawn * float(each.var()) / len(each))
        return Estimate(value=self._summarize(each), se=se, parts=parts | {"targets": float(len(chosen))})

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """Return the risk of each released record's owner; NaN if the value is missing or the record was not drawn."""
        beliefs = self.beliefs(original, masked)
        each = self._record_risks(original, beliefs)
        if beliefs.linked_rows is not None:
            each[np.setdiff1d(np.arange(len(each)), beliefs.linked_rows)] = np.nan
        find_released_rows(original, masked)
        return each if masked.origin is None else each[masked.origin]

    def baseline(self, original: Microdata) -> float | None:
        try:
            before = Beliefs.from_prior(len(original), estimate_prior(original, self.on))
            return self._summarize(self._record_risks(original, before)[self._targets(original)])
        except Undefined:
            return None

    def beliefs(self, original: Microdata, masked: Microdata) -> Beliefs:
        """Return the intruder's belief about each original record; computed once for each masked file."""
        self.check_variables(original)
        key = "beliefs", self.on, self.scenario, self.attack, self.method, self.targets
        return masked.remember(key, lambda: self._beliefs(original, masked))

    def _beliefs(self, original: Microdata, masked: Microdata) -> Beliefs:
        if self.scenario == "noise":
            return beliefs_from_noise(original, masked, self.on, self.method)
        attack = self._attack(original)
        _, person = attack._known_file(original)
        linked_rows = None
        if isinstance(attack, WorstLinkage) and attack.draws_targets(len(original), len(masked)) and not attack.archive:
            named = self._targets(original)[:SAMPLED_TARGETS] if self.targets else np.empty(0, dtype=np.int64)
            pair, table, linked_rows = attack.link_sample(original, masked, named)
        else:
            pair, table = attack.link_files(original, masked)
        beliefs = beliefs_from_links(original, masked, self.on, self.method, pair, table, person, attack.inclusion)
        return replace(beliefs, linked_rows=linked_rows)

    def _attack(self, data: Microdata) -> Attack:
        return replace(self.attack, on=self._linking_variables(data))

    def _linking_variables(self, data: Microdata) -> tuple[str, ...]:
        """Return the variables to link by: those of the attack without the wanted one."""
        return tuple(name for name in self.attack.variables(data) if name != self.on)

    def _targets(self, original: Microdata) -> Array:
        """Return the rows of the targets; all records that are tied for a rank."""
        x = original.numbers(self.on)
        known = np.flatnonzero(np.isfinite(x))
        if len(known) == 0:
            raise Undefined(f"{self.on!r} has no value that is not missing.")
        if not self.targets:
            return known
        ranked = np.sort(x[known])
        return known[np.isin(x[known], [ranked[quantile_index(target, len(ranked))] for target in self.targets])]

    def _summarize(self, each: Array) -> float:
        return float(each.max() if self.over == "worst" else each.mean())

    def _record_risks(self, original: Microdata, beliefs: Beliefs) -> Array:
        """Return the risk of each original record."""
        uncertainty = self._uncertainty(original, beliefs)
        risk = -(uncertainty / beliefs.prior[1] if self.scale == "prior" else uncertainty)
        if not self.harm:
            return risk
        harm = original.numbers(self.harm)
        if not (np.isfinite(harm) & (harm > 0)).all():
            raise Undefined(f"harm weights must be above 0 and not missing; some of {self.harm!r} are not.")
        return risk / harm

    def _uncertainty(self, original: Microdata, beliefs: Beliefs) -> Array:
        """Return D(agency, intruder) + U(agency) for each record."""
        x = original.numbers(self.on)
        own = self.measured * beliefs.prior[1]
        if self.divergence == "kl":
            return normal_divergence((x, np.full(len(x), own)), (beliefs.mean, beliefs.variance)) + own
        return np.asarray((x - beliefs.mean) ** 2 + own)


# How certain an intruder is about the targets, whether or not they are right.


@dataclass(frozen=True)
class DiscreditHarm(IntruderKnowledge):
    """Minus the intruder's own uncertainty about the targets: Trottini's risk of discredit harm (RDH), at most 0.

    The intruder links and guesses as in `IntruderKnowledge`. Here it counts how certain they are: an intruder who
    believes they know a value may publish it and discredit the agency even if it is wrong. 0: certain. -1: as uncertain
    as before.

    Parameters
    ----------
    targets : "maximum", "minimum" or a share p, the record whose value has rank ceil(n p); a list of these; by default
        every record.
    over : "mean" over the targets, or "worst": the target that the intruder is most certain of.
    divergence : "loss" or "kl"; not used here, and present so that the four measures have the same parameters.
    scale : "prior" divides by the variance of the intruder's prior; "raw" does not.
    measured : not used here.

    Formula: RDH = -U(posterior)/U(prior); with quadratic loss the variance of the mixture of the linked records and the
        prior, as in `IntruderKnowledge`; noise: l2/(s2 + l2). `parts`: "linked", the mean weight of the links. Large
        files: a sample of the records, as in `IntruderKnowledge`.
    Missing: a record with a missing value is no target; a missing released value leaves the prior. Weights and
    households are not used: every target counts once.
    Releasing nothing leaves the prior: -1, divided by the harm weight.
    Reference: Trottini (2001), def. 1; Duncan, Lambert (1986).

    Examples
    --------
    >>> DiscreditHarm(on="wage", over="worst").text
    "DiscreditHarm(on='wage', over='worst')"
    """

    label: ClassVar[str] = "Risk of discredit harm (RDH)"
    description: ClassVar[str] = (
        "How certain an intruder would feel about a person's value after the release, whether or not they are right."
    )

    expectation: ClassVar[bool] = False

    def _uncertainty(self, original: Microdata, beliefs: Beliefs) -> Array:
        return np.where(np.isfinite(original.numbers(self.on)), beliefs.variance, np.nan)
