"""Who may ask what: a token or a session for every request, the origin of writes, sizes, patience, headers of answers."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, quote, urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sdcmap.core.named_files import restrict_files_to
from sdcmap.web.answers import WORDS, asked_path, of_error, said
from sdcmap.web.entrance import Entrance
from sdcmap.web.pages import render
from sdcmap.web.workspace import Workspace

SMALL_BODY = 1 << 20  # bytes of a request that carries no file
FORM_ROOM = 64 << 10  # bytes around the file of an upload
PATIENCE = 30.0  # seconds between two pieces of a request
SLOWEST = 10_000  # bytes a second of a body, after the first seconds
OWNER = "sdcmap.owner"  # in the scope of a request whose sender has the token: his connection is not one of a guest
now = time.monotonic
PUBLIC = ("/static/workbench.css", "/static/icon.svg")  # how the page looks that tells a guest how to come in
UPLOADS = ("/api/files", "/api/swaps")
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}  # an answer that has one of them keeps its own


@dataclass(frozen=True)
class Safety:
    """The outermost layer of the application."""

    app: ASGIApp
    room: Workspace
    entrance: Entrance

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # no web sockets here
            await send({"type": "websocket.close", "code": 1008})
            return
        if self.entrance.is_inside(scope["path"]):
            scope["root_path"] = self.entrance.place
        request = Request(scope)
        begun = False

        async def answer(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                named = {name.lower() for name, _ in message["headers"]}
                more = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *(pair for pair in more if pair[0] not in named)]
            await send(message)

        try:
            if welcome := self._welcome(request):
                await welcome(scope, receive, answer)
                return
            problem = self._problem(request)
            is_public = request.method == "GET" and asked_path(request.scope) in PUBLIC
            if problem and not is_public:
                refusal = said(request, *problem)
                if problem[0] == 401:  # a guest without the token does not stay
                    refusal.headers["connection"] = "close"
                await refusal(scope, receive, answer)
                return
            if not problem:
                scope[OWNER] = True
            with restrict_files_to(self.room.folder):
                await self.app(scope, self._counted(request, receive), answer)
        except Exception as error:
            if not begun:
                await of_error(request, error)(scope, receive, answer)

    # ---- who --------------------------------------------------------------------------------------------------
    def _session(self, request: Request) -> str:
        """The session that a browser shows, below its path alone; empty where it is none of ours."""
        given = _cookie(request, self.entrance.cookie) if request.scope["root_path"] else ""
        return given if self.entrance.is_session(given) else ""

    def _welcome(self, request: Request) -> HTMLResponse | None:
        """The token of a browser that comes in becomes a session, and goes out of the address; None for all others.

        The page leads on by itself: a redirect that began elsewhere, such as in a file, would leave the cookie behind.
        """
        given = request.query_params.get("token")
        if request.method != "GET" or given is None or not request.scope["root_path"]:
            return None
        known = self._session(request)
        session = known or self.entrance.exchange(given)
        if session is None:
            return None
        rest = urlencode([(k, v) for k, v in parse_qsl(request.url.query) if k != "token"])
        place = quote(request.scope["path"]) + (f"?{rest}" if rest else "")
        page = HTMLResponse(render("enter.html", place=place))
        if not known:
            page.headers["set-cookie"] = self.entrance.crumb(session)
        return page

    def _problem(self, request: Request) -> tuple[int, str] | None:
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        by_header = scheme.lower() == "bearer" and self.entrance.is_token(bearer.strip())
        if not by_header and not self._session(request):
            return 401, WORDS[401]
        if request.method not in ("GET", "HEAD", "OPTIONS"):
            origin = request.headers.get("origin")
            own = origin is not None and origin.partition("://")[2] == request.headers.get("host")
            if not own and (origin is not None or not by_header):
                return 403, "a change may be asked for by this site's own pages only."
        return self._problem_of_size(request)

    # ---- how much ---------------------------------------------------------------------------------------------
    def _limit(self, request: Request) -> int:
        return self.room.upload_limit + FORM_ROOM if asked_path(request.scope) in UPLOADS else SMALL_BODY

    def _problem_of_size(self, request: Request) -> tuple[int, str] | None:
        try:
            size = int(request.headers.get("content-length", "0"))
        except ValueError:
            return 400, "the request cannot be read."
        if size > self._limit(request):
            return 413, f"at most {self._limit(request) >> 20:,} MB may be sent here."
        if size > SMALL_BODY and not self.room.has_space(size):
            return 507, "the disk has no room for a file of that size."
        return None

    def _counted(self, request: Request, receive: Receive) -> Receive:
        """What comes in, cut off where it is too much or too slow, whatever its header said."""
        limit, begun = self._limit(request), now()
        size, whole = 0, False

        async def counted() -> Message:
            nonlocal size, whole
            if whole:  # the body is here: what is waited for now is the client's going away
                return await receive()
            left = PATIENCE + size / SLOWEST - (now() - begun)
            try:
                message = await asyncio.wait_for(receive(), max(0.0, min(PATIENCE, left)))
            except TimeoutError:
                raise HTTPException(408, "the request came too slowly.") from None
            size += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if size > limit:
                raise HTTPException(413)
            return message

        return counted


def _cookie(request: Request, name: str) -> str:
    try:
        morsel = SimpleCookie(request.headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return morsel.value if morsel is not None else ""
