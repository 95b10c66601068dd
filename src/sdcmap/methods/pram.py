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

MAX_SUM_ERROR = 1e-6  # deviation from 1 allowed for a row of a given matrix, for rounding; rows are then rescaled


def matrix_problems(matrix: Array) -> Iterator[str]:
    """Yield why a matrix is no transition matrix, as the second half of a sentence."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        yield "must have as many columns as rows."
    elif not ((matrix >= 0) & (matrix <= 1)).all():
        yield "must contain probabilities in [0, 1]."
    elif len(bad := np.flatnonzero(np.abs(matrix.sum(axis=1) - 1) > MAX_SUM_ERROR)):
        yield f"must have rows that sum to 1; row {bad[0] + 1} sums to {matrix[bad[0]].sum():g}."


def read_matrix(content: bytes, path: str) -> tuple[list[str], Array]:
    """Read the categories and the transition matrix from a CSV file with a header of categories and a row for each."""
    try:
        header, *rows = [row for row in csv.reader(content.decode("utf-8-sig").splitlines()) if row]
        matrix = np.array([[float(cell) for cell in row[1:]] for row in rows])
    except (ValueError, csv.Error):
        shape = "a header of categories, then a category and its probabilities in each row"
        raise SchemaError(f"{path} cannot be read as a matrix. It needs {shape}.") from None
    if [row[0] for row in rows] != header[1:]:
        raise SchemaError(
            f"{path} must list the same categories, in the same order, in its header and its first column."
        )
    for problem in matrix_problems(matrix):
        raise SchemaError(f"the matrix in {path} {problem}")
    return header[1:], matrix


@dataclass(frozen=True)
class PRAM(TransitionMethod):
    """Replace categories at random with a published transition matrix (post-randomization, PRAM).

    Parameters
    ----------
    stay : without a matrix: the minimum probability that a category does not change, in [0, 1]; sdcMicro's pd.
    alpha : without a matrix: the strength of masking, in [0, 1]; 0 is the identity. sdcMicro's alpha.
    matrix : a matrix for every variable of `on`: rows of probabilities in the order of the file's categories, or the path
        of a CSV file with a header of categories and one row for each (category, probabilities). A transition with
        probability 0 never happens.
    sha256 : the first 16 digits of the matrix file's SHA-256, filled in if left out; a file with another hash is refused.

    Formula: P(released = b | original = a) = matrix[a, b]. Without a matrix, an invariant one is computed, for which the
    expected count of each category is the file's count: P Q, where P_aa = stay and Q reverses P, mixed with the identity
    as a P Q + (1 - a) I. a is alpha, or less if the diagonal would fall below `stay`. Each stratum has its own matrix.
    Missing values stay missing. Weights and households are not used. `correct_table(released, names)` estimates the
    tables of the original without bias. Attacks can use the likelihood of the released categories.
    Reference: Gouweleeuw, Kooiman, Willenborg, de Wolf (1998); Templ, Kowarik, Meindl (2015) for pd and alpha.

    Examples
    --------
    >>> PRAM(on="marital", stay=0.9).text
    "PRAM(on='marital', stay=0.9)"
    """

    label: ClassVar[str] = "Random category changes (PRAM)"
    description: ClassVar[str] = "Categories are changed at random, with published probabilities."

    at_zero: ClassVar[Mapping[str, Any] | None] = {"alpha": 0.0, "matrix": (), "sha256": ""}
    kept: ClassVar[str] = "the counts of each variable in expectation, unless a matrix was given"
    distorted: ClassVar[str] = (
        "relations between variables; tables can be corrected without bias with the published matrix"
    )
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
                raise SchemaError(f"the matrix has {len(matrix)} rows, but {name!r} has {len(categories)} categories.")
        else:
            file_matrix = read_matrix(read_verified(self.matrix, self.sha256), self.matrix)
            matrix = _in_order(*file_matrix, self.matrix, [str(category) for category in categories], name)
        return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))


def _in_order(listed: list[str], matrix: Array, path: str, categories: list[str], name: str) -> Array:
    """Return the rows and columns of a file's matrix for these categories, in this order.

    The matrix must not lead to a category that the variable does not have.
    """
    if lacking := sum(category not in listed for category in categories):
        raise SchemaError(f"{path} lacks {lacking} of the {len(categories)} categories of {name!r}.")
    order = [listed.index(category) for category in categories]
    if (np.delete(matrix[order], order, axis=1) > 0).any():
        raise SchemaError(f"{path} has transitions to categories that {name!r} does not have.")
    return np.asarray(matrix[np.ix_(order, order)])


@dataclass(frozen=True)
class RandomizedResponse(TransitionMethod):
    """Keep a category with probability e^epsilon/(e^epsilon + K - 1), else replace it by a random other one.

    Parameters
    ----------
    epsilon : the privacy loss of each variable, above 0: a released category is at most e^epsilon times as likely for
        one original category as for another. With m masked variables the loss of a record is m epsilon.

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
    kept: ClassVar[str] = "nothing exactly; tables can be corrected without bias with the published matrix"
    distorted: ClassVar[str] = "all tables of the masked variables, toward equal shares of the categories"
    searched: ClassVar[Strengths | None] = Strengths("epsilon", 6.0, 0.5, tried=(5.0, 3.0))

    epsilon: Positive = 1.0

    @property
    def action(self) -> str:
        return f"randomized with epsilon {format_number(self.epsilon)}"

    def transitions(self, name: str, categories: list[Any], counts: Array) -> Array:
        return response_matrix(len(categories), self.epsilon)
