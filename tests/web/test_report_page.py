"""The report in a browser: narrow and wide, light and dark, printed on A4, and accessible."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

import sdcmap as sm

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
CHECKS = [
    (HERE / name).read_text(encoding="utf-8").rstrip("\n;") for name in ("accessibility.js", "report_accessibility.js")
]
A4 = (595.0, 842.0)  # points


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("report")
    people = sm.demo.population(400, seed=3)
    methods = [sm.Swap("Age", 0.05), sm.Chain((sm.Swap("Race", 0.05), sm.Noise(["wage", "interest"], 0.3)))]
    measures = [sm.SmallCells(), sm.Hellinger()]
    plan = sm.Plan(
        methods, measures, replicates=3, rule=sm.Threshold(risk=0.9), edits=["wage < 0 -> interest < 0"], seed=4
    )
    sm.sweep(people, plan, folder / "study", workers=1)
    return {
        audience: sm.report(folder / "study", audience=audience, title="People").save(folder / f"{audience}.html")
        for audience in ("internal", "external")
    }


def open_report(browser: Browser, file: Path, width: int, scheme: str) -> Page:
    how = {"offline": True, "viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    page = browser.new_context(**how).new_page()  # type: ignore[arg-type]
    page.goto(file.as_uri())
    return page


@pytest.mark.parametrize("audience", ["internal", "external"])
@pytest.mark.parametrize(("width", "scheme"), [(320, "dark"), (320, "light"), (1600, "dark"), (1600, "light")])
def test_report_has_no_accessibility_problem(
    browser: Browser, report: dict[str, Path], audience: str, width: int, scheme: str
) -> None:
    page = open_report(browser, report[audience], width, scheme)
    assert [wrong for check in CHECKS for wrong in page.evaluate(check)] == []
    page.context.close()


def test_accessibility_check_of_report_finds_planted_faults(browser: Browser, tmp_path: Path) -> None:
    bad = "<h1>a</h1><h3>b</h3><table><tr><td>1</td></tr></table><svg></svg><script>1</script>"
    (tmp_path / "bad.html").write_text(f"<!doctype html><html lang='en'><title>t</title><body>{bad}</body></html>")
    page = open_report(browser, tmp_path / "bad.html", 800, "light")
    assert len(page.evaluate(CHECKS[1])) == 4
    page.context.close()


def test_charts_keep_their_size_on_narrow_screens(browser: Browser, report: dict[str, Path]) -> None:
    page = open_report(browser, report["internal"], 320, "light")
    widths = page.evaluate(
        "[...document.querySelectorAll('figure svg')].map((one) => one.getBoundingClientRect().width)"
    )
    assert widths and min(widths) >= 460, "they scroll in their own frame"
    page.context.close()


def test_report_prints_on_a4_without_clipping(browser: Browser, report: dict[str, Path]) -> None:
    page = open_report(browser, report["internal"], 1600, "dark")
    content = page.pdf(prefer_css_page_size=True)
    boxes = re.findall(rb"/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)\s*\]", content)
    assert boxes and all(
        (float(w), float(h)) == (pytest.approx(A4[0], abs=1), pytest.approx(A4[1], abs=1)) for w, h in boxes
    )
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 680, "height": 900})  # what A4 leaves between its margins, in CSS pixels
    assert page.evaluate("document.documentElement.scrollWidth") <= 680
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)", (
        "dark is for screens"
    )
    page.context.close()
