"""The workbench's JavaScript is formatted, linted and type-checked by the tools that js/package-lock.json pins."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

HOME = Path(__file__).resolve().parents[2] / "js"
INSTALL_SECONDS = 300


@pytest.fixture(scope="session")
def npm() -> str:
    """Return npm after installing the pinned packages; they are installed again only if the lock file changed."""
    found = shutil.which("npm")
    if found is None or shutil.which("node") is None:
        pytest.skip("no Node: install Node 20 or later with npm to check the JavaScript")
    digest = hashlib.sha256((HOME / "package-lock.json").read_bytes()).hexdigest()[:16]
    installed = HOME / "node_modules" / f".installed-{digest}"
    with FileLock(HOME / ".installing"):
        if not installed.exists():
            try:
                fetched = subprocess.run([found, "ci"], cwd=HOME, capture_output=True, timeout=INSTALL_SECONDS)
            except subprocess.TimeoutExpired:
                pytest.skip(f"npm could not install the packages of js/ within {INSTALL_SECONDS} seconds")
            if fetched.returncode:
                pytest.skip("npm cannot install the packages of js/: is there a package registry?")
            installed.touch()
    return found


@pytest.fixture(scope="module")
def types() -> Path:
    """The types of the answers, made once from the service's own description, where `tsc` looks for them."""
    subprocess.run([sys.executable, HOME / "make_types.py"], check=True)
    return HOME / "api.d.ts"


@pytest.mark.parametrize("script", ["format", "lint", "types"])
def test_javascript_passes(npm: str, types: Path, script: str) -> None:
    ran = subprocess.run([npm, "run", "--silent", script], cwd=HOME, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_type_check_finds_unknown_field(npm: str, types: Path, tmp_path: Path) -> None:
    """A page that reads `choice.reasons` fails, because the service sends `reason`."""
    shutil.copy(types, tmp_path)
    (tmp_path / "page.js").write_text(
        "/** @param {Api.ChosenCandidate} choice */\nexport const f = (choice) => choice.reasons;"
    )
    tsc = [
        HOME / "node_modules" / ".bin" / "tsc",
        "--checkJs",
        "--noEmit",
        "--strict",
        "--types",
        "",
        "page.js",
        types.name,
    ]
    ran = subprocess.run(tsc, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode and "'reasons' does not exist" in ran.stdout and ran.stdout.count("error TS") == 1


def test_lock_file_pins_every_package_without_address() -> None:
    text = (HOME / "package-lock.json").read_text("utf-8")
    assert "://" not in text
    assert "resolved" not in text
    pinned = re.findall(r'"devDependencies": \{([^}]*)\}', (HOME / "package.json").read_text("utf-8"))[0]
    assert all(re.fullmatch(r'\s*"[^"]+": "\d[\d.]*"', line) for line in pinned.strip().split(","))
