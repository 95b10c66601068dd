"""What society learns from a release, and how certain it is, as the agency estimates it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple

import numpy as np
import polars as pl

from sdcmap.core import Array, Estimate, Generator, Measure, Method, Microdata, Range
from sdcmap.core.formula import parse_nested_formula
from sdcmap.core.named_files import verify_file
from sdcmap.corrections.correction import correct
from sdcmap.corrections.formula_columns import build_predictors, check_linear
from sdcmap.errors import PlanError, SchemaError, Undefined, did_you_mean
from sdcmap.files.reader import read
from sdcmap.kernels.statistics.beliefs import normal_divergence, normal_posterior
from sdcmap.kernels.statistics.moments import TINY
from sdcmap.theory.decision.prior import MAX_PRIORS, Prior
from sdcmap.theory.decision.robust_cases import pool_cases, worst_case

if TYPE_CHECKING:
    from sdcmap.theory.decision import Loss

# Society's belief about a mean, total, proportion or regression coefficient.
#
# A belief is a mean and a variance. For a file as it is, they are those of the weighted Bayesian bootstrap: records drawn
# with Dirichlet weights whose sum is the effective number of records (Kish). They have a closed form for a mean; for a
# regression coefficient they are White's, to first order (Rubin 1981; Lancaster 2003).


UNITS = {"quadratic": "unit^2", "bounded": "unit^2", "absolute": "unit", "zero-one": "probability"}
SINGULAR_RATIO = 1e-9  # of the smallest to the largest eigenvalue, below which a normal matrix is not inverted


class Belief(NamedTuple):
    """Mean and variance of a belief, and the effective number of records behind it."""

    mean: float
    variance: float
    records: float


class Case(NamedTuple):
    """One member of the class of priors and losses; mean None: the prior is not stated, and only its variance is known."""

    loss: Loss
    mean: float | None
    variance: float

    def update(self, release: Belief) -> Belief:
        """Return the belief after the release: a stated prior is updated, precisions add up."""
        if self.mean is None:
            return release
        mean, variance = normal_posterior(
            (self.mean, self.variance), np.array(release.mean), np.array(release.variance)
        )
        return Belief(float(mean), float(variance), release.records)

    def before(self, agency: Belief) -> Belief:
        """Return the belief before the release; one that is not stated is one standard deviation off."""
        mean = agency.mean + self.variance**0.5 if self.mean is None else self.mean
        return Belief(mean, self.variance, 0.0)


def expected_loss(loss: Loss, belief: tuple[float, float], guess: float) -> float:
    """Return the loss of a guess that a normal belief (mean, variance) expects; with variance 0 the mean is certain."""
    from sdcmap.theory.decision import Discrete, Normal, Quadratic

    if isinstance(loss, Quadratic):
        return (belief[0] - guess) ** 2 + belief[1]
    return float(loss.expected_loss(Normal(*belief) if belief[1] > 0 else Discrete([belief[0]], [1.0]), guess))


def _shares(weights: Array) -> tuple[Array, float]:
    """Return the share of each record, and the effective number of records (Kish)."""
    share: Array = weights / weights.sum()
    return share, 1 / float((share**2).sum())


@dataclass(frozen=True)
class SocietyKnowledge(Measure):
    """Minus the error that the agency expects in society's best guess of a number: Trottini's SEK, at most 0.

    Society wants a mean, a total, a proportion or a regression coefficient of the population, and estimates it from the
    release. The agency estimates it from the original and sees how far the two are apart. 0: society knows it exactly.

    Parameters
    ----------
    on : the variable; for a coefficient, the term of the formula, such as "age" or "sex=2".
    of : "mean", "total", "proportion" or "coefficient".
    formula : for a coefficient, such as "wage ~ age + sex"; the response is numeric.
    category : for a proportion, the category that is counted.
    above : for a proportion of a numeric variable: values above it (in the variable's unit) are counted.
    user : "naive" treats the release as an original file; "informed" has read the method note and removes noise
        (`sm.correct`) if the note states how, and otherwise acts like the naive user.
    weighted : use survey weights; needs a weight.
    prior_records : how much society knew before, as a number of records, at least 1e-6; without a stated `prior`.
    loss : of a wrong guess: "quadratic" (default), "absolute", "zero-one" (1 if farther off than `width`), "bounded" (the
        squared error, at most width^2). A list is a class of losses: the smallest utility counts.
    width : for "zero-one" and "bounded", in the unit of the number.
    prior : what society believes before, as the agency states it (`Prior`): mean and variance of the number itself, or
        an earlier file. Several, or intervals, are a class: the smallest utility counts.
    divergence : "loss", the squared error of the guess; "kl", as in the paper, for normal beliefs, in nats.
    scale : "prior" divides by society's uncertainty before the release; "raw" does not. "kl" needs "raw".
    method : how the file was made; a sweep or release fills it in.

    Formula: SEK = -[D(agency, society) + U(agency)] = -E_A L(theta, a_S)/U(prior), a_S society's best guess; with
        quadratic loss -[(m_A - m_S)^2 + v_A]/U(prior). Other losses use normal beliefs. Means m and
        variances v are those of the weighted Bayesian bootstrap of the original and of the release: for a mean v = sum
        p (y - m)^2/(n + 1), n the effective number of records; for a coefficient White's, to first order. Informed: the
        corrected value and its squared standard error. U(prior) = v_A (n + 1)/prior_records, of the original. A stated
        prior N(m, v) is updated by the release: precisions add up, and U(prior) is its own. Class: the smallest value.
        Replicates are averaged. `parts`: "bias", m_S - m_A in standard deviations of the prior; "corrected", whether
        noise was removed; "gain" and "relative_gain", over releasing nothing; of a class "case_1", "case_2", ...
    Missing: left out; for a coefficient, records without a variable of the formula. Weights: used when `weighted`.
    Households are not used: persons are drawn one by one. The value is an expectation: the bias of one draw is an
    accident.
    Releasing nothing leaves the prior, whose guess has mean squared error U(prior): -(1 + v_A/U(prior)); a stated prior
    has its own error.
    Reference: Trottini (2001), def. 7, with its sign corrected, par. 13-14; Rubin (1981); Lancaster (2003).

    Examples
    --------
    >>> SocietyKnowledge(on="age", of="coefficient", formula="wage ~ age").text
    "SocietyKnowledge(on='age', of='coefficient', formula='wage ~ age')"
    """

    label: ClassVar[str] = "Society's estimated knowledge (SEK)"
    description: ClassVar[str] = (
        "How well the agency expects users to know a population figure from the release; 0 means exactly."
    )

    axis: ClassVar[Literal["risk", "utility"]] = "utility"
    unit: ClassVar[str] = "prior uncertainty"
    direction: ClassVar[Literal["lower", "higher"]] = "higher"
    bounds: ClassVar[tuple[float | None, float | None]] = (None, 0.0)
    revision: ClassVar[int] = 2  # 2: stated priors, losses, gains
    expectation: ClassVar[bool] = True
    has_release_value: ClassVar[bool] = True  # definition 7 is given the released data
    missing: ClassVar[str] = "left out; for a regression, incomplete records"
    weights: ClassVar[str] = "used when `weighted`, else every record counts once"

    on: str
    of: Literal["mean", "total", "proportion", "coefficient"] = "mean"
    formula: str = ""
    category: str = ""
    above: float | None = None
    user: Literal["naive", "informed"] = "naive"
    weighted: bool = False
    prior_records: Annotated[float, Range(1e-6)] = 1.0
    loss: tuple[Literal["quadratic", "absolute", "zero-one", "bounded"], ...] = ()
    width: Annotated[float, Range(0)] = 0.0
    prior: tuple[Prior, ...] = ()
    divergence: Literal["loss", "kl"] = "loss"
    scale: Literal["prior", "raw"] = "prior"
    method: Method | None = None

    def problems(self) -> Iterator[str]:
        if self.divergence == "kl" and self.scale != "raw":
            yield '.divergence "kl" is in nats: it needs .scale "raw".'
        if self.divergence == "kl" and self.loss not in ((), ("quadratic",)):
            yield '.divergence "kl" goes with .loss "quadratic" only.'
        if len(set(self.loss)) < len(self.loss):
            yield ".loss must name each loss once."
        if self.scale == "raw" and len({UNITS[word] for word in self.loss}) > 1:
            yield '.loss names losses of different units: they have a common smallest utility only with .scale "prior".'
        if not self.width and {"zero-one", "bounded"} & {*self.loss}:
            yield '.loss "zero-one" and "bounded" need a .width above 0.'
        if any(prior.categories and self.of != "proportion" for prior in self.prior):
            yield ".prior states counts of categories, which belong to a proportion: state a mean and a variance."
        if (self.of == "coefficient") != bool(self.formula):
            yield '.formula is required for .of "coefficient", and used only there.'
        if (self.of == "proportion") != bool(self.category or self.above is not None):
            yield '.category or .above is required for .of "proportion", and used only there.'
        if self.category and self.above is not None:
            yield ".category and .above exclude each other."

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return parse_nested_formula(self.formula).names if self.formula else (self.on,)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        problems = [f"{type(self).__name__}{problem}" for problem in self._quantity_problems(data)]
        yield from problems
        for prior in () if problems else self.prior:
            try:
                self._stated_priors(data, prior)
            except (SchemaError, Undefined) as problem:
                yield f"{type(self).__name__}.prior: {problem}"

    def for_informed_attacker(self, method: Method) -> Measure:
        return replace(self, method=method)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        self.check_variables(original)
        agency = self._agency(original)
        key = "society", *self._quantity_key, self.user, self.method if self.user == "informed" else None
        release, corrected = masked.remember(key, lambda: self._society_belief(masked))
        cases = self._cases(original, agency)
        values = [self._value(agency, case.update(release), case) for case in cases]
        index, parts = worst_case(values, [self._value(agency, case.before(agency), case) for case in cases], min)
        society = cases[index].update(release)
        bias = (society.mean - agency.mean) / cases[index].variance ** 0.5
        return Estimate(value=values[index], parts={"bias": bias, "corrected": float(corrected)} | parts)

    def pool(self, estimates: Sequence[Estimate]) -> Estimate:
        return pool_cases(estimates, min, super().pool)

    def baseline(self, original: Microdata) -> float | None:
        try:
            agency = self._agency(original)
            cases = self._cases(original, agency)
            return min(self._value(agency, case.before(agency), case) for case in cases)
        except (Undefined, SchemaError):
            return None

    def _cases(self, original: Microdata, agency: Belief) -> list[Case]:
        """Return every member of the class of priors and losses."""
        key = "society cases", type(self), *self._quantity_key, self.prior, self.prior_records, self.loss, self.width
        return original.remember(key, lambda: self._find_cases(original, agency))

    def _find_cases(self, original: Microdata, agency: Belief) -> list[Case]:
        from sdcmap.theory.decision import loss_by_name

        losses = [loss_by_name(word, self.width) for word in self.loss or ("quadratic",)]
        if not self.prior:
            variance = self._prior_variance(agency)
            return [Case(loss, None, variance) for loss in losses]
        stated = [member for prior in self.prior for member in self._stated_priors(original, prior)]
        if len(stated) * len(losses) > MAX_PRIORS:
            raise SchemaError(f"more than {MAX_PRIORS} priors and losses cannot be evaluated.")
        return [Case(loss, mean, variance) for mean, variance in stated for loss in losses]

    def _stated_priors(self, original: Microdata, prior: Prior) -> list[tuple[float, float]]:
        """Return mean and variance of each member of a stated prior."""
        if prior.means:
            return prior.normals()
        if prior.categories:  # as the file of so many records would say
            share, records = prior.shares().get(self.category, 0.0), sum(prior.counts)
            belief = Belief(share, share * (1 - share) / (records + 1), records)
        else:
            belief = replace(self, weighted=bool(prior.weight))._belief(self._earlier_file(original, prior))
        if not belief.variance > 0:
            raise SchemaError("a prior must leave some uncertainty; the stated one is certain.")
        return [(belief.mean, belief.variance)]

    def _earlier_file(self, original: Microdata, prior: Prior) -> Microdata:
        """Return the file of a prior, with the kinds that the variables have in the data."""
        names = self.variables(original)
        path, kinds = verify_file(prior.population, prior.sha256), {name: original.schema[name].kind for name in names}
        file = read(path, kinds=kinds, weight=prior.weight or None)
        if lacking := [name for name in names if name not in file.names]:
            raise SchemaError(f"{prior.population} has no column {', '.join(map(repr, lacking))}.")
        return file

    def _value(self, agency: Belief, society: Belief, case: Case) -> float:
        """Return the utility of a belief of society; `scale` divides by the loss that society expects before."""
        value = -self._uncertainty(agency, society, case.loss)
        if self.scale == "raw":
            return value
        scale = expected_loss(case.loss, (case.mean or 0.0, case.variance), case.mean or 0.0)
        if not scale > 0:
            raise Undefined("the prior is certain under this loss, so there is nothing to learn.")
        return value / scale

    def _uncertainty(self, agency: Belief, society: Belief, loss: Loss) -> float:
        """Return D(agency, society) + U(agency): the loss that the agency expects of society's best guess."""
        if self.divergence == "kl":
            if not (agency.variance > 0 and society.variance > 0):
                raise Undefined('a certain belief has an infinite divergence: set divergence = "loss".')
            return float(normal_divergence((agency[:2]), (society[:2]))) + agency.variance  # type: ignore[arg-type]
        return expected_loss(loss, (agency.mean, agency.variance), society.mean)

    def _society_belief(self, masked: Microdata) -> tuple[Belief, bool]:
        """Return society's belief, and whether noise was removed."""
        corrected = self._correct_noise(masked) if self.user == "informed" else None
        return (self._belief(masked), False) if corrected is None else (corrected, True)

    def _agency(self, original: Microdata) -> Belief:
        """Return the agency's belief, from the original."""
        return original.remember(("agency", *self._quantity_key), lambda: self._belief(original))

    def _prior_variance(self, agency: Belief) -> float:
        """Return society's uncertainty before the release."""
        spread = agency.variance * (agency.records + 1)
        if not spread**0.5 > TINY * abs(agency.mean):  # a smaller spread is rounding error
            raise Undefined(f"{self.on!r} does not vary, so there is nothing to learn about it.")
        return spread / self.prior_records

    @property
    def _quantity_key(self) -> tuple[object, ...]:
        """The parameters that identify the wanted number."""
        return self.of, self.on, self.formula, self.category, self.above, self.weighted

    def _quantity_problems(self, data: Microdata) -> Iterator[str]:
        """Yield every reason why the number cannot be estimated from the file, half a sentence each."""
        if self.weighted and data.weight is None:
            yield ".weighted needs a file with a weight."
        if self.of == "coefficient":
            try:
                formula = parse_nested_formula(self.formula)
                lacking = [name for name in formula.names if name not in data.schema]
                yield from (f".formula: no column {name!r}.{did_you_mean(name, data.names)}" for name in lacking)
                if not lacking:
                    check_linear(data, formula)
                    labels = build_predictors(data, formula).labels
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
        """Return the belief of the agency, or of a user who does not know that the file was masked."""
        if self.of == "coefficient":
            return self._coefficient(data)
        y = self._values(data)
        known = np.isfinite(y)
        y, weights = y[known], self._weights(data)[known]
        if len(y) < 2:
            raise Undefined(f"{self.on!r} has fewer than 2 values.")
        share, records = _shares(weights)
        size = float(weights.sum()) if self.of == "total" else 1.0
        counted = y[share > 0]  # the mean of a constant must be exact
        mean = float(counted[0] if counted.min() == counted.max() else share @ y)
        variance = float(share @ (y - mean) ** 2) / (records + 1)
        return Belief(size * mean, size**2 * variance, records)

    def _correct_noise(self, data: Microdata) -> Belief | None:
        """Return the belief of a user who removes the noise (`correct`), or None if the method note does not help.

        It does not help for other methods, if no wanted variable was masked, or for a proportion.
        """
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
        """Return the values whose mean is wanted; 0 or 1 for a proportion."""
        levels = data.column(self.on).levels
        if self.of != "proportion" or levels is None:
            x = data.numbers(self.on)
            return x if self.of != "proportion" else np.where(np.isnan(x), np.nan, x > (self.above or 0.0))
        is_it = (levels.cast(pl.String) == self.category).fill_null(False).to_numpy()
        return np.where(data.missing(self.on), np.nan, is_it[data.codes(self.on)])

    def _weights(self, data: Microdata) -> Array:
        """Return the weights to count with, or raise `Undefined` if they are not valid."""
        weights = data.weights if self.weighted else np.ones(len(data))
        if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
            raise Undefined("survey weights must be finite and not negative, with a sum above 0.")
        return weights

    def _coefficient(self, data: Microdata) -> Belief:
        """Fit weighted least squares; the variance is that of the influence of each record, p_i (M^-1 x_i e_i)^2."""
        formula = parse_nested_formula(self.formula)
        check_linear(data, formula)
        terms = build_predictors(data, formula)
        x, y = terms.design.block(slice(0, len(data))), data.numbers(formula.response)
        complete = ~np.isnan(x).any(axis=1) & ~np.isnan(y)
        x, y, weights = x[complete], y[complete], self._weights(data)[complete]
        if self.on not in terms.labels or len(y) <= x.shape[1] or not weights.sum() > 0:
            raise Undefined("the regression has more coefficients than complete records, or a term does not occur.")
        share, records = _shares(weights)
        # scale the columns, so that the test for singularity does not depend on units
        scale = np.sqrt(share @ x**2)
        x = x / np.where(scale > 0, scale, 1.0)
        normal = (x * share[:, None]).T @ x
        values = np.linalg.eigvalsh(normal)
        if values[0] <= SINGULAR_RATIO * values[-1]:
            raise Undefined("the predictors of the regression are collinear: leave one out.")
        inverse = np.linalg.inv(normal)
        beta = inverse @ ((x * share[:, None]).T @ y)
        term = terms.labels.index(self.on)
        influence = (x @ inverse[term]) * (y - x @ beta)
        variance = float(share @ influence**2) / (records + 1)
        return Belief(float(beta[term] / scale[term]), variance / float(scale[term]) ** 2, records)


# How certain society is after a release.


@dataclass(frozen=True)
class SocietyUtility(SocietyKnowledge):
    """Minus society's own uncertainty about a number: Trottini's data utility for society (DUS), at most 0.

    Society estimates as in `SocietyKnowledge`. Here it counts how certain it is, whether or not its guess is right: 0
    is certain, -1 as uncertain as before.

    Parameters
    ----------
    divergence : "loss" or "kl"; not used here, and present so that the four measures have the same parameters.
    scale : "prior" divides by the loss that society expects before the release; "raw" does not.

    Formula: DUS = -U(posterior)/U(prior), with quadratic loss -v_S/U(prior), v_S and U(prior) as in `SocietyKnowledge`.
    Missing: left out; for a coefficient, records without a variable of the formula. Weights: used when `weighted`.
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

    def _uncertainty(self, agency: Belief, society: Belief, loss: Loss) -> float:
        return expected_loss(loss, (society.mean, society.variance), society.mean)
