"""The folder that is served: data files, plans and studies by name, and nothing outside it."""

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
NAME = re.compile(r"\w[\w .()+-]{0,99}")
KEPT = ".sdcmap"  # the server's own notes: which sweeps were wanted
RELEASES = "releases"
NOTES = ".notes.md"  # ending of what a person wrote about a study
MOST_CHARACTERS = 90  # of a study's name, so that those of its files are names too
MOST_FILES = 500
DEPTH = 3
SPARE = 500 << 20  # bytes of the disk that an upload must leave free
BLOCK = 1 << 20


class Absent(SdcmapError):  # noqa: N818
    """There is no such file, study or release here."""


class Busy(SdcmapError):  # noqa: N818
    """Somebody else is at it."""


class Overtaken(SdcmapError):  # noqa: N818
    """Somebody else has changed it meanwhile."""


class TooLarge(SdcmapError):  # noqa: N818
    """More than was said may come."""


@dataclass(frozen=True)
class DataFile:
    """A data file, named as below the served folder."""

    name: str
    bytes: int


@dataclass(frozen=True)
class Workspace:
    """The folder, and how many bytes a file that comes in may have, as it is and decoded."""

    folder: Path
    upload_limit: int = 200 << 20
    ledger: Path | None = None

    @property
    def decoded_limit(self) -> int:
        return max(10 * self.upload_limit, 1 << 30)

    # ---- names ------------------------------------------------------------------------------------------------
    def place_of(self, *parts: str) -> Path:
        """A path below the folder, such as where a study lies or will lie; anything that leads outside is absent."""
        path = self.folder.joinpath(*parts)
        if not all(map(self.is_name, parts)) or self.folder not in path.resolve().parents:
            raise Absent("there is nothing of that name here.")
        return path

    def file(self, name: str) -> Path:
        """The data file of this name, such as `people.csv` or `2024/people.csv`."""
        path = self.place_of(*name.split("/"))
        if not is_data_file(path) or not path.is_file():
            raise Absent("there is no data file of that name here.")
        return path

    def study(self, name: str) -> Path:
        """The folder of a study that was begun."""
        path = self.place_of(name)
        if not self.is_begun(name):
            raise Absent("there is no study of that name yet: start its sweep.")
        return path

    def is_begun(self, name: str) -> bool:
        """Whether a study of this name has scores, or was about to have some."""
        return (self.place_of(name) / "manifest.json").is_file()

    def plan(self, name: str) -> Path:
        """Where the plan of a study lies: beside its folder while it is written, else inside."""
        beside = self.place_of(f"{name}.toml")
        path = beside if beside.is_file() else self.place_of(name) / "plan.toml"
        if not path.is_file():
            raise Absent("there is no plan or study of that name here.")
        return path

    def free_name(self, name: str) -> Path:
        """Where the plan of a study of this name, which nothing here bears yet, is written."""
        if not self.is_name(name) or len(name) > MOST_CHARACTERS:
            allowed = f"letters, digits, spaces and ._()+- only, and at most {MOST_CHARACTERS} of them"
            raise SchemaError(f"a study's name has {allowed}.")
        plan, place = self.place_of(f"{name}.toml"), self.place_of(name)
        if plan.exists() or place.exists() or name.lower() == RELEASES:
            raise Busy("there is a study or a folder of that name already.")
        if (self.folder / RELEASES / name).exists():
            raise Busy("releases of an earlier study bear that name: take another.")
        return plan

    def notes_of(self, name: str) -> Path:
        """Where a person's notes about a study lie: beside it, so that no release can hold them."""
        path = self.place_of(name).with_name(f"{name}{NOTES}")
        if path.is_symlink():
            raise Absent("there is nothing of that name here.")
        return path

    def kept(self, name: str) -> Path:
        """Where the server notes things of this study."""
        self.place_of(name)
        return self.notes / name

    def read_note(self, name: str, kind: type[T]) -> T | None:
        """What the server noted under this name; None where there is nothing, or nothing of this kind."""
        try:
            return TypeAdapter(kind).validate_json(self.kept(name).read_bytes())
        except (OSError, ValueError):
            return None

    def write_note(self, name: str, value: object) -> None:
        """Note a value under this name, whole or not at all."""
        write_atomically(self.kept(name), to_json(value).decode())

    @property
    def notes(self) -> Path:
        """The server's own folder."""
        (self.folder / KEPT).mkdir(mode=0o700, exist_ok=True)
        return self.folder / KEPT

    @staticmethod
    def is_name(name: str) -> bool:
        return bool(NAME.fullmatch(name)) and name.strip(" .") == name

    def file_name(self, name: str) -> str:
        """The last part of the name that a data file came under; SchemaError where it is no such name."""
        last = name.replace("\\", "/").rpartition("/")[2]
        if not self.is_name(last) or not is_data_file(last):
            ends = ", ".join(endings())
            raise SchemaError(f"a file's name has letters, digits, spaces and ._()+- only, and ends in one of {ends}.")
        return last

    # ---- what is there ----------------------------------------------------------------------------------------
    def files(self) -> list[DataFile]:
        """Every data file below the folder, by name."""
        return [DataFile(name, (self.folder / name).stat().st_size) for name in sorted(self._walk())[:MOST_FILES]]

    def _walk(self) -> Iterator[str]:
        for home, folders, files in os.walk(self.folder):
            here = Path(home).relative_to(self.folder)
            inside = [folder for folder in folders if NAME.fullmatch(folder) and folder != RELEASES]
            folders[:] = [folder for folder in inside if not (Path(home) / folder / "manifest.json").exists()]
            if len(here.parts) >= DEPTH:
                folders.clear()
            named = (file for file in files if NAME.fullmatch(file) and is_data_file(file))
            yield from ((here / file).as_posix() for file in named if ".study." not in file)

    def studies(self) -> list[str]:
        """The name of every study: those with a plan, and those begun."""
        begun = {path.parent.name for path in self.folder.glob("*/manifest.json")}
        planned = {path.stem for path in self.folder.glob("*.toml")}
        return [name for name in sorted(begun | planned) if self.is_name(name)]

    def releases(self, name: str) -> int:
        """How many releases of a study lie here."""
        home = self.folder / RELEASES / name
        return sum(1 for _ in home.glob("*-[0-9]*")) if home.is_dir() else 0

    # ---- what comes in ----------------------------------------------------------------------------------------
    def take(self, name: str, source: BinaryIO) -> Path:
        """Keep an upload under its name, whole or not at all, after a look at what it decodes to."""
        from sdcmap.files.decoded_size import check_decoded

        path = self.place_of(self.file_name(name))
        if path.exists():
            raise Busy("there is a file of that name already: rename yours, or use the one that is here.")
        try:
            with private_folder(self.folder) as folder:  # each upload has its own
                part = self.copy(source, folder / path.name)
                if not part.stat().st_size:
                    raise SchemaError(f"{path.name} is empty (0 bytes).")
                check_decoded(part, self.decoded_limit)
                with self._one_upload():  # where another was faster, its file stays
                    if path.exists():
                        raise Busy("there is a file of that name already.")
                    part.replace(path)
        except OSError as error:
            raise SdcmapError(f"the file cannot be kept ({error.strerror}).") from None
        return path

    def keep(self, name: str, content: str, version: str) -> Path:
        """Keep a table that was drawn up here as a private CSV file, whole or not at all; `version`: the digest of the file
        that it replaces, "" where it is a new one."""
        if version and name not in self._walk():
            raise Overtaken("the file that this one replaces is not here any more: save it under another name.")
        if not version and ("/" in name or not name.endswith(".csv") or ".study." in name or not self.is_name(name)):
            raise SchemaError("a new file's name has letters, digits, spaces and ._()+- only, and ends in .csv.")
        path = self.place_of(*name.split("/"))
        with self._one_upload(), restrict_files_to(self.folder):
            if path.exists() and not version:
                raise Busy("there is a file of that name already: take another name, or open that one to change it.")
            if version and version != digest_of(name, "file"):
                raise Overtaken("the file was changed elsewhere meanwhile: open it again, or save under another name.")
            return write_atomically(path, content)

    def _one_upload(self) -> FileLock:
        return FileLock(self.notes / "uploads.lock", mode=0o600)

    def copy(self, source: BinaryIO, path: Path) -> Path:
        """Copy what comes in to `path`, up to the limit."""
        size = 0
        with path.open("xb") as file:
            while block := source.read(BLOCK):
                size += len(block)
                if size > self.upload_limit:
                    raise TooLarge(f"a file may have at most {self.upload_limit >> 20:,} MB.")
                file.write(block)
        return path

    def has_space(self, size: int) -> bool:
        """Whether an upload of this size leaves enough of the disk free."""
        places = (self.folder, tempfile.gettempdir())  # it is put down in the second on its way to the first
        return min(shutil.disk_usage(place).free for place in places) - size > SPARE
