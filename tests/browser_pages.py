"""Helpers of the tests in a browser: logged-in pages that must not report errors, and ways to wait for a page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page, expect

from web_workspace import Server

SLOW = 180_000  # milliseconds; the machine may be busy
DRAWN = {  # selectors that exist once a page is completely drawn
    "map": "body[data-confirmed] .plot canvas",
    "plan": "body[data-checked] #methods .item",
    "data": "#columns select",
    "candidate": "[data-ready]",
    "choose": "#choice .verdict",
    "decision": "body[data-confirmed]",
    "sweep": "body[data-state] .plot canvas",
    "compare": "body[data-compared]",
}
expect.set_options(timeout=SLOW)


def record_errors(page: Page, base: str) -> list[str]:
    """Return a list that collects the errors of a page."""
    wrong: list[str] = []
    page.on(
        "console",
        lambda message: (
            message.type in ("error", "warning") and wrong.append(f"{message.text} {message.location.get('url', '')}")
        ),
    )
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "request",
        lambda request: request.url.startswith((base, "data:", "blob:")) or wrong.append(f"requested {request.url}"),
    )
    return wrong


class LoggedInBrowser:
    """A logged-in browser. Its pages share a cache, each is a new tab, and no page may report an error."""

    def __init__(self, browser: Browser, server: Server) -> None:
        self.server = server
        self.context = browser.new_context(accept_downloads=True)
        self.context.set_default_timeout(SLOW)
        page = self.context.new_page()
        page.goto(server.address)
        page.wait_for_url(lambda url: "token" not in url)
        server.read_next_address()
        page.close()

    @contextmanager
    def at(self, place: str, *, width: int = 1280, height: int = 1100) -> Iterator[Page]:
        """Yield a new tab with the page at a path, such as /studies/cps/map, completely drawn."""
        page = self.context.new_page()
        page.set_viewport_size({"width": width, "height": height})
        wrong = record_errors(page, self.server.base)
        try:
            page.goto(self.server.base + place)
            ready(page)
            yield page
        finally:
            page.close()
        assert not wrong, wrong


class Visitor:
    """Yield a page of a new logged-in browser; the page must not report an error."""

    def __init__(self, browser: Browser, server: Server, **how: Any) -> None:
        self.context = browser.new_context(accept_downloads=True, **how)
        self.context.set_default_timeout(SLOW)
        self.page: Page = self.context.new_page()
        self.wrong = record_errors(self.page, server.base)
        self.page.goto(server.address)
        self.page.wait_for_url(lambda url: "token" not in url)
        server.read_next_address()

    def __enter__(self) -> Visitor:
        return self

    def __exit__(self, *error: object) -> None:
        self.context.close()
        if error[0] is None:
            assert not self.wrong, self.wrong


def ready(page: Page) -> None:
    """Wait until the page is completely drawn."""
    page.wait_for_load_state("load", timeout=SLOW)
    place = page.url.split("?")[0].rpartition("/")[2]
    if place in DRAWN:
        page.wait_for_selector(DRAWN[place], timeout=SLOW)


def until(page: Page, script: str, given: object = None, *, wrong: str = "") -> None:
    """Wait until a script returns true; Playwright's own function needs `eval`, which our pages forbid.

    wrong : a script that describes the problem if that never happens.
    """
    for _ in range(SLOW // 40):
        if page.evaluate(script, given):
            return
        page.wait_for_timeout(40)
    raise AssertionError(page.evaluate(wrong) if wrong else f"never true: {script}")


def drag(page: Page, line: str, across: float, down: float) -> None:
    """Drag a line of the plot at its middle by so many pixels, in steps of about four."""
    box = None
    while box is None:  # the drawing may just be laid anew
        box = page.locator(line).bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + across, y + down, steps=max(2, round(max(abs(across), abs(down)) / 4)))
    page.mouse.up()
