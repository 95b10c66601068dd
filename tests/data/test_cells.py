"""Counting by difference gives the same tables as counting all records."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sdcmap as sm
from sdcmap.core.streams import Stream
from sdcmap.data.cells import _moves_between, cells, moves
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.tables.coding import cell_numbers, compress
from sdcmap.utility.table_losses import hellinger

NAMES = ("a", "b", "c", "d")


def file_of(rows: list[tuple[int, ...]]) -> Microdata:
    table = np.array(rows).T
    texts = [[None if value == 3 else str(value) for value in column] for column in table]
    return sm.read(pl.DataFrame(dict(zip(NAMES, texts, strict=True))), keys="all")


@given(
    rows=st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=4, max_size=60),
    on=st.sets(st.sampled_from(NAMES), min_size=1, max_size=3),
    seed=st.integers(0, 1000),
)
def test_moves_equal_plain_counts(rows: list[tuple[int, ...]], on: set[str], seed: int) -> None:
    data = file_of(rows)
    method = sm.Swap(on=tuple(sorted(on)), rate=0.3)
    try:
        masked = sm.Chain([method, sm.Swap(on=method.on[0], rate=0.2)]).apply(data, Stream.of_seed(seed))
    except sm.errors.Infeasible:
        return
    fast, plain = moves(data, masked, NAMES), _moves_between(data, masked, NAMES)
    assert sorted(fast.rows.tolist()) == sorted(plain.rows.tolist())
    assert sorted(fast.after[fast.after > 0].tolist()) == sorted(plain.after[plain.after > 0].tolist())
    frame, original = masked.frame(), data.frame()
    counts = frame.group_by(NAMES).len()
    changed = ~pl.Series([a == b for a, b in zip(frame.rows(), original.rows(), strict=True)])
    small = frame.join(counts, on=NAMES, nulls_equal=True, how="left", maintain_order="left")["len"] < 3
    if (~changed).any():
        risk = sm.SmallCells().score(data, masked, np.random.default_rng(0)).value
        assert risk == pytest.approx((small & ~changed).sum() / (~changed).sum(), abs=1e-15)
    both = original.group_by(NAMES).len().join(counts, on=NAMES, how="full", nulls_equal=True)
    f, g = both["len"].fill_null(0).to_numpy(), both["len_right"].fill_null(0).to_numpy()
    distance = sm.Hellinger().score(data, masked, np.random.default_rng(0)).value
    assert distance == pytest.approx(hellinger(f, g), abs=1e-14)


def test_huge_table_stores_only_observed_cells() -> None:
    rng = np.random.default_rng(3)
    frame = pl.DataFrame({f"v{i}": rng.integers(0, 9, 500).astype(str) for i in range(30)})
    data = sm.read(frame, keys="all")
    assert data.view(cells, data.keys).strides is None
    masked = sm.Swap(on="v0", rate=0.1).apply(data, Stream.of_seed(1))
    moved = moves(data, masked, data.keys)
    assert moved.after.sum() == 500
    assert len(moved.rows) == 100


def test_dense_and_compressed_codes_give_the_same_cells() -> None:
    rng = np.random.default_rng(1)
    codes = [rng.integers(0, size, 400) for size in (3, 5, 2)]
    dense, _ = cell_numbers(codes, (3, 5, 2))
    observed, counts = compress(codes)
    assert np.array_equal(np.unique(dense, return_inverse=True)[1], observed)
    assert np.array_equal(np.bincount(observed), counts)


def test_moves_handle_new_categories_and_other_rows() -> None:
    data = file_of([(0, 0, 0, 0), (0, 1, 0, 0), (1, 1, 1, 1), (0, 0, 0, 0)])
    merged = data.change(None, {"a": np.zeros(4, dtype=np.uint8)}, {"a": pl.Series("a", ["any"])})
    moved = moves(data, merged, ("a", "b"))
    assert len(moved.rows) == 4
    part = data.take(np.array([2, 1]))
    fewer = moves(data, part, ("a", "b"))
    assert len(fewer.rows) == 0
    assert fewer.before.sum() == 4
    assert fewer.after.sum() == 2
