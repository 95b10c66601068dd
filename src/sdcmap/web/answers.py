"""Answers: numbers as JSON, and every error as one sentence in JSON or on a page."""

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
from sdcmap.web.models import Answer
from sdcmap.web.workspace import Absent, Overtaken, TooLarge

STATUS: dict[type[SdcmapError], int] = {
    Absent: 404, Overtaken: 412, TooLarge: 413, PlanError: 422, SchemaError: 422, Infeasible: 422, Undefined: 422,
    MissingExtra: 501,
}  # fmt: skip
CONFLICT = 409  # of all other errors of ours
WORDS = {401: "this needs the last address that `sdcmap serve` printed: each opens one browser, once.",
         404: "there is nothing here.", 405: "this address does not take that verb.", 400: "the request cannot be read.",
         413: "that is more than may be sent."}  # fmt: skip


def _modest(table: dict[str, Any]) -> dict[str, Any]:
    try:
        check_table(table)
    except PlanError as error:
        raise ValueError(str(error)) from None
    return table


Table = Annotated[dict[str, Any], AfterValidator(_modest)]  # one that comes in, neither too deep nor endless


class Problem(Answer):
    """What went wrong: one sentence, and every problem on its own."""

    error: str
    problems: list[str]


def of_error(request: Request, error: Exception) -> Response:
    """Our own errors with their sentence; any other by type and place, since its text may hold a data value."""
    frame = traceback.extract_tb(error.__traceback__)[-1] if error.__traceback__ else None
    traceback.clear_frames(error.__traceback__)  # they hold the data that were worked on
    if isinstance(error, SdcmapError):
        parts = getattr(error, "problems", None) or getattr(error, "checks", None) or (error,)
        status = next((status for kind, status in STATUS.items() if isinstance(error, kind)), CONFLICT)
        return said(request, status, str(error), [*map(str, parts)])
    if isinstance(error, RequestValidationError):
        places = [(".".join(map(str, part["loc"][1:])) or part["loc"][0], part["msg"]) for part in error.errors()]
        problems = [f"{place}: {words}." for place, words in places]
        return said(request, 422, "the request does not fit: " + " ".join(problems), problems)
    if isinstance(error, HTTPException):
        return said(request, error.status_code, WORDS.get(error.status_code, str(error.detail)))
    place = f" in {Path(frame.filename).name}, line {frame.lineno}" if frame else ""
    sentence = f"sdcmap failed: {type(error).__name__}{place}."
    print(sentence, file=sys.stderr, flush=True)
    return said(request, 500, sentence)


def download(content: bytes | str, name: str, media: str) -> Response:
    """A file that the browser keeps under this name."""
    return Response(content, media_type=media, headers={"content-disposition": f'attachment; filename="{name}"'})


def asked_path(scope: Scope) -> str:
    """The path that is asked for, without what stands before all paths of a browser."""
    return str(scope["path"]).removeprefix(scope.get("root_path", ""))


def said(request: Request, status: int, sentence: str, problems: list[str] | None = None) -> Response:
    """One sentence, as JSON for programs and as a page for people."""
    wants_page = "text/html" in request.headers.get("accept", "") and not asked_path(request.scope).startswith("/api")
    if not wants_page:
        return JSONResponse(vars(Problem(sentence, problems or [sentence])), status)
    from sdcmap.web.pages import render

    page, root = "closed.html" if status == 401 else "error.html", request.scope.get("root_path", "")
    return HTMLResponse(render(page, status=status, sentence=sentence, root=root), status)
