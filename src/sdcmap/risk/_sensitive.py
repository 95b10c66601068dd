"""What the measures of sensitive values within groups share: the secret, the groups, and who is in an exposed one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from numpy.random import Generator

from sdcmap.core.measure import Estimate
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.risk._frequencies import KeyMeasure
from sdcmap.risk.l_diversity import SensitiveGroups, secret_misfits, secret_of, sensitive_groups


class Judged(NamedTuple):
    """Which groups are exposed, and numbers of the whole file for `parts`."""

    exposed: Array
    parts: Mapping[str, float]


@dataclass(frozen=True)
class SensitiveMeasure(KeyMeasure):
    """The share of records in groups of equal keys whose sensitive values break a rule; a subclass states the rule.

    Parameters
    ----------
    secret : the sensitive variable, of any kind; by default the first sensitive variable of the file.
    """

    missing: ClassVar[str] = "a missing key matches as `missing_is` says; missing sensitive values are left out"

    secret: str = ""

    def misfits(self, data: Microdata) -> Iterator[str]:
        yield from super().misfits(data)
        yield from secret_misfits(self, data, self.variables(data), secret_of(data, self.secret))

    def judged(self, groups: SensitiveGroups) -> Judged:
        """The rule itself."""
        raise TypeError(f"{type(self).__name__} has no rule.")

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        groups, (exposed, parts) = self._judged(original, masked)
        return Estimate(float(groups.met.count[exposed].sum() / len(masked)), None, parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """1 where the record's group is exposed, 0 elsewhere."""
        groups, (exposed, _) = self._judged(original, masked)
        return exposed.astype(float)[groups.met.code]

    def _judged(self, original: Microdata, masked: Microdata) -> tuple[SensitiveGroups, Judged]:
        self.checked(original)
        groups = sensitive_groups(self, masked, secret_of(original, self.secret))
        if len(groups.value) == 0:
            raise Undefined(f"{type(self).__name__}: every sensitive value is missing.")
        return groups, self.judged(groups)
