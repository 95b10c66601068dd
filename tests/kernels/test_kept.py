"""What is kept of an array, and for how long."""

from __future__ import annotations

import gc

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.kept import KeptByArray


def closed(values: list[float]) -> Array:
    array = np.array(values)
    array.flags.writeable = False
    return array


def test_of_an_array_that_is_closed_to_writing_it_is_computed_once() -> None:
    asked: list[Array] = []

    def doubled(array: Array) -> tuple[Array]:
        asked.append(array)
        return (2 * array,)

    double = KeptByArray(doubled)
    first, second, open_to_all = closed([1, 2]), closed([1, 2]), np.array([1.0, 2.0])
    assert double(first)[0].tolist() == double(first)[0].tolist() == double(second)[0].tolist() == [2, 4]
    assert len(asked) == 2 and len(double) == 2
    assert double(open_to_all)[0].tolist() == [2, 4]
    open_to_all[0] = 5
    assert double(open_to_all)[0].tolist() == [10, 4] and len(double) == 2


def test_it_goes_with_its_array() -> None:
    double = KeptByArray(lambda array: (2 * array,))
    for k in range(50):  # places in memory are taken again
        assert double(closed([k, 1.0]))[0].tolist() == [2 * k, 2]
    gc.collect()
    assert len(double) == 0


def test_beyond_its_bytes_the_oldest_goes() -> None:
    double = KeptByArray(lambda array: (2 * array,), most=100)
    arrays = [closed([k] * 5) for k in range(4)]  # 40 bytes each
    for array in arrays:
        double(array)
    assert len(double) == 2 and double.nbytes == 80
    assert double(arrays[0])[0].tolist() == [0] * 5  # computed again
