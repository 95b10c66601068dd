"""Released labels of several depths as a reader understands them: an age of 37 may be behind "37", "(35, 40]" and "*"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import polars as pl

from sdcmap.data.hierarchy import ANYTHING, number_text
from sdcmap.data.microdata import Column, Microdata
from sdcmap.kernels.arrays import Array

# Released categories as a reader understands them: an age of 37 is in "(35, 40]", W11 is in "W", HS is in "HS|Coll".


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
    for k, interval in enumerate(intervals):
        inside = _inside(numbers, *interval)
        if (place[inside] >= 0).any():
            return None
        place[inside] = k
    return place


def _inside(numbers: Array, low: float, high: float, begin: str, end: str) -> Array:
    above: Array = numbers >= low if begin == "[" else numbers > low
    return above & (numbers <= high if end == "]" else numbers < high)


MOST_PAIRS = 20_000_000  # of values and labels that are compared
MOST_LAYERS = 12


def label_matches(values: pl.Series, labels: Sequence[str]) -> Array:
    """Whether each value (row) may be behind each label (column), as the label says: the value itself, an interval, a list
    "a|b", a text whose end is hidden "81***", or the first characters of values of one length; nothing is behind a label
    that cannot be read.

    >>> label_matches(pl.Series([34, 37]), ["34", "(30, 35]", "*", "young"]).astype(int).tolist()
    [[1, 1, 1, 0], [0, 0, 1, 0]]
    """
    texts = value_texts(values)
    place = {text: k for k, text in enumerate(texts)}
    known, numbers = np.array(texts, dtype=str), _numbers(texts)
    one_length = len({len(text) for text in texts}) == 1
    matches = np.zeros((len(texts), len(labels)), dtype=np.bool_)
    for k, label in enumerate(labels):
        if label in place:
            matches[place[label], k] = True
        elif interval := interval_read(label):
            matches[:, k] = _inside(numbers, *interval)
        elif "|" in label:
            matches[[place[part] for part in label.split("|") if part in place], k] = True
        elif label.endswith(ANYTHING) or (label and one_length):
            matches[:, k] = np.char.startswith(known, label.rstrip(ANYTHING))
    return matches


def value_texts(values: pl.Series) -> list[str]:
    """Values as labels write them: 21, not 21.0."""
    if values.dtype.is_numeric():
        return [number_text(value) for value in values.cast(pl.Float64).to_list()]
    return [str(value) for value in values.to_list()]


def _numbers(texts: Sequence[str]) -> Array:
    numbers = np.full(len(texts), np.nan)
    for k, text in enumerate(texts):
        with suppress(ValueError):
            numbers[k] = float(text)
    return numbers


class ReadLabels(NamedTuple):
    """A column of two files, one of which holds labels of the other's values: the value and the label of each record (-1:
    missing), which values may be behind which label, and which labels only the note of a method explains."""

    value: Array
    label: Array
    matches: Array
    unread: Array

    @property
    def mixed(self) -> bool:
        """Whether labels are of several depths: some value has two."""
        return bool((self.matches.sum(axis=1) > 1).any())


def read_column(known: Microdata, released: Microdata, name: str) -> ReadLabels | None:
    """One column read; None where the released one holds numbers, no other values than the known one, or too many."""
    column, levels = known.column(name), released.column(name).levels
    if levels is None or levels is column.levels:
        return None
    labels, label = _met(released.column(name))
    values, value = distinct(column)
    texts = value_texts(labels)
    subset = column.levels is not None and set(texts) <= set(value_texts(values))
    if subset or len(values) * len(texts) > MOST_PAIRS:
        return None
    matches = label_matches(values, texts)
    read = [interval_read(text) is not None or "|" in text or text.endswith(ANYTHING) for text in texts]
    return ReadLabels(value, label, matches, ~(matches.any(axis=0) | np.array(read, dtype=np.bool_)))


def distinct(column: Column) -> tuple[pl.Series, Array]:
    """The known values of a column, and the place of each record's among them; -1: missing."""
    if column.levels is None:
        held = np.isfinite(column.values)
        met, place = np.unique(column.values[held]), np.full(len(held), -1)
        place[held] = np.searchsorted(met, column.values[held])
        return pl.Series(met), place
    known = column.levels.is_not_null().to_numpy()
    place = np.where(known, np.cumsum(known) - 1, -1)
    return column.levels.drop_nulls(), place[column.values]


def _met(column: Column) -> tuple[pl.Series, Array]:
    """The same with those alone that occur."""
    values, place = distinct(column)
    met = np.unique(place[place >= 0])
    new = np.full(len(values) + 1, -1)  # the last: missing
    new[met] = np.arange(len(met))
    return values.gather(met), new[place]


def spelled_out(original: Microdata, masked: Microdata, names: Sequence[str]) -> Microdata:
    """The masked file with every label that cannot be read as the list of values that became it, as the note of the method
    tells them: "other" as "farmer|miner"."""
    renamed = {name: _spelled(original, masked, name) for name in names} if masked.paired else {}
    made = {name: levels for name, levels in renamed.items() if levels is not None}
    if not made:
        return masked
    columns = {name: masked.column(name) for name in masked.names}
    columns |= {name: Column(columns[name].values, levels) for name, levels in made.items()}
    return Microdata(masked.schema, columns, masked.origin)


def _spelled(original: Microdata, masked: Microdata, name: str) -> pl.Series | None:
    read, levels = read_column(original, masked, name), masked.column(name).levels
    if read is None or levels is None or not read.unread.any():
        return None
    values, _ = distinct(original.column(name))
    texts, labels = value_texts(values), levels.cast(pl.String).to_list()
    came = read.value if masked.origin is None else read.value[masked.origin]
    for k in np.flatnonzero(read.unread):
        rows = read.label == k
        behind = np.unique(came[rows & (came >= 0)])
        spelled = "|".join(texts[place] for place in behind)
        code = masked.column(name).values[np.flatnonzero(rows)[0]]
        if spelled and spelled not in labels and spelled.count("|") == len(behind) - 1:
            labels[code] = spelled
    return pl.Series(levels.name, labels, dtype=pl.String)


class Layers(NamedTuple):
    """Labels in layers, each of which divides the values: the code of every known record in each layer, and that of every
    released one in its own (-1 in the others)."""

    known: Array
    released: Array


def layered(read: ReadLabels, most: int = MOST_LAYERS) -> Layers | None:
    """The column as codes that are compared by equality, layer by layer; None where there are more than `most`. Missing is
    a value and a label of its own."""
    values, labels = read.matches.shape
    matches = np.zeros((values + 1, labels + 1), dtype=np.bool_)
    matches[:-1, :-1], matches[-1, -1] = read.matches, True
    codes: list[Array] = []
    layer = np.zeros(labels + 1, dtype=np.int64)
    for k in np.argsort(matches.sum(axis=0), kind="stable"):
        layer[k] = next((n for n, code in enumerate(codes) if (code[matches[:, k]] < 0).all()), len(codes))
        if layer[k] == most:
            return None
        if layer[k] == len(codes):
            codes.append(np.full(values + 1, -1))
        codes[layer[k]][matches[:, k]] = k
    value, label = np.where(read.value < 0, values, read.value), np.where(read.label < 0, labels, read.label)
    nobodys = labels + 1  # of a value that no label of the layer has
    known = np.column_stack([np.where(code < 0, nobodys, code)[value] for code in codes])
    released = np.column_stack([np.where(layer == n, np.arange(labels + 1), -1)[label] for n in range(len(codes))])
    return Layers(known, released)
