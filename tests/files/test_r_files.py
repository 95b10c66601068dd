"""R files: numbers, factors, texts, NA and dates are read; a release is written as CSV."""

from __future__ import annotations

import datetime as dt
import gzip
import struct
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.files.decoded_size import check_decoded
from sdcmap.files.r_files import read_r

rdata = pytest.importorskip("rdata", reason="files of R need package rdata: pip install 'sdcmap[r]'")

PEOPLE = pd.DataFrame(
    {
        "age": np.array([31, 44, 25], dtype="int32"),
        "wage": [1.5, np.nan, 2.0],
        "name": pd.array(["\u00e9", None, "b"], dtype="string[python]"),
        "sex": pd.Categorical(["m", "f", None], categories=["m", "f", "x"]),
        "ok": [True, False, True],
    }
)


def test_a_data_frame(tmp_path: Path) -> None:
    rdata.write_rds(tmp_path / "x.rds", PEOPLE)
    data = sm.read(tmp_path / "x.rds", keys=["age", "sex"])
    assert data.frame().to_dict(as_series=False) == {
        "age": [31, 44, 25], "wage": [1.5, None, 2.0], "name": ["\u00e9", None, "b"], "sex": ["m", "f", None],
        "ok": [True, False, True],
    }  # fmt: skip
    assert data.frame()["sex"].dtype == pl.Enum(["m", "f", "x"])
    assert data.schema.format == "csv"
    with pytest.raises(sm.errors.SchemaError, match=r"a \.rds file can be read but not written. Write a \.csv file"):
        sm.write(data, tmp_path / "y.rds")


def test_rdata_file_needs_exactly_one_data_frame(tmp_path: Path) -> None:
    rdata.write_rda(tmp_path / "x.RData", {"people": PEOPLE, "limit": np.array([1.0, 2.0])})
    assert sm.read(tmp_path / "x.RData").names == tuple(PEOPLE.columns)
    rdata.write_rda(tmp_path / "two.rda", {"a": PEOPLE, "b": PEOPLE})
    with pytest.raises(sm.errors.SchemaError, match=r"two\.rda contains 2 data frames, but needs exactly one"):
        sm.read(tmp_path / "two.rda")
    (tmp_path / "bad.rds").write_bytes(b"no R at all")
    with pytest.raises(
        sm.errors.SchemaError, match=r"bad\.rds cannot be read as rds .*An R file must contain one data frame\."
    ):
        sm.read(tmp_path / "bad.rds")


def vector(value: object, **attributes: list[str]) -> object:
    """Return an R vector with text attributes, as the parser does."""
    from rdata.parser import RObject, RObjectInfo, RObjectType

    def made(kind: RObjectType, value: object, tag: object = None) -> RObject:
        return RObject(RObjectInfo(kind, False, False, False, 0, 0), value, None, tag, None)

    def texts(words: list[str]) -> RObject:
        return made(RObjectType.STR, [made(RObjectType.CHAR, word.encode()) for word in words])

    pairs = None
    for name, words in attributes.items():
        symbol = made(RObjectType.SYM, made(RObjectType.CHAR, name.encode()))
        pairs = made(RObjectType.LIST, (texts(words), pairs), symbol)
    whole = made(RObjectType.VEC, value)
    whole.attributes = pairs
    return whole


def test_dates_and_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    days = vector(np.ma.array([0.0, 59.0, 1.0], mask=[0, 0, 1]), **{"class": ["Date"], "label": ["day of birth"]})
    times = vector(np.array([0.5, 1.0, np.nan]), **{"class": ["POSIXct", "POSIXt"]})
    frame = vector([days, times], names=["born", "seen"], **{"class": ["data.frame"]})
    monkeypatch.setattr("rdata.parser.parse_file", lambda path: type("Parsed", (), {"object": frame}))
    columns, facts = read_r(tmp_path / "x.rds")
    assert columns["born"].to_list() == [dt.date(1970, 1, 1), dt.date(1970, 3, 1), None]
    assert columns["seen"].to_list() == [
        dt.datetime(1970, 1, 1, 0, 0, 0, 500_000),
        dt.datetime(1970, 1, 1, 0, 0, 1),
        None,
    ]
    assert facts["born"].label == "day of birth"


def integers(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}i", *numbers)


def symbol(name: bytes) -> bytes:
    return integers(1, 0x40009, len(name)) + name


def long_sequence(count: float) -> bytes:
    """Return an R file that contains 1, 2, ..., `count` in the compact form of R (ALTREP)."""
    head = b"X\n" + integers(3, 0x40300, 0x30500, 5) + b"UTF-8"
    kind = integers(238, 2) + symbol(b"compact_intseq") + integers(2) + symbol(b"base") + integers(2, 13, 1, 13, 254)
    return head + kind + integers(14, 3) + struct.pack(">3d", count, 1.0, 1.0) + integers(254)


def test_file_that_expands_beyond_memory_is_rejected(tmp_path: Path) -> None:
    """A few bytes of an R file, or a few megabytes of gzip, used all memory of the process that read them."""
    (tmp_path / "x.rds").write_bytes(gzip.compress(long_sequence(1e13)))
    with pytest.raises(sm.errors.SchemaError, match=r"x\.rds needs more memory than is available when it is read\."):
        sm.read(tmp_path / "x.rds")
    with pytest.raises(sm.errors.SchemaError, match="needs more memory"):
        check_decoded(tmp_path / "x.rds", 1 << 20)


def test_files_are_parsed_in_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rdata.parser.parse_file", lambda path: 1 / 0)
    rdata.write_rds(tmp_path / "x.rds", PEOPLE)
    assert len(sm.read(tmp_path / "x.rds")) == 3


def test_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.rds").write_bytes(b"X")
    monkeypatch.setattr("sdcmap.files.formats.find_spec", lambda name: None)
    with pytest.raises(sm.errors.MissingExtra, match=r"pip install 'sdcmap\[r\]'"):
        sm.read(tmp_path / "x.rds")
