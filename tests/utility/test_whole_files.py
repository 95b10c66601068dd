"""Distances between whole files, and other summaries of propensity scores and intervals, against plain formulas."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import energy_distance, ks_2samp

import sdcmap as sm
from sdcmap.core.streams import Stream
from sdcmap.errors import PlanError, Undefined
from sdcmap.utility.interval_overlap import Interval, conclusion
from sdcmap.utility.sample_distances import row_means

RNG = np.random.default_rng(0)


def people(n: int = 400, seed: int = 1) -> sm.Microdata:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n)
    frame = pl.DataFrame(
        {"sex": rng.choice(["f", "m"], n), "age": age.astype(float), "wage": 10.0 * age + rng.normal(0, 40, n)}
        | {"luck": rng.normal(0, 1, n)}
    )
    return sm.read(frame, keys=["sex"], numeric=["age", "wage", "luck"])


def scored(measure: sm.Measure, original: sm.Microdata, masked: sm.Microdata, seed: int = 0) -> sm.Estimate:
    return measure.apply(original, masked, np.random.default_rng(seed))


def test_row_means_match_plain_formula() -> None:
    x, y = RNG.normal(size=(5, 2)), RNG.normal(size=(7, 2))
    c, d = RNG.integers(0, 3, (5, 1)), RNG.integers(0, 3, (7, 1))
    away = np.sqrt(((x[:, np.newaxis] - y) ** 2).sum(axis=2) + (c[:, np.newaxis] != d).sum(axis=2))
    assert row_means(x, c, y, d, 0.0, True) == pytest.approx(away.mean(axis=1))
    assert row_means(x, c, y, d, 2.0, True) == pytest.approx(np.exp(-away / 2).mean(axis=1))
    own = np.sqrt(((x[:, np.newaxis] - x) ** 2).sum(axis=2) + (c[:, np.newaxis] != c).sum(axis=2))
    assert row_means(x, c, x, c, 0.0, False) == pytest.approx(own.sum(axis=1) / 4)


def test_energy_distance_of_one_number_matches_scipy() -> None:
    """scipy.stats.energy_distance is the root of 2 times the integral of (F - G)^2."""
    data = people()
    moved = sm.Noise(on=["wage"], variance=0.5).apply(data, Stream.of_seed(1, "x"))
    sd = data["wage"].std()
    result = scored(sm.utility.EnergyDistance(on=["wage"]), data, moved)
    assert result.value == pytest.approx(energy_distance(data["wage"] / sd, moved["wage"] / sd) ** 2)
    assert result.se == 0 and result.parts["records"] == 400


@pytest.mark.parametrize("measure", [sm.utility.EnergyDistance(), sm.utility.MMD()], ids=lambda one: type(one).__name__)
def test_same_file_has_one_distance_as_records_and_as_synthetic(measure: sm.Measure) -> None:
    """A distance of two files does not depend on whether their rows correspond, nor on the order of the rows."""
    data = people()
    masked = sm.mask(data, sm.Noise(on="wage", variance=0.3), seed=2)
    order = np.random.default_rng(0).permutation(len(data))
    values = [scored(measure, data, masked).value]
    for rows in (np.arange(len(data)), order):
        synthetic = replace(masked.take(rows), origin=None, paired=False)
        values.append(scored(measure, data, synthetic).value)
    assert values[0] > 0 and values[1:] == pytest.approx([values[0]] * 2, rel=1e-9)


@pytest.mark.parametrize("kind", [sm.utility.EnergyDistance, sm.utility.MMD])
def test_sampled_distance_estimates_that_of_whole_files(kind: type[Any]) -> None:
    """Mean of 40 samples of 100 records, paired or not, within 4 standard errors of the exact distance."""
    data = people()
    masked = sm.mask(data, sm.Noise(on="wage", variance=3.0), seed=2)
    synthetic = replace(masked.take(np.arange(len(data))), origin=None, paired=False)
    exact = kind(on=["wage"], most=10_000).score(data, masked, np.random.default_rng(0)).value
    for file in (masked, synthetic):
        drawn = [kind(on=["wage"], most=100).score(data, file, np.random.default_rng(i)).value for i in range(40)]
        assert abs(np.mean(drawn) - exact) < 4 * np.std(drawn, ddof=1) / np.sqrt(40)


@pytest.mark.parametrize("measure", [sm.utility.EnergyDistance(), sm.utility.MMD()])
def test_distances_detect_shuffle_but_not_resampling(measure: sm.Measure) -> None:
    data = people()
    wage = data["wage"].copy()
    np.random.default_rng(2).shuffle(wage)
    shuffled = scored(measure, data, data.change(None, {"wage": wage})).value
    others = people(seed=9)
    redrawn = sm.Microdata(others.schema, others.columns, paired=False)
    assert shuffled > 5 * scored(measure, data, redrawn).value
    assert scored(measure, data, data.change(None, {})).value == 0


@pytest.mark.parametrize("cls", [sm.utility.EnergyDistance, sm.utility.MMD])
def test_sampled_distance_is_within_its_error(cls: type[sm.Measure]) -> None:
    data = people(1500)
    moved = sm.Noise(on=["wage", "luck"], variance=0.5).apply(data, Stream.of_seed(1, "x"))
    whole = scored(cls(), data, moved).value
    drawn = [scored(cls(most=150), data, moved, seed) for seed in range(20)]  # type: ignore[call-arg]
    errors = np.array([(one.value - whole) / one.se for one in drawn if one.se])
    assert abs(errors.mean()) < 4 / np.sqrt(20) and 0.3 < errors.std() < 2.5


def test_recoded_number_has_no_distance() -> None:
    data = people(50)
    with pytest.raises(Undefined, match="'wage' was recoded into categories"):
        scored(sm.utility.MMD(), data, sm.Recode(on="wage", bins=3).mask(data, RNG))


def test_specks_and_po50_match_propensity_scores() -> None:
    """One number that moved by a constant: the logit's score rises with it, so that SPECKS is the distance of the
    numbers."""
    data = people()
    moved = data.change(None, {"wage": data["wage"] + 300.0})
    expected = ks_2samp(data["wage"], moved["wage"]).statistic
    assert scored(sm.utility.SPECKS(on=["wage"], order=1), data, moved).value == pytest.approx(expected)
    middle = (data["wage"].mean() + moved["wage"].mean()) / 2
    right = ((data["wage"] < middle).mean() + (moved["wage"] > middle).mean()) / 2
    assert scored(sm.utility.PO50(on=["wage"], order=1), data, moved).value == pytest.approx(right - 0.5, abs=0.01)
    for measure in (sm.utility.SPECKS(), sm.utility.PO50()):
        assert scored(measure, data, data.change(None, {})).value == 0


def test_specks_and_po50_reject_trees() -> None:
    with pytest.raises(PlanError, match="SPECKS.model must be 'logit'"):
        sm.utility.SPECKS(model="trees")


def test_significance_agreement_by_hand() -> None:
    assert [conclusion(Interval(*ends)) for ends in ((1, 2), (-2, -1), (-1, 1), (0, 1))] == [1, -1, 0, 0]
    data = people()
    measure = sm.utility.SignificanceAgreement(models=["wage ~ age + luck"])
    turned = scored(measure, data, data.change(None, {"age": -data["age"]}))
    assert turned.parts["false findings"] == pytest.approx(1 / 3)  # the sign of age
    gone = scored(measure, data, data.change(None, {"age": RNG.permutation(data["age"])}))
    assert gone.parts["missed"] == pytest.approx(1 / 3) and gone.value < 0.7
    with pytest.raises(PlanError, match="SignificanceAgreement.models must name at least one regression"):
        sm.utility.SignificanceAgreement()
