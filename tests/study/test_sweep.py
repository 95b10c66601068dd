"""Sweeps give the same rows for every engine and after interruptions; no failure ends a sweep or loses scores."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl
import pytest
from numpy.random import Generator

import sdcmap as sm
from samples import same_rows
from sdcmap.core.measure import Estimate, Measure
from sdcmap.core.method import Method
from sdcmap.data.microdata import Microdata
from sdcmap.study import engines
from sdcmap.study import sweep as sweep_module
from sdcmap.study.cost import estimate_seconds
from sdcmap.study.engines import WORKER_KILLED, make_executor, run_all
from sdcmap.study.folder import Study
from sdcmap.study.jobs import Job
from sdcmap.study.worker import run_here
from sizes import GUARD
from waiting import until

MEASURES = [sm.SmallCells(), sm.Hellinger(), sm.IL1s()]


@pytest.fixture(scope="module")
def people() -> Microdata:
    return sm.demo.population(400, seed=2)


def plan_of(*, replicates: int = 4, measures: list[Measure] | None = None, seed: int = 11) -> sm.Plan:
    methods = [
        sm.grid(sm.Swap, on=sm.subsets(["Age", "Sex", "Race"], 1, 2), rate=[0.05, 0.3]),
        sm.Noise(on="wage", within="Sex"),
        sm.Chain([sm.RankSwap(on="wage", p=0.1), sm.Swap(on="Educ", rate=0.1)]),
    ]
    return sm.Plan(methods, measures or MEASURES, replicates=replicates, seed=seed)


def test_rows_are_the_same_for_every_engine(people: Microdata, tmp_path: Path) -> None:
    plain = plan_of()
    shuffle = sm.methods.Shuffle(on="wage")  # refitted for the last measure
    in_batches = sm.utility.MeanPrecision(on="wage"), sm.risk.Position(on="wage"), sm.risk.Index(on="wage", target=0.9)
    measures = (*MEASURES, *in_batches, sm.risk.ClosestRecord(targets=30))
    plan = replace(plain, methods=(*plain.methods, sm.Noise(on="wage"), shuffle), measures=measures)
    serial = sm.sweep(people, plan, workers=1)
    assert same_rows(serial, sm.sweep(people, plan, engine="threads", workers=3))
    assert same_rows(serial, sm.sweep(people, plan, tmp_path / "study", engine="processes", workers=2))
    with ThreadPoolExecutor(2) as pool:
        assert same_rows(serial, sm.sweep(people, plan, executor=pool))
    status = dict(serial.candidate.group_by("status").len().iter_rows())
    assert status == {"ok": 65 - status["infeasible"], "infeasible": status["infeasible"]}
    assert serial.score.columns == ["candidate", "measure", "value", "se", "details", "status", "reason"]
    columns = ["id", "kind", "method", "replicate", "status", "reason", "seconds", "stream_id"]
    assert serial.candidate.columns == columns
    assert serial.measure.columns[:5] == ["name", "direction", "low", "high", "unit"]


def test_interrupted_sweep_continues_to_the_same_rows(
    people: Microdata, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "CHUNK_SECONDS", 0.0)  # one candidate at a time, however fast the machine is
    plan = plan_of(replicates=15)
    whole = sm.sweep(people, plan, workers=1)
    for stop_after in (1, 7, 100):

        def stop(done: int, total: int, limit: int = stop_after) -> None:
            if done >= limit:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            sm.sweep(people, plan, tmp_path / "study", workers=1, progress=stop)
        kept = Study.open(tmp_path / "study").connection.execute("select count(*) from candidate").fetchone()[0]
        assert stop_after <= kept < plan.count
    assert same_rows(whole, sm.sweep(people, plan, tmp_path / "study", workers=2, engine="processes"))


def test_measure_added_later_uses_the_same_folds(people: Microdata, tmp_path: Path) -> None:
    """Refits depend on the candidate only."""
    synthetic = sm.methods.Synthesize(on=[n for n in people.names if n not in ("household", "weight")])
    member, infer = sm.risk.ClosestRecord(targets=50), sm.risk.AttributeInference("Income", targets=50)

    def plan(*measures: Measure) -> sm.Plan:
        return sm.Plan([synthetic, sm.methods.Shuffle(on="wage")], measures, replicates=2, seed=11)

    serial = sm.sweep(people, plan(member, infer), workers=1)
    made = serial.score.filter(pl.col("candidate").is_in(serial.candidate["id"].implode()))
    assert set(made["status"]) == {"ok"} and not sm.mask(people, synthetic, seed=1).paired
    sm.sweep(people, plan(member), tmp_path / "study", workers=1)
    assert same_rows(serial, sm.sweep(people, plan(member, infer), tmp_path / "study", workers=1))


def test_only_a_large_sweep_starts_processes(people: Microdata, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    make = engines.make_executor

    def noted(engine: str, workers: int) -> Executor:
        started.append(workers)
        return make("serial", 1)

    monkeypatch.setattr(engines, "make_executor", noted)
    monkeypatch.setattr(sweep_module, "POOL_START_SECONDS", 1e9)  # however busy the machine is
    small = sm.sweep(people, plan_of(), workers=2)
    assert not started and len(small.candidate) == plan_of().count
    monkeypatch.setattr(sweep_module, "POOL_START_SECONDS", 0.0)
    assert same_rows(small, sm.sweep(people, plan_of(), workers=2)) and started == [2]


def test_adding_a_measure_or_a_method_computes_only_what_is_missing(people: Microdata, tmp_path: Path) -> None:
    first = sm.sweep(people, plan_of(measures=MEASURES[:2]), tmp_path / "study", workers=1)
    calls: list[str] = []

    @dataclass(frozen=True)
    class Counting(Measure):
        """Counts its calls."""

        axis: ClassVar[Literal["risk", "utility"]] = "risk"
        on: tuple[str, ...] = ("Sex",)

        def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
            calls.append("scored")
            return Estimate(value=0.0)

    ok = int((first.candidate["status"] == "ok").sum())
    grown = plan_of(measures=[*MEASURES[:2], Counting()])
    more = sm.sweep(people, grown, tmp_path / "study", workers=1)
    assert len(calls) == ok
    assert len(more.score) == len(first.score) + ok
    wider = sm.Plan([*grown.methods, sm.Noise(on="interest")], grown.measures, replicates=4, seed=11)
    sm.sweep(people, wider, tmp_path / "study", workers=1)
    assert len(calls) == ok + 4
    sm.sweep(people, wider, tmp_path / "study", workers=1)
    assert len(calls) == ok + 4


@dataclass(frozen=True)
class Bad(Method):
    """Fails in a chosen way."""

    on: tuple[str, ...] = ("wage",)
    how: Literal["raise", "exit", "infeasible", "nan"] = "raise"

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        if self.how == "exit":
            os._exit(9)
        if self.how == "infeasible":
            raise sm.errors.Infeasible("there are 3 of the 5 pairs.")
        if self.how == "nan":
            return data.change(None, {"wage": np.full(len(data), np.nan)})
        raise ValueError(f"the wage of the first person is {data['wage'][0]}")


def test_failing_candidate_does_not_end_the_sweep(people: Microdata) -> None:
    plan = sm.Plan(
        [sm.Noise(on="wage"), Bad(how="raise"), Bad(how="infeasible"), Bad(how="nan")],
        [sm.utility.MeanPrecision(on="wage")],
    )
    scores = sm.sweep(people, plan, workers=1)
    status = dict(scores.candidate.select("method", "status").iter_rows())
    reasons = dict(scores.candidate.select("method", "reason").iter_rows())
    assert sorted(status.values()) == ["failed", "infeasible", "ok", "ok", "ok"]
    failed = next(reasons[m] for m, s in status.items() if s == "failed")
    assert failed.startswith("ValueError in test_sweep.py, line ")
    assert "wage of" not in failed  # the text of an unexpected error may contain a data value
    undefined = scores.score.filter(pl.col("status") == "undefined")
    assert undefined["value"].to_list() == [None]
    assert "fewer than 2 values" in undefined["reason"][0]


class Fragile(Executor):
    """A pool that breaks with one candidate, like a process that dies; its whole chunk is lost."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if any(isinstance(job.candidate.method, Bad) for job in args[0]):
            future.set_exception(BrokenExecutor())
        else:
            future.set_result(fn(*args, **kwargs))
        return future


def jobs_of(plan: sm.Plan) -> Iterator[Job]:
    return (Job(c, c.stream(plan.seed).key, tuple(plan.measures)) for c in plan.candidates)


def test_chunks_are_halved_to_identify_killing_candidates(people: Microdata) -> None:
    noise = sm.grid(sm.Noise, on="wage", variance=[0.1 * i for i in range(1, 8)])
    plan = sm.Plan([noise, Bad(how="exit")], MEASURES, replicates=3)
    rows = [row for batch in run_all(jobs_of(plan), partial(run_here, people), Fragile, 2) for row in batch]
    assert len(rows) == len({row.id for row in rows}) == plan.count
    dead = [row for row in rows if row.status != "ok"]
    assert len(dead) == 3
    assert all(row.reason == WORKER_KILLED and "Bad" in row.method for row in dead)


def test_candidate_that_kills_its_worker_is_identified(people: Microdata, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "MAX_DEATHS_ALONE", 2)  # each death costs the start of a pool
    plan = sm.Plan([sm.Noise(on="wage"), Bad(how="exit")], MEASURES[:1])
    pool = partial(make_executor, "processes", 2)
    rows = [row for batch in run_all(jobs_of(plan), partial(run_here, people), pool, 2) for row in batch]
    assert sorted((row.status, row.reason) for row in rows) == [("failed", WORKER_KILLED), ("ok", ""), ("ok", "")]


def test_pool_broken_before_its_first_job_is_replaced(people: Microdata) -> None:
    """A worker dies between two chunks: nothing is in flight, and the next chunk cannot be submitted."""
    made: list[Executor] = []

    def pool() -> Executor:
        made.append(make_executor("processes", 1))
        if len(made) == 1:
            with pytest.raises(BrokenExecutor):
                made[0].submit(os._exit, 1).result()
        return made[-1]

    plan = sm.Plan([sm.Noise(on="wage")], MEASURES[:1], replicates=3)
    rows = [row for batch in run_all(jobs_of(plan), partial(run_here, people), pool, 1) for row in batch]
    assert len(made) == 2 and [row.status for row in rows] == ["ok"] * plan.count


def test_infinity_is_stored_as_a_status(people: Microdata, tmp_path: Path) -> None:
    plan = sm.Plan(sm.Noise(on="wage"), [sm.risk.KnownIndex(on="wage"), sm.utility.MeanPrecision(on="wage")], seed=3)
    scores = sm.sweep(people, plan, tmp_path / "study", workers=1)
    infinite = scores.score.filter(pl.col("status") == "infinite")
    assert infinite["value"].to_list() == [None]
    assert scores.column("KnownIndex(on='wage')")["value"].is_infinite().sum() == 1


# ---- the folder -----------------------------------------------------------------------------------------------
def test_study_folder_is_private_and_only_the_manifest_has_the_seed(people: Microdata, tmp_path: Path) -> None:
    seed = 2**255 + 12345
    folder = tmp_path / "study"
    sm.sweep(people, plan_of(seed=seed), folder, workers=1)
    assert folder.stat().st_mode & 0o777 == 0o700
    for path in folder.iterdir():
        assert path.stat().st_mode & 0o077 == 0 or path.name == "lock", path.name
        text = path.read_bytes()
        found = hex(seed)[2:].encode() in text or str(seed).encode() in text
        assert found == (path.name == "manifest.json"), path.name
    assert Study.open(folder).plan == plan_of(seed=seed)
    assert Study.open(folder).data.digest == people.digest


def test_sweep_without_a_stated_seed_uses_the_studys(people: Microdata, tmp_path: Path) -> None:
    first = sm.Plan(sm.Swap(on="Sex", rate=0.1), MEASURES[:2])
    again = sm.Plan(sm.Swap(on="Sex", rate=0.1), MEASURES[:2])
    assert first.seed != again.seed
    one = sm.sweep(people, first, tmp_path / "study", workers=1)
    two = sm.sweep(people, again, tmp_path / "study", workers=1)
    assert same_rows(one, two)
    assert one.plan is not None and two.plan is not None
    assert two.plan.seed == one.plan.seed == first.seed != again.seed


def test_sweep_refuses_other_data_or_another_seed(people: Microdata, tmp_path: Path) -> None:
    sm.sweep(people, plan_of(replicates=1), tmp_path / "study", workers=1)
    with pytest.raises(sm.errors.StudyMismatch, match="belongs to other data"):
        sm.sweep(sm.demo.population(400, seed=3), plan_of(replicates=1), tmp_path / "study", workers=1)
    with pytest.raises(sm.errors.StudyMismatch, match="another seed"):
        sm.sweep(people, plan_of(replicates=1, seed=12), tmp_path / "study", workers=1)


@pytest.mark.parametrize("damage", ["truncate", "garbage", "manifest", "no manifest"])
def test_damaged_study_gets_one_sentence(people: Microdata, tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "study"
    sm.sweep(people, plan_of(replicates=1), folder, workers=1)
    Study.open(folder).connection.close()
    database = folder / "scores.sqlite"
    for extra in folder.glob("scores.sqlite-*"):
        extra.unlink()
    if damage == "truncate":
        database.write_bytes(database.read_bytes()[:5000])
    elif damage == "garbage":
        database.write_bytes(b"no database at all" * 500)
    elif damage == "manifest":
        (folder / "manifest.json").write_text("{")
    else:
        (folder / "manifest.json").unlink()
    with pytest.raises(sm.errors.StudyDamaged) as error:
        sm.sweep(people, plan_of(replicates=2), folder, engine="processes", workers=1)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["data.bin", "schema.arrow"])
def test_damaged_working_copy_is_replaced_by_the_next_sweep(people: Microdata, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "study"
    sm.sweep(people, plan_of(replicates=1), folder, workers=1)
    whole = (folder / name).read_bytes()
    for damaged in (b"0" * 100, whole[:-1] + b"?" if name == "data.bin" else b""):
        (folder / name).write_bytes(damaged)
        with pytest.raises(sm.errors.StudyDamaged, match="run the sweep again"):
            Study.open(folder).data  # noqa: B018
    sm.sweep(people, plan_of(replicates=1), folder, workers=1)
    assert Study.open(folder).data.digest == people.digest


def test_sweep_refuses_a_folder_that_is_not_a_study(people: Microdata, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear all")
    with pytest.raises(sm.errors.StudyDamaged, match="not empty and not a study"):
        sm.sweep(people, plan_of(replicates=1), tmp_path, workers=1)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_second_sweep_of_a_locked_study_is_refused(people: Microdata, tmp_path: Path) -> None:
    sm.sweep(people, plan_of(replicates=1), tmp_path / "study", workers=1)
    study = Study.open(tmp_path / "study")
    with study.writing(), pytest.raises(sm.errors.SdcmapError, match="another sweep is writing"):
        sm.sweep(people, plan_of(replicates=2), tmp_path / "study", workers=1)


def test_manifest_records_when_the_rule_was_fixed(people: Microdata, tmp_path: Path) -> None:
    base = plan_of(replicates=1)
    ruled = sm.Plan(base.methods, base.measures, rule=sm.Threshold(risk=0.01), seed=11)
    sm.sweep(people, ruled, tmp_path / "first", workers=1)
    assert Study.open(tmp_path / "first").rule_was_fixed_first
    sm.sweep(people, base, tmp_path / "late", workers=1)
    assert not Study.open(tmp_path / "late").rule_was_fixed_first
    sm.sweep(people, ruled, tmp_path / "late", workers=1)
    assert not Study.open(tmp_path / "late").rule_was_fixed_first
    other = sm.Plan(base.methods, base.measures, rule=sm.Threshold(risk=0.02), seed=11)
    sm.sweep(people, other, tmp_path / "first", workers=1)
    assert not Study.open(tmp_path / "first").rule_was_fixed_first


def test_full_disk_keeps_stored_scores(people: Microdata, tmp_path: Path) -> None:
    """SQLite's page limit simulates a full disk: the library raises the same error."""
    sm.sweep(people, plan_of(replicates=1), tmp_path / "study", workers=1)
    study = Study.open(tmp_path / "study")
    before = study.connection.execute("select count(*) from score").fetchone()[0]
    pages = study.connection.execute("pragma page_count").fetchone()[0]
    study.connection.execute(f"pragma max_page_count = {pages}")
    from sdcmap.study.jobs import CandidateRow, ScoreRow

    filler = ScoreRow("0" * 12, "SmallCells", 0.0, None, "x" * 4000, "ok", "")
    with pytest.raises(sm.errors.SdcmapError, match="Scores stored before are kept"):
        study.add([CandidateRow(f"id{i}", "candidate", "m", 0, "ok", "", 0.0, "", (filler,)) for i in range(50)])
    assert (
        sqlite3.connect(tmp_path / "study" / "scores.sqlite").execute("select count(*) from score").fetchone()[0]
        == before
    )


SCRIPT = """
import signal, sys, time
import sdcmap as sm

signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a terminal, whoever runs the tests

def report(done, total):
    print(done, flush=True)
    while done > 100:
        time.sleep(0.01)  # the signal ends it here, with workers at work

if __name__ == "__main__":
    data = sm.demo.population(600, seed=2)
    plan = sm.Plan(sm.grid(sm.Swap, on=sm.subsets(data.keys, 1, 2), rate=[.05, .1]),
                   [sm.SmallCells(), sm.Hellinger()], replicates=20, seed=5)
    sm.sweep(data, plan, sys.argv[1], workers=2, engine="processes", progress=report)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_stopped_or_killed_sweep_leaves_a_valid_study_and_no_process(tmp_path: Path, how: signal.Signals) -> None:
    script, folder = tmp_path / "script.py", tmp_path / "study"
    script.write_text(SCRIPT)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, script, folder], text=True, start_new_session=True, **pipes) as run:
        assert run.stdout is not None
        for line in run.stdout:
            if int(line) > 100:
                break
        run.send_signal(how)
        assert run.wait(GUARD) != 0
    study = Study.open(folder)
    done = study.connection.execute("select count(*) from candidate").fetchone()[0]
    assert 100 <= done < study.plan.count
    scored = study.connection.execute("select count(*) from score").fetchone()[0]
    made = study.connection.execute("select count(*) from candidate where status = 'ok'").fetchone()[0]
    assert scored == 2 * made
    study.connection.close()
    until(lambda: subprocess.run(["pgrep", "-g", str(run.pid)], stdout=subprocess.DEVNULL).returncode, "their end")
    data = sm.demo.population(600, seed=2)
    methods = sm.grid(sm.Swap, on=sm.subsets(data.keys, 1, 2), rate=[0.05, 0.1])
    plan = sm.Plan(methods, [sm.SmallCells(), sm.Hellinger()], replicates=3, seed=5)
    assert same_rows(sm.sweep(data, plan, folder, workers=1), sm.sweep(data, plan, workers=1))


def test_script_without_a_main_guard_gets_one_sentence(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import sdcmap as sm
        data = sm.demo.population(100)
        plan = sm.Plan(sm.Swap(on="Sex", rate=.1), [sm.SmallCells()], replicates=5)
        sm.sweep(data, plan, workers=2, engine="processes")
    """)
    )
    result = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=GUARD)
    assert result.returncode == 1
    assert 'Put the call under `if __name__ == "__main__":`' in result.stderr.splitlines()[-1]
    assert result.stderr.count("Traceback") == 1


def test_progress_is_reported_and_cost_is_estimated(people: Microdata) -> None:
    seen: list[tuple[int, int]] = []
    plan = plan_of(replicates=2)
    sm.sweep(people, plan, workers=1, progress=lambda done, total: seen.append((done, total)))
    assert seen[0][0] == 0
    assert seen[-1] == (plan.count, plan.count)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert estimate_seconds(people, plan) > 0


def test_unknown_engine_is_rejected(people: Microdata) -> None:
    with pytest.raises(sm.errors.PlanError, match="Did you mean 'threads'"):
        sm.sweep(people, plan_of(), engine="thread")


def test_score_rows_are_plain_json(people: Microdata, tmp_path: Path) -> None:
    sm.sweep(people, plan_of(replicates=1), tmp_path / "study", workers=1)
    for (details,) in Study.open(tmp_path / "study").connection.execute("select details from score"):
        assert json.loads(details)["version"] == 1
