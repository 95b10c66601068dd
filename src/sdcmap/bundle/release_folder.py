"""The folder of a release: which names it holds, made beside its place and put there whole, and a preview of its files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sdcmap.bundle.checks import Check
from sdcmap.bundle.codebook import Entry
from sdcmap.bundle.readme import FILES
from sdcmap.data.private_folder import private_folder
from sdcmap.errors import SdcmapError
from sdcmap.files.formats import format_named

BESIDE_DATA = ("README.md", *FILES)  # which are what README lists
WINDOWS = os.name == "nt"


def listed_names(form: str) -> set[str]:
    """The only names that may be in a release: the data (SAS labels are a program beside them) and what explains it."""
    return {f"data.{form}", *BESIDE_DATA, *(f"data{ending}" for ending in format_named(form).beside)}


def problem_with(folder: Path) -> str:
    """Why this folder cannot be written; empty where it can."""
    try:
        if folder.is_dir() and any(folder.iterdir()):
            return f"{folder} is not empty: name a new folder, since only listed names may be in a release."
        if folder.exists() and not folder.is_dir():
            return f"{folder} is a file, and a folder is needed."
        return "" if folder.parent.is_dir() else f"there is no folder {folder.parent} to write in."
    except OSError as error:
        return f"{folder} cannot be written ({error.strerror})."


@contextmanager
def part_folder(folder: Path) -> Iterator[Path]:
    """A private folder beside it to write in; gone when the block fails or ends without `put_in_place`."""
    try:
        with private_folder(folder.parent) as part:
            yield part
    except OSError as error:
        raise SdcmapError(f"{folder} cannot be written ({error.strerror or type(error).__name__}).") from None


def put_in_place(part: Path, folder: Path, names: set[str]) -> None:
    """Move the finished folder to its name in one step, after all of it is on the disk."""
    if strange := {path.name for path in part.iterdir()} - names:
        made = f"{len(strange)} other files were made; nothing is written"
        raise SdcmapError(f"a release holds listed names alone, and {made}.")
    for path in [*part.iterdir(), part]:
        _to_disk(path)
    if WINDOWS and folder.exists():
        folder.rmdir()  # it is empty, or this fails
    part.rename(folder)  # onto an empty folder too, and onto nothing else
    _to_disk(folder.parent)


def checksums(part: Path) -> str:
    """The text of SHA256SUMS, as `sha256sum --check` reads it."""
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(part.iterdir()))


def _to_disk(path: Path) -> None:
    if WINDOWS and path.is_dir():
        return  # a folder cannot be opened there
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


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
    return Preview(list(checks), tuple(map(_seen, order)), tuple(json.loads(codebook.read_text(encoding="utf-8"))))


def _seen(path: Path) -> Previewed:
    size = path.stat().st_size
    if path.suffix not in TEXTS:
        return Previewed(path.name, size, "", whole=False)
    with path.open(encoding="utf-8", errors="replace") as file:
        text = file.read(CHARACTERS + 1)
    head = "".join(text[:CHARACTERS].splitlines(keepends=True)[:LINES])
    return Previewed(path.name, size, head, whole=head == text)
