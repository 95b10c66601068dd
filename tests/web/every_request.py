"""Requests that the OpenAPI document allows, and many that it does not, cause no server error.

Run by test_web_requests.py in a process of its own, the only one that loads the plugin of schemathesis.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error

from sdcmap.web.workspace import Workspace
from sizes import GUARD, SOAK, size
from web_workspace import HEAD, openapi_document, serve_app, sweep_study

schema = schemathesis.openapi.from_dict(openapi_document())
# every missing, wrong and extreme parameter is tried in a soak: 1,600 requests
schema.config.phases.update(phases=["examples", "fuzzing", *(["coverage"] if SOAK else [])])
REQUESTED: set[str] = set()
SLOW_OR_LASTING = (
    "/sweep",
    "/releases",
    "/checks",
    "/report",
    "/map.{form}",
    "/preview",
    "/name",
    "/copies",
)  # asked of a real study in test_web_api.py and test_web_study_store.py


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    """One connection for all requests: to open one costs more than most answers."""
    with requests.Session() as made:
        made.trust_env = False  # the way to this machine leads through no proxy
        yield made


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("served").resolve()
    sweep_study(home, rates=(0.05,), replicates=2)
    with serve_app(Workspace(home, upload_limit=1 << 20, ledger=home / ".ledger")) as client:
        yield str(client.base_url)


@schema.parametrize()
@settings(max_examples=size(2, 100), suppress_health_check=list(HealthCheck))
def test_no_request_causes_a_server_error(case: schemathesis.Case, address: str, session: requests.Session) -> None:
    if "name" in case.path_parameters and not case.path.endswith(SLOW_OR_LASTING) and case.method != "DELETE":
        case.path_parameters["name"] = "cps"
    case.call_and_validate(address, session, HEAD, checks=[not_a_server_error], timeout=GUARD)
    REQUESTED.add(case.operation.label)


def test_every_operation_was_requested() -> None:
    assert {operation.ok().label for operation in schema.get_all_operations()} == REQUESTED
