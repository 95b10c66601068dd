"""Reading and writing: every type survives a round trip, kinds and roles are correct, and errors are clear."""

from __future__ import annotations

import dataclasses
import datetime as dt
import pickle
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

import sdcmap as sm
from sdcmap.files.reader import Source

SECRET = "7391846"  # in every bad file; no message may contain it
EVERY_TYPE: dict[str, pl.Series] = {
    "text": pl.Series(["b", None, "a", "b"]),
    "empty text": pl.Series(["", None, "a", ""]),
    "boolean": pl.Series([True, None, False, True]),
    "float": pl.Series([1.5, None, -0.25, 1e300]),
    "float32": pl.Series([1.5, None, 0.1, 3.0], dtype=pl.Float32),
    "decimal": pl.Series([1.15, None, 0.10, 3.0]).cast(pl.Decimal(12, 2)),
    "whole decimal": pl.Series([1.0, None, 2.0, 3.0]).cast(pl.Decimal(9, 3)),
    "date": pl.Series([dt.date(2020, 2, 29), None, dt.date(1899, 1, 1), dt.date(2020, 2, 29)]),
    "datetime": pl.Series([dt.datetime(2020, 2, 29, 1, 2, 3, 456), None, dt.datetime(1899, 1, 1), None]),
    "datetime ms": pl.Series([dt.datetime(2020, 2, 29, 1), None, None, None], dtype=pl.Datetime("ms", "UTC")),
    "time": pl.Series([dt.time(1, 2, 3), None, dt.time(23), dt.time(1)]),
    "duration": pl.Series([dt.timedelta(days=2), None, dt.timedelta(seconds=1), None]),
    "categorical": pl.Series(["z", None, "a", "z"], dtype=pl.Categorical),
    "enum": pl.Series(["mid", None, "low", "mid"], dtype=pl.Enum(["low", "mid", "never met", "high"])),
    "nothing": pl.Series([None] * 4, dtype=pl.Null),
    "no text": pl.Series([None] * 4, dtype=pl.String),
    "no number": pl.Series([None] * 4, dtype=pl.Int16),
    "no enum": pl.Series([None] * 4, dtype=pl.Enum(["a"])),
    "no date": pl.Series([None] * 4, dtype=pl.Date),
} | {
    dtype.__name__: pl.Series([1, None, 2, 100], dtype=dtype)
    for dtype in (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Int128, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)
}
NUMBERS = [name for name, values in EVERY_TYPE.items() if values.dtype.is_numeric()]


# ---- every type -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", EVERY_TYPE)
@pytest.mark.parametrize("missing", [True, False])
def test_frame_round_trip_is_exact(name: str, missing: bool) -> None:
    values = EVERY_TYPE[name].alias("x")
    frame = values.to_frame() if missing else values.drop_nulls().to_frame()
    if frame.height:
        for kind in (None, "nominal", "ordinal", *(["numeric"] if name in NUMBERS else [])):
            data = sm.read(frame, kinds={"x": kind} if kind else {})
            assert_frame_equal(data.frame(), frame)
            assert data.missing("x").tolist() == frame["x"].is_null().to_list()
            assert kind in (None, data.schema["x"].kind)


@pytest.mark.parametrize("name", EVERY_TYPE)
def test_codes_count_the_sorted_levels_with_missing_last(name: str) -> None:
    values = EVERY_TYPE[name].alias("x")
    data = sm.read(values.to_frame(), kinds={"x": "nominal"})
    levels = data.column("x").levels
    assert levels is not None
    assert levels.null_count() == 1
    assert levels[-1] is None
    if values.dtype != pl.Enum:
        assert levels[:-1].to_list() == values.cast(levels.dtype).drop_nulls().unique().sort().to_list()
    assert levels.gather(data.codes("x")).to_list() == values.to_list()


def test_an_enum_keeps_the_order_and_the_empty_categories_of_its_type() -> None:
    data = sm.read(EVERY_TYPE["enum"].alias("x").to_frame())
    assert data.codes("x").tolist() == [1, 4, 0, 1]
    assert data.level_count("x") == 5


def test_nan_means_missing_everywhere() -> None:
    frame = pl.DataFrame({"x": [1.0, float("nan"), None, 0.0, -0.0]})
    assert sm.read(frame).frame()["x"].to_list() == [1, None, None, 0, 0]
    data = sm.read(frame, kinds={"x": "nominal"})
    assert data.codes("x").tolist() == [1, 2, 2, 0, 0]


def test_numbers_that_no_longer_fit_their_type_become_floats() -> None:
    data = sm.read(pl.DataFrame({"x": pl.Series([1, 2, 3], dtype=pl.Int8)}))
    for new in ([1.5, 2, 3], [1.0, 2, 300]):
        assert data.change(None, {"x": np.array(new)}).frame()["x"].to_list() == new


def test_a_million_texts_are_a_byte_each() -> None:
    codes = np.random.default_rng(1).integers(0, 20, 1_000_000)
    data = sm.read(pl.DataFrame({"x": pl.Series([f"category {code:02}" for code in range(20)]).gather(codes)}))
    assert data.codes("x").dtype == np.uint8
    np.testing.assert_array_equal(data.codes("x"), codes)


def test_cps8d_takes_less_than_two_megabytes(cps8d: sm.Microdata) -> None:
    assert (len(cps8d), len(cps8d.names)) == (48_842, 8)
    assert sum(cps8d.column(name).values.nbytes for name in cps8d.names) == 48_842 * 8
    assert len(pickle.dumps(cps8d)) < 500_000


# ---- files and frames -----------------------------------------------------------------------------------------------
PLAIN = pl.DataFrame(
    {
        "age": [31, 44, None, 25],
        "income": [0.1, 1e-17, 123456.789, None],
        "name": ["Ann, B.", 'the "x"', None, "é\nü"],
        "ok": [True, False, None, True],
    }
)


@pytest.mark.parametrize("ending", ["csv", "parquet", "pq", "CSV"])
def test_file_round_trip_is_exact(tmp_path: Path, ending: str) -> None:
    path = sm.write(sm.read(PLAIN), tmp_path / f"x.{ending}")
    data = sm.read(path)
    assert_frame_equal(data.frame(), PLAIN)
    assert data.schema.format == {"csv": "csv", "CSV": "csv"}.get(ending, "parquet")


def test_parquet_keeps_every_type(tmp_path: Path) -> None:
    frame = pl.DataFrame([values.alias(name) for name, values in EVERY_TYPE.items()])
    assert_frame_equal(sm.read(sm.write(sm.read(frame), tmp_path / "x.parquet")).frame(), frame)


def test_csv_codes_with_leading_zeros_stay_text(tmp_path: Path) -> None:
    path, text = tmp_path / "x.csv", "nace,n,zero,share\n007,1,0,0.5\n10,-2,3,00.5\n"
    path.write_text(text)
    data = sm.read(path)
    assert data.frame().schema == {"nace": pl.String, "n": pl.Int64, "zero": pl.Int64, "share": pl.String}
    assert sm.write(data, tmp_path / "y.csv").read_text() == text


def test_csv_with_stated_missing_texts_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes("\ufeffage,job\n31,?\n?,NA\n44,clerk\n".encode())
    data = sm.read(path, missing=["?", "NA"])
    assert data.frame().to_dict(as_series=False) == {"age": [31, None, 44], "job": [None, None, "clerk"]}
    assert sm.read(path, missing="?").frame()["job"].to_list() == [None, "NA", "clerk"]


def test_frames_of_other_libraries() -> None:
    pandas = pd.DataFrame(
        {
            "n": [1, 2, 3],
            "x": [1.5, np.nan, 2.0],
            "s": ["b", None, "a"],
            "c": pd.Categorical(["u", None, "v"]),
            "d": pd.to_datetime(["2020-01-01", None, "2021-01-01"]),
            "i": pd.array([1, None, 3], dtype="Int64"),
        }
    )
    data = sm.read(pandas, keys=["s", "c"])
    assert [v.kind for v in data.schema.variables] == ["numeric", "numeric", "nominal", "nominal", "ordinal", "numeric"]
    assert data.frame()["i"].to_list() == [1, None, 3]
    assert data.frame()["x"].to_list() == [1.5, None, 2.0]
    assert data.schema.format == "parquet"
    assert_frame_equal(sm.read(pa.table(PLAIN.to_arrow())).frame(), PLAIN)
    assert_frame_equal(sm.read(PLAIN).frame(), PLAIN)


def test_a_pandas_frame_without_pyarrow_says_what_to_install() -> None:
    script = """
import sys

class NoArrow:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pyarrow":
            raise ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow")

sys.meta_path.insert(0, NoArrow())
import pandas as pd
import sdcmap as sm

try:
    sm.read(pd.DataFrame({"x": ["a", "b"]}))
except sm.errors.MissingExtra as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "reading a pandas frame needs pyarrow: pip install pyarrow", done.stderr


def test_microdata_can_be_read_again_with_other_roles() -> None:
    data = sm.read(PLAIN, keys=["age"], kinds={"age": "nominal"})
    again = sm.read(data, keys=["name"], sensitive=["income"])
    assert (again.keys, again.sensitive, again.schema.of_role(None)) == (("name",), ("income",), ("age", "ok"))
    assert_frame_equal(again.frame(), PLAIN)


def test_data_read_before_take_stated_roles_and_kinds_as_if_read_with_them() -> None:
    frame = pl.DataFrame(
        {
            "id": [4, 2, 3, 1], "age": [31, 44, None, 31], "sex": ["f", "m", None, "f"], "wage": [1.5, 2.5, -8.0, None],
            "code": [1, 2, 2, 99], "day": [dt.date(2020, 1, 1), None, dt.date(2020, 1, 2), dt.date(2020, 1, 1)],
            "w": [1.0, 2.0, 3.0, 4.0],
        }
    )  # fmt: skip
    before = sm.read(frame, missing={"wage": {-8: "not applicable"}, "code": [99]})
    source = Source(
        "", keys=("age", "sex", "code", "day"), identifiers=("id",), weight=("w",), numeric=("wage",), ordinal=("code",)
    )
    stated = {name: getattr(source, name) for name in ("keys", "identifiers", "weight", "numeric")}
    applied, again = source.apply_to(before), sm.read(before, **stated, kinds=source.kinds)
    assert applied.schema == again.schema
    for name in applied.names:
        one, other = applied.column(name), again.column(name)
        assert np.array_equal(one.values, other.values, equal_nan=one.levels is None)
        assert (one.levels is None) == (other.levels is None)
        assert one.levels is None or one.levels.equals(other.levels, null_equal=True)
    with pytest.raises(sm.errors.SchemaError, match="must be above zero"):
        dataclasses.replace(source, weight=("wage",), numeric=()).apply_to(before)


def test_source_read_equals_read(tmp_path: Path) -> None:
    PLAIN.write_csv(tmp_path / "x.csv")
    source = Source("x.csv", keys=("age", "ok"), numeric=("income",), nominal=("age",), missing=("Ann, B.",))
    data = source.read(tmp_path)
    assert data.keys == ("age", "ok")
    assert [data.schema[name].kind for name in ("age", "income")] == ["nominal", "numeric"]
    assert data.frame()["name"].null_count() == 2


# ---- kinds and roles ------------------------------------------------------------------------------------------------
def people() -> pl.DataFrame:
    n = 60
    return pl.DataFrame(
        {
            "id": np.arange(n),
            "hh": np.arange(n) // 3,
            "w": np.linspace(1, 2, n),
            "age": np.arange(n) % 50,
            "years": np.arange(n) % 51,
            "sex": ["f", "m"] * (n // 2),
            "born": [dt.date(2000, 1, 1)] * n,
            "income": np.arange(n) * 10,
        }
    )


def test_kinds_are_inferred() -> None:
    data = sm.read(people(), identifiers="id", household="hh", weight="w", keys=["age", "years", "sex", "born"])
    assert {v.name: v.kind for v in data.schema.variables} == {
        "id": "nominal", "hh": "nominal", "w": "numeric", "age": "ordinal", "years": "numeric", "sex": "nominal",
        "born": "ordinal", "income": "numeric",
    }  # fmt: skip
    assert data.keys == ("age", "years", "sex", "born")
    assert (data.identifiers, data.household, data.weight) == (("id",), "hh", "w")
    assert data.schema.of_role(None) == ("income",)


def test_kinds_and_roles_can_be_stated() -> None:
    data = sm.read(people(), keys=["age"], kinds={"age": "numeric", "income": "ordinal"}, numeric=["years"])
    assert [data.schema[name].kind for name in ("age", "income", "years")] == ["numeric", "ordinal", "numeric"]
    assert [data.schema[name].role for name in ("age", "income", "years")] == ["key", None, "other"]


def test_all_means_every_column_not_yet_named() -> None:
    data = sm.read(people(), keys="all", weight="w", identifiers=["id"], numeric="income")
    assert data.keys == ("hh", "age", "years", "sex", "born")
    assert data.schema["income"].role == "other"
    numbers = people().drop("sex", "born")
    data = sm.read(numbers, numeric="all", keys="all", weight="w")
    assert data.keys == ("id", "hh", "age", "years", "income")
    assert {v.kind for v in data.schema.variables} == {"numeric"}
    assert sm.read(numbers, numeric="all").schema.of_role("other") == tuple(numbers.columns)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"keys": ["agee"]}, "no column 'agee'. Did you mean 'age'?"),
        ({"kinds": {"AGE": "nominal"}}, "no column 'AGE'. Did you mean 'age'?"),
        ({"numeric": ["incom", "xyzzy"]}, "no column 'incom'. Did you mean 'income'? no column 'xyzzy'."),
        ({"keys": ["age"], "sensitive": "age"}, "column 'age' has two roles, key and sensitive."),
        ({"keys": "all", "other": "all"}, "only one of keys and other can be 'all'."),
        ({"weight": ["w", "income"]}, "weight takes one column."),
        ({"stratum": "all"}, "stratum takes one column."),
        ({"kinds": {"age": "number"}}, "the kind of column 'age' must be one of numeric, ordinal, nominal."),
        ({"kinds": {"sex": "numeric"}}, "column 'sex' is String, not numeric: state another kind for it."),
        ({"weight": "sex"}, "column 'sex' is nominal, but a numeric column is needed here."),
    ],
)
def test_wrong_roles_and_kinds(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(sm.errors.SchemaError) as error:
        sm.read(people(), **arguments)
    assert str(error.value) == message


def test_error_for_enum_does_not_quote_categories() -> None:
    frame = pl.DataFrame({"x": pl.Series([SECRET], dtype=pl.Enum([SECRET]))})
    with pytest.raises(sm.errors.SchemaError, match="column 'x' is Enum, not numeric"):
        sm.read(frame, kinds={"x": "numeric"})


# ---- values that cannot be stored ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("values", "arguments", "message"),
    [
        ([1.0, float("inf"), -float("inf")], {}, "column 'x' has 2 infinite values: make them missing first."),
        ([2**53 + 1, 1, None], {}, "column 'x' has numbers with more digits than 2^53: state it as nominal."),
        ([2**63 - 1, 1], {}, "column 'x' has numbers with more digits than 2^53: state it as nominal."),
        (
            [Decimal("1234567890123456.78")],
            {},
            "column 'x' has numbers with more digits than 2^53: state it as nominal.",
        ),
        (
            [1.0, 0.0, 2.0],
            {"weight": "x"},
            "weight 'x' must be above zero in every row; it is not in 1 rows.",
        ),
        (
            [1.0, -3.0, None],
            {"weight": "x"},
            "weight 'x' must be above zero in every row; it is not in 2 rows.",
        ),
        ([[1], [2], None], {}, "column 'x' is List: use text, numbers, dates or booleans."),
        (
            [[1], [2], None],
            {"kinds": {"x": "nominal"}},
            "column 'x' is List: use text, numbers, dates or booleans.",
        ),
        ([object(), 1, "a"], {}, "column 'x' is Object: use text, numbers, dates or booleans."),
    ],
)
def test_read_rejects_values_that_cannot_be_stored(values: list[Any], arguments: dict[str, Any], message: str) -> None:
    dtype = pl.Object if any(type(value) is object for value in values) else None
    with pytest.raises(sm.errors.SchemaError) as error:
        sm.read(pl.DataFrame({"x": pl.Series(values, dtype=dtype)}), **arguments)
    assert str(error.value) == message


def test_the_largest_whole_numbers() -> None:
    assert sm.read(pl.DataFrame({"x": [2**53, -(2**53)]})).frame()["x"].to_list() == [2**53, -(2**53)]
    big = sm.read(pl.DataFrame({"x": [2**63 - 1, -(2**63)]}), identifiers="x")
    assert big.frame()["x"].to_list() == [2**63 - 1, -(2**63)]


def test_empty_columns_are_read() -> None:
    data = sm.read(pl.DataFrame({"x": pl.Series([None] * 3, dtype=pl.Float64), "y": [None] * 3}), keys="y")
    assert np.isnan(data.numbers("x")).all()
    assert data.codes("y").tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (pl.DataFrame({"x": []}), "the data have no rows: at least one record is needed."),
        (pd.DataFrame([[1, 2]], columns=["x", "x"]), "a DataFrame cannot be read: give a path or a frame with unique"),
        (pa.table([[1], [2]], names=["x", "x"]), "a Table cannot be read: give a path or a frame with unique column"),
        (pd.DataFrame({"x": [{"a": 1}, SECRET]}), "a DataFrame cannot be read: "),
        (5, "a int cannot be read: "),
    ],
)
def test_frames_that_cannot_be_read(source: object, message: str) -> None:
    with pytest.raises(sm.errors.SchemaError) as error:
        sm.read(source)
    assert str(error.value).startswith(message)
    assert SECRET not in str(error.value)


# ---- files that cannot be read --------------------------------------------------------------------------------------
def damaged(path: Path) -> Path:
    """Write a file with a valid beginning and other bytes after it; for CSV, a row that is too long."""
    if path.suffix == ".csv":
        path.write_text(f"a,b\n1,2\n{SECRET},{SECRET},{SECRET}\n")
        return path
    whole = path.with_name(f"whole{path.suffix}")
    if path.suffix == ".sas7bdat":  # pyreadstat writes none, so only the magic number is real
        head = bytes(12) + bytes.fromhex("c2ea8160b31411cfbd92080009c7318c181f1011")
    else:
        head = sm.write(sm.read(pl.DataFrame({"x": [1.0, 2.0], "s": ["a", "b"]})), whole).read_bytes()[:180]
    path.write_bytes(head + f"{SECRET},".encode() * 100)
    return path


@pytest.mark.parametrize("ending", ["csv", "parquet", "sav", "zsav", "dta", "xpt", "sas7bdat"])
def test_damaged_files_are_named_without_their_contents(tmp_path: Path, ending: str) -> None:
    path = damaged(tmp_path / f"bad.{ending}")
    with pytest.raises(
        sm.errors.SchemaError,
        match=rf"^bad\.{ending} (cannot be read as {ending.replace('zsav', 'sav')} \(|has 2 columns)",
    ) as error:
        sm.read(path)
    assert SECRET not in str(error.value)
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__


@pytest.mark.parametrize("ending", ["csv", "parquet", "sav", "dta", "xpt", "sas7bdat"])
def test_empty_and_absent_files(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"x.{ending}"
    with pytest.raises(sm.errors.SchemaError, match="there is no file"):
        sm.read(path)
    path.touch()
    with pytest.raises(sm.errors.SchemaError, match=r"is empty \(0 bytes\)"):
        sm.read(str(path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n", "the data have no rows: at least one record is needed."),
        (f"a,{SECRET},b,{SECRET}\n1,2,3,4\n", "x.csv has columns with the same name: columns 2, 4. Rename them."),
        (
            f'a,b\n"{SECRET},2\n3,4\n',
            "x.csv has 2 columns in its header, but 1 row has more or fewer fields, the first in row 1",
        ),
        (
            f"a,b\n1,2\n3\n4,5,{SECRET}\n",
            "x.csv has 2 columns in its header, but 2 rows have more or fewer fields, the first in row 2",
        ),
        (
            f"a,b\n1,2\n3\n4,{SECRET}\n",
            "x.csv has 2 columns in its header, but 1 row has more or fewer fields, the first in row 2",
        ),
        (
            f"{SECRET},m,2.5\n31,m,3.5\n",
            "x.csv seems to have no header: 3 of 3 fields of its first line are numbers or values",
        ),
        ("\n\n", "x.csv cannot be read as csv (NoDataError). "),
    ],
)
def test_csv_files_that_cannot_be_read(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(sm.errors.SchemaError) as error:
        sm.read(path)
    assert str(error.value).startswith(message)
    assert SECRET not in str(error.value)


def test_folders_and_unknown_endings(tmp_path: Path) -> None:
    with pytest.raises(sm.errors.SchemaError, match="is a folder: name a data file"):
        sm.read(tmp_path)
    for use in (sm.read, lambda path: sm.write(sm.read(PLAIN), path)):
        with pytest.raises(
            sm.errors.SchemaError, match=r"must be one of \.csv, \.parquet, \.sav, \.dta, \.sas7bdat, \.xpt"
        ):
            use(tmp_path / "x.xlsx")
    with pytest.raises(sm.errors.SchemaError, match="there is no folder"):
        sm.write(sm.read(PLAIN), tmp_path / "nowhere" / "x.csv")


@pytest.mark.parametrize(
    "role", ["keys", "sensitive", "identifiers", "weight", "household", "stratum", "other", "numeric"]
)
def test_roles_stated_later_equal_roles_stated_when_reading(tmp_path: Path, role: str) -> None:
    """Every type of column; columns with unchanged encoding are shared with the first reading."""
    frame = pl.DataFrame({name: column for name, column in EVERY_TYPE.items() if len(column) == 4})
    frame = frame.with_columns(pl.Series("whole", [3, 1, 2, 3]), pl.Series("labels", [1.0, 2.0, 2.0, 1.0]))
    path = tmp_path / "every.parquet"
    frame.write_parquet(path)
    base = Source(str(path)).read()
    for name in frame.columns:
        source = Source(str(path), **{role: (name,)})  # type: ignore[arg-type]
        try:
            wanted = source.read()
        except sm.errors.SchemaError as error:
            with pytest.raises(sm.errors.SchemaError) as raised:
                source.apply_to(base)
            assert str(raised.value) == str(error)
            continue
        found = source.apply_to(base)
        assert found.schema == wanted.schema and found.digest == wanted.digest, name
        assert all(found.column(other) is base.column(other) for other in base.names if other != name)
