"""`sdcmap look` on a realistic file: what it prints, and the plan that it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sdcmap as sm
from commands import sdcmap

ROWS = [
    f"{i};{20 + i % 60};M\u00fcnster {i % 7};{'-8' if i % 9 == 0 else 'k.A.' if i % 11 == 0 else f'1.{100 + i}' + ',50'};"
    f"{i % 28 + 1:02}.0{i % 9 + 1}.2001;{1 + i % 5},25"
    for i in range(300)
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "umfrage.csv"
    path.write_bytes("\r\n".join(["lfd_nr;alter;ort:[b]:;lohn;geboren;pond", *ROWS, ""]).encode("cp1252"))
    return path


def test_look_prints_dialect_roles_and_codes(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    shown = sdcmap("look", file, "--missing", "lohn=-8 (entf\u00e4llt)", "-o", tmp_path / "plan.toml").stdout
    assert "umfrage.csv is read with semicolons, decimal commas, thousands by dots, Latin-1." in shown
    assert "ort:[b]:" in shown and "identifier?" in shown and "weight?" in shown
    assert (
        "lohn=k.A. (24 values)" in shown
        and "--missing" not in shown
        and "all released columns" in shown
        and "exact, over all sets" in shown
    )
    text = (tmp_path / "plan.toml").read_text()
    assert "lohn=k.A. (24 values)" in text.partition("replicates")[0]
    source = sm.Plan.from_toml(text).data
    assert source is not None and source.missing == ("lohn=-8 (entf\u00e4llt)", "lohn=k.A.")
    assert (source.sep, source.encoding) == (";", "latin-1")
    assert set(source.proposed) == {"lfd_nr", "alter", "ort:[b]:", "lohn", "geboren", "pond"}
    facts = json.loads(sdcmap("look", file, "--missing", "lohn=-8,k.A.", "--json").stdout)
    assert {v["name"]: v["kind"] for v in facts["variables"]}["lohn"] == "numeric"
    assert facts["unique"]["all released columns"][1] == facts["rows"] == 300


def test_look_rejects_malformed_files(tmp_path: Path) -> None:
    cases = {
        "1;2\n3;4\n": "seems to have no header",
        "a;b\n1;2\n3\n": "1 row has more or fewer fields",
        "a;a\n1;2\n": "columns with the same name",
    }
    for text, message in cases.items():
        (tmp_path / "x.csv").write_text(text)
        assert message in sdcmap("look", tmp_path / "x.csv", code=2).stderr
    (tmp_path / "x.csv").write_text("a:b\n1:2\n")
    assert "was read as one column" in sdcmap("look", tmp_path / "x.csv").stdout
    assert "sep must be one of" in sdcmap("look", tmp_path / "x.csv", "--sep", "x", code=2).stderr


def test_starting_plan_states_the_edit_rules_that_look_shows(tmp_path: Path) -> None:
    ages = [(7 * i) % 60 + 10 for i in range(600)]
    rows = [f"{age},{'never' if age < 18 or age % 2 else 'married'},{'fm'[age % 2]}" for age in ages]
    (tmp_path / "x.csv").write_text("\n".join(["age,marital,sex", *rows]))
    shown = sdcmap("look", tmp_path / "x.csv", "--edits", "-o", tmp_path / "plan.toml").stdout
    text = (tmp_path / "plan.toml").read_text()
    edits = sm.Plan.from_toml(text).edits
    assert 'age < 18 -> marital = "never"' in edits and all(f"  {rule}\n" in shown for rule in edits)


def test_look_explains_plan_that_cannot_be_swept(tmp_path: Path) -> None:
    rows = [f"{i % 40 + 20},{'fm'[i % 2]},{i % 3 + 1}" for i in range(90)]
    (tmp_path / "x.csv").write_text("\n".join(["age,sex,wave", *rows]))
    said = sdcmap("look", tmp_path / "x.csv", "-o", tmp_path / "plan.toml").stderr
    assert "cannot be swept yet: 'wave' has the role wave" in said


def test_panel_can_be_swept_as_it_is_proposed(tmp_path: Path) -> None:
    """Regression test: the year was proposed as wave, and the plan refused its own proposal."""
    rows = [
        f"{100 + i // 3},{2001 + i % 3},{20 + i // 3 % 50 + i % 3},{'fm'[i // 3 % 2]},{i * 37 % 900 + i % 7}.5"
        for i in range(600)
    ]
    (tmp_path / "x.csv").write_text("\n".join(["pid,year,age,sex,wage", *rows]))
    seen = sdcmap("look", tmp_path / "x.csv", "-o", tmp_path / "plan.toml")
    assert "600 records are of 200 people (pid)" in seen.stdout and "cannot be swept" not in seen.stderr
    plan = sm.Plan.read(tmp_path / "plan.toml")
    assert plan.count > 10 and plan.data is not None and plan.data.case == ("pid",) and "year" in plan.data.keys
    assert plan.problems_with(plan.data.read(tmp_path)) == []


def test_repeated_identifiers_are_named_in_look_and_check(tmp_path: Path) -> None:
    rows = [f"p{i // 3}@example.org,{20 + i % 50},{'fm'[i % 2]},{i * 37 % 900}" for i in range(300)]
    (tmp_path / "x.csv").write_text("\n".join(["email,age,sex,wage", *rows]))
    words = (
        "Identifier email repeats: 100 values in 300 records. If its values are people, state it as case (--case email"
    )
    assert words in " ".join(sdcmap("look", tmp_path / "x.csv", "-o", tmp_path / "plan.toml").stdout.split())
    assert words in sdcmap("check", tmp_path / "plan.toml").stdout


def test_plan_of_one_candidate_is_counted_as_one(tmp_path: Path) -> None:
    rows = [f"{i % 40 + 20},{'fm'[i % 2]},{i % 3 + 1}" for i in range(90)]
    (tmp_path / "x.csv").write_text("\n".join(["age,sex,wave", *rows]))
    said = sdcmap("look", tmp_path / "x.csv", "-o", tmp_path / "plan.toml")
    assert "with 1 candidate for" in said.stderr
    assert "name; no column tells which records belong together" in (tmp_path / "plan.toml").read_text()


def test_one_statistic_is_off_where_the_other_can_be_shown(tmp_path: Path) -> None:
    rows = [f"{i * 7 % 60 + 20},{'fm'[i % 2]},{i * 37 % 900},{i * 11 % 500}" for i in range(1000)]
    (tmp_path / "x.csv").write_text("\n".join(["age,sex,wage,rent", *rows]))
    said = sdcmap("look", tmp_path / "x.csv").stdout
    assert "OutlierMembership (limit 0.7)" in said and "- OutlierMembership is off" not in said
    assert "One statistic of OutlierMembership is off: true positives at 1 %" in said
