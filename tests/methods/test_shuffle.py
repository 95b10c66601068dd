"""Shuffling: values are preserved, ranks follow the predictors, and no other information is left."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.core.streams import Stream
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.methods.shuffle import draw_given, map_by_quantile, map_by_rank, normal_scores
from sdcmap.testing import check_method

SEEDS = range(20)
RNG = np.random.default_rng(0)


def people(n: int = 2000, missing_share: float = 0.0) -> Microdata:
    """Return two incomes that depend on schooling and sex, and on each other."""
    rng = np.random.default_rng(5)
    school, sex = rng.integers(0, 12, n), rng.integers(0, 2, n)
    common = rng.standard_normal(n)
    wage = np.exp(0.25 * school + 0.5 * sex + common + 0.5 * rng.standard_normal(n))
    rent = np.round(10 * (0.1 * school + common + rng.standard_normal(n)))
    frame = pl.DataFrame({"wage": wage, "rent": rent, "school": school, "sex": sex.astype(str), "weight": 1.0 + sex})
    for name in ("wage", "rent", "school", "sex") if missing_share else ():
        frame = frame.with_columns(pl.when(pl.Series(rng.random(n) >= missing_share)).then(pl.col(name)).alias(name))
    return sm.read(frame, keys=["school", "sex"], numeric=["wage", "rent"], weight="weight")


def shuffled(method: sm.methods.Shuffle, data: Microdata) -> list[Microdata]:
    return [method.apply(data, Stream.of_seed(seed)) for seed in SEEDS]


def rank_correlation(x: Array, y: Array) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(x, y).statistic)


@pytest.mark.parametrize("missing_share", [0.0, 0.2])
def test_shuffle_preserves_values(missing_share: float) -> None:
    data = people(missing_share=missing_share)
    masked = sm.methods.Shuffle(["wage", "rent"], given=["school", "sex"]).apply(data, Stream.of_seed(1))
    for name in ("wage", "rent"):
        assert np.array_equal(np.sort(masked.numbers(name)), np.sort(data.numbers(name)), equal_nan=True)
        assert np.array_equal(masked.missing(name), data.missing(name))
        known = ~data.missing(name)
        assert (masked.numbers(name)[known] != data.numbers(name)[known]).mean() > 0.9


def test_shuffle_preserves_rank_correlations() -> None:
    """The mean of 20 seeds is within 4 standard errors plus 0.02, the error of normal scores of 12 classes."""
    data = people()
    files = shuffled(sm.methods.Shuffle(["wage", "rent"], given=["school", "sex"]), data)
    pairs = [("wage", "rent"), ("wage", "school"), ("rent", "school"), ("wage", "sex")]
    for first, second in pairs:
        x = [data.column(name).values.astype(float) for name in (first, second)]
        result = [rank_correlation(f.column(first).values, f.column(second).values.astype(float)) for f in files]
        band = 4 * np.std(result, ddof=1) / np.sqrt(len(result)) + 0.02
        assert abs(np.mean(result) - rank_correlation(*x)) < band, (first, second)
        assert rank_correlation(*x) > 0.1 + band


def test_shuffled_values_are_independent_of_originals_given_predictors() -> None:
    """Residuals of shuffled and original scores are uncorrelated: 20 seeds, 4 standard errors."""
    data = people()
    method = sm.methods.Shuffle("wage", given=["school", "sex"])
    z = np.column_stack([np.ones(len(data)), normal_scores(data.codes("school")), data.codes("sex")])

    def residual(file: Microdata) -> Array:
        y = normal_scores(file.numbers("wage"))
        rest: Array = y - z @ np.linalg.lstsq(z, y)[0]
        return rest

    result = [np.corrcoef(residual(data), residual(masked))[0, 1] for masked in shuffled(method, data)]
    assert abs(np.mean(result)) < 4 / np.sqrt(len(data) * len(result))


def test_without_predictors_correlations_among_shuffled_are_preserved() -> None:
    data = people()
    files = shuffled(sm.methods.Shuffle(["wage", "rent"]), data)
    together = [rank_correlation(f.numbers("wage"), f.numbers("rent")) for f in files]
    apart = [rank_correlation(f.numbers("wage"), data.codes("school")) for f in files]
    truth = rank_correlation(data.numbers("wage"), data.numbers("rent"))
    assert np.mean(together) == pytest.approx(truth, abs=0.03)
    assert abs(np.mean(apart)) < 4 / np.sqrt(len(data) * len(apart))


def test_missing_predictor_has_its_own_indicator() -> None:
    """Records without a school have different wages, and this is preserved."""
    rng = np.random.default_rng(1)
    school = [
        None if silent else int(years)
        for silent, years in zip(rng.random(900) < 0.3, rng.integers(0, 9, 900), strict=True)
    ]
    wage = np.array([100.0 if years is None else float(years) for years in school]) + rng.standard_normal(900)
    data = sm.read(pl.DataFrame({"wage": wage, "school": school}), keys=["school"], numeric=["wage"])
    masked = sm.methods.Shuffle("wage", given="school").apply(data, Stream.of_seed(1))
    silent = data.missing("school")
    assert masked.numbers("wage")[silent].mean() > 80
    assert masked.numbers("wage")[~silent].mean() < 20


# ---- the kernel -----------------------------------------------------------------------------------------------
def test_normal_scores() -> None:
    """E(Z | interval) by integration, and approximately Phi^-1 of the rank for values that occur once."""
    from scipy.integrate import quad
    from scipy.stats import norm

    x = np.array([1.0, 1, 2, 5, 5, 5, 9, np.nan])
    for value, low, high in ((1, 0, 2 / 8), (2, 2 / 8, 3 / 8), (5, 3 / 8, 6 / 8), (np.nan, 7 / 8, 1)):
        ends = norm.ppf(low), norm.ppf(high)
        mean = quad(lambda z: z * norm.pdf(z), *ends)[0] / (high - low)
        assert normal_scores(x)[np.isnan(x) if np.isnan(value) else x == value] == pytest.approx(mean)
    many = np.arange(500.0)
    assert normal_scores(many)[5:-5] == pytest.approx(norm.ppf((many[5:-5] + 0.5) / 500), abs=0.002)


def test_map_scores_to_values() -> None:
    x = np.array([30.0, 10, 20])
    assert map_by_rank(x, np.array([0.5, 3.0, -1.0])).tolist() == [20, 30, 10]
    assert map_by_quantile(x, np.array([-9.0, -0.1, 0.1, 0.5, 9.0])).tolist() == [10, 20, 20, 30, 30]


@pytest.mark.parametrize("cuts", [(), (0.5,), (0.2, 0.9)], ids=["continuous", "two values", "three values"])
def test_draws_have_the_latent_correlations(cuts: tuple[float, ...]) -> None:
    """Two normal variables that go together .7 and with a predictor .6 and .8, one of them seen in few values: the draws
    have these correlations whatever is seen. n = 40,000, 5 standard errors."""
    from scipy.stats import norm

    rng = np.random.default_rng(2)
    truth = np.array([[1, 0.7, 0.6], [0.7, 1, 0.8], [0.6, 0.8, 1]])
    z = rng.standard_normal((40_000, 3)) @ np.linalg.cholesky(truth).T
    seen = z[:, 0] if not cuts else np.searchsorted(norm.ppf(cuts), z[:, 0]).astype(float)
    scores = np.column_stack([normal_scores(seen), normal_scores(z[:, 1])])
    drawn = draw_given(scores, z[:, 2:], rng)
    result = np.corrcoef(np.column_stack([drawn, z[:, 2]]).T)
    assert result == pytest.approx(truth, abs=5 / np.sqrt(40_000))
    assert drawn.mean(axis=0) == pytest.approx(0, abs=5 / np.sqrt(40_000))
    assert drawn.std(axis=0) == pytest.approx(1, abs=5 / np.sqrt(80_000))


def test_values_determined_by_predictors_are_preserved() -> None:
    """Two values, determined by a column of 0 and 1."""
    binary = np.random.default_rng(1).integers(0, 2, 500)
    drawn = draw_given(normal_scores(binary)[:, np.newaxis], binary[:, np.newaxis], RNG)
    assert np.array_equal(map_by_quantile(binary, drawn[:, 0]), binary)


# ---- invalid input ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"on": ()}, "must name at least one variable"),
        ({"on": ("wage", "wage")}, "each variable once"),
        ({"on": "wage", "given": ("wage",)}, "must not name a shuffled variable: wage"),
    ],
)
def test_invalid_parameters_are_rejected(given: dict[str, object], problem: str) -> None:
    with pytest.raises(sm.errors.PlanError, match=problem):
        sm.methods.Shuffle(**given)  # type: ignore[arg-type]


def test_incompatible_data_are_rejected() -> None:
    data = people(300)
    with pytest.raises(sm.errors.SchemaError, match="no column 'schol'. Did you mean 'school'"):
        sm.methods.Shuffle("wage", given="schol").apply(data, Stream.of_seed(1))
    with pytest.raises(sm.errors.SchemaError, match="masks numeric variables; 'sex' is nominal"):
        sm.methods.Shuffle("sex").apply(data, Stream.of_seed(1))
    many = data.frame().with_columns(town=pl.Series([str(i) for i in range(300)]))
    with pytest.raises(sm.errors.SchemaError, match="'town' has 300 categories, more than 200"):
        sm.methods.Shuffle("wage", given="town").apply(sm.read(many, keys=["town"]), Stream.of_seed(1))


@pytest.mark.parametrize("column", [[1.0], [1.0, None], [None, None]])
def test_too_few_values_are_infeasible(column: list[float | None]) -> None:
    data = sm.read(pl.DataFrame({"wage": pl.Series(column, dtype=pl.Float64)}), numeric="all")
    with pytest.raises(sm.errors.Infeasible, match="needs at least 2 values of each variable"):
        sm.methods.Shuffle("wage").apply(data, Stream.of_seed(1))


def test_constant_columns_do_not_change() -> None:
    data = sm.read(pl.DataFrame({"wage": [3.0] * 9, "sex": ["a"] * 9}), numeric=["wage"], keys=["sex"])
    masked = sm.methods.Shuffle("wage", given="sex").apply(data, Stream.of_seed(1))
    assert masked.numbers("wage").tolist() == [3.0] * 9


@pytest.mark.parametrize("missing_share", [0.0, 0.2])
def test_laws(missing_share: float) -> None:
    check_method(sm.methods.Shuffle(["wage", "rent"], given=["school", "sex"]), people(80, missing_share))
    check_method(sm.methods.Shuffle("wage", given="school", within="sex"), people(80, missing_share))
