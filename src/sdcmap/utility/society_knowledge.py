"""What society knows after a release, and how sure it is, as the agency estimates it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
import polars as pl

from sdcmap.core import Array, Estimate, Generator, Measure, Method, Microdata, Range
from sdcmap.corrections.correcting import correct
from sdcmap.corrections.formula import check_linear, parse_nested_formula, predictors
from sdcmap.errors import PlanError, SchemaError, Undefined, did_you_mean
from sdcmap.kernels.statistics.beliefs import normal_divergence
from sdcmap.kernels.statistics.moments import TINY

# A number that society wants of a file, and what it believes of it: a mean, total, proportion or regression coefficient.
#
# A belief is a mean and a variance. From a file as it is they are those of the weighted Bayesian bootstrap: records drawn
# with Dirichlet weights whose sum is the effective number of records (Kish). A mean has them in closed form; a regression
# coefficient to first order, where they are White's (Rubin 1981; Lancaster 2003).


SINGULAR = 1e-9  # a normal matrix whose smallest eigenvalue is below this share of its largest has no inverse


class Belief(NamedTuple):
    """Mean and variance, and the effective number of records it was drawn from."""

    mean: float
    variance: float
    records: float


def _shares(weights: Array) -> tuple[Array, float]:
    """The share of each record, and the effective number of records (Kish)."""
    share: Array = weights / weights.sum()
    return share, 1 / float((share**2).sum())


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

    label: ClassVar[str] = "Society's expected knowledge (SEK)"
    description: ClassVar[str] = (
        "How well the agency expects users to know a population figure from the release; 0 means exactly."
    )

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

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from (f"{type(self).__name__}{problem}" for problem in self._lacks(data))

    def for_informed_attacker(self, method: Method) -> Measure:
        return replace(self, method=method)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        self.check_variables(original)
        agency = self._agency(original)
        key = "society", *self._wanted, self.user, self.method if self.user == "informed" else None
        society, corrected = masked.remember(key, lambda: self._believed(masked))
        prior = self._prior_variance(agency)
        value = -self._uncertainty(agency, society)
        parts = {"bias": (society.mean - agency.mean) / prior**0.5, "corrected": float(corrected)}
        return Estimate(value=value / prior if self.scale == "prior" else value, parts=parts)

    def baseline(self, original: Microdata) -> float | None:
        try:
            agency = self._agency(original)
            prior = self._prior_variance(agency)
            guess = Belief(agency.mean + prior**0.5, prior, self.prior_records)  # off by its own standard deviation
            value = -self._uncertainty(agency, guess)
        except (Undefined, SchemaError):
            return None
        return value / prior if self.scale == "prior" else value

    def _uncertainty(self, agency: Belief, society: Belief) -> float:
        """D(agency, society) + U(agency)."""
        if self.divergence == "kl":
            if not (agency.variance > 0 and society.variance > 0):
                raise Undefined("a certain belief has an infinite divergence: use the one of the loss.")
            return float(normal_divergence((agency[:2]), (society[:2]))) + agency.variance  # type: ignore[arg-type]
        return (society.mean - agency.mean) ** 2 + agency.variance

    def _believed(self, masked: Microdata) -> tuple[Belief, bool]:
        corrected = self._corrected(masked) if self.user == "informed" else None
        return (self._belief(masked), False) if corrected is None else (corrected, True)

    def _agency(self, original: Microdata) -> Belief:
        return original.remember(("agency", *self._wanted), lambda: self._belief(original))

    def _prior_variance(self, agency: Belief) -> float:
        spread = agency.variance * (agency.records + 1)
        if not spread**0.5 > TINY * abs(agency.mean):  # below it is rounding
            raise Undefined(f"{self.on!r} has no spread, so there is nothing to learn about it.")
        return spread / self.prior_records

    @property
    def _wanted(self) -> tuple[object, ...]:
        """What tells the number that is wanted from others."""
        return self.of, self.on, self.formula, self.category, self.above, self.weighted

    def _lacks(self, data: Microdata) -> Iterator[str]:
        """Every reason why the file does not tell the number, half a sentence each."""
        if self.weighted and data.weight is None:
            yield ".weighted needs a file with a weight."
        if self.of == "coefficient":
            try:
                formula = parse_nested_formula(self.formula)
                lacking = [name for name in formula.names if name not in data.schema]
                yield from (f".formula: no column {name!r}.{did_you_mean(name, data.names)}" for name in lacking)
                if not lacking:
                    check_linear(data, formula)
                    labels = predictors(data, formula).labels
                    if self.on not in labels:
                        yield f".on must name a term of the formula.{did_you_mean(self.on, labels)}"
            except (PlanError, SchemaError) as problem:
                yield f".formula: {problem}"
            return
        if self.on not in data.schema:
            yield f".on: no column {self.on!r}.{did_you_mean(self.on, data.names)}"
            return
        levels = data.column(self.on).levels
        if self.of != "proportion" and levels is not None:
            yield f".of {self.of!r} needs a numeric variable; {self.on!r} is {data.schema[self.on].kind}."
        if self.of == "proportion" and (levels is None) != (self.above is not None):
            yield '.of "proportion" needs .category for a category, or .above for a number.'
        if self.of == "proportion" and levels is not None and self.category not in levels.cast(pl.String):
            yield f".category is not one of the categories of {self.on!r}."

    def _belief(self, data: Microdata) -> Belief:
        """What a file says as it is, to a user who does not know that it was masked, or to the agency."""
        if self.of == "coefficient":
            return self._coefficient(data)
        y = self._values(data)
        known = np.isfinite(y)
        y, weights = y[known], self._weights(data)[known]
        if len(y) < 2:
            raise Undefined(f"{self.on!r} has fewer than 2 values.")
        share, records = _shares(weights)
        size = float(weights.sum()) if self.of == "total" else 1.0
        counted = y[share > 0]  # of a constant the mean is itself, to the last digit
        mean = float(counted[0] if counted.min() == counted.max() else share @ y)
        variance = float(share @ (y - mean) ** 2) / (records + 1)
        return Belief(size * mean, size**2 * variance, records)

    def _corrected(self, data: Microdata) -> Belief | None:
        """What a reader of the method note gets with the noise taken off (`correct`); None where the note tells no more
        than the file: another method, nothing masked that is wanted, or a proportion."""
        if (method := self.method) is None or self.of == "proportion":
            return None
        fitted = self.of == "coefficient"
        used = parse_nested_formula(self.formula).names if fitted else (self.on,)
        if not set(used) & set(method.masked_names):
            return None
        regress, on = (self.formula,) if fitted else (), () if fitted else (self.on,)
        try:
            result = correct(data, method, regress=regress, on=on, weighted=self.weighted)
        except Undefined:
            return None
        row = result.of("coefficient" if fitted else "mean").filter(pl.col("with" if fitted else "of") == self.on)
        value, se = row["corrected"][0], row["se"][0]
        if value is None or se is None:
            return None
        weights = self._weights(data)
        size = float(weights[np.isfinite(self._values(data))].sum()) if self.of == "total" else 1.0
        return Belief(size * value, (size * se) ** 2, _shares(weights)[1])

    def _values(self, data: Microdata) -> Array:
        levels = data.column(self.on).levels
        if self.of != "proportion" or levels is None:
            x = data.numbers(self.on)
            return x if self.of != "proportion" else np.where(np.isnan(x), np.nan, x > (self.above or 0.0))
        is_it = (levels.cast(pl.String) == self.category).fill_null(False).to_numpy()
        return np.where(data.missing(self.on), np.nan, is_it[data.codes(self.on)])

    def _weights(self, data: Microdata) -> Array:
        weights = data.weights if self.weighted else np.ones(len(data))
        if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
            raise Undefined("survey weights must be finite and not below 0, with a sum above 0.")
        return weights

    def _coefficient(self, data: Microdata) -> Belief:
        """Weighted least squares; the variance is that of the influence of each record, p_i (M^-1 x_i e_i)^2."""
        formula = parse_nested_formula(self.formula)
        check_linear(data, formula)
        made = predictors(data, formula)
        x, y = made.design.block(slice(0, len(data))), data.numbers(formula.response)
        complete = ~np.isnan(x).any(axis=1) & ~np.isnan(y)
        x, y, weights = x[complete], y[complete], self._weights(data)[complete]
        if self.on not in made.labels or len(y) <= x.shape[1] or not weights.sum() > 0:
            raise Undefined("the regression has more coefficients than complete records, or a term is gone.")
        share, records = _shares(weights)
        scale = np.sqrt(share @ x**2)
        x = x / np.where(scale > 0, scale, 1.0)
        normal = (x * share[:, None]).T @ x
        values = np.linalg.eigvalsh(normal)
        if values[0] <= SINGULAR * values[-1]:
            raise Undefined("the predictors of the regression say the same, so it has no coefficients.")
        inverse = np.linalg.inv(normal)
        beta = inverse @ ((x * share[:, None]).T @ y)
        term = made.labels.index(self.on)
        influence = (x @ inverse[term]) * (y - x @ beta)
        variance = float(share @ influence**2) / (records + 1)
        return Belief(float(beta[term] / scale[term]), variance / float(scale[term]) ** 2, records)


# How sure society is after a release.


@dataclass(frozen=True)
class SocietyUtility(SocietyKnowledge):
    """Minus society's own uncertainty about a number: Trottini's data utility for society, DUS, at most 0.

    Society estimates as for `SocietyKnowledge`. What counts here is how sure it is, whether its guess is right or not: 0 is
    to be certain, -1 to be as unsure as before.

    Parameters
    ----------
    divergence : "loss" or "kl"; it plays no part here, and stands for the four measures to be written alike.
    scale : "prior" divides by society's uncertainty before the release; "raw" does not.

    Formula: DUS = -v_S/U(prior), v_S and U(prior) as in `SocietyKnowledge`.
    Missing: left out; of a coefficient, records that lack a variable of the formula. Weights: used when `weighted`.
    Households are not used: persons are drawn one by one. Releasing nothing leaves the prior: -1.
    Reference: Trottini (2001), def. 6; Rubin (1981); Lancaster (2003).

    Examples
    --------
    >>> SocietyUtility(on="wage", user="informed").text
    "SocietyUtility(on='wage', user='informed')"
    """

    label: ClassVar[str] = "Data utility for society (DUS)"
    description: ClassVar[str] = (
        "How certain users can be of a population figure taken from the release; 0 means certain."
    )

    expectation: ClassVar[bool] = False

    def _uncertainty(self, agency: Belief, society: Belief) -> float:
        return society.variance
