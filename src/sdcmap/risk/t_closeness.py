"""Groups of records whose sensitive values are unlike those of the file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from numpy.random import Generator

from sdcmap.core.measure import Estimate
from sdcmap.core.value import Share
from sdcmap.data.cells import DistinctCells
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.diversity import equal_distances, ordered_distances
from sdcmap.risk._frequencies import KeyMeasure
from sdcmap.risk.l_diversity import SLACK, secret_misfits, secret_of, sensitive_groups


@dataclass(frozen=True)
class TCloseness(KeyMeasure):
    """How far the sensitive values of a group of records are from those of the whole file.

    The snooper knows the distribution of the sensitive variable in the file, and the keys of somebody who is in it. He
    looks at the records that have these keys, and learns as much as their distribution differs from the one he knew
    before. He succeeds where it is further away than t. What masking changed counts as if it were true.

    Parameters
    ----------
    secret : the sensitive variable, of any kind; by default the first sensitive variable of the file.
    t : a group is exposed above this distance, in [0, 1].
    distance : "ordered": values far apart in order are far; "equal": any two values are equally far; "by kind": ordered
        for numeric and ordinal variables, equal for nominal ones.
    summary : "violations": the share of records in groups further away than t; "largest": the distance of the furthest
        group; "mean": the mean distance over records.
    on : the variables he knows, of any kind; by default the keys of the file.
    missing_is : "any value": a missing key matches every value; "a category": it matches missing alone.

    Formula: earth mover's distance of shares p in the group and q in the file; ordered sum_j |P_j - Q_j| / (m - 1) over
        the m values in order, P and Q running sums; equal 1/2 sum_j |p_j - q_j|. `parts`: all three summaries.
    Missing keys as `missing_is` says; records whose sensitive value is missing are left out of p and q. Weights and
    households are not used.
    Reference: Li, Li, Venkatasubramanian (2007).

    Examples
    --------
    >>> TCloseness("Income", t=0.3).text
    "TCloseness(secret='Income', t=0.3)"
    """

    missing: ClassVar[str] = "a missing key matches as `missing_is` says; missing sensitive values are left out"

    secret: str = ""
    t: Share = 0.2
    distance: Literal["by kind", "ordered", "equal"] = "by kind"
    summary: Literal["violations", "largest", "mean"] = "violations"

    def misfits(self, data: Microdata) -> Iterator[str]:
        yield from super().misfits(data)
        secret = secret_of(data, self.secret)
        problems = list(secret_misfits(self, data, self.variables(data), secret))
        yield from problems
        if not problems and self.distance == "ordered" and data.schema[secret].kind == "nominal":
            yield f'TCloseness.distance "ordered" needs a variable with an order; {secret!r} is nominal.'

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        self.checked(original)
        met, distance = self.distances(masked, secret_of(original, self.secret))
        parts = {
            "violations": float(met.count[distance > self.t + SLACK].sum() / len(masked)),
            "largest": float(distance.max()),
            "mean": float(met.count @ distance / len(masked)),
        }
        return Estimate(parts[self.summary], None, parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The distance of each record's group."""
        self.checked(original)
        met, distance = self.distances(masked, secret_of(original, self.secret))
        return distance[met.code]

    def distances(self, data: Microdata, secret: str) -> tuple[DistinctCells, Array]:
        """The combinations of keys that occur, and the distance of the group of each."""
        groups = sensitive_groups(self, data, secret)
        if len(groups.value) == 0:
            raise Undefined("TCloseness: every sensitive value is missing.")
        if self.distance == "equal" or (self.distance == "by kind" and data.schema[secret].kind == "nominal"):
            return groups.met, equal_distances(groups.start, groups.value, groups.count, groups.whole)
        place, whole = _values_that_occur(groups.whole)
        return groups.met, ordered_distances(groups.start, place[groups.value], groups.count, whole)


def _values_that_occur(whole: Array) -> tuple[Array, Array]:
    """The place of each value among those that occur, and their shares: an empty category is no step of the order."""
    occurs = whole > 0
    return occurs.cumsum() - 1, whole[occurs]
