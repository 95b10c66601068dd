"""What a release would hold, looked at before it is written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sdcmap.bundle.checks import Check
from sdcmap.bundle.codebook import Entry

LINES, CHARACTERS = 14, 2_000  # of the head of a file
TEXTS = {".md", ".json", ".xml", ".cff", ".csv", ".tsv", ".sas", ""}


@dataclass(frozen=True)
class Previewed:
    """A file of a bundle: its size in bytes, its first lines where it is text, and whether they are all of it."""

    name: str
    bytes: int
    head: str
    whole: bool


@dataclass(frozen=True)
class Preview:
    """What would leave: every check, every file, and the codebook; without files where the data cannot be read back."""

    checks: list[Check]
    files: tuple[Previewed, ...]
    codebook: tuple[Entry, ...]


def previewed(folder: Path, checks: Sequence[Check]) -> Preview:
    """The bundle that lies in a folder; README first, then the data, then the rest by name."""
    codebook = folder / "codebook.json"
    if not codebook.is_file():  # it was not explained, since it cannot be read back
        return Preview(list(checks), (), ())
    order = sorted(folder.iterdir(), key=lambda path: (path.stem != "README", path.stem != "data", path.name))
    entries = json.loads(codebook.read_text(encoding="utf-8"))
    return Preview(list(checks), tuple(_seen(path) for path in order), tuple(entries))


def _seen(path: Path) -> Previewed:
    size = path.stat().st_size
    if path.suffix not in TEXTS:
        return Previewed(path.name, size, "", whole=False)
    with path.open(encoding="utf-8", errors="replace") as file:
        text = file.read(CHARACTERS + 1)
    head = "".join(text[:CHARACTERS].splitlines(keepends=True)[:LINES])
    return Previewed(path.name, size, head, whole=head == text)
