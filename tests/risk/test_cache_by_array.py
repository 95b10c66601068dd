"""The cache of results by array, and when it forgets them."""

from __future__ import annotations

import gc
import weakref

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.risk.linkage.pair_search import cache_by_array


def read_only(values: list[float]) -> Array:
    array = np.array(values)
    array.flags.writeable = False
    return array


class Doubling:
    """Doubles arrays and counts how often."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, array: Array) -> tuple[Array]:
        self.count += 1
        return (2 * array,)


def test_read_only_array_is_computed_once() -> None:
    doubling = Doubling()
    double = cache_by_array(doubling)
    first, second, writable = read_only([1, 2]), read_only([1, 2]), np.array([1.0, 2.0])
    assert double(first)[0].tolist() == double(first)[0].tolist() == double(second)[0].tolist() == [2, 4]
    assert double(first)[0] is double(first)[0] and doubling.count == 2
    assert double(writable)[0].tolist() == [2, 4]
    writable[0] = 5
    assert double(writable)[0].tolist() == [10, 4]


def test_result_is_freed_with_its_array() -> None:
    double = cache_by_array(Doubling())
    results = []
    for k in range(50):  # addresses in memory are used again
        (result,) = double(read_only([k, 1.0]))
        assert result.tolist() == [2 * k, 2]
        results.append(weakref.ref(result))
    del result
    gc.collect()
    assert [alive for alive in results if alive() is not None] == []


def test_least_recently_used_result_is_evicted() -> None:
    doubling = Doubling()
    double = cache_by_array(doubling, max_bytes=100)
    arrays = [read_only([k] * 5) for k in range(3)]  # 40 bytes each
    for array in (*arrays, arrays[2], arrays[1]):
        double(array)
    assert doubling.count == 3
    assert double(arrays[0])[0].tolist() == [0] * 5 and doubling.count == 4  # computed again
    large = read_only([1.0] * 50)
    assert double(large)[0].tolist() == double(large)[0].tolist() and doubling.count == 6  # too large to keep
