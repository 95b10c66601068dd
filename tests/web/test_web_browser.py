"""The workbench in Chromium: the whole workflow, by mouse and keyboard, narrow and wide, light and dark."""

from __future__ import annotations

import os
import random
import re
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

import sdcmap as sm
from browser_pages import SLOW, LoggedInBrowser, ready, until
from sdcmap.core.value import decode
from sdcmap.web.pages import render
from web_workspace import Server, people, plan_of

pytestmark = pytest.mark.slow
PAGES = ("/", "/data?file=people.csv", "/studies/cps/data", "/studies/cps/plan", "/studies/cps/sweep", "/studies/cps/map",
         "/studies/cps/candidate", "/studies/cps/choose", "/studies/cps/decision",
         "/studies/known/candidate", "/studies/known/decision", "/compare?first=cps&second=known")  # fmt: skip
WIDTHS = (320, 390, 1600)
SHOTS = os.environ.get("SDCMAP_SHOTS", "")  # a folder for screenshots, to be looked at by a person
PIXEL = """() => {
  const box = document.querySelector(".plot canvas").getBoundingClientRect();
  const [x, y] = workbench.plot.pixel(workbench.state.best);
  return [box.left + x, box.top + y];
}"""
CHECK = (Path(__file__).parent / "accessibility.js").read_text(encoding="utf-8").rstrip("\n;")


# ---- the whole story ------------------------------------------------------------------------------------------


def test_workflow_from_upload_to_download(browser_session: LoggedInBrowser, server: Server, tmp_path: Path) -> None:
    home, sent = server.folder, people(tmp_path, name="sent.csv", seed=9)  # others than those of the other studies
    with browser_session.at("/", height=900) as page:
        assert "token" not in page.url
        page.set_input_files("#file", sent)
        page.click("#upload button")
        page.wait_for_url("**/data?file=sent.csv")
        expect(page.locator("#facts")).to_contain_text("800")
        for name in ("WrkTyp", "MarStat", "Hours", "Income"):
            page.get_by_label(f"Role of {name}").select_option("other")
            expect(page.locator("#columns tr", has_text=name)).to_contain_text("stated")
        page.fill("#name", "story")
        page.click("text=Use these roles and write a plan")
        page.wait_for_url("**/studies/story/plan")
        ready(page)
        plan = plan_of(home, "sent.csv", limit=2.0)  # the seed is new, so every draw must be far below the limit
        page.fill("#toml", plan.toml())  # the text, and the forms follow
        expect(page.locator("#count")).to_have_text(str(plan.count))
        expect(page.locator("#methods .item")).to_have_count(1)
        page.fill("#replicates", "4")  # the forms, and the text follows
        expect(page.locator("#toml")).to_have_value(plan.toml().replace("replicates = 3", "replicates = 4"))
        rate = page.get_by_label("rate")
        rate.fill("0.05, 2")
        expect(page.locator("#problems")).to_contain_text("Swap.rate must be in (0, 0.5]. Got 2.")
        expect(rate).to_have_attribute("aria-invalid", "true")
        expect(page.locator("#save")).to_be_disabled()
        rate.fill("0.05, 0.2")
        expect(page.locator("#problems")).to_be_empty()
        page.click("#save")
        expect(page.locator("#said")).to_have_text("The plan is saved.")
        page.click("#next")
        page.click("#start")
        expect(page.locator("#state")).to_have_text("Done", timeout=SLOW)
        page.wait_for_selector(".plot canvas")
        page.click("nav >> text=Choose and release")
        ready(page)
        expect(page.locator("#choice")).to_contain_text("Recommended: ")
        page.click("#check-form button")
        expect(page.locator("#checks")).to_contain_text("This candidate cannot be released as it is.", timeout=SLOW)
        for name in ("unmasked", "profile"):
            page.fill(f"#override-{name}", "made-up people")
        page.click("#check-form button")
        expect(page.locator("#checks")).to_contain_text("Every check passed.", timeout=SLOW)
        page.fill("#signed", "A. Steward")
        page.click("#write")
        link = page.locator("#releases a")
        expect(link).to_have_count(1)
        with page.expect_download() as download:
            link.click()
        names = zipfile.ZipFile(download.value.path()).namelist()
        assert any(name.endswith("/data.csv") for name in names) and any(name.endswith("/note.md") for name in names)
        with page.expect_download() as report:
            page.click("#external")
        assert "Release report (external)" in Path(report.value.path()).read_text()
    assert sm.Study.open(home / "story").rule_was_fixed_first


def test_login_file_works_once(browser: Browser, server: Server, tmp_path: Path) -> None:
    """`--open` opens a local file; a redirect from it would lose the strict cookie."""
    door = tmp_path / "open.html"
    door.write_text(render("enter.html", address=server.address))
    context = browser.new_context()
    page = context.new_page()
    page.goto(door.as_uri())
    page.wait_for_url(f"{server.base}/")
    server.read_next_address()
    expect(page.get_by_role("link", name="cps")).to_be_visible()
    page.reload()
    expect(page.get_by_role("link", name="cps")).to_be_visible()
    context.close()
    stranger = browser.new_context().new_page()
    stranger.goto(door.as_uri())
    expect(stranger.locator("body")).to_contain_text("Each address logs in one browser, once")
    stranger.context.close()


def test_nested_value_is_edited_in_its_form(browser_session: LoggedInBrowser) -> None:
    with browser_session.at("/studies/known/plan") as page:
        text = page.locator("#toml")
        attack = page.locator("#measures .item").first.get_by_label("Re-identified by record linkage, step 1")
        expect(attack.get_by_role("textbox", name="on", exact=True)).to_have_value("wage, interest, benefits")
        attack.locator(".chip[data-column=benefits]").first.click()
        expect(text).to_have_value(re.compile(r'type = "Linkage", on = \["wage", "interest"\]'))
        expect(page.locator("#problems")).to_be_empty()
        page.locator("#measures .item").first.locator("select[data-field=attack]").select_option("NearestRecord")
        expect(text).to_have_value(re.compile(r'type = "NearestRecord"'))
        page.fill("#toml", text.input_value().replace('type = "NearestRecord"', 'type = "Linkag"', 1))
        expect(page.locator("#problems")).to_contain_text("Did you mean 'Linkage'?")


def test_pages_work_with_keyboard_only(browser_session: LoggedInBrowser, server: Server) -> None:
    with browser_session.at("/") as page:
        page.keyboard.press("Tab")
        until(page, "document.activeElement.textContent === 'Skip to the content'")
        page.keyboard.press("Enter")
        until(page, "document.activeElement.id === 'main'")
        tab_to(page, "cps")
        page.keyboard.press("Enter")
        page.wait_for_url("**/studies/cps/map")
        ready(page)
        tab_to(page, "#lever")
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        page.keyboard.press("Home")
        until(page, "document.body.dataset.confirmed === 'nothing'")
        page.keyboard.press("End")
        until(page, "document.body.dataset.confirmed !== 'nothing'")
        page.keyboard.press("Home")
        until(page, "document.body.dataset.confirmed === 'nothing'")
        expect(page.locator("#choice")).to_contain_text("Release nothing")
        tab_to(page, "#table button")
        page.keyboard.press("Enter")
        expect(page.locator("#point")).to_contain_text("on the frontier")
        tab_to(page, "Open", back=True)
        page.keyboard.press("Enter")
        page.wait_for_url("**/candidate?id=*")
        ready(page)
        page.goto(f"{server.base}/studies/cps/choose")
        ready(page)
        expect(page.locator("#choice")).to_contain_text("Release nothing")  # the rule of the map came along
        tab_to(page, "#own-rule")
        page.keyboard.press("Enter")
        expect(page.locator("#choice")).to_contain_text("Recommended: Age, Sex")
        tab_to(page, "#check-form button")
        page.keyboard.press("Enter")
        expect(page.locator("#checks li").first).to_be_visible()


def tab_to(page: Page, what: str, *, back: bool = False) -> None:
    """Press Tab until the element with this text or selector has the focus."""
    script = """what => {
      const at = document.activeElement;
      return what.startsWith("#") ? at.matches(what) : at.textContent.trim() === what;
    }"""
    for _ in range(120):
        page.keyboard.press("Shift+Tab" if back else "Tab")
        if page.evaluate(script, what):
            return
    raise AssertionError(f"Tab never reaches {what}")


# ---- the map --------------------------------------------------------------------------------------------------


LOOKED_UP = """async ([script, part, name, values]) => {
  const { lookUp } = await import(script), lever = workbench.levers.answer[part][name];
  return values.map((value) => lookUp(lever, value));
}"""


def test_looked_up_choice_equals_service_choice(browser_session: LoggedInBrowser, server: Server) -> None:
    scores = sm.Study.open(server.folder / "cps").scores()
    draw = random.Random(5)
    script = f"{server.base}/static/levers.js"
    rules: list[tuple[Any, str, list[float]]] = [
        (sm.Threshold(risk=0.01), "risk", [draw.uniform(0.0, 0.06) for _ in range(40)]),
        (sm.Linear(slope=0.1), "slope", [10 ** draw.uniform(-3, 2) for _ in range(40)]),
        (sm.IdealPoint(weight=0.5), "weight", [draw.uniform(0, 1) for _ in range(40)]),
    ]
    with browser_session.at("/studies/cps/map") as page:
        for rule, name, values in rules:
            page.select_option("#rule", type(rule).__name__)
            page.fill("#lever-number", str(getattr(rule, name)))
            page.keyboard.press("Enter")
            until(page, "type => workbench.state.choice?.rule.startsWith(type)", type(rule).__name__)
            ru = sm.RUMap(scores, "SmallCells", "Hellinger")
            found = page.evaluate(LOOKED_UP, [script, "rule", name, values])
            assert found == [ru.choose(replace(rule, **{name: value})).candidate for value in values]
            limits = [0.001 + 0.001 * number for number in range(30)]
            found = page.evaluate(LOOKED_UP, [script, "limits", "SmallCells", limits])
            maps = [sm.RUMap(scores, "SmallCells", "Hellinger", {"SmallCells": limit}) for limit in limits]
            assert found == [ru.choose(rule).candidate for ru in maps] and len(set(found)) > 1
            page.locator("#lever").fill("777")  # at once, before the service is asked
            at = page.evaluate(f"workbench.state.rule.{name}")
            best = sm.RUMap(scores, "SmallCells", "Hellinger").choose(replace(rule, **{name: at})).candidate
            assert page.evaluate("workbench.state.best?.id ?? null") == best


def test_sliders_and_limit_lines_can_be_dragged(browser_session: LoggedInBrowser) -> None:
    with browser_session.at("/studies/cps/map") as page:
        box = page.locator(".plot .grip").bounding_box()
        assert box is not None
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        before = page.evaluate("workbench.state.rule.risk")
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x, y + 60, steps=4)
        page.mouse.up()
        after = page.evaluate("workbench.state.rule.risk")
        assert after < before  # by how much: test_web_map.py
        until(page, "workbench.state.choice?.rule.includes(String(workbench.state.rule.risk))")
        assert page.evaluate("workbench.state.choice.candidate === (workbench.state.best?.id ?? null)")
        page.fill("#lever-number", "0")
        page.keyboard.press("Enter")
        expect(page.locator("#choice")).to_contain_text("What to do: plan stronger methods, search for a release")
        page.select_option("#rule", "Linear")
        assert page.evaluate("workbench.state.rule.slope") is None  # nobody has set one yet
        page.locator("#lever").fill("400")
        slope = page.evaluate("workbench.state.rule.slope")
        page.locator("#lever").fill("900")
        assert page.evaluate("workbench.state.rule.slope") > slope
        until(page, "workbench.state.choice?.rule.startsWith('Linear')")
        page.uncheck("#families input")
        expect(page.locator("#table")).to_contain_text("No point yet.")
        page.check("#families input")
        page.evaluate("workbench.plot.redraw()")
        page.locator(".plot canvas").scroll_into_view_if_needed()
        dot = page.evaluate(PIXEL)
        page.mouse.click(*dot)
        expect(page.locator("#point")).to_contain_text("draw")
        with page.expect_download() as download:
            page.click("#csv")
        page.locator("#table button").last.click()
        page.click("text=Compare with the choice")
        expect(page.locator("[data-ready]")).to_have_count(2)
        assert "frontier" in Path(download.value.path()).read_text().splitlines()[0]


def test_limits_can_be_dragged_on_decision_planes(browser_session: LoggedInBrowser, server: Server) -> None:
    plan = sm.Study.open(server.folder / "known").plan
    ru = sm.RUMap(sm.Study.open(server.folder / "known").scores(), plan.risk, plan.utility)
    draw = random.Random(6)
    with browser_session.at("/studies/known/decision") as page:
        rule = page.evaluate("workbench.state.rule")
        script = f"{server.base}/static/levers.js"
        for name in ("agency_limit", "intruder_limit"):
            values = [round(-4 * draw.random() ** 2, 6) for _ in range(40)]
            rules = [decode(rule | {name: value}, sm.core.rule.Rule) for value in values]
            found = page.evaluate(LOOKED_UP, [script, "rule", name, values])
            assert found == [ru.choose(one).candidate for one in rules] and None in found
        best = page.evaluate("workbench.state.best.method")
        assert best == ru.choose(decode(rule, sm.core.rule.Rule)).method
        for line, name, dx, dy in (
            (".grip:not(.side)", "intruder_limit", 0, 70),
            (".grip.side", "agency_limit", -70, 0),
        ):
            box = page.locator(f"#risk-plane {line}").bounding_box()
            assert box is not None
            x = box["x"] + (box["width"] / 2 if dx else 12)  # off the crossing of the two lines
            y = box["y"] + (box["height"] / 2 if dy else box["height"] - 12)
            before = page.evaluate(f"workbench.state.rule.{name}")
            page.mouse.move(x, y)
            page.mouse.down()
            page.mouse.move(x + dx, y + dy, steps=4)
            page.mouse.up()
            assert page.evaluate(f"workbench.state.rule.{name}") < before
        until(page, "workbench.state.choice?.rule.includes(String(workbench.state.rule.agency_limit))")
        assert page.evaluate("workbench.state.choice.method === (workbench.state.best?.method ?? '')")
        page.locator("#agency-limit").fill("0")
        expect(page.locator("#left")).to_contain_text("release nothing.What to do: plan stronger methods")
        expect(page.locator("#choice")).to_contain_text("Release nothing")


COUNT_ANSWERS = """() => {  // what a page does with an answer is done in the turn in which it is counted
    const json = Response.prototype.json;
    window.answersRead = 0;
    Response.prototype.json = async function () {
        const read = await json.call(this);
        window.answersRead += 1;
        return read;
    };
}"""


def test_decision_page_offers_missing_measures(browser_session: LoggedInBrowser) -> None:
    with browser_session.at("/studies/small/decision") as page:
        both = re.compile(
            r"takes about ([\d.]+) (s|min|h) .*without the measures, and about ([\d.]+) (s|min|h) with them"
        )
        expect(page.locator("#price")).to_contain_text(both)
        page.evaluate(COUNT_ANSWERS)
        held: list[Route] = []
        page.route("**/api/plans", lambda route: held.append(route))  # a server that takes its time
        for asked, (name, variable) in enumerate((("wanted", "total"), ("studied", "wage")), start=1):
            page.select_option(f"#{name}", variable)
            while len(held) < 2 * asked:  # two prices for each pick; the next pick when both are asked for
                page.wait_for_timeout(20)
        expect(page.locator("#add")).to_be_disabled()  # until both prices of the last pick are told
        for route in held[2:]:
            route.continue_()
        expect(page.locator("#add")).to_be_enabled()
        price = page.locator("#price").inner_text()
        read = page.evaluate("answersRead")
        for route in held[:2]:  # the guess for the first pick comes late, and is another
            answer = route.fetch()
            route.fulfill(response=answer, json=answer.json() | {"seconds": 3.6e7})
        page.unroute("**/api/plans")
        until(page, "read => answersRead === read + 2", read)
        assert page.locator("#price").inner_text() == price
        result = both.search(page.locator("#price").inner_text())
        assert result is not None
        before, after = (float(result[k]) * {"s": 1, "min": 60, "h": 3600}[result[k + 1]] for k in (1, 3))
        assert before < after
        page.click("#add")
        page.wait_for_url("**/studies/small/sweep")
        page.click("#start")
        expect(page.locator("#state")).to_have_text("Done", timeout=SLOW)
        page.click("nav >> text=Decision")
        ready(page)
        expect(page.locator("#risk-plane canvas")).to_be_visible()
        expect(page.locator("#choice")).to_contain_text("elease")


# ---- how it looks ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", PAGES)
def test_every_page_is_accessible_and_fits(browser_session: LoggedInBrowser, place: str) -> None:
    with browser_session.at(place, width=WIDTHS[0], height=900) as page:
        page.emulate_media(reduced_motion="reduce")  # no color on its way to another
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
                until(page, f"!({CHECK})().length", wrong=CHECK)  # charts are drawn anew in their own time
                if SHOTS:
                    name = place.strip("/").replace("/", "-").replace("?", "-") or "home"
                    page.screenshot(path=f"{SHOTS}/{name}-{width}-{scheme}.png", full_page=True)
        until(page, "!document.querySelector('canvas') || document.documentElement.matches('[data-dark]')")
        page.emulate_media(media="print")  # what a dark screen showed, on white paper
        until(page, f"!({CHECK})().length", wrong=CHECK)
        canvases = "[...document.querySelectorAll('canvas:not(.paper *)')].map(made => getComputedStyle(made).filter)"
        assert {*page.evaluate(canvases)} <= {"invert(1) hue-rotate(180deg)"}


def test_accessibility_check_finds_planted_faults(browser: Browser) -> None:
    page = browser.new_page()
    page.set_content(
        "<p style='color:#999;background:#fff'>pale</p><input><img src='data:,'><canvas></canvas><h1>a</h1><h1>b</h1>"
    )
    found = " ".join(page.evaluate(CHECK))
    page.close()
    for fault in (
        "contrast",
        "no label",
        "no words for IMG",
        "no words for CANVAS",
        "not one h1",
        "not one main",
        "title",
    ):
        assert fault in found
