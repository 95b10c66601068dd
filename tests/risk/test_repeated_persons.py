"""Several records of one person: they are held out together, and their number is never released."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.core.refits import assign_folds
from sdcmap.files.working_copy import open_copy, write_copy
from sdcmap.study.plan import Plan
from sdcmap.study.plan_remarks import remarks

PEOPLE, WAVES = 120, 3
NUMBERS = np.random.default_rng(1).permutation(10**6)[:PEOPLE] + 10**6


def panel(case: str = "case") -> sm.Microdata:
    """Return people who answer alike in every wave; two records have no number."""
    rng = np.random.default_rng(2)
    person = rng.permutation(np.repeat(np.arange(PEOPLE), WAVES))
    wage = rng.lognormal(3, 1, PEOPLE).round(2)
    frame = pl.DataFrame(
        {"pid": NUMBERS[person], "region": (person % 4).astype(str), "wage": wage[person], "rent": wage[person][::-1]}
    )
    frame = frame.with_columns(pid=pl.when(pl.int_range(pl.len()) < 2).then(None).otherwise("pid"))
    return sm.read(frame, keys="region", numeric=["wage", "rent"], **{case: "pid"})


def test_unit_is_the_person_and_a_record_without_number_is_its_own() -> None:
    data = panel()
    person = data["pid"]
    same = person[:, None] == person
    same[:2], same[:, :2] = False, False
    np.fill_diagonal(same, True)
    assert np.array_equal(data.units[:, None] == data.units, same)
    in_households = data.with_roles(pid="household")
    assert np.array_equal(in_households.units, data.units)
    assert len(np.unique(data.with_roles(pid="drop").units)) == len(data)


def test_folds_and_removed_rows_hold_out_whole_people() -> None:
    data = panel()
    fold = assign_folds(data, 0.2, (), np.random.default_rng(0))
    assert all(len(set(fold[data.units == unit])) == 1 for unit in range(data.units.max()))
    split = sm.risk.ClosestRecord(on=["wage"]).split(data, data.change(None, {}), None, np.random.default_rng(0))
    assert not set(split.units[0]) & set(split.units[1])
    outside = set(np.unique(data.units[split.non_members.origin]))
    assert not outside & set(data.units[split.released.origin]) and len(split.non_members) >= 0.2 * len(data) - 1


def test_other_years_of_a_person_are_no_control() -> None:
    """An unmasked file reveals everybody; a person whose other years are released is not outside."""
    measure = sm.risk.ClosestRecord(on=["wage"])
    as_people, as_rows = (sm.score(data, data, measure).popitem()[1] for data in (panel(), panel("drop")))
    assert as_people.value > 0.95 and as_rows.value < 0.6
    assert as_people.se < 0.05


def test_number_of_a_case_stays_private(tmp_path: Path) -> None:
    data = panel()
    copy = open_copy(write_copy(data, tmp_path), data.digest)  # a digest of the cases, not of their numbers
    assert np.array_equal(copy.units[:, None] == copy.units, data.units[:, None] == data.units)
    assert np.nanmax(copy["pid"]) < PEOPLE and not np.isin(copy["pid"], NUMBERS).any()
    assert "pid" in data.unreleased_columns and "pid" not in (*data.content_columns, *data.knowable)
    with pytest.raises(sm.errors.SchemaError, match="cannot mask 'pid': it is the file's case"):
        sm.mask(data, sm.Swap(on="pid", rate=0.1), seed=1)
    other = data.units.copy()
    other[[3, 4]] = other[[4, 3]]
    exchanged = sm.Microdata(data.schema, {**data.columns, "pid": data.columns["pid"].take(np.argsort(other))})
    assert exchanged.digest != data.digest


def test_look_and_check_say_that_people_repeat() -> None:
    frame = panel().frame()
    seen = sm.look(sm.read(frame))
    assert {v.name: v.role for v in seen.variables}["pid"] == "case"
    plan = Plan(methods=(sm.Noise(on=["wage"]),), measures=(sm.risk.ClosestRecord(on=["wage"]),))
    said = " ".join(remarks(panel(), plan, plan))
    assert f"The 360 records are of {len(np.unique(panel().units))} people (pid)" in said
