"""The whole story by a client that knows the OpenAPI document alone."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from samples import PAST_THE_GATE
from sdcmap.web.app import make_app
from sdcmap.web.room import Room
from waiting import until
from webclient import Generated
from webroom import ROLES, people, plan_of, served


def test_a_generated_client_goes_from_an_upload_to_a_release(tmp_path: Path) -> None:
    home = tmp_path / "served"
    home.mkdir()
    content = people(tmp_path, 400).read_bytes()
    with served(Room(home.resolve(), ledger=tmp_path / "ledger")) as http:
        api = Generated(http)
        assert api.upload(file=("people.csv", content))["name"] == "people.csv"
        assert [file["name"] for file in api.files()["files"]] == ["people.csv"]
        seen = api.look(file="people.csv", roles={})
        assert {column["name"] for column in seen["variables"]} == set(ROLES)
        assert {form["type"] for form in api.forms()["rules"]} >= {"Threshold", "Linear"}
        api.begin(name="story", file="people.csv", roles=ROLES)
        api.state_roles(name="story", roles=ROLES)
        kept = api.study(name="story")
        plan = plan_of(home, replicates=1, rates=(0.05, 0.2))
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
        assert api.criterion(name="story")["rule"] is None
        assert api.picture(name="story", form="csv").startswith(b"id,")
        failed = [check for check in api.checks(name="story")["checks"] if not check["passed"]]
        assert all(check["todo"] for check in failed)
        assert api.release(name="story")["problems"]  # refused, 409
        made = api.release(name="story", override=PAST_THE_GATE, signed_by="A. Steward")
        (listed,) = api.releases(name="story")["releases"]
        assert listed["release"] == made["release"] and listed["name"] == choice["name"]
        packed = zipfile.ZipFile(io.BytesIO(api.bundle(name="story", release=made["release"])))
        assert f"{made['release']}/data.csv" in packed.namelist()
        swapped = api.swap(file=("people.csv", content), on="Race", rate="0.05")
        assert swapped["risk"]["after"] is not None


def test_every_operation_has_a_typed_answer() -> None:
    document = make_app(Room(Path("/nowhere"))).openapi()
    for path, methods in document["paths"].items():
        for operation in methods.values():
            good = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
            for answer in good:
                schemas = [content.get("schema") for content in answer["content"].values()]
                typed = "application/json" not in answer["content"] or all(
                    schema and "$ref" in schema for schema in schemas
                )
                assert typed, (path, operation["operationId"])
