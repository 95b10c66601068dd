"""Agreement patterns: the compiled counts are those of the plain formula over all pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdcmap.core import Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.device import use_device
from sdcmap.kernels.gpu.patterns import plain_pattern_numbers
from sdcmap.risk.linkage.agreement_patterns import Patterns, count_pattern_numbers, count_patterns, rank_fields

Files = tuple[Array, Array, Array]


def rounded_files(fields: int, gaps: float, seed: int = 6, digits: int = 1) -> Files:
    """Return known and released records with ties and missing values, and the reach of each known value."""
    rng = np.random.default_rng(seed)
    known = np.round(rng.normal(size=(60, fields)), digits)
    released = np.round(known[:40] + 0.2 * rng.normal(size=(40, fields)), digits)
    for side in (known, released):
        side[rng.random(side.shape) < gaps] = np.nan
    return known, released, np.where(np.isnan(known), 1.0, 0.2 * np.maximum(np.abs(known), 0.1))


def count_plainly(known: Array, released: Array, reach: Array) -> dict[tuple[int, ...], int]:
    """Count the patterns of all pairs at once, in numpy."""
    distance = np.abs(known[:, np.newaxis, :] - released)
    agree = np.where(np.isnan(distance), -1, distance <= reach[:, np.newaxis, :]).reshape(-1, known.shape[1])
    pattern, count = np.unique(agree, axis=0, return_counts=True)
    return {tuple(row): pairs for row, pairs in zip(pattern.tolist(), count.tolist(), strict=True)}


def as_counts(patterns: Patterns) -> dict[tuple[int, ...], int]:
    return {tuple(row): pairs for row, pairs in zip(patterns.field.tolist(), patterns.pairs.tolist(), strict=True)}


# In base 2 and 3, counted in an array (up to 2^16 patterns) and in a hash table.
@pytest.mark.parametrize(("fields", "gaps"), [(1, 0.0), (6, 0.0), (6, 0.2), (17, 0.0), (12, 0.2), (39, 0.1)])
def test_every_pair_is_counted_in_its_pattern(fields: int, gaps: float) -> None:
    files = rounded_files(fields, gaps)
    assert as_counts(count_patterns(*files)) == count_plainly(*files)


def test_patterns_come_in_the_order_of_their_numbers() -> None:
    """EM adds patterns up in this order, so that its result does not depend on the way they are counted."""
    for gaps in (0.0, 0.2):
        field = count_patterns(*rounded_files(4, gaps)).field.astype(np.int64)
        assert (np.diff((field + 1) @ 3 ** np.arange(4)) > 0).all()


@given(st.integers(0, 1000), st.sampled_from([0.0, 0.1]), st.integers(0, 8))
def test_agreement_is_decided_as_floats_compare(seed: int, gaps: float, digits: int) -> None:
    """A difference that equals the reach up to rounding agrees exactly if |a - b| <= reach does in floating point."""
    known, released, reach = rounded_files(2, gaps, seed, digits)
    reach = np.where(np.isnan(known), 1.0, np.abs(known - np.nan_to_num(np.resize(released, known.shape))))
    assert as_counts(count_patterns(known, released, reach)) == count_plainly(known, released, reach)


def test_values_far_beyond_all_ranks_agree_with_none() -> None:
    known, released, reach = np.array([[1e6], [0.0]]), np.array([[0.0], [1.0], [2.0]]), np.full((2, 1), 0.5)
    assert as_counts(count_patterns(known, released, reach)) == {(0,): 5, (1,): 1}


def test_number_of_threads_does_not_change_the_counts() -> None:
    for gaps, fields in ((0.0, 5), (0.2, 12)):
        files = rank_fields(*rounded_files(fields, gaps))
        one, three = count_pattern_numbers(files, 1), count_pattern_numbers(files, 3)
        assert all(np.array_equal(a, b) for a, b in zip(one, three, strict=True))


@pytest.mark.parametrize(("fields", "gaps"), [(1, 0.0), (6, 0.0), (6, 0.2), (10, 0.1)])
def test_gpu_arithmetic_gives_the_same_counts(fields: int, gaps: float) -> None:
    """By the arithmetic of the GPU kernel in numpy; on a machine with a GPU also by the kernel itself."""
    files = rank_fields(*rounded_files(fields, gaps))
    with use_device("cpu"):
        expected = count_pattern_numbers(files)
    assert all(np.array_equal(a, b) for a, b in zip(plain_pattern_numbers(files), expected, strict=True))


def test_too_many_fields_are_refused() -> None:
    with pytest.raises(Undefined, match="at most 39 variables; there are 40"):
        count_patterns(*rounded_files(40, 0.0))
