"""Each release check, on data that fail it and on data that pass."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator

import sdcmap as sm
from samples import KEYS, ROLES, SWAP_AND_NOISE, chosen, failed, people, plan_of
from samples import release_with_overrides as release
from sdcmap.bundle import written_draw
from sdcmap.bundle.prepared_file import granularity, match_granularity
from sdcmap.data.schema import Variable
from sdcmap.study.plan import Candidate


# ---- identifiers and roles ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("column", "kinds", "alike"),
    [
        (pl.Series([f"P{i}" for i in range(100)]), {}, True),  # text of its own in every row
        (pl.Series([f"P{i // 2}" if i < 6 else f"P{i}" for i in range(100)]), {}, True),  # nearly
        (pl.Series([f"P{i // 2}" for i in range(100)]), {}, False),
        (pl.Series(np.random.default_rng(1).permutation(5000)[:100]), {"x": "nominal"}, True),  # a number as a name
        (pl.Series(np.random.default_rng(1).permutation(5000)[:100]), {"x": "numeric"}, False),  # an amount
        (pl.Series(np.arange(1000, 1100)), {"x": "numeric"}, True),  # a running number
        (pl.Series([float(i) for i in range(100)]), {}, True),
    ],
)
def test_column_that_looks_like_identifier_fails(column: pl.Series, kinds: dict[str, str], alike: bool) -> None:
    frame = pl.DataFrame({"x": column, "sex": ["f", "m"] * 50})
    data = sm.read(frame, other="x", keys="sex", kinds=kinds)
    plan = plan_of(measures=[sm.SmallCells()])
    found = failed(release(data, plan, Candidate(sm.Identity())))
    assert set(found) == ({"identifier"} if alike else set())
    if alike:
        assert "'x'" in found["identifier"]
        reason = {"identifier": "a list number of no meaning"}
        assert failed(release(data, plan, Candidate(sm.Identity()), override=reason)) == {}


def test_column_without_role_fails(persons: sm.Microdata) -> None:
    data = sm.read(people(), **{**ROLES, "sensitive": ["rent"]})
    plan = plan_of(sm.Noise(on="rent"), measures=[sm.SmallCells()])
    assert "'income'" in failed(release(data, plan, chosen(plan)))["roles"]


@pytest.mark.parametrize(("bits", "strong"), [(127, False), (128, True)])
def test_short_seed_fails(persons: sm.Microdata, bits: int, strong: bool) -> None:
    plan = plan_of(SWAP_AND_NOISE, seed=1 << (bits - 1))
    assert ("seed" in failed(release(persons, plan, chosen(plan)))) != strong


# ---- limits ---------------------------------------------------------------------------------------------------
NO_RULE: dict[str, Any] = {"rule": None}


@pytest.mark.parametrize(
    ("parts", "max_risk", "names"),
    [
        (NO_RULE, None, {"limit"}),
        ({"rule": sm.IdealPoint()}, None, {"limit"}),
        (NO_RULE, 1.0, set()),
        (NO_RULE, 0.0, {"risk"}),
        ({"rule": sm.Threshold(risk=0.0)}, 1.0, {"risk"}),  # the strictest of all that is stated
        ({"rule": sm.Threshold(risk=1.0)}, 0.0, {"risk"}),
        ({"rule": None, "risk": sm.SmallCells(on=KEYS), "limits": [1.0]}, None, set()),  # value/limit at most 1
        ({"rule": None, "risk": sm.SmallCells(on=KEYS), "limits": [0.0001]}, None, {"risk"}),
        ({"rule": sm.Threshold(risk=0.0001), "risk": sm.SmallCells(on=KEYS), "limits": [1.0]}, None, {"risk"}),
    ],
)
def test_strictest_risk_limit_decides(
    persons: sm.Microdata, parts: dict[str, Any], max_risk: float | None, names: set[str]
) -> None:
    plan = plan_of(SWAP_AND_NOISE, **parts)
    assert set(failed(release(persons, plan, chosen(plan), max_risk=max_risk))) == names


def test_limit_of_choices_rule_applies(persons: sm.Microdata) -> None:
    plan = plan_of(SWAP_AND_NOISE, rule=None)
    scores = sm.sweep(persons, plan, workers=1)
    best = sm.RUMap(scores, risk=plan.risk, utility="Hellinger").choose(sm.Threshold(risk=0.9))
    found = release(persons, plan, best)
    assert [limit.value for limit in found.limits] == [0.9] and failed(found) == {}


def test_plan_without_risk_measure_fails(persons: sm.Microdata) -> None:
    plan = plan_of(SWAP_AND_NOISE, measures=[sm.Hellinger()], rule=sm.Threshold(risk=1))
    assert set(failed(release(persons, plan, chosen(plan)))) == {"limit"}


def test_risk_without_value_fails(persons: sm.Microdata) -> None:
    plan = plan_of(
        sm.Swap(on=["sex"], rate=0.1), measures=[sm.risk.KnownIndex(on="income")], rule=sm.Threshold(risk=1e9)
    )
    assert "infinite" in failed(release(persons, plan, chosen(plan)))["risk"]
    swap = sm.Swap(on=["sex"], rate=0.5)  # every record is changed
    data = sm.read(pl.DataFrame({"sex": ["f", "m", "f", "m"]}), keys="sex")
    plan = plan_of(swap, measures=[sm.SmallCells()], replicates=20)
    found = next(c for c in plan.candidates if c.method == swap and _feasible(plan, data, c))
    assert "no value could be computed" in failed(release(data, plan, found))["risk"]


def _feasible(plan: sm.Plan, data: sm.Microdata, candidate: Candidate) -> bool:
    try:
        plan.make(data, candidate)
    except sm.errors.Infeasible:
        return False
    return True


def test_risk_measures_without_limit_are_reported(persons: sm.Microdata) -> None:
    measures = [sm.SmallCells(on=KEYS), sm.risk.KnownIndex(on="income"), sm.SmallCells(on=["age"], n=2)]
    plan = plan_of(SWAP_AND_NOISE, measures=measures)
    checks = release(persons, plan, chosen(plan)).check()
    reasons = [check.reason for check in checks if check.name == "other risk"]
    assert len(reasons) == 2 and "(KnownIndex) over draws: " in reasons[1]
    assert all(check.passed for check in checks)


def test_written_file_is_scored_not_masked_file(persons: sm.Microdata) -> None:
    """Noise far below the granularity is rounded away: as masked nothing is known exactly, as written everything is."""
    tiny = sm.Noise(on=["income"], variance=1e-12)
    plan = plan_of(tiny, measures=[sm.risk.KnownIndex(on="income")], rule=sm.Threshold(risk=1e9))
    masked = plan.make(persons, chosen(plan))
    assert np.isfinite(sm.risk.KnownIndex(on="income").score(persons, masked, np.random.default_rng(0)).value)
    assert "infinite" in failed(release(persons, plan, chosen(plan)))["risk"]


@dataclass(frozen=True)
class ReaderOfNotes(sm.Measure):
    """An attack that uses the method note: it succeeds if the note states the variance of the noise."""

    axis: ClassVar[Literal["risk", "utility"]] = "risk"
    on: str = "income"
    variance: float = 0.0
    sampled: ClassVar[bool] = True

    def for_informed_attacker(self, method: sm.Method) -> sm.Measure:
        return ReaderOfNotes(self.on, getattr(method, "variance", 0.0))

    def score(self, original: sm.Microdata, masked: sm.Microdata, rng: Generator) -> sm.Estimate:
        return sm.Estimate(value=self.variance)


def test_measure_that_reads_the_note_gets_the_released_method(persons: sm.Microdata) -> None:
    plan = plan_of(sm.Noise(on="income", variance=0.3), measures=[ReaderOfNotes()], rule=sm.Threshold(risk=0.2))
    assert ": 0.3, above the limit" in failed(release(persons, plan, chosen(plan)))["risk"]


@dataclass(frozen=True)
class Dice(sm.Measure):
    """A sampled risk: nothing but its random number."""

    axis: ClassVar[Literal["risk", "utility"]] = "risk"
    sampled: ClassVar[bool] = True
    on: str = "income"

    def score(self, original: sm.Microdata, masked: sm.Microdata, rng: Generator) -> sm.Estimate:
        return sm.Estimate(value=rng.random())


def test_sampled_measure_uses_new_sample_for_release(persons: sm.Microdata) -> None:
    """A candidate chosen for its lucky draw is not released on the strength of that draw."""
    plan = plan_of(SWAP_AND_NOISE, measures=[Dice(), sm.Hellinger()], rule=sm.Threshold(risk=2.0))
    swept = sm.sweep(persons, plan, workers=1).column("test_checks:Dice").filter(pl.col("replicate") == 0)
    reasons = {check.reason for check in release(persons, plan, chosen(plan)).check() if check.name == "risk"}
    lucky = [f"is {value:.4g}," for value in swept["value"]]
    assert len(reasons) == 1 and not any(value in sentence for sentence in reasons for value in lucky)


@dataclass(frozen=True)
class FirstHalf(sm.Method):
    """A sample: the file no longer holds every record."""

    kept: ClassVar[str] = "every value"
    random: ClassVar[bool] = False

    def mask(self, data: sm.Microdata, rng: Generator) -> sm.Microdata:
        return data.take(np.arange(len(data) // 2))


def test_sample_of_records_is_matched_by_origin(persons: sm.Microdata, tmp_path: Path) -> None:
    plan = plan_of(FirstHalf(), measures=[sm.SmallCells(), sm.IL1s()], rule=sm.Threshold(risk=1.0))
    folder = release(persons, plan, chosen(plan)).write(tmp_path / "public")
    assert json.loads((folder / "note.json").read_text())["distorted_by"][0]["value"] == 0.0
    assert pl.read_parquet(folder / "data.parquet").height == 300
    other = release(persons, plan, Candidate(sm.Identity()), again=True)
    assert "other rows" in failed(other)["joint risk"]


# ---- what gives a masked column away --------------------------------------------------------------------------
PARTS = ["PTOTVAL", "PEARNVAL", "POTHVAL"]


@pytest.mark.parametrize(
    ("masked", "by"),
    [(["PTOTVAL"], ["'PEARNVAL'", "'POTHVAL'"]), (PARTS, ["'WSALVAL' predicts 95"]), ([*PARTS, "WSALVAL"], [])],
)
def test_total_with_its_parts_is_recoverable_on_census(
    casc_census: sm.Microdata, masked: list[str], by: list[str]
) -> None:
    """PTOTVAL = PEARNVAL + POTHVAL; nearly all earn wages alone, so PEARNVAL is WSALVAL but for one in twenty."""
    plan = plan_of(sm.Noise(on=masked), measures=[sm.risk.KnownIndex(on="PTOTVAL")], rule=sm.Threshold(risk=1e9))
    found = failed(release(casc_census, plan, chosen(plan)))
    assert set(found) == ({"recoverable"} if by else set())
    assert all(words in found["recoverable"] for words in by)


def test_total_with_missing_parts_is_recoverable(persons: sm.Microdata) -> None:
    rng = np.random.default_rng(3)
    frame = pl.DataFrame({"a": rng.random(300).round(3), "b": rng.random(300).round(3), "c": rng.random(300).round(3)})
    frame = frame.with_columns(total=2 * pl.col("a") - pl.col("b") + 5)
    frame = frame.with_columns(
        c=pl.when(pl.int_range(300) > 3).then(None).otherwise("c"),
        b=pl.when(pl.int_range(300) % 7 == 0).then(None).otherwise("b"),
    )
    data = sm.read(frame, numeric="all")
    plan = plan_of(sm.Noise(on="total"), measures=[sm.risk.KnownIndex(on="total")], rule=sm.Threshold(risk=1e9))
    reason = failed(release(data, plan, chosen(plan)))["recoverable"]
    assert "'a'" in reason and "'b'" in reason and "'c'" not in reason


def grouped(rows: int = 400) -> pl.DataFrame:
    age = np.random.default_rng(2).integers(18, 80, rows)
    return pl.DataFrame({"age": age, "group": [f"{a // 10}0s" for a in age], "sex": ["f", "m"] * (rows // 2)})


@pytest.mark.parametrize(("masked", "refused"), [("group", True), ("age", False), ("sex", False)])
def test_column_that_determines_masked_column_fails(masked: str, refused: bool) -> None:
    """Age fixes the age group; the group does not fix the age."""
    data = sm.read(grouped(), keys="all", kinds={"age": "ordinal"})
    plan = plan_of(sm.Swap(on=[masked], rate=0.1), measures=[sm.SmallCells(on=["sex"])])
    found = failed(release(data, plan, chosen(plan)))
    assert set(found) == ({"recoverable"} if refused else set())


def test_relation_passes_if_both_masked_or_records_few() -> None:
    data = sm.read(grouped(), keys="all", kinds={"age": "ordinal"})
    both = plan_of(sm.Swap(on=["age", "group"], rate=0.1), measures=[sm.SmallCells(on=["sex"])])
    assert failed(release(data, both, chosen(both))) == {}
    few = sm.read(pl.DataFrame({"a": list("xyzxyzxyz"), "b": list("uvwuvwuvw")}), keys="all")
    plan = plan_of(sm.Swap(on=["b"], rate=0.1), measures=[sm.SmallCells(on=["a"])], rule=sm.Threshold(risk=1))
    assert failed(release(few, plan, chosen(plan))) == {}


# ---- weights --------------------------------------------------------------------------------------------------
def test_unique_weights_fail_in_public_use_file() -> None:
    data = sm.read(people().with_columns(w=pl.Series(np.random.default_rng(5).random(600) + 1)), **ROLES)
    plan = plan_of(SWAP_AND_NOISE)
    found = failed(release(data, plan, chosen(plan)))
    assert set(found) == {"weight"} and "100 % of the records" in found["weight"]
    assert failed(release(data, plan, chosen(plan), override={"weight": "drawn at random"})) == {}
    checks = release(data, plan, chosen(plan), profile="scientific-use").check()
    weight = next(check for check in checks if check.name == "weight")
    assert weight.passed and not weight.is_hard and "100 % of the records" in weight.reason


def test_few_weights_pass_and_uniqueness_with_keys_is_reported(persons: sm.Microdata) -> None:
    plan = plan_of(SWAP_AND_NOISE)
    checks = {check.name: check for check in release(persons, plan, chosen(plan)).check()}
    assert checks["weight"].reason.startswith("0 % of the records are unique on their weight and stratum (")
    assert "(0 % with" not in checks["weight"].reason


# ---- numbers --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("values", "storage", "k"),
    [
        ([1, 20, 300], "Int64", 0), ([1000, 52000], "Int64", 3), ([0.5, 0.25], "Float64", -2),
        ([0.1, 0.2, 0.30000000000000004], "Float64", -1), ([0, 0], "Float64", 0), ([np.nan, 7.0], "Float64", 0),
        ([1 / 3, 2 / 3], "Float64", None), ([np.nan], "Float64", None), ([5e7], "Float64", 6),
        (np.array([0.1, 2.3], dtype=np.float32).astype(float), "Float32", -1),
    ],
)  # fmt: skip
def test_granularity(values: Any, storage: str, k: int | None) -> None:
    assert granularity(np.array(values, dtype=float), storage) == k


@given(
    st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=30),
    st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=30),
    st.integers(-6, 3),
    st.sampled_from(["Int8", "UInt8", "Int16", "UInt32", "Int64", "Float32", "Float64"]),
)
def test_masked_numbers_have_granularity_of_original(
    whole: list[int], masked: list[float], k: int, storage: str
) -> None:
    original = np.array(whole) * 10.0**k if k >= 0 else np.array(whole) / 10.0**-k
    original = np.rint(original) if "Int" in storage else original
    got = match_granularity(np.array(masked), original, Variable("x", "numeric", storage=storage))
    if "Int" in storage:
        assert (got == np.rint(got)).all() and got.astype(storage.lower()).astype(float) == pytest.approx(got, rel=0)
    if storage == "Float64":
        both = granularity(np.concatenate([original, got]))
        assert both == granularity(original) or not original.any()
    again = match_granularity(got, original, Variable("x", "numeric", storage=storage))
    assert (again == got).all(), "rounding twice is rounding once"


def test_masked_numbers_never_become_user_missing_codes() -> None:
    variable = Variable("x", "numeric", missing=(98.0, 99.0, (500.0, 1e300)), storage="Float64")
    original = np.array([1.0, 2.0, 300.0])
    got = match_granularity(np.array([97.6, 98.4, 99.4, 99.8, 700.0, np.nan]), original, variable)
    assert got[:5].tolist() == [97.0, 97.0, 100.0, 100.0, 499.0] and np.isnan(got[5])


def test_file_that_reads_back_differently_fails(persons: sm.Microdata, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check is run on a file that was changed after it was written."""

    def spoiled(data: sm.Microdata, path: Path) -> Path:
        data.frame().with_columns(income=pl.col("income") + 1).write_parquet(path)
        return path

    monkeypatch.setattr(written_draw, "write_file", spoiled)
    plan = plan_of(SWAP_AND_NOISE)
    assert "'income'" in failed(release(persons, plan, chosen(plan)))["round trip"]


# ---- expectations ---------------------------------------------------------------------------------------------
def test_expectation_is_compared_with_limit_over_draws() -> None:
    """R = 1/MSE of the largest income: the draw that is released may miss it by chance; the method does not."""
    data = sm.read(people(), **ROLES)
    risk = sm.risk.Index(on="income", target="maximum")
    method = sm.Noise(on="income", variance=0.5)
    spread = 0.5 * data["income"].var(ddof=1)
    for factor, passes in ((2.5, True), (0.6, False)):
        plan = plan_of(
            method,
            measures=[risk, sm.utility.MeanPrecision(on="income")],
            rule=sm.Threshold(risk=factor / spread),
            replicates=60,
        )
        found = failed(release(data, plan, chosen(plan)))
        assert ("risk" not in found) == passes, found
