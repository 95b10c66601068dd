"""The application put together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from threading import Lock, Thread
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

import sdcmap
from sdcmap.data.private_folder import remove_abandoned
from sdcmap.errors import SdcmapError
from sdcmap.web import pages
from sdcmap.web.answers import Problem, asked_path, of_error
from sdcmap.web.drawing import Drawing
from sdcmap.web.entrance import Entrance
from sdcmap.web.safety import Safety
from sdcmap.web.shelf import Shelf
from sdcmap.web.sweeps import Sweeps
from sdcmap.web.workbench import BenchApp, Workbench
from sdcmap.web.workspace import Workspace

QUIET_SECONDS = 1.0  # after the first request to the service
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": words}
    for status, words in {
        401: "No token.", 403: "Another site asked.", 404: "There is no such thing here.",
        409: "Somebody else is writing, or a release is refused, with every failed check.",
        412: "It was changed meanwhile.", 413: "Too large.", 422: "It does not fit, with every problem.",
    }.items()
}  # fmt: skip

TOKEN_WORDS = "The token for programs that `sdcmap serve` printed."
BEARER = {"token": {"type": "http", "scheme": "bearer", "description": TOKEN_WORDS}}


class App(BenchApp):
    """The application; its service (api_*.py), which loads numpy and polars, is put together when it is first needed."""

    has_service = False
    _loading = Lock()

    def load_service(self) -> None:
        """Add the routes of the service, once."""
        with self._loading:
            if self.has_service:
                return
            from sdcmap.web import api_candidates, api_files, api_maps, api_plans, api_releases, api_studies

            for part in (api_files, api_studies, api_plans, api_maps, api_candidates, api_releases):
                self.include_router(part.router)
            self.has_service = True

    def openapi(self) -> dict[str, Any]:
        """Describe the service; every operation names the token."""
        self.load_service()
        document = super().openapi()
        document.setdefault("components", {})["securitySchemes"] = BEARER
        document["security"] = [{"token": []}]
        return document


def make_app(room: Workspace, entrance: Entrance | None = None, *, workers: int = 0) -> App:
    """The workbench and the service over one folder; every request needs a token or a session."""
    sweeps, drawing = Sweeps(room, workers), Drawing()

    @asynccontextmanager
    async def living(app: FastAPI) -> AsyncIterator[None]:
        sweeps.open()
        yield
        drawing.close()
        sweeps.close()

    app = App(
        title="sdcmap", version=sdcmap.__version__, lifespan=living, docs_url=None, redoc_url=None,
        openapi_url="/api/openapi.json", swagger_ui_oauth2_redirect_url=None,
        root_path_in_servers=False, generate_unique_id_function=lambda route: route.name, responses=PROBLEMS,
        description="Choose what to release: the verbs of sdcmap as a web service.",
    )  # fmt: skip
    app.bench = Workbench(room, sweeps, drawing, Shelf(room, sweeps))
    app.include_router(pages.router)
    app.add_middleware(LateService, load=app.load_service, warm=partial(_warm, app))
    app.add_middleware(Safety, room=room, entrance=entrance or Entrance())

    async def answer(request: Request, error: Exception) -> Response:
        return of_error(request, error)

    for kind in (SdcmapError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, answer)
    return app


@dataclass
class LateService:
    """Has the service loaded before the first request to it, and what the next pages need a moment after."""

    app: ASGIApp
    load: Callable[[], None]
    warm: Callable[[], None]
    _is_loaded: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._is_loaded and scope["type"] == "http" and asked_path(scope).startswith("/api"):
            await run_in_threadpool(self.load)
            if not self._is_loaded:
                self._is_loaded = True
                asyncio.get_running_loop().call_later(QUIET_SECONDS, Thread(target=self.warm, daemon=True).start)
        await self.app(scope, receive, send)


def _warm(app: App) -> None:
    """Draw a chart's script before somebody waits for it, and clean up after a kill."""

    remove_abandoned(app.bench.room.folder)
    with suppress(Exception):  # the first page with a chart will say what is wrong
        app.bench.drawing.vega()
