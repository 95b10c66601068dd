"""The served folder: data files, plans and studies by name, and nothing outside it."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar

from filelock import FileLock
from pydantic import TypeAdapter
from pydantic_core import to_json

from sdcmap.core.named_files import digest_of, restrict_files_to
from sdcmap.data.private_folder import private_folder, write_atomically
from sdcmap.errors import SchemaError, SdcmapError
from sdcmap.files.formats import endings, is_data_file

T = TypeVar("T")
NAME_PATTERN = re.compile(r"\w[\w .()+-]{0,99}")
STATE_FOLDER = ".sdcmap"  # the server's own files, such as which sweeps should run
RELEASES_FOLDER = "releases"
NOTES_SUFFIX = ".notes.md"  # of the user's notes about a study
MAX_NAME_LENGTH = 90  # characters of a study's name; its files add a suffix and must be valid names too
MAX_FILES = 500  # in the list of data files
MAX_DEPTH = 3  # folders below the served one that are listed
MIN_FREE_BYTES = 500 << 20  # that an upload must leave free on the disk
COPY_CHUNK_BYTES = 1 << 20


class NotFound(SdcmapError):  # noqa: N818
    """There is no such file, study or release in the workspace."""


class Busy(SdcmapError):  # noqa: N818
    """Another process is using it, or the name is taken."""


class EditConflict(SdcmapError):  # noqa: N818
    """It was changed elsewhere since the client read it."""


class TooLarge(SdcmapError):  # noqa: N818
    """The upload is larger than the limit."""


@dataclass(frozen=True)
class DataFile:
    """A data file, named relative to the served folder."""

    name: str
    bytes: int


@dataclass(frozen=True)
class Workspace:
    """The served folder, and the largest upload in bytes, as sent and decoded."""

    folder: Path
    upload_limit: int = 200 << 20
    ledger: Path | None = None

    @property
    def max_decoded_bytes(self) -> int:
        return max(10 * self.upload_limit, 1 << 30)

    # ---- names ------------------------------------------------------------------------------------------------
    def path_of(self, *parts: str) -> Path:
        """Return a path below the folder, existing or not; raise NotFound for anything that leads outside."""
        path = self.folder.joinpath(*parts)
        if not all(map(self.is_name, parts)) or self.folder not in path.resolve().parents:
            raise NotFound("there is nothing with that name here.")
        return path

    def file(self, name: str) -> Path:
        """Return the path of a data file, such as `people.csv` or `2024/people.csv`."""
        path = self.path_of(*name.split("/"))
        if not is_data_file(path) or not path.is_file():
            raise NotFound("there is no data file with that name here.")
        return path

    def study(self, name: str) -> Path:
        """Return the folder of a study that was started."""
        path = self.path_of(name)
        if not self.is_begun(name):
            raise NotFound("this study has no scores yet. Start its sweep first.")
        return path

    def is_begun(self, name: str) -> bool:
        """Return whether the sweep of a study was started."""
        return (self.path_of(name) / "manifest.json").is_file()

    def plan(self, name: str) -> Path:
        """Return the path of a study's plan: beside the study's folder if it was edited here, else inside."""
        beside = self.path_of(f"{name}.toml")
        path = beside if beside.is_file() else self.path_of(name) / "plan.toml"
        if not path.is_file():
            raise NotFound("there is no plan or study with that name here.")
        return path

    def new_plan_path(self, name: str) -> Path:
        """Return where to write the plan of a new study; raise if the name is invalid or taken."""
        if not self.is_name(name) or len(name) > MAX_NAME_LENGTH:
            allowed = f"at most {MAX_NAME_LENGTH} letters, digits, spaces and ._()+-"
            raise SchemaError(f"the name of a study may contain {allowed}.")
        plan, folder = self.path_of(f"{name}.toml"), self.path_of(name)
        if plan.exists() or folder.exists() or name.lower() == RELEASES_FOLDER:
            raise Busy("there is already a study or a folder with that name.")
        if (self.folder / RELEASES_FOLDER / name).exists():
            raise Busy("releases of an earlier study have that name. Choose another.")
        return plan

    def notes_path(self, name: str) -> Path:
        """Return the path of the user's notes about a study: beside it, so that no release can contain them."""
        path = self.path_of(name).with_name(f"{name}{NOTES_SUFFIX}")
        if path.is_symlink():
            raise NotFound("there is nothing with that name here.")
        return path

    def state_path(self, name: str) -> Path:
        """Return the path of a state file of the server."""
        self.path_of(name)
        return self.state_folder / name

    def read_note(self, name: str, kind: type[T]) -> T | None:
        """Return the content of a state file; None if it does not exist or is not of this type."""
        try:
            return TypeAdapter(kind).validate_json(self.state_path(name).read_bytes())
        except (OSError, ValueError):
            return None

    def write_note(self, name: str, value: object) -> None:
        """Write a state file atomically."""
        write_atomically(self.state_path(name), to_json(value).decode())

    @property
    def state_folder(self) -> Path:
        """The folder of the server's state files; it is created if needed."""
        (self.folder / STATE_FOLDER).mkdir(mode=0o700, exist_ok=True)
        return self.folder / STATE_FOLDER

    @staticmethod
    def is_name(name: str) -> bool:
        return bool(NAME_PATTERN.fullmatch(name)) and name.strip(" .") == name

    def file_name(self, name: str) -> str:
        """Return the last part of an uploaded file's name; SchemaError if it is not a valid data file name."""
        last = name.replace("\\", "/").rpartition("/")[2]
        if not self.is_name(last) or not is_data_file(last):
            ends = ", ".join(endings())
            raise SchemaError(
                f"a file name may contain letters, digits, spaces and ._()+-, and must end in one of {ends}."
            )
        return last

    # ---- contents ---------------------------------------------------------------------------------------------
    def files(self) -> list[DataFile]:
        """Return every data file below the folder, by name."""
        return [DataFile(name, (self.folder / name).stat().st_size) for name in sorted(self._walk())[:MAX_FILES]]

    def _walk(self) -> Iterator[str]:
        for home, folders, files in os.walk(self.folder):
            here = Path(home).relative_to(self.folder)
            # Study folders and releases contain data files that are not inputs.
            inside = [folder for folder in folders if NAME_PATTERN.fullmatch(folder) and folder != RELEASES_FOLDER]
            folders[:] = [folder for folder in inside if not (Path(home) / folder / "manifest.json").exists()]
            if len(here.parts) >= MAX_DEPTH:
                folders.clear()
            named = (file for file in files if NAME_PATTERN.fullmatch(file) and is_data_file(file))
            yield from ((here / file).as_posix() for file in named if ".study." not in file)

    def studies(self) -> list[str]:
        """Return the name of every study, planned or started."""
        begun = {path.parent.name for path in self.folder.glob("*/manifest.json")}
        planned = {path.stem for path in self.folder.glob("*.toml")}
        return [name for name in sorted(begun | planned) if self.is_name(name)]

    def releases(self, name: str) -> int:
        """Return the number of releases of a study in the folder."""
        home = self.folder / RELEASES_FOLDER / name
        return sum(1 for _ in home.glob("*-[0-9]*")) if home.is_dir() else 0

    # ---- uploads ----------------------------------------------------------------------------------------------
    def store_upload(self, name: str, source: BinaryIO) -> Path:
        """Save an upload under its name, completely or not at all, after checking its decoded size."""
        from sdcmap.files.decoded_size import check_decoded

        path = self.path_of(self.file_name(name))
        if path.exists():
            raise Busy("there is already a file with that name. Rename yours, or use the existing one.")
        try:
            with private_folder(self.folder) as folder:
                part = self.copy(source, folder / path.name)
                if not part.stat().st_size:
                    raise SchemaError(f"{path.name} is empty (0 bytes).")
                check_decoded(part, self.max_decoded_bytes)
                # If two uploads have the same name, the first one wins.
                with self._upload_lock():
                    if path.exists():
                        raise Busy("there is already a file with that name.")
                    part.replace(path)
        except OSError as error:
            raise SdcmapError(f"the file cannot be saved ({error.strerror}).") from None
        return path

    def save_csv(self, name: str, content: str, version: str) -> Path:
        """Save a table as a private CSV file, completely or not at all.

        version : the digest of the file that it replaces; "" for a new file.
        """
        if version and name not in self._walk():
            raise EditConflict("the file that this one replaces no longer exists. Save it under another name.")
        if not version and ("/" in name or not name.endswith(".csv") or ".study." in name or not self.is_name(name)):
            raise SchemaError("a new file name may contain letters, digits, spaces and ._()+-, and must end in .csv.")
        path = self.path_of(*name.split("/"))
        with self._upload_lock(), restrict_files_to(self.folder):
            if path.exists() and not version:
                raise Busy(
                    "there is already a file with that name. Choose another name, or open that file to change it."
                )
            if version and version != digest_of(name, "file"):
                raise EditConflict(
                    "the file was changed elsewhere since you opened it. Open it again, or save under another name."
                )
            return write_atomically(path, content)

    def _upload_lock(self) -> FileLock:
        return FileLock(self.state_folder / "uploads.lock", mode=0o600)

    def copy(self, source: BinaryIO, path: Path) -> Path:
        """Copy an upload to `path`, up to the size limit."""
        size = 0
        with path.open("xb") as file:
            while block := source.read(COPY_CHUNK_BYTES):
                size += len(block)
                if size > self.upload_limit:
                    raise TooLarge(f"the file is too large: at most {self.upload_limit >> 20:,} MB are allowed.")
                file.write(block)
        return path

    def has_space(self, size: int) -> bool:
        """Return whether an upload of this size leaves enough of the disk free."""
        # The upload is written to the temporary folder first, then to the workspace.
        folders = (self.folder, tempfile.gettempdir())
        return min(shutil.disk_usage(folder).free for folder in folders) - size > MIN_FREE_BYTES
