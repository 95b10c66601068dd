"""Codes for missing values are stated for one or all columns, stay distinct, and survive a round trip."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import polars as pl
import pytest

import sdcmap as sm
from sdcmap.files.alignment import align
from sdcmap.files.missing_codes import parse_codes

TEXT = "income,job,born,n\n100,clerk,2020-01-01,1\n-8,N,N,N\nN,,2020-01-02,3\n,-8,,4\n250,cook,2020-01-03,5\n"
STATED = {"income": {-8: "not applicable"}, "*": ["N"]}


def test_codes_are_missing_and_stay_codes(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(TEXT)
    data = sm.read(path, missing=STATED)
    assert data.frame().to_dict(as_series=False) == {
        "income": [100, None, None, None, 250],
        "job": ["clerk", None, None, "-8", "cook"],
        "born": [dt.date(2020, 1, 1), None, dt.date(2020, 1, 2), None, dt.date(2020, 1, 3)],
        "n": [1, None, 3, 4, 5],
    }
    assert data.schema["income"].reasons == (-8, "N")
    assert sm.write(data, tmp_path / "y.csv").read_text() == TEXT
    assert sm.write(sm.read(data, keys="job"), tmp_path / "z.csv").read_text() == TEXT


def test_texts_and_mappings_are_equivalent() -> None:
    texts = [str(code) for code in parse_codes(STATED)]
    assert texts == ["income=-8 (not applicable)", "N"]
    assert parse_codes(texts) == parse_codes(STATED)
    assert str(parse_codes({"*": ["a=b"]})[0]) == "*=a=b" and parse_codes("*=a=b") == parse_codes({"*": ["a=b"]})


def test_frames_and_parquet_accept_codes(tmp_path: Path) -> None:
    frame = pl.DataFrame({"x": [1, -9, 3], "e": pl.Series(["lo", "*", "hi"], dtype=pl.Enum(["lo", "hi", "*"]))})
    data = sm.read(frame, missing={"x": [-9], "e": ["*"]})
    assert data.missing("x").tolist() == data.missing("e").tolist() == [False, True, False]
    assert pl.read_parquet(sm.write(data, tmp_path / "x.parquet")).equals(frame)


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"incom": [-8]}, "no column 'incom'. Did you mean 'income'?"),
        ({"income": [True]}, "a code for missing values must be a number or a text."),
        ([-8], "missing must be texts, such as 'N' or 'income=-8', or a mapping of columns to codes."),
    ],
)
def test_wrong_codes(tmp_path: Path, stated: object, message: str) -> None:
    (tmp_path / "x.csv").write_text(TEXT)
    with pytest.raises(sm.errors.SdcmapError) as error:
        sm.read(tmp_path / "x.csv", missing=stated)  # type: ignore[arg-type]
    assert str(error.value) == message


def test_masked_file_uses_codes_of_original(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(TEXT)
    data = sm.read(path, missing=STATED, keys="job", numeric="income")
    same = align(data, path)
    assert not same.changes and same.missing("income").tolist() == data.missing("income").tolist()
