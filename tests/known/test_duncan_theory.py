"""Additive noise in closed form against the golden values of Duncan, Keller-McNulty and Stokes (2001), right reading.

Sources: ../shared/papers/duncan2001.md and golden/duncan_trottini_seri.json (an independent prototype), mpmath for the
moments of order statistics, the printed errata for what must not come out.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sdcmap import theory
from sdcmap.theory import NoiseModel
from sdcmap.theory.joint_ranks import normal_moments

MODEL = NoiseModel(n=200, variance=1.0, p=0.99)
COLUMNS = {
    "R2": "population",
    "R2_in_sample": "in_sample",
    "R4": "index",
    "R8_p99": "percentile",
    "R8_p99_exact_orderstat": "percentile_exact",
    "R10": "extreme",
    "R10_exact_moments": "extreme_exact",
}

# mpmath 1.4.1, 40 digits: mp.quad of z f(z) and (z - E)^2 f(z), f(z) = exp(log C + (k-1) log Phi(z) + (n-k) log Phi(-z)
# - z^2/2 - log(2 pi)/2), split at E + s (0, 1, 2, 3, 4, 6, 8, 12, 16, 24 and their negatives); the mass is 1 to 1e-20.
MPMATH = [
    (2, 2, 0.56418958354775629, 0.68169011381620933),
    (5, 5, 1.1629644736405196, 0.44753406902066199),
    (10, 6, 0.12266775228433806, 0.15105390390822768),
    (200, 101, 0.006259849348707024, 0.0078372231130992162),
    (1000, 1, -3.2414357691334409, 0.12345541709394084),
    (1000, 501, 0.0012530451956292398, 0.0015701229076045983),
    (10**4, 9999, 3.6056533822995596, 0.042115130637425916),
    (10**5, 50_001, 1.2533114476825219e-5, 1.5707895849566546e-5),
    (10**5, 99_000, 2.3261385686407881, 0.00013930727534594698),
    (10**6, 10**6, 4.8628974861964627, 0.061506271412830516),
    (10**6, 500_001, 1.2533138683520063e-6, 1.5707956526041162e-6),
    (10**6, 600_000, 0.25334575379199544, 1.6079254088699671e-6),
    (10**6, 990_000, 2.3263269403733483, 1.3936420214906101e-5),
    (10**6, 999_998, 4.5616929566961051, 0.017154516267820257),
]


@pytest.fixture(scope="module")
def golden(shared: Path) -> dict[str, list[dict[str, float]]]:
    found: dict[str, list[dict[str, float]]] = json.loads((shared / "golden" / "duncan_trottini_seri.json").read_text())
    return found


def test_every_row_of_figures_2_to_4(golden: dict[str, list[dict[str, float]]]) -> None:
    rows = golden["duncan_fig234_n200_s2_1"]
    l2 = np.array([row["lam2"] for row in rows])
    assert MODEL.utility(l2) == pytest.approx([row["U"] for row in rows], rel=1e-12)
    for column, knowledge in COLUMNS.items():
        expected = [np.inf if row[column] is None else row[column] for row in rows]
        assert MODEL.risk(l2, knowledge) == pytest.approx(expected, rel=1e-10), column


def test_moments_of_the_largest(golden: dict[str, list[dict[str, float]]]) -> None:
    for row in golden["order_stat_max"]:
        n = int(row["n"])
        assert theory.large_sample_moments(n) == pytest.approx((row["K1"], row["K2"]), rel=1e-12)
        assert normal_moments(n, n) == pytest.approx((row["mean"], row["var"]), rel=1e-8)
    assert normal_moments(198, 200) == pytest.approx(golden["order_stat_p99_n200_k198"], rel=1e-10)


@pytest.mark.parametrize(("n", "k", "mean", "variance"), MPMATH)
def test_moments_of_order_statistics_to_1e_8(n: int, k: int, mean: float, variance: float) -> None:
    assert normal_moments(k, n) == pytest.approx((mean, variance), rel=1e-9, abs=0)


def test_r_th_largest_for_large_n_is_cramers() -> None:
    """Cramer (1946), p. 376: variance (pi^2/6 - 1)/(2 ln n) for the second largest."""
    mean, variance = theory.large_sample_moments(10**6, 2)
    assert variance == pytest.approx((np.pi**2 / 6 - 1) / (2 * np.log(10**6)))
    exact = normal_moments(10**6 - 1, 10**6)
    assert mean == pytest.approx(exact[0], rel=0.01)


@pytest.mark.parametrize(
    ("knowledge", "max_risk", "noise", "utility"),
    [
        ("index", 5, 0.2, 166.666667),
        ("percentile", 10, 0.12939946, 177.085262),
        ("percentile", 5, 0.30415531, 153.355968),
        ("percentile", 2, 0.60720943, None),
        ("percentile", 1, 0.95846071, None),
        ("extreme", 5, 0.11953024, 178.646358),
        ("extreme", 2, 0.41583777, None),
        ("extreme", 1, 0.70945630, None),
        ("extreme", 10, 0.0, 200.0),
        ("population", 1, 0.0, 200.0),
    ],
)
def test_optima(knowledge: str, max_risk: float, noise: float, utility: float | None) -> None:
    found = MODEL.solve(max_risk, knowledge)
    assert found.noise_variance == pytest.approx(noise, abs=1e-8)
    assert found.risk is not None and found.risk <= max_risk
    assert found.status == ("already safe" if noise == 0 else "found")
    if utility is not None:
        assert found.utility == pytest.approx(utility, abs=1e-6)
        assert found.efficiency == pytest.approx(utility / 200, abs=1e-8)


def test_crossings() -> None:
    assert MODEL.crossings("percentile", "index") == pytest.approx((0.08498478, 0.88663041), abs=1e-8)
    assert MODEL.crossings("percentile", "population") == pytest.approx((0.96453378,), abs=1e-8)
    assert MODEL.crossings("extreme", "population") == pytest.approx((0.71376993,), abs=1e-8)
    assert MODEL.crossings("extreme", "index") == MODEL.crossings("extreme", "percentile") == ()


def test_erratum_1_the_mean_beats_the_index_above_n_plus_1_over_n_minus_1() -> None:
    assert MODEL.crossings("population", "index") == pytest.approx((201 / 199,), rel=1e-12)  # printed 199/201
    assert MODEL.crossings("in_sample", "index") == pytest.approx((1.0,), rel=1e-12)


def test_erratum_3_eq_5_for_normal_data_is_eq_8() -> None:
    from scipy.special import ndtri

    z, l2 = ndtri(0.99), np.array([0.0, 0.21, 1.0])
    masked = np.sqrt(1 + l2)
    density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi) / masked
    found = theory.percentile_of_any(n=200, p=0.99, density=density, masked=z * masked, original=z)
    assert found == pytest.approx([14.350236, 7.223444, 0.936413], abs=1e-6)


def test_risk_rises_with_little_noise_and_all_intervals_are_reported() -> None:
    """8x at n = 200, p = .99: 15.17 without noise, 16.34 at l2 = .05, then it falls."""
    found = MODEL.solve(16, "percentile_exact")
    assert found.status == "already safe" and len(found.intervals) == 2
    (start, end), (again, top) = found.intervals
    assert start == 0 and top == np.inf and end < 0.05 < again
    assert MODEL.risk([end, again], "percentile_exact") == pytest.approx([16, 16])
    assert "not always safer" in found.reason


# Given x = normal scores. The golden file has 11.710774, 6.684233, 277.533, 24.184289, .706024: a trapezoid of 4001 nodes.
# These are the values it converges to; the same integral by a DFT with 32,001 nodes agrees to 1e-6.
@pytest.mark.parametrize(
    ("rank", "l2", "risk", "golden_risk"),
    [
        (198, 0.21, 11.7108138, 11.710774),
        (200, 0.21, 6.6841675, 6.684233),
        (100, 0.21, 277.5226712, 277.533),
        (200, 0.05, 24.1841165, 24.184289),
        (200, 1.0, 0.7060257, 0.706024),
    ],
)
def test_record_knowledge_given_x(rank: int, l2: float, risk: float, golden_risk: float) -> None:
    found = float(theory.position_in_file(l2, theory.normal_scores(200, 1.0), rank))
    assert found == pytest.approx(risk, rel=1e-7)
    assert found == pytest.approx(golden_risk, rel=5e-5)


# 200,000 samples each; (value, standard error) of the 99th percentile and of the maximum
@pytest.mark.parametrize(
    ("l2", "percentile", "largest"),
    [
        (0.05, (41.38, 0.14), (22.96, 0.07)),
        (0.21, (9.933, 0.028), (4.985, 0.016)),
        (0.5, (2.988, 0.006), (1.628, 0.004)),
        (1.0, (1.024, 0.002), (0.6026, 0.0013)),
    ],
)
def test_record_knowledge_over_samples(
    l2: float, percentile: tuple[float, float], largest: tuple[float, float]
) -> None:
    for knowledge, (value, se) in (("percentile_in_sample", percentile), ("extreme_in_sample", largest)):
        assert abs(float(MODEL.risk(l2, knowledge)) - value) < 4 * se


def test_erratum_6_noise_above_which_the_maximum_helps_less_than_the_index() -> None:
    """It was known to lie between .21 and .5; at l2 = 0 both risks are infinite."""
    (at,) = MODEL.crossings("extreme_in_sample", "index")
    assert at == pytest.approx(0.2573142, abs=1e-6)
    assert MODEL.risk(0, "extreme_in_sample") == np.inf


def test_most_harmful_knowledge_of_the_paper() -> None:
    found = [(switch.before, switch.after) for switch in MODEL.switches(theory.PAPER)]
    assert found == [("index", "percentile"), ("percentile", "index"), ("index", "population")]
    at = [switch.noise_variance for switch in MODEL.switches(theory.PAPER)]
    assert at == pytest.approx([0.08498478, 0.88663041, 1.01005025], abs=1e-8)
    assert MODEL.best([0.01, 0.5, 1.0, 2.0])[1] == ("index", "percentile", "index", "population")
    assert MODEL.solve(5, theory.PAPER).noise_variance == pytest.approx(0.30415531, abs=1e-8)
