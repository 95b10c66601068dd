"""Random changes of category: the post-randomization method and randomized response."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from sdcmap.core import Array, Positive, Range, SchemaError, Strengths, format_number, format_percent
from sdcmap.core.named_files import read_verified
from sdcmap.methods._transition_matrix import TransitionMethod, invariant_matrix, response_matrix

SUM_ERROR = 1e-6  # a row of a given matrix may miss 1 by this; it is divided by its sum


def matrix_problems(matrix: Array) -> Iterator[str]:
    """What keeps a matrix from being one of transitions, as the second half of a sentence."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        yield "must have as many columns as rows."
    elif not ((matrix >= 0) & (matrix <= 1)).all():
        yield "must hold probabilities in [0, 1]."
    elif len(bad := np.flatnonzero(np.abs(matrix.sum(axis=1) - 1) > SUM_ERROR)):
        yield f"must have rows that sum to 1; row {bad[0] + 1} sums to {matrix[bad[0]].sum():g}."


def read_matrix(content: bytes, path: str) -> tuple[list[str], Array]:
    """The categories and the transition matrix of a CSV file: a header with the categories, and one row for each."""
    try:
        header, *rows = [row for row in csv.reader(content.decode("utf-8-sig").splitlines()) if row]
        matrix = np.array([[float(cell) for cell in row[1:]] for row in rows])
    except (ValueError, csv.Error):
        raise SchemaError(f"{path} cannot be read as a matrix: a header and rows of a category and numbers.") from None
    if [row[0] for row in rows] != header[1:]:
        raise SchemaError(f"{path} must name the same categories, in one order, in its header and its first column.")
    for problem in matrix_problems(matrix):
        raise SchemaError(f"the matrix in {path} {problem}")
    return header[1:], matrix


@dataclass(frozen=True)
class PRAM(TransitionMethod):
    """Replace categories at random by a published transition matrix, record by record (PRAM).

    Parameters
    ----------
    stay : without a matrix: the least probability that a category stays as it is, in [0, 1]; sdcMicro's pd.
    alpha : without a matrix: how strongly to mask, in [0, 1]; 0 is the identity. sdcMicro's alpha.
    matrix : a matrix for every variable of `on`: rows of probabilities in the order of the file's categories, or the path
        of a CSV file with a header of categories and one row for each (category, probabilities). A probability of 0 is a
        transition that never happens.
    sha256 : the first 16 digits of the matrix file's SHA-256, filled in when left out; another content is refused.

    Formula: P(released = b | original = a) = matrix[a, b]. Without a matrix, one for which the expected counts of each
    category are the file's own ("invariant"): P Q with P_aa = stay, Q its way back, mixed with the identity as
    a P Q + (1 - a) I, a = alpha or less where the diagonal would fall below `stay`; in each stratum of `within` its own.
    Missing values stay missing. Weights and households are not used. `correct_table(released, names)` estimates the
    tables of the original without bias. Attacks can use the likelihood of the released categories.
    Reference: Gouweleeuw, Kooiman, Willenborg, de Wolf (1998); Templ, Kowarik, Meindl (2015) for pd and alpha.

    Examples
    --------
    >>> PRAM(on="marital", stay=0.9).text
    "PRAM(on='marital', stay=0.9)"
    """

    label: ClassVar[str] = "Random category changes (PRAM)"
    description: ClassVar[str] = "Categories are replaced at random with published probabilities."

    at_zero: ClassVar[Mapping[str, Any] | None] = {"alpha": 0.0, "matrix": (), "sha256": ""}
    kept: ClassVar[str] = "without a given matrix, the counts of each variable in expectation"
    distorted: ClassVar[str] = "relations between variables; tables can be corrected without bias, see the matrix"
    searched: ClassVar[Strengths | None] = Strengths("stay", 0.97, 0.05, False, {"alpha": 1.0}, (0.9, 0.6))

    stay: Annotated[float, Range(0, 1)] = 0.8
    alpha: Annotated[float, Range(0, 1)] = 0.5
    matrix: str | tuple[tuple[float, ...], ...] = ()
    sha256: str = ""

    @property
    def action(self) -> str:
        return f"changed by PRAM{' with a given matrix' if self.matrix else f', at least {format_percent(self.stay)} stay'}"

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if isinstance(self.matrix, tuple):
            if len({len(row) for row in self.matrix}) > 1:
                yield ".matrix must have as many columns as rows."
            elif self.matrix:
                yield from (f".matrix {problem}" for problem in matrix_problems(np.array(self.matrix)))

    def transitions(self, name: str, categories: list[Any], counts: Array) -> Array:
        if not self.matrix:
            return invariant_matrix(counts, self.stay, self.alpha)
        if isinstance(self.matrix, tuple):
            if len(matrix := np.array(self.matrix)) != len(categories):
                raise SchemaError(f"the matrix has {len(matrix)} rows and {name!r} has {len(categories)} categories.")
        else:
            listed = read_matrix(read_verified(self.matrix, self.sha256), self.matrix)
            matrix = _in_order(*listed, self.matrix, [str(category) for category in categories], name)
        return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))


def _in_order(listed: list[str], matrix: Array, path: str, categories: list[str], name: str) -> Array:
    """The matrix of a file for these categories, in this order; none may lead to a category that is not among them."""
    if lacking := sum(category not in listed for category in categories):
        raise SchemaError(f"{path} lacks {lacking} of the {len(categories)} categories of {name!r}.")
    places = [listed.index(category) for category in categories]
    if (np.delete(matrix[places], places, axis=1) > 0).any():
        raise SchemaError(f"{path} leads to categories that {name!r} does not have.")
    return np.asarray(matrix[np.ix_(places, places)])


# Randomized response.


@dataclass(frozen=True)
class RandomizedResponse(TransitionMethod):
    """Keep a category with probability e^epsilon/(e^epsilon + K - 1), else take any other one, all alike.

    Parameters
    ----------
    epsilon : the privacy loss of each variable, above 0: no released category is more than e^epsilon times as likely from
        one original category as from another. Over m variables the loss of a record is m epsilon.

    Formula: P(b | a) = e^epsilon/(e^epsilon + K - 1) if a = b, else 1/(e^epsilon + K - 1), K the number of categories.
    The list of categories is assumed to be public. Missing is a category like any other, so that the bound also covers
    whether a person answered. Weights and households are not used. `correct_table(released, names)` estimates the tables
    of the original without bias.
    Reference: Warner (1965); Kairouz, Oh, Viswanath (2016), k-ary randomized response.

    Examples
    --------
    >>> RandomizedResponse(on="religion", epsilon=2).text
    "RandomizedResponse(on='religion', epsilon=2.0)"
    """

    label: ClassVar[str] = "Randomized response"
    description: ClassVar[str] = (
        "Each category is kept with a stated probability and otherwise replaced by another, which gives a "
        "differential-privacy guarantee."
    )

    missing: ClassVar[str] = "category"
    kept: ClassVar[str] = "nothing exactly; tables can be corrected without bias, see the matrix"
    distorted: ClassVar[str] = "every table of the masked variables, towards equal shares"
    searched: ClassVar[Strengths | None] = Strengths("epsilon", 6.0, 0.5, tried=(5.0, 3.0))

    epsilon: Positive = 1.0

    @property
    def action(self) -> str:
        return f"randomized with epsilon {format_number(self.epsilon)}"

    def transitions(self, name: str, categories: list[Any], counts: Array) -> Array:
        return response_matrix(len(categories), self.epsilon)
