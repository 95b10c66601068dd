"""The workbench's JavaScript is formatted, linted and type-checked by the tools that js/package-lock.json pins."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from filelock import FileLock

HOME = Path(__file__).resolve().parents[2] / "js"
INSTALL_SECONDS = 300


@pytest.fixture(scope="session")
def npm() -> str:
    """npm, with the pinned packages installed; they are fetched again only when the lock file has changed."""
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


@pytest.mark.parametrize("script", ["format", "lint"])
def test_javascript_passes(npm: str, script: str) -> None:
    ran = subprocess.run([npm, "run", "--silent", script], cwd=HOME, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_lock_file_names_no_address_and_pins_every_package() -> None:
    text = (HOME / "package-lock.json").read_text("utf-8")
    assert "://" not in text
    assert "resolved" not in text
    pinned = re.findall(r'"devDependencies": \{([^}]*)\}', (HOME / "package.json").read_text("utf-8"))[0]
    assert all(re.fullmatch(r'\s*"[^"]+": "\d[\d.]*"', line) for line in pinned.strip().split(","))
