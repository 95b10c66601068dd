"""Files that a value names by path: no field holds data, and the digest in the spec says which content was meant."""

from __future__ import annotations

import hashlib
from pathlib import Path

from sdcmap.errors import PlanError, SchemaError

SHOWN = 16  # hexadecimal digits of the SHA-256 that a value holds


def file_digest(path: str) -> str:
    """The first digits of the SHA-256 of a file."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:SHOWN]


def digest_of(path: str, field: str) -> str:
    """The digest of a file that a value is made with, or PlanError."""
    try:
        return file_digest(path)
    except OSError:
        raise PlanError(f"{field}: there is no file {path} to read.") from None


def is_digest(text: str) -> bool:
    """Whether this can be the beginning of a SHA-256."""
    return len(text) == SHOWN and not set(text) - set("0123456789abcdef")


def check_digest(path: str, digest: str) -> None:
    """SchemaError unless the file is there and has the content that was named."""
    try:
        sha256 = file_digest(path)
    except OSError:
        raise SchemaError(f"there is no file {path} to read.") from None
    if sha256 != digest:
        raise SchemaError(f"{path} is not the file that was named: its SHA-256 does not begin as stated.")
