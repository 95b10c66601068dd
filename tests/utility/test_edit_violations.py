"""Edit rules that masking breaks, and those that a file proposes."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.core.edit_rule import parse_edit
from sdcmap.explore.edit_proposals import propose_edits

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


def test_recoded_column_of_rule_is_undefined() -> None:
    data = family()
    masked = sm.mask(data, sm.Recode(on=["age"], width=10), seed=1)
    with pytest.raises(sm.errors.Undefined, match="in the released file, edit rule .* contains no numbers"):
        sm.utility.EditViolations(RULE).apply(data, masked, np.random.default_rng(0))


def test_proposed_rules_match_generator() -> None:
    """The proposed rules are those that generated the file, and no record breaks them."""
    data = family()
    rules = propose_edits(data)
    assert set(rules) == {RULE, 'sex = "m" -> pregnant = "no"', 'pregnant = "yes" -> sex = "f"'}
    assert not any(parse_edit(rule).violations(data).any() for rule in rules)


def test_small_file_proposes_no_rules() -> None:
    assert propose_edits(family(100)) == []
