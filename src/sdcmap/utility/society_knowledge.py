"""What society knows after a release, as the agency estimates it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

from numpy.random import Generator

from sdcmap.core.measure import Estimate, Measure
from sdcmap.core.method import Method
from sdcmap.core.value import Range
from sdcmap.corrections.formula import parse_nested_formula
from sdcmap.data.microdata import Microdata
from sdcmap.errors import SchemaError, Undefined
from sdcmap.kernels.statistics.beliefs import normal_divergence
from sdcmap.kernels.statistics.moments import TINY
from sdcmap.utility._estimand import Belief, Estimand


@dataclass(frozen=True)
class SocietyKnowledge(Measure):
    """Minus the error that the agency expects of society's best guess of a number: Trottini's SEK, at most 0.

    Society wants a mean, a total, a proportion or a regression coefficient of the population, and takes it from the
    release. The agency takes it from the original and sees how far society's guess is from its own. 0: society knows it.

    Parameters
    ----------
    on : the variable; of a coefficient, the term of the formula, such as "age" or "sex=2".
    of : "mean", "total", "proportion" or "coefficient".
    formula : of a coefficient, such as "wage ~ age + sex"; the response is numeric.
    category : of a proportion, the category that is counted.
    above : of a proportion of a numeric variable: values above it (variable's unit) are counted.
    user : "naive" takes the release for an original file; "informed" has read the method note and takes noise off
        (`sm.correct`) where the note tells how, else does as the naive one.
    weighted : use survey weights; needs a weight.
    prior_records : how much society knew before: as much as so many records tell, at least 1e-6.
    divergence : "loss", the squared error of its guess; "kl", the paper's, of normal beliefs, in nats.
    scale : "prior" divides by society's uncertainty before the release; "raw" does not. "kl" needs "raw".
    method : how the file was made; a sweep and a release fill it in.

    Formula: SEK = -[D(agency, society) + U(agency)]; with quadratic loss -[(m_A - m_S)^2 + v_A]/U(prior). Means m and
    variances v are those of the weighted Bayesian bootstrap of the original and of the release: of a mean
    v = sum p (y - m)^2/(n + 1), n the effective number of records; of a coefficient to first order White's. Informed: the
    corrected value and its squared standard error. U(prior) = v_A (n + 1)/prior_records, of the original. Replicates are
    averaged. `parts`: "bias", m_S - m_A in standard deviations of the prior; "corrected", whether noise was taken off.
    Missing: left out; of a coefficient, records that lack a variable of the formula. Weights: used when `weighted`.
    Households are not used: persons are drawn one by one. An expectation: the bias of one draw is an accident.
    Releasing nothing leaves the prior, whose guess errs by U(prior) in the mean: -(1 + v_A/U(prior)).
    Reference: Trottini (2001), def. 7, with its sign mended; Rubin (1981); Lancaster (2003).

    Examples
    --------
    >>> SocietyKnowledge(on="age", of="coefficient", formula="wage ~ age").text
    "SocietyKnowledge(on='age', of='coefficient', formula='wage ~ age')"
    """

    axis: ClassVar[Literal["risk", "utility"]] = "utility"
    unit: ClassVar[str] = "prior uncertainty"
    direction: ClassVar[Literal["lower", "higher"]] = "higher"
    bounds: ClassVar[tuple[float | None, float | None]] = (None, 0.0)
    expectation: ClassVar[bool] = True
    missing: ClassVar[str] = "left out; of a regression, incomplete records"
    weights: ClassVar[str] = "used when `weighted`, else every record counts once"

    on: str
    of: Literal["mean", "total", "proportion", "coefficient"] = "mean"
    formula: str = ""
    category: str = ""
    above: float | None = None
    user: Literal["naive", "informed"] = "naive"
    weighted: bool = False
    prior_records: Annotated[float, Range(1e-6)] = 1.0
    divergence: Literal["loss", "kl"] = "loss"
    scale: Literal["prior", "raw"] = "prior"
    method: Method | None = None

    def problems(self) -> Iterator[str]:
        if self.divergence == "kl" and self.scale != "raw":
            yield '.divergence "kl" needs .scale "raw", for nats are no share of a variance.'
        if (self.of == "coefficient") != bool(self.formula):
            yield '.formula belongs to .of "coefficient", and that needs one.'
        if (self.of == "proportion") != bool(self.category or self.above is not None):
            yield '.category or .above belongs to .of "proportion", and that needs one.'
        if self.category and self.above is not None:
            yield ".category and .above exclude each other."

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return parse_nested_formula(self.formula).names if self.formula else (self.on,)

    def misfits(self, data: Microdata) -> Iterator[str]:
        yield from (f"{type(self).__name__}{problem}" for problem in self._wanted.misfits(data))

    def knowing(self, method: Method) -> Measure:
        return replace(self, method=method)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        self.checked(original)
        agency = self._agency(original)
        society, corrected = self._society(masked)
        prior = self._prior_variance(agency)
        value = -self._uncertainty(agency, society)
        parts = {"bias": (society.mean - agency.mean) / prior**0.5, "corrected": float(corrected)}
        return Estimate(value / prior if self.scale == "prior" else value, None, parts)

    def nothing(self, original: Microdata) -> float | None:
        try:
            agency = self._agency(original)
            prior = self._prior_variance(agency)
            value = -self._before(agency, prior)
        except (Undefined, SchemaError):
            return None
        return value / prior if self.scale == "prior" else value

    def _before(self, agency: Belief, prior: float) -> float:
        """D + U(agency) before the release: the prior's guess is off by its own standard deviation."""
        guess = Belief(agency.mean + prior**0.5, prior, self.prior_records)
        return self._uncertainty(agency, guess)

    def _uncertainty(self, agency: Belief, society: Belief) -> float:
        """D(agency, society) + U(agency)."""
        if self.divergence == "kl":
            if not (agency.variance > 0 and society.variance > 0):
                raise Undefined("a certain belief has an infinite divergence: use the one of the loss.")
            return float(normal_divergence((agency[:2]), (society[:2]))) + agency.variance  # type: ignore[arg-type]
        return (society.mean - agency.mean) ** 2 + agency.variance

    def _society(self, masked: Microdata) -> tuple[Belief, bool]:
        key = "society", self._wanted, self.user, self.method if self.user == "informed" else None
        return masked.remember(key, lambda: self._believed(masked))

    def _believed(self, masked: Microdata) -> tuple[Belief, bool]:
        corrected = self._wanted.corrected(masked, self.method) if self.user == "informed" else None
        return (self._wanted.belief(masked), False) if corrected is None else (corrected, True)

    def _agency(self, original: Microdata) -> Belief:
        return original.remember(("agency", self._wanted), lambda: self._wanted.belief(original))

    def _prior_variance(self, agency: Belief) -> float:
        spread = agency.variance * (agency.records + 1)
        if not spread**0.5 > TINY * abs(agency.mean):  # below it is rounding
            raise Undefined(f"{self.on!r} has no spread, so there is nothing to learn about it.")
        return spread / self.prior_records

    @property
    def _wanted(self) -> Estimand:
        return Estimand(self.of, self.on, self.formula, self.category, self.above, self.weighted)
