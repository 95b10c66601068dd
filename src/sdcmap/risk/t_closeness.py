"""Groups of records whose sensitive values are unlike those of the file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, Share, Undefined
from sdcmap.core.named_files import read_verified
from sdcmap.data.cells import DistinctCells
from sdcmap.data.hierarchy import Hierarchy, number_text
from sdcmap.kernels.tables.diversity import equal_distances, hierarchical_distances, ordered_distances
from sdcmap.risk.l_diversity import SLACK, SensitiveMeasure


@dataclass(frozen=True)
class TCloseness(SensitiveMeasure):
    """How far the sensitive values of a group of records are from those of the whole file.

    The snooper knows the distribution of the sensitive variable in the file, and the keys of somebody who is in it. He
    looks at the records that have these keys, and learns as much as their distribution differs from the one he knew
    before. He succeeds where it is further away than t. What masking changed counts as if it were true.

    Parameters
    ----------
    t : a group is exposed above this distance, in [0, 1].
    distance : "ordered": values far apart in order are far; "equal": any two values are equally far; "by kind": ordered
        for numeric and ordinal variables, equal for nominal ones; "hierarchical": values are as far as the level at which
        a hierarchy first gives them one label.
    hierarchy : for "hierarchical": path of a CSV file as ARX writes it: value;level 1;level 2;... without a header; its
        last level is one label for all values, or is taken to be.
    sha256 : the first 16 digits of the hierarchy file's SHA-256, filled in when left out; another content is refused.
    summary : "violations": the share of records in groups further away than t; "largest": the distance of the furthest
        group; "mean": the mean distance over records.

    Formula: earth mover's distance of shares p in the group and q in the file; ordered sum_j |P_j - Q_j| / (m - 1) over
        the m values in order, P and Q running sums; equal 1/2 sum_j |p_j - q_j|; hierarchical sum over levels h = 1 ..
        H and labels there of h/H min(excess, lack), of p - q over the labels below each. `parts`: all three summaries.
    Missing keys as `missing_is` says; records whose sensitive value is missing are left out of p and q. Weights and
    households are not used.
    Reference: Li, Li, Venkatasubramanian (2007).

    Examples
    --------
    >>> TCloseness("Income", t=0.3).text
    "TCloseness(secret='Income', t=0.3)"
    """

    label: ClassVar[str] = "Distance of sensitive values"
    description: ClassVar[str] = (
        "How far the sensitive values of a group with equal keys differ from those of the whole file (t-closeness)."
    )

    revision: ClassVar[int] = 2  # 2: hierarchies; the other distances are as they were

    t: Share = 0.2
    distance: Literal["by kind", "ordered", "equal", "hierarchical"] = "by kind"
    summary: Literal["violations", "largest", "mean"] = "violations"
    hierarchy: str = ""
    sha256: str = ""

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if (self.distance == "hierarchical") != bool(self.hierarchy):
            yield '.hierarchy must be given with distance = "hierarchical", and only there.'

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        problems, secret = list(super().other_incompatibilities(data)), self.secret_in(data)
        yield from problems
        if not problems and self.distance == "ordered" and data.schema[secret].kind == "nominal":
            yield f'TCloseness.distance "ordered" needs a variable with an order; {secret!r} is nominal.'

    def check_files(self, data: Microdata) -> None:
        if self.hierarchy:
            self._tree(data, self.secret_in(data))

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        met, distance = self.cell_risks(original, masked)
        parts = {
            "violations": float(met.count[distance > self.t + SLACK].sum() / len(masked)),
            "largest": float(distance.max()),
            "mean": float(met.count @ distance / len(masked)),
        }
        return Estimate(value=parts[self.summary], parts=parts)

    def cell_risks(self, original: Microdata, masked: Microdata) -> tuple[DistinctCells, Array]:
        """The combinations of keys that occur, and the distance of the group of each."""
        groups, secret = self.groups(original, masked), self.secret_in(original)
        start, count, occurs = groups.start, groups.count, groups.whole > 0
        if self.distance == "equal" or (self.distance == "by kind" and masked.schema[secret].kind == "nominal"):
            return groups.met, equal_distances(start, groups.value, count, groups.whole)
        # an empty category is no step of the order: places are among the values that occur
        place, whole = (occurs.cumsum() - 1)[groups.value], groups.whole[occurs]
        if self.hierarchy:
            tree = _codes(self._tree(masked, secret)[occurs])
            return groups.met, hierarchical_distances(start, place, count, whole, tree)
        return groups.met, ordered_distances(start, place, count, whole)

    def _tree(self, data: Microdata, secret: str) -> Array:
        """The labels of each value of the sensitive variable, a row each; a missing one has none."""
        hierarchy = Hierarchy.parse(read_verified(self.hierarchy, self.sha256), self.hierarchy)
        rows = {row[0]: row for row in hierarchy.rows}
        texts = _texts(data, secret)
        if lacking := sum(text is not None and text not in rows for text in texts):
            raise Undefined(
                f"the hierarchy {self.hierarchy} misses {lacking} of the {len(texts)} values of {secret!r}."
            )
        none = ("",) * (hierarchy.levels + 1)
        return np.array([none if text is None else rows[text] for text in texts])


def _texts(data: Microdata, name: str) -> list[str | None]:
    """The values of a variable in the order of their codes, as a hierarchy writes them; None: missing."""
    column = data.column(name)
    if column.levels is not None:
        return [None if level is None else str(level) for level in column.levels.to_list()]
    return [None if np.isnan(x) else number_text(x) for x in np.unique(column.values).tolist()]


def _codes(tree: Array) -> Array:
    """The labels of a hierarchy as codes 0, 1, ... of each level; the values themselves stay apart, and one label for all
    is put above where the hierarchy has none."""
    levels = [np.unique(column, return_inverse=True)[1] for column in tree.T[1:]]
    top = [] if levels and not levels[-1].any() else [np.zeros(len(tree), dtype=np.int64)]
    return np.column_stack([np.arange(len(tree)), *levels, *top])
