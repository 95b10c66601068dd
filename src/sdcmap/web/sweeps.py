"""Sweeps beside the server: each a process of its own, with the study as its state and a note of what was wanted.

A sweep ends with its server, and a new server goes on with every sweep that was wanted. Another writer of the study, such
as `sdcmap sweep` in a terminal, is seen by its lock.
"""

from __future__ import annotations

import subprocess
import threading
import time
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from filelock import FileLock, Timeout

from sdcmap.core.named_files import files_below, in_this_room
from sdcmap.files.apart import environment, python
from sdcmap.web.room import Absent, Busy, Room

Wish = Literal["running", "paused", "cancelled"]
CHECK_SECONDS = 1.0
END_SECONDS = 20.0
PROBE_SECONDS = 0.05  # another server that looks at the lock holds it for less


@dataclass
class Running:
    """One process, and where the study stood when it began."""

    process: subprocess.Popen[bytes]
    begun: float
    done: int | None = None


@dataclass
class Sweeps:
    """Every sweep of a room."""

    room: Room
    workers: int = 0
    _running: dict[str, Running] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _probing: threading.Lock = field(default_factory=threading.Lock)  # two threads that look would see each other
    _over: threading.Event = field(default_factory=threading.Event)

    # ---- what a person wants ----------------------------------------------------------------------------------
    def want(self, name: str, wish: Wish) -> None:
        """Start or go on (`running`), or stop (`paused`, `cancelled`); what is scored is kept in every case."""
        from sdcmap.data.whole import write_whole

        self.room.plan(name)
        with self._lock:
            if wish == "running":
                if self._is_alive(name):
                    raise Busy("this sweep is running already.")
                if self._is_written(name):
                    raise Busy("another process is writing this study: wait for it, or stop it there.")
                self._start(name)
            else:
                self._stop(name)
            write_whole(self.room.kept(f"{name}.wish"), wish)

    def _start(self, name: str) -> None:
        plan, study = self.room.plan(name), self.room.place_of(name)
        command = python("sdcmap.web.child:main", plan, study, self.workers)
        with self.room.kept(f"{name}.errors").open("wb") as errors:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors,
                start_new_session=True, env=environment(),
            )  # fmt: skip
        self._running[name] = Running(process, time.monotonic())

    def _stop(self, name: str) -> None:
        running = self._running.pop(name, None)
        if running is None or running.process.stdin is None:
            return
        running.process.stdin.close()  # the child sees it and ends as by Ctrl-C
        try:
            running.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            running.process.kill()
            running.process.wait()

    # ---- what is so -------------------------------------------------------------------------------------------
    def _is_alive(self, name: str) -> bool:
        running = self._running.get(name)
        return running is not None and running.process.poll() is None

    def _is_written(self, name: str) -> bool:
        """Whether a process that is not ours holds the study's lock."""
        lock = self.room.place_of(name) / "lock"
        if not lock.is_file():
            return False
        try:
            with self._probing, FileLock(lock, timeout=PROBE_SECONDS, poll_interval=PROBE_SECONDS / 5):
                return False
        except Timeout:
            return True
        except OSError:
            return False

    def status(self, name: str) -> dict[str, Any]:
        """State, candidates done and in all, rate, seconds left, and why some could not be made."""
        from sdcmap.study.plan import Plan
        from sdcmap.study.sweeping import Standing, standing

        path = self.room.plan(name)
        alive = self._is_alive(name)
        try:
            progress = standing(self.room.study(name), Plan.read(path))
        except Absent:
            progress = Standing(Plan.read(path).count, 0, {}, ())
        running = self._running.get(name)
        rate = None
        if alive and running is not None:
            if running.done is None:
                running.done, running.begun = progress.done, time.monotonic()
            elapsed = time.monotonic() - running.begun
            rate = (progress.done - running.done) / elapsed if elapsed > 0.5 else None
        left = (progress.total - progress.done) / rate if rate else None
        state = self._state(name, alive, progress.done >= progress.total)
        error = "" if state in ("running", "done") else self._error(name)
        return asdict(progress) | {"state": state, "rate": rate, "seconds_left": left, "error": error}

    def _state(self, name: str, alive: bool, whole: bool) -> str:
        if alive:
            return "running"
        if self._is_written(name):
            return "running elsewhere"
        if whole:
            return "done"
        wish = self._wish(name)
        return "stopped" if wish == "running" else wish or "not begun"

    def _wish(self, name: str) -> str:
        try:
            return self.room.kept(f"{name}.wish").read_text()
        except OSError:
            return ""

    def _error(self, name: str) -> str:
        try:
            return self.room.kept(f"{name}.errors").read_text().strip()
        except OSError:
            return ""

    # ---- from one server to the next --------------------------------------------------------------------------
    def open(self) -> None:
        """Go on with every sweep that was wanted when the last server ended."""
        with files_below(self.room.folder):
            self._open()

    def _open(self) -> None:
        wanted = [study for study in self.room.studies() if self._wish(str(study["name"])) == "running"]
        names = [str(study["name"]) for study in wanted]
        if names:
            resume = in_this_room(self._resume)
            threading.Thread(target=resume, args=(names,), daemon=True).start()

    def _resume(self, names: list[str]) -> None:
        for name in names:
            while not self._over.is_set():
                with self._lock:
                    if not self._is_written(name):
                        if not self._is_alive(name) and self._wish(name) == "running" and not self._is_done(name):
                            self._start(name)
                        break
                self._over.wait(CHECK_SECONDS)  # the last server's process is still ending

    def _is_done(self, name: str) -> bool:
        status = self.status(name)
        return bool(status["done"] >= status["total"])

    def close(self) -> None:
        """End every sweep; the wish stays, so the next server goes on."""
        self._over.set()
        with self._lock:
            for name in list(self._running):
                self._stop(name)
