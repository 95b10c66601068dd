"""The path of a new user: from an unknown file to a release, only with commands from the README."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from commands import sdcmap
from documents import ROOT, script

SEED = 2**255 + 1  # in place of 256 random bits, so that the test does the same each time


@pytest.fixture
def unseen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a survey in another locale: semicolons, decimal commas, a column of names."""
    rng = np.random.default_rng(5)
    people = {
        "name": [f"Person {i}" for i in range(200)],
        "kanton": rng.choice(["ZH", "BE", "GE"], 200),
        "alter": rng.integers(2, 6, 200) * 10,
        "geschlecht": rng.choice(["m", "w"], 200),
        "lohn": [f"{wage:.0f}00,5" for wage in rng.lognormal(3.8, 0.4, 200)],
    }
    pl.DataFrame(people).write_csv(tmp_path / "umfrage.csv", separator=";")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("secrets.randbits", lambda bits: SEED)
    monkeypatch.setenv("SDCMAP_LEDGER", str(tmp_path / "ledger"))
    return tmp_path


def documented(*words: object) -> tuple[object, ...]:
    """Return the arguments of a command; the README must name it with these options."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8") + script("make_pages").cli_page()
    assert re.search(rf"^ *sdcmap {words[0]}\b", readme, re.MULTILINE), words[0]
    assert [word for word in words if str(word).startswith("--") and f"`{word}`" not in readme] == []
    return words


def test_from_an_unseen_file_to_a_release(unseen: Path) -> None:
    contract = ("--profile", "scientific-use")
    said = sdcmap(*documented("look", "umfrage.csv", "--sensitive", "lohn", *contract, "-o", "plan.toml"))
    assert "identifier" in said.stdout  # it sees who must not leave
    assert "is valid" in sdcmap(*documented("check", "plan.toml")).stdout
    sdcmap(*documented("sweep", "plan.toml", "-o", "study", "--workers", 1))
    assert sdcmap(*documented("choose", "study")).stdout.startswith("Recommended: ")
    sdcmap(*documented("map", "study", "-o", "map.html"))
    sdcmap(*documented("release", "study", "-o", "public", "--confirm-roles"))
    assert (unseen / "map.html").stat().st_size > 100_000
    sums = [line.split() for line in (unseen / "public" / "SHA256SUMS").read_text().splitlines()]
    assert [
        name for digest, name in sums if sha256((unseen / "public" / name).read_bytes()).hexdigest() != digest
    ] == []
    columns = pl.read_csv(unseen / "public" / "data.csv").columns
    assert sorted(columns) == ["alter", "geschlecht", "kanton", "lohn"]  # nobody's name
