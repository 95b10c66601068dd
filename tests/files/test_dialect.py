"""Typical text files of agencies: marks, quoting and encoding are detected, and can be stated."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.files.dialect import Dialect, detect_dialect

GERMAN = (
    "Alter;Ort;Lohn;Tag\n31;M\u00fcnchen;1.234,50;01.02.2020\n44;K\u00f6ln \u20ac;-8;29.02.2020\n"
    "25;Ulm;12.000,00;31.12.1999\n"
)


def written(folder: Path, text: str, encoding: str = "utf-8", name: str = "x.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


def test_a_german_file_in_cp1252(tmp_path: Path) -> None:
    path = written(tmp_path, GERMAN, "cp1252")
    assert detect_dialect(path) == Dialect(";", ",", ".", '"', "cp1252")
    assert detect_dialect(path).words == "semicolons, decimal commas, thousands by dots, CP1252"
    data = sm.read(path, missing={"Lohn": [-8]})
    assert data.frame().to_dict(as_series=False) == {
        "Alter": [31, 44, 25],
        "Ort": ["M\u00fcnchen", "K\u00f6ln \u20ac", "Ulm"],
        "Lohn": [1234.5, None, 12000.0],
        "Tag": [dt.date(2020, 2, 1), dt.date(2020, 2, 29), dt.date(1999, 12, 31)],
    }
    assert data.schema["Tag"].kind == "ordinal"


@pytest.mark.parametrize(
    ("text", "encoding", "dialect"),
    [
        ("a,b\n1.5,x\n", "utf-8", Dialect(",", ".", "none", '"', "utf-8")),
        ("a\tb\n1.5\tx\n", "utf-8", Dialect("\t", ".", "none", '"', "utf-8")),
        ("a|b\n1,5|x\n", "utf-8", Dialect("|", ",", "none", '"', "utf-8")),
        ("a;b\n1 234,5;x\n7;y\n", "utf-8", Dialect(";", ",", " ", '"', "utf-8")),
        ("a;b\n1'234.5;x\n7;y\n", "utf-8", Dialect(";", ".", "'", '"', "utf-8")),
        ('a,b\n"1,234.5",x\n7,"y, z"\n', "utf-8", Dialect(",", ".", ",", '"', "utf-8")),
        ("a,b\n'1','x, y'\n'2','z'\n", "utf-8", Dialect(",", ".", "none", "'", "utf-8")),
        ("a,b\n1,\u00e9\n", "latin-1", Dialect(",", ".", "none", '"', "latin-1")),
        ("a,b\n1,\u20ac\n", "cp1252", Dialect(",", ".", "none", '"', "cp1252")),
        ("a,b\n1,\u20ac\n", "utf-8", Dialect(",", ".", "none", '"', "utf-8")),
        ("a;b\n1,5;\u20ac\n", "utf-16", Dialect(";", ",", "none", '"', "utf-16")),
        ("a\n1.5\n", "utf-8", Dialect(",", ".", "none", '"', "utf-8")),
    ],
)
def test_detected_dialect_reads_the_file(tmp_path: Path, text: str, encoding: str, dialect: Dialect) -> None:
    path = written(tmp_path, text, encoding)
    assert detect_dialect(path) == dialect
    frame = sm.read(path).frame()
    assert frame["a"].dtype.is_numeric() and frame.columns == ["a", "b"][: frame.width]


def test_late_decimals_are_detected(tmp_path: Path) -> None:
    rows = "".join(f"{i};name {i}\n" for i in range(60_000)) + "".join(f"{i},5;late\n" for i in range(60_000))
    assert detect_dialect(written(tmp_path, "a;b\n" + rows)).decimal == ","


def test_stated_dialect_is_used(tmp_path: Path) -> None:
    path = written(tmp_path, "a;b\n1,5;2\n")
    data = sm.read(path, sep=";", decimal=".")
    assert data.frame()["a"].to_list() == ["1,5"]
    assert sm.read(path, sep=";").frame()["a"].to_list() == [1.5]
    assert sm.read(written(tmp_path, "a\tb\n1\t2\n", name="t.tsv"), sep="tab").names == ("a", "b")
    with pytest.raises(sm.errors.PlanError, match=r"(?s)sep must be one of ',', ';'.*encoding must be one of 'utf-8'"):
        sm.read(path, sep="x", encoding="ebcdic")
    with pytest.raises(sm.errors.PlanError, match="decimal and thousands must be different marks"):
        sm.read(path, decimal=",", thousands=",")


def test_source_stores_dialect_and_codes(tmp_path: Path) -> None:
    written(tmp_path, GERMAN, "cp1252")
    source = sm.Source("x.csv", missing=("Lohn=-8 (entf\u00e4llt)", "k.A."), keys=("Ort",)).with_dialect(tmp_path)
    plan = sm.Plan(sm.Swap("Ort"), [sm.SmallCells()], data=source)
    again = sm.Plan.from_toml(plan.toml()).data
    assert again == source and again is not None
    assert (again.sep, again.decimal, again.thousands, again.encoding) == (";", ",", ".", "cp1252")
    assert again.read(tmp_path).digest == source.read(tmp_path).digest
    with pytest.raises(sm.errors.PlanError, match="sep must be one of"):
        sm.Plan.from_toml(plan.toml().replace('sep = ";"', 'sep = "x"'))


@pytest.mark.parametrize(
    ("texts", "dtype"),
    [
        (["2020-02-29", "1999-12-31"], pl.Date),
        (["29.2.2020", "31.12.1999"], pl.Date),
        (["12/31/1999", "01/02/2020"], pl.Date),
        (["2020-02-29T01:02:03", "1999-12-31T00:00:00.5"], pl.Datetime),
        (["2020-02-30", "1999-12-31"], pl.String),
        (["007", "12"], pl.String),
        (["+49170", "+49171"], pl.String),
        (["12345678901234567890", "1"], pl.Int128),
        (["1e5", ".5"], pl.Float64),
        ([" 12", "7 ", " "], pl.Int64),
        (["TRUE", "false"], pl.Boolean),
        (["12", "x"], pl.String),
    ],
)
def test_types_of_texts_are_inferred(tmp_path: Path, texts: list[str], dtype: pl.DataType) -> None:
    frame = sm.read(
        written(tmp_path, "x,y\n" + "".join(f"{text},a\n" for text in texts)), kinds={"x": "nominal"}
    ).frame()
    assert frame["x"].dtype == dtype


def test_empty_lines_are_ignored_and_empty_columns_are_read(tmp_path: Path) -> None:
    frame = sm.read(written(tmp_path, "a,b,c\n1,,2\n\n,,\n3,,\n\n")).frame()
    assert frame.to_dict(as_series=False) == {"a": [1, None, 3], "b": [None] * 3, "c": [2, None, None]}


def test_empty_lines_of_one_column_are_rejected(tmp_path: Path) -> None:
    """Other programs skip them, so that the file has another number of records there."""
    path = tmp_path / "x.csv"
    for text in ("a\n1\n\n3\n", "a\nx\n\ny\n", "a\r\n1\r\n3\r\n\r\n"):
        path.write_text(text, newline="")
        with pytest.raises(
            sm.errors.SchemaError, match=r"x\.csv has one column and empty lines, the first in row [23] "
        ):
            sm.read(path)
    path.write_text('a\n1\n""\n3\n')
    assert sm.read(path).frame()["a"].to_list() == [1, None, 3]


def test_one_column_is_written_without_empty_lines(tmp_path: Path) -> None:
    path = sm.write(sm.read(pl.DataFrame({"a": [1, None, 3]})), tmp_path / "x.csv")
    assert path.read_text() == 'a\n1\n""\n3\n'
    assert sm.read(path).frame()["a"].to_list() == [1, None, 3]
    assert len(pd.read_csv(path)) == 3
    for texts in (["x", None], [None, None]):
        with pytest.raises(sm.errors.SchemaError, match="CSV cannot store missing texts in a file of one column"):
            sm.write(sm.read(pl.DataFrame({"a": pl.Series(texts, dtype=None)})), path)
    assert sm.read(sm.write(sm.read(pl.DataFrame({"a": ["", "x"]})), path)).frame()["a"].to_list() == ["", "x"]


def test_doubled_quotes_in_header(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('"height (5\'11"")","say ""hi"", all",c\nN,2,3\n4,5,6\n')
    names = ["height (5'11\")", 'say "hi", all', "c"]
    data = sm.read(path)
    assert [*data.names] == names
    coded = sm.Source(str(path), missing=(f"{names[0]}=N",)).read_coded_column(data, names[0])
    assert coded[0].storage == "Int64"
    assert [*sm.read(sm.write(data, tmp_path / "y.csv")).names] == names
    path.write_text('"a""b","a""b"\n1,2\n')
    with pytest.raises(sm.errors.SchemaError, match="columns with the same name: columns 1, 2"):
        sm.read(path)


def test_five_thousand_columns(tmp_path: Path) -> None:
    names = [f"v{i}" for i in range(5000)]
    path = written(tmp_path, "\n".join([";".join(names), *[";".join(["1,5"] * 5000)] * 3]) + "\n")
    data = sm.read(path)
    assert len(data.names) == 5000 and data["v4999"].tolist() == [1.5] * 3
