"""Two sets of facts about a person that a release joins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata
from sdcmap.core.making import Making
from sdcmap.kernels.tables.attribution import shared_nearest
from sdcmap.risk._control import Controlled, Difference, Split, positions, ranges_of

PAIR = 2e-9  # seconds: of one variable of a person and a record


class Outcome(NamedTuple):
    """The chance that the two sides of each person meet in one record, inside and outside; and that of random records."""

    inside: Array
    outside: Array
    naive: float


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
    Reference: Giomi, Boenisch, Wehmeyer, Tasnadi (2023), section 4.3, with one neighbour; Article 29 Working Party (2014).

    Examples
    --------
    >>> Linkability(left=["age", "sex"], right=["income", "rent"]).text
    "Linkability(left=['age', 'sex'], right=['income', 'rent'])"
    """

    unit: ClassVar[str] = "difference of shares"
    bounds: ClassVar[tuple[float | None, float | None]] = (-1.0, 1.0)
    at_nothing: ClassVar[float | None] = 0.0
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
        known = data.knowable
        return (self.left, self.right) if self.left else (known[::2], known[1::2])

    def variables(self, data: Microdata) -> tuple[str, ...]:
        left, right = self.sides(data)
        return (*left, *right)

    def misfits(self, data: Microdata) -> Iterator[str]:
        problems = list(super().misfits(data))
        yield from problems
        if not problems and len(self.variables(data)) < 2:
            yield "Linkability needs at least 2 variables that somebody could know."
        elif not problems:
            yield from self.control_misfits(data, self.variables(data))

    def seconds(self, data: Microdata) -> float | None:
        people = 2.0 * min(self.targets, len(data) * self.held_out)
        return (self.folds if self.control == "makings" else 1) * people * len(data) * len(self.variables(data)) * PAIR

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.checked(original)
        others = self.people_outside(original, names)
        original, masked = self.as_seen(original, masked, names)
        drawn = self.split(original, masked, np.ones(len(original), dtype=bool), others, rng)
        return _estimate([self._attacked(drawn, ranges_of(original, names))])

    def score_makings(self, original: Microdata, makings: Sequence[Making], rng: Generator) -> Estimate:
        names = self.checked(original)
        seen = self.as_recoded(original, names)
        everybody, ranges = np.ones(len(seen), dtype=bool), ranges_of(seen, names)
        drawn = [self.split_making(seen, making, everybody, rng) for making in makings]
        return _estimate([self._attacked(split, ranges) for split in drawn])

    def _attacked(self, drawn: Split, ranges: dict[str, float]) -> Outcome:
        def met(people: Microdata) -> Array:
            left, right = (positions(people, drawn.archive, side, ranges) for side in self.sides(drawn.archive))
            return shared_nearest(*left, *right)

        return Outcome(met(drawn.insiders), met(drawn.outsiders), 1 / len(drawn.archive))


def _estimate(outcomes: Sequence[Outcome]) -> Estimate:
    inside, outside = (np.concatenate(group) for group in zip(*((o.inside, o.outside) for o in outcomes), strict=True))
    value, se = Difference.of(inside, outside)
    a, b = float(inside.mean()), float(outside.mean())
    naive = float(np.mean([outcome.naive for outcome in outcomes]))
    parts = {"inside": a, "outside": b, "naive": naive, "residual": (a - b) / (1 - b) if b < 1 else 0.0}
    return Estimate(value=value, se=se, parts=parts)
