"""Membership inference: certain if records are copies, no better than chance if they are unrelated."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.errors import SchemaError, Undefined
from sdcmap.kernels.statistics.precision import wilson_interval
from sdcmap.kernels.tables.attribution import neighbor_densities, two_nearest_distances
from sdcmap.risk.worst_membership import best_threshold, cross_fit_advantage, discriminant, rank_shares
from sizes import SOAK

MEASURE = sm.risk.WorstMembership()


def people(n: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    wage = rng.lognormal(3, 1, n)
    return pl.DataFrame(
        {"region": rng.integers(0, 5, n).astype(str), "sex": rng.choice(["f", "m"], n)}
        | {"wage": np.round(wage, 2), "rent": np.round(wage * rng.lognormal(-1, 0.5, n), 2)}
    )


def as_read(frame: pl.DataFrame, **options: bool) -> sm.Microdata:
    return sm.read(frame, keys=["region", "sex"], numeric=["wage", "rent"], **options)


def strangers(frame: pl.DataFrame) -> sm.Microdata:
    """Return a release whose rows do not correspond to people of the file."""
    data = as_read(frame)
    return sm.Microdata(data.schema, data.columns, paired=False)


# ---- kernels --------------------------------------------------------------------------------------------------
def test_distances_and_densities_match_definition() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.random((6, 2)), rng.random((9, 2))
    c, d = rng.integers(0, 2, (6, 1)), rng.integers(0, 2, (9, 1))
    weight = np.array([0.5, 2.0, 0.5])
    away = np.abs(x[:, np.newaxis] - y) @ weight[:2] + (c[:, np.newaxis] != d) @ weight[2:]
    assert two_nearest_distances(x, c, y, d, weight) == pytest.approx(np.sort(away, axis=1)[:, :2])
    expected = np.column_stack([(away <= 0.7).mean(axis=1), np.exp(-away / 0.7).mean(axis=1)])
    assert neighbor_densities(x, c, y, d, weight, 0.7) == pytest.approx(expected)


def test_best_threshold_matches_exhaustive_search() -> None:
    rng = np.random.default_rng(2)
    first, second = np.round(rng.normal(0.5, 1, 40), 1), np.round(rng.normal(0, 1, 30), 1)
    gains = {t: (first >= t).mean() - (second >= t).mean() for t in np.concatenate([first, second])}
    threshold = best_threshold(first, second)
    assert (first >= threshold).mean() - (second >= threshold).mean() == pytest.approx(max(gains.values()))
    assert best_threshold(np.zeros(3), np.zeros(4)) == math.inf
    assert cross_fit_advantage(np.ones(8), np.zeros(8)).value == 1


def test_cross_fitted_advantage_is_unbiased() -> None:
    """For two equal groups the mean is within 4 standard errors of 0, and the stated error is that of the draws."""
    rng = np.random.default_rng(3)
    drawn = [cross_fit_advantage(rng.normal(size=60), rng.normal(size=60)) for _ in range(300)]
    values = np.array([one.value for one in drawn])
    assert abs(values.mean()) < 4 * values.std() / math.sqrt(300)
    assert values.std() < 1.2 * np.mean([one.se for one in drawn])


def test_wilson_interval_matches_anonymeter() -> None:
    """tests/test_confidence.py: 23 and 0 of 100 at 95 %."""
    for hits, middle, half in (
        (23, 0.23998824451588613, 0.08155558571285167),
        (0, 0.01849674910349284, 0.01849674910349284),
    ):
        low, high = wilson_interval(hits / 100, 100)
        assert ((low + high) / 2, (high - low) / 2) == pytest.approx((middle, half))


def test_discriminant_separates_groups() -> None:
    rng = np.random.default_rng(4)
    first, second = rng.random((500, 3)), rng.random((500, 3))
    first[:, 1] += 1
    direction = discriminant(first, second)
    assert abs(direction).argmax() == 1 and direction[1] > 0
    assert rank_shares(np.array([0.0, 2.0, 9.0]), np.array([1.0, 2.0, 3.0])).tolist() == pytest.approx([0, 0.5, 1])


# ---- the measure ----------------------------------------------------------------------------------------------
def test_unmasked_file_reveals_membership() -> None:
    data = as_read(people(2500, 1))
    result = MEASURE.apply(data, data.change(None, {}), np.random.default_rng(1))
    assert result.value > 0.95 and result.parts["closest"] > 0.95
    assert "true positives at 1 % false positives" not in result.parts  # only 250 non-members are attacked
    assert any(skipped.attack == "shadow" and "two refits" in skipped.reason for skipped in result.skipped)


def test_true_positive_rate_needs_1000_non_members() -> None:
    data = as_read(people(4200, 1))
    result = replace(MEASURE, held_out=0.5).apply(data, data.change(None, {}), np.random.default_rng(1)).parts
    assert (
        result["lower"] < result["true positives at 1 % false positives"] <= result["upper"]
        and result["true positives at 1 % false positives"] > 0.95
    )


def test_false_alarms_stay_within_confidence_level(tmp_path: Path) -> None:
    """The release, members and non-members are three samples of one population.

    At most 5 % of files may be significant. 7 or more of 40 files would occur once in 300 times, as would 13 or more of
    100 (`make soak`).
    """
    beyond, files, most = 0, *((100, 12) if SOAK else (40, 6))
    for seed in range(files):
        others = tmp_path / "others.csv"
        people(240, 1000 + seed).write_csv(others)
        measure = sm.risk.WorstMembership(control_file=str(others))
        result = measure.apply(
            as_read(people(240, seed)), strangers(people(240, 2000 + seed)), np.random.default_rng(seed)
        )
        beyond += result.value > 0
        assert result.se is not None and result.value >= 0
    assert beyond <= most


def test_shadow_attack_learns_from_other_refits() -> None:
    data = as_read(people(700, 1))
    copies = sm.Synthesize(on=["region", "sex", "wage", "rent"], leaf=1)
    measure = replace(MEASURE, folds=3)
    result = sm.score(data, sm.mask(data, copies, seed=1).frame(), [measure], paired=False, method=copies, seed=1)
    (estimate,) = result.values()
    assert estimate.parts["shadow"] > 0.2 and not estimate.skipped


def test_impossible_attack_gives_reason() -> None:
    with pytest.raises(SchemaError, match="WorstMembership is off: the file is a census"):
        MEASURE.apply(*[as_read(people(50, 1), census=True)] * 2, np.random.default_rng(0))
    few = as_read(people(12, 1))
    with pytest.raises(Undefined, match="fewer than 4 members or non-members are left"):
        MEASURE.apply(few, few.change(None, {}), np.random.default_rng(0))
