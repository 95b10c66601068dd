"""Pages in a real browser: they draw themselves with no network."""

from __future__ import annotations

import subprocess
from pathlib import Path

import sdcmap as sm

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update", "--virtual-time-budget=20000"]  # fmt: skip


def dom(chromium: str, page: Path, profile: Path) -> str:
    """The page as the browser has it after its scripts have run, with every outside address unreachable."""
    command = [chromium, *FLAGS, f"--user-data-dir={profile}", "--host-resolver-rules=MAP * ~NOTFOUND", "--dump-dom"]
    return subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=120).stdout


def test_map_and_report_draw_themselves_offline(chromium: str, tmp_path: Path) -> None:
    people = sm.demo.population(500, seed=3)
    plan = sm.Plan(
        sm.grid(sm.Swap, on=sm.subsets(["Age", "Sex", "Race"], 1, 2), rate=[0.05]), [sm.SmallCells(), sm.Hellinger()],
        replicates=3, rule=sm.Threshold(risk=0.5), seed=4,
    )  # fmt: skip
    scores = sm.sweep(people, plan, tmp_path / "study", workers=1)
    ru = sm.RUMap(scores, plan.risk, plan.utility)
    ru.draw(mark=ru.choose(plan.rule)).save(tmp_path / "map.html")
    drawn = dom(chromium, tmp_path / "map.html", tmp_path / "profile")
    assert "<canvas" in drawn
    assert "vega-embed" in drawn
    sm.report(tmp_path / "study").save(tmp_path / "report.html")
    page = dom(chromium, tmp_path / "report.html", tmp_path / "profile")
    assert "<svg" in page
    assert "Which release?" in page
