"""The service is loaded on the first request to it; other modules are preloaded afterwards."""

from __future__ import annotations

import asyncio
import threading

import pytest
from starlette.types import Receive, Scope, Send

from sdcmap.web import service
from sdcmap.web.service import LazyService
from sizes import GUARD


def test_service_is_loaded_on_first_request_and_preloads_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(service, "PRELOAD_DELAY_SECONDS", 0.0)
    done: list[str] = []
    warmed = threading.Semaphore(0)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        done.append(scope["path"])

    async def story() -> None:
        layer = LazyService(app, lambda: done.append("loaded"), warmed.release)

        async def ask(path: str) -> None:
            await layer({"type": "http", "path": path, "root_path": ""}, None, None)  # type: ignore[arg-type]

        await ask("/")
        assert done == ["/"] and not warmed.acquire(blocking=False)
        await ask("/api/files")
        assert done == ["/", "loaded", "/api/files"]
        assert await asyncio.to_thread(warmed.acquire, timeout=GUARD)
        await ask("/api/files")
        assert done.count("loaded") == 1 and not warmed.acquire(blocking=False)

    asyncio.run(story())
