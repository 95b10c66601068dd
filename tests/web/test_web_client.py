"""The whole workflow by a client that is generated from the OpenAPI document."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import sdcmap as sm
from documents import run_page
from samples import PROFILE_OVERRIDES
from sdcmap.explore.first_look import source_of
from sdcmap.web.workspace import Workspace
from waiting import until
from web_workspace import KEYS, ROLES, TOKEN, openapi_document, people, plan_of, serve_app
from webclient import Generated


def test_generated_client_runs_the_workflow(tmp_path: Path) -> None:
    home = tmp_path / "served"
    home.mkdir()
    content = people(tmp_path, 400).read_bytes()
    with serve_app(Workspace(home.resolve(), ledger=tmp_path / "ledger")) as http:
        api = Generated(http)
        assert api.upload(file=("people.csv", content))["name"] == "people.csv"
        assert [file["name"] for file in api.files()["files"]] == ["people.csv"]
        seen = api.look(file="people.csv", roles={})
        assert {column["name"] for column in seen["variables"]} == set(ROLES) and seen["rows"] == 400
        assert {column["name"]: column["role"] for column in seen["variables"]}["household"] == "household"
        assert {form["type"] for form in api.forms()["rules"]} >= {"Threshold", "Linear"}
        api.begin(name="story", file="people.csv", roles=ROLES)
        api.state_roles(name="story", roles=ROLES)
        kept = api.study(name="story")
        # every candidate is eligible: of so few single releases, whose seed is random, none might be within a limit
        plan = replace(plan_of(home, replicates=1, rates=(0.05, 0.2)), rule=sm.Threshold(risk=1.0))
        checked = api.check(toml=plan.toml(), study="story")
        assert checked["problems"] == [] and checked["candidates"] == plan.count
        saved = api.write_plan(name="story", toml=checked["toml"], version=kept["version"])
        assert api.write_plan(name="story", toml=checked["toml"], version="0")["problems"]  # 412
        assert saved["candidates"] == plan.count
        api.want(name="story", state="running")
        until(lambda: api.status(name="story")["state"] == "done", "the end of the sweep")
        (entry,) = api.studies()["studies"]
        assert (entry["file"], entry["state"], entry["done"], entry["releases"]) == (
            "people.csv",
            "done",
            plan.count,
            0,
        )
        ru = api.ru_map(name="story")
        assert len(api.scores(name="story", measure="Hellinger")["candidates"]["id"]) == len(ru["points"]["id"])
        choice = api.choose(name="story")
        found = api.candidate_facts(name="story", candidate=choice["candidate"])
        assert found["name"] == choice["name"]
        assert api.changes(name="story", candidate=choice["candidate"])["tables"]
        assert api.records(name="story", candidate=choice["candidate"])["words"]
        assert api.analyses(name="story", candidate=choice["candidate"])["sentence"].startswith("Of ")
        assert api.relations(name="story", candidate=choice["candidate"])["table"]
        assert api.record_values(name="story", candidate=choice["candidate"], row=0)["original_row"] == 0
        assert api.parameters(name="story")["coordinates"]
        assert api.criterion(name="story")["rule"] is None
        assert api.picture(name="story", form="csv").startswith(b"id,")
        seen = api.checks(name="story")
        assert "data.csv" in {file["name"] for file in seen["files"]} and len(seen["columns"]) == len(ROLES)
        failed = [check for check in seen["checks"] if not check["passed"]]
        assert all(check["remedy"] for check in failed)
        assert api.release(name="story")["problems"]  # refused, 409
        made = api.release(name="story", override=PROFILE_OVERRIDES, signed_by="A. Steward")
        (listed,) = api.releases(name="story")["releases"]
        assert listed["release"] == made["release"] and listed["name"] == choice["name"]
        packed = zipfile.ZipFile(io.BytesIO(api.bundle(name="story", release=made["release"])))
        assert f"{made['release']}/data.csv" in packed.namelist()
        version = api.notes(name="story")["version"]
        assert api.write_notes(name="story", text="for the board", version=version)["text"] == "for the board"
        (entry,) = api.studies(choices=True)["studies"]
        assert (entry["choice"], entry["note"], entry["releases"]) == (choice["name"], "for the board", 1)
        assert api.archive_study(name="story", archived=True)["archived"]
        assert api.compare_studies(first="story", second="story")["same_data"]
        assert api.delete_study(name="story", typed="wrong")["problems"]  # 422
        assert api.delete_study(name="story", typed="story")["releases"] == 1
        assert api.studies()["studies"] == []
        swapped = api.swap(file=("people.csv", content), on="Race", rate="0.05")
        assert swapped["risk"]["after"] is not None


def test_every_operation_has_a_typed_response() -> None:
    for path, methods in openapi_document()["paths"].items():
        for operation in methods.values():
            good = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
            for answer in good:
                schemas = [content.get("schema") for content in answer["content"].values()]
                typed = "application/json" not in answer["content"] or all(
                    schema and "$ref" in schema for schema in schemas
                )
                assert typed, (path, operation["operationId"])


def test_documented_python_client_runs_the_workflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a small file with a plan of one synthetic file, using the address and token of this server."""
    home = tmp_path / "served"
    home.mkdir()
    monkeypatch.chdir(tmp_path)
    sm.write(sm.demo.population(300, seed=8).only([*KEYS, "wage"]), "people.csv")
    stated = source_of("people.csv", dict.fromkeys(KEYS, "key") | {"wage": "numeric"}, {})
    risk, rule = sm.risk.AttributeInference("wage", on=KEYS), sm.Threshold(risk=0.2)
    synthetic = sm.methods.Synthesize([*KEYS, "wage"], leaf=100)
    plan = sm.Plan(
        [synthetic], [risk, sm.Hellinger()], profile="scientific-use", rule=rule, data=stated, seed=(1 << 200) + 11
    )
    plan.write("plan.toml")
    with serve_app(Workspace(home.resolve(), ledger=tmp_path / "ledger")) as http:
        here = str(http.base_url).rstrip("/")
        smaller = {
            "http://127.0.0.1:41207": here,
            '"..."': f'"{TOKEN}"',
            "Bearer ...": f"Bearer {TOKEN}",
            "sleep(1)": "sleep(0.05)",
        }
        made = run_page("docs/web.md", smaller)
        made["api"].close()
    names = zipfile.ZipFile(io.BytesIO(made["bundle"])).namelist()
    assert f"{made['made']['release']}/data.csv" in names
    assert pl.read_csv(made["swapped"]).height == 300 and made["answer"]["risk"]["after"] > 0
