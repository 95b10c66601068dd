"""Membership of outlying people: who is attacked, known answers, error with simulated coverage, and shadow models."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap import testing
from sdcmap.core.estimate import Estimate
from sdcmap.core.measure import Measure
from sdcmap.core.method import Method
from sdcmap.core.refits import HalfIn, draw_half_in, refit_without
from sdcmap.core.streams import Stream
from sdcmap.data.microdata import Microdata
from sdcmap.data.schema import KINDS
from sdcmap.errors import PlanError, Undefined
from sdcmap.risk._half_in_scores import (
    _clustered_variances,
    area,
    detection_rate,
    group_area,
    pair_refits,
    standardize_people,
    weigh_splits,
    worst_person,
)
from sdcmap.risk._outlying_units import OutlyingUnits, outlyingness, rarity_bits, tail_bits
from sizes import SOAK

MEASURE = sm.risk.OutlierMembership()
AMOUNTS = ("age", "wage", "rent")
ALL = ("region", "sex", *AMOUNTS)


def people(n: int = 300, seed: int = 0) -> Microdata:
    rng = np.random.default_rng(seed)
    wage = rng.lognormal(7, 1, n)
    frame = {
        "region": rng.choice(list("abcdef"), n, p=[0.4, 0.3, 0.2, 0.06, 0.03, 0.01]), "sex": rng.choice(["f", "m"], n),
        "age": rng.integers(18, 90, n).astype(float), "wage": np.round(wage),
        "rent": np.round(wage * rng.lognormal(-1, 0.5, n)),
    }  # fmt: skip
    return sm.read(pl.DataFrame(frame), keys=["region", "sex"], numeric=AMOUNTS)


@dataclass(frozen=True)
class Copies(Method):
    """A synthesizer that copies its input."""

    kinds: ClassVar[tuple[str, ...]] = KINDS
    mixes_records: ClassVar[bool] = True

    def mask(self, data: Microdata, rng: np.random.Generator) -> Microdata:
        return replace(data.take(rng.permutation(len(data))), paired=False)


@dataclass(frozen=True)
class BlindSynthesizer(Method):
    """A synthesizer that ignores its input."""

    kinds: ClassVar[tuple[str, ...]] = KINDS
    mixes_records: ClassVar[bool] = True

    def mask(self, data: Microdata, rng: np.random.Generator) -> Microdata:
        other = people(len(data), int(rng.integers(1 << 40)))
        return replace(data.change(None, {name: other.column(name).values for name in ALL}), paired=False)


def stated(data: Microdata, method: Method, measure: Measure = MEASURE, seed: int = 1) -> Estimate:
    masked = sm.mask(data, method, seed=seed)
    released: Microdata | pl.DataFrame = masked if masked.paired else masked.frame()
    return sm.score(data, released, measure, paired=masked.paired, method=method, seed=seed).popitem()[1]


# ---- who is attacked, and who is in which refit ---------------------------------------------------------------
def test_bits_match_their_formulas() -> None:
    """Of five numbers the middle is 0 bits out; 1,000 is two of ten tails out, and 997 over three robust deviations."""
    bits = tail_bits(np.array([1.0, 2.0, 3.0, 4.0, 1000.0]))
    far = math.log2(997 / (3 * 1.4826 * 1))
    assert bits == pytest.approx([-math.log2(0.4), -math.log2(0.8), 0, -math.log2(0.8), -math.log2(0.4) + far])
    assert tail_bits(np.array([5.0, 5.0, 5.0, np.nan])) == pytest.approx([0, 0, 0, 2])
    assert rarity_bits(np.array([0, 1, 1, 1])) == pytest.approx([2, *[-math.log2(0.75)] * 3])
    data = sm.read(pl.DataFrame({"a": ["x", "y", "y", "y"], "b": ["u", "u", "v", "v"]}), keys=["a", "b"])
    terms = [[2, 1, 2], [-math.log2(0.75), 1, 2], [-math.log2(0.75), 1, 1]]  # a, b, and both
    expected = [math.sqrt(sum(bit**2 for bit in row) / 3) for row in terms]
    assert outlyingness(data, ("a", "b")) == pytest.approx([*expected, expected[-1]])


def test_most_outlying_households_are_chosen_whole() -> None:
    """The two households of rich people, each with its richest person; then no third one fits into 10 %."""
    wage = np.r_[np.arange(36.0), 1e6, 5.0, 2e6, 3e6]
    frame = pl.DataFrame({"home": np.repeat(np.arange(20), 2), "wage": wage})
    data = sm.read(frame, numeric="wage", household="home")
    units = OutlyingUnits((), share=0.01, fewest=3, most=0.1)
    assert units.targets(data).tolist() == [39, 36]
    assert np.flatnonzero(units(data) == 0).tolist() == [38, 39] and np.flatnonzero(units(data) == 1).tolist() == [
        36,
        37,
    ]
    assert (units(data) >= 0).sum() == 4
    refits = refit_without(data, sm.Identity(), Stream.of_seed(1), HalfIn(6, units))
    outside = np.array([refit.outside for refit in refits])
    assert (outside[:, 36:].sum(axis=0) == 3).all() and not outside[:, :36].any()
    assert (outside[:, 36] == outside[:, 37]).all() and (outside[:, 38] != outside[:, 36]).all()
    assert [len(refit.released) for refit in refits] == [38] * 6


def test_each_unit_is_in_half_of_the_refits() -> None:
    inside = draw_half_in(31, 8, np.random.default_rng(1))
    assert inside.shape == (31, 8) and (inside.sum(axis=1) == 4).all()
    assert (inside[:30].sum(axis=0) == 15).all() and (inside[:30:2] != inside[1:30:2]).all()
    each = np.mean([draw_half_in(2, 4, np.random.default_rng(seed)) for seed in range(400)], axis=0)
    assert abs(each - 0.5).max() < 4 * 0.5 / math.sqrt(400)
    pairs = pair_refits(inside, np.random.default_rng(2))
    rows = np.arange(31)[:, np.newaxis]
    assert inside[rows, pairs[..., 0]].all() and not inside[rows, pairs[..., 1]].any()
    assert (np.sort(pairs.reshape(31, 8), axis=1) == np.arange(8)).all()


def test_statistics_share_their_refits() -> None:
    detection = replace(MEASURE, statistic="detection").for_informed_attacker(sm.Identity())
    data = people()
    assert detection.refits(data) == MEASURE.for_informed_attacker(sm.Identity()).refits(data) is not None
    assert MEASURE.refits(data) is None and hash(detection.refits(data))


# ---- scores ---------------------------------------------------------------------------------------------------
def test_area_and_its_error_match_hand_computation() -> None:
    scores = np.array([[[3.0, 1.0], [2.0, 2.0]]])  # of four pairs (in, out), two are right, one is a tie, one is right
    assert area(scores) == (1 + 1 + 1 + 0.5) / 4
    influence = np.array([[1.0, -1.0], [2.0, 0.0]])
    assert _clustered_variances(influence) == (8 + 20 - 6, 8 - 6)  # by person, by refit, single
    assert standardize_people(np.full((2, 4), 3.0)).tolist() == [[0.0] * 4] * 2


def test_worst_person_is_compared_with_chance() -> None:
    rng = np.random.default_rng(3)
    inside, raw = draw_half_in(20, 20, rng), rng.normal(size=(20, 20))
    plain = worst_person({"a": raw}, inside, rng)
    expected = max((one[is_in][:, np.newaxis] > one[~is_in]).mean() for one, is_in in zip(raw, inside, strict=True))
    assert plain["most recognizable person"] == pytest.approx(expected) and expected < 1
    leak = worst_person({"a": raw, "b": np.where(np.arange(20)[:, np.newaxis] == 4, inside, 0)}, inside, rng)
    assert leak["most recognizable person"] == 1 > leak["most recognizable person, by chance"]


def draw_scores(
    people: int, times: int, shift: float, rng: np.random.Generator
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Scores of three attacks: a leak of `shift` standard deviations, one error that all people share, and skewed noise."""
    inside = draw_half_in(people, times, rng)
    scale = rng.exponential(size=(people, 1))
    scores = {
        "leak": rng.normal(size=inside.shape) + shift * inside,
        "shared": rng.normal(size=inside.shape) / 4 + rng.exponential(size=(1, times)) ** 2,
        "skewed": rng.exponential(size=inside.shape) ** 3,
    }
    return {name: each * scale for name, each in scores.items()}, inside


@pytest.mark.parametrize(("times", "shift"), [(8, 0.0), (8, 0.6), *([(40, 0.0), (40, 0.6)] if SOAK else [])])
def test_area_is_unbiased_and_its_limit_covers(times: int, shift: float) -> None:
    """Without a leak the mean is 0.5. The upper 95 % limit covers the mean of all draws in at least 86 %."""
    rng, draws = np.random.default_rng(times), 500 if SOAK else 30
    each = [group_area(weigh_splits(*draw_scores(30, times, shift, rng), rng)[0]) for _ in range(draws)]
    values = np.array([one.value for one in each])
    truth = 0.5 if shift == 0 else values.mean()
    assert abs(values.mean() - truth) < 4 * values.std() / math.sqrt(draws) + 0.005
    covered = np.mean([Estimate(value=one.value, se=one.se, df=times - 1).upper(0.95) >= truth for one in each])
    assert covered >= 0.86
    assert shift == 0 or values.mean() > 0.58


def test_detection_rate_without_a_leak_is_one_per_cent() -> None:
    rng = np.random.default_rng(5)
    each = [detection_rate(weigh_splits(*draw_scores(60, 40, 0.0, rng), rng)[0], rng) for _ in range(8)]
    values = np.array([one.value for one in each])
    assert abs(values.mean() - 0.01) < 4 * values.std() / math.sqrt(8) + 0.001
    assert np.mean([one.se for one in each]) > values.std() / 1.3


# ---- the measure ----------------------------------------------------------------------------------------------
def test_copied_outliers_are_recognized_and_a_blind_method_reveals_nothing() -> None:
    data = people()
    copied = stated(data, Copies(), replace(MEASURE, times=20))
    assert copied.value > 0.97 and copied.parts["closest"] > 0.95 and copied.parts["people"] == 30
    blind = [stated(data, BlindSynthesizer(), seed=seed) for seed in range(4)]
    assert all(one.lower(0.995) < 0.5 < one.upper(0.995) for one in blind)
    assert abs(np.mean([one.value for one in blind]) - 0.5) < 0.06
    assert "it needs 1,000 scores of people without them; there are 120" in str(blind[0].skipped[0])


def test_largest_released_value_reveals_who_is_in() -> None:
    """Only the largest value is released exactly; of 30 people one is recognized by it, and the part shows this person."""

    @dataclass(frozen=True)
    class KeepsLargest(BlindSynthesizer):
        def mask(self, data: Microdata, rng: np.random.Generator) -> Microdata:
            blind = super().mask(data, rng)
            wage = np.minimum(blind.numbers("wage"), 1000.0)
            wage[0] = data.numbers("wage").max()
            return replace(blind.change(None, {"wage": wage}), paired=False)

    result = stated(people(), KeepsLargest(), replace(MEASURE, times=20))
    assert result.parts["most recognizable person"] > 0.95


def test_release_measures_with_more_refits() -> None:
    assert MEASURE.release_variant() == replace(MEASURE, times=40)
    estimate = Estimate(value=0.6, se=0.05, parts={"standard error between people": 0.03})
    assert MEASURE.release_error(estimate) == pytest.approx(math.sqrt(0.03**2 + 0.04**2 / 5))
    assert replace(MEASURE, times=60).release_variant() == replace(MEASURE, times=100)  # of a small file
    many = replace(MEASURE, times=100)
    assert many.release_variant() == many and many.release_error(estimate) == pytest.approx(0.05)


def test_detection_needs_enough_people() -> None:
    data = people(600)
    detection = replace(MEASURE, statistic="detection", fewest=60, times=40)
    result = stated(data, Copies(), detection)
    assert result.value > 0.8 and result.parts["AUC"] > 0.97 and detection.baseline(data) == 0.01
    (problem,) = replace(detection, times=8).incompatibilities(data)
    assert "need 1,000 scores of people without them, and 60 people in 8 refits have 240" in problem
    with pytest.raises(PlanError, match="times must be even"):
        replace(MEASURE, times=9)


def test_reasons_why_it_is_off() -> None:
    (census,) = MEASURE.incompatibilities(sm.read(people().frame(), keys=["sex"], numeric="wage", census=True))
    assert "the file is a census" in census
    (few,) = MEASURE.incompatibilities(people(290))
    assert few.endswith("may be at most 10 % of the file, which are 29. About 300 records would be needed.")
    with pytest.raises(Undefined, match="needs the method that made the file"):
        sm.score(people(), people(), MEASURE)


def test_laws() -> None:
    frame = people(60).frame().with_columns(home=pl.int_range(60) // 2)
    data = sm.read(frame, keys=["region", "sex"], numeric=AMOUNTS, household="home")
    measure = replace(MEASURE, fewest=4, most=0.5, method=sm.Noise(on=AMOUNTS))
    testing.check_measure(measure, data, [sm.Noise(on="wage")])


# ---- independent shadow models --------------------------------------------------------------------------------
def shadow_auc(data: Microdata, method: Method, targets: list[int], refits: int, seed: int) -> float:
    """Shadow models in plain numpy: the nearest record and the nearest wage, standardized for each person.

    Half of the refits are for training; the AUC is that of a linear discriminant in the other half.
    """
    rng = np.random.default_rng(seed)
    x = np.column_stack([data.numbers(name) for name in AMOUNTS])
    c = np.column_stack([data.frame()[name].to_numpy() for name in ("region", "sex")])
    width = np.ptp(x, axis=0)
    member = np.array([rng.permutation(refits) < refits / 2 for _ in targets])
    points = np.empty((len(targets), refits, 4))
    for k in range(refits):
        out = np.array(targets)[~member[:, k]]
        part = data.take(np.setdiff1d(np.arange(len(data)), out))
        masked = sm.mask(sm.Microdata(part.schema, part.columns), method, seed=1000 * seed + k).frame()
        y = np.column_stack([masked[name].to_numpy() for name in AMOUNTS])
        d = np.column_stack([masked[name].to_numpy() for name in ("region", "sex")])
        for person, row in enumerate(targets):
            gaps = np.minimum(np.abs(y - x[row]) / width, 1)
            away = gaps.sum(axis=1) + (d != c[row]).sum(axis=1)
            logs = np.abs(np.arcsinh(y[:, 1] / 1000) - np.arcsinh(x[row, 1] / 1000)).min()
            points[person, k] = -away.min(), np.log(np.exp(-away / 0.3).mean()), -logs, (d == c[row]).all(axis=1).mean()
    points -= points.mean(axis=1, keepdims=True)
    points /= points.std(axis=1, keepdims=True) + 1e-9
    train, test = np.arange(refits) % 2 == 0, np.arange(refits) % 2 == 1
    groups = [points[:, train][member[:, train] == is_in] for is_in in (True, False)]
    spread = sum(np.cov(group.T) for group in groups) + 1e-3 * np.eye(4)
    score = points[:, test] @ np.linalg.solve(spread, groups[0].mean(axis=0) - groups[1].mean(axis=0))
    ins, outs = score[member[:, test]], score[~member[:, test]]
    return float((ins[:, np.newaxis] > outs).mean() + (ins[:, np.newaxis] == outs).mean() / 2)


METHODS = {
    "noise": sm.Noise(on=AMOUNTS, variance=2.0),
    "microaggregation": sm.methods.Microaggregate(on=AMOUNTS, size=5),
    "synthesis": sm.methods.Synthesize(on=ALL, leaf=20),
}


@pytest.mark.parametrize("name", METHODS if SOAK else ["noise"])
def test_stated_membership_is_that_of_shadow_models(name: str) -> None:
    data = people(600 if SOAK else 300, seed=4)
    units = OutlyingUnits()
    shadow = shadow_auc(data, METHODS[name], units.targets(data).tolist(), 400 if SOAK else 80, seed=1)
    result = stated(data, METHODS[name], replace(MEASURE, times=100 if SOAK else 40))
    assert abs(result.value - shadow) < 0.05
