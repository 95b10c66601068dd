"""Several records of one person: they are held out together, and their number is never released."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.bundle.pattern_check import check_missing_patterns
from sdcmap.core.refits import assign_folds
from sdcmap.core.streams import Stream
from sdcmap.explore.edit_proposals import propose_edits
from sdcmap.files.working_copy import open_copy, write_copy
from sdcmap.risk._outlying_units import ExtremeUnits, OutlyingUnits, find_largest
from sdcmap.study.plan import Plan
from sdcmap.study.plan_remarks import remarks
from sdcmap.study.profiles import find_profile

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


# ---- parity: a panel is protected and measured as the same file with the person as household --------------------
AMOUNTS = ("wage", "rent", "savings")
ONCE = Stream.of_seed(1, "once")


def steady_panel(case: str = "case", people: int = 300, waves: int = 4) -> sm.Microdata:
    """Return people whose amounts hardly change from year to year; some save less than nothing."""
    rng = np.random.default_rng(5)
    person = np.repeat(np.arange(people), waves)
    frame = {"pid": NUMBERS[:1].item() + person, "region": rng.choice(list("abcd"), people)[person]}
    for name, shift in (("wage", 0.0), ("rent", 0.0), ("savings", 60.0)):
        frame[name] = (rng.lognormal(4, 2, people)[person] * rng.uniform(0.99, 1.01, len(person)) - shift).round(2)
    return sm.read(pl.DataFrame(frame), keys="region", numeric=list(AMOUNTS), **{case: "pid"})


def rich_panel(case: str = "case") -> tuple[sm.Microdata, np.ndarray]:
    """Return a panel with one person whose twelve wages are larger than all others, and these wages."""
    rng = np.random.default_rng(6)
    person = np.repeat(np.arange(101), [12, *[3] * 100])
    wage = np.round(rng.lognormal(3, 0.5, 101)[person] * rng.uniform(0.9, 1.1, len(person)))
    wage[:12] = 5000 + 7 * np.arange(12)
    wage[:12:2] = 5021  # a value that nobody else has, in six years
    frame = pl.DataFrame({"pid": 10**6 + person, "sex": rng.choice(["f", "m"], len(person)), "wage": wage})
    return sm.read(frame, keys="sex", numeric="wage", **{case: "pid"}), wage[:12]


def stated(data: sm.Microdata, method: sm.Method, measure: sm.Measure) -> float:
    return sm.score(data, sm.mask(data, method, seed=1), measure, method=method, seed=1).popitem()[1].value


@pytest.mark.parametrize(
    ("measure", "least"), [(sm.risk.OutlierMembership(times=8), 0.8), (sm.risk.ExtremeValues("wage", times=8), 0.3)]
)
def test_refits_leave_out_whole_people(measure: sm.Measure, least: float) -> None:
    """Groups of three average the years of one person. Both measures see it, as with the number as household."""
    average = sm.Chain([sm.methods.Microaggregate(on=(name,), size=3) for name in AMOUNTS])
    values = [stated(steady_panel(role), average, measure) for role in ("case", "household")]
    assert values[0] == pytest.approx(values[1]) and values[0] > least


def test_measures_of_the_few_count_people() -> None:
    data, _ = rich_panel()
    unit = ExtremeUnits(("wage",), 10)(data)
    assert len(np.unique(unit[unit >= 0])) == 10 and data.people == 101
    assert len(np.unique(find_largest(data.numbers("wage"), data.units, 10))) == 10
    assert OutlyingUnits(share=0.4, fewest=4, most=1.0).targets(data).shape == (41,)


@pytest.mark.parametrize(
    "method",
    [
        sm.methods.ProtectTails("wage"),
        sm.methods.Synthesize(("wage",), leaf=5),
        sm.methods.Synthesize(("sex", "wage"), leaf=5, model="copula"),
        sm.Chain([sm.methods.Synthesize(("wage",)), sm.methods.RestoreMoments(("wage",), of="variance")]),
    ],
)
def test_values_of_one_person_are_not_released(method: sm.Method) -> None:
    """Twelve years of one person are no tail of twelve units."""
    data, own = rich_panel()
    released = method.apply(data, ONCE).numbers("wage")
    assert not np.isin(released, own).any() and released.max() < 1000
    at_home = method.apply(rich_panel("household")[0], ONCE).numbers("wage")
    assert np.array_equal(released, at_home)


def test_patterns_of_missing_values_are_shared_by_people() -> None:
    """One person leaves out the same answers in twelve years; nobody else does."""
    rng = np.random.default_rng(7)
    person = np.repeat(np.arange(61), [12, *[3] * 60])
    frame = pl.DataFrame(
        {"pid": 10**6 + person} | {name: rng.lognormal(3, 1, len(person)).round(1) for name in AMOUNTS}
    )
    for name, years in (("wage", person == 0), ("rent", person == 0), ("savings", person < 20)):
        frame = frame.with_columns(pl.when(pl.Series(years)).then(None).otherwise(name).alias(name))
    for role in ("case", "household"):
        data = sm.read(frame, numeric=list(AMOUNTS), **{role: "pid"})
        noise, mask = sm.Noise(on=AMOUNTS, variance=0.5), sm.methods.MaskMissing(AMOUNTS, 3)
        seen = check_missing_patterns(data, noise, noise.apply(data, ONCE), find_profile("public-use"))
        assert not seen.passed and "12 of 192 records have" in seen.reason
        assert ("than 3 people share" if role == "case" else "than 3 households share") in seen.reason
        masked = mask.apply(data, ONCE)
        assert check_missing_patterns(data, mask, masked, find_profile("public-use")).passed
    records = sm.read(frame.drop("pid"), numeric=list(AMOUNTS))
    assert check_missing_patterns(records, noise, noise.apply(records, ONCE), find_profile("public-use")).passed
    few = sm.read(frame.filter(pl.Series(person < 2)), numeric=list(AMOUNTS), case="pid")
    with pytest.raises(sm.errors.Infeasible, match="there are only 2"):
        sm.mask(few, mask, seed=1)


def test_records_of_one_person_are_no_crowd() -> None:
    """Ten people with keys of their own, in five years each: five equal records are one person."""
    person = np.repeat(np.arange(20), 5)
    region = np.where(person < 10, person.astype(str), "big")
    frame = pl.DataFrame({"pid": 10**6 + person, "region": region})
    data = sm.read(frame, keys="region", case="pid")
    k3, risk = sm.risk.ExactMatch(on="region", k=3), sm.risk.RecordRisk(on="region")
    assert [stated(data, sm.Identity(), one) for one in (k3, risk)] == [0.5, 1.0]
    assert [stated(data.with_roles(pid="drop"), sm.Identity(), one) for one in (k3, risk)] == [0.0, 0.2]


def test_rules_need_thirty_people() -> None:
    """Sixty records say that children earn nothing: of sixty people it is a rule, of two people it is theirs."""
    age = np.r_[np.full(60, 9.0), np.linspace(20, 80, 540).round()]
    wage = np.r_[np.zeros(60), 100.0 + np.arange(540)]
    frame = pl.DataFrame({"pid": 10**6 + np.r_[np.arange(60) // 30, 10 + np.arange(540)], "age": age, "wage": wage})
    frame = frame.with_columns(child=pl.Series(np.where(age < 18, "yes", "no")))
    rule = 'child = "yes" -> wage = 0'
    people = propose_edits(sm.read(frame.drop("pid"), keys="child", numeric=["age", "wage"]))
    panel = propose_edits(sm.read(frame, keys="child", numeric=["age", "wage"], case="pid"))
    assert rule in people and rule not in panel
