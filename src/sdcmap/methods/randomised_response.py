"""Randomised response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from sdcmap.core.method import Trials
from sdcmap.core.roles import Roles
from sdcmap.core.strengths import Strengths
from sdcmap.core.value import Positive
from sdcmap.core.words import number
from sdcmap.kernels.arrays import Array
from sdcmap.methods._transition import TransitionMethod, response_matrix


@dataclass(frozen=True)
class RandomisedResponse(TransitionMethod):
    """Keep a category with probability e^epsilon/(e^epsilon + K - 1), else take any other one, all alike.

    Parameters
    ----------
    epsilon : the privacy loss of each variable, above 0: no released category is more than e^epsilon times as likely from
        one original category as from another. Over m variables the loss of a record is m epsilon.

    Formula: P(b | a) = e^epsilon/(e^epsilon + K - 1) if a = b, else 1/(e^epsilon + K - 1), K the number of categories.
    Which categories there are is taken as public. Missing is a category like any other, so that the bound holds for who has
    answered at all. Weights and households are not used. `corrected(released, names)` estimates the tables of the original
    without bias.
    Reference: Warner (1965); Kairouz, Oh, Viswanath (2016), k-ary randomised response.

    Examples
    --------
    >>> RandomisedResponse(on="religion", epsilon=2).text
    "RandomisedResponse(on='religion', epsilon=2.0)"
    """

    missing: ClassVar[str] = "category"
    kept: ClassVar[str] = "nothing exactly; tables can be corrected without bias, see the matrix"
    distorted: ClassVar[str] = "every table of the masked variables, towards equal shares"
    searched: ClassVar[Strengths | None] = Strengths("epsilon", 6.0, 0.5)

    epsilon: Positive = 1.0

    @property
    def deed(self) -> str:
        return f"randomised response, epsilon {number(self.epsilon)}"

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        epsilons = (5.0, 3.0) if roles.keys else ()
        return {f"{cls.__name__} {epsilon:g}": cls(roles.keys, epsilon) for epsilon in epsilons}

    def transitions(self, name: str, categories: list[Any], counts: Array) -> Array:
        return response_matrix(len(categories), self.epsilon)
