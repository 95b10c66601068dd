"""The folder of a release: the names it may contain, its move into place in one step, and a preview of its files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sdcmap.bundle.checks import Check
from sdcmap.bundle.codebook import Entry
from sdcmap.bundle.readme import FILES
from sdcmap.core.formatting import escape_markdown
from sdcmap.data.private_folder import WINDOWS, private_folder, sync_to_disk
from sdcmap.errors import SdcmapError
from sdcmap.files.formats import format_named

DOCUMENTS = ("README.md", *FILES)  # the README lists the others


def allowed_names(form: str) -> set[str]:
    """Return the only file names that a release may contain: the data, their label program, and the documents."""
    return {f"data.{form}", *DOCUMENTS, *(f"data{ending}" for ending in format_named(form).beside)}


def find_folder_problem(folder: Path) -> str:
    """Return why this folder cannot be written; empty where it can."""
    try:
        if folder.is_dir() and any(folder.iterdir()):
            return f"{folder} is not empty. Name a new folder: a release contains nothing but its own files."
        if folder.exists() and not folder.is_dir():
            return f"{folder} is a file. Name a folder."
        return "" if folder.parent.is_dir() else f"there is no folder {folder.parent} to write in."
    except OSError as error:
        return f"{folder} cannot be written ({error.strerror})."


@contextmanager
def part_folder(folder: Path) -> Iterator[Path]:
    """Yield a private folder next to `folder` to write in; it is removed unless `put_in_place` renames it."""
    try:
        with private_folder(folder.parent) as part:
            yield part
    except OSError as error:
        raise SdcmapError(f"{folder} cannot be written ({error.strerror or type(error).__name__}).") from None


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a private folder among the temporary files; it is removed at the end."""
    try:
        with private_folder() as folder:
            yield folder
    except OSError as error:
        raise SdcmapError(f"the temporary folder cannot be written ({error.strerror}).") from None


def put_in_place(part: Path, folder: Path, names: set[str]) -> None:
    """Rename the finished folder in one step, after all of it is on the disk."""
    if unexpected := {path.name for path in part.iterdir()} - names:
        problem = f"the bundle contains {len(unexpected)} files that a release may not contain"
        raise SdcmapError(f"{problem}. Nothing was released.")
    for path in [*part.iterdir(), part]:
        sync_to_disk(path)
    if WINDOWS and folder.exists():
        folder.rmdir()  # fails unless the folder is empty
    part.rename(folder)  # replaces an empty folder, and fails otherwise
    sync_to_disk(folder.parent)


def write_documents(part: Path, texts: Mapping[str, str]) -> None:
    """Write the documents beside the data, and the checksums of all files; names and labels are no HTML in Markdown."""
    for name, text in texts.items():
        page = escape_markdown(text) if name.endswith(".md") else text
        (part / name).write_text(page, encoding="utf-8")
    (part / "SHA256SUMS").write_text(checksums(part), encoding="utf-8")


def checksums(part: Path) -> str:
    """Return the text of SHA256SUMS, as `sha256sum --check` reads it."""
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(part.iterdir()))


PREVIEW_LINES, PREVIEW_CHARACTERS = 14, 2_000  # of each file; enough to recognize it
TEXT_SUFFIXES = {".md", ".json", ".xml", ".cff", ".csv", ".tsv", ".sas", ""}


@dataclass(frozen=True)
class FilePreview:
    """A file of a bundle."""

    name: str
    bytes: int
    head: str  # the first lines of a text file
    whole: bool  # whether `head` is the whole file


@dataclass(frozen=True)
class Preview:
    """What would be released: every check, every file and the codebook; no files where the data do not read back."""

    checks: list[Check]
    files: tuple[FilePreview, ...]
    codebook: tuple[Entry, ...]


def preview_folder(folder: Path, checks: Sequence[Check]) -> Preview:
    """Return the preview of the bundle in a folder: the README, then the data, then the rest by name."""
    codebook = folder / "codebook.json"
    if not codebook.is_file():  # without a codebook the bundle was not finished: the data do not read back
        return Preview(list(checks), (), ())
    order = sorted(folder.iterdir(), key=lambda path: (path.stem != "README", path.stem != "data", path.name))
    return Preview(
        list(checks), tuple(map(_preview_file, order)), tuple(json.loads(codebook.read_text(encoding="utf-8")))
    )


def _preview_file(path: Path) -> FilePreview:
    size = path.stat().st_size
    if path.suffix not in TEXT_SUFFIXES:
        return FilePreview(path.name, size, "", whole=False)
    with path.open(encoding="utf-8", errors="replace") as file:
        text = file.read(PREVIEW_CHARACTERS + 1)
    head = "".join(text[:PREVIEW_CHARACTERS].splitlines(keepends=True)[:PREVIEW_LINES])
    return FilePreview(path.name, size, head, whole=head == text)
