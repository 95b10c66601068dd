"""An order of records that depends on their values, but not on how categories are coded or labeled.

Numbers are sorted as they are. Categories are sorted by a fingerprint of their records: how many they are, and with which
numbers and other categories they occur. Two categories with the same fingerprint keep the order of their codes.
Weisfeiler and Leman (1968) refine colors of the nodes of a graph in the same way; here the graph joins records and
categories.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sdcmap.kernels.arrays import Array

ROUNDS = 3  # of refinement; after two, a category is known by the categories that its records share with others


def rank_categories(columns: Sequence[Array], categorical: Sequence[bool]) -> list[Array]:
    """Return the columns with each category replaced by its rank among the fingerprints of its column; NaN stays NaN.

    columns : numbers, and codes of categories as numbers; NaN: missing.
    """
    if not any(categorical):
        return list(columns)
    codes, prints = [], []
    for index, (column, is_category) in enumerate(zip(columns, categorical, strict=True)):
        values, code = np.unique(column, return_inverse=True)
        # a number is fingerprinted by its rank; a category at first only by whether it is missing
        start = np.isnan(values) if is_category else np.arange(len(values))
        codes.append(code)
        prints.append(_scatter(start.astype(np.uint64), index))
    for _ in range(ROUNDS):
        record = np.zeros(len(columns[0]), dtype=np.uint64)
        for code, own in zip(codes, prints, strict=True):
            record += own[code]
        record = _scatter(record, len(columns))
        for index, is_category in enumerate(categorical):
            if is_category:
                total = np.zeros(len(prints[index]), dtype=np.uint64)
                np.add.at(total, codes[index], record)
                prints[index] = _scatter(total ^ prints[index], index)
    # a stable sort keeps the order of codes where two fingerprints are equal
    ranks = [np.argsort(np.argsort(own, kind="stable"), kind="stable") for own in prints]
    return [
        np.where(np.isnan(column), np.nan, rank[code]) if is_category else column
        for column, code, rank, is_category in zip(columns, codes, ranks, categorical, strict=True)
    ]


def _scatter(values: Array, salt: int) -> Array:
    """Return 64 well mixed bits of each value, the same on every machine: the finalizer of splitmix64 (Steele 2014)."""
    with np.errstate(over="ignore"):
        x = values + np.uint64((salt + 1) * 0x9E3779B97F4A7C15 % 2**64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(x ^ (x >> np.uint64(31)))
