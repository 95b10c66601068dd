"""The map in Chromium: tooltips, zoom, selection, limits, generations, the address, and its speed."""

from __future__ import annotations

from urllib.parse import parse_qs

import pytest
from playwright.sync_api import Page, expect

import sdcmap as sm
from browser_pages import LoggedInBrowser, drag, until
from sdcmap.charts.page_labels import page_labels
from web_workspace import ALIKE, Server

pytestmark = pytest.mark.slow
SPOT = """id => {
  const { plot } = workbench, box = plot.canvas.getBoundingClientRect();
  const row = plot.list.find((one) => one.id === id) ?? plot.list[0];
  const [x, y] = plot.pixel(row);
  return [box.left + x, box.top + y, row.utility, row.risk];
}"""
FRAME = """() => {
  const { plot } = workbench, box = plot.canvas.getBoundingClientRect(), { left, right, top, bottom } = plot.box;
  return [box.left + left, box.left + right, box.top + top, box.top + bottom];
}"""
UNDER = """([x, y]) => workbench.plot.under({ clientX: x, clientY: y })"""
# nothing was drawn and nothing asked for 400 milliseconds, and no question is open
SETTLED = """new Promise((done) => {
  let last = "", since = 0;
  const look = () => {
    const { busy } = document.documentElement.dataset, asked = performance.getEntriesByType("resource").length;
    const now = JSON.stringify([workbench.plot.work, workbench.plot.width, asked, location.href]);
    if (busy || now !== last) since = performance.now();
    last = now;
    if (performance.now() - since < 400) setTimeout(look, 40);
    else requestAnimationFrame(() => done(true));
  };
  look();
})"""
TOUCHING = """() => {
  const boxes = [...document.querySelectorAll(".texts .label")].map((text) => [text.textContent, text.getBBox()]);
  const apart = (a, b, side, length) => a[side] + a[length] - 2 <= b[side] + 2 || b[side] + b[length] - 2 <= a[side] + 2;
  const touch = (a, b) => !apart(a, b, "x", "width") && !apart(a, b, "y", "height");
  const pairs = boxes.flatMap((one, i) => boxes.slice(i + 1).map((other) => [one, other]));
  return pairs.filter(([[, a], [, b]]) => touch(a, b)).map(([[a], [b]]) => [a, b]);
}"""


def spot(page: Page, id: str = "") -> list[float]:
    return list(page.evaluate(SPOT, id))


def steps(page: Page, x: float, y: float, to: tuple[float, float]) -> None:
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(*to, steps=25)
    page.mouse.up()


# ---- looking ----------------------------------------------------------------------------------------------------


def test_tooltip_equals_tooltip_of_report_chart(browser_session: LoggedInBrowser, server: Server) -> None:
    ru = sm.RUMap(sm.Study.open(server.folder / "cps").scores(), "SmallCells", "Hellinger")
    with browser_session.at("/studies/cps/map") as page:
        tip = page.locator(".plot .tip")
        row = ru.points.filter("frontier").to_dicts()[0]
        x, y, *_ = spot(page, row["id"])
        page.mouse.move(x - 40, y - 40)
        page.mouse.move(x + 1, y + 1, steps=8)
        for words in (ru.scores.name_of(row["method"]), f"draw{row['replicate'] + 1}", row["id"], "frontieron it",
                      f"risk{row['risk']:.4g}", f"loss{row['utility']:.4g}"):  # fmt: skip
            expect(tip).to_contain_text(words)
        whole = ru.points.filter("anchor").to_dicts()[0]
        place_ = page.evaluate(
            "() => { const { plot } = workbench, box = plot.canvas.getBoundingClientRect();"
            " const { at } = plot.anchorAt(plot.anchors()[0]); return [box.left + at[0], box.top + at[1]]; }"
        )
        page.mouse.move(*place_)
        expect(tip).to_contain_text(f"unmasked filerisk{whole['risk']:.4g}loss{whole['utility']:.4g}")
        page.mouse.move(5, 5)
        expect(tip).to_be_hidden()
        page.select_option("#by", "mean")
        mean = ru.means.filter("frontier").to_dicts()[0]
        until(page, "workbench.plot.by === 'mean'")
        at = page.evaluate(SPOT.replace("one.id === id", "one.method === id"), mean["method"])
        page.mouse.move(at[0], at[1])
        for words in (f"releases{mean['count']}", f"on the frontier in{round(100 * mean['membership'])} %"):
            expect(tip).to_contain_text(words)


SHOWN = "[...document.querySelectorAll('.texts .label')].map((text) => text.textContent)"
LABELS = (
    """() => workbench.plot.labels.map((label) => [label.text, label.utility, label.risk, label.across, label.down])"""
)


def test_labels_are_where_python_places_them(browser_session: LoggedInBrowser, server: Server) -> None:
    ru = sm.RUMap(sm.Study.open(server.folder / "cps").scores(), "SmallCells", "Hellinger")
    with browser_session.at("/studies/cps/map") as page:
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 900})
            page.evaluate(SETTLED)
            until(page, "workbench.plot.labels.length > 0")
            asked = parse_qs(page.evaluate("workbench.plot.askedLabels"))
            size = {name: int(asked[name][0]) for name in ("width", "height")}
            placed = page_labels(ru, "release", size["width"], size["height"])
            rows = [(one.text, one.utility, one.risk, one.across, one.down) for one in placed]
            assert [tuple(row) for row in page.evaluate(LABELS)] == [pytest.approx(row) for row in rows]
            shown = page.evaluate(SHOWN)
            assert "chosen: Age, Sex swapped 5 %" in shown and any(text.startswith("limit: risk ≤") for text in shown)
            assert page.evaluate(TOUCHING) == []
        page.set_viewport_size({"width": 1280, "height": 900})
        page.evaluate(SETTLED)
        assert "unmasked file" in page.evaluate(SHOWN)
        page.locator("#plot").focus()
        for _ in range(8):
            page.keyboard.press("+")
        page.evaluate(SETTLED)
        until(page, "workbench.plot.seen !== null")
        low, high = page.evaluate("workbench.plot.seen.x")
        until(page, "workbench.plot.labels.every(({ utility }) => utility >= workbench.plot.seen.x[0])")
        assert all(low <= label[1] <= high for label in page.evaluate(LABELS))  # labels of the part that is seen
        assert page.evaluate(TOUCHING) == []


def test_hidden_plot_is_drawn_when_shown(browser_session: LoggedInBrowser) -> None:
    ink = """() => {
      const { canvas } = workbench.plot, { width, height } = canvas;
      if (!width) return false;
      const pen = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
      pen.drawImage(canvas, 0, 0);
      return pen.getImageData(0, 0, width, height).data.some((value) => value > 0);
    }"""
    with browser_session.at("/studies/cps/map") as page:
        assert page.evaluate(ink)
        page.evaluate("document.querySelector('#plot').style.display = 'none'")
        page.evaluate(SETTLED)
        page.select_option("#by", "mean")  # drawn while it has no width
        page.evaluate("workbench.plot.redraw()")
        page.evaluate("document.querySelector('#plot').style.display = ''")
        until(page, ink)
        assert page.evaluate("workbench.plot.width") > 300
        expect(page.locator(".plot .ring")).to_have_count(1)


# ---- zoom ---------------------------------------------------------------------------------------------------------


def test_zoom_by_wheel_buttons_and_keys_is_in_the_address(browser_session: LoggedInBrowser) -> None:
    with browser_session.at("/studies/cps/map") as page:
        x, y = map(round, spot(page)[:2])
        under = page.evaluate(UNDER, [x, y])
        page.mouse.move(x, y)
        for _ in range(5):
            page.mouse.wheel(0, -100)
        until(page, "workbench.plot.work.points > 1 && workbench.plot.seen !== null")
        page.evaluate(SETTLED)
        assert page.evaluate(UNDER, [x, y]) == pytest.approx(
            under, rel=1e-6
        )  # what was under the pointer is there still
        span = "(workbench.plot.seen.x[1] - workbench.plot.seen.x[0]) / (workbench.plot.x[1] - workbench.plot.x[0])"
        assert page.evaluate(span) == pytest.approx(1.25**-5, rel=1e-6)
        assert page.evaluate(TOUCHING) == []
        page.locator("#plot").focus()
        page.keyboard.press("+")
        until(page, f"Math.abs({span} - {1.25**-6}) < 1e-9")
        before = page.evaluate("workbench.plot.seen.x[0]")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        until(page, "before => workbench.plot.seen.x[0] > before", before)
        page.get_by_label("Zoom out").click()
        until(page, f"Math.abs({span} - {1.25**-4}) < 1e-9")
        seen = page.evaluate("workbench.plot.seen")
        page.evaluate(SETTLED)  # the address follows the hand where it rests
        page.reload()
        until(page, "window.workbench?.plot.seen")
        again = page.evaluate("workbench.plot.seen")
        assert [*again["x"], *again["y"]] == pytest.approx([*seen["x"], *seen["y"]], rel=1e-5)
        page.locator("#plot").press("0")
        until(page, "workbench.plot.seen === null")
        until(page, "!location.search.includes('see=')")


# ---- selecting ----------------------------------------------------------------------------------------------------


def test_selection_by_box_and_keyboard(browser_session: LoggedInBrowser) -> None:
    with browser_session.at("/studies/cps/map") as page:
        frame = page.evaluate(FRAME)
        left, right, top, bottom = frame
        start, end = (left + 0.3 * (right - left), top + 0.45 * (bottom - top)), (right - 60, bottom - 20)
        (x0, y1), (x1, y0) = page.evaluate(UNDER, list(start)), page.evaluate(UNDER, list(end))
        steps(page, *start, end)
        rows = page.evaluate("workbench.plot.list.map((row) => [row.id, row.utility, row.risk])")
        inside_box = {id for id, u, r in rows if x0 <= u <= x1 and y0 <= r <= y1}
        assert 3 < len(inside_box) < len(rows)
        assert set(page.evaluate("workbench.selection.ids")) == inside_box
        expect(page.locator("#selected-head")).to_have_text(f"Selected: {len(inside_box)}")
        expect(page.locator("#selected")).to_contain_text("Two or three can be compared")
        page.get_by_role("button", name="Zoom to them").click()
        until(page, "workbench.plot.seen !== null")
        assert page.evaluate("workbench.plot.seen.x") == pytest.approx([x0, x1], rel=1e-6)
        page.get_by_role("button", name="Clear").click()
        boxes = page.locator("#table input[type=checkbox]")
        for number in (0, 1):
            boxes.nth(number).focus()
            page.keyboard.press("Space")
        expect(page.locator("#selected-head")).to_have_text("Selected: 2")
        until(page, "new URLSearchParams(location.search).getAll('selected').length === 2")
        page.get_by_role("link", name="Compare them").press("Enter")
        page.wait_for_url("**/candidate?id=*&other=*")


# ---- limits -------------------------------------------------------------------------------------------------------


def test_several_limits_apply_at_once(browser_session: LoggedInBrowser, server: Server) -> None:
    scores = sm.Study.open(server.folder / "axes").scores()
    levels = sorted(scores.column(ALIKE.text)["value"].to_list())
    with browser_session.at("/studies/axes/map") as page:
        lever = page.get_by_label(f"Limit of {ALIKE.text}", exact=True)
        number = page.get_by_label(f"Limit of {ALIKE.text} as a number")
        number.fill(str(levels[6]))
        number.press("Enter")
        lever.press("ArrowLeft")
        lever.press("ArrowRight")
        limit = page.evaluate("name => workbench.state.limits[name]", ALIKE.text)
        ru = sm.RUMap(scores, "SmallCells", "Hellinger", {ALIKE.text: limit})
        outside = {id for id, fine in zip(ru.points["id"], ru.eligible(ru.points), strict=True) if not fine}
        assert 0 < len(outside) < len(ru.points)
        shown = "new Set(workbench.plot.rows.filter((row) => row.outside).map((row) => row.id))"
        assert set(page.evaluate(f"[...{shown}]")) == outside
        page.get_by_label("Limit of SmallCells as a number").fill("0.0150")
        page.get_by_label("Limit of SmallCells as a number").press("Enter")
        before = page.evaluate("workbench.plot.sy.at(workbench.state.limits.SmallCells)")
        drag(page, ".plot .grip.held", 0, 60)  # the rule's own line stays where it is
        page.evaluate(SETTLED)
        assert page.evaluate("workbench.plot.sy.at(workbench.state.limits.SmallCells)") - before == pytest.approx(
            60, abs=3
        )
        held = page.evaluate("workbench.state.limits")
        ru = sm.RUMap(scores, "SmallCells", "Hellinger", held)
        rule = sm.Study.open(server.folder / "axes").plan.rule
        assert rule is not None and page.evaluate("workbench.state.rule.risk") == rule.risk  # type: ignore[attr-defined]
        until(
            page,
            "workbench.state.choice && document.body.dataset.confirmed === (workbench.state.best?.id ?? 'nothing')",
        )
        assert page.evaluate("workbench.state.choice.candidate") == ru.choose(rule).candidate
        until(page, "Object.keys(JSON.parse(new URLSearchParams(location.search).get('limits') ?? '{}')).length === 2")
        page.reload()
        until(page, "window.workbench?.state.limits")
        assert page.evaluate("workbench.state.limits") == pytest.approx(held)
        page.click("nav >> text=Choose and release")
        until(page, "document.body.dataset.chosen")
        assert page.evaluate("document.body.dataset.chosen") == (ru.choose(rule).candidate or "nothing")
        page.go_back()
        page.get_by_role("button", name="Back to the plan's limits").click()
        until(page, "workbench.state.limits === null && !location.search.includes('limit')")


# ---- searches -----------------------------------------------------------------------------------------------------


def test_search_is_colored_by_generation(browser_session: LoggedInBrowser) -> None:
    with browser_session.at("/studies/found/map") as page:
        page.select_option("#color", "era")
        expect(page.locator(".key")).to_contain_text("your plan")
        expect(page.locator(".key")).to_contain_text("starts")
        expect(page.locator(".key")).to_contain_text("generation 2")
        expect(page.locator(".key")).to_contain_text("ring: your plan's own")
        own = page.evaluate("workbench.plot.list.find((row) => row.era === 0).id")
        x, y, *_ = spot(page, own)
        page.mouse.move(x, y, steps=4)
        expect(page.locator(".plot .tip")).to_contain_text("origin")
        until(page, "location.search.includes('color=era')")
    with browser_session.at("/studies/cps/map") as page:
        expect(page.locator("#color")).to_be_hidden()


# ---- ten thousand points --------------------------------------------------------------------------------------------

MANY = """async () => {
  const { state, plot } = workbench;
  const count = 10000, map = structuredClone(state.map);
  const of = (make) => Array.from({ length: count }, (_, i) => make(i));
  const masked = map.methods.map((_, i) => i).filter((i) => map.methods[i] !== "Identity");
  const spread = (i, by) => ((i * by) % 9973) / 9973;
  Object.assign(map.points, {
    id: of((i) => `p${i}`), method: of((i) => masked[i % masked.length]), replicate: of((i) => i),
    risk: of((i) => 0.02 * spread(i, 7919) + 0.001),
    utility: of((i) => 0.1 * spread(i, 6101) + 0.01 / (1 + spread(i, 7919))),
    frontier: of(() => false), compared: of(() => true), anchor: of(() => false), within: of(() => true),
    levels: { SmallCells: of((i) => 0.02 * spread(i, 7919) + 0.001) },
  });
  state.map = map;
  await plot.set(map, { by: "release" });
  return plot.list.length;
}"""
LEVER = """() => {  // a lever with a thousand breakpoints, as if Python had sent it
  const lever = document.getElementById("lever"), seen = new Set(), { levers, plot } = workbench;
  const starts = Array.from({ length: 1000 }, (_, i) => plot.y[0] + (i / 1000) * (plot.y[1] - plot.y[0]));
  levers.answer.rule.risk = { starts, candidates: starts.map((_, i) => `p${i}`) };
  for (let i = 0; i < 100; i += 1) {
    lever.value = String(10 * i);
    lever.dispatchEvent(new Event("input"));
    seen.add(workbench.state.best?.id);
  }
  return seen.size;
}"""
WATCH = """() => {
  const { plot } = workbench, began = { ...plot.work };
  const seen = { frames: [], tasks: 0, drawing: 0, last: performance.now() };
  for (const name of ["draw", "after", "drawLabels"]) {
    const really = plot[name].bind(plot);
    plot[name] = (...given) => {
      const start = performance.now();
      really(...given);
      seen.drawing += performance.now() - start;
    };
  }
  const tick = (now) => {
    seen.frames.push(now - seen.last);
    seen.last = now;
    if (!seen.over) requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
  window.watched = () => {
    seen.over = true;
    const sorted = seen.frames.slice(1).sort((a, b) => a - b);
    const at = (share) => sorted[Math.floor(share * sorted.length)];
    return { frames: sorted.length, median: at(0.5), late: at(0.95), drawing: seen.drawing,
             points: plot.work.points - began.points, labels: plot.work.labels - began.labels };
  };
}"""

TURNED = """([clientX, clientY]) => {  // forty turns of the wheel with no rest between them, however busy the machine is
  const place = document.elementFromPoint(clientX, clientY);
  for (let step = 0; step < 40; step += 1) {
    const turn = { deltaY: step < 20 ? -50 : 50, clientX, clientY, bubbles: true, cancelable: true };
    place.dispatchEvent(new WheelEvent("wheel", turn));
  }
}"""


def test_plot_of_ten_thousand_points_redraws_only_changes(browser_session: LoggedInBrowser) -> None:
    with browser_session.at("/studies/cps/map") as page:
        assert page.evaluate(MANY) == 10_000
        page.evaluate(SETTLED)
        page.evaluate(WATCH)
        drag(page, ".plot .grip", 0, 100)
        found = page.evaluate("watched()")
        assert found["points"] == 0  # a limit that moves lays lines alone
        assert page.evaluate("new Set(workbench.plot.list.map((row) => row.id)).size") == 10_000
        print(f"drag: {found}")
        page.evaluate(SETTLED)
        page.evaluate(WATCH)
        x, y, *_ = spot(page)
        page.mouse.move(x, y)
        for step in range(40):
            page.mouse.wheel(0, -50 if step < 20 else 50)
        until(page, "workbench.plot.seen === null")
        found = page.evaluate("watched()")
        assert 0 < found["points"] <= min(found["frames"], 40) + 1  # once a frame at the most
        page.evaluate(SETTLED)
        page.evaluate(WATCH)
        page.evaluate(TURNED, [x, y])
        page.evaluate(SETTLED)
        assert page.evaluate("watched()")["labels"] <= 3  # where the hand rests, not at every step
        print(f"zoom: {found}")
        assert page.evaluate(LEVER) > 90  # a choice at every step
