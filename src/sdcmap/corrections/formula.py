"""Regression formulas such as "y ~ x1 + x2 + x1:x2"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from sdcmap.data.microdata import Array, Microdata
from sdcmap.errors import PlanError, SchemaError, did_you_mean
from sdcmap.kernels.statistics.wick import Term

SHAPE = "a formula reads 'y ~ x1 + x2 + x1:x2', with x1*x2 short for x1 + x2 + x1:x2"


@dataclass(frozen=True)
class Formula:
    """A response and products of predictors; the empty product is the intercept."""

    response: str
    products: tuple[tuple[str, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.response, *(name for one in self.products for name in one))))


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
            raise PlanError(f"{text!r} cannot be read: {SHAPE}.")
        sizes = range(1, len(factors) + 1) if "*" in part else [len(factors)]
        products |= dict.fromkeys(tuple(sorted(some)) for size in sizes for some in combinations(factors, size))
    if not tilde or not response or len(products) == 1:
        raise PlanError(f"{text!r} cannot be read: {SHAPE}.")
    for one in products:
        lacking = [some for some in combinations(one, len(one) - 1) if some not in products] if len(one) > 1 else []
        if lacking:
            raise PlanError(
                f"{':'.join(one)} needs {' and '.join(':'.join(s) for s in lacking)} in the formula as well."
            )
    return Formula(response, tuple(products))


@dataclass(frozen=True)
class Design:
    """The columns of a regression: the response first, then predictors, categories as indicators of all but the first."""

    formula: Formula
    columns: Array  # n x m
    names: tuple[str, ...]  # of the columns; an indicator has the name of its variable
    terms: tuple[Term, ...]
    labels: tuple[str, ...]


def design(data: Microdata, formula: Formula, numbers: dict[str, Array]) -> Design:
    """The design of a formula; `numbers` are numeric variables with their scale restored."""
    for name in formula.names:
        if name not in data.names:
            raise SchemaError(f"no column {name!r}.{did_you_mean(name, data.names)}")
    if data.column(formula.response).levels is not None:
        raise SchemaError(f"the response {formula.response!r} must be numeric.")
    columns, names, labels = [numbers[formula.response]], [formula.response], [formula.response]
    places: dict[str, list[int]] = {}
    for name in formula.names:
        if name in places or name not in {factor for one in formula.products for factor in one}:
            continue
        made = [(name, numbers[name])] if name in numbers else _indicators(data, name)
        places[name] = list(range(len(columns), len(columns) + len(made)))
        columns += [values for _, values in made]
        labels += [label for label, _ in made]
        names += [name] * len(made)
    terms = {tuple(sorted(c)): None for one in formula.products for c in product(*(places[name] for name in one))}
    shown = [":".join(labels[k] for k in term) or "(intercept)" for term in terms]
    return Design(formula, np.column_stack(columns), tuple(names), tuple(terms), tuple(shown))


def _indicators(data: Microdata, name: str) -> list[tuple[str, Array]]:
    """0 or 1 for each category that occurs but the first; NaN where the category is missing."""
    levels, codes, gone = data.column(name).levels, data.codes(name), data.missing(name)
    if levels is None:
        raise SchemaError(f"column {name!r} is numeric.")
    met = np.unique(codes[~gone]).tolist()
    if len(met) < 2:
        raise SchemaError(f"{name!r} has fewer than 2 categories, so it explains nothing.")
    return [(f"{name}={levels[code]}", np.where(gone, np.nan, codes == code)) for code in met[1:]]
