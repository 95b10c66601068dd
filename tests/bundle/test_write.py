"""Every format through a release, and folders that cannot be written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyreadstat
import pytest
from notes import run_example

import sdcmap as sm
from samples import ROLES, SWAP_AND_NOISE, chosen, failed, people, plan_of
from samples import release_with_overrides as release
from sdcmap.bundle import releasing, written_draw
from sdcmap.bundle.ledger import Ledger
from sdcmap.bundle.procedure import digest_without_roles
from sdcmap.study.plan import Candidate

pytestmark = pytest.mark.usefixtures("read_here")
LABELS = {"sex": {1: "woman", 2: "man", 3: "emptied category"}, "income": {-7: "refused", -8: "not asked"}}


def survey(rows: int = 300) -> pl.DataFrame:
    """Codes as statistics files hold them: sex 1 and 2 (3 never occurs), income with user-missing -7 (-8 never)."""
    rng = np.random.default_rng(8)
    income = np.where(np.arange(rows) % 10 == 0, -7, rng.integers(100, 9000, rows))
    return pl.DataFrame(
        {
            "pid": np.arange(rows),
            "age": rng.integers(18, 60, rows),
            "sex": rng.integers(1, 3, rows),
            "region": rng.choice(["A", "B", "C"], rows),
            "income": income,
        }
    )


def read_back(folder: Path) -> tuple[pl.DataFrame, Any]:
    """The released SPSS or Stata file as another program reads it."""
    spss = folder / "data.sav"
    reader = pyreadstat.read_sav if spss.exists() else pyreadstat.read_dta
    frame, facts = reader(spss if spss.exists() else folder / "data.dta", output_format="polars", user_missing=True)
    return frame, facts


SURVEY_ROLES: dict[str, Any] = {"keys": ["age", "sex", "region"], "sensitive": "income", "identifiers": "pid"}
MASK = sm.Chain([sm.Swap(on=["sex"], rate=0.1), sm.Noise(on=["income"], variance=0.2)])
SURVEY: dict[str, Any] = {"measures": [sm.SmallCells(on=["age", "sex"]), sm.IL1s(on=["income"])]}


def released(source: Path, tmp_path: Path) -> Path:
    data = sm.read(
        source, keys=["age", "sex", "region"], sensitive="income", identifiers="pid", kinds={"income": "numeric"}
    )
    plan = plan_of(MASK, **SURVEY)
    return release(data, plan, chosen(plan)).write(tmp_path / "public")


@pytest.mark.parametrize("form", ["csv", "parquet", "sav", "dta", "xpt"])
def test_every_format_can_be_released(tmp_path: Path, form: str) -> None:
    source = tmp_path / f"survey.{form}"
    sm.write(sm.read(survey().with_columns(income=pl.col("income").replace(-7, None))), source)
    folder = released(source, tmp_path)
    names = {path.name for path in folder.iterdir()}
    assert names - {"data.sas"} == {
        f"data.{form}",
        "README.md",
        "CITATION.cff",
        "codebook.json",
        "codebook.md",
        "codebook.xml",
        "note.md",
        "note.json",
        "SHA256SUMS",
    }
    again = sm.read(folder / f"data.{form}")
    assert again.names == ("age", "sex", "region", "income") and len(again) == 300
    numbers = again.numbers("income")
    assert np.isnan(numbers).sum() == 30 and (numbers[~np.isnan(numbers)] % 1 == 0).all()
    assert run_example(folder) > 100


def test_spss_labels_and_missing_codes_are_rebuilt(tmp_path: Path) -> None:
    pyreadstat.write_sav(
        survey(), tmp_path / "survey.sav", file_label="interviewer 17, do not publish", note="drawn in Ulm",
        column_labels={"sex": "Sex of the person"}, variable_value_labels=LABELS, missing_ranges={"income": [-7, -8]},
    )  # fmt: skip
    folder = released(tmp_path / "survey.sav", tmp_path)
    frame, facts = read_back(folder)
    assert facts.variable_value_labels["sex"] == {1: "woman", 2: "man"}, "the emptied category is gone"
    assert facts.variable_value_labels["income"] == {-7: "refused"}
    assert facts.missing_ranges == {"income": [{"lo": -7, "hi": -7}]}, "only codes that still occur survive"
    assert (frame["income"] == -7).sum() == 30
    assert facts.column_names_to_labels["sex"] == "Sex of the person"
    for path in folder.iterdir():
        content = path.read_bytes()
        assert not [text for text in (b"emptied", b"not asked", b"Ulm", b"interviewer") if text in content], path.name
    (income,) = [e for e in json.loads((folder / "codebook.json").read_text()) if e["name"] == "income"]
    assert income["missing"] == [{"code": -7, "label": "refused"}]


def test_stata_letters_that_still_occur_survive(tmp_path: Path) -> None:
    frame = survey()
    cells: list[Any] = ["a" if value == -7 else float(value) for value in frame["income"]]
    frame = frame.with_columns(pl.Series("income", cells, dtype=pl.Object))
    pyreadstat.write_dta(
        frame, tmp_path / "survey.dta", missing_user_values={"income": ["a", "b"]},
        variable_value_labels={"sex": LABELS["sex"], "income": {"a": "refused", "b": "not asked"}},
    )  # fmt: skip
    folder = released(tmp_path / "survey.dta", tmp_path)
    found, facts = read_back(folder)
    assert facts.variable_value_labels == {"sex": {1: "woman", 2: "man"}, "income": {"a": "refused"}}
    assert sum(value == "a" for value in found["income"].to_list()) == 30
    assert b"not asked" not in (folder / "data.dta").read_bytes()


def test_sas_labels_are_written_as_program(tmp_path: Path) -> None:
    pyreadstat.write_sav(survey(), tmp_path / "survey.sav", variable_value_labels=LABELS)
    labeled = sm.read(tmp_path / "survey.sav", **SURVEY_ROLES)
    labeled = replace(labeled, schema=replace(labeled.schema, format="xpt"))
    plan = plan_of(sm.Swap(on=["sex"], rate=0.1), measures=SURVEY["measures"])
    folder = release(labeled, plan, chosen(plan)).write(tmp_path / "public")
    program = (folder / "data.sas").read_text()
    assert "'woman'" in program and "emptied" not in program
    assert "data.sas" in (folder / "SHA256SUMS").read_text()


def test_household_number_is_never_a_missing_code(tmp_path: Path) -> None:
    frame = survey().with_columns(hh=pl.int_range(pl.len()) // 2 + 1000)
    frame = frame.with_columns(hh=pl.when(pl.col("pid") < 4).then(99).otherwise("hh"))
    pyreadstat.write_sav(frame, tmp_path / "survey.sav", missing_ranges={"hh": [99]})
    data = sm.read(
        tmp_path / "survey.sav", keys=["age", "sex", "region"], sensitive="income", identifiers="pid", household="hh"
    )
    plan = plan_of(sm.Swap(on=["sex"], rate=0.1), measures=SURVEY["measures"])
    folder = release(data, plan, chosen(plan)).write(tmp_path / "public")
    found, _ = read_back(folder)
    assert (found["hh"] == 99).sum() == 4, "the missing ones, and no household"
    assert sorted(set(found["hh"].to_list())) == list(range(1, 150))


def test_labels_of_renumbered_strata_are_dropped(tmp_path: Path) -> None:
    frame = survey().with_columns(psu=pl.int_range(pl.len()) % 3 + 1)
    labels = {"psu": {1: "Ulm", 2: "Bonn", 3: "Kiel"}}
    pyreadstat.write_sav(frame, tmp_path / "survey.sav", variable_value_labels=labels)
    data = sm.read(tmp_path / "survey.sav", **SURVEY_ROLES, stratum="psu")
    plan = plan_of(sm.Swap(on=["sex"], rate=0.1), measures=SURVEY["measures"])
    folder = release(data, plan, chosen(plan)).write(tmp_path / "public")
    found, facts = read_back(folder)
    assert set(found["psu"]) == {1, 2, 3} and facts.variable_value_labels == {}
    assert not [path.name for path in folder.iterdir() if b"Ulm" in path.read_bytes()]


def test_text_that_looks_like_numbers_stays_text_in_csv(tmp_path: Path) -> None:
    frame = people().with_columns(
        sex=pl.col("sex").replace({"f": "01", "m": "02"}), region=pl.col("region").cast(pl.String)
    )
    frame.write_csv(tmp_path / "people.csv")
    data = sm.read(tmp_path / "people.csv", **ROLES)
    plan = plan_of(SWAP_AND_NOISE)
    folder = release(data, plan, chosen(plan)).write(tmp_path / "public")
    assert set(sm.read(folder / "data.csv")["sex"]) == {"01", "02"}


# ---- folders --------------------------------------------------------------------------------------------------
def test_release_goes_into_empty_folder_only(persons: sm.Microdata, tmp_path: Path) -> None:
    plan = plan_of(SWAP_AND_NOISE)
    (tmp_path / "empty").mkdir()
    assert (release(persons, plan, chosen(plan)).write(tmp_path / "empty") / "note.md").is_file()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("keep")
    with pytest.raises(sm.errors.SdcmapError, match="is not empty"):
        release(persons, plan, chosen(plan)).write(tmp_path / "full")
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine.txt"]


def test_unexpected_file_stops_the_release(
    persons: sm.Microdata, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that leaves a file of its own beside the data."""

    def untidy(data: sm.Microdata, path: Path) -> Path:
        (path.parent / "kept.study.parquet").write_text("masked")
        return sm.write(data, path)

    monkeypatch.setattr(written_draw, "write_file", untidy)
    plan = plan_of(SWAP_AND_NOISE)
    with pytest.raises(sm.errors.SdcmapError, match="files that a release may not contain"):
        release(persons, plan, chosen(plan)).write(tmp_path / "public")
    assert not (tmp_path / "public").exists() and Ledger.open_readonly(None).entries() == []


@pytest.mark.parametrize(("place", "message"), [("file", "is a file"), ("nowhere/public", "there is no folder")])
def test_write_rejects_unusable_target_folder(persons: sm.Microdata, tmp_path: Path, place: str, message: str) -> None:
    (tmp_path / "file").write_text("")
    plan = plan_of(SWAP_AND_NOISE)
    with pytest.raises(sm.errors.SdcmapError, match=message):
        release(persons, plan, chosen(plan)).write(tmp_path / place)


def test_read_only_folder_raises_clear_error(persons: sm.Microdata, tmp_path: Path) -> None:
    plan = plan_of(SWAP_AND_NOISE)
    locked = Path("/proc") if os.geteuid() == 0 else tmp_path / "locked"  # root may write in a locked folder
    if os.geteuid() != 0:
        locked.mkdir(mode=0o500)
    with pytest.raises(sm.errors.SdcmapError, match="cannot be written"):
        release(persons, plan, chosen(plan)).write(locked / "public")
    with pytest.raises(sm.errors.SdcmapError, match="ledger .* cannot be (written|read)"):
        release(persons, plan, chosen(plan), ledger=locked / "ledger").write(tmp_path / "public")
    assert not (tmp_path / "public").exists()


def run_script(tmp_path: Path, begin: str) -> subprocess.CompletedProcess[str]:
    """Release the people of these tests in a process of its own, after the lines `begin`."""
    script = f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parents[1])!r})
        from samples import *
        from samples import release_with_overrides as release
        persons = sm.read(people(), **ROLES)
        plan = plan_of(SWAP_AND_NOISE)
        found = release(persons, plan, chosen(plan), ledger={str(tmp_path / "ledger")!r})
    """
    code = textwrap.dedent(script) + textwrap.dedent(begin) + f"\nfound.write({str(tmp_path / 'public')!r})\n"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    """A limit on the size of files stands for the full disk: the same error at the same place."""
    done = run_script(tmp_path, "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))")
    assert done.stderr.strip().splitlines()[-1].startswith("sdcmap.errors.SdcmapError:"), done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"ledger"}


def test_killed_write_leaves_no_partial_release(persons: sm.Microdata, tmp_path: Path) -> None:
    """Killed just before the last step: there is no folder, and until its next use the ledger errs on the safe side."""
    done = run_script(tmp_path, "import os, signal; os.rename = lambda *a: os.kill(os.getpid(), signal.SIGKILL)")
    assert done.returncode == -signal.SIGKILL
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left[0].startswith(".part-") and left[1:] == ["ledger"]
    ledger = Ledger.open_readonly(tmp_path / "ledger")
    assert len(ledger.entries()) == 1
    plan = plan_of(SWAP_AND_NOISE)
    other = release(persons, plan, Candidate(SWAP_AND_NOISE, 1), ledger=tmp_path / "ledger")
    assert failed(other) == {}, "nothing was released"
    assert ledger.entries() == [] and [path.name for path in tmp_path.iterdir()] == ["ledger"]
    procedures = ledger.procedures(digest_without_roles(persons))
    assert [list(one.errors) for one in procedures] == [[0], [0]], "the try of the killed release is spent"


def test_folder_filled_meanwhile_is_left_alone_and_not_recorded(
    persons: sm.Microdata, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = releasing.release_folder.put_in_place

    def late(part: Path, folder: Path, names: set[str]) -> None:
        folder.mkdir()
        (folder / "mine.txt").write_text("keep")
        put(part, folder, names)

    monkeypatch.setattr(releasing.release_folder, "put_in_place", late)
    plan = plan_of(SWAP_AND_NOISE)
    with pytest.raises(sm.errors.SdcmapError, match="cannot be written"):
        release(persons, plan, chosen(plan), ledger=tmp_path / "ledger").write(tmp_path / "public")
    assert [path.name for path in (tmp_path / "public").iterdir()] == ["mine.txt"]
    assert Ledger.open_readonly(tmp_path / "ledger").entries() == []
