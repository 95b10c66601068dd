"""Sensitive values that a snooper infers from the nearest records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from sdcmap.core import Array, Column, Estimate, Generator, Microdata, Range
from sdcmap.core.refits import Refit
from sdcmap.data.cells import common_codes, stack_columns
from sdcmap.kernels.tables.attribution import nearest
from sdcmap.risk._control import Controlled, Difference, Split, positions, ranges_of
from sdcmap.risk._secrets import SecretMeasure, check_comparable

FEWEST = 20  # people of a category, below which a difference of shares says little
LEVEL = 0.95  # beyond chance: for all differences of shares together


class _Outcome(NamedTuple):
    """What an attack achieved with people inside and people outside: the success with each, where it was certain, and their
    secrets; and the naive rate. `paired`: both are the same people, in makings with them and without."""

    right: tuple[Array, Array]
    certain: tuple[Array, Array]
    secrets: tuple[Column, Column]
    naive: float
    paired: bool

    def of_all(self, *, certain: bool = False) -> Difference:
        """The success inside less outside, of everybody."""
        difference = Difference.of_pairs if self.paired else Difference.of
        return difference(*(self.certain if certain else self.right))

    def of(self, who: tuple[Array, Array]) -> _Outcome:
        """The same of these people inside and outside only."""
        right, certain = ((a[who[0]], b[who[1]]) for a, b in (self.right, self.certain))
        return self._replace(right=right, certain=certain)


@dataclass(frozen=True)
class AttributeInference(SecretMeasure, Controlled):
    """How much better a snooper infers a sensitive value of people in the release than of people outside it.

    The snooper knows some variables of a person, takes the released record that is nearest on these, and takes its
    sensitive value for the person's. He succeeds when it is the same, or near for a number. What he also achieves for
    people who are not in the release is science, not disclosure; counted is what being in it adds.

    Parameters
    ----------
    secret : the sensitive variable, of any kind; by default the first sensitive variable of the file.
    on : the variables he knows, of any kind; by default the keys of the file.
    importance : how much each variable of `on` counts in the distance, above 0, one number each; empty: all alike.
    tolerance : a number is inferred when it is within this share of the true one's size, at least 0.
    worst : count the worst of several differences: over all people; of who is inferred for certain; and both in each
        sensitive category. All but the first count only where they are beyond chance.

    Formula: success rate inside minus success rate outside, each over at most `targets` people drawn at random; distance
        as Gower's: |x - y| / range, at most 1, for numbers, 0 or 1 for categories, times the importance; of equally near
        ones the mean success.
    By makings the value is that of the method on these data, and the released file itself is not looked at: the same people
    are attacked in the makings with them and in the one without (of a single making, others are inside), so that chance
    does not make two groups unlike, and the standard error is that of the persons' own differences.
    `parts`: "inside", "outside", and "naive", the success of always guessing the most frequent released value (of a
    number: the median). An attack that is not better than "naive" says nothing about the release. "sure inside" and "sure
    outside": the shares where all nearest records agree on the true value, so that the snooper is right and knows it;
    "worst category": the largest difference inside - outside over the categories of the secret with 20 people on each side.
    Beyond chance is a difference above its standard error times the normal quantile of .95, shared out over all of them.
    Missing is a category of its own, and people whose sensitive value is missing are not attacked. A recoded variable is
    compared in the categories of the release, where each value became one of them (by makings: by doing deterministic steps
    again), and as their labels read where they are of several depths, such as 34 and "(30, 40]"; undefined where that
    cannot be told of the secret. Weights are not used.
    Households: persons are attacked one by one; a making leaves whole households out, and keeps strata.
    Reference: Giomi, Boenisch, Wehmeyer, Tasnadi (2023).

    Examples
    --------
    >>> AttributeInference("Income", worst=True).text
    "AttributeInference(secret='Income', worst=True)"
    """

    label: ClassVar[str] = "Attribute inference (gain of members)"
    description: ClassVar[str] = (
        "How much more often an attacker infers a sensitive value correctly for people in the file than for "
        "people outside it."
    )

    # 5: labels of several depths, `importance`; 6: the same people inside and outside makings
    revision: ClassVar[int] = 6

    secret: str = ""
    on: tuple[str, ...] = ()
    tolerance: Annotated[float, Range(0)] = 0.05
    worst: bool = False
    importance: tuple[float, ...] = ()

    def compared_columns(self, data: Microdata) -> tuple[str, ...]:
        return (*self.variables(data), self.secret_in(data))

    def can_be_attacked(self, data: Microdata) -> Array:
        return ~data.missing(self.secret_in(data))

    def people_outside(self, data: Microdata) -> Microdata | None:
        others = super().people_outside(data)
        return others and others.take(np.flatnonzero(~others.missing(self.secret_in(data))))

    def score_refits(self, original: Microdata, refits: Sequence[Refit], rng: Generator) -> Estimate:
        if len(refits) == 1:
            return super().score_refits(original, refits, rng)
        names, seen = self.check_variables(original), self.as_recoded(original)
        rows, inside, outside = self.left_out_once(refits, self.can_be_attacked(seen), rng)
        people, ranges = seen.take(rows), ranges_of(seen, names)
        secret = self.secret_in(seen)
        success, naive = zip(*(self._success(people, m.released, names, secret, ranges) for m in refits), strict=True)
        told = np.array(success)
        right, certain = ((_rate(hits, inside), _rate(hits, outside)) for hits in (told, told == 1))
        secrets = (people.column(secret),) * 2
        return self.estimate([_Outcome(right, certain, secrets, float(np.mean(naive)), paired=True)])

    def attack(self, drawn: Split, names: tuple[str, ...], ranges: dict[str, float], rng: Generator) -> _Outcome:
        secret = self.secret_in(drawn.insiders)
        inside, naive = self._success(drawn.insiders, drawn.archive, names, secret, ranges)
        outside, _ = self._success(drawn.outsiders, drawn.archive, names, secret, ranges)
        secrets = drawn.insiders.column(secret), drawn.outsiders.column(secret)
        return _Outcome((inside, outside), (inside == 1, outside == 1), secrets, naive, paired=False)

    def _success(
        self, people: Microdata, archive: Microdata, names: tuple[str, ...], secret: str, ranges: dict[str, float]
    ) -> tuple[Array, float]:
        """The success with each of these people, who may come from a file without roles, and the naive rate."""
        check_comparable(people, archive, secret)
        truth, guess, tolerance = self._secrets(people, archive, secret)
        right = nearest(*positions(people, archive, names, ranges, self.importance), truth, guess, tolerance)[1]
        seen = guess[~np.isnan(guess)]
        constant = _constant_guess(seen, numeric=tolerance > 0) if len(seen) else np.nan
        naive = np.abs(constant - truth) <= tolerance * np.abs(truth)
        return right, float(naive.mean())

    def _secrets(self, people: Microdata, archive: Microdata, secret: str) -> tuple[Array, Array, float]:
        """The true values, the released ones (NaN: missing) and the tolerance; of categories the codes, with none."""
        if people.column(secret).levels is None and archive.column(secret).levels is None:
            return people.numbers(secret), archive.numbers(secret), self.tolerance
        truth, guess = np.split(common_codes(people, archive, secret).astype(np.float64), [len(people)])
        return truth, np.where(archive.missing(secret), np.nan, guess), 0.0

    def estimate(self, outcomes: Sequence[_Outcome]) -> Estimate:
        [outcome] = outcomes
        parts = {"naive": outcome.naive}
        for of, (inside, outside) in (("", outcome.right), ("sure ", outcome.certain)):
            parts |= {f"{of}inside": float(inside.mean()), f"{of}outside": float(outside.mean())}
        by_category = [outcome.of(who) for who in _categories(*outcome.secrets)]
        if by_category:
            parts["worst category"] = max(category.of_all().value for category in by_category)
        value, se = _worst(outcome, by_category) if self.worst else outcome.of_all()
        return Estimate(value=value, se=se, parts=parts)


def _rate(told: Array, files: Array) -> Array:
    """Each person's mean success over the makings that are marked."""
    return np.asarray(np.average(told, axis=0, weights=files))


def _worst(outcome: _Outcome, by_category: Sequence[_Outcome]) -> Difference:
    """The largest difference: of all people, or one of the others that is beyond chance."""
    from scipy.special import ndtri

    others = [category.of_all() for category in by_category]
    others += [some.of_all(certain=True) for some in (outcome, *by_category)]
    beyond = float(ndtri(1 - (1 - LEVEL) / len(others)))
    found = [other for other in others if other.value > beyond * other.se]
    return max([outcome.of_all(), *found], key=lambda difference: difference.value)


def _categories(inside: Column, outside: Column) -> list[tuple[Array, Array]]:
    """Who has it, inside and outside, for each sensitive category with enough people on both sides."""
    if inside.levels is None or outside.levels is None:
        return []
    mine, others = np.split(stack_columns([inside, outside]).values, [len(inside.values)])
    both = [(mine == c, others == c) for c in np.intersect1d(mine, others)]
    return [(a, b) for a, b in both if min(a.sum(), b.sum()) >= FEWEST]


def _constant_guess(seen: Array, *, numeric: bool) -> float:
    if numeric:
        return float(np.median(seen))
    values, count = np.unique(seen, return_counts=True)
    return float(values[count.argmax()])
