"""Columns that were released in other categories than the snooper's, as he reads them: what two values cost as a pair."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sdcmap.data.label_layers import ReadLabels, read_column
from sdcmap.kernels.arrays import Array
from sdcmap.risk.linkage.field_costs import CATEGORY, Cost
from sdcmap.risk.linkage.file_pair import Pair

MOST_CELLS = 1_000_000  # of the table of values and labels


class LabelCodes(NamedTuple):
    """Known records by what their value may be behind, released ones by their label, in codes; missing is the last of
    either. apart: whether nobody with the first can be behind the second."""

    known: Array
    released: Array
    apart: Array

    def asked_of(self, cost: Cost, absent: float) -> Cost:
        """The same question of labels in place of values: equality where each value has one label, else by a table, where
        what is missing costs `absent`."""
        missing_value, missing_label = (size - 1 for size in self.apart.shape)
        if ((~self.apart[:-1, :-1]).sum(axis=1) <= 1).all():
            behind = np.where(self.apart[:, :-1].all(axis=1), missing_label + 1, self.apart[:, :-1].argmin(axis=1))
            known = np.where(self.known == missing_value, np.nan, behind[self.known])
            return cost._replace(known=known, released=np.where(self.released == missing_label, np.nan, self.released))
        table = np.where(self.apart, cost.cap, 0.0)
        table[-1, :] = table[:, -1] = absent
        codes = self.known.astype(float), self.released.astype(float)
        return Cost(CATEGORY, *codes, float(table.shape[1]), table=table.ravel())


def as_read(pair: Pair, place: int, cost: Cost, absent: float) -> Cost:
    """What the values of a categorical column cost, by its labels where a snooper reads them; absent: where one of both is
    missing, and labels are of several depths."""
    codes = _codes_of(pair, place)
    return cost if codes is None else codes.asked_of(cost, absent)


def labelled(pair: Pair) -> bool:
    """Whether some column holds labels that are read."""
    return any(_codes_of(pair, place) is not None for place, category in enumerate(pair.categorical) if category)


def _codes_of(pair: Pair, place: int) -> LabelCodes | None:
    return pair.remember(("labels", place), lambda: _label_codes(pair, place))


def _label_codes(pair: Pair, place: int) -> LabelCodes | None:
    read = read_column(pair.known_file, pair.released_file, pair.names[place])
    if read is None:
        return None
    value, label = read.value[pair.known_rows], read.label[pair.released_rows]
    classes, of_value = value_classes(_with_the_note(pair, value, label, read))
    if classes.shape[0] * (classes.shape[1] + 1) > MOST_CELLS:
        return None
    apart = np.pad(~classes, ((0, 1), (0, 1)))
    known = np.where(value < 0, len(classes), of_value[value])
    return LabelCodes(known, np.where(label < 0, classes.shape[1], label), apart)


def value_classes(matches: Array) -> tuple[Array, Array]:
    """Values that may be behind the same labels are one class: the matches of each class, and the class of each value."""
    _, first, of_value = np.unique(np.packbits(matches, axis=1), axis=0, return_index=True, return_inverse=True)
    return matches[first], np.append(of_value.ravel(), 0)


def _with_the_note(pair: Pair, value: Array, label: Array, read: ReadLabels) -> Array:
    """The matches where labels that cannot be read are what the note of the method says: any value of somebody who has
    them."""
    held = np.flatnonzero((pair.truth >= 0) & (label >= 0))
    own = value[pair.truth[held]]
    told = read.unread[label[held]] & (own >= 0)
    matches = read.matches.copy()
    matches[own[told], label[held][told]] = True
    return matches
