"""Choosing and releasing as one procedure: how often it writes a file above a limit, and what the ledger remembers.

The simulated studies know the true risk of each candidate and the error of its estimate. They use the comparison with
limits and the order of tries that a release uses, but make no files.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from samples import KEYS, PROFILE_OVERRIDES, ROLES, SEED, people, plan_of
from sdcmap.bundle import releasing
from sdcmap.bundle.ledger import Ledger
from sdcmap.bundle.ledger_register import separate_state
from sdcmap.bundle.procedure import Try, digest_without_roles, errors_left, release_draw, run_tries
from sdcmap.core import Estimate, Measure, Method, Microdata
from sdcmap.core.estimate import SampledShare
from sdcmap.core.limit import Limit
from sdcmap.core.release_policy import DEFAULT_POLICY, ReleasePolicy
from sdcmap.reports.decision import release_measurement
from sdcmap.study.plan import Candidate
from sizes import SOAK

STUDIES = 5_000 if SOAK else 1_000
LIMIT = 0.1


# ---- simulated studies ----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class KnownRisk(Measure):
    """A risk whose estimates are simulated."""

    axis: ClassVar[Literal["risk", "utility"]] = "risk"
    number: int = 0
    error: float = 0.02  # of a release

    def release_error(self, estimate: Estimate) -> float:
        return self.error


def count_written(truth: np.ndarray, study_error: float, release_error: float, *, by_hand: bool = False) -> int:
    """Return how many simulated studies write a file; `truth`: the risk of each candidate (row) by each limited measure."""
    rng, policy, written = np.random.default_rng(11), DEFAULT_POLICY, 0
    limits = [Limit(KnownRisk(number, release_error), LIMIT) for number in range(truth.shape[1])]

    def draw(candidate: int, error: float) -> list[Estimate]:
        return [
            Estimate(value=value, se=error) for value in truth[candidate] + error * rng.standard_normal(len(limits))
        ]

    def is_eligible(candidate: int) -> bool:
        estimates = draw(candidate, study_error)
        return all(
            limit.judge_candidate(one, policy).status == "met" for limit, one in zip(limits, estimates, strict=True)
        )

    def attempt(candidate: int, error: float) -> bool:
        estimates = draw(candidate, release_error)
        return all(limit.judge(one, 1 - error).status == "met" for limit, one in zip(limits, estimates, strict=True))

    for _ in range(STUDIES):
        order = [int(number) for number in rng.permutation(len(truth))]
        eligible = order if by_hand else [candidate for candidate in order if is_eligible(candidate)]
        written += run_tries(eligible[:3], policy.try_errors, attempt) is not None
    return written


def test_candidates_just_above_a_limit_are_rarely_written() -> None:
    """The errors of the tries add up to 5 %, whoever ordered the candidates and whatever the other limits are."""
    truth = np.column_stack([np.full(8, LIMIT + 1e-9), np.full(8, 0.0)])
    assert 0.035 * STUDIES <= count_written(truth, 0.02, 0.02, by_hand=True) <= 0.065 * STUDIES
    assert count_written(truth, 0.02, 0.02) <= 0.065 * STUDIES


def test_candidates_well_within_their_limits_are_written() -> None:
    """Twenty candidates that are four standard errors of a release within a limit: fewer than 5 % refusals."""
    truth = np.column_stack([np.full(20, LIMIT - 4 * 0.01), np.full(20, 0.0)])
    assert count_written(truth, 0.01, 0.01) >= 0.95 * STUDIES


def test_a_candidate_that_is_not_measured_spends_no_error() -> None:
    seen: list[tuple[str, float]] = []

    def attempt(candidate: str, error: float) -> bool | None:
        seen.append((candidate, error))
        return {"a": False, "b": None, "c": True}[candidate]

    assert run_tries("abc", (0.03, 0.01), attempt) == "c"
    assert seen == [("a", 0.03), ("b", 0.01), ("c", 0.01)]
    assert run_tries("aaa", (0.03, 0.01), attempt) is None and len(seen) == 5
    assert errors_left(DEFAULT_POLICY, 3) == () and errors_left(DEFAULT_POLICY, 3, is_overridden=True) == (0.01,)


# ---- the margins of a study -----------------------------------------------------------------------------------
def test_eligibility_limit_has_both_margins() -> None:
    """0.5 + 2.33 * 0.01 + 1.5 * sqrt(0.03^2 + 0.01^2) = 0.57073, by hand."""
    estimate = Estimate(value=0.5, se=0.03)
    assert estimate.eligibility_limit(0.01, DEFAULT_POLICY) == pytest.approx(0.57073, abs=1e-5)
    assert estimate.eligibility_limit(0.01, DEFAULT_POLICY, is_upper=False) == pytest.approx(0.42927, abs=1e-5)
    assert Estimate(value=0.5).eligibility_limit(0.0, DEFAULT_POLICY) == 0.5
    few = Estimate(value=0.5, se=0.03, df=9).eligibility_limit(0.01, DEFAULT_POLICY)
    assert few > estimate.eligibility_limit(0.01, DEFAULT_POLICY), "Student's t"


def test_eligibility_limit_of_a_share_is_wilsons() -> None:
    """No hit among 400: a release would find at most 2.25 / (200 + 2.25) of them, and Wilson's end of that counts."""
    share = SampledShare(trials=400)
    predicted, z2 = 2.25 / 202.25, 2.33**2
    middle = (predicted + z2 / 800) / (1 + z2 / 400)
    half = 2.33 / (1 + z2 / 400) * np.sqrt(predicted * (1 - predicted) / 400 + z2 / (4 * 400**2))
    end = Estimate(value=0.0, se=0.0, share=share).eligibility_limit(0.0, DEFAULT_POLICY)
    assert end == pytest.approx(middle + half, rel=1e-9)


def test_eligibility_limit_of_a_precision_is_that_of_the_squared_error() -> None:
    """R = 2 with a relative error of 5 %: 1 / (0.5 * (1 - 2.33 * 0.05 - 1.5 * sqrt(2) * 0.05))."""
    estimate = Estimate(value=2.0, se=0.1, reciprocal=True)
    left = 1 - 2.33 * 0.05 - 1.5 * np.sqrt(2) * 0.05
    assert estimate.eligibility_limit(0.1, DEFAULT_POLICY) == pytest.approx(2 / left)
    assert 0 < estimate.eligibility_limit(0.1, DEFAULT_POLICY, is_upper=False) < 2
    assert Estimate(value=2.0, se=np.inf, reciprocal=True).eligibility_limit(np.inf, DEFAULT_POLICY) == np.inf


def test_refits_reduce_the_error_of_a_release() -> None:
    measure = sm.risk.ClosestRecord(folds=2)
    assert measure.digest == replace(measure, rounds=1).digest != replace(measure, rounds=2).digest
    release = measure.release_variant()
    folds = release.for_informed_attacker(sm.Synthesize(on="wage")).refits(sm.demo.population(50, seed=1))
    assert folds is not None and (folds.times, folds.held_out) == (20, 0.1)
    assert measure.release_error(Estimate(value=0.5, se=0.1, parts={"refits": 2.0})) == pytest.approx(0.1 / np.sqrt(10))
    assert measure.release_error(Estimate(value=0.5, se=0.1)) == 0.1, "without refits"


# ---- real releases --------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class AboveWhenFresh(Measure):
    """Small in a study; at a release above every limit where incomes are masked."""

    axis: ClassVar[Literal["risk", "utility"]] = "risk"
    fresh: bool = False

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return ("income",)

    def score(self, original: Microdata, masked: Microdata, rng: np.random.Generator) -> Estimate:
        changed = bool((original.numbers("income") != masked.numbers("income")).any())
        return Estimate(value=0.9 if self.fresh and changed else 0.1)

    def release_variant(self) -> Measure:
        return replace(self, fresh=True)


NOISE, SWAP = sm.Noise(on=["income"], variance=0.3), sm.Swap(on=["region"], rate=0.2)


@pytest.fixture
def small() -> Microdata:
    return sm.read(people(80), **ROLES)


def plan_with(seed: int = SEED, limit: float = 0.5, methods: Sequence[sm.Method] = (NOISE, SWAP)) -> sm.Plan:
    """Return a plan whose rule prefers noise, which changes no key, and then swaps."""
    return plan_of(
        *methods,
        measures=[AboveWhenFresh(), sm.Hellinger(on=KEYS)],
        rule=sm.Threshold(risk=limit),
        seed=seed,
        replicates=1,
    )


def prepare(data: Microdata, plan: sm.Plan, choice: Any = None, **options: Any) -> releasing.Release:
    """Return the release of a choice, by default the rule's."""
    if choice is None:
        choice = sm.RUMap(sm.sweep(data, plan, workers=1), plan.risk, plan.utility).choose(plan.rule)
    options["override"] = PROFILE_OVERRIDES | options.get("override", {})
    return releasing.release(data, plan, choice, **options)


def tries_in(ledger: Path) -> list[tuple[float, str]]:
    """Return the error and the outcome of every try in a ledger."""
    with closing(sqlite3.connect(ledger / "ledger.sqlite")) as connection:
        return connection.execute("select error, outcome from try order by rowid").fetchall()


def test_second_candidate_is_written_where_the_first_fails(small: Microdata, tmp_path: Path, ledger: Path) -> None:
    plan, seen = plan_with(), list[Try]()
    with sm.Study.open(_swept(small, plan, tmp_path / "study")) as study:
        choice = sm.workflow.choose(study)
        assert choice.candidates == (Candidate(NOISE).id, Candidate(SWAP).id)
        released = sm.workflow.write_release(
            study, choice, tmp_path / "public", on_try=seen.append, override=PROFILE_OVERRIDES
        )
        assert [(one.number, one.error, one.passed) for one in seen] == [(1, 0.03, False), (2, 0.01, True)]
        assert released.choice.candidate == Candidate(SWAP).id and "next candidate" in released.choice.reason
        (entry,) = study.manifest["releases"]
        assert entry["method"] == SWAP.text and entry["replicate"] == release_draw(Candidate(SWAP)).replicate
        assert {row["measure"]: row["value"] for row in entry["measured"]}[AboveWhenFresh().text] == 0.1
        assert list(study.manifest["checked_draws"].values()) == [[10**9], [10**9]], "one draw of each method"
        measured = release_measurement(study, study.scores(), released.choice)
        assert measured is not None and measured["level"] == 0.99
        assert [one["passed"] for one in measured["tries"]] == [False, True]
        assert [(row["title"], row["value"]) for row in measured["rows"]][-1] == (AboveWhenFresh().title, "0.100")
    assert tries_in(ledger) == [(0.03, "failed"), (0.01, "passed")]
    note = json.loads((tmp_path / "public" / "note.json").read_text())
    assert [(one["confidence_level"], one["passed"]) for one in note["tries"]] == [(0.97, False), (0.99, True)]
    # The same release can be written again: it is the same file, and spends nothing.
    again = prepare(small, plan, choice).write(tmp_path / "again")
    same = [(folder / "data.parquet").read_bytes() for folder in (tmp_path / "public", again)]
    assert same[0] == same[1] and len(tries_in(ledger)) == 2
    assert json.loads((again / "note.json").read_text())["tries"] == note["tries"]


def _swept(data: Microdata, plan: sm.Plan, folder: Path) -> Path:
    sm.sweep(data, plan, folder, workers=1)
    return folder


def test_another_seed_plan_or_role_renews_no_try(small: Microdata, tmp_path: Path, ledger: Path) -> None:
    with pytest.raises(sm.errors.Refused, match="above the limit of 0.5"):
        prepare(small, plan_with(methods=[NOISE])).write(tmp_path / "first")
    with pytest.raises(sm.errors.Refused, match="above the limit of 0.4"):
        prepare(small, plan_with(limit=0.4), Candidate(NOISE)).write(tmp_path / "second")
    other_roles = sm.read(people(80), **{**ROLES, "keys": ["age", "sex"], "other": "region"})
    assert digest_without_roles(small) == digest_without_roles(other_roles)
    with pytest.raises(sm.errors.Refused, match="above the limit"):
        prepare(other_roles, plan_with(SEED + 1), Candidate(NOISE)).write(tmp_path / "third")
    assert [error for error, _ in tries_in(ledger)] == [0.03, 0.01, 0.01]
    plan = plan_with(SEED + 2)
    with pytest.raises(sm.errors.Refused, match="All 3 tries of these data for the profile public-use have been made"):
        prepare(small, plan, Candidate(SWAP)).write(tmp_path / "fourth")
    # Another profile has its own tries; a written reason allows one more, which the note shows.
    assert all(check.passed for check in prepare(small, plan, Candidate(SWAP), profile="teaching").check())
    reason = {"tries": "the board accepts a chance of 6 %"}
    folder = prepare(small, plan, Candidate(SWAP), override=reason).write(tmp_path / "fourth")
    assert reason["tries"] in (folder / "note.md").read_text()


def test_same_records_read_in_another_way_renew_no_try(small: Microdata, tmp_path: Path, ledger: Path) -> None:
    """Another kind, a missing code, a column less or a few people less do not make other data of a file."""
    with pytest.raises(sm.errors.Refused, match="above the limit of 0.5"):
        prepare(small, plan_with(methods=[NOISE])).write(tmp_path / "first")
    frame = people(80)
    variants = {
        "kind": sm.read(frame, **{**ROLES, "kinds": {"age": "nominal"}}),
        "column": sm.read(frame.drop("region"), **{**ROLES, "keys": ["age", "sex"]}),
        "people": sm.read(frame[3:], **ROLES),
        "values": sm.read(frame.with_columns(income=pl.col("income").replace(frame["income"][0], None)), **ROLES),
    }
    recorded = Ledger.open_readonly(ledger)
    for name, data in variants.items():
        assert digest_without_roles(data) != digest_without_roles(small)
        assert len(recorded.procedures(digest_without_roles(data), data)) == 1, name
    others = sm.read(people(80, seed=99), **ROLES)
    assert recorded.procedures(digest_without_roles(others), others) == [], "tries of other people are their own"


@dataclass(frozen=True)
class OftenInfeasible(Method):
    """Noise that cannot be made in two of three draws."""

    on: tuple[str, ...] = ("income",)

    def mask(self, data: Microdata, rng: np.random.Generator) -> Microdata:
        if rng.random() < 2 / 3:
            raise sm.errors.Infeasible("this draw cannot be made.")
        return data.change(None, {"income": data.numbers("income") + rng.normal(0, 500, len(data))})


def test_draw_that_cannot_be_made_is_replaced_by_the_next(small: Microdata, tmp_path: Path, ledger: Path) -> None:
    """The chance of a method to fail refuses no release, and the ledger knows the draw that was released."""
    numbers = []
    for seed in range(4):
        plan = plan_of(
            OftenInfeasible(),
            measures=[sm.risk.NearestRecord("gower", on=["income"]), sm.Hellinger(on=KEYS)],
            seed=SEED + seed,
        )
        draft = prepare(small, plan, Candidate(OftenInfeasible()), max_risk=1.0, ledger=tmp_path / f"ledger {seed}")
        with separate_state(tmp_path / f"state {seed}"):
            folder, again = (draft.write(tmp_path / f"{name}{seed}") for name in ("a", "b"))
        assert (folder / "data.parquet").read_bytes() == (again / "data.parquet").read_bytes()
        with closing(sqlite3.connect(tmp_path / f"ledger {seed}" / "ledger.sqlite")) as connection:
            ((fixed,),) = connection.execute("select candidates from procedure").fetchall()
            released = connection.execute("select distinct replicate from release").fetchall()
        assert released == [(json.loads(fixed)[0][1],)]
        numbers.append(released[0][0] - release_draw(Candidate(OftenInfeasible())).replicate)
    assert max(numbers) > 0, "a draw was replaced"


def test_interrupted_try_counts(
    small: Microdata, tmp_path: Path, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends between the freeze and the written folder: another plan has one try less, the same plan none."""

    def interrupt(*given: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(releasing, "check_limits", interrupt)
        prepare(small, plan_with(), Candidate(SWAP)).write(tmp_path / "public")
    assert tries_in(ledger) == [(0.03, "begun")] and not (tmp_path / "public").exists()
    seen: list[Try] = []
    with pytest.raises(sm.errors.Refused):
        prepare(small, plan_with(SEED + 1), Candidate(NOISE)).write(tmp_path / "other", on_try=seen.append)
    prepare(small, plan_with(), Candidate(SWAP)).write(tmp_path / "public", on_try=seen.append)
    assert [one.error for one in seen] == [0.01, 0.03]


def test_policy_states_its_tries() -> None:
    policy = ReleasePolicy(try_errors=(0.02, 0.02), reason="two equal tries")
    assert policy.changes == {"try_errors": [0.02, 0.02]} and "try_errors 0.02 + 0.02 (changed)" in policy.description
    plan = sm.Plan(SWAP, [sm.SmallCells(on=KEYS)], policy=policy)
    assert sm.Plan.from_toml(plan.toml()).policy == policy
    with pytest.raises(sm.errors.PlanError, match="at least one probability"):
        ReleasePolicy(try_errors=(), reason="none")
