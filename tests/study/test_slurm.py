"""The batch job of docs/scale.md on a real Slurm of one node: a sweep and a search, a worker killed, the same rows."""

from __future__ import annotations

import os
import re
import signal
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from one_node_slurm import free_port, lacking, one_node, said

import sdcmap as sm
from sdcmap.study.folder import Study
from sizes import SOAK
from waiting import until

pytest.importorskip("distributed", reason="a Dask cluster needs: pip install 'sdcmap[dask]'")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SOAK, reason="a Slurm of our own is started in `make soak` alone"),
    pytest.mark.skipif(bool(lacking()), reason=lacking()),
]
GUIDE = Path(__file__).parents[2] / "docs" / "scale.md"


def recipe(project: Path, command: str) -> str:
    """Return the documented batch job with two workers instead of 64, this folder, a free port and this command."""
    block = re.search(r"(?m)^    #!/bin/bash\n(?:    .*\n)+", GUIDE.read_text())
    assert block, "the guide has no batch job"
    text = re.sub("(?m)^    ", "", block[0])
    changes = {
        "--ntasks=65": "--ntasks=3", "--ntasks=64": "--ntasks=2", "4G": "1G", "/shared/project": str(project),
        "8786": str(free_port()), "sdcmap sweep plan.toml": f"sdcmap {command} plan.toml",
    }  # fmt: skip
    for printed, ours in changes.items():
        assert printed in text, printed
        text = text.replace(printed, ours)
    return text


def secured(project: Path) -> None:
    """Return the exports of the guide, with certificates for this run."""
    from distributed import Security

    made = Security.temporary()
    names = {"ca.pem": made.tls_ca_file, "me.pem": made.tls_client_cert, "me.key": made.tls_client_key}
    for name, text in names.items():
        (project / name).write_text(text)
        (project / name).chmod(0o600)
    exports = re.search(r"(?m)^      export DASK_DISTRIBUTED__COMM__REQ.*?done\n", GUIDE.read_text(), re.DOTALL)
    assert exports
    (project / "tls.sh").write_text(exports[0].replace("/secure", str(project)))


def planned(project: Path) -> None:
    people = sm.demo.population(400, seed=3)
    sm.write(people, project / "people.parquet")
    plan = sm.Plan(
        sm.grid(sm.Swap, on=sm.subsets(("Age", "Sex"), 1, 2), rate=[0.01, 0.05]),
        [sm.risk.ExactMatch(), sm.utility.QueryError(queries=100)],
        data=sm.Source(str(project / "people.parquet"), keys=["Age", "Sex"], numeric=["wage"]), replicates=100,
    )  # fmt: skip
    plan.write(project / "plan.toml")


def workers(job: str, environment: dict[str, str]) -> list[int]:
    """Return the worker processes of this job."""
    found = []
    for number in said(["scontrol", "listpids", job], environment).split()[
        5::5
    ]:  # a head, then pid, job, step and two places
        with suppress(OSError, ValueError):
            words = Path(f"/proc/{int(number)}/cmdline").read_bytes().split(b"\0")
            found += [int(number)] if b"worker" in words else []
    return found


@pytest.mark.parametrize("command", ["sweep", "search --budget 24"])
def test_slurm_batch_job_of_the_guide_runs(command: str, tmp_path: Path) -> None:
    project, slurm = tmp_path / "project", tmp_path / "slurm"
    project.mkdir()
    slurm.mkdir()
    secured(project)
    planned(project)
    (project / "job.sh").write_text(recipe(project, command))
    with one_node(slurm) as environment:
        environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
        job = said(["sbatch", "--parsable", f"--chdir={project}", f"{project}/job.sh"], environment).strip()

        def ended() -> bool:
            return not said(["squeue", "--noheader", "--job", job], environment).strip()

        scores = project / "study" / "scores.sqlite"
        until(lambda: ended() or (len(workers(job, environment)) >= 2 and scores.exists()), "the first score")
        assert not ended(), (project / f"slurm-{job}.out").read_text()
        os.kill(workers(job, environment)[0], signal.SIGKILL)
        until(ended, "the end of the job")
    log = (project / f"slurm-{job}.out").read_text()
    assert scores.exists(), log
    assert same_as_one_process(project, tmp_path / "serial", command), log


def same_as_one_process(project: Path, folder: Path, command: str) -> bool:
    """Return whether the study has exactly the rows that one process computes from the same plan."""
    with Study.open(project / "study") as study:
        plan = replace(
            sm.Plan.read(project / "plan.toml"), seed=study.plan.seed
        )  # the seed is in no file of the project
    data = plan.data.read()
    if command == "sweep":
        sm.sweep(data, plan, folder, workers=1)
    else:
        sm.search(data, plan, 24, study=folder, workers=1)
    return rows(folder).equals(rows(project / "study"))


def rows(folder: Path) -> pl.DataFrame:
    with Study.open(folder) as study:
        score = study.scores().score
    return score.select("candidate", "measure", "value", "status").sort("candidate", "measure")
