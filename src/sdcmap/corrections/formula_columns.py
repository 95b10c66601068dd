"""The predictors of regression formulas as design columns in a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from sdcmap.core import Array, Microdata, SchemaError, did_you_mean
from sdcmap.core.formula import Formula
from sdcmap.corrections.wick_polynomials import Term
from sdcmap.kernels.statistics.regression import Design


@dataclass(frozen=True)
class Predictors:
    """The predictors of a formula as columns: numbers, and indicators of all categories except a reference.

    names : the variable of each column. labels : names of the terms, such as "age:sex=male".
    """

    design: Design
    names: tuple[str, ...]
    labels: tuple[str, ...]

    def with_response(self, response: Array) -> Array:
        """Return the response and then the columns, n x (m + 1)."""
        return np.column_stack([response, *self.design.columns])

    @property
    def terms_with_response(self) -> tuple[Term, ...]:
        """Return the terms as products of the columns of `with_response`."""
        return tuple(tuple(column + 1 for column in term) for term in self.design.terms)


def build_predictors(
    data: Microdata,
    formula: Formula,
    *,
    rows: Array | None = None,
    original: Microdata | None = None,
    numbers: Mapping[str, Array] | None = None,
) -> Predictors:
    """Return the predictors of a formula in a file.

    A variable that has only the reference category gives no column, and its terms are left out.

    rows : use only these records. original : the file whose first category is the reference; by default `data`.
    numbers : values that replace those of the numeric variables, for example after undoing a rescaling.
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
    # A product of variables becomes the products of all combinations of their columns.
    columns_of = {name: [j for j, other in enumerate(names) if other == name] for name in formula.predictors}
    combinations_of = [product(*(columns_of[name] for name in factors)) for factors in formula.products]
    terms = tuple(dict.fromkeys(tuple(sorted(term)) for combined in combinations_of for term in combined))
    texts = tuple(":".join(columns[j][1] for j in term) or "(intercept)" for term in terms)
    design = Design(tuple(values for *_, values in columns), terms, len(data) if rows is None else len(rows))
    return Predictors(design, names, texts)


def check_linear(data: Microdata, formula: Formula) -> None:
    """Raise SchemaError if a linear regression with this formula is impossible in the file."""
    for name in formula.names:
        if name not in data.names:
            raise SchemaError(f"no column {name!r}.{did_you_mean(name, data.names)}")
    if data.column(formula.response).levels is not None:
        raise SchemaError(f"the response {formula.response!r} must be numeric.")
    for name in formula.predictors:
        if data.column(name).levels is not None and len(np.unique(data.codes(name)[~data.missing(name)])) < 2:
            raise SchemaError(f"{name!r} has fewer than 2 categories, so it cannot be a predictor.")


def _indicators(data: Microdata, name: str, rows: Array | None, reference: str | None) -> list[tuple[str, Array]]:
    """Return a label and a column for each category that occurs, except the reference; NaN where it is missing."""
    levels, codes, missing = data.column(name).levels, data.codes(name), data.missing(name)
    if rows is not None:
        codes, missing = codes[rows], missing[rows]
    texts = {code: str(levels[code]) for code in np.unique(codes[~missing]).tolist()} if levels is not None else {}
    columns = {text: codes == code for code, text in texts.items() if text != reference}
    return [
        (f"{name}={text}", np.where(missing, np.nan, own) if missing.any() else own) for text, own in columns.items()
    ]


def _reference(data: Microdata, name: str) -> str | None:
    """Return the first category that occurs."""
    levels, known = data.column(name).levels, ~data.missing(name)
    return None if levels is None or not known.any() else str(levels[int(data.codes(name)[known].min())])
