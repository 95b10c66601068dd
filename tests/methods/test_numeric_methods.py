"""Numeric methods: options checked by hand, likelihoods compared with formulas, and invalid input."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product

import numpy as np
import polars as pl
import pytest
from scipy import stats
from scipy.integrate import quad

import sdcmap as sm
from sdcmap.core.likelihood import Below, Field, Normal, Same, Window, block, join_parts
from sdcmap.core.method import Method
from sdcmap.core.streams import Stream
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Infeasible, PlanError, Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.masking.noise_covariance import (
    covariance_root,
    prepare_release_values,
    unmixing_matrix,
    whitening_matrix,
)
from sdcmap.methods._noise_likelihood import CensoredNormal, rounding_step
from sdcmap.methods.noise import Multiplied, cut_normal_factors, lognormal_factors
from sdcmap.methods.protect import own_is_nearest, random_exchange
from sdcmap.methods.rank_swap import rank_spans
from sdcmap.testing import check_method

ALL = slice(None)


def numbers(**columns: object) -> Microdata:
    return sm.read(pl.DataFrame(columns), numeric="all")


@pytest.fixture(scope="module")
def incomes() -> Microdata:
    """Return 400 records with zeros, ties, negative and missing values, and a region."""
    rng = np.random.default_rng(2)
    wage = np.round(rng.lognormal(3, 1, 400)) * (rng.random(400) > 0.3)
    tax = np.round(0.3 * wage + rng.normal(0, 5, 400), 1)
    rent = np.where(rng.random(400) < 0.1, np.nan, rng.normal(100, 20, 400))
    frame = pl.DataFrame({"wage": wage, "tax": tax, "rent": rent, "region": rng.choice(["n", "s"], 400)})
    return sm.read(frame.with_columns(pl.col("rent").fill_nan(None)), keys=["region"], numeric=["wage", "tax", "rent"])


NAMES = ("wage", "tax", "rent")


def apply(method: Method, data: Microdata, seed: int = 1) -> Microdata:
    return method.apply(data, Stream.of_seed(seed))


# ---- the options of additive noise --------------------------------------------------------------------------------
@pytest.mark.parametrize("cls", [sm.Noise, sm.methods.MixtureNoise])
def test_options_are_applied_in_documented_order(incomes: Microdata, cls: type[Method]) -> None:
    method = cls(on="wage", variance=0.5, rescale=True, keep_zeros=True, integers=True, lower=1.5, upper=60)
    x, z = incomes["wage"], apply(method, incomes)["wage"]
    assert np.array_equal(z, np.rint(z))
    assert (z[x == 0] == 0).all()
    assert z[x != 0].min() == 2  # the whole number inside the bound
    assert z.max() == 60


def test_rounding_and_bounds_by_hand() -> None:
    x, y = np.array([0.0, 1.0, 2.0, np.nan]), np.array([3.4, -2.0, 2.5, np.nan])
    np.testing.assert_array_equal(prepare_release_values(x, y, True, True, None, None), [0, -2, 2, np.nan])
    np.testing.assert_array_equal(prepare_release_values(x, y, False, False, -1, 3), [3, -1, 2.5, np.nan])
    np.testing.assert_array_equal(prepare_release_values(x, y, False, True, -1.5, None), [3, -1, 2, np.nan])


@pytest.mark.parametrize(
    "method",
    [
        sm.Noise(on=["x", "y"], variance=0.5, correlated=True, rescale=True),
        sm.methods.MixtureNoise(on=["x", "y"], variance=0.5, rescale=True),
        sm.methods.MixtureNoise(
            on=["x", "y"], variance=0.5, rescale=True, joint=True, components=3, shares=(0.2, 0.3, 0.5)
        ),
    ],
)
def test_rescaling_restores_the_covariance_in_expectation(method: Method) -> None:
    """Over 300 seeds, each entry of the mean covariance matrix is within 4 standard errors of the original."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2)) @ np.array([[3.0, 1.0], [0.0, 1.0]])
    data = numbers(x=x[:, 0], y=x[:, 1])
    result = np.array([np.cov(apply(method, data, seed).matrix(method.masked_names).T) for seed in range(300)])
    error = result.mean(axis=0) - np.cov(x.T)
    assert (np.abs(error) < 4 * result.std(axis=0) / np.sqrt(300)).all()


@pytest.mark.parametrize("kind", ["eigen", "cholesky", "symmetric"])
def test_roots_of_regular_and_singular_matrices(kind: str) -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(50, 3)) * [1, 1000, 0.01]
    for covariance in (np.cov(x.T), np.cov(np.column_stack([x, x[:, 0] + x[:, 1]]).T), np.zeros((2, 2))):
        root = covariance_root(covariance, kind)
        assert root @ root.T == pytest.approx(covariance, rel=1e-9, abs=1e-9 * np.abs(covariance).max())
    regular = np.cov(x.T)
    if kind == "cholesky":
        assert covariance_root(regular, kind) == pytest.approx(np.linalg.cholesky(regular))
    undo, live = unmixing_matrix(covariance_root(regular, kind))
    assert undo @ covariance_root(regular, kind) == pytest.approx(np.eye(3), abs=1e-8)
    assert len(live) == 3


def test_whitening_drops_null_directions() -> None:
    x = np.random.default_rng(4).normal(size=(50, 2)) * [1, 1e5]
    covariance = np.cov(np.column_stack([x, x.sum(axis=1)]).T)
    change = whitening_matrix(covariance)
    assert change @ covariance @ change.T == pytest.approx(np.eye(2), abs=1e-6)


def test_kept_and_distorted_depend_on_options() -> None:
    assert sm.Noise(on="x", correlated=True, rescale=True).kept == "means, variances and covariances in expectation"
    assert sm.Noise(on="x", keep_zeros=True).kept == "the mean in expectation; all zeros"
    steps = sm.Chain([sm.Noise(on="x", keep_zeros=True), sm.RankSwap(on="x")]).kept
    assert steps.startswith("Additive noise: the mean in expectation; all zeros; then Rank swapping: ")
    assert "nothing exactly" in sm.methods.MixtureNoise(on="x", lower=0).kept
    assert (
        sm.Noise(on="x").distorted == "every value; variances grow by the share of noise; correlations become smaller"
    )
    assert sm.methods.MixtureNoise(on="x", rescale=True).distorted == "every value"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: sm.Noise(on="x", rescale=True, above=1, variance_above=2), "rescale needs a single noise variance"),
        (lambda: sm.Noise(on="x", integers=True, lower=0.2, upper=0.8), "needs a whole number between"),
        (lambda: sm.methods.MixtureNoise(on="x", shares=[0.5, 0.6]), "sum to 1"),
        (lambda: sm.methods.MixtureNoise(on="x", components=3, shares=[0.5, 0.5]), "must be 3 numbers"),
        (lambda: sm.methods.MixtureNoise(on="x", centers=[1, 2]), "must be 1 numbers"),
        (lambda: sm.methods.MixtureNoise(on="x", centers=[0]), "must not all be 0"),
        (lambda: sm.methods.MixtureNoise(on="x", sigma2=1), "must be in (0, 1)"),
        (lambda: sm.methods.MixtureNoise(on="x", sigma2=[0.1, 0.2, 0.3]), "one number, or 2 numbers"),
        (lambda: sm.methods.MixtureNoise(on=["x", "y"], joint=True), "more components than variables: 3 or more"),
        (lambda: sm.methods.MixtureNoise(on="x", joint=True, centers=[1]), "cannot be set for a joint mixture"),
        (lambda: sm.RankSwap(on="x", p=[0.1, 0.2]), "one share, or 1 shares"),
        (lambda: sm.RankSwap(on=["x", "y"], p=[0.1, 1.2]), "must be in (0, 1]"),
        (lambda: sm.methods.MultiplicativeNoise(on="x", variance=-1), "must be in [0, inf)"),
        (lambda: sm.methods.SwapReidentified(on=[]), "at least one variable"),
    ],
)
def test_invalid_parameters_are_rejected(make: Callable[[], Method], words: str) -> None:
    with pytest.raises(PlanError, match=re.escape(words)):
        make()


# ---- multiplicative noise -----------------------------------------------------------------------------------------
def test_factors_have_mean_1_and_the_stated_variance() -> None:
    """400,000 draws: the mean within 5 standard errors, the variance within 2 % (normal: after its cut, 1.7 % less)."""
    n, v = 400_000, 0.1
    for draw, variance in ((lognormal_factors, v), (cut_normal_factors, v * stats.truncnorm.var(-(v**-0.5), v**-0.5))):
        u = draw((n,), v, np.random.default_rng(6))
        assert u.min() > 0
        assert u.mean() == pytest.approx(1, abs=5 * np.sqrt(v / n))
        assert u.var() == pytest.approx(variance, rel=0.02)


@pytest.mark.parametrize("distribution", ["lognormal", "normal"])
def test_multiplicative_noise_preserves_zeros_signs_and_missing_values(incomes: Microdata, distribution: str) -> None:
    method = sm.methods.MultiplicativeNoise(on=NAMES, variance=0.2, distribution=distribution)
    x, z = incomes.matrix(NAMES), apply(method, incomes).matrix(NAMES)
    np.testing.assert_array_equal(np.sign(x), np.sign(z))
    assert (x[x != 0] != z[x != 0]).all()


# ---- rank swaps ---------------------------------------------------------------------------------------------------
def test_each_variable_has_its_own_window() -> None:
    x = np.arange(200.0)
    z = apply(sm.RankSwap(on=["a", "b"], p=[0.02, 0.2]), numbers(a=x, b=x))
    assert np.abs(z["a"] - x).max() == 3
    assert 3 < np.abs(z["b"] - x).max() <= 39


def test_rank_spans_by_hand() -> None:
    first, last = rank_spans(np.array([1.0, 2.0, 2.0, 5.0]), np.array([2.0, 5.0, 3.0, 0.0, np.nan]))
    np.testing.assert_array_equal(first, [1, 3, 2, -1, np.nan])
    np.testing.assert_array_equal(last, [2, 3, 3, 0, np.nan])


def test_ties_widen_rank_windows() -> None:
    """With values 0 0 0 9 and a window of 1 rank, 9 may have been any 0, and a 0 any other value."""
    data = numbers(x=[0.0, 0.0, 0.0, 9.0])
    fields = sm.RankSwap(on="x", p=0.5).log_likelihood(data, data)
    assert [one.density for one in fields] == [Below(1.0), Below(1.0)]
    assert (block(fields, ALL) == 0).all()
    plain = numbers(x=[4.0, 1.0, 2.0, 3.0])
    (field,) = sm.RankSwap(on="x", p=0.5).log_likelihood(plain, plain)
    assert field.density == Window(1.0)
    assert ((field.block(ALL) == 0) == (np.abs(plain["x"][:, None] - plain["x"]) < 2)).all()


def test_rank_windows_use_ranks_of_released_file(incomes: Microdata) -> None:
    """An attacker with 30 of 400 records loses nothing: the released column shows the ranks of their values."""
    method = sm.RankSwap(on=NAMES, p=0.05)
    released = apply(method, incomes)
    few = incomes.take(np.arange(30))
    whole = block(method.log_likelihood(incomes, released), np.arange(30))
    np.testing.assert_array_equal(block(method.log_likelihood(few, released), ALL), whole)


# ---- likelihoods compared with formulas ---------------------------------------------------------------------------
def relative(score: Array) -> Array:
    """Subtract a constant for each released record, for comparison."""
    return score - score[0]


@pytest.fixture(scope="module")
def pair() -> tuple[Microdata, Array]:
    x = np.random.default_rng(9).normal(size=(30, 2)) @ np.array([[2.0, 1.5], [0.0, 1.0]])
    return numbers(x=x[:, 0], y=x[:, 1]), x


@pytest.mark.parametrize("rescale", [False, True])
@pytest.mark.parametrize("correlated", [False, True])
def test_noise_likelihood_is_the_normal_density(pair: tuple[Microdata, Array], correlated: bool, rescale: bool) -> None:
    data, x = pair
    method = sm.Noise(on=["x", "y"], variance=0.3, correlated=correlated, rescale=rescale)
    released = apply(method, data)
    c = 1 / np.sqrt(1.3) if rescale else 1.0
    z = released.matrix(["x", "y"])
    mean = c * x + (1 - c) * z.mean(axis=0)
    covariance = c**2 * 0.3 * np.cov(x.T) * (1 if correlated else np.eye(2))
    exact = np.array([stats.multivariate_normal.logpdf(z, one, covariance) for one in mean])
    result = block(method.log_likelihood(data, released), ALL)
    np.testing.assert_allclose(relative(result), relative(exact), atol=1e-8)


@pytest.mark.parametrize("root", ["eigen", "cholesky", "symmetric"])
def test_mixture_likelihood_is_the_mixture_density(pair: tuple[Microdata, Array], root: str) -> None:
    """w has 3^2 components in two dimensions; z = x + sqrt(d) L w."""
    data, x = pair
    method = sm.methods.MixtureNoise(
        on=["x", "y"], variance=0.3, components=3, shares=[0.5, 0.2, 0.3], centers=[1, -2], sigma2=0.1, root=root
    )
    released = apply(method, data)
    z, line = released.matrix(["x", "y"]), np.sqrt(0.3) * covariance_root(np.cov(x.T), root)
    weights, theta, _ = method._mixture()
    exact = np.zeros((30, 30))
    for j, k in product(range(3), repeat=2):
        center = line @ theta[[j, k]]
        exact += (
            weights[j]
            * weights[k]
            * np.array([stats.multivariate_normal.pdf(z, one + center, 0.1 * line @ line.T) for one in x])
        )
    result = block(method.log_likelihood(data, released), ALL)
    likely = exact > 1e-200
    gap = (result - np.log(np.where(likely, exact, 1.0)))[likely]
    assert gap == pytest.approx(gap[0])


def test_joint_mixture_likelihood_is_the_mixture_density(pair: tuple[Microdata, Array]) -> None:
    data, x = pair
    method = sm.methods.MixtureNoise(on=["x", "y"], variance=0.3, components=4, sigma2=[0.1, 0.2, 0.3, 0.2], joint=True)
    released = apply(method, data)
    z, line = released.matrix(["x", "y"]), np.sqrt(0.3) * covariance_root(np.cov(x.T))
    weights, theta, variances = method._mixture()
    exact = sum(
        w * np.array([stats.multivariate_normal.pdf(z, one + line @ t, v * line @ line.T) for one in x])
        for w, t, v in zip(weights, theta, variances, strict=True)
    )
    (field,) = method.log_likelihood(data, released)
    gap = field.block(ALL) - np.log(exact)
    assert gap == pytest.approx(np.full(gap.shape, gap[0, 0]))
    one = field.density(field.known[:5], field.released[:5])
    assert one == pytest.approx(np.diag(field.block(ALL))[:5])


@pytest.mark.parametrize("known", [-1.0, 0.4, 3.0])
def test_censored_density_integrates_to_1(known: float) -> None:
    cut = CensoredNormal(0.7, lower=-0.5, upper=2.0)
    at = [float(np.exp(cut(np.array(known), np.array(end)))) for end in (-0.5, 2.0)]
    inside = quad(
        lambda y: np.exp(cut(np.array(known), np.array(y))) / (0.7 * np.sqrt(2 * np.pi)), -0.5 + 1e-12, 2 - 1e-12
    )
    assert sum(at) + inside[0] == pytest.approx(1)


def test_kept_zero_is_certain_and_random_zero_is_not() -> None:
    cut = CensoredNormal(1.0, zero=0.0, step=1.0)
    known, released = np.array([[0.0], [2.0]]), np.array([[0.0, 1.0]])
    result = cut(known, released)
    assert result[0, 0] == 0
    assert result[0, 1] == -np.inf
    assert result[1, 0] == pytest.approx(stats.norm.logpdf(2))
    assert result[1, 1] == -0.5


def test_joint_density_inside_bounds_equals_formula(pair: tuple[Microdata, Array]) -> None:
    """Inside the bounds: the joint normal density. At a bound in y: the density of x times P(y beyond the bound)."""
    data, x = pair
    method = sm.Noise(on=["x", "y"], variance=0.3, correlated=True, lower=0)
    released = apply(method, data)
    z, covariance = released.matrix(["x", "y"]), 0.3 * np.cov(x.T)
    sd = np.sqrt(np.diag(covariance))
    result = relative(block(method.log_likelihood(data, released), ALL))
    for j, (zx, zy) in enumerate(z):
        exact = np.zeros(len(x))
        if zx > 0 and zy > 0:
            exact += [stats.multivariate_normal.logpdf(z[j], one, covariance) for one in x]
        else:
            for k, value in enumerate((zx, zy)):
                error = (value - x[:, k]) / sd[k]
                exact += stats.norm.logpdf(error) if value > 0 else stats.norm.logcdf(error)
        assert result[:, j] == pytest.approx(exact - exact[0], abs=1e-8)
    field = method.log_likelihood(data, released)[0]
    assert field.density(field.known, field.released) == pytest.approx(np.diag(field.block(ALL)))


@pytest.mark.parametrize("log", [True, False])
def test_multiplicative_density_equals_scipy(log: bool) -> None:
    known, released = np.array([[2.0], [5.0]]), np.array([[1.0, 2.5, 7.0]])
    t = np.log1p(0.2)
    exact = (
        stats.lognorm.logpdf(released / known, np.sqrt(t), scale=np.exp(-t / 2))
        if log
        else stats.norm.logpdf(released / known, 1, np.sqrt(0.2))
    ) - np.log(known)
    result = Multiplied(0.2, log, 0.0, 1.0)(known, released)
    np.testing.assert_allclose(relative(result), relative(exact))


def test_rounding_step_of_released_values() -> None:
    assert rounding_step(np.array([0.5, 1.0])) == 0.1
    assert rounding_step(np.array([np.pi, 1.0])) == 0
    assert rounding_step(np.array([3.0, 10.0, np.nan])) == 1
    assert rounding_step(np.array([0.0, 300.0, -1200.0])) == 100
    assert rounding_step(np.zeros(3)) == 1


def test_swap_probabilities_sum_to_1() -> None:
    """The sum is over all cells a record can have after the swap; no record leaves its group of `same`."""
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({name: rng.integers(0, k, 300).astype(str) for name, k in (("a", 3), ("b", 4), ("c", 2))})
    data = sm.read(frame, keys="all")
    method = sm.Swap(on=["a", "b"], rate=0.1, same=["c"], pairing="greedy")
    masked = apply(method, data)
    (field,) = method.log_likelihood(data, masked)
    cells, first = np.unique(field.released, return_index=True)
    chances = np.exp(field.block(ALL))[:, first]
    assert chances.sum(axis=1) == pytest.approx(np.ones(300))
    released = masked.frame()[first]
    for name in ("a", "b"):
        moved = (chances > 0) & (field.known[:, None] != cells)
        assert (frame[name].to_numpy()[:, None] != released[name].to_numpy())[moved].all()
    assert (frame["c"].to_numpy()[:, None] == released["c"].to_numpy())[chances > 0].all()
    assert chances[np.arange(300), np.searchsorted(cells, field.known)] == pytest.approx(np.full(300, 0.8))


METHODS = [
    sm.Identity(),
    sm.Noise(on=NAMES),
    sm.Noise(on=NAMES, variance=0),
    sm.Noise(on=NAMES, correlated=True, within="region"),
    sm.Noise(on=NAMES, correlated=True, rescale=True, integers=True),
    sm.Noise(on=NAMES, correlated=True, rescale=True, keep_zeros=True, lower=-3, upper=130, within="region"),
    sm.Noise(on=NAMES, rescale=True, keep_zeros=True, integers=True, lower=0),
    sm.Noise(on=NAMES, correlated=True, above=20, variance_above=0.5),
    sm.methods.MixtureNoise(on=NAMES, variance=0.3),
    sm.methods.MixtureNoise(on=NAMES, variance=0.3, root="symmetric", integers=True, within="region"),
    sm.methods.MixtureNoise(on=NAMES, variance=0.3, joint=True, components=4, rescale=True, within="region"),
    sm.methods.MixtureNoise(on=NAMES, variance=0.3, keep_zeros=True),
    sm.methods.MultiplicativeNoise(on=NAMES, variance=0.05),
    sm.methods.MultiplicativeNoise(on=NAMES, variance=0.3, integers=True),
    sm.methods.MultiplicativeNoise(on=NAMES, variance=0.3, distribution="normal", within="region"),
    sm.RankSwap(on=NAMES, p=(0.05, 0.1, 0.2)),
    sm.RankSwap(on=NAMES, p=0.1, within="region"),
    sm.Swap(on="region", rate=0.2),
    sm.Chain([sm.Swap(on="region", rate=0.2), sm.RankSwap(on="wage", p=0.1), sm.Noise(on=["tax", "rent"])]),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.text)
def test_true_record_is_possible_and_more_likely_than_chance(method: Method, incomes: Microdata) -> None:
    released = apply(method, incomes)
    fields = method.log_likelihood(incomes, released)
    if not fields:
        assert isinstance(method, sm.Identity)
        return
    score = block(fields, ALL)
    assert not np.isnan(score).any()
    own = np.diag(score)
    assert np.isfinite(own).all()
    assert (score <= own[:, None]).mean() > 0.6  # the true record ranks above most others
    if method.within:
        apart = incomes.codes("region")[:, None] != incomes.codes("region")
        assert (score[apart] == -np.inf).all()
    few = method.log_likelihood(incomes.take(np.arange(300)), released.take(np.arange(50, 400)))
    assert block(few, ALL).shape == (300, 350)


def test_attacker_may_know_some_masked_variables(incomes: Microdata) -> None:
    known = incomes.only(["wage", "rent"])
    for method in METHODS:
        if set(method.masked_names) == set(NAMES) and not method.within:
            score = block(method.log_likelihood(known, apply(method, incomes)), ALL)
            assert np.isfinite(np.diag(score)).all(), method.text
    for method in METHODS:
        assert method.log_likelihood(incomes.only(["region"]), apply(method, incomes)) == () or "Swap" in method.text


def test_fields_of_parts_are_joined() -> None:
    parts = [
        (np.array([0, 2]), np.array([0]), (Field(np.array([1.0, 2.0]), np.array([1.0]), Normal(1.0)),)),
        (np.array([1]), np.array([1]), (Field(np.array([5.0]), np.array([6.0]), Normal(1.0)),)),
    ]
    same, normal = join_parts(np.array([0, 1, 0]), np.array([0, 1]), parts)
    assert same.density == Same()
    assert normal.density == Normal(1.0)
    np.testing.assert_array_equal(block([same, normal], ALL), [[0, -np.inf], [-np.inf, -0.5], [-0.5, -np.inf]])


def test_chain_without_joint_likelihood_is_undefined(incomes: Microdata) -> None:
    for steps in (
        [sm.Noise(on="wage"), sm.RankSwap(on="wage")],
        [sm.Noise(on="wage", within="region"), sm.Swap(on="region")],
        [sm.Noise(on="wage"), sm.Chain([sm.Noise(on="tax"), sm.RankSwap(on="wage")])],
    ):
        with pytest.raises(Undefined, match="masks what .* (reads|has masked)"):
            sm.Chain(steps).log_likelihood(incomes, incomes)
    nested = sm.Chain([sm.Noise(on="wage"), sm.Chain([sm.Noise(on="tax"), sm.Noise(on="wage")])])
    assert len(nested.log_likelihood(incomes, incomes)) == 2  # successive noises have a likelihood, on wage and on tax


# ---- swapping re-identified records ----------------------------------------------------------------------------
def test_own_is_nearest_equals_formula(incomes: Microdata) -> None:
    x, z = incomes.matrix(NAMES), apply(sm.Noise(on=NAMES, variance=0.1), incomes).matrix(NAMES)
    a, b = (np.where(np.isnan(m), np.nanmean(m, axis=0), m) / np.nanstd(m, axis=0, ddof=1) for m in (x, z))
    distance = np.sqrt(((b[:, None] - a) ** 2).sum(axis=2))
    expected = np.diag(distance) <= distance.min(axis=1) * (1 + 1e-9)
    assert 0.05 < expected.mean() < 0.95
    assert np.array_equal(own_is_nearest(x, z), expected)
    constant = np.ones((5, 1))
    assert not own_is_nearest(constant, constant).any()
    both = own_is_nearest(np.column_stack([x, np.ones(400)]), np.column_stack([z, np.ones(400)]))
    assert np.array_equal(both, expected)


def test_reidentified_records_exchange_blocks_within_subdomains(incomes: Microdata) -> None:
    noise = sm.Noise(on=NAMES, variance=0.02, correlated=True)
    swap = sm.methods.SwapReidentified(on=NAMES, within="region")
    stream = Stream.of_seed(3)
    before = noise.apply(incomes, stream.child("step 0"))
    after = sm.Chain([noise, swap]).apply(incomes, stream)
    old, new = (np.nan_to_num(file.matrix(NAMES), nan=-1.0) for file in (before, after))
    result = own_is_nearest(incomes.matrix(NAMES), before.matrix(NAMES))
    moved = (old != new).any(axis=1)
    assert moved[~result].sum() == 0
    assert result.sum() - moved.sum() <= 2  # one left over in each of two regions
    for region in ("n", "s"):
        here = incomes["region"] == region
        assert np.array_equal(*(np.unique(rows[here], axis=0) for rows in (old, new)))
    assert own_is_nearest(incomes.matrix(NAMES), after.matrix(NAMES)).mean() < 0.1


def test_random_exchange_pairs_rows_within_groups() -> None:
    rows, group = np.array([1, 2, 4, 6, 7, 8]), np.array([0, 0, 0, 0, 1, 0, 1, 1, 2])
    one, other = random_exchange(rows, group, np.random.default_rng(0))
    assert len(one) == 4  # two pairs; the third of group 1 and the only one of group 2 are left over
    assert dict(zip(one, other, strict=True)) == dict(zip(other, one, strict=True))
    assert (group[one] == group[other]).all()
    assert set(one) <= set(rows.tolist())
    assert [len(part) for part in random_exchange(rows[:0], group, np.random.default_rng(0))] == [0, 0]


def test_swap_reidentified_needs_original_and_other_variable(incomes: Microdata) -> None:
    with pytest.raises(Infeasible, match="no original to link with"):
        apply(sm.methods.SwapReidentified(on=NAMES), incomes)
    data = numbers(x=np.arange(9.0))
    with pytest.raises(Infeasible, match="every variable would be exchanged"):
        apply(sm.Chain([sm.Noise(on="x"), sm.methods.SwapReidentified(on="x")]), data)


# ---- invalid input ----------------------------------------------------------------------------------------------------
WEAK = [
    sm.Noise(on=["x", "y"], correlated=True, rescale=True, integers=True, keep_zeros=True),
    sm.Noise(on=["x", "y"], rescale=True),
    sm.methods.MixtureNoise(on=["x", "y"]),
    sm.methods.MixtureNoise(on=["x", "y"], joint=True, components=3, root="cholesky"),
    sm.methods.MultiplicativeNoise(on=["x", "y"]),
    sm.RankSwap(on=["x", "y"], p=0.9),
    sm.Chain([sm.Noise(on=["x", "y"], lower=0), sm.methods.SwapReidentified(on=["x", "y"])]),
]


@pytest.mark.parametrize("method", WEAK, ids=lambda method: method.text)
@pytest.mark.parametrize(
    "columns",
    [
        {"x": [5.0] * 6, "y": [1.0, 2, 3, 4, 5, 6]},
        {"x": [None] * 6, "y": [1.0, 2, 3, 4, 5, 6]},
        {"x": [1.0, None], "y": [None, 2.0]},
        {"x": [-1.0, 0.0], "y": [-2.0, 0.0]},
        {"x": [1.0], "y": [2.0]},
        {"x": [1e100, -1e100, 0.0], "y": [1e-100, 0.0, 1.0]},
    ],
    ids=["constant", "all missing", "no complete record", "two records, negative", "one record", "huge and tiny"],
)
def test_degenerate_files_are_masked_or_infeasible(method: Method, columns: dict[str, list[float | None]]) -> None:
    typed = {name: pl.Series(values, dtype=pl.Float64) for name, values in columns.items()}
    data = sm.read(pl.DataFrame(typed | {"z": np.arange(len(typed["x"]))}), numeric="all")
    try:
        z = apply(method, data)
        fields = method.log_likelihood(data, z)
    except (Infeasible, Undefined):
        return
    for name in ("x", "y"):
        assert np.array_equal(np.isnan(data[name]), np.isnan(z[name]))
    if fields:
        assert not np.isneginf(np.diag(block(fields, ALL))).any()


def test_fewer_records_than_variables() -> None:
    data = numbers(**{f"v{k}": np.random.default_rng(k).normal(size=3) for k in range(5)})
    for method in (sm.Noise(on=data.names, correlated=True), sm.methods.MixtureNoise(on=data.names, variance=0.1)):
        z = apply(method, data)
        assert np.isfinite(z.matrix(data.names)).all()
        assert np.isfinite(block(method.log_likelihood(data, z), ALL)).all()


@pytest.mark.parametrize(
    "method",
    [
        sm.methods.MixtureNoise(
            on=["wage", "interest"], components=3, shares=[0.2, 0.2, 0.6], centers=[1, -1], integers=True
        ),
        sm.methods.MixtureNoise(on=["wage", "interest"], joint=True, components=3, sigma2=[0.1, 0.2, 0.3]),
        sm.RankSwap(on=["wage", "interest"], p=[0.1, 0.3]),
        sm.Chain(
            [sm.Noise(on=["wage", "interest"]), sm.methods.SwapReidentified(on=["wage", "interest"], within="Sex")]
        ),
    ],
    ids=lambda method: method.text,
)
def test_laws_with_other_parameters(method: Method) -> None:
    check_method(method, sm.demo.population(60, seed=3))
