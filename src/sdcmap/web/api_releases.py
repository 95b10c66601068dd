"""Routes for release checks, releases, reports, and the swap in one call."""

from __future__ import annotations

import base64
import io
import json
import secrets
import zipfile
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Form, Query, UploadFile
from fastapi.responses import Response
from pydantic import Field, StringConstraints

import sdcmap as sm
from sdcmap.bundle import Release
from sdcmap.bundle.release_folder import FilePreview
from sdcmap.data.private_folder import private_folder
from sdcmap.files.decoded_size import check_decoded
from sdcmap.study.folder import Study
from sdcmap.study.jobs import score_row
from sdcmap.study.plan import Candidate
from sdcmap.web.api_maps import RuleRequest, resolve_choice
from sdcmap.web.renderer import render_report
from sdcmap.web.response_models import ResponseModel
from sdcmap.web.responses import download
from sdcmap.web.workbench import Bench, Workbench
from sdcmap.web.workspace import RELEASES_FOLDER, NotFound, Workspace
from sdcmap.workflow import prepare_release

router = APIRouter(prefix="/api", tags=["releases"])
FRAME_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'self'"
# the report is shown in a sandboxed frame of our own pages, where no script runs
FRAME_HEADERS = {"content-security-policy": FRAME_POLICY, "x-frame-options": "SAMEORIGIN"}


class ReleaseRequest(RuleRequest):
    """What to release, for whom, the risk limit, and the checks to override with their reasons.

    candidate : an id; empty: what the rule chooses.
    """

    candidate: str = ""
    profile: Literal["", "public-use", "scientific-use", "teaching", "business"] = ""
    max_risk: float | None = None
    again: bool = False
    confirm_roles: bool = False
    excel_safe: bool = False
    override: dict[str, str] = Field(default_factory=dict)
    signed_by: Annotated[str, StringConstraints(max_length=120)] = ""
    reason: Annotated[str, StringConstraints(max_length=2000)] = Field("", description="Why this candidate.")


class CheckResult(ResponseModel):
    """One release check: its code name, its label and description for people; `remedy` says what to do if it failed."""

    name: str
    label: str
    description: str
    passed: bool
    tested: bool
    reason: str
    is_hard: bool
    remedy: str


class BundleColumn(ResponseModel):
    """A column of the release, as its codebook describes it."""

    name: str
    label: str
    kind: str
    masked: bool
    done: str


class Checks(ResponseModel):
    """Every check, and the files that would be written; nothing is saved."""

    candidate: str
    name: str
    replicate: int
    passed: bool
    checks: list[CheckResult]
    files: tuple[FilePreview, ...]
    columns: list[BundleColumn]


class ReleaseFiles(ResponseModel):
    """A release; `already`: an earlier equal request wrote it."""

    release: str
    files: list[str]
    already: bool


class ReleaseEntry(ResponseModel):
    """A release in the list of releases; `reason`: why a person picked this candidate."""

    release: str
    files: list[str]
    name: str
    when: str
    signed_by: str
    profile: str
    reason: str


class Releases(ResponseModel):
    releases: list[ReleaseEntry]


def _prepare(bench: Workbench, opened: Study, request: ReleaseRequest) -> Release:
    """Return the requested release, not yet checked or written."""
    reason = request.reason.strip()
    return prepare_release(
        opened,
        resolve_choice(opened, request, request.candidate, reason),
        profile=request.profile or None,
        max_risk=request.max_risk,
        again=request.again,
        override=request.override,
        ledger=bench.workspace.ledger,
        confirm_roles=request.confirm_roles,
        excel_safe=request.excel_safe,
        signed_by=request.signed_by,
        reason=reason,
    )


@router.post("/studies/{name}/checks")
def checks(bench: Bench, name: str, request: ReleaseRequest) -> Checks:
    """Run every release check on the files as written, and return the files' names, sizes, first lines and columns.

    No file is kept. The ledger records the tries; the release makes the same draws again and spends no further try.
    """
    with bench.views.study(name) as opened:
        draft = _prepare(bench, opened, request)
        preview = draft.preview()
    checks = [
        CheckResult(c.name, c.kind.label, c.kind.description, c.passed, c.tested, c.reason, c.is_hard, c.remedy)
        for c in preview.checks
    ]
    columns = [BundleColumn(e["name"], e["label"], e["kind"], e["masked"], e["done"]) for e in preview.codebook]
    candidate, passed = draft.candidate, all(check.passed for check in preview.checks)
    return Checks(
        candidate.id, draft.plan.name_of(candidate), candidate.replicate, passed, checks, preview.files, columns
    )


@router.post(
    "/studies/{name}/releases",
    status_code=201,
    responses={200: {"model": ReleaseFiles, "description": "An equal request was written before."}},
)
def release(bench: Bench, name: str, request: ReleaseRequest, response: Response) -> ReleaseFiles:
    """Create the candidate again, check it, and write it with codebook, method note and checksums; 409 if a check fails.

    Equal requests are written once: a repeated request returns the existing release with status 200.
    """
    home = _releases_folder(bench.workspace, name)
    # One release at a time, so that the second of two equal requests sees the first.
    with bench.release_lock, bench.views.study(name) as opened:
        draft = _prepare(bench, opened, request)
        parameters = request.model_dump_json(exclude={"signed_by", "reason"})
        key = json.dumps([draft.candidate.id, opened.manifest["data"], parameters])
        existing = bench.store.find_release(name, key)
        if existing and (home / existing).is_dir():
            response.status_code = 200
            return ReleaseFiles(existing, _files(home / existing), already=True)
        # Folder numbers only grow: a deleted release must not give its name to another one.
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        number = 1 + max((int(path.name.rpartition("-")[2]) for path in home.glob("*-[0-9]*")), default=0)
        with opened.writing():
            folder = draft.write(home / f"{draft.candidate.id}-{number}")
        bench.store.record_release(name, key, folder.name)
    return ReleaseFiles(folder.name, _files(folder), already=False)


@router.get("/studies/{name}/releases")
def releases(bench: Bench, name: str) -> Releases:
    """Return the releases of a study, by whom and when."""
    return Releases(list_releases(bench, name))


def list_releases(bench: Workbench, name: str) -> list[ReleaseEntry]:
    """Return the releases of a study that exist in the folder, sorted by name."""
    folders = sorted(path for path in _releases_folder(bench.workspace, name).glob("*-[0-9]*") if path.is_dir())
    entries = Study.manifest_of(bench.workspace.study(name)).get("releases", [])
    noted = {Path(str(entry["folder"])).name: entry for entry in entries}
    facts = ("name", "when", "signed_by", "profile", "reason")
    return [
        ReleaseEntry(path.name, _files(path), *(str(noted.get(path.name, {}).get(fact, "")) for fact in facts))
        for path in folders
    ]


@router.get(
    "/studies/{name}/releases/{release}.zip",
    response_class=Response,
    responses={200: {"content": {"application/zip": {}}}},
)
def bundle(bench: Bench, name: str, release: str) -> Response:
    """Return a release as one file to download."""
    folder = _releases_folder(bench.workspace, name) / release
    if not Workspace.is_name(release) or not folder.is_dir():
        raise NotFound("there is no release with that name.")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.iterdir()):
            archive.write(path, f"{release}/{path.name}")
    return download(packed.getvalue(), f"{release}.zip", "application/zip")


@router.get("/studies/{name}/report", response_class=Response, responses={200: {"content": {"text/html": {}}}})
def report(bench: Bench, name: str, audience: Annotated[Literal["internal", "external"], Query()]) -> Response:
    """Return the report for the board (internal) or for the public (external), as one page to download."""
    page = bench.renderer.run(render_report, bench.workspace.study(name), audience)
    return download(page, f"report-{audience}.html", "text/html; charset=utf-8")


@router.get("/studies/{name}/report/preview", response_class=Response, responses={200: {"content": {"text/html": {}}}})
def report_preview(
    bench: Bench,
    name: str,
    audience: Annotated[Literal["internal", "external"], Query()],
    candidate: Annotated[str, Query(description="Default: what the plan's rule chooses.", max_length=200)] = "",
    reason: Annotated[str, Query(description="Why this candidate.", max_length=2000)] = "",
) -> Response:
    """Return the same report for a sandboxed frame of our own pages, which runs no script and loads nothing."""
    page = bench.renderer.run(render_report, bench.workspace.study(name), audience, candidate, reason)
    return Response(page, media_type="text/html; charset=utf-8", headers=FRAME_HEADERS)


class SwapRisk(ResponseModel):
    measure: str
    before: float | None
    after: float | None
    reason: str


class SwapDistortion(ResponseModel):
    measure: str
    value: float | None
    reason: str


class SwapFile(ResponseModel):
    name: str
    base64: str


class SwapResult(ResponseModel):
    """A swapped file with its risk and distortion."""

    method: str
    risk: SwapRisk
    distortion: SwapDistortion
    file: SwapFile


@router.post("/swaps", tags=["swaps"])
def swap(
    bench: Bench,
    file: UploadFile,
    on: Annotated[str, Form(description="Variables to swap, comma-separated.", max_length=5000)],
    rate: Annotated[float, Form(description="Pairs as a share of the records, in (0, 0.5].")] = 0.01,
    same: Annotated[str, Form(description="Variables in which both records must agree.", max_length=5000)] = "",
    differ: Annotated[str, Form(description="Variables in which they must differ.", max_length=5000)] = "",
    keys: Annotated[str, Form(description="Columns that an attacker may know; default: all.", max_length=5000)] = "all",
    n: Annotated[int, Form(description="A cell with fewer records is small.")] = 3,
) -> SwapResult:
    """Swap values of an uploaded file, and return the swapped file with its risk and distortion.

    The returned file is for study only (`*.study.*`, base64). Nothing is saved on the server.
    """
    with private_folder() as folder:
        path = bench.workspace.copy(file.file, folder / bench.workspace.file_name(file.filename or ""))
        check_decoded(path, bench.workspace.max_decoded_bytes)
        data = sm.read(path, keys="all" if keys == "all" else _names(keys))
        method = sm.Swap(on=_names(on), rate=rate, same=_names(same), differ=_names(differ))
        small, distortion = sm.SmallCells(n=n), sm.Hellinger()
        if problems := [*method.incompatibilities(data), *small.incompatibilities(data)]:
            raise sm.errors.PlanError(problems)
        masked = sm.mask(data, method, seed=secrets.randbits(256))
        out = folder / f"{path.stem}.study.{data.schema.format}"
        sm.write(masked, out)
        stream = Candidate(method).stream(0)  # these measures draw nothing
        pairs = ((small, data), (small, masked), (distortion, masked))
        before, after, loss = (score_row(measure, data, file, stream) for measure, file in pairs)
        return SwapResult(
            method.text,
            SwapRisk(small.text, before.value, after.value, after.reason),
            SwapDistortion(distortion.text, loss.value, loss.reason),
            SwapFile(out.name, base64.b64encode(out.read_bytes()).decode()),
        )


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _releases_folder(workspace: Workspace, name: str) -> Path:
    workspace.study(name)
    return workspace.folder / RELEASES_FOLDER / name
