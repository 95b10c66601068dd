"""Saved pages work in a browser without a network."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

import sdcmap as sm
from sizes import GUARD

pytestmark = pytest.mark.slow


def open_page(browser: Browser, file: Path, mark: str) -> str:
    """Return the page once this element is drawn; requests to other sites fail the test."""
    context = browser.new_context(offline=True)
    wrong: list[str] = []
    try:
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda asked: asked.url.startswith(("file:", "data:", "blob:")) or wrong.append(asked.url))
        page.goto(file.as_uri())
        page.wait_for_selector(mark, state="attached", timeout=1000 * GUARD)
        content = page.content()
    finally:
        context.close()
    assert wrong == []
    return content


def test_map_and_report_work_offline(browser: Browser, tmp_path: Path) -> None:
    people = sm.demo.population(500, seed=3)
    plan = sm.Plan(
        sm.grid(sm.Swap, on=sm.subsets(["Age", "Sex", "Race"], 1, 2), rate=[0.05]), [sm.SmallCells(), sm.Hellinger()],
        replicates=3, rule=sm.Threshold(risk=0.5), seed=4,
    )  # fmt: skip
    scores = sm.sweep(people, plan, tmp_path / "study", workers=1)
    ru = sm.RUMap(scores, plan.risk, plan.utility)
    ru.draw(mark=ru.choose(plan.rule)).save(tmp_path / "map.html")
    assert "vega-embed" in open_page(browser, tmp_path / "map.html", "canvas")
    sm.report(tmp_path / "study").save(tmp_path / "report.html")
    assert "The decision" in open_page(browser, tmp_path / "report.html", "svg")
