"""The calibrated attack: its evidence, its compiled kernel against the formula, and chains that other attacks miss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest
from numpy.random import Generator, default_rng

import sdcmap as sm
from sdcmap.core.method import Method
from sdcmap.core.streams import Stream
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined
from sdcmap.risk import Calibrated, NearestRecord
from sdcmap.risk.linkage.cost_models import attack_targets
from sdcmap.risk.linkage.learned_evidence import category_evidence, number_evidence

ONCE = Stream.of_seed(5)
KEYS = ("region", "school", "sex")
NUMBERS = ("age", "wage", "rent", "tax")


def people(n: int = 600, seed: int = 1) -> Microdata:
    """Mixed records with ties, zeros and gaps."""
    rng = default_rng(seed)
    wage = np.round(rng.lognormal(9, 1, n))
    wage[rng.random(n) < 0.05] = np.nan
    frame = pl.DataFrame({
        "region": rng.choice(list("abcdefgh"), n, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.05, 0.03, 0.02]),
        "school": rng.choice(["none", "low", "mid", "high"], n),
        "sex": rng.choice(["f", "m"], n),
        "age": rng.integers(16, 90, n).astype(float),
        "wage": wage,
        "rent": np.where(rng.random(n) < 0.3, 0.0, np.round(rng.lognormal(6, 0.5, n))),
        "tax": np.round(np.nan_to_num(wage) * rng.uniform(0.1, 0.3, n)),
    }).with_columns(pl.col("wage").fill_nan(None))  # fmt: skip
    return sm.read(frame, keys=KEYS, numeric=NUMBERS)


def rate(attack: Calibrated, data: Microdata, masked: Microdata) -> float:
    return attack.links(data, masked).rate


def by_hits(attack: Calibrated, data: Microdata, masked: Microdata) -> float:
    pair = attack.pair(data, masked, attack.check_variables(data))
    return attack_targets(pair, attack.cost_models(pair), np.arange(len(masked))).rate


# ---- evidence -------------------------------------------------------------------------------------------------
def test_evidence_of_normal_noise_is_its_log_density() -> None:
    """Known values and noise normal: log p(b | a) - log p(b) = const - e^2 / 2 s^2, up to the error of bins and 20,000
    pairs.
    """
    rng = default_rng(2)
    known = rng.normal(0, 10, 20_000)
    released = known + rng.normal(0, 1, 20_000)
    field = number_evidence(known, released, known, released)
    apart = np.array([0.2, 0.5, 1.0, 1.5, 2.0])
    cost = field(np.zeros(5), apart) - field(np.zeros(1), np.array([0.2]))
    assert cost == pytest.approx((apart**2 - 0.04) / 2, abs=0.15)


def test_unchanged_column_must_agree_and_redrawn_column_does_not_count() -> None:
    rng = default_rng(3)
    known = rng.integers(0, 1000, 5000).astype(float)
    same = number_evidence(known, known, known, known)
    assert same(np.array([3.0]), np.array([3.0]))[0] == 0 and same(np.array([3.0]), np.array([4.0]))[0] > 10
    anew = number_evidence(known, rng.permutation(known), known, known)
    assert anew(np.array([3.0]), np.array([3.0, 4.0, 500.0])).max() < 1.5
    codes = rng.integers(0, 4, 5000)
    table = category_evidence(codes, codes, codes, 4, comparable=True)
    assert table(codes[:9], codes[:9]).max() < 0.2 and table(np.array([0]), np.array([1]))[0] > 8


def test_missing_is_a_separate_state() -> None:
    known = np.array([1.0, 2.0, 3.0, np.nan] * 50)
    released = known.copy()
    released[::8] = np.nan  # half of the first quarter is suppressed
    field = number_evidence(known, released, known, released)
    lost = field(np.array([np.nan, np.nan, 1.0]), np.array([np.nan, 1.0, np.nan]))
    assert lost[0] < lost[2] < lost[1]  # missing values stay missing; other values may be suppressed


# ---- attacks --------------------------------------------------------------------------------------------------
METHODS = {
    "noise": sm.Noise(NUMBERS, 0.1),
    "rank swap": sm.RankSwap(NUMBERS, 0.1),
    "randomized response and suppression": sm.Chain(
        (sm.methods.RandomizedResponse(KEYS, 2.0), sm.Suppress(KEYS, 3), sm.Noise(NUMBERS, 0.1))
    ),
    "recoded": sm.Chain((sm.Recode("age", bins=5), sm.Recode("region", merge=(("f", "g", "h"),)))),
    "a sample": sm.Chain((sm.methods.Sample(0.5), sm.Noise(NUMBERS, 0.1))),
}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("learned", ["shadow", "files", "pairs"])
def test_hit_rate_matches_link_rate(name: str, learned: str) -> None:
    data = people(200)
    masked = METHODS[name].apply(data, ONCE)
    attack = Calibrated(METHODS[name], learned)  # type: ignore[arg-type]
    assert by_hits(attack, data, masked) == pytest.approx(rate(attack, data, masked), abs=1e-9)


@pytest.mark.parametrize(
    "method",
    [
        sm.methods.Shuffle(("age", "wage", "rent")),
        sm.methods.Synthesize(("age", "wage", "rent")),
        sm.Microaggregate(("age", "wage", "rent"), 100),
        sm.Chain((sm.Noise(("age", "wage", "rent"), 1.0), sm.RankSwap(("age", "wage", "rent"), 0.3))),
    ],
    ids=["shuffle", "synthesis", "microaggregation", "noise and rank swap"],
)
def test_unchanged_unique_column_identifies_everyone(method: Method) -> None:
    frame = people(400).frame().with_columns(pl.col("wage").fill_null(0.0), tax=pl.Series(np.arange(400.0) * 7 + 1000))
    tagged = sm.read(frame, keys=KEYS, numeric=NUMBERS)
    masked = method.apply(tagged, ONCE)
    assert masked.paired
    assert rate(Calibrated(method), tagged, masked) == 1.0


def whole_file() -> Method:
    return sm.Chain((
        sm.Recode("region", merge=(("f", "g", "h"),)), sm.methods.RandomizedResponse(("sex",), 2.0),
        sm.Suppress(("region", "school"), 3), sm.Microaggregate(("age", "wage"), 5),
        sm.methods.MixtureNoise(("rent", "tax"), 0.1),
    ))  # fmt: skip


def test_calibrated_attack_beats_gower_on_chains() -> None:
    """Means over three draws, against an attack that weighs every column equally."""
    data, method = people(600), whole_file()
    draws = [method.apply(data, Stream.of_seed(seed)) for seed in range(3)]
    calibrated = np.mean([rate(Calibrated(method), data, masked) for masked in draws])
    gower = np.mean([NearestRecord("gower").links(data, masked).rate for masked in draws])
    assert calibrated > 0.95 > gower + 0.1
    yardstick = np.mean([rate(Calibrated(learned="pairs"), data, masked) for masked in draws])
    assert calibrated > yardstick - 0.1  # a shadow is as good as true pairs
    larger = people(1000)
    assert (
        sm.WorstLinkage().for_informed_attacker(method).score(larger, method.apply(larger, ONCE), default_rng(1)).value
        >= 0.85
    )


def test_learning_from_files_finds_most_links() -> None:
    data = people(400)
    method = sm.Noise(NUMBERS, 0.05)
    masked = method.apply(data, ONCE)
    alone, shadow = rate(Calibrated(learned="files"), data, masked), rate(Calibrated(method), data, masked)
    assert shadow > 0.5 and alone > 0.7 * shadow


@dataclass(frozen=True)
class Blur(Method):
    """A plug-in without a likelihood: rounds up or down by a coin."""

    on: tuple[str, ...] = ("wage",)

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        return data.change(None, {n: data.numbers(n) + rng.integers(-50, 51, len(data)) for n in self.on})


def test_calibrated_attack_on_chain_with_plug_in() -> None:
    data = people(300)
    method = sm.Chain((Blur(), sm.methods.PRAM(KEYS, 0.8)))
    assert rate(Calibrated(method), data, method.apply(data, ONCE)) > 0.8


# ---- bad input ------------------------------------------------------------------------------------------------
def test_calibrated_attack_on_degenerate_files() -> None:
    two = people(2)
    assert 0 <= rate(Calibrated(sm.Noise(NUMBERS)), two, sm.Noise(NUMBERS).apply(two, ONCE)) <= 1
    data = people(50)
    flat = sm.read(
        data.frame().with_columns(rent=pl.lit(1.0), age=pl.lit(None, pl.Float64)), keys=KEYS, numeric=NUMBERS
    )
    method = sm.Noise(("wage", "tax"), 0.1)
    assert 0 < rate(Calibrated(method), flat, method.apply(flat, ONCE)) <= 1
    blank = data.change(None, {"wage": np.full(50, np.nan)})
    assert 0 < rate(Calibrated(sm.methods.Identity()), data, blank) <= 1


def test_calibrated_attack_is_undefined_without_method_or_pairs() -> None:
    data = people(60)
    with pytest.raises(Undefined, match="the method is not known"):
        rate(Calibrated(learned="shadow"), data, data)
    whole = sm.methods.Synthesize((*KEYS, *NUMBERS))
    with pytest.raises(Undefined, match="fully synthetic records"):
        rate(Calibrated(whole), data, sm.Noise(NUMBERS).apply(data, ONCE))
