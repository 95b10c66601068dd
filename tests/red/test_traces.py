"""A red team and traces of masking: digits that flag masked cells, averages of one, identifiers that go out as amounts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from samples import ROLES, SEED, chosen, failed, people, plan_of
from sdcmap.bundle import release
from sdcmap.bundle.prepare import rounded
from sdcmap.recordwise import Unsafe
from sdcmap.study.plan import Candidate


def test_no_last_digit_flags_what_protect_masked() -> None:
    """Rounded incomes end in 00; 92 % of the cells that Protect masked did not."""
    data = sm.read(people(), **ROLES)
    more = sm.methods.Protect(Unsafe(on="income", k=15), sm.Noise(on="income", variance=0.5))
    first, chain = sm.methods.Round(on="income", base=100), sm.Chain([sm.methods.Round(on="income", base=100), more])
    before = rounded(data, Candidate(first).method.apply(data, Candidate(first).stream(SEED))).numbers("income")
    after = rounded(data, chain.apply(data, Candidate(chain).stream(SEED))).numbers("income")
    assert (before != after).sum() > 20, "Protect masked nothing, and the test would tell nothing"
    assert (after % 100 == 0).all()


@pytest.mark.parametrize("replaced_by", ["mean", "median"])
def test_no_coded_value_is_that_of_one_or_two(replaced_by: str) -> None:
    income = np.concatenate([np.arange(100.0), [5000.0]])
    data = sm.read(pl.DataFrame({"income": income}), sensitive="income")
    coded = sm.TopCode(on="income", top=200.0, replaced_by=replaced_by)  # type: ignore[arg-type]
    assert coded.apply(data, Candidate(coded).stream(SEED)).numbers("income").max() == 200.0


RNG = np.random.default_rng(8)
NUMBERS = {
    "shuffled 1 .. n": RNG.permutation(600) + 1,
    "every second": 2 * RNG.permutation(600),
    "case numbers": RNG.choice(5000, 600, replace=False),
    "random": RNG.choice(9 * 10**8, 600, replace=False) + 10**8,
    "telephone": 6_601_000_000 + RNG.choice(10**6, 600, replace=False),
    "time stamps": 1_700_000_000 + np.sort(RNG.choice(10**7, 600, replace=False)),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_a_number_that_identifies_is_no_amount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setenv("SDCMAP_LEDGER", str(tmp_path / "ledger"))
    data = sm.read(people().with_columns(pl.Series("number", NUMBERS[kind])), **ROLES, other="number")
    plan = plan_of(sm.Noise(on=["income"], variance=0.3))
    assert "'number'" in failed(release(data, plan, chosen(plan)))["identifier"]
