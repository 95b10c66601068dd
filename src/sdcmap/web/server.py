"""`sdcmap serve`: an address for one browser, printed first, and the token for programs; loopback unless told otherwise."""

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
from sdcmap.web.entrance import Entrance, Kept
from sdcmap.web.pages import render
from sdcmap.web.safety import OWNER
from sdcmap.web.service import make_app
from sdcmap.web.workspace import Workspace

HEADER_SECONDS = 15.0  # in which a client must have asked something
KEEP_ALIVE_SECONDS = 20  # after an answer, until the next request begins
MOST_AT_ONCE = 200  # connections; more than are accepted in one round, so that who asks at once is heard
BACKLOG = 128
OPEN_SECONDS = 0.5  # until the server listens
DOOR_SECONDS = 60.0  # in which a browser that was told to must have come in


class Impatient(H11Protocol):
    """HTTP for clients that ask in time: a connection whose next request has not come whole up to its body is closed.

    Where all places are taken, a newcomer gets that of a guest, who has shown no token yet, and else one where nothing is
    being answered. A crowd of guests cannot shut the owner out: they send each other away, and his request shows the token.
    """

    _waiting: asyncio.TimerHandle | None = None
    _began = 0.0
    _is_guest = True

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._began = self.loop.time()
        self._make_room()
        self._watch()

    def on_response_complete(self) -> None:
        self._is_guest = self._is_guest and OWNER not in self.scope
        super().on_response_complete()

    def _make_room(self) -> None:
        """Send one away where there are too many: of the address with most guests, the one who has been there longest."""
        others = [other for other in self.connections if isinstance(other, Impatient) and other is not self]
        others = [other for other in others if not other.transport.is_closing()]
        if len(others) < MOST_AT_ONCE:
            return
        crowds = Counter(other.address for other in others if other.is_guest)
        guests = [other for other in others if other.is_guest and crowds[other.address] == max(crowds.values())]
        free = guests or [other for other in others if other._is_idle()] or [self]
        min(free, key=lambda other: other._began).transport.close()

    @property
    def address(self) -> str:
        return self.client[0] if self.client else ""

    @property
    def is_guest(self) -> bool:
        """Whether nobody has shown the token by this connection, in a request that was answered or is being answered."""
        return self._is_guest and (self.scope is None or OWNER not in self.scope)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def _is_idle(self) -> bool:
        """Whether no request is being answered: its header has not come yet, or not whole."""
        cycle = getattr(self, "cycle", None)
        return cycle is None or cycle.response_complete

    def _watch(self) -> None:
        """A deadline for the header, counted from its first byte; more bytes do not move it."""
        if not self._is_idle():
            self._forget()
        elif self._waiting is None:
            self._waiting = asyncio.get_running_loop().call_later(HEADER_SECONDS, self._give_up)

    def _forget(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        if self._is_idle() and not self.transport.is_closing():
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)


def serve(
    room: Workspace,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    page: str = "/",
    workers: int = 0,
    open_browser: bool = False,
) -> None:
    """Serve until stopped. The first line printed is the address for one browser, the second the token for programs; when
    the address was used, one for the next browser is printed."""
    os.umask(0o077)  # uploads, plans and studies are private
    remove_from_import_path(room.folder)
    listening, entrance = _door(room, host, port)
    port = entrance.port
    shown = f"[{host}]" if ":" in host else host

    def address(token: str) -> str:
        return f"http://{shown}:{port}{entrance.place}{page}?token={token}"

    def used() -> None:
        with suppress(OSError):  # nobody reads what is printed
            print(f"for another browser: {address(entrance.once)}", flush=True)

    entrance.used = used
    app = make_app(room, entrance, workers=workers)
    print(address(entrance.once), f"token for programs: {entrance.token}", sep="\n", flush=True)
    remove_abandoned(room.notes)
    opening = _browser(room, entrance, address) if open_browser else nullcontext()
    with opening, suppress(KeyboardInterrupt):  # Ctrl-C is how it ends
        uvicorn.Server(settings(app)).run(sockets=[listening])


@contextmanager
def _browser(room: Workspace, entrance: Entrance, address: Callable[[str], str]) -> Iterator[None]:
    """Open the address in a browser by a private file: what a command line says, every user of the machine can read. The
    file goes when the browser has come in or has had its time, with the server, or, after a kill, with the next start."""
    before = entrance.used
    with private_folder(room.notes) as folder:
        door = folder / "open.html"
        door.touch(mode=0o600)
        door.write_text(render("enter.html", place=address(entrance.brief(DOOR_SECONDS))))

        def used() -> None:
            door.unlink(missing_ok=True)
            before()

        entrance.used = used
        for seconds, act, given in ((OPEN_SECONDS, webbrowser.open, door.as_uri()), (DOOR_SECONDS, door.unlink, True)):
            timer = threading.Timer(seconds, act, (given,))
            timer.daemon = True
            timer.start()
        yield


def settings(app: FastAPI) -> uvicorn.Config:
    """How the application is served."""
    return uvicorn.Config(
        app, port=0, http=Impatient, ws="none", log_level="critical", access_log=False, server_header=False,
        backlog=BACKLOG, timeout_keep_alive=KEEP_ALIVE_SECONDS, timeout_graceful_shutdown=3, lifespan="on",
    )  # fmt: skip


def _door(room: Workspace, host: str, port: int) -> tuple[socket.socket, Entrance]:
    """Where to listen, and who is let in: on the port and path of the last server, so that its browsers are still in; where
    its port is taken, as by another server of this folder, with nothing of it."""
    note = room.notes / "sessions.json"
    kept = Kept.read(note)
    if kept.port and port in (0, kept.port):
        with suppress(SdcmapError):
            return _listen(host, kept.port), Entrance(note=note, **vars(kept))
    listening = _listen(host, port)
    return listening, Entrance(port=listening.getsockname()[1], note=None if kept.port and port == 0 else note)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SdcmapError(f"{host}:{port} cannot be listened at ({reason}).") from None
