"""Two sets of facts about a person that a release connects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata
from sdcmap.kernels.tables.attribution import same_nearest_probability
from sdcmap.risk._control import Controlled, Difference, Split, Units, compare_rates, distance_inputs

# For members and non-members, the probability that both sides of a person lead to the same record; the same for two
# random records; and the unit (household) of each person.
Outcome: TypeAlias = tuple[Array, Array, float, Units]


@dataclass(frozen=True)
class Linkability(Controlled):
    """How much more often a release connects two sets of facts about one person for members than for non-members.

    The attacker has two files without names that share no column, such as a health file and a tax file, and knows that
    a person is in both. For each file they find the nearest released record on its columns. If it is the same record,
    the release reveals that the two belong together. Only the gain over non-members counts. It is the second of the
    three risks of the Article 29 Working Party, beside singling out and inference.

    Parameters
    ----------
    left, right : the columns of the two files, of any kind, without overlap; by default the columns that other people
        could know, in turn: the first, the third, ... are left.

    Formula: mean over members of |A and B| / (|A| |B|), minus the same over non-members; A are the released records
        nearest on the left columns, B on the right ones, by Gower's distance; ties are broken at random.
    `parts`: "members", "non-members", "naive" (two random records are the same: 1 over their number), and Anonymeter's
    "residual", (members - non-members) / (1 - non-members).
    Missing is a category; a missing number has distance 1 to any number. Recoded variables are compared in the released
    categories. Weights are not used. Households: persons are attacked one by one; a refit leaves out whole households
    and keeps strata.
    Reference: Giomi, Boenisch, Wehmeyer, Tasnadi (2023), section 4.3, with one neighbor; Article 29 Working Party
    (2014).

    Examples
    --------
    >>> Linkability(left=["age", "sex"], right=["income", "rent"]).text
    "Linkability(left=['age', 'sex'], right=['income', 'rent'])"
    """

    label: ClassVar[str] = "Linkability, gain over non-members"
    description: ClassVar[str] = (
        "How much more often the release connects two sets of facts about one person for members than for non-members."
    )

    # 2: one refit leaves out few people; 3: the standard error counts people with ties; 4: people drawn by household
    revision: ClassVar[int] = 4

    left: tuple[str, ...] = ()
    right: tuple[str, ...] = ()

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if bool(self.left) != bool(self.right):
            yield " needs .left and .right, or neither."
        if set(self.left) & set(self.right):
            yield ".left and .right must not share a column."

    def sides(self, data: Microdata) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the columns of the two files."""
        return (self.left, self.right) if self.left else (data.knowable[::2], data.knowable[1::2])

    def variables(self, data: Microdata) -> tuple[str, ...]:
        left, right = self.sides(data)
        return (*left, *right)

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        if len(self.variables(data)) == 1:
            yield "Linkability needs at least 2 variables that other people could know."

    def seconds(self, data: Microdata) -> float | None:
        return self.pair_seconds(data)

    def attack(self, split: Split, names: tuple[str, ...], ranges: dict[str, float], rng: Generator) -> Outcome:
        def chance_of_joining(people: Microdata) -> Array:
            left, right = (distance_inputs(people, split.released, side, ranges) for side in self.sides(split.released))
            return same_nearest_probability(*left, *right)

        rates = chance_of_joining(split.members), chance_of_joining(split.non_members)
        return *rates, 1 / len(split.released), split.units

    def estimate(self, outcomes: Sequence[Outcome]) -> Estimate:
        member_rates, other_rates, naive, file_units = zip(*outcomes, strict=True)
        members, others = np.concatenate(member_rates), np.concatenate(other_rates)
        units = np.concatenate([inside for inside, _ in file_units]), np.concatenate([out for _, out in file_units])
        value, se = Difference.between_groups(members, others, units)
        return Estimate(value=value, se=se, parts=compare_rates(members, others, float(np.mean(naive))))
