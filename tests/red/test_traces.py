"""Red team, traces of masking: digits that reveal masked cells, averages of one value, identifiers released as amounts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from attacker import Column, Try, digits

import sdcmap as sm
from samples import ROLES, SEED, chosen, failed, people, plan_of
from sdcmap.bundle import release
from sdcmap.bundle.checks import check_identifiers
from sdcmap.bundle.prepared_file import round_like_original
from sdcmap.core.release_policy import DEFAULT_POLICY
from sdcmap.recordwise import Unsafe
from sdcmap.study.plan import Candidate


def test_last_digits_do_not_reveal_protected_values() -> None:
    """Regression test: rounded incomes end in 00, but 92 % of the cells masked by Protect did not."""
    data = sm.read(people(), **ROLES)
    more = sm.methods.Protect(Unsafe(on="income", k=15), sm.Noise(on="income", variance=0.5))
    first, chain = sm.methods.Round(on="income", base=100), sm.Chain([sm.methods.Round(on="income", base=100), more])
    before = round_like_original(data, Candidate(first).method.apply(data, Candidate(first).stream(SEED))).numbers(
        "income"
    )
    after = round_like_original(data, chain.apply(data, Candidate(chain).stream(SEED))).numbers("income")
    assert (before != after).sum() > 20, "Protect masked nothing, and the test would tell nothing"
    assert (after % 100 == 0).all()


def flagged(data: sm.Microdata, method: sm.Method) -> list[float]:
    """The chances of what the standing attacker sees by last digits in the incomes of a release, were digits to tell
    nothing; and that the method masked some of them and not all."""
    made = Candidate(method)
    masked = round_like_original(data, method.apply(data, made.stream(SEED)))
    origin = np.arange(len(data)) if masked.origin is None else masked.origin
    known, released = data.numbers("income"), masked.numbers("income")
    assert 20 < (known[origin] != released).sum() < 0.5 * len(masked)
    tries = digits(Column("income", known, released, True, known), origin)
    return [Try(name, hits, count, max(share, 0.5)).chance for name, hits, count, share in tries]


def incomes(values: np.ndarray) -> sm.Microdata:
    return sm.read(people().with_columns(pl.Series("income", values)), **ROLES)


UNSAFE = sm.methods.Protect(
    Unsafe(on="income", k=15, distance="absolute", scale="standardized"), sm.Noise(on="income", variance=0.3)
)


def test_last_digits_do_not_reveal_values_masked_before_sampling() -> None:
    """Of a file whose rows were taken after masking no number was rounded: 55 of 55 amounts of four decimals or more had
    been masked."""
    data = incomes(RNG.lognormal(9, 1, 600).round(2))
    for chain in (sm.Chain([UNSAFE, sm.methods.Sample(rate=0.8)]), sm.Chain([sm.methods.Sample(rate=0.8), WITHIN])):
        assert min(flagged(data, chain), default=1.0) > 1e-6
    noised = sm.Chain([sm.Noise(on="income", variance=0.1), sm.methods.Sample(rate=0.8)])
    written = round_like_original(data, noised.apply(data, Candidate(noised).stream(SEED))).numbers("income")
    assert (written == written.round(2)).all()


WITHIN = sm.methods.TopCode(on="income", top_share=0.1, replaced_by="mean")


@pytest.mark.parametrize("step", [50.0, 0.25, 300.0])
def test_last_digits_do_not_reveal_masking_on_other_grids(step: float) -> None:
    """Regression test: among multiples of 50, values masked by Protect were multiples of 10: 88 of 106 were revealed."""
    data = incomes(step * np.rint(RNG.lognormal(9, 1, 600) / step))
    written = round_like_original(data, UNSAFE.apply(data, Candidate(UNSAFE).stream(SEED))).numbers("income")
    assert (written != data.numbers("income")).sum() > 20
    np.testing.assert_array_equal(written % step, 0.0)


def test_last_digits_do_not_reveal_masking_among_rounded_numbers() -> None:
    """Regression test: 9 of 10 people report whole thousands; masked incomes hardly ever were."""
    size = RNG.lognormal(9, 1, 600)
    heaped = np.where(RNG.random(600) < 0.9, 1000 * np.rint(size / 1000), np.rint(size))
    chances = flagged(incomes(heaped), UNSAFE)
    assert chances and min(chances) > 1e-6


def test_attacker_detects_revealing_digits() -> None:
    """The attack succeeds if whole hundreds are masked by whole numbers."""
    known = 100.0 * RNG.integers(10, 400, 600)
    released = np.where(RNG.random(600) < 0.2, known + RNG.integers(1, 99, 600), known)
    [first, *_] = digits(Column("income", known, released, True, known), np.arange(600))
    assert Try(first[0], first[1], first[2], max(first[3], 0.5)).chance < 1e-9


@pytest.mark.parametrize("replaced_by", ["mean", "median"])
def test_coded_values_are_shared_by_at_least_three(replaced_by: str) -> None:
    income = np.concatenate([np.arange(100.0), [5000.0]])
    data = sm.read(pl.DataFrame({"income": income}), sensitive="income")
    coded = sm.TopCode(on="income", top=200.0, replaced_by=replaced_by)  # type: ignore[arg-type]
    assert coded.apply(data, Candidate(coded).stream(SEED)).numbers("income").max() == 200.0


RNG = np.random.default_rng(8)
KINDS: dict[str, Any] = {
    "shuffled 1 .. n": RNG.permutation(600) + 1,
    "every second": 2 * RNG.permutation(600),
    "case numbers": RNG.choice(5000, 600, replace=False),
    "random": RNG.choice(9 * 10**8, 600, replace=False) + 10**8,
    "telephone": 6_601_000_000 + RNG.choice(10**6, 600, replace=False),
    "time stamps": 1_700_000_000 + np.sort(RNG.choice(10**7, 600, replace=False)),
}


KINDS |= {
    "random, of any length": RNG.choice(10**9, 600, replace=False),
    "random, on no grid": RNG.random(600),
    "telephone, some unknown": np.where(np.arange(600) % 40, KINDS["telephone"], 9_999_999_999),
}


def test_identifying_numbers_are_not_amounts() -> None:
    """Regression test: random numbers, shuffled 1 to n, telephone numbers and time stamps were released as amounts."""
    frame = people().with_columns(pl.Series(kind, values) for kind, values in KINDS.items())
    checked = check_identifiers(sm.read(frame, **ROLES, other=list(KINDS)), DEFAULT_POLICY)
    assert [kind for kind in KINDS if repr(kind) not in checked.reason] == []
    assert not {"'income'", "'rent'", "'age'"} & set(re.findall(r"'[^']*'", checked.reason))


def test_coordinates_are_not_amounts() -> None:
    """Two columns with five decimals within 180 degrees, of people who share a home in pairs."""
    home = np.repeat(np.arange(300), 2)
    east, north = RNG.normal(16.3, 0.07, 300).round(5)[home], RNG.normal(48.2, 0.05, 300).round(5)[home]
    data = sm.read(people().with_columns(pl.Series("x", east), pl.Series("y", north)), **ROLES, other=["x", "y"])
    assert "'x', 'y' look like coordinates" in check_identifiers(data, DEFAULT_POLICY).reason
    assert check_identifiers(sm.read(people(), **ROLES), DEFAULT_POLICY).passed


def test_identifier_cannot_be_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check is part of a release."""
    monkeypatch.setenv("SDCMAP_LEDGER", str(tmp_path / "ledger"))
    data = sm.read(people().with_columns(pl.Series("number", KINDS["random"])), **ROLES, other="number")
    plan = plan_of(sm.Noise(on=["income"], variance=0.3))
    assert "'number'" in failed(release(data, plan, chosen(plan)))["identifier"]


@pytest.mark.parametrize("model", ["trees", "copula"])
def test_synthetic_file_contains_no_unique_values_of_members(model: Any) -> None:
    """Of those whose income nobody else has, .60 found it in the synthetic file, and nobody outside did: that told who was
    in it. Now no such value is drawn; as often as it comes by chance is what people outside see too: over ten draws within
    three of a hundred."""
    everybody = people(1200)
    data = sm.read(everybody[:600], **ROLES)
    method = sm.methods.Synthesize(on=["age", "sex", "region", "psu", "income", "rent"], model=model)
    made = [round_like_original(data, method.apply(data, Candidate(method, draw).stream(SEED))) for draw in range(10)]
    for name in ("income", "rent"):
        values = everybody[name].to_numpy()
        observed, count = np.unique(values, return_counts=True)
        own = np.isin(values, observed[count == 1])
        there = np.mean([np.isin(values, file.numbers(name)) for file in made], axis=0)
        assert abs(there[:600][own[:600]].mean() - there[600:][own[600:]].mean()) < 0.03
