"""Files written whole or not at all: aside first, then renamed, so that a full disk or a kill leaves the old one.

What shows data is private: its owner alone may read it (mode 0600).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sdcmap.data.private_folder import private_folder
from sdcmap.errors import SdcmapError


@contextmanager
def aside(path: Path, *, private: bool = True) -> Iterator[Path]:
    """Where to write the file `path`, and others beside it: in a private folder; its files take their places at the end."""
    path = path.resolve()
    if path.exists() and not path.is_file():  # such as /dev/stdout
        yield path
        return
    with private_folder(path.parent) as folder:
        yield folder / path.name
        for file in folder.iterdir():
            if private:
                file.chmod(0o600)
            file.replace(path.with_name(file.name))


def write_whole(path: Path, content: str | bytes, *, private: bool = True) -> Path:
    """Write a file, whole or not at all; SdcmapError where the disk does not take it."""
    try:
        with aside(path, private=private) as part:
            part.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise SdcmapError(f"{path} cannot be written ({error.strerror}).") from None
    return path
