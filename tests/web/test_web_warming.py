"""What later pages need is loaded between requests."""

from __future__ import annotations

import asyncio
import threading

import pytest
from starlette.types import Receive, Scope, Send

from sdcmap.web import warming
from sdcmap.web.warming import Warming
from sizes import GUARD


def test_nothing_is_loaded_while_somebody_waits_and_then_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warming, "QUIET", 0.0)
    loaded = threading.Semaphore(0)

    async def story() -> None:
        answered = asyncio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await answered.wait()

        layer = Warming(app, lambda: None, loaded.release)
        request = lambda: asyncio.create_task(layer({"type": "http", "path": "/"}, None, None))  # type: ignore[arg-type]
        first, second = request(), request()
        await asyncio.sleep(0.01)
        assert not loaded.acquire(blocking=False)
        answered.set()
        await asyncio.gather(first, second)
        assert await asyncio.to_thread(loaded.acquire, timeout=GUARD)
        await request()
        await asyncio.sleep(0.01)
        assert not loaded.acquire(blocking=False)

    asyncio.run(story())
