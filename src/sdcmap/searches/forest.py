"""A forest of small trees: which predictors matter for a number, and what a point like this one had.

Each tree is grown on a bootstrap of the rows and on some of the columns. A group of columns matters as much as the error of
the rows a tree has not seen grows when the group is shuffled among them.  Breiman (2001), sections 2 and 10
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from sdcmap.core import Array, Generator
from sdcmap.kernels.statistics.trees import Tree, bin_edges, binned, drawn_from, grow, leaves_of

TREE_COUNT, MIN_LEAF_ROWS = 60, 3
COLUMN_SHARE = 0.6  # share of the columns that a tree may ask
SEED = 1  # of a picture: nothing secret depends on it


@dataclass(frozen=True)
class Predictors:
    """Columns as bins; NaN is a bin of its own. ordered : whether its bins have an order."""

    bins: Array
    sizes: Array
    ordered: Array
    edges: tuple[Array, ...]

    @staticmethod
    def of(columns: Array, ordered: Array) -> Predictors:
        edges = tuple(bin_edges(column) for column in columns.T)
        return Predictors(_to_bins(columns, edges), np.array([len(e) + 2 for e in edges]), ordered, edges)


def _to_bins(columns: Array, edges: tuple[Array, ...]) -> Array:
    return np.column_stack([binned(column, edge) for column, edge in zip(columns.T, edges, strict=True)])


def importance_table(x: Predictors, risk: Array, loss: Array, groups: Mapping[str, list[int]]) -> pl.DataFrame:
    """stage (a group of columns), risk, loss: the importance of each group for both, the most important first."""
    rng = np.random.default_rng(SEED)
    both = [importance(x, target, groups, rng).values() for target in (risk, loss)]
    table = pl.DataFrame({"stage": list(groups), "risk": list(both[0]), "loss": list(both[1])})
    return table.sort(pl.col("risk") + pl.col("loss"), descending=True)


def importance(x: Predictors, y: Array, groups: Mapping[str, list[int]], rng: Generator) -> dict[str, float]:
    """Return group of columns -> by how much of the variance of y the error out of bag grows when it is shuffled.

    0 at least.
    """
    grown = dict.fromkeys(groups, 0.0)
    spread = float(y.var()) or 1.0
    for _ in range(TREE_COUNT):
        tree, asked, bag = _grow_tree(x, y, rng)
        out = np.setdiff1d(np.arange(len(y)), bag)
        if not len(out):
            continue
        bins, before = x.bins[out], _error(tree, x.bins[out][:, asked], y[bag], y[out])
        for name, columns in groups.items():
            shuffled = bins.copy()
            shuffled[:, columns] = bins[rng.permutation(len(out))][:, columns]
            grown[name] += (_error(tree, shuffled[:, asked], y[bag], y[out]) - before) / (spread * TREE_COUNT)
    return {name: max(0.0, value) for name, value in grown.items()}


def draw_neighbors(x: Predictors, y: Array, others: Array, rng: Generator) -> Array:
    """Return for each of other rows, a row of x that shares a leaf with it, in a tree drawn anew."""
    tree, asked, bag = _grow_tree(x, y, rng)
    return drawn_from(tree, _to_bins(others, x.edges)[:, asked], bag, rng)


def _grow_tree(x: Predictors, y: Array, rng: Generator) -> tuple[Tree, Array, Array]:
    """Return a tree, the columns it may ask, and the rows it was grown on."""
    asked = np.sort(rng.choice(x.bins.shape[1], max(1, round(COLUMN_SHARE * x.bins.shape[1])), replace=False))
    bag = rng.integers(0, len(y), len(y))
    return grow(x.bins[bag][:, asked], x.sizes[asked], x.ordered[asked], y[bag], 0, MIN_LEAF_ROWS), asked, bag


def _error(tree: Tree, bins: Array, known: Array, truth: Array) -> float:
    leaf = leaves_of(tree, bins)
    rows = (tree.rows[start : start + n] for start, n in zip(tree.start[leaf], tree.size[leaf], strict=True))
    return float(((np.array([known[own].mean() for own in rows]) - truth) ** 2).mean())
