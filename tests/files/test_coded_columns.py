"""Codes for missing values give the same column whether they are stated later or when reading."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sdcmap as sm
from sdcmap.files.reader import Source

COLUMNS = {
    "whole": ["1", "2", "-8", "", "3"],
    "floats": ["1.5", "2.25", "-8", "", "3"],
    "whole_but_for_a_code": ["1", "2", "99.0", "", "3"],
    "words_among_numbers": ["1", "N", "2", "", "3"],
    "words_among_dates": ["2020-01-02", "N", "2020-01-03", "", "2021-01-01"],
    "words": ["a", "N", "b", "", "c"],
    "truth": ["true", "N", "false", "", "true"],
    "zeros_before": ["007", "-8", "010", "", "011"],
    "nothing_else": ["-8", "-8", "", "-8", "-8"],
    "blanks": [" 1", "-8", "2 ", "", "3"],
}
CODES = ("-8 (refused)", "N", "99.0")


@pytest.mark.parametrize("sep", [",", ";"])
def test_codes_stated_later_equal_codes_stated_when_reading(tmp_path: Path, sep: str) -> None:
    path = tmp_path / "coded.csv"
    rows = [sep.join(row) for row in zip(*COLUMNS.values(), strict=True)]
    path.write_text("\n".join([sep.join(COLUMNS), *rows, "", *rows, ""]))  # an empty line in the middle
    plain = Source(str(path)).read()
    for name in COLUMNS:
        source = Source(str(path), missing=tuple(f"{name}={code}" for code in CODES))
        whole = source.read()
        variable, column = source.read_coded_column(plain, name)
        assert variable == whole.schema[name], name
        np.testing.assert_array_equal(column.values, whole.column(name).values, name)
        np.testing.assert_array_equal(column.reasons, whole.column(name).reasons, name)
        levels, wanted = column.levels, whole.column(name).levels
        assert (levels is None) == (wanted is None), name
        assert levels is None or (levels.dtype == wanted.dtype and levels.equals(wanted, null_equal=True)), name  # type: ignore[union-attr]


def test_codes_stated_later_in_typed_files(tmp_path: Path) -> None:
    path = sm.write(sm.read({"x": [1.0, -8.0, 2.0], "y": ["a", "N", "b"]}), tmp_path / "typed.parquet")
    source = Source(str(path), missing=("x=-8", "y=N"))
    plain, whole = source.without_roles.read(), source.read()
    for name in ("x", "y"):
        variable, column = source.read_coded_column(plain, name)
        assert variable == whole.schema[name]
        np.testing.assert_array_equal(column.values, whole.column(name).values)
