"""Estimates: confidence limits against published values, and the round trip through the score table."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdcmap.core.estimate import Bound, Estimate, SampledShare, Skipped

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12)
SHARES = st.builds(
    lambda trials, comparisons, scale: SampledShare(trials=trials, comparisons=comparisons, scale=scale),
    st.integers(1, 10**6), st.integers(1, 20), st.floats(0.01, 1),
)  # fmt: skip


@st.composite
def estimates(draw: st.DrawFn, depth: int = 1) -> Estimate:
    bounds = st.lists(
        st.builds(lambda a, e: Bound(attack=a, estimate=e), NAMES, estimates(depth=depth - 1)), max_size=2
    )
    share = draw(st.none() | SHARES)
    value = draw(NUMBERS) if share is None else share.scale * draw(st.floats(0, 1))
    return Estimate(
        value=value,
        se=draw(st.none() | st.floats(0, 1e3)),
        df=draw(st.none() | st.floats(1, 1e4)),
        share=share,
        reciprocal=draw(st.booleans()) if share is None and value > 0 else False,
        parts=draw(st.dictionaries(NAMES, NUMBERS, max_size=3)),
        bounds=tuple(draw(bounds)) if depth else (),
        skipped=tuple(draw(st.lists(st.builds(lambda a, r: Skipped(attack=a, reason=r), NAMES, NAMES), max_size=2))),
    )


@given(estimates())
def test_estimate_survives_the_score_table(estimate: Estimate) -> None:
    assert Estimate.from_details(estimate.value, estimate.se, estimate.to_details()) == estimate


@given(estimates(), st.floats(0.5, 0.999), st.floats(0.5, 0.999))
def test_upper_limit_increases_with_the_level(estimate: Estimate, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert estimate.value <= estimate.upper(low) <= estimate.upper(high) + 1e-9 * abs(estimate.upper(high))
    assert all(estimate.upper(low) >= bound.estimate.upper(low) for bound in estimate.bounds)
    assert estimate.lower(high) <= estimate.lower(low) <= estimate.value


def test_confidence_limits_match_published_tables() -> None:
    """Quantiles of the normal (1.6449, 1.9600) and of t with 10 degrees of freedom (1.8125), as printed everywhere."""
    assert Estimate(value=1.0, se=0.1).upper(0.95) == pytest.approx(1.16449, abs=1e-5)
    assert Estimate(value=1.0, se=0.1).lower(0.975) == pytest.approx(0.80400, abs=1e-5)
    assert Estimate(value=1.0, se=0.1, df=10).upper(0.95) == pytest.approx(1.18125, abs=1e-5)
    assert Estimate(value=1.0).upper(0.99) == Estimate(value=1.0).lower(0.99) == 1.0


def test_sampled_share_uses_wilsons_interval() -> None:
    """Newcombe (1998), table I: 81 of 263 gives .2553 to .3662, 15 of 148 gives .0624 to .1605 (95 %, two-sided)."""
    for hits, trials, upper in ((81, 263, 0.3662), (15, 148, 0.1605)):
        share = SampledShare(trials=trials)
        assert Estimate(value=hits / trials, share=share).upper(0.975) == pytest.approx(upper, abs=5e-5)
    one, eight = (SampledShare(trials=100, comparisons=count) for count in (1, 8))
    assert Estimate(value=0.1, share=eight).upper(0.6) == Estimate(value=0.1, share=one).upper(0.95)  # 0.4 / 8 is 0.05
    scaled = Estimate(value=0.05, share=SampledShare(trials=100, scale=0.5))
    assert scaled.upper(0.95) == pytest.approx(Estimate(value=0.1, share=one).upper(0.95) / 2)
    assert Estimate(value=1.0, share=one).upper(0.999) == 1.0


def test_bound_raises_the_upper_limit_but_not_the_value() -> None:
    bound = Bound(attack="the file before RankSwap", estimate=Estimate(value=0.9, se=0.01))
    estimate = Estimate(value=0.2, bounds=(bound,))
    assert estimate.value == 0.2 and estimate.upper(0.95) == bound.estimate.upper(0.95) > 0.9


def test_estimate_is_keyword_only_and_frozen() -> None:
    with pytest.raises(TypeError):
        Estimate(*[0.1])  # type: ignore[misc]
    with pytest.raises(AttributeError):
        Estimate(value=0.1).value = 0.2  # type: ignore[misc]
    assert math.isinf(Estimate(value=math.inf).upper(0.95))


# ---- the interval of R = 1/MSE --------------------------------------------------------------------------------------
def test_upper_limit_of_a_precision_is_one_over_the_lower_limit_of_the_error() -> None:
    """R = 3.57e-8 with a relative standard error of 0.16: 4.84e-8 at 95 %, where R + 1.645 se is only 4.51e-8."""
    estimate = Estimate(value=3.57e-8, se=0.16 * 3.57e-8, reciprocal=True)
    assert estimate.upper(0.95) == pytest.approx(4.845e-8, rel=1e-3)
    assert Estimate(value=3.57e-8, se=0.16 * 3.57e-8).upper(0.95) == pytest.approx(4.51e-8, rel=1e-3)
    assert Estimate(value=1.0, se=0.7, reciprocal=True).upper(0.95) == math.inf  # the error may be 0: too few draws
    assert Estimate(value=1.0, se=math.inf, reciprocal=True).interval(0.95) == (0.0, math.inf)
    assert Estimate(value=math.inf, reciprocal=True).upper(0.95) == math.inf
    assert Estimate(value=1.0, reciprocal=True).interval(0.95) is None


ERRORS = {
    "normal": (lambda rng, shape: rng.normal(size=shape), 1.0),
    "biased": (lambda rng, shape: 1 + rng.normal(size=shape), 2.0),
    "heavy tails": (lambda rng, shape: rng.standard_t(5, size=shape), 5 / 3),
    "mostly unchanged": (lambda rng, shape: rng.normal(size=shape) * (rng.random(shape) < 0.3), 0.3),
}


@pytest.mark.parametrize("name", ERRORS)
def test_interval_of_a_precision_covers_the_truth(name: str) -> None:
    """The upper limit covers at least as often as stated, whatever the errors; the lower one about as often.

    4,000 simulated studies of 72 draws; the standard error of a coverage of 95 % is 0.34 %. With few heavy-tailed errors
    no interval of a mean square covers from above, so the lower limit of R is a little too high there (measured: 88 %).
    """
    make, mean_square = ERRORS[name]
    squares = make(np.random.default_rng(1), (4000, 72)) ** 2
    means, errors = squares.mean(axis=1), squares.std(axis=1, ddof=1) / np.sqrt(72)
    pairs = zip((1 / means).tolist(), (errors / means**2).tolist(), strict=True)
    estimates = [Estimate(value=value, se=se, reciprocal=True) for value, se in pairs]
    above = np.mean([estimate.upper(0.95) >= 1 / mean_square for estimate in estimates])
    below = np.mean([estimate.lower(0.95) <= 1 / mean_square for estimate in estimates])
    assert above >= 0.95
    assert below >= (0.86 if name == "heavy tails" else 0.93)
