"""Working with plans, data, candidates and releases in a real Chromium: what is typed is kept, what is kept is told."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import sdcmap as sm
from sdcmap.explore.looking import source_of
from visiting import Visitor, ready, until
from webroom import KEYS, ROLES, Server, endless_plan, people, swept

pytestmark = pytest.mark.slow
WIDE = {"viewport": {"width": 1280, "height": 1000}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("served").resolve()
    plan = swept(home, rates=(0.05,), replicates=2)
    (home / "fresh.toml").write_text(plan.toml())
    made = Server.start(home)
    yield made
    made.end()


def toml(page: object) -> str:
    return str(page.locator("#toml").input_value())  # type: ignore[attr-defined]


def test_plans_are_picked_not_typed_and_nothing_unsaved_is_lost(browser: Browser, server: Server) -> None:
    race = source_of("people.csv", ROLES, {}).read(server.folder).column("Race").levels
    assert race is not None
    first, second = (str(level) for level in race.to_list()[:2])
    with Visitor(browser, server, **WIDE) as visitor:
        page = visitor.page
        page.goto(f"{server.base}/studies/fresh/plan")
        ready(page)
        page.select_option("#new-method", "Recode")
        page.click("#add-method")
        item = page.locator("#methods .item").last
        item.locator(".chip[data-column=Race]").first.click()
        expect(item.get_by_label("on (needed)")).to_have_value("Race")
        assert item.get_by_label("Columns for on").locator("[data-column=household]").count() == 0  # the survey's own
        item.locator("summary").click()
        item.get_by_label("merge").fill(f'["{first}", "{second}"]')  # as the help writes one list
        until(page, "document.querySelector('#toml').value.includes('merge')")
        parsed = lambda: sm.Plan.from_toml(toml(page)).expanded
        until(page, "document.body.dataset.dirty === 'true' && !document.querySelector('#problems').textContent")
        assert next(m for m in parsed() if isinstance(m, sm.Recode)).merge == ((first, second),)
        item.get_by_label("merge").fill(f"{first}, {second}; x, y")
        until(page, "document.querySelector('#toml').value.includes('\"y\"')")
        assert next(m for m in parsed() if isinstance(m, sm.Recode)).merge == ((first, second), ("x", "y"))
        expect(page.locator("#remarks")).to_contain_text("nothing is merged")
        page.select_option("#new-method", "Suppress")
        page.click("#add-method")
        item = page.locator("#methods .item").last
        item.locator("summary").click()
        item.get_by_role("textbox", name="linked").fill('[["Race", "Educ"]]')  # its own example's form
        until(page, "document.querySelector('#toml').value.includes('linked')")
        assert next(m for m in parsed() if isinstance(m, sm.Suppress)).linked == (("Race", "Educ"),)
        page.select_option("#new-method", "Chain")  # built of steps
        page.click("#add-method")
        chain = page.locator("#methods > .item").last
        for number, name in enumerate(("Suppress", "Recode"), 1):
            chain.locator("select[data-field=methods]").select_option(name)
            expect(chain.locator(".step")).to_have_count(number)
        chain.get_by_label("Move Recode up").click()
        step = chain.locator(".step").first
        step.locator(".chip[data-column=Age]").first.click()
        step.locator("summary").click()
        step.get_by_role("textbox", name="prefix").fill("1")
        until(page, "document.querySelector('#toml').value.includes('prefix = 1')")
        until(page, "!document.querySelector('#problems').textContent")
        built = next(m for m in parsed() if isinstance(m, sm.Chain))
        assert [type(one).__name__ for one in built.methods] == ["Recode", "Suppress"]
        expect(page.locator("#dirty")).to_be_visible()
        whole = toml(page)
        page.click("#undo")
        until(page, "whole => document.querySelector('#toml').value !== whole", whole)
        page.click("#redo")
        expect(page.locator("#toml")).to_have_value(whole)
        until(page, "!document.querySelector('#save').disabled")
        other = visitor.context.new_page()  # a second tab, opened before the first is saved
        other.goto(f"{server.base}/studies/fresh/plan")
        ready(other)
        page.click("#next")
        page.wait_for_url("**/sweep")
        assert "Chain" in (server.folder / "fresh.toml").read_text()
        other.fill("#replicates", "7")
        until(other, "document.querySelector('#toml').value.includes('replicates = 7')")
        with other.expect_response(lambda answer: answer.status == 412):
            other.click("#save")
        expect(other.locator("#conflict")).to_be_visible()
        assert "Chain" in (server.folder / "fresh.toml").read_text()
        other.click("#take-theirs")
        expect(other.locator("#toml")).to_have_value((server.folder / "fresh.toml").read_text())
        expect(other.locator("#dirty")).to_be_hidden()


def test_roles_that_are_changed_in_a_study_are_kept_or_told(browser: Browser, server: Server) -> None:
    with Visitor(browser, server, **WIDE) as visitor:
        page = visitor.page
        page.goto(f"{server.base}/studies/fresh/data")
        ready(page)
        page.get_by_label("Role of Income").select_option("sensitive")
        expect(page.locator("#changed")).to_contain_text("not kept in the plan yet")
        until(page, "!document.body.dataset.looking")
        page.click("#begin-button")
        page.wait_for_url("**/studies/fresh/plan")
        kept = sm.Plan.read(server.folder / "fresh.toml").data
        assert kept is not None and kept.sensitive == ("Income",)
        page.goto(f"{server.base}/studies/cps/data")
        ready(page)
        page.get_by_label("Role of Income").select_option("sensitive")
        expect(page.locator("#changed")).to_contain_text("begin another study")
        expect(page.locator("#begin-button")).to_contain_text("another plan")


def test_candidates_are_found_by_name_sorted_and_compared(browser: Browser, server: Server) -> None:
    with Visitor(browser, server, **WIDE) as visitor:
        page = visitor.page
        page.goto(f"{server.base}/studies/cps/candidate")
        ready(page)
        expect(page.locator("#table th").nth(3)).to_contain_text("loss")
        page.fill("#filter", "Race draw 2")
        names = page.locator("#table tbody td.words").all_inner_texts()
        assert names and all("Race" in name and name.endswith("draw 2") for name in names)
        page.locator("#table thead button", has_text="risk").click()
        column = [float(cell) for cell in page.locator("#table tbody tr td:nth-child(3)").all_inner_texts()]
        assert column == sorted(column)
        page.locator("#table thead button", has_text="risk").click()
        assert [float(c) for c in page.locator("#table tbody tr td:nth-child(3)").all_inner_texts()] == column[::-1]
        for place in (0, 1):
            page.locator("#table tbody input").nth(place).check()
        page.click("#compare")
        page.wait_for_url("**other=*")
        expect(page.locator("[data-ready]")).to_have_count(2)
        expect(page.locator("tr.differs").first).to_be_visible()
        first = page.locator("#first").input_value()
        assert "draw" in first and page.url.split("id=")[1][:8] not in first  # a name, not an id
        page.fill("#second", "")
        page.click("#pick button")
        page.wait_for_url(lambda url: "other" not in url)
        ready(page)
        expect(page.locator("h2").first).to_have_text(first)


def test_a_release_is_signed_and_written_once(browser: Browser, server: Server) -> None:
    with Visitor(browser, server, **WIDE) as visitor:
        page = visitor.page
        page.goto(f"{server.base}/studies/cps/choose")
        ready(page)
        page.click("#check-form button")
        expect(page.locator("#checks .failed").first).to_contain_text("What to do:")
        for name in ("unmasked", "gate"):
            page.fill(f"#override-{name}", "made-up people")
        page.click("#write")
        expect(page.locator("#problems")).to_contain_text("who releases this")
        page.fill("#signed", "A. Steward")
        for _ in range(3):
            page.click("#write")
            until(page, "!document.querySelector('#write').disabled")
        expect(page.locator("#releases a")).to_have_count(1)
        expect(page.locator("#releases")).to_contain_text("signed by A. Steward")
        assert KEYS[0] in (next((server.folder / "releases" / "cps").iterdir()) / "codebook.md").read_text()


# ---- the server goes and comes back -------------------------------------------------------------------------------


def test_a_restart_is_told_and_survived(browser: Browser, tmp_path: Path) -> None:
    people(tmp_path)
    (tmp_path / "long.toml").write_text(endless_plan(tmp_path).toml())
    first = Server.start(tmp_path)
    visitor = Visitor(browser, first, **WIDE)
    try:
        page = visitor.page
        page.goto(f"{first.base}/studies/long/sweep")
        page.click("#start")
        expect(page.locator("#pace")).to_contain_text(re.compile("starting|reading|getting ready", re.I))
        until(page, "document.getElementById('progress').value > 0")
        first.end()
        expect(page.locator("#away")).to_contain_text("The server is away")
        expect(page.locator("#state")).to_have_text("Not known: the server does not answer")
        second = Server.start(tmp_path)  # no port is stated: it takes that of the last one
        try:
            assert second.base == first.base
            expect(page.locator("#away")).to_have_count(0)
            expect(page.locator("#state")).to_have_text("Running")
            before = page.evaluate("document.getElementById('progress').value")
            until(page, "before => document.getElementById('progress').value > before", before)
            page.click("#pause")
            expect(page.locator("#state")).to_have_text("Paused")
            page.reload()  # still in
            expect(page.locator("#state")).to_have_text("Paused")
            stranger = browser.new_context().new_page()
            stranger.goto(f"{second.base}/studies/long/sweep")
            expect(stranger.locator("h1")).to_have_text("This browser is not let in")
            assert (
                stranger.evaluate("getComputedStyle(document.querySelector('header')).display") == "flex"
            )  # it has style
            stranger.context.close()
        finally:
            second.end()
    finally:
        visitor.context.close()


def test_find_me_a_release_begins_with_the_roles(browser: Browser, tmp_path: Path) -> None:
    people(tmp_path, 300)
    server = Server.start(tmp_path)
    try:
        with Visitor(browser, server, **WIDE) as visitor:
            page = visitor.page
            page.goto(f"{server.base}/data?file=people.csv")
            ready(page)
            page.fill("#name", "found")
            page.select_option("#profile", "scientific-use")
            page.click("#find")
            page.wait_for_url("**/studies/found/sweep")
            expect(page.locator("#state")).to_have_text("Searching")
            expect(page.locator("#pace")).to_contain_text(re.compile(r"\w"))
            page.click("#cancel")
            expect(page.locator("#state")).to_have_text("Cancelled")
            assert sm.Plan.read(tmp_path / "found.toml").profile.name == "scientific-use"  # type: ignore[union-attr]
            page.goto(f"{server.base}/studies/found/plan")
            ready(page)
            word = page.locator(".lead .word")
            word.focus()
            shown = page.evaluate("getComputedStyle(document.querySelector('.lead .word'), '::after').content")
            assert "How the map becomes a choice" in shown
    finally:
        server.end()
