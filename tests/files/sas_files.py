"""Write SAS files with the ReadStat library, because pyreadstat cannot write them."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyreadstat import _readstat_writer

SAS_TEXT, SAS_NUMBER = 0, 5  # READSTAT_TYPE_STRING, READSTAT_TYPE_DOUBLE


@contextmanager
def readstat(path: Path) -> Iterator[tuple[Any, ctypes.c_void_p]]:
    """Return the ReadStat library inside pyreadstat, and its writer for `path`.

    Unlike the Python interface it writes .sas7bdat and .sas7bcat files, and special missing values in .xpt.
    """
    lib, pointer = ctypes.CDLL(_readstat_writer.__file__), ctypes.c_void_p
    for function in (lib.readstat_writer_init, lib.readstat_add_variable, lib.readstat_add_label_set):
        function.restype = pointer
    with path.open("wb") as file:
        sink = ctypes.CFUNCTYPE(ctypes.c_ssize_t, pointer, ctypes.c_size_t, pointer)(
            lambda data, size, _: file.write(ctypes.string_at(data, size))
        )
        writer = pointer(lib.readstat_writer_init())
        assert lib.readstat_set_data_writer(writer, sink) == 0
        yield lib, writer
        assert lib.readstat_end_writing(writer) == 0
        lib.readstat_writer_free(writer)


def write_sas(path: Path, columns: Mapping[str, Sequence[float | str | None]], formats: Mapping[str, str]) -> Path:
    """Write a .sas7bdat or .xpt file; a letter in a numeric column is a special missing value."""
    with readstat(path) as (lib, writer):
        variables = []
        for name, cells in columns.items():
            kind = SAS_TEXT if all(isinstance(cell, str) for cell in cells) else SAS_NUMBER
            variable = ctypes.c_void_p(lib.readstat_add_variable(writer, name.encode(), kind, ctypes.c_size_t(8)))
            lib.readstat_variable_set_label(variable, f"the {name}".encode())
            lib.readstat_variable_set_format(variable, formats.get(name, "").encode())
            variables.append((variable, kind, cells))
        rows = len(next(iter(columns.values())))
        begin = lib.readstat_begin_writing_xport if path.suffix == ".xpt" else lib.readstat_begin_writing_sas7bdat
        assert begin(writer, None, ctypes.c_long(rows)) == 0
        for row in range(rows):
            assert lib.readstat_begin_row(writer) == 0
            for variable, kind, cells in variables:
                cell = cells[row]
                if kind == SAS_TEXT:
                    failed = lib.readstat_insert_string_value(writer, variable, str(cell).encode())
                elif cell is None:
                    failed = lib.readstat_insert_missing_value(writer, variable)
                elif isinstance(cell, str):
                    failed = lib.readstat_insert_tagged_missing_value(writer, variable, ctypes.c_char(cell.encode()))
                else:
                    failed = lib.readstat_insert_double_value(writer, variable, ctypes.c_double(cell))
                assert not failed
            assert lib.readstat_end_row(writer) == 0
    return path


def write_catalog(path: Path, name: str, labels: Mapping[float, str]) -> None:
    """Write a .sas7bcat file with one format."""
    with readstat(path) as (lib, writer):
        labeled = ctypes.c_void_p(lib.readstat_add_label_set(writer, SAS_NUMBER, name.encode()))
        for code, words in labels.items():
            lib.readstat_label_double_value(labeled, ctypes.c_double(code), words.encode())
        assert lib.readstat_begin_writing_sas7bcat(writer, None) == 0
