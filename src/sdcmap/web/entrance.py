"""Who is let in: programs by a token, browsers by a token that works once and becomes a session.

A session is a cookie that a browser sends to this server alone: its path is drawn at random, because browsers send cookies
to every port of a machine. A token that was used, and that a history or another user may have seen, opens nothing. One that
stands in a file works for a short time alone.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

BYTES = 24  # of a secret


def _secret() -> str:
    return secrets.token_urlsafe(BYTES)


def _same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode(), secret.encode())


def _digest(session: str) -> bytes:
    return hashlib.sha256(session.encode()).digest()


@dataclass
class Entrance:
    """The door of one server.

    token : of programs, in a header. port : names the cookie. used : called when a browser has come in.
    place : the path below which browsers find everything. once : the token for the next browser.
    """

    token: str = field(default_factory=_secret, repr=False)
    port: int = 0
    used: Callable[[], None] = lambda: None
    place: str = field(default_factory=lambda: f"/{_secret()}", repr=False)
    once: str = field(default_factory=_secret, repr=False)
    _brief: tuple[str, float] = field(default=("", 0.0), repr=False)  # a token, and when it ends
    _sessions: set[bytes] = field(default_factory=set, repr=False)
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
        return _digest(given) in self._sessions

    def brief(self, seconds: float) -> str:
        """Another token for the next browser, that works for so many seconds: what a file may hold."""
        with self._lock:
            self._brief = _secret(), time.monotonic() + seconds
            return self._brief[0]

    def exchange(self, given: str) -> str | None:
        """A session for a token of the next browser, whose tokens are used up; None where it is not one."""
        with self._lock:
            brief, ends = self._brief
            in_time = time.monotonic() < ends
            if not _same(given, self.once) and not (_same(given, brief) and in_time):
                return None
            self.once, self._brief, session = _secret(), ("", 0.0), _secret()
            self._sessions.add(_digest(session))
        self.used()
        return session

    def crumb(self, session: str) -> str:
        """The cookie of a session, as a header has it."""
        return f"{self.cookie}={session}; Path={self.place}; HttpOnly; SameSite=Strict"
