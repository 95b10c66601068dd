"""Single equations and statements of the five papers that no other test shows; docs/understand/papers.md names them.

Every expected number is computed in plain numpy from the definition, or worked by hand. Simulated means are compared
within 4 standard errors, with fixed seeds.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap import theory
from sdcmap.theory import NoiseModel

DRAWS = 20_000
RNG = np.random.default_rng(0)


def standard_errors(squared_errors: np.ndarray, risk: object) -> float:
    """Return how many standard errors lie between the mean of the squared errors and 1/R."""
    error = squared_errors.std(ddof=1) / math.sqrt(len(squared_errors))
    return float(abs(squared_errors.mean() - 1 / float(risk)) / error)  # type: ignore[arg-type]


def noisy_files(x: np.ndarray, noise_variance: float, draws: int = DRAWS) -> np.ndarray:
    """Return files with normal noise, one in each row; x is one file, or one for each draw."""
    return x + RNG.normal(0, math.sqrt(noise_variance), (draws, x.shape[-1]))


# ---- Duncan, Keller-McNulty, Stokes (2001) ---------------------------------------------------------------------
def test_duncan_eq_1_fixed_target_outside_the_sample() -> None:
    """R = n/(s2 + l2 + n (mu - tau)^2): by hand 200/(1 + 0.25 + 200 x 0.01), and by simulation at n = 30."""
    assert float(theory.fixed_target(0.25, n=200, variance=1.0, distance=0.1)) == pytest.approx(200 / 3.25, rel=1e-12)
    n, s2, l2, distance = 30, 4.0, 1.5, 0.7
    y = noisy_files(RNG.normal(0, math.sqrt(s2), (DRAWS, n)), l2)
    risk = theory.fixed_target(l2, n=n, variance=s2, distance=distance)
    assert standard_errors((y.mean(axis=1) - distance) ** 2, risk) < 4
    without = theory.fixed_target(l2, n=n, variance=s2, distance=0.0)
    assert standard_errors((y.mean(axis=1) - distance) ** 2, without) > 50


def test_duncan_eq_3_given_the_file_has_no_sampling_variance() -> None:
    """Printed: n/(s2 + l2 + sum (mu - x)^2). Given x the mean of the file is fixed, and s2 does not belong there."""
    x, l2 = np.random.default_rng(1).lognormal(size=20), 0.6
    y = noisy_files(x, l2)
    squared = ((y.mean(axis=1)[:, None] - x) ** 2).mean(axis=1)  # every record is the target equally often
    printed = len(x) / (x.var(ddof=1) + l2 + ((x - x.mean()) ** 2).sum())
    assert standard_errors(squared, theory.in_file(l2, x)) < 4
    assert standard_errors(squared, printed) > 50


def test_duncan_eq_5_percentile_of_a_skewed_distribution() -> None:
    """X exponential, noise uniform on (-1/2, 1/2): P(Y > y) = c e^-y with c = 2 sinh 1/2 for y > 1/2.

    So xi_Yp = log c/(1 - p), f_Y there is 1 - p, and xi_Xp = -log(1 - p). The equation is a large-sample one: n = 1,000.
    """
    n, p, c = 1000, 0.9, 2 * math.sinh(0.5)
    original, masked = -math.log(1 - p), math.log(c / (1 - p))
    found = float(theory.percentile_of_any(n=n, p=p, density=1 - p, masked=masked, original=original))
    assert found == pytest.approx(1 / (p / (n * (1 - p)) + math.log(c) ** 2), rel=1e-12)
    y = RNG.exponential(size=(3000, n)) + RNG.uniform(-0.5, 0.5, (3000, n))
    k = 900
    guessed = np.partition(y, k - 1, axis=1)[:, k - 1]
    assert standard_errors((guessed - original) ** 2, found) < 4


@pytest.mark.parametrize("noise_known", [False, True])
def test_duncan_3_2_utility_of_the_variance_with_and_without_lambda(noise_known: bool) -> None:
    n, s2, l2 = 40, 2.0, 0.8
    y = noisy_files(RNG.normal(0, math.sqrt(s2), (DRAWS, n)), l2)
    estimate = y.var(axis=1, ddof=1) - l2 * noise_known
    utility = theory.utility_of_variance(l2, n=n, variance=s2, noise_known=noise_known)
    assert standard_errors((estimate - s2) ** 2, utility) < 4


def test_duncan_figure_1_utilities() -> None:
    """Section 2: U = 1/(1 + lambda^2) of the unmasked file's, at the three noise variances that the text names."""
    found = NoiseModel(n=64_998, variance=1.0).efficiency([0.0049, 0.2333, 9.0])
    assert found == pytest.approx([0.995124, 0.810833, 0.1], abs=5e-7)


# ---- Gomatam, Karr, Sanil (2003) -------------------------------------------------------------------------------
def test_gomatam_candidates_are_all_pairs_of_eight_variables_at_three_rates() -> None:
    """Section 3.1: 8 single and 28 double swaps at three rates are 108 conditions, each with its own random numbers."""
    methods = sm.grid(sm.Swap, on=sm.subsets("AWEMRSHI", 1, 2), rate=[0.005, 0.01, 0.05])
    plan = sm.Plan(methods, [sm.SmallCells(), sm.Hellinger()], replicates=2, seed=2**200 + 1)
    swaps = [candidate for candidate in plan.candidates if candidate.method.random]
    assert len(swaps) == 2 * 108
    first = {candidate.rng(plan.seed).random() for candidate in swaps}
    assert len(first) == 2 * 108


# ---- Seri (2005) -----------------------------------------------------------------------------------------------
def test_seri_eq_3_densities_of_links_and_nonlinks() -> None:
    """m(z) over y_i and x_i, u(z) over y_i and x_j with j other than i: shares of distances per unit of z, bin by bin."""
    rng = np.random.default_rng(2)
    x = rng.normal((3.6, 9.8), (0.8, 1.1), (80, 2))
    y = x + rng.normal(0, 0.4, x.shape)
    z = np.linalg.norm(y[:, None] - x[None], axis=2) / np.linalg.norm(y, axis=1)[:, None]
    links, nonlinks = np.diag(z), z[~np.eye(80, dtype=bool)]
    frames = [pl.DataFrame(values, schema=["employees", "turnover"]) for values in (x, y)]
    chart = sm.records(*frames, on=["employees", "turnover"]).draw_densities()
    lines = [layer for layer in chart.spec["hconcat"][0]["layer"] if layer["mark"]["type"] == "line"]
    for line, distances in zip(lines, (nonlinks, links), strict=True):
        edges = np.array([step["z"] for step in line["data"]["values"]])
        shares = np.array([np.mean((low <= distances) & (distances < high)) for low, high in pairwise(edges)])
        drawn = [step["density"] for step in line["data"]["values"][:-1]]
        assert drawn == pytest.approx((shares / np.diff(edges)).tolist(), abs=1e-9)


def test_seri_social_data_with_estimated_population_frequencies() -> None:
    """Section 2: F_y replaced by an estimate. N is the sum of the weights of a combination, and the risk of Franconi and
    Polettini (2004) is on the vertical axis: p/(1 - p) log 1/p for a sample unique, with p = 1/F."""
    frame = pl.DataFrame({"sex": list("ffm"), "age": list("112"), "w": [10.0, 30.0, 20.0]})
    people = sm.read(frame, keys=["sex", "age"], weight="w")
    risk = sm.risk.IndividualRisk()
    table = sm.records(people, people.change(None, {}), k=30, frequency="population", loss=risk)
    assert table.neighbors.tolist() == [40, 40, 20] and table.safe.tolist() == [True, True, False]
    p, q = 1 / 20, 2 / 40
    unique = p / (1 - p) * math.log(1 / p)
    pair = q / (1 - q) - (q / (1 - q)) ** 2 * math.log(1 / q)
    assert table.perturbation == pytest.approx([pair, pair, unique], rel=1e-12)


# ---- Trottini (2001) -------------------------------------------------------------------------------------------
def test_trottini_certain_but_wrong_intruder_is_discredit_harm_and_no_disclosure() -> None:
    """Par. 25: harm is not the information in the data alone. Two releases leave the intruder equally certain, RDH -0.01;
    the one that misleads them by 3 has IEK -(3^2 + 0.01), the true one -(0 + 0.01), with the agency N(0, 0.01)."""
    from sdcmap.theory.decision import Normal, global_risk, regions

    risk = global_risk(Normal(0.0, 0.01), Normal([3.0, 0.0], 0.01))
    assert risk.rdh == pytest.approx([-0.01, -0.01])
    assert risk.iek == pytest.approx([-9.01, -0.01])
    assert list(regions(risk, agency_limit=-1, intruder_limit=-0.5)) == ["A", "B"]


# ---- Yancey, Winkler, Creecy (2002) ----------------------------------------------------------------------------
def test_yancey_section_5_zeros_and_skew_raise_il1_and_not_il1s() -> None:
    """A shift of 1 in every value: at x = 0 the relative loss is 2 whatever the shift, while IL1s divides by sqrt(2) S."""
    x = np.array([0.0, 0.0, 0.0, 100.0])
    data = sm.read(pl.DataFrame({"x": x}), numeric="all")
    masked = data.change(None, {"x": x + 1})
    scored = {measure: measure.score(data, masked, RNG).value for measure in (sm.utility.IL1(), sm.IL1s())}
    assert scored[sm.utility.IL1()] == pytest.approx((3 * 2 + 1 / 100.5) / 4)
    assert scored[sm.IL1s()] == pytest.approx(1 / (math.sqrt(2) * x.std(ddof=1)))
