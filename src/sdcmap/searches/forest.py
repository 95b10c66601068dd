"""A random forest of small trees: which predictors matter for a number, and which stored points are similar to a new one.

Each tree is grown on a bootstrap sample of the rows and on some of the columns. The importance of a group of columns is
the increase of the out-of-bag error when the group is shuffled.  Breiman (2001), sections 2 and 10
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from sdcmap.core import Array, Generator
from sdcmap.kernels.statistics.trees import Tree, assign_bins, bin_edges, draw_from_leaves, find_leaves, grow

TREE_COUNT = 60  # charts show the ranking of importances, not their exact values
MIN_LEAF_ROWS = 3  # a search has few rows
COLUMN_SHARE = 0.6  # share of the columns that a tree may use, so that trees differ
SEED = 1  # for charts only: nothing secret depends on it


@dataclass(frozen=True)
class Predictors:
    """Columns as bins; NaN has its own bin. ordered : whether the bins of a column have an order."""

    bins: Array
    sizes: Array
    ordered: Array
    edges: tuple[Array, ...]

    @staticmethod
    def of(columns: Array, ordered: Array) -> Predictors:
        edges = tuple(bin_edges(column) for column in columns.T)
        return Predictors(_to_bins(columns, edges), np.array([len(e) + 2 for e in edges]), ordered, edges)


def _to_bins(columns: Array, edges: tuple[Array, ...]) -> Array:
    return np.column_stack([assign_bins(column, edge) for column, edge in zip(columns.T, edges, strict=True)])


def importance_table(x: Predictors, risk: Array, loss: Array, groups: Mapping[str, list[int]]) -> pl.DataFrame:
    """Return the importance of each group of columns: stage (the group), risk, loss; the most important first."""
    rng = np.random.default_rng(SEED)
    both = [importance(x, target, groups, rng).values() for target in (risk, loss)]
    table = pl.DataFrame({"stage": list(groups), "risk": list(both[0]), "loss": list(both[1])})
    return table.sort(pl.col("risk") + pl.col("loss"), descending=True)


def importance(x: Predictors, y: Array, groups: Mapping[str, list[int]], rng: Generator) -> dict[str, float]:
    """Return group -> increase of the out-of-bag error when it is shuffled, as a share of the variance of y, at least 0."""
    grown = dict.fromkeys(groups, 0.0)
    spread = float(y.var()) or 1.0
    for _ in range(TREE_COUNT):
        tree, asked, bag = _grow_tree(x, y, rng)
        out = np.setdiff1d(np.arange(len(y)), bag)
        if not len(out):
            continue
        # rows that the tree has not seen give an unbiased error; shuffling a group breaks its relation to y
        bins, before = x.bins[out], _error(tree, x.bins[out][:, asked], y[bag], y[out])
        for name, columns in groups.items():
            shuffled = bins.copy()
            shuffled[:, columns] = bins[rng.permutation(len(out))][:, columns]
            grown[name] += (_error(tree, shuffled[:, asked], y[bag], y[out]) - before) / (spread * TREE_COUNT)
    return {name: max(0.0, value) for name, value in grown.items()}


def draw_neighbors(x: Predictors, y: Array, others: Array, rng: Generator) -> Array:
    """Return for each of the rows `others` a random row of x in the same leaf of a new tree."""
    tree, asked, bag = _grow_tree(x, y, rng)
    return draw_from_leaves(tree, _to_bins(others, x.edges)[:, asked], bag, rng)


def _grow_tree(x: Predictors, y: Array, rng: Generator) -> tuple[Tree, Array, Array]:
    """Return a tree, the columns that it may use, and the rows that it was grown on."""
    asked = np.sort(rng.choice(x.bins.shape[1], max(1, round(COLUMN_SHARE * x.bins.shape[1])), replace=False))
    bag = rng.integers(0, len(y), len(y))
    return grow(x.bins[bag][:, asked], x.sizes[asked], x.ordered[asked], y[bag], 0, MIN_LEAF_ROWS), asked, bag


def _error(tree: Tree, bins: Array, known: Array, truth: Array) -> float:
    """Return the mean squared error of a tree's predictions."""
    leaf = find_leaves(tree, bins)
    rows = (tree.rows[start : start + n] for start, n in zip(tree.start[leaf], tree.size[leaf], strict=True))
    return float(((np.array([known[own].mean() for own in rows]) - truth) ** 2).mean())
