"""Lock file, licenses and bill of materials agree with pyproject.toml and with each other; the wheel contains them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HOME = Path(__file__).parents[1]
SUPPLY = HOME / "supply"
USER_EXTRAS = ("web", "dask", "r", "learn")
LINE = re.compile(r"([a-z0-9-]+)==(\S+) --hash=sha256:([0-9a-f]{64})")
PROJECT = tomllib.loads((HOME / "pyproject.toml").read_text())["project"]
BILL = json.loads((SUPPLY / "sbom.cdx.json").read_text())


def locked() -> dict[str, tuple[str, str]]:
    """Return the version and the hash of each package of the lock file."""
    lines = (SUPPLY / "requirements.lock").read_text().splitlines()[1:]
    found = [LINE.fullmatch(line) for line in lines]
    assert all(found), "every line has a version and a hash, and no address"
    return {one[1]: (one[2], one[3]) for one in found if one}


def requirements(*extras: str) -> list[Requirement]:
    lists = [PROJECT["dependencies"], *(PROJECT["optional-dependencies"][extra] for extra in extras)]
    return [Requirement(text) for texts in lists for text in texts if not text.startswith("sdcmap[")]


def test_lock_file_meets_every_requirement() -> None:
    for needed in requirements("dev", *USER_EXTRAS):
        version, _ = locked()[canonicalize_name(needed.name)]
        assert needed.specifier.contains(version), f"{needed}: run `make lock`"


def test_no_file_names_a_host() -> None:
    for path in SUPPLY.iterdir():
        assert "://" not in path.read_text(), path


def test_bill_of_materials_agrees_with_lock_file() -> None:
    assert (BILL["bomFormat"], BILL["specVersion"]) == ("CycloneDX", "1.6")
    parts = {part["name"]: part for part in BILL["components"]}
    assert {canonicalize_name(needed.name) for needed in requirements(*USER_EXTRAS)} <= parts.keys()
    page = (SUPPLY / "licenses.md").read_text()
    for name, part in parts.items():
        assert locked()[name] == (part["version"], part["hashes"][0]["content"])
        license = part["licenses"][0]["license"]["name"]
        assert license and f"| {name} | {part['version']} | {license} |" in page


def test_wheel_contains_bill_of_materials_and_licenses(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="building the wheel needs hatchling")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", tmp_path]
    subprocess.run(command, cwd=HOME, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name.partition(".dist-info/")[2]: name for name in archive.namelist()}
        assert {"licenses/LICENSE", "licenses/supply/licenses.md"} <= names.keys()
        assert json.loads(archive.read(names["sboms/sbom.cdx.json"])) == BILL
