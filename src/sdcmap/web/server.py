"""`sdcmap serve`: print an address for one browser and a token for programs, then serve, by default to this machine."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import webbrowser
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from sdcmap.data.private_folder import private_folder, remove_abandoned
from sdcmap.errors import SdcmapError
from sdcmap.files.subprocesses import remove_from_import_path
from sdcmap.web.pages import render
from sdcmap.web.request_guard import AUTHENTICATED, LOOPBACK_NAMES
from sdcmap.web.service import make_app
from sdcmap.web.sessions import Authenticator, SavedSessions
from sdcmap.web.workspace import Workspace

HEADER_SECONDS = 15.0  # in which the header of a request must arrive
KEEP_ALIVE_SECONDS = 20  # after a response, until the next request begins
MAX_CONNECTIONS = 200  # more than BACKLOG, so that a burst of clients is accepted
BACKLOG = 128  # connections that the operating system queues
BROWSER_DELAY_SECONDS = 0.5  # before the browser is opened: the server must be listening
BROWSER_LOGIN_SECONDS = 60.0  # how long the login token in the private file works


class GuardedProtocol(H11Protocol):
    """HTTP with a deadline for request headers and a limit on connections.

    When all connections are taken, a new client replaces a guest, a client that has shown no token yet; without guests it
    replaces an idle connection. A crowd of guests cannot lock out the owner, whose requests carry the token: guests only
    replace each other.
    """

    _deadline: asyncio.TimerHandle | None = None
    _connected_at = 0.0
    _is_guest = True

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._connected_at = self.loop.time()
        self._close_one_if_full()
        self._set_deadline()

    def on_response_complete(self) -> None:
        self._is_guest = self._is_guest and AUTHENTICATED not in self.scope
        super().on_response_complete()

    def _close_one_if_full(self) -> None:
        """Close one connection if there are too many: the oldest guest of the address with the most guests."""
        # Connections that are already closing free their place by themselves.
        others = [other for other in self.connections if isinstance(other, GuardedProtocol) and other is not self]
        others = [other for other in others if not other.transport.is_closing()]
        if len(others) < MAX_CONNECTIONS:
            return
        # Close a guest of the largest crowd first, so that one address cannot displace the guests of others.
        guest_counts = Counter(other.address for other in others if other.is_guest)
        guests = [
            other for other in others if other.is_guest and guest_counts[other.address] == max(guest_counts.values())
        ]
        closable = guests or [other for other in others if other._is_idle()] or [self]
        min(closable, key=lambda other: other._connected_at).transport.close()

    @property
    def address(self) -> str:
        return self.client[0] if self.client else ""

    @property
    def is_guest(self) -> bool:
        """Whether no request of this connection has been authenticated, including the current one."""
        return self._is_guest and (self.scope is None or AUTHENTICATED not in self.scope)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._set_deadline()

    def _is_idle(self) -> bool:
        """Return whether no request is being processed: its header has not arrived yet, or not completely."""
        cycle = getattr(self, "cycle", None)
        return cycle is None or cycle.response_complete

    def _set_deadline(self) -> None:
        """Start the deadline for a header at its first byte; later bytes do not extend it."""
        if not self._is_idle():
            self._cancel_deadline()
        elif self._deadline is None:
            self._deadline = asyncio.get_running_loop().call_later(HEADER_SECONDS, self._close_if_idle)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _close_if_idle(self) -> None:
        self._deadline = None
        if self._is_idle() and not self.transport.is_closing():
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        super().connection_lost(exc)


def serve(
    workspace: Workspace,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    page: str = "/",
    workers: int = 0,
    open_browser: bool = False,
) -> None:
    """Serve until stopped.

    The first line printed is the address for one browser, the second the token for programs. After each login the address
    for the next browser is printed.
    """
    # Uploads, plans and studies must be readable by their owner only.
    os.umask(0o077)
    remove_from_import_path(workspace.folder)
    listening, authenticator = _bind(workspace, host, port)
    port = authenticator.port
    shown = f"[{host}]" if ":" in host else host

    def address(token: str) -> str:
        return f"http://{shown}:{port}{authenticator.base_path}{page}?token={token}"

    def announce_next() -> None:
        with suppress(OSError):  # standard output may be closed
            print(f"for another browser: {address(authenticator.browser_token)}", flush=True)

    authenticator.on_login = announce_next
    app = make_app(workspace, authenticator, workers=workers, is_local=host in LOOPBACK_NAMES)
    print(address(authenticator.browser_token), f"token for programs: {authenticator.token}", sep="\n", flush=True)
    remove_abandoned(workspace.state_folder)
    opening = _open_browser(workspace, authenticator, address) if open_browser else nullcontext()
    with opening, suppress(KeyboardInterrupt):  # Ctrl-C is the normal way to stop
        uvicorn.Server(uvicorn_config(app)).run(sockets=[listening])


@contextmanager
def _open_browser(workspace: Workspace, authenticator: Authenticator, address: Callable[[str], str]) -> Iterator[None]:
    """Open the address in a browser through a private file that contains it.

    Every user of the machine can read command lines, so the token must not be on one. The file is deleted after the login,
    after BROWSER_LOGIN_SECONDS, when the server ends, or, if the server was killed, at the next start.
    """
    before = authenticator.on_login
    with private_folder(workspace.state_folder) as folder:
        page_file = folder / "open.html"
        page_file.touch(mode=0o600)
        page_file.write_text(
            render("enter.html", address=address(authenticator.issue_short_token(BROWSER_LOGIN_SECONDS)))
        )

        def delete_page() -> None:
            page_file.unlink(missing_ok=True)
            before()

        authenticator.on_login = delete_page
        for seconds, act, given in (
            (BROWSER_DELAY_SECONDS, webbrowser.open, page_file.as_uri()),
            (BROWSER_LOGIN_SECONDS, page_file.unlink, True),
        ):
            timer = threading.Timer(seconds, act, (given,))
            timer.daemon = True
            timer.start()
        yield


def uvicorn_config(app: FastAPI) -> uvicorn.Config:
    """Return the settings of uvicorn."""
    return uvicorn.Config(
        app,
        port=0,
        http=GuardedProtocol,
        ws="none",
        log_level="critical",
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=3,
        lifespan="on",
    )


def _bind(workspace: Workspace, host: str, port: int) -> tuple[socket.socket, Authenticator]:
    """Return the socket to listen on and the authenticator.

    Port, path and sessions of the last server are reused, so that its browsers stay logged in. If its port is taken, for
    instance by another server of this folder, everything is new.
    """
    state_file = workspace.state_folder / "sessions.json"
    saved = SavedSessions.read(state_file)
    if saved.port and port in (0, saved.port):
        with suppress(SdcmapError):
            return _listen(host, saved.port), Authenticator(state_file=state_file, **vars(saved))
    listening = _listen(host, port)
    # A second server of the same folder must not overwrite the sessions of the first.
    is_second = bool(saved.port) and port == 0
    return listening, Authenticator(port=listening.getsockname()[1], state_file=None if is_second else state_file)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SdcmapError(f"{host}:{port} cannot be used ({reason}). Choose another port with --port.") from None
