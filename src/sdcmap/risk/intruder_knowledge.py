"""What an intruder learns about their targets, and how certain they are, as the agency estimates it."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np

from sdcmap.core import (
    Array,
    Estimate,
    Generator,
    Measure,
    Method,
    Microdata,
    Range,
    RiskMeasure,
    SchemaError,
    Undefined,
)
from sdcmap.errors import did_you_mean
from sdcmap.files.reader import read
from sdcmap.kernels.quantiles import quantile_index
from sdcmap.kernels.statistics.beliefs import normal_divergence
from sdcmap.risk._archive import open_archive, read_archive
from sdcmap.risk._beliefs import (
    Beliefs,
    LinkWeights,
    beliefs_from_links,
    beliefs_from_noise,
    estimate_prior,
    find_released_rows,
    weigh_links,
)
from sdcmap.risk._category_guesses import (
    CATEGORY_LOSSES,
    Losses,
    agency_loss,
    category_losses,
    category_shares,
    identity_losses,
    identity_prior,
    intruder_loss,
    prior_vector,
)
from sdcmap.risk._number_guesses import NUMBER_LOSSES, agency_losses, guess_numbers
from sdcmap.risk.linkage.attack import Attack
from sdcmap.risk.linkage.worst_linkage import SAMPLED_TARGETS, WorstLinkage
from sdcmap.theory.decision.prior import MAX_PRIORS, Prior
from sdcmap.theory.decision.robust_cases import pool_cases, worst_case

LINKING_COST_FACTOR = 2.0  # cost of the best attack with its links, relative to finding the best attack
UNITS = {
    "quadratic": "unit^2",
    "bounded": "unit^2",
    "absolute": "unit",
    "zero-one": "share",
    "log": "nats",
    "brier": "1",
}


class Case(NamedTuple):
    """One member of the class of priors and losses: a loss, and the prior of a number or of categories."""

    loss: str
    number: tuple[float, float] = (0.0, 1.0)
    categories: Array | None = None


@dataclass(frozen=True)
class IntruderKnowledge(RiskMeasure):
    """Minus the loss that the agency expects of the intruder's best guess: Trottini's IEK, at most 0.

    The intruder knows some variables of the target and wants to know another one, a number or a category, or which
    record is the target's. They link the target to the released file and believe the linked record as far as they can
    trust the link and its masked value; for the rest they keep the prior. The agency knows the original and sees how
    good the best guess is. 0: the intruder knows the value. -1: they know no more than before.

    Parameters
    ----------
    on : the variable that the intruder wants to know, a number or a category. Empty: the identity, which released
        record is the target's.
    scenario : "links", for any method; or "noise": the intruder knows the target's record, and its value is x + e under
        normal models, for methods that add plain noise to a number.
    attack : how the intruder links, and by which variables (not `on`); for "links". Its `inclusion` is the probability
        that the target is in the file; the rest keeps the prior.
    targets : "maximum", "minimum" or a share p, the record whose value has rank ceil(n p); a list of these; by default
        every record. A rule rather than row numbers, because a specification is published. Numbers only.
    over : "mean" over the targets, or "worst", the largest. Among many records one is guessed by luck, so "worst" is
        near 0 for any release unless `targets` names few.
    harm : a numeric column with a harm weight above 0 for each record; the risk is divided by it. Empty: all weights
        are 1.
    loss : of a wrong guess. Numbers: "quadratic" (default), "absolute", "zero-one" (1 if farther off than `width`),
        "bounded" (the squared error, at most width^2). Categories and identity: "zero-one" (default), "log", "brier". A
        list is a class of losses: the worst counts.
    width : for "zero-one" and "bounded" on numbers, in the variable's unit.
    prior : what the intruder believes before the release, as the agency states it (`Prior`); several, or one with
        intervals, are a class: the worst counts. By default the file itself: N(mean, variance), or the shares of the
        categories.
    divergence : "loss", the loss of the guess; "kl", as in the paper, for normal beliefs, in nats.
    scale : "prior" divides by the loss that the intruder expects before the release; "raw" does not. "kl" needs "raw".
    measured : the variance of the agency's own knowledge of a number, as a share of the prior variance; "kl" needs one
        above 0.
    method : how the file was made, as the method note states it; a sweep or release fills it in.

    Formula: IEK = -[D(agency, intruder) + U(agency)] = -E_A L(x, a)/U(prior), a the intruder's best guess and U(prior)
        the loss that they expect before. Quadratic: -[(x - a)^2 + v]/U(prior), a the posterior mean. Links: the belief
        is sum w_j p(x | y_j) + (1 - sum w_j) prior, w_j the calibrated probability that record j is the target's, times
        `inclusion`. p(x | y_j) is the prior times the likelihood of the method; a variable that is not masked, or whose
        method states no likelihood, is believed as it stands. Noise: p(x | y) in closed form. Losses other than the
        quadratic one evaluate a normal at equally likely points. Class: the largest value. Replicates are averaged.
    `parts`: "linked", the mean weight of the links; "gain", the value minus that of releasing nothing; "relative_gain",
    as a share of it; of a class the worst case, and "case_1", "case_2", ... for each prior and loss, losses first. Large
    files: if the attack draws its targets (`WorstLinkage` without an archive, above 4,000 million pairs of records or if
    its `targets` is set), the value is the mean over as many drawn records, with a standard error and "targets" in
    `parts`; up to 2,500 named `targets` are all used. Links then go to the nearest record, not one-to-one, and are
    calibrated on these records.
    Missing: a record with a missing value is no target; a missing released value leaves the prior. Weights and
    households are not used: every target counts once. The value is an expectation: choosing a draw by it would reveal
    where the truth is not.
    Releasing nothing leaves the prior: -E_A L(x, a_prior)/U(prior).
    Reference: Trottini (2001), def. 3, par. 13-14; Duncan, Lambert (1986); harm: Duncan, Keller-McNulty, Stokes (2001),
    section 2.

    Examples
    --------
    >>> IntruderKnowledge(on="wage", targets="maximum").text
    "IntruderKnowledge(on='wage', targets='maximum')"
    """

    label: ClassVar[str] = "Intruder's estimated knowledge (IEK)"
    description: ClassVar[str] = (
        "How well the agency expects an intruder to know a person's value after the release; 0 means exactly."
    )

    # 10: priors, losses and gains; 11: more one-to-one attacks; 12: three attacks one-to-one; 13: every attack
    revision: ClassVar[int] = 13
    unit: ClassVar[str] = "prior uncertainty"
    bounds: ClassVar[tuple[float | None, float | None]] = (None, 0.0)
    expectation: ClassVar[bool] = True
    has_release_value: ClassVar[bool] = True  # definition 3 is given the released data
    missing: ClassVar[str] = "a record with a missing value is no target; a missing released value leaves the prior"

    on: str = ""
    scenario: Literal["links", "noise"] = "links"
    attack: Attack = WorstLinkage()  # noqa: RUF009 - a frozen value
    targets: tuple[Literal["maximum", "minimum"] | Annotated[float, Range(0, 1, "()")], ...] = ()
    over: Literal["mean", "worst"] = "mean"
    harm: str = ""
    loss: tuple[Literal["quadratic", "absolute", "zero-one", "bounded", "log", "brier"], ...] = ()
    width: Annotated[float, Range(0)] = 0.0
    prior: tuple[Prior, ...] = ()
    divergence: Literal["loss", "kl"] = "loss"
    scale: Literal["prior", "raw"] = "prior"
    measured: Annotated[float, Range(0)] = 0.0
    method: Method | None = None

    @property
    def title(self) -> str:
        return super().title if self.on else f"{super().title}: identity"

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return (self.on,) if self.on else self._linking_variables(data)

    def cost_ratio(self, few: int, rows: int) -> float:
        return self.attack.cost_ratio(few, rows) if self.scenario == "links" else super().cost_ratio(few, rows)

    def seconds(self, data: Microdata) -> float | None:
        attack_run = self.attack.seconds(data) if self.scenario == "links" else None
        return None if attack_run is None else LINKING_COST_FACTOR * attack_run

    def problems(self) -> Iterator[str]:
        if self.divergence == "kl" and (self.scale != "raw" or not self.measured):
            yield '.divergence "kl" is in nats: it needs .scale "raw" and .measured above 0.'
        if self.divergence == "kl" and self.loss not in ((), ("quadratic",)):
            yield '.divergence "kl" goes with .loss "quadratic" only.'
        if self.on and self.on in self.attack.on:
            yield f".attack must not use {self.on!r}: it is the variable that the intruder wants to know."
        if len(set(self.loss)) < len(self.loss):
            yield ".loss must name each loss once."
        if self.scale == "raw" and len({UNITS[word] for word in self.loss}) > 1:
            yield '.loss names losses of different units: they have a common largest risk only with .scale "prior".'
        if not self.on and (self.prior or self.targets or self.measured or self.scenario == "noise"):
            yield ": without .on the intruder wants the identity; .prior, .targets, .measured and the scenario "
            yield '"noise" belong to a variable.'

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        kind = type(self).__name__
        if self.harm and (self.harm not in data.schema or data.schema[self.harm].kind != "numeric"):
            yield f"{kind}.harm must name a numeric column; {self.harm!r} is not one."
        if self.on in data.schema or not self.on:
            yield from (f"{kind}{problem}" for problem in self._target_problems(data))
        if self.scenario == "links" and not self._linking_variables(data):
            yield f"{kind}: the attack has no variables but {self.on!r}: name others in attack.on."
        elif self.scenario == "links":
            yield from self._attack(data).incompatibilities(data)

    def _target_problems(self, data: Microdata) -> Iterator[str]:
        """Yield what does not fit the kind of the wanted variable, half a sentence each."""
        is_number = self._is_number(data)
        allowed = NUMBER_LOSSES if is_number else CATEGORY_LOSSES
        wrong = [word for word in self.loss if word not in allowed]
        what = "a number" if is_number else "a category" if self.on else "an identity"
        if wrong:
            yield f".loss {', '.join(map(repr, wrong))} is not defined for {what}: use {', '.join(allowed)}."
        if is_number and not self.width and {"zero-one", "bounded"} & {*self.loss}:
            yield '.loss "zero-one" and "bounded" need a .width above 0 for a number.'
        if not is_number and self.on and (self.targets or self.measured or self.scenario == "noise"):
            yield f'.targets, .measured and the scenario "noise" need a number; {self.on!r} is a category.'
        if not is_number and self.divergence == "kl":
            yield '.divergence "kl" needs a number; for a category use .loss "log".'
        for prior in self.prior:
            if prior.means and not is_number:
                yield f".prior states a mean and a variance, but {self.on!r} is a category: state categories and counts."

    def check_files(self, data: Microdata) -> None:
        for prior in self.prior:
            self._number_priors(data, prior) if self._is_number(data) else self._category_prior(data, prior)

    def resample(self) -> Measure:
        attack = self.attack.resample()
        return replace(self, attack=attack if isinstance(attack, Attack) else self.attack)

    def for_informed_attacker(self, method: Method) -> Measure:
        attack = self.attack.for_informed_attacker(method)
        return replace(self, method=method, attack=attack if isinstance(attack, Attack) else self.attack)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        self.check_variables(original)
        every = chosen = self._targets(original)
        weight, linked_rows = self._link_shares(original, masked)
        if linked_rows is not None:
            chosen = np.intersect1d(every, linked_rows)
        if len(chosen) == 0 or (len(chosen) < len(every) and self.over == "worst"):
            raise Undefined(f"of {len(every):,} targets only a sample was attacked: name fewer in `targets`.")
        cases = self._cases(original)
        each = [self._record_risks(original, case, self._losses(original, masked, case))[chosen] for case in cases]
        if not all(np.isfinite(risks).all() for risks in each):
            raise Undefined("the intruder is certain about a target, so the divergence is infinite.")
        values = [self._summarize(risks) for risks in each]
        before = [self._summarize(self._prior_risks(original, case)[every]) for case in cases]
        index, parts = worst_case(values, before, max)
        parts = {"linked": float(weight[chosen].mean())} | parts
        if len(chosen) == len(every):
            return Estimate(value=values[index], parts=parts)
        not_drawn = 1 - len(chosen) / len(every)  # finite population correction
        se = math.sqrt(not_drawn * float(each[index].var()) / len(chosen))
        return Estimate(value=values[index], se=se, parts=parts | {"targets": float(len(chosen))})

    def pool(self, estimates: Sequence[Estimate]) -> Estimate:
        return pool_cases(estimates, max, super().pool)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """Return the risk of each released record's owner; NaN if the value is missing or the record was not drawn.

        Of a class of priors and losses, the largest counts.
        """
        self.check_variables(original)
        cases = self._cases(original)
        risks = [self._record_risks(original, case, self._losses(original, masked, case)) for case in cases]
        each: Array = np.max(risks, axis=0)
        linked_rows = self._link_shares(original, masked)[1]
        if linked_rows is not None:
            each[np.setdiff1d(np.arange(len(each)), linked_rows)] = np.nan
        find_released_rows(original, masked)
        return each if masked.origin is None else each[masked.origin]

    def baseline(self, original: Microdata) -> float | None:
        try:
            targets, cases = self._targets(original), self._cases(original)
            value = max(self._summarize(self._prior_risks(original, case)[targets]) for case in cases)
        except Undefined:
            return None
        return value if math.isfinite(value) else None

    def beliefs(self, original: Microdata, masked: Microdata, prior: tuple[float, float]) -> Beliefs:
        """Return the intruder's belief about the number of each original record; computed once for each masked file."""
        if self.scenario == "noise":
            learn: Callable[[], Beliefs] = lambda: beliefs_from_noise(original, masked, self.on, self.method, prior)
        else:
            links = self._links(original, masked)[0]
            learn = lambda: beliefs_from_links(original, masked, self.on, self.method, links, prior)
        return masked.remember(("beliefs", *self._link_key, self.on, self.method, prior), learn)

    # ---- who is linked to whom --------------------------------------------------------------------------------
    @property
    def _link_key(self) -> tuple[Hashable, ...]:
        return self.scenario, self.attack, self.on, self.targets

    def _link_shares(self, original: Microdata, masked: Microdata) -> tuple[Array, Array | None]:
        """Return how far the intruder trusts the links of each original record, and which were linked if not all."""
        if self.scenario == "noise":
            return np.where(find_released_rows(original, masked) >= 0, 1.0, 0.0), None
        links, linked_rows = self._links(original, masked)
        return links.to_records(links.share, 0.0), linked_rows

    def _links(self, original: Microdata, masked: Microdata) -> tuple[LinkWeights, Array | None]:
        """Return the links, and the original records that were linked if not all were; once for each masked file."""
        return masked.remember(("link weights", *self._link_key), lambda: self._find_links(original, masked))

    def _find_links(self, original: Microdata, masked: Microdata) -> tuple[LinkWeights, Array | None]:
        attack = self._attack(original)
        _, person = attack._known_file(original)
        linked_rows = None
        if isinstance(attack, WorstLinkage) and attack.draws_targets(len(original), len(masked)) and not attack.archive:
            named = self._targets(original)[:SAMPLED_TARGETS] if self.targets else np.empty(0, dtype=np.int64)
            pair, table, linked_rows = attack.link_sample(original, masked, named)
        else:
            pair, table = attack.link_files(original, masked)
        return weigh_links(pair, table, person, len(original), attack.inclusion), linked_rows

    def _attack(self, data: Microdata) -> Attack:
        return replace(self.attack, on=self._linking_variables(data))

    def _linking_variables(self, data: Microdata) -> tuple[str, ...]:
        """Return the variables to link by: those of the attack without the wanted one."""
        return tuple(name for name in self.attack.variables(data) if name != self.on)

    # ---- targets ----------------------------------------------------------------------------------------------
    def _is_number(self, data: Microdata) -> bool:
        return bool(self.on) and data.schema[self.on].kind == "numeric"

    def _targets(self, original: Microdata) -> Array:
        """Return the rows of the targets; all records that are tied for a rank."""
        if not self._is_number(original):
            known = np.flatnonzero(~original.missing(self.on)) if self.on else np.arange(len(original))
        else:
            known = np.flatnonzero(np.isfinite(original.numbers(self.on)))
        if len(known) == 0:
            raise Undefined(f"{self.on!r} has no value that is not missing.")
        if not self.targets:
            return known
        x = original.numbers(self.on)
        ranked = np.sort(x[known])
        return known[np.isin(x[known], [ranked[quantile_index(target, len(ranked))] for target in self.targets])]

    def _summarize(self, each: Array) -> float:
        return float(each.max() if self.over == "worst" else each.mean())

    # ---- priors and losses ------------------------------------------------------------------------------------
    def _cases(self, original: Microdata) -> list[Case]:
        """Return every member of the class of priors and losses; raise Undefined where there is nothing to learn."""
        key = "cases", type(self), self.on, self.prior, self.loss
        return original.remember(key, lambda: self._find_cases(original))

    def _find_cases(self, original: Microdata) -> list[Case]:
        if not self.on:
            return [Case(word) for word in self.loss or ("zero-one",)]
        if self._is_number(original):
            stated = [member for prior in self.prior for member in self._number_priors(original, prior)]
            numbers = stated or [estimate_prior(original, self.on)]
            cases = [Case(word, number) for number in numbers for word in self.loss or ("quadratic",)]
        else:
            shares = [self._category_prior(original, prior) for prior in self.prior]
            vectors = [prior_vector(original, self.on, one) for one in shares or [category_shares(original, self.on)]]
            cases = [Case(word, categories=one) for one in vectors for word in self.loss or ("zero-one",)]
        if len(cases) > MAX_PRIORS:
            raise SchemaError(f"{len(cases):,} priors and losses are too many; at most {MAX_PRIORS} can be evaluated.")
        return cases

    def _number_priors(self, original: Microdata, prior: Prior) -> list[tuple[float, float]]:
        """Return mean and variance of each member of a stated prior of a number."""
        if prior.means:
            return prior.normals()
        if prior.population:
            x, weights = self._population(original, prior)
            values = x.numbers(self.on)
        else:
            try:
                values, weights = np.array([float(word) for word in prior.categories]), np.array(prior.counts)
            except ValueError:
                raise SchemaError(f"{self.on!r} is a number, so the categories of its prior must be numbers.") from None
        known = np.isfinite(values) & (weights > 0)
        if not known.any() or not values[known].max() > values[known].min():
            raise SchemaError("a prior must have at least two different values; the stated one does not vary.")
        mean = float(np.average(values[known], weights=weights[known]))
        return [(mean, float(np.average((values[known] - mean) ** 2, weights=weights[known])))]

    def _category_prior(self, original: Microdata, prior: Prior) -> dict[str, float]:
        """Return the shares of a stated prior of a category."""
        if not prior.population:
            return prior.shares()
        file, weights = self._population(original, prior)
        return category_shares(file, self.on, weights)

    def _population(self, original: Microdata, prior: Prior) -> tuple[Microdata, Array]:
        """Return the file of a prior, with the wanted variable, and the weight of each record."""
        file = read_archive(prior.population, prior.sha256, original, (self.on,))
        if not prior.weight:
            return file, np.ones(len(file))
        whole = open_archive(prior.population, prior.sha256)
        if prior.weight not in whole.names:
            hint = did_you_mean(prior.weight, whole.names)
            raise SchemaError(f"{prior.population} has no column {prior.weight!r} of weights.{hint}")
        weights = read(whole.only([prior.weight]), kinds={prior.weight: "numeric"}).numbers(prior.weight)
        if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
            raise SchemaError(f"{prior.weight!r} of {prior.population} must have weights of at least 0, none missing.")
        return file, weights

    def _losses(self, original: Microdata, masked: Microdata, case: Case) -> Losses:
        """Return both losses of each original record after the release."""
        if self._is_number(original):
            return self._number_losses(original, self.beliefs(original, masked, case.number), case)
        links = self._links(original, masked)[0]
        if case.categories is None:
            return identity_losses(original, masked, links, case.loss)
        return category_losses(original, masked, self.on, self.method, links, case.categories, case.loss)

    def _prior_losses(self, original: Microdata, case: Case) -> Losses:
        """Return both losses of each original record before the release."""
        n = len(original)
        if self._is_number(original):
            return self._number_losses(original, Beliefs.from_prior(n, case.number), case)
        if case.categories is None:
            before = np.full(n, identity_prior(case.loss, n, self.attack.inclusion))
            return Losses(before, before)
        is_known = ~original.missing(self.on)
        truth = np.where(is_known, original.codes(self.on), 0)
        shares = np.broadcast_to(case.categories, (n, len(case.categories)))
        own = np.full(n, float(intruder_loss(case.loss, shares[:1])[0]))
        return Losses(*(np.where(is_known, one, np.nan) for one in (agency_loss(case.loss, shares, truth), own)))

    def _number_losses(self, original: Microdata, beliefs: Beliefs, case: Case) -> Losses:
        x, own = original.numbers(self.on), self.measured * case.number[1]
        known = np.isfinite(x)
        if case.loss == "quadratic":
            certain = np.where(known, beliefs.variance, np.nan)
            if self.divergence == "kl":
                truth = x, np.full(len(x), own)
                return Losses(normal_divergence(truth, (beliefs.mean, beliefs.variance)) + own, certain)
            return Losses(np.asarray((x - beliefs.mean) ** 2 + own), certain)
        from sdcmap.theory.decision import loss_by_name

        loss = loss_by_name(case.loss, self.width)
        guess, expected, _ = guess_numbers(loss, beliefs.expand(), case.number)
        return Losses(agency_losses(loss, x, own, guess), np.where(known, expected, np.nan))

    def _prior_scale(self, original: Microdata, case: Case) -> float:
        """Return the loss that the intruder expects before the release."""
        if case.loss == "quadratic":
            return case.number[1]
        before = self._prior_losses(original, case).intruder
        scale = float(before[np.isfinite(before)][0])
        if not scale > 0:
            raise Undefined("the prior is certain under this loss, so there is nothing to learn.")
        return scale

    def _prior_risks(self, original: Microdata, case: Case) -> Array:
        """Return the risk of each original record before the release."""
        return self._record_risks(original, case, self._prior_losses(original, case))

    def _record_risks(self, original: Microdata, case: Case, losses: Losses) -> Array:
        """Return the risk of each original record."""
        uncertainty = self._uncertainty(losses)
        risk = -(uncertainty / self._prior_scale(original, case) if self.scale == "prior" else uncertainty)
        if not self.harm:
            return risk
        harm = original.numbers(self.harm)
        if not (np.isfinite(harm) & (harm > 0)).all():
            raise Undefined(f"harm weights must be above 0 and not missing; some of {self.harm!r} are not.")
        return risk / harm

    def _uncertainty(self, losses: Losses) -> Array:
        """Return D(agency, intruder) + U(agency) for each record."""
        return losses.agency


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
    measured : not used here.

    Formula: RDH = -U(posterior)/U(prior), U the loss that the intruder expects of their best guess. Quadratic: the
        variance of the mixture of the linked records and the prior, as in `IntruderKnowledge`; noise: l2/(s2 + l2).
        Categories: 1 - max p, the entropy or 1 - sum p^2. Class: the largest value. `parts` and large files: as in
        `IntruderKnowledge`; "gain" and "relative_gain" are the knowledge gains of Duncan and Lambert.
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

    def _uncertainty(self, losses: Losses) -> Array:
        return losses.intruder
