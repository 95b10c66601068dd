"""Data shuffling, and the normal copula that it uses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sdcmap.core import Array, Generator, Infeasible, Method, Microdata, Roles, Trials, join_names
from sdcmap.core.method import Origin
from sdcmap.kernels.masking.noise_covariance import covariance_root

MIN_SCORE_VARIANCE = 1e-12  # scores that vary less belong to a constant variable


def normal_scores(x: Array) -> Array:
    """Return the normal score of each value, E(Z | F(x-) < Phi(Z) < F(x)) for a standard normal Z.

    F is the empirical distribution of x. The score of a value that occurs once is nearly Phi^-1 of its rank. Equal values
    share one score, so the variance of the scores is below 1 if there are ties. NaN counts as the largest value.
    """
    from scipy.special import ndtri

    _, inverse, count = np.unique(x, return_inverse=True, return_counts=True)
    density = np.exp(-0.5 * ndtri(np.cumsum(count)[:-1] / len(x)) ** 2) / np.sqrt(2 * np.pi)
    return np.asarray((-np.diff(density, prepend=0.0, append=0.0) * len(x) / count)[inverse])


def draw_given(scores: Array, predictors: Array, rng: Generator) -> Array:
    """Draw the latent normal variables of the scores, given the predictors: Z = S b + e, e ~ N(0, C).

    scores : n x p normal scores; NaN values are left out of the fit, but drawn too. With m = E(Z | value) and v = Var m,
    Cov(Z, S) = Cov(m, S)/v and Cov(Z_i, Z_j) = Cov(m_i, m_j)/(v_i v_j), so that least squares of m on S gives b and C.
    Negative eigenvalues of C are set to 0, and the variance of the fitted part is limited to 1.
    Muralidhar, Sarathy (2006); with ties: Olsson, Drasgow, Dorans (1982), the polyserial correlation
    """
    s = np.column_stack([np.ones(len(scores)), predictors])
    spread = np.nanmean(scores**2, axis=0)
    spread[spread < MIN_SCORE_VARIANCE] = 1.0  # a constant variable: avoid dividing by 0
    fitted = np.empty_like(scores)
    for j, own in enumerate(scores.T):
        rows = ~np.isnan(own)
        fitted[:, j] = s @ np.linalg.lstsq(s[rows], own[rows])[0] / spread[j]
    fitted /= np.maximum(1.0, np.sqrt(np.mean(fitted**2, axis=0)))
    known = ~np.isnan(scores)
    m = np.where(known, scores, 0.0) / spread
    latent = m.T @ m / np.maximum(known.T.astype(float) @ known, 1.0)  # over the rows in which both are present
    np.fill_diagonal(latent, 1.0)
    root = covariance_root(latent - fitted.T @ fitted / len(fitted))
    return np.asarray(fitted + rng.standard_normal(scores.shape) @ root.T)


def map_by_rank(x: Array, scores: Array) -> Array:
    """Assign the values of x by the rank of the scores: the record with the largest score gets the largest value.

    Equal scores are ranked in file order.  Muralidhar, Sarathy (2006)
    """
    mapped = np.empty_like(x)
    mapped[np.argsort(scores, kind="stable")] = np.sort(x)
    return mapped


def map_by_quantile(x: Array, scores: Array) -> Array:
    """Return F^-1(Phi(score)) for the empirical distribution F of x, with NaN as the largest value."""
    from scipy.special import ndtr

    rank = np.minimum((ndtr(scores) * len(x)).astype(np.int64), len(x) - 1)
    return np.asarray(np.sort(x)[rank])


MAX_CATEGORIES_TRIED = 10  # categories of a predictor in a trial; more would make the regression slow
MAX_PREDICTOR_CATEGORIES = 200  # of a nominal predictor; each is a column of the regression


def present_scores(data: Microdata, name: str) -> Array:
    """Return the normal scores of a numeric or ordinal variable, NaN where it is missing. A view."""
    scores = np.full(len(data), np.nan)
    if len(rows := np.flatnonzero(~data.missing(name))):
        scores[rows] = normal_scores(data.column(name).values[rows].astype(float))
    return scores


def predictor_columns(data: Microdata, names: tuple[str, ...]) -> Array:
    """Return the design columns of a regression on `names`. A view.

    Numeric and ordinal variables give their normal scores, with 0 and an indicator where they are missing. A nominal
    variable gives an indicator for each category except the first; missing is a category.
    """
    columns = [np.empty((len(data), 0))]
    for name in names:
        if data.schema[name].kind == "nominal":
            columns.append(data.codes(name)[:, np.newaxis] == np.arange(1, data.level_count(name)))
        else:
            scores, missing = data.view(present_scores, name), data.missing(name)
            columns.append(np.column_stack([np.where(missing, 0, scores), *([missing] if missing.any() else [])]))
    return np.concatenate(columns, axis=1)


def predictor_problems(data: Microdata, method: Method, names: tuple[str, ...]) -> Iterator[str]:
    """Yield a sentence for each variable that cannot be a predictor of a regression."""
    for name in names:
        if (
            name in data.schema
            and data.schema[name].kind == "nominal"
            and data.level_count(name) > MAX_PREDICTOR_CATEGORIES
        ):
            start = f"{type(method).__name__}: the nominal predictor {name!r} has {data.level_count(name)} categories"
            yield f"{start}, more than {MAX_PREDICTOR_CATEGORIES}: group them, or name it in `within`."


def name_problems(on: tuple[str, ...], given: tuple[str, ...], verb: str) -> Iterator[str]:
    """Yield why `on` cannot be drawn given the other variables, as the second half of a sentence."""
    if len(set(on)) < len(on):
        yield ".on must name each variable once."
    if both := sorted(set(on) & set(given)):
        yield f".given must not name a {verb} variable: {', '.join(both)}."


@dataclass(frozen=True)
class Shuffle(Method):
    """Redistribute the values of some variables among the records, preserving their relations to other variables.

    Parameters
    ----------
    on : numeric variables to shuffle; their values are redistributed among the records.
    given : variables of any kind, not shuffled, whose rank correlations with the shuffled ones are preserved. Empty:
        only the correlations among the shuffled variables are.

    Formula: X* and S* are the normal scores of the ranks of `on` and `given` (nominal ones as 0-1 columns);
    Y* = S* b + e, e ~ N(0, C), b and C by least squares of X* on S*; the record with the r-th largest Y*_j has the r-th
    largest value of X_j. Given S, the shuffled values do not depend on the original ones.
    Missing values stay missing and are not ranked. A missing predictor has a score of 0 and an indicator column. Weights
    and households are not used, so weighted distributions change. Equal values have equal scores.
    Reference: Muralidhar, Sarathy (2006).

    Examples
    --------
    >>> Shuffle(on="income", given=["age", "sex"]).text
    "Shuffle(on='income', given=['age', 'sex'])"
    """

    label: ClassVar[str] = "Data shuffling"
    description: ClassVar[str] = (
        "Values are redistributed among records so that their relations to the other variables are preserved."
    )

    revision: ClassVar[int] = 2  # 2: eigenvectors have the same sign on every machine
    weights: ClassVar[str] = "not used; each record keeps its own weight"
    mixes_records: ClassVar[bool] = True
    value_origin: ClassVar[Origin] = "permuted"
    kept: ClassVar[str] = "the unweighted distribution of each variable, exactly; rank correlations, approximately"
    distorted: ClassVar[str] = (
        "relations to variables that are not in `given`; relations that rank correlations do not describe"
    )

    on: tuple[str, ...]
    given: tuple[str, ...] = ()

    @property
    def action(self) -> str:
        return f"shuffled given {join_names(self.given)}" if self.given else "shuffled"

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        return {cls.__name__: cls(roles.numbers, cls._others(roles.numbers, roles))} if roles.numbers else {}

    @staticmethod
    def _others(names: tuple[str, ...], roles: Roles) -> tuple[str, ...]:
        """Return the other columns with few categories."""
        return tuple(
            n for n in roles.descriptive_columns if n not in names and roles.data.level_count(n) <= MAX_CATEGORIES_TRIED
        )

    @classmethod
    def at_strength(cls, strength: float, names: tuple[str, ...], roles: Roles) -> Method | None:
        """Condition on fewer of the other columns at higher strength; those with many categories are dropped first."""
        if not roles.are_numbers(names):
            return None
        others = sorted(cls._others(names, roles), key=roles.data.level_count)
        return cls(names, tuple(others[: round((1 - strength) * len(others))]))

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        yield from name_problems(self.on, self.given, "shuffled")

    def _columns(self) -> tuple[str, ...]:
        return (*super()._columns(), *self.given)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().incompatibilities(data)
        yield from predictor_problems(data, self, self.given)

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        scores = np.column_stack([data.view(present_scores, name) for name in self.on])
        for name, known in zip(self.on, (~np.isnan(scores)).sum(axis=0), strict=True):
            if known < 2:
                raise Infeasible(f"Shuffle needs at least 2 values of each variable; {name!r} has {known}.")
        drawn = draw_given(scores, data.view(predictor_columns, self.given), rng)
        values = {}
        for j, name in enumerate(self.on):
            rows = np.flatnonzero(~np.isnan(scores[:, j]))
            values[name] = data.numbers(name).copy()
            values[name][rows] = map_by_rank(values[name][rows], drawn[rows, j])
        return data.change(None, values)
