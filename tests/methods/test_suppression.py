"""Local suppression: the rule holds by an independent count, values are only blanked, and every option works."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sdcmap as sm
from sdcmap.data.cells import cells, distinct_cells
from sdcmap.kernels.tables.frequency_risks import individual_risk
from sdcmap.kernels.tables.wildcards import wildcard_sums
from sdcmap.methods._suppression import Rule, matching_sums, suppress
from sdcmap.testing import check_method

KEYS = ("a", "b", "c", "d")


@st.composite
def files(draw: st.DrawFn) -> sm.Microdata:
    """Draw small files with four keys, missing values, a stratum, a number and a weight."""
    n = draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    missing_share = draw(st.sampled_from([0.0, 0.1, 0.4]))
    frame = pl.DataFrame(
        {name: rng.integers(0, draw(st.integers(1, 4)), n).astype(str) for name in KEYS}
        | {"size": rng.integers(0, 3, n).astype(float), "stratum": rng.integers(0, 2, n).astype(str)}
        | {"weight": rng.integers(1, 9, n).astype(float)}
    )
    for name in (*KEYS, "size"):
        frame = frame.with_columns(pl.when(pl.Series(rng.random(n) >= missing_share)).then(pl.col(name)).alias(name))
    return sm.read(frame, keys=KEYS, numeric="size", weight="weight")


def plain_matches(data: sm.Microdata, names: tuple[str, ...], alpha: float = 1.0) -> tuple[Any, Any]:
    """Return the number and weight of the records that match each record, pair by pair, by definition."""
    codes = np.column_stack([np.where(data.missing(name), -1, data.codes(name).astype(int)) for name in names])
    mine, theirs = codes[:, np.newaxis], codes[np.newaxis]
    match = ((mine == theirs) | (mine < 0) | (theirs < 0)).all(axis=2)
    share = np.where(((theirs < 0) & (mine >= 0)).any(axis=2), alpha, 1.0) * match
    return share.sum(axis=1), share @ data.weights


def plain_counts(data: sm.Microdata, names: tuple[str, ...]) -> Any:
    """Return the number of records that match each record if missing is a category."""
    rows = [tuple(row) for row in data.frame().select(names).rows()]
    return np.array([rows.count(row) for row in rows])


@given(files(), st.sampled_from([0.0, 0.3, 1.0]))
def test_wildcard_sums_equal_definition(data: sm.Microdata, alpha: float) -> None:
    distinct = data.view(distinct_cells, KEYS)
    sums = np.column_stack([distinct.count, np.bincount(distinct.code, data.weights)])
    result = wildcard_sums(distinct.codes, sums, alpha)[distinct.code]
    records, weights = plain_matches(data, KEYS, alpha)
    np.testing.assert_allclose(result[:, 0], records)
    np.testing.assert_allclose(result[:, 1], weights)


@given(files(), st.integers(2, 5), st.sampled_from([None, 1, 2, 3]), st.sampled_from([1.0, 0.4, 0.0]), st.booleans())
def test_k_holds_by_an_independent_count(
    data: sm.Microdata, k: int, up_to: int | None, alpha: float, a_category: bool
) -> None:
    """The result is infeasible only if the rule cannot hold: with fewer than k records."""
    missing_is = "a category" if a_category else "any value"
    method = sm.Suppress(k=k, up_to=up_to, alpha=alpha, missing_is=missing_is)  # type: ignore[arg-type]
    try:
        masked = sm.mask(data, method, seed=1)
    except sm.errors.Infeasible:
        assert len(data) < k or (a_category and up_to is not None)
        return
    for chosen in combinations(KEYS, up_to or len(KEYS)):
        counts = plain_counts(masked, chosen) if a_category else plain_matches(masked, chosen, alpha)[0]
        assert counts.min() >= k
    for name in KEYS:  # values are only blanked
        kept = ~masked.missing(name)
        assert (masked[name][kept] == data[name][kept]).all()


@given(files(), st.sampled_from([0.1, 0.3]))
def test_no_risk_exceeds_the_limit(data: sm.Microdata, risk: float) -> None:
    try:
        masked = sm.mask(data, sm.Suppress(risk=risk), seed=1)
    except sm.errors.Infeasible:
        assert individual_risk(len(data), data.weights.sum()) > risk
        return
    result = [individual_risk(f, total) for f, total in zip(*plain_matches(masked, KEYS), strict=True)]
    assert max(result) <= risk + 1e-12


@given(files())
def test_rule_holds_within_each_stratum(data: sm.Microdata) -> None:
    method = sm.Suppress(on=["a", "b", "c"], k=2, within="stratum")
    try:
        masked = sm.mask(data, method, seed=1)
    except sm.errors.Infeasible as reason:
        assert "strata" in str(reason)
        return
    for stratum in np.unique(data["stratum"]):
        part = masked.take(np.flatnonzero(data["stratum"] == stratum))
        assert plain_matches(part, ("a", "b", "c"))[0].min() >= 2


@given(files())
def test_numbers_can_be_keys(data: sm.Microdata) -> None:
    try:
        masked = sm.mask(data, sm.Suppress(on=["a", "size"], k=2), seed=1)
    except sm.errors.Infeasible:
        assert len(data) < 2
        return
    assert plain_matches(masked, ("a", "size"))[0].min() >= 2
    assert masked.schema["size"].kind == "numeric"


@pytest.mark.parametrize(
    "method",
    [
        sm.Suppress(k=2),
        sm.Suppress(on=["a", "size"], k=3, linked=[["a", "stratum"]]),
        sm.Suppress(k=2, missing_is="a category", within="stratum"),
        sm.Suppress(risk=0.3, blank=["a", "b"], unmet="leave"),
        sm.Suppress(k=4, up_to=2, alpha=0.5),
    ],
    ids=lambda method: method.text,
)
@given(data=files())
def test_suppression_obeys_the_laws(method: sm.Suppress, data: sm.Microdata) -> None:
    check_method(method, data, may_refuse=True)


# ---- options --------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def persons() -> sm.Microdata:
    return sm.demo.population(3000, seed=5)


def lost(data: sm.Microdata, method: sm.Method) -> dict[str, int]:
    masked = sm.mask(data, method, seed=1)
    counts = {name: int(masked.missing(name).sum()) for name in data.names}
    return {name: count for name, count in counts.items() if count}


def test_important_variables_are_blanked_last(persons: sm.Microdata) -> None:
    plain = lost(persons, sm.Suppress(k=3))
    for name in sorted(plain, key=lambda name: -plain[name])[:2]:
        assert lost(persons, sm.Suppress(k=3, importance=name)).get(name, 0) < plain[name]


def test_only_listed_variables_are_blanked(persons: sm.Microdata) -> None:
    assert set(lost(persons, sm.Suppress(k=2, blank=["Educ", "WrkTyp", "Age", "Hours", "MarStat"]))) <= {
        "Educ", "WrkTyp", "Age", "Hours", "MarStat",
    }  # fmt: skip
    with pytest.raises(sm.errors.Infeasible, match=r"suppression cannot bring \d+ of 3000 records to k = 3"):
        sm.mask(persons, sm.Suppress(k=3, blank="Sex"), seed=1)


def test_linked_variables_are_blanked_together(persons: sm.Microdata) -> None:
    masked = sm.mask(persons, sm.Suppress(k=3, linked=[["Educ", "wage"], ["Age", "wage", "interest"]]), seed=1)
    assert (masked.missing("wage") == masked.missing("Educ") | masked.missing("Age")).all()
    assert (masked.missing("interest") == masked.missing("Age")).all()
    assert masked.missing("Educ").any()


def test_unmet_leave_blanks_everything_allowed(persons: sm.Microdata) -> None:
    masked = sm.mask(persons, sm.Suppress(k=3, blank="Sex", unmet="leave"), seed=1)
    counts = plain_matches(masked, persons.keys)[0]
    assert masked.missing("Sex")[counts < 3].all()
    assert (counts < 3).any()


def test_no_blank_where_another_protects_already() -> None:
    """Two unique records that differ in one variable: one blank protects both."""
    data = sm.read(pl.DataFrame({"a": ["x", "y"], "b": ["1", "1"]}), keys="all")
    assert sum(lost(data, sm.Suppress(k=2)).values()) == 1


def test_rule_holds_with_more_sets_than_are_tried() -> None:
    """With 24 keys only the cheapest of the larger sets are tried; the rule still holds."""
    rng = np.random.default_rng(0)
    data = sm.read(pl.DataFrame({f"k{j}": rng.integers(0, 3, 60).astype(str) for j in range(24)}), keys="all")
    assert plain_matches(sm.mask(data, sm.Suppress(k=3), seed=1), data.keys)[0].min() >= 3


def test_tables_too_large_for_cell_numbers() -> None:
    """More than 2^62 possible combinations."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 1000, (50, 9))
    codes[25:] = codes[:25]
    codes[25:, 0] = -1
    result, safe = suppress(codes, np.ones((50, 2)), range(9), Rule(2))
    assert safe.all() and not result.any()
    assert (matching_sums(codes, np.ones((50, 2)), Rule(2)) == 2).all()


def test_reasons_for_missing_count_as_one_category() -> None:
    frame = pl.DataFrame({"a": ["x", "x", None, None], "b": ["1", "2", "1", "2"]})
    data = sm.read(frame, keys="all")
    column = data.column("a")
    assert column.levels is not None
    split = type(column)(np.array([0, 0, 1, 2], dtype=np.uint8), column.levels.clone().extend_constant(None, 1))
    two = sm.Microdata(data.schema, {**data.columns, "a": split})
    distinct = two.view(distinct_cells, ("a",))
    assert distinct.count.sum() == 4 and len(distinct.count) == 2
    assert len(two.view(cells, ("a",)).count) == 3


# ---- invalid input ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"k": 1}, r"Suppress.k must be in \[2, inf\). Got 1."),
        ({"risk": 1.0}, r"Suppress.risk must be in \(0, 1\). Got 1."),
        ({"alpha": 1.5}, r"Suppress.alpha must be in \[0, 1\]. Got 1.5."),
        ({"up_to": 0}, r"Suppress.up_to must be in \[1, inf\). Got 0."),
        ({"missing_is": "zero"}, "must be one of 'any value', 'a category'"),
        ({"linked": [["a"]]}, ".linked must contain lists of a key and at least one variable"),
        ({"on": ["a"], "blank": ["b"]}, ".blank must only name variables of .on, which does not contain b."),
        ({"missing_is": "a category", "risk": 0.1}, ".risk can only be used with missing_is = 'any value'."),
        ({"on": [str(j) for j in range(61)]}, ".on must name at most 60 variables."),
    ],
)
def test_invalid_parameters_are_rejected(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(sm.errors.PlanError, match=words):
        sm.Suppress(**fields)


def test_incompatible_data_are_rejected() -> None:
    frame = pl.DataFrame({"a": ["x", "y", "z"], "w": [1.0, 0.0, None], "h": [1, 1, 2]})
    weighted = sm.read(frame, keys="a", household="h").with_roles(w="weight")
    with pytest.raises(
        sm.errors.SchemaError, match="needs positive weights; 'w' is missing, zero or negative in 2 records"
    ):
        sm.mask(weighted, sm.Suppress(risk=0.1), seed=1)
    with pytest.raises(sm.errors.Infeasible, match="suppression cannot bring 3 of 3 records to k = 4"):
        sm.mask(weighted, sm.Suppress(k=4), seed=1)
    with pytest.raises(sm.errors.SchemaError, match="no variables to protect"):
        sm.mask(sm.read(frame), sm.Suppress(k=2), seed=1)
    with pytest.raises(sm.errors.SchemaError, match=r"linked must begin with a key; 'h' is not one"):
        sm.mask(weighted, sm.Suppress(k=2, linked=[["h", "a"]]), seed=1)
    with pytest.raises(sm.errors.SchemaError, match="cannot mask 'h': it is the file's household"):
        sm.mask(weighted, sm.Suppress(on=["a", "h"], k=2), seed=1)
    with pytest.raises(sm.errors.SchemaError, match=r"no column 'aa'. Did you mean 'a'\?"):
        sm.mask(weighted, sm.Suppress(on="aa", k=2), seed=1)
