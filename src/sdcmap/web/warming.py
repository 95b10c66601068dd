"""What later pages need is loaded while nobody waits for an answer: the first page is not kept waiting by it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Receive, Scope, Send

from sdcmap.web.answers import asked_path

NOBODY_CAME, QUIET = 6.0, 1.0  # seconds: after the start, and after the last request


@dataclass
class Warming:
    """Calls `load` once, in a thread of its own, when no request has been under way for a while. A request to the service
    that comes before has the service loaded first."""

    app: ASGIApp
    service: Callable[[], None]
    load: Callable[[], None]
    _asked: int = 0  # requests under way
    _begun: bool = False
    _has_service: bool = False
    _due: asyncio.TimerHandle | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            self._when_quiet(NOBODY_CAME)
            await self.app(scope, receive, send)
            self._put_off()
            return
        self._put_off()
        self._asked += 1
        try:
            if not self._has_service and asked_path(scope).startswith("/api"):
                await run_in_threadpool(self.service)
                self._has_service = True
            await self.app(scope, receive, send)
        finally:
            self._asked -= 1
            self._when_quiet(QUIET)

    def _put_off(self) -> None:
        if self._due is not None:
            self._due.cancel()

    def _when_quiet(self, seconds: float) -> None:
        self._put_off()
        if not self._asked and not self._begun:
            self._due = asyncio.get_running_loop().call_later(seconds, self._begin)

    def _begin(self) -> None:
        self._begun = True
        threading.Thread(target=self.load, daemon=True).start()
