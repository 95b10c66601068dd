"""A ledger that was damaged, set back or replaced is noticed, and says how to go on.

The last part states what is not noticed.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import sdcmap as sm
from commands import sdcmap
from samples import ROLES, SWAP_AND_NOISE, chosen, failed, people, plan_of
from samples import release_with_overrides as release
from sdcmap.bundle.known_ledgers import restart_ledger
from sdcmap.bundle.ledger import Ledger
from sdcmap.bundle.ledger_chain import Chain
from sdcmap.bundle.ledger_key import KEY_BYTES, read_key
from sdcmap.bundle.ledger_register import separate_state
from sdcmap.errors import Refused, SdcmapError

HOW_TO_GO_ON = "Restore the whole folder from a backup, or run `sdcmap ledger restart`"


@contextmanager
def database_of(ledger: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(ledger / "ledger.sqlite")) as connection:
        yield connection
        connection.commit()


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with one release."""
    home, plan = tmp_path_factory.mktemp("released"), plan_of(SWAP_AND_NOISE)
    release(sm.read(people(), **ROLES), plan, chosen(plan), ledger=home / "ledger").write(home / "public")
    return home


@pytest.fixture
def copy(released: Path, ledger: Path) -> Path:
    """A copy of that ledger, for one test."""
    shutil.copytree(released / "ledger", ledger)
    return ledger


def check_refused(ledger: Path, problem: str) -> None:
    """Check that a ledger refuses to be used, in one sentence that says how to go on."""
    for opened in (lambda: Ledger.open_readonly(ledger), lambda: Ledger.open_locked(ledger).__enter__()):
        with pytest.raises(SdcmapError, match=problem) as caught:
            opened()
        assert HOW_TO_GO_ON in str(caught.value)


# ---- the key --------------------------------------------------------------------------------------------------
def test_full_disk_leaves_no_key(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(SdcmapError, match="No space left"), Ledger.open_locked(ledger):
        pass
    assert not (ledger / "key").exists()
    monkeypatch.undo()
    with Ledger.open_locked(ledger) as opened:
        assert len(opened.key) == KEY_BYTES


@pytest.mark.parametrize("size", [0, 10, 100, 20_000])
def test_limit_on_the_size_of_files_leaves_no_partial_key(ledger: Path, size: int) -> None:
    """A limit on the size of files is met where a full disk is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        with pytest.raises(SdcmapError), Ledger.open_locked(ledger):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert read_key(ledger) is None
    with Ledger.open_locked(ledger) as opened:
        opened.record_procedure("data", "public-use", "identity", [])
    assert len(Ledger.open_readonly(ledger).procedures("data")) == 1


def test_killed_creation_is_made_again(ledger: Path) -> None:
    """The database is written before the key; without entries it loses nothing."""
    with Ledger.open_locked(ledger):
        pass
    (ledger / "key").unlink()
    with Ledger.open_locked(ledger) as opened:
        opened.record_procedure("data", "public-use", "identity", [])
    assert Ledger.open_readonly(ledger).head.entries == 1


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda text: "", "its key is damaged"),
        (lambda text: text[:40], "its key is damaged"),
        (lambda text: text.replace(text[10:12], "00" if text[10:12] != "00" else "11", 1), "its key is damaged"),
        (lambda text: text + "00", "its key is damaged"),
        (lambda text: text.split()[1][:20], "its key is damaged"),
        (lambda text: "ab" * KEY_BYTES, "its key and its database do not belong together"),
    ],
)
def test_damaged_key_is_not_used(copy: Path, damage: Callable[[str], str], problem: str) -> None:
    (copy / "key").write_text(damage((copy / "key").read_text()))
    check_refused(copy, problem)


def test_key_of_another_ledger_is_not_used(copy: Path, tmp_path: Path) -> None:
    with Ledger.open_locked(tmp_path / "other"):
        pass
    shutil.copy(tmp_path / "other" / "key", copy / "key")
    check_refused(copy, "its key and its database do not belong together")


def test_ledger_without_key_is_not_started_anew(copy: Path) -> None:
    (copy / "key").unlink()
    check_refused(copy, "its key is missing")


def test_key_without_database_is_not_used(copy: Path) -> None:
    (copy / "ledger.sqlite").write_bytes(b"")
    check_refused(copy, "its database is empty")
    (copy / "ledger.sqlite").unlink()
    check_refused(copy, "its database is missing")
    assert not (copy / "ledger.sqlite").exists()


def test_folder_of_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "people.csv").write_text("")
    with pytest.raises(SdcmapError, match="is not empty and has no ledger key"), Ledger.open_locked(tmp_path / "data"):
        pass


# ---- the entries ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "statement",
    [
        "delete from release",
        "delete from try",
        "delete from procedure",
        "delete from sketch where rowid = 1",
        "delete from procedure_sketch where rowid = (select max(rowid) from procedure_sketch)",
        "update release set columns = '[]'",
        "update release set made = '2001-01-01'",
        "update try set outcome = 'begun'",
        "update procedure set profile = 'scientific-use'",
        "update release set rowid = 7",
        "insert into release (data) values (x'00')",
        "insert into promise values (1, '/nowhere')",
        "insert into sketch select * from sketch limit 1",
    ],
)
def test_changed_row_is_noticed(copy: Path, statement: str) -> None:
    with database_of(copy) as connection:
        connection.execute(statement)
    check_refused(copy, "of its entries were deleted, changed or added by another program")


@pytest.mark.parametrize(
    "statement",
    [
        "delete from chain where number = 1",
        "update chain set state = x'' where number = 2",
        "update chain set number = number + 100 where number > 1",
        "update chain set part = 'try' where number = 1",
    ],
)
def test_changed_chain_is_noticed(copy: Path, statement: str) -> None:
    with database_of(copy) as connection:
        connection.execute(statement)
    check_refused(copy, "of its chain is missing or was changed")


def test_exchanged_entries_are_noticed(copy: Path) -> None:
    with Ledger.open_locked(copy) as opened:
        for name in ("first", "second"):
            opened.record_procedure(name, "public-use", "identity", [])
    with database_of(copy) as connection:
        rows = connection.execute("select rowid from procedure where candidates = '[]'").fetchall()
        (first,), (second,) = rows
        for old, new in ((first, 100), (second, first), (100, second)):
            connection.execute("update procedure set rowid = ? where rowid = ?", (new, old))
    check_refused(copy, "2 of its entries were deleted, changed or added")


@pytest.mark.parametrize("table", ["chain", "key_check"])
def test_ledger_that_lost_its_chain_is_not_taken_for_an_earlier_version(copy: Path, table: str) -> None:
    with database_of(copy) as connection:
        connection.execute(f"drop table {table}")
    check_refused(copy, "its key and its database do not belong together")


# ---- ledgers of earlier versions ------------------------------------------------------------------------------
def make_earlier(ledger: Path) -> None:
    """Give a ledger the form that it had before there were chains."""
    with database_of(ledger) as connection:
        for table in ("chain", "key_check", "restart"):
            connection.execute(f"drop table {table}")
    stored = read_key(ledger)
    assert stored is not None
    (ledger / "key").write_text(stored.key.hex())


def test_chain_of_earlier_version_begins_with_what_is_there(copy: Path, persons: sm.Microdata, tmp_path: Path) -> None:
    before = Ledger.open_readonly(copy)
    make_earlier(copy)
    earlier = Ledger.open_readonly(copy)
    assert (earlier.id, len(earlier.entries()), earlier.head.entries) == (before.id, 1, 0)
    plan = plan_of(SWAP_AND_NOISE)
    with Ledger.open_locked(copy) as taken:
        assert taken.head.entries == 3, "one link for the release, its procedure and its try"
    assert release(persons, plan, chosen(plan)).write(tmp_path / "again").is_dir()
    with database_of(copy) as connection:
        connection.execute("delete from release where rowid = 1")
    check_refused(copy, "of its entries were deleted")


def test_taking_over_an_earlier_version_can_be_killed_before_the_key_is_written(copy: Path) -> None:
    stored = read_key(copy)
    assert stored is not None
    (copy / "key").write_text(stored.key.hex())
    with Ledger.open_locked(copy) as opened:
        assert opened.key == stored.key
    assert read_key(copy) == stored


# ---- a ledger that was set back -------------------------------------------------------------------------------
@pytest.fixture
def study(persons: sm.Microdata, tmp_path: Path) -> sm.Study:
    plan = plan_of(SWAP_AND_NOISE)
    sm.sweep(persons, plan, tmp_path / "study", workers=1)
    return sm.Study.open(tmp_path / "study")


def test_study_and_bundle_record_the_head_of_the_chain(
    study: sm.Study, persons: sm.Microdata, tmp_path: Path, ledger: Path
) -> None:
    plan = plan_of(SWAP_AND_NOISE)
    folder = release(persons, plan, chosen(plan), study=study).write(tmp_path / "public")
    opened = Ledger.open_readonly(ledger)
    recorded = sm.Study.manifest_of(tmp_path / "study")["ledgers"]
    assert recorded == {opened.id: {"ledger": opened.id, "entries": 5, "head": opened.head.digest}}
    stated = json.loads((folder / "note.json").read_text())["ledger"]
    assert stated["entries"] == 2, "procedure and try were recorded before the file was made"
    with opened._connect() as connection:
        assert Chain(connection, opened.key).contains(stated["entries"], stated["head"])
        assert not Chain(connection, opened.key).contains(stated["entries"] + 1, stated["head"])


def test_restored_backup_is_noticed_by_the_study(
    study: sm.Study, persons: sm.Microdata, tmp_path: Path, ledger: Path, state_folder: Path
) -> None:
    """Without the study the tries and the release would be forgotten."""
    with Ledger.open_locked(ledger):
        pass
    shutil.copytree(ledger, tmp_path / "backup")
    plan = plan_of(SWAP_AND_NOISE)
    release(persons, plan, chosen(plan), study=study).write(tmp_path / "public")
    shutil.rmtree(ledger)
    shutil.move(tmp_path / "backup", ledger)
    shutil.rmtree(state_folder)  # as on another computer
    again = release(persons, plan, chosen(plan), study=study)
    assert "lacks entries that were recorded: a backup was restored" in failed(again)["ledger"]
    with pytest.raises(Refused, match="state why its releases do not matter"):
        again.write(tmp_path / "second")
    why = {"ledger": "the first file was deleted before anybody saw it"}
    assert release(persons, plan, chosen(plan), study=study, override=why).write(tmp_path / "second").is_dir()
    assert "ledger" not in failed(release(persons, plan, chosen(plan), study=study)), "the study has the new head"


def test_restored_backup_is_noticed_by_the_register(copy: Path, persons: sm.Microdata, tmp_path: Path) -> None:
    plan = plan_of(SWAP_AND_NOISE)
    shutil.copytree(copy, tmp_path / "backup")
    second = release(persons, plan, chosen(plan), override={"tries": "a test"}, again=True)
    second.write(tmp_path / "second")
    shutil.rmtree(copy)
    shutil.move(tmp_path / "backup", copy)
    assert "lacks entries that were recorded" in failed(second)["ledger"]


def test_lost_ledger_is_not_replaced_in_silence(copy: Path, persons: sm.Microdata, tmp_path: Path) -> None:
    plan = plan_of(SWAP_AND_NOISE)
    release(persons, plan, chosen(plan)).write(tmp_path / "second")
    name = Ledger.open_readonly(copy).id
    shutil.rmtree(copy)
    lost = failed(release(persons, plan, chosen(plan)))["ledger"]
    assert f"before ({name}) is gone" in lost


def test_ledger_is_restarted_with_a_reason(
    study: sm.Study, persons: sm.Microdata, tmp_path: Path, ledger: Path
) -> None:
    plan = plan_of(SWAP_AND_NOISE)
    release(persons, plan, chosen(plan), study=study).write(tmp_path / "public")
    before = Ledger.open_readonly(ledger).id
    (ledger / "key").write_bytes(b"")
    with pytest.raises(SdcmapError, match="needs a reason in words"):
        restart_ledger(ledger, " ")
    aside = restart_ledger(ledger, "the disk failed")
    assert aside.parent == ledger and (aside / "ledger.sqlite").stat().st_size > 0
    opened = Ledger.open_readonly(ledger)
    assert opened.id != before and [why for _, why in opened.restart_reasons()] == ["the disk failed"]
    assert failed(release(persons, plan_of(SWAP_AND_NOISE), chosen(plan))) == {}, "data that no study knows"
    asked = failed(release(persons, plan, chosen(plan), study=study))["ledger"]
    assert f"in another ledger ({before})" in asked


# ---- several ledgers ------------------------------------------------------------------------------------------
def test_release_searches_every_ledger_of_the_user(
    persons: sm.Microdata, tmp_path: Path, state_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(SWAP_AND_NOISE, sm.Noise(on=["income"], variance=0.3))
    release(persons, plan, chosen(plan), ledger=tmp_path / "one").write(tmp_path / "first")
    monkeypatch.delenv("SDCMAP_LEDGER")
    other = release(persons, plan, chosen(plan, 1), ledger=tmp_path / "two")
    first = Ledger.open_readonly(tmp_path / "one").id
    assert "1 earlier release " in failed(other)["earlier releases"]
    (searched,) = [check.reason for check in other.check() if check.name == "ledger"]
    assert searched.endswith(f"is used; 1 other ledger of this user was searched ({first}).")
    register = state_folder / "ledgers"
    assert register.stat().st_mode & 0o777 == 0o700
    (file,) = register.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    facts = json.loads(file.read_text())
    assert facts.keys() == {"folder", "entries", "head"} and facts["folder"] == str(tmp_path / "one")


def test_ledger_that_was_moved_away_is_named(persons: sm.Microdata, tmp_path: Path, state_folder: Path) -> None:
    plan = plan_of(SWAP_AND_NOISE)
    release(persons, plan, chosen(plan), ledger=tmp_path / "one").write(tmp_path / "first")
    name = Ledger.open_readonly(tmp_path / "one").id
    shutil.rmtree(tmp_path / "one")
    (reason,) = [check.reason for check in release(persons, plan, chosen(plan)).check() if check.name == "ledger"]
    assert f"Not found: {name}, which this user released with before." in reason


def test_damaged_ledger_beside_the_used_one_is_not_passed_over(
    copy: Path, persons: sm.Microdata, tmp_path: Path
) -> None:
    plan = plan_of(SWAP_AND_NOISE)
    with database_of(copy) as connection:
        connection.execute("delete from release")
    other = failed(release(persons, plan, chosen(plan), ledger=tmp_path / "two"))
    assert "cannot vouch for itself: 1 of its entries" in other["ledger"]


def test_damaged_register_is_not_passed_over(copy: Path, persons: sm.Microdata, state_folder: Path) -> None:
    (state_folder / "ledgers").mkdir(parents=True)
    (state_folder / "ledgers" / "0123456789ab.json").write_text("")
    plan = plan_of(SWAP_AND_NOISE)
    assert "Run `sdcmap ledger forget 0123456789ab`" in failed(release(persons, plan, chosen(plan)))["ledger"]


def test_register_that_cannot_be_written_gives_a_warning(
    persons: sm.Microdata, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    plan = plan_of(SWAP_AND_NOISE)
    with pytest.warns(UserWarning, match="could not be registered"):
        release(persons, plan, chosen(plan)).write(tmp_path / "public")


# ---- what is not noticed --------------------------------------------------------------------------------------
def test_ledger_study_and_register_set_back_together_are_noticed_by_their_bundle_alone(
    study: sm.Study, persons: sm.Microdata, tmp_path: Path, ledger: Path, state_folder: Path
) -> None:
    with Ledger.open_locked(ledger):
        pass
    study.close()
    kept = {folder: tmp_path / f"{folder.name}-backup" for folder in (ledger, tmp_path / "study", state_folder.parent)}
    for folder, backup in kept.items():
        shutil.copytree(folder, backup)
    plan = plan_of(SWAP_AND_NOISE)
    with sm.Study.open(tmp_path / "study") as opened:
        release(persons, plan, chosen(plan), study=opened).write(tmp_path / "public")
    assert "No entry that was recorded is missing." in sdcmap("ledger", "show", tmp_path / "public").stdout
    for folder, backup in kept.items():
        shutil.rmtree(folder)
        shutil.move(backup, folder)
    with sm.Study.open(tmp_path / "study") as opened:
        assert failed(release(persons, plan, chosen(plan), study=opened)) == {}, "nothing was recorded anywhere"
    said = sdcmap("ledger", "show", tmp_path / "public", code=3).stdout
    assert "lacks its entry: it was set back" in said
    shutil.rmtree(tmp_path / "public")  # set back too
    assert "No entry that was recorded is missing." in sdcmap("ledger", "show").stdout


def test_chain_made_again_with_the_key_is_noticed_by_what_was_recorded_alone(
    copy: Path, persons: sm.Microdata, released: Path
) -> None:
    stored = read_key(copy)
    assert stored is not None
    with database_of(copy) as connection:
        connection.execute("delete from release")
        connection.execute("delete from sketch")
        connection.execute("delete from chain")
        Chain(connection, stored.key).begin()
    assert Ledger.open_readonly(copy).entries() == [], "the chain is sound"
    assert "lacks its entry" in sdcmap("ledger", "show", released / "public", code=3).stdout


def test_ledger_of_another_user_is_unknown_until_it_is_named(persons: sm.Microdata, tmp_path: Path) -> None:
    plan = plan_of(SWAP_AND_NOISE, sm.Noise(on=["income"], variance=0.3))
    with separate_state(tmp_path / "another user"):
        release(persons, plan, chosen(plan), ledger=tmp_path / "theirs").write(tmp_path / "first")
    second = release(persons, plan, chosen(plan, 1))
    assert failed(second) == {}
    named = failed(release(persons, plan, chosen(plan, 1), ledger=tmp_path / "theirs"))
    assert named.keys() == {"earlier releases"}


# ---- the commands of the steward ------------------------------------------------------------------------------
def test_steward_sees_starts_anew_and_forgets_ledgers(
    copy: Path, persons: sm.Microdata, tmp_path: Path, state_folder: Path
) -> None:
    plan = plan_of(SWAP_AND_NOISE)
    release(persons, plan, chosen(plan)).write(tmp_path / "again")
    name = Ledger.open_readonly(copy).id
    shown = json.loads(sdcmap("ledger", "show", "--json").stdout)
    assert shown["ledgers"] == [{"id": name, "folder": str(copy), "releases": 2, "links": 8}]
    assert f"{name}: 2 releases, 8 links in its chain" in sdcmap("ledger", "show").stdout
    with database_of(copy) as connection:
        connection.execute("delete from release")
    assert "cannot vouch for itself" in sdcmap("ledger", "show", code=2).stderr
    assert str(copy) in sdcmap("ledger", "restart", "--reason", "the disk failed").stdout
    assert "the disk failed" in sdcmap("ledger", "show").stdout
    new = Ledger.open_readonly(copy).id
    assert [path.stem for path in (state_folder / "ledgers").iterdir()] == [new]
    sdcmap("ledger", "forget", new)
    assert list((state_folder / "ledgers").iterdir()) == []
    assert f"no ledger '{new}' is registered" in sdcmap("ledger", "forget", new, code=2).stderr
