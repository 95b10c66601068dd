"""Who may ask what: a token for every request, the origin of writes, sizes, patience, and the headers of each answer."""

from __future__ import annotations

import asyncio
import hmac
import time
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sdcmap.core.named_files import files_below
from sdcmap.web.answers import of_error, said
from sdcmap.web.room import Room

SMALL_BODY = 1 << 20  # bytes of a request that carries no file
FORM_ROOM = 64 << 10  # bytes around the file of an upload
PATIENCE = 30.0  # seconds between two pieces of a request
SLOWEST = 10_000  # bytes a second of a body, after the first seconds
OWNER = "sdcmap.owner"  # in the scope of a request whose sender has the token: his connection is not one of a guest
now = time.monotonic
UPLOADS = ("/api/files", "/api/swaps")
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


@dataclass(frozen=True)
class Safety:
    """The outermost layer of the application."""

    app: ASGIApp
    room: Room
    token: str
    cookie: str = "sdcmap"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # no web sockets here
            await send({"type": "websocket.close", "code": 1008})
            return
        request = Request(scope)
        begun = False

        async def answer(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                named = {name.lower() for name, _ in message["headers"]}
                more = HEADERS if b"cache-control" in named else HEADERS | {"cache-control": "no-store"}
                message["headers"] = [*message["headers"], *((k.encode(), v.encode()) for k, v in more.items())]
            await send(message)

        try:
            if self._is_first_use(request):
                await self._welcome(request, answer)
                return
            problem = self._problem(request)
            if problem:
                refusal = said(request, *problem)
                if problem[0] == 401:  # a guest without the token does not stay
                    refusal.headers["connection"] = "close"
                await refusal(scope, receive, answer)
                return
            scope[OWNER] = True
            with files_below(self.room.folder):
                await self.app(scope, self._counted(request, receive), answer)
        except Exception as error:
            if not begun:
                await of_error(request, error)(scope, receive, answer)

    # ---- who --------------------------------------------------------------------------------------------------
    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())

    def _is_first_use(self, request: Request) -> bool:
        """A page asked for with the token in its address."""
        given = request.query_params.get("token")
        return request.method == "GET" and given is not None and self._is_token(given)

    async def _welcome(self, request: Request, send: Send) -> None:
        """The token goes into a cookie, and out of the address."""
        rest = urlencode([(k, v) for k, v in parse_qsl(request.url.query) if k != "token"])
        path = "/" + request.url.path.lstrip("/\\")
        place = path + (f"?{rest}" if rest else "")
        cookie = f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
        headers = [(b"location", place.encode("ascii", "ignore")), (b"set-cookie", cookie.encode())]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    def _problem(self, request: Request) -> tuple[int, str] | None:
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        by_header = scheme.lower() == "bearer" and self._is_token(bearer.strip())
        if not by_header and not self._is_token(_cookie(request, self.cookie)):
            return 401, "this needs the address with its token that `sdcmap serve` printed."
        if request.method not in ("GET", "HEAD", "OPTIONS"):
            origin = request.headers.get("origin")
            own = origin is not None and origin.partition("://")[2] == request.headers.get("host")
            if not own and (origin is not None or not by_header):
                return 403, "a change may be asked for by this site's own pages only."
        return self._problem_of_size(request)

    # ---- how much ---------------------------------------------------------------------------------------------
    def _limit(self, request: Request) -> int:
        return self.room.upload_limit + FORM_ROOM if request.url.path in UPLOADS else SMALL_BODY

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
        limit = self._limit(request)
        size = 0
        whole = False
        begun = now()

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
