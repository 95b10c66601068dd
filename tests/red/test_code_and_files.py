"""Red team, files: code beside the data, paths outside the workspace, texts that are expensive to parse."""

from __future__ import annotations

import gc
import gzip
import hashlib
import re
import subprocess
import sys
import tomllib
import weakref
import zlib
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import tomli_w
from fastapi import Request

import sdcmap as sm
from commands import sdcmap
from sdcmap.core import value
from sdcmap.files import formats, reader
from sdcmap.files.decoded_size import check_decoded
from sdcmap.web.responses import response_to_error
from sdcmap.web.workspace import Workspace
from waiting import until
from web_workspace import people as people_file
from web_workspace import plan_of, serve_app

TRAPS = ("sdcmap", "pickle", "multiprocessing", "runpy", "json", "subprocess", "polars", "numpy", "uvicorn", "site")
READ_AND_SWEEP = """
import sys
import tomllib
import sdcmap as sm
from pathlib import Path
from typing import Any
from sdcmap.files.decoded_size import check_decoded
if __name__ == "__main__":
    data = sm.read("data.sav", keys=["a"])
    check_decoded(Path("data.parquet"), 1 << 28)
    plan = sm.Plan(sm.Swap(on="a", rate=0.1), [sm.SmallCells(on="a"), sm.Hellinger(on="a")], replicates=3)
    print(len(sm.sweep(data, plan, workers=1, engine="processes").candidate))
"""


def trapped(folder: Path) -> Path:
    """Create a folder with modules that write a mark file when imported; return the mark, which must not appear."""
    mark = folder / "ran"
    for name in TRAPS:
        (folder / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write({name!r} + ' ')\n")
    return mark


# ---- 1: code from a folder runs -------------------------------------------------------------------------------
def test_nothing_is_imported_from_the_working_folder(tmp_path: Path) -> None:
    """An attacker may put pickle.py, sdcmap.py, ... beside the data and wait for a user to work in that folder."""
    folder, script = tmp_path / "data", tmp_path / "elsewhere" / "line.py"
    folder.mkdir(), script.parent.mkdir()
    data = sm.read({"a": ["x", "y"] * 30})  # type: ignore[arg-type]
    sm.write(data, folder / "data.sav"), sm.write(data, folder / "data.parquet")
    script.write_text(READ_AND_SWEEP)
    mark = trapped(folder)
    done = subprocess.run([sys.executable, script], cwd=folder, capture_output=True, text=True)
    assert not mark.exists(), mark.read_text()
    assert done.stdout.split() == ["4"], done.stderr


@pytest.mark.parametrize("flags", [(), ("-P",)])
def test_command_as_module_imports_nothing_from_the_working_folder(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """`python -m sdcmap.cli` beside polars.py or lazy_loader.py; Python itself loads some standard modules before (-P)."""
    data = sm.read({"a": ["x", "y"] * 30})  # type: ignore[arg-type]
    sm.write(data, tmp_path / "data.csv")
    mark = tmp_path / "ran"
    for name in ("polars", "numpy", "lazy_loader", "typer", "rich", "filelock", "scipy", *(TRAPS if flags else ())):
        (tmp_path / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write({name!r} + ' ')\n")
    command = [sys.executable, *flags, "-m", "sdcmap.cli", "look", "data.csv"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert not mark.exists(), mark.read_text()
    assert done.returncode == 0, done.stderr


def test_relative_python_path_is_not_used_by_subprocesses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PYTHONPATH=. refers to another folder; a subprocess that starts beside the data must not resolve it again."""
    from sdcmap.files.subprocesses import python_command, subprocess_environment

    mark = trapped(tmp_path)
    monkeypatch.setenv("PYTHONPATH", ".")
    command = python_command("sdcmap.files.decoded_size:main", "no.parquet", "1")
    assert (
        subprocess.run(command, cwd=tmp_path, env=subprocess_environment(), capture_output=True).returncode == 4
    )  # UNREADABLE
    assert not mark.exists(), mark.read_text()


# ---- 2: a plan opens any file ---------------------------------------------------------------------------------
def namings(path: str) -> dict[str, dict[str, object]]:
    """Return every way in which a plan can name a file: directly, in another value, in a grid, in a measure."""
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
    """Return the plans with a digest in every table and text that names a file."""
    if isinstance(table, dict):
        named = {"hierarchy", "matrix", "archive", "control_file"} & set(table)
        return {key: stated(part, digest) for key, part in table.items()} | ({"sha256": digest} if named else {})
    if isinstance(table, list):
        return [stated(part, digest) for part in table]
    if isinstance(table, str) and "(" in table:
        return re.sub(r"((?:hierarchy|archive)='[^']*')", rf"\1, sha256='{digest}'", table)
    return table


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    """Create a workspace with a file, a hierarchy, a study, and a link to a file outside."""
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


def test_workbench_plan_cannot_name_files_outside_the_workspace(workdir: Path) -> None:
    """An attacker's plan names /etc/shadow; the answer must not reveal its digest or existence."""
    secret = workdir.parent / "secret.csv"
    digest = hashlib.sha256(secret.read_bytes()).hexdigest()[:16]
    base = tomllib.loads((workdir / "cps.toml").read_text())
    there = [str(secret), "../secret.csv", "link.csv", ".sdcmap/notes.csv"]
    with serve_app(Workspace(workdir)) as client:
        for way in namings("x"):
            answers = {}
            for path in [*there, "missing.csv"]:
                for table in (namings(path)[way], stated(namings(path)[way], digest)):
                    plan = {name: part for name, part in base.items() if name in ("data", "replicates")}
                    draft = plan | {name: [*base[name], *table.get(name, [])] for name in ("methods", "measures")}
                    answer = client.post("/api/plans", json={"table": draft}).json()
                    answers[path, "sha256" in str(table)] = [
                        problem.replace(path, "PATH") for problem in answer["problems"]
                    ]
            assert all(answer == answers["missing.csv", key[1]] for key, answer in answers.items()), (way, answers)
            assert answers["missing.csv", False], way
        draft["methods"] = [*base["methods"], *namings(str(secret))["text in a text in a chain"]["methods"]]  # type: ignore[misc]
        assert digest not in client.put("/api/studies/cps/plan", json={"toml": tomli_w.dumps(draft)}).text


def test_workbench_sweep_reads_workspace_files_and_runs_no_code(workdir: Path) -> None:
    """The owner's own files are found in the room, wherever the server stands, by the sweep's process too; and the
    attacker's module that lies in the served folder (item 1) is not imported."""
    mark = trapped(workdir)
    with serve_app(Workspace(workdir)) as client:
        chain = {"type": "Chain", "methods": ["Recode(on='Sex', hierarchy='sexes.csv')"]}
        table = client.get("/api/studies/cps").json()["table"] | {"methods": [chain]}
        kept = client.put("/api/studies/cps/plan", json={"toml": tomli_w.dumps(table)})
        assert kept.status_code == 200 and "sha256" in kept.json()["toml"]
        client.put("/api/studies/cps/sweep", json={"state": "running"})
        until(lambda: client.get("/api/studies/cps/sweep").json()["state"] != "running", "the end of the sweep")
        status = client.get("/api/studies/cps/sweep").json()
        assert status["counts"] == {"ok": 2}, status
    assert not mark.exists(), mark.read_text()


def test_only_one_module_opens_what_a_value_names() -> None:
    """Only core/named_files.py may open paths; a method that opens files itself would bypass its checks."""
    rooms = (Path(sm.__file__).parent / workdir for workdir in ("methods", "risk", "utility"))
    opening = re.compile(r"\bPath\(|\bopen\(|\.read_text\(|read_csv\(|scan_(?:csv|parquet|ipc|ndjson)")
    assert [str(path) for workdir in rooms for path in workdir.rglob("*.py") if opening.search(path.read_text())] == []


# ---- 3: parsing costs without limit ---------------------------------------------------------------------------
def nested(levels: int, inside: str = "Identity") -> str:
    return "Chain(methods=" * levels + inside + ")" * levels


def test_nested_text_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """462 bytes of Chain(methods=Chain(... took more than a minute: each level was read twice."""
    read: list[object] = []
    decode = value.decode
    monkeypatch.setattr(value, "decode", lambda spec, base: read.append(spec) or decode(spec, base))
    value.parse(nested(12), sm.Method)
    assert len(read) == 13


DEEP = [nested(17), nested(500), nested(5, "'" * 3), "Chain(methods=" + "[" * 90 + "]" * 90 + ")", "-" * 200_000 + "1"]


@pytest.mark.parametrize("text", DEEP, ids=lambda text: text[:30])
def test_deeply_nested_text_is_rejected(text: str) -> None:
    with pytest.raises(sm.errors.PlanError) as refused:
        value.parse(text, sm.Method)
    assert len(str(refused.value)) < 500


HOSTILE_TOML = {
    "dotted key": ".".join("a" * 200_000) + " = 1",
    "spaced dots": " . ".join("a" * 100_000) + " = 1",
    "quoted dots": ".".join(['"a b"'] * 60_000) + " = 1",
    "dotted header": "[" + ".".join("a" * 200_000) + "]",
    "brackets": "a = " + "[" * 100_000 + "]" * 100_000,
    "few brackets": "a = " + "[" * 300 + "]" * 300,
    "braces": "a = " + "{a=" * 300 + "1" + "}" * 300,
    "digits": "replicates = 1" + "0" * 4_000,
    "more digits": "replicates = 1" + "0" * 6_000,
    "hexadecimal": "replicates = 0x1" + "0" * 400_000,
    "subsets": "[[methods]]\ntype = 'Swap'\nrate = 0.1\ngrid.on = {subsets = ["
    + ",".join(f"'{i}'" for i in range(40_000)) + "], sizes = [20000, 19999, 19998]}",
    "sizes": "[[methods]]\ntype='Swap'\nrate=0.1\ngrid.on={subsets=['a','b'],sizes=[" + "1," * 100_000 + "]}",
    "many problems": "[[methods]]\ntype='Noise'\non='a'\ngrid.variance=["
    + ",".join(f"-{i}" for i in range(1, 15_000)) + "]",
    "unknown parts": "\n".join(f"methodz{i} = 1" for i in range(20_000)),
}  # fmt: skip


SAID = dict.fromkeys(("dotted key", "quoted dots", "few brackets", "braces"), "at most 32 levels deep")
SAID |= dict.fromkeys(("digits", "more digits", "hexadecimal"), "at most 64 bits")


@pytest.mark.parametrize("name", HOSTILE_TOML)
def test_too_expensive_plan_is_rejected_early(name: str) -> None:
    """Deep keys and brackets, endless numbers, endless grids: one sentence, or a short list of them; and for its reason,
    not because it is no plan anyway."""
    with pytest.raises(sm.errors.PlanError, match=SAID.get(name)) as refused:
        sm.Plan.from_toml(HOSTILE_TOML[name])
    assert len(refused.value.problems) <= 101 and len(str(refused.value)) < 50_000


def test_overflowing_numbers_are_rejected() -> None:
    """10**400 is whole and finite, and no float, no count and no index can be made of it."""
    for number in (10**400, -(10**400)):
        for made, given in (
            (sm.Swap, {"on": "a", "rate": number}),
            (sm.SmallCells, {"n": number}),
            (sm.Threshold, {"risk": number}),
        ):
            with pytest.raises(sm.errors.PlanError):
                made(**given)
    with pytest.raises(sm.errors.PlanError, match="whole number of at most 64 bits"):
        sm.SmallCells(n=1 << 64)


def test_service_limits_requests(workdir: Path) -> None:
    """Regression test: deep tables, huge numbers and huge plans gave internal errors, or no answer."""
    deep: Any = 1
    for _ in range(600):
        deep = {"a": deep}
    with serve_app(Workspace(workdir)) as client:
        for name in ("dotted key", "few brackets", "more digits", "subsets"):
            answer = client.post("/api/plans", json={"toml": HOSTILE_TOML[name]})
            assert answer.status_code == 200 and len(answer.json()["problems"]) == 1
            assert client.put("/api/studies/cps/plan", json={"toml": HOSTILE_TOML[name]}).status_code == 422
        for table in (deep, {"replicates": 10**300}, {"replicates": 1e308}, {"a": [deep]}):
            for address, body in (("/api/plans", {"table": table}), ("/api/studies/cps/choices", {"rule": table})):
                assert client.post(address, json=body).status_code in (200, 404, 422)
        raw = {"content-type": "application/json"}
        for content in ('{"toml":' * 5_000, "[" * 900_000, '{"table":{"a":1' + "0" * 5_000 + "}}"):
            assert client.post("/api/plans", content=content, headers=raw).status_code in (400, 422)
        wide = "[[methods]]\ntype='Noise'\non='wage'\ngrid.variance=[" + ",".join(f"{i}.5" for i in range(20_001)) + "]"
        said = client.post("/api/plans", json={"toml": wide + "\n[[measures]]\ntype='Hellinger'"}).json()["problems"]
        assert len(said) == 1 and "at most 20,000 methods" in said[0]


def test_file_with_too_many_columns_is_rejected_by_header(tmp_path: Path) -> None:
    """100,000 columns took minutes: names were compared with each other, one by one."""
    wide = tmp_path / "wide.csv"
    wide.write_text(",".join(f"c{i}" for i in range(100_000)) + "\n")
    with pytest.raises(sm.errors.SchemaError, match="100,000 columns; at most 10,000 can be read"):
        sm.read(wide)
    with pytest.raises(sm.errors.SchemaError, match="at most 10,000 can be read"):
        sm.read({f"c{i}": [1] for i in range(10_001)})  # type: ignore[arg-type]


def test_search_for_hints_is_limited() -> None:
    """The search for a similar name among a million names must not take an hour."""

    class Counted(list[str]):
        asked = 0

        def __iter__(self) -> Any:
            for name in super().__iter__():
                self.asked += 1
                yield name

    names = Counted(f"column{i}" for i in range(200_000))
    assert sm.errors.did_you_mean("colum5", names) == " Did you mean 'column5'?"
    assert names.asked <= 1_001
    assert sm.errors.did_you_mean("x" * 1_000_000, ["x" * 999_999]) == ""


# ---- 4: gzip content named .csv -------------------------------------------------------------------------------
PACKERS = {"gzip": gzip.compress, "zlib": zlib.compress}


@pytest.mark.parametrize("packer", PACKERS)
def test_compressed_text_is_rejected(tmp_path: Path, packer: str) -> None:
    """8 MB of gzip named people.csv became 4.5 GB in the server: only .parquet, .sav, ... were weighed."""
    path = tmp_path / "people.csv"
    path.write_bytes(PACKERS[packer](b"a\n" + b"1\n" * 1_000_000))
    for look in (lambda: check_decoded(path, 15 << 20), lambda: sm.read(path), lambda: sm.read(path, **STATED)):
        with pytest.raises(sm.errors.SchemaError, match="is compressed .* decompress it first"):
            look()


STATED = {"sep": ",", "decimal": ".", "thousands": "none", "quote": '"', "encoding": "utf-8"}


def test_error_does_not_keep_data_alive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Regression test: after a failed read, the error kept gigabytes of data alive."""

    class Large:
        """Data of a reader."""

    held: list[weakref.ref[Large]] = []

    def failing_reader(path: Path, missing: tuple[str, ...]) -> Any:
        table = Large()
        held.append(weakref.ref(table))
        raise ValueError(table)

    (tmp_path / "people.csv").write_text("a\n1\n")
    monkeypatch.setattr(reader, "format_of", lambda path: replace(formats.format_of(path), read=failing_reader))
    gc.disable()
    try:
        with pytest.raises(sm.errors.SchemaError) as kept:
            sm.read(tmp_path / "people.csv")
        assert kept.value is not None and held[0]() is None
        try:
            failing_reader(tmp_path, ())
        except ValueError as fault:
            fault.args = ()
            response_to_error(Request({"type": "http", "path": "/api", "headers": [], "server": ("x", 1)}), fault)
            assert held[1]() is None
    finally:
        gc.enable()


# ---- 5: a column that the format cannot hold ------------------------------------------------------------------
def test_csv_rejects_durations(tmp_path: Path) -> None:
    """`sdcmap mask` on a file with a Duration column ended with a fault of ours, exit code 1."""
    spans = [timedelta(days=day % 7, seconds=day) for day in range(60)]
    pl.DataFrame({"stay": spans, "a": ["x", "y"] * 30}).write_parquet(tmp_path / "stays.parquet")
    out = tmp_path / "stays.study.csv"
    said = sdcmap("mask", tmp_path / "stays.parquet", "--method", "Swap(on='a', rate=0.1)", "-o", out, code=2)
    assert "column 'stay' is a Duration, which CSV cannot store" in said.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["stays.parquet"]
