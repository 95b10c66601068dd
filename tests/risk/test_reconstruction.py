"""Records reconstructed from the nearest released ones, rare values counting more."""

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
from sdcmap.core.streams import Stream
from sdcmap.data.microdata import Microdata
from sdcmap.data.schema import KINDS
from sdcmap.errors import Undefined
from sdcmap.risk import Reconstruction
from sdcmap.risk.reconstruction import bin_edges, rarity
from sdcmap.study.jobs import make_refitter

NAMES = ("a", "b", "c", "wage")


@dataclass(frozen=True)
class Copies(Method):
    """A synthesizer that copies a share of its records, and draws the others column by column."""

    kinds: ClassVar[tuple[str, ...]] = KINDS
    mixes_records: ClassVar[bool] = True
    share: float = 1.0

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        is_copied = rng.random(len(data)) < self.share
        drawn = {}
        for name in data.names:
            values = data.column(name).values
            drawn[name] = np.where(is_copied, values, rng.permutation(values))
        return replace(data.change(None, drawn), paired=False)


def people(n: int = 200, seed: int = 0) -> Microdata:
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "a": rng.choice(["x", "y", "z"], n, p=[0.7, 0.25, 0.05]),
            "b": rng.integers(0, 4, n).astype(str),
            "c": rng.integers(0, 6, n).astype(str),
            "wage": rng.lognormal(7, 1, n),
        }
    )
    return sm.read(frame, keys=["a", "b", "c"], numeric=["wage"])


def score(data: Microdata, method: Method, measure: Reconstruction, seed: int = 1) -> sm.Estimate:
    masked = sm.mask(data, method, seed=seed)
    released = masked if masked.paired else masked.frame()
    return sm.score(data, released, [measure], paired=masked.paired, method=method, seed=seed)[measure.text]


# ---- known answers --------------------------------------------------------------------------------------------
def test_weight_is_the_information_in_a_value() -> None:
    assert rarity(np.array([0, 0, 0, 0, 1, 1, 2, 3, -1])).tolist() == [1, 1, 1, 1, 2, 2, 3, 3, 0]


def test_numbers_are_in_classes_of_equally_many_and_equal_values_together() -> None:
    assert bin_edges(np.arange(40.0)).tolist() == list(range(2, 40, 2))
    mostly_zero = np.append(np.zeros(30), np.arange(1.0, 11.0))
    assert len(np.unique(np.searchsorted(bin_edges(mostly_zero), mostly_zero, side="right"))) == 6


def test_gain_of_a_file_that_gives_nothing_is_zero_and_of_one_column_by_hand() -> None:
    """Town and street say the same: a member's own record tells both, and a non-member's values are in no record."""
    frame = pl.DataFrame({"town": [f"t{i}" for i in range(60)], "street": [f"s{i}" for i in range(60)]})
    data = sm.read(frame, keys=["town", "street"])
    estimate = score(data, sm.Identity(), Reconstruction())
    assert estimate.value == pytest.approx(1.0, abs=0.03) and estimate.parts["members"] == 1
    assert estimate.parts["columns"] == 2
    constant = sm.read(frame.with_columns(town=pl.lit("x"), street=pl.lit("y")), keys=["town", "street"])
    with pytest.raises(Undefined):
        Reconstruction().apply(constant, constant, np.random.default_rng(1))


# ---- an independent attack ------------------------------------------------------------------------------------
def plain_rate(people: pl.DataFrame, original: pl.DataFrame, released: pl.DataFrame) -> float:
    """Return the weighted share of right guesses, in plain numpy."""
    edges = np.quantile(original["wage"].to_numpy(), np.arange(1, 20) / 20)
    span = float(np.ptp(original["wage"].to_numpy()))
    tables = []
    for frame in (people, original, released):
        classes = np.searchsorted(edges, frame["wage"].to_numpy(), side="right").astype(str)
        tables.append({name: frame[name].to_numpy() for name in "abc"} | {"wage": classes})
    hits = whole = 0.0
    for person in range(len(people)):
        parts = {name: (tables[2][name] != tables[0][name][person]).astype(float) for name in "abc"}
        gaps = np.abs(released["wage"].to_numpy() - people["wage"][person]) / span
        parts["wage"] = np.minimum(gaps, 1)
        for name in NAMES:
            distance = sum(part for other, part in parts.items() if other != name)
            nearest = np.asarray(distance) <= np.min(distance) + 1e-9
            true = tables[0][name][person]
            weight = -np.log2((tables[1][name] == true).mean())
            hits += weight * (tables[2][name][nearest] == true).mean()
            whole += weight
    return hits / whole


@pytest.mark.parametrize("share", [1.0, 0.4, 0.0])
def test_gain_agrees_with_a_plain_attack(share: float) -> None:
    """Members and non-members of the same refits, attacked in plain numpy: within 0.03."""
    data, method = people(), Copies(share)
    measure = Reconstruction(held_out=0.5, method=method)
    fit = make_refitter(data, method, Stream.of_seed(1, "test"))
    request = measure.refits(sm.mask(data, method, seed=1))
    assert request is not None
    refits, frame = fit(request), data.frame()
    plain = [
        [
            plain_rate(frame.filter(who), frame, refit.released.frame())
            for refit in refits
            for who in [sign(refit.outside)]
        ]
        for sign in (np.logical_not, np.asarray)
    ]
    estimate = measure.score_refits(data, refits, np.random.default_rng(1))
    gain = float(np.mean(plain[0]) - np.mean(plain[1]))
    assert abs(estimate.value - gain) < 0.03 + 2 * (estimate.se or 0)
    assert abs(estimate.parts["members"] - np.mean(plain[0])) < 0.05
    if share != 0.4:
        assert (gain > 0.4) if share else abs(gain) < 0.1


def test_error_covers_the_spread_without_a_gain() -> None:
    estimates = [score(people(seed=s), Copies(0.0), Reconstruction(), s) for s in range(12)]
    gains = np.array([e.value for e in estimates])
    stated = np.sqrt(np.mean([e.se**2 for e in estimates if e.se is not None]))
    assert abs(gains.mean()) < 4 * gains.std(ddof=1) / np.sqrt(12)
    assert 0.6 * gains.std(ddof=1) < stated < 2.5 * gains.std(ddof=1)


def test_at_most_so_many_columns_are_guessed_evenly_spaced() -> None:
    assert Reconstruction(columns=3).guessed_columns(tuple("abcdefghi")) == ("a", "d", "g")
    assert Reconstruction(columns=8).guessed_columns(("a", "b")) == ("a", "b")


def test_missing_values_are_not_guessed_and_recoded_columns_are_compared() -> None:
    data = people()
    blank = data.frame().with_columns(b=pl.when(pl.col("c") == "0").then(None).otherwise(pl.col("b")))
    measure = Reconstruction()
    blanked = sm.read(blank, keys=["a", "b", "c"], numeric=["wage"])
    assert 0 < score(blanked, sm.Identity(), measure).value < 1
    coarse = sm.Recode(on="wage", bins=4)
    assert score(data, coarse, measure).parts["columns"] in (3.0, 4.0)


def test_reconstruction_obeys_the_laws() -> None:
    testing.check_measure(Reconstruction(), sm.demo.population(50, seed=1), [sm.Noise(on="wage")])
