"""Regression formulas such as "y ~ x1 + x2 + x1:x2" as text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import combinations

from sdcmap.errors import PlanError

ModelKey = tuple[str, frozenset[tuple[str, ...]]]  # the column that a model explains, or its logarithm, and its terms

LOGARITHM = re.compile(r"log\((.+)\)")
SYNTAX = "a formula has the form 'y ~ x1 + x2 + x1:x2', where x1*x2 is short for x1 + x2 + x1:x2"


@dataclass(frozen=True)
class Formula:
    """A response and products of predictors. The empty product is the intercept."""

    response: str
    products: tuple[tuple[str, ...], ...]

    @property
    def predictors(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for factors in self.products for name in factors))

    @property
    def names(self) -> tuple[str, ...]:
        return self.response, *self.predictors

    @property
    def key(self) -> ModelKey:
        """Return what is equal for formulas of the same model: their order and spaces, and the category, do not count.

        >>> parse_formula("log(y) ~ a + b").key == parse_formula("log( y )~b+ a").key
        True
        """
        terms = (tuple(sorted(map(_without_spaces, factors))) for factors in self.products if factors)
        return _without_spaces(self.response.partition("=")[0].strip()), frozenset(terms)


def parse_formula(text: str) -> Formula:
    """Parse a formula.

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
    """Parse a formula in which every product comes with its factors.

    Otherwise the coefficients would depend on the zero point of a variable.
    """
    formula = parse_formula(text)
    for factors in formula.products:
        parts = combinations(factors, len(factors) - 1) if len(factors) > 1 else []
        if missing := [":".join(part) for part in parts if part not in formula.products]:
            raise PlanError(f"{':'.join(factors)} needs {' and '.join(missing)} in the formula too.")
    return formula


def _without_spaces(term: str) -> str:
    """Return a term without spaces inside its logarithm."""
    name, logged = split_logarithm(term)
    return f"log({name})" if logged else name


def split_logarithm(term: str) -> tuple[str, bool]:
    """Return the column of a term, and whether its logarithm is meant.

    >>> split_logarithm("log(wage)")
    ('wage', True)
    """
    logged = LOGARITHM.fullmatch(term)
    return (logged[1].strip(), True) if logged else (term, False)
