"""What an intruder knows of their targets, and how sure they are, as the agency estimates it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Measure, Method, Microdata, Range, RiskMeasure, Undefined
from sdcmap.kernels.quantiles import place_of
from sdcmap.kernels.statistics.beliefs import normal_divergence
from sdcmap.risk._beliefs import Beliefs, conjugate_beliefs, linked_beliefs, prior_of, released_rows
from sdcmap.risk.linkage.attack import Attack
from sdcmap.risk.linkage.worst_linkage import SAMPLED_TARGETS, WorstLinkage

LINKING = 2.0  # what finding the best attack and making its links costs, to finding it


@dataclass(frozen=True)
class IntruderKnowledge(RiskMeasure):
    """Minus the error that the agency expects of the intruder's best guess: Trottini's IEK, at most 0.

    The intruder knows some variables of his target and wants a numeric one, `on`. He links his target to the released file
    and believes what the linked record says, as far as he can trust the link and the masked value there; for the rest he
    believes what he believed before. The agency, which has the original, sees how far his best guess is from the truth.
    0: he knows the value. -1: he knows what he knew before, in the mean over all records.

    Parameters
    ----------
    on : the numeric variable that he wants to know.
    scenario : "links", for any method; or "noise": he knows which record is his target's, and its value is x + e with
        normal models, for methods that add plain noise.
    attack : how he links, with what he knows, which may not be `on`; "links" alone. Its `inclusion` is the probability
        that his target is in the file at all: the rest returns the prior.
    targets : whom he wants: "maximum", "minimum" or a share p, the record whose value has rank ceil(n p); a list of these;
        by default every record. A rule and not row numbers, because a specification is published.
    over : "mean" over the targets, or "worst", the largest. Among many records somebody is guessed right by luck, so
        "worst" is near 0 whatever is released, unless `targets` names few.
    harm : a numeric column with a harm weight above 0 of each record: its risk is divided by it. Empty: all are 1.
    divergence : "loss", the squared error of his guess; "kl", the paper's, of normal beliefs, in nats.
    scale : "prior" divides by the variance of his prior; "raw" does not. "kl" needs "raw".
    measured : the variance with which the agency knows the value, as a share of the prior's; "kl" needs one above 0.
    method : how the file was made, told to him by the method note; a sweep and a release fill it in.

    Formula: IEK = -[D(agency, intruder) + U(agency)]; with quadratic loss -[(x - a)^2 + v]/U(prior), a his posterior mean.
    Links: a = sum w_j E(x | y_j) + (1 - sum w_j) mean, w_j the calibrated probability that record j is the target's, times
    `inclusion`. E(x | y_j) is of the prior N(mean, variance) of the file and of the method's likelihood; y_j itself for a
    variable that is not masked, or whose method states no likelihood. Noise: E(x | y) in closed form. Replicates are
    averaged. `parts`: "linked", the mean weight of the links.
    Large files: where the attack draws its targets (`WorstLinkage` without an archive: beyond 4 thousand million pairs of
    records, or as its `targets` says), as many records are drawn and the value is the mean over them, with a standard error
    and "targets" in `parts`; of named `targets` all are looked at, up to 2,500. Links are then to the nearest, none
    one-to-one, and calibrated on the links to these records.
    Missing: a target whose value is missing is none; a missing released value leaves the prior. Weights and households
    are not used: every target counts once. An expectation: picking a draw by it would tell where the truth is not.
    Releasing nothing leaves the prior: -[(x - mean)^2 + v]/U(prior).
    Reference: Trottini (2001), def. 3; Duncan, Lambert (1986); harm: Duncan, Keller-McNulty, Stokes (2001), section 2.

    Examples
    --------
    >>> IntruderKnowledge(on="wage", targets="maximum").text
    "IntruderKnowledge(on='wage', targets='maximum')"
    """

    label: ClassVar[str] = "Intruder's expected knowledge (IEK)"
    description: ClassVar[str] = (
        "How well the agency expects an intruder to know a person's value after the release; 0 means exactly."
    )

    revision: ClassVar[int] = 8  # 6: what a chain rounds; 7: steps on one variable; 8: ties alike on every machine
    unit: ClassVar[str] = "prior uncertainty"
    bounds: ClassVar[tuple[float | None, float | None]] = (None, 0.0)
    expectation: ClassVar[bool] = True
    kinds: ClassVar[tuple[str, ...]] = ("numeric",)
    missing: ClassVar[str] = "a missing value is no target; a missing released value says nothing"

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
        return None if attack_run is None else LINKING * attack_run

    def problems(self) -> Iterator[str]:
        if self.divergence == "kl" and (self.scale != "raw" or not self.measured):
            yield '.divergence "kl" needs .scale "raw", for nats are no share of a variance, and .measured above 0.'
        if self.on in self.attack.on:
            yield f".attack may not know {self.on!r}: that is what he wants."

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        if self.harm and (self.harm not in data.schema or data.schema[self.harm].kind != "numeric"):
            yield f"{type(self).__name__}.harm must name a numeric column; {self.harm!r} is none."
        if self.scenario == "links" and not self._knows(data):
            yield f"{type(self).__name__}: he knows nothing to link by but {self.on!r}: name variables in attack.on."
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
        if beliefs.among is not None:
            chosen = np.intersect1d(every, beliefs.among)
        if len(chosen) == 0 or (len(chosen) < len(every) and self.over == "worst"):
            raise Undefined(f"of {len(every):,} targets only some could be looked at: name fewer in `targets`.")
        each = self._each(original, beliefs)[chosen]
        if not np.isfinite(each).all():
            raise Undefined("the intruder is certain of a target, and the divergence of a certainty is infinite.")
        parts = {"linked": float(beliefs.weight[chosen].mean())}
        if len(chosen) == len(every):
            return Estimate(value=self._combined(each), parts=parts)
        left = 1 - len(chosen) / len(every)  # of the targets, those that were not looked at
        se = math.sqrt(left * float(each.var()) / len(each))
        return Estimate(value=self._combined(each), se=se, parts=parts | {"targets": float(len(chosen))})

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The risk of each released record's owner; NaN where its value is missing, or he was not looked at."""
        beliefs = self.beliefs(original, masked)
        each = self._each(original, beliefs)
        if beliefs.among is not None:
            each[np.setdiff1d(np.arange(len(each)), beliefs.among)] = np.nan
        released_rows(original, masked)
        return each if masked.origin is None else each[masked.origin]

    def baseline(self, original: Microdata) -> float | None:
        try:
            before = Beliefs.before(len(original), prior_of(original, self.on))
            return self._combined(self._each(original, before)[self._targets(original)])
        except Undefined:
            return None

    def beliefs(self, original: Microdata, masked: Microdata) -> Beliefs:
        """What he believes of each original record; computed once for each masked file."""
        self.check_variables(original)
        key = "beliefs", self.on, self.scenario, self.attack, self.method, self.targets
        return masked.remember(key, lambda: self._beliefs(original, masked))

    def _beliefs(self, original: Microdata, masked: Microdata) -> Beliefs:
        if self.scenario == "noise":
            return conjugate_beliefs(original, masked, self.on, self.method)
        attack = self._attack(original)
        _, person = attack._known_file(original)
        among = None
        if isinstance(attack, WorstLinkage) and attack.draws_targets(len(original), len(masked)) and not attack.archive:
            named = self._targets(original)[:SAMPLED_TARGETS] if self.targets else np.empty(0, dtype=np.int64)
            pair, table, among = attack.link_sample(original, masked, named)
        else:
            pair, table = attack.link_files(original, masked)
        beliefs = linked_beliefs(original, masked, self.on, self.method, pair, table, person, attack.inclusion)
        return replace(beliefs, among=among)

    def _attack(self, data: Microdata) -> Attack:
        return replace(self.attack, on=self._knows(data))

    def _knows(self, data: Microdata) -> tuple[str, ...]:
        """The variables that he links by: what the attack says, or all that it takes but the wanted one."""
        return tuple(name for name in self.attack.variables(data) if name != self.on)

    def _targets(self, original: Microdata) -> Array:
        """The rows of his targets; of records that tie for a rank, all."""
        x = original.numbers(self.on)
        known = np.flatnonzero(np.isfinite(x))
        if len(known) == 0:
            raise Undefined(f"{self.on!r} has no value that is not missing.")
        if not self.targets:
            return known
        ranked = np.sort(x[known])
        return known[np.isin(x[known], [ranked[place_of(target, len(ranked))] for target in self.targets])]

    def _combined(self, each: Array) -> float:
        return float(each.max() if self.over == "worst" else each.mean())

    def _each(self, original: Microdata, beliefs: Beliefs) -> Array:
        """The risk of each original record."""
        uncertainty = self._uncertainty(original, beliefs)
        risk = -(uncertainty / beliefs.prior[1] if self.scale == "prior" else uncertainty)
        if not self.harm:
            return risk
        harm = original.numbers(self.harm)
        if not (np.isfinite(harm) & (harm > 0)).all():
            raise Undefined(f"harm weights must be above 0 and not missing; some of {self.harm!r} are not.")
        return risk / harm

    def _uncertainty(self, original: Microdata, beliefs: Beliefs) -> Array:
        """D(agency, intruder) + U(agency)."""
        x = original.numbers(self.on)
        own = self.measured * beliefs.prior[1]
        if self.divergence == "kl":
            return normal_divergence((x, np.full(len(x), own)), (beliefs.mean, beliefs.variance)) + own
        return np.asarray((x - beliefs.mean) ** 2 + own)


# How sure an intruder is of his targets, rightly or not.


@dataclass(frozen=True)
class DiscreditHarm(IntruderKnowledge):
    """Minus the intruder's own uncertainty about his targets: Trottini's risk of discredit harm, RDH, at most 0.

    The intruder links and guesses as for `IntruderKnowledge`. What counts here is how sure he is: one who believes that he
    knows says so, and discredits the agency even where he is wrong. 0: he is certain. -1: as unsure as before.

    Parameters
    ----------
    targets : whom he wants: "maximum", "minimum" or a share p, the record whose value has rank ceil(n p); a list of these;
        by default every record.
    over : "mean" over the targets, or "worst": the one that he is surest of.
    divergence : "loss" or "kl"; it plays no part here, and stands for the four measures to be written alike.
    scale : "prior" divides by the variance of his prior; "raw" does not.
    measured : it plays no part here.

    Formula: RDH = -U(posterior)/U(prior), with quadratic loss the variance of the mixture of what his links say and of the
    prior, as in `IntruderKnowledge`; noise: l2/(s2 + l2).
    Missing: a target whose value is missing is none; a missing released value leaves the prior. Weights and households
    are not used: every target counts once. `parts`: "linked", the mean weight of the links. Large files: a draw of the
    records, as in `IntruderKnowledge`.
    Releasing nothing leaves the prior: -1, over the harm weight.
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
