"""A candidate that was chosen together with another file is the choice of its study at every interface."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import pytest
from typer.testing import CliRunner

import sdcmap as sm
from samples import PROFILE_OVERRIDES
from sdcmap.cli import app
from sdcmap.web.renderer import render_map
from sdcmap.web.workspace import Workspace
from web_workspace import ok, people, serve_app, sweep_study

REASON = "these two files were chosen together"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study `cps` whose chosen pair is a candidate that its rule alone does not choose."""
    home = tmp_path_factory.mktemp("pairs").resolve()
    people(home, 300)
    sweep_study(home, replicates=2)
    with sm.Study.open(home / "cps") as study, study.writing():
        plan, scores = study.plan, study.scores()
        ru = sm.RUMap(scores, plan.risk, plan.utility, plan.limits)
        assert plan.rule is not None
        by_rule = ru.choose(plan.rule)
        # the least risk, with the margin of a release, which makes a new draw
        passing = ru.points.filter(~pl.col("anchor") & (pl.col("risk_end") <= by_rule.rule.risk))  # type: ignore[attr-defined]
        other = passing.filter(pl.col("id") != by_rule.candidate).sort("risk_end").row(0, named=True)
        study.note(pair={"first": "", "candidate": other["id"], "searched": 1, "reason": REASON, "pairs": []})
    return home


@pytest.fixture
def home(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy that a test may write to, with a ledger of its own."""
    monkeypatch.setenv("SDCMAP_LEDGER", str(tmp_path / "ledger"))
    return shutil.copytree(finished, tmp_path / "home")


@pytest.fixture
def client(home: Path) -> Iterator[httpx.Client]:
    with serve_app(Workspace(home, ledger=home / ".ledger")) as made:
        yield made


def chosen(home: Path) -> tuple[str, str]:
    """The id and the name of the candidate that was chosen in the pair."""
    with sm.Study.open(home / "cps") as study:
        candidate = str(study.manifest["pair"]["candidate"])
        return candidate, study.plan.name_of(study.plan.find(candidate))


def run(*words: object) -> str:
    done = CliRunner().invoke(app, [*map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def seen_marks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What every map that is drawn from now on marks."""
    marks: list[Any] = []
    draw = sm.RUMap.draw
    monkeypatch.setattr(sm.RUMap, "draw", lambda ru, **how: marks.append(how.get("mark")) or draw(ru, **how))
    return marks


# ---- the command line -----------------------------------------------------------------------------------------
def test_choose_returns_pair_candidate_with_reason(home: Path) -> None:
    document = json.loads(run("choose", home / "cps", "--json"))
    assert (document["candidate"], document["reason"]) == (chosen(home)[0], REASON)


def test_another_rule_chooses_as_usual(home: Path) -> None:
    document = json.loads(run("choose", home / "cps", "--slope", "0.3", "--json"))
    with sm.Study.open(home / "cps") as study:
        expected = sm.RUMap(study.scores(), study.plan.risk, study.plan.utility).choose(sm.Linear(slope=0.3))
    assert (document["candidate"], document["reason"]) == (expected.candidate, expected.reason)
    assert document["runners_up"] == [asdict(runner) for runner in expected.runners_up] != []


def test_map_marks_pair_candidate_on_axes_of_plan(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marks = seen_marks(monkeypatch)
    run("map", home / "cps", "-o", home / "map.html")
    assert marks[-1].candidate == chosen(home)[0]


def test_record_plot_is_of_pair_candidate(home: Path) -> None:
    document = json.loads(run("records", home / "cps", "-o", home / "records.csv", "--json"))
    named = json.loads(run("records", home / "cps", chosen(home)[0], "-o", home / "named.csv", "--json"))
    assert (home / "records.csv").read_bytes() == (home / "named.csv").read_bytes()
    assert document["unsafe"] == named["unsafe"]


def test_release_and_report_use_pair_candidate(home: Path) -> None:
    overrides = [f"--override={check}={reason}" for check, reason in PROFILE_OVERRIDES.items()]
    run("release", home / "cps", "-o", home / "public", *overrides)
    with sm.Study.open(home / "cps") as study:
        assert study.manifest["releases"][-1]["name"] == chosen(home)[1]
    run("report", home / "cps", "-o", home / "report.html")
    assert REASON in (home / "report.html").read_text()


# ---- the workbench --------------------------------------------------------------------------------------------
def test_web_api_chooses_checks_and_releases_pair_candidate(home: Path, client: httpx.Client) -> None:
    candidate, name = chosen(home)
    choice = ok(client.post("/api/studies/cps/choices", json={}))
    assert (choice["candidate"], choice["name"], choice["reason"]) == (candidate, name, REASON)
    with sm.Study.open(home / "cps") as study:
        plan = study.plan
    assert plan.rule is not None
    same = ok(client.post("/api/studies/cps/choices", json={"rule": plan.rule.spec(), "risk": list(plan.risk)}))
    assert same["candidate"] == candidate, "the plan's rule, stated again, is the plan's rule"
    other = ok(client.post("/api/studies/cps/choices", json={"rule": {"type": "Linear", "slope": 0.3}}))
    assert other["reason"] != REASON
    checks = ok(client.post("/api/studies/cps/checks", json={"override": PROFILE_OVERRIDES}))
    assert (checks["candidate"], checks["name"]) == (candidate, name)
    made = ok(client.post("/api/studies/cps/releases", json={"override": PROFILE_OVERRIDES}), 201)
    assert made["release"].startswith(candidate)


def test_web_api_lists_and_compares_pair_candidate(home: Path, client: httpx.Client) -> None:
    name = chosen(home)[1]
    (entry,) = ok(client.get("/api/studies", params={"choices": True}))["studies"]
    assert entry["choice"] == name
    both = ok(client.get("/api/comparisons", params={"first": "cps", "second": "cps"}))
    assert [one["choice"] for one in both["studies"]] == [name, name]
    page = client.get("/api/studies/cps/report/preview", params={"audience": "internal"})
    assert page.status_code == 200 and REASON in page.text


def test_web_picture_marks_pair_candidate(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marks = seen_marks(monkeypatch)
    render_map(home / "cps", "svg", (), "", "")
    assert marks[-1].candidate == chosen(home)[0]
