"""Sketches: the same people are known again, other people of the same population are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from samples import people
from sdcmap.bundle.sketch import SKETCH_SIZE, People, recognize
from sdcmap.core.release_policy import DEFAULT_POLICY

KEY = b"k" * 32
Frame = pl.DataFrame
column = pl.col


def observed(first: Frame, second: Frame) -> bool:
    """Whether the people of one file are known again in the other."""
    first, second = (frame.drop("pid", "hh", "psu", "w", strict=False) for frame in (first, second))
    earlier = People(sm.read(first, other="all"), KEY).sketches()
    return recognize([list(earlier)], People(sm.read(second, other="all"), KEY), DEFAULT_POLICY)[0]


def recoded(frame: Frame) -> Frame:
    """Every column under another name, in another unit or with other categories."""
    return frame.select(
        a=column("age") + 3, b=column("sex").replace({"f": "W", "m": "X"}), c=column("income") / 1000,
        d=1.37 * column("rent") + 11, e=column("region").cast(pl.String).str.to_lowercase(),
    )  # fmt: skip


SAME: dict[str, Callable[[Frame], Frame]] = {
    "all recoded": recoded,
    "all recoded, another order, some rows left out": lambda f: recoded(f).sample(570, seed=1, shuffle=True),
    "all recoded, half of the rows": lambda f: recoded(f).sample(300, seed=1),
    "a rising function": lambda f: f.with_columns(column("income").log(), column("rent").sqrt()),
    "rounded": lambda f: f.with_columns((column("income") / 1000).round(1)),
    "one amount, shifted": lambda f: f.select("age", "sex", "region", column("income") + 1),
    "two columns": lambda f: f.select("income", "rent"),
    "women": lambda f: f.filter(column("sex") == "f"),
    "50 among 2,000 others": lambda f: pl.concat([people(2000, seed=9), f[:50]]),
}


@pytest.mark.parametrize("name", SAME)
def test_same_people_are_recognized(name: str) -> None:
    assert observed(people(), SAME[name](people()))


def coarse(seed: int, columns: int, rows: int = 800) -> Frame:
    rng = np.random.default_rng(seed)
    mood = rng.normal(size=rows)
    return pl.DataFrame({f"q{c}": np.clip(np.rint(3 + mood + rng.normal(0, 0.8, rows)), 1, 5) for c in range(columns)})


def numbered(seed: int) -> Frame:
    """Numbered by stratum, and in the order of the regions: any two such files agree in rare combinations."""
    rng, place = np.random.default_rng(seed), np.arange(800)
    return pl.DataFrame(
        {
            "psu": place // 20, "place": place % 20, "record": 2 * place + rng.integers(0, 2, 800),
            "region": np.sort(rng.choice([1, 1, 2, 3, 4], 800)), "zero": rng.poisson(0.1, 800),
        }
    )  # fmt: skip


def taxed(seed: int) -> Frame:
    income = np.rint(np.exp(np.random.default_rng(seed).normal(10, 1, 800)) / 100) * 100
    return pl.DataFrame({"income": income, "tax": 0.3 * income, "net": income - 0.3 * income})


@pytest.mark.parametrize("draw", [lambda seed: people(seed=seed), lambda s: coarse(s, 5), numbered, taxed])
def test_other_people_of_same_population_are_not_recognized(draw: Callable[[int], Frame]) -> None:
    first = People(sm.read(draw(0).drop("pid", "hh", "psu", "w", strict=False), other="all"), KEY)
    earlier = [list(first.sketches())]
    others = (draw(seed).drop("pid", "hh", "psu", "w", strict=False) for seed in range(1, 7))
    alarms = [recognize(earlier, People(sm.read(other, other="all"), KEY), DEFAULT_POLICY)[0] for other in others]
    assert np.mean(alarms) == 0


@pytest.mark.parametrize("columns", [3, 8])
def test_coarse_records_are_recognized_by_tables(columns: int) -> None:
    """With twelve opinions hardly any record is rare on three of them, but the same records have the same tables."""
    frame = coarse(1, 12)
    assert observed(frame, frame.select(frame.columns[4 : 4 + columns]).sample(fraction=1, shuffle=True, seed=2))


def test_part_of_coarse_records_is_recognized(cps8d: sm.Microdata) -> None:
    rows = np.random.default_rng(1).permutation(len(cps8d))
    half = len(rows) // 2
    earlier = [list(People(cps8d.take(rows[:half]), KEY).sketches())]
    other, part = (People(cps8d.take(picked), KEY) for picked in (rows[half:], rows[: half // 2]))
    assert recognize(earlier, part, DEFAULT_POLICY) == [True]
    assert recognize(earlier, other, DEFAULT_POLICY) == [False]


def test_overlap_of_one_percent_with_large_file_is_recognized() -> None:
    rng = np.random.default_rng(1)
    first = Frame({name: rng.integers(0, 10**9, 200_000) for name in "ab"})
    fresh = Frame({name: rng.integers(0, 10**9, 20_000) for name in "ab"})
    earlier = list(People(sm.read(first, other="all"), KEY).sketches())
    assert max(len(sketch.prints) for sketch in earlier) == SKETCH_SIZE
    assert recognize(
        [earlier], People(sm.read(pl.concat([fresh, first[:4_000]]), other="all"), KEY), DEFAULT_POLICY
    ) == [True]
    assert recognize([earlier], People(sm.read(fresh, other="all"), KEY), DEFAULT_POLICY) == [False]


def test_sketch_reveals_nothing_with_another_key() -> None:
    data = sm.read(people(), other="all")
    first, second = (np.concatenate([s.prints for s in People(data, key).sketches()]) for key in (KEY, b"x" * 32))
    assert len(first) and not np.isin(first, second).any()
