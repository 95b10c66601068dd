"""PRAM and randomized response: matrices have the stated properties, and corrected tables are unbiased."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import sdcmap as sm
from sdcmap.core.likelihood import block
from sdcmap.methods._transition_matrix import (
    invariant_matrix,
    invert_transitions,
    randomize_codes,
    response_matrix,
)
from sdcmap.testing import check_method


@pytest.fixture(scope="module")
def persons() -> sm.Microdata:
    return sm.demo.population(2000, seed=2)


@st.composite
def matrices(draw: st.DrawFn) -> Any:
    """Draw transition matrices with impossible transitions."""
    size = draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    result = rng.random((size, size)) * (rng.random((size, size)) < 0.6)
    result[np.arange(size), rng.integers(0, size, size)] += 0.1
    return result / result.sum(axis=1, keepdims=True)


# ---- kernels --------------------------------------------------------------------------------------------------
@given(st.lists(st.integers(0, 500), min_size=1, max_size=8), st.floats(0, 1), st.floats(0, 1))
def test_invariant_matrix_preserves_counts_and_diagonal(counts: list[int], stay: float, alpha: float) -> None:
    """Unlike sdcMicro (issues 76, 264 and 347), the diagonal is at least pd; empty categories are never drawn."""
    p = np.array(counts, dtype=float)
    result = invariant_matrix(p, stay, alpha)
    np.testing.assert_allclose(result.sum(axis=1), 1)
    assert (result >= 0).all()
    np.testing.assert_allclose(p @ result, p, atol=1e-9 * max(1, p.sum()))
    assert np.diag(result).min() >= stay - 1e-12
    assert not result[:, p == 0][p > 0].any()


def test_invariant_matrix_equals_formula() -> None:
    """R = a P Q + (1 - a) I with Q by Bayes, entry by entry."""
    p, stay, alpha = np.array([0.5, 0.3, 0.2]), 0.6, 0.5
    first = np.array([[stay if i == j else (1 - stay) / 2 for j in range(3)] for i in range(3)])
    back = np.array(
        [[first[j, k] * p[j] / sum(first[i, k] * p[i] for i in range(3)) for j in range(3)] for k in range(3)]
    )
    plain = alpha * first @ back + (1 - alpha) * np.eye(3)
    assert np.diag(plain).min() > stay  # so alpha is not reduced here
    np.testing.assert_allclose(invariant_matrix(p, stay, alpha), plain)


@given(matrices(), st.integers(0, 1000))
def test_impossible_transitions_never_happen(matrix: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, len(matrix), 3000).astype(np.uint8)
    chance = rng.random(3000)
    chance[:100] = np.nextafter(1.0, 0.0)  # the largest number below 1
    released = randomize_codes(codes, matrix, chance)
    assert (matrix[codes, released] > 0).all()
    assert released.dtype == codes.dtype


def test_transition_frequencies_match_probabilities() -> None:
    """200,000 draws of each category, within 5 standard errors."""
    matrix = np.array([[0.7, 0.3, 0.0], [0.25, 0.25, 0.5], [0.0, 1.0, 0.0]])
    codes = np.repeat(np.arange(3), 200_000)
    released = randomize_codes(codes, matrix, np.random.default_rng(1).random(len(codes)))
    for a in range(3):
        shares = np.bincount(released[codes == a], minlength=3) / 200_000
        assert (np.abs(shares - matrix[a]) <= 5 * np.sqrt(matrix[a] * (1 - matrix[a]) / 200_000)).all()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 1000.0])
@pytest.mark.parametrize("categories", [1, 2, 7])
def test_randomized_response_satisfies_epsilon(epsilon: float, categories: int) -> None:
    matrix = response_matrix(categories, epsilon)
    np.testing.assert_allclose(matrix.sum(axis=1), 1)
    if categories > 1 and epsilon < 100:
        assert np.log(matrix.max() / matrix.min()) == pytest.approx(epsilon)


@given(matrices(), matrices())
@example(np.array([[0.0, 1.0], [1.0, 0.0]]), np.eye(3))  # the mean of it and the identity is singular
@example(np.eye(3), np.array([[0.0, 1.0], [1.0, 0.0]]))
def test_correcting_the_expected_table_gives_the_original(rows: Any, columns: Any) -> None:
    rows, columns = rows * 0.5 + np.eye(len(rows)) * 0.5, columns * 0.5 + np.eye(len(columns)) * 0.5
    original = np.arange(1.0, 1 + len(rows) * len(columns)).reshape(len(rows), len(columns))
    for released, masks in ((rows.T @ original @ columns, [rows, columns]), (rows.T @ original, [rows, None])):
        condition = np.prod([np.linalg.cond(matrix) for matrix in masks if matrix is not None])
        estimate = invert_transitions(released, masks)
        if estimate is None:
            assert condition > 1e10
        else:
            np.testing.assert_allclose(estimate, original, rtol=0, atol=1e-13 * condition * original.max())


# ---- methods --------------------------------------------------------------------------------------------------
def test_corrected_tables_are_unbiased(persons: sm.Microdata) -> None:
    """A two-way table of a masked and an unmasked variable: 200 seeds, within 5 standard errors of the original."""
    method = sm.methods.RandomizedResponse(on="Educ", epsilon=1.5)
    names = ("Educ", "Sex")
    truth = method.correct_table(persons, names)["released"].to_numpy()
    result = [method.correct_table(sm.mask(persons, method, seed=s), names)["corrected"].to_numpy() for s in range(200)]
    error = np.std(result, axis=0, ddof=1) / np.sqrt(len(result))
    assert (np.abs(np.mean(result, axis=0) - truth) < 5 * error).all()
    raw = method.correct_table(sm.mask(persons, method, seed=1), names)["released"].to_numpy()
    assert np.abs(raw - truth).max() > 5 * error.max()  # the uncorrected table is biased


def test_strata_are_corrected_separately(persons: sm.Microdata) -> None:
    method = sm.PRAM(on="Educ", stay=0.5, alpha=1.0, within="Sex")
    names = ("Educ", "Sex")
    truth = method.correct_table(persons, names)["released"].to_numpy()
    result = [method.correct_table(sm.mask(persons, method, seed=s), names)["corrected"].to_numpy() for s in range(100)]
    error = np.std(result, axis=0, ddof=1) / np.sqrt(len(result))
    assert (np.abs(np.mean(result, axis=0) - truth) < 5 * error).all()
    weighted = method.correct_table(persons, "Sex", weighted=True)
    assert weighted["corrected"].sum() == pytest.approx(persons.weights.sum())


@pytest.mark.parametrize("within", [(), ("Sex",)])
def test_likelihood_is_the_transition_matrix(persons: sm.Microdata, within: tuple[str, ...]) -> None:
    """The likelihood is log P(released j | known i), and the true record is never impossible."""
    method = sm.PRAM(on=["Educ", "MarStat"], within=within)
    small = persons.take(np.arange(200))
    small = sm.Microdata(small.schema, small.columns)
    released = sm.mask(small, method, seed=1)
    result = block(method.log_likelihood(small, released), slice(None))
    assert np.isfinite(np.diag(result)).all()
    if within:
        other = small["Sex"][:, np.newaxis] != small["Sex"]
        assert (result[other] == -np.inf).all()
        return
    both = [np.concatenate([small.codes(n), released.codes(n)]) for n in method.on]
    matrices = [
        invariant_matrix(np.bincount(code, minlength=small.level_count(n)), 0.8, 0.5)
        for n, code in zip(method.on, both, strict=True)
    ]
    with np.errstate(divide="ignore"):
        plain = sum(np.log(m)[small.codes(n)][:, released.codes(n)] for n, m in zip(method.on, matrices, strict=True))
    np.testing.assert_allclose(result, plain)


def test_missing_values_are_kept_or_a_category(persons: sm.Microdata) -> None:
    """PRAM keeps missing values; for randomized response, missing is a category like any other."""
    frame = pl.DataFrame({"x": ["a", "b", None, "a"] * 500})
    data = sm.read(frame, keys="all")
    kept = sm.mask(data, sm.PRAM(on="x", stay=0.5, alpha=1), seed=1)
    assert (kept.missing("x") == data.missing("x")).all()
    mixed = sm.mask(data, sm.methods.RandomizedResponse(on="x", epsilon=0.5), seed=1)
    assert (mixed.missing("x") & ~data.missing("x")).any() and (~mixed.missing("x") & data.missing("x")).any()


def test_matrix_from_file(tmp_path: Path) -> None:
    data = sm.read(pl.DataFrame({"x": ["a", "b", "c"] * 100}), keys="all")
    path = tmp_path / "matrix.csv"
    path.write_text("from,b,a,c\nb,0,1,0\na,0,1,0\nc,0,0,1\n")
    method = sm.PRAM(on="x", matrix=str(path))
    assert sm.mask(data, method, seed=1)["x"].tolist() == ["a", "a", "c"] * 100
    assert method.sha256 in method.text
    check_method(method, data)
    path.write_text("from,b,a,c\nb,0,1,0\na,0,1,0\nc,1,0,0\n")
    with pytest.raises(sm.errors.SchemaError, match="is not the file that was named"):
        sm.mask(data, method, seed=1)
    for text, words in (
        ("from,a,b\na,1,0\nb,0,1\n", "lacks 1 of the 3 categories of 'x'"),
        (
            "from,a,b,c,d\na,.5,0,0,.5\nb,0,1,0,0\nc,0,0,1,0\nd,0,0,0,1\n",
            "has transitions to categories that 'x' does not have",
        ),
        ("from,a,b,c\na,1,0,0\nb,0,.5,.4\nc,0,0,1\n", "rows that sum to 1; row 2 sums to 0.9"),
        ("from,a,b,c\na,1,0,0\nc,0,1,0\nb,0,0,1\n", "must list the same categories, in the same order"),
        ("from,a,b,c\na,1,0,zero\n", "cannot be read as a matrix"),
    ):
        path.write_text(text)
        with pytest.raises(sm.errors.SchemaError, match=words):
            sm.mask(data, sm.PRAM(on="x", matrix=str(path)), seed=1)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"stay": 1.2}, r"PRAM.stay must be in \[0, 1\]. Got 1.2."),
        ({"alpha": -0.1}, r"PRAM.alpha must be in \[0, 1\]. Got -0.1."),
        ({"on": []}, ".on must name at least one variable."),
        ({"matrix": [[0.5, 0.4], [0, 1]]}, "rows that sum to 1; row 1 sums to 0.9"),
        ({"matrix": [[1.5, -0.5], [0, 1]]}, r"must contain probabilities in \[0, 1\]"),
        ({"matrix": [[1, 0]]}, "as many columns as rows"),
        ({"matrix": [[1, 0], [1]]}, "as many columns as rows"),
        ({"matrix": "nowhere.csv"}, "there is no file nowhere.csv to read"),
        ({"sha256": "0" * 16}, ".sha256 is stated, but no file"),
        ({"matrix": "m.csv", "sha256": "xyz"}, "first 16 hexadecimal digits"),
    ],
)
def test_invalid_parameters_are_rejected(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(sm.errors.PlanError, match=words):
        sm.PRAM(**({"on": "x"} | fields))


def test_incompatible_data_are_rejected(persons: sm.Microdata) -> None:
    with pytest.raises(sm.errors.PlanError, match=r"RandomizedResponse.epsilon must be in \(0, inf\). Got 0."):
        sm.methods.RandomizedResponse(on="x", epsilon=0)
    with pytest.raises(sm.errors.SchemaError, match="the matrix has 2 rows, but 'Educ' has 5 categories"):
        sm.mask(persons, sm.PRAM(on="Educ", matrix=[[1, 0], [0, 1]]), seed=1)
    with pytest.raises(sm.errors.SchemaError, match="PRAM masks ordinal and nominal variables; 'wage' is numeric"):
        sm.mask(persons, sm.PRAM(on="wage"), seed=1)
    singular = sm.PRAM(on="Sex", matrix=[[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(sm.errors.Undefined, match="is singular"):
        singular.correct_table(sm.mask(persons, singular, seed=1), "Sex")
    with pytest.raises(sm.errors.SchemaError, match="names of categorical variables"):
        singular.correct_table(persons, "wage")
