"""The map and the decision planes in Chromium: dragging moves the limits."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

import sdcmap as sm
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


def test_limit_of_a_loss_is_a_line_that_can_be_dragged(browser_session: LoggedInBrowser) -> None:
    with browser_session.at("/studies/axes/map") as page:
        middle = page.evaluate("workbench.plot.x[0] + 0.5 * (workbench.plot.x[1] - workbench.plot.x[0])")
        number = page.get_by_label("Limit of Hellinger as a number")
        number.fill(str(middle))
        number.press("Enter")
        at = "Number(document.querySelector('.plot .limit.of-utility').getAttribute('x1'))"
        assert page.evaluate(at) == pytest.approx(page.evaluate("limit => workbench.plot.sx.at(limit)", middle), abs=1)
        texts = "[...document.querySelectorAll('.plot .label')].map((one) => one.textContent)"
        until(page, f"{texts}.some((text) => text.startsWith('Hellinger ≤'))")
        before = page.evaluate(at)
        drag(page, ".plot .grip.side", -40, 0)
        assert page.evaluate(at) - before == pytest.approx(-40, abs=3)
        assert page.evaluate("workbench.state.limits.Hellinger") < middle
        number.fill("0.9999")
        number.press("Enter")
        expect(page.locator(".plot .off")).to_contain_text("is right of the visible range")


@pytest.fixture
def attackers(server: Server) -> Iterator[list[str]]:
    """A study with three attackers, and their names."""
    data = sm.demo.population(60, seed=4).only(["wage"])
    risks = [sm.risk.Position(on="wage"), sm.risk.Index(on="wage"), sm.risk.KnownIndex(on="wage")]
    methods = [sm.Noise(on="wage", variance=variance) for variance in (0.1, 0.3, 1.0)]
    plan = sm.Plan(methods, [*risks, sm.utility.MeanPrecision(on="wage")], 3, seed=2**200)
    sm.sweep(sm.read(data, numeric=["wage"]), plan, server.folder / "attackers", workers=1)
    yield [risk.text for risk in risks]
    shutil.rmtree(server.folder / "attackers", ignore_errors=True)  # the server may just be closing its files


def test_more_than_two_attackers_have_curves(browser_session: LoggedInBrowser, attackers: list[str]) -> None:
    with browser_session.at("/studies/attackers/map") as page:
        boxes = page.locator("#other-risks input")
        assert boxes.count() == 3 and boxes.first.is_disabled()  # nothing is added to the plan's own axis
        page.select_option("#risk", attackers[0])
        until(page, "document.querySelectorAll('#other-risks input:not([disabled])').length === 2")
        boxes.nth(1).check()
        until(page, "workbench.state.map.risk.length === 2")
        boxes.nth(2).check()
        until(page, "workbench.state.map.risk.length === 3")
        assert sorted(page.evaluate("workbench.state.map.curves.map((curve) => curve.measure)")) == sorted(attackers)
        until(page, "new URLSearchParams(location.search).getAll('risk').length === 3")
        page.reload()
        until(page, "window.workbench?.state.map?.risk.length === 3")
        assert boxes.nth(2).is_checked()


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


def test_safe_releases_are_those_of_the_package(browser_session: LoggedInBrowser, server: Server) -> None:
    """Confidence limits are compared; one intruder and one user leave nothing to select."""
    with browser_session.at("/studies/known/decision") as page:
        page.locator("#agency-limit").fill("300")  # of 1,000 positions of the slider
        limits = page.evaluate("[workbench.state.rule.agency_limit, workbench.state.rule.intruder_limit]")
        ends = page.evaluate("workbench.state.rows.map(({ iek_end, rdh_end }) => [iek_end, rdh_end])")
        safe = sum(iek <= limits[0] and rdh <= limits[1] for iek, rdh in ends)
        assert 0 < safe < len(ends)
        expect(page.locator("#left")).to_contain_text(f"{safe} of {len(ends)} are safe")
        expect(page.locator("#intruder-field")).to_be_hidden()


def test_decision_page_shows_what_users_of_the_choice_will_find(browser_session: LoggedInBrowser) -> None:
    """The sentence, the picture and the table of the candidate page; they follow the choice."""
    ask = "(id) => fetch(`../../api/studies/known/candidates/${id}/analyses`).then((answer) => answer.json())"
    stricter = "Math.floor(1000 * workbench.risk.share('y', workbench.state.best.rdh_end)) - 1"
    with browser_session.at("/studies/known/decision") as page:
        chosen = []
        for position in ("900", stricter):
            page.locator("#agency-limit").fill("900")
            page.locator("#intruder-limit").fill(str(page.evaluate(position)))
            until(page, "Boolean(workbench.state.choice)")
            chosen.append(page.evaluate("workbench.state.choice.candidate"))
            found = page.evaluate(ask, chosen[-1])
            expect(page.locator("#found strong")).to_have_text(found["sentence"])
            expect(page.locator("#found tbody tr").last).to_contain_text(found["table"]["rows"][-1][3])
            expect(page.locator("#found canvas")).to_be_visible()
        assert chosen[0] != chosen[1]
        page.locator("#agency-limit").fill("0")
        expect(page.locator("#choice")).to_contain_text("Release nothing")
        expect(page.locator("#findings")).to_be_hidden()


def test_choice_can_be_opened_for_what_users_will_find(browser_session: LoggedInBrowser) -> None:
    with browser_session.at("/studies/cps/choose") as page:
        page.locator("#choice summary").click()
        expect(page.locator("#choice details strong")).to_contain_text("to another conclusion")
        expect(page.locator("#choice details canvas")).to_be_visible()


def test_each_intruder_can_be_shown(browser_session: LoggedInBrowser, server: Server) -> None:
    data = sm.read(sm.demo.population(60, seed=4).only(["wage", "total"]), numeric=["wage", "total"])
    measures = [
        *(kind(on=name) for kind in (sm.risk.IntruderKnowledge, sm.risk.DiscreditHarm) for name in ("wage", "total")),
        sm.utility.SocietyKnowledge(on="wage"), sm.utility.SocietyUtility(on="wage"),
    ]  # fmt: skip
    methods = [sm.Noise(on=("wage", "total"), variance=variance) for variance in (0.1, 1.0)]
    sm.sweep(data, sm.Plan(methods, measures, 2, seed=2**200), server.folder / "intruders", workers=1)
    try:
        with browser_session.at("/studies/intruders/decision") as page:
            choices = page.locator("#shown-intruder option").all_inner_texts()
            assert len(choices) == 3 and choices[0] == "the worst of 2"
            page.select_option("#shown-intruder", "2")
            shown = "workbench.state.rows.map((row) => [row['iek 2'], row['rdh 2']])"
            drawn = "workbench.state.rows.map((row) => [row[workbench.risk.across], row[workbench.risk.up]])"
            assert page.evaluate(drawn) == page.evaluate(shown) and len(page.evaluate(shown)) == 2
            expect(page.locator("#user-field")).to_be_hidden()
    finally:
        shutil.rmtree(server.folder / "intruders", ignore_errors=True)


def test_dragged_limits_of_planes_move(browser_session: LoggedInBrowser) -> None:
    with browser_session.at("/studies/known/decision") as page:
        page.locator("#agency-limit").fill("800")
        page.locator("#intruder-limit").fill("800")
        x, y = page.evaluate(PLANE_PIXEL)
        drag(page, "#risk-plane .grip:not(.side)", 0, 120)
        drag(page, "#risk-plane .grip.side", -120, 0)
        moved = page.evaluate(PLANE_PIXEL)
        assert moved == pytest.approx([x - 120, y + 120], abs=3)
