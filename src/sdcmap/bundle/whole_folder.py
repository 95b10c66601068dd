"""Writing a folder whole or not at all, with the listed names and nothing else."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sdcmap.data.private_folder import private_folder
from sdcmap.errors import SdcmapError
from sdcmap.files.formats import format_named

BESIDE_DATA = (
    "README.md", "CITATION.cff", "codebook.json", "codebook.md", "codebook.xml", "note.json", "note.md", "SHA256SUMS",
)  # fmt: skip
WINDOWS = os.name == "nt"


def listed_names(form: str) -> set[str]:
    """The only names that may be in a release: the data (SAS labels are a program beside them) and what explains it."""
    return {f"data.{form}", *BESIDE_DATA, *(f"data{ending}" for ending in format_named(form).beside)}


def problem_with(folder: Path) -> str | None:
    """Why this folder cannot be written, or None."""
    try:
        if folder.is_dir() and any(folder.iterdir()):
            return f"{folder} is not empty: name a new folder, since only listed names may be in a release."
        if folder.exists() and not folder.is_dir():
            return f"{folder} is a file, and a folder is needed."
        if not folder.parent.is_dir():
            return f"there is no folder {folder.parent} to write in."
    except OSError as error:
        return f"{folder} cannot be written ({error.strerror})."
    return None


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
    strange = {path.name for path in part.iterdir()} - names
    if strange:
        raise SdcmapError(
            f"a release holds listed names alone, and {len(strange)} other files were made; nothing is written."
        )
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
