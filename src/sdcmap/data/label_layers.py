"""Read released labels of several depths: age 37 can lie behind "37", "(35, 40]" and "*", HS behind "HS|Coll"."""

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

NUMBER = r"-?(?:\d+\.?\d*(?:e[+-]?\d+)?|inf)"
BOUNDED = re.compile(rf"([\[(])({NUMBER}), ({NUMBER})([\])])")
UNBOUNDED = re.compile(rf"(<=|>=|<|>) ({NUMBER})")


def assign_categories(values: pl.Series, labels: Sequence[str]) -> Array | None:
    """Return the index of each value's category among the labels, -1 if it has none.

    Labels are read as intervals, as lists "a|b", or as first characters of the values. The result is None if the labels
    are none of these, or if a value has several.

    >>> assign_categories(pl.Series([20, 37, 99]), ["<= 20", "(20, 40]", "> 90"]).tolist()
    [0, 1, 2]
    >>> assign_categories(pl.Series(["W11", "E1"]), ["E", "W"]).tolist()
    [1, 0]
    """
    intervals = [interval for label in labels if (interval := parse_interval(label))]
    if intervals and len(intervals) == len(labels) and values.dtype.is_numeric():
        return _in_intervals(values.cast(pl.Float64).to_numpy(), intervals)
    texts, index = values.cast(pl.String).to_list(), {label: k for k, label in enumerate(labels)}
    pairs = [(part, k) for label, k in index.items() if "|" in label for part in label.split("|")]
    parts = dict(pairs)
    if len(parts) < len(pairs) or not parts.keys().isdisjoint(index):
        return None  # a value is in two labels
    lengths = {len(label) for label in labels}
    # Labels of one length that is shorter than some value may be prefixes of the values.
    prefix = lengths.pop() if len(lengths) == 1 else 0
    if not parts and not (prefix and any(len(text) > prefix for text in texts if text)):
        return None
    return np.array([index.get(text, parts.get(text, index.get((text or "")[:prefix], -1))) for text in texts])


def parse_interval(label: str) -> tuple[float, float, str, str] | None:
    """Return the ends of an interval and its brackets, "[" or "(" and "]" or ")"; None if the label is not one."""
    bounded, unbounded = BOUNDED.fullmatch(label), UNBOUNDED.fullmatch(label)
    if bounded:
        return float(bounded[2]), float(bounded[3]), bounded[1], bounded[4]
    if unbounded is None:
        return None
    end, is_closed = float(unbounded[2]), "=" in unbounded[1]
    if unbounded[1][0] == "<":
        return -np.inf, end, "[", "]" if is_closed else ")"
    return end, np.inf, "[" if is_closed else "(", "]"


def _in_intervals(numbers: Array, intervals: Sequence[tuple[float, float, str, str]]) -> Array | None:
    index = np.full(len(numbers), -1)
    for k, interval in enumerate(intervals):
        inside = _is_inside(numbers, *interval)
        if (index[inside] >= 0).any():
            return None  # intervals overlap
        index[inside] = k
    return index


def _is_inside(numbers: Array, low: float, high: float, begin: str, end: str) -> Array:
    above: Array = numbers >= low if begin == "[" else numbers > low
    return above & (numbers <= high if end == "]" else numbers < high)


MAX_LABEL_PAIRS = 20_000_000  # values times labels of one column that are compared: 20 MB of booleans
MAX_LAYERS = 12  # each layer is one more column of codes to compare


def label_matches(values: pl.Series, labels: Sequence[str]) -> Array:
    """Return whether each value (row) can lie behind each label (column).

    A label is the value itself, an interval, a list "a|b", a text with a hidden end "81***", or the first characters of
    values that all have one length. No value lies behind a label that cannot be read.

    >>> label_matches(pl.Series([34, 37]), ["34", "(30, 35]", "*", "young"]).astype(int).tolist()
    [[1, 1, 1, 0], [0, 0, 1, 0]]
    """
    texts = format_values(values)
    index = {text: k for k, text in enumerate(texts)}
    known, numbers = np.array(texts, dtype=str), _numbers(texts)
    one_length = len({len(text) for text in texts}) == 1
    matches = np.zeros((len(texts), len(labels)), dtype=np.bool_)
    for k, label in enumerate(labels):
        if label in index:
            matches[index[label], k] = True
        elif interval := parse_interval(label):
            matches[:, k] = _is_inside(numbers, *interval)
        elif "|" in label:
            matches[[index[part] for part in label.split("|") if part in index], k] = True
        elif label.endswith(ANYTHING) or (label and one_length):
            matches[:, k] = np.char.startswith(known, label.rstrip(ANYTHING))
    return matches


def format_values(values: pl.Series) -> list[str]:
    """Return values as labels write them: 21, not 21.0."""
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
    """A column of two files, of which the released one holds labels for values of the known one.

    value, label : index of the value of each known record and of the label of each released one; -1 if missing.
    matches : whether each value (row) can lie behind each label (column).
    unreadable : labels such as "other", whose meaning only the method note states.
    """

    value: Array
    label: Array
    matches: Array
    unreadable: Array

    @property
    def is_mixed(self) -> bool:
        """Return whether labels have several depths, so that some value lies behind two labels."""
        return bool((self.matches.sum(axis=1) > 1).any())


def read_labels(known: Microdata, released: Microdata, name: str) -> ReadLabels | None:
    """Read the labels of one column; None if it has numbers, only values of the known file, or too many labels."""
    column, levels = known.column(name), released.column(name).levels
    if levels is None or levels is column.levels:
        return None
    labels, label = _observed_values(released.column(name))
    values, value = distinct_values(column)
    texts = format_values(labels)
    only_values = column.levels is not None and set(texts) <= set(format_values(values))
    if only_values or len(values) * len(texts) > MAX_LABEL_PAIRS:
        return None
    matches = label_matches(values, texts)
    # An interval or list without a value of the known file is readable all the same.
    readable = [parse_interval(text) is not None or "|" in text or text.endswith(ANYTHING) for text in texts]
    return ReadLabels(value, label, matches, ~(matches.any(axis=0) | np.array(readable, dtype=np.bool_)))


def distinct_values(column: Column) -> tuple[pl.Series, Array]:
    """Return the possible values of a column, and the index of each record's value; -1 if missing."""
    if column.levels is None:
        known = np.isfinite(column.values)
        observed, index = np.unique(column.values[known]), np.full(len(known), -1)
        index[known] = np.searchsorted(observed, column.values[known])
        return pl.Series(observed), index
    known = column.levels.is_not_null().to_numpy()
    index = np.where(known, np.cumsum(known) - 1, -1)
    return column.levels.drop_nulls(), index[column.values]


def _observed_values(column: Column) -> tuple[pl.Series, Array]:
    """Return the values of a column that occur, and the index of each record's value; -1 if missing."""
    values, index = distinct_values(column)
    observed = np.unique(index[index >= 0])
    new = np.full(len(values) + 1, -1)  # the last entry serves index -1, missing
    new[observed] = np.arange(len(observed))
    return values.gather(observed), new[index]


def spell_out_labels(original: Microdata, masked: Microdata, names: Sequence[str]) -> Microdata:
    """Return the masked file with each unreadable label replaced by the list of values behind it.

    "other" becomes "farmer|miner": an attacker who has read the method note knows these lists.
    """
    spelled = {name: _spell_out_column(original, masked, name) for name in names} if masked.paired else {}
    changed = {name: levels for name, levels in spelled.items() if levels is not None}
    if not changed:
        return masked
    columns = {name: masked.column(name) for name in masked.names}
    columns |= {name: Column(columns[name].values, levels) for name, levels in changed.items()}
    return Microdata(masked.schema, columns, masked.origin)


def _spell_out_column(original: Microdata, masked: Microdata, name: str) -> pl.Series | None:
    read, levels = read_labels(original, masked, name), masked.column(name).levels
    if read is None or levels is None or not read.unreadable.any():
        return None
    values, _ = distinct_values(original.column(name))
    texts, labels = format_values(values), levels.cast(pl.String).to_list()
    original_value = read.value if masked.origin is None else read.value[masked.origin]
    for k in np.flatnonzero(read.unreadable):
        rows = read.label == k
        behind = np.unique(original_value[rows & (original_value >= 0)])
        spelled = "|".join(texts[index] for index in behind)
        code = masked.column(name).values[np.flatnonzero(rows)[0]]
        # A value that contains "|" itself would make the list ambiguous.
        if spelled and spelled not in labels and spelled.count("|") == len(behind) - 1:
            labels[code] = spelled
    return pl.Series(levels.name, labels, dtype=pl.String)


class Layers(NamedTuple):
    """Labels in layers, within each of which no two labels share a value.

    known : the code of every known record in each layer.
    released : the code of every released record in the layer of its label, -1 in the others.
    """

    known: Array
    released: Array


def separate_layers(read: ReadLabels, most: int = MAX_LAYERS) -> Layers | None:
    """Return the column as codes that can be compared by equality, layer by layer; None if there are more than `most`.

    Missing is a value and a label of its own. Fine labels are placed first, each in the first layer where no other label
    has one of its values.
    """
    values, labels = read.matches.shape
    matches = np.zeros((values + 1, labels + 1), dtype=np.bool_)
    matches[:-1, :-1], matches[-1, -1] = read.matches, True
    codes: list[Array] = []
    layer = np.zeros(labels + 1, dtype=np.int64)
    # Greedy placement, finest labels first.
    for k in np.argsort(matches.sum(axis=0), kind="stable"):
        layer[k] = next((n for n, code in enumerate(codes) if (code[matches[:, k]] < 0).all()), len(codes))
        if layer[k] == most:
            return None
        if layer[k] == len(codes):
            codes.append(np.full(values + 1, -1))
        codes[layer[k]][matches[:, k]] = k
    value, label = np.where(read.value < 0, values, read.value), np.where(read.label < 0, labels, read.label)
    no_label = labels + 1  # the code of a value that no label of the layer contains
    known = np.column_stack([np.where(code < 0, no_label, code)[value] for code in codes])
    released = np.column_stack([np.where(layer == n, np.arange(labels + 1), -1)[label] for n in range(len(codes))])
    return Layers(known, released)
