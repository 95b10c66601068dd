"""Groups of records whose sensitive values differ from those of the file: t-closeness."""

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
from sdcmap.risk.l_diversity import ROUNDING_TOLERANCE, SensitiveMeasure


@dataclass(frozen=True)
class TCloseness(SensitiveMeasure):
    """How far the sensitive values of a group of records are from those of the whole file.

    The attacker knows the distribution of the sensitive variable in the file, and the keys of a person in it. They look
    at the records with these keys, and learn as much as their distribution differs from that of the file. A group is
    exposed if the distance is above t. Masked values count as if they were true.

    Parameters
    ----------
    t : a group is exposed above this distance, in [0, 1].
    distance : "ordered": distances follow the order of the values; "equal": any two values are equally far apart; "by
        kind": ordered for numeric and ordinal variables, equal for nominal ones; "hierarchical": the level at which a
        hierarchy first gives both values the same label.
    hierarchy : for "hierarchical": path of a CSV file in ARX's format: value;level 1;level 2;... without a header. If
        the last level is not one label for all values, such a level is added.
    sha256 : the first 16 digits of the hierarchy file's SHA-256, filled in when left out; a file with another digest is
        rejected.
    summary : "violations": the share of records in groups above t; "largest": the largest distance of a group; "mean":
        the mean distance over records.

    Formula: earth mover's distance of the shares p in the group and q in the file; ordered sum_j |P_j - Q_j| / (m - 1)
        over the m values in order, P and Q cumulative; equal 1/2 sum_j |p_j - q_j|; hierarchical sum over levels h = 1
        .. H and labels there of h/H min(excess, lack), of p - q over the labels below each. `parts`: all three
        summaries.
    Missing keys match according to `missing_is`; records with a missing sensitive value are left out of p and q.
    Weights and households are not used.
    Reference: Li, Li, Venkatasubramanian (2007).

    Examples
    --------
    >>> TCloseness("Income", t=0.3).text
    "TCloseness(secret='Income', t=0.3)"
    """

    label: ClassVar[str] = "Groups with unusual sensitive values"
    description: ClassVar[str] = (
        "Share of records in groups whose sensitive values differ from those of the whole file by more than t "
        "(t-closeness)."
    )

    revision: ClassVar[int] = 2  # 2: hierarchies; the other distances did not change

    t: Share = 0.2
    distance: Literal["by kind", "ordered", "equal", "hierarchical"] = "by kind"
    summary: Literal["violations", "largest", "mean"] = "violations"
    hierarchy: str = ""
    sha256: str = ""

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if (self.distance == "hierarchical") != bool(self.hierarchy):
            yield '.hierarchy is required with distance = "hierarchical", and not allowed otherwise.'

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        problems, secret = list(super().other_incompatibilities(data)), self.secret_in(data)
        yield from problems
        if not problems and self.distance == "ordered" and data.schema[secret].kind == "nominal":
            yield f'TCloseness.distance "ordered" needs a variable with an order; {secret!r} is nominal.'

    def check_files(self, data: Microdata) -> None:
        if self.hierarchy:
            self._tree(data, self.secret_in(data))

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        cells, distance = self.cell_risks(original, masked)
        parts = {
            "violations": float(cells.count[distance > self.t + ROUNDING_TOLERANCE].sum() / len(masked)),
            "largest": float(distance.max()),
            "mean": float(cells.count @ distance / len(masked)),
        }
        return Estimate(value=parts[self.summary], parts=parts)

    def cell_risks(self, original: Microdata, masked: Microdata) -> tuple[DistinctCells, Array]:
        """Return the key combinations that occur, and the distance of the group of each."""
        groups, secret = self.groups(original, masked), self.secret_in(original)
        start, count, occurs = groups.start, groups.count, groups.file_share > 0
        if self.distance == "equal" or (self.distance == "by kind" and masked.schema[secret].kind == "nominal"):
            return groups.cells, equal_distances(start, groups.value, count, groups.file_share)
        # a category that does not occur is no step of the order, so values are numbered among those that occur
        position, file_share = (occurs.cumsum() - 1)[groups.value], groups.file_share[occurs]
        if self.hierarchy:
            tree = _codes(self._tree(masked, secret)[occurs])
            return groups.cells, hierarchical_distances(start, position, count, file_share, tree)
        return groups.cells, ordered_distances(start, position, count, file_share)

    def _tree(self, data: Microdata, secret: str) -> Array:
        """Return the labels of each value of the sensitive variable, one row each; empty labels for a missing value."""
        hierarchy = Hierarchy.parse(read_verified(self.hierarchy, self.sha256), self.hierarchy)
        rows = {row[0]: row for row in hierarchy.rows}
        texts = _texts(data, secret)
        if lacking := sum(text is not None and text not in rows for text in texts):
            raise Undefined(
                f"the hierarchy {self.hierarchy} lacks {lacking} of the {len(texts)} values of {secret!r}: add them."
            )
        none = ("",) * (hierarchy.levels + 1)
        return np.array([none if text is None else rows[text] for text in texts])


def _texts(data: Microdata, name: str) -> list[str | None]:
    """Return the values of a variable in the order of their codes, spelled as in a hierarchy; None if missing."""
    column = data.column(name)
    if column.levels is not None:
        return [None if level is None else str(level) for level in column.levels.to_list()]
    return [None if np.isnan(x) else number_text(x) for x in np.unique(column.values).tolist()]


def _codes(tree: Array) -> Array:
    """Return the labels of a hierarchy as codes 0, 1, ... on each level.

    The values themselves are the lowest level. A level with one label for all is added on top if there is none.
    """
    levels = [np.unique(column, return_inverse=True)[1] for column in tree.T[1:]]
    top = [] if levels and not levels[-1].any() else [np.zeros(len(tree), dtype=np.int64)]
    return np.column_stack([np.arange(len(tree)), *levels, *top])
