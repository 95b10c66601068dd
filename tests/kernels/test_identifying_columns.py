"""Counts of unique records on sets of columns equal plain counts, in dense and in hash tables."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
import pytest

from sdcmap.kernels.tables import identifying_columns
from sdcmap.kernels.tables.identifying_columns import count_unique, count_unique_on_pairs, most_identifying


def plain_counts(codes: list[np.ndarray], size: int) -> list[int]:
    """Return the number of unique records on each set of this size, largest first."""
    sets = combinations(range(len(codes)), size)
    unique = [int(pl.DataFrame([pl.Series(str(j), codes[j]) for j in chosen]).is_unique().sum()) for chosen in sets]
    return sorted(unique, reverse=True)


@pytest.mark.parametrize("dense", [1 << 20, 1])
@pytest.mark.parametrize("sizes", [(2, 3, 40, 5), (900, 700, 2, 30, 8), (3, 3, 3, 3, 3, 3), (4,), (1, 1, 50)])
def test_most_identifying_sets_equal_plain_counts(
    sizes: tuple[int, ...], dense: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identifying_columns, "MAX_DENSE_CELLS", dense)
    rng = np.random.default_rng(5)
    codes = [rng.integers(0, size, 400).astype(np.uint16) for size in sizes]
    best = most_identifying(codes, 3)
    for size in (1, 2, 3):
        mine = [unique for members, unique in best if len(members) == size]
        assert mine == plain_counts(codes, size)[: min(3, len(mine))]
        assert len(mine) == min(3, len(plain_counts(codes, size)))
    assert count_unique(codes) == plain_counts(codes, len(codes))[0]


def test_no_columns_and_constant_columns_have_no_unique_records() -> None:
    assert most_identifying([], 3) == [] and count_unique([]) == 0
    assert most_identifying([np.zeros(5, dtype=int)], 3) == [((0,), 0)]


def test_count_unique_on_pairs_equals_polars() -> None:
    draw = np.random.default_rng(5)
    codes = [draw.integers(0, size, 400) for size in (2, 30, 300, 7)]
    frame = pl.DataFrame({str(k): code for k, code in enumerate(codes)})
    expected = [[int(frame.select({str(a), str(b)}).is_unique().sum()) for b in range(4)] for a in range(4)]
    assert count_unique_on_pairs(codes).tolist() == expected
    known = np.array(expected)
    known[2, :] = known[:, 2] = -1
    assert count_unique_on_pairs(codes, known).tolist() == expected
    assert count_unique_on_pairs([]).shape == (0, 0)
