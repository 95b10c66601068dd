"""Pages show what Python computed: reasons, parameters, and numbers with their measures."""

from __future__ import annotations

import json
import shutil
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

import sdcmap as sm
from browser_pages import LoggedInBrowser, until
from web_workspace import ALIKE, COUNTED, Server

pytestmark = pytest.mark.slow


def test_candidate_page_shows_steps_of_a_chain(browser_session: LoggedInBrowser, server: Server) -> None:
    with sm.Study.open(server.folder / "blank") as study:
        chain = next(one for one in study.plan.candidates if isinstance(one.method, sm.Chain))
    with browser_session.at(f"/studies/blank/candidate?id={chain.id}") as page:
        steps = page.locator("tr[data-row^=parameter]").first
        expect(steps).to_contain_text('Noise(on=["wage"], variance=0.3); Swap(on=["Sex"], rate=0.05)')
        assert "[object" not in page.locator("main").inner_text()


def test_page_shows_reason_from_python(browser_session: LoggedInBrowser, server: Server) -> None:
    """Not all candidates within the risk limit meet the other limit; the reason counts both."""
    with sm.Study.open(server.folder / "axes") as study:
        scores = study.scores()
    levels = sorted(scores.column(ALIKE.text)["value"].to_list())
    limits, rule = {ALIKE.text: levels[len(levels) // 2]}, sm.Threshold(risk=0.022)
    ru = sm.RUMap(scores, "SmallCells", "Hellinger", limits)
    choice = ru.choose(rule)
    under = ru.points.filter("compared", ~ru.points["anchor"], ru.points["risk_end"] <= rule.risk)
    both = int(ru.eligible(under).sum())
    assert 0 < both < len(under) and f"{both:,}" in choice.reason and f"{len(under):,}" in choice.reason
    asked = urlencode({"rule": "Threshold", "at": rule.risk, "limits": json.dumps(limits)})
    with browser_session.at(f"/studies/axes/map?{asked}") as page:
        until(page, "workbench.state.choice")
        expect(page.locator("#choice .verdict p").first).to_have_text(choice.reason)
        # the rule goes along when the hand rests
        until(page, "Object.keys(sessionStorage).some((key) => key.endsWith(' rule'))")
        page.click("nav >> text=Choose and release")
        expect(page.locator("#choice .verdict p").first).to_have_text(choice.reason)


def test_compare_page_labels_numbers(browser_session: LoggedInBrowser, server: Server) -> None:
    """Without a common utility measure each study is shown on its own axes, here the worst share of a limit."""
    with sm.Study.open(server.folder / "cps") as study:
        data = study.data
    limits = {"SmallCells": 0.04, ALIKE.text: 0.5}
    plan = sm.Plan([sm.Swap("Sex", 0.05)], [sm.SmallCells(), ALIKE, COUNTED], risk=["SmallCells", ALIKE.text],
                   utility=COUNTED.text, limits=limits, rule=sm.Threshold(risk=1.0), seed=(1 << 200) + 11)  # fmt: skip
    sm.sweep(data, plan, server.folder / "shares", workers=1)
    shutil.copy(server.folder / "shares" / "plan.toml", server.folder / "shares.toml")
    with sm.Study.open(server.folder / "shares") as study:
        ru = sm.RUMap(study.scores(), plan.risk, plan.utility, limits)
    choice = ru.choose(sm.Threshold(risk=1.0))
    assert choice.risk is not None
    with browser_session.at("/compare?first=cps&second=shares") as page:
        row = page.locator("#chosen tr", has_text="its risk")
        expect(row.locator("td").nth(1)).to_contain_text(f"{sm.SmallCells.label} (share of records)")
        expect(row.locator("td").nth(2)).to_have_text(f"{choice.risk:.4g} {ru.labels[0]}")
        assert "share of its limit" in ru.labels[0]
