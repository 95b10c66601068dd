"""People whose closest released record gives away that they are in the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from sdcmap.core.making import Making
from sdcmap.core.measure import Estimate
from sdcmap.data.cells import in_released_categories
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.attribution import closer_share, nearest, share_error
from sdcmap.risk._control import Controlled, Split, positions, ranges_of


class _Distances(NamedTuple):
    """The distance of each person inside and outside to the closest record."""

    inside: Array
    outside: Array


@dataclass(frozen=True)
class ClosestRecord(Controlled):
    """How well the distance to the closest released record tells people in the file from people outside it.

    The snooper knows everything about two people, one in the original file and one not, and wants to know which is which:
    being in it may itself be the secret. He bets on the one who has the closer released record, and succeeds when that is
    the one in the file. At one half he learns nothing. In a census everybody is in the file: there it is off.

    Parameters
    ----------
    on : the variables he knows, of any kind; by default the keys and the numeric variables of the file.
    held_out : the share of the people, in (0, 1), who are the people outside where no control file names others.
    targets : the most people in each group, at least 1.
    control_file : a file of people who were not in the original (CSV, Parquet, SPSS, Stata, SAS): the people outside of
        files whose records hold what others had.
    sha256 : the first 16 digits of its SHA-256, filled in when left out; another content is refused.
    control : who is outside. "rows": people whose released rows are taken out of the snooper's copy, honest where a row
        tells of its own person alone. "makings": the method is run again without them, `folds` times, each time without
        others. "best": rows, but where values are drawn from a model or dealt out among records (Synthesise, Shuffle)
        the control file, and makings where there is none.
    folds : how many makings, at least 1; with `held_out` at most the whole file.
    method : how the file was made; a sweep and a release fill it in.

    Formula: P(d_in < d_out) + P(d_in = d_out) / 2 over pairs of people drawn at random, d the distance to the closest
        released record: Gower's, the mean of |x - y| / range, at most 1, for numbers and 0 or 1 for
        categories.
    By makings the value is that of the method on these data, the mean over the makings: each is compared with people who
    were in it and people who were not, and the released file itself is not looked at.
    `parts`: the median distance "inside" and "outside", and the share of "copies" (distance 0) inside.
    Missing is a category of its own; a missing number is at distance 1 from a known one. A recoded variable is
    compared in the categories of the release, where each value became one of them. Weights are not used. Households:
    persons are looked at one by one; a making leaves whole households out, and keeps strata.
    Reference: Chen, Yu, Zhang, Fritz (2020); Platzer and Reutterer (2021) for the holdout.

    Examples
    --------
    >>> ClosestRecord(targets=500).text
    'ClosestRecord(targets=500)'
    """

    unit: ClassVar[str] = "probability"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    at_nothing: ClassVar[float | None] = 0.5
    floor: ClassVar[str] = "no better than chance"
    revision: ClassVar[int] = 2  # 2: a control file or makings where values are dealt out among records

    on: tuple[str, ...] = ()

    @property
    def told(self) -> str:
        return "membership told by distance"

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or tuple(dict.fromkeys((*data.keys, *data.numeric)))

    def misfits(self, data: Microdata) -> Iterator[str]:
        if data.schema.census:
            yield "ClosestRecord is off: the file is a census, and that somebody is in it is no secret."
        problems = list(super().misfits(data))
        yield from problems
        if not problems:
            yield from self.control_misfits(data, self.variables(data))

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.checked(original)
        others = self.people_outside(original, names)
        original = in_released_categories(original, masked, names)
        drawn = self.split(original, masked, np.ones(len(original), dtype=bool), others, rng)
        return _estimate([_distances(drawn, names, ranges_of(original, names))])

    def score_makings(self, original: Microdata, makings: Sequence[Making], rng: Generator) -> Estimate:
        names = self.checked(original)
        seen = self.as_recoded(original, names)
        everybody, ranges = np.ones(len(seen), dtype=bool), ranges_of(seen, names)
        drawn = [self.split_making(seen, making, everybody, rng) for making in makings]
        return _estimate([_distances(split, names, ranges) for split in drawn])


def _distances(drawn: Split, names: tuple[str, ...], ranges: dict[str, float]) -> _Distances:
    """Gower's distance of each person to the closest record."""

    def closest(people: Microdata) -> Array:
        nobody = np.zeros(len(people)), np.zeros(len(drawn.archive))
        far: Array = nearest(*positions(people, drawn.archive, names, ranges), *nobody, 0.0)[0]
        return far / len(names)

    return _Distances(closest(drawn.insiders), closest(drawn.outsiders))


def _estimate(distances: Sequence[_Distances]) -> Estimate:
    """The mean over files of how often who is inside is closer."""
    share = float(np.mean([closer_share(d.inside, d.outside) for d in distances]))
    parts = {
        "inside": float(np.mean([np.median(d.inside) for d in distances])),
        "outside": float(np.mean([np.median(d.outside) for d in distances])),
        "copies": float(np.concatenate([d.inside == 0 for d in distances]).mean()),
    }
    return Estimate(share, share_error(share, sum(min(len(d.inside), len(d.outside)) for d in distances)), parts)
