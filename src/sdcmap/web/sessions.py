"""Access: programs use a token; browsers use a login token that works once and becomes a session.

A session is a cookie that a browser sends to this server only. Browsers send cookies to every port of a machine, so the
cookie is bound to a random path. A login token that was used opens nothing, because a browser history or another user may
have seen it. A login token that is written to a file works for a short time only.

A session survives a restart of the server. The next server over the same folder knows the digest of the session
(`SavedSessions`), from which no cookie can be made, and reuses port and path if the port is free. Sessions older than
SESSION_LIFETIME_SECONDS are dropped.
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

SECRET_BYTES = 24  # random bytes in a token, a session or a path
SESSION_LIFETIME_SECONDS = 3 * 24 * 3600.0  # since the login; long enough for a sweep over a weekend


def _new_secret() -> str:
    return secrets.token_urlsafe(SECRET_BYTES)


def _is_equal(presented: str, secret: str) -> bool:
    # The comparison takes the same time whatever differs, so that its duration reveals nothing.
    return hmac.compare_digest(presented.encode(), secret.encode())


def _digest(session: str) -> str:
    return hashlib.sha256(session.encode()).hexdigest()


@dataclass(frozen=True)
class SavedSessions:
    """What a server saves for the next one: port, path, and the digest and login time of each session."""

    port: int = 0
    base_path: str = field(default="", repr=False)
    sessions: dict[str, float] = field(default_factory=dict, repr=False)

    @staticmethod
    def read(path: Path) -> SavedSessions:
        """Return what the last server saved; empty if there is no such file or it cannot be read."""
        try:
            saved = TypeAdapter(SavedSessions).validate_json(path.read_bytes())
            is_valid = saved.base_path.startswith("/") and len(saved.base_path) > SECRET_BYTES
        except (OSError, ValueError):
            return SavedSessions()
        now = time.time()
        young = {digest: login for digest, login in saved.sessions.items() if now - login < SESSION_LIFETIME_SECONDS}
        return SavedSessions(saved.port, saved.base_path, young) if is_valid and young else SavedSessions()

    def write(self, path: Path) -> None:
        write_atomically(path, json.dumps(vars(self)))


@dataclass
class Authenticator:
    """The tokens and sessions of one server.

    token : for programs, in a header. port : part of the cookie's name. on_login : called after each login of a browser.
    base_path : the path below which browsers find everything. browser_token : logs the next browser in.
    state_file : where sessions are saved for the next server; None: not saved. sessions : digest -> login time.
    """

    token: str = field(default_factory=_new_secret, repr=False)
    port: int = 0
    on_login: Callable[[], None] = lambda: None
    base_path: str = field(default_factory=lambda: f"/{_new_secret()}", repr=False)
    browser_token: str = field(default_factory=_new_secret, repr=False)
    state_file: Path | None = None
    sessions: dict[str, float] = field(default_factory=dict, repr=False)
    _short_token: tuple[str, float] = field(default=("", 0.0), repr=False)  # a token, and when it expires
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def cookie_name(self) -> str:
        return f"sdcmap-{self.port}"

    def is_browser_path(self, path: str) -> bool:
        """Return whether this is a path for browsers, not for programs."""
        return path.startswith(f"{self.base_path}/")

    def is_token(self, presented: str) -> bool:
        return _is_equal(presented, self.token)

    def is_session(self, presented: str) -> bool:
        return _digest(presented) in self.sessions

    def issue_short_token(self, seconds: float) -> str:
        """Return a second token for the next browser that expires after so many seconds; it may be written to a file."""
        with self._lock:
            self._short_token = _new_secret(), time.monotonic() + seconds
            return self._short_token[0]

    def exchange(self, presented: str) -> str | None:
        """Return a new session for a valid login token, and replace the token; None if the token is not valid."""
        with self._lock:
            short, expires = self._short_token
            is_short = _is_equal(presented, short) and time.monotonic() < expires
            if not is_short and not _is_equal(presented, self.browser_token):
                return None
            # Both tokens are used up by one login: whoever sees the address later gets nothing.
            self.browser_token, self._short_token, session = _new_secret(), ("", 0.0), _new_secret()
            self.sessions[_digest(session)] = time.time()
            if self.state_file is not None:
                SavedSessions(self.port, self.base_path, self.sessions).write(self.state_file)
        self.on_login()
        return session

    def cookie_header(self, session: str) -> str:
        """Return the value of the Set-Cookie header for a session."""
        return f"{self.cookie_name}={session}; Path={self.base_path}; HttpOnly; SameSite=Strict"
