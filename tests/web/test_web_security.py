"""The workbench and hostile clients: no token, other sites, huge and malformed uploads, slow clients, paths, logs."""

from __future__ import annotations

import asyncio
import io
import random
import shutil
import socket
import stat
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.errors import SchemaError
from sdcmap.files.decoded_size import check_decoded
from sdcmap.files.formats import format_of
from sdcmap.web import request_guard, server
from sdcmap.web.service import make_app
from sdcmap.web.sessions import Authenticator
from sdcmap.web.workspace import STATE_FOLDER, Workspace
from sizes import GUARD
from waiting import until
from web_workspace import HEAD, TOKEN, Server, endless_plan, openapi_document, people, serve_app

SMALL = 1 << 20
NOISE = random.Random(1).randbytes(400)


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[httpx.Client]:
    with serve_app(Workspace(folder, upload_limit=2 * SMALL, ledger=folder / ".ledger")) as made:
        yield made


# ---- who may ask ----------------------------------------------------------------------------------------------


def addresses() -> list[tuple[str, str]]:
    """Yield every address of the application, with names filled in."""
    filled = {
        "{name}": "cps",
        "{step}": "map",
        "{candidate}": "abc",
        "{form}": "csv",
        "{release}": "r",
        "{row}": "0",
        "{file}": "api.js",
    }
    found = []
    for route in openapi_document()["paths"]:
        path = route
        for name, value in filled.items():
            path = path.replace(name, value)
        found += [("GET", path), ("POST", path), ("PUT", path), ("DELETE", path)]
    pages = (
        "/",
        "/static/vega.js",
        "/static/workbench.css",
        "/studies/cps/map",
        "/data?file=people.csv",
        "/favicon.ico",
    )
    return [*found, *(("GET", page) for page in (*pages, "/api/openapi.json")), ("OPTIONS", "/")]


def test_requests_without_token_get_401(client: httpx.Client) -> None:
    stranger = httpx.Client(base_url=client.base_url, timeout=GUARD)
    with stranger:
        for method, path in addresses():
            if method == "GET" and path in request_guard.PUBLIC_PATHS:
                continue
            for head in (
                {},
                {"authorization": "Bearer " + "u" * 32},
                {"cookie": "sdcmap=no"},
                {"authorization": "Bearer"},
            ):
                assert stranger.request(method, path, headers=head).status_code == 401, (method, path, head)
        assert stranger.get("/?token=wrong").status_code == 401
        for path in request_guard.PUBLIC_PATHS:  # how the page looks that tells him how to come in
            assert stranger.get(path).content == (Path(sm.__file__).parent / "web" / path.lstrip("/")).read_bytes()
        assert stranger.get("/", headers={"accept": "text/html"}).text.count(TOKEN) == 0


def log_in(client: httpx.Client, authenticator: Authenticator, page: str = "/") -> httpx.Response:
    """Return the first response to a browser that logs in."""
    return client.get(f"{authenticator.base_path}{page}", params={"token": authenticator.browser_token})


def test_login_token_becomes_strict_cookie(folder: Path) -> None:
    authenticator = Authenticator(TOKEN, port=7)
    with serve_app(Workspace(folder), authenticator, headers={}) as visitor:
        address = f"{authenticator.base_path}/studies/cps/map?by=mean&token={authenticator.browser_token}"
        first = visitor.get(address)
        name, *facts = first.headers["set-cookie"].split("; ")
        assert name.startswith("sdcmap-7=") and TOKEN not in name
        assert {"HttpOnly", "SameSite=Strict", f"Path={authenticator.base_path}"} == set(facts)
        assert f'content="0; url={authenticator.base_path}/studies/cps/map?by=mean"' in first.text
        assert visitor.get(f"{authenticator.base_path}/studies/cps/map").status_code == 200
        again = visitor.get(address)  # a browser that goes back
        assert again.status_code == 200 and "set-cookie" not in again.headers
        assert visitor.get("/studies/cps/map").status_code == 401  # elsewhere the session is none
        assert visitor.get(f"//elsewhere.example/x?token={authenticator.browser_token}").status_code == 401


@pytest.mark.parametrize("is_local", [True, False])
def test_requests_must_name_this_machine(folder: Path, is_local: bool) -> None:
    """A page of another site whose name leads to this machine (DNS rebinding) must not pass for a page of this server."""
    with serve_app(Workspace(folder), is_local=is_local) as client:
        port = client.base_url.port
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
            assert client.get("/api/files", headers={"host": host}).status_code == 200, host
        for host in (
            "evil.example",
            f"evil.example:{port}",
            f"127.0.0.1.evil.example:{port}",
            "localhost:1",
            "localhost",
        ):
            for path in ("/api/files", "/", "/static/workbench.css"):
                answer = client.get(path, headers={"host": host})
                assert answer.status_code == (421 if is_local else 200), (host, path)


def test_writes_from_other_sites_are_rejected(folder: Path) -> None:
    authenticator, body = Authenticator(TOKEN), {"toml": ""}
    with serve_app(Workspace(folder), authenticator, headers={}) as browser:
        own = f"http://{browser.base_url.netloc.decode()}"
        assert log_in(browser, authenticator).status_code == 200
        plans = f"{authenticator.base_path}/api/plans"
        assert browser.post(plans, headers={"origin": own}, json=body).status_code == 200
        for origin in (
            "http://evil.example",
            "null",
            "http://127.0.0.1:1",
            own.replace("http://", "http://x@"),
            "http://[",
        ):
            assert browser.post(plans, headers={"origin": origin}, json=body).status_code == 403
            assert browser.post("/api/plans", headers=HEAD | {"origin": origin}, json=body).status_code == 403
        assert browser.post(plans, json=body).status_code == 403
        assert browser.post("/api/plans", headers=HEAD, json=body).status_code == 200


def test_every_response_has_security_headers(client: httpx.Client) -> None:
    for path in ("/", "/api/files", "/static/vega.js", "/nothing"):
        head = client.get(path).headers
        policy = head["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
        assert (head["x-content-type-options"], head["referrer-policy"]) == ("nosniff", "no-referrer")
        assert "access-control-allow-origin" not in head and "server" not in head
    assert client.get("/api/files").headers["cache-control"] == "no-store"


def test_pages_load_nothing_from_other_sites(folder: Path) -> None:
    web = Path(sm.__file__).parent / "web"
    for file in [*web.glob("templates/*.html"), *web.glob("static/*")]:
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in text and "https:" not in text, file.name
        assert " style=" not in text and "<style" not in text and "eval(" not in text and "innerHTML" not in text, (
            file.name
        )


# ---- what comes in --------------------------------------------------------------------------------------------


def upload(client: httpx.Client, name: str, content: bytes) -> httpx.Response:
    return client.post("/api/files", files={"file": (name, content)})


def test_huge_upload_is_rejected(client: httpx.Client, folder: Path) -> None:
    before = sorted(folder.iterdir())
    assert client.get("/api/files").json()["upload_limit"] == 2 * SMALL
    assert "at most 2 MB" in client.get("/", headers={"accept": "text/html"}).text
    assert upload(client, "big.csv", b"a\n" + b"1\n" * (2 * SMALL)).status_code == 413

    def endless() -> Iterator[bytes]:  # no length is stated
        yield b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
        for _ in range(64):
            yield b"1\n" * (SMALL // 16)

    head = {"content-type": "multipart/form-data; boundary=x"}
    with suppress(httpx.WriteError):  # where the server hangs up while we are still sending
        assert client.post("/api/files", content=endless(), headers=head).status_code == 413
    assert (
        client.post(
            "/api/plans", content=b"{" + b" " * (2 * SMALL), headers={"content-type": "application/json"}
        ).status_code
        == 413
    )
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'{"toml": 3}', b'{"toml": "\xff"}', b'{"table": {"a": null}}', b"[" * 100_000]
)
def test_malformed_json_gives_one_sentence(client: httpx.Client, body: bytes) -> None:
    answer = client.post("/api/plans", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (200, 400, 422), answer.text
    assert answer.status_code == 200 or answer.json()["error"]


@pytest.mark.parametrize(
    "name",
    ["../up.csv", "/etc/up.csv", "..\\up.csv", ".hidden.csv", "a\0b.csv", "<script>.csv", "up.exe", "up.csv.sh", "",
     "a/../../up.csv", "con\nfig.csv", "x" * 300 + ".csv", "=cmd.csv", "-rf.csv", "cps.toml", "people.csv"],
)  # fmt: skip
def test_hostile_file_names_write_nothing_outside_workspace(client: httpx.Client, folder: Path, name: str) -> None:
    around = {path: path.stat().st_mtime_ns for path in folder.parent.rglob("*") if path.is_file()}
    answer = upload(client, name, b"a,b\n1,2\n")
    written = {path for path in folder.parent.rglob("*") if path.is_file()} - set(around)
    written -= {folder / STATE_FOLDER / "uploads.lock"}  # empty: who names an upload holds it
    assert answer.status_code in (201, 400, 409, 422), answer.text
    assert {path.parent for path in written} <= {folder}
    assert {path.name for path in written} <= {"up.csv"}  # what a browser would have sent of it
    for path in written:
        path.unlink()
    assert all(path.stat().st_mtime_ns == when for path, when in around.items())


@pytest.mark.parametrize(
    "name", ["../people.csv", "%2e%2e", "/etc/passwd", "link.csv", "%2e%2e/x.csv", "cps/plan.toml", ".ledger"]
)
def test_paths_are_confined_to_workspace(client: httpx.Client, folder: Path, name: str) -> None:
    (folder.parent / "people.csv").write_text("a\n1\n")
    if not (folder / "link.csv").is_symlink():
        (folder / "link.csv").symlink_to(folder.parent / "people.csv")
    assert client.post("/api/looks", json={"file": name}).status_code == 404
    assert client.get("/data", params={"file": name}).status_code == 404
    for path in (
        "/api/studies/{}",
        "/api/studies/{}/map",
        "/studies/{}/map",
        "/static/{}",
        "/api/studies/cps/releases/{}.zip",
    ):
        assert client.get(path.format(name)).status_code in (303, 404)


@pytest.mark.parametrize("path", ["/dev/zero", "/etc/passwd", "../people.csv"])
def test_plan_may_name_only_files_of_the_workspace(client: httpx.Client, folder: Path, path: str) -> None:
    (folder.parent / "people.csv").write_text("a\n1\n")
    text = (folder / "cps.toml").read_text()
    table = tomllib.loads(text)
    table["measures"].append({"type": "ExternalLink", "archive": path})
    assert "there is no file" in client.post("/api/plans", json={"table": table}).json()["problems"][0]
    moved = text.replace('"people.csv"', f'"{path}"')
    assert "with that name here" in client.post("/api/plans", json={"toml": moved}).json()["problems"][0]


def test_formulas_stay_text(client: httpx.Client, folder: Path) -> None:
    formula = '=HYPERLINK("http://evil.example","x")'
    frame = pl.DataFrame({"who": [formula, "@x", "+1", "<b>"] * 5, "n": list(range(20))})
    assert upload(client, "formulas.csv", frame.write_csv().encode()).status_code == 201
    seen = client.post("/api/looks", json={"file": "formulas.csv"}).json()
    assert seen["preview"]["rows"][0][0] == formula
    assert client.get("/data", params={"file": "formulas.csv"}).text.count("evil.example") == 0


def bomb(rows: int) -> bytes:
    made = io.BytesIO()
    pl.select(pl.repeat(7, rows).alias("a"), pl.repeat(7, rows).alias("b")).write_parquet(made, compression="zstd")
    return made.getvalue()


def test_parquet_bomb_is_rejected_by_its_header(tmp_path: Path) -> None:
    packed = bomb(2_000_000)
    assert len(packed) < 50_000
    (tmp_path / "bomb.parquet").write_bytes(packed)
    with pytest.raises(SchemaError, match="larger than 10 MB when it is decoded"):
        check_decoded(tmp_path / "bomb.parquet", 10 << 20)
    check_decoded(tmp_path / "bomb.parquet", 100 << 20)


def test_sav_bomb_is_rejected_by_its_header(tmp_path: Path) -> None:
    data = sm.read(pl.select(pl.repeat(7.0, 20_000).alias("a")), numeric="all")
    sm.write(data, tmp_path / "bomb.sav")
    with pytest.raises(SchemaError, match="when it is decoded"):
        check_decoded(tmp_path / "bomb.sav", 1 << 17)


def test_bomb_without_record_count_is_rejected_while_reading(tmp_path: Path) -> None:
    data = sm.read(pl.select(pl.repeat(7.0, 20_000).alias("a")), numeric="all")
    path = sm.write(data, tmp_path / "bomb.sav")
    content = bytearray(path.read_bytes())
    assert int.from_bytes(content[80:84], "little") == 20_000  # the header's number of cases
    content[80:84] = (-1).to_bytes(4, "little", signed=True)
    path.write_bytes(content)
    assert format_of(path).cells(path) == 0
    with pytest.raises(SchemaError, match="when it is decoded"):
        check_decoded(path, 1 << 17)
    check_decoded(path, 1 << 20)


def test_invalid_parquet_is_rejected_and_not_stored(client: httpx.Client, folder: Path) -> None:
    before = sorted(folder.iterdir())
    for name, content in (("odd.parquet", b"PAR1" + NOISE + b"PAR1"), ("odd.sav", b"$FL2" + NOISE)):
        answer = upload(client, name, content)
        assert answer.status_code == 422 and "cannot be read" in answer.text, answer.text
    assert "empty" in upload(client, "odd.dta", b"").text
    assert sorted(folder.iterdir()) == before


# ---- patience -------------------------------------------------------------------------------------------------


def test_slow_request_is_cut_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_guard, "MAX_SILENCE_SECONDS", 0.2)
    sent: list[dict[str, Any]] = []
    scope = {
        "type": "http", "method": "POST", "path": "/api/plans", "raw_path": b"/api/plans", "query_string": b"",
        "http_version": "1.1", "scheme": "http", "server": ("127.0.0.1", 1), "client": ("127.0.0.1", 2), "root_path": "",
        "headers": [
            (b"host", b"127.0.0.1:1"), (b"authorization", f"Bearer {TOKEN}".encode()),
            (b"content-type", b"application/json"),
        ],
    }  # fmt: skip

    async def never() -> dict[str, Any]:
        await asyncio.sleep(GUARD)
        return {}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(make_app(Workspace(folder), Authenticator(TOKEN))(scope, never, send))  # type: ignore[arg-type]
    assert sent[0]["status"] == 408


def test_idle_connection_is_closed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEADER_SECONDS", 0.3)
    with (
        serve_app(Workspace(folder)) as client,
        socket.create_connection((client.base_url.host, client.base_url.port)) as slow,
    ):
        slow.settimeout(GUARD)
        slow.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        assert slow.recv(100) == b""
        monkeypatch.setattr(server, "HEADER_SECONDS", GUARD)  # for those who come later
        assert client.get("/").status_code == 200


# ---- faults, logs and files -----------------------------------------------------------------------------------


def test_internal_error_shows_type_and_line_but_no_value(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(self: Workspace) -> None:
        raise RuntimeError("a secret value, 31415")

    monkeypatch.setattr(Workspace, "files", fail)
    with serve_app(Workspace(folder)) as client:
        answers = [client.get("/api/files"), client.get("/", headers={"accept": "text/html"})]
    for answer in answers:
        assert answer.status_code == 500 and "RuntimeError in test_web_security.py" in answer.text
    printed = "".join(capsys.readouterr())
    assert "31415" not in printed and all("31415" not in answer.text for answer in answers)


def test_server_prints_address_first_and_never_data_and_uploads_are_private(
    template_folder: Path, tmp_path: Path
) -> None:
    shutil.copy(template_folder / "people.csv", tmp_path)
    shutil.copytree(template_folder / "small", tmp_path / "small")
    running = Server.start(tmp_path)
    try:
        assert running.address.startswith("http://127.0.0.1:") and len(running.token) >= 32
        assert running.token not in running.address
        with httpx.Client(base_url=running.base, headers=running.head, timeout=GUARD) as client:
            value = str(pl.read_csv(tmp_path / "people.csv")["total"][7])
            assert client.get("/").status_code == 200
            client.post("/api/looks", json={"file": "people.csv"})
            client.post("/api/looks", json={"file": "people.csv", "kinds": {"Age": "numeric"}})
            client.post("/api/looks", json={"file": "people.csv", "roles": {"Age": "weight"}})
            client.get(f"/api/studies/small/candidates/{value}")
            client.post("/api/studies/small/choices", json={"rule": {"type": "Linear", "slope": -1}})
            client.post("/api/files", files={"file": ("x.sav", b"no")})
            assert upload(client, "a.csv", b"a,b\n1,2\n3,4\n").status_code == 201
    finally:
        out, err = running.end()
    assert running.process.returncode == 0
    assert out == "" and err == ""
    assert stat.S_IMODE((tmp_path / ".sdcmap").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "a.csv").stat().st_mode) == 0o600


def test_external_report_over_http_contains_no_seed_or_digest(client: httpx.Client, folder: Path) -> None:
    manifest = sm.Study.open(folder / "cps").manifest
    page = client.get("/api/studies/cps/report", params={"audience": "external"}).text
    assert manifest["seed"].removeprefix("0x") not in page and manifest["data"] not in page


def test_missing_fastapi_gives_one_sentence() -> None:
    script = (
        "import sys; sys.modules['fastapi'] = None; sys.argv = ['sdcmap', 'serve']; from sdcmap.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=GUARD)
    assert done.returncode == 2
    assert done.stderr == "error: The workbench needs more packages. Run: pip install 'sdcmap[web]'\n"


def test_port_in_use_gives_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "sdcmap.cli", "serve", "--folder", str(tmp_path), "--port", str(port)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=GUARD)
    assert done.returncode == 2 and done.stderr.startswith(f"error: 127.0.0.1:{port} cannot be used")


def test_sweep_ends_with_server_and_next_server_resumes_it(tmp_path: Path) -> None:
    people(tmp_path)
    (tmp_path / "long.toml").write_text(endless_plan(tmp_path).toml())

    def done(client: httpx.Client) -> dict[str, Any]:
        return dict(client.get("/api/studies/long/sweep").json())

    first = Server.start(tmp_path)
    with httpx.Client(base_url=first.base, headers=first.head, timeout=GUARD) as client:
        client.put("/api/studies/long/sweep", json={"state": "running"})
        until(lambda: done(client)["done"] > 2, "the first candidates")
    first.process.kill()
    first.process.communicate()
    second = Server.start(tmp_path)
    try:
        with httpx.Client(base_url=second.base, headers=second.head, timeout=GUARD) as client:
            before = done(client)["done"]
            assert before > 2
            until(lambda: done(client)["done"] > before, "more candidates")
            assert client.put("/api/studies/long/sweep", json={"state": "paused"}).status_code == 200
            assert done(client)["state"] == "paused"
    finally:
        second.end()
