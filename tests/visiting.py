"""What tests in a real browser share: a visitor to whom nothing may go wrong, and ways to wait for what a page draws."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page, expect

from web_workspace import Server

SLOW = 180_000  # milliseconds: a guard against hanging; the machine may be busy
DRAWN = {  # what is there when a page has drawn itself
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


def watched(page: Page, base: str) -> list[str]:
    """Everything that goes wrong in a page, as it comes."""
    wrong: list[str] = []
    page.on(
        "console",
        lambda said: said.type in ("error", "warning") and wrong.append(f"{said.text} {said.location.get('url', '')}"),
    )
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "request", lambda asked: asked.url.startswith((base, "data:", "blob:")) or wrong.append(f"asked {asked.url}")
    )
    return wrong


class Inside:
    """A browser that is let in. Its pages share what it has loaded; each is a tab of its own; nothing may go wrong."""

    def __init__(self, browser: Browser, server: Server) -> None:
        self.server = server
        self.context = browser.new_context(accept_downloads=True)
        self.context.set_default_timeout(SLOW)
        page = self.context.new_page()
        page.goto(server.address)
        page.wait_for_url(lambda url: "token" not in url)
        server.came_in()
        page.close()

    @contextmanager
    def at(self, place: str, *, width: int = 1280, height: int = 1100) -> Iterator[Page]:
        """A new tab that has drawn the page at `place`, such as /studies/cps/map."""
        page = self.context.new_page()
        page.set_viewport_size({"width": width, "height": height})
        wrong = watched(page, self.server.base)
        try:
            page.goto(self.server.base + place)
            ready(page)
            yield page
        finally:
            page.close()
        assert not wrong, wrong


class Visitor:
    """A browser of its own, let in, with one page that remembers everything that went wrong in it; nothing may."""

    def __init__(self, browser: Browser, server: Server, **how: Any) -> None:
        self.context = browser.new_context(accept_downloads=True, **how)
        self.context.set_default_timeout(SLOW)
        self.page: Page = self.context.new_page()
        self.wrong = watched(self.page, server.base)
        self.page.goto(server.address)
        self.page.wait_for_url(lambda url: "token" not in url)
        server.came_in()

    def __enter__(self) -> Visitor:
        return self

    def __exit__(self, *error: object) -> None:
        self.context.close()
        if error[0] is None:
            assert not self.wrong, self.wrong


def ready(page: Page) -> None:
    """Wait until the page has drawn what it shows."""
    page.wait_for_load_state("load", timeout=SLOW)
    place = page.url.split("?")[0].rpartition("/")[2]
    if place in DRAWN:
        page.wait_for_selector(DRAWN[place], timeout=SLOW)


def until(page: Page, script: str, given: object = None, *, wrong: str = "") -> None:
    """Wait until a script is true; Playwright's own way needs `eval`, which our pages forbid. `wrong`: a script that says
    what is not as it should be, where that never comes."""
    for _ in range(SLOW // 40):
        if page.evaluate(script, given):
            return
        page.wait_for_timeout(40)
    raise AssertionError(page.evaluate(wrong) if wrong else f"never true: {script}")


def dragged(page: Page, line: str, across: float, down: float) -> None:
    """Take a line of the drawing in its middle and move the hand by so many pixels, in steps of about four."""
    box = None
    while box is None:  # the drawing may just be laid anew
        box = page.locator(line).bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + across, y + down, steps=max(2, round(max(abs(across), abs(down)) / 4)))
    page.mouse.up()
