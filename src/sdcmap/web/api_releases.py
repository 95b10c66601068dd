"""The service, part six: checks, releases, reports, and the one-call swap."""

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
from sdcmap.bundle.release_folder import Previewed
from sdcmap.data.private_folder import private_folder
from sdcmap.files.decoded_size import check_decoded
from sdcmap.study.folder import Study
from sdcmap.study.jobs import score_row
from sdcmap.study.plan import Candidate
from sdcmap.web.answers import download
from sdcmap.web.api_maps import Asked, chosen
from sdcmap.web.drawing import make_report
from sdcmap.web.models import Answer
from sdcmap.web.workbench import Bench, Workbench
from sdcmap.web.workspace import RELEASES, Absent, Workspace
from sdcmap.workflow import prepare_release

router = APIRouter(prefix="/api", tags=["releases"])
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'self'"
# a page that our own pages show in a frame, in which nothing runs
FRAMED = {"content-security-policy": POLICY, "x-frame-options": "SAMEORIGIN"}


class Order(Asked):
    """What to release: a candidate by id, or what a rule chooses; for whom; the line; overridden checks with reasons."""

    candidate: str = ""
    profile: Literal["", "public-use", "scientific-use", "teaching", "business"] = ""
    max_risk: float | None = None
    again: bool = False
    confirm_roles: bool = False
    override: dict[str, str] = Field(default_factory=dict)
    signed_by: Annotated[str, StringConstraints(max_length=120)] = ""
    reason: Annotated[str, StringConstraints(max_length=2000)] = Field("", description="Why this candidate.")


class ToldCheck(Answer):
    """One check; `remedy` says what to do about one that failed."""

    name: str
    passed: bool
    tested: bool
    reason: str
    is_hard: bool
    remedy: str


class BundleColumn(Answer):
    """A column that a release would hold, as its codebook tells it."""

    name: str
    label: str
    kind: str
    masked: bool
    done: str


class Checks(Answer):
    """Every check, and what would be written: nothing is kept."""

    candidate: str
    name: str
    replicate: int
    passed: bool
    checks: list[ToldCheck]
    files: tuple[Previewed, ...]
    columns: list[BundleColumn]


class Written(Answer):
    """A release; `already`: it was written by an earlier order like this one."""

    release: str
    files: list[str]
    already: bool


class WrittenRelease(Answer):
    """A release in the list of all; `reason`: why this candidate, where a person picked it."""

    release: str
    files: list[str]
    name: str
    when: str
    signed_by: str
    profile: str
    reason: str


class Releases(Answer):
    releases: list[WrittenRelease]


def _prepared(bench: Workbench, opened: Study, order: Order) -> Release:
    """The release that is asked for."""
    reason = order.reason.strip()
    return prepare_release(
        opened, chosen(opened, order, order.candidate, reason), profile=order.profile or None, max_risk=order.max_risk,
        again=order.again, override=order.override, ledger=bench.room.ledger, confirm_roles=order.confirm_roles,
        signed_by=order.signed_by, reason=reason,
    )  # fmt: skip


@router.post("/studies/{name}/checks")
def checks(bench: Bench, name: str, order: Order) -> Checks:
    """Every check of a release, on the files as written and read back, and those files as they would leave: names, sizes,
    first lines, columns. Nothing is kept but that this draw was checked."""
    with bench.views.study(name) as opened:
        made = _prepared(bench, opened, order)
        seen = made.preview()
    checks = [ToldCheck(c.name, c.passed, c.tested, c.reason, c.is_hard, c.remedy) for c in seen.checks]
    columns = [BundleColumn(e["name"], e["label"], e["kind"], e["masked"], e["done"]) for e in seen.codebook]
    one, passed = made.candidate, all(check.passed for check in seen.checks)
    return Checks(one.id, made.plan.name_of(one), one.replicate, passed, checks, seen.files, columns)


@router.post("/studies/{name}/releases", status_code=201,
             responses={200: {"model": Written, "description": "It was written before."}})  # fmt: skip
def release(bench: Bench, name: str, order: Order, answer: Response) -> Written:
    """Make the candidate again, check it, and write it with codebook, note and checksums; 409 with every failed check.

    The same order is written once: asked for again, the answer (200) names the release that is there.
    """
    home = _home(bench.room, name)
    # one at a time, so that of two equal orders the second finds the first
    with bench.releasing, bench.views.study(name) as opened:
        made = _prepared(bench, opened, order)
        asked = order.model_dump_json(exclude={"signed_by", "reason"})
        key = json.dumps([made.candidate.id, opened.manifest["data"], asked])
        written = bench.shelf.written_for(name, key)
        if written and (home / written).is_dir():
            answer.status_code = 200
            return Written(written, _files(home / written), already=True)
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        number = 1 + max((int(path.name.rpartition("-")[2]) for path in home.glob("*-[0-9]*")), default=0)
        with opened.writing():
            folder = made.write(home / f"{made.candidate.id}-{number}")
        bench.shelf.note_order(name, key, folder.name)
    return Written(folder.name, _files(folder), already=False)


@router.get("/studies/{name}/releases")
def releases(bench: Bench, name: str) -> Releases:
    """What was released of a study, by whom and when."""
    return Releases(written_releases(bench, name))


def written_releases(bench: Workbench, name: str) -> list[WrittenRelease]:
    """The releases of a study that lie in the folder, in the order of their names."""
    folders = sorted(path for path in _home(bench.room, name).glob("*-[0-9]*") if path.is_dir())
    entries = Study.manifest_of(bench.room.study(name)).get("releases", [])
    noted = {Path(str(entry["folder"])).name: entry for entry in entries}
    facts = ("name", "when", "signed_by", "profile", "reason")
    return [
        WrittenRelease(path.name, _files(path), *(str(noted.get(path.name, {}).get(fact, "")) for fact in facts))
        for path in folders
    ]


@router.get("/studies/{name}/releases/{release}.zip", response_class=Response,
            responses={200: {"content": {"application/zip": {}}}})  # fmt: skip
def bundle(bench: Bench, name: str, release: str) -> Response:
    """A release as one file to download."""
    folder = _home(bench.room, name) / release
    if not Workspace.is_name(release) or not folder.is_dir():
        raise Absent("there is no release of that name.")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.iterdir()):
            archive.write(path, f"{release}/{path.name}")
    return download(packed.getvalue(), f"{release}.zip", "application/zip")


@router.get("/studies/{name}/report", response_class=Response, responses={200: {"content": {"text/html": {}}}})
def report(bench: Bench, name: str, audience: Annotated[Literal["internal", "external"], Query()]) -> Response:
    """The report for the board (internal) or for anybody (external), as one page to download."""
    page = bench.drawing.run(make_report, bench.room.study(name), audience)
    return download(page, f"report-{audience}.html", "text/html; charset=utf-8")


@router.get("/studies/{name}/report/preview", response_class=Response, responses={200: {"content": {"text/html": {}}}})
def report_preview(
    bench: Bench, name: str, audience: Annotated[Literal["internal", "external"], Query()],
    candidate: Annotated[str, Query(description="By default what the plan's rule chooses.", max_length=200)] = "",
    reason: Annotated[str, Query(description="Why this candidate.", max_length=2000)] = "",
) -> Response:  # fmt: skip
    """The same report to be looked at in a frame of our own pages: a sandbox that runs nothing and asks nothing."""
    page = bench.drawing.run(make_report, bench.room.study(name), audience, candidate, reason)
    return Response(page, media_type="text/html; charset=utf-8", headers=FRAMED)


class SwapRisk(Answer):
    measure: str
    before: float | None
    after: float | None
    reason: str


class SwapDistortion(Answer):
    measure: str
    value: float | None
    reason: str


class SwapFile(Answer):
    name: str
    base64: str


class Swapped(Answer):
    """A swapped file with its risk and distortion."""

    method: str
    risk: SwapRisk
    distortion: SwapDistortion
    file: SwapFile


@router.post("/swaps", tags=["swaps"])
def swap(
    bench: Bench, file: UploadFile,
    on: Annotated[str, Form(description="Variables to swap, comma-separated.", max_length=5000)],
    rate: Annotated[float, Form(description="Pairs as a share of the records, in (0, 0.5].")] = 0.01,
    same: Annotated[str, Form(description="Variables in which both records must agree.", max_length=5000)] = "",
    differ: Annotated[str, Form(description="Variables in which they must differ.", max_length=5000)] = "",
    keys: Annotated[str, Form(description="What a snooper may know; default: all columns.", max_length=5000)] = "all",
    n: Annotated[int, Form(description="A cell with fewer records is small.")] = 3,
) -> Swapped:  # fmt: skip
    """Swap one file: the file, the variables, the rate and the constraints in; the swapped file, risk and distortion out.

    The file in the answer is for study (`*.study.*`, base64); nothing is kept on the server.
    """
    with private_folder() as folder:
        path = bench.room.copy(file.file, folder / bench.room.file_name(file.filename or ""))
        check_decoded(path, bench.room.decoded_limit)
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
        before, after, loss = (score_row(measure, data, made, stream) for measure, made in pairs)
        return Swapped(
            method.text, SwapRisk(small.text, before.value, after.value, after.reason),
            SwapDistortion(distortion.text, loss.value, loss.reason),
            SwapFile(out.name, base64.b64encode(out.read_bytes()).decode()),
        )  # fmt: skip


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _home(room: Workspace, name: str) -> Path:
    room.study(name)
    return room.folder / RELEASES / name
