"""A study continues and is released on another machine, whose arithmetic differs in the last bits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.random import Generator

import sdcmap as sm
from samples import SEED
from sdcmap.bundle.prepared_file import as_written, prepare
from sdcmap.bundle.round_trip import check_round_trip
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.masking.noise_covariance import draw_normals
from sdcmap.study.plan import Candidate

LAST_BITS = 1e-9
BY_DRAWS = sm.Chain([sm.RankSwap(on="wage", p=0.1), sm.Swap(on="Educ", rate=0.1)])  # whole numbers decide, no rounding
NOISY = sm.Noise(on=["wage", "interest"], variance=0.2, correlated=True)
METHODS = [BY_DRAWS, NOISY, sm.Noise(on="wage", within="Sex"), sm.Swap(on="Sex", rate=0.2)]
MEASURES = [sm.SmallCells(), sm.Hellinger(), sm.IL1s(on="wage"), sm.risk.NearestRecord(on=["wage", "interest"])]


@pytest.fixture(scope="module")
def people() -> Microdata:
    return sm.demo.population(300, seed=2)


@pytest.fixture
def other_machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Change every noise value by one unit in the last place, as between two processors."""

    def rounded_otherwise(rng: Generator, n: int, m: int) -> Array:
        return np.nextafter(draw_normals(rng, n, m), np.inf)

    monkeypatch.setattr("sdcmap.methods.noise.draw_normals", rounded_otherwise)
    return monkeypatch


def test_study_continues_on_another_machine(
    people: Microdata, tmp_path: Path, other_machine: pytest.MonkeyPatch
) -> None:
    """Rows that are there stay as they are; those that come differ in last bits alone, or not at all where only draws
    decide. No warning, no mismatch: ids, streams and statuses are the same."""
    plan = sm.Plan(METHODS, MEASURES, replicates=3, seed=SEED)
    begun = replace(plan, replicates=2, measures=tuple(MEASURES[:3]))
    there = sm.sweep(people, plan, tmp_path / "there", workers=1)
    first = sm.sweep(people, begun, tmp_path / "both", workers=1)
    other_machine.undo()
    both = sm.sweep(people, plan, tmp_path / "both", workers=1)
    assert both.candidate.drop("seconds").equals(there.candidate.drop("seconds"))
    keys = ["candidate", "measure"]
    kept = first.score.join(both.score, on=keys, how="left", suffix="_now")
    assert kept["value"].equals(kept["value_now"], null_equal=True), "rows that were there are not touched"
    joined = both.score.join(there.score, on=keys, how="inner", suffix="_there")
    assert len(joined) == len(both.score) == len(there.score)
    assert joined["value"].to_numpy() == pytest.approx(joined["value_there"].to_numpy(), rel=LAST_BITS, abs=LAST_BITS)
    drawn = both.candidate.filter(pl.col("method").is_in([BY_DRAWS.text, METHODS[-1].text]))["id"].implode()
    alike = joined.filter(pl.col("candidate").is_in(drawn))
    assert len(alike) and alike["value"].equals(alike["value_there"])
    assert not joined["value"].equals(joined["value_there"]), "the other machine computes otherwise"
    with sm.Study.open(tmp_path / "both") as study:
        assert study.scores().score.sort(keys).equals(both.score.sort(keys))


def test_released_file_is_the_same_on_another_machine(people: Microdata, other_machine: pytest.MonkeyPatch) -> None:
    """Released numbers are rounded like the original, so that last bits do not show."""
    files = []
    for _ in range(2):
        stream = Candidate(NOISY).stream(SEED)
        masked = NOISY.apply(people, stream)
        files.append((masked, prepare(people, NOISY, as_written(people, NOISY, masked), stream).data))
        other_machine.undo()
    (there, released_there), (here, released_here) = files
    assert there.digest != here.digest and released_there.digest == released_here.digest


def test_numbers_without_a_grid_are_matched_on_another_machine(
    people: Microdata, other_machine: pytest.MonkeyPatch
) -> None:
    """A file with all digits is recognized where only the last bits differ, but not where the ninth digit does."""
    fine = people.change(None, {"wage": people["wage"] * np.pi})
    stream = Candidate(NOISY).stream(SEED)
    there = prepare(fine, NOISY, as_written(fine, NOISY, NOISY.apply(fine, stream)), stream).data
    other_machine.undo()
    here = prepare(fine, NOISY, as_written(fine, NOISY, NOISY.apply(fine, stream)), stream)
    assert there.digest != here.data.digest and not check_round_trip(here, there).passed
    assert check_round_trip(here, there, LAST_BITS).passed
    moved = there.change(None, {"wage": there["wage"] * (1 + 1e-6)})
    assert not check_round_trip(here, moved, LAST_BITS).passed
