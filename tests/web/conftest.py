"""What tests of the workbench share, each made once: finished studies, a server, a Chromium, and a browser that is let in.

A test that changes a study takes a copy under a name of its own: `copied(server.folder, "cps", "mine")`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, sync_playwright

from sdcmap.web import service
from sdcmap.web.room import Room
from visiting import Inside
from webroom import Server, finished_studies, served

ALONE = ("--no-sandbox", "--disable-gpu", "--in-process-gpu")  # pictures are made by the processor, in fewer processes
service.QUIET_SECONDS = 1e6  # a server in the tests' own process draws what is asked for, when it is


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """people.csv and its finished studies, to be copied: nobody writes here. Of all workers the first one makes them."""
    own = tmp_path_factory.getbasetemp().resolve()
    home = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "finished"
    with home.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.exists():
            making = tmp_path_factory.mktemp("making").resolve()
            finished_studies(making)
            making.rename(home)
    return home


@pytest.fixture(scope="module")
def folder(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A module's own copy, for servers in this process."""
    return shutil.copytree(finished, tmp_path_factory.mktemp("served").resolve() / "home")


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[httpx.Client]:
    """Who asks a server in this process over the module's folder."""
    with served(Room(folder, ledger=folder / ".ledger")) as made:
        yield made


@pytest.fixture(scope="session")
def server(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """`sdcmap serve` over a copy, for every story in a browser."""
    made = Server.start(shutil.copytree(finished, tmp_path_factory.mktemp("served").resolve() / "home"))
    yield made
    made.end()


@pytest.fixture(scope="module")  # its event loop ends with the module: others have their own
def browser(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=ALONE)
        yield running
        running.close()


@pytest.fixture(scope="module")
def inside(browser: Browser, server: Server) -> Iterator[Inside]:
    """A browser that has used the server's address: a story opens pages in it."""
    made = Inside(browser, server)
    yield made
    made.context.close()
