"""Edit rules that masking breaks, and those that a file proposes."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sdcmap as sm
from sdcmap.core.edit_rule import parse_edit
from sdcmap.explore.edit_proposals import propose_edits
from sdcmap.explore.starting_plan import starting_plan
from sdcmap.methods import Identity
from sdcmap.study.profiles import find_profile

RULE = 'age < 18 -> marital = "never"'


def family(rows: int = 2000) -> sm.Microdata:
    """Return a file in which nobody under 18 is married, only women are pregnant, and region is unrelated."""
    rng = np.random.default_rng(1)
    age, sex = rng.integers(0, 90, rows), rng.choice(["f", "m"], rows)
    frame = pl.DataFrame(
        {
            "age": age,
            "sex": sex,
            "marital": np.where(age < 18, "never", rng.choice(["never", "married", "widowed"], rows)),
            "pregnant": np.where((sex == "f") & (rng.random(rows) < 0.1), "yes", "no"),
            "region": rng.choice(["N", "S", "E", "W"], rows),
        }
    )
    return sm.read(frame, keys=["sex", "marital", "pregnant", "region"], numeric="age")


def test_counts_broken_rules() -> None:
    data = family()
    masked = sm.mask(data, sm.Swap(on=["marital"], rate=0.2), seed=1)
    measure = sm.utility.EditViolations([RULE, 'sex = "m" -> pregnant = "no"'])
    estimate = measure.apply(data, masked, np.random.default_rng(0))
    children = (masked["age"] < 18) & (masked["marital"] != "never")
    assert estimate.value == pytest.approx(children.mean()) and estimate.value > 0.02
    assert estimate.parts["marked"] == estimate.value, "nobody broke these rules before: all are marked as masked"
    assert not (children & (masked["marital"] == data["marital"])).any()


def test_violations_of_original_do_not_count() -> None:
    data = family()
    measure = sm.utility.EditViolations('age > 50 -> region = "N"')
    estimate = measure.apply(data, data.change(None, {}), np.random.default_rng(0))
    assert estimate.value == 0 and estimate.parts["original"] > 0.3 and estimate.parts["marked"] == 0


def test_rules_are_counted_where_intervals_decide_them() -> None:
    """An age in (10, 20] may be above or below 18, so only younger children break the rule."""
    data = family()
    masked = sm.mask(data, sm.Chain([sm.Recode(on=["age"], width=10), sm.Swap(on=["marital"], rate=0.3)]), seed=1)
    married = masked["marital"] != "never"
    children = married & (data["age"] <= 10)
    estimate = sm.utility.EditViolations(RULE).apply(data, masked, np.random.default_rng(0))
    assert estimate.value == children.mean() > 0.01
    adults = sm.utility.EditViolations('age >= 18 -> marital = "never"').apply(data, masked, np.random.default_rng(0))
    assert adults.parts["released"] == (married & (data["age"] > 20)).mean()


def test_rules_on_merged_categories_are_left_out() -> None:
    data, other = family(), 'sex = "m" -> pregnant = "no"'
    merge = sm.Recode(on=["marital"], merge=[["never", "widowed"]])
    masked = sm.mask(data, sm.Chain([merge, sm.Swap(on=["sex"], rate=0.1)]), seed=1)
    with pytest.raises(sm.errors.Undefined, match="in the released file, edit rule .* 'marital' was recoded"):
        sm.utility.EditViolations(RULE).apply(data, masked, np.random.default_rng(0))
    both = sm.utility.EditViolations([RULE, other]).apply(data, masked, np.random.default_rng(0))
    assert both.value == sm.utility.EditViolations(other).apply(data, masked, np.random.default_rng(0)).value > 0
    assert [lost.attack for lost in both.skipped] == [RULE]


def test_proposed_rules_match_generator() -> None:
    """The proposed rules are those that generated the file, and no record breaks them."""
    data = family()
    rules = propose_edits(data)
    assert set(rules) == {RULE, 'sex = "m" -> pregnant = "no"'}, "a rule that says the same is left out"
    assert not any(parse_edit(rule).violations(data).any() for rule in rules)


def workers(rows: int = 3000) -> pl.DataFrame:
    """Return people of whom children have no wage and no hours, others without work no hours, and districts one region."""
    rng = np.random.default_rng(2)
    age, work = rng.integers(0, 90, rows), rng.choice(["employed", "unemployed", "retired"], rows)
    district = rng.integers(0, 8, rows).astype(str)
    wage = np.where(age < 16, np.nan, rng.lognormal(8, 0.5, rows).round(2))
    hours = np.where(age < 16, np.nan, np.where(work == "employed", rng.integers(5, 60, rows), 0))
    region = np.array(["North", "South", "West"])[district.astype(int) % 3]
    illness = np.where(work == "retired", "yes", rng.choice(["yes", "no"], rows))
    numbers = {"age": age, "hours": hours, "amount": rng.normal(0, 1, rows)}
    frame = pl.DataFrame(numbers | {"work": work, "district": district, "region": region, "illness": illness})
    return frame.with_columns(wage=pl.Series(wage).fill_nan(None), hours=pl.Series(hours).fill_nan(None))


def read_workers() -> sm.Microdata:
    return sm.read(
        workers(), keys=["work", "district", "region"], numeric=["age", "hours", "amount", "wage"], sensitive="illness"
    )


def test_values_that_are_missing_for_a_reason_are_proposed() -> None:
    data = read_workers()
    rules = propose_edits(data)
    assert {"age < 16 -> wage is missing", "age < 16 -> hours is missing"} <= set(rules)
    assert {"age > 15 -> wage is not missing", "age > 15 -> hours is not missing"} <= set(rules)
    assert {'work = "unemployed" -> hours = 0', 'work = "retired" -> hours = 0'} <= set(rules)
    assert len(set(rules)) == len(rules)
    assert not any(rule.startswith("hours") for rule in rules), "the rules on work say it already"
    assert sum("region" in rule for rule in rules) == 6, "at most six rules on two columns"
    assert not any("-> illness" in rule for rule in rules), "all retired persons are ill, which is no rule to enforce"
    assert not any(parse_edit(rule).violations(data).any() for rule in rules)


@pytest.mark.parametrize(("people", "is_proposed"), [(9, False), (12, True)])
def test_no_bound_tells_the_value_of_few_people(people: int, is_proposed: bool) -> None:
    """A release publishes the rules. With few poor people next to a bound, it would tell what the richest of them has."""
    rng = np.random.default_rng(5)
    wage = np.concatenate([rng.uniform(0, 4000, 500), rng.uniform(4901, 4999, people), rng.uniform(5100, 9000, 500)])
    frame = pl.DataFrame({"wage": wage.round(2), "rich": np.where(wage > 5000, "yes", "no")})
    rules = propose_edits(sm.read(frame, keys="rich", numeric="wage"))
    assert ('wage > 5000 -> rich = "yes"' in rules) == is_proposed
    assert any(rule.startswith("wage <") for rule in rules), "many rich people are next to the other bound"


def test_small_file_gets_a_coarser_bound() -> None:
    """In 200 or 400 records, too few people are 16 years old; enough are from 15 to 19, or 16 or 17."""
    for rows, age in ((200, 15), (400, 16)):
        frame = workers(rows)
        assert (frame["age"] == 16).sum() < 10
        rules = propose_edits(sm.read(frame, keys="work", numeric=["age", "wage"]))
        assert f"age < {age} -> wage is missing" in rules


def travelers(rows: int = 2000) -> sm.Microdata:
    """Return people who take one of four ways to work, each an indicator."""
    rng = np.random.default_rng(3)
    way = rng.choice(4, rows, p=[0.55, 0.25, 0.15, 0.05])
    ways = {name: (way == code).astype(int) for code, name in enumerate(("car", "bus", "bike", "on foot"))}
    return sm.read(pl.DataFrame(ways | {"region": rng.choice(list("abc"), rows)}), keys=[*ways, "region"])


def test_a_set_of_indicators_is_one_rule() -> None:
    assert propose_edits(travelers()) == ("exactly one of car, bus, bike, `on foot` = 1",)


def test_rules_must_hold_in_all_records() -> None:
    """Rules are looked for in a part of a large file, but one record that breaks them is enough to drop them."""
    frame = pl.concat([workers(30_000)] * 2)
    assert "age < 16 -> wage is missing" in propose_edits(sm.read(frame, keys="work", numeric=["age", "wage"]))
    children = np.flatnonzero(frame["age"].to_numpy() < 16)
    not_sampled = int(children[children % 3 == 1][0])
    frame = frame.with_columns(wage=pl.when(pl.int_range(pl.len()) == not_sampled).then(9.0).otherwise("wage"))
    assert not any("wage is missing" in r for r in propose_edits(sm.read(frame, keys="work", numeric=["age", "wage"])))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), rows=st.integers(1, 400))
def test_proposed_rules_hold_in_any_file(seed: int, rows: int) -> None:
    """Names and categories with quotes, dates, truth values, gaps and empty columns give no error and no wrong rule."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, 3, rows)
    gaps = rng.random(rows) < 0.2
    days = np.array(["2020-01-01", "2021-06-30", "2022-12-31"]).astype("datetime64[D]")
    frame = pl.DataFrame({
        'say "x"': np.array(['a "b"', "c`d", "e"])[hidden], "the `y`": hidden * 1.5, "is": hidden > 0,
        "empty": pl.Series([None] * rows, dtype=pl.Float64), "day": days[hidden],
        "and": np.where(gaps | (hidden == 1), np.nan, rng.normal(0, 1e6, rows)),
        "missing": pl.Series([None if gap else "x" for gap in gaps], dtype=pl.String),
    }).with_columns(pl.col("and").fill_nan(None))  # fmt: skip
    data = sm.read(frame, keys=['say "x"', "is", "day", "missing"], numeric=["the `y`", "and"])
    rules = propose_edits(data)
    assert not any(parse_edit(rule).violations(data).any() for rule in rules)
    if rows == 400:
        assert any("day" in rule for rule in rules)


def test_categories_that_are_no_texts_are_written_as_they_are_read() -> None:
    flag = np.arange(600) % 3 == 0
    frame = pl.DataFrame({"flag": flag, "kind": np.where(flag, "new", np.where(np.arange(600) % 2, "old", "older"))})
    assert 'flag = "true" -> kind = "new"' in propose_edits(sm.read(frame, keys=["flag", "kind"]))


def test_small_file_proposes_no_rules() -> None:
    assert propose_edits(family(100)) == ()


def test_starting_plan_keeps_what_every_record_satisfies() -> None:
    """In every candidate that still has the columns, children have no wage and the unemployed no hours."""
    data = read_workers()
    plan = starting_plan(data, find_profile("public-use"))
    assert plan.edits == propose_edits(data) and "age < 16 -> wage is missing" in plan.edits
    made = 0
    for method in plan.all_methods:
        masked = sm.mask(data, method, seed=3)
        whole = {name: np.rint(masked.numbers(name)) for name in ("age", "hours") if masked.column(name).levels is None}
        masked = masked.change(None, whole)  # as they are released
        for text in plan.edits:
            rule = parse_edit(text)
            if method != Identity() and not any(rule.reading_problems(masked, data)):
                made += 1
                assert rule.violations(masked).mean() <= 0.001, (str(method), text)
    assert made > 3 * len(plan.all_methods)
