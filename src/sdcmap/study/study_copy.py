"""Copy a whole study: manifest with its seed, plan, scores, working copy of the data, and kept files."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path
from sqlite3 import connect

from sdcmap.data.private_folder import private_folder
from sdcmap.errors import SdcmapError
from sdcmap.study.folder import DATABASE, Study, lock_folder

COPIED_FILES = ("manifest.json", "plan.toml", "data.bin", "schema.arrow")


def copy_study(source: Path, target: Path) -> Path:
    """Copy the study in `source` to `target`, which must not exist. The private copy appears whole or not at all.

    A copy has the seed of its source, so the same candidate is the same file in both. It also has the list of releases.
    """
    Study.manifest_of(source)
    if target.exists():
        raise SdcmapError(f"{target.name} exists already: name another folder.")
    try:
        with lock_folder(source), private_folder(target.parent) as part:
            for name in COPIED_FILES:
                if (source / name).is_file():
                    shutil.copy2(source / name, part / name)
            if (source / "kept").is_dir():
                shutil.copytree(source / "kept", part / "kept")
            with closing(connect(source / DATABASE)) as old, closing(connect(part / DATABASE)) as new:
                old.backup(new)  # a file copy would miss rows that are still in the write-ahead log
            (part / DATABASE).chmod(0o600)
            part.rename(target)
    except OSError as error:
        raise SdcmapError(f"the study cannot be copied ({error.strerror}).") from None
    return target
