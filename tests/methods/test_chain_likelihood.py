"""The joint likelihood of steps on the same variable, compared with formulas and simulations."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from numpy.random import default_rng
from scipy.stats import multivariate_normal, norm

import sdcmap as sm
from sdcmap.core.likelihood import block
from sdcmap.core.method import Method
from sdcmap.core.steps import remove_steps, split_steps
from sdcmap.core.streams import Stream
from sdcmap.data.label_layers import parse_interval
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.methods import PRAM, MixtureNoise, MultiplicativeNoise, RandomizedResponse, Round, Shuffle, TopCode
from sdcmap.methods._chain_likelihood import compose_fields

ONCE = Stream.of_seed(5)
DRAWS = 40_000


def people(n: int = 60, *, gaps: bool = True) -> Microdata:
    """Return 60 records with ties, and missing values in the categories and one numeric column."""
    rng = default_rng(3)
    frame = pl.DataFrame({
        "region": [None if gaps and rng.random() < 0.1 else str(c) for c in rng.choice(list("abcde"), n)],
        "sex": rng.choice(["f", "m"], n),
        "age": rng.integers(20, 50, n).astype(float),
        "wage": np.round(rng.lognormal(3, 0.5, n), 3),
        "rent": [None if gaps and rng.random() < 0.1 else float(x) for x in rng.normal(10, 3, n).round(3)],
    })  # fmt: skip
    return sm.read(frame, keys=("region", "sex"), numeric=("age", "wage", "rent"))


def chances(method: Method, data: Microdata, released: Microdata) -> Array:
    """Return known x released likelihoods, scaled so that the largest of each released record is 1."""
    log_p = block(method.log_likelihood(data, released), slice(None))
    likelihood: Array = np.exp(log_p - log_p.max(axis=0))
    return likelihood


def scaled(likelihood: Array) -> Array:
    top: Array = likelihood / likelihood.max(axis=0)
    return top


# ---- noise after noise ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("first", "second"), [(0.1, 0.3), (0.5, 0.0)])
def test_variances_of_successive_noises_add_up(first: float, second: float) -> None:
    data = people()
    method = sm.Chain((sm.Noise("wage", first), sm.Noise("wage", second)))
    released = method.apply(data, ONCE)
    x, y = data.numbers("wage"), released.numbers("wage")
    sd = np.std(x, ddof=1) * math.sqrt(
        first + second * (1 + first)
    )  # the second noise is a share of the variance after the first
    np.testing.assert_allclose(
        chances(method, data, released), scaled(norm.pdf(y, x[:, None], sd)), rtol=1e-6, atol=1e-12
    )
    alone = sm.Noise("wage", (1 + first) * (1 + second) - 1)
    np.testing.assert_allclose(chances(method, data, released), chances(alone, data, released), rtol=1e-6, atol=1e-12)


def test_correlated_noise_after_independent_noise() -> None:
    """For all variables jointly: the covariances of both noises, scaled and shrunk like the steps."""
    data, names = people(gaps=False), ("age", "wage", "rent")
    method = sm.Chain((sm.Noise(names[:2], 0.2, rescale=True), sm.Noise(names, 0.1, correlated=True)))
    released = method.apply(data, ONCE)
    x, y = data.matrix(names), released.matrix(names)
    before, c = np.cov(x, rowvar=False), np.array([1.2**-0.5, 1.2**-0.5, 1.0])
    first = np.diag(np.diag(before) * [0.2, 0.2, 0.0]) * np.outer(c, c)
    whole = first + 0.1 * (before * np.outer(c, c) + first)
    own = c * x + (1 - c) * y.mean(axis=0)
    wanted = np.array([multivariate_normal.pdf(y, mean, whole) for mean in own])
    np.testing.assert_allclose(chances(method, data, released), scaled(wanted), rtol=1e-6, atol=1e-12)


def test_noise_variances_add_up_within_strata() -> None:
    data = people()
    method = sm.Chain((sm.Noise("wage", 0.1, within="sex"), sm.Noise("wage", 0.2, within="sex")))
    alone = sm.Noise("wage", 1.1 * 1.2 - 1, within="sex")
    released = method.apply(data, ONCE)
    np.testing.assert_allclose(chances(method, data, released), chances(alone, data, released), rtol=1e-6, atol=1e-12)
    other = sm.Chain((sm.Noise("wage", 0.1, within="sex"), sm.Noise("wage", 0.2)))
    with pytest.raises(Undefined, match="different strata"):
        other.log_likelihood(data, released)


@pytest.mark.parametrize("mixture_first", [True, False])
def test_mixture_plus_normal_noise_equals_the_convolution(mixture_first: bool) -> None:
    """For one variable: the convolution of the two densities, computed on a fine grid."""
    data = people()
    mixture, noise = MixtureNoise("wage", 0.2, components=2, sigma2=0.1), sm.Noise("wage", 0.05)
    method = sm.Chain((mixture, noise) if mixture_first else (noise, mixture))
    released = method.apply(data, ONCE)
    x, y = data.numbers("wage"), released.numbers("wage")
    variance = np.var(x, ddof=1)
    first, second = (
        (0.2, 0.05 * 1.2) if mixture_first else (0.2 * 1.05, 0.05)
    )  # variances of the mixture and of the noise
    grid = np.linspace(-12, 12, 6001) * math.sqrt(variance)
    at = math.sqrt(first * variance)
    mixed = sum(norm.pdf(grid, sign * at * math.sqrt(0.9), at * math.sqrt(0.1)) / 2 for sign in (-1, 1))
    whole = np.convolve(mixed, norm.pdf(grid, 0, math.sqrt(second * variance)), "same")
    wanted = np.interp(y - x[:, None], grid, whole)
    np.testing.assert_allclose(chances(method, data, released), scaled(wanted), atol=2e-4)


def test_correlated_mixture_plus_noise_of_the_same_shape() -> None:
    data, names = people(gaps=False), ("age", "wage")
    method = sm.Chain((MixtureNoise(names, 0.2, root="cholesky"), sm.Noise(names, 0.02, correlated=True)))
    released = method.apply(data, ONCE)
    x, y = data.matrix(names), released.matrix(names)
    root = np.linalg.cholesky(np.cov(x, rowvar=False))
    w = np.einsum("ij,nmj->nmi", np.linalg.inv(root), y - x[:, None]) / math.sqrt(0.2)
    sd = math.sqrt(0.025 + 0.02 * 1.2 / 0.2)  # the noise is a share of the variance after the mixture
    one = sum(norm.pdf(w, sign * math.sqrt(0.975), sd) / 2 for sign in (-1, 1))
    np.testing.assert_allclose(chances(method, data, released), scaled(one.prod(axis=2)), rtol=0.02, atol=1e-6)


def test_lognormal_factors_multiply() -> None:
    data = people()
    method = sm.Chain((MultiplicativeNoise("wage", 0.1), MultiplicativeNoise("wage", 0.2)))
    released = method.apply(data, ONCE)
    alone = MultiplicativeNoise("wage", 1.1 * 1.2 - 1)
    np.testing.assert_allclose(chances(method, data, released), chances(alone, data, released), rtol=1e-9)


# ---- deterministic steps after noise ----------------------------------------------------------------------------
def by_draws(x: Array, sd: float, after: Callable[[Array], Array], released: Array) -> Array:
    """Simulate how often x + N(0, sd^2), after the step, equals each released value: known x released."""
    rng = default_rng(1)
    return np.array([(after(own + sd * rng.standard_normal(DRAWS))[:, None] == released).mean(axis=0) for own in x])


AFTER: dict[str, tuple[list[Method], Callable[[Array], Array]]] = {
    "rounded": ([Round("wage", 7.0)], lambda z: 7 * np.floor(z / 7 + 0.5)),
    "rounded twice": (  # a chain stays on the grid of threes, because some values did not change
        [Round("wage", 3.0), Round("wage", 7.0)],
        lambda z: 3 * np.rint(7 * np.floor(3 * np.floor(z / 3 + 0.5) / 7 + 0.5) / 3),
    ),
    "rounded, then cut": (
        [Round("wage", 5.0), TopCode("wage", top=25.0, bottom=10.0)],
        lambda z: np.clip(5 * np.floor(z / 5 + 0.5), 10, 25),
    ),
    "cut, then rounded": (
        [TopCode("wage", top=24.0), Round("wage", 5.0)], lambda z: 5 * np.floor(np.minimum(z, 24.0) / 5 + 0.5)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AFTER)
def test_deterministic_steps_after_noise_give_interval_probabilities(name: str) -> None:
    """Each pair is within five standard errors of the share in 40,000 draws."""
    data, (steps, after) = people(), AFTER[name]
    method = sm.Chain((sm.Noise("wage", 0.2), sm.Noise("wage", 0.1), *steps))
    released = method.apply(data, ONCE)
    (field,) = method.log_likelihood(data, released)
    sd = np.std(data.numbers("wage"), ddof=1) * math.sqrt(1.2 * 1.1 - 1)
    drawn = by_draws(data.numbers("wage")[:12], sd, after, released.numbers("wage"))
    np.testing.assert_allclose(np.exp(field.block(np.arange(12))), drawn, atol=5 * 0.5 / math.sqrt(DRAWS))


@pytest.mark.parametrize(
    "way", [{"width": 6}, {"bins": 5, "by": "quantiles"}, {"breaks": (15.0, 25.0), "labels": ("l", "m", "h")}]
)
def test_intervals_after_noise_are_parsed_from_labels(way: dict[str, object]) -> None:
    data = people()
    recode = sm.Recode("wage", **way)  # type: ignore[arg-type]
    method = sm.Chain((sm.Noise("wage", 0.2), recode))
    released = method.apply(data, ONCE)
    (field,) = method.log_likelihood(data, released)
    x, sd = data.numbers("wage"), np.std(data.numbers("wage"), ddof=1) * math.sqrt(0.2)
    stated = {"l": (-np.inf, 15.0), "m": (15.0, 25.0), "h": (25.0, np.inf)}
    for j, label in enumerate(released["wage"]):
        low, high = stated[label] if label in stated else (parse_interval(label) or (0.0, 0.0))[:2]
        wanted = norm.cdf((high - x) / sd) - norm.cdf((low - x) / sd)
        np.testing.assert_allclose(np.exp(field.block(slice(None))[:, j]), wanted, atol=1e-12)


def test_top_code_by_share_is_inferred_from_the_largest_released_value() -> None:
    data = people()
    method = sm.Chain((sm.Noise("wage", 0.2), TopCode("wage", top_share=0.2)))
    released = method.apply(data, ONCE)
    (field,) = method.log_likelihood(data, released)
    top = released.numbers("wage").max()
    coded = released.numbers("wage") == top
    assert 8 <= coded.sum() <= 14
    sd = np.std(data.numbers("wage"), ddof=1) * math.sqrt(0.2)
    tail = norm.sf((top - data.numbers("wage")) / sd)
    np.testing.assert_allclose(
        np.exp(field.block(slice(None))[:, coded]), np.repeat(tail[:, None], coded.sum(), 1), rtol=1e-9
    )


def test_suppressed_values_after_noise_carry_no_information() -> None:
    data = people(gaps=False)
    method = sm.Chain((sm.Noise("age", 0.01), sm.Recode("age", bins=4), sm.Suppress(("age", "sex"), 12)))
    released = method.apply(data, ONCE)
    blank = released.missing("age")
    assert 0 < blank.sum() < 60
    group = split_steps(method.steps)[1][0]
    (field,) = method.with_steps([step for step in group if not isinstance(step, sm.Suppress)]).log_likelihood(
        data, released
    )
    assert np.isneginf(
        field.block(slice(None))[:, blank]
    ).all()  # without Suppress, a missing value would be impossible
    (field,) = compose_fields(group, data, released)
    assert (field.block(slice(None))[:, blank] == 0).all() and np.isfinite(field.block(slice(None))).all()


# ---- categories -------------------------------------------------------------------------------------------------
def test_transition_matrices_are_multiplied() -> None:
    data = people()
    first, second = PRAM("region", 0.6, alpha=1.0), RandomizedResponse("region", 2.0)
    method = sm.Chain((first, second))
    released = method.apply(data, ONCE)
    one, two = (step.log_likelihood(data, released)[0].density.matrix for step in (first, second))  # type: ignore[attr-defined]
    (field,) = method.log_likelihood(data, released)
    wanted = np.array(
        [[sum(one[a, z] * two[z, b] for z in range(len(one))) for b in range(len(one))] for a in range(len(one))]
    )
    np.testing.assert_allclose(field.density.matrix, wanted, atol=1e-12)  # type: ignore[attr-defined]
    np.testing.assert_allclose(wanted.sum(axis=1), 1.0)


def test_merging_and_suppression_after_transitions() -> None:
    """P(merged | known) is the sum over the merged categories; suppressed values exclude nothing; missing stays missing."""
    data = people()
    move, merge = PRAM("region", 0.6, alpha=1.0), sm.Recode("region", merge=(("d", "e"),), labels=("rest",))
    method = sm.Chain((move, merge, sm.Suppress(("region",), 12)))
    released = method.apply(data, ONCE)
    (field,) = method.log_likelihood(data, released)
    matrix = move.log_likelihood(data, data)[0].density.matrix  # type: ignore[attr-defined]
    levels = data.column("region").levels
    assert levels is not None
    place = {level: code for code, level in enumerate(levels.to_list())}
    into = {"a": "a", "b": "b", "c": "c", "rest": "de"}
    for j, new in enumerate(released["region"]):
        for i, old in enumerate(data["region"]):
            from_old = matrix[place[old]]
            wanted = 1.0 if new is None else sum(from_old[place[z]] for z in into[new])
            assert np.exp(field.pairs(np.array([i]), np.array([j]))[0]) == pytest.approx(wanted, abs=1e-12)


# ---- deterministic steps before, and swaps -----------------------------------------------------------------------
def test_noise_after_deterministic_step_uses_its_result() -> None:
    data = people()
    method = sm.Chain((Round("wage", 5.0), TopCode("wage", top=30.0), sm.Noise("wage", 0.1)))
    released = method.apply(data, ONCE)
    recoded = sm.Chain((Round("wage", 5.0), TopCode("wage", top=30.0))).apply(data, ONCE)
    recoded = Microdata(recoded.schema, {name: recoded.column(name) for name in recoded.names})
    np.testing.assert_allclose(
        chances(method, data, released), chances(sm.Noise("wage", 0.1), recoded, released), rtol=1e-9, atol=1e-15
    )


def test_rounding_after_rank_swap_equals_rank_swap_of_rounded_values() -> None:
    data = people()
    method = sm.Chain((sm.RankSwap("wage", 0.2), Round("wage", 5.0)))
    released = method.apply(data, ONCE)
    log_p = block(method.log_likelihood(data, released), slice(None))
    assert (log_p[np.arange(60), np.arange(60)] == 0).all()  # the true record is never excluded
    assert np.isneginf(log_p).mean() > 0.3


# ---- steps without a joint likelihood ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "steps",
    [
        (sm.Noise("wage"), sm.RankSwap("wage")),
        (sm.RankSwap("wage"), sm.Noise("wage")),
        (sm.Noise("wage"), sm.Microaggregate(("wage", "age"))),
        (sm.Noise("wage"), Round("wage", 5.0), sm.Noise("wage")),
        (sm.Noise("wage"), Shuffle("wage")),
        (sm.Noise("wage"), Round("wage", 5.0, unbiased=True)),
        (sm.Noise("wage"), MultiplicativeNoise("wage")),
        (MixtureNoise("wage"), Round("wage", 5.0)),
    ],
    ids=lambda steps: " then ".join(type(step).__name__ for step in steps),
)
def test_error_names_steps_without_joint_likelihood(steps: tuple[Method, ...]) -> None:
    data, method = people(gaps=False), sm.Chain(steps)
    named = "|".join(type(step).__name__ for step in steps[1:])
    with pytest.raises(Undefined, match=rf"({named}).*likelihood|mixture noise states a likelihood"):
        method.log_likelihood(data, method.apply(data, ONCE))


def test_steps_are_split_and_removed() -> None:
    first, both, swap = sm.Noise("wage"), Round(("wage", "age"), 5.0), sm.RankSwap(("wage", "rent"))
    again, groups = split_steps((first, both, swap))
    assert again == (Round("age", 5.0),)
    assert groups == ((first, Round("wage", 5.0), swap),)
    assert remove_steps((first, both, swap, first), (first, Round("wage", 5.0))) == [first, Round("age", 5.0), swap]
