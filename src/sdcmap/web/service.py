"""Build the application."""

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
from sdcmap.web.renderer import Renderer
from sdcmap.web.request_guard import RequestGuard
from sdcmap.web.responses import Problem, request_path, response_to_error
from sdcmap.web.sessions import Authenticator
from sdcmap.web.study_store import StudyStore
from sdcmap.web.sweeps import Sweeps
from sdcmap.web.workbench import BenchApp, Workbench
from sdcmap.web.workspace import Workspace

PRELOAD_DELAY_SECONDS = 1.0  # between the first request to the service and preloading
ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": words}
    for status, words in {
        401: "The token is missing or wrong.",
        403: "The request came from another site.",
        404: "Not found.",
        409: "Another process is writing, or the release checks failed; every failed check is listed.",
        412: "It was changed by somebody else since it was read.",
        413: "Too large.",
        421: "The request names another machine or port than that of the server.",
        422: "The request is not valid; every problem is listed.",
    }.items()
}

TOKEN_WORDS = "The token for programs that `sdcmap serve` printed."
BEARER = {"token": {"type": "http", "scheme": "bearer", "description": TOKEN_WORDS}}


class App(BenchApp):
    """The application. Its service (api_*.py) imports numpy and polars, so it is loaded on the first request to it."""

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


def make_app(
    workspace: Workspace, authenticator: Authenticator | None = None, *, workers: int = 0, is_local: bool = True
) -> App:
    """Return the workbench and the service over one folder; every request needs a token or a session.

    is_local : whether the server listens on this machine only; then every request must name this machine.
    """
    sweeps, renderer = Sweeps(workspace, workers), Renderer()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        sweeps.open()
        yield
        renderer.close()
        sweeps.close()

    app = App(
        title="sdcmap",
        version=sdcmap.__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        swagger_ui_oauth2_redirect_url=None,
        root_path_in_servers=False,
        generate_unique_id_function=lambda route: route.name,
        responses=ERROR_RESPONSES,
        description="Choose what to release: the verbs of sdcmap as a web service.",
    )
    app.bench = Workbench(workspace, sweeps, renderer, StudyStore(workspace, sweeps))
    app.include_router(pages.router)
    # The last middleware added is the outermost: the guard sees requests before anything is loaded for them.
    app.add_middleware(LazyService, load=app.load_service, preload=partial(_preload, app))
    authenticator = authenticator or Authenticator()
    app.add_middleware(RequestGuard, workspace=workspace, authenticator=authenticator, is_local=is_local)

    async def answer(request: Request, error: Exception) -> Response:
        return response_to_error(request, error)

    for kind in (SdcmapError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, answer)
    return app


@dataclass
class LazyService:
    """Load the service before the first request to it, and preload what later pages need shortly after."""

    app: ASGIApp
    load: Callable[[], None]
    preload: Callable[[], None]
    _is_loaded: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._is_loaded and scope["type"] == "http" and request_path(scope).startswith("/api"):
            await run_in_threadpool(self.load)
            # Several first requests may arrive at once; only one of them schedules the preloading.
            if not self._is_loaded:
                self._is_loaded = True
                asyncio.get_running_loop().call_later(
                    PRELOAD_DELAY_SECONDS, Thread(target=self.preload, daemon=True).start
                )
        await self.app(scope, receive, send)


def _preload(app: App) -> None:
    """Prepare the charts' JavaScript while the server is idle, and clean up after a killed server."""

    remove_abandoned(app.bench.workspace.folder)
    with suppress(Exception):  # the first page with a chart will report the error
        app.bench.renderer.vega()
