"""What tests in a real browser share: a visitor to whom nothing may go wrong, and ways to wait for what a page draws."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Browser, Page, expect

from webroom import Server

SLOW = 180_000  # milliseconds: a guard against hanging; the machine may be busy
DRAWN = {  # what is there when a page has drawn itself
    "map": "body[data-confirmed] .plot canvas",
    "plan": "body[data-checked] #methods .item",
    "data": "#columns select",
    "candidate": "[data-ready]",
    "choose": "#choice .verdict",
    "decision": "body[data-confirmed]",
    "sweep": "body[data-state] .plot canvas",
}
expect.set_options(timeout=SLOW)


class Visitor:
    """A page that remembers everything that went wrong in it; nothing may."""

    def __init__(self, browser: Browser, server: Server, **how: Any) -> None:
        self.context = browser.new_context(accept_downloads=True, **how)
        self.context.set_default_timeout(SLOW)
        self.page: Page = self.context.new_page()
        self.wrong: list[str] = []
        self.page.on("console", lambda said: said.type in ("error", "warning") and self.wrong.append(said.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", lambda asked: asked.url.startswith(server.base) or asked.url.startswith(("data:", "blob:"))
                     or self.wrong.append(f"asked {asked.url}"))  # fmt: skip
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


def until(page: Page, script: str, given: object = None) -> None:
    """Wait until a script is true; Playwright's own way needs `eval`, which our pages forbid."""
    for _ in range(SLOW // 100):
        if page.evaluate(script, given):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"never true: {script}")


def dragged(page: Page, line: str, across: float, down: float) -> None:
    """Take a line of the drawing in its middle and move the hand by so many pixels, in steps of about four."""
    box = page.locator(line).bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + across, y + down, steps=max(2, round(max(abs(across), abs(down)) / 4)))
    page.mouse.up()
