"""The map and the decision planes in Chromium: dragging moves the limits."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from browser_pages import LoggedInBrowser, drag, ready, until
from web_workspace import COUNTED, SILENT, Server

pytestmark = pytest.mark.slow
LIMIT_PIXEL = "workbench.plot.pixel({ utility: workbench.plot.x[0], risk: workbench.state.rule.risk })[1]"
PLANE_PIXEL = "workbench.risk.at(workbench.state.rule.agency_limit, workbench.state.rule.intruder_limit)"


def test_dragged_limit_reaches_the_choice(browser_session: LoggedInBrowser) -> None:
    with browser_session.at("/studies/cps/map") as page:
        expect(page.locator("#choice-head")).to_have_text("The choice")
        expect(page.locator("#table th").last).to_have_text("loss")
        page.select_option("#rows", "all")
        assert {*page.locator("#table tbody td:nth-child(3)").all_inner_texts()} == {"1", "2", "3"}  # draws
        page.locator("#lever").fill("950")
        before = page.evaluate(LIMIT_PIXEL)
        drag(page, ".plot .grip", 0, 200)
        assert page.evaluate(LIMIT_PIXEL) - before == pytest.approx(200, abs=3)
        drag(page, ".plot .grip", 0, -90)
        assert page.evaluate(LIMIT_PIXEL) - before == pytest.approx(110, abs=6)
        limit = page.evaluate("workbench.state.rule.risk")
        until(page, "limit => workbench.state.choice?.rule.includes(String(limit))", limit)
        expect(page.locator("#choice-head")).to_have_text("What this rule would choose")
        chosen = page.evaluate("workbench.state.choice.candidate")
        page.click("nav >> text=Choose and release")  # by whatever way one gets there
        ready(page)
        assert float(page.get_by_label("risk", exact=True).input_value()) == limit
        expect(page.locator("#rule-said")).to_contain_text("tried on the map")
        assert page.evaluate("document.body.dataset.chosen") == chosen
        page.get_by_label("risk", exact=True).fill("0")
        page.get_by_label("risk", exact=True).press("Enter")
        expect(page.locator("#choice")).to_contain_text("Release nothing")  # a way on, where nothing passes
        expect(page.locator("#choice")).to_contain_text("What to do: plan stronger methods, search for a release")
        page.click("#own-rule")
        expect(page.locator("#rule-said")).to_contain_text("the plan's rule")


def test_curves_of_a_parameter_are_drawn(browser_session: LoggedInBrowser) -> None:
    """The study `known` has noise of three variances and rank swaps of two windows."""
    with browser_session.at("/studies/known/map") as page:
        expect(page.locator("#by")).to_have_value("curve")
        expect(page.locator(".key")).to_contain_text("numbers at points: variance, p")
        lines = page.evaluate("workbench.state.map.curves.map(({ name, value }) => [name, value])")
        assert lines == [["Additive noise", ["0.01", "0.3", "2"]], ["Rank swapping", ["0.02", "0.3"]]]
        until(page, "[...document.querySelectorAll('.plot .label')].some((one) => one.textContent === '0.01')")
        drawn = page.evaluate("workbench.plot.traced.map(({ risk, utility }) => [risk, utility])")
        means = page.evaluate(
            "workbench.plot.means.filter((row) => !row.anchor).map(({ risk, utility }) => [risk, utility])"
        )
        assert sorted(drawn) == sorted(means) and len(drawn) == 5  # one attacker: the pooled values of the methods
        page.select_option("#rows", "all")
        assert page.locator("#table tbody tr").count() == 5
        page.select_option("#by", "mean")
        expect(page.locator(".key")).to_contain_text("line: frontier")
        # A limit on a loss, which only risks had before.
        name = page.evaluate("workbench.state.map.measures.find((one) => one.axis === 'utility').name")
        expect(page.get_by_label(f"Limit of {name}", exact=True)).to_be_attached()


def test_map_with_hidden_limits_other_axes_and_empty_axes(browser_session: LoggedInBrowser, server: Server) -> None:
    with browser_session.at("/studies/axes/map") as page:
        page.fill("#lever-number", "500")
        page.keyboard.press("Enter")
        expect(page.locator(".plot .off")).to_contain_text("500, is above the visible range")
        assert page.locator(".plot .limit").count() == 0
        page.locator("#table button").first.click()
        first = point_state(page)
        page.select_option("#utility", COUNTED.text)
        until(page, "workbench.state.map.utility.startsWith('QueryError')")
        expect(page.locator("#choice-head")).to_have_text("No rule yet")  # a limit of other axes means nothing here
        until(page, "before => JSON.stringify(before) !== JSON.stringify(document.querySelector('#point').textContent)",
              first["words"])  # fmt: skip
        second = point_state(page)
        assert second["ring"] == pytest.approx(second["point"], abs=0.5)
        page.select_option("#utility", SILENT.text)
        expect(page.locator("#empty-axes")).to_be_visible()
        expect(page.locator("#empty-axes")).to_contain_text("no cell of the original has enough records")
        page.select_option("#utility", "Hellinger")
        expect(page.locator("#empty-axes")).to_be_hidden()
        expect(page.locator("#choice-head")).to_have_text("The choice")
        page.goto(f"{server.base}/studies/known/map")  # its plan states no rule
        ready(page)
        expect(page.locator("#choice-head")).to_have_text("No rule yet")
        assert page.locator(".plot .limit").count() == 0
        page.locator("#lever").fill("700")
        expect(page.locator("#choice-head")).to_have_text("What this rule would choose")


def point_state(page: Page) -> dict[str, object]:
    """Return the position of the ring, the selected point on the current axes, and its description."""
    return page.evaluate(  # type: ignore[no-any-return]
        """() => {
          const { plot, state } = workbench, ring = document.querySelector(".plot .picked");
          return { ring: [Number(ring.getAttribute("cx")), Number(ring.getAttribute("cy"))],
                   point: plot.pixel(plot.rows.find((row) => row.id === state.picked)),
                   words: document.querySelector("#point").textContent };
        }"""
    )


def test_dragged_limits_of_planes_move(browser_session: LoggedInBrowser) -> None:
    with browser_session.at("/studies/known/decision") as page:
        page.locator("#agency-limit").fill("800")
        page.locator("#intruder-limit").fill("800")
        x, y = page.evaluate(PLANE_PIXEL)
        drag(page, "#risk-plane .grip:not(.side)", 0, 120)
        drag(page, "#risk-plane .grip.side", -120, 0)
        moved = page.evaluate(PLANE_PIXEL)
        assert moved == pytest.approx([x - 120, y + 120], abs=3)
