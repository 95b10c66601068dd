"""Who is let in: programs by a token, browsers by a token that works once and becomes a session.

A session is a cookie that a browser sends to this server alone: its path is drawn at random, because browsers send cookies
to every port of a machine. A token that was used, and that a history or another user may have seen, opens nothing. One that
stands in a file works for a short time alone.

A session outlives its server: the next one over the same folder knows it by its digest (`Kept`), from which no cookie can
be made, and takes the same port and path where the port is free. Sessions older than KEPT_SECONDS are not taken over.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

from sdcmap.data.private_folder import write_atomically

BYTES = 24  # of a secret
KEPT_SECONDS = 3 * 24 * 3600.0  # since a browser came in: a sweep over a weekend


def _secret() -> str:
    return secrets.token_urlsafe(BYTES)


def _same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode(), secret.encode())


def _digest(session: str) -> str:
    return hashlib.sha256(session.encode()).hexdigest()


@dataclass(frozen=True)
class Kept:
    """What one server leaves to the next: port, path, and the digests of its sessions with the time they came in."""

    port: int = 0
    place: str = field(default="", repr=False)
    sessions: dict[str, float] = field(default_factory=dict, repr=False)

    @staticmethod
    def read(path: Path) -> Kept:
        """What the last server left; nothing where there is no such note or it cannot be read."""
        try:
            found = TypeAdapter(Kept).validate_json(path.read_bytes())
            sound = found.place.startswith("/") and len(found.place) > BYTES
        except (OSError, ValueError):
            return Kept()
        young = {digest: came for digest, came in found.sessions.items() if time.time() - came < KEPT_SECONDS}
        return Kept(found.port, found.place, young) if sound and young else Kept()

    def write(self, path: Path) -> None:
        write_atomically(path, json.dumps(vars(self)))


@dataclass
class Entrance:
    """The door of one server.

    token : of programs, in a header. port : names the cookie. used : called when a browser has come in.
    note : where sessions are kept for the next server; None: they end with this one. sessions : those taken over.
    place : the path below which browsers find everything. once : the token for the next browser.
    """

    token: str = field(default_factory=_secret, repr=False)
    port: int = 0
    used: Callable[[], None] = lambda: None
    place: str = field(default_factory=lambda: f"/{_secret()}", repr=False)
    once: str = field(default_factory=_secret, repr=False)
    note: Path | None = None
    sessions: dict[str, float] = field(default_factory=dict, repr=False)
    _brief: tuple[str, float] = field(default=("", 0.0), repr=False)  # a token, and when it ends
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def cookie(self) -> str:
        return f"sdcmap-{self.port}"

    def is_inside(self, path: str) -> bool:
        """Whether this path is one of browsers."""
        return path.startswith(f"{self.place}/")

    def is_token(self, given: str) -> bool:
        return _same(given, self.token)

    def is_session(self, given: str) -> bool:
        return _digest(given) in self.sessions

    def brief(self, seconds: float) -> str:
        """Another token for the next browser, that works for so many seconds: what a file may hold."""
        with self._lock:
            self._brief = _secret(), time.monotonic() + seconds
            return self._brief[0]

    def exchange(self, given: str) -> str | None:
        """A session for a token of the next browser, whose tokens are used up; None where it is not one."""
        with self._lock:
            brief, ends = self._brief
            if not _same(given, self.once) and not (_same(given, brief) and time.monotonic() < ends):
                return None
            self.once, self._brief, session = _secret(), ("", 0.0), _secret()
            self.sessions[_digest(session)] = time.time()
            if self.note is not None:
                Kept(self.port, self.place, self.sessions).write(self.note)
        self.used()
        return session

    def crumb(self, session: str) -> str:
        """The cookie of a session, as a header has it."""
        return f"{self.cookie}={session}; Path={self.place}; HttpOnly; SameSite=Strict"
