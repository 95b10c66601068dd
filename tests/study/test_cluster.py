"""A Dask cluster as the engine: real scheduler and worker processes over TCP or TLS, and the same rows as serial."""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from dask_processes import Processes, processes
from numpy.random import Generator

import sdcmap as sm
from samples import same_rows
from sdcmap.core.method import Method
from sdcmap.data.microdata import Microdata
from sdcmap.errors import PlanError, SdcmapError
from sdcmap.study import cluster, engines
from sdcmap.study.engines import run_all, worker_pool
from sdcmap.study.jobs import Job
from sizes import GUARD

pytest.importorskip("distributed", reason="a Dask cluster needs: pip install 'sdcmap[dask]'")
pytestmark = pytest.mark.slow
SEED = 2**140 + 7


def people() -> Microdata:
    return sm.demo.population(300, seed=3)


def plan_of(replicates: int = 2, **more: object) -> sm.Plan:
    methods = sm.grid(sm.Swap, on=sm.subsets(("Age", "Educ", "Race"), 1, 2), rate=[0.01, 0.05])
    measures = [sm.SmallCells(), sm.Hellinger(), sm.risk.ClosestRecord(targets=20)]
    synthetic = sm.methods.Synthesize(on=("Age", "Educ", "Race", "wage"))  # refitted without some of the people
    return sm.Plan([methods, sm.Noise(on="wage"), synthetic], measures, replicates=replicates, seed=SEED, **more)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait longer, because a busy machine starts its workers late."""
    monkeypatch.setattr(cluster, "SCHEDULER_TIMEOUT_SECONDS", GUARD)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with processes(tmp_path_factory.mktemp("cluster"), dashboard=True) as found:
        yield found


@pytest.fixture(scope="module")
def serial() -> sm.Scores:
    return sm.sweep(people(), plan_of(), workers=1)


def test_dask_scheduler_gives_the_same_rows(running: Processes, serial: sm.Scores, tmp_path: Path) -> None:
    seen: list[int] = []
    scores = sm.sweep(people(), plan_of(), tmp_path / "s", engine=running.engine, progress=lambda k, n: seen.append(k))
    assert same_rows(scores, serial)
    assert seen == sorted(seen) and len(set(seen)) > 2


@pytest.mark.filterwarnings(r"ignore:(?s).*Port \d+ is already in use")  # by another's cluster; ours takes another port
def test_local_cluster_and_executor_give_the_same_rows(running: Processes, serial: sm.Scores, tmp_path: Path) -> None:
    from distributed import Client

    assert same_rows(sm.sweep(people(), plan_of(), engine="dask", workers=2), serial)
    with Client(running.address, set_as_default=False) as client:
        assert same_rows(sm.sweep(people(), plan_of(), executor=client.get_executor(pure=False)), serial)
        assert client.submit(int, 7, pure=False).result() == 7, "the client is its owner's and still works"


def test_workers_without_the_folder_receive_the_data_once(
    running: Processes, serial: sm.Scores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/proc/self/cwd is another folder in each process: what the driver writes there no worker can open."""
    from distributed import Client

    if not Path("/proc/self/cwd").exists():
        pytest.skip("no /proc on this machine")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", "/proc/self/cwd")
    assert same_rows(sm.sweep(people(), plan_of(), engine=running.engine), serial)
    with Client(running.address, set_as_default=False) as client:
        assert set(
            client.run(lambda: len(__import__("sys").modules["sdcmap.study.cluster"].RECEIVED_DATA)).values()
        ) == {0}, "the data were taken back"
    for file in running.folder.rglob("*"):
        assert not file.is_file() or b"wage" not in file.read_bytes(), "nothing of the data is left behind"


def test_stopped_cluster_sweep_continues_to_the_same_rows(
    running: Processes, serial: sm.Scores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "CHUNK_SECONDS", 0.0)  # one candidate at a time, however fast the machine is

    def stop(done: int, total: int) -> None:
        if done > 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sm.sweep(people(), plan_of(), tmp_path / "s", engine=running.engine, progress=stop)
    stored = len(sm.Study.open(tmp_path / "s").candidate_states())
    assert 12 < stored < serial.candidate.height
    assert same_rows(sm.sweep(people(), plan_of(), tmp_path / "s", engine=running.engine), serial)


def test_tasks_dashboard_and_logs_contain_nothing_confidential(
    running: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed import Client

    data, plan = people(), plan_of(replicates=2)
    sent: list[tuple[object, ...]] = []
    submit = Client.submit

    def listening(client: Client, *words: object, **named: object) -> object:
        sent.append((words, named))
        return submit(client, *words, **named)

    monkeypatch.setattr(Client, "submit", listening)
    pages = b""
    with Client(running.address, set_as_default=False) as client:
        place = client.dashboard_link.removesuffix("/status")

        def look(done: int, total: int) -> None:
            nonlocal pages
            tasks = [f"info/task/{named['key']}.html" for _, named in sent[-3:]]
            for page in ("info/main/workers.html", "info/logs.html", "json/counts.json", "json/identity.json", *tasks):
                with (
                    suppress(urllib.error.HTTPError),
                    urllib.request.urlopen(f"{place}/{page}", timeout=GUARD) as answer,
                ):
                    pages += answer.read()

        sm.sweep(data, plan, tmp_path / "s", executor=client.get_executor(pure=False), progress=look)
    assert len(sent) > 2 and b"sdcmap-" in pages
    assert all(re.fullmatch("sdcmap-[0-9a-f]{32}", str(named["key"])) for _, named in sent), "a name says nothing"
    carried = pickle.dumps(sent)
    assert all(candidate.stream(SEED).key in carried for candidate in list(plan.candidates)[-3:]), "derived keys alone"
    logs = b"".join(file.read_bytes() for file in running.folder.rglob("log"))
    seeds = (hex(SEED)[2:].encode(), str(SEED).encode(), SEED.to_bytes(18, "big"), SEED.to_bytes(18, "little"))
    assert not any(seed in carried + pages + logs for seed in seeds)
    assert not any(secret in pages + logs for secret in (data.digest.encode(), b"Swap(", b"Educ", b"wage"))


def test_worker_of_another_version_is_refused(tmp_path: Path, serial: sm.Scores) -> None:
    other = tmp_path / "other" / "sitecustomize.py"
    other.parent.mkdir()
    other.write_text("import sdcmap\nsdcmap.__version__ = '9.9'\n")
    with processes(tmp_path / "c", 0) as running:
        path = os.pathsep.join(filter(None, [str(other.parent), os.environ.get("PYTHONPATH", "")]))
        running.add_worker(PYTHONPATH=path)
        with pytest.raises(SdcmapError, match=r"a worker runs sdcmap 9\.9 and this is .*Stored scores are kept"):
            sm.sweep(people(), plan_of(), tmp_path / "s", engine=running.engine)


def test_answer_for_other_data_is_refused(running: Processes, tmp_path: Path) -> None:
    found = cluster.answer_chunk(sm.__version__, "0" * 64, None, b"")
    assert found.rows == [] and "does not have these data" in found.refusal
    other = sm.sweep(sm.demo.population(300, seed=5), plan_of(1), tmp_path / "other", workers=1)
    assert other.candidate.height
    assert not cluster.can_open(str(tmp_path / "other"), people().digest)


@dataclass(frozen=True)
class Deadly(Method):
    """Kills the worker it runs in."""

    on: tuple[str, ...] = ("wage",)

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        os.kill(os.getpid(), signal.SIGKILL)
        return data


def test_candidate_that_kills_its_worker_is_identified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed worker's chunk is halved until the candidate is identified; all others are made."""
    path = os.pathsep.join([*map(str, Path(__file__).parents[:2]), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setattr(engines, "MAX_DEATHS_ALONE", 2)  # each death costs the start of a worker
    data = people()
    plan = sm.Plan([sm.Swap(on="Age"), sm.Swap(on="Educ"), Deadly()], [sm.SmallCells()], seed=SEED)
    with sm.Study.begin(tmp_path / "s", data, plan) as begun:
        copy = begun.path
    with processes(tmp_path / "c", 0, nannies=True, failures=0) as running:
        running.add_worker(PYTHONPATH=path)
        jobs = iter([Job(c, c.stream(SEED).key, plan.measures) for c in plan.candidates])
        with worker_pool(running.engine, 2, None, data, copy) as (make, run):
            found = [row for batch in run_all(jobs, run, make, 2) for row in batch]
    assert sorted(row.status for row in found) == ["failed"] + ["ok"] * 3
    assert all("killed every time" in row.reason for row in found if row.status == "failed")


def test_lost_scheduler_gets_one_sentence_and_keeps_scores(
    tmp_path: Path, serial: sm.Scores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "CHUNK_SECONDS", 0.0)  # one at a time: most are still to come when it is lost
    with processes(tmp_path / "c", 1) as running:

        def lose(done: int, total: int) -> None:
            monkeypatch.setattr(
                cluster, "SCHEDULER_TIMEOUT_SECONDS", 20
            )  # for answers that are in flight when the scheduler dies
            if done > 8 and running.scheduler.poll() is None:
                running.scheduler.kill()
                running.scheduler.wait()

        with pytest.raises(SdcmapError, match="Stored scores are kept"):
            sm.sweep(people(), plan_of(), tmp_path / "s", engine=running.engine, progress=lose)
    assert len(sm.Study.open(tmp_path / "s").candidate_states()) > 8
    assert same_rows(sm.sweep(people(), plan_of(), tmp_path / "s", workers=1), serial)


def test_scheduler_addresses_are_checked(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="dask://HOST:PORT"):
        sm.sweep(people(), plan_of(1), engine="dask://nowhere")
    with pytest.raises(SdcmapError, match="needs TLS"):
        sm.sweep(people(), plan_of(1), engine="dask://192.0.2.1:8786")
    with pytest.raises(PlanError, match="Did you mean 'dask'"):
        sm.sweep(people(), plan_of(1), engine="dusk")
    assert cluster.is_loopback("[::1]") and cluster.is_loopback("localhost")
    assert not cluster.is_loopback("10.0.0.1") and not cluster.is_loopback("cluster.example")


def test_unreachable_scheduler_gets_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "SCHEDULER_TIMEOUT_SECONDS", 1)
    with pytest.raises(SdcmapError, match="no Dask scheduler answers at 127"):
        sm.sweep(people(), plan_of(1), engine="dask://127.0.0.1:9")


def test_client_of_another_machine_without_tls_is_refused() -> None:
    executor = type("ClientExecutor", (cluster.Executor,), {"__module__": "distributed.cfexecutor"})()
    executor._client = SimpleNamespace(scheduler=SimpleNamespace(address="tcp://192.0.2.1:8786"))
    with pytest.raises(SdcmapError, match="needs TLS"):
        cluster.unwrap_client(executor)


def test_tls_is_read_from_dask_configuration(
    tmp_path: Path, serial: sm.Scores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scheduler that requires TLS: the credentials come from Dask's configuration, and are required."""
    from distributed import Security

    made = Security.temporary()
    files = {}
    for name, text in (("ca", made.tls_ca_file), ("cert", made.tls_client_cert), ("key", made.tls_client_key)):
        files[name] = tmp_path / f"{name}.pem"
        files[name].write_text(text)
    given = {f"DASK_DISTRIBUTED__COMM__TLS__{role}__{what}": str(files[what.lower()])
             for role in ("CLIENT", "SCHEDULER", "WORKER") for what in ("CERT", "KEY")}  # fmt: skip
    given |= {"DASK_DISTRIBUTED__COMM__TLS__CA_FILE": str(files["ca"])}
    given |= {"DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True"}
    script = tmp_path / "drive.py"
    script.write_text(
        "import sys\nimport sdcmap as sm\nfrom sdcmap.study import cluster\n"
        "sys.path[:0] = sys.argv[4:]\nfrom test_cluster import people, plan_of\n"
        "cluster.SCHEDULER_TIMEOUT_SECONDS = int(sys.argv[3])\n"
        "scores = sm.sweep(people(), plan_of(), engine=sys.argv[1])\nscores.score.write_parquet(sys.argv[2])\n"
    )
    with processes(tmp_path / "c", 1, environment=given) as running:
        assert running.address.startswith("tls://")
        command = [sys.executable, str(script), running.engine, str(tmp_path / "score.parquet")]
        folders = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
        subprocess.run([*command, str(GUARD), *folders], check=True, env={**os.environ, **given})
        assert pl.read_parquet(tmp_path / "score.parquet").equals(serial.score)
        monkeypatch.setattr(cluster, "SCHEDULER_TIMEOUT_SECONDS", 2)
        with pytest.raises(SdcmapError, match="no Dask scheduler answers"):  # this process has no credentials
            sm.sweep(people(), plan_of(), engine=running.engine)
