"""Regressions that a synthesis keeps: their terms are part of the model that the response is drawn from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from sdcmap.core import Array
from sdcmap.core.formula import Formula, parse_nested_formula, split_logarithm
from sdcmap.data.amounts import amounts, is_amount
from sdcmap.data.microdata import Microdata
from sdcmap.errors import PlanError
from sdcmap.methods._column_models import MIN_CATEGORY_RECORDS, KeptTerms

Pair = tuple[Array, Array]  # a regressor of the original records, and of the new ones


def response_of(formula: Formula) -> tuple[str, bool]:
    """Return the column that a formula explains, and whether by its logarithm; of "region=north" it is the region."""
    return split_logarithm(formula.response.partition("=")[0].strip())


def predictors_of(formula: Formula) -> tuple[str, ...]:
    """Return the columns that explain the response."""
    return tuple(dict.fromkeys(split_logarithm(name)[0] for name in formula.predictors))


def kept_problems(texts: Sequence[str], on: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong with the formulas, each as the second part of a sentence."""
    explained: list[str] = []
    for text in texts:
        try:
            formula = parse_nested_formula(text)
        except PlanError as error:
            yield from (f".keep: {problem}" for problem in error.problems)
            continue
        name, _ = response_of(formula)
        if name not in on:
            yield f".keep: {text!r} explains {name!r}, which is not replaced."
        elif name in explained:
            yield f".keep has two models of {name!r}, and only one of them could be kept."
        else:
            later = [own for own in predictors_of(formula) if own in on[on.index(name) :]]
            if later:
                yield f".keep: {text!r} needs {', '.join(map(repr, later))} before {name!r} in `on`."
        explained.append(name)


def kept_incompatibilities(texts: Sequence[str], data: Microdata, known: Sequence[str]) -> Iterator[str]:
    """Yield why models do not fit a file in which the columns `known` are predictors or replaced."""
    for formula in map(parse_nested_formula, texts):
        for term in (formula.response.partition("=")[0].strip(), *formula.predictors):
            name, logged = split_logarithm(term)
            if name in data.schema and logged and not is_amount(data, name):
                yield f"Synthesize.keep takes the logarithm of {name!r}, which has categories."
        if missing := [name for name in predictors_of(formula) if name not in known]:
            yield f"Synthesize.keep: {', '.join(map(repr, missing))} is neither replaced nor a predictor."


def kept_terms(texts: Sequence[str], name: str, data: Microdata, new: Microdata) -> KeptTerms | None:
    """Return the terms of the model of a column, in the original and in the new file; None if no model explains it.

    Numbers are standardized; a missing number is 0, and whether it is missing is a regressor of its own in every synthesis.
    """
    for formula in map(parse_nested_formula, texts):
        response, logged = response_of(formula)
        if response == name:
            columns = {factor: _columns(factor, data, new) for factor in formula.predictors}
            terms = [
                _multiply(pairs)
                for factors in formula.products
                if factors
                for pairs in product(*(columns[factor] for factor in factors))
            ]
            enough = [pair for pair in terms if np.count_nonzero(pair[0]) >= MIN_CATEGORY_RECORDS]
            return KeptTerms(tuple(enough), "logarithm" if logged else "numbers")
    return None


def _columns(term: str, data: Microdata, new: Microdata) -> list[Pair]:
    """Return a predictor as regressors: a number, or indicators of all categories but the most frequent one."""
    name, logged = split_logarithm(term)
    if is_amount(data, name):
        both = amounts(data, name), amounts(new, name)
        first, second = (_logarithm(x) for x in both) if logged else both
        known = first[np.isfinite(first)]
        center, spread = (float(known.mean()), float(known.std())) if len(known) else (0.0, 0.0)
        if spread == 0:
            return []
        return [(np.nan_to_num((first - center) / spread), np.nan_to_num((second - center) / spread))]
    codes, drawn = data.codes(name), new.codes(name)
    count = np.bincount(codes, minlength=1)
    return [(codes == code, drawn == code) for code in np.argsort(-count, kind="stable")[1:].tolist() if count[code]]


def _logarithm(x: Array) -> Array:
    return np.log(x, out=np.full(len(x), np.nan), where=x > 0)


def _multiply(pairs: Sequence[Pair]) -> Pair:
    first, second = pairs[0]
    for own, drawn in pairs[1:]:
        first, second = first * own, second * drawn
    return first, second
