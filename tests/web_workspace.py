"""Helpers of the workbench's tests: folders with a file and studies, and servers over them."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import uvicorn

import sdcmap as sm
from sdcmap.explore.first_look import source_of
from sdcmap.web.server import uvicorn_config
from sdcmap.web.service import make_app
from sdcmap.web.sessions import Authenticator
from sdcmap.web.workspace import Workspace
from sizes import GUARD

TOKEN = "t" * 32
HEAD = {"authorization": f"Bearer {TOKEN}"}
KEYS = ["Age", "Sex", "Educ", "Race"]
ROLES: dict[str, str] = (
    dict.fromkeys(KEYS, "key")
    | dict.fromkeys(["WrkTyp", "MarStat", "Hours", "Income"], "other")
    | dict.fromkeys(["wage", "interest", "benefits", "total"], "numeric")
    | {"household": "household", "weight": "weight"}
)


def people(folder: Path, rows: int = 800, name: str = "people.csv", seed: int = 8) -> Path:
    return sm.write(sm.demo.population(rows, seed=seed), folder / name)


def plan_of(
    folder: Path,
    file: str = "people.csv",
    *,
    replicates: int = 3,
    rates: tuple[float, ...] = (0.05, 0.2),
    measures: Sequence[sm.Measure] = (),
    limit: float = 0.95,
    **more: Any,
) -> sm.Plan:
    """Return a small plan; its limit is this share of the original's risk, with candidates on both sides at 0.95."""
    source = source_of(file, ROLES, {})
    data = source.read(folder)
    limit = round(limit * sm.score(data, data, sm.SmallCells())["SmallCells"].value, 4)
    return sm.Plan(
        sm.grid(sm.Swap, on=sm.subsets(KEYS, 1, 2), rate=list(rates)), [sm.SmallCells(), sm.Hellinger(), *measures],
        replicates=replicates, rule=sm.Threshold(risk=limit), data=source, seed=(1 << 200) + 7, **more,
    )  # fmt: skip


def endless_plan(folder: Path) -> sm.Plan:
    """Return a plan whose sweep does not end during a test: few candidates, but slow ones."""
    return plan_of(folder, replicates=100, measures=[sm.utility.QueryError(queries=20_000)])


def sweep_decision_study(folder: Path, name: str = "known") -> sm.Plan:
    """Write people.csv and a finished study of the decision-theoretic measures; some candidates are safe, some not."""
    if not (folder / "people.csv").exists():
        people(folder)
    source = source_of("people.csv", ROLES, {})
    amounts = ("wage", "interest", "benefits")
    methods = [
        *(sm.Noise(on=amounts, variance=v) for v in (0.01, 0.3, 2.0)),
        *(sm.RankSwap(on=amounts, p=p) for p in (0.02, 0.3)),
    ]
    intruder, society = {"on": "total", "attack": sm.risk.Linkage(on=amounts)}, {"on": "wage"}
    measures = [
        sm.risk.IntruderKnowledge(**intruder), sm.risk.DiscreditHarm(**intruder), sm.utility.SocietyKnowledge(**society),
        sm.utility.SocietyUtility(**society),
    ]  # fmt: skip
    plan = sm.Plan(methods, measures, replicates=10, data=source, seed=(1 << 200) + 9)
    (folder / f"{name}.toml").write_text(plan.toml())
    sm.sweep(plan.data.read(folder), plan, folder / name, workers=1)  # type: ignore[union-attr]
    return plan


def sweep_study(folder: Path, name: str = "cps", **how: Any) -> sm.Plan:
    """Write people.csv and a finished study with this name."""
    if not (folder / "people.csv").exists():
        people(folder)
    plan = plan_of(folder, **how)
    (folder / f"{name}.toml").write_text(plan.toml())
    sm.sweep(plan.data.read(folder), plan, folder / name, workers=1)  # type: ignore[union-attr]
    return plan


COUNTED = sm.utility.QueryError(queries=200)
ALIKE = sm.risk.KAnonymity(k=3)
SILENT = sm.utility.TableError(least=10**6)  # no table of 800 people has such a cell


def finished_studies(folder: Path) -> None:
    """people.csv and studies of it: `cps` of swaps, `axes` with more measures, one without any value, `small`, `blank`
    that masks the keys unnamed, and a chain, `known` of what intruder and society know, `found` by a search; `resample` was
    not begun."""
    fresh = sweep_study(folder)
    (folder / "fresh.toml").write_text(fresh.toml())
    sweep_study(folder, "axes", rates=(0.05,), replicates=2, measures=[COUNTED, SILENT, ALIKE], risk="SmallCells")
    sweep_study(folder, "small", rates=(0.05,), replicates=1)
    sweep_decision_study(folder)
    source = source_of("people.csv", ROLES, {})
    chain = sm.Chain((sm.Noise(on="wage", variance=0.3), sm.Swap("Sex", 0.05)))
    blank = sm.Plan(
        [sm.Suppress(k=2), chain], [sm.risk.KAnonymity(k=2), sm.Hellinger()], data=source, seed=(1 << 200) + 3
    )
    (folder / "blank.toml").write_text(blank.toml())
    sm.sweep(source.read(folder), blank, folder / "blank", workers=1)
    sweep_and_search(folder)


def sweep_and_search(folder: Path) -> None:
    """Write few.csv and the study `found` of a search on it."""
    columns = {"Age": "key", "Sex": "key", "wage": "numeric"}
    sm.write(sm.demo.population(120, seed=8).only(list(columns)), folder / "few.csv")
    source = source_of("few.csv", columns, {})
    measures = [sm.risk.ExactMatch(), sm.utility.QueryError(queries=100)]
    plan = sm.Plan([sm.PRAM(["Age", "Sex"]), sm.Swap("Age", 0.2)], measures, data=source, seed=(1 << 200) + 5)
    (folder / "found.toml").write_text(plan.toml())
    sm.search(source.read(folder), plan, 32, study=folder / "found", workers=1)


@cache
def openapi_document() -> dict[str, Any]:
    """Return the OpenAPI document of the service; it is cached, so callers must not change it."""
    return make_app(Workspace(Path("/nowhere"))).openapi()


@contextmanager
def serve_app(
    workspace: Workspace, authenticator: Authenticator | None = None, *, is_local: bool = True, **client: Any
) -> Iterator[httpx.Client]:
    """Yield a client with the token, for the application behind a real socket in a thread of this process."""
    app = make_app(workspace, authenticator or Authenticator(TOKEN), workers=1, is_local=is_local)
    server = uvicorn.Server(uvicorn_config(app))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        with httpx.Client(
            base_url=f"http://127.0.0.1:{port}", **({"headers": HEAD, "timeout": GUARD} | client)
        ) as made:
            yield made
    finally:
        server.should_exit = True
        thread.join()


@dataclass
class Server:
    """`sdcmap serve` as a separate process."""

    folder: Path
    process: subprocess.Popen[str]
    address: str
    token: str

    @staticmethod
    def start(folder: Path, *options: object, port: int = 0) -> Server:
        command = [sys.executable, "-m", "sdcmap.cli", "serve", "--folder", folder, "--port", port, "--workers", 1]
        process = subprocess.Popen(
            [*map(str, command), *map(str, options)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=os.environ | {"SDCMAP_LEDGER": str(folder / ".ledger")},
        )  # fmt: skip
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], GUARD)
        assert ready, "the server printed nothing"
        address, token = process.stdout.readline().strip(), process.stdout.readline().strip()
        return Server(folder, process, address, token.removeprefix("token for programs: "))

    @property
    def base(self) -> str:
        """The base path of browsers."""
        return "/".join(self.address.split("/")[:4])

    @property
    def port(self) -> int:
        return int(self.address.split("/")[2].rpartition(":")[2])

    def read_next_address(self) -> None:
        """Read the address for the next browser, after a login."""
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip().removeprefix("for another browser: ")

    @property
    def head(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"}

    def end(self, how: int = signal.SIGINT) -> tuple[str, str]:
        """Stop the server, and return what it printed besides its address."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        out, err = self.process.communicate(timeout=GUARD)
        return out, err


def ok(answer: httpx.Response, status: int = 200) -> Any:
    """Return the content of a response, after checking its status."""
    assert answer.status_code == status, answer.text
    return answer.json()
