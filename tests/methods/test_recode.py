"""Recoding, top coding, rounding and hierarchies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sdcmap as sm
from sdcmap.core.streams import Stream
from sdcmap.kernels.masking.breaks import equal_width, interval_of, log_width, quantiles, round_at_random
from sdcmap.study.jobs import score_row
from sdcmap.testing import check_method

AGES = [1, 9, 10, 19, 20, 69, 70, 100]


@pytest.fixture(scope="module")
def persons() -> sm.Microdata:
    return sm.demo.population(400, seed=4)


@pytest.fixture
def ages() -> sm.Microdata:
    """Return an age that is a key, stored as ordered categories, and the same age as a number."""
    frame = pl.DataFrame({"age": [*AGES, None], "years": [*map(float, AGES), None], "zip": [*"12345678", None]})
    return sm.read(frame, keys=["age", "zip"], numeric="years")


def recoded(data: sm.Microdata, name: str, **fields: Any) -> list[Any]:
    return sm.mask(data, sm.Recode(on=name, **fields), seed=1)[name].tolist()


# ---- intervals ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["age", "years"])
def test_intervals_are_left_open_as_in_sdcmicro(ages: sm.Microdata, name: str) -> None:
    """As in globalRecode and R's cut, 9 is in (1, 9] and 10 in (9, 19]; values outside fall into open end intervals."""
    result = recoded(ages, name, breaks=[1, 9, 19, 69])
    assert result == ["<= 1", "(1, 9]", "(9, 19]", "(9, 19]", "(19, 69]", "(19, 69]", "> 69", "> 69", None]


@pytest.mark.parametrize("name", ["age", "years"])
def test_intervals_closed_on_the_left(ages: sm.Microdata, name: str) -> None:
    result = recoded(ages, name, width=10, closed="left")
    bands = [(0, 10), (0, 10), (10, 20), (10, 20), (20, 30), (60, 70), (70, 80), (100, 110)]
    assert result == [*(f"[{low}, {high})" for low, high in bands), None]
    assert recoded(ages, name, breaks=[18, 65], closed="left", labels=["child", "adult", "old"])[3:6] == [
        "adult", "adult", "old",
    ]  # fmt: skip


@given(st.lists(st.floats(0.01, 1e6), min_size=2, max_size=60, unique=True), st.integers(2, 6))
def test_breaks_found_from_data_equal_rounded_formula(values: list[float], bins: int) -> None:
    """Equal width, equal ratio, equal counts: breaks equal the plain formula, rounded."""
    x = np.array(values)
    width = np.diff(equal_width(x, bins))
    assert len(width) <= bins and np.allclose(width, width[:1])
    assert all(float(f"{one:.1e}") == pytest.approx(one) and one >= np.ptp(x) / bins * (1 - 1e-6) for one in width)
    ratios = [x.min() * (x.max() / x.min()) ** (i / bins) for i in range(1, bins)]
    assert log_width(x, bins).tolist() == sorted({float(f"{one:.0e}") for one in ratios})
    plain = np.unique([np.quantile(x, i / bins) for i in range(1, bins)])
    gaps = np.diff([x.min(), *plain, x.max()])
    nearest = np.minimum(*(np.where(part > 0, part, np.inf) for part in (gaps[:-1], gaps[1:])))
    assert (np.abs(quantiles(x, bins) - plain) <= nearest / 10 * (1 + 1e-6)).all()


def test_breaks_reveal_no_original_value() -> None:
    """Unrounded breaks at eighths of the range would reveal the largest income, and quantiles a person's value."""
    misses = []
    for seed in range(20):
        x = np.random.default_rng(seed).lognormal(10, 1, 801).round(2)
        ends = equal_width(x, 8)
        misses.append(abs(ends[0] + 7 * (ends[1] - ends[0]) - x.max()) / x.max())
        assert not np.isin(quantiles(x, 8), x).any() and not np.isin(ends, x).any()
    assert np.median(misses) > 0.03


def test_quantile_intervals_have_similar_counts() -> None:
    x = np.random.default_rng(0).lognormal(10, 1, 1000)
    data = sm.read(pl.DataFrame({"x": x}), numeric="all")
    counts = np.bincount(sm.mask(data, sm.Recode(on="x", bins=4, by="quantiles"), seed=1).codes("x"))
    assert len(counts) == 4 and np.abs(counts - 250).max() <= 25


@pytest.mark.parametrize("becomes", ["midpoint", "mean", "median"])
def test_numbers_become_typical_values(ages: sm.Microdata, becomes: Any) -> None:
    twice = sm.read(pl.concat([ages.frame()] * 2), numeric="years", other="all")
    result = sm.mask(twice, sm.Recode(on="years", breaks=[9, 19, 69], becomes=becomes), seed=1).take(
        np.arange(len(ages))
    )
    ends = {"midpoint": (5, 85), "mean": (5, 85), "median": (5, 85)}[becomes]
    middle = {"midpoint": (14, 44), "mean": (14.5, 44.5), "median": (14.5, 44.5)}[becomes]
    expected = [ends[0]] * 2 + [middle[0]] * 2 + [middle[1]] * 2 + [ends[1]] * 2
    assert result["years"][:-1].tolist() == expected and np.isnan(result["years"][-1])
    assert result.schema["years"].kind == "numeric"


@pytest.mark.parametrize("becomes", ["midpoint", "mean", "median"])
def test_averages_of_one_or_two_values_are_not_released(ages: sm.Microdata, becomes: Any) -> None:
    """With two records per interval, the midpoint is released, or the break of an end interval."""
    result = sm.mask(ages, sm.Recode(on="years", breaks=[9, 19, 69], becomes=becomes), seed=1)
    assert result["years"][:-1].tolist() == [9, 9, 14, 14, 44, 44, 69, 69]


def test_recoded_number_is_ordinal(persons: sm.Microdata) -> None:
    """Its kind and type change; measures of numbers are undefined with a reason; tables still work."""
    masked = sm.mask(persons, sm.Recode(on="wage", bins=3), seed=1)
    variable = masked.schema["wage"]
    assert (variable.kind, variable.storage, variable.role) == ("ordinal", "String", "sensitive")
    assert persons.schema["wage"].kind == "numeric"
    assert masked.frame()["wage"].dtype == pl.String
    row = score_row(sm.IL1s(on="wage"), persons, masked, Stream.of_seed(1))
    assert (row.status, row.reason) == ("undefined", "column 'wage' is ordinal, but a numeric column is needed here.")
    tables = sm.score(persons, masked, [sm.Hellinger(on=["wage"]), sm.SmallCells(on=["wage"], counting="all")])
    assert tables["Hellinger(on='wage')"].value == pytest.approx(1)  # no number equals a label


def test_chain_continues_with_recoded_kind(persons: sm.Microdata) -> None:
    chain = sm.Chain([sm.Recode(on="wage", bins=4), sm.Suppress(on=["Sex", "wage"], k=5), sm.PRAM(on="wage")])
    assert sm.mask(persons, chain, seed=1).schema["wage"].kind == "ordinal"
    with pytest.raises(sm.errors.SchemaError, match="Noise masks numeric variables; 'wage' is ordinal"):
        sm.mask(persons, sm.Chain([sm.Recode(on="wage", bins=4), sm.Noise(on="wage")]), seed=1)


def test_strata_have_separate_intervals(persons: sm.Microdata) -> None:
    masked = sm.mask(persons, sm.Recode(on="wage", bins=2, by="quantiles", within="Sex"), seed=1)
    for sex in ("Male", "Female"):
        rows = persons["Sex"] == sex
        labels, counts = np.unique(masked["wage"][rows], return_counts=True)
        [middle] = quantiles(persons["wage"][rows], 2)
        assert set(labels) == {f"<= {middle:.15g}", f"> {middle:.15g}"}
        assert counts.sum() == rows.sum()


# ---- categories -----------------------------------------------------------------------------------------------
def test_rare_categories_become_one() -> None:
    data = sm.read(pl.DataFrame({"town": ["a"] * 6 + ["b1"] * 2 + ["b2", None]}), keys="town")
    assert recoded(data, "town", rare=0.2) == [*"aaaaaa", "b1", "b1", "other", None]  # a fifth of ten records stays
    assert recoded(data, "town", rare=0.3, labels="rest")[6:] == ["rest", "rest", "rest", None]
    assert recoded(data, "town", rare=0.3, prefix=1)[6:] == ["b", "b", "b", None]
    assert recoded(data, "town", rare=0.2, prefix=1)[6:] == ["b1", "b1", "b", None]  # the common ones keep their detail
    assert recoded(data, "town", rare=0.05) == data.frame()["town"].to_list()


def test_only_rare_categories_count_as_recoded() -> None:
    data = sm.read(pl.DataFrame({"town": ["a"] * 8 + ["b", "c"]}), keys="town")
    method = sm.Recode(on="town", rare=0.2)
    rows = method.recoded_rows(sm.mask(data, method, seed=1), "town")
    assert rows is not None
    assert rows.tolist() == [False] * 8 + [True, True]


def test_merge_categories(ages: sm.Microdata) -> None:
    assert recoded(ages, "zip", merge=[["1", "2"], ["8", "7"]])[:8] == ["1|2", "1|2", *"3456", "8|7", "8|7"]
    assert recoded(ages, "zip", merge=[["1", "2"]], labels="low")[:3] == ["low", "low", "3"]
    masked = sm.mask(ages, sm.Recode(on="age", merge=[["1", "9"]]), seed=1)  # whole numbers become text
    assert masked["age"].tolist()[:3] == ["1|9", "1|9", "10"]
    moved = sm.score(ages, masked, sm.SmallCells(on=["age"], n=2))  # 10 and "10" are the same category
    assert moved["SmallCells(n=2, on='age')"].value == pytest.approx(7 / 7)


def test_recode_to_prefix(ages: sm.Microdata) -> None:
    data = sm.read(pl.DataFrame({"zip": ["81667", "81675", None, "9"]}), keys="all")
    assert recoded(data, "zip", prefix=3) == ["816", "816", None, "9"]


def test_recode_to_hierarchy_level(tmp_path: Path, ages: sm.Microdata) -> None:
    path = str(tmp_path / "age.csv")
    sm.data.Hierarchy.intervals(AGES, widths=[10, 50]).write(path)
    assert Path(path).read_text().splitlines()[0] == "1;[0, 10);[0, 50);*"
    for name in ("age", "years"):
        assert recoded(ages, name, hierarchy=path, level=2)[4:] == ["[0, 50)", *["[50, 100)"] * 2, "[100, 150)", None]
        assert set(recoded(ages, name, hierarchy=path, level=3)) == {"*", None}
    method = sm.Recode(on="age", hierarchy=path)
    check_method(method, ages)
    with pytest.raises(sm.errors.SchemaError, match="levels 0 to 3, but level 4 was requested"):
        recoded(ages, "age", hierarchy=path, level=4)
    sm.data.Hierarchy.intervals([1, 9], widths=[10]).write(path)
    with pytest.raises(sm.errors.SchemaError, match="is not the file that was named"):
        sm.mask(ages, method, seed=1)
    with pytest.raises(sm.errors.SchemaError, match="lacks 6 of the 8 values of 'age'"):
        recoded(ages, "age", hierarchy=path)


def test_parse_hierarchy_file(tmp_path: Path) -> None:
    """The format of ARX is read, also with commas and tabs."""
    path = tmp_path / "zip.csv"
    for mark in ";,\t":
        path.write_text(f"81667{mark}8166*{mark}*\n81675{mark}8167*{mark}*\n")
        result = sm.data.Hierarchy.read(str(path))
        assert (result.levels, result.at(1)) == (2, {"81667": "8166*", "81675": "8167*"})
    result.write(str(path))
    assert sm.data.Hierarchy.read(str(path)) == result
    assert sm.data.Hierarchy.prefixes(["81667", "9"]).at(3) == {"81667": "81***", "9": "9****"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a;x\nb\n", "rows have unequal lengths"),
        ("a;x\na;y\n", "has the same value twice"),
        ("a;x;p\nb;x;q\n", "level 2 of the hierarchy splits a label of level 1"),
        ("", "needs at least one value"),
    ],
)
def test_invalid_hierarchies_are_rejected(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(sm.errors.SchemaError, match=words):
        sm.data.Hierarchy.read(str(path))


def test_invalid_intervals_are_rejected() -> None:
    with pytest.raises(sm.errors.SchemaError, match="widths above 0"):
        sm.data.Hierarchy.intervals([1, 2], widths=[0])


# ---- top coding and rounding ----------------------------------------------------------------------------------
def test_top_coding_with_mean_preserves_totals() -> None:
    x = np.random.default_rng(0).lognormal(8, 1, 1000)
    data = sm.read(pl.DataFrame({"x": x}), numeric="all")
    masked = sm.mask(data, sm.TopCode(on="x", top_share=0.05, bottom_share=0.1, replaced_by="mean"), seed=1)["x"]
    assert masked.sum() == pytest.approx(x.sum())
    assert (masked != x).sum() == 150
    bound = sm.mask(data, sm.TopCode(on="x", top_share=0.05), seed=1)["x"]
    assert bound.max() == np.quantile(x, 0.95)
    middle = sm.mask(data, sm.TopCode(on="x", top_share=0.05, replaced_by="median"), seed=1)["x"]
    assert middle.max() == np.median(np.sort(x)[-50:])


def test_replacement_value_is_not_coded_again() -> None:
    data = sm.read(pl.DataFrame({"x": [1.0, 5.0, 9.0]}), numeric="all")
    assert sm.mask(data, sm.TopCode(on="x", top=8, bottom=2, replaced_by=0), seed=1)["x"].tolist() == [0, 5, 0]


def test_numeric_categories_are_coded_and_stay_ordinal(ages: sm.Microdata) -> None:
    """The variable stays ordinal, with whole numbers as categories."""
    masked = sm.mask(ages, sm.TopCode(on="age", top=65), seed=1)
    assert masked["age"][:-1].tolist() == [1, 9, 10, 19, 20, 65, 65, 65] and masked.missing("age")[-1]
    assert masked.schema["age"].kind == "ordinal" and masked.column("age").levels.dtype == pl.Int64  # type: ignore[union-attr]
    rounded = sm.mask(ages, sm.methods.Round(on="age", base=10), seed=1)
    assert rounded["age"][:-1].tolist() == [0, 10, 10, 20, 20, 70, 70, 100]
    half = sm.mask(ages, sm.methods.Round(on="age", base=2.5), seed=1)
    assert half["age"][1] == 10 and half["age"][3] == 20 and half["age"][0] == 0


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.floats(0.1, 1e4), st.booleans())
def test_rounding_gives_nearest_multiples(values: list[float], base: float, unbiased: bool) -> None:
    data = sm.read(pl.DataFrame({"x": values}), numeric="all")
    result = sm.mask(data, sm.methods.Round(on="x", base=base, unbiased=unbiased), seed=1)["x"]
    steps = result / base
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-6)
    assert (np.abs(result - np.array(values)) <= base * (1 if unbiased else 0.5) * (1 + 1e-9) + 1e-9).all()


def test_random_rounding_is_unbiased() -> None:
    """x = 37 becomes 40 with probability 0.7 for base 10: 100,000 draws, within 5 standard errors."""
    draws = round_at_random(np.full(100_000, 37.0), 10, np.random.default_rng(1).random(100_000))
    assert set(draws.tolist()) == {30.0, 40.0}
    assert abs(draws.mean() - 37) < 5 * 10 * np.sqrt(0.7 * 0.3 / 100_000)
    assert (sm.methods.Round(on="x", base=1).random, sm.methods.Round(on="x", base=1, unbiased=True).random) == (
        False,
        True,
    )


def test_interval_of_equals_plain_search() -> None:
    x, breaks = np.array([1.0, 2.0, 2.5, 3.0]), np.array([2.0, 3.0])
    assert interval_of(x, breaks, "right").tolist() == [0, 0, 1, 1]
    assert interval_of(x, breaks, "left").tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize(
    "method",
    [
        sm.Recode(on=["wage", "interest"], bins=4, by="quantiles"),
        sm.Recode(on="wage", width=5000, within="Sex"),
        sm.Recode(on="wage", breaks=[10_000, 50_000], becomes="midpoint"),
        sm.Recode(on="Educ", merge=[["HS", "Coll"]], labels="middle", within="Race"),
        sm.Recode(on=["Educ", "Race"], prefix=1),
        sm.TopCode(on=["wage", "interest"], top_share=0.1, replaced_by="mean", within="Sex"),
        sm.TopCode(on="wage", bottom=1000, replaced_by=0),
        sm.methods.Round(on="wage", base=500, within="Sex"),
        sm.methods.Round(on=["wage", "interest"], base=500, unbiased=True),
    ],
    ids=lambda method: method.text,
)
def test_methods_obey_the_laws(method: sm.Method, persons: sm.Microdata) -> None:
    check_method(method, persons)


# ---- invalid input ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("cls", "fields", "words"),
    [
        (sm.Recode, {}, "needs one of breaks, bins, width, merge, rare, prefix, hierarchy. Got none."),
        (sm.Recode, {"bins": 3, "width": 2}, "Got bins and width."),
        (sm.Recode, {"bins": 1}, r"Recode.bins must be in \[2, inf\). Got 1."),
        (sm.Recode, {"width": 0}, r"Recode.width must be in \(0, inf\). Got 0."),
        (sm.Recode, {"breaks": [2, 1]}, ".breaks must be increasing."),
        (sm.Recode, {"breaks": [1, 2], "labels": ["a"]}, "must contain 3 names, one for each interval or list. Got 1."),
        (
            sm.Recode,
            {"rare": 0.1, "bins": 3},
            "needs one of breaks, bins, width, merge, rare, prefix, hierarchy. Got bins",
        ),
        (sm.Recode, {"rare": 1.0}, r"Recode.rare must be in \(0, 1\)"),
        (sm.Recode, {"rare": 0.1, "labels": ["a", "b"]}, ".labels must contain 1 name"),
        (sm.Recode, {"merge": [["a"], ["a", "b"]]}, ".merge must name each category once."),
        (sm.Recode, {"prefix": 2, "becomes": "mean"}, "needs breaks, bins or width"),
        (sm.Recode, {"hierarchy": "nowhere.csv"}, "there is no file nowhere.csv to read"),
        (sm.Recode, {"bins": 2, "sha256": "0" * 16}, ".sha256 is stated, but no file"),
        (sm.TopCode, {}, "needs a top, a bottom, or the share of values to code"),
        (sm.TopCode, {"top": 1, "top_share": 0.1}, "needs top or top_share, not both"),
        (sm.TopCode, {"top_share": 1}, r"TopCode.top_share must be in \(0, 1\). Got 1."),
        (sm.TopCode, {"top": 1, "bottom": 2}, ".bottom must be below .top."),
        (sm.TopCode, {"top_share": 0.6, "bottom_share": 0.5}, "must sum to less than 1"),
        (sm.TopCode, {"top": 1, "replaced_by": "mode"}, "replaced_by must be a number"),
        (sm.methods.Round, {"base": 0}, r"Round.base must be in \(0, inf\). Got 0."),
        (sm.methods.Round, {"base": 5, "on": []}, ".on must name at least one variable."),
    ],
)
def test_invalid_parameters_are_rejected(cls: Any, fields: dict[str, Any], words: str) -> None:
    with pytest.raises(sm.errors.PlanError, match=words):
        cls(**({"on": "x"} | fields))


def test_incompatible_data_are_rejected(persons: sm.Microdata, ages: sm.Microdata) -> None:
    for method, error, words in [
        (sm.Recode(on="Sex", bins=2), sm.errors.SchemaError, "needs numbers; 'Sex' is nominal"),
        (sm.Recode(on="wage", prefix=1), sm.errors.SchemaError, "needs categories; 'wage' is numeric"),
        (sm.Recode(on="interest", bins=3, by="log width"), sm.errors.Infeasible, "has values of 0 or below"),
        (sm.Recode(on="wage", width=0.001), sm.errors.Infeasible, "more than 10,000 intervals"),
        (
            sm.TopCode(on="Sex", top=1),
            sm.errors.SchemaError,
            "TopCode masks numeric and ordinal variables; 'Sex' is nominal",
        ),
        (sm.methods.Round(on="Educ", base=1), sm.errors.SchemaError, "the categories of 'Educ' are not numbers"),
    ]:
        with pytest.raises(error, match=words):
            sm.mask(persons, method, seed=1)
    with pytest.raises(sm.errors.SchemaError, match="needs a numeric variable; 'age' is ordinal"):
        recoded(ages, "age", bins=2, becomes="mean")
    empty = sm.read(pl.DataFrame({"x": pl.Series([None, None], dtype=pl.Float64)}), numeric="all")
    with pytest.raises(sm.errors.Infeasible, match="has only missing values"):
        recoded(empty, "x", bins=2)
