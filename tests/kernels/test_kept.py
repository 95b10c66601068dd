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
    total = KeptByArray(lambda array: asked.append(array) or float(array.sum()))  # type: ignore[func-returns-value]
    first, second, open_to_all = closed([1, 2]), closed([1, 2]), np.array([1.0, 2.0])
    assert [total(first), total(first), total(second)] == [3.0, 3.0, 3.0]
    assert len(asked) == 2 and len(total) == 2
    assert total(open_to_all) == 3.0
    open_to_all[0] = 5
    assert total(open_to_all) == 7.0 and len(total) == 2


def test_it_goes_with_its_array() -> None:
    total = KeptByArray(lambda array: float(array.sum()))
    for k in range(50):  # places in memory are taken again
        assert total(closed([k, 1.0])) == k + 1
    gc.collect()
    assert len(total) == 0
