"""Patterns of missing values: an attacker who knows who did not answer, before and after `MaskMissing`.

The attacker shares no code with the package: numpy counts patterns.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from samples import SEED, failed, plan_of, release_with_overrides
from sdcmap.bundle.checks import Check
from sdcmap.bundle.pattern_check import check_missing_patterns
from sdcmap.explore.starting_plan import starting_plan
from sdcmap.methods import PRAM, MaskMissing, Microaggregate
from sdcmap.methods.mask_missing import find_rare_patterns, share_patterns
from sdcmap.study.plan import Candidate
from sdcmap.study.profiles import find_profile
from sdcmap.testing import check_method

N = 300
KEYS, NUMBERS = ("sex", "region", "age"), ("wage", "rent", "savings")


def answers(seed: int = 1, rare: int = 6) -> pl.DataFrame:
    """People of whom most answered everything, some not one question, and `rare` a combination of their own."""
    rng = np.random.default_rng(seed)
    frame = {
        "sex": rng.choice(["f", "m"], N), "region": rng.choice(list("abcd"), N), "age": rng.integers(2, 8, N) * 10.0,
        "wage": rng.lognormal(8, 0.5, N).round(), "rent": rng.lognormal(6, 0.5, N).round(),
        "savings": rng.lognormal(7, 1, N).round(),
    }  # fmt: skip
    gone = np.zeros((N, 6), dtype=bool)
    gone[rng.choice(N, 60, replace=False), 3 + rng.integers(0, 3, 60)] = True
    bits = [(3, 4), (0, 5), (1, 2, 3), (0, 1), (2, 4, 5), (0, 2, 3, 4)][:rare]
    for row, columns in zip(rng.choice(N, rare, replace=False), bits, strict=True):
        gone[row] = False
        gone[row, list(columns)] = True
    hidden = [pl.when(pl.Series(gone[:, j])).then(None).otherwise(pl.Series(v)).alias(n)
              for j, (n, v) in enumerate(frame.items())]  # fmt: skip
    return pl.select(hidden)


def read(frame: pl.DataFrame) -> sm.Microdata:
    return sm.read(frame, keys=list(KEYS), numeric=list(NUMBERS), other=list(NUMBERS), kinds={"age": "ordinal"})


def unique_owners(before: np.ndarray, after: np.ndarray) -> int:
    """The attack: how many people have a pattern of their own in the original, and exactly one released row with it."""
    _, number, count = np.unique(before, axis=0, return_inverse=True, return_counts=True)
    people = np.flatnonzero(count[number.ravel()] == 1)
    hits = [np.flatnonzero((after == before[person]).all(axis=1)) for person in people]
    return sum(len(hit) == 1 and hit[0] == person for person, hit in zip(people, hits, strict=True))


def blank(data: sm.Microdata) -> np.ndarray:
    return np.column_stack([data.frame()[name].is_null().to_numpy() for name in (*KEYS, *NUMBERS)])


CHAINS = {
    "pram and ranks": (PRAM(on=KEYS, stay=0.3, alpha=1.0), sm.RankSwap(on=NUMBERS, p=0.8)),
    "noise": (PRAM(on=KEYS, stay=0.3, alpha=1.0), sm.Noise(on=NUMBERS, variance=2.0)),
    "microaggregation": (Microaggregate(on=(*KEYS, *NUMBERS), size=5, method="gower"),),
}


@pytest.mark.parametrize("steps", CHAINS.values(), ids=CHAINS)
def test_unique_patterns_are_found_before_and_not_after(steps: tuple[sm.Method, ...]) -> None:
    data = read(answers())
    before = blank(data)
    plain = sm.mask(data, sm.Chain(steps), seed=1)
    assert unique_owners(before, blank(plain)) == 6, "each unique pattern leads to its owner"
    shared = sm.mask(data, sm.Chain((MaskMissing((*KEYS, *NUMBERS), 3), *steps)), seed=1)
    assert unique_owners(before, blank(shared)) == 0
    counts = np.unique(blank(shared), axis=0, return_counts=True)[1]
    assert counts.min() >= 3
    moved = (before != blank(shared)).any(axis=1)
    assert moved.sum() == 6 and (before != blank(shared)).sum() <= 14, "only the rare records change, in few values"


def test_values_come_from_similar_records() -> None:
    """A record whose twin answered takes the twin's answer; other records keep every value."""
    frame = answers(rare=0)[:90].with_columns(pl.lit(0.0).alias("savings"))
    twin = frame.filter(pl.all_horizontal(pl.all().is_not_null()))[0].with_columns(
        region=pl.lit("z"), savings=pl.lit(777.0)
    )
    lacks = twin.with_columns(savings=pl.lit(None, dtype=pl.Float64))
    data = read(pl.concat([frame, twin, twin, twin, lacks]))
    out = MaskMissing((*KEYS, *NUMBERS), 3).apply(data, Candidate(sm.Identity()).stream(1))
    assert out["savings"][-1] == 777.0
    assert out.frame()[:93].equals(data.frame()[:93])


def test_patterns_that_are_shared_are_the_nearest() -> None:
    """By hand, k = 2: of 4 columns, 3 records lack a, 3 lack a and b, 2 lack nothing."""
    a, ab, none = [1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]
    table = np.array([a] * 3 + [ab] * 3 + [none] * 2 + [[1, 1, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]], dtype=bool)
    after = share_patterns(table, np.arange(len(table)), 2).astype(int).tolist()
    # c and d are missing for one record each, so they are imputed; then b alone is as near to a and b as to nothing
    assert after[:8] == [a] * 3 + [ab] * 3 + [none] * 2
    assert after[8:] == [ab, ab, none]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("share", [0.05, 0.5, 0.97])
def test_every_pattern_is_shared(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    for k in (2, 3, 7):
        missing = rng.random((40, 6)) < share * rng.random(6)
        after = share_patterns(missing, np.arange(40), k)
        assert np.unique(after, axis=0, return_counts=True)[1].min() >= k
        twice = share_patterns(after, np.arange(40), k)
        assert (after == twice).all(), "a file whose patterns are shared does not change"


def test_laws_and_refusals() -> None:
    data = read(answers())
    method = MaskMissing((*KEYS, *NUMBERS), 3)
    check_method(method, data)
    once = sm.mask(data, method, seed=1)
    assert not find_rare_patterns(once, method.on, 3).any()
    assert once.frame().equals(sm.mask(once, method, seed=2).frame())
    with pytest.raises(sm.errors.Infeasible, match="only 2"):
        sm.mask(read(answers()[:2]), method, seed=1)
    unanswered = read(answers().with_columns(savings=pl.lit(None, dtype=pl.Float64)))
    assert sm.mask(unanswered, method, seed=1).missing("savings").all(), "nobody has a value to give"


# ---- the release check ----------------------------------------------------------------------------------------
def check(data: sm.Microdata, *steps: sm.Method, profile: str = "public-use") -> Check:
    method = sm.Chain(steps)
    masked = method.apply(data, Candidate(method).stream(SEED))
    return check_missing_patterns(data, method, masked, find_profile(profile))


def test_check_counts_patterns_that_too_few_share() -> None:
    data, steps = read(answers()), CHAINS["pram and ranks"]
    found = check(data, *steps)
    assert not found.passed and "6 of 300 records" in found.reason and "fewer than 3 records share" in found.reason
    assert check(data, *steps, profile="scientific-use").passed
    assert check(data, MaskMissing((*KEYS, *NUMBERS), 3), *steps).passed
    assert check(data, sm.Synthesize((*KEYS, *NUMBERS))).passed, "no row is a person's"
    # patterns of two records, of which none was rare for the method, are too few for the profile
    pair = pl.concat([answers(), answers().filter(pl.sum_horizontal(pl.all().is_null()) > 1)])
    twice = read(pair)
    assert not check(twice, MaskMissing((*KEYS, *NUMBERS), 2), *steps).passed
    # a column that nobody else could know does not count
    asked = answers(rare=0).with_columns(opinion=pl.Series([None] + ["yes"] * (N - 1)))
    known_by = {"opinion": "respondent only: asked in private"}
    hidden = sm.read(asked, keys=list(KEYS), numeric=list(NUMBERS), kinds={"age": "ordinal"}, known_by=known_by)
    assert check(hidden, *steps).passed


def test_suppressed_values_do_not_hide_patterns() -> None:
    """A suppressed value has a code of its own, so everybody sees that the answer was there."""
    found = check(read(answers()), sm.Suppress(on=KEYS, k=3, unmet="leave"), sm.Noise(on=NUMBERS, variance=0.5))
    assert "6 of 300 records" in found.reason and not found.passed
    first = MaskMissing((*KEYS, *NUMBERS), 3)
    assert check(read(answers()), first, sm.Suppress(on=KEYS, k=3, unmet="leave"), sm.Noise(on=NUMBERS)).passed


def test_reasons_are_part_of_a_pattern() -> None:
    """Three people lack the wage, one of them by a reason of their own that the file states."""
    frame = pl.DataFrame({"sex": ["f", "m"] * 20, "wage": [-8.0, -9.0, -9.0, -9.0, *np.arange(1.0, 37.0)]})
    data = sm.read(frame, keys="sex", numeric="wage", missing=["wage=-8 (refused)", "wage=-9 (no answer)"])
    assert "1 of 40 records" in check(data, sm.Noise(on="wage")).reason
    assert check(data, MaskMissing(("sex", "wage"), 3), sm.Noise(on="wage")).passed


def test_release_refuses_rare_patterns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDCMAP_LEDGER", str(tmp_path / "ledger"))
    plan = plan_of(CHAINS["noise"][1], measures=[sm.SmallCells(on=KEYS), sm.IL1s()])
    data, candidate = read(answers()), Candidate(plan.all_methods[1])
    assert "6 of 300 records" in failed(release_with_overrides(data, plan, candidate))["missing patterns"]
    reason = {"missing patterns": "the questions were asked of random people"}
    assert "missing patterns" not in failed(release_with_overrides(data, plan, candidate, override=reason))


def test_column_with_changed_missing_values_only_counts_as_unmasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SDCMAP_LEDGER", str(tmp_path / "ledger"))
    method = sm.Chain((MaskMissing((*KEYS, *NUMBERS), 3), sm.Noise(on=NUMBERS, variance=0.5)))
    plan = plan_of(method, measures=[sm.SmallCells(on=KEYS), sm.IL1s()])
    checks = release_with_overrides(read(answers()), plan, Candidate(plan.all_methods[1])).check()
    assert any("the 3 unmasked columns that others could know" in check.reason for check in checks)


# ---- the starting plan ----------------------------------------------------------------------------------------
def test_starting_plan_masks_rare_patterns_first() -> None:
    plan = starting_plan(read(answers()), find_profile("teaching"))
    for method in plan.stated_methods:
        own = [step for step in method.steps if isinstance(step, MaskMissing)]
        synthetic = any(not step.keeps_pairs(read(answers())) for step in method.steps)
        assert len(own) == (0 if synthetic else 1) and all(step.k == 5 for step in own)
        assert not own or method.steps[0] == own[0]
    complete = starting_plan(read(answers(rare=0)), find_profile("public-use"))
    assert not any(isinstance(step, MaskMissing) for method in complete.stated_methods for step in method.steps)
