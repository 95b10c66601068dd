"""The starting plan leads from an ordinary file to a release within the limits, or to "release nothing"."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from commands import sdcmap
from samples import SEED
from sdcmap.core import Stream
from sdcmap.errors import PlanError
from sdcmap.explore.starting_plan import starting_plan
from sdcmap.study.plan_remarks import remarks
from sdcmap.study.profiles import PROFILES, find_profile
from sdcmap.utility import ChangedConclusions, EditViolations
from sizes import SOAK


def survey(rows: int = 700) -> pl.DataFrame:
    """A mixed survey with calibrated weights, codes, a derived column and missing values."""
    rng = np.random.default_rng(1)
    age, schooling = rng.integers(18, 90, rows), rng.choice([1, 2, 3, 4, 5], rows, p=[0.1, 0.3, 0.3, 0.2, 0.1])
    income = np.round(np.exp(7 + 0.2 * schooling + 0.01 * (age - 18) + rng.normal(0, 0.5, rows)))
    rent, region = np.round(income * rng.uniform(0.15, 0.45, rows)), rng.integers(6, size=rows)
    weight = np.exp(rng.normal(0, 0.3, rows)) * np.array([80, 100, 120, 130, 140, 150])[region]
    return pl.DataFrame({
        "id": np.arange(rows), "age": age, "sex": rng.choice(["f", "m"], rows), "region": np.array(list("ABCDEF"))[region],
        "education": schooling, "income": pl.Series(income, nan_to_null=True).scatter([3, 8], None), "rent": rent,
        "spent": income + 12 * rent, "trust": rng.integers(1, 6, rows), "weight": np.round(weight, 4),
    })  # fmt: skip


def personnel(rows: int = 700) -> pl.DataFrame:
    """A personnel file with salaries."""
    rng = np.random.default_rng(2)
    grade = rng.integers(1, 9, rows)
    salary = np.round(24_000 + 6500 * grade + rng.normal(0, 2500, rows))
    return pl.DataFrame({
        "employee_id": [f"E{number:06d}" for number in rng.permutation(rows)],
        "department": rng.choice([f"D{i:02d}" for i in range(15)], rows), "gender": rng.choice(["F", "M"], rows),
        "age": np.clip(np.round(22 + 3 * grade + rng.normal(0, 8, rows)), 18, 67).astype(int), "grade": grade,
        "salary": salary, "bonus": np.round(np.where(rng.random(rows) < 0.4, 0, salary * rng.uniform(0, 0.15, rows))),
    })  # fmt: skip


def count_exact_matches(original: pl.DataFrame, released: pl.DataFrame) -> int:
    """Return the number of unique people whose values exactly one released row has: a minimal attacker."""
    names = [name for name in released.columns if name != "weight"]
    text = pl.col(names).cast(pl.String).fill_null("none")
    before, after = (frame.select(text).filter(pl.struct(names).is_unique()) for frame in (original, released))
    return before.join(after, on=names, how="inner").height


@pytest.mark.parametrize(
    "made", [survey, personnel] if SOAK else [personnel]
)  # a survey: the demo, and test_newcomer.py
def test_look_sweep_release_gives_a_release_within_limits(made: type, tmp_path: Path) -> None:
    frame = made()
    frame.write_csv(tmp_path / "file.csv")
    profile = "scientific-use"  # public use cannot be shown with so few records
    plan = sm.Plan.from_toml(sm.look(tmp_path / "file.csv").plan(tmp_path / "file.csv", profile).toml(), seed=SEED)
    assert 15 <= plan.count <= 40 and plan.problems_with(plan.data.read()) == []  # type: ignore[union-attr]
    again = sm.Plan.from_toml(plan.toml())
    assert again == plan and again.limits == plan.limits
    masked = {name for method in plan.all_methods[1:] for name in method.masks(plan.data.read())}  # type: ignore[union-attr]
    assert masked >= set(plan.data.read().knowable)  # type: ignore[union-attr]
    scores = sm.sweep(plan.data.read(), plan, tmp_path / "study", workers=1)  # type: ignore[union-attr]
    ru = sm.RUMap(scores, plan.risk, plan.utility, plan.limits)
    assert ru.points.filter("anchor")["risk"][0] > 4  # unmasked, it exceeds its limits many times
    assert plan.rule is not None
    choice = ru.choose(plan.rule)
    assert choice.candidate is not None, choice.reason
    study = sm.Study.open(tmp_path / "study")
    ready = sm.release(study.data, scores.plan, choice, study=study, ledger=tmp_path / "ledger", confirm_roles=True)
    ready.write(tmp_path / "public")
    released = pl.read_csv(tmp_path / "public" / "data.csv")
    assert not {"id", "employee_id"} & set(released.columns) and released.height == frame.height
    assert count_exact_matches(frame, frame.select(released.columns)) > 0.95 * frame.height
    assert count_exact_matches(frame, released) <= 0.05 * frame.height
    if "weight" in frame.columns:
        assert released["weight"].sum() == pytest.approx(frame["weight"].sum())
        assert released.group_by("weight").len()["len"].min() >= 25  # type: ignore[operator]
        assert (released["spent"] == released["income"] + 12 * released["rent"]).all()


def test_nothing_is_released_if_no_candidate_is_within_limits() -> None:
    data = sm.read(personnel(200), identifiers="employee_id", keys=["department", "gender", "age", "grade"],
                   numeric=["salary", "bonus"])  # fmt: skip
    plan = sm.Plan(
        sm.RankSwap(on=["salary", "bonus"], p=0.05),
        [sm.WorstLinkage(), sm.utility.QueryError()], rule=sm.Threshold(risk=1.0), profile="public-use",
    )  # fmt: skip
    scores = sm.sweep(data, plan, workers=1)
    choice = sm.RUMap(scores, plan.risk, plan.utility, plan.limits).choose(sm.Threshold(risk=1.0))
    assert choice.candidate is None and choice.reason.startswith("Release nothing: ")


def test_starting_plan_handles_unique_keys() -> None:
    rng = np.random.default_rng(3)
    frame = pl.DataFrame(
        {"street": [f"{c}{i}" for i, c in enumerate("ABCD" * 60)], "wage": rng.normal(0, 1, 240).round(3)}
    )
    data = sm.read(frame, keys="street", numeric="wage")
    plan = starting_plan(data, find_profile("public-use"))
    first = sm.mask(data, plan.all_methods[1], seed=5)
    assert plan.problems_with(data) == [] and first.level_count("street") <= 4


@pytest.mark.parametrize("known", [2, 4, 12, 30])
def test_no_candidate_is_planned_that_cannot_be_made(known: int) -> None:
    """A bonus that few persons have is too rare for some windows of ranks and some groups."""
    rng = np.random.default_rng(0)
    bonus = np.where(rng.permutation(400) < known, rng.lognormal(6, 1, 400).round(1), np.nan)
    numbers = {"age": rng.integers(18, 90, 400), "wage": rng.lognormal(8, 0.5, 400).round(2)}
    frame = pl.DataFrame({"sex": rng.choice(["f", "m"], 400), "region": rng.choice(list("abcd"), 400), **numbers})
    frame = frame.with_columns(bonus=pl.Series(bonus).fill_nan(None))
    data = sm.read(frame, keys=["sex", "region"], numeric=["age", "wage", "bonus"])
    methods = starting_plan(data, find_profile("public-use")).all_methods
    kinds = {type(step).__name__ for method in methods for step in method.steps}
    assert ("RankSwap" in kinds) == (known > 4) and {"Microaggregate", "Synthesize"} <= kinds
    for method in methods:
        sm.mask(data, method, seed=1)


def test_respondent_only_columns_are_not_masked() -> None:
    data = sm.read(survey(100), identifiers="id", keys=["age", "sex", "region", "education"], numeric=["income", "rent"],
                   weight="weight", other="trust", kinds={"trust": "ordinal"},
                   known_by={"trust": "respondent only: an opinion"})  # fmt: skip
    plan = starting_plan(data, PROFILES["scientific-use"])
    assert "trust" not in plan.all_methods[1].masks(data)


def test_starting_plan_rejects_file_without_keys_and_numbers() -> None:
    with pytest.raises(PlanError, match="no keys and no numeric"):
        starting_plan(sm.read(pl.DataFrame({"w": [1.0, 2.0]}), weight="w"), PROFILES["public-use"])


def test_plan_of_fifty_columns_can_be_edited(tmp_path: Path) -> None:
    """At most 160 lines beside the comments, and the same plan when it is read again."""
    rng = np.random.default_rng(5)
    columns: dict[str, object] = {f"question_{i:02}": rng.choice(list("abcdefgh")[: 2 + i % 7], 400) for i in range(20)}
    columns |= {f"score_{i:02}": rng.integers(1, 8, 400) for i in range(15)}
    columns |= {f"amount_{i:02}": np.round(rng.lognormal(8, 1, 400), 2) for i in range(15)}
    pl.DataFrame(columns).write_csv(tmp_path / "wide.csv")
    sdcmap("look", tmp_path / "wide.csv", "-o", tmp_path / "plan.toml")
    text = (tmp_path / "plan.toml").read_text(encoding="utf-8")
    assert sum(not line.startswith("#") for line in text.splitlines()) <= 160
    plan = sm.Plan.from_toml(text)
    assert 15 <= plan.count <= 25 and sm.Plan.from_toml(plan.toml()) == plan
    full = plan._table()
    assert sum(str(own).count("question_00") for own in full["methods"]) >= plan.count - 5, "every candidate masks it"


def hard_survey(rows: int = 600) -> pl.DataFrame:
    """Fifty columns: weights, households, gaps, codes, two columns of many categories, indicators, a sum, unpaid people."""
    rng = np.random.default_rng(6)

    def with_gaps(values: np.ndarray, share: float) -> list[object]:
        return [None if gap else value for gap, value in zip(rng.random(rows) < share, values.tolist(), strict=True)]

    age, way = rng.integers(0, 95, rows), rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    works = (age >= 16) & (rng.random(rows) < 0.7)
    parts = {f"income_{k}": rng.exponential(100.0 * k, rows).round() for k in (1, 2, 3)}
    wage = [w if paid else None for paid, w in zip(works, rng.lognormal(7, 1, rows).round(2), strict=True)]
    columns = {
        "household_id": np.sort(rng.integers(0, rows // 2, rows)), "age": age, "sex": rng.choice(["f", "m"], rows),
        "works": np.where(works, "yes", "no"), "wage": wage,
        "car": (way == 0) * 1, "bus": (way == 1) * 1, "walk": (way == 2) * 1,
        "country": rng.choice([f"country {k:02}" for k in range(25)], rows),
        "job": rng.choice([f"job {k:02}" for k in range(40)], rows),
        **{name: with_gaps(values, 0.3) for name, values in parts.items()}, "income": sum(parts.values()),
        **{f"opinion_{k}": np.where(rng.random(rows) < 0.1, -9, rng.integers(1, 6, rows)) for k in range(12)},
        **{f"spent_{k}": with_gaps(rng.exponential(30.0, rows).round(1), 0.1) for k in range(12)},
        **{f"item_{k}": with_gaps(rng.choice(["yes", "no", "partly"], rows), 0.05) for k in range(11)},
        "survey_weight": rng.uniform(50, 400, rows).round(2),
    }  # fmt: skip
    return pl.DataFrame(columns, strict=False)


def test_plan_of_a_hard_file_can_be_edited(tmp_path: Path) -> None:
    """Regression test: with a step for missing values, sets were written out again and again, on lines of 200 letters."""
    frame = hard_survey()
    assert frame.width == 50
    frame.write_csv(tmp_path / "hard.csv", separator=";")
    sdcmap("look", tmp_path / "hard.csv", "-o", tmp_path / "plan.toml")
    text = (tmp_path / "plan.toml").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert len(lines) <= 170 and max(map(len, lines)) <= 120
    plan = sm.Plan.from_toml(text)
    assert sm.Plan.from_toml(plan.toml()) == plan
    assert {"amounts", "first_keys", "keys", "with_gaps"} <= plan.columns.keys() and "mask_missing" in plan.steps
    assert [step.formula for step in plan.derive] == ["income_1 + income_2 + income_3"]
    assert {"exactly one of car, bus, walk = 1", "age < 16 -> wage is missing"} <= set(plan.edits)
    (measure,) = (own for own in plan.measures if isinstance(own, EditViolations))
    assert measure.edits == plan.edits and '{ type = "EditViolations" }' in text
    assert plan.data is not None
    data = plan.data.read()
    said = [line for line in remarks(data, plan, plan) if "recode 'age'" in line]
    assert len(said) == 1 and "where an interval decides them" in said[0]


@pytest.mark.parametrize(("rows", "limited"), [(100, False), (600, True)])
def test_changed_conclusions_have_a_limit_where_a_file_has_enough(rows: int, limited: bool) -> None:
    data = sm.demo.population(rows, seed=7)
    plan = starting_plan(data, find_profile("public-use"))
    counts = (own for own in plan.measures if isinstance(own, ChangedConclusions))
    (measure,) = (own for own in counts if own.statistic == "share")
    assert (plan.limits.get(measure.text) == 0.1) == limited
    said = [line for line in remarks(data, plan, plan) if "has no limit: the file has only" in line]
    assert len(said) == (not limited)
    assert sm.Plan.from_toml(plan.toml()).limits == plan.limits


def test_check_names_candidates_that_keep_extremes() -> None:
    """Of a plan without ProtectTails, those that only change or exchange amounts; of a starting plan, none."""
    data = sm.demo.population(300, seed=2)
    swaps = [sm.RankSwap(["wage", "total"], p) for p in (0.1, 0.2)]
    guarded = sm.Chain([sm.methods.ProtectTails("wage"), sm.Noise("wage", 0.1)])
    methods = [*swaps, sm.Noise("wage", 0.1), guarded, sm.methods.Synthesize(["wage"]), sm.Swap("Age", 0.1)]
    plan = sm.Plan(methods, [sm.SmallCells(), sm.Hellinger()])
    (said,) = [line for line in remarks(data, plan, plan) if "largest values" in line]
    assert said.startswith("3 candidates (with RankSwap, Noise) may release the largest values of wage, total, or")
    assert "Add ProtectTails on them as the first step of each." in said
    own = starting_plan(data, find_profile("public-use"))
    assert not any("largest values" in line for line in remarks(data, own, own))


def test_columns_of_formulas_stay_numbers() -> None:
    """An age that a formula needs is not recoded to intervals: eight of eighteen candidates could not be made."""
    rng = np.random.default_rng(1)
    age, wage = rng.integers(18, 80, 400), rng.lognormal(7, 0.5, 400).round()
    frame = pl.DataFrame({"sex": rng.choice(["f", "m"], 400), "age": age, "wage": wage, "points": age + wage})
    data = sm.read(frame, keys=["sex", "age"], numeric=["wage", "points"], kinds={"age": "ordinal"})
    plan = starting_plan(data, find_profile("public-use"), formulas={"points": "age + wage"})
    assert len(plan.derive) == 1 and plan.count > 10
    for method in plan.all_methods:
        released = method.apply(data, Stream.of_seed(1, "made"))
        assert np.allclose(
            released["points"], released["age"].astype(float) + released["wage"], atol=0.51, equal_nan=True
        )
