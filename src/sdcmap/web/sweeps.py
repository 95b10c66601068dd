"""Sweeps and searches beside the server: each a process of its own, with the study as its state and a note of what was
wanted.

A sweep ends with its server, and a new server goes on with every sweep that was wanted. Another writer of the study, such
as `sdcmap sweep` in a terminal, is seen by its lock.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from filelock import FileLock, Timeout

from sdcmap.core.named_files import restrict_files_to, with_current_file_root
from sdcmap.files.subprocesses import python_command, subprocess_environment
from sdcmap.web.workspace import Busy, Workspace

Wish = Literal["running", "searching", "paused", "cancelled"]
Task = Literal["sweep", "search"]
SweepState = Literal["not begun", "running", "running elsewhere", "paused", "cancelled", "stopped", "done"]
CHECK_SECONDS = 1.0
END_SECONDS = 20.0
PROBE_SECONDS = 0.05  # another server that looks at the lock holds it for less
PACE_SECONDS = 60.0  # over which the pace is taken, so that the time left neither jumps nor lags
SURE_SECONDS = 3.0  # of work, before a time left is told


@dataclass(frozen=True)
class Wanted:
    """What a person wanted of a study last, kept for the next server: of a sweep or of a search."""

    state: Literal["running", "paused", "cancelled"]
    task: Task


@dataclass(frozen=True, kw_only=True)
class Phase:
    """What the process of a sweep is at, while it runs; of a search: the new methods that it has tried, its budget, and the
    share of the area below the reference that it has won, after each generation too (the starts first)."""

    phase: str = ""
    evaluations: int | None = None
    budget: int | None = None
    area: float | None = None
    areas: list[float] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class SweepStatus(Phase):
    """How far a sweep or a search is.

    counts : candidates by status. refused : method, candidates and reason of those that cannot be made. rate : candidates a
    second over the last minute. seconds : since it was started.
    """

    state: SweepState
    task: Literal["", "sweep", "search"]
    total: int
    done: int
    counts: dict[str, int]
    refused: list[tuple[str, int, str]]
    rate: float | None
    seconds_left: float | None
    seconds: float | None
    error: str

    @property
    def is_running(self) -> bool:
        return self.state in ("running", "running elsewhere")


@dataclass
class Pace:
    """Candidates a second, from when the first was done, over the last minute at the most."""

    seen: deque[tuple[float, int]] = field(default_factory=deque)

    def rate(self, now: float, done: int) -> float | None:
        """The pace when so many are done; None while it cannot be told."""
        if not self.seen or done <= self.seen[0][1]:  # nothing was done yet: what came before was no work on candidates
            self.seen = deque([(now, done)])
            return None
        self.seen.append((now, done))
        while len(self.seen) > 2 and now - self.seen[1][0] >= PACE_SECONDS:
            self.seen.popleft()
        begun, before = self.seen[0]
        return (done - before) / (now - begun) if now - begun >= SURE_SECONDS else None


@dataclass
class Running:
    """One process, what it does, since when, and how fast."""

    process: subprocess.Popen[bytes]
    task: Task
    begun: float
    pace: Pace = field(default_factory=Pace)


@dataclass
class Sweeps:
    """Every sweep of a room."""

    room: Workspace
    workers: int = 0
    _running: dict[str, Running] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _probing: threading.Lock = field(default_factory=threading.Lock)  # two threads that look would see each other
    _over: threading.Event = field(default_factory=threading.Event)

    # ---- what a person wants ----------------------------------------------------------------------------------
    def want(self, name: str, wish: Wish) -> None:
        """Start or go on (`running`, `searching`), or stop (`paused`, `cancelled`); what is scored is kept."""
        self.room.plan(name)
        with self._lock:
            before = self._wanted(name)
            if wish == "running" or wish == "searching":
                if self._is_alive(name):
                    raise Busy("this sweep is running already.")
                if self._is_written(name):
                    raise Busy("another process is writing this study: wait for it, or stop it there.")
                wanted = Wanted("running", "sweep" if wish == "running" else "search")
            else:
                wanted = Wanted(wish, "sweep" if before is None else before.task)
            self.room.write_note(f"{name}.wish", wanted)  # first: a process that ends by itself takes it away
            if wanted.state == "running":
                self._start(name, wanted.task)
            else:
                self._stop(name)

    def _start(self, name: str, task: Task) -> None:
        plan, study = self.room.plan(name), self.room.place_of(name)
        self.room.kept(f"{name}.phase").unlink(missing_ok=True)
        command = python_command("sdcmap.web.child:main", plan, study, self.workers, task)
        with self.room.kept(f"{name}.errors").open("wb") as errors:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors,
                start_new_session=True, env=subprocess_environment(),
            )  # fmt: skip
        self._running[name] = Running(process, task, time.monotonic())

    def _stop(self, name: str) -> None:
        running = self._running.get(name)
        if running is None or running.process.stdin is None:
            return
        running.process.stdin.close()  # the child sees it and ends as by Ctrl-C
        try:
            running.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            running.process.kill()
            running.process.wait()
        del self._running[name]

    @contextmanager
    def still(self, name: str) -> Iterator[None]:
        """In this block no sweep of a study runs or begins; Busy where one runs."""
        with self._lock:
            if self._is_alive(name):
                raise Busy("a sweep of this study is running: pause or cancel it first.")
            if self._is_written(name):
                raise Busy("another process is writing this study: wait for it, or stop it there.")
            self._stop(name)  # what has ended by itself is let go of
            yield

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
        except OSError as error:
            return isinstance(error, Timeout)

    def status(self, name: str) -> SweepStatus:
        """State, candidates done and in all, rate, seconds left, and why some could not be made."""
        from sdcmap.study.plan import Plan
        from sdcmap.study.sweep import SweepProgress, read_progress

        plan, alive = Plan.read(self.room.plan(name)), self._is_alive(name)
        begun = self.room.is_begun(name)
        progress = read_progress(self.room.study(name), plan) if begun else SweepProgress(plan.count, 0, {}, ())
        running, done, total = self._running.get(name) if alive else None, progress.done, progress.total
        rate = running.pace.rate(time.monotonic(), done) if running else None
        state = self._state(name, alive, done >= total)
        return SweepStatus(
            state=state, task=running.task if running else "", total=total, done=done, counts=progress.counts,
            refused=list(progress.refused), rate=rate, seconds_left=(total - done) / rate if rate else None,
            seconds=time.monotonic() - running.begun if running else None,
            error=self._error(name) if state == "stopped" else "",
            **vars(self.phase(name) if running else Phase()),
        )  # fmt: skip

    def phase(self, name: str) -> Phase:
        """What the process says it is at; how far, where it searches."""
        return self.room.read_note(f"{name}.phase", Phase) or Phase(phase="starting")

    def _state(self, name: str, alive: bool, whole: bool) -> SweepState:
        if alive:
            return "running"
        if self._is_written(name):
            return "running elsewhere"
        wanted = self._wanted(name)
        if whole and (wanted is None or wanted.task == "sweep"):  # a search goes on beyond the plan's own candidates
            return "done"
        if wanted is None:
            return "not begun"
        return "stopped" if wanted.state == "running" else wanted.state

    def _wanted(self, name: str) -> Wanted | None:
        """What was wanted last; None: nothing, or it is done."""
        return self.room.read_note(f"{name}.wish", Wanted)

    def _error(self, name: str) -> str:
        path = self.room.kept(f"{name}.errors")
        return path.read_text().strip() if path.is_file() else ""

    # ---- from one server to the next --------------------------------------------------------------------------
    def open(self) -> None:
        """Go on with every sweep that was wanted when the last server ended."""
        with restrict_files_to(self.room.folder):
            names = [name for name in self.room.studies() if (wish := self._wanted(name)) and wish.state == "running"]
            if names:
                threading.Thread(target=with_current_file_root(self._resume), args=(names,), daemon=True).start()

    def _resume(self, names: list[str]) -> None:
        for name in names:
            while not self._over.is_set():
                with self._lock:
                    if not self._is_written(name):
                        self._go_on(name)
                        break
                self._over.wait(CHECK_SECONDS)  # the last server's process is still ending

    def _go_on(self, name: str) -> None:
        """Start what was running when the last server ended, unless it is done or runs again."""
        wanted = self._wanted(name)
        if wanted is None or wanted.state != "running" or self._is_alive(name):
            return
        status = self.status(name)
        if wanted.task == "search" or status.done < status.total:
            self._start(name, wanted.task)

    def close(self) -> None:
        """End every sweep; the wish stays, so the next server goes on."""
        self._over.set()
        with self._lock:
            for name in list(self._running):
                self._stop(name)
