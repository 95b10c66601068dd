"""Repair of records that masking made impossible: by a step, by a plan, and in a release."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from samples import SEED, release_with_overrides
from sdcmap.charts.method_names import label_methods, short_names
from sdcmap.core.edit_rule import parse_edit
from sdcmap.methods import Repair
from sdcmap.study.plan import Candidate
from sdcmap.testing import check_method

RULES = ('age < 18 -> marital = "never"', 'sex = "m" -> pregnant = "no"')


def family(rows: int = 2000) -> sm.Microdata:
    """Return people without married children and without pregnant men."""
    rng = np.random.default_rng(1)
    age, sex = rng.integers(0, 90, rows), rng.choice(["f", "m"], rows)
    frame = pl.DataFrame(
        {
            "age": age,
            "sex": sex,
            "marital": np.where(age < 18, "never", rng.choice(["never", "married", "widowed"], rows)),
            "pregnant": np.where((sex == "f") & (rng.random(rows) < 0.2), "yes", "no"),
            "region": rng.choice(["N", "S", "E", "W"], rows),
        }
    )
    return sm.read(frame, keys=["sex", "marital", "pregnant", "region"], numeric="age")


def violations(data: sm.Microdata) -> int:
    return int(sum(parse_edit(rule).violations(data).sum() for rule in RULES))


SWAPS = sm.Chain([sm.Swap(on=["marital"], rate=0.3), sm.Swap(on=["sex"], rate=0.2)])
REPAIRED = sm.Chain([*SWAPS.methods, Repair(RULES)])


def after(data: sm.Microdata, method: sm.Method, *rules: str) -> tuple[sm.Microdata, sm.Microdata]:
    """Return the file as a method masks it, and the repaired file."""
    masked = sm.mask(data, method, seed=1)
    return masked, Repair(rules).mask(masked, np.random.default_rng(1))


def test_repair_removes_violations_with_few_changes() -> None:
    data = family()
    masked, repaired = after(data, SWAPS, *RULES)
    assert violations(masked) > 100 and violations(repaired) == 0
    changed = {name: (masked[name] != repaired[name]) for name in data.names}
    assert not (changed["age"] | changed["region"] | changed["pregnant"]).any(), "no step masked these"
    impossible = [parse_edit(rule).violations(masked) for rule in RULES]
    assert (changed["marital"] == impossible[0]).all() and (changed["sex"] == impossible[1]).all()
    assert violations(sm.mask(data, REPAIRED, seed=1)) == 0, "as a step of a chain too"


def test_condition_column_is_replaced_from_obeying_donors() -> None:
    """Only the age was masked, so a married child gets the age of a married person, not another marital status."""
    data = family()
    noisy, repaired = after(data, sm.Noise(on="age", variance=0.5), RULES[0])
    drawn = repaired["age"] != noisy["age"]
    assert drawn.sum() > 20 and (repaired["marital"] == data["marital"]).all()
    married = data["marital"] != "never"
    assert (np.rint(repaired["age"][married]) >= 18).all() and not (drawn & ~married).any()
    assert set(repaired["age"][drawn]) <= set(noisy["age"][married])


def test_original_violations_and_unmasked_values_stay() -> None:
    data, rule = family(), 'age > 50 -> region = "N"'
    masked, repaired = after(data, sm.Swap(on=["region"], rate=0.3), rule)
    same = masked["region"] == data["region"]
    assert (repaired["region"][same] == data["region"][same]).all()
    left = parse_edit(rule).violations(repaired)
    assert left.any() and not (left & ~same).any(), "who was masked obeys; who broke it before and was not, does not"
    alone = sm.mask(data, Repair(RULES), seed=1)
    assert all((alone[name] == data[name]).all() for name in data.names), "as a first step there is nothing to repair"


def test_missing_values_are_neither_replaced_nor_donated() -> None:
    third = pl.int_range(pl.len()) % 3 == 0
    frame = (
        family()
        .frame()
        .with_columns(
            marital=pl.when(third).then(None).otherwise("marital"),
            age=pl.when(third.shift(1)).then(None).otherwise("age"),
        )
    )
    data = sm.read(frame, keys=["sex", "marital", "pregnant", "region"], numeric="age")
    noisy, repaired = after(data, sm.Noise(on="age", variance=0.5), RULES[0])
    married = (data["marital"] != "never") & ~data.missing("marital") & ~data.missing("age")
    assert (np.rint(noisy["age"][married]) < 18).any() and (np.rint(repaired["age"][married]) >= 18).all()
    assert (repaired.missing("age") == data.missing("age")).all()


def earners() -> sm.Microdata:
    """Return people of whom children have no wage, for a reason that the file states."""
    frame = (
        family()
        .frame()
        .with_columns(wage=pl.when(pl.col("age") < 18).then(-8.0).otherwise(1000.0 + pl.int_range(pl.len())))
    )
    return sm.read(
        frame, keys=["sex", "marital", "pregnant", "region"], numeric=["age", "wage"], missing="wage=-8 (a child)"
    )


def test_values_that_must_be_missing_are_removed() -> None:
    """Ages are exchanged, so a child may have a wage: it is removed, since wages were masked too."""
    data, rule = earners(), "age < 18 -> wage is missing"
    swap = sm.RankSwap(on=["age", "wage"], p=0.4)
    masked, repaired = after(data, swap, rule)
    broken = parse_edit(rule).violations(masked)
    assert broken.sum() > 50 and not parse_edit(rule).violations(repaired).any()
    removed = broken & (masked["wage"] != data["wage"])  # the others keep their wage and get another age
    assert removed.sum() > 50 and (repaired.missing("wage") == (masked.missing("wage") | removed)).all()
    assert repaired.columns["wage"].reasons is None, "a new missing value has no reason, which would mark it"
    assert (repaired["age"] == masked["age"])[~broken | removed].all()
    kept, _ = after(data, sm.Noise(on="wage"), rule)
    assert Repair((rule,)).mask(kept, np.random.default_rng(1)).columns["wage"].reasons is not None


def test_values_that_must_not_be_missing_are_donated() -> None:
    """Only the age was masked: an adult who became a child gets the age of somebody without a wage, and reversely."""
    data, rules = earners(), ("age < 18 -> wage is missing", "age >= 18 -> wage is not missing")
    noisy, repaired = after(data, sm.Noise(on="age", variance=0.3), *rules)
    broken = [parse_edit(rule).violations(noisy).sum() for rule in rules]
    assert min(broken) > 20 and (repaired.missing("wage") == data.missing("wage")).all()
    whole = repaired.change(None, {"age": np.rint(repaired.numbers("age"))})
    assert not any(parse_edit(rule).violations(whole).any() for rule in rules)
    drawn = sm.mask(data, sm.Chain([sm.Synthesize(["age", "wage"], given="sex", leaf=50), Repair(rules)]), seed=1)
    assert not any(parse_edit(rule).violations(drawn).any() for rule in rules)


def test_rules_are_applied_where_intervals_decide_them() -> None:
    bands, swaps = sm.Recode(on=["age"], width=10), sm.Swap(on=["marital"], rate=0.3)
    data = family()
    masked, repaired = after(data, sm.Chain([bands, swaps]), RULES[0])
    married = masked["marital"] != "never"
    assert (married & (data["age"] <= 10)).sum() > 20 and not (repaired["marital"] != "never")[data["age"] <= 10].any()
    assert (repaired["marital"] == masked["marital"])[data["age"] > 10].all(), "(10, 20] contains adults"


def test_rules_on_merged_categories_are_skipped() -> None:
    merge, moves = sm.Recode(on=["marital"], merge=[["never", "widowed"]]), sm.PRAM(["marital"], 0.5)
    masked, repaired = after(family(), sm.Chain([merge, moves]), *RULES)
    assert (masked["marital"] == repaired["marital"]).all()
    sm.mask(family(), sm.Chain([merge, moves, Repair(RULES)]), seed=1)


WAYS = ("car", "bus", "bike", "walk")
ONE_WAY = f"exactly one of {', '.join(WAYS)} = 1"


def travelers(rows: int = 2000) -> sm.Microdata:
    """Return people who take one of four ways to work, each an indicator."""
    rng = np.random.default_rng(3)
    way = rng.choice(4, rows, p=[0.55, 0.25, 0.15, 0.05])
    ways = {name: (way == code).astype(int) for code, name in enumerate(WAYS)}
    return sm.read(pl.DataFrame(ways | {"region": rng.choice(list("abc"), rows)}), keys=[*WAYS, "region"])


def indicators(data: sm.Microdata) -> np.ndarray:
    return np.column_stack([data[name] for name in WAYS]).astype(float)


@pytest.mark.parametrize(
    ("method", "bias"),
    [
        (sm.PRAM([*WAYS, "region"], 0.7, alpha=1.0), 0.03),
        (sm.PRAM([*WAYS, "region"], 0.15, alpha=1.0), 0.05),
        (sm.Synthesize([*WAYS, "region"], model="copula"), 0.03),
    ],
)
def test_exactly_one_indicator_is_one_after_repair(method: sm.Method, bias: float) -> None:
    """... and the share of each stays about what it was, so no indicator is preferred."""
    data = travelers()
    masked, repaired = after(data, method, ONE_WAY)
    before, now = indicators(masked), indicators(repaired)
    assert (before.sum(axis=1) != 1).mean() > 0.2
    assert (now.sum(axis=1) == 1).all()
    assert np.abs(now.mean(axis=0) - before.mean(axis=0)).max() < bias


def test_values_that_no_step_changed_stay_in_a_set() -> None:
    data = travelers()
    masked, repaired = after(data, sm.PRAM(["car", "bus"], 0.5, alpha=1.0), ONE_WAY)
    old, between, now = indicators(data), indicators(masked), indicators(repaired)
    assert (between.sum(axis=1) != 1).any() and (now.sum(axis=1) == 1).all()
    assert (now == between)[between == old].all()


def test_sampling_after_masking_is_infeasible() -> None:
    data = family()
    late = sm.Chain([sm.Swap(on=["marital"], rate=0.3), sm.methods.Sample(rate=0.5), Repair(RULES)])
    with pytest.raises(sm.errors.Infeasible, match="put the step that samples records before the masking"):
        sm.mask(data, late, seed=1)
    early = sm.Chain([sm.methods.Sample(rate=0.5), sm.Swap(on=["marital"], rate=0.3), Repair(RULES)])
    assert violations(sm.mask(data, early, seed=1)) == 0


def test_chain_with_repair_obeys_the_laws() -> None:
    swaps = [sm.Swap(on="marital", rate=0.1), sm.Swap(on="sex", rate=0.1)]
    check_method(sm.Chain([*swaps, Repair(RULES)]), family(200))
    check_method(sm.Chain([sm.Noise(on="age"), Repair(RULES[:1])]), family(200))
    missing = "age < 18 -> wage is missing", "age >= 18 -> wage is not missing"
    check_method(sm.Chain([sm.RankSwap(on=["age", "wage"]), Repair(missing)]), earners().take(np.arange(200)))


@pytest.mark.parametrize("edits", [[], ["age < 15"], "age ! 3 -> age = 1"])
def test_invalid_rules_are_rejected(edits: list[str]) -> None:
    with pytest.raises(sm.errors.PlanError, match=r"Repair\.edits"):
        Repair(edits)  # type: ignore[arg-type]


# ---- in a plan ------------------------------------------------------------------------------------------------
def plan_of(**parts: object) -> sm.Plan:
    measures = [sm.SmallCells(), sm.risk.MarkedRecords(RULES), sm.utility.EditViolations(RULES)]
    return sm.Plan(SWAPS, measures, rule=sm.Threshold(risk=0.9), seed=SEED, **parts)  # type: ignore[arg-type]


def test_the_repair_that_every_candidate_ends_with_is_in_no_name() -> None:
    """It tells no candidate from another, and would take the place of what does."""
    assert plan_of(edits=RULES).name_of_method(SWAPS) == plan_of().name_of_method(SWAPS) == SWAPS.title
    assert "repaired by 2 edit rules" in REPAIRED.title
    plan = replace(plan_of(edits=RULES), methods=(SWAPS, sm.Swap(on="region", rate=0.3)))
    labels = label_methods([method.text for method in plan.all_methods], sm.sweep(family(300), plan))
    assert not any("repaired" in name for name in short_names(labels).values())


def test_plan_applies_its_edit_rules() -> None:
    data = family()
    plan = plan_of(edits=RULES, profile="public-use")
    again = sm.Plan.from_toml(plan.toml(), seed=SEED)
    assert again == plan and again.digest == plan.digest and again.edits == RULES
    assert plan.all_methods[1] == REPAIRED and plan.digest != plan_of(profile="public-use").digest
    for made, marked in ((plan, 0.0), (plan_of(), 0.1)):
        masked = made.make(data, Candidate(made.all_methods[1]))
        value = sm.risk.MarkedRecords(RULES).apply(data, masked, np.random.default_rng(0)).value
        assert value == 0 if not marked else value > marked


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        ("['age << 15 -> sex = 1']", "edits: 'age << 15 -> sex = 1' cannot be read: an edit rule reads"),
        ("[3]", "edits must be a list of rules"),
        ("7", "edits must be a list of rules"),
    ],
)
def test_plan_rejects_invalid_rules(edits: str, words: str) -> None:
    with pytest.raises(sm.errors.PlanError, match=words):
        sm.Plan.from_toml(f"edits = {edits}\n" + plan_of().toml())


def test_plan_reports_rules_incompatible_with_data() -> None:
    problems = plan_of(edits=['aage < 15 -> marital = "never"']).problems_with(family())
    assert problems == ["edit rule 'aage < 15 -> marital = \"never\"': no column 'aage'. Did you mean 'age'?"]


def test_release_reports_and_refuses_remaining_violations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Repair removes all violations. A release that still violates a rule of the plan is refused, unless overridden."""
    monkeypatch.setenv("SDCMAP_LEDGER", str(tmp_path / "ledger"))
    data = family(600)
    plan = plan_of(edits=RULES)
    checks = {c.name: c for c in release_with_overrides(data, plan, Candidate(plan.all_methods[1])).check()}
    assert checks["edits"].passed and checks["edits"].reason.startswith(
        "0 of 600 records break one of the 2 edit rules"
    )
    folder = release_with_overrides(data, plan, Candidate(plan.all_methods[1])).write(tmp_path / "out")
    done = {entry["name"]: entry["done"] for entry in json.loads((folder / "codebook.json").read_text("utf-8"))}
    assert done["marital"].endswith("repaired by 2 edit rules") and not done["age"], (
        "the codebook says so where it may be"
    )
    late = sm.Chain([sm.Noise(on="age", variance=0.5), sm.methods.Derive("marital_age", "age * 1")])
    frame = data.frame().with_columns(marital_age=pl.col("age").cast(pl.Float64))
    wide = sm.read(frame, keys=["sex", "marital", "pregnant", "region"], numeric=["age", "marital_age"])
    odd = sm.Plan(late, plan.measures, rule=plan.rule, seed=SEED, edits=['marital_age < 18 -> marital = "never"'],
                  derive={"marital_age": "age * 1"})  # fmt: skip
    checks = {c.name: c for c in release_with_overrides(wide, odd, Candidate(odd.all_methods[1])).check()}
    assert not checks["edits"].passed
    assert "more than 0.1 %. An attacker sees that they were masked" in checks["edits"].reason
