"""The OpenAPI document describes every request; valid and invalid requests cause no server error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from web_workspace import openapi_document

HERE = Path(__file__).parent
AS_WRITTEN = "addopts=-q -ra --strict-markers"  # schemathesis with its plugin, which every other process goes without


@pytest.mark.slow
def test_no_request_causes_a_server_error() -> None:
    command = [sys.executable, "-m", "pytest", "-o", AS_WRITTEN, "-p", "no:cacheprovider", HERE / "every_request.py"]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parents[1], check=False)
    assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr[-2000:]
    asked = sum("summary" in one for path in openapi_document()["paths"].values() for one in path.values())
    assert f"{asked + 1} passed" in ran.stdout


def test_every_operation_has_a_description() -> None:
    operations = [one for path in openapi_document()["paths"].values() for one in path.values()]
    assert len(operations) > 20
    assert all(one["summary"] and one["description"] and one["tags"] for one in operations)
    assert {"files", "plans", "sweeps", "maps", "releases", "swaps"} <= {
        tag for one in operations for tag in one["tags"]
    }
