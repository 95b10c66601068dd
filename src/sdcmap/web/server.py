"""`sdcmap serve`: an address with its token, printed first; loopback unless told otherwise."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import threading
import webbrowser
from contextlib import suppress
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from sdcmap.errors import SdcmapError
from sdcmap.files.apart import import_nothing_from
from sdcmap.web.app import make_app
from sdcmap.web.room import Room

HEADER_SECONDS = 15.0  # in which a client must have asked something
MOST_AT_ONCE = 200


class Impatient(H11Protocol):
    """HTTP for clients that ask in time: a connection whose next request has not come whole up to its body is closed."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._watch()

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
    room: Room, *, host: str = "127.0.0.1", port: int = 0, page: str = "/", workers: int = 0, open_browser: bool = False
) -> None:
    """Serve until stopped; the first line printed is the address with its token."""
    os.umask(0o077)  # uploads, plans and studies are private
    import_nothing_from(room.folder)
    listening = _listen(host, port)
    port = listening.getsockname()[1]
    token = secrets.token_urlsafe(24)
    app = make_app(room, token, workers=workers, cookie=f"sdcmap-{port}")
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{port}{page}?token={token}"
    print(address, flush=True)
    if open_browser:
        threading.Timer(0.5, webbrowser.open, (address,)).start()
    config = uvicorn.Config(
        app, http=Impatient, ws="none", log_level="critical", access_log=False, server_header=False,
        limit_concurrency=MOST_AT_ONCE, timeout_keep_alive=20, timeout_graceful_shutdown=3, lifespan="on",
    )  # fmt: skip
    with suppress(KeyboardInterrupt):  # Ctrl-C is how it ends
        uvicorn.Server(config).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    try:
        listening = socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=128
        )
    except (OSError, OverflowError) as error:
        raise SdcmapError(
            f"{host}:{port} cannot be listened at ({getattr(error, 'strerror', None) or error})."
        ) from None
    return listening
