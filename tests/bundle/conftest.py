"""What tests of releases share: persons, and a ledger of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

import sdcmap as sm
from samples import ROLES, people


@pytest.fixture(autouse=True)
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ledger of the test's own."""
    monkeypatch.setenv("SDCMAP_LEDGER", str(tmp_path / "ledger"))
    return tmp_path / "ledger"


@pytest.fixture
def persons() -> sm.Microdata:
    return sm.read(people(), **ROLES)
