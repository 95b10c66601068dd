"""Error responses: one sentence, as JSON for programs and as a page for people."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Annotated, Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import AfterValidator
from starlette.exceptions import HTTPException
from starlette.types import Scope

from sdcmap.core.plan_text import check_table
from sdcmap.errors import Infeasible, MissingExtra, PlanError, SchemaError, SdcmapError, Undefined
from sdcmap.web.response_models import ResponseModel
from sdcmap.web.workspace import EditConflict, NotFound, TooLarge

STATUS: dict[type[SdcmapError], int] = {
    NotFound: 404,
    EditConflict: 412,
    TooLarge: 413,
    PlanError: 422,
    SchemaError: 422,
    Infeasible: 422,
    Undefined: 422,
    MissingExtra: 501,
}
CONFLICT = 409  # for all other errors of sdcmap
STATUS_MESSAGES = {
    400: "the request cannot be read.",
    401: "open the last address that `sdcmap serve` printed. Each address logs in one browser, once.",
    404: "there is nothing at this address.",
    405: "this address does not support that HTTP method.",
    413: "the request is larger than the server accepts.",
    421: "this server answers only to the address that `sdcmap serve` printed.",
}


def _check_size(table: dict[str, Any]) -> dict[str, Any]:
    try:
        check_table(table)
    except PlanError as error:
        raise ValueError(str(error)) from None
    return table


Table = Annotated[dict[str, Any], AfterValidator(_check_size)]  # from a client: limited in depth and size


class Problem(ResponseModel):
    """What went wrong: one sentence, and each problem separately."""

    error: str
    problems: list[str]


def response_to_error(request: Request, error: Exception) -> Response:
    """Return the message of an sdcmap error; for any other error only its type and line.

    The text of another error may contain a data value, so it is neither sent nor logged.
    """
    frame = traceback.extract_tb(error.__traceback__)[-1] if error.__traceback__ else None
    # The frames hold references to the data that were processed.
    traceback.clear_frames(error.__traceback__)
    if isinstance(error, SdcmapError):
        parts = getattr(error, "problems", None) or getattr(error, "checks", None) or (error,)
        status = next((status for kind, status in STATUS.items() if isinstance(error, kind)), CONFLICT)
        return error_response(request, status, str(error), [*map(str, parts)])
    if isinstance(error, RequestValidationError):
        fields = [(".".join(map(str, part["loc"][1:])) or part["loc"][0], part["msg"]) for part in error.errors()]
        problems = [f"{name}: {message}." for name, message in fields]
        return error_response(request, 422, "the request is not valid: " + " ".join(problems), problems)
    if isinstance(error, HTTPException):
        return error_response(request, error.status_code, STATUS_MESSAGES.get(error.status_code, str(error.detail)))
    where = f" in {Path(frame.filename).name}, line {frame.lineno}" if frame else ""
    sentence = f"sdcmap failed: {type(error).__name__}{where}."
    print(sentence, file=sys.stderr, flush=True)
    return error_response(request, 500, sentence)


def download(content: bytes | str, name: str, media: str) -> Response:
    """Return a file that the browser saves under this name."""
    return Response(content, media_type=media, headers={"content-disposition": f'attachment; filename="{name}"'})


def request_path(scope: Scope) -> str:
    """Return the path of a request without the base path of browsers."""
    return str(scope["path"]).removeprefix(scope.get("root_path", ""))


def error_response(request: Request, status: int, sentence: str, problems: list[str] | None = None) -> Response:
    """Return one sentence, as JSON for programs and as a page for browsers."""
    wants_page = "text/html" in request.headers.get("accept", "") and not request_path(request.scope).startswith("/api")
    if not wants_page:
        return JSONResponse(vars(Problem(sentence, problems or [sentence])), status)
    from sdcmap.web.pages import render

    page, root = "closed.html" if status == 401 else "error.html", request.scope.get("root_path", "")
    return HTMLResponse(render(page, status=status, sentence=sentence, root=root), status)
