"""Sampling."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from sdcmap.core import (
    Generator,
    Infeasible,
    Method,
    Microdata,
    Range,
    Roles,
    Trials,
    format_number,
    format_percent,
    format_strength,
)
from sdcmap.data.cells import distinct_cells
from sdcmap.methods.swap import household_problems


@dataclass(frozen=True)
class Sample(Method):
    """Release a simple random sample of the records, or of the households, with adjusted weights.

    Parameters
    ----------
    rate : the share of the records to release, in (0, 1]; 1 is the identity. round(rate * records) are drawn.
    size : instead of rate, the number of records to release, at least 1; from each stratum if `within` is set.
    whole_households : draw households with all their members; rate and size then refer to households.

    Formula: every set of `size` records is equally likely; weights are multiplied by units/(units drawn) of the stratum.
    A file without a weight gets none: every released record then represents units/(units drawn) records.
    The released rows keep their order. Missing values do not change. Households are drawn whole with `whole_households`;
    otherwise persons are drawn one by one.
    Reference: Hundepool et al. (2012), section 3.3.1; Cochran (1977), chapters 2 and 5.

    Examples
    --------
    >>> Sample(rate=0.05).text
    'Sample(rate=0.05)'
    """

    label: ClassVar[str] = "Random sample"
    description: ClassVar[str] = "Only a random sample of the records is released, with adjusted weights."

    weights: ClassVar[str] = "divided by the sampling rate, so that weighted totals are preserved in expectation"
    households: ClassVar[str] = "drawn as a whole if `whole_households` is set; otherwise persons are drawn one by one"
    reweights: ClassVar[bool] = True
    at_zero: ClassVar[Mapping[str, Any] | None] = {"rate": 1.0, "size": None}
    kept: ClassVar[str] = "all values of the released records; weighted totals in expectation"
    distorted: ClassVar[str] = "nothing systematically; with fewer records, confidence intervals are wider"

    rate: Annotated[float | None, Range(0, 1, "(]")] = None
    size: Annotated[int | None, Range(1)] = None
    whole_households: bool = False

    @property
    def title(self) -> str:
        noun = "households" if self.whole_households else "records"
        if self.rate is None:
            return f"random sample of {format_number(self.size or 0)} {noun}"
        return f"random sample of {format_percent(self.rate)} of the {noun}"

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        whole = roles.data.household is not None
        return {f"{cls.__name__} {format_strength(rate)}": cls(rate, whole_households=whole) for rate in (0.5, 0.1)}

    def problems(self) -> Iterator[str]:
        if (self.rate is None) == (self.size is None):
            yield " needs either a rate in (0, 1] or a size of at least 1."

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().incompatibilities(data)
        if data.weight is not None and (bad := int((~(data.weights >= 0)).sum())):
            yield f"Sample adjusts the weight {data.weight!r}, which is missing or negative in {bad} records."
        if self.whole_households:
            yield from household_problems(data, "Sample.whole_households", self.within)

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        units = np.arange(len(data))
        if self.whole_households and data.household is not None:
            units = data.view(distinct_cells, (data.household,)).code
        count = int(units.max()) + 1
        drawn = self._sample_size(count)
        chosen = np.zeros(count, dtype=bool)
        chosen[rng.permutation(count)[:drawn]] = True
        sample = data.take(np.flatnonzero(chosen[units]))
        if data.weight is None:
            return sample
        return sample.change(None, {data.weight: sample.numbers(data.weight) * (count / drawn)})

    def _sample_size(self, count: int) -> int:
        noun = "households" if self.whole_households else "records"
        if self.size is not None:
            if self.size > count:
                raise Infeasible(f"a sample of {self.size} {noun} cannot be drawn from {count} {noun}.")
            return self.size
        drawn = int(np.floor((self.rate or 0.0) * count + 0.5))
        if drawn == 0:
            raise Infeasible(f"a rate of {self.rate:g} is less than one of the {count} {noun}.")
        return drawn
