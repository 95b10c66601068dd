"""Access control: a token or session for every request, the origin of writes, size and time limits, security headers."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, quote, urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sdcmap.core.named_files import restrict_files_to
from sdcmap.web.pages import render
from sdcmap.web.responses import STATUS_MESSAGES, error_response, request_path, response_to_error
from sdcmap.web.sessions import Authenticator
from sdcmap.web.workspace import Workspace

MAX_BODY_BYTES = 1 << 20  # of a request without a file
FORM_OVERHEAD_BYTES = 64 << 10  # of an upload, beside the file itself
MAX_SILENCE_SECONDS = 30.0  # between two parts of a request
MIN_BYTES_PER_SECOND = 10_000  # of a request body, after the first MAX_SILENCE_SECONDS
AUTHENTICATED = "sdcmap.authenticated"  # set in the scope of a request with a valid token or session
HTTP_PORT = 80  # which addresses need not state
now = time.monotonic
PUBLIC_PATHS = ("/static/workbench.css", "/static/icon.svg")  # needed by the page that explains how to log in
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")  # of this machine; no other site can have them
UPLOAD_PATHS = ("/api/files", "/api/swaps")
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
}  # a response that sets one of them keeps its own value


@dataclass(frozen=True)
class RequestGuard:
    """The outermost layer of the application: it rejects requests before any other code sees them.

    is_local : whether the server listens on this machine only, so that every request must name this machine.
    """

    app: ASGIApp
    workspace: Workspace
    authenticator: Authenticator
    is_local: bool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        # The workbench uses no web sockets.
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        if self.authenticator.is_browser_path(scope["path"]):
            scope["root_path"] = self.authenticator.base_path
        request = Request(scope)
        has_started = False

        async def answer(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                named = {name.lower() for name, _ in message["headers"]}
                more = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *(pair for pair in more if pair[0] not in named)]
            await send(message)

        try:
            if self.is_local and not _names_this_machine(request):
                await _refuse(request, 421, STATUS_MESSAGES[421])(scope, receive, answer)
                return
            if login_page := self._log_in(request):
                await login_page(scope, receive, answer)
                return
            problem = self._find_problem(request)
            is_public = request.method == "GET" and request_path(request.scope) in PUBLIC_PATHS
            if problem and not is_public:
                await _refuse(request, *problem)(scope, receive, answer)
                return
            if not problem:
                scope[AUTHENTICATED] = True
            with restrict_files_to(self.workspace.folder):
                await self.app(scope, self._limit_body(request, receive), answer)
        except Exception as error:
            if not has_started:
                await response_to_error(request, error)(scope, receive, answer)

    # ---- authentication --------------------------------------------------------------------------------------------------
    def _session(self, request: Request) -> str:
        """Return the session of a browser, which is valid below the base path only; empty if there is none."""
        token = _cookie(request, self.authenticator.cookie_name) if request.scope["root_path"] else ""
        return token if self.authenticator.is_session(token) else ""

    def _log_in(self, request: Request) -> HTMLResponse | None:
        """Exchange a login token in the address for a session and return a page that continues without it; else None.

        The page forwards by itself. With a redirect that starts elsewhere, such as in a file, browsers drop the cookie.
        """
        token = request.query_params.get("token")
        if request.method != "GET" or token is None or not request.scope["root_path"]:
            return None
        known = self._session(request)
        session = known or self.authenticator.exchange(token)
        if session is None:
            return None
        rest = urlencode([(k, v) for k, v in parse_qsl(request.url.query) if k != "token"])
        address = quote(request.scope["path"]) + (f"?{rest}" if rest else "")
        page = HTMLResponse(render("enter.html", address=address))
        if not known:
            page.headers["set-cookie"] = self.authenticator.cookie_header(session)
        return page

    def _find_problem(self, request: Request) -> tuple[int, str] | None:
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        by_header = scheme.lower() == "bearer" and self.authenticator.is_token(bearer.strip())
        if not by_header and not self._session(request):
            return 401, STATUS_MESSAGES[401]
        # Another site must not make a logged-in browser change anything (CSRF).
        if request.method not in ("GET", "HEAD", "OPTIONS"):
            origin = request.headers.get("origin")
            is_own = origin is not None and origin.partition("://")[2] == request.headers.get("host")
            if not is_own and (origin is not None or not by_header):
                return 403, "only this site's own pages may request a change."
        return self._find_size_problem(request)

    # ---- sizes and time ---------------------------------------------------------------------------------------------
    def _max_bytes(self, request: Request) -> int:
        return (
            self.workspace.upload_limit + FORM_OVERHEAD_BYTES
            if request_path(request.scope) in UPLOAD_PATHS
            else MAX_BODY_BYTES
        )

    def _find_size_problem(self, request: Request) -> tuple[int, str] | None:
        try:
            size = int(request.headers.get("content-length", "0"))
        except ValueError:
            return 400, "the request cannot be read."
        if size > self._max_bytes(request):
            return 413, f"requests to this address may have at most {self._max_bytes(request) >> 20:,} MB."
        if size > MAX_BODY_BYTES and not self.workspace.has_space(size):
            return 507, "the disk does not have enough free space for a file of that size."
        return None

    def _limit_body(self, request: Request, receive: Receive) -> Receive:
        """Return `receive` with limits on size and speed, whatever the content-length header claims."""
        limit, start = self._max_bytes(request), now()
        size, is_complete = 0, False

        async def receive_limited() -> Message:
            nonlocal size, is_complete
            # The body is complete; the application now waits for the client to disconnect.
            if is_complete:
                return await receive()
            seconds_left = MAX_SILENCE_SECONDS + size / MIN_BYTES_PER_SECOND - (now() - start)
            try:
                message = await asyncio.wait_for(receive(), max(0.0, min(MAX_SILENCE_SECONDS, seconds_left)))
            except TimeoutError:
                raise HTTPException(408, "the request was too slow.") from None
            size += len(message.get("body", b""))
            is_complete = not message.get("more_body", False)
            if size > limit:
                raise HTTPException(413)
            return message

        return receive_limited


def _cookie(request: Request, name: str) -> str:
    try:
        morsel = SimpleCookie(request.headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return morsel.value if morsel is not None else ""


def _refuse(request: Request, status: int, sentence: str) -> Response:
    """Return the error; unauthenticated clients must not occupy connections."""
    refusal = error_response(request, status, sentence)
    if status in (401, 421):
        refusal.headers["connection"] = "close"
    return refusal


def _names_this_machine(request: Request) -> bool:
    """Return whether the Host header has a name of this machine and the port of this server.

    The name of another site may lead to this machine (DNS rebinding). Its pages would then count as pages of this server.
    """
    _, port = request.scope["server"]
    names = [f"[{name}]" if ":" in name else name for name in LOOPBACK_NAMES]
    allowed = {f"{name}:{port}" for name in names} | ({*names} if port in (None, HTTP_PORT) else set())
    return request.headers.get("host", "").lower() in allowed
