"""Files that a value names by path: no field holds data, and the digest in the spec says which content was meant.

Every such path is looked up here, whoever reads the plan: a script, a command, the workbench or a worker. In a room
(`restrict_files_to`) relative paths start at the room; what lies outside it, or is hidden in it, counts as missing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import ParamSpec, Protocol, TypeVar

from sdcmap.errors import PlanError, SchemaError

Given = ParamSpec("Given")
Result = TypeVar("Result")
DIGEST_DIGITS = 16  # hexadecimal digits of the SHA-256 that a value holds
PATH_FIELDS = ("archive", "control_file", "hierarchy", "matrix", "population", "tables")  # fields that hold paths
DIGEST = rf"[0-9a-f]{{{DIGEST_DIGITS}}}"
NO_DIGEST = "0" * DIGEST_DIGITS  # of a file that goes by its role: such a value can be read where the file is not
_FILE_ROOT: ContextVar[Path | None] = ContextVar("sdcmap room", default=None)


@contextmanager
def restrict_files_to(room: Path | None) -> Iterator[None]:
    """In this block, and in this thread alone, values name files of this folder only; None: any file."""
    before = _FILE_ROOT.set(None if room is None else room.resolve())
    try:
        yield
    finally:
        _FILE_ROOT.reset(before)


def current_file_root() -> Path | None:
    """The folder that values may name files of at present, for workers to be told; None: any."""
    return _FILE_ROOT.get()


def with_current_file_root(task: Callable[Given, Result]) -> Callable[Given, Result]:
    """`task` in the room that holds here, whichever thread of this process runs it."""
    room = current_file_root()

    def run(*given: Given.args, **named: Given.kwargs) -> Result:
        with restrict_files_to(room):
            return task(*given, **named)

    return run


def _resolve(path: str) -> Path:
    """Where a file that a value names lies; FileNotFoundError where there is none, or none that may be named."""
    room = _FILE_ROOT.get()
    place = Path(path) if room is None else (room / path).resolve()
    allowed = room is None or (
        room in place.parents and not any(part.startswith(".") for part in place.relative_to(room).parts)
    )
    if "\0" in path or not allowed or not place.is_file():
        raise FileNotFoundError
    return place


def _digest(place: Path) -> str:
    with place.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:DIGEST_DIGITS]


class NamesFiles(Protocol):
    """A value that names files and states their digests, one or several."""

    @property
    def sha256(self) -> str | tuple[str, ...]: ...


def digest_of(path: str, field: str) -> str:
    """The digest of a file that a value is made with, or PlanError."""
    try:
        return _digest(_resolve(path))
    except (OSError, ValueError):
        raise PlanError(f"{field}: there is no file {path} to read.") from None


def digest_problems(value: NamesFiles) -> Iterator[str]:
    """What is wrong with the stated digest of a value that names files, the second half of a sentence."""
    field, paths = _paths_of(value)
    stated = (value.sha256,) if isinstance(value.sha256, str) else value.sha256
    if any(stated) and not paths:
        yield ".sha256 belongs to a file, and no file is named."
    elif any(stated) and not (len(stated) == len(paths) and all(re.fullmatch(DIGEST, text) for text in stated)):
        yield f".sha256 must be the first {DIGEST_DIGITS} hexadecimal digits of the SHA-256 of .{field}, in small letters."


def fill_digest(value: NamesFiles) -> None:
    """State the digests of the files that a value names, where none are stated."""
    field, paths = _paths_of(value)
    if paths and not value.sha256:
        digests = tuple(digest_of(path, f"{type(value).__name__}.{field}") for path in paths)
        object.__setattr__(value, "sha256", digests[0] if isinstance(value.sha256, str) else digests)


def _paths_of(value: NamesFiles) -> tuple[str, tuple[str, ...]]:
    """The field of a value that holds paths, and these; PRAM.matrix may hold numbers instead."""
    for field in PATH_FIELDS:
        given = getattr(value, field, "")
        if given and isinstance(given if isinstance(given, str) else given[0], str):
            return field, (given,) if isinstance(given, str) else given
    return "", ()


def read_verified(path: str, digest: str) -> bytes:
    """What the file holds; SchemaError unless it is there and is the one that was named."""
    return verify_file(path, digest).read_bytes()


def verify_file(path: str, digest: str) -> Path:
    """Where the file lies, to be opened; SchemaError unless it is there and has the content that was named."""
    try:
        place = _resolve(path)
        sha256 = _digest(place)
    except (OSError, ValueError):
        raise SchemaError(f"there is no file {path} to read.") from None
    if sha256 != digest:
        raise SchemaError(f"{path} is not the file that was named: its SHA-256 does not begin as stated.")
    return place
