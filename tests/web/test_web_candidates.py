"""Routes for one candidate: relations, records, release, and influence of parameters."""

from __future__ import annotations

from pathlib import Path

import httpx
import numpy as np
import pytest

import sdcmap as sm
from samples import PROFILE_OVERRIDES
from sdcmap.reports.changed_analyses import TABLE_HEAD
from sdcmap.utility.analysis_change import compare_analyses
from sdcmap.utility.changed_findings import summarize
from web_workspace import ok, sweep_decision_study, sweep_study


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("served").resolve()
    sweep_study(home, rates=(0.05, 0.2), replicates=1)
    sweep_decision_study(home)
    return home


def made(folder: Path, study: str, words: str) -> tuple[str, sm.Microdata, sm.Microdata]:
    """Return the id of a candidate whose method contains this text, the data, and the candidate."""
    with sm.Study.open(folder / study) as opened:
        plan, data = opened.plan, opened.data
    candidate = next(one for one in plan.candidates if words in one.method.text)
    return candidate.id, data, plan.make(data, candidate)


def test_candidate_shows_the_analyses_that_changed_most(client: httpx.Client, folder: Path) -> None:
    name, data, masked = made(folder, "known", "Noise")
    found = ok(client.get(f"/api/studies/known/candidates/{name}/analyses"))
    compared = [one for one in compare_analyses(data, masked, "report") if len(one.differences)]
    counted = [one for one in compared if one.conclusions.can_change]
    assert found["sentence"] == summarize(counted) and "standard errors from zero" in found["rules"]
    table = found["table"]
    assert tuple(table["head"]) == TABLE_HEAD and 0 < len(table["rows"]) <= 10
    analyses = {one.analysis.title: one for one in compared}
    for title, term, before, after, _ in table["rows"]:
        place = analyses[title].analysis.labels.index(term)
        for text, one in ((before, analyses[title].before), (after, analyses[title].after)):
            assert float(text.split(" (")[0].replace(",", "")) == pytest.approx(one.values[place], rel=6e-3)
    drawn = [row for part in found["chart"]["layer"] for row in part["data"]["values"] if "file" in row]
    assert {row["file"] for row in drawn} == {"original", "release"}


def test_changes_use_densities_and_heat_maps(client: httpx.Client, folder: Path) -> None:
    name, data, masked = made(folder, "known", "Noise")
    charts = ok(client.get(f"/api/studies/known/candidates/{name}/changes"))["charts"]
    assert {row["file"] for row in charts["wage"]["data"]["values"]} == {"before", "after"}
    assert charts["wage"]["mark"]["type"] == "area"
    relations = ok(client.get(f"/api/studies/known/candidates/{name}/relations"))
    cells = {(row["file"], row["a"], row["b"]): row["r"] for row in relations["correlations"]["data"]["values"]}
    for file, of in (("before", data), ("after", masked)):
        expected = np.corrcoef(of.numbers("wage"), of.numbers("total"))[0, 1]
        assert cells[file, "wage", "total"] == pytest.approx(expected, abs=1e-3)
    asked = ok(client.get(f"/api/studies/known/candidates/{name}/relations", params={"down": "Sex", "across": "Race"}))
    rows = asked["table"]["concat"][0]["data"]["values"]
    assert asked["pair"] == ["Sex", "Race"] and sum(row["before"] for row in rows) == pytest.approx(100)
    assert all(row["change"] == 0 for row in rows)  # noise leaves categories alone
    for pair in ({"down": "wage"}, {"down": "Sex", "across": "Sex"}):
        ok(client.get(f"/api/studies/known/candidates/{name}/relations", params=pair), 422)


def test_record_values_before_and_after(client: httpx.Client, folder: Path) -> None:
    name, data, masked = made(folder, "cps", "rate=0.2")
    column = next(iter(masked.changes))
    row = int(np.flatnonzero(data[column] != masked[column])[0])
    record = ok(client.get(f"/api/studies/cps/candidates/{name}/records/{row}"))
    values = {value["name"]: value for value in record["values"]}
    frames = data.frame(), masked.frame()
    assert record["original_row"] == row and values[column]["changed"]
    assert (values[column]["original"], values[column]["masked"]) == tuple(str(frame[column][row]) for frame in frames)
    assert [value["name"] for value in record["values"] if value["changed"]] == [column]
    for outside in (-1, len(data)):
        ok(client.get(f"/api/studies/cps/candidates/{name}/records/{outside}"), 404)


def test_parameter_charts_need_enough_methods(client: httpx.Client) -> None:
    charts = ok(client.get("/api/studies/cps/parameters"))
    axes = {row["axis"] for row in charts["coordinates"]["layer"][0]["data"]["values"]}
    assert {"risk", "loss", "Swap rate", "Swap on"} == axes and charts["importance"]
    few = ok(client.get("/api/studies/known/parameters"))
    assert few["importance"] is None and "at least 8 methods" in few["reason"]


def test_checks_preview_files_of_release(client: httpx.Client, folder: Path) -> None:
    seen = ok(client.post("/api/studies/cps/checks", json={}))
    files = {file["name"]: file for file in seen["files"]}
    assert next(iter(files)) == "README.md" and {"data.csv", "codebook.md", "note.md"} <= set(files)
    assert "Age" in files["data.csv"]["head"].splitlines()[0] and not files["data.csv"]["whole"]
    assert {column["name"] for column in seen["columns"]} >= {"Age", "wage"}
    assert any(column["masked"] and column["done"] for column in seen["columns"])
    assert not (folder / "releases").exists()
    name, *_ = made(folder, "cps", "rate=0.2")
    order = {"candidate": name, "reason": "the board asked for it", "override": PROFILE_OVERRIDES, "max_risk": 1.0}
    written = ok(client.post("/api/studies/cps/releases", json={**order, "override": PROFILE_OVERRIDES}), 201)
    (listed,) = ok(client.get("/api/studies/cps/releases"))["releases"]
    assert listed["reason"] == "the board asked for it" and set(written["files"]) == set(files)
    bundle = folder / "releases" / "cps" / written["release"]
    assert not any(b"the board asked" in path.read_bytes() for path in bundle.iterdir())
    assert ok(client.get("/api/studies"))["studies"][0]["released"] == listed["name"]


def test_report_preview_is_sandboxed_and_states_who_chose(client: httpx.Client, folder: Path) -> None:
    name, *_ = made(folder, "cps", "rate=0.2")
    asked = {"audience": "internal", "candidate": name, "reason": "least distortion of <b>age</b>"}
    page = client.get("/api/studies/cps/report/preview", params=asked)
    policy = page.headers["content-security-policy"]
    assert page.status_code == 200 and page.headers["x-frame-options"] == "SAMEORIGIN"
    assert "sandbox;" in policy and "script" not in policy and "frame-ancestors 'self'" in policy
    assert "was picked by a person, not by the rule. Reason: least distortion of &lt;b&gt;age&lt;/b&gt;" in page.text
    assert "A person picked the release of this report, not a rule." in page.text
    assert client.get("/").headers["x-frame-options"] == "DENY"
