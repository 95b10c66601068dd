"""Fixtures of the workbench's tests: finished studies, a server, a Chromium, and a logged-in browser.

A test that changes a study uses its own copy of it.
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

from browser_pages import LoggedInBrowser
from sdcmap.web import service
from sdcmap.web.workspace import Workspace
from web_workspace import Server, finished_studies, serve_app

CHROMIUM_OPTIONS = ("--no-sandbox", "--disable-gpu", "--in-process-gpu")  # render on the CPU, in few processes
service.PRELOAD_DELAY_SECONDS = 1e6  # servers in the test process preload nothing


@pytest.fixture(scope="session")
def template_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with people.csv and finished studies, which tests copy and never change; the first worker makes it."""
    own = tmp_path_factory.getbasetemp().resolve()
    home = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "finished"
    with home.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.exists():
            draft = tmp_path_factory.mktemp("draft").resolve()
            finished_studies(draft)
            draft.rename(home)
    return home


@pytest.fixture(scope="module")
def folder(template_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy for each module, for servers in this process."""
    return shutil.copytree(template_folder, tmp_path_factory.mktemp("served").resolve() / "home")


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[httpx.Client]:
    """A client of a server in this process over the module's folder."""
    with serve_app(Workspace(folder, ledger=folder / ".ledger")) as http_client:
        yield http_client


@pytest.fixture(scope="session")
def server(template_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """`sdcmap serve` over a copy, for the tests in a browser."""
    server = Server.start(shutil.copytree(template_folder, tmp_path_factory.mktemp("served").resolve() / "home"))
    yield server
    server.end()


@pytest.fixture(scope="module")  # its event loop ends with the module: others have their own
def browser(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_OPTIONS)
        yield running
        running.close()


@pytest.fixture(scope="module")
def browser_session(browser: Browser, server: Server) -> Iterator[LoggedInBrowser]:
    """A logged-in browser in which tests open pages."""
    session = LoggedInBrowser(browser, server)
    yield session
    session.context.close()
