"""Two sets of facts about a person that a release joins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata
from sdcmap.kernels.tables.attribution import shared_nearest
from sdcmap.risk._control import Controlled, Difference, Split, compare_rates, positions

# The chance that the two sides of each person meet in one record, inside and outside; and that of random records.
Outcome: TypeAlias = tuple[Array, Array, float]


@dataclass(frozen=True)
class Linkability(Controlled):
    """How much oftener a release joins two sets of facts about one person for people in it than for people outside it.

    The snooper has two files without names that share no column, say a health file and a tax file, and knows that a
    person is in both. Of each he takes the released record that is nearest on the columns of that file. He succeeds
    when it is the same record: the release tells him that the two belong together. What he also achieves for people who
    are not in the release is science; counted is what being in it adds. It is the second of the three risks of the
    European working party, beside singling out and inference.

    Parameters
    ----------
    left, right : the columns of the two files, of any kind; by default every other column that somebody could know: the
        first, the third, ... are left. No column is in both.

    Formula: mean over people inside of |A and B| / (|A| |B|), less the same outside; A are the released records nearest
        on the left columns, B on the right ones, each by Gower's distance: of several that are equally near one is taken at
        random.
    `parts`: "inside", "outside", "naive" (two random records are the same: 1 over their number), and Anonymeter's
    "residual", (inside - outside) / (1 - outside).
    Missing is a category of its own; a missing number is at distance 1 from a known one. A recoded variable is compared in
    the categories of the release, where each value became one of them. Weights are not used. Households: persons are
    attacked one by one; a making leaves whole households out, and keeps strata.
    Reference: Giomi, Boenisch, Wehmeyer, Tasnadi (2023), section 4.3, with one neighbor; Article 29 Working Party (2014).

    Examples
    --------
    >>> Linkability(left=["age", "sex"], right=["income", "rent"]).text
    "Linkability(left=['age', 'sex'], right=['income', 'rent'])"
    """

    label: ClassVar[str] = "Linkability, gain over non-members"
    description: ClassVar[str] = (
        "How much more often the release connects two sets of facts about one person for members than for non-members."
    )

    revision: ClassVar[int] = 2  # 2: one making leaves few people out

    left: tuple[str, ...] = ()
    right: tuple[str, ...] = ()

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if bool(self.left) != bool(self.right):
            yield " needs .left and .right, or neither."
        if set(self.left) & set(self.right):
            yield ".left and .right must not share a column."

    def sides(self, data: Microdata) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The columns of the two files."""
        return (self.left, self.right) if self.left else (data.knowable[::2], data.knowable[1::2])

    def variables(self, data: Microdata) -> tuple[str, ...]:
        left, right = self.sides(data)
        return (*left, *right)

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        if len(self.variables(data)) == 1:
            yield "Linkability needs at least 2 variables that somebody could know."

    def seconds(self, data: Microdata) -> float | None:
        return self.pair_seconds(data)

    def attack(self, drawn: Split, names: tuple[str, ...], ranges: dict[str, float], rng: Generator) -> Outcome:
        def met(people: Microdata) -> Array:
            left, right = (positions(people, drawn.archive, side, ranges) for side in self.sides(drawn.archive))
            return shared_nearest(*left, *right)

        return met(drawn.insiders), met(drawn.outsiders), 1 / len(drawn.archive)

    def estimate(self, outcomes: Sequence[Outcome]) -> Estimate:
        insiders, outsiders, naive = zip(*outcomes, strict=True)
        inside, outside = np.concatenate(insiders), np.concatenate(outsiders)
        value, se = Difference.of(inside, outside)
        return Estimate(value=value, se=se, parts=compare_rates(inside, outside, float(np.mean(naive))))
