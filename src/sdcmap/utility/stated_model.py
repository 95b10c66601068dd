"""Regressions that users state, such as "log(wage) ~ educ + sex + educ:sex", as analyses of a file."""

from __future__ import annotations

import numpy as np

from sdcmap.core import Microdata, SchemaError, did_you_mean
from sdcmap.core.formula import parse_nested_formula, split_logarithm
from sdcmap.data.amounts import is_amount
from sdcmap.utility.analyses import Amount, Categories, Category, Predictor, Regression

MAX_STATED_CATEGORIES = 50  # of a predictor; a model with more has hardly a record for each


def parse_model(text: str, data: Microdata) -> Regression:
    """Return the regression of a formula; raise PlanError or SchemaError where the file does not allow it.

    The response is a number, a column with two categories, or one category of a column, "region=north". Categories of
    predictors are relative to the most frequent one.
    """
    formula = parse_nested_formula(text)
    names = list(formula.predictors)
    predictors = tuple(_predictor(name, data, text) for name in names)
    products = tuple(tuple(names.index(name) for name in term) for term in formula.products if len(term) > 1)
    return Regression(_response(formula.response, data, text), predictors, products)


def _amount(term: str, data: Microdata, text: str) -> Amount | None:
    """Return a numeric column or its logarithm; None for a column with categories."""
    name, logged = split_logarithm(term)
    if name not in data.content_columns:
        hint = did_you_mean(name, data.content_columns)
        raise SchemaError(f"the model {text!r} names {name!r}, which is no released column.{hint}")
    if is_amount(data, name):
        return Amount(name, logged)
    if logged:
        raise SchemaError(f"the model {text!r} takes the logarithm of {name!r}, which has categories.")
    return None


def _response(term: str, data: Microdata, text: str) -> Amount | Category:
    name, has_category, category = (part.strip() for part in term.partition("="))
    amount = _amount(name, data, text)
    if amount is not None:
        return amount
    present = _categories(name, data)
    if has_category:
        if category not in present:
            raise SchemaError(f"the model {text!r} names a category of {name!r} that no record has.")
        return Category(name, category)
    if len(present) != 2:
        advice = f"Name one of its categories: '{name}=CATEGORY ~ ...'."
        raise SchemaError(f"the model {text!r} explains {name!r}, which has {len(present)} categories. {advice}")
    return Category(name, min(present, key=lambda one: present[one]))


def _predictor(term: str, data: Microdata, text: str) -> Predictor:
    amount = _amount(term, data, text)
    if amount is not None:
        return amount
    ordered = sorted(present := _categories(term, data), key=lambda one: -present[one])
    if not 2 <= len(ordered) <= MAX_STATED_CATEGORIES:
        problem = f"{len(ordered)} categories; a predictor has 2 to {MAX_STATED_CATEGORIES}"
        raise SchemaError(f"the model {text!r} uses {term!r}, which has {problem}. Recode it, or leave it out.")
    return Categories(term, ordered[0], tuple(ordered[1:]))


def _categories(name: str, data: Microdata) -> dict[str, int]:
    """Return the categories that occur with the numbers of their records."""
    levels, codes = data.column(name).levels, data.column(name).values
    texts = [] if levels is None else levels.to_list()
    counts = np.bincount(codes, minlength=len(texts)).tolist()
    return {str(text): count for text, count in zip(texts, counts, strict=True) if text is not None and count}
