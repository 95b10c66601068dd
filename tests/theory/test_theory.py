"""Properties of the closed-form maps, simulations where no value is published, and invalid input."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdcmap import theory
from sdcmap.errors import PlanError
from sdcmap.theory import KNOWLEDGE, NoiseModel
from sdcmap.theory.joint_ranks import normal_moments

FAST_STATES = [name for name in KNOWLEDGE if not name.endswith("_in_sample")]
sizes, noises = st.integers(2, 5000), st.just(0.0) | st.floats(1e-9, 50)
scales, shares = st.floats(0.01, 100), st.floats(0.5, 0.999)
RNG_SEED = 20_240


def z_score(errors: np.ndarray, risk: object) -> float:
    """Return by how draws standard errors the mean of the squared errors differs from 1/R."""
    return float((errors.mean() - 1 / float(risk)) / (errors.std() / np.sqrt(len(errors))))  # type: ignore[arg-type]


# ---- properties -----------------------------------------------------------------------------------------------------


@given(n=sizes, l2=noises, c2=scales, p=shares)
def test_risks_scale_with_the_unit(n: int, l2: float, c2: float, p: float) -> None:
    """R(c2 s2, c2 l2) = R/c2, and the same for U."""
    one, other = NoiseModel(n=n, variance=1.0, p=p), NoiseModel(n=n, variance=c2, p=p)
    assert other.utility(c2 * l2) * c2 == pytest.approx(float(one.utility(l2)), rel=1e-9)
    for name in FAST_STATES:
        assert float(other.risk(c2 * l2, name)) * c2 == pytest.approx(float(one.risk(l2, name)), rel=1e-6), name


@settings(max_examples=10)
@given(n=st.integers(2, 300), l2=st.floats(0.001, 5), c2=scales)
def test_position_risks_scale_with_unit_and_sign(n: int, l2: float, c2: float) -> None:
    one = float(theory.position_known(l2, n=n, variance=1.0, rank=n))
    assert float(theory.position_known(c2 * l2, n=n, variance=c2, rank=1)) * c2 == pytest.approx(one, rel=1e-6)
    x = np.random.default_rng(n).lognormal(size=min(n, 40))
    up = float(theory.position_in_file(l2, x, len(x)))
    assert float(theory.position_in_file(c2 * l2, -np.sqrt(c2) * x, 1)) * c2 == pytest.approx(up, rel=1e-6)


@given(n=st.integers(1, 10**6), share=st.floats(0, 1))
def test_normal_moments_are_symmetric_and_bounded(n: int, share: float) -> None:
    rank = 1 + int(share * (n - 1))
    mean, variance = normal_moments(rank, n)
    assert (-mean, variance) == normal_moments(n + 1 - rank, n)
    assert 0 < variance <= 1 + 1e-12
    assert (mean > 0) == (2 * rank > n + 1) or 2 * rank == n + 1
    if rank < n:
        assert mean < normal_moments(rank + 1, n)[0]


@pytest.mark.parametrize("n", [2, 3, 7, 40])
def test_normal_moments_sum_to_those_of_the_sample(n: int) -> None:
    """The means sum to 0, the second moments to n."""
    moments = np.array([normal_moments(k, n) for k in range(1, n + 1)])
    assert moments[:, 0].sum() == pytest.approx(0, abs=1e-12)
    assert (moments[:, 1] + moments[:, 0] ** 2).sum() == pytest.approx(n, rel=1e-12)


@given(n=sizes, s2=scales, p=shares)
def test_risk_falls_with_noise_where_the_theory_says_so(n: int, s2: float, p: float) -> None:
    model, l2 = NoiseModel(n=n, variance=s2, p=p), s2 * np.geomspace(1e-4, 100, 60)
    for name in ("population", "in_sample", "nearest_to_mean", "index", "percentile", "extreme", "extreme_exact"):
        assert (np.diff(model.risk(l2, name)) < 0).all(), name
    assert (np.diff(model.utility(l2)) < 0).all()
    assert (model.risk(l2, "in_sample") > model.risk(l2, "population")).all()


@settings(max_examples=15)
@given(n=st.integers(5, 2000), s2=scales, p=shares, exponent=st.floats(-3, 3))
def test_solution_meets_the_limit_and_less_noise_does_not(n: int, s2: float, p: float, exponent: float) -> None:
    model, max_risk = NoiseModel(n=n, variance=s2, p=p), 10**exponent / s2
    for knowledge in ("index", "percentile_exact", "extreme", theory.PAPER):
        solution = model.solve(max_risk, knowledge)
        assert solution.noise_variance is not None and solution.risk is not None and solution.efficiency is not None
        assert solution.risk <= max_risk
        if solution.status == "found":
            assert float(model.risk(solution.noise_variance * 0.999, knowledge)) > max_risk
        for low, high in solution.intervals:
            inside = np.linspace(low, min(high, 10 * low + s2), 7)[1:-1]
            assert (model.risk(inside, knowledge) <= max_risk * (1 + 1e-9)).all()


def test_solve_reports_when_no_noise_suffices() -> None:
    solution = NoiseModel(n=200).solve(0.5, "index", max_noise_variance=1.0)
    assert solution.status == "none" and solution.intervals == () and solution.noise_variance is None
    assert solution.reason.startswith("No noise variance up to 1 brings R to 0.5; the least is R = 1 at 1.")


def test_largest_risk_of_population_and_file() -> None:
    x = np.array([1.0, 2.0, 6.0, 8.0])
    assert theory.largest_in_population(0.5, n=9, variance=4.0) == theory.utility(0.5, n=9, variance=4.0)
    each = theory.each_record([0.0, 1.0], x)
    assert each.shape == (2, 4)
    assert each[1] == pytest.approx(4 / (1 + 4 * (x - 4.25) ** 2))
    assert theory.largest_in_file([0.0, 1.0], x) == pytest.approx(each.max(axis=1))
    assert float(theory.largest_in_file(0.0, x)) == pytest.approx(float(theory.fishing_in_file(0.0, x)))
    assert float(theory.in_file(0.5, x)) == pytest.approx(4 / (0.5 + ((x - 4.25) ** 2).sum()))
    assert theory.largest_in_file(0.0, [0.0, 1.0, 2.0]) == np.inf


@given(n=sizes, l2=noises, f=st.floats(0, 1), m=st.floats(0, 50))
def test_sampling_lowers_the_risk(n: int, l2: float, f: float, m: float) -> None:
    ends = [float(r(l2, n=n, variance=1.0)) for r in (theory.in_population, theory.in_sample)]
    assert ends[0] <= float(theory.perhaps_in_sample(l2, n=n, variance=1.0, sampling_fraction=f)) <= ends[1]
    q = theory.link_probability(f, doubles=m)
    assert 0 < q <= 1 and theory.link_probability(1.0, doubles=m) == 1
    linked = float(theory.linked_record(l2, variance=1.0, link_probability=q))
    assert linked <= float(theory.index_known(l2)) * (1 + 1e-12)
    assert float(theory.linked_record(l2, variance=1.0, link_probability=q, weighs_doubt=True)) >= linked * (1 - 1e-12)


@pytest.mark.parametrize(("f", "m"), [(0.1, 2.0), (0.5, 1.0), (0.9, 5.0)])
def test_link_probability_equals_simulated_share(f: float, m: float) -> None:
    """Draw samples of the people with a target's key, and count whose record the only match is (4 standard errors)."""
    rng = np.random.default_rng(7)
    own = rng.random(400_000) < f
    others = rng.binomial(rng.poisson(m, 400_000), f)
    single = own[own + others == 1]
    share = theory.link_probability(f, doubles=m)
    assert abs(single.mean() - share) < 4 * np.sqrt(share * (1 - share) / len(single))


def test_extreme_uses_exact_moments_for_few_records() -> None:
    assert theory.extreme(0.3, n=5, variance=2.0) == theory.extreme_exact(0.3, n=5, variance=2.0)
    assert theory.extreme(0.3, n=2, variance=2.0) > 0
    with pytest.raises(PlanError, match="n must be a whole number in .3, inf. for the large-sample moments"):
        theory.large_sample_moments(2)


# ---- publishing lambda ----------------------------------------------------------------------------------------


def test_published_lambda_raises_risk_and_utility() -> None:
    l2 = np.array([0.2, 0.5, 1.0, 2.0, 5.0])
    model = NoiseModel(n=200, variance=1.0, p=0.99)
    assert (model.risk(l2, "percentile_noise_known") > model.risk(l2, "percentile_exact")).all()
    secret, known = (theory.utility_of_variance(l2, n=200, variance=1.0, noise_known=k) for k in (False, True))
    assert (known > secret).all()
    assert (theory.noise_known(l2, n=200, variance=1.0, p=0.99, trusts_normality=True) > model.risk(l2, "index")).all()


def test_stronger_prior_belief_raises_the_risk() -> None:
    risks = [float(theory.noise_guessed(1.0, n=200, variance=1.0, p=0.99, prior_df=v)) for v in (3, 30, 300, np.inf)]
    assert risks == sorted(risks)
    nearly = float(theory.noise_guessed(1.0, n=200, variance=1.0, p=0.99, prior_df=1e8))
    assert nearly == pytest.approx(risks[-1], rel=1e-5)


@pytest.mark.parametrize(("n", "s2", "l2", "p"), [(100, 1.0, 1.0, 0.99), (5, 1.0, 3.0, 0.8), (20, 4.0, 0.5, 0.9)])
def test_informed_intruders_by_simulation(n: int, s2: float, l2: float, p: float) -> None:
    from scipy.special import ndtri

    rng, draws = np.random.default_rng(RNG_SEED + n), 20_000
    y = rng.normal(0, np.sqrt(s2 + l2), (draws, n))
    k, z = theory.rank_of(p, n), ndtri(p)
    spread, mean = y.std(axis=1, ddof=1), y.mean(axis=1)
    corrected = np.sort(y, axis=1)[:, k - 1] - normal_moments(k, n)[0] * spread
    exact = np.sqrt(np.maximum(spread**2 - l2, 0))
    believed = np.minimum(spread, np.sqrt(1.2 * s2 * rng.chisquare(30, draws) / 30))
    for shrunk, attack in (
        (exact, lambda **more: theory.noise_known(l2, n=n, variance=s2, p=p, **more)),
        (
            believed,
            lambda **more: theory.noise_guessed(
                l2, n=n, variance=s2, p=p, prior_df=30, prior_variance=1.2 * s2, **more
            ),
        ),
    ):
        target = z * np.sqrt(s2)
        assert abs(z_score((corrected + z * shrunk - target) ** 2, attack())) < 4
        assert abs(z_score((mean + z * shrunk - target) ** 2, attack(trusts_normality=True))) < 4


# ---- simulation of the rest -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "s2", "l2", "p"), [(50, 1.0, 0.2, 0.9), (120, 4.0, 1.0, 0.99)])
def test_knowledge_states_by_simulation(n: int, s2: float, l2: float, p: float) -> None:
    rng, draws = np.random.default_rng(RNG_SEED), 20_000
    model = NoiseModel(n=n, variance=s2, p=p, r=2)
    x = rng.normal(0, np.sqrt(s2), (draws, n))
    y = x + rng.normal(0, np.sqrt(l2), x.shape)
    outsider, mean = rng.normal(0, np.sqrt(s2), draws), y.mean(axis=1)
    xs, ys, k = np.sort(x, axis=1), np.sort(y, axis=1), model.rank
    from scipy.special import ndtri

    errors = {
        "population": outsider - mean,
        "in_sample": x[:, 0] - mean,
        "nearest_to_mean": mean,
        "index": y[:, 0] - x[:, 0],
        "percentile_exact": ys[:, k - 1] - ndtri(p) * np.sqrt(s2),
        "percentile_in_sample": ys[:, k - 1] - xs[:, k - 1],
        "extreme_in_sample": ys[:, n - 2] - xs[:, n - 2],
    }
    for name, error in errors.items():
        assert abs(z_score(error**2, model.risk(l2, name))) < 4, name


@pytest.mark.parametrize(("rank", "l2"), [(1, 0.3), (20, 0.01), (39, 2.0), (40, 0.3)])
def test_position_in_file_by_simulation(rank: int, l2: float) -> None:
    rng = np.random.default_rng(RNG_SEED)
    x = np.sort(np.round(rng.lognormal(size=40), 1))  # with ties
    y = np.sort(x + rng.normal(0, np.sqrt(l2), (20_000, 40)), axis=1)
    assert abs(z_score((y[:, rank - 1] - x[rank - 1]) ** 2, theory.position_in_file(l2, x, rank))) < 4


def test_fishing_by_simulation() -> None:
    rng = np.random.default_rng(RNG_SEED)
    x = rng.lognormal(size=30)
    mean = x.mean() + rng.normal(0, np.sqrt(2.0 / 30), 20_000)
    nearest = np.abs(x - mean[:, None]).min(axis=1)
    assert abs(z_score(nearest**2, theory.fishing_in_file(2.0, x))) < 4
    others, mean = rng.normal(size=(20_000, 50)), rng.normal(0, np.sqrt(1.5 / 20), 20_000)
    nearest = np.abs(others - mean[:, None]).min(axis=1)
    assert abs(z_score(nearest**2, theory.fishing_in_population(0.5, n=20, variance=1.0, entities=50))) < 4
    least = 1 - 2 / np.pi  # E min of two chi^2_1
    assert float(theory.fishing_with_links(2.0, n=2)) == pytest.approx(1 / (2 * least))


# ---- shapes and invalid input --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KNOWLEDGE)
def test_risk_has_the_shape_of_the_noise_variance(name: str) -> None:
    model = NoiseModel(n=30, p=0.9)
    assert np.ndim(model.risk(0.5, name)) == 0
    grid = np.array([[0.1, 0.5], [1.0, 2.0]])
    assert model.risk(grid, name).shape == (2, 2)
    assert float(model.risk(grid, name)[0, 1]) == pytest.approx(float(model.risk(0.5, name)), rel=1e-12)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: NoiseModel(n=1), "n must be a whole number in [2, inf). Got 1."),
        (lambda: NoiseModel(n=20, variance=0), "variance must be a finite number in (0, inf). Got 0."),
        (lambda: NoiseModel(n=20, variance=np.nan), "variance must be a finite number in (0, inf). Got nan."),
        (lambda: NoiseModel(n=20, p=1.0), "p must be a finite number in (0, 1). Got 1."),
        (lambda: NoiseModel(n=20, p=0.04), "p must be in [1/n, 1), with n*p at least 1"),
        (lambda: NoiseModel(n=20, r=21), "r must be a whole number in [1, n]. Got 21 with n=20."),
        (lambda: NoiseModel(n=20).utility(-0.1), "noise_variance must be a finite number in [0, inf). Got -0.1."),
        (lambda: theory.index_known([0.1, np.nan]), "noise_variance must be a finite number in [0, inf). Got nan."),
        (lambda: theory.in_sample("a", n=2, variance=1.0), "noise_variance must be a number in [0, inf). Got a str."),
        (lambda: NoiseModel(n=20).risk(1, "indx"), "there is no knowledge state 'indx'. Did you mean 'index'?"),
        (lambda: NoiseModel(n=20).solve(0.0), "max_risk must be a finite number in (0, inf). Got 0."),
        (lambda: theory.position_in_file(1, [1.0, 2.0], 3), "rank must be a whole number in [1, n]. Got 3 with n=2."),
        (lambda: theory.position_in_file(1, [1.0, np.nan], 1), "x must be a list of at least 2 finite numbers"),
        (lambda: theory.position_known(1, n=200, variance=1.0, rank=100), "use position_in_file"),
        (lambda: theory.link_probability(1.5, doubles=-1), "sampling_fraction must be a finite number in [0, 1]"),
        (lambda: theory.strongest({}, 1.0), "at least one attack"),
    ],
)
def test_invalid_input_names_parameter_and_range(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(PlanError) as caught:
        call()
    assert sentence in str(caught.value)


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(PlanError) as caught:
        theory.percentile(0.1, n=1, variance=-1.0, p=2.0)
    assert [problem.split()[0] for problem in caught.value.problems] == ["n", "variance", "p"]
