"""Red team, service: concurrent uploads, connections that stay open, secrets in command lines and cookies."""

from __future__ import annotations

import errno
import io
import os
import re
import signal
import socket
import stat
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from html import unescape
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import unquote

import httpx
import pytest

from sdcmap.web import request_guard, server
from sdcmap.web.sessions import Authenticator
from sdcmap.web.workspace import STATE_FOLDER, Busy, Workspace
from sizes import GUARD
from waiting import until
from web_workspace import HEAD, TOKEN, Server, serve_app

PEOPLE = b"a,b\n1,2\n"


class Interrupted(io.BytesIO):
    """An upload during which something else happens."""

    def __init__(self, content: bytes, meanwhile: Callable[[], object]) -> None:
        super().__init__(content)
        self.meanwhile: Callable[[], object] | None = meanwhile

    def read(self, size: int | None = -1, /) -> bytes:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return super().read(3)


def kept(folder: Path) -> list[str]:
    """Return the names in a folder, without the server's own files."""
    return [path.name for path in folder.iterdir() if path.name != STATE_FOLDER]


# ---- 8: uploads of one name -----------------------------------------------------------------------------------
def test_first_complete_upload_of_a_name_is_kept(tmp_path: Path) -> None:
    """Of 12 uploads of one name at once two were lost and two left empty files: they shared the name of their parts, and
    each took the other's away."""
    workspace = Workspace(tmp_path.resolve())
    second = Interrupted(PEOPLE, lambda: workspace.store_upload("people.csv", io.BytesIO(PEOPLE * 2)))
    with pytest.raises(Busy, match="already"):
        workspace.store_upload("people.csv", second)
    assert (tmp_path / "people.csv").read_bytes() == PEOPLE * 2
    assert kept(tmp_path) == ["people.csv"]


def test_upload_works_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """USB sticks and network shares may not support hard links."""

    def no_links(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    Workspace(tmp_path.resolve()).store_upload("people.csv", io.BytesIO(PEOPLE))
    assert (tmp_path / "people.csv").read_bytes() == PEOPLE and kept(tmp_path) == ["people.csv"]


def test_failed_upload_leaves_no_file(tmp_path: Path) -> None:
    """The file name never refers to an empty file."""
    workspace = Workspace(tmp_path.resolve())
    empty = Interrupted(b"", lambda: None)
    with pytest.raises(Exception, match="is empty"):
        workspace.store_upload("people.csv", empty)
    workspace.store_upload(
        "people.csv", Interrupted(PEOPLE, lambda: (tmp_path / "people.csv").exists() and pytest.fail("too early"))
    )
    assert kept(tmp_path) == ["people.csv"]


# ---- 6: guests that stay --------------------------------------------------------------------------------------
def connected(client: httpx.Client) -> socket.socket:
    return socket.create_connection((client.base_url.host, client.base_url.port or 0), timeout=GUARD)


def host_line(client: httpx.Client) -> str:
    return f"host: {client.base_url.netloc.decode()}\r\n"


def heard(guest: socket.socket) -> bytes:
    """Return everything the server sends until it closes the connection."""
    return b"".join(iter(lambda: guest.recv(1 << 16), b""))


def test_connection_without_token_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """205 connections that got a 401 and sent one byte more stayed open, and the owner got a 503."""
    monkeypatch.setattr(server, "HEADER_SECONDS", 0.3)
    with serve_app(Workspace(tmp_path.resolve())) as client:
        with connected(client) as guest:
            guest.sendall(f"GET /api/files HTTP/1.1\r\n{host_line(client)}\r\n".encode())
            assert heard(guest).startswith(b"HTTP/1.1 401")
        with connected(client) as owner:  # one who has it is not kept either, where his next request does not come
            head = f"GET /api/files HTTP/1.1\r\n{host_line(client)}authorization: Bearer {TOKEN}\r\n\r\n"
            owner.sendall(head.encode())
            assert owner.recv(1 << 16).startswith(b"HTTP/1.1 200")
            owner.sendall(b"G")
            heard(owner)


def crowd(client: httpx.Client, words: bytes, count: int = server.MAX_CONNECTIONS + 5) -> list[socket.socket]:
    """Open this number of connections that send a text and wait."""
    guests = [connected(client) for _ in range(count)]
    for guest in guests:
        with suppress(OSError):  # the first may have been sent away
            guest.sendall(words)
    return guests


@pytest.mark.parametrize("words", [b"", b"G", b"POST /api/files HTTP/1.1\r\nhost: x\r\n"])
def test_many_connections_do_not_lock_out_the_owner(tmp_path: Path, words: bytes) -> None:
    """205 connections that said nothing, or not all, took every place, and the owner got a 503: now guests go first."""
    with serve_app(Workspace(tmp_path.resolve())) as client, ExitStack() as stack:
        assert client.get("/api/files").status_code == 200
        for guest in crowd(client, words):
            stack.enter_context(guest)
        assert client.get("/api/files").status_code == 200  # by the connection that he has, and by a new one
        assert httpx.get(client.base_url.join("/api/files"), headers=HEAD, timeout=GUARD).status_code == 200


def test_slow_request_body_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression test: one byte per half minute was enough to keep a connection open."""
    clock = iter(range(0, 10_000, 20))  # a byte every twenty seconds
    monkeypatch.setattr(request_guard, "now", lambda: float(next(clock)), raising=False)
    with serve_app(Workspace(tmp_path.resolve())) as client, connected(client) as owner:
        head = f"POST /api/plans HTTP/1.1\r\n{host_line(client)}authorization: Bearer {TOKEN}\r\ncontent-length: 20\r\n"
        owner.sendall(f"{head}content-type: application/json\r\n\r\n".encode())
        answer = b""
        owner.settimeout(0.2)
        for _ in range(20):
            owner.sendall(b" ")
            with suppress(TimeoutError):
                answer += owner.recv(1 << 16)
            if answer:
                break
        owner.settimeout(GUARD)
        answer = answer or owner.recv(1 << 16)
        assert answer.startswith(b"HTTP/1.1 408")


# ---- 7: secrets in command lines and cookies ------------------------------------------------------------------
RECORD = """#!{python}
import sys
with open({file!r}, "w") as file:
    file.write("\\n".join(sys.argv[1:]) + "\\n")
"""


@pytest.fixture
def command_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file in which a fake browser records its command line."""
    command_file, browser = tmp_path / "command", tmp_path / "browser"
    browser.write_text(RECORD.format(python=sys.executable, file=str(command_file)))
    browser.chmod(0o700)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    return command_file


def test_access_secret_is_not_on_a_command_line(tmp_path: Path, command_file: Path) -> None:
    """With `--open` the browser was started with the token as its argument, which every user of a machine can read. And
    what a killed server left of that, the next one takes away."""

    def door() -> Path:
        [argument] = until(
            lambda: (
                command_file.exists() and command_file.read_text().endswith("\n") and command_file.read_text().split()
            )
        )
        assert "token" not in argument and argument.startswith("file://")
        command_file.unlink()
        return Path(unquote(argument.removeprefix("file://")))

    folder = tmp_path / "served"
    folder.mkdir()
    killed = Server.start(folder, "--open")
    left = door()
    killed.end(signal.SIGKILL)
    assert left.exists()
    running = Server.start(folder, "--open")
    try:
        file = door()
        assert not left.exists()
        assert (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(file.parent.stat().st_mode)) == (0o600, 0o700)
        [address, other] = re.findall(r"http://[^\"]+", unescape(file.read_text()))
        assert address == other != running.address
        with httpx.Client(timeout=GUARD) as visitor:
            assert visitor.get(address).status_code == 200
            assert visitor.get(f"{running.base}/").status_code == 200
            assert not file.exists()
    finally:
        running.end()


def test_login_file_expires(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression test: without a browser, the file with the token existed as long as the server."""
    late, authenticator = Authenticator(TOKEN), Authenticator(TOKEN)
    assert late.exchange(late.issue_short_token(0.0)) is None
    assert authenticator.exchange("") is None and authenticator.exchange(authenticator.issue_short_token(60.0))
    assert authenticator.exchange("") is None
    monkeypatch.setattr(server, "BROWSER_LOGIN_SECONDS", 0.2)
    monkeypatch.setattr(server.webbrowser, "open", lambda _: None)
    with server._open_browser(Workspace(tmp_path.resolve()), authenticator, str):
        assert len(list(tmp_path.rglob("open.html"))) == 1
        until(lambda: not list(tmp_path.rglob("open.html")), "the end of its time")


def test_used_token_is_rejected(tmp_path: Path) -> None:
    """Regression test: an address from a browser history could be used again."""
    authenticator = Authenticator(TOKEN)
    with serve_app(Workspace(tmp_path.resolve()), authenticator, headers={}) as client:
        address = client.base_url.join(f"{authenticator.base_path}/?token={authenticator.browser_token}")
        assert httpx.get(address, timeout=GUARD).status_code == 200
        assert httpx.get(address, timeout=GUARD).status_code == 401
        fresh = client.base_url.join(f"{authenticator.base_path}/?token={authenticator.browser_token}")
        assert httpx.get(fresh, timeout=GUARD).status_code == 200


def test_cookie_is_not_sent_to_other_servers(tmp_path: Path) -> None:
    """Regression test: browsers send cookies to every port, so another server on 127.0.0.1 received the token."""
    heard: list[str] = []

    class Neighbor(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(self.headers.get("cookie", ""))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    authenticator = Authenticator(TOKEN)
    with (
        serve_app(Workspace(tmp_path.resolve()), authenticator, headers={}) as client,
        HTTPServer(("127.0.0.1", 0), Neighbor) as other,
    ):
        threading.Thread(target=other.serve_forever, daemon=True).start()
        assert client.get(f"{authenticator.base_path}/?token={authenticator.browser_token}").status_code == 200
        assert client.get(f"{authenticator.base_path}/api/files").status_code == 200  # by the cookie
        client.get(f"http://127.0.0.1:{other.server_port}/")
        other.shutdown()
    assert heard == [""]
