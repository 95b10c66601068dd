"""Beliefs, losses, divergences, global risk and utility: properties, edge cases, and the rule based on them."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

import sdcmap as sm
from sdcmap.bundle.limit_checks import limits_of
from sdcmap.charts.planes import draw_planes
from sdcmap.study.scores import Scores
from sdcmap.theory.decision import (
    DIVERGENCES,
    LOSSES,
    Absolute,
    Bounded,
    Discrete,
    Distribution,
    Divergence,
    GlobalRisk,
    GlobalUtility,
    KullbackLeibler,
    Log,
    Loss,
    LossInduced,
    Neighbors,
    NoiseScenario,
    Normal,
    PlugIn,
    Quadratic,
    Samples,
    Student,
    WassersteinDistance,
    ZeroOne,
    acts,
    decide,
    estimated_knowledge,
    global_risk,
    global_utility,
    is_disclosed,
    knowledge,
    mean_posterior,
    normal_class,
    normal_posterior,
    notes,
    own_knowledge,
    regions,
    robust_risk,
    robust_utility,
    share_of_harm,
    sweep_limits,
    weigh_by_harm,
    worst,
)

MEANS, VARIANCES = st.floats(-5, 5), st.floats(0.01, 20)
NORMALS = st.builds(Normal, MEANS, VARIANCES)
STUDENTS = st.builds(Student, MEANS, st.floats(0.1, 4), st.floats(2.5, 60))
ATOMS = st.lists(st.tuples(st.integers(-6, 6), st.integers(1, 9)), min_size=2, max_size=7)
POINT_LOSSES: list[Loss] = [Quadratic(), Absolute(), ZeroOne(width=0.7), Bounded(cap=2.5)]
KL = KullbackLeibler()


def discrete(pairs: list[tuple[int, int]]) -> Discrete:
    values, mass = np.array(pairs, dtype=float).T
    return Discrete(values, mass / mass.sum())


def samples(pairs: list[tuple[int, int]]) -> Samples:
    values, mass = np.array(pairs, dtype=float).T
    return Samples(values, mass)


BELIEFS = st.one_of(NORMALS, STUDENTS, ATOMS.map(discrete))


# ---- distributions --------------------------------------------------------------------------------------------
@given(BELIEFS, st.floats(0.01, 0.99))
def test_quantile_inverts_the_cdf(p: Distribution, share: float) -> None:
    at = p.quantile(share)
    assert p.cdf(at) >= share - 1e-9
    assert p.cdf(np.nextafter(at, -np.inf) - 1e-6) <= share + 1e-9


@given(st.one_of(NORMALS, STUDENTS), MEANS)
def test_densities_equal_scipy(p: Any, x: float) -> None:
    ours = stats.norm(p.mean, p.scale) if isinstance(p, Normal) else stats.t(p.df, p.mean, p.scale)
    assert p.log_density(x) == pytest.approx(ours.logpdf(x), rel=1e-9, abs=1e-9)
    assert p.cdf(x) == pytest.approx(ours.cdf(x), abs=1e-10)
    assert p.variance == pytest.approx(ours.var(), rel=1e-9)
    assert p.entropy == pytest.approx(ours.entropy(), rel=1e-9, abs=1e-9)


@given(st.one_of(NORMALS, st.builds(Student, MEANS, st.floats(0.1, 4), st.floats(0.6, 40))), MEANS, st.floats(0.05, 9))
@settings(max_examples=40)
def test_expected_losses_equal_their_integrals(p: Any, action: float, cap: float) -> None:
    ours = stats.norm(p.mean, p.scale) if isinstance(p, Normal) else stats.t(p.df, p.mean, p.scale)
    width = math.sqrt(cap)
    inside = integrate.quad(
        lambda e: e * e * ours.pdf(action + e),
        -width,
        width,
        points=[np.clip(p.mean - action, -width, width)],
        limit=200,
    )[0]
    outside = ours.cdf(action - width) + ours.sf(action + width)
    assert Bounded(cap).expected_loss(p, action) == pytest.approx(inside + cap * outside, rel=1e-6, abs=1e-9)
    assert ZeroOne(width).expected_loss(p, action) == pytest.approx(outside, abs=1e-9)
    if isinstance(p, Normal) or p.df > 1.2:
        tail = integrate.quad(lambda e: ours.sf(action + e) + ours.cdf(action - e), 0, 10 * p.scale, limit=200)[0]
        tail += integrate.quad(lambda e: ours.sf(action + e) + ours.cdf(action - e), 10 * p.scale, np.inf, limit=400)[0]
        assert Absolute().expected_loss(p, action) == pytest.approx(tail, rel=1e-3)


def test_student_with_large_df_is_normal() -> None:
    for loss in (*POINT_LOSSES, Log()):
        assert loss.uncertainty(Student(1, 2, 1e7)) == pytest.approx(loss.uncertainty(Normal(1, 4)), rel=1e-5)
    assert Student(0, 1, 1.5).variance == np.inf
    with pytest.raises(sm.errors.Undefined, match="no mean and no variance"):
        _ = Student(0, 1, 1).variance


def test_atoms_are_sorted_and_merged() -> None:
    p = Discrete([[2, 1, 2], [5, 4, 3]], [[0.25, 0.5, 0.25], [0.2, 0.3, 0.5]])
    assert p.values.tolist() == [[1, 2, 2], [3, 4, 5]]
    assert p.weights.tolist() == [[0.5, 0, 0.5], [0.5, 0.3, 0.2]]
    assert p.entropy[0] == pytest.approx(math.log(2))
    assert p.quantile(0.5).tolist() == [1, 3]
    assert p.log_density([2, 9]).tolist() == [math.log(0.5), -np.inf]
    assert p == Discrete([[1, 2, 2], [3, 4, 5]], [[0.5, 0.25, 0.25], [0.5, 0.3, 0.2]])
    assert p != Discrete([1, 2], [0.5, 0.5]) and len({p, p}) == 1


def test_variance_of_weighted_draws() -> None:
    """sum w (x - m)^2/(1 - sum w^2) = 0.5/0.625 for 1, 2, 3 with weights 1, 2, 1."""
    assert Samples([3, 1, 2], [1, 1, 2]).variance == pytest.approx(0.8)
    assert Samples([1.0, 2.0, 4.0]).variance == pytest.approx(np.var([1, 2, 4], ddof=1))


def test_repr_and_errors_show_no_data_value() -> None:
    assert repr(Normal([1.25, 2], 1)) == "Normal(2 records)"
    assert repr(Samples([1.25, 2])) == "Samples(2 draws, 2 weights)"
    for wrong in (lambda: Normal([123.25, 1], [1, -1]), lambda: Discrete([123.25], [0.9])):
        with pytest.raises(sm.errors.PlanError) as error:
            wrong()
        assert "123" not in str(error.value)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Normal(0, 0), "Normal.variance must be finite and above 0; 1 of 1 is not"),
        (lambda: Normal(0, [1, -1, 2]), "1 of 3 is not"),
        (lambda: Normal(np.nan, 1), "Normal.mean must be finite"),
        (lambda: Normal("x", 1), "must be numbers"),
        (lambda: Normal([1, 2], [1, 2, 3]), "of one shape"),
        (lambda: Student(0, -1, 3), "Student.scale"),
        (lambda: Student(0, 1, 0), "Student.df"),
        (lambda: Discrete([1, 2], [0.5, 0.4]), "must sum to 1"),
        (lambda: Discrete([1, 2], [1.5, -0.5]), "not below 0"),
        (lambda: Discrete([], []), "needs a list"),
        (lambda: Discrete([1, np.inf], [0.5, 0.5]), "must be finite; 1 are not"),
        (lambda: Samples([1.0]), "at least 2 draws"),
        (lambda: Samples([1.0, 2.0], [1, 0]), "at least 2 draws"),
        (lambda: Samples([1.0, 2.0], [0, 0]), "sum above 0"),
        (lambda: ZeroOne(width=-1), "ZeroOne.width"),
        (lambda: Bounded(cap=0), "Bounded.cap"),
        (lambda: normal_class((1, -1), (1, 2)), "ascending ends"),
        (lambda: normal_posterior(Normal(0, 1), 1, 0), "variance must be"),
        (lambda: NoiseScenario(n=1), "NoiseScenario.n"),
        (lambda: acts(Normal(0, 1), -1), "at least 0"),
        (lambda: weigh_by_harm([-1.0], [-1]), "not below 0"),
        (lambda: share_of_harm([True], 0), "sum above 0"),
        (lambda: robust_risk(Normal(0, 1), [Normal(0, 1)], losses=[Quadratic(), Absolute()]), "one unit"),
        (lambda: global_risk(Normal(0, 1), Normal(0, 1), divergence=KL, prior=Normal(0, 1)), "one unit"),
    ],
)  # fmt: skip
def test_invalid_input_raises_one_sentence(make: Any, sentence: str) -> None:
    with pytest.raises(sm.errors.PlanError, match=sentence):
        make()


# ---- losses ---------------------------------------------------------------------------------------------------
@given(BELIEFS, MEANS, st.sampled_from(POINT_LOSSES))
def test_no_action_has_less_loss_than_the_best(p: Distribution, action: float, loss: Loss) -> None:
    assert loss.uncertainty(p) >= 0
    assert loss.uncertainty(p) <= loss.expected_loss(p, action) + 1e-9


@given(ATOMS, st.floats(0.1, 4))
def test_best_action_on_atoms_is_the_global_optimum(pairs: list[tuple[int, int]], cap: float) -> None:
    p = discrete(pairs)
    grid = np.linspace(-8, 8, 1601)
    for loss in (Bounded(cap), ZeroOne(width=math.sqrt(cap))):
        assert loss.uncertainty(p) <= loss.expected_loss(p, grid).min() + 1e-9
    assert Absolute().uncertainty(p) == pytest.approx(Absolute().expected_loss(p, p.values).min())
    assert ZeroOne().uncertainty(p) == pytest.approx(1 - p.weights.max())


@given(st.lists(ATOMS, min_size=2, max_size=4), st.sampled_from([*POINT_LOSSES, ZeroOne(), Log()]))
def test_vectorized_losses_equal_single_ones(rows: list[list[tuple[int, int]]], loss: Loss) -> None:
    most = max(map(len, rows))
    padded = [discrete([*row, *[(row[0][0], 1)] * (most - len(row))]) for row in rows]
    together = Discrete([p.values for p in padded], [p.weights for p in padded])
    assert loss.uncertainty(together) == pytest.approx([loss.uncertainty(p) for p in padded])
    agency = Discrete([0.0, 1.0], [0.5, 0.5])
    for measure in (LossInduced(Quadratic()), WassersteinDistance(), WassersteinDistance(order=1)):
        assert measure(agency, together) == pytest.approx([measure(agency, p) for p in padded])


@given(st.one_of(NORMALS, STUDENTS, ATOMS.map(discrete)), st.lists(STUDENTS, min_size=2, max_size=3))
@settings(max_examples=25)
def test_one_belief_against_many_equals_single_results(p: Distribution, others: list[Student]) -> None:
    together = Student(*([getattr(q, name) for q in others] for name in ("mean", "scale", "df")))
    for number in (Log().expected_loss, KL):
        assert number(p, together) == pytest.approx([number(p, q) for q in others], rel=1e-9, abs=1e-12)
    if isinstance(p, Student):
        assert KL(together, p) == pytest.approx([KL(q, p) for q in others], rel=1e-9, abs=1e-12)


def test_zero_one_loss_needs_a_width_and_draws_have_no_entropy() -> None:
    with pytest.raises(sm.errors.Undefined, match="needs a width above 0"):
        ZeroOne().uncertainty(Normal(0, 1))
    with pytest.raises(sm.errors.Undefined, match="no density"):
        Log().uncertainty(Samples([1.0, 2.0]))
    with pytest.raises(sm.errors.Undefined, match="no density"):
        Log().expected_loss(Normal(0, 1), Samples([1.0, 2.0]))


# ---- divergences ----------------------------------------------------------------------------------------------
DIVERGING: list[Divergence] = [
    KL,
    PlugIn(),
    WassersteinDistance(),
    WassersteinDistance(order=1),
    *map(LossInduced, [*POINT_LOSSES, Log()]),
]


@given(NORMALS, NORMALS, st.sampled_from(DIVERGING))
def test_divergences_of_normals_are_nonnegative_and_0_at_equality(p: Normal, q: Normal, measure: Divergence) -> None:
    assert measure(p, q) >= 0
    assert measure(p, p) == 0


@given(
    ATOMS.map(discrete),
    ATOMS.map(discrete),
    st.sampled_from([KL, WassersteinDistance(), *map(LossInduced, POINT_LOSSES)]),
)
def test_divergences_of_atoms_are_nonnegative_and_0_at_equality(p: Discrete, q: Discrete, measure: Divergence) -> None:
    assert measure(p, q) >= 0
    assert measure(p, p) == pytest.approx(0, abs=1e-9)
    infinite = bool(set(p.values[p.weights > 0]) - set(q.values[q.weights > 0]))
    if measure == KL:
        assert np.isinf(KL(p, q)) == infinite == bool(KL.notes(p, q))


@given(NORMALS, NORMALS)
def test_kl_of_normals_equals_its_integral(p: Normal, q: Normal) -> None:
    numerical = p.expectation(lambda x: p.log_density(x) - q.log_density(x))
    assert KL(p, q) == pytest.approx(numerical, rel=1e-9, abs=1e-10)
    assert LossInduced(Log())(p, q) == KL(p, q)
    assert PlugIn()(p, q) == KL(p, q)
    assert Log().expected_loss(p, q) == pytest.approx(KL(p, q) + p.entropy, rel=1e-9, abs=1e-9)


@given(STUDENTS, st.one_of(NORMALS, STUDENTS))
@settings(max_examples=30)
def test_kl_with_a_student_equals_its_integral(p: Student, q: Distribution) -> None:
    expected = p.expectation(lambda x: -q.log_density(x)) - p.entropy
    assert KL(p, q) == pytest.approx(expected, rel=1e-6, abs=1e-8)
    assert KL(p, p) == 0
    assert KL(Normal(p.mean, 1.0), p) >= 0


@given(NORMALS, NORMALS)
def test_loss_induced_is_the_squared_distance_of_the_means(p: Normal, q: Normal) -> None:
    assert LossInduced()(p, q) == pytest.approx((p.mean - q.mean) ** 2, rel=1e-9, abs=1e-9)
    assert estimated_knowledge(p, q) == pytest.approx(-Quadratic().expected_loss(p, q.mean), rel=1e-9)


@given(NORMALS, NORMALS, st.sampled_from([1, 2]))
@settings(max_examples=25)
def test_wasserstein_of_normals_equals_that_of_quantiles(p: Normal, q: Normal, order: int) -> None:
    shares = (np.arange(20_000) + 0.5) / 20_000
    atoms = [Samples(one.quantile(shares)) for one in (p, q)]
    measure = WassersteinDistance(order=order)
    assert measure(p, q) == pytest.approx(measure(*atoms), rel=5e-3, abs=5e-3)


def test_wasserstein_of_atoms_computed_by_hand() -> None:
    """Half of the mass at 0 stays, half goes to 2: W1 = 1, W2 = sqrt 2."""
    one, other = Discrete([0], [1]), Discrete([0, 2], [0.5, 0.5])
    assert WassersteinDistance(order=1)(one, other) == 1
    assert WassersteinDistance()(one, other) == pytest.approx(math.sqrt(2))
    with pytest.raises(sm.errors.Undefined, match="atoms with atoms"):
        WassersteinDistance()(one, Normal(0, 1))


def test_point_mass_gives_infinity_and_a_note() -> None:
    knows = Discrete([4.9], [1])
    assert KL(knows, Normal(5, 1)) == np.inf
    assert "point mass" in KL.notes(knows, Normal(5, 1))[0]
    assert global_risk(knows, Normal(5, 1), divergence=KL).iek == -np.inf
    assert global_risk(knows, Normal(5, 1)).iek == pytest.approx(-0.01)  # loss-induced
    with pytest.raises(sm.errors.Undefined, match="variances that are finite and above 0"):
        PlugIn()(knows, Normal(5, 1))
    with pytest.raises(sm.errors.Undefined, match="draws have none"):
        KL(Samples([1.0, 2.0]), Normal(0, 1))


def test_notes_on_units_normality_and_saturation() -> None:
    assert "nats" in notes(Normal(0, 1), Normal(0, 1), divergence=KL)[0]
    assert notes(Normal(0, 1), Normal(0, 1)) == ()
    assert notes(Normal(0, 1), Normal(0, 1), agency_loss=Log(), divergence=KL) == ()
    rng = np.random.default_rng(2)
    normal, skewed = Samples(rng.standard_normal(2000)), Samples(rng.exponential(size=2000))
    assert PlugIn().notes(normal, normal) == ()
    assert "not normal" in PlugIn().notes(normal, skewed)[0]
    assert "Student" in PlugIn().notes(Student(0, 1, 4), Normal(0, 1))[0]
    far = Samples(60 + rng.standard_normal(2000))
    assert "lower bound" in Neighbors().notes(normal, far)[0]
    with pytest.raises(sm.errors.Undefined, match="draws coincide"):
        Neighbors(k=2)(Samples([1.0, 1, 1, 2, 3]), normal)
    with pytest.raises(sm.errors.Undefined, match="equal weight"):
        Neighbors(k=1)(Samples([1.0, 2, 3], [1, 2, 3]), normal)
    with pytest.raises(sm.errors.Undefined, match="more than 5 draws"):
        Neighbors()(Samples([1.0, 2, 3]), normal)
    with pytest.raises(sm.errors.Undefined, match="Samples with Samples"):
        Neighbors()(Normal(0, 1), normal)


def test_loss_induced_needs_a_finite_uncertainty() -> None:
    with pytest.raises(sm.errors.Undefined, match="infinite under this loss"):
        LossInduced()(Student(0, 1, 1.5), Normal(0, 1))
    assert LossInduced(Bounded(cap=2))(Student(0, 1, 1.5), Normal(1, 1)) > 0


def test_every_loss_and_divergence_is_registered() -> None:
    assert {kind().text for kind in LOSSES.values()} == {"Quadratic", "Absolute", "ZeroOne", "Bounded", "Log"}
    assert set(DIVERGENCES) == {"kl", "plug-in", "neighbors", "wasserstein", "loss"}
    assert LossInduced(Absolute()).text == "LossInduced(loss=Absolute)"
    assert LossInduced(Absolute()).unit == "unit"


# ---- knowledge and harm ---------------------------------------------------------------------------------------
@given(NORMALS, st.floats(-10, 10), VARIANCES, st.sampled_from(POINT_LOSSES))
def test_conjugate_data_always_adds_knowledge(prior: Normal, seen: float, variance: float, loss: Loss) -> None:
    found = knowledge(prior, normal_posterior(prior, seen, variance), loss)
    assert found.gain >= -1e-12
    assert -1e-12 <= found.relative <= 1
    assert found.gain == pytest.approx(found.prior - found.posterior)


def test_relative_gain_needs_a_positive_prior_uncertainty() -> None:
    narrow = knowledge(Normal(0, 0.01), Normal(0, 0.001), Log())
    assert narrow.prior < 0 and math.isnan(narrow.relative) and "not defined" in narrow.notes[0]
    assert knowledge(Normal(0, 4), Normal(0, 0.01), Log()).notes != ()  # from above 0 to below
    known = knowledge(Discrete([1], [1]), Discrete([1], [1]))
    assert known.gain == 0 and math.isnan(known.relative)
    many = knowledge(Normal([0, 0], [4.0, 0.01]), Normal([0, 0], [1.0, 0.001]), Log())
    assert many.notes == (
        "the relative gain of 1 of 2 is not defined: it needs a prior uncertainty above 0, and none below 0.",
    )
    assert knowledge(Normal(0, 4), Normal(0, 1)).notes == ()


@given(NORMALS, st.floats(0, 30))
def test_intruder_acts_if_risk_is_above_minus_k(p: Normal, k: float) -> None:
    """Assumption 4 and definition 1: U < k_INT is RDH > -k_INT."""
    assert bool(acts(p, k)) == bool(own_knowledge(p) > -k)


def test_harm_weights_divide_risks() -> None:
    rdh = np.array([-4.0, -1.0, -2.0])
    assert weigh_by_harm(rdh, [8, 1, 0]).tolist() == [-0.5, -1.0, -np.inf]
    assert worst(rdh) == -1 and worst(rdh, harm=[8, 1, 0]) == -0.5
    assert share_of_harm(rdh > -1.5, harm=[8, 1, 1]) == pytest.approx(0.1)
    with pytest.raises(sm.errors.Undefined, match="at most 0"):
        weigh_by_harm([1.0], 1)
    with pytest.raises(sm.errors.Undefined, match="no risk"):
        worst([])


# ---- criterion ------------------------------------------------------------------------------------------------
RISKS = st.lists(st.tuples(*[st.integers(-6, 0).map(float)] * 4), min_size=1, max_size=12)


@given(RISKS, st.integers(-7, 0), st.integers(-7, 0))
def test_criterion_equals_its_definition(rows: list[tuple[float, ...]], agency: int, intruder: int) -> None:
    iek, rdh, sek, dus = np.array(rows).T
    risk, utility = GlobalRisk(iek, rdh), GlobalUtility(sek, dus)
    decision = decide(risk, utility, agency_limit=agency, intruder_limit=intruder)
    safe = [i for i, row in enumerate(rows) if row[0] <= agency and row[1] <= intruder]
    assert sorted(decision.safe) == safe
    letter = {(False, False): "D", (True, False): "C", (False, True): "A", (True, True): "B"}
    assert decision.regions.tolist() == [letter[a > agency, r > intruder] for a, r, *_ in rows]
    if safe:
        assert decision.choice in safe and decision.nearest_miss is None
        assert decision.distances[decision.choice] == min(math.hypot(*rows[i][2:]) for i in safe)
    else:
        assert decision.choice is None and decision.nearest_miss is not None
    assert sweep_limits(risk, utility).at(agency, intruder) == decision.choice


@given(NORMALS, NORMALS)
def test_coordinates_are_at_most_0_and_iek_at_most_minus_agency_uncertainty(agency: Normal, other: Normal) -> None:
    """Par. 20 and, with its sign corrected, par. 24."""
    for measure in (KL, LossInduced(), WassersteinDistance()):
        risk = global_risk(agency, other, divergence=measure)
        assert risk.rdh <= 0 and risk.iek <= -agency.variance
    assert global_risk(agency, agency, divergence=KL).iek == -agency.variance


def test_nan_has_no_region_and_limits_are_at_most_0() -> None:
    with pytest.raises(sm.errors.Undefined, match="no region"):
        regions(GlobalRisk(np.nan, -1.0), agency_limit=-1, intruder_limit=-1)
    with pytest.raises(sm.errors.PlanError, match="agency_limit must be a finite number of at most 0"):
        regions(GlobalRisk(-1.0, -1.0), agency_limit=0.5, intruder_limit=-1)
    with pytest.raises(sm.errors.PlanError, match="intruder_limit"):
        decide(GlobalRisk(-1.0, -1.0), GlobalUtility(-1.0, -1.0), agency_limit=-1, intruder_limit=np.inf)
    with pytest.raises(sm.errors.PlanError, match="no data set"):
        decide(GlobalRisk([], []), GlobalUtility([], []), agency_limit=-1, intruder_limit=-1)
    with pytest.raises(sm.errors.Undefined, match="cannot be compared"):
        decide(GlobalRisk(-1.0, -1.0), GlobalUtility(np.nan, -1.0), agency_limit=0, intruder_limit=0)
    assert regions(GlobalRisk(0.0, 0.0), agency_limit=0, intruder_limit=0) == "D"  # nothing is above 0


def test_disclosure_needs_a_prior_within_the_limit() -> None:
    assert is_disclosed([-2, -1, 0], [0, 0, 0], -1).tolist() == [True, True, False]
    assert not is_disclosed(-2, -1, -1)


@given(NORMALS, NORMALS, st.floats(0.1, 10))
def test_axes_relative_to_the_prior_do_not_depend_on_the_unit(agency: Normal, other: Normal, unit: float) -> None:
    prior = Normal(0, 9)

    def turned(p: Normal) -> Normal:
        return Normal(p.mean * unit, p.variance * unit**2)

    plain = global_risk(agency, other, prior=prior)
    changed = global_risk(turned(agency), turned(other), prior=turned(prior))
    assert tuple(changed) == pytest.approx(tuple(plain), rel=1e-6)
    assert global_risk(agency, prior, prior=prior).rdh == pytest.approx(-1)
    assert global_utility(agency, prior, prior=prior).dus == pytest.approx(-1)


@given(NORMALS, st.lists(NORMALS, min_size=1, max_size=5))
def test_robust_risk_is_the_worst_of_its_class(agency: Normal, class_: list[Normal]) -> None:
    together = Normal([p.mean for p in class_], [p.variance for p in class_])
    losses = [Quadratic(), Bounded(cap=4)]
    risk = robust_risk(agency, [together], losses=losses)
    pairs = [global_risk(agency, p, loss=loss) for p in class_ for loss in losses]
    assert tuple(risk) == pytest.approx((max(p.iek for p in pairs), max(p.rdh for p in pairs)), rel=1e-9)
    lowest = robust_utility(agency, class_)
    assert lowest.dus == pytest.approx(-max(p.variance for p in class_))


def test_expected_risk_equals_the_mean_of_draws() -> None:
    """10,000 draws, within 4 standard errors; for quadratic loss E(m_A - m_I)^2 has a closed form."""
    scenario = NoiseScenario(n=50, variance=2.0, noise_variance=0.5)
    agency, prior = scenario.agency(1.2, 0.05), Normal(0, 1)
    y = 1.2 + math.sqrt(0.5) * np.random.default_rng(1).standard_normal(10_000)
    drawn = global_risk(agency, scenario.intruder(prior, y), divergence=KL).iek
    exact = scenario.expected_risk(agency, prior, 1.2, divergence=KL)
    assert exact.iek == pytest.approx(drawn.mean(), abs=4 * drawn.std() / 100)
    assert exact.rdh == pytest.approx(-1 / 3)
    share = 1 / 1.5
    by_hand = -((1.2 - share * 1.2) ** 2 + share**2 * 0.5 + 0.05)
    assert scenario.expected_risk(agency, prior, 1.2).iek == pytest.approx(by_hand)
    utility = scenario.expected_utility(scenario.agency_of_mean(prior, 0.3), prior, 0.3)
    assert utility.dus == pytest.approx(-1 / (1 + 50 / 2.5))
    assert mean_posterior(0.3, 2.0, 50).variance == pytest.approx(2 / 50 * 49 / 47)


# ---- the rule -------------------------------------------------------------------------------------------------
FOUR = ("K", "H", "S", "U")


def scores_of(
    values: dict[str, list[tuple[float, ...] | None]], baseline_value: tuple[float | None, ...] = (-9.0,) * 4
) -> Scores:
    """Return scores: method -> (K, H, S, U) of each replicate; None if it failed, NaN for a missing value."""
    candidate, score = [], []
    for method, draws in values.items():
        for replicate, four in enumerate(draws):
            name = f"{method}-{replicate}"
            candidate.append((name, method, replicate, "infeasible" if four is None else "ok", "", 0.0))
            for measure, value in zip(FOUR, four or (), strict=False):
                if not math.isnan(value):
                    endless = math.isinf(value)
                    score.append(
                        (name, measure, None if endless else value, None, "{}", "infinite" if endless else "ok", "")
                    )
    columns = {
        "candidate": pl.String,
        "measure": pl.String,
        "value": pl.Float64,
        "se": pl.Float64,
        "details": pl.String,
    }
    measure = pl.DataFrame({
        "name": FOUR, "direction": ["lower", "lower", "higher", "higher"], "low": [None] * 4, "high": [0.0] * 4,
        "unit": ["unit²"] * 4, "axis": ["risk", "risk", "utility", "utility"], "baseline_value": baseline_value,
    })  # fmt: skip
    return Scores(
        pl.DataFrame(
            candidate, schema=["id", "method", "replicate", "status", "reason", "seconds"], orient="row"
        ).with_columns(
            kind=pl.when(pl.col("method") == "Identity").then(pl.lit("identity")).otherwise(pl.lit("candidate"))
        ),
        pl.DataFrame(score, schema={**columns, "status": pl.String, "reason": pl.String}, orient="row"),
        measure,
    )


def rule(agency_limit: float = -40, intruder_limit: float = -0.8, **how: Any) -> sm.GlobalCriterion:
    return sm.GlobalCriterion(
        iek="K", rdh="H", sek="S", dus="U", agency_limit=agency_limit, intruder_limit=intruder_limit, **how
    )


@pytest.fixture
def ru() -> sm.RUMap:
    example = {
        "Identity": [(-0.1, -0.001, -0.1, -0.001)],
        "D1": [(-51.96, -1.0, -3.3, -2.0)],
        "D2": [(-2.96, -1.0, -51.6, -2.0)],
        "D3": [(-60.0, -1.0, -5.0, -2.0)],
    }
    return sm.RUMap(scores_of(example, baseline_value=(-70.0, -2.0, -9.0, -4.0)), risk="K", utility="S")


def test_rule_chooses_the_safe_candidate_nearest_to_0(ru: sm.RUMap) -> None:
    choice = ru.choose(rule())
    assert (choice.candidate, choice.method) == ("D1-0", "D1")
    assert choice.reason == (
        "Recommended: D1. Its global risk is safe (region D): IEK -51.96 is within the limit of -40, and RDH -1 within "
        "-0.8. Of 4 candidates, 2 are safe; this one has the best global utility (SEK -3.3, DUS -2; distance 3.859 from "
        "(0, 0))."
    )
    assert [str(r) for r in choice.runners_up] == ["D3: IEK -60, RDH -1, SEK -5, DUS -2"]
    assert ru.choose(rule(agency_limit=-55)).method == "D3"
    # with limits of 0 the unmasked file is safe too, but it is not chosen
    assert ru.choose(rule(agency_limit=0, intruder_limit=0)).method != "Identity"
    assert ru.choose(rule(agency_limit=-51.96)).method == "D1"  # on the limit counts as below
    assert rule().table(ru)["region"].to_list() == ["B", "D", "C", "D"]


def test_rule_names_the_nearest_miss_if_no_candidate_is_safe(ru: sm.RUMap) -> None:
    choice = ru.choose(rule(agency_limit=-62))
    assert choice.candidate is None
    assert choice.reason == (
        "Release nothing: none of the 4 candidates has a safe global risk (region D: IEK at most -62, RDH at most -0.8). "
        "The nearest miss is D3 in region C with IEK -60 and RDH -1."
    )
    nobody = sm.RUMap(scores_of({"A": [None]}), "K", "S")
    assert nobody.choose(rule()).reason == "Release nothing: no candidate could be made and scored."


def test_rule_and_theory_make_the_same_choice() -> None:
    rng = np.random.default_rng(4)
    rows = -rng.exponential(size=(60, 4))
    ru = sm.RUMap(scores_of({f"M{i}": [tuple(row)] for i, row in enumerate(rows)}), "K", "S")
    risk, utility = GlobalRisk(rows[:, 0], rows[:, 1]), GlobalUtility(rows[:, 2], rows[:, 3])
    for agency, intruder in ((-0.5, -0.2), (-1.5, -1.0), (-9.0, -9.0)):
        decision = decide(risk, utility, agency_limit=agency, intruder_limit=intruder)
        choice = ru.choose(rule(agency, intruder))
        assert choice.method == ("" if decision.choice is None else f"M{decision.choice}")
        if decision.choice is None:
            assert f"The nearest miss is M{decision.nearest_miss} in region" in choice.reason


def test_rule_on_means_and_quantiles() -> None:
    draws = [(-2.0 - r / 10, -1.0, -1.0, -1.0) for r in range(20)]
    ru = sm.RUMap(scores_of({"A": draws, "B": [(-2.5, -1.0, -3.0, -1.0)] * 20}), "K", "S")
    mean = ru.choose(rule(-2.4, by="mean"))
    assert (mean.method, mean.candidate) == ("A", "A-4")  # mean -2.95; the first draw that is safe itself
    assert "mean global risk" in mean.reason and "Of 2 methods" in mean.reason
    upper = ru.choose(rule(-2.4, by="quantile"))
    assert upper.method == "B" and "0.95 quantile of global risk" in upper.reason
    with pytest.raises(sm.errors.PlanError, match="at least 20 replicates"):
        sm.RUMap(scores_of({"A": draws[:3]}), "K", "S").choose(rule(by="quantile"))


def test_rule_on_expectation_measures_fixes_the_draw() -> None:
    """IEK of a draw depends on its error, so a choice by it would disclose something about the original."""

    class Expected(sm.Measure):
        expectation = True
        text = "H"  # type: ignore[assignment]

    scores = scores_of({"A": [(-1.0, -1.0, -1.0, -1.0), (-3.0, -1.0, -1.0, -1.0)]})
    pooled = Scores(scores.candidate, scores.score, scores.measure, {"H": Expected()})
    choice = sm.RUMap(pooled, "K", "S").choose(rule(-1.5))
    assert (choice.candidate, choice.searched) == ("A-0", 1)
    assert "fixed in advance" in choice.reason and "pooled global risk" in choice.reason


def test_candidate_without_all_four_numbers_is_not_chosen() -> None:
    values = {"A": [(-9.0, math.nan, -1.0, -1.0)], "B": [(-9.0, -9.0, -2.0, -2.0)], "C": [(math.inf, -9.0, -1.0, -1.0)]}
    ru = sm.RUMap(scores_of(values), "K", "S")
    choice = ru.choose(rule(-1, -1))
    assert choice.method == "B" and "Of 2 candidates, 1 is safe;" in choice.reason
    with pytest.raises(sm.errors.PlanError, match="no measure 'Z'"):
        ru.choose(sm.GlobalCriterion(iek="Z", rdh="H", sek="S", dus="U"))


def test_rule_survives_a_round_trip_through_the_plan() -> None:
    measures = [sm.SmallCells(), sm.risk.KnownIndex(on="x"), sm.Hellinger(), sm.IL1s()]
    four = dict(zip(("iek", "rdh", "sek", "dus"), measures, strict=True))
    chosen_by = sm.GlobalCriterion(**four, agency_limit=-40, intruder_limit=-0.8, by="mean")  # type: ignore[arg-type]
    assert chosen_by.rdh == ("KnownIndex(on='x')",)
    plan = sm.Plan(sm.Noise(on="x"), measures, rule=chosen_by)
    assert sm.Plan.from_toml(plan.toml()) == plan
    limits = limits_of(
        plan, sm.demo.population(5), [plan.rule, None], max_risk=-1
    )  # the limit on the risk axis, SmallCells, is the stricter
    assert {limit.measure.text: limit.value for limit in limits} == {"SmallCells": -40, "KnownIndex(on='x')": -0.8}
    with pytest.raises(sm.errors.PlanError, match="the rule reads 'IL1s', which is none of the plan's measures"):
        sm.Plan(sm.Noise(on="x"), measures[:3], rule=chosen_by)
    with pytest.raises(sm.errors.PlanError) as error:
        sm.GlobalCriterion(iek="K", agency_limit=-1)
    assert error.value.problems == tuple(
        f"GlobalCriterion.{name} must name a measure." for name in ("rdh", "sek", "dus")
    )
    with pytest.raises(sm.errors.PlanError, match=r"GlobalCriterion.agency_limit must be in \(-inf, 0\]. Got 1"):
        rule(agency_limit=1)


# ---- the two planes -------------------------------------------------------------------------------------------
def texts(spec: Any) -> list[str]:
    """Return every text of a chart spec."""
    if isinstance(spec, dict):
        own = [spec["text"]] if isinstance(spec.get("text"), str) else []
        return own + [text for part in spec.values() for text in texts(part)]
    return [text for part in spec for text in texts(part)] if isinstance(spec, list) else []


def test_planes_show_regions_limits_prior_and_choice(ru: sm.RUMap) -> None:
    chart = sm.charts.draw_criterion(ru, ru.choose(rule()), unit="unit²", names={"D2": "second"})
    words = texts(chart.to_dict())
    expected = [
        "A: discredit harm alone", "B: both harms", "C: disclosure harm alone", "D: neither, safe", "limit of IEK: −40",
        "limit of RDH: −0.8", "prior", "D1", "second", "D1, 3.86 away", "(0, 0): most utility", "to be released",
        "prior: before the release",
    ]  # fmt: skip
    assert [text for text in expected if text not in words] == []
    assert chart.svg().startswith("<svg")
    assert ru.draw(mark=ru.choose(rule())).svg().startswith("<svg")  # the map marks the choice too
    with pytest.raises(sm.errors.PlanError, match="GlobalCriterion"):
        sm.charts.draw_criterion(ru, ru.choose(sm.Threshold(risk=-40)))


def test_planes_without_a_choice_and_with_infinite_numbers() -> None:
    values = {"A": [(-1.0, -1.0, -1.0, -1.0)], "C": [(math.inf, -9.0, -1.0, -1.0)]}
    ru = sm.RUMap(scores_of(values, baseline_value=(None,) * 4), "K", "S")
    words = texts(sm.charts.draw_criterion(ru, ru.choose(rule(-5, -5))).to_dict())
    assert "to be released" not in words and "prior" not in words
    empty = pl.DataFrame(schema={**dict.fromkeys(("name", "region"), pl.String), "chosen": pl.Boolean,
                                 **dict.fromkeys(("iek", "rdh", "sek", "dus"), pl.Float64)})  # fmt: skip
    assert draw_planes(empty, agency_limit=-1, intruder_limit=-1).svg().startswith("<svg")


def test_labels_of_a_crowded_plane_do_not_overlap() -> None:
    from sdcmap.charts.label_placement import CHARACTER_WIDTH, LINE_HEIGHT

    rng = np.random.default_rng(0)
    rows = -rng.exponential(size=(25, 4))
    ru = sm.RUMap(scores_of({f"method {i}": [tuple(row)] for i, row in enumerate(rows)}), "K", "S")
    spec = sm.charts.draw_criterion(ru, ru.choose(rule(-0.5, -0.5))).to_dict()
    for plane in spec["hconcat"][:2]:
        boxes = []
        for layer in plane["layer"]:
            if layer["mark"]["type"] == "text":
                place, text = layer["encoding"], layer["mark"]["text"]
                wide = CHARACTER_WIDTH * len(text)
                left = place["x"]["value"] - {"left": 0, "center": wide / 2, "right": wide}[layer["mark"]["align"]]
                top, bottom = (place["y"]["value"] + side * LINE_HEIGHT / 2 for side in (-1, 1))
                boxes.append((left, top, left + wide, bottom))
        touching = [
            (a, b) for i, a in enumerate(boxes) for b in boxes[:i]
            if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
        ]  # fmt: skip
        assert touching == []


def test_theory_names_do_not_shadow_public_names() -> None:
    names = {
        name for name, thing in vars(sm.theory.decision).items() if inspect.isclass(thing) or inspect.isfunction(thing)
    }
    assert len(names) > 40 and names & set(sm.__all__) == set()
