"""Synthesis by an adversarial random forest: leaves in which the columns are independent.

A forest learns to tell the original from a file whose columns were drawn independently. New columns are drawn independently
within its leaves, and another forest is asked, until it cannot tell them apart.  Watson, Blesch, Kapar, Wright (2023)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sdcmap.core import Array, Generator
from sdcmap.data.microdata import Column, Microdata
from sdcmap.kernels.statistics.trees import Tree, find_leaves, grow
from sdcmap.methods._column_bins import bin_column, bin_count

TREES = 10
MAX_ROUNDS = 6


class _Columns(NamedTuple):
    """All columns as bins: n x p, the number of bins of each column, and whether they are ordered."""

    bins: Array
    sizes: Array
    ordered: Array

    @staticmethod
    def of(data: Microdata, names: Sequence[str]) -> _Columns:
        bins = np.column_stack([bin_column(data, name, data.column(name)) for name in names])
        sizes = np.array([bin_count(data, name) for name in names])
        ordered = np.array([data.schema[name].kind != "nominal" for name in names])
        return _Columns(bins, sizes, ordered)


class _OriginalTree(NamedTuple):
    """A tree, the parent of each node, and its original records: rows[start : start + size]."""

    tree: Tree
    parent: Array
    rows: Array
    start: Array
    size: Array

    @staticmethod
    def of(tree: Tree, bag: Array, records: int) -> _OriginalTree:
        parent = np.zeros(len(tree.variable), dtype=np.int64)
        inner = np.flatnonzero(tree.variable >= 0)
        parent[tree.left[inner]] = parent[tree.right[inner]] = inner
        row = bag[tree.rows]
        before = np.concatenate([[0], np.cumsum(row < records)])
        start = before[tree.start]
        return _OriginalTree(tree, parent, row[row < records], start, before[tree.start + tree.size] - start)

    def nodes(self, bins: Array, leaf: int) -> Array:
        """Return the leaf of each row, or the nearest node above it with at least `leaf` original records."""
        node = find_leaves(self.tree, bins)
        while (few := (self.size[node] < leaf) & (node > 0)).any():
            node[few] = self.parent[node[few]]
        return node


def draw_by_adversarial_forest(data: Microdata, on: Sequence[str], leaf: int, rng: Generator) -> dict[str, Column]:
    """Return new columns of all variables. Each value is drawn from at least `leaf` original records."""
    columns = _Columns.of(data, on)
    n, p = columns.bins.shape
    rows = np.column_stack([rng.permutation(n) for _ in range(p)])  # begin with independent columns
    for _ in range(MAX_ROUNDS):
        forest, accuracy = _tell_apart(columns, columns.bins[rows, np.arange(p)], leaf, rng)
        rows = _draw_rows(forest, columns.bins, leaf, rng)
        if accuracy <= 0.5:
            break
    return {name: data.column(name).take(rows[:, j]) for j, name in enumerate(on)}


def _tell_apart(columns: _Columns, drawn: Array, leaf: int, rng: Generator) -> tuple[list[_OriginalTree], float]:
    """Grow a forest that tells original from drawn records, and return its accuracy for records its trees have not seen."""
    n, p = columns.bins.shape
    bins, is_original = np.concatenate([columns.bins, drawn]), np.repeat([1, 0], n)
    tried, forest = max(1, round(np.sqrt(p))), []
    votes, asked = np.zeros(2 * n), np.zeros(2 * n)
    for _ in range(TREES):
        bag, seed = rng.integers(2 * n, size=2 * n), int(rng.integers(2**62))
        tree = grow(bins[bag], columns.sizes, columns.ordered, is_original[bag], 2, leaf, tried, seed)
        forest.append(own := _OriginalTree.of(tree, bag, n))
        left = np.flatnonzero(np.bincount(bag, minlength=2 * n) == 0)
        nodes = find_leaves(tree, bins[left])
        votes[left] += own.size[nodes] / tree.size[nodes]
        asked[left] += 1
    seen = asked > 0
    guess = votes[seen] > 0.5 * asked[seen]
    return forest, float((guess == is_original[seen]).mean())


def _draw_rows(forest: list[_OriginalTree], bins: Array, leaf: int, rng: Generator) -> Array:
    """Return for each new record and column an original record: all are drawn from a leaf, that of a random record."""
    n, p = bins.shape
    forest = [own for own in forest if len(own.rows)]  # in a tiny file, the bag of a tree may have no original record
    rows, chosen = np.empty((n, p), dtype=np.int64), rng.integers(len(forest), size=n)
    for number, own in enumerate(forest):
        asked = np.flatnonzero(chosen == number)
        node = own.nodes(bins[rng.integers(n, size=len(asked))], leaf)
        index = own.start[node, np.newaxis] + (rng.random((len(asked), p)) * own.size[node, np.newaxis]).astype(
            np.int64
        )
        rows[asked] = own.rows[index]
    return rows
