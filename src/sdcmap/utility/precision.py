"""How far up its hierarchy a variable was generalised."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate, Measure
from sdcmap.core.named_files import SHOWN, content_of, digest_of, is_digest
from sdcmap.data.hierarchy import Hierarchy, number_text
from sdcmap.data.microdata import Column, Microdata
from sdcmap.errors import SchemaError, Undefined
from sdcmap.kernels.arrays import Array


@dataclass(frozen=True)
class Precision(Measure):
    """The share of the levels of its hierarchy that a variable kept: 1 the values themselves, 0 nothing.

    Parameters
    ----------
    on : the variable, of any kind.
    hierarchy : path of its hierarchy, a CSV file as ARX writes it: value;level 1;level 2;... without a header (see
        `Recode`).
    sha256 : the first 16 digits of the hierarchy file's SHA-256, filled in when left out; another content is refused.

    Formula: 1 - mean over released records of h/H, h the lowest level that has the released label, H the number of
        levels; of a suppressed value h = H. Over several variables of a file Prec is the mean of theirs; ARX's number
        is 1 - Prec.
    Missing in the original is left out where the released value is missing too. Weights and households are not used. Other
    values of the same level (swapping, PRAM) lose nothing here. Undefined where a released label is not in the hierarchy.
    Reference: Sweeney (2002b), section 5, Prec; ARX's precision metric.

    Examples
    --------
    >>> Precision("zip", hierarchy="zip.csv", sha256="9f86d081884c7d65").text
    "Precision(on='zip', hierarchy='zip.csv', sha256='9f86d081884c7d65')"
    """

    axis: ClassVar[Literal["risk", "utility"]] = "utility"
    unit: ClassVar[str] = "share of levels"
    direction: ClassVar[Literal["lower", "higher"]] = "higher"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    at_nothing: ClassVar[float | None] = 0.0
    missing: ClassVar[str] = "a suppressed value has no level left; left out where the original has it missing too"

    on: str
    hierarchy: str = field(kw_only=True)
    sha256: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hierarchy and not self.sha256:
            object.__setattr__(self, "sha256", digest_of(self.hierarchy, "Precision.hierarchy"))

    def problems(self) -> Iterator[str]:
        if not self.hierarchy:
            yield ".hierarchy must be given: the path of a file."
        if self.sha256 and not is_digest(self.sha256):
            yield f".sha256 must be the first {SHOWN} hexadecimal digits of the hierarchy file's SHA-256, in small letters."

    def misfits(self, data: Microdata) -> Iterator[str]:
        problems = list(super().misfits(data))
        yield from problems
        if not problems:
            try:
                self._heights(data.column(self.on))
            except (SchemaError, Undefined) as problem:
                yield f"Precision: {problem}"

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        kept = self.records(original, masked)
        if np.isnan(kept).all():
            raise Undefined("no measured value is known in the original.")
        return Estimate(float(np.nanmean(kept)))

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The share of levels that each record kept; NaN where it was missing before and after."""
        self.checked(original)
        before = original.missing(self.on)
        lost = before if masked.origin is None else before[masked.origin]
        kept = 1.0 - self._heights(masked.column(self.on))
        return np.where(lost & masked.missing(self.on), np.nan, kept)

    def _heights(self, column: Column) -> Array:
        """h/H of each value; 1 where it is missing."""
        hierarchy = Hierarchy.parse(content_of(self.hierarchy, self.sha256), self.hierarchy)
        level_of: dict[str, int] = {}
        for level in range(hierarchy.levels + 1):
            for row in hierarchy.rows:
                level_of.setdefault(row[level], level)
        texts, code = _texts(column)
        lacking = sum(text is not None and text not in level_of for text in texts)
        if lacking:
            raise Undefined(
                f"the hierarchy {self.hierarchy} misses {lacking} of the {len(texts)} values of {self.on!r}."
            )
        heights = [hierarchy.levels if text is None else level_of[text] for text in texts]
        shares: Array = np.array(heights, dtype=float)[code] / max(hierarchy.levels, 1)
        return shares


def _texts(column: Column) -> tuple[list[str | None], Array]:
    """The distinct values as a hierarchy writes them, None: missing; and the one of each record."""
    if column.levels is not None:
        return [None if level is None else str(level) for level in column.levels.to_list()], column.values
    values, code = np.unique(column.values, return_inverse=True)
    return [None if np.isnan(value) else number_text(value) for value in values.tolist()], code
