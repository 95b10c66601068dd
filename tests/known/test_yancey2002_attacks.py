"""Attacks on the paper's own file against the golden tables of Yancey, Winkler, Creecy (2002).

The tables are means and standard deviations of one run over 50 seeds of an independent prototype; a mean over k seeds
of ours must lie within 4 sd sqrt(1/k + 1/50) of theirs.
"""

from __future__ import annotations

from functools import cache
from statistics import fmean

import numpy as np
import pytest

import sdcmap as sm
from sdcmap.core.method import Method
from sdcmap.data.microdata import Microdata

RNG = np.random.default_rng(0)
FEW = 2  # seeds for every row; a few rows have 20

# Table 2 with weights "freq" (m = .9, u = how often two values coincide): d mean, sd, l mean, sd
TABLE_2 = {
    "rnkswp05": (0.8718, 0.0114, 0.9565, 0.0064),
    "rnkswp10": (0.2822, 0.0166, 0.7045, 0.0158),
    "rnkswp15": (0.0494, 0.0070, 0.3330, 0.0161),
    "add01": (0.8336, 0.0127, 0.7701, 0.0132),
    "add10": (0.2175, 0.0105, 0.3076, 0.0147),
    "mixadd01": (0.7816, 0.0115, 0.7404, 0.0121),
    "mixadd05": (0.1681, 0.0090, 0.3755, 0.0110),
    "mixadd10": (0.0450, 0.0065, 0.2103, 0.0107),
    "mixadd20": (0.0098, 0.0027, 0.0941, 0.0076),
    "scalmixadd01": (0.7838, 0.0119, 0.7398, 0.0122),
    "scalmixadd05": (0.1824, 0.0104, 0.3798, 0.0112),
    "scalmixadd10": (0.0597, 0.0080, 0.2203, 0.0129),
    "scalmixadd20": (0.0219, 0.0053, 0.1070, 0.0103),
}
# distance-based linkage, nearest and one-to-one, and interval disclosure by rank and by sd: mean, sd of each
DISTANCES = {
    "rnkswp05": (0.9098, 0.0067, 0.9355, 0.0083, 0.7969, 0.0015, 0.3418, 0.0035),
    "rnkswp10": (0.6780, 0.0115, 0.7501, 0.0159, 0.5365, 0.0032, 0.2014, 0.0028),
    "rnkswp15": (0.4049, 0.0133, 0.4536, 0.0156, 0.3520, 0.0039, 0.1542, 0.0025),
    "add01": (0.9538, 0.0054, 0.9836, 0.0057, 0.7579, 0.0033, 0.4025, 0.0053),
    "add10": (0.4668, 0.0143, 0.5136, 0.0167, 0.4484, 0.0053, 0.1373, 0.0029),
    "mixadd01": (0.9705, 0.0047, 0.9891, 0.0042, 0.7350, 0.0015, 0.2834, 0.0025),
    "mixadd05": (0.5882, 0.0105, 0.6955, 0.0133, 0.4763, 0.0028, 0.0955, 0.0024),
    "mixadd10": (0.3595, 0.0127, 0.4069, 0.0105, 0.3547, 0.0030, 0.0599, 0.0020),
    "mixadd20": (0.2110, 0.0121, 0.2076, 0.0111, 0.2582, 0.0031, 0.0392, 0.0016),
    "scalmixadd01": (0.9715, 0.0044, 0.9891, 0.0042, 0.7348, 0.0015, 0.2858, 0.0026),
    "scalmixadd05": (0.6034, 0.0109, 0.6955, 0.0133, 0.4771, 0.0032, 0.1038, 0.0026),
    "scalmixadd10": (0.3478, 0.0101, 0.4069, 0.0105, 0.3605, 0.0038, 0.0727, 0.0023),
    "scalmixadd20": (0.1795, 0.0105, 0.2076, 0.0111, 0.2741, 0.0042, 0.0568, 0.0021),
}
# whitened distances, nearest and one-to-one: means over 5 seeds
MAHALANOBIS = {
    "rnkswp05": (0.453, 0.496),
    "rnkswp15": (0.068, 0.091),
    "add10": (0.835, 0.905),
    "mixadd05": (0.949, 0.983),
    "mixadd20": (0.606, 0.685),
    "scalmixadd20": (0.595, 0.685),
}


def method_of(row: str, on: tuple[str, ...]) -> Method:
    """A row name such as "rnkswp05" or "scalmixadd10" as a method."""
    strength = int(row[-2:]) / 100
    if row.startswith("rnkswp"):
        return sm.RankSwap(on=on, p=strength)
    if row.startswith("add"):
        return sm.Noise(on=on, variance=strength, correlated=True)
    return sm.methods.MixtureNoise(on=on, variance=strength, rescale=row.startswith("scal"))


@pytest.fixture(scope="module")
def rate(casc_census: Microdata):  # type: ignore[no-untyped-def]
    """The mean rate of a measure over the first seeds of a row; masked files are made once."""

    @cache
    def masked(row: str, seed: int) -> Microdata:
        return sm.mask(casc_census, method_of(row, casc_census.numeric), seed=seed)

    def mean(measure: sm.Measure, row: str, seeds: int) -> float:
        return fmean(measure.score(casc_census, masked(row, seed), RNG).value for seed in range(seeds))

    return mean


def close(found: float, wanted: float, sd: float, seeds: int) -> None:
    band = 4 * sd * np.sqrt(1 / seeds + 1 / 50)
    assert abs(found - wanted) < band, f"{found:.4f} is not within {band:.4f} of {wanted:.4f}"


@pytest.mark.parametrize("row", TABLE_2)
@pytest.mark.parametrize("metric", ["d", "l"])
def test_table_2(rate, row: str, metric: str) -> None:  # type: ignore[no-untyped-def]
    wanted, sd = TABLE_2[row][:2] if metric == "d" else TABLE_2[row][2:]
    seeds = 20 if (row, metric) in (("rnkswp10", "l"), ("mixadd05", "d")) else FEW
    close(rate(sm.risk.Linkage(metric), row, seeds), wanted, sd, seeds)


@pytest.mark.parametrize("row", DISTANCES)
def test_nearest_records(rate, row: str) -> None:  # type: ignore[no-untyped-def]
    nearest, nearest_sd, one_to_one, one_to_one_sd, *_ = DISTANCES[row]
    seeds = 20 if row == "add10" else FEW
    close(rate(sm.risk.NearestRecord("scaled"), row, seeds), nearest, nearest_sd, seeds)
    close(rate(sm.risk.NearestRecord("scaled", one_to_one=True), row, FEW), one_to_one, one_to_one_sd, FEW)


@pytest.mark.parametrize("row", DISTANCES)
def test_interval_disclosure(rate, row: str) -> None:  # type: ignore[no-untyped-def]
    *_, rank, rank_sd, sd, sd_sd = DISTANCES[row]
    seeds = 20 if row in ("rnkswp05", "add10") else FEW
    close(rate(sm.risk.IntervalDisclosure("rank"), row, seeds), rank, rank_sd, seeds)
    close(rate(sm.risk.IntervalDisclosure("sd"), row, seeds), sd, sd_sd, seeds)


@pytest.mark.parametrize("row", MAHALANOBIS)
def test_mahalanobis(rate, row: str) -> None:  # type: ignore[no-untyped-def]
    """Their means of 5 seeds against ours of 2, sd .012 at most: 4 sd sqrt(1/2 + 1/5) = .04."""
    for one_to_one, wanted in zip((False, True), MAHALANOBIS[row], strict=True):
        found = rate(sm.risk.NearestRecord("mahalanobis", one_to_one=one_to_one), row, FEW)
        assert abs(found - wanted) < 0.04


@pytest.mark.parametrize(("p", "least"), [(0.10, 0.99), (0.15, 0.97), (0.20, 0.90)])
def test_intersected_rank_windows_undo_a_rank_swap(casc_census: Microdata, p: float, least: float) -> None:
    method = sm.RankSwap(on=casc_census.numeric, p=p)
    attack = sm.risk.Informed().for_informed_attacker(method)
    rates = [attack.score(casc_census, sm.mask(casc_census, method, seed=seed), RNG).value for seed in range(3)]
    assert min(rates) >= least


@pytest.mark.parametrize("variance", [0.1, 0.2])
def test_mixture_noise_is_broken_by_a_reader_of_the_method_note(casc_census: Microdata, variance: float) -> None:
    method = sm.methods.MixtureNoise(on=casc_census.numeric, variance=variance)
    masked = sm.mask(casc_census, method, seed=1)
    assert sm.risk.Informed().for_informed_attacker(method).score(casc_census, masked, RNG).value > 0.99


def test_attack_of_the_paper_understates_the_risk(casc_census: Microdata) -> None:
    """mixadd05: .35 by the paper's linkage, .98 by whitened distances, 1 by the note."""
    method = sm.methods.MixtureNoise(on=casc_census.numeric, variance=0.05)
    masked = sm.mask(casc_census, method, seed=1)
    blind = sm.WorstLinkage().score(casc_census, masked, RNG)
    bounds = {bound.attack: bound.estimate.value for bound in blind.bounds}
    assert bounds["unit-free l"] < blind.value
    assert sm.WorstLinkage().rates(casc_census, masked)["unit-free l"] < 0.42
    assert blind.value == blind.parts["mahalanobis one-to-one"] > 0.96
    result = sm.WorstLinkage().for_informed_attacker(method).score(casc_census, masked, RNG)
    assert result.value == 1 and result.parts["informed"] > 0.99


def test_em_finds_a_class_of_similar_people_and_says_so(casc_census: Microdata) -> None:
    """The notes: EM over all pairs drifts to 15 to 500 "matches" a record, and d rates of mixadd01 to .14 to .22."""
    masked = sm.mask(casc_census, sm.methods.MixtureNoise(on=casc_census.numeric, variance=0.01), seed=1)
    attack = sm.risk.Linkage("d", weights="em", tolerance=0.1)
    found = attack.score(casc_census, masked, RNG)
    assert found.parts["em_links"] > 15
    assert found.parts["em_doubts"] > 0
    classes = attack.classes(casc_census, masked)
    assert "many links" in classes.doubts
    high, low = classes.thresholds(mu=1e-3, lam=1e-3)
    assert low < high
    assert min(np.diff(classes.trace)) > -1e-9
    assert found.value < 0.5 < sm.risk.Linkage("d").score(casc_census, masked, RNG).value
