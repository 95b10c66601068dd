"""Released categories as a reader understands them: an age of 37 is in "(35, 40]", W11 is in "W", HS is in "HS|Coll"."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import polars as pl

from sdcmap.kernels.arrays import Array

NUMBER = r"-?(?:\d+\.?\d*(?:e[+-]?\d+)?|inf)"
INNER = re.compile(rf"([\[(])({NUMBER}), ({NUMBER})([\])])")
OUTER = re.compile(rf"(<=|>=|<|>) ({NUMBER})")


def categories_of(values: pl.Series, labels: Sequence[str]) -> Array | None:
    """The place of each value's category among the labels, -1 where it has none; None where no label is read like this, or
    a value has several.

    >>> categories_of(pl.Series([20, 37, 99]), ["<= 20", "(20, 40]", "> 90"]).tolist()
    [0, 1, 2]
    >>> categories_of(pl.Series(["W11", "E1"]), ["E", "W"]).tolist()
    [1, 0]
    """
    intervals = [interval for label in labels if (interval := interval_read(label))]
    if intervals and len(intervals) == len(labels) and values.dtype.is_numeric():
        return _in_intervals(values.cast(pl.Float64).to_numpy(), intervals)
    texts, place = values.cast(pl.String).to_list(), {label: k for k, label in enumerate(labels)}
    listed = [(part, k) for label, k in place.items() if "|" in label for part in label.split("|")]
    parts = dict(listed)
    if len(parts) < len(listed) or not parts.keys().isdisjoint(place):
        return None
    lengths = {len(label) for label in labels}
    first = lengths.pop() if len(lengths) == 1 else 0
    if not parts and not (first and any(len(text) > first for text in texts if text)):
        return None
    return np.array([place.get(text, parts.get(text, place.get((text or "")[:first], -1))) for text in texts])


def interval_read(label: str) -> tuple[float, float, str, str] | None:
    """The ends of an interval, and whether each belongs to it: "[" and "]"."""
    inner, outer = INNER.fullmatch(label), OUTER.fullmatch(label)
    if inner:
        return float(inner[2]), float(inner[3]), inner[1], inner[4]
    if outer is None:
        return None
    end, own = float(outer[2]), "=" in outer[1]
    if outer[1][0] == "<":
        return -np.inf, end, "[", "]" if own else ")"
    return end, np.inf, "[" if own else "(", "]"


def _in_intervals(numbers: Array, intervals: Sequence[tuple[float, float, str, str]]) -> Array | None:
    place = np.full(len(numbers), -1)
    for k, (low, high, begin, end) in enumerate(intervals):
        above = numbers >= low if begin == "[" else numbers > low
        inside = above & (numbers <= high if end == "]" else numbers < high)
        if (place[inside] >= 0).any():
            return None
        place[inside] = k
    return place
