"""`known_by` needs a reason, and is refused for columns that others may always know."""

from __future__ import annotations

from datetime import date

import polars as pl
import pytest

import sdcmap as sm
from sdcmap.errors import SchemaError

FRAME = pl.DataFrame(
    {
        "age": [3, 4],
        "born": [date(2000, 1, 1), date(2001, 2, 2)],
        "canton": ["a", "b"],
        "pay": [1.5, 2.5],
        "q": ["y", "n"],
    }
)


@pytest.mark.parametrize(
    ("name", "words", "sentence"),
    [
        ("q", "respondent only", "needs a reason"),
        ("q", "respondent", "must be one of register, acquaintance, respondent only"),
        ("age", "respondent only: so", "it is a key"),
        ("born", "respondent only: so", "it is a date"),
        ("canton", "respondent only: so", "it is a place"),
        ("pay", "respondent only: so", "it is an amount"),
        ("qq", "register", "no column 'qq'"),
    ],
)
def test_invalid_known_by_is_rejected(name: str, words: str, sentence: str) -> None:
    with pytest.raises(SchemaError, match=sentence):
        sm.read(FRAME, keys="age", other="all", known_by={name: words})


def test_respondent_only_columns_are_not_knowable() -> None:
    data = sm.read(FRAME, keys="age", other="all", known_by="q=respondent only: an opinion")
    assert data.knowable == ("age", "born", "canton", "pay") and data.content_columns == tuple(FRAME.columns)
    assert sm.WorstLinkage().variables(data) == data.knowable
    assert data.digest != sm.read(FRAME, keys="age", other="all").digest
