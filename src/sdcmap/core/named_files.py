"""Files that a value names by path. A value contains no data; a digest in its spec says which content is meant.

Every such path is resolved here, for scripts, commands, the workbench and workers. Inside `restrict_files_to(folder)`,
relative paths start at the folder, and hidden files or files outside it count as missing.
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
DIGEST_DIGITS = 16  # hexadecimal digits of the SHA-256 that a value states
PATH_FIELDS = ("archive", "control_file", "hierarchy", "matrix", "population", "tables")
DIGEST = rf"[0-9a-f]{{{DIGEST_DIGITS}}}"
NO_DIGEST = "0" * DIGEST_DIGITS  # in public values, which name a file by its role and can be read without it
_FILE_ROOT: ContextVar[Path | None] = ContextVar("sdcmap file root", default=None)


@contextmanager
def restrict_files_to(root: Path | None) -> Iterator[None]:
    """Let values name files of this folder only, in this block and this thread; None: any file."""
    before = _FILE_ROOT.set(None if root is None else root.resolve())
    try:
        yield
    finally:
        _FILE_ROOT.reset(before)


def current_file_root() -> Path | None:
    """Return the folder that values may currently name files of, to pass it on to workers; None: any."""
    return _FILE_ROOT.get()


def with_current_file_root(task: Callable[Given, Result]) -> Callable[Given, Result]:
    """Return `task` restricted to the current folder, whichever thread of this process runs it."""
    root = current_file_root()

    def run(*given: Given.args, **named: Given.kwargs) -> Result:
        with restrict_files_to(root):
            return task(*given, **named)

    return run


def _resolve(path: str) -> Path:
    """Return the path of a file that a value names, or raise FileNotFoundError where it is missing or not allowed."""
    root = _FILE_ROOT.get()
    full = Path(path) if root is None else (root / path).resolve()
    # checked after `resolve`, so that neither ".." nor a symbolic link leads out of the folder
    allowed = root is None or (
        root in full.parents and not any(part.startswith(".") for part in full.relative_to(root).parts)
    )
    if "\0" in path or not allowed or not full.is_file():
        raise FileNotFoundError
    return full


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:DIGEST_DIGITS]


class NamesFiles(Protocol):
    """A value that names one or several files and states their digests."""

    @property
    def sha256(self) -> str | tuple[str, ...]: ...


def digest_of(path: str, field: str) -> str:
    """Return the digest of a file that a value names, or raise PlanError."""
    try:
        return _digest(_resolve(path))
    except (OSError, ValueError):
        raise PlanError(f"{field}: there is no file {path} to read.") from None


def digest_problems(value: NamesFiles) -> Iterator[str]:
    """Yield what is wrong with the stated digest of a value, each as the second part of a sentence."""
    field, paths = _paths_of(value)
    stated = (value.sha256,) if isinstance(value.sha256, str) else value.sha256
    if any(stated) and not paths:
        yield ".sha256 is stated, but no file is named."
    elif any(stated) and not (len(stated) == len(paths) and all(re.fullmatch(DIGEST, text) for text in stated)):
        yield f".sha256 must be the first {DIGEST_DIGITS} hexadecimal digits of the SHA-256 of .{field}, in small letters."


def fill_digest(value: NamesFiles) -> None:
    """Fill in the digests of the files that a value names, where none are stated."""
    field, paths = _paths_of(value)
    if paths and not value.sha256:
        digests = tuple(digest_of(path, f"{type(value).__name__}.{field}") for path in paths)
        object.__setattr__(value, "sha256", digests[0] if isinstance(value.sha256, str) else digests)


def _paths_of(value: NamesFiles) -> tuple[str, tuple[str, ...]]:
    """Return the field of a value that contains paths, and the paths. PRAM.matrix may contain numbers instead."""
    for field in PATH_FIELDS:
        given = getattr(value, field, "")
        if given and isinstance(given if isinstance(given, str) else given[0], str):
            return field, (given,) if isinstance(given, str) else given
    return "", ()


def read_verified(path: str, digest: str) -> bytes:
    """Return the content of the file, or raise SchemaError where it is missing or differs from the stated digest."""
    return verify_file(path, digest).read_bytes()


def verify_file(path: str, digest: str) -> Path:
    """Return the path of the file, or raise SchemaError where it is missing or differs from the stated digest."""
    try:
        full = _resolve(path)
        sha256 = _digest(full)
    except (OSError, ValueError):
        raise SchemaError(f"there is no file {path} to read.") from None
    if sha256 != digest:
        raise SchemaError(f"{path} is not the file that was named: its SHA-256 differs from the stated one.")
    return full
