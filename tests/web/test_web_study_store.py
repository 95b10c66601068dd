"""Studies are copied, renamed, archived, deleted, annotated and compared; nothing is lost by accident."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import httpx
import pytest

import sdcmap as sm
from samples import PROFILE_OVERRIDES
from sdcmap.study.folder import lock_folder
from sdcmap.web.workspace import Workspace
from web_workspace import ok, sweep_study

HOSTILE = ["../up", "a/b", ".hidden", "-rf", "x\n", "", " cps", "x" * 91, "releases", "Releases", "con\0"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("served").resolve()
    sweep_study(home, rates=(0.05, 0.2), replicates=1)
    return home


def copy_study(client: httpx.Client, name: str, **how: bool) -> Any:
    return ok(client.post("/api/studies/cps/copies", json={"name": name, **how}), 201)


def names(client: httpx.Client) -> set[str]:
    return {entry["name"] for entry in ok(client.get("/api/studies"))["studies"]}


def delete(client: httpx.Client, name: str, typed: str) -> httpx.Response:
    return client.delete(f"/api/studies/{name}", params={"typed": typed})


def chosen(client: httpx.Client, name: str = "cps") -> str:
    return str(ok(client.post(f"/api/studies/{name}/choices", json={}))["candidate"])


# ---- copies, names, the archive ---------------------------------------------------------------------------------


def test_copy_of_plan_and_copy_with_scores(client: httpx.Client, folder: Path) -> None:
    plain, whole = copy_study(client, "plan alone"), copy_study(client, "all of it", scores=True)
    assert (plain["begun"], plain["done"]) == (False, 0) and (whole["begun"], whole["state"]) == (True, "done")
    assert (folder / "plan alone.toml").read_text() == (folder / "cps.toml").read_text()
    maps = [ok(client.get(f"/api/studies/{name}/map"))["points"] for name in ("cps", "all of it")]
    assert maps[0] == maps[1]
    with sm.Study.open(folder / "cps") as first, sm.Study.open(folder / "all of it") as second:
        assert first.seed == second.seed
        made = [one.plan.make(one.data, chosen(client)).digest for one in (first, second)]
    assert made[0] == made[1]
    assert not stat.S_IMODE((folder / "all of it").stat().st_mode) & 0o077
    ok(client.post("/api/studies/plan alone/copies", json={"name": "x", "scores": True}), 404)  # there are none


@pytest.mark.parametrize("choices", [False, True])
def test_list_skips_study_deleted_meanwhile(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, choices: bool
) -> None:
    before = names(client)
    monkeypatch.setattr(Workspace, "studies", lambda _: [*sorted(before), "deleted meanwhile"])
    listed = ok(client.get("/api/studies", params={"choices": choices}))["studies"]
    assert {entry["name"] for entry in listed} == before


def test_rename_moves_everything_of_a_study(client: httpx.Client, folder: Path) -> None:
    copy_study(client, "old", scores=True)
    ok(client.put("/api/studies/old/notes", json={"text": "for the board\nmore"}))
    # other tests of this file have used the first draws; the next ones of the strongest swap are within the limit
    with sm.Study.open(folder / "old") as study:
        scored = study.scores().column("SmallCells").filter(kind="candidate").sort("value")
    order = {"candidate": scored["id"][0], "reason": "the board asked for it", "again": True}
    order |= {"override": PROFILE_OVERRIDES, "signed_by": "A. Steward"}
    first = ok(client.post("/api/studies/old/releases", json=order), 201)["release"]
    entry = ok(client.put("/api/studies/old/name", json={"name": "new"}))
    assert (entry["name"], entry["note"], entry["releases"], entry["state"]) == ("new", "for the board", 1, "done")
    assert entry["released"] and not any(path.name.startswith("old") for path in folder.rglob("*"))
    (listed,) = ok(client.get("/api/studies/new/releases"))["releases"]
    assert (listed["release"], listed["signed_by"]) == (first, "A. Steward")
    assert ok(client.post("/api/studies/new/releases", json=order))["already"]  # the order is known under the new name
    ok(client.get("/api/studies/old/map"), 404)
    # deletion leaves what is out of the room, and nobody takes it over
    assert ok(delete(client, "new", "new"))["releases"] == 1
    assert (folder / "releases" / "new" / first / "data.csv").is_file()
    assert [path.name for path in folder.iterdir() if path.name.startswith("new")] == []
    taken = client.post("/api/studies/cps/copies", json={"name": "new"})
    assert taken.status_code == 409 and "releases of an earlier study have that name" in taken.json()["error"]


def test_archived_study_is_hidden_but_unchanged(client: httpx.Client, folder: Path) -> None:
    copy_study(client, "shelved", scores=True)
    assert ok(client.put("/api/studies/shelved/archived", json={"archived": True}))["archived"]
    page = client.get("/").text
    assert page.index('id="archived"') < page.index(">shelved<")
    assert ok(client.get("/api/studies/shelved/map"))["points"]["id"]
    assert not ok(client.put("/api/studies/shelved/archived", json={"archived": False}))["archived"]
    assert 'id="archived"' not in client.get("/").text


# ---- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_study_names_are_rejected(client: httpx.Client, folder: Path, name: str) -> None:
    before = {path for path in folder.parent.rglob("*") if ".sdcmap" not in path.parts}
    for answer in (
        client.post("/api/studies/cps/copies", json={"name": name, "scores": True}),
        client.put("/api/studies/cps/name", json={"name": name}),
    ):
        assert answer.status_code in (404, 409, 422), answer.text
    assert {path for path in folder.parent.rglob("*") if ".sdcmap" not in path.parts} == before


@pytest.mark.parametrize("name", ["..", "%2e%2e", "people.csv", ".sdcmap", "releases", "%2e%2e%2fserved"])
def test_only_studies_can_be_deleted_renamed_or_annotated(client: httpx.Client, folder: Path, name: str) -> None:
    before = {path for path in folder.parent.rglob("*") if ".sdcmap" not in path.parts}
    for answer in (
        delete(client, name, name),
        client.put(f"/api/studies/{name}/name", json={"name": "y"}),
        client.put(f"/api/studies/{name}/notes", json={"text": "y"}),
        client.put(f"/api/studies/{name}/archived", json={"archived": True}),
    ):
        assert answer.status_code in (404, 405), answer.text
    assert {path for path in folder.parent.rglob("*") if ".sdcmap" not in path.parts} == before


def test_delete_needs_typed_name_and_no_writer(client: httpx.Client, folder: Path) -> None:
    copy_study(client, "kept", scores=True)
    for typed in ("", "Kept", "kept "):
        assert "type its exact name" in ok(delete(client, "kept", typed), 422)["error"]
    with lock_folder(folder / "kept"):  # as a sweep in a terminal holds it
        for answer in (
            delete(client, "kept", "kept"),
            client.put("/api/studies/kept/name", json={"name": "other"}),
            client.post("/api/studies/kept/copies", json={"name": "other", "scores": True}),
            client.put("/api/studies/kept/archived", json={"archived": True}),
        ):
            assert "another process is writing this study" in ok(answer, 409)["error"]
    assert "kept" in names(client) and "other" not in names(client)
    ok(delete(client, "kept", "kept"))
    assert "kept" not in names(client)


def test_notes_are_not_overwritten_and_follow_no_links(client: httpx.Client, folder: Path) -> None:
    copy_study(client, "noted")
    version = ok(client.get("/api/studies/noted/notes"))["version"]
    ok(client.put("/api/studies/noted/notes", json={"text": "mine", "version": version}))
    ok(client.put("/api/studies/noted/notes", json={"text": "theirs", "version": version}), 412)
    assert ok(client.get("/api/studies/noted/notes"))["text"] == "mine"
    path = folder / "noted.notes.md"
    assert not stat.S_IMODE(path.stat().st_mode) & 0o077
    path.unlink()
    path.symlink_to(folder / "people.csv")
    ok(client.put("/api/studies/noted/notes", json={"text": "x"}), 404)
    path.unlink()


# ---- two of them ------------------------------------------------------------------------------------------------


def test_compare_two_studies_on_one_map(client: httpx.Client, folder: Path) -> None:
    sweep_study(folder, "weaker", rates=(0.05,), replicates=1)
    compared = ok(client.get("/api/comparisons", params={"first": "cps", "second": "weaker"}))
    (difference,) = compared["differences"]
    assert (difference["what"], difference["second"]) == ("methods", "") and "Age swapped 20 %" in difference["first"]
    assert compared["same_data"] and (compared["risk"], compared["utility"]) == ("SmallCells", "Hellinger")
    own = ok(client.get("/api/studies/cps/map"))["points"]
    front = {(r, u) for r, u, on in zip(own["risk"], own["utility"], own["frontier"], strict=True) if on}
    drawn = {(row["risk"], row["utility"]) for row in compared["chart"]["data"]["values"] if row["study"] == "cps"}
    assert drawn == front
    for study in compared["studies"]:
        choice = ok(client.post(f"/api/studies/{study['name']}/choices", json={}))
        assert (study["choice"], study["risk"]) == (choice["name"], choice["risk"])
    ok(client.get("/api/comparisons", params={"first": "cps", "second": "weaker", "risk": "Hellinger"}), 422)
    ok(client.get("/api/comparisons", params={"first": "cps", "second": "../cps"}), 404)
