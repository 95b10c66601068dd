"""Columns that are recomputed after masking: by a plan, in a sweep, in a release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from samples import SEED, release_with_overrides
from sdcmap.methods import Derive, Sample
from sdcmap.study.plan import Candidate

BMI = {"bmi": "weight / (height / 100)**2"}


def bodies(rows: int = 400) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    height = rng.normal(170, 9, rows).round(0)
    weight = (0.6 * height - 25 + rng.normal(0, 12, rows)).round(1)
    sex = rng.choice(["f", "m"], rows)
    return pl.DataFrame(
        {"sex": sex, "height": height, "weight": weight, "bmi": (weight / (height / 100) ** 2).round(1)}
    )


def read(frame: pl.DataFrame) -> sm.Microdata:
    return sm.read(frame, keys="sex", numeric=["height", "weight", "bmi"], other=["height", "weight", "bmi"])


def plan_of(**parts: Any) -> sm.Plan:
    measures = [sm.SmallCells(), sm.IL1s()]
    return sm.Plan(sm.Noise(on="weight", variance=0.2), measures, rule=sm.Threshold(risk=0.9), seed=SEED, **parts)


def test_released_index_matches_released_weight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unchanged index would reveal the weight; a derived one agrees with the released numbers."""
    monkeypatch.setenv("SDCMAP_LEDGER", str(tmp_path / "ledger"))
    data = read(bodies())
    plain, derived = plan_of(), plan_of(derive=BMI)
    with pytest.raises(sm.errors.Refused, match="'bmi'.* of the changed values of 'weight'"):
        release_with_overrides(data, plain, Candidate(plain.all_methods[1])).write(tmp_path / "plain")
    folder = release_with_overrides(data, derived, Candidate(derived.all_methods[1])).write(tmp_path / "derived")
    out = pl.read_parquet(folder / "data.parquet")
    index = out["weight"] / (out["height"] / 100) ** 2
    assert (out["bmi"] - index).abs().max() <= 0.0501  # type: ignore[operator]
    assert not set(out["weight"]) <= set(data["weight"]), "the weight was masked"


def test_plan_round_trip_keeps_derived_columns(tmp_path: Path) -> None:
    """TOML, sweep, reopened study and a repeated candidate have the same methods and the same numbers."""
    data = read(bodies())
    plan = plan_of(derive=BMI)
    again = sm.Plan.from_toml(plan.toml(), seed=SEED)
    assert again == plan and again.digest == plan.digest and hash(again) == hash(plan)
    scores = sm.sweep(data, plan, study=tmp_path / "study", workers=1)
    assert [c.id for c in again.candidates] == [c.id for c in plan.candidates]
    assert set(scores.candidate["id"]) == {c.id for c in plan.candidates}
    with sm.Study.open(tmp_path / "study") as study:
        masked = study.plan.make(data, Candidate(plan.all_methods[1]))
    assert masked["bmi"] == pytest.approx(masked["weight"] / (data["height"] / 100) ** 2)
    assert plan.all_methods[0] == sm.Identity(), "the file as it is stays as it is"


def test_only_changed_records_are_recomputed() -> None:
    data = read(bodies().with_columns(bmi=pl.when(pl.int_range(400) < 9).then(99.0).otherwise("bmi")))
    assert Derive("bmi", BMI["bmi"]).apply(data, Candidate(sm.Identity()).stream(1))["bmi"][:9].max() < 99
    other = sm.Chain([sm.Swap(on=["sex"], rate=0.1), Derive("bmi", BMI["bmi"])])
    assert (sm.mask(data, other, seed=1)["bmi"] == data["bmi"]).all(), "no column of the formula was touched"
    few = sm.mask(data, sm.Chain([sm.Noise(on="weight"), Derive("bmi", BMI["bmi"])]), seed=1)
    assert few["bmi"] == pytest.approx(few["weight"] / (data["height"] / 100) ** 2)
    sampled = sm.mask(data, sm.Chain([Sample(rate=0.5), Derive("bmi", BMI["bmi"])]), seed=1)
    assert len(sampled) == 200 and sampled["bmi"].max() < 99


def test_undefined_results_are_missing() -> None:
    frame = pl.DataFrame({"a": [1.0, 2.0, None, 4.0], "b": [1.0, 0.0, 1.0, 2.0], "c": [1.0, 5.0, 1.0, 2.0]})
    data = sm.read(frame, numeric="all")
    step = Derive("c", "a / b")
    assert step.apply(data, Candidate(step).stream(1))["c"] == pytest.approx([1, np.nan, np.nan, 2], nan_ok=True)
    plan = sm.Plan(sm.Noise(on="b"), sm.IL1s(on="b"), derive={"c": "a / b"})
    (problem,) = plan.problems_with(data)
    assert problem.startswith("Derive(on='c', formula='a / b') is undefined for 1 of 3 records")


@pytest.mark.parametrize(
    ("derive", "words"),
    [
        ({"bmi": "weigth / height"}, "no column 'weigth'. Did you mean 'weight'?"),
        ({"bmy": "weight / height"}, "Derive: no column 'bmy'. Did you mean 'bmi'?"),
        ({"sex": "weight / height"}, "Derive masks numeric variables; 'sex' is nominal"),
        ({"bmi": "weight / sex"}, "'sex' is not numeric"),
        ({"bmi": "weight / height"}, "reproduces the file's value for only 0% of the records"),
    ],
)
def test_plan_reports_formulas_that_disagree_with_the_data(derive: dict[str, str], words: str) -> None:
    assert any(words in problem for problem in plan_of(derive=derive).problems_with(read(bodies())))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('derive = {bmi = "weight /"}', "derive: Derive.formula: 'weight /' cannot be read"),
        ('derive = {bmi = "bmi * 2"}', "must not contain 'bmi'"),
        ("derive = {bmi = 3}", "Derive.formula"),
        ('derive = "bmi"', "derive must be a table of formulas"),
    ],
)
def test_plan_rejects_invalid_formulas(line: str, words: str) -> None:
    with pytest.raises(sm.errors.PlanError, match=r"derive") as problem:
        sm.Plan.from_toml(f'{line}\n[[measures]]\ntype = "IL1s"\n')
    assert words in str(problem.value)


def test_formula_on_recoded_column_is_rejected() -> None:
    data = read(bodies())
    plan = sm.Plan(sm.Recode(on=["weight"], width=10), sm.SmallCells(), derive=BMI)
    assert any("an earlier step made it categorical" in problem for problem in plan.problems_with(data))


def test_stale_reasons_for_missing_values_are_dropped() -> None:
    """If the columns of a formula are synthesized, an old reason for a missing total would identify its record."""
    frame = pl.DataFrame(
        {"sex": ["f", "m"] * 20, "wage": [-8.0, *range(1, 40)], "total": [-8.0, *range(2, 41)], "one": 1.0}
    )
    data = sm.read(frame, keys="sex", numeric=["wage", "total", "one"], missing={"wage": [-8], "total": [-8]})
    derive = sm.methods.Derive("total", "wage + one")
    drawn = sm.mask(data, sm.methods.Chain([sm.Synthesize("wage", given=["sex"]), derive]), seed=2)
    noisy = sm.mask(data, sm.methods.Chain([sm.Noise("wage", 0.1), derive]), seed=2)
    assert drawn.column("total").reasons is None
    assert noisy.column("total").reasons is not None and noisy.missing("total")[0]


@pytest.mark.parametrize(
    ("roles", "reason"),
    [
        ({"identifiers": "person"}, "its role is identifier, so it is not released"),
        ({"drop": "person"}, "its role is drop, so it is not released"),
        ({"household": "person"}, "it is the file's household, which is renumbered at random"),
        ({"stratum": "person"}, "it is the file's stratum, which is renumbered at random"),
    ],
)
def test_formula_and_rule_use_released_columns_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, roles: dict[str, Any], reason: str
) -> None:
    """A column computed from a person number would carry it into the release, whatever masks the rest."""
    monkeypatch.setenv("SDCMAP_LEDGER", str(tmp_path / "ledger"))
    frame = bodies().with_columns(person=pl.int_range(400) + 1000, code=pl.int_range(400) // 10 + 100)
    data = sm.read(frame, keys="sex", numeric=["height", "weight", "bmi", "code"], **roles)
    plan = plan_of(derive={"code": "person / 10"})
    assert any("'person'" in problem and reason in problem for problem in plan.problems_with(data))
    with pytest.raises(sm.errors.SdcmapError, match=reason):
        sm.sweep(data, plan, study=None, workers=1)
    with pytest.raises(sm.errors.SdcmapError, match=reason):
        release_with_overrides(data, plan, Candidate(plan.all_methods[1])).write(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    rule = plan_of(edits="person > 1100 -> weight > 20")
    is_refused = any("a rule must not use 'person'" in problem for problem in rule.problems_with(data))
    assert is_refused == ("not released" in reason), "an edit rule may compare households, but not carry an identifier"
