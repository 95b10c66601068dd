"""A number that society wants of a file, and what it believes of it: a mean, total, proportion or regression coefficient.

A belief is a mean and a variance. From a file as it is they are those of the weighted Bayesian bootstrap: records drawn
with Dirichlet weights whose sum is the effective number of records (Kish). A mean has them in closed form; a regression
coefficient to first order, where they are White's (Rubin 1981; Lancaster 2003).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from sdcmap.core.method import Method
from sdcmap.corrections.correcting import correct
from sdcmap.corrections.formula import check_linear, parse_nested_formula, predictors
from sdcmap.data.microdata import Microdata
from sdcmap.errors import PlanError, SchemaError, Undefined, did_you_mean
from sdcmap.kernels.arrays import Array

SINGULAR = 1e-9  # a normal matrix whose smallest eigenvalue is below this share of its largest has no inverse


class Belief(NamedTuple):
    """Mean and variance, and the effective number of records it was drawn from."""

    mean: float
    variance: float
    records: float


@dataclass(frozen=True)
class Estimand:
    """What is wanted: `of` "mean", "total", "proportion" or "coefficient"; see `SocietyKnowledge` for the fields."""

    of: str
    on: str
    formula: str
    category: str
    above: float | None
    weighted: bool

    def misfits(self, data: Microdata) -> Iterator[str]:
        """Every reason why the file does not tell it, half a sentence each."""
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
        if self.of == "proportion" and levels is not None and self.category not in levels.cast(pl.String).to_list():
            yield f".category is not one of the categories of {self.on!r}."

    def belief(self, data: Microdata) -> Belief:
        """What a file says as it is, to a user who does not know that it was masked, or to the agency."""
        if self.of == "coefficient":
            return self._coefficient(data)
        y = self._values(data)
        known = np.isfinite(y)
        y, weights = y[known], self._weights(data)[known]
        if len(y) < 2:
            raise Undefined(f"{self.on!r} has fewer than 2 values.")
        share = weights / weights.sum()
        size = self._size(weights)
        records = 1 / float((share**2).sum())
        counted = y[share > 0]
        mean = float(
            counted[0] if counted.min() == counted.max() else share @ y
        )  # of a constant: itself, to the last digit
        variance = float(share @ (y - mean) ** 2) / (records + 1)
        return Belief(size * mean, size**2 * variance, records)

    def corrected(self, data: Microdata, method: Method | None) -> Belief | None:
        """What a reader of the method note gets with the noise taken off (`correct`); None where the note tells no more
        than the file: another method, nothing masked that is wanted, or a proportion."""
        if method is None or self.of == "proportion":
            return None
        regress = (self.formula,) if self.of == "coefficient" else ()
        used = parse_nested_formula(self.formula).names if regress else (self.on,)
        if not set(used) & set(method.masked_names):
            return None
        try:
            on = () if regress else (self.on,)
            result = correct(data, method, regress=regress, on=on, weighted=self.weighted)
        except Undefined:
            return None
        row = result.of("coefficient" if regress else "mean")
        row = row.filter((pl.col("with") if regress else pl.col("of")) == self.on)
        value, se = row["corrected"][0], row["se"][0]
        if value is None or se is None:
            return None
        weights = self._weights(data)
        size = self._size(weights[np.isfinite(self._values(data))]) if self.of == "total" else 1.0
        return Belief(size * value, (size * se) ** 2, 1 / float(((weights / weights.sum()) ** 2).sum()))

    def _values(self, data: Microdata) -> Array:
        if self.of != "proportion":
            return data.numbers(self.on)
        levels = data.column(self.on).levels
        if levels is None:
            x = data.numbers(self.on)
            return np.where(np.isnan(x), np.nan, x > (0.0 if self.above is None else self.above))
        is_it = (levels.cast(pl.String) == self.category).fill_null(False).to_numpy()
        return np.where(data.missing(self.on), np.nan, is_it[data.codes(self.on)])

    def _weights(self, data: Microdata) -> Array:
        weights = data.weights if self.weighted else np.ones(len(data))
        if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
            raise Undefined("survey weights must be finite and not below 0, with a sum above 0.")
        return weights

    def _size(self, weights: Array) -> float:
        """What a mean is multiplied by: the weights' sum for a total."""
        return float(weights.sum()) if self.of == "total" else 1.0

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
        share = weights / weights.sum()
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
        records = 1 / float((share**2).sum())
        variance = float(share @ influence**2) / (records + 1)
        return Belief(float(beta[term] / scale[term]), variance / float(scale[term]) ** 2, records)
