"""What is cached of an array, and for how long."""

from __future__ import annotations

import gc
import weakref

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.risk.linkage.pair_search import cached_by_array


def closed(values: list[float]) -> Array:
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


def test_an_array_that_is_closed_to_writing_is_computed_once() -> None:
    doubling = Doubling()
    double = cached_by_array(doubling)
    first, second, writable = closed([1, 2]), closed([1, 2]), np.array([1.0, 2.0])
    assert double(first)[0].tolist() == double(first)[0].tolist() == double(second)[0].tolist() == [2, 4]
    assert double(first)[0] is double(first)[0] and doubling.count == 2
    assert double(writable)[0].tolist() == [2, 4]
    writable[0] = 5
    assert double(writable)[0].tolist() == [10, 4]


def test_a_result_goes_with_its_array() -> None:
    double = cached_by_array(Doubling())
    results = []
    for k in range(50):  # addresses in memory are used again
        (result,) = double(closed([k, 1.0]))
        assert result.tolist() == [2 * k, 2]
        results.append(weakref.ref(result))
    del result
    gc.collect()
    assert [alive for alive in results if alive() is not None] == []


def test_beyond_its_bytes_the_least_used_result_goes() -> None:
    doubling = Doubling()
    double = cached_by_array(doubling, max_bytes=100)
    arrays = [closed([k] * 5) for k in range(3)]  # 40 bytes each
    for array in (*arrays, arrays[2], arrays[1]):
        double(array)
    assert doubling.count == 3
    assert double(arrays[0])[0].tolist() == [0] * 5 and doubling.count == 4  # computed again
    large = closed([1.0] * 50)
    assert double(large)[0].tolist() == double(large)[0].tolist() and doubling.count == 6  # too large to keep
