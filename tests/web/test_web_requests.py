"""What the OpenAPI document says of every request, and what requests by it, and against it, do to a server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from webroom import document

HERE = Path(__file__).parent
AS_WRITTEN = "addopts=-q -ra --strict-markers"  # schemathesis with its plugin, which every other process goes without


@pytest.mark.slow
def test_no_request_makes_the_server_fail() -> None:
    command = [sys.executable, "-m", "pytest", "-o", AS_WRITTEN, "-p", "no:cacheprovider", HERE / "every_request.py"]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parents[1], check=False)
    assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr[-2000:]
    asked = sum("summary" in one for path in document()["paths"].values() for one in path.values())
    assert f"{asked + 1} passed" in ran.stdout


def test_every_operation_is_described() -> None:
    operations = [one for path in document()["paths"].values() for one in path.values()]
    assert len(operations) > 20
    assert all(one["summary"] and one["description"] and one["tags"] for one in operations)
    assert {"files", "plans", "sweeps", "maps", "releases", "swaps"} <= {
        tag for one in operations for tag in one["tags"]
    }
