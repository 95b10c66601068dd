"""The shelf of studies: each can be copied, renamed, archived and deleted, and has a person's notes beside it.

What belongs to a study: its plan (`NAME.toml`), its folder (`NAME/`), its notes (`NAME.notes.md`), what the server notes of
it (such as earlier plans), and its releases (`releases/NAME/`), which a deletion leaves: they are out of the room already.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock

from sdcmap.data.private_folder import private_folder, write_atomically
from sdcmap.errors import SchemaError, SdcmapError
from sdcmap.web.sweeps import Sweeps
from sdcmap.web.workspace import RELEASES, Overtaken, Workspace

NOTED = ("wish", "phase", "errors", "orders", "archived", "plans")  # endings of what the server notes of a study
MOST_PLANS = 20  # earlier plans that are kept; the oldest go


@dataclass(frozen=True)
class EarlierPlan:
    """A plan that another one took the place of, and when it had been saved."""

    saved: str
    toml: str


@dataclass(frozen=True)
class Shelf:
    """The studies of a room; what a sweep or another process is writing is not touched (`Busy`)."""

    room: Workspace
    sweeps: Sweeps

    def copy(self, name: str, new: str, *, scores: bool) -> None:
        """The plan of a study under another name; with its scores, the whole study, seed and all."""
        from sdcmap.study.study_copy import copy_study

        with self.sweeps.still(name):
            text = self.room.plan(name).read_text(encoding="utf-8")
            place = self.room.free_name(new)
            if scores:
                copy_study(self.room.study(name), self.room.place_of(new))
            write_atomically(place, text)

    def rename(self, name: str, new: str) -> None:
        """Another name for a study and all that belongs to it. The folder goes first: it holds a plan of its own."""
        with self.sweeps.still(name), _explained("renamed"):
            self.room.plan(name)
            self.room.free_name(new)
            for path in self._parts(name):
                path.rename(path.with_name(new + path.name.removeprefix(name)))

    def delete(self, name: str, typed: str) -> None:
        """Remove a study for good, where its name was typed; releases stay where they are."""
        self.room.plan(name)
        if typed != name:
            raise SchemaError("type the name of the study, as it stands, to delete it.")
        with self.sweeps.still(name), private_folder(self.room.folder) as bin_, _explained("deleted"):
            for path in self._parts(name, releases=False):
                path.rename(bin_ / path.name)

    def archive(self, name: str, archived: bool) -> None:
        """Put a study out of the list, or back into it; nothing else changes."""
        with self.sweeps.still(name):
            self.room.plan(name)
            mark = self.room.kept(f"{name}.archived")
            if archived:
                mark.touch(mode=0o600)
            else:
                mark.unlink(missing_ok=True)

    def is_archived(self, name: str) -> bool:
        return self.room.kept(f"{name}.archived").is_file()

    # ---- plans ------------------------------------------------------------------------------------------------
    def save_plan(self, name: str, text: str, version: str = "") -> None:
        """Put a plan in the place of the one before, which is kept too; `version`: of the plan that it was made from."""
        with FileLock(self.room.notes / "plans.lock", mode=0o600):
            place = self.room.plan(name)
            before = place.read_text(encoding="utf-8")
            if version and version != version_of(before):
                raise Overtaken("the plan was saved elsewhere meanwhile: look at that one first.")
            if before != text:
                saved = datetime.fromtimestamp(place.stat().st_mtime, UTC).isoformat(timespec="seconds")
                plans = [EarlierPlan(saved, before), *self.earlier_plans(name)][:MOST_PLANS]
                self.room.write_note(f"{name}.plans", plans)
            write_atomically(self.room.place_of(f"{name}.toml"), text)

    def earlier_plans(self, name: str) -> list[EarlierPlan]:
        """What was saved before the plan that counts, the newest first; none where the note of it is damaged."""
        self.room.plan(name)
        return self.room.read_note(f"{name}.plans", list[EarlierPlan]) or []

    # ---- releases ---------------------------------------------------------------------------------------------
    def written_for(self, name: str, order: str) -> str:
        """The folder of the release that was written for this order; empty: none."""
        return (self.room.read_note(f"{name}.orders", dict[str, str]) or {}).get(version_of(order), "")

    def note_order(self, name: str, order: str, folder: str) -> None:
        """Remember what was written for an order: a second press of the same button writes nothing again."""
        before = self.room.read_note(f"{name}.orders", dict[str, str]) or {}
        self.room.write_note(f"{name}.orders", before | {version_of(order): folder})

    # ---- notes ------------------------------------------------------------------------------------------------
    def notes(self, name: str) -> str:
        """What a person wrote about a study; empty: nothing yet."""
        self.room.plan(name)
        with suppress(FileNotFoundError):
            return self.room.notes_of(name).read_text(encoding="utf-8")
        return ""

    def write_notes(self, name: str, text: str, version: str) -> None:
        """Keep notes beside the study, never in it or in a release; `version`: of those they were made from."""
        if version and version != version_of(self.notes(name)):
            raise Overtaken("the notes were saved elsewhere meanwhile: look at those first.")
        self.room.plan(name)
        write_atomically(self.room.notes_of(name), text)

    def _parts(self, name: str, *, releases: bool = True) -> Iterator[Path]:
        """Every file and folder of a study that is there."""
        room = self.room
        noted = (room.kept(f"{name}.{ending}") for ending in NOTED)
        shelved = [room.folder / RELEASES / name] if releases else []
        parts = (room.place_of(name), room.folder / f"{name}.toml", room.notes_of(name), *noted, *shelved)
        yield from (path for path in parts if path.exists())


@contextmanager
def _explained(done: str) -> Iterator[None]:
    """An error of the disk becomes one sentence."""
    try:
        yield
    except OSError as error:
        raise SdcmapError(f"the study cannot be {done} ({error.strerror}).") from None


def version_of(text: str) -> str:
    """What tells two texts apart."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
