"""A red team and the files of a room: code that lies beside the data, paths that lead outside, texts that cost too much."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import sdcmap as sm
from sdcmap.web.room import Room
from waiting import until
from webroom import people as people_file
from webroom import plan_of, served

TRAPS = ("sdcmap", "pickle", "multiprocessing", "runpy", "json", "subprocess", "polars", "numpy", "uvicorn", "site")
READ_AND_SWEEP = """
import sys
import sdcmap as sm
from pathlib import Path
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
