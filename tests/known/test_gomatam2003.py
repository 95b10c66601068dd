"""Gomatam, Karr, Sanil (2003): RNG-free golden values and tiny cases.

The pairs of the golden runs are rows 0-1, 2-3, ... of the file, the first m admissible ones: no random number is drawn.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.core.streams import Stream
from sdcmap.data.cells import moves
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.methods.swap import stack_codes

LETTERS = dict(zip("AWEMRSHI", ("Age", "WrkTyp", "Educ", "MarStat", "Race", "Sex", "Hours", "Income"), strict=True))
RNG = np.random.default_rng(0)


def swapped_in_file_order(data: Microdata, names: tuple[str, ...], rate: float) -> tuple[Microdata, int, int]:
    wanted = round(rate * len(data))
    codes = stack_codes(data, names)
    differ = (codes[0:-1:2] != codes[1::2]).all(axis=1)
    first: Array = 2 * np.flatnonzero(differ)[:wanted]
    rows, partners = np.concatenate([first, first + 1]), np.concatenate([first + 1, first])
    return data.change(rows, {name: data.codes(name)[partners] for name in names}), int(differ.sum()), wanted


@pytest.mark.parametrize(
    ("letters", "rate", "risk", "distance", "variation", "entropy"),
    [
        ("E", 0.005, 0.01476610, 0.01662913, 0.00540518, 0.00313025),
        ("R", 0.05, 0.01258019, 0.06128058, 0.03308628, 0.01314030),
        ("WR", 0.05, 0.01082852, 0.08623068, 0.04315958, 0.04052062),
    ],
)
def test_swaps_in_file_order(
    cps8d: Microdata, letters: str, rate: float, risk: float, distance: float, variation: float, entropy: float
) -> None:
    masked, _, _ = swapped_in_file_order(cps8d, tuple(LETTERS[letter] for letter in letters), rate)
    for measure, golden in (
        (sm.SmallCells(), risk),
        (sm.Hellinger(), distance),
        (sm.utility.TotalVariation(), variation),
        (sm.utility.EntropyChange(), entropy),
    ):
        assert measure.score(cps8d, masked, RNG).value == pytest.approx(golden, abs=5e-9)


def test_race_and_income_at_five_percent_lack_pairs(cps8d: Microdata) -> None:
    _, found, wanted = swapped_in_file_order(cps8d, ("Race", "Income"), 0.05)
    assert (found, wanted) == (2009, 2442)
    with pytest.raises(sm.errors.Infeasible, match="of the 2442 pairs that the rate requires are admissible"):
        sm.Swap(on=["Race", "Income"], rate=0.05).apply(cps8d, Stream.of_seed(1))


def test_greedy_pairing_fills_race_and_income_at_five_percent(cps8d: Microdata) -> None:
    """Several matchings give .01157(41) and .13523(137) in the notes: 100 seeds, within 4 sd sqrt(1/100 + 1/100)."""
    method = sm.Swap(on=["Race", "Income"], rate=0.05, pairing="greedy")
    files = [method.apply(cps8d, Stream.of_seed(seed, "greedy")) for seed in range(100)]
    for measure, golden, sd in ((sm.SmallCells(), 0.01157, 0.00041), (sm.Hellinger(), 0.13523, 0.00137)):
        mean = np.mean([measure.score(cps8d, masked, RNG).value for masked in files])
        assert abs(mean - golden) < 4 * sd * np.sqrt(2 / 100)


def test_greedy_pairing_ends_when_no_pair_is_left(cps8d: Microdata) -> None:
    """1,080 + 6,000 disjoint pairs of Race and Income exist, and no more."""
    with pytest.raises(sm.errors.Infeasible, match="only 7080 of the 9768 pairs .* no two of the 34682 records"):
        sm.Swap(on=["Race", "Income"], rate=0.2, pairing="greedy").apply(cps8d, Stream.of_seed(1))
    masked = sm.Swap(on=["Race", "Income"], rate=7080 / 48842, pairing="greedy").apply(cps8d, Stream.of_seed(1))
    assert len(moves(cps8d, masked, ("Race", "Income")).rows) == 2 * 7080


def test_wrong_readings_give_other_values(cps8d: Microdata) -> None:
    masked, _, _ = swapped_in_file_order(cps8d, ("Race",), 0.05)
    every = sm.SmallCells(counting="all").score(cps8d, masked, RNG).value
    assert every == pytest.approx(0.0155194, abs=5e-8)  # "include swapped" in the notes on the paper


def test_the_unswapped_file(cps8d: Microdata) -> None:
    same = cps8d.change(None, {})
    assert sm.SmallCells().score(cps8d, same, RNG).value == pytest.approx(0.0149461529, abs=5e-11)
    assert sm.Hellinger().score(cps8d, same, RNG).value == 0
    exposed = sm.SmallCells(n=2).records(cps8d, same)
    assert int(exposed.sum()) == 354
    assert int(sm.SmallCells(n=3).records(cps8d, same).sum()) == 354 + 2 * 188


def test_the_tiny_file() -> None:
    frame = pl.DataFrame({"u": list("000111"), "v": list("001011")})
    data = sm.read(frame, keys="all")
    rows = np.array([0, 4])
    masked = data.change(rows, {"v": data.codes("v")[rows[::-1]]})
    assert sm.Hellinger().score(data, masked, RNG).value == pytest.approx(0.2391463117, abs=5e-11)
    assert sm.utility.TotalVariation().score(data, masked, RNG).value == pytest.approx(1 / 3, abs=1e-15)
    assert sm.utility.EntropyChange().score(data, masked, RNG).value == pytest.approx(
        0, abs=1e-15
    )  # 2,1,1,2 became 1,2,2,1
    assert sm.SmallCells(n=3).score(data, masked, RNG).value == 1
    assert sm.SmallCells(n=2).score(data, masked, RNG).value == 0.5


@pytest.mark.parametrize("letters", ["E", "WR", "SH"])
def test_what_a_swap_keeps(cps8d: Microdata, letters: str) -> None:
    names = tuple(LETTERS[letter] for letter in letters)
    rest = tuple(name for name in cps8d.names if name not in names)
    masked = sm.Swap(on=names, rate=0.05).apply(cps8d, Stream.of_seed(11))
    before, after = cps8d.frame(), masked.frame()
    for margin in (*((name,) for name in cps8d.names), names, rest):
        assert before.group_by(margin).len().sort(margin).equals(after.group_by(margin).len().sort(margin))
    changed = np.array([(before[name] != after[name]).to_numpy() for name in names])
    assert (changed.all(axis=0) == changed.any(axis=0)).all()  # a swapped record changed in every swapped variable
    assert int(changed.any(axis=0).sum()) == 2 * 2442


def test_mean_risk_and_distance_over_seeds_fall_in_the_reference_bands(cps8d: Microdata, shared) -> None:  # type: ignore[no-untyped-def]
    """20 seeds of three conditions against the 100 of golden/swap_bands.csv, within 4 sd sqrt(1/20 + 1/100)."""
    bands = pl.read_csv(shared / "golden" / "swap_bands.csv", infer_schema=False)
    seeds = 20
    for letters, rate in (("E", "0.05"), ("WR", "0.05"), ("SI", "0.01")):
        band = bands.filter((pl.col("vars") == letters) & (pl.col("condition") == rate)).row(0, named=True)
        method = sm.Swap(on=tuple(LETTERS[letter] for letter in letters), rate=float(rate))
        files = [method.apply(cps8d, Stream.of_seed(seed, "band")) for seed in range(seeds)]
        for measure, name in ((sm.SmallCells(), "risk"), (sm.Hellinger(), "H")):
            mean = np.mean([measure.score(cps8d, masked, RNG).value for masked in files])
            width = 4 * float(band[f"{name}_sd"]) * np.sqrt(1 / seeds + 1 / 100)
            assert abs(mean - float(band[f"{name}_mean"])) < width, (letters, rate, name)


def test_constraints_hold_for_every_pair(cps8d: Microdata) -> None:
    masked = sm.Swap(on="Educ", rate=0.05, same=["Sex", "Race"], differ="MarStat").apply(cps8d, Stream.of_seed(5))
    rows = masked.changed_rows(["Educ"])
    assert rows is not None
    first, second = np.split(rows, 2)
    for name in ("Sex", "Race"):
        assert (cps8d.codes(name)[first] == cps8d.codes(name)[second]).all()
    assert (cps8d.codes("MarStat")[first] != cps8d.codes("MarStat")[second]).all()
    assert len(np.unique(rows)) == len(rows) == 4884


def test_pairs_are_drawn_uniformly() -> None:
    """Six records, one pair: each of the 15 pairs equally often (chi-square, 14 degrees of freedom, p = 1e-6)."""
    data = sm.read(pl.DataFrame({"v": list("abcdef")}), keys="all")
    counts = np.zeros((6, 6))
    draws = 6000
    for seed in range(draws):
        rows = sm.Swap(on="v", rate=1 / 6).apply(data, Stream.of_seed(seed)).changed_rows(["v"])
        assert rows is not None
        counts[rows.min(), rows.max()] += 1
    expected = draws / 15
    pairs = counts[np.triu_indices(6, 1)]
    assert ((pairs - expected) ** 2 / expected).sum() < 54
