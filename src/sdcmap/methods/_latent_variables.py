"""The latent normal variables of a copula for numbers and categories.

A number or an ordered category has one. A nominal variable has one for each category, and takes the category whose variable
is largest, as in a multinomial probit. Whether a value is missing is a latent variable, too; why, is drawn by the shares
of the reasons.
"""

from __future__ import annotations

import numpy as np

from sdcmap.core import Array, Generator
from sdcmap.data.microdata import Column, Microdata
from sdcmap.methods import shuffle

MAX_LATENT_CATEGORIES = 30  # of a nominal variable; the others share one latent variable
CALIBRATION_STEPS = 60


def latent_scores(data: Microdata, name: str) -> Array:
    """Return the normal scores of the latent variables of a variable, one per column. A view.

    A number or an ordinal variable has one; a nominal variable has one for each frequent category, and one for the others
    together, or a single one if it has two categories. One more says whether the value is missing.
    """
    missing = data.missing(name)
    if data.schema[name].kind == "nominal":
        indicators = _indicators(data, name)
        columns = [np.full(len(data), np.nan) for _ in indicators]
        for scores, own in zip(columns, indicators, strict=True):
            scores[~missing] = shuffle.normal_scores(own[~missing])
    else:
        columns = [data.view(shuffle.present_scores, name)]
    return np.column_stack([*columns, *([shuffle.normal_scores(missing)] if missing.any() else [])])


def _indicators(data: Microdata, name: str) -> list[Array]:
    """Return which records have each frequent category of a nominal variable, and which have one of the others."""
    order = _categories_by_frequency(data, name)[0]
    if len(order) == 2:
        return [data.codes(name) == order[0]]
    frequent = [data.codes(name) == code for code in order[:MAX_LATENT_CATEGORIES]]
    rest = np.isin(data.codes(name), order[MAX_LATENT_CATEGORIES:])
    return [*frequent, *([rest] if rest.any() else [])]


def _categories_by_frequency(data: Microdata, name: str) -> tuple[Array, Array]:
    """Return the categories that occur, the most frequent first, and the number of records of each."""
    count = np.bincount(data.codes(name)[~data.missing(name)], minlength=data.level_count(name))
    order = np.argsort(-count, kind="stable")[: np.count_nonzero(count)]
    return order, count[order]


def values_of_latent(data: Microdata, name: str, latent: Array, rng: Generator) -> Column:
    """Return the values of a variable that the latent variables of each record stand for, with the original shares."""
    column, missing = data.column(name), data.missing(name)
    values, reasons = column.values, None if column.reasons is None else np.zeros_like(column.reasons)
    if data.schema[name].kind == "nominal":
        drawn = _categories_of_latent(data, name, latent, rng).astype(values.dtype)
    else:
        drawn = shuffle.map_by_quantile(values[~missing], latent[:, 0])
    if missing.any():
        blank = np.flatnonzero(shuffle.map_by_quantile(missing, latent[:, -1]))
        donors = rng.choice(np.flatnonzero(missing), len(blank))
        drawn[blank] = values[donors]
        if column.reasons is not None and reasons is not None:
            reasons[blank] = column.reasons[donors]
    return Column(drawn, column.levels, reasons)


def _categories_of_latent(data: Microdata, name: str, latent: Array, rng: Generator) -> Array:
    order, count = _categories_by_frequency(data, name)
    if len(order) == 2:
        is_first = data.codes(name)[~data.missing(name)] == order[0]
        return np.asarray(np.where(shuffle.map_by_quantile(is_first, latent[:, 0]), order[0], order[1]))
    rest, rest_count = order[MAX_LATENT_CATEGORIES:], count[MAX_LATENT_CATEGORIES:]
    together = np.append(count[:MAX_LATENT_CATEGORIES], rest_count.sum() if len(rest) else [])
    chosen = choose_largest(latent[:, : len(together)], together / count.sum())
    drawn = order[chosen]
    if len(rest):
        other = np.flatnonzero(chosen == MAX_LATENT_CATEGORIES)
        drawn[other] = rng.choice(rest, len(other), p=rest_count / rest_count.sum())
    return np.asarray(drawn)


def choose_largest(latent: Array, shares: Array) -> Array:
    """Return for each row the column with the largest value, after adding to each column what gives it about its share.

    >>> z = np.random.default_rng(1).standard_normal((10_000, 3))
    >>> (np.bincount(choose_largest(z, np.array([0.7, 0.2, 0.1]))) / 10_000).round(2).tolist()
    [0.7, 0.2, 0.1]
    """
    added = np.log(shares)
    for _ in range(CALIBRATION_STEPS):
        own = np.bincount((latent + added).argmax(axis=1), minlength=len(shares)) / len(latent)
        added = added + 0.5 * np.log(shares / np.maximum(own, 0.5 / len(latent)))
    return np.asarray((latent + added).argmax(axis=1))
