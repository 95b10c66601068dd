"""Regression formulas such as "y ~ x1 + x2 + x1:x2", and the columns that they ask of a file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from sdcmap.core import Array, Microdata, PlanError, SchemaError, did_you_mean
from sdcmap.corrections.wick_polynomials import Term
from sdcmap.kernels.statistics.regression import Design

SYNTAX = "a formula reads 'y ~ x1 + x2 + x1:x2', with x1*x2 short for x1 + x2 + x1:x2"


@dataclass(frozen=True)
class Formula:
    """A response and products of predictors; the empty product is the intercept."""

    response: str
    products: tuple[tuple[str, ...], ...]

    @property
    def predictors(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for factors in self.products for name in factors))

    @property
    def names(self) -> tuple[str, ...]:
        return self.response, *self.predictors


def parse_formula(text: str) -> Formula:
    """The formula that a text stands for.

    >>> parse_formula("y ~ a*b + c").products
    ((), ('a',), ('b',), ('a', 'b'), ('c',))
    """
    left, tilde, right = text.partition("~")
    response = left.strip()
    products: dict[tuple[str, ...], None] = {(): None}
    for part in right.split("+") if right.strip() else []:
        factors = tuple(factor.strip() for factor in re.split("[:*]", part))
        if not all(factors):
            raise PlanError(f"{text!r} cannot be read: {SYNTAX}.")
        sizes = range(1, len(factors) + 1) if "*" in part else [len(factors)]
        products |= dict.fromkeys(tuple(sorted(some)) for size in sizes for some in combinations(factors, size))
    formula = Formula(response, tuple(products))
    if not tilde or not response or len(products) == 1 or response in formula.predictors:
        raise PlanError(f"{text!r} cannot be read: {SYNTAX}.")
    return formula


def parse_nested_formula(text: str) -> Formula:
    """The same where every product comes with its factors: without them it depends on where a variable has its zero."""
    formula = parse_formula(text)
    for factors in formula.products:
        parts = combinations(factors, len(factors) - 1) if len(factors) > 1 else []
        if lacking := [":".join(part) for part in parts if part not in formula.products]:
            raise PlanError(f"{':'.join(factors)} needs {' and '.join(lacking)} in the formula as well.")
    return formula


@dataclass(frozen=True)
class Predictors:
    """The predictors of a formula as columns: numbers as they are, categories as indicators of all but a reference.

    names : the variable that each column comes from. labels : of the terms, such as "age:sex=male".
    """

    design: Design
    names: tuple[str, ...]
    labels: tuple[str, ...]

    def with_response(self, response: Array) -> Array:
        """The response and then the columns, n x (m + 1)."""
        return np.column_stack([response, *self.design.columns])

    @property
    def terms_with_response(self) -> tuple[Term, ...]:
        """The terms as products of the columns of `with_response`."""
        return tuple(tuple(column + 1 for column in term) for term in self.design.terms)


def build_predictors(
    data: Microdata, formula: Formula, *, rows: Array | None = None, original: Microdata | None = None,
    numbers: Mapping[str, Array] | None = None,
) -> Predictors:  # fmt: skip
    """The predictors of a formula in a file.

    rows : these records alone; by default all. original : the file whose first category is the reference; by default
    `data`. numbers : what stands in place of a numeric variable, such as its values with their scale restored.
    A variable with no category but the reference has no column, and its terms are left out.
    """
    columns: list[tuple[str, str, Array]] = []  # name, label, values
    for name in formula.predictors:
        if data.column(name).levels is None:
            values = data.numbers(name) if numbers is None else numbers[name]
            own = [(name, values if rows is None else values[rows])]
        else:
            own = _indicators(data, name, rows, _reference(original or data, name))
        columns += [(name, *column) for column in own]
    names = tuple(name for name, _, _ in columns)
    places = {name: [place for place, other in enumerate(names) if other == name] for name in formula.predictors}
    places_of = [product(*(places[name] for name in factors)) for factors in formula.products]
    terms = tuple(dict.fromkeys(tuple(sorted(term)) for combined in places_of for term in combined))
    texts = tuple(":".join(columns[place][1] for place in term) or "(intercept)" for term in terms)
    design = Design(tuple(values for *_, values in columns), terms, len(data) if rows is None else len(rows))
    return Predictors(design, names, texts)


def check_linear(data: Microdata, formula: Formula) -> None:
    """SchemaError where the file has no linear regression of this formula."""
    for name in formula.names:
        if name not in data.names:
            raise SchemaError(f"no column {name!r}.{did_you_mean(name, data.names)}")
    if data.column(formula.response).levels is not None:
        raise SchemaError(f"the response {formula.response!r} must be numeric.")
    for name in formula.predictors:
        if data.column(name).levels is not None and len(np.unique(data.codes(name)[~data.missing(name)])) < 2:
            raise SchemaError(f"{name!r} has fewer than 2 categories, so it explains nothing.")


def _indicators(data: Microdata, name: str, rows: Array | None, reference: str | None) -> list[tuple[str, Array]]:
    """A label and a column for each category that occurs but the reference; NaN where the category is missing."""
    levels, codes, gone = data.column(name).levels, data.codes(name), data.missing(name)
    if rows is not None:
        codes, gone = codes[rows], gone[rows]
    texts = {code: str(levels[code]) for code in np.unique(codes[~gone]).tolist()} if levels is not None else {}
    columns = {text: codes == code for code, text in texts.items() if text != reference}
    return [(f"{name}={text}", np.where(gone, np.nan, own) if gone.any() else own) for text, own in columns.items()]


def _reference(data: Microdata, name: str) -> str | None:
    """The first category that occurs."""
    levels, known = data.column(name).levels, ~data.missing(name)
    return None if levels is None or not known.any() else str(levels[int(data.codes(name)[known].min())])
