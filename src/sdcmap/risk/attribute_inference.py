"""Sensitive values that a snooper infers from the nearest records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
import polars as pl
from numpy.random import Generator

from sdcmap.core.making import Making
from sdcmap.core.measure import Estimate
from sdcmap.core.value import Range
from sdcmap.data.cells import common_codes, in_released_categories, stacked
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.attribution import nearest
from sdcmap.risk._control import Controlled, Difference, Split, positions, ranges_of
from sdcmap.risk.l_diversity import secret_misfits, secret_of

FEWEST = 20  # people of a category, below which a difference of shares says little
LEVEL = 0.95  # beyond chance: for all differences of shares together


class _Outcome(NamedTuple):
    """What an attack achieved: the success with each person inside and outside, and the naive rate."""

    drawn: Split
    inside: Array
    outside: Array
    naive: float


@dataclass(frozen=True)
class AttributeInference(Controlled):
    """How much better a snooper infers a sensitive value of people in the release than of people outside it.

    The snooper knows some variables of a person, takes the released record that is nearest on these, and takes its
    sensitive value for the person's. He succeeds when it is the same, or near for a number. What he also achieves for
    people who are not in the release is science, not disclosure; counted is what being in it adds.

    Parameters
    ----------
    secret : the sensitive variable, of any kind; by default the first sensitive variable of the file.
    on : the variables he knows, of any kind; by default the keys of the file.
    tolerance : a number is inferred when it is within this share of the true one's size, at least 0.
    worst : count the worst of several differences: over all people; of who is inferred for certain; and both in each
        sensitive category. All but the first count only where they are beyond chance.
    held_out : the share of the people, in (0, 1), who are the people outside where no control file names others.
    targets : the most people attacked in each group, at least 1.
    control_file : a file of people who were not in the original (CSV, Parquet, SPSS, Stata, SAS): the people outside of
        files whose records hold what others had.
    sha256 : the first 16 digits of its SHA-256, filled in when left out; another content is refused.
    control : who is outside. "rows": people whose released rows are taken out of the snooper's copy, honest where a row
        tells of its own person alone. "makings": the method is run again without them, `folds` times, each time without
        others. "best": rows, but where values are drawn from a model or dealt out among records (Synthesise, Shuffle,
        RankSwap) the control file, and makings where there is none.
    folds : how many makings, at least 1; with `held_out` at most the whole file.
    method : how the file was made; a sweep and a release fill it in.

    Formula: success rate inside minus success rate outside, each over at most `targets` people drawn at random; distance
        as Gower's: |x - y| / range, at most 1, for numbers, 0 or 1 for categories; of equally near ones the mean success.
    By makings the value is that of the method on these data: each making is attacked for people who were in it and people
    who were not, and the released file itself is not looked at.
    `parts`: "inside", "outside", and "naive", the success of always guessing the most frequent released value (of a
    number: the median). An attack that is not better than "naive" says nothing about the release. "sure inside" and "sure
    outside": the shares where all nearest records agree on the true value, so that the snooper is right and knows it;
    "worst category": the largest difference inside - outside over the categories of the secret with 20 people on each side.
    Beyond chance is a difference above its standard error times the normal quantile of .95, shared out over all of them.
    Missing is a category of its own, and people whose sensitive value is missing are not attacked. A recoded
    variable is compared in the categories of the release, where each value became one of them (by makings: by doing
    deterministic steps again); undefined where that cannot be told of the secret. Weights are not used.
    Households: persons are attacked one by one; a making leaves whole households out, and keeps strata.
    Reference: Giomi, Boenisch, Wehmeyer, Tasnadi (2023).

    Examples
    --------
    >>> AttributeInference("Income", worst=True).text
    "AttributeInference(secret='Income', worst=True)"
    """

    unit: ClassVar[str] = "difference of shares"
    bounds: ClassVar[tuple[float | None, float | None]] = (-1.0, 1.0)
    at_nothing: ClassVar[float | None] = 0.0
    revision: ClassVar[int] = 3  # 3: makings of rank swaps too

    secret: str = ""
    on: tuple[str, ...] = ()
    tolerance: Annotated[float, Range(0)] = 0.05
    worst: bool = False

    @property
    def told(self) -> str:
        return f"{self.secret} inferred better of people inside"

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or tuple(name for name in data.keys if name != secret_of(data, self.secret))

    def misfits(self, data: Microdata) -> Iterator[str]:
        secret = secret_of(data, self.secret)
        problems = [*super().misfits(data), *secret_misfits(self, data, self.variables(data), secret)]
        yield from problems
        if not problems:
            yield from self.control_misfits(data, (*self.variables(data), secret))

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names, secret = self.checked(original), secret_of(original, self.secret)
        others = self.people_outside(original, (*names, secret))
        original = in_released_categories(original, masked, (*names, secret))
        if others is not None:
            others = others.take(np.flatnonzero(~others.missing(secret)))
        drawn = self.split(original, masked, ~original.missing(secret), others, rng)
        return self._estimate([self._attacked(drawn, names, secret, ranges_of(original, names))], secret)

    def score_makings(self, original: Microdata, makings: Sequence[Making], rng: Generator) -> Estimate:
        names, secret = self.checked(original), secret_of(original, self.secret)
        seen = self.as_recoded(original, (*names, secret))
        known, ranges = ~seen.missing(secret), ranges_of(seen, names)
        drawn = [self.split_making(seen, making, known, rng) for making in makings]
        return self._estimate([self._attacked(split, names, secret, ranges) for split in drawn], secret)

    def _attacked(self, drawn: Split, names: tuple[str, ...], secret: str, ranges: dict[str, float]) -> _Outcome:
        _check_categories(drawn, secret)
        inside, naive = self._success(drawn.insiders, drawn.archive, names, secret, ranges)
        outside, _ = self._success(drawn.outsiders, drawn.archive, names, secret, ranges)
        return _Outcome(drawn, inside, outside, naive)

    def _success(
        self, people: Microdata, archive: Microdata, names: tuple[str, ...], secret: str, ranges: dict[str, float]
    ) -> tuple[Array, float]:
        """The success with each of these people, and the naive rate."""
        truth, guess, tolerance = self._secrets(people, archive, secret)
        right = nearest(*positions(people, archive, names, ranges), truth, guess, tolerance)[1]
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

    def _estimate(self, outcomes: Sequence[_Outcome], secret: str) -> Estimate:
        inside, outside = (
            np.concatenate(groups) for groups in zip(*((o.inside, o.outside) for o in outcomes), strict=True)
        )
        naive = float(np.mean([outcome.naive for outcome in outcomes]))
        parts = {"inside": float(inside.mean()), "outside": float(outside.mean()), "naive": naive}
        parts |= {"sure inside": float((inside == 1).mean()), "sure outside": float((outside == 1).mean())}
        by_category = _categories(outcomes, secret, inside, outside)
        if by_category:
            parts["worst category"] = max(Difference.of(*pair).value for pair in by_category)
        of_all = Difference.of(inside, outside)
        value, se = self._worst(of_all, by_category, inside, outside) if self.worst else of_all
        return Estimate(value, se, parts)

    def _worst(
        self, of_all: Difference, by_category: Sequence[tuple[Array, Array]], inside: Array, outside: Array
    ) -> Difference:
        """The largest difference: of all people, or one of the others that is beyond chance."""
        from scipy.special import ndtri

        sure = [(a == 1, b == 1) for a, b in ((inside, outside), *by_category)]
        others = [Difference.of(*pair) for pair in (*by_category, *sure)]
        beyond = float(ndtri(1 - (1 - LEVEL) / len(others)))
        return max([of_all, *(other for other in others if other.value > beyond * other.se)], key=lambda d: d.value)


def _categories(outcomes: Sequence[_Outcome], secret: str, inside: Array, outside: Array) -> list[tuple[Array, Array]]:
    """The success inside and outside, for each sensitive category with enough people on both sides."""
    groups = [[getattr(o.drawn, who).column(secret) for o in outcomes] for who in ("insiders", "outsiders")]
    columns = [column for group in groups for column in group]
    if any(column.levels is None for column in columns):
        return []
    mine, others = np.split(stacked(columns).values, [len(inside)])
    both = [(inside[mine == c], outside[others == c]) for c in np.intersect1d(mine, others)]
    return [(a, b) for a, b in both if min(len(a), len(b)) >= FEWEST]


def _check_categories(drawn: Split, secret: str) -> None:
    """Undefined where released values of the secret cannot be any person's, because they were recoded."""
    ours, theirs = drawn.insiders.column(secret).levels, drawn.archive.column(secret).levels
    if ours is not None and theirs is not None:
        mine, released = (set(levels.drop_nulls().cast(pl.String)) for levels in (ours, theirs))
        recoded = bool(mine and released) and mine.isdisjoint(released)
    else:
        recoded = ours is not theirs
    if recoded:
        raise Undefined(f"{secret!r} was recoded, and nobody can say which released category each value went into.")


def _constant_guess(seen: Array, *, numeric: bool) -> float:
    if numeric:
        return float(np.median(seen))
    values, count = np.unique(seen, return_counts=True)
    return float(values[count.argmax()])
