"""State that survives requests and restarts: sessions, sweeps, plans, caches, releases."""

from __future__ import annotations

import itertools
import json
import stat
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
import pytest

import sdcmap as sm
from samples import PROFILE_OVERRIDES
from sdcmap.bundle.checks import CHECK_KINDS
from sdcmap.explore import column_bars, first_look
from sdcmap.explore.column_bars import summarize_column
from sdcmap.explore.first_look import look, source_of
from sdcmap.files import reader
from sdcmap.kernels.tables.identifying_columns import count_unique_on_pairs
from sdcmap.web import study_store
from sdcmap.web.server import _bind
from sdcmap.web.sessions import SESSION_LIFETIME_SECONDS, Authenticator, SavedSessions
from sdcmap.web.sweep_process import ProgressNotes, _run
from sdcmap.web.sweeps import PACE_SECONDS, Pace, Phase, SweepGoal, Sweeps
from sdcmap.web.workspace import STATE_FOLDER, Workspace
from waiting import until
from web_workspace import KEYS, ROLES, ok, people, plan_of, serve_app

# ---- sweeps ---------------------------------------------------------------------------------------------------


def test_complete_sweep_leaves_no_error_and_no_goal(tmp_path: Path) -> None:
    people(tmp_path, 200)
    plan = plan_of(tmp_path, replicates=1, rates=(0.05,))
    (tmp_path / "short.toml").write_text(plan.toml())
    phases = set()
    with serve_app(Workspace(tmp_path.resolve())) as client:
        ok(client.put("/api/studies/short/sweep", json={"state": "running"}))

        def is_done() -> bool:
            status = ok(client.get("/api/studies/short/sweep"))
            phases.add(status["phase"])
            return bool(status["state"] == "done")

        until(is_done, "the end of a short sweep")
        assert (
            phases & {"starting", "reading the file"} and "" in phases
        )  # told while nothing is done, and not after it
        notes = tmp_path / STATE_FOLDER
        assert (notes / "short.errors").read_text() == ""
        assert not (notes / "short.wish").exists()  # no later server goes on with it
        (notes / "short.errors").write_text("an old complaint")
        (tmp_path / "short.toml").write_text(f"replicates = 2\n{plan.toml()}".replace("replicates = 1\n", ""))
        status = ok(client.get("/api/studies/short/sweep"))
        assert (status["state"], status["error"]) == ("not begun", "")


def test_sweep_reports_phase_from_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people(tmp_path, 60)
    (tmp_path / "short.toml").write_text(plan_of(tmp_path, replicates=1, rates=(0.05,)).toml())
    workspace = Workspace(tmp_path.resolve())
    phases: list[str] = []
    write_phase = ProgressNotes.write_phase

    def record(self: ProgressNotes, phase: str) -> None:
        write_phase(self, phase)
        phases.append(Sweeps(workspace).phase("short").phase.partition(" and")[0])  # as a server reads it

    monkeypatch.setattr(ProgressNotes, "write_phase", record)
    _run(workspace, tmp_path / "short.toml", workspace.folder / "short", 1, "sweep")
    assert list(dict.fromkeys(phases)) == ["reading the file", "starting the workers", "creating"]


def test_pace_starts_with_first_candidate() -> None:
    pace = Pace()
    assert [pace.rate(second, 0) for second in range(60)] == [None] * 60  # a minute of getting ready slows nothing down
    rates = [pace.rate(60.0 + second, 1 + 2 * second) for second in range(300)]
    known = [rate for rate in rates if rate is not None]
    assert len(known) > 290 and known == pytest.approx([2.0] * len(known), rel=0.2)
    assert known[30:] == pytest.approx([2.0] * len(known[30:]), rel=0.02)
    slow = [pace.rate(360.0 + second, 600) for second in range(int(PACE_SECONDS) + 2)]
    falling = [rate for rate in slow if rate is not None]
    assert all(later <= before for before, later in itertools.pairwise(falling)) and falling[-1] < 0.2


# ---- who is in, and stays in ------------------------------------------------------------------------------------


def test_session_survives_restart_as_digest_only(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path.resolve())
    listening, first = _bind(workspace, "127.0.0.1", 0)
    session = first.exchange(first.browser_token)
    assert session is not None
    rival, stranger = _bind(workspace, "127.0.0.1", 0)  # while the first one listens
    assert stranger.base_path != first.base_path and not stranger.is_session(session)
    rival.close()
    listening.close()
    note = workspace.state_folder / "sessions.json"
    assert stat.S_IMODE(note.stat().st_mode) == 0o600
    assert (
        session not in note.read_text()
        and first.token not in note.read_text()
        and first.browser_token not in note.read_text()
    )
    listening, second = _bind(workspace, "127.0.0.1", 0)
    assert (second.port, second.base_path) == (first.port, first.base_path) and second.is_session(session)
    assert second.token != first.token and not second.is_session("x" * 32)
    listening.close()
    aged = json.loads(note.read_text())
    aged["sessions"] = {digest: came - SESSION_LIFETIME_SECONDS - 1 for digest, came in aged["sessions"].items()}
    note.write_text(json.dumps(aged))
    listening, third = _bind(workspace, "127.0.0.1", 0)
    assert not third.is_session(session) and third.base_path != first.base_path
    listening.close()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"port": "x"}', '{"port": 1, "place": "/", "sessions": {"a": 1}}', "\0"]
)
def test_damaged_session_file_gives_no_access(tmp_path: Path, text: str) -> None:
    (tmp_path / "sessions.json").write_text(text)
    assert SavedSessions.read(tmp_path / "sessions.json") == SavedSessions()


def test_page_for_unauthenticated_browser_explains_login(folder: Path) -> None:
    authenticator = Authenticator()
    with serve_app(Workspace(folder), authenticator, headers={"accept": "text/html"}) as guest:
        page = guest.get(f"{authenticator.base_path}/studies/cps/map")
        assert page.status_code == 401 and "last address that it printed" in page.text
        assert "<a " not in page.text and f'href="{authenticator.base_path}/static/workbench.css"' in page.text
        assert guest.get(f"{authenticator.base_path}/static/workbench.css").status_code == 200


# ---- plans and roles --------------------------------------------------------------------------------------------


def test_plan_saved_elsewhere_is_not_overwritten(client: httpx.Client, folder: Path) -> None:
    ok(client.post("/api/studies", json={"name": "two", "file": "people.csv", "roles": ROLES}), 201)
    first = ok(client.get("/api/studies/two"))
    mine = {"toml": first["toml"], "version": first["version"]}
    saved = ok(client.put("/api/studies/two/plan", json=mine))
    assert ok(client.get("/api/studies/two"))["version"] == saved["version"]
    (folder / "two.toml").write_text(first["toml"] + "\n# by somebody else\n")
    refused = client.put("/api/studies/two/plan", json=mine | {"version": saved["version"]})
    assert refused.status_code == 412 and "saved elsewhere" in refused.json()["error"]
    assert (folder / "two.toml").read_text().endswith("# by somebody else\n")


def test_earlier_plans_are_listed_with_changes(
    client: httpx.Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_store, "MAX_EARLIER_PLANS", 3)
    ok(client.post("/api/studies", json={"name": "old", "file": "people.csv", "roles": ROLES}), 201)
    listed = lambda name: ok(client.get(f"/api/studies/{name}/plans"))["plans"]
    assert listed("old") == []
    texts = [ok(client.get("/api/studies/old"))["toml"]]
    for count in (2, 2, *range(3, 7)):  # the second is saved twice, and is no earlier one of itself
        table = ok(client.post("/api/plans", json={"toml": texts[-1]}))["table"] | {"replicates": count}
        changed = ok(client.post("/api/plans", json={"table": table}))["toml"]
        texts.append(ok(client.put("/api/studies/old/plan", json={"toml": changed}))["toml"])
    earlier = listed("old")
    assert [plan["toml"] for plan in earlier] == [*dict.fromkeys(texts)][-2:-5:-1]
    assert all(plan["changed"] == ["draws of a method"] for plan in earlier)
    assert [plan["saved"] for plan in earlier] == sorted((plan["saved"] for plan in earlier), reverse=True)
    ok(client.put("/api/studies/old/roles", json={"roles": ROLES | {"Income": "sensitive"}}))
    assert "role of Income" in listed("old")[0]["changed"] and listed("old")[0]["toml"] == texts[-1]
    note = folder / ".sdcmap" / "old.plans"
    assert not stat.S_IMODE(note.stat().st_mode) & 0o077
    ok(client.put("/api/studies/old/name", json={"name": "older"}))  # they go with the study
    assert len(listed("older")) == 3 and not note.exists()
    (folder / ".sdcmap" / "older.plans").write_text("[{")  # a damaged note: none, and the next is kept again
    assert listed("older") == []
    ok(client.put("/api/studies/older/plan", json={"toml": texts[0]}))
    assert len(listed("older")) == 1
    ok(client.delete("/api/studies/older", params={"typed": "older"}))
    assert not (folder / ".sdcmap" / "older.plans").exists()


def test_roles_can_change_only_before_the_first_score(client: httpx.Client, folder: Path) -> None:
    ok(client.post("/api/studies", json={"name": "roles", "file": "people.csv", "roles": ROLES}), 201)
    kept = ok(client.put("/api/studies/roles/roles", json={"roles": ROLES | {"Income": "sensitive"}}))
    assert sm.Plan.from_toml(kept["toml"]).data.sensitive == ("Income",)  # type: ignore[union-attr]
    assert ok(client.get("/api/studies/roles"))["version"] == kept["version"]
    kept = ok(client.put("/api/studies/roles/roles", json={"roles": ROLES, "missing": ["Hours=40 (refused)"]}))
    kept = ok(client.put("/api/studies/roles/roles", json={"roles": ROLES}))  # codes stay where none are said
    assert sm.Plan.from_toml(kept["toml"]).data.missing == ("Hours=40 (refused)",)  # type: ignore[union-attr]
    before = (folder / "cps.toml").read_bytes()
    assert client.put("/api/studies/cps/roles", json={"roles": ROLES}).status_code == 409
    assert (folder / "cps.toml").read_bytes() == before


def test_merge_of_unknown_categories_is_reported(client: httpx.Client, folder: Path) -> None:
    forms = {form["type"]: form["entries"] for form in ok(client.get("/api/forms"))["methods"]}
    entries = {entry["name"]: entry for entry in forms["Recode"]}
    assert entries["merge"]["nested"] and entries["on"]["columns"] and not entries["labels"]["nested"]
    assert {entry["name"] for entry in forms["Suppress"] if entry["nested"]} == {"linked"}
    text = (folder / "cps.toml").read_text()

    def check_merge(merge: list[Any]) -> Any:
        table = ok(client.post("/api/plans", json={"toml": text}))["table"]
        table["methods"] = [{"type": "Recode", "on": ["Race"], "merge": merge}]
        return ok(client.post("/api/plans", json={"table": table}))

    assert "at least two categories" in check_merge(["1", "2"])["problems"][0]
    idle = check_merge([['["1"', '"2"]']])
    assert idle["problems"] == [] and any("nothing is merged" in remark for remark in idle["remarks"])
    levels = source_of("people.csv", ROLES, {}).read(folder).column("Race").levels
    assert levels is not None
    result = check_merge([[str(level) for level in levels.to_list()[:2]]])
    assert not any("merge" in remark for remark in result["remarks"])
    assert {column["name"] for column in result["columns"]} == set(ROLES)


# ---- files are read and counted once ----------------------------------------------------------------------------


def counts(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Record which columns and column sets are counted from now on."""
    counted: set[str] = set()
    glance, spread, sets, pairs = (
        first_look._summarize,
        column_bars.summarize_column,
        first_look.find_identifying_sets,
        first_look.count_unique_by_pair,
    )

    def record_column(data: Any, name: str, proposal: Any, known: Any = None) -> Any:
        counted.update([name] if known is None else [])
        return glance(data, name, proposal, known)

    def record_pairs(data: Any, names: Any, before: Any = None) -> Any:
        old = () if before is None else before.columns
        counted.update(name for name in names if not any(data.column(name) is column for column in old))
        return pairs(data, names, before)

    monkeypatch.setattr(first_look, "_summarize", record_column)
    monkeypatch.setattr(column_bars, "summarize_column", lambda data, name: counted.add(name) or spread(data, name))
    monkeypatch.setattr(
        first_look, "find_identifying_sets", lambda *given: counted.add("sets of columns") or sets(*given)
    )
    monkeypatch.setattr(first_look, "count_unique_by_pair", record_pairs)
    return counted


def test_change_of_roles_reuses_cached_results(
    client: httpx.Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "once.csv").write_bytes((folder / "people.csv").read_bytes())
    read: list[Path] = []
    really = reader._frame_of_file
    monkeypatch.setattr(reader, "_frame_of_file", lambda path, asked: read.append(path) or really(path, asked))
    counted = counts(monkeypatch)
    for roles, codes, new in (
        ({}, [], set(ROLES)), (ROLES, [], set(ROLES)), (ROLES | {"Income": "sensitive"}, [], set()),
        (ROLES | {"Age": "other", "Hours": "key"}, [], {"Age", "Hours"}), (ROLES, ["Hours=40 (refused)"], {"Age", "Hours"}),
        (ROLES | {"WrkTyp": "drop"}, ["Hours=40 (refused)", "Age=30"], {"Age"}),
    ):  # fmt: skip
        stated = {"file": "once.csv", "roles": roles, "missing": codes}
        counted.clear()
        seen, result = (ok(client.post(f"/api/looks{part}", json=stated)) for part in ("", "/identifying"))
        assert counted <= new | ({"sets of columns"} if new else set())  # where no column is another, no set is either
        data = source_of("people.csv", roles, {}, codes).read(folder)
        fresh = look(data)
        for v in seen["variables"]:
            assert v["spread"] == json.loads(json.dumps(asdict(summarize_column(data, v["name"]))))
            assert v["missing_codes"] == [code.partition("=")[2] for code in codes if code.startswith(f"{v['name']}=")]
        assert [v["role"] for v in seen["variables"]] == [v.role for v in fresh.variables]
        assert [(v["distinct"], v["missing"], v["once"]) for v in seen["variables"]] == [
            (v.distinct, v.missing, v.once) for v in fresh.variables
        ]
        assert seen["sizes"] == fresh.sizes
        assert seen["unique"] == {words: list(facts) for words, facts in fresh.unique.items()}
        assert [(tuple(one["keys"]), one["unique"]) for one in result["sets"]] == list(fresh.identifying.sets)
        assert result["pairs"] == count_unique_on_pairs([data.codes(name) for name in result["names"]]).tolist()
    assert [path.name for path in read].count("once.csv") == 1
    (folder / "once.csv").unlink()


def test_identifying_columns_equal_brute_force(client: httpx.Client, folder: Path) -> None:
    result = ok(client.post("/api/looks/identifying", json={"file": "people.csv", "roles": ROLES}))
    data = source_of("people.csv", ROLES, {}).read(folder)
    names = [name for name in data.names if name not in ("household",)]
    frame = data.frame()
    alone = {
        trio: int((frame.group_by(trio).len()["len"] == 1).sum())
        for size in (1, 2, 3)
        for trio in itertools.combinations(names, size)
    }
    best = max(alone.values())
    assert max(one["unique"] for one in result["sets"]) == best
    assert all(alone[tuple(n for n in names if n in one["keys"])] == one["unique"] for one in result["sets"])
    assert result["words"].startswith("exact, over all sets")


# ---- the editor of a plan ----------------------------------------------------------------------------------------


def test_recode_preview_counts_categories(client: httpx.Client, folder: Path) -> None:
    def preview_recode(**fields: Any) -> Any:
        return ok(client.post("/api/studies/cps/recodes", json={"method": {"type": "Recode"} | fields}))

    frame = source_of("people.csv", ROLES, {}).read(folder).frame()
    race = dict(frame["Race"].value_counts().iter_rows())
    first, second = list(race)[:2]
    result = preview_recode(on=["Race"], merge=[[first, second]], labels=["all"])["columns"][0]
    assert {bar["label"]: bar["count"] for bar in result["categories"]} == race
    assert result["after"] == [{"label": "all", "count": race[first] + race[second]}] and result["smallest"] == 800
    wage = preview_recode(on=["wage"], breaks=[0, 50_000])["columns"][0]
    high = int((frame["wage"] > 50_000).sum())
    assert wage["after"][-1] == {"label": "> 50000", "count": high} and wage["problem"] == ""
    assert "needs one of breaks" in preview_recode(on=["Race"])["columns"][0]["problem"]
    assert preview_recode(on=["nobody"])["columns"] == []
    (folder / "levels.csv").write_text("\n".join(f"{name};any;*" for name in race))
    result = preview_recode(on=["Race"], hierarchy="levels.csv", level=2)
    assert result["levels"] == 2 and [bar["label"] for bar in result["columns"][0]["after"]] == ["*"]
    away = preview_recode(on=["Race"], hierarchy="../levels.csv")
    assert away["levels"] is None and away["columns"][0]["problem"]


def test_hierarchy_is_drafted_saved_and_used(client: httpx.Client, folder: Path) -> None:
    draft = lambda **what: client.post("/api/studies/cps/hierarchies/drafts", json={"on": ["Age"]} | what)
    keep = lambda file, rows, version="", study="cps": client.put(
        f"/api/studies/{study}/hierarchies", json={"file": file, "rows": rows, "version": version}
    )
    ages = dict(source_of("people.csv", ROLES, {}).read(folder).frame()["Age"].value_counts().iter_rows())
    result = ok(draft())
    assert dict(zip((row[0] for row in result["rows"]), result["records"], strict=True)) == ages
    assert result["problems"] and result["version"] == "" and result["levels"][0]["rarest"] is None
    first, *others = ages
    rows = [[first, "one", "*"], *([age, "the rest", "*"] for age in others)]
    result = ok(draft(rows=rows))
    assert result["problems"] == [] and result["levels"][0]["groups"][0] == {"label": "one", "count": ages[first]}
    split = [[first, "one", "*"], *([age, "one", age] for age in others)]
    assert ok(draft(rows=split))["split"] and "splits a label" in keep("split.csv", split).json()["error"]
    assert {row[-1] for row in ok(draft(begin="prefixes"))["rows"]} == {"*" * max(map(len, ages))}

    kept = ok(keep("ages.csv", rows))
    assert kept["levels"] == 2 and stat.S_IMODE((folder / "ages.csv").stat().st_mode) == 0o600
    method = {"type": "Recode", "on": ["Age"], "hierarchy": "ages.csv", "level": 1}
    recode = ok(client.post("/api/studies/cps/recodes", json={"method": method}))
    assert recode["levels"] == 2 and recode["columns"][0]["after"][0]["count"] in (ages[first], 800 - ages[first])
    opened = ok(draft(begin="file", file="ages.csv"))
    assert opened["rows"] == rows and opened["version"] == kept["version"]

    assert keep("ages.csv", rows).status_code == 409  # not without a word
    renamed = [[first, "1", "*"], *([age, "2", "*"] for age in others)]
    assert ok(keep("ages.csv", renamed, kept["version"]))["version"] != kept["version"]
    assert keep("ages.csv", rows, kept["version"]).status_code == 412  # it is another one now
    assert sm.data.Hierarchy.read(str(folder / "ages.csv")).at(1)[first] == "1"
    before = (folder / "people.csv").read_bytes()
    assert keep("people.csv", rows).status_code == keep("./people.csv", rows, "0" * 16).status_code == 409
    for file in (
        "../ages.csv",
        "cps/ages.csv",
        ".ages.csv",
        "ages.study.csv",
        "ages.toml",
        "/ages.csv",
        "",
        "a\0.csv",
    ):
        assert keep(file, rows).status_code == 422, file
        assert keep(file, rows, kept["version"]).status_code == 412, file
    assert draft(begin="file", file="../people.csv").status_code == 422
    assert keep("none.csv", [[first, ""]]).status_code == keep("none.csv", [[]]).status_code == 422
    assert keep("none.csv", rows, study="nobody").status_code == 404
    assert (folder / "people.csv").read_bytes() == before and not (folder / "none.csv").exists()


def test_prices_before_a_class_is_added(client: httpx.Client, folder: Path) -> None:
    text = (folder / "cps.toml").read_text()
    ask = lambda **what: client.post("/api/prices", json={"toml": text, "study": "cps", "group": "measures"} | what)
    result = ok(ask(type="WorstLinkage"))
    plan, data = sm.Plan.from_toml(text), source_of("people.csv", ROLES, {}).read(folder)
    assert (
        result["price"]
        == result["stated"]["WorstLinkage"]
        == pytest.approx(plan.count * sm.WorstLinkage().seconds(data))
    )
    assert result["candidates"] == plan.count and "Hellinger" not in result["stated"]
    swap = ok(ask(group="methods", type="Swap"))
    assert swap["price"] > 0 and swap["example"].startswith("Swap(on=") and swap["draw"] > 0
    assert ok(ask(group="methods", type="Protect"))["price"] is None  # its fields must be filled in first
    assert ask(type="Swap").status_code == 422 and ask(group="methods", type="os:system").status_code == 422
    assert ask(toml=text.replace("Hellinger", "Helinger")).status_code == 422


def test_nested_values_have_forms_and_become_tables(client: httpx.Client) -> None:
    forms = ok(client.get("/api/forms"))
    entry = next(
        e for f in forms["measures"] if f["type"] == "DiscreditHarm" for e in f["entries"] if e["name"] == "attack"
    )
    assert {form["type"] for form in forms["parts"][entry["group"]]} >= {"Linkage", "NearestRecord", "WorstLinkage"}
    groups = {*forms, *forms["parts"]}
    assert all(
        e["group"] in groups
        for g in ("methods", "measures")
        for f in forms[g]
        for e in f["entries"]
        if e["kind"] == "part"
    )
    before = ok(client.get("/api/studies/cps"))["table"]
    for written, held in (("Linkage(metric='l')", {"type": "Linkage", "metric": "l"}), ("Linkag()", "Linkag()")):
        harm = {"type": "DiscreditHarm", "on": "total", "attack": written}
        table = ok(client.post("/api/plans", json={"table": before | {"measures": [*before["measures"], harm]}}))[
            "table"
        ]
        assert table["measures"][-1]["attack"] == held


# ---- candidates and releases ------------------------------------------------------------------------------------


def test_candidate_without_named_columns_shows_masked_keys(client: httpx.Client) -> None:
    shown = ok(client.get("/api/studies/blank/map"))
    pairs = zip(shown["points"]["id"], shown["points"]["method"], strict=True)
    made = next(one for one, method in pairs if shown["methods"][method].startswith("Suppress"))
    changed = ok(client.get(f"/api/studies/blank/candidates/{made}/changes"))
    assert set(KEYS) <= {table["name"] for table in changed["tables"]} and set(KEYS) <= set(changed["charts"])
    plotted = ok(client.get(f"/api/studies/blank/candidates/{made}/records"))
    measured = ok(client.get("/api/studies/blank/scores", params={"measure": "KAnonymity(k=2)"}))["candidates"]
    value = dict(zip(measured["id"], measured["value"], strict=True))[made]
    assert plotted["unsafe"] == round(value * 800) == 0  # the plot and the measure speak of the same line
    assert "fewer than 2 records share" in plotted["words"] and "the k of KAnonymity(k=2)" in plotted["words"]


def test_unmasked_file_fails_checks_with_remedies(client: httpx.Client) -> None:
    points = ok(client.get("/api/studies/cps/map"))["points"]
    original = next(one for one, anchor in zip(points["id"], points["anchor"], strict=True) if anchor)
    check_merge = ok(client.post("/api/studies/cps/checks", json={"candidate": original, "max_risk": 1.0}))
    failed = {check["name"]: check for check in check_merge["checks"] if not check["passed"]}
    assert not check_merge["passed"] and "as it is, unmasked" in failed["unmasked"]["reason"]
    assert all(check["remedy"] for check in failed.values())
    assert not any(check["remedy"] for check in check_merge["checks"] if check["passed"])
    hard = {
        "seed", "roles", "recoverable", "limit", "draws", "risk", "loss", "round trip", "earlier releases", "joint risk",
        "nested", "choice", "pair",
    }  # fmt: skip
    remedies = {name: kind.can_override for name, kind in CHECK_KINDS.items() if kind.remedy}
    assert hard == {name for name, can_override in remedies.items() if not can_override}


def test_equal_release_requests_are_written_once(client: httpx.Client, folder: Path) -> None:
    order = {"override": PROFILE_OVERRIDES, "signed_by": "A. Steward"}
    first = ok(client.post("/api/studies/cps/releases", json=order), 201)
    again = [ok(client.post("/api/studies/cps/releases", json=order)) for _ in range(2)]
    assert not first["already"] and [one["release"] for one in again] == 2 * [first["release"]] and again[0]["already"]
    (listed,) = ok(client.get("/api/studies/cps/releases"))["releases"]
    assert (listed["release"], listed["signed_by"]) == (first["release"], "A. Steward") and listed["when"]
    released = folder / "releases" / "cps" / first["release"]
    assert not any(b"A. Steward" in path.read_bytes() for path in released.iterdir())  # the board's business alone


@pytest.mark.parametrize(
    ("goal", "is_complete", "state"),
    [
        (SweepGoal("cancelled", "search"), True, "cancelled"), (SweepGoal("cancelled", "sweep"), True, "done"),
        (SweepGoal("paused", "search"), True, "paused"), (SweepGoal("running", "search"), True, "stopped"),
        (SweepGoal("running", "sweep"), False, "stopped"), (None, True, "done"), (None, False, "not begun"),
    ],
)  # fmt: skip
def test_stopped_search_is_not_done_with_complete_plan(
    tmp_path: Path, goal: SweepGoal | None, is_complete: bool, state: str
) -> None:
    workspace = Workspace(tmp_path)
    if goal:
        workspace.state_path("found.wish").write_text(json.dumps(asdict(goal)))
    assert Sweeps(workspace)._state("found", alive=False, is_complete=is_complete) == state


def test_progress_of_search_lists_generations(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    notes = ProgressNotes(workspace, "found")
    for evaluations, area in ((24, 0.25), (32, 0.5)):
        notes.on_generation(evaluations, 200, area)
    phase = Sweeps(workspace).phase("found")
    assert phase == Phase(phase="searching", evaluations=32, budget=200, area=0.5, areas=[0.25, 0.5])
