"""Names of columns show what they are: no control characters, and no two names that look the same."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import sdcmap as sm
from sdcmap.data.schema import check_names


@pytest.mark.parametrize("name", ["a\0b", "a\x1bb", "a\x85b", "a\u202eb", "\u2066a", "a\u200f"])
def test_name_with_control_character_is_rejected(tmp_path: Path, name: str) -> None:
    (tmp_path / "x.csv").write_text(f"{name},c\n1,2\n3,4\n", encoding="utf-8", newline="")
    for source in (tmp_path / "x.csv", pl.DataFrame({name: [1], "c": [2]})):
        with pytest.raises(
            sm.errors.SchemaError, match=r"direction of text in their names: 1\. Rename them\."
        ) as error:
            sm.read(source)
        assert str(error.value).isprintable()


PAIRS = [("age", "\u0430ge"), ("Zone", "\u0396one"), ("age", "a\u200bge"), ("age", "age "), ("a b", "a\u00a0b"),
         ("\u00e9t\u00e9", "e\u0301te\u0301")]  # fmt: skip


@pytest.mark.parametrize("pair", PAIRS, ids=ascii)
def test_names_that_look_the_same_are_rejected(pair: tuple[str, str]) -> None:
    with pytest.raises(sm.errors.SchemaError, match=r"the names of columns 1, 3 look the same"):
        sm.read(pl.DataFrame({pair[0]: [1], "c": [2], pair[1]: [3]}))


def test_other_names_are_accepted() -> None:
    check_names(
        ["age", "Age", "\u0432\u043e\u0437\u0440\u0430\u0441\u0442", "m2", "m\u00b2", "line\nbreak", "", "\u03b1"]
    )
