"""WorstLinkage is the worst of its attacks, and no attack depends on how categories are labeled or rows are ordered."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.core import Array
from sdcmap.kernels.tables.record_order import rank_categories
from sizes import size

RECORDS = 160
KEYS, NUMBERS = ("a", "b", "c"), ("wage", "rent", "score")
FILES = size(1, 12)
METRICS = ("standardized", "mahalanobis", "gower", "mixed")


def made_frame(seed: int) -> pl.DataFrame:
    """Return people with categories that many share, so that many pairs of records tie."""
    rng = np.random.default_rng(seed)
    a, c = rng.integers(0, 6, RECORDS), rng.integers(0, 3, RECORDS)
    b = (a + rng.integers(0, 3, RECORDS)) % 7
    wage = rng.lognormal(3 + 0.1 * a, 0.7).round(0)
    texts = {name: x.astype(str) for name, x in zip(KEYS, (a, b, c), strict=True)}
    amounts = {
        "wage": wage,
        "rent": (wage * rng.lognormal(-1, 0.4, RECORDS)).round(0),
        "score": rng.normal(0, 1, RECORDS).round(2),
    }
    return pl.DataFrame(texts | amounts)


def mask_plainly(frame: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Exchange a third of the values of each key, and add noise to the amounts of a third of the people."""
    rng = np.random.default_rng(seed)
    changed = {}
    for name in frame.columns:
        x, rows = frame[name].to_numpy().copy(), np.flatnonzero(rng.random(RECORDS) < 1 / 3)
        x[rows] = x[rng.permutation(rows)] if name in KEYS else np.round(x[rows] * rng.lognormal(0, 0.4, len(rows)), 1)
        changed[name] = x
    return pl.DataFrame(changed)


def read(frame: pl.DataFrame) -> sm.Microdata:
    return sm.read(frame, keys=list(KEYS), numeric=list(NUMBERS))


def rates(original: pl.DataFrame, masked: pl.DataFrame, measure: sm.Measure) -> dict[str, float]:
    estimate = next(iter(sm.score(read(original), masked, measure).values()))
    return {"value": estimate.value, **estimate.parts}


def relabel(frames: list[pl.DataFrame], seed: int) -> list[pl.DataFrame]:
    """Give every category another label, the same in all files, in another alphabetical order."""
    rng = np.random.default_rng(seed)
    for name in KEYS:
        labels = sorted(set().union(*(frame[name].to_list() for frame in frames)))
        other = dict(zip(labels, (f"{name}{code}" for code in rng.permutation(len(labels))), strict=True))
        frames = [frame.with_columns(pl.col(name).replace_strict(other)) for frame in frames]
    return frames


ATTACKS = (
    sm.risk.WorstLinkage(),
    sm.risk.Linkage("unit-free d"),
    sm.risk.NearestRecord("gower", one_to_one=True),
    sm.risk.NearestRecord("mixed", one_to_one=True),
)


@pytest.mark.parametrize("seed", range(FILES))
def test_labels_and_order_of_rows_change_no_rate(seed: int) -> None:
    """0.75 to 0.80 before: of equally good one-to-one links, the codes of the categories decided which were taken."""
    original = made_frame(seed)
    masked = mask_plainly(original, seed)
    others = [relabel([original, masked], other) for other in (1, 2)]
    order = np.random.default_rng(seed).permutation(RECORDS)
    others.append([frame[order] for frame in (original, masked)])
    for attack in ATTACKS:
        expected = rates(original, masked, attack)
        for other in others:
            assert rates(*other, attack) == pytest.approx(expected, abs=1e-9), attack.text


SINGLE_ATTACKS = (
    *(sm.risk.Linkage(metric) for metric in ("d", "l", "unit-free d", "unit-free l")),
    sm.risk.Linkage("d", weights="em"),
    *(sm.risk.NearestRecord(metric, one_to_one=one) for metric in METRICS for one in (False, True)),
)


@pytest.mark.parametrize("noise", [0.0, 0.4])
@pytest.mark.parametrize("seed", range(size(2, 12)))
def test_no_single_attack_finds_more(seed: int, noise: float) -> None:
    """With a single attack one-to-one, five of ten such files were exceeded, by up to 0.07."""
    original = made_frame(seed)
    masked = mask_plainly(original, seed)
    rng = np.random.default_rng(seed)
    amounts = {n: masked[n].to_numpy() * rng.lognormal(0, noise, RECORDS) for n in NUMBERS} if noise else {}
    masked = masked.with_columns(**amounts)
    worst = rates(original, masked, sm.risk.WorstLinkage())["value"]
    for attack in SINGLE_ATTACKS:
        assert rates(original, masked, attack)["value"] <= worst + 1e-9, attack.text


def test_rank_of_categories_does_not_depend_on_codes() -> None:
    rng = np.random.default_rng(1)
    x, codes = rng.normal(size=60).round(1), rng.integers(0, 5, 60).astype(float)
    codes[:4] = np.nan

    def order(recode: Array) -> Array:
        recoded = np.where(np.isnan(codes), np.nan, recode[np.nan_to_num(codes).astype(int)])
        columns = rank_categories([recoded, x], [True, False])
        assert (np.isnan(columns[0]) == np.isnan(codes)).all() and columns[1] is x
        return columns[0]

    expected = order(np.arange(5))
    assert len(set(expected[4:])) == 5
    for seed in range(5):
        assert np.array_equal(order(np.random.default_rng(seed).permutation(5)), expected, equal_nan=True)


# ---- a sample of the targets ----------------------------------------------------------------------------------
PEOPLE = 900


@pytest.fixture(scope="module")
def households() -> tuple[sm.Microdata, sm.Microdata]:
    """People of a third as many households, and the same with other values: alone they have doubles, together none."""
    data = sm.demo.population(PEOPLE).only(("household", "Race", "Age", "Educ", "Sex", "wage"))
    chain = sm.Chain([sm.methods.PRAM(("Race", "Age", "Educ"), 0.6, alpha=1.0), sm.RankSwap("wage", 0.3)])
    return data, sm.mask(data, chain, seed=4)


def test_sample_attacks_households_and_one_to_one(households: tuple[sm.Microdata, sm.Microdata]) -> None:
    """Before, samples were attacked person by person: 0.009 instead of 0.21 in a file of 5,000 records."""
    original, masked = households
    full = sm.WorstLinkage().score(original, masked, np.random.default_rng(1))
    draws = [
        sm.WorstLinkage(targets=PEOPLE // 3, draw=draw).score(original, masked, np.random.default_rng(1))
        for draw in range(12)
    ]
    assert any("household" in name for name in draws[0].parts) and any("one-to-one" in name for name in draws[0].parts)
    errors = [draw.se or 0.0 for draw in draws]
    values = [draw.value for draw in draws]
    assert np.mean(values) == pytest.approx(full.value, abs=4 * np.mean(errors) / np.sqrt(len(draws)) + 0.01)
    assert 0.4 < np.std(values) / np.mean(errors) < 1.8, "the error counts households"
    alone = [value for name, value in full.parts.items() if " " not in name and name not in ("prosecutor", "linked")]
    assert full.value > 1.5 * max(alone), "the file has people whom only their household gives away"


def test_sampled_households_are_complete(households: tuple[sm.Microdata, sm.Microdata]) -> None:
    original, masked = households
    run = sm.WorstLinkage(targets=200)._run_attacks(original, masked)
    rows = run.pair.known_rows[run.pair.truth[run.targets]]
    numbers = original.codes("household")
    drawn = np.unique(numbers[rows])
    assert 200 <= len(rows) < 210 and len(rows) == np.isin(numbers, drawn).sum()
    assert len(np.unique(run.units_of_targets)) == len(drawn)


def test_screening_links_nobody_one_to_one(households: tuple[sm.Microdata, sm.Microdata]) -> None:
    original, masked = (data.only(("Race", "Age", "Educ", "Sex", "wage")) for data in households)
    screened = sm.WorstLinkage().screening_variant(original).score(original, masked, np.random.default_rng(1))
    assert not any("one-to-one" in name for name in screened.parts)
