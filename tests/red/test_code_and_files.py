"""A red team and the files of a room: code that lies beside the data, paths that lead outside, texts that cost too much."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w

import sdcmap as sm
from sdcmap.web.room import Room
from waiting import until
from webroom import people as people_file
from webroom import plan_of, served

TRAPS = ("sdcmap", "pickle", "multiprocessing", "runpy", "json", "subprocess", "polars", "numpy", "uvicorn", "site")
READ_AND_SWEEP = """
import sys
import tomllib
import sdcmap as sm
from pathlib import Path
from typing import Any
from sdcmap.files.weighing import check_decoded
if __name__ == "__main__":
    data = sm.read("data.sav", keys=["a"])
    check_decoded(Path("data.parquet"), 1 << 28)
    plan = sm.Plan(sm.Swap(on="a", rate=0.1), [sm.SmallCells(on="a"), sm.Hellinger(on="a")], replicates=3)
    print(len(sm.sweep(data, plan, workers=1, engine="processes").candidate))
"""


def trapped(folder: Path) -> Path:
    """A folder with modules that leave a mark when a process imports them; the mark that none may leave."""
    mark = folder / "ran"
    for name in TRAPS:
        (folder / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write({name!r} + ' ')\n")
    return mark


# ---- 1: code from a folder runs -------------------------------------------------------------------------------
def test_reading_weighing_and_sweeping_import_nothing_from_the_folder_they_stand_in(tmp_path: Path) -> None:
    """The attacker puts pickle.py, sdcmap.py, ... beside the data and waits for somebody to work in that folder."""
    folder, script = tmp_path / "data", tmp_path / "elsewhere" / "line.py"
    folder.mkdir(), script.parent.mkdir()
    data = sm.read({"a": ["x", "y"] * 30})  # type: ignore[arg-type]
    sm.write(data, folder / "data.sav"), sm.write(data, folder / "data.parquet")
    script.write_text(READ_AND_SWEEP)
    mark = trapped(folder)
    done = subprocess.run([sys.executable, script], cwd=folder, capture_output=True, text=True)
    assert not mark.exists(), mark.read_text()
    assert done.stdout.split() == ["4"], done.stderr


def test_a_relative_entry_of_the_python_path_does_not_lead_a_helper_into_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PYTHONPATH=. was meant for another folder; a helper that starts beside the data must not read it anew."""
    from sdcmap.files.apart import environment, python

    mark = trapped(tmp_path)
    monkeypatch.setenv("PYTHONPATH", ".")
    command = python("sdcmap.files.weighing:main", "no.parquet", "1")
    assert subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True).returncode == 4  # UNREADABLE
    assert not mark.exists(), mark.read_text()


def test_a_sweep_of_the_workbench_imports_nothing_from_the_served_folder(tmp_path: Path) -> None:
    """The attacker uploads nothing: his module lies in the shared folder that somebody else serves."""
    people_file(tmp_path, 200)
    plan = plan_of(tmp_path, replicates=1, rates=(0.1,))
    (tmp_path / "cps.toml").write_text(plan.toml())
    mark = trapped(tmp_path)
    with served(Room(tmp_path.resolve())) as client:
        assert client.put("/api/studies/cps/sweep", json={"state": "running"}).status_code == 200
        until(lambda: client.get("/api/studies/cps/sweep").json()["state"] != "running", "the end of the sweep")
        status = client.get("/api/studies/cps/sweep").json()
    assert not mark.exists(), mark.read_text()
    assert status["state"] == "done", status["error"]


# ---- 2: a plan opens any file ---------------------------------------------------------------------------------
def namings(path: str) -> dict[str, dict[str, object]]:
    """Every way in which a plan can name a file: plain, as text or table in another value, in a grid, in a measure."""
    recode = {"type": "Recode", "on": ["Sex"], "hierarchy": path}
    text = f"Recode(on='Sex', hierarchy={path!r})"
    archive = f"Linkage(on='wage', archive={path!r})"
    return {
        "plain": {"methods": [recode]},
        "text in a chain": {"methods": [{"type": "Chain", "methods": [text]}]},
        "text in a text in a chain": {"methods": [{"type": "Chain", "methods": [f"Chain(methods={text})"]}]},
        "table in a chain in a chain": {
            "methods": [{"type": "Chain", "methods": [{"type": "Chain", "methods": [recode]}]}]
        },
        "grid": {"methods": [{"type": "Recode", "on": ["Sex"], "grid": {"hierarchy": [path]}}]},
        "matrix": {"methods": [{"type": "PRAM", "on": ["Sex"], "matrix": path}]},
        "archive": {"measures": [{"type": "Linkage", "on": ["wage"], "archive": path}]},
        "archive of an attack": {"measures": [{"type": "IntruderKnowledge", "on": "total", "attack": archive}]},
        "control": {"measures": [{"type": "ClosestRecord", "control_file": path}]},
        "external": {"measures": [{"type": "ExternalLink", "archive": path}]},
    }


def stated(table: Any, digest: str) -> Any:
    """The same with a digest in every table and text that names a file."""
    if isinstance(table, dict):
        named = {"hierarchy", "matrix", "archive", "control_file"} & set(table)
        return {key: stated(part, digest) for key, part in table.items()} | ({"sha256": digest} if named else {})
    if isinstance(table, list):
        return [stated(part, digest) for part in table]
    if isinstance(table, str) and "(" in table:
        return re.sub(r"((?:hierarchy|archive)='[^']*')", rf"\1, sha256='{digest}'", table)
    return table


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """A served folder with a file, a hierarchy of it, a study, and a link that leads outside."""
    home = tmp_path.resolve()
    inside = home / "inside"
    inside.mkdir()
    people_file(inside, 60)
    (home / "secret.csv").write_text("m;all\nf;all\n")
    (inside / "sexes.csv").write_text("Male;all\nFemale;all\n")
    (inside / "link.csv").symlink_to(home / "secret.csv")
    (inside / "cps.toml").write_text(plan_of(inside).toml())
    (inside / ".sdcmap").mkdir()
    (inside / ".sdcmap" / "notes.csv").write_text("m;all\nf;all\n")
    return inside


def test_a_plan_of_the_workbench_names_no_file_outside_the_room(room: Path) -> None:
    """The attacker writes a plan that names /etc/shadow, and reads its digest, or whether it exists, off the answer."""
    secret = room.parent / "secret.csv"
    digest = hashlib.sha256(secret.read_bytes()).hexdigest()[:16]
    base = tomllib.loads((room / "cps.toml").read_text())
    there = [str(secret), "../secret.csv", "link.csv", ".sdcmap/notes.csv", str(room / "../secret.csv")]
    with served(Room(room)) as client:
        for way in namings("x"):
            answers = {}
            for path in [*there, "missing.csv"]:
                for table in (namings(path)[way], stated(namings(path)[way], digest)):
                    plan = {name: part for name, part in base.items() if name in ("data", "replicates")}
                    draft = plan | {name: [*base[name], *table.get(name, [])] for name in ("methods", "measures")}
                    answer = client.post("/api/plans", json={"table": draft}).json()
                    said = client.put("/api/studies/cps/plan", json={"toml": tomli_w.dumps(draft)})
                    assert digest not in said.text or digest in answer["toml"]
                    answers[path, "sha256" in str(table)] = [
                        problem.replace(path, "PATH") for problem in answer["problems"]
                    ]
            assert all(answer == answers["missing.csv", key[1]] for key, answer in answers.items()), (way, answers)
            assert answers["missing.csv", False], way


def test_a_plan_of_the_workbench_names_files_of_its_room(room: Path) -> None:
    """And the owner's own files are found in the room, wherever the server stands; the sweep's workers find them too."""
    with served(Room(room)) as client:
        chain = {"type": "Chain", "methods": ["Recode(on='Sex', hierarchy='sexes.csv')"]}
        table = client.get("/api/studies/cps").json()["table"] | {"methods": [chain]}
        kept = client.put("/api/studies/cps/plan", json={"toml": tomli_w.dumps(table)})
        assert kept.status_code == 200 and "sha256" in kept.json()["toml"]
        client.put("/api/studies/cps/sweep", json={"state": "running"})
        until(lambda: client.get("/api/studies/cps/sweep").json()["state"] != "running", "the end of the sweep")
        status = client.get("/api/studies/cps/sweep").json()
        assert status["counts"] == {"ok": 2}, status


def test_only_one_module_opens_what_a_value_names() -> None:
    """A new method that opens a file by itself would pass the resolver: paths are opened in core/named_files.py alone."""
    rooms = (Path(sm.__file__).parent / room for room in ("methods", "risk", "utility"))
    opening = re.compile(r"\bPath\(|\bopen\(|\.read_text\(|read_csv\(|scan_")
    assert [str(path) for room in rooms for path in room.rglob("*.py") if opening.search(path.read_text())] == []
