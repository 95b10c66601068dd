"""Who is alone on every set of columns: as counting each set plainly says, dense tables and hashed ones."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
import pytest

from sdcmap.kernels.tables import identifying_columns
from sdcmap.kernels.tables.identifying_columns import alone_on, alone_on_pairs, most_identifying


def plainly(codes: list[np.ndarray], size: int) -> list[int]:
    """Records alone on each set of this size, most first."""
    sets = combinations(range(len(codes)), size)
    alone = [int(pl.DataFrame([pl.Series(str(j), codes[j]) for j in chosen]).is_unique().sum()) for chosen in sets]
    return sorted(alone, reverse=True)


@pytest.mark.parametrize("dense", [1 << 20, 1])
@pytest.mark.parametrize("sizes", [(2, 3, 40, 5), (900, 700, 2, 30, 8), (3, 3, 3, 3, 3, 3), (4,), (1, 1, 50)])
def test_the_best_sets_are_those_of_plain_counting(
    sizes: tuple[int, ...], dense: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identifying_columns, "DENSE", dense)
    rng = np.random.default_rng(5)
    codes = [rng.integers(0, size, 400).astype(np.uint16) for size in sizes]
    told = most_identifying(codes, 3)
    for size in (1, 2, 3):
        mine = [alone for members, alone in told if len(members) == size]
        assert mine == plainly(codes, size)[: min(3, len(mine))]
        assert len(mine) == min(3, len(plainly(codes, size)))
    assert alone_on(codes) == plainly(codes, len(codes))[0]


def test_nobody_and_nothing() -> None:
    assert most_identifying([], 3) == [] and alone_on([]) == 0
    assert most_identifying([np.zeros(5, dtype=int)], 3) == [((0,), 0)]


def test_pairs_are_counted_as_a_frame_counts_them() -> None:
    draw = np.random.default_rng(5)
    codes = [draw.integers(0, size, 400) for size in (2, 30, 300, 7)]
    frame = pl.DataFrame({str(k): code for k, code in enumerate(codes)})
    wanted = [[int(frame.select({str(a), str(b)}).is_unique().sum()) for b in range(4)] for a in range(4)]
    assert alone_on_pairs(codes).tolist() == wanted
    known = np.array(wanted)
    known[2, :] = known[:, 2] = -1
    assert alone_on_pairs(codes, known).tolist() == wanted
    assert alone_on_pairs([]).shape == (0, 0)
