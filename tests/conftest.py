"""Shared fixtures: the reference folder, its two most used files, a browser, and Hypothesis profiles."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(__file__).resolve().parents[1] / ".numba_cache"))  # for all workers
os.environ.setdefault("NUMBA_NUM_THREADS", "1")  # workers and the processes they start share the cores already
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("POLARS_MAX_THREADS", "1")

import sdcmap as sm
from sdcmap.bundle import ledger_register
from sdcmap.files.stat.statfile_reader import read_statfile
from sdcmap.study import sweep as sweep_module
from sizes import IN_CI, SOAK

# The same examples each time, so that no test fails by chance; new ones, and many more, in a soak. Work is counted, never
# timed: no deadline. --hypothesis-profile=soak chooses too.
settings.register_profile("default", deadline=None, max_examples=6, derandomize=True)
settings.register_profile("soak", deadline=None, max_examples=2_500, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("soak" if SOAK else "default")
sweep_module.POOL_START_SECONDS = (
    1e9  # the cores are taken: a sweep here starts processes only where a test asks for them
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first and the rest from the back of the alphabet, web to bundle: no worker is left alone at the
    end with the longest file."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.path in slow, item.path), reverse=True)


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the reference folder (data/, golden/): $SDCMAP_DATA, or the folder `shared` beside the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared"
    folder = Path(os.environ.get("SDCMAP_DATA") or beside)
    if not (folder / "data").is_dir():
        reason = f"no reference files: {folder} has no folder data/; set SDCMAP_DATA to the folder that holds it"
        if IN_CI:
            pytest.fail(reason)
        pytest.skip(reason)
    return folder


@pytest.fixture(scope="session")
def cps8d(shared: Path) -> sm.Microdata:
    """CPS-8d: 48,842 persons, 8 categorical keys."""
    return sm.read(shared / "data" / "cps8d.parquet", keys="all")


@pytest.fixture(scope="session")
def casc_census(shared: Path) -> sm.Microdata:
    """The CASC file "Census": 1,080 records, 13 numeric variables, the final weight among them as in the paper."""
    return sm.read(shared / "data" / "casc_census.parquet", numeric="all")


@pytest.fixture
def read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sound SPSS, Stata and SAS files are read in this process: the process apart finds the same, later, as
    files/test_statistics_files.py holds."""
    monkeypatch.setattr("sdcmap.files.stat.read_in_subprocess", read_statfile)


@pytest.fixture(autouse=True)
def own_draws(request: pytest.FixtureRequest) -> None:
    """Reset a module's generator RNG in each test, so that tests do not depend on each other."""
    rng = getattr(request.module, "RNG", None)
    if rng is not None:
        rng.bit_generator.state = request.module.__dict__.setdefault("RNG_BEGINS", rng.bit_generator.state)


HOME_STATE = Path.home() / ".local" / "state" / "sdcmap"
find_state_folders = ledger_register.state_folders


def use_own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the ledgers that fixtures use, and their commands, out of the register of the user who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


session_state = pytest.fixture(use_own_state, scope="session", autouse=True)
module_state = pytest.fixture(use_own_state, scope="module", autouse=True)


@pytest.fixture(autouse=True)
def state_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test a ledger and a register of its own: what another test, or an earlier run, released is none of its."""
    home = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    monkeypatch.setattr(
        ledger_register, "state_folders", lambda: (at for at in find_state_folders() if at != HOME_STATE)
    )
    return home / "sdcmap"


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return a browser; headless mode takes two thirds of the processor time."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        if IN_CI:
            pytest.fail("no chromium: .ci/run installs it")
        pytest.skip("no chromium on this machine")
    return found
