"""Sweeps and searches that run beside the server, each in its own process.

The study stores the progress, and a state file stores what the user asked for. A sweep ends with its server; the next
server resumes every sweep that should be running. Another writer of the study, such as `sdcmap sweep` in a terminal, is
detected by its lock.
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

SweepCommand = Literal["running", "searching", "paused", "cancelled"]
Task = Literal["sweep", "search"]
SweepState = Literal["not begun", "running", "running elsewhere", "paused", "cancelled", "stopped", "done"]
CHECK_SECONDS = 1.0
END_SECONDS = 20.0
PROBE_SECONDS = 0.05  # to test a study's lock; another server that tests it holds it for less
PACE_SECONDS = 60.0  # over which the pace is averaged, so that the time left neither jumps nor lags
MIN_PACE_SECONDS = 3.0  # of work before a time left is shown


@dataclass(frozen=True)
class SweepGoal:
    """What the user last asked for, saved for the next server."""

    state: Literal["running", "paused", "cancelled"]
    task: Task


@dataclass(frozen=True, kw_only=True)
class Phase:
    """What a running process is doing.

    evaluations, budget : of a search, new methods evaluated, and their maximum. area, areas : of a search, the share of the
    area below the reference point that the frontier dominates, now and after each generation (the plan's methods first).
    """

    phase: str = ""
    evaluations: int | None = None
    budget: int | None = None
    area: float | None = None
    areas: list[float] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class SweepStatus(Phase):
    """The progress of a sweep or a search.

    counts : candidates by status. refused : method, candidates and reason of those that cannot be made. rate : candidates
    per second over the last minute. seconds : since the start.
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
    """Candidates per second over the last minute, counted from the first candidate on."""

    samples: deque[tuple[float, int]] = field(default_factory=deque)

    def rate(self, now: float, done: int) -> float | None:
        """Return the pace when so many candidates are done; None while it is not known."""
        # No candidate is finished yet: the time so far was spent on reading and compiling, and does not count.
        if not self.samples or done <= self.samples[0][1]:
            self.samples = deque([(now, done)])
            return None
        self.samples.append((now, done))
        while len(self.samples) > 2 and now - self.samples[1][0] >= PACE_SECONDS:
            self.samples.popleft()
        begun, before = self.samples[0]
        return (done - before) / (now - begun) if now - begun >= MIN_PACE_SECONDS else None


@dataclass
class Running:
    """One process: its task, when it started, and its pace."""

    process: subprocess.Popen[bytes]
    task: Task
    begun: float
    pace: Pace = field(default_factory=Pace)


@dataclass
class Sweeps:
    """Every sweep of a workspace."""

    workspace: Workspace
    workers: int = 0
    _running: dict[str, Running] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _probing: threading.Lock = field(default_factory=threading.Lock)  # one thread at a time: two would block each other
    _over: threading.Event = field(default_factory=threading.Event)

    # ---- commands ---------------------------------------------------------------------------------------------
    def set_goal(self, name: str, command: SweepCommand) -> None:
        """Start or resume (`running`, `searching`), or stop (`paused`, `cancelled`); scores are kept."""
        self.workspace.plan(name)
        with self._lock:
            before = self._goal(name)
            if command == "running" or command == "searching":
                if self._is_alive(name):
                    raise Busy("this sweep is already running.")
                if self._is_written(name):
                    raise Busy("another process is writing this study. Wait until it ends, or stop it there.")
                goal = SweepGoal("running", "sweep" if command == "running" else "search")
            else:
                goal = SweepGoal(command, "sweep" if before is None else before.task)
            # The goal is written before the process starts, because the process deletes it when it completes.
            self.workspace.write_note(f"{name}.wish", goal)
            if goal.state == "running":
                self._start(name, goal.task)
            else:
                self._stop(name)

    def _start(self, name: str, task: Task) -> None:
        plan, study = self.workspace.plan(name), self.workspace.path_of(name)
        self.workspace.state_path(f"{name}.phase").unlink(missing_ok=True)
        command = python_command("sdcmap.web.sweep_process:main", plan, study, self.workers, task)
        with self.workspace.state_path(f"{name}.errors").open("wb") as errors:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
                env=subprocess_environment(),
            )
        self._running[name] = Running(process, task, time.monotonic())

    def _stop(self, name: str) -> None:
        running = self._running.get(name)
        if running is None or running.process.stdin is None:
            return
        # The process notices the closed pipe and stops as with Ctrl-C.
        running.process.stdin.close()
        try:
            running.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            running.process.kill()
            running.process.wait()
        del self._running[name]

    @contextmanager
    def block_sweeps(self, name: str) -> Iterator[None]:
        """Prevent sweeps of a study while the block runs; raise Busy if one is running."""
        with self._lock:
            if self._is_alive(name):
                raise Busy("a sweep of this study is running. Pause or cancel it first.")
            if self._is_written(name):
                raise Busy("another process is writing this study. Wait until it ends, or stop it there.")
            self._stop(name)  # removes a process that has already ended
            yield

    # ---- status -----------------------------------------------------------------------------------------------
    def _is_alive(self, name: str) -> bool:
        running = self._running.get(name)
        return running is not None and running.process.poll() is None

    def _is_written(self, name: str) -> bool:
        """Return whether another process holds the study's lock."""
        lock = self.workspace.path_of(name) / "lock"
        if not lock.is_file():
            return False
        try:
            with self._probing, FileLock(lock, timeout=PROBE_SECONDS, poll_interval=PROBE_SECONDS / 5):
                return False
        except OSError as error:
            return isinstance(error, Timeout)

    def status(self, name: str) -> SweepStatus:
        """Return the state, the candidates done and in total, the pace, and why some candidates could not be made."""
        from sdcmap.study.plan import Plan
        from sdcmap.study.sweep import SweepProgress, read_progress

        plan, alive = Plan.read(self.workspace.plan(name)), self._is_alive(name)
        begun = self.workspace.is_begun(name)
        progress = read_progress(self.workspace.study(name), plan) if begun else SweepProgress(plan.count, 0, {}, ())
        running, done, total = self._running.get(name) if alive else None, progress.done, progress.total
        rate = running.pace.rate(time.monotonic(), done) if running else None
        # The error file may be left from an earlier run, so it is shown only if the sweep stopped by itself.
        state = self._state(name, alive, done >= total)
        return SweepStatus(
            state=state,
            task=running.task if running else "",
            total=total,
            done=done,
            counts=progress.counts,
            refused=list(progress.refused),
            rate=rate,
            seconds_left=(total - done) / rate if rate else None,
            seconds=time.monotonic() - running.begun if running else None,
            error=self._error(name) if state == "stopped" else "",
            **vars(self.phase(name) if running else Phase()),
        )

    def phase(self, name: str) -> Phase:
        """Return what the process last wrote about its progress."""
        return self.workspace.read_note(f"{name}.phase", Phase) or Phase(phase="starting")

    def _state(self, name: str, alive: bool, is_complete: bool) -> SweepState:
        if alive:
            return "running"
        if self._is_written(name):
            return "running elsewhere"
        goal = self._goal(name)
        # A search continues beyond the candidates of the plan, so a complete plan does not end it.
        if is_complete and (goal is None or goal.task == "sweep"):
            return "done"
        if goal is None:
            return "not begun"
        return "stopped" if goal.state == "running" else goal.state

    def _goal(self, name: str) -> SweepGoal | None:
        """Return what the user last asked for; None if nothing, or if it is done."""
        return self.workspace.read_note(f"{name}.wish", SweepGoal)

    def _error(self, name: str) -> str:
        path = self.workspace.state_path(f"{name}.errors")
        return path.read_text().strip() if path.is_file() else ""

    # ---- restarts ---------------------------------------------------------------------------------------------
    def open(self) -> None:
        """Resume every sweep that was running when the last server ended."""
        with restrict_files_to(self.workspace.folder):
            studies = self.workspace.studies()
            names = [name for name in studies if (goal := self._goal(name)) and goal.state == "running"]
            if names:
                threading.Thread(target=with_current_file_root(self._resume), args=(names,), daemon=True).start()

    def _resume(self, names: list[str]) -> None:
        for name in names:
            while not self._over.is_set():
                with self._lock:
                    if not self._is_written(name):
                        self._restart(name)
                        break
                # The process of the last server may still be stopping.
                self._over.wait(CHECK_SECONDS)

    def _restart(self, name: str) -> None:
        """Start what was running when the last server ended, unless it is done or already running."""
        goal = self._goal(name)
        if goal is None or goal.state != "running" or self._is_alive(name):
            return
        status = self.status(name)
        if goal.task == "search" or status.done < status.total:
            self._start(name, goal.task)

    def close(self) -> None:
        """Stop every sweep; its goal stays, so the next server resumes it."""
        self._over.set()
        with self._lock:
            for name in list(self._running):
                self._stop(name)
