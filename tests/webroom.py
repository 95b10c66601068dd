"""What the tests of the workbench share: a folder with a file and a study, and a server over it."""

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
from sdcmap.explore.looking import source_of
from sdcmap.web.entrance import Entrance
from sdcmap.web.room import Room
from sdcmap.web.server import settings
from sdcmap.web.service import make_app
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
    **more: Any,
) -> sm.Plan:
    """A small plan whose rule some candidates pass and some do not."""
    source = source_of(file, ROLES, {})
    data = source.read(folder)
    limit = round(0.95 * sm.score(data, data, sm.SmallCells())["SmallCells"].value, 4)
    return sm.Plan(
        sm.grid(sm.Swap, on=sm.subsets(KEYS, 1, 2), rate=list(rates)), [sm.SmallCells(), sm.Hellinger(), *measures],
        replicates=replicates, rule=sm.Threshold(risk=limit), data=source, seed=(1 << 200) + 7, **more,
    )  # fmt: skip


def endless_plan(folder: Path) -> sm.Plan:
    """A plan whose sweep is never over while a test looks on: few candidates, so that counting them is quick, each slow."""
    return plan_of(folder, replicates=100, measures=[sm.utility.QueryError(queries=20_000)])


def decided(folder: Path, name: str = "known") -> sm.Plan:
    """A folder with people.csv and a finished study of what intruder and society know; some is safe, some not."""
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
    plan = sm.Plan(methods, measures, replicates=2, data=source, seed=(1 << 200) + 9)
    (folder / f"{name}.toml").write_text(plan.toml())
    sm.sweep(plan.data.read(folder), plan, folder / name, workers=1)  # type: ignore[union-attr]
    return plan


def swept(folder: Path, name: str = "cps", **how: Any) -> sm.Plan:
    """A folder with people.csv and a finished study of this name."""
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
    that masks the keys unnamed, and a chain, `known` of what intruder and society know, `found` by a search; `fresh` was
    not begun."""
    fresh = swept(folder)
    (folder / "fresh.toml").write_text(fresh.toml())
    swept(folder, "axes", rates=(0.05,), replicates=2, measures=[COUNTED, SILENT, ALIKE], risk="SmallCells")
    swept(folder, "small", rates=(0.05,), replicates=1)
    decided(folder)
    source = source_of("people.csv", ROLES, {})
    chain = sm.Chain((sm.Noise(on="wage", variance=0.3), sm.Swap("Sex", 0.05)))
    blank = sm.Plan(
        [sm.Suppress(k=2), chain], [sm.risk.KAnonymity(k=2), sm.Hellinger()], data=source, seed=(1 << 200) + 3
    )
    (folder / "blank.toml").write_text(blank.toml())
    sm.sweep(source.read(folder), blank, folder / "blank", workers=1)
    searched(folder)


def searched(folder: Path) -> None:
    """few.csv and the study `found` of a search on it."""
    columns = {"Age": "key", "Sex": "key", "wage": "numeric"}
    sm.write(sm.demo.population(120, seed=8).only(list(columns)), folder / "few.csv")
    source = source_of("few.csv", columns, {})
    measures = [sm.risk.ExactMatch(), sm.utility.QueryError(queries=100)]
    plan = sm.Plan([sm.PRAM(["Age", "Sex"]), sm.Swap("Age", 0.2)], measures, data=source, seed=(1 << 200) + 5)
    (folder / "found.toml").write_text(plan.toml())
    sm.search(source.read(folder), plan, 32, study=folder / "found", workers=1)


@cache
def document() -> dict[str, Any]:
    """What the service says of itself; made once, so nobody writes into it."""
    return make_app(Room(Path("/nowhere"))).openapi()


@contextmanager
def served(room: Room, entrance: Entrance | None = None, **client: Any) -> Iterator[httpx.Client]:
    """The application over `room` behind a real socket, in a thread of this process, and a client that has the token."""
    app = make_app(room, entrance or Entrance(TOKEN), workers=1)
    server = uvicorn.Server(settings(app))
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
    """`sdcmap serve` as a process of its own."""

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
        """What stands before every path of a browser."""
        return "/".join(self.address.split("/")[:4])

    @property
    def port(self) -> int:
        return int(self.address.split("/")[2].rpartition(":")[2])

    def came_in(self) -> None:
        """A browser has used the address: the next one has another."""
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip().removeprefix("for another browser: ")

    @property
    def head(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"}

    def end(self, how: int = signal.SIGINT) -> tuple[str, str]:
        """Stop it; what it printed besides its address."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        out, err = self.process.communicate(timeout=GUARD)
        return out, err


def ok(answer: httpx.Response, status: int = 200) -> Any:
    """What a service answered, where its status is the one that was expected."""
    assert answer.status_code == status, answer.text
    return answer.json()
