"""Trottini (2001): example 1, thresholds, Duncan and Lambert's measures, additive noise, the robust version.

Printed values where a test says so; the others come from an independent prototype with the paper's definitions.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from commands import sdcmap
from sdcmap.papers.reference import PRINTED, Result, errata
from sdcmap.papers.trottini2001 import AGENCY_OF_INTRUDERS_TARGET, INTRUDER, NAMES, _four, run
from sdcmap.theory.decision import (
    Absolute,
    Bounded,
    Discrete,
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
    WassersteinDistance,
    ZeroOne,
    decide,
    global_risk,
    global_utility,
    is_disclosed,
    knowledge,
    normal_class,
    regions,
    robust_risk,
    robust_utility,
    sweep_limits,
)

KL = KullbackLeibler()


@pytest.fixture(scope="module")
def found() -> Result:
    return run(worked=False)


# ---- example 1 ------------------------------------------------------------------------------------------------
def test_example_1_to_the_golden_digits(found: Result, shared: Path) -> None:
    golden = json.loads((shared / "golden" / "duncan_trottini_seri.json").read_text())["trottini_ex1"]
    for name in NAMES:
        ours = found.document[name]
        assert ours["region"] == golden[name]["region"]
        assert ours["distance"] == pytest.approx(golden[name]["dist"], abs=1e-9)
        for number in ("IEK", "RDH", "SEK", "DUS"):
            assert ours[number] == pytest.approx(golden[name][number], abs=1e-9)
            assert round(ours[number], 2) == PRINTED["trottini2001"]["example1"][name][number]  # par. 28
    assert found.document["choice"] == "D1"  # par. 29


def test_the_agencys_own_variance_is_in_it_and_kl_is_not_reversed() -> None:
    """Without + U_A = .001 D1 has -51.959378; reverse KL would give -49501.05 and -501.05, -1000.70 and -97600.70."""
    assert -KL(AGENCY_OF_INTRUDERS_TARGET, INTRUDER)[0] == pytest.approx(-51.959378, abs=5e-7)
    reverse = KL(INTRUDER, AGENCY_OF_INTRUDERS_TARGET)
    assert -reverse - 0.001 == pytest.approx([-49501.05, -501.05], abs=0.005)
    society = KL(Normal([-7, 7], 2), Normal(-6.9, 0.001))
    assert -society - 0.001 == pytest.approx([-1000.70, -97600.70], abs=0.005)


@pytest.mark.parametrize(
    ("limits", "letters", "choice"),
    [
        ((-40.0, -0.8), "DC", "D1"),
        ((-60.0, -0.8), "CC", None),
        ((-2.0, -0.8), "DD", "D1"),
        ((-40.0, -1.2), "AB", None),
        ((-40.0, -1.0), "DC", "D1"),  # on a limit counts as below
    ],
)
def test_the_choice_as_thresholds_change(limits: tuple[float, float], letters: str, choice: str | None) -> None:
    document = run(agency_limit=limits[0], intruder_limit=limits[1], worked=False).document
    assert "".join(document[name]["region"] for name in NAMES) == letters
    assert document["choice"] == choice
    at = sweep_limits(*_four(KL)).at(*limits)
    assert (None if at is None else NAMES[at]) == choice


def test_d1_is_the_choice_at_all_limits_or_nothing_is() -> None:
    """Par. 29: D1 is optimal whatever the limits, but for those at which nothing is safe."""
    sweep = sweep_limits(*_four(KL))
    assert [NAMES[i] for i in sweep.winners] == ["D1"]
    for agency in (-60.0, -51.9604, -51.96037, -10.0, 0.0):
        for intruder in (-1.1, -1.0, -0.5, 0.0):
            safe = agency >= -51.960377 and intruder >= -1
            assert sweep.at(agency, intruder) == (0 if safe else None)


def test_the_criterion_read_literally_releases_nothing() -> None:
    """Erratum 1: with region A for D, as printed, example 1 would have nothing to release."""
    risk, _ = _four(KL)
    assert "A" not in regions(risk, agency_limit=-40, intruder_limit=-0.8)


def test_loss_induced_divergence_of_example_1() -> None:
    risk, utility = _four(LossInduced())
    assert risk.iek == pytest.approx([-98.011, -0.011])
    assert utility.sek == pytest.approx([-0.011, -193.211])


def test_the_page_shows_printed_numbers_and_every_erratum(found: Result) -> None:
    page = "\n".join(found.lines)
    assert "IEK -51.960378 [-51.96]" in page
    assert "SEK -51.604201 [-51.60]" in page
    assert "nats" in page and "another unit of the variable" in page
    assert all(line in page for line in errata("trottini2001")) and len(errata("trottini2001")) == 6
    for number, chart in (("figure1", 1), ("figure2", 2)):
        spec = found.figures[number].to_dict()
        assert len(spec["hconcat"]) == chart + 1  # planes, and the key
        assert found.figures[number].svg().count("<svg") == 1


def test_the_command_prints_the_stated_document() -> None:
    document = json.loads(sdcmap("paper", "trottini2001", "--json").stdout)
    assert set(document) == {"D1", "D2", "choice", "worked"}
    assert set(document["D1"]) == {"IEK", "RDH", "SEK", "DUS", "distance", "region"}
    assert document["D2"]["region"] == "C"


# ---- Duncan and Lambert ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (Quadratic(), (4, 1, 3, 0.75)),
        (Absolute(), (1.595769, 0.797885, 0.797885, 0.5)),
        (ZeroOne(width=1), (0.617075, 0.317311, 0.299765, 0.485783)),
        (Bounded(cap=4), (2.064234, 0.920537, 1.143697, 0.554054)),
        (Log(), (2.112086, 1.418939, 0.693147, 0.328181)),
    ],
    ids=str,
)
def test_knowledge_from_n_0_4_to_n_1_1(loss: Loss, expected: tuple[float, ...]) -> None:
    """U before, U after, gain, relative gain: of the intruder, and by par. 9 the same three of society."""
    assert tuple(knowledge(Normal(0, 4), Normal(1, 1), loss)) == pytest.approx(expected, abs=5e-7)


def test_knowledge_of_a_category() -> None:
    before, after = Discrete(range(4), [0.25] * 4), Discrete(range(4), [0.7, 0.1, 0.1, 0.1])
    assert tuple(knowledge(before, after, ZeroOne())) == pytest.approx((0.75, 0.3, 0.45, 0.6))


# ---- additive noise -------------------------------------------------------------------------------------------
AGENCY, AGENCY_OF_MEAN = Normal(2.2, 0.01), Normal(0.08, 0.005)
NOISE = {
    0.2: ((-0.987539, -0.166667), (-0.045931, -0.005996), "B"),
    0.5: ((-1.704946, -0.333333), (-0.067428, -0.007494), "C"),
    1.0: ((-2.378512, -0.5), (-0.121144, -0.009990), "C"),
    2.0: ((-3.018186, -0.666667), (-0.233627, -0.014978), "D"),
}
LIMITS = {"agency_limit": -3.0, "intruder_limit": -0.3}


def noise_release(noise_variance: float) -> tuple[GlobalRisk, GlobalUtility]:
    scenario = NoiseScenario(n=200, variance=1.0, noise_variance=noise_variance)
    risk = global_risk(AGENCY, scenario.intruder(Normal(0, 1), 2.5), divergence=KL)
    return risk, global_utility(AGENCY_OF_MEAN, scenario.society(Normal(0, 10), 0.1), divergence=KL)


@pytest.mark.parametrize("noise_variance", NOISE)
def test_global_risk_and_utility_under_noise(noise_variance: float) -> None:
    """n = 200, s2 = 1, y_t = 2.5, ybar = .1, priors N(0, 1) and N(0, 10)."""
    risk, utility = noise_release(noise_variance)
    expected_risk, expected_utility, letter = NOISE[noise_variance]
    assert tuple(risk) == pytest.approx(expected_risk, abs=5e-7)
    assert tuple(utility) == pytest.approx(expected_utility, abs=5e-7)
    assert regions(risk, **LIMITS) == letter


def test_the_choice_under_noise_and_what_is_disclosed() -> None:
    """Prior (-4.237585, -1): def. 4 finds disclosure at l2 <= 1, def. 2 at l2 <= .2."""
    found = [noise_release(l2) for l2 in NOISE]
    risk, utility = (
        kind(*np.transpose([pair[i] for pair in found])) for i, kind in enumerate((GlobalRisk, GlobalUtility))
    )
    decision = decide(risk, utility, **LIMITS)
    assert list(NOISE)[decision.choice or 0] == 2.0
    assert "".join(decision.regions) == "BCCD"
    prior = global_risk(AGENCY, Normal(0, 1), divergence=KL)
    assert tuple(prior) == pytest.approx((-4.237585, -1), abs=5e-7)
    assert is_disclosed(prior.iek, risk.iek, -3).tolist() == [True, True, True, False]
    assert is_disclosed(prior.rdh, risk.rdh, -0.3).tolist() == [True, False, False, False]


def test_the_choice_under_noise_is_not_robust() -> None:
    """Means in [-1, 1], variances in [.5, 4], 41 x 41: at l2 = 2 sup IEK is -1.917338, sup RDH -.4; no l2 is safe."""
    priors = normal_class((-1, 1), (0.5, 4))
    found = {}
    for l2 in NOISE:
        scenario = NoiseScenario(n=200, noise_variance=l2)
        found[l2] = robust_risk(AGENCY, [scenario.intruder(priors, 2.5)], divergence=KL)
        lowest = robust_utility(AGENCY_OF_MEAN, [scenario.society(priors, 0.1)], divergence=KL)
        assert lowest.sek <= global_utility(AGENCY_OF_MEAN, scenario.society(Normal(0, 1), 0.1), divergence=KL).sek
    assert tuple(found[2.0]) == pytest.approx((-1.917338, -0.4), abs=5e-7)
    assert [regions(risk, **LIMITS) for risk in found.values()] == ["B", "B", "C", "C"]


# ---- estimates from draws -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("p", "q", "true", "plug_in", "nearest"),
    [
        (Normal(0, 1), Normal(math.sqrt(0.2388), 1), 0.1194, (0.118, 0.011), (0.118, 0.019)),
        (Normal(0, 1), Normal(2, 1), 2.0, (1.991, 0.06), (1.864, 0.07)),
        (Normal(4.9, 0.001), Normal(5, 1), 2.959378, (2.956, 0.02), (2.942, 0.093)),
        (Normal(4.9, 0.001), Normal(-5, 1), 51.959378, (51.81, 0.99), (11.44, 0.03)),
    ],
    ids=["near", "2 nats", "narrow", "far"],
)
def test_divergences_from_draws(
    p: Normal, q: Normal, true: float, plug_in: tuple[float, float], nearest: tuple[float, float]
) -> None:
    """4,000 draws, mean of 20 seeds, within 4 standard errors of the notes' mean(sd of one); far apart, nearest
    neighbors saturate at 11 nats and the plug-in does not."""
    rng = np.random.default_rng(5)
    estimates = []
    for _ in range(20):
        pair = [Samples(one.mean + one.scale * rng.standard_normal(4000)) for one in (p, q)]
        estimates.append([PlugIn()(*pair), Neighbors()(*pair), WassersteinDistance()(*pair)])
    means = np.mean(estimates, axis=0)
    assert KL(p, q) == pytest.approx(true, abs=5e-7)
    for mean, (value, sd) in zip(means, (plug_in, nearest), strict=False):
        assert mean == pytest.approx(value, abs=4 * sd * math.sqrt(2 / 20))
    assert means[2] == pytest.approx(WassersteinDistance()(p, q), abs=0.02)
    if abs(true - 3) > 0.5:  # a single estimate of 2.96 falls on either side of 3
        assert bool(Neighbors().notes(*pair)) == (true > 3)


def test_wasserstein_of_the_far_posterior() -> None:
    assert WassersteinDistance()(Normal(4.9, 0.001), Normal(-5, 1)) == pytest.approx(9.947, abs=5e-4)
