"""Jobs that run together give the same rows as jobs that run one by one, bit by bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sdcmap as sm
from sdcmap.core import Array, Estimate, Generator, Infeasible, Measure, Method, Microdata, Stream, Undefined
from sdcmap.core.estimate import EstimateColumns
from sdcmap.data.masked_batch import MaskedBatch
from sdcmap.kernels.masking.noise_covariance import draw_normal_batch, draw_normals
from sdcmap.kernels.statistics.moments import mean_and_variance, mean_and_variance_of_rows
from sdcmap.risk import Index, KnownIndex, Position, PositionNoiseKnown
from sdcmap.study import batches, engines
from sdcmap.study.batches import run_jobs
from sdcmap.study.database import connect
from sdcmap.study.engines import SerialExecutor, run_all
from sdcmap.study.jobs import CandidateRow, Job, ScoreRow, candidate_row, run_job
from sdcmap.study.memory_tables import MemoryTables
from sdcmap.study.plan import Candidate
from sdcmap.testing import LawBroken, check_measure, check_method
from sdcmap.utility import MeanPrecision

TARGETS = ("maximum", "minimum", 0.01, 0.5, 0.99)
MEASURES: tuple[Measure, ...] = (
    MeanPrecision(on="x"),
    *(attack(on="x", target=target) for attack in (Position, Index) for target in TARGETS),
)
METHODS: tuple[Method, ...] = (
    sm.Noise(on="x", variance=0.2, lower=0),
    sm.Noise(on="x", variance=0),
    sm.Noise(on=["x", "z"], upper=60, integers=True),
    sm.Noise(on="x", above=50, variance_above=0.5, keep_zeros=True),
    sm.Noise(on="x", rescale=True),
    sm.Noise(on=["x", "z"], correlated=True),
    sm.Noise(on="x", within=["group"]),
    sm.methods.Sample(rate=0.5),
)


def file_of(x: Sequence[float | None]) -> Microdata:
    frame = pl.DataFrame(
        {"x": x, "z": np.arange(len(x)) % 3.0, "group": ["a", "b"] * (len(x) // 2) + ["a"] * (len(x) % 2)}
    )
    return sm.read(frame, numeric=["x", "z"], keys=["group"])


def jobs_of(methods: Sequence[Method], measures: tuple[Measure, ...], draws: int = 3) -> list[Job]:
    candidates = [Candidate(method, draw) for draw in range(draws) for method in methods]  # in the order of a plan
    return [Job(candidate, candidate.stream(7).key, measures) for candidate in candidates]


def without_seconds(rows: Sequence[CandidateRow]) -> list[str]:
    return [repr(row._replace(seconds=0.0)) for row in rows]  # repr tells 0.0 from -0.0 and shows every bit


def check_parity(data: Microdata, jobs: list[Job]) -> None:
    assert without_seconds(run_jobs(data, jobs)) == without_seconds([run_job(data, job) for job in jobs])


# ---- parity -----------------------------------------------------------------------------------------------------
@settings(max_examples=12)
@given(st.lists(st.none() | st.sampled_from([0.0, 1.0, -0.0]) | st.floats(-1e6, 1e6), min_size=1, max_size=40))
def test_batch_gives_the_rows_of_single_jobs(x: list[float | None]) -> None:
    """Ties, zeros, missing values, constant columns and files of one record are among the examples."""
    attacks = [attack(on="x", target=target) for attack in (Position, Index) for target in ("maximum", 0.5)]
    check_parity(file_of(x), jobs_of(METHODS, (MEASURES[0], *attacks), draws=2))


def test_batch_and_single_measures_mix() -> None:
    data = file_of([*np.random.default_rng(1).lognormal(3, 1, 50)])
    check_parity(
        data, jobs_of(METHODS, (*MEASURES[:3], KnownIndex(on="x"), PositionNoiseKnown(on="x"), sm.IL1s(on="x")))
    )
    check_parity(data, jobs_of(METHODS, (MeanPrecision(on="z"), sm.SmallCells())))


def test_batches_are_used_and_agree_with_plain_numpy() -> None:
    """R = 1/(Y_(k) - x_(k))^2, 1/(Y_t - x_t)^2 and the moments of Y = max(0, x + e): Duncan et al. (2001), section 4."""
    x = np.random.default_rng(2).lognormal(9.7, 0.6, 177)
    method, measures = sm.Noise(on="x", variance=0.3, lower=0), (MEASURES[0], Position(on="x"), Index(on="x"))
    data, jobs = file_of([*x]), jobs_of([method], measures, draws=20)
    assert method.mask_batch(data, [Stream(job.key) for job in jobs]) is not None
    for job, row in zip(jobs, run_jobs(data, jobs), strict=True):
        y = np.maximum(0, x + np.sqrt(0.3) * x.std(ddof=1) * job.candidate.rng(7).standard_normal(177))
        mse = y.var(ddof=1) / 177 + (y.mean() - x.mean()) ** 2
        expected = [1 / mse, 1 / (y.max() - x.max()) ** 2, 1 / (y[x.argmax()] - x.max()) ** 2]
        assert [score.value for score in row.scores] == pytest.approx(expected, rel=1e-9)


@given(st.integers(1, 60), st.integers(1, 5), st.integers(0, 2**32), st.booleans())
def test_moments_of_rows_are_those_of_each_row(n: int, count: int, seed: int, constant: bool) -> None:
    y = np.random.default_rng(seed).normal(size=(count, n))
    y = np.repeat(y[:, :1], n, axis=1) if constant else y
    means, variances = mean_and_variance_of_rows(y)
    alone = [mean_and_variance(row) for row in y]
    assert repr(means) == repr([spread.mean for spread in alone])
    assert repr(variances) == repr([float(spread.variance) for spread in alone])


@pytest.mark.parametrize("m", [1, 3])
def test_normal_batch_draws_the_numbers_of_each_generator(m: int) -> None:
    together = draw_normal_batch([np.random.default_rng(seed) for seed in range(4)], 5000, m)
    alone = [draw_normals(np.random.default_rng(seed), 5000, m) for seed in range(4)]
    assert np.array_equal(together, np.stack(alone, axis=1))


@given(st.dictionaries(st.text('a%r{}"', max_size=5), st.floats(allow_nan=False), max_size=3))
def test_details_of_columns_are_those_of_each_estimate(parts: dict[str, float]) -> None:
    columns = EstimateColumns(values=[1.0, 2.0], parts={name: [value, value] for name, value in parts.items()})
    assert columns.to_details() == [Estimate(value=1.0, parts=parts).to_details()] * 2


def test_interrupted_sweep_and_later_measures_give_the_same_rows(tmp_path: Path) -> None:
    data = file_of([*np.random.default_rng(6).lognormal(3, 1, 30)])

    def plan(measures: Sequence[Measure]) -> sm.Plan:
        return sm.Plan(METHODS[:4], measures, replicates=10, seed=2**130)

    def stop(done: int, total: int) -> None:
        if done >= 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sm.sweep(data, plan(MEASURES[:5]), tmp_path / "s", workers=1, progress=stop)
    with sm.Study.open(tmp_path / "s") as study:
        assert 10 <= len(study.database.rows("candidate")) < plan(MEASURES).count  # what was done is stored
    resumed = sm.sweep(data, plan(MEASURES), tmp_path / "s", workers=1)
    whole = sm.sweep(data, plan(MEASURES), workers=1)
    assert resumed.candidate.drop("seconds").equals(whole.candidate.drop("seconds"))
    assert resumed.score.equals(whole.score)


# ---- what cannot run together -----------------------------------------------------------------------------------
@dataclass(frozen=True)
class HalfError(Position):
    """Another error than its base class, and no `score_batch` of its own."""

    def squared_error(self, original: Microdata, masked: Microdata) -> float:
        return super().squared_error(original, masked) / 2


@dataclass(frozen=True)
class WrongBatch(Position):
    """A `score_batch` that disagrees with `score`."""

    def score_batch(self, original: Microdata, masked: MaskedBatch) -> EstimateColumns | None:
        return EstimateColumns(values=[1.0] * len(masked), parts={"squared_error": [1.0] * len(masked)})


@dataclass(frozen=True)
class FailingBatch(Position):
    """A `score_batch` that fails."""

    def score_batch(self, original: Microdata, masked: MaskedBatch) -> EstimateColumns | None:
        raise Undefined("not together.")


@dataclass(frozen=True)
class SometimesInfeasible(Method):
    """A method that cannot make about half of its draws."""

    on: tuple[str, ...]

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        if rng.random() < 0.5:
            raise Infeasible("not this draw.")
        return data.change(None, {name: data.numbers(name) + 1 for name in self.on})


@dataclass(frozen=True)
class OtherNoise(sm.Noise):
    """A subclass that changes `mask`: it must not use the `mask_batch` of its base class."""

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        return data.change(None, {name: data.numbers(name) + rng.random() for name in self.on})


@dataclass(frozen=True)
class WrongNoise(sm.Noise):
    """A `mask_batch` that disagrees with `mask`."""

    def mask_batch(self, data: Microdata, streams: Sequence[Stream]) -> dict[str, Array]:
        return {name: np.zeros((len(streams), len(data))) for name in self.on}


def test_subclass_does_not_inherit_a_batch() -> None:
    data = file_of([*np.random.default_rng(3).normal(50, 9, 30)])
    check_parity(data, jobs_of([OtherNoise(on="x"), METHODS[0]], (HalfError(on="x"), *MEASURES)))


def test_failure_belongs_to_one_candidate() -> None:
    data = file_of([*np.random.default_rng(4).normal(50, 9, 30)])
    jobs = jobs_of([METHODS[0], SometimesInfeasible(on="x")], MEASURES, draws=12)
    assert {row.status for row in run_jobs(data, jobs)} == {"ok", "infeasible"}
    check_parity(data, jobs)
    check_parity(data, jobs_of(METHODS[:3], (MEASURES[0], FailingBatch(on="x"))))


def test_batch_is_limited_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    data, sizes = file_of([*np.random.default_rng(5).normal(50, 9, 100)]), []

    def apply_batch(method: Method, data: Microdata, streams: Sequence[Stream]) -> MaskedBatch:
        sizes.append(len(streams))
        return original(method, data, streams)

    original = Method.apply_batch
    monkeypatch.setattr(Method, "apply_batch", apply_batch)
    monkeypatch.setattr(batches, "MAX_BATCH_BYTES", 8 * 100 * 4)
    check_parity(data, jobs_of(METHODS[:1], MEASURES, draws=10))
    assert sizes == [4, 4, 2]
    monkeypatch.setattr(batches, "MAX_BATCH_BYTES", 8 * 100 * 2 - 1)  # less than two draws: one by one
    check_parity(data, jobs_of(METHODS[:1], MEASURES, draws=3))
    assert sizes == [4, 4, 2]


def test_laws_reject_batches_that_disagree() -> None:
    data = sm.demo.population(40, seed=1)
    with pytest.raises(LawBroken, match="scored together"):
        check_measure(WrongBatch(on="wage"), data, [sm.Noise(on="wage")])
    with pytest.raises(LawBroken, match="made together"):
        check_method(WrongNoise(on="wage"), data)


# ---- tables and chunks ------------------------------------------------------------------------------------------
def test_memory_holds_the_tables_of_the_database(tmp_path: Path) -> None:
    scores = [ScoreRow(name, name, 1.5, None, "{}", "ok", "") for name in ("m2", "m1", "m3")]
    rows = [CandidateRow(name, "candidate", "m", 0, "ok", "", 0.5, "s", tuple(scores[:2])) for name in ("b", "a")]
    later = rows[0]._replace(reason="kept out", scores=(scores[2], scores[0]._replace(value=9.0)))
    memory, database = MemoryTables(), connect(tmp_path / "scores.sqlite")
    for tables in (memory, database):
        assert tables.rows("score") == []
        tables.add(rows)
        tables.add([later])  # a row that exists stays; a new measure is added
        for name in ("m", "n"):
            tables.insert({"measure": [("1", "M", "lower", 0.0, None, name, "risk", None)]}, replace=True)
            tables.insert({"proposal": [("s", "c", 0, 0, name, "", "")]})
    for table in ("candidate", "score", "measure", "proposal"):
        assert memory.rows(table) == database.rows(table)
        assert [*zip(*database.rows(table), strict=True)] == memory.columns(table)
    assert len(memory.rows("score")) == 5
    database.close()


def test_one_slow_chunk_does_not_shrink_the_next() -> None:
    sizes: list[int] = []

    def run(jobs: Sequence[Job]) -> list[CandidateRow]:
        sizes.append(len(jobs))
        seconds = engines.CHUNK_SECONDS if len(sizes) == 6 else engines.CHUNK_SECONDS / 50.5
        return [candidate_row(job, "ok", "", seconds) for job in jobs]

    assert sum(map(len, run_all(iter(jobs_of(METHODS[:1], MEASURES, draws=400)), run, SerialExecutor, 1))) == 400
    assert sizes[:8] == [1, 4, 16, 50, 50, 50, 50, 50]
