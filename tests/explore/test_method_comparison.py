"""Comparing every method on one map: the trial plan, the function `compare`, and the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner, Result

import sdcmap as sm
from sdcmap.cli import app
from sdcmap.core.method import Method
from sdcmap.core.roles import Roles
from sdcmap.explore.method_comparison import TrialPlan, set_aside, trial_plan
from sdcmap.methods import METHODS
from sdcmap.methods.round import round_number_below
from sdcmap.study.plan import Plan


@pytest.fixture(scope="module")
def people() -> sm.Microdata:
    """A file with every role: keys, numbers, a sensitive category, weight, households, strata."""
    made = sm.demo.population(400, seed=3)
    frame = made.frame().select("Age", "Educ", "Sex", "Race", "wage", "benefits", "Income", "household", "weight")
    frame = frame.with_columns(region=pl.Series([f"r{number % 4}" for number in frame["household"]]))
    return sm.read(
        frame, keys=["Age", "Educ", "Sex", "Race"], numeric=["wage", "benefits"], sensitive=["Income"],
        household="household", weight="weight", stratum="region",
    )  # fmt: skip


@pytest.fixture(scope="module")
def tried(people: sm.Microdata, tmp_path_factory: pytest.TempPathFactory) -> tuple[sm.Microdata, TrialPlan]:
    inside, outside = set_aside(people, 0.2, np.random.default_rng(1))
    path = tmp_path_factory.mktemp("control") / "outside.study.parquet"
    sm.write(outside, path)
    return inside, trial_plan(inside, str(path), replicates=1)


def is_tried(cls: type[Method], data: sm.Microdata) -> bool:
    """Return whether a comparison uses the class. Otherwise its `trials` give only the reason, as text."""
    return cls.in_every_plan or any(isinstance(trial, Method) for trial in cls.trials(Roles(data)).values())


def classes(found: TrialPlan) -> set[str]:
    return {type(method).__name__ for method in found.plan.all_methods}


def test_every_method_states_its_own_trials(people: sm.Microdata) -> None:
    """All methods have trials, except the one in every plan. A step that masks nothing by itself gives a reason instead."""
    for cls in METHODS:
        trials = cls.trials(Roles(people))
        assert bool(trials) != cls.in_every_plan, f"{cls.__name__} needs `searched` or `trials`"
        steps = [step for method in trials.values() for step in getattr(method, "methods", (method,))]
        assert cls in (sm.Identity, sm.Chain) or cls in {type(step) for step in steps} or not is_tried(cls, people)
    assert {cls for cls in METHODS if not is_tried(cls, people)} >= {sm.methods.Derive, sm.methods.Repair}


def test_a_file_with_every_role_has_every_method(tried: tuple[sm.Microdata, TrialPlan]) -> None:
    data, found = tried
    steps = {type(s).__name__ for m in found.plan.all_methods if isinstance(m, sm.Chain) for s in m.methods}
    assert classes(found) | steps == {cls.__name__ for cls in METHODS if is_tried(cls, data)}
    assert set(found.left_out) == {cls.__name__ for cls in METHODS if not is_tried(cls, data)}
    assert found.plan.problems_with(data) == []
    names = found.plan.method_names
    assert len(set(names.values())) == len(names) == len(found.plan.all_methods)


def test_every_candidate_is_on_the_map(tried: tuple[sm.Microdata, TrialPlan]) -> None:
    """Masked, recoded, suppressed, sampled and synthetic files have a value on both axes."""
    data, found = tried
    scores = sm.sweep(data, replace(found.plan, seed=7), workers=1)
    made = scores.candidate.filter(pl.col("status") == "ok")
    assert set(scores.candidate["status"]) <= {"ok", "infeasible"}
    assert all(scores.candidate.filter(pl.col("status") == "infeasible")["reason"])
    ru = sm.RUMap(scores, found.plan.risk, found.plan.utility)
    assert set(ru.points["id"]) == set(made["id"])
    assert found.plan.risk[0].startswith("ClosestRecord") and found.plan.utility.startswith("QueryError")
    trials = [trial for cls in METHODS for trial in cls.trials(Roles(data)).items()]
    words = {method.text: name for name, method in trials if isinstance(method, Method)}
    value = {words.get(row["method"], "Identity"): row for row in ru.points.to_dicts()}
    assert value["Identity"]["utility"] == 0
    assert value["Synthesize trees"]["risk"] < value["Identity"]["risk"]
    for weak, strong in (("Noise .05", "Noise .5"), ("RankSwap .02", "RankSwap .15"), ("PRAM .9", "PRAM .6")):
        # One draw each against 80 non-members: the standard error of a risk near 0.6 is about 0.035.
        assert value[strong]["risk"] < value[weak]["risk"] + 0.06
        assert value[weak]["risk"] < value["Identity"]["risk"] + 0.06


def test_plan_is_saved_as_toml(tried: tuple[sm.Microdata, TrialPlan]) -> None:
    plan = tried[1].plan
    assert Plan.from_toml(plan.toml()).digest == plan.digest


@pytest.mark.parametrize("kind", ["keys", "numeric"])
def test_files_of_one_kind_get_their_methods(kind: str) -> None:
    made = sm.demo.population(300, seed=1).frame()
    names = {"keys": ["Age", "Educ", "Sex"], "numeric": ["wage", "total"]}[kind]
    data = sm.read(made.select(names), **{kind: names})
    found = trial_plan(data)
    assert found.plan.problems_with(data) == []
    of_keys, of_numbers = (
        {"Swap", "PRAM", "RandomizedResponse", "Suppress"},
        {"Noise", "RankSwap", "Shuffle", "TopCode"},
    )
    wanted, others = (of_keys, of_numbers) if kind == "keys" else (of_numbers, of_keys)
    assert wanted | {"Sample", "Synthesize"} <= classes(found)
    assert not others & classes(found)
    assert others <= set(found.left_out)


def test_large_mixed_files_are_not_grouped_by_gower(people: sm.Microdata, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sdcmap.methods.microaggregate.MAX_RECORDS_GOWER", 100)
    assert trial_plan(people).left_out["Microaggregate gower 3"] == "too slow for more than 100 records."


def test_compare_accepts_constant_and_empty_variables() -> None:
    frame = pl.DataFrame({"a": [1.0] * 40, "b": [None] * 40, "c": ["x"] * 40}, schema_overrides={"b": pl.Float64})
    data = sm.read(frame, keys=["c"], numeric=["a", "b"])
    found = trial_plan(data, replicates=1)
    assert "Round" in found.left_out
    assert set(sm.sweep(data, found.plan, workers=1).candidate["status"]) <= {"ok", "infeasible"}


def test_compare_rejects_data_without_roles() -> None:
    with pytest.raises(sm.errors.PlanError, match="state their roles"):
        trial_plan(sm.read(pl.DataFrame({"a": ["x", "y"]})))


def test_households_are_set_aside_whole(people: sm.Microdata) -> None:
    inside, outside = set_aside(people, 0.25, np.random.default_rng(2))
    own, others = (set(part.frame()["household"]) for part in (inside, outside))
    assert not own & others
    assert len(inside) + len(outside) == len(people)
    assert len(others) == round(0.25 * len(own | others))
    assert inside.origin is None and inside.base is None
    one = sm.read(pl.DataFrame({"a": [1.0]}), numeric="a")
    with pytest.raises(sm.errors.PlanError, match="two records"):
        set_aside(one, 0.2, np.random.default_rng(1))


@pytest.mark.parametrize(("size", "base"), [(1, 1), (1.99, 1), (2.5, 2), (5, 5), (78, 50), (0.03, 0.02), (7000, 5000)])
def test_rounding_bases_are_round_numbers(size: float, base: float) -> None:
    assert round_number_below(size) == pytest.approx(base)


def test_rare_categories_and_varied_keys() -> None:
    frame = pl.DataFrame({"a": ["x"] * 97 + ["y", "y", "z"], "b": ["p", "q"] * 50, "c": ["u"] * 60 + ["v"] * 40})
    roles = Roles(sm.read(frame, keys="all"))
    assert roles.rare("a", 0.05) == ("y", "z")
    assert roles.rare("a", 0.02) == ("z",)
    assert roles.most_diverse_keys == ("b", "c")


# ---- compare --------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def few() -> sm.Microdata:
    frame = sm.demo.population(160, seed=5).frame().select("Age", "Sex", "wage", "household")
    return sm.read(frame, keys=["Age", "Sex"], numeric="wage", household="household")


def test_compare_is_reproducible(few: sm.Microdata, tmp_path: Path) -> None:
    compared = sm.compare(few, replicates=1, seed=7, workers=1)  # in a temporary folder
    assert compared.outside is not None
    assert len(compared.inside) + len(compared.outside) == len(few)
    assert not set(compared.inside.frame()["household"]) & set(compared.outside.frame()["household"])
    assert compared.plan.seed == 7 and compared.proposed == {}
    names = set(compared.table["name"])
    assert {
        "wage with 5 % noise",
        "Age, Sex, wage synthesized (CART, at least 5 records per leaf)",
        "the file as it is",
    } <= names
    assert "Sex, Age suppressed to k = 2; wage with 5 % noise" in names
    assert "HouseholdSwap" in compared.not_on_the_map
    assert set(compared.plan.method_names.values()) <= names | set(compared.not_on_the_map)
    again = sm.compare(few, tmp_path / "kept", replicates=1, seed=7, workers=1)
    assert again.inside.frame().equals(compared.inside.frame())
    assert again.table.equals(compared.table)
    study = sm.Study.open(tmp_path / "kept" / "study")
    assert study.plan.count == again.plan.count == len(study.scores().candidate)
    study.connection.close()
    other = sm.compare(few, replicates=1, seed=8, workers=1)
    assert not other.inside.frame().equals(compared.inside.frame())


def test_compare_reports_proposed_roles_of_a_path_or_source(tmp_path: Path, few: sm.Microdata) -> None:
    path = sm.write(few, tmp_path / "few.csv")
    by_path = sm.compare(path, replicates=1, seed=1, workers=1, utility="TableError")
    assert by_path.proposed == {"keys": ("Age", "Sex"), "numeric": ("wage",), "household": ("household",)}
    assert by_path.map.utility.startswith("TableError")
    stated = sm.Source(str(path), keys=("Age", "Sex"))
    by_source = sm.compare(stated, replicates=1, seed=1, workers=1)
    assert by_source.inside.names == ("Age", "Sex") and by_source.proposed == {}
    with_control = sm.compare(stated, control=path, replicates=1, seed=1, workers=1)
    assert with_control.outside is None and len(with_control.inside) == len(few)


def test_look_accepts_microdata_path_or_source(tmp_path: Path, few: sm.Microdata) -> None:
    path = sm.write(few, tmp_path / "few.csv")
    roles = {"keys": ("Age", "Sex"), "numeric": ("wage",), "household": ("household",)}
    seen = sm.look(sm.Source(str(path), **roles))
    assert seen == sm.look(sm.Source(str(path), **roles).read())
    assert all(variable.stated for variable in seen.variables)
    assert not any(variable.stated for variable in sm.look(path).variables)
    assert [variable.role for variable in sm.look(path).variables] == ["key", "key", "numeric", "household"]
    plan = seen.plan(path)
    assert plan.data is not None and plan.problems_with(plan.data.read()) == []


# ---- the command ----------------------------------------------------------------------------------------------
def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


@pytest.fixture(scope="module")
def folder(people: sm.Microdata, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("room")
    people.frame().select("Age", "Sex", "Educ", "Race", "wage", "Income").write_csv(folder / "people.csv")
    return folder


def test_compare_draws_one_map(folder: Path) -> None:
    out = folder / "comparison"
    arguments = ("--sensitive", "Income", "--replicates", 1, "--workers", 1, "--risk", "AttributeInference", "--json")
    done = run(folder / "people.csv", *arguments, "-o", out)
    assert done.exit_code == 0, done.output
    assert "keys: Age, Sex, Educ, Race" in done.stderr
    assert "80 of 400 records are set aside" in done.stderr
    facts = json.loads(done.stdout)
    assert facts["risk"].startswith("AttributeInference") and facts["utility"].startswith("QueryError")
    names = {row["name"] for row in facts["methods"]}
    assert {
        "the file as it is",
        "wage with 20 % noise",
        "Age, Sex and 4 more synthesized (CART, at least 5 records per leaf)",
    } <= names
    assert len(facts["refine"]) == 3 and set(facts["refine"]) <= names
    assert "HouseholdSwap" in facts["not on the map"]
    files = {path.name for path in out.iterdir()}
    kept = {"inside.study.parquet", "outside.study.parquet"}
    assert files == {"plan.toml", "refine.toml", "study", "map.html", "map.png"} | kept
    drawn = (out / "map.html").read_text()
    assert "microaggregated in groups of 3" in drawn  # all methods are drawn; labels only where there is space
    assert str(out) not in drawn
    assert "not empty" in str(run(folder / "people.csv", "-o", out).exception)
    plan = Plan.read(out / "plan.toml")
    assert plan.data is not None
    assert plan.problems_with(plan.data.read(out)) == []


def test_compare_uses_stated_columns(folder: Path, tmp_path: Path) -> None:
    arguments = ("--keys", "Age,Sex", "--numeric", "wage", "--replicates", 1, "--workers", 1)
    shown = run(folder / "people.csv", *arguments, "-o", tmp_path / "out").stdout
    assert "synthesized (CART" in shown and f"risk: {sm.risk.ClosestRecord.label}" in shown
    assert "Methods to refine: " in shown
    assert f"sdcmap sweep {tmp_path / 'out' / 'refine.toml'}" in shown.replace("\n", "")
    plan = Plan.read(tmp_path / "out" / "plan.toml")
    assert plan.data is not None
    assert plan.data.read(tmp_path / "out").names == ("Age", "Sex", "wage")
    wrong = run(folder / "people.csv", *arguments, "--risk", "Closest", "-o", tmp_path / "b")
    assert "Did you mean 'ClosestRecord'" in str(wrong.exception)
