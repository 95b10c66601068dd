"""SPSS, Stata and SAS files: metadata and user-missing codes survive a round trip."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyreadstat
import pytest
from polars.testing import assert_frame_equal
from sas_files import write_catalog, write_sas

import sdcmap as sm
from sdcmap.data.microdata import Column, Microdata, series
from sdcmap.data.schema import Variable
from sdcmap.files.stat import drop_unused, read_in_subprocess
from sdcmap.files.stat.statfile_reader import read_statfile

pytestmark = pytest.mark.usefixtures("read_here")


def raw(path: Path) -> tuple[dict[str, list[Any]], Any]:
    """Return the cells of a file with user-missing codes, and its metadata, by pyreadstat."""
    reader = getattr(
        pyreadstat, {".zsav": "read_sav", ".xpt": "read_xport"}.get(path.suffix, f"read_{path.suffix[1:]}")
    )
    options = {} if path.suffix == ".xpt" else {"user_missing": True}
    frame, facts = reader(path, output_format="polars", disable_datetime_conversion=True, **options)
    return frame.to_dict(as_series=False), facts


# ---- SPSS -----------------------------------------------------------------------------------------------------------
SURVEY = pl.DataFrame(
    {
        "sex": [1.0, 2.0, 9.0, 2.0, None, 1.0],
        "income": [1200.5, -5.0, 99999.0, None, -1.0, 800.0],
        "region": ["north", "REF", "", "south", "DK", "north"],
        "born": [dt.date(1980, 1, 2), None, dt.date(1990, 12, 31), dt.date(2000, 2, 29), None, dt.date(1970, 1, 1)],
        "seen": [dt.datetime(2024, 5, 6, 7, 8, 9)] * 5 + [None],
        "at": [dt.time(1, 2, 3)] * 5 + [None],
        "empty": pl.Series([None] * 6, dtype=pl.Float64),
    }
)
SURVEY_FACTS: dict[str, Any] = {
    "column_labels": {"sex": "Sex of person", "income": "Net income, €"},
    "variable_value_labels": {
        "sex": {1.0: "man", 2.0: "woman", 3.0: "never met", 9.0: "refused"},
        "income": {99999.0: "too much"},
        "region": {"north": "The North", "REF": "refused"},
    },
    "missing_ranges": {"sex": [9.0], "income": [{"lo": -9.0, "hi": -1.0}, 99999.0], "region": ["REF", "DK"]},
    "variable_measure": {"sex": "nominal", "income": "scale", "region": "nominal"},
    "variable_format": {"sex": "F1.0", "income": "F10.2", "born": "EDATE10"},
}


@pytest.fixture(params=["sav", "zsav"])
def survey(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"survey.{request.param}"
    pyreadstat.write_sav(SURVEY, path, note="a private note", file_label="private", **SURVEY_FACTS)
    return path


def test_spss_missing_codes_are_missing_and_kinds_follow_the_file(survey: Path) -> None:
    data = sm.read(survey, keys=["sex", "region"])
    assert data.schema.format == "sav"
    assert [v.kind for v in data.schema.variables] == ["nominal", "numeric", "nominal", *["ordinal"] * 3, "numeric"]
    np.testing.assert_array_equal(data["income"], [1200.5, np.nan, np.nan, np.nan, np.nan, 800])
    assert data.frame()["sex"].to_list() == [1, 2, None, 2, None, 1]
    assert data.frame()["region"].to_list() == ["north", None, None, "south", None, "north"]
    assert data.schema["sex"].reasons == (9.0,)
    assert data.schema["income"].reasons == (-5.0, -1.0, 99999.0)
    assert data.schema["income"].missing == ((-9.0, -1.0), 99999.0)
    assert data.schema["region"].reasons == ("DK", "REF")
    assert data.missing("sex").tolist() == [False, False, True, False, True, False]
    assert data.schema["sex"].label == "Sex of person"


@pytest.mark.parametrize("ending", ["sav", "zsav"])
def test_spss_round_trip_keeps_cells_and_facts(survey: Path, tmp_path: Path, ending: str) -> None:
    copy = sm.write(sm.read(survey), tmp_path / f"copy.{ending}")
    cells, facts = raw(survey)
    copied, copied_facts = raw(copy)
    assert copied == cells
    for fact in (
        "column_names_to_labels", "variable_value_labels", "missing_ranges", "variable_measure",
        "original_variable_types", "readstat_variable_types",
    ):  # fmt: skip
        assert getattr(copied_facts, fact) == getattr(facts, fact), fact
    assert not copied_facts.notes
    assert not copied_facts.file_label
    assert sm.read(copy).digest == sm.read(survey).digest


def test_user_missing_codes_survive_a_masking(survey: Path, tmp_path: Path) -> None:
    data = sm.read(survey)
    rows = np.array([0, 5])
    masked = data.change(rows, {"income": np.array([1.0, 2.0]), "sex": data.codes("sex")[rows[::-1]]})
    masked = masked.change(None, {"region": data.codes("region")[::-1]})  # codes move with the values of their rows
    cells, _ = raw(sm.write(masked.take(np.array([5, 4, 3, 2, 1, 0])), tmp_path / "masked.sav"))
    assert cells["income"] == [2.0, -1.0, None, 99999.0, -5.0, 1.0]
    assert cells["sex"] == [1.0, None, 2.0, 9.0, 2.0, 1.0]
    assert cells["region"] == ["north", "REF", "", "south", "DK", "north"]


def test_a_masked_cell_that_was_missing_takes_its_new_value(survey: Path, tmp_path: Path) -> None:
    masked = sm.read(survey).change(np.array([1]), {"income": np.array([7.0])})
    assert raw(sm.write(masked, tmp_path / "masked.sav"))[0]["income"][1] == 7.0


def test_a_masked_value_that_is_a_missing_code_is_refused(survey: Path, tmp_path: Path) -> None:
    masked = sm.read(survey).change(np.array([0, 5]), {"income": np.array([-3.25, 12.0])})
    with pytest.raises(sm.errors.SchemaError, match=r"'income': 1 valid values equal user-missing codes") as error:
        sm.write(masked, tmp_path / "masked.sav")
    assert "3.25" not in str(error.value)


def test_microdata_read_again_keep_their_codes(survey: Path, tmp_path: Path) -> None:
    again = sm.read(sm.read(survey), keys=["sex"], sensitive=["income"])
    assert again.keys == ("sex",)
    assert raw(sm.write(again, tmp_path / "again.sav"))[0] == raw(survey)[0]


def test_spss_dates_with_missing_codes_are_stored_as_numbers(tmp_path: Path) -> None:
    path, seconds = tmp_path / "dates.sav", 13797648000.0
    pyreadstat.write_sav(
        pl.DataFrame({"born": [seconds, 99.0, None], "other": [dt.date(2020, 1, 1)] * 3}),
        path, missing_ranges={"born": [99]}, variable_format={"born": "DATE11"},
    )  # fmt: skip
    data = sm.read(path)
    assert data.schema["born"].missing == (99.0,)
    np.testing.assert_array_equal(data["born"], [seconds, np.nan, np.nan])
    assert data.frame()["other"].dtype == pl.Date
    copied, facts = raw(sm.write(data, tmp_path / "copy.sav"))
    assert copied == raw(path)[0]
    assert facts.original_variable_types["born"] == "DATE11"


def test_many_codes_of_an_open_range(tmp_path: Path) -> None:
    path = tmp_path / "range.sav"
    pyreadstat.write_sav(
        pl.DataFrame({"x": np.arange(-400.0, 200.0)}), path, missing_ranges={"x": [{"lo": -np.inf, "hi": -1.0}]}
    )
    data = sm.read(path)
    assert len(data.schema["x"].reasons) == 400
    assert data.schema["x"].missing == ((-np.inf, -1.0),)
    copied, facts = raw(sm.write(data, tmp_path / "copy.sav"))
    assert copied == raw(path)[0]
    assert facts.missing_ranges == {"x": [{"lo": -np.inf, "hi": -1.0}]}


def test_spss_measure_does_not_make_a_weight_categorical(tmp_path: Path) -> None:
    path = tmp_path / "weights.sav"
    frame = pl.DataFrame({"w": [1.5, 2.0, 3.0], "age": [30.0, 40.0, 50.0]})
    pyreadstat.write_sav(frame, path, variable_measure={"w": "nominal"})
    data = sm.read(path, weight="w", keys="age")
    assert data.weights.tolist() == [1.5, 2.0, 3.0]
    assert data.schema["age"].kind == "ordinal"  # whole numbers, although SPSS stores every number as a float


# ---- Stata ----------------------------------------------------------------------------------------------------------
def stata(path: Path) -> Path:
    frame = pl.DataFrame(
        {
            "income": pl.Series([1.5, "a", None, "z", 3.25], dtype=pl.Object),
            "sex": pl.Series([1, 2, "b", None, 2], dtype=pl.Object),
            "age": pl.Series([31, 44, 25, 60, None], dtype=pl.Int32),
            "name": ["Ann", "", "Bo", "Cy", "é" * 3000],
            "born": [dt.date(1980, 1, 2), None, dt.date(1960, 1, 1), dt.date(1959, 12, 31), dt.date(2000, 2, 29)],
            "moved": pl.Series([21000.0, "c", None, -1.0, 0.0], dtype=pl.Object),
            "seen": [dt.datetime(2024, 5, 6, 7, 8, 9)] * 4 + [None],
        }
    )
    pyreadstat.write_dta(
        frame,
        path,
        column_labels={"income": "Net income", "name": "Name"},
        variable_value_labels={"sex": {1: "man", 2: "woman", "b": "refused"}, "age": {31: "thirty-one"}},
        missing_user_values={"income": ["a", "z"], "sex": ["b"], "moved": ["c"]},
        variable_format={"income": "%12.2fc", "moved": "%td"},
    )
    return path


def test_stata_letters_are_missing_and_come_back(tmp_path: Path) -> None:
    path = stata(tmp_path / "panel.dta")
    data = sm.read(path, keys=["sex"])
    np.testing.assert_array_equal(data["income"], [1.5, np.nan, np.nan, np.nan, 3.25])
    assert data.schema["income"].reasons == ("a", "z")
    assert data.schema["sex"].kind == "nominal"
    assert data.frame()["sex"].to_list() == [1, 2, None, None, 2]
    assert data.frame()["born"].dtype == pl.Date
    assert data.schema["moved"].kind == "numeric"
    copied, facts = raw(sm.write(data, tmp_path / "copy.dta"))
    cells, old = raw(path)
    assert copied == cells
    for fact in (
        "column_names_to_labels",
        "variable_value_labels",
        "original_variable_types",
        "readstat_variable_types",
    ):
        assert getattr(facts, fact) == getattr(old, fact), fact
    assert {name: sorted(found) for name, found in facts.missing_user_values.items()} == {
        "income": ["a", "z"], "sex": ["b"], "moved": ["c"]
    }  # fmt: skip


def test_unused_labeled_stata_letter_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "panel.dta"
    pyreadstat.write_dta(
        pl.DataFrame({"x": pl.Series([1, 2, None], dtype=pl.Object)}), path,
        variable_value_labels={"x": {1: "one", "a": "refused"}}, missing_user_values={"x": ["a"]},
    )  # fmt: skip
    data = sm.read(path)
    copied, facts = raw(sm.write(data, tmp_path / "copy.dta"))
    assert copied["x"] == [1, 2, None]
    assert facts.variable_value_labels == {"x": {1: "one", "a": "refused"}}


def test_stata_whole_numbers_beyond_a_long_are_doubles(tmp_path: Path) -> None:
    data = sm.read(pl.DataFrame({"x": [2_147_483_621, 1, None], "y": [2_147_483_620, 1, None]}))
    cells, facts = raw(sm.write(data, tmp_path / "long.dta"))
    assert cells == {"x": [2_147_483_621, 1, None], "y": [2_147_483_620, 1, None]}
    assert facts.readstat_variable_types == {"x": "double", "y": "int32"}


# ---- SAS ------------------------------------------------------------------------------------------------------------
SAS = {
    "x": [1.5, "A", None, "Z", -3.25e10],
    "all": ["B", "B", "_", None, "B"],
    "y": [1.0, 2.0, 3.0, None, 5.0],
    "s": ["ab", "", "cde", "f", "AAAAAAAA"],
    "d": [21000.0, 1.0, None, 0.0, -1.0],
    "dated": [21000.0, "C", None, 0.0, -1.0],
}
SAS_FORMATS = {"d": "DATE9", "dated": "DATE9", "y": "COMMA12.2"}


@pytest.mark.parametrize("ending", ["sas7bdat", "xpt"])
def test_sas_special_missings_are_read_and_written_to_xpt(tmp_path: Path, ending: str) -> None:
    data = sm.read(write_sas(tmp_path / f"panel.{ending}", SAS, SAS_FORMATS))
    assert data.schema.format == "xpt"
    np.testing.assert_array_equal(data["x"], [1.5, np.nan, np.nan, np.nan, -3.25e10])
    assert data.schema["x"].reasons == ("A", "Z")
    assert (data.schema["all"].kind, data.schema["all"].reasons) == ("numeric", ("B", "_"))
    assert data.frame()["s"].to_list() == ["ab", None, "cde", "f", "AAAAAAAA"]
    assert data.frame()["d"].to_list()[0] == dt.date(2017, 6, 30)
    assert data.schema["dated"].kind == "numeric"
    copy = sm.write(data, tmp_path / "copy.xpt")
    cells, facts = raw(copy)
    assert cells["dated"] == [21000.0, None, None, 0.0, -1.0]
    assert facts.column_names_to_labels == {name: f"the {name}" for name in SAS}
    assert facts.original_variable_types == dict.fromkeys(SAS) | SAS_FORMATS
    again = sm.read(copy)
    assert again.digest == data.digest
    assert [again.schema[name].reasons for name in SAS] == [data.schema[name].reasons for name in SAS]
    assert not copy.with_suffix(".sas").exists()


def test_xpt_bytes_are_those_of_the_library_that_knows_special_missings(tmp_path: Path) -> None:
    path = write_sas(tmp_path / "panel.xpt", {"x": [1.5, "A", None, "_"], "y": [1.0, 2.0, "Z", 3.0]}, {})
    copy = sm.write(sm.read(path), tmp_path / "copy.xpt")
    mark = b"HEADER RECORD*******OBS"
    assert copy.read_bytes().partition(mark)[2] == path.read_bytes().partition(mark)[2]


def test_sas_value_labels_come_from_the_catalog_beside_the_file(tmp_path: Path) -> None:
    path = write_sas(tmp_path / "panel.sas7bdat", {"sex": [1.0, 2.0, "A", None]}, {"sex": "SEXF"})
    assert sm.read(path).schema["sex"].values == ()
    write_catalog(tmp_path / "panel.sas7bcat", "SEXF", {1: "man", 2: "woman"})
    data = sm.read(path)
    assert data.schema["sex"].values == ((1.0, "man"), (2.0, "woman"))
    assert data.schema["sex"].kind == "nominal"
    copy = sm.write(data, tmp_path / "copy.xpt")
    assert raw(copy)[1].original_variable_types == {"sex": None}  # SAS knows no SEXF before the program has run
    assert "    2 = 'woman'\n" in copy.with_suffix(".sas").read_text(encoding="utf-8")


def test_sas_value_labels_go_into_a_program(tmp_path: Path, survey: Path) -> None:
    copy = sm.write(sm.read(survey), tmp_path / "copy.xpt")
    program = copy.with_suffix(".sas").read_text(encoding="utf-8")
    assert "  value sex_1f\n    1 = 'man'\n    2 = 'woman'\n    3 = 'never met'\n  ;" in program
    assert "  value $region_3f\n    'north' = 'The North'\n" in program
    assert "    sex sex_1f.\n    region $region_3f.\n  ;" in program
    assert "99999" not in program  # an SPSS missing code is system-missing in SAS
    assert raw(copy)[0]["sex"] == [1, 2, None, 2, None, 1]


def test_stata_letters_and_their_labels_in_sas(tmp_path: Path) -> None:
    data = sm.read(stata(tmp_path / "panel.dta"))
    copy = sm.write(data.only(["income", "sex", "age"]), tmp_path / "copy.xpt")
    assert sm.read(copy).schema["income"].reasons == ("A", "Z")
    assert "    .B = 'refused'" in copy.with_suffix(".sas").read_text(encoding="utf-8")


def test_quotes_in_labels_cannot_break_the_program(tmp_path: Path) -> None:
    variable = Variable("x", "nominal", values=((1.0, "it's; run;"),), storage="Float64")
    data = Microdata(sm.data.Schema((variable,)), {"x": Column(np.zeros(2, np.uint8), pl.Series([1.0]))})
    copy = sm.write(data, tmp_path / "copy.xpt")
    assert "1 = 'it''s; run;'" in copy.with_suffix(".sas").read_text(encoding="utf-8")


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    path = write_sas(tmp_path / "twice.xpt", {"xa": [1.0], "xb": [2.0]}, {})
    path.write_bytes(path.read_bytes().replace(b"xb ", b"xa "))
    with pytest.raises(
        sm.errors.SchemaError, match=r"^twice\.xpt has two columns with the same name: rename one of them\.$"
    ):
        sm.read(path)


def test_no_sas7bdat_is_written(tmp_path: Path) -> None:
    data = sm.read(pl.DataFrame({"x": [1.0]}))
    with pytest.raises(sm.errors.SchemaError, match=r"can be read but not written. Write a \.xpt file"):
        sm.write(data, tmp_path / "x.sas7bdat")
    assert not list(tmp_path.iterdir())


# ---- what a format cannot store -------------------------------------------------------------------------------------
@pytest.mark.parametrize(("ending", "limit"), [("sav", 64), ("dta", 32), ("xpt", 32)])
def test_names_that_a_format_cannot_hold(tmp_path: Path, ending: str, limit: int) -> None:
    longest = "n" * limit
    path = sm.write(sm.read(pl.DataFrame({longest: [1.0]})), tmp_path / f"x.{ending}")
    assert sm.read(path).names == (longest,)
    for name in (longest + "n", "two words", "1st"):
        with pytest.raises(sm.errors.SchemaError, match=f"Rename '{name}'"):
            sm.write(sm.read(pl.DataFrame({name: [1.0]})), tmp_path / f"y.{ending}")


@pytest.mark.parametrize("ending", ["sav", "dta", "xpt"])
def test_frames_of_every_kind_can_be_written(tmp_path: Path, ending: str) -> None:
    frame = pl.DataFrame(
        {
            "category": pl.Series(["b", None, "a"], dtype=pl.Categorical),
            "scale": pl.Series(["low", "high", None], dtype=pl.Enum(["low", "mid", "high"])),
            "price": pl.Series([1.25, None, 3.5]).cast(pl.Decimal(10, 2)),
            "yes": [True, None, False],
            "huge": pl.Series([2**50, None, 1], dtype=pl.UInt64),
            "nothing": pl.Series([None] * 3, dtype=pl.Null),
        }
    )
    back = sm.read(sm.write(sm.read(frame), tmp_path / f"x.{ending}")).frame()
    expected = frame.with_columns(
        pl.col("category", "scale").cast(pl.String), pl.col("price", "huge", "nothing").cast(pl.Float64)
    )
    assert_frame_equal(back.with_columns(pl.col("yes").cast(pl.Boolean)), expected, check_dtypes=True)


def test_a_type_no_format_holds_is_named(tmp_path: Path) -> None:
    data = sm.read(pl.DataFrame({"spell": [dt.timedelta(days=31)]}))
    with pytest.raises(sm.errors.SchemaError, match=r"^column 'spell' is Duration, which a \.dta file cannot store\.$"):
        sm.write(data, tmp_path / "x.dta")


# ---- drop_unused ----------------------------------------------------------------------------------------------------
def check_rebuilt(data: Microdata, name: str) -> tuple[Variable, Column]:
    """Check that `drop_unused` changes no cell and is idempotent."""
    variable, column = data.schema[name], data.column(name)
    new_variable, new_column = drop_unused(variable, column)
    assert series(new_column, new_variable).to_list() == series(column, variable).to_list()
    again_variable, again_column = drop_unused(new_variable, new_column)
    assert again_variable == new_variable
    np.testing.assert_array_equal(again_column.values, new_column.values)
    return new_variable, new_column


def test_drop_unused_removes_unused_metadata(survey: Path, tmp_path: Path) -> None:
    data = sm.read(survey).take(np.array([0, 4, 5]))  # two men of the north with an income, one row all missing
    sex, codes = check_rebuilt(data, "sex")
    assert sex.values == ((1.0, "man"),)
    assert (sex.missing, sex.reasons) == ((), ())
    assert codes.levels is not None
    assert codes.levels.to_list() == [1.0, None]
    income, amounts = check_rebuilt(data, "income")
    assert (income.values, income.missing, income.reasons) == ((), (-1.0,), (-1.0,))
    assert amounts.reasons is not None
    assert amounts.reasons.tolist() == [0, 1, 0]
    region, places = check_rebuilt(data, "region")
    assert region.values == (("north", "The North"),)
    assert (region.missing, region.reasons) == (("DK",), ("DK",))
    assert places.values.tolist() == [0, 2, 0]
    both = [drop_unused(v, data.column(v.name)) for v in data.schema.variables]
    released = Microdata(
        replace(data.schema, variables=tuple(v for v, _ in both)), {v.name: column for v, column in both}
    )
    cells, facts = raw(sm.write(released, tmp_path / "released.sav"))
    assert cells["income"] == [1200.5, -1.0, 800.0]
    assert cells["region"] == ["north", "DK", "north"]
    assert facts.variable_value_labels == {"sex": {1.0: "man"}, "region": {"north": "The North"}}
    assert facts.missing_ranges == {"income": [{"lo": -1.0, "hi": -1.0}], "region": [{"lo": "DK", "hi": "DK"}]}


def test_drop_unused_narrows_ranges(tmp_path: Path) -> None:
    path = tmp_path / "range.sav"
    frame = pl.DataFrame({"x": [1.0, -7.0, -5.0, -3.0, -2.0, 99.0]})
    pyreadstat.write_sav(frame, path, missing_ranges={"x": [{"lo": -np.inf, "hi": -1.0}, 99.0]})
    data = sm.read(path)
    variable, _ = check_rebuilt(data, "x")
    assert variable.missing == ((-7.0, -2.0), 99.0)
    assert check_rebuilt(data.take(np.array([0, 1, 4, 5])), "x")[0].missing == (-7.0, -2.0, 99.0)


def test_drop_unused_handles_stata_letters(tmp_path: Path) -> None:
    data = sm.read(stata(tmp_path / "panel.dta")).take(np.array([3, 4]))
    income, amounts = check_rebuilt(data, "income")
    assert (income.missing, income.reasons) == (("z",), ("z",))
    assert amounts.reasons is not None
    assert amounts.reasons.tolist() == [1, 0]
    assert check_rebuilt(data, "sex")[0].values == ((2, "woman"),)


@pytest.mark.parametrize("dtype", [pl.Enum(["a", "b", "c"]), pl.Categorical(), pl.String()])
def test_drop_unused_removes_empty_categories(dtype: pl.DataType) -> None:
    data = sm.read(pl.DataFrame({"x": pl.Series(["c", "a", None, "b"], dtype=dtype)}))
    variable, column = check_rebuilt(data.take(np.array([0, 0, 1])), "x")
    assert column.levels is not None
    assert column.levels.to_list() == ["a", "c"]
    assert column.values.tolist() == [1, 1, 0]
    if isinstance(dtype, pl.Enum):
        assert series(column, variable).dtype == pl.Enum(["a", "c"])


def test_drop_unused_uses_the_smallest_codes() -> None:
    data = sm.read(pl.DataFrame({"x": [f"v{i:03}" for i in range(300)]}))
    assert data.codes("x").dtype == np.uint16
    assert check_rebuilt(data.take(np.arange(10)), "x")[1].values.dtype == np.uint8


def test_drop_unused_after_new_levels(survey: Path) -> None:
    data = sm.read(survey)
    masked = data.change(None, {"sex": np.array([0, 0, 1, 0, 1, 0], np.uint8)}, {"sex": pl.Series(["any", None])})
    variable, column = check_rebuilt(masked, "sex")
    assert (variable.values, variable.missing, variable.reasons) == ((), (), ())
    assert column.values.tolist() == [0, 0, 1, 0, 1, 0]


# ---- the subprocess ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("form", ["sav", "dta", "xpt", "sas7bdat"])
def test_subprocess_reads_the_same_data(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"file.{form}"
    if form == "sav":
        pyreadstat.write_sav(SURVEY, path, **SURVEY_FACTS)
    elif form == "dta":
        stata(path)
    else:
        write_sas(path, SAS, SAS_FORMATS)
    here, apart = read_statfile(path, form), read_in_subprocess(path, form)
    assert here[1] == apart[1]
    assert here[0].schema == apart[0].schema
    assert here[0].to_dict(as_series=False) == apart[0].to_dict(as_series=False)
