"""Copy, rename, archive and delete studies; keep notes and earlier plans.

A study consists of its plan (`NAME.toml`), its folder (`NAME/`), its notes (`NAME.notes.md`), the server's state files
(such as earlier plans), and its releases (`releases/NAME/`). Deleting a study leaves its releases, which may have been
published already.
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
from sdcmap.web.workspace import RELEASES_FOLDER, EditConflict, Workspace

STATE_SUFFIXES = ("wish", "phase", "errors", "orders", "archived", "plans")  # of the server's files about a study
MAX_EARLIER_PLANS = 20  # earlier plans that are kept; the oldest go


@dataclass(frozen=True)
class EarlierPlan:
    """A plan that was replaced, and when it had been saved."""

    saved: str
    toml: str


@dataclass(frozen=True)
class StudyStore:
    """The studies of a workspace. Operations raise `Busy` while a sweep or another process writes the study."""

    workspace: Workspace
    sweeps: Sweeps

    def copy(self, name: str, new: str, *, scores: bool) -> None:
        """Copy the plan of a study to a new name; with `scores`, the whole study including its seed."""
        from sdcmap.study.study_copy import copy_study

        with self.sweeps.block_sweeps(name):
            text = self.workspace.plan(name).read_text(encoding="utf-8")
            path = self.workspace.new_plan_path(new)
            if scores:
                copy_study(self.workspace.study(name), self.workspace.path_of(new))
            write_atomically(path, text)

    def rename(self, name: str, new: str) -> None:
        """Rename a study and everything that belongs to it."""
        with self.sweeps.block_sweeps(name), _explain_disk_error("renamed"):
            self.workspace.plan(name)
            self.workspace.new_plan_path(new)
            # The folder comes first: it contains a plan, so the study can be opened whatever fails afterwards.
            for path in self._parts(name):
                path.rename(path.with_name(new + path.name.removeprefix(name)))

    def delete(self, name: str, typed: str) -> None:
        """Delete a study permanently if its name was typed correctly; its releases stay."""
        self.workspace.plan(name)
        if typed != name:
            raise SchemaError("to delete the study, type its exact name.")
        with (
            self.sweeps.block_sweeps(name),
            private_folder(self.workspace.folder) as bin_,
            _explain_disk_error("deleted"),
        ):
            for path in self._parts(name, releases=False):
                path.rename(bin_ / path.name)

    def archive(self, name: str, archived: bool) -> None:
        """Hide a study from the list, or show it again; nothing else changes."""
        with self.sweeps.block_sweeps(name):
            self.workspace.plan(name)
            mark = self.workspace.state_path(f"{name}.archived")
            if archived:
                mark.touch(mode=0o600)
            else:
                mark.unlink(missing_ok=True)

    def is_archived(self, name: str) -> bool:
        return self.workspace.state_path(f"{name}.archived").is_file()

    # ---- plans ------------------------------------------------------------------------------------------------
    def save_plan(self, name: str, text: str, version: str = "") -> None:
        """Save a plan and keep the one it replaces; `version` is that of the plan it was edited from."""
        with FileLock(self.workspace.state_folder / "plans.lock", mode=0o600):
            path = self.workspace.plan(name)
            before = path.read_text(encoding="utf-8")
            if version and version != version_of(before):
                raise EditConflict("the plan was saved elsewhere since you opened it. Review the saved version first.")
            if before != text:
                saved = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
                plans = [EarlierPlan(saved, before), *self.earlier_plans(name)][:MAX_EARLIER_PLANS]
                self.workspace.write_note(f"{name}.plans", plans)
            write_atomically(self.workspace.path_of(f"{name}.toml"), text)

    def earlier_plans(self, name: str) -> list[EarlierPlan]:
        """Return the plans before the current one, the newest first; none if the state file is damaged."""
        self.workspace.plan(name)
        return self.workspace.read_note(f"{name}.plans", list[EarlierPlan]) or []

    # ---- releases ---------------------------------------------------------------------------------------------
    def find_release(self, name: str, request: str) -> str:
        """Return the folder of the release that was written for an equal request; empty if there is none."""
        return (self.workspace.read_note(f"{name}.orders", dict[str, str]) or {}).get(version_of(request), "")

    def record_release(self, name: str, request: str, folder: str) -> None:
        """Record which release was written for a request, so that a repeated request writes nothing."""
        before = self.workspace.read_note(f"{name}.orders", dict[str, str]) or {}
        self.workspace.write_note(f"{name}.orders", before | {version_of(request): folder})

    # ---- notes ------------------------------------------------------------------------------------------------
    def notes(self, name: str) -> str:
        """Return the user's notes about a study; empty if there are none."""
        self.workspace.plan(name)
        with suppress(FileNotFoundError):
            return self.workspace.notes_path(name).read_text(encoding="utf-8")
        return ""

    def write_notes(self, name: str, text: str, version: str) -> None:
        """Save notes beside the study, never in it or in a release; `version`: of those they were edited from."""
        if version and version != version_of(self.notes(name)):
            raise EditConflict("the notes were saved elsewhere since you opened them. Review the saved version first.")
        self.workspace.plan(name)
        write_atomically(self.workspace.notes_path(name), text)

    def _parts(self, name: str, *, releases: bool = True) -> Iterator[Path]:
        """Yield every existing file and folder of a study."""
        workspace = self.workspace
        states = (workspace.state_path(f"{name}.{ending}") for ending in STATE_SUFFIXES)
        releases_ = [workspace.folder / RELEASES_FOLDER / name] if releases else []
        parts = (
            workspace.path_of(name),
            workspace.folder / f"{name}.toml",
            workspace.notes_path(name),
            *states,
            *releases_,
        )
        yield from (path for path in parts if path.exists())


@contextmanager
def _explain_disk_error(action: str) -> Iterator[None]:
    """Replace an error of the file system by one sentence."""
    try:
        yield
    except OSError as error:
        raise SdcmapError(f"the study cannot be {action} ({error.strerror}).") from None


def version_of(text: str) -> str:
    """Return a short digest that identifies a version of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
