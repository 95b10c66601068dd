"""The values of the largest units: with the units in the file and without."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import polars as pl
import pytest
from numpy.random import Generator

import sdcmap as sm
from sdcmap import testing
from sdcmap.core.method import Method
from sdcmap.core.refits import EveryoneIn, HalfIn, refit_without
from sdcmap.core.streams import Stream
from sdcmap.data.microdata import Microdata
from sdcmap.data.schema import KINDS
from sdcmap.risk import ExtremeValues, OutlierMembership
from sdcmap.risk._outlying_units import ExtremeUnits, OutlyingUnits, WatchedUnits
from sdcmap.risk.extreme_values import ERRORS_TO_CHOOSE, Hits, hits_by_rank, shrink_gains
from sizes import SOAK


@dataclass(frozen=True)
class Resample(Method):
    """A synthesizer that draws each amount anew from its own values and adds up to 1 %; it keeps the largest if `keep`."""

    kinds: ClassVar[tuple[str, ...]] = KINDS
    mixes_records: ClassVar[bool] = True
    keep: bool = False

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        drawn = {}
        for name in data.numeric:
            x = np.sort(data.numbers(name))
            if self.keep:
                y = x * rng.uniform(0.99, 1.01, len(x))
            else:
                y = np.exp(np.log(x[:-20]).mean() + np.log(x[:-20]).std() * rng.standard_normal(len(x)))
            drawn[name] = rng.permutation(y)
        return replace(data.change(None, drawn), paired=False)


def firms(n: int = 300, seed: int = 0, *, far: bool = True) -> Microdata:
    """Return firms whose ten largest are each 1.5 times the next, or a plain lognormal file."""
    rng = np.random.default_rng(seed)
    turnover, staff = rng.lognormal(5, 0.5, n), rng.lognormal(3, 0.5, n)
    if far:
        turnover[:10] = np.sort(turnover)[-1] * 1.5 ** np.arange(1, 11)
        staff[20:30] = np.sort(staff)[-1] * 1.5 ** np.arange(1, 11)
    return sm.read(pl.DataFrame({"turnover": turnover, "staff": staff}), numeric=["turnover", "staff"])


def score(data: Microdata, method: Method, measure: ExtremeValues, seed: int = 1) -> sm.Estimate:
    masked = sm.mask(data, method, seed=seed)
    released = masked if masked.paired else masked.frame()
    return sm.score(data, released, [measure], paired=masked.paired, method=method, seed=seed)[measure.text]


# ---- known answers --------------------------------------------------------------------------------------------
def test_success_compares_the_released_value_of_the_same_rank() -> None:
    released = np.array([4.0, np.nan, 100.0, 52.0])
    hits = hits_by_rank(np.array([90.0, 50.0, 4.5, 3.0]), np.array([0, 1, 2, 3]), released, 10.0)
    assert hits.tolist() == [False, True, False, False]  # 100 is 11 % away; 4 is 11 % away; there is no fourth value


def test_gain_is_the_mean_difference_over_files() -> None:
    inside = np.array([[True, False, True, False], [False, True, True, False]])
    hits = Hits(np.array([[1.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.0]]), inside)
    assert hits.rates == (0.75, 0.25) and hits.gain[0] == 0.5
    # by hand: deviations from the means of each unit, with the sign of the group, summed by file, over 2 * 4 / 2
    totals = np.array([0.0 - 0.0, 0.5 - 0.5, 0.0 + 0.5, -0.5 - 0.0]) / 4
    assert hits.gain[1] == pytest.approx(max(np.sqrt(2 * totals @ totals), np.sqrt(2) / 8))
    pair = Hits(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]), np.tile([True, False], (3, 1)))
    assert pair.gain == (
        pytest.approx(1 / 3),
        pytest.approx(max(np.std([1, 0, 0], ddof=1) / np.sqrt(3), np.sqrt(2) / 6)),
    )


def test_gain_without_masking_is_by_hand() -> None:
    """Each firm is 1.5 times the next: with it the value is exact, without it another one is at its rank."""
    estimate = score(firms(), sm.Identity(), ExtremeValues(largest=9))
    assert estimate.value == estimate.parts["members"] == 1 and estimate.parts["non-members"] == 0
    assert estimate.parts["units"] == 18


@pytest.mark.parametrize("method", [sm.Identity(), Resample(keep=True)])
def test_losses_are_attacked_as_gains_are(method: Method) -> None:
    """Each loss is 1.5 times the next; the gains are near each other, and tell little."""
    turnover, staff = (firms().numbers(name) for name in ("turnover", "staff"))
    data = sm.read(pl.DataFrame({"balance": np.where(staff > np.median(staff), 100.0, -turnover)}), numeric="balance")
    assert score(data, method, ExtremeValues(largest=5, times=20)).value > 0.6
    assert ExtremeUnits(("balance",), 5)(data).max() == 9


def test_half_of_the_largest_units_are_in_each_refit_and_everyone_else_in_all() -> None:
    data, outlying = firms(), OutlyingUnits(fewest=30)
    refits = refit_without(data, sm.Identity(), Stream.of_seed(1, "test"), HalfIn(6, WatchedUnits(outlying)))
    outside = np.array([refit.outside for refit in refits])
    assert (outside[:, :10].sum(axis=0) == 3).all() and (outside[:, 20:30].sum(axis=0) == 3).all()
    others = np.r_[10:20, 30 : len(data)]
    also = np.intersect1d(others, np.flatnonzero(outlying(data) >= 0))
    assert len(also) and (outside[:, also].sum(axis=0) == 3).all()
    assert not outside[:, np.setdiff1d(others, also)].any()
    everyone = refit_without(data, sm.Identity(), Stream.of_seed(1, "test"), HalfIn(2, EveryoneIn()))
    assert not any(refit.outside.any() for refit in everyone)


def test_no_two_largest_units_are_in_opposite_refits() -> None:
    """An outlying unit may be opposite to a largest one, and to another outlying one, but not two largest ones."""
    data = firms()
    unit, largest = WatchedUnits()(data), ExtremeUnits()(data) >= 0
    assert len(np.unique(unit[unit >= 0])) == (unit >= 0).sum() and (unit[largest] % 2 == 0).all()
    assert (unit >= 0).sum() == len(np.union1d(np.flatnonzero(largest), np.flatnonzero(OutlyingUnits()(data) >= 0)))


def test_measures_of_the_few_share_their_refits() -> None:
    method, masked = sm.methods.Synthesize(on=("turnover", "staff")), firms()
    largest, outlying = (
        measure.for_informed_attacker(method) for measure in (ExtremeValues(times=20), OutlierMembership(times=20))
    )
    unpaired = replace(masked, paired=False)
    assert largest.refits(unpaired) == outlying.refits(unpaired)
    assert largest.release_variant().refits(unpaired) == outlying.release_variant().refits(unpaired)


def test_households_of_the_largest_units_leave_together() -> None:
    frame = firms(100).frame().with_columns(home=pl.Series(np.arange(100) // 2))
    data = sm.read(frame, numeric=["turnover", "staff"], household="home")
    unit = ExtremeUnits(("turnover",), 2)(data)  # the four largest firms are of two units
    assert np.flatnonzero(unit >= 0).tolist() == [6, 7, 8, 9] and unit[6] == unit[7] != unit[8] == unit[9]


def test_gains_are_shrunk_as_far_as_they_differ_by_chance() -> None:
    same, errors = shrink_gains(np.array([0.0, 0.04, -0.02]), np.full(3, 0.05))
    assert same == pytest.approx([0.02 / 3] * 3) and errors == pytest.approx([0.05 / np.sqrt(3)] * 3)
    leak, errors = shrink_gains(np.array([0.0, 0.01, 0.9]), np.full(3, 0.05))
    assert leak[2] > 0.89 and errors[2] == pytest.approx(0.05, rel=0.02)


@pytest.mark.parametrize("gains", [[0.2, 0.0, 0.0, 0.0], [0.2] + [0.0] * 9, [0.2, 0.1, 0.0, 0.0], [0.2]])
def test_upper_limit_at_release_covers_the_largest_gain(gains: list[float]) -> None:
    """At 97 % it is below the largest gain in at most 3 % of 4,000 draws (4 standard errors); a shrunken one would not be.

    Each gain is drawn with an error of 0.045, as of ten units in 50 refits.
    """
    rng, true, below = np.random.default_rng(1), np.array(gains), 0
    for _ in range(4_000):
        drawn = true + 0.045 * rng.standard_normal(len(true))
        worst = drawn[np.argmax(drawn + ERRORS_TO_CHOOSE * 0.045)]
        below += sm.Estimate(value=worst, se=0.045, df=49.0).upper(0.97) < true.max()
    assert below / 4_000 < 0.03 + 4 * np.sqrt(0.03 * 0.97 / 4_000)


def test_release_judges_the_only_amount_that_leaks() -> None:
    """Of four amounts one keeps its largest value; the gain at release is that of this amount, and not shrunk."""
    rng = np.random.default_rng(4)
    frame = firms().frame().with_columns(**{f"other{i}": pl.Series(rng.lognormal(3, 0.5, 300)) for i in range(2)})
    frame = frame.with_columns(staff=pl.Series(rng.lognormal(3, 0.5, 300)))
    data = sm.read(frame, numeric=frame.columns)

    @dataclass(frozen=True)
    class LeaksTurnover(Resample):
        def mask(self, data: Microdata, rng: Generator) -> Microdata:
            drawn = replace(Resample(), keep=False).mask(data, rng)
            kept = np.sort(data.numbers("turnover")) * rng.uniform(0.99, 1.01, len(data))
            return replace(drawn.change(None, {"turnover": rng.permutation(kept)}), paired=False)

    together = score(data, LeaksTurnover(), ExtremeValues(times=40))
    each = score(data, LeaksTurnover(), ExtremeValues(times=40).release_variant())  # type: ignore[arg-type]
    assert each.value == each.parts["worst amount"] > 0.8 and each.value > together.value
    assert ExtremeValues(times=40).release_error(together) < together.parts["standard error of one amount"]


# ---- an independent attack ------------------------------------------------------------------------------------
def plain_gain(data: Microdata, name: str, keep: bool, times: int, seed: int) -> float:
    """Attack the ten largest in plain numpy, with a synthesizer of its own; each is absent with probability 1/2."""
    x, rng = data.numbers(name), np.random.default_rng(seed)
    top = np.argsort(-x)[:10]
    right: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(times):
        absent = set(top[rng.random(10) < 0.5])
        rest = np.array([value for row, value in enumerate(x) if row not in absent])
        if keep:
            released = rest * rng.uniform(0.99, 1.01, len(rest))
        else:
            logs = np.log(np.sort(rest)[:-20])
            released = np.exp(rng.normal(logs.mean(), logs.std(), len(rest)))
        ordered = sorted(released, reverse=True)
        for row in top:
            guess = ordered[sum(value > x[row] for value in rest)]
            right[row not in absent].append(abs(guess - x[row]) <= 0.1 * x[row])
    return float(np.mean(right[True]) - np.mean(right[False]))


def test_gain_agrees_with_a_plain_attack() -> None:
    """A synthesizer that keeps the tail gains much, one that draws it from the bulk nothing: within 0.12 of it."""
    times = 160 if SOAK else 30
    for far, keep in ((True, True), (False, True), (False, False)):
        data = firms(far=far)
        plain = np.mean([plain_gain(data, name, keep, 100, seed) for seed, name in enumerate(("turnover", "staff"))])
        estimate = score(data, Resample(keep=keep), ExtremeValues(times=times))
        gain = estimate.parts["members"] - estimate.parts["non-members"]
        assert abs(gain - plain) < 0.12, (far, keep)
        assert estimate.value >= gain - 0.05 and estimate.se is not None and estimate.se < 0.2
    assert abs(plain) < 0.05


def test_standard_error_covers_the_spread_over_draws() -> None:
    """Without a gain, the mean over seeds is within 4 of its errors of 0, and the stated error is near the true one."""
    estimates = [score(firms(far=False, seed=s), Resample(), ExtremeValues(on=("turnover",)), s) for s in range(12)]
    gains = np.array([e.parts["members"] - e.parts["non-members"] for e in estimates])
    assert abs(gains.mean()) < 4 * gains.std(ddof=1) / np.sqrt(12)
    stated = np.sqrt(np.mean([e.se**2 for e in estimates if e.se is not None]))
    assert 0.7 * gains.std(ddof=1) < stated < 2.5 * gains.std(ddof=1)


# ---- special files --------------------------------------------------------------------------------------------
def test_recoded_amount_reveals_no_value_and_top_code_hides_the_largest() -> None:
    data = firms()
    classes = sm.mask(data, sm.Recode(on="turnover", bins=3), seed=1)
    assert sm.score(data, classes, [ExtremeValues(on="turnover")])["ExtremeValues(on='turnover')"].value == 0
    top = sm.methods.TopCode(on="turnover", top_share=0.1)
    assert abs(score(data, top, ExtremeValues(on="turnover")).value) < 0.15


def test_release_checks_make_forty_refits() -> None:
    variant = ExtremeValues().release_variant()
    assert isinstance(variant, ExtremeValues) and (variant.times, variant.control, variant.amounts) == (
        40,
        "refits",
        "each",
    )
    estimate = score(firms(), sm.Noise(on=("turnover", "staff"), variance=0.1), ExtremeValues())
    assert estimate.parts["refits"] == 2 and 0 < ExtremeValues().release_error(estimate) < (estimate.se or 0)


def test_extreme_values_obey_the_laws() -> None:
    testing.check_measure(ExtremeValues(), sm.demo.population(50, seed=1), [sm.Noise(on="wage")])
