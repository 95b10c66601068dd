"""Plans, data, candidates and releases in Chromium: input is saved and shown."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

import sdcmap as sm
from browser_pages import LoggedInBrowser, Visitor, ready, until
from sdcmap.explore.column_bars import count_values
from sdcmap.explore.first_look import source_of
from sdcmap.study.sweep import read_progress
from web_workspace import KEYS, ROLES, Server, endless_plan, people

pytestmark = pytest.mark.slow
CHECK = (Path(__file__).parent / "accessibility.js").read_text(encoding="utf-8").rstrip("\n;")
WIDE = {"viewport": {"width": 1280, "height": 1400}}


def toml(page: object) -> str:
    return str(page.locator("#toml").input_value())  # type: ignore[attr-defined]


STILL = """node => new Promise((done) => {  // it stood where it is for twenty frames, and no question is open
  let last = "", calm = 0;
  const look = () => {
    const { x, y } = node.getBoundingClientRect(), now = `${x} ${y}`;
    calm = now === last && !document.documentElement.dataset.busy ? calm + 1 : 0;
    last = now;
    if (calm < 20) requestAnimationFrame(look);
    else done(true);
  };
  look();
})"""


def drag(page: Page, taken: Locator, before: Locator, *, let_go: bool = True) -> None:
    """Drag an element to the upper edge of another one, in steps of a few pixels."""
    taken.evaluate("node => node.scrollIntoView({ block: 'center' })")  # near its edge the page would scroll along
    taken.evaluate(STILL)  # the page may be drawing what was counted
    start, end = taken.bounding_box(), before.bounding_box()
    assert start is not None and end is not None
    x, y = start["x"] + start["width"] / 2, start["y"] + start["height"] / 2
    across, down = end["x"] + 60 - x, end["y"] + 6 - y
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + across, y + down, steps=round(max(abs(across), abs(down)) / 4))
    expect(page.locator(".drop-mark")).to_have_count(1)
    if let_go:
        page.mouse.up()


def test_plan_editor_keeps_unsaved_changes(browser_session: LoggedInBrowser, server: Server) -> None:
    race = source_of("people.csv", ROLES, {}).read(server.folder).column("Race").levels
    assert race is not None
    first, second = (str(level) for level in race.to_list()[:2])
    with browser_session.at("/studies/fresh/plan", height=1400) as page:
        page.select_option("#new-method", "Recode")
        page.click("#add-method")
        item = page.locator("#methods .item").last
        item.locator(".chip[data-column=Race]").first.click()
        expect(item.get_by_label("on (required)")).to_have_value("Race")
        assert item.get_by_label("Columns for on").locator("[data-column=household]").count() == 0  # the survey's own
        item.get_by_label("Merge categories").check()  # the editor: two categories under a name, counted at once
        for category in (first, second):
            item.locator(f"[data-category='{category}']").check()
        item.get_by_label("under the name").fill("anybody")
        item.get_by_role("button", name="Merge the marked").click()
        expect(item.locator(".recoded")).to_contain_text("2 categories become 1; the rarest has 800 records.")
        item.get_by_label("Split anybody").click()
        expect(item.locator(".recoded")).not_to_contain_text("become")
        item.locator("summary", has_text="more options").click()
        item.locator("[data-field=merge]").fill(f'["{first}", "{second}"]')  # as the help writes one list
        until(page, "document.querySelector('#toml').value.includes('merge')")
        parsed = lambda: sm.Plan.from_toml(toml(page)).all_methods
        until(page, "document.body.dataset.dirty === 'true' && !document.querySelector('#problems').textContent")
        assert next(m for m in parsed() if isinstance(m, sm.Recode)).merge == ((first, second),)
        expect(item.locator(".recoded")).to_contain_text("2 categories become 1")  # the editor follows
        for last, several in (("y", f"{first}, {second}; x, y"), ("z", f'[["{first}", "{second}"], ["x", "z"]]')):
            item.locator("[data-field=merge]").fill(several)  # with semicolons, and as the help writes lists
            until(page, f"document.querySelector('#toml').value.includes('\"{last}\"')")
            assert next(m for m in parsed() if isinstance(m, sm.Recode)).merge == ((first, second), ("x", last))
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
        order = lambda *names: expect(chain.locator(".steps > .step > .item-head h4")).to_have_text(
            [re.compile(rf"{place}\. .* {name}$") for place, name in enumerate(names, 1)]
        )
        chain.locator("[data-step=Suppress]").click()
        order("Suppress")
        drag(page, chain.locator("[data-step=Recode]"), chain.locator(".step").first)  # to before the first
        order("Recode", "Suppress")
        step = chain.locator(".step").first
        step.locator(".chip[data-column=Age]").first.click()
        step.get_by_label("First characters").check()
        until(page, "document.querySelector('#toml').value.includes('prefix = 1')")
        expect(step.locator(".recoded")).to_contain_text("Age: 3 categories become")
        until(page, "!document.querySelector('#problems').textContent")
        chain.get_by_label(
            re.compile("^Move Local suppression")
        ).focus()  # the keyboard: up, over the end, and down again
        for key in ("ArrowUp", "ArrowUp"):
            page.keyboard.press(key)
        order("Suppress", "Recode")
        assert page.evaluate("document.activeElement.ariaLabel").startswith("Move Local suppression: step 1 of 2")
        drag(page, chain.get_by_label(re.compile("^Move Global recoding")), chain.locator(".step").first, let_go=False)
        page.keyboard.press("Escape")
        page.mouse.up()
        order("Suppress", "Recode")
        drag(page, chain.get_by_label(re.compile("^Move Global recoding")), chain.locator(".step").first)
        order("Recode", "Suppress")
        in_order = "text => text.lastIndexOf('\"Recode\"') < text.lastIndexOf('\"Suppress\"')"
        until(page, f"({in_order})(document.querySelector('#toml').value)")  # the text follows the forms
        until(page, "!document.querySelector('#problems').textContent")
        built = next(m for m in parsed() if isinstance(m, sm.Chain))
        assert [type(one).__name__ for one in built.methods] == ["Recode", "Suppress"]
        expect(page.locator("#dirty")).to_be_visible()
        page.select_option("#new-measure", "Hellinger")  # a price before it is added
        expect(page.locator("#measure-price")).to_contain_text(re.compile("Adds about .* to the .* of the plan"))
        expect(page.locator("#new-measure option[value=WorstLinkage]")).to_contain_text("adds about")
        expect(page.locator("#draw-price")).to_contain_text("One more draw of each method adds about")
        whole = toml(page)
        page.click("#undo")
        until(page, "whole => document.querySelector('#toml').value !== whole", whole)
        page.click("#redo")
        expect(page.locator("#toml")).to_have_value(whole)
        until(page, "!document.querySelector('#save').disabled")
        other = page.context.new_page()  # a second tab, opened before the first is saved
        other.goto(f"{server.base}/studies/fresh/plan")
        ready(other)
        page.click("#next")
        page.wait_for_url("**/sweep")
        assert "Chain" in (server.folder / "fresh.toml").read_text()
        other.fill("#replicates", "7")
        until(other, "document.querySelector('#toml').value.includes('replicates = 7')")
        other.once("dialog", lambda dialog: dialog.dismiss())
        with other.expect_event("dialog") as asked:  # by the browser, before edits are left behind
            other.click("nav >> text=Sweep", no_wait_after=True)
        assert asked.value.type == "beforeunload" and other.url.endswith("/plan")
        with other.expect_response(lambda answer: answer.status == 412):
            other.click("#save")
        expect(other.locator("#conflict")).to_be_visible()
        assert "Chain" in (server.folder / "fresh.toml").read_text()
        other.click("#take-theirs")
        expect(other.locator("#toml")).to_have_value((server.folder / "fresh.toml").read_text())
        expect(other.locator("#dirty")).to_be_hidden()
        other.click("#history summary")  # what was saved before it comes back as an edit, which can be undone
        expect(other.locator("#earlier li")).to_have_count(1)
        expect(other.locator("#earlier li")).to_contain_text("Changed afterwards: methods")
        other.get_by_role("button", name=re.compile("^Restore the plan of ")).click()
        expect(other.locator("#dirty")).to_be_visible()
        expect(other.locator("#methods .item[data-type=Chain]")).to_have_count(0)
        assert "Chain" in (server.folder / "fresh.toml").read_text()
        other.click("#undo")
        expect(other.locator("#toml")).to_have_value((server.folder / "fresh.toml").read_text())
        expect(other.locator("nav [data-done]")).to_have_text([re.compile("Data done$")])  # no sweep was started yet


def test_hierarchy_editor_saves_and_uses_file(browser_session: LoggedInBrowser, server: Server) -> None:
    data = source_of("people.csv", ROLES, {}).read(server.folder)
    counts = dict(data.frame()["Educ"].value_counts().iter_rows())
    educ = [bar.label for bar in count_values(data.column("Educ"))]
    with browser_session.at("/studies/small/plan", height=1400) as page:
        page.select_option("#new-method", "Recode")
        page.click("#add-method")
        item = page.locator("#methods .item").last
        item.locator(".chip[data-column=Educ]").first.click()
        item.get_by_label("A hierarchy file").check()
        item.get_by_role("button", name="Create a hierarchy").click()
        board = item.locator(".drawn")
        save = board.get_by_role("button", name="Save as")
        expect(board.locator(".levels tbody tr")).to_have_count(len(educ))
        expect(board.locator(".levels tbody tr", has_text=educ[0]).locator("td.n").first).to_have_text(
            f"{counts[educ[0]]:,}"
        )
        board.get_by_label(f"Select {educ[0]}", exact=True).click()  # the hand: a range of rows
        board.get_by_label(f"Select {educ[1]}", exact=True).click(modifiers=["Shift"])
        board.get_by_label("Name", exact=True).fill("low")
        page.keyboard.press("Enter")
        expect(board.locator(".judged")).to_contain_text(f"“low”, has {counts[educ[0]] + counts[educ[1]]:,} records")
        expect(save).to_be_disabled()
        board.get_by_role("button", name="All others: *").click()
        board.get_by_role("button", name="Add a level").click()
        board.get_by_label(f"Level 2 of {educ[0]}", exact=True).fill("a")  # the keyboard: cell by cell
        page.keyboard.press("Enter")
        page.keyboard.type("b")
        expect(board.locator("[role=status]")).to_contain_text('"low" of level 1 is split at level 2 into "a" and "b".')
        expect(board.locator("[aria-invalid]")).to_have_count(2)
        page.keyboard.press("Backspace")
        page.keyboard.type("a")
        board.get_by_role("button", name="All others: as on the level below").click()
        expect(save).to_be_enabled()
        until(page, f"!({CHECK})().length", wrong=CHECK)
        page.select_option(
            "#rule", ""
        )  # the page draws itself anew, then reads the plan anew: nothing drawn up is lost
        until(page, "!document.querySelector('#toml').value.includes('[rule]')")
        item.get_by_role("button", name=re.compile("^Remove Recode")).click()
        until(page, "!document.querySelector('#toml').value.includes('Recode')")
        page.click("#undo")
        until(page, "document.querySelector('#toml').value.includes('Recode')")
        item.get_by_label("Merge categories").check()
        expect(board).to_be_hidden()  # it waits while another way is tried
        item.get_by_label("A hierarchy file").check()
        expect(board.get_by_label(f"Level 2 of {educ[1]}", exact=True)).to_have_value("a")
        expect(save).to_be_enabled()
        board.get_by_label("File", exact=True).fill("schooling.csv")
        save.click()
        expect(item.locator(".recoded")).to_contain_text(f"Educ: {len(educ)} categories become 2")
        until(page, "document.querySelector('#toml').value.includes('schooling.csv')")
        item.get_by_role("button", name="Open this file to change it").click()
        expect(board.get_by_label(f"Level 1 of {educ[0]}", exact=True)).to_have_value("low")
        expect(save).to_be_disabled()  # replaced only where somebody says so
        board.get_by_label(f"Level 1 of {educ[1]}", exact=True).fill("middle")
        board.get_by_label("Replace the file").check()
        save.click()
        expect(item.locator(".recoded")).to_contain_text(f"Educ: {len(educ)} categories become 3")
    kept = sm.data.Hierarchy.read(str(server.folder / "schooling.csv"))
    assert [kept.at(level)[educ[0]] for level in (1, 2)] == ["low", "a"] and kept.at(1)[educ[1]] == "middle"


def test_changed_roles_of_a_study_are_saved_or_reported(browser_session: LoggedInBrowser, server: Server) -> None:
    with browser_session.at("/studies/fresh/data") as page:
        page.get_by_label("Role of Income").select_option("sensitive")
        expect(page.locator("#changed")).to_contain_text("not saved in the plan yet")
        until(page, "!document.body.dataset.looking")
        page.click("#begin-button")
        page.wait_for_url("**/studies/fresh/plan")
        kept = sm.Plan.read(server.folder / "fresh.toml").data
        assert kept is not None and kept.sensitive == ("Income",)
        page.goto(f"{server.base}/studies/cps/data")
        ready(page)
        page.get_by_label("Role of Income").select_option("sensitive")
        expect(page.locator("#changed")).to_contain_text("start another study")
        expect(page.locator("#begin-button")).to_contain_text("another plan")


def test_columns_are_changed_together_and_codes_marked(browser: Browser, server: Server) -> None:
    frame = sm.demo.population(400, seed=5).frame().with_columns(
        wage=pl.when(pl.int_range(400) % 10 == 0).then(-8).otherwise(pl.col("wage"))
    )  # fmt: skip
    frame.write_csv(server.folder / "codes.csv", separator=";")
    with Visitor(browser, server, **WIDE) as visitor:
        page = visitor.page
        page.goto(f"{server.base}/data?file=codes.csv")
        ready(page)
        rows = page.locator("#columns > tbody > tr")
        unique = page.locator("#unique tbody tr").first
        expect(rows).to_have_count(len(frame.columns))
        page.evaluate("for (const row of document.querySelectorAll('#columns > tbody > tr')) row.dataset.before = ''")
        drawn_before = page.locator("#columns tr[data-before]")
        page.get_by_label("Select wage", exact=True).check()  # a tick draws no row anew, a role none but its own
        page.get_by_label("Select wage", exact=True).uncheck()
        expect(drawn_before).to_have_count(len(frame.columns))
        page.get_by_label("Role of Sex").select_option("other")
        until(page, "!document.body.dataset.looking")
        expect(drawn_before).to_have_count(len(frame.columns) - 1)
        page.select_option("#by-role", "numeric")
        amounts = [name.split(" = ")[0] for name in rows.locator("td:nth-child(2)").all_inner_texts()]
        assert "wage" in amounts and "Race" not in amounts
        page.get_by_label("Select all that are shown").check()
        expect(page.locator("#picked")).to_have_text(f"{len(amounts)} selected")
        page.select_option("#all-roles", "sensitive")
        page.click("#apply")
        page.select_option("#by-role", "sensitive")
        expect(rows).to_have_count(len(amounts))
        expect(rows.first).to_contain_text("stated")
        page.select_option("#by-role", "")
        page.fill("#by-name", "wa")
        expect(rows).to_have_count(1)
        page.get_by_label("-8 means missing in wage").click()  # as it was proposed
        expect(page.get_by_label("-8 means missing in wage")).to_have_attribute("aria-pressed", "true")
        expect(rows.first.locator("td").nth(9)).to_have_text("40")
        expect(rows.first.locator(".histogram .gone")).to_have_count(1)
        page.fill("#by-name", "")
        page.keyboard.press("Tab")  # the keyboard alone: untick all, pick one, drop it
        page.get_by_label("Select all that are shown").focus()
        page.keyboard.press("Space")
        page.keyboard.press("Space")
        expect(page.locator("#picked")).to_have_text("None selected")
        before = unique.inner_text()
        page.get_by_label("Select Age").focus()
        page.keyboard.press("Space")
        page.locator("#drop").focus()
        page.keyboard.press("Enter")
        expect(page.get_by_label("Role of Age")).to_have_value("drop")
        expect(unique).not_to_have_text(before)
        page.get_by_label("Distribution of Educ").focus()
        page.keyboard.press("Enter")
        expect(page.locator("#columns .below table")).to_contain_text("records")
        until(page, "!document.body.dataset.looking")
        assert "Age" not in page.locator("#pairs th[scope=row]").all_inner_texts()  # it is not released any more
        cells = page.locator("#pairs tbody tr:nth-child(2) td")
        assert cells.first.get_attribute(
            "title"
        ).endswith(  # type: ignore[union-attr]
            f"unique on {' and '.join(page.locator('#pairs th[scope=row]').all_inner_texts()[1::-1])}"
        )
        page.fill("#name", "coded")
        page.click("#begin-button")
        page.wait_for_url("**/studies/coded/plan")
    kept = sm.Plan.read(server.folder / "coded.toml").data
    assert kept is not None and kept.missing == ("wage=-8",) and kept.drop == ("Age",)
    assert set(kept.sensitive) == set(amounts) and kept.sep == ";"


def test_candidates_are_filtered_sorted_and_compared(browser_session: LoggedInBrowser) -> None:
    with browser_session.at("/studies/cps/candidate") as page:
        expect(page.locator("#table th").nth(3)).to_contain_text("loss")
        names = page.locator("#table tbody td.words").all_inner_texts()
        assert {name.rpartition(", ")[2] for name in names} == {"draw 1", "draw 2", "draw 3"}
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


RECORD = """canvas => {  // where a hand in small steps first finds the tooltip of a record; then it is gone again
  const box = canvas.getBoundingClientRect();
  const tells = (clientX, clientY) => {
    const place = { clientX, clientY, bubbles: true, view: window };
    canvas.dispatchEvent(new PointerEvent("pointermove", place));
    canvas.dispatchEvent(new MouseEvent("mousemove", place));
    return document.querySelector("#vg-tooltip-element.visible") !== null;
  };
  for (let y = box.bottom - 40; y > box.top; y -= 3)
    for (let x = box.left + 80; x < box.left + 330; x += 5)
      if (tells(x, y)) return tells(box.left + 1, box.top + 1) ? null : [x, y];
  return null;
}"""


def click_on_a_record(page: Page) -> None:
    """Find where a record lies in the confidentiality plot, move the hand there, see its tooltip, and click."""
    canvas = page.locator("canvas[aria-label^=Confidentiality]")
    canvas.scroll_into_view_if_needed()
    found = canvas.evaluate(RECORD)
    assert found is not None, "no record under the hand"
    page.mouse.move(*found)
    expect(page.locator("#vg-tooltip-element.visible")).to_have_count(1)
    page.mouse.click(*found)


def test_candidate_is_inspected_and_picked_with_reason(browser: Browser, server: Server) -> None:
    with Visitor(browser, server, **WIDE) as visitor:
        page = visitor.page
        page.goto(f"{server.base}/studies/cps/candidate")
        ready(page)
        page.locator("#table tbody a", has_text="Race").first.click()
        page.wait_for_url("**id=*")
        ready(page)
        page.get_by_text("Correlations and tables").click()
        expect(page.locator("#candidates details[data-shown] canvas")).to_have_count(2)
        page.get_by_label("by", exact=True).select_option("Hours")
        expect(page.get_by_label(re.compile("by Hours: percent of the records"))).to_be_visible()
        whose = re.compile(
            r"is unsafe in this plot if fewer than \d+ .* the default of this plot \(k = \d+\), not a limit of the plan"
        )
        expect(page.locator("#candidates")).to_contain_text(whose)
        click_on_a_record(page)
        expect(page.locator(".record h3")).to_contain_text("before and after")
        shown = page.locator(".record h3").inner_text()
        last = page.locator("#candidates .tall button").last
        last.focus()
        page.keyboard.press("Enter")  # from an unsafe record to its values
        expect(page.locator(".record h3")).not_to_have_text(shown)
        expect(page.locator(".record tbody tr")).to_have_count(len(ROLES))
        page.get_by_text("What matters").click()
        expect(page.locator("#matters canvas")).to_have_count(2)
        name = page.locator("#candidates h2").inner_text()
        page.get_by_label("Why this one").fill("the board asked for it")
        page.keyboard.press("Enter")
        page.wait_for_url("**/choose")
        ready(page)
        expect(page.locator("#candidate")).to_have_value(name)
        expect(page.locator("#reason")).to_have_value("the board asked for it")
        expect(page.locator("#checks .failed").first).to_be_visible()  # checked unasked
        expect(page.locator("#override-profile")).to_have_value("the board asked for it")
        page.locator(".file summary", has_text="codebook.md").click()
        expect(page.get_by_label("First lines of codebook.md")).to_contain_text("Age")
        page.click("#look-internal")
        frame = page.frame_locator("#frame iframe")
        expect(frame.locator("body")).to_contain_text(
            "was picked by a person, not by the rule. Reason: the board asked for it"
        )
        assert not (server.folder / "releases").exists()  # all of this was a look


def test_release_is_signed_and_written_once(browser_session: LoggedInBrowser, server: Server) -> None:
    with browser_session.at("/studies/cps/choose") as page:
        expect(page.locator("#files")).to_contain_text(
            "Check a candidate"
        )  # a step that waits is there, and says for what
        page.click("#check-form button")
        expect(page.locator("#checks .failed").first).to_contain_text("What to do:")
        for name in ("unmasked", "profile"):
            page.fill(f"#override-{name}", "made-up people")
        page.click("#write")
        expect(page.locator("#problems")).to_contain_text("who releases this")
        page.fill("#signed", "A. Steward")
        asked: list[str] = []
        page.on("request", lambda request: request.method == "POST" and asked.append(request.url))
        page.evaluate("for (let press = 0; press < 3; press += 1) document.querySelector('#write').click()")
        until(page, "!document.querySelector('#write').disabled")
        assert len(asked) == 1  # a hand that is quicker than the server asks once
        for _ in range(2):
            page.click("#write")
            until(page, "!document.querySelector('#write').disabled")
        expect(page.locator("#releases a")).to_have_count(1)
        expect(page.locator("#releases")).to_contain_text("signed by A. Steward")
        expect(page.locator("nav [data-page=choose]")).to_have_text(re.compile("release done$"))
        assert KEYS[0] in (next((server.folder / "releases" / "cps").iterdir()) / "codebook.md").read_text()


def test_study_actions_by_keyboard_and_in_two_tabs(browser: Browser, server: Server) -> None:
    narrow = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark", "reduced_motion": "reduce"}
    with Visitor(browser, server, **narrow) as visitor:
        page = visitor.page
        until(page, "document.body.dataset.listed === 'true'")
        expect(page.locator("li", has_text="cps").first).to_contain_text("its rule chooses")
        page.get_by_label("More about fresh").focus()
        page.keyboard.press("Enter")
        fresh = page.locator("li", has=page.get_by_label("More about fresh"))
        fresh.get_by_label("Name of the copy").fill("spare")
        page.keyboard.press("Enter")
        expect(page.get_by_role("link", name="spare")).to_be_visible()
        assert (server.folder / "spare.toml").is_file()
        spare = page.locator("li", has=page.get_by_label("More about spare"))
        page.get_by_label("More about spare").click()
        until(page, f"!({CHECK})().length", wrong=CHECK)
        other = visitor.context.new_page()  # a second tab
        other.goto(f"{server.base}/")
        until(other, "document.body.dataset.listed === 'true'")
        other.get_by_label("More about spare").click()
        theirs = other.locator("li", has=other.get_by_label("More about spare"))
        expect(theirs.get_by_label("Notes")).to_be_enabled()
        expect(spare.get_by_label("Notes")).to_be_enabled()
        spare.get_by_label("Notes").fill("first tab")
        spare.get_by_role("button", name="Save the notes").click()
        expect(page.locator("#said")).to_contain_text("notes are saved")
        theirs.get_by_label("Notes").fill("second tab")
        theirs.get_by_role("button", name="Save the notes").click()
        expect(theirs.locator(".notes [role=alert]")).to_contain_text("saved elsewhere since you opened them")
        theirs.get_by_role("button", name="Show the saved notes").click()
        expect(theirs.get_by_label("Notes")).to_have_value("first tab")
        assert (server.folder / "spare.notes.md").read_text() == "first tab"
        spare.get_by_label("New name").fill("renamed")
        page.keyboard.press("Enter")
        expect(page.get_by_role("link", name="renamed")).to_be_visible()
        page.get_by_label("More about renamed").click()
        expect(page.get_by_label("Notes").last).to_be_enabled()  # what was asked of this name is answered
        page.get_by_role("button", name="Archive").click()
        page.locator("#archived > summary").click()
        expect(page.locator("#archived").get_by_role("link", name="renamed")).to_be_visible()
        page.get_by_label("More about renamed").click()
        gone = page.locator("#archived li").get_by_role("button", name="Delete permanently")
        expect(gone).to_be_disabled()
        expect(page.locator("#archived").get_by_label("Notes")).to_be_enabled()
        page.get_by_label("Type “renamed” to delete it").fill("rename")
        expect(gone).to_be_disabled()
        page.keyboard.type("d")
        page.keyboard.press("Enter")
        expect(page.locator("#archived")).to_have_count(0)
        assert not list(server.folder.glob("renamed*"))


def test_slow_requests_show_progress_bar(browser_session: LoggedInBrowser) -> None:
    shown = "() => getComputedStyle(document.querySelector('header'), '::before').content"
    with browser_session.at("/studies/cps/choose") as page:
        held: list[Route] = []
        page.route("**/api/studies/cps/checks", lambda route: held.append(route))  # a server that takes its time
        until(page, "!document.documentElement.dataset.busy")
        assert page.evaluate(shown) == "none"
        page.click("#check-form button")
        until(page, "document.documentElement.dataset.busy === 'true'")
        assert page.evaluate(shown) == '""'
        while not held:  # the bar may show before the question arrives here
            page.wait_for_timeout(20)
        held[0].continue_()
        expect(page.locator("#checks li").first).to_be_visible()
        until(page, "!document.documentElement.dataset.busy")


def test_sweep_page_without_phase_and_pace(browser_session: LoggedInBrowser) -> None:
    def early(route: Route) -> None:  # the moment between the first candidate and the first pace
        answer = route.fetch()
        now = {"state": "running", "task": "sweep", "phase": "", "rate": None, "seconds_left": None, "seconds": 12.0}
        route.fulfill(response=answer, json=answer.json() | now)

    with browser_session.at("/studies/cps/sweep") as page:
        page.route("**/api/studies/cps/sweep", early)
        page.reload()
        expect(page.locator("#pace")).to_have_text("Creating and scoring candidates, for 12 s")
        page.unroute_all(behavior="wait")


# ---- the server goes and comes back -------------------------------------------------------------------------------


def test_page_survives_restart_of_the_server(browser: Browser, tmp_path: Path) -> None:
    people(tmp_path)
    (tmp_path / "long.toml").write_text(endless_plan(tmp_path).toml())
    first = Server.start(tmp_path)
    visitor = Visitor(browser, first, **WIDE)
    try:
        page = visitor.page
        page.goto(f"{first.base}/studies/long/sweep")
        page.click("#start")
        expect(page.locator("#pace")).to_contain_text(re.compile("starting|reading", re.I))
        until(page, "document.getElementById('progress').value > 0")
        first.end()
        stood = read_progress(tmp_path / "long")
        assert 0 < stood.done < stood.total
        expect(page.locator("#away")).to_contain_text("The server is not reachable")
        expect(page.locator("#state")).to_have_text("Not known: the server does not respond")
        second = Server.start(tmp_path)  # no port is stated: it takes that of the last one
        try:
            assert second.base == first.base
            expect(page.locator("#away")).to_have_count(0)
            expect(page.locator("#state")).to_have_text("Running")
            until(page, "done => document.getElementById('progress').value > done", stood.done / stood.total)
            page.click("#pause")
            expect(page.locator("#state")).to_have_text("Paused")
            expect(page.locator("#start")).to_have_text("Resume")
            page.reload()  # still in
            expect(page.locator("#state")).to_have_text("Paused")
            stranger = browser.new_context().new_page()
            stranger.goto(f"{second.base}/studies/long/sweep")
            expect(stranger.locator("h1")).to_have_text("This browser is not logged in")
            assert (
                stranger.evaluate("getComputedStyle(document.querySelector('header')).display") == "flex"
            )  # it has style
            stranger.context.close()
        finally:
            second.end()
    finally:
        visitor.context.close()


def test_search_starts_from_the_roles(browser_session: LoggedInBrowser, server: Server) -> None:
    people(server.folder, 300, "some.csv")
    with browser_session.at("/data?file=some.csv") as page:
        page.fill("#name", "sought")
        page.select_option("#profile", "scientific-use")
        page.click("#find")
        page.wait_for_url("**/studies/sought/sweep")
        expect(page.locator("#state")).to_have_text("Searching")
        expect(page.locator("#pace")).to_contain_text(re.compile(r"\w"))
        page.click("#cancel")
        expect(page.locator("#state")).to_have_text("Cancelled")
        assert sm.Plan.read(server.folder / "sought.toml").profile.name == "scientific-use"  # type: ignore[union-attr]
        page.goto(f"{server.base}/studies/sought/plan")
        ready(page)
        word = page.locator(".lead .word")
        word.focus()
        shown = page.evaluate("getComputedStyle(document.querySelector('.lead .word'), '::after').content")
        assert "How one candidate is chosen from the map" in shown
