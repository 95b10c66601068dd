"""A small search that all tests of this folder share."""

from __future__ import annotations

from pathlib import Path

import pytest
from search_samples import BUDGET, people_of, plan_of

import sdcmap as sm
from sdcmap.data.microdata import Microdata
from sdcmap.searches.search_results import SearchResult


@pytest.fixture(scope="session")
def people() -> Microdata:
    return people_of()


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("search") / "study"


@pytest.fixture(scope="session")
def found(people: Microdata, folder: Path) -> SearchResult:
    return sm.search(people, plan_of(), BUDGET, study=folder, workers=1)
