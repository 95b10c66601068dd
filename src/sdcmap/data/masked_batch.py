"""Masked files of one original that are scored together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array


class MaskedBatch:
    """Masked files of one original, and the arrays that measures share about all of them.

    Files whose masked columns are stacked in arrays become Microdata only when `file` asks for one.
    """

    def __init__(self, count: int, make_file: Callable[[int], Microdata], stack: Callable[[str], Array | None]) -> None:
        self._count, self._make_file, self._stack = count, make_file, stack
        self._views: dict[tuple[Callable[[Array], Array] | None, str], Array | None] = {}

    @staticmethod
    def of_numbers(original: Microdata, numbers: Mapping[str, Array]) -> MaskedBatch:
        """Return the batch whose file i has `numbers[name][i]` in place of the original's column."""
        count = len(next(iter(numbers.values())))

        def make_file(index: int) -> Microdata:
            return original.change(None, {name: values[index] for name, values in numbers.items()})

        def stack(name: str) -> Array | None:
            if name in numbers:
                return numbers[name]
            return _stack_numbers([original] * count, original, name)

        return MaskedBatch(count, make_file, stack)

    @staticmethod
    def of_files(original: Microdata, files: Sequence[Microdata]) -> MaskedBatch:
        """Return the batch of these files."""
        return MaskedBatch(len(files), files.__getitem__, lambda name: _stack_numbers(files, original, name))

    @staticmethod
    def join(batches: Sequence[MaskedBatch]) -> MaskedBatch:
        """Return the files of several batches of one original as one batch."""
        position = [(batch, index) for batch in batches for index in range(len(batch))]

        def make_file(index: int) -> Microdata:
            batch, own_index = position[index]
            return batch.file(own_index)

        def stack(name: str) -> Array | None:
            parts = [values for batch in batches if (values := batch._stack(name)) is not None]
            return np.concatenate(parts) if len(parts) == len(batches) else None

        return batches[0] if len(batches) == 1 else MaskedBatch(len(position), make_file, stack)

    def __len__(self) -> int:
        return self._count

    def file(self, index: int) -> Microdata:
        """Return one of the files."""
        return self._make_file(index)

    def numbers(self, name: str) -> Array | None:
        """Return a numeric variable of all files, one row per file in the order of the original's records.

        None where each file has to be measured on its own: a value is missing, the rows of a file are not those of the
        original in its order, or the variable is not numeric.
        """
        if (None, name) not in self._views:
            values = self._stack(name)
            usable = values is not None and values.size > 0 and not np.isnan(values).any()
            self._views[None, name] = values if usable else None
        return self._views[None, name]

    def view(self, function: Callable[[Array], Array], name: str) -> Array | None:
        """Return `function` of `numbers(name)`, computed once for all measures; None where there are no such numbers."""
        if (function, name) not in self._views:
            values = self.numbers(name)
            self._views[function, name] = None if values is None else function(values)
        return self._views[function, name]


def _stack_numbers(files: Sequence[Microdata], original: Microdata, name: str) -> Array | None:
    """Return a variable of all files as one array, or None where the files do not have the rows of the original."""
    for file in files:
        if file.origin is not None or not file.paired or name not in file.schema or len(file) != len(original):
            return None
        if file.column(name).levels is not None:
            return None
    return np.stack([file.numbers(name) for file in files])
