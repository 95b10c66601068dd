"""Small private text files, written whole or not at all."""

from __future__ import annotations

from pathlib import Path

from sdcmap.errors import SdcmapError


def write_whole(path: Path, text: str) -> Path:
    """Write a private text file aside and rename it, so that a full disk or a kill leaves the old one."""
    part = path.with_name(f"{path.name}.part")
    try:
        part.touch(mode=0o600)
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise SdcmapError(f"{path} cannot be written ({error.strerror}).") from None
    return path
