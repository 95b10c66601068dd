"""Special uniques."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate
from sdcmap.core.value import Range
from sdcmap.data.cells import DistinctCells
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.risk._frequencies import KeyMeasure, frequencies
from sdcmap.risk._minimal_uniques import dis_suda, size_scores


@dataclass(frozen=True)
class SUDA(KeyMeasure):
    """The mean chance that a match to a special unique is right: DIS-SUDA scores.

    The snooper knows only some of the keys of somebody, and does not know whether the person is in the sample. He looks
    for a record that is alone on what he knows. The fewer variables make a record unique, and the more such sets it has,
    the likelier it is unique in the population too; he succeeds when the record he finds alone is the person's.

    Parameters
    ----------
    on : the variables he may know, of any kind; by default the keys of the file; at least 2.
    largest : the most variables a set may have, at least 1; by default all.
    fraction : the sampling fraction, in (0, 1).
    scores : the score of a minimal unique on k of m variables: "Elliot" (m - k)!; "IHSN" as its first program.

    Formula: a set is a minimal sample unique of a record that is alone on it and on no smaller part of it; the SUDA score
    is the sum over its sets. With P records in pairs, d the fraction, s the scores of m variables, w = s^q sum s^-q:
        DIS-SUDA = d w / (d w + P (1 - d)), q = 1 + (8 - m) / 20; 1 in a file without pairs, which cannot tell.
    `parts`: "uniques" (records with a score), "score" (the sum of SUDA scores), and the "contribution of" each variable:
    the share of all scores from sets that hold it (they overlap, so they add up to more than 1).
    Missing values as `missing_is` says. Weights and households are not used.
    Reference: Elliot, Manning, Ford (2002); Manning, Haglin, Keane (2008); Elliot and Manning (2003) for DIS-SUDA.

    Examples
    --------
    >>> SUDA(largest=3).text
    'SUDA(largest=3)'
    """

    revision: ClassVar[int] = 2  # 2: files without pairs have a score at any fraction
    unit: ClassVar[str] = "probability"

    largest: Annotated[int | None, Range(1)] = None
    fraction: Annotated[float, Range(0, 1, "()")] = 0.01
    scores: Literal["Elliot", "IHSN"] = "Elliot"

    def misfits(self, data: Microdata) -> Iterator[str]:
        yield from super().misfits(data)
        if len(self.variables(data)) == 1:
            yield "SUDA needs at least 2 variables."

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.checked(original)
        met, cell, variables = self.minimal_uniques(masked, self.largest)
        each = self._size_scores(len(names), variables)
        suda = np.bincount(cell, each, minlength=len(met.count))
        total = float(each.sum())
        parts = {"uniques": float(len(np.unique(cell))), "score": total}
        for j, name in enumerate(names):
            own = float(each[variables >> j & 1 > 0].sum())
            parts[f"contribution of {name}"] = own / total if total else 0.0
        return Estimate(value=float(met.count @ self._dis(masked, suda) / len(masked)), parts=parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The DIS-SUDA score of each record."""
        self.checked(original)
        met, suda = self._suda(masked)
        return self._dis(masked, suda)[met.code]

    def suda(self, data: Microdata) -> Array:
        """The SUDA score of each record of a file."""
        self.checked(data)
        met, suda = self._suda(data)
        return suda[met.code]

    def _suda(self, data: Microdata) -> tuple[DistinctCells, Array]:
        met, cell, variables = self.minimal_uniques(data, self.largest)
        return met, np.bincount(cell, self._size_scores(met.codes.shape[1], variables), minlength=len(met.count))

    def _size_scores(self, width: int, variables: Array) -> Array:
        sizes = np.bitwise_count(variables).astype(np.int64)
        scores: Array = size_scores(width, ihsn=self.scores == "IHSN")[sizes - 1]
        return scores

    def _dis(self, data: Microdata, suda: Array) -> Array:
        frequency = frequencies(data, self.variables(data), self.missing_is, 1.0)
        pairs = int(frequency.met.count[frequency.records == 2].sum())
        return dis_suda(suda, frequency.met.count, pairs, self.fraction, frequency.met.codes.shape[1])
