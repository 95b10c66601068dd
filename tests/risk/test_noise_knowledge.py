"""Attackers who use the mean, who know lambda, and who back it out: Duncan, Keller-McNulty, Stokes (2001), 3.1 and 3.2.

The plain versions share nothing with the package: numpy on the arrays of the two files.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap import testing, theory
from sdcmap.core import Array
from sdcmap.data.microdata import Microdata
from sdcmap.risk import MeanGuess, Position, PositionNoiseGuessed, PositionNoiseKnown

RNG = np.random.default_rng(0)
DRAWS = 60


def incomes(n: int = 200, seed: int = 1) -> Microdata:
    x = np.random.default_rng(seed).lognormal(10, 0.6, n)
    return sm.read(pl.DataFrame({"income": x}), numeric="all")


def draws_of(method: sm.Method, data: Microdata, draws: int = DRAWS) -> list[Microdata]:
    return [sm.mask(data, method, seed=seed) for seed in range(draws)]


def pooled(measure: sm.Measure, data: Microdata, files: list[Microdata]) -> float:
    return measure.pool([measure.score(data, masked, RNG) for masked in files]).value


# ---- the mean of the released values: eqs. 1 to 3 -------------------------------------------------------------
def test_mean_guess_is_the_mean_squared_error_of_the_released_mean() -> None:
    """Every target in plain numpy, missing values left out."""
    x = np.array([3.0, 8, np.nan, 20, 5, 9])
    y = np.array([4.0, 6, 7, np.nan, 9, 9])
    data = sm.read(pl.DataFrame({"income": x}, nan_to_null=True), numeric="all")
    masked = data.change(None, {"income": y})
    known, guess, n = x[~np.isnan(x)], 35 / 5, 5
    errors = {
        "sample": np.mean((guess - known) ** 2), "population": (guess - 9) ** 2 + known.var(ddof=1) * (1 + 1 / n),
        "maximum": (guess - 20) ** 2, "minimum": (guess - 3) ** 2, 0.5: (guess - 8) ** 2,
    }  # fmt: skip
    for target, error in errors.items():
        result = MeanGuess(on="income", target=target).score(data, masked, RNG)
        assert result.value == pytest.approx(1 / error) and result.parts["squared_error"] == pytest.approx(error)


def test_mean_guess_agrees_with_equations_2_and_3() -> None:
    """In expectation n/((n + 1) s2 + l2), and n/(l2 + sum (x - xbar)^2) in the file, where l2 = 0.5 s2.

    The only random part, (Ybar - xbar)^2, has mean l2/n and standard error l2/n sqrt(2/M): 4 of them are 1e-3 of the MSE.
    """
    data = incomes()
    files, x = draws_of(sm.Noise(on="income", variance=0.5), data), data["income"]
    n, s2 = len(x), x.var(ddof=1)
    for target, expected in (
        ("population", theory.in_population(0.5 * s2, n=n, variance=s2)),
        ("sample", theory.in_file(0.5 * s2, x)),
    ):
        assert pooled(MeanGuess(on="income", target=target), data, files) == pytest.approx(float(expected), rel=2e-3)


def test_mean_guess_without_release_uses_the_original_mean() -> None:
    data = incomes()
    for target in ("sample", "population", "maximum", 0.9):
        measure = MeanGuess(on="income", target=target)
        assert measure.baseline(data) == measure.score(data, data.change(None, {}), RNG).value
    empty = sm.read(pl.DataFrame({"income": [None, None]}, schema={"income": pl.Float64}), numeric="all")
    assert MeanGuess(on="income").baseline(empty) is None
    with pytest.raises(sm.errors.Undefined, match="has no value"):
        MeanGuess(on="income").score(empty, empty.change(None, {}), RNG)


# ---- lambda known, and lambda backed out: section 3.2 ---------------------------------------------------------
def shrink(y: Array, k: int, spread: float) -> float:
    y = np.sort(y)
    return float(y.mean() + (y[k - 1] - y.mean()) * min(1.0, spread / y.std(ddof=1)))


@pytest.mark.parametrize(("target", "k"), [("maximum", 200), ("minimum", 1), (0.99, 198), (0.5, 100)])
def test_corrected_percentiles_in_plain_numpy(target: str | float, k: int) -> None:
    data, method = incomes(), sm.Noise(on="income", variance=0.4)
    masked = sm.mask(data, method, seed=1)
    x, y = data["income"], masked["income"]
    truth, left = np.sort(x)[k - 1], y.var(ddof=1) - 0.4 * x.var(ddof=1)
    known = PositionNoiseKnown(on="income", target=target).for_informed_attacker(method)
    assert known.score(data, masked, RNG).value == pytest.approx((shrink(y, k, left**0.5) - truth) ** -2)
    guessed = PositionNoiseGuessed(on="income", target=target, believed_sd=15_000)
    assert guessed.score(data, masked, RNG).value == pytest.approx((shrink(y, k, 15_000) - truth) ** -2)


def test_knowing_lambda_raises_the_risk_of_a_percentile() -> None:
    """Normal data, p = 0.99, l2 = s2: the bias of Y_(k) is z (sqrt 2 - 1) s = 0.96 s, 4 times the error that is left.

    sigma_0 = s does as well as lambda; a belief of twice the true value corrects nothing, and is `Position` exactly.
    """
    x = np.random.default_rng(2).normal(50, 1, 200)
    data, method = sm.read(pl.DataFrame({"income": x}), numeric="all"), sm.Noise(on="income", variance=1.0)
    files = draws_of(method, data)
    plain = pooled(Position(on="income", target=0.99), data, files)
    known = pooled(PositionNoiseKnown(on="income", target=0.99).for_informed_attacker(method), data, files)
    guessed, wrong = (
        pooled(PositionNoiseGuessed(on="income", target=0.99, believed_sd=sd), data, files) for sd in (1.0, 2.0)
    )
    assert min(known, guessed) > 4 * plain
    assert wrong == pytest.approx(plain, rel=1e-12)
    assert theory.noise_known(1.0, n=200, variance=1.0, p=0.99) > 4 * theory.percentile(
        1.0, n=200, variance=1.0, p=0.99
    )


def test_backed_out_noise_never_uses_the_original() -> None:
    """Another original with the same target value gives the same risk: only the release and sigma_0 enter the guess."""
    data = incomes()
    masked = sm.mask(data, sm.Noise(on="income", variance=0.4), seed=1)
    x = data["income"].copy()
    x[x < x.max()] /= 3
    other = sm.read(pl.DataFrame({"income": x}), numeric="all")
    measure = PositionNoiseGuessed(on="income", believed_sd=12_000)
    released = other.change(None, {"income": masked["income"]})
    assert measure.score(other, released, RNG).value == measure.score(data, masked, RNG).value


def test_known_noise_of_strata_bounds_and_rescaling() -> None:
    data = incomes()
    frame = data.frame().with_columns(g=pl.Series(["a", "b"] * 100))
    grouped = sm.read(frame, numeric=["income"], keys=["g"])
    method = sm.Noise(on="income", variance=0.5, within=["g"])
    masked, x = sm.mask(grouped, method, seed=1), data["income"]
    noise = 0.5 * (x[::2].var(ddof=1) + x[1::2].var(ddof=1)) / 2
    y = masked["income"]
    error = shrink(y, 200, (y.var(ddof=1) - noise) ** 0.5) - x.max()
    measure = PositionNoiseKnown(on="income")
    assert measure.for_informed_attacker(method).score(grouped, masked, RNG).value == pytest.approx(error**-2)
    bounded = sm.Noise(on="income", variance=0.5, lower=0.0)  # eq. 11: the attacker ignores the bound
    masked = sm.mask(data, bounded, seed=1)
    assert measure.for_informed_attacker(bounded).score(data, masked, RNG).value > 0
    rescaled = sm.Noise(on="income", variance=0.5, rescale=True)
    masked = sm.mask(data, rescaled, seed=1)
    informed = measure.for_informed_attacker(rescaled).score(data, masked, RNG).value
    assert informed == pytest.approx(Position(on="income").score(data, masked, RNG).value)


def test_unmasked_variable_is_known_exactly() -> None:
    data = incomes()
    informed = PositionNoiseKnown(on="income").for_informed_attacker(sm.methods.Identity())
    for measure in (Position(on="income"), informed):
        assert measure.score(data, data.change(None, {}), RNG).value == np.inf


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        (None, "the method of the file is not known"),
        (sm.RankSwap(on="income", p=0.1), r"the masking \(RankSwap\) is not plain additive noise"),
        (sm.Noise(on="income", variance=0.1, above=20_000.0, variance_above=0.2), "depends on the true value"),
        (sm.methods.Chain([sm.Noise(on="income"), sm.RankSwap(on="income", p=0.1)]), "several steps mask 'income'"),
    ],
)
def test_noise_without_a_stated_variance_is_refused(method: sm.Method | None, reason: str) -> None:
    data = incomes()
    measure = PositionNoiseKnown(on="income")
    measure = measure if method is None else measure.for_informed_attacker(method)
    with pytest.raises(sm.errors.Undefined, match=reason):
        measure.score(data, data.change(None, {}), RNG)


def test_believed_sd_must_be_stated() -> None:
    with pytest.raises((TypeError, sm.errors.PlanError), match="believed_sd"):
        PositionNoiseGuessed(on="income")  # type: ignore[call-arg]
    with pytest.raises(sm.errors.PlanError, match="PositionNoiseGuessed.believed_sd must be in"):
        PositionNoiseGuessed(on="income", believed_sd=0)


@pytest.mark.parametrize(
    "measure",
    [
        MeanGuess(on="wage"),
        PositionNoiseKnown(on="wage", method=sm.Noise(on="wage")),
        PositionNoiseGuessed(on="wage", target=0.9, believed_sd=900.0),
    ],
    ids=lambda measure: type(measure).__name__,
)
def test_laws(measure: sm.Measure) -> None:
    testing.check_measure(measure, sm.demo.population(50, seed=1), [sm.Noise(on="wage")])
