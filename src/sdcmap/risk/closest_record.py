"""People whose closest released record gives away that they are in the file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate, Measure
from sdcmap.core.named_files import digest_of, is_digest
from sdcmap.core.value import Range
from sdcmap.data.cells import in_released_categories
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.attribution import closer_share, nearest, share_error
from sdcmap.risk.attribute_inference import control_misfits, control_of, positions, ranges_of, split


@dataclass(frozen=True)
class ClosestRecord(Measure):
    """How well the distance to the closest released record tells people in the file from people outside it.

    The snooper knows everything about two people, one in the original file and one not, and wants to know which is which:
    being in it may itself be the secret. He bets on the one who has the closer released record, and succeeds when that is
    the one in the file. At one half he learns nothing.

    Parameters
    ----------
    on : the variables he knows, of any kind; by default the keys and the numeric variables of the file.
    held_out : the share of the original, in (0, 1), that is held out of his copy of the release as the people outside.
    targets : the most people in each group, at least 1.
    control_file : for synthetic files: a file of people who were not in the original (CSV, Parquet, SPSS, Stata, SAS).
    sha256 : the first 16 digits of its SHA-256, filled in when left out; another content is refused.

    Formula: P(d_in < d_out) + P(d_in = d_out) / 2 over pairs of people drawn at random, d the distance to the closest
        released record: Gower's, the mean of |x - y| / range for numbers and 0 or 1 for categories.
    `parts`: the median distance "inside" and "outside", and the share of "copies" (distance 0) inside.
    Missing is a category of its own; a missing number is at distance 1 from a known one. A recoded variable is
    compared in the categories of the release, where each value became one of them. Weights and households are not used.
    Reference: Chen, Yu, Zhang, Fritz (2020); Platzer and Reutterer (2021) for the holdout.

    Examples
    --------
    >>> ClosestRecord(targets=500).text
    'ClosestRecord(targets=500)'
    """

    axis: ClassVar[Literal["risk", "utility"]] = "risk"
    unit: ClassVar[str] = "probability"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    at_nothing: ClassVar[float | None] = 0.5
    sampled: ClassVar[bool] = True
    paired: ClassVar[bool] = False

    on: tuple[str, ...] = ()
    held_out: Annotated[float, Range(0, 1, "()")] = 0.2
    targets: Annotated[int, Range(1)] = 1000
    control_file: str = ""
    sha256: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.control_file and not self.sha256:
            object.__setattr__(self, "sha256", digest_of(self.control_file, f"{type(self).__name__}.control_file"))

    def problems(self) -> Iterator[str]:
        if self.sha256 and not is_digest(self.sha256):
            yield ".sha256 must be the first 16 hexadecimal digits of the control file's SHA-256, in small letters."

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or tuple(dict.fromkeys((*data.keys, *data.numeric)))

    def misfits(self, data: Microdata) -> Iterator[str]:
        problems = list(super().misfits(data))
        yield from problems
        if not problems:
            yield from control_misfits(self, self.control_file, self.sha256, data, self.variables(data))

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.checked(original)
        control = control_of(self.control_file, self.sha256, original, names)
        original = in_released_categories(original, masked, names)
        drawn = split(original, masked, np.ones(len(original), dtype=bool), self.held_out, self.targets, control, rng)
        ranges = ranges_of(original, names)
        inside, outside = (
            _distances(people, drawn.archive, names, ranges) for people in (drawn.insiders, drawn.outsiders)
        )
        share = closer_share(inside, outside)
        parts = {
            "inside": float(np.median(inside)),
            "outside": float(np.median(outside)),
            "copies": float((inside == 0).mean()),
        }
        return Estimate(share, share_error(share, min(len(inside), len(outside))), parts)


def _distances(people: Microdata, archive: Microdata, names: tuple[str, ...], ranges: dict[str, float]) -> Array:
    """Gower's distance of each person to the closest record."""
    nobody = np.zeros(len(people)), np.zeros(len(archive))
    distances: Array = nearest(*positions(people, archive, names, ranges), *nobody, 0.0)[0] / len(names)
    return distances
