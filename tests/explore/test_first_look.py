"""A first look at a file: proposed roles and kinds, unique records, and codes for missing values."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.data.schema import Schema, Variable
from sdcmap.errors import SchemaError
from sdcmap.explore.first_look import Look, find_identifying_sets
from sdcmap.explore.role_proposals import propose_roles

N = 400


def survey() -> pl.DataFrame:
    """A mixed file: ids, survey weight, codes, amounts, a derived total, codes for missing values."""
    rng = np.random.default_rng(7)
    wage = rng.lognormal(8, 0.7, N).round(2)
    rent = rng.lognormal(6, 0.5, N).round(2)
    weight = rng.uniform(50, 400, N).round(1)
    return pl.DataFrame(
        {
            "V1": np.arange(1, N + 1),
            "AGEP": rng.integers(18, 95, N),
            "sex": rng.integers(1, 3, N),
            "region": rng.integers(1, 17, N),
            "occupation": 1000 + rng.integers(0, 20, N) ** 2,
            "education": rng.integers(1, 8, N),
            "q7": rng.integers(1, 6, N),
            "born": [dt.date(1950, 1, 1 + place % 3) for place in range(N)],
            "wage": np.where(np.arange(N) % 20 == 0, -8, wage),
            "rent": rent,
            "total": np.where(np.arange(N) % 20 == 0, np.nan, (wage + rent).round(2)),
            "note": rng.choice(["yes", "no", "N"], N),
            "PWGTP": weight,
            **{f"PWGTP{i}": (weight * rng.uniform(0.5, 1.5, N)).round(1) for i in range(1, 6)},
            "psu": rng.integers(1, 40, N),
            "nothing": pl.Series([None] * N, dtype=pl.Float64),
        }
    )


@pytest.fixture(scope="module")
def seen() -> Look:
    return sm.look(sm.read(survey()))


def test_roles_and_kinds(seen: Look) -> None:
    assert {v.name: (v.role, v.kind) for v in seen.variables if not v.name.startswith("PWGTP")} == {
        "V1": ("identifier", "numeric"), "AGEP": ("key", "ordinal"), "sex": ("key", "nominal"),
        "region": ("key", "nominal"), "occupation": ("key", "nominal"), "education": ("key", "ordinal"),
        "q7": ("key", "ordinal"), "born": ("key", "ordinal"), "wage": ("numeric", "numeric"),
        "rent": ("numeric", "numeric"), "total": ("numeric", "numeric"), "note": ("key", "nominal"),
        "psu": ("psu", "numeric"), "nothing": ("drop", "numeric"),
    }  # fmt: skip
    assert seen.names_with_role("weight") == ("PWGTP",)
    assert seen.names_with_role("replicate") == tuple(f"PWGTP{i}" for i in range(1, 6))
    assert not any(v.stated for v in seen.variables)


def test_derived_columns_and_codes(seen: Look) -> None:
    assert seen.codes == ("wage=-8", "note=N")
    result = sm.look(sm.read(survey(), missing=list(seen.codes)))
    assert {v.name: v.formula for v in result.variables if v.formula} == {"total": "wage + rent"}
    assert result.codes == () and sm.read(survey(), missing=list(seen.codes)).missing("wage").sum() == N / 20


def test_look_counts_unique_records(seen: Look) -> None:
    frame = survey()
    numbers = ["wage", "rent", "total"]
    levels = {"the keys": seen.names_with_role("key"), "keys and numbers": (*seen.names_with_role("key"), *numbers)}
    for words, names in levels.items():
        assert seen.unique[words] == (len(names), frame.select(names).is_unique().sum())
    released = [v.name for v in seen.variables if v.role not in ("identifier", "drop", "stratum", "household")]
    assert seen.unique["all released columns"] == (len(released), frame.select(released).is_unique().sum())
    for names, alone in seen.identifying.sets:
        assert frame.select(names).is_unique().sum() == alone
    assert seen.identifying.words == f"exact, over all sets of up to three of the {len(released)} released columns"


def test_look_reports_limited_search_of_identifying_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sdcmap.explore.first_look.MAX_SEARCH_WORK", 40 * (20_000 + N))
    data = sm.read(survey())
    result = find_identifying_sets(data, data.names)
    assert (result.columns, result.of) == (5, len(data.names)) and "were not searched" in result.words


def test_starting_plan_marks_proposed_roles(tmp_path: Path) -> None:
    path = tmp_path / "survey.csv"
    survey().write_csv(path, separator=";")
    look = sm.look(sm.Source(str(path), keys=("sex",), missing=("wage=-8",)))
    source = sm.Plan.from_toml(look.plan(path).toml()).data
    assert source is not None
    assert (source.sep, source.decimal, source.missing) == (";", ".", ("wage=-8",))
    assert set(source.proposed) == set(survey().columns) - {"sex"}
    data = source.read()
    assert {v.name: v.kind for v in data.schema.variables if v.role == "key"} == {
        v.name: v.kind for v in look.variables if v.role == "key"
    }
    assert sm.Plan.from_toml(look.plan(path).toml()).problems_with(data) == []


def test_stated_roles_are_never_changed() -> None:
    stated: dict[str, Any] = {"keys": ["wage"], "other": ["V1", "AGEP"], "sensitive": "sex", "numeric": "region"}
    look = sm.look(sm.read(survey(), **stated))
    roles = {v.name: (v.role, v.kind, v.stated) for v in look.variables}
    assert roles["wage"] == ("key", "numeric", True) and roles["V1"] == ("other", "numeric", True)
    assert roles["sex"] == ("sensitive", "numeric", True) and roles["region"] == ("other", "numeric", True)
    assert not set(look.plan("x.csv").data.proposed) & {"wage", "V1", "AGEP", "sex", "region"}  # type: ignore[union-attr]


def role(name: str, values: Any, label: str = "", **others: Any) -> str:
    """Return the role proposed for one column, by itself or with others."""
    data = sm.read(pl.DataFrame({name: values, **others}))
    labeled = tuple(Variable(**{**vars(v), "label": label if v.name == name else ""}) for v in data.schema.variables)
    return propose_roles(sm.Microdata(Schema(labeled), data.columns))[name].role


RNG = np.random.default_rng(9)
POSITIVE = RNG.lognormal(5, 0.5, N).round(2)
KILOS = RNG.normal(75, 12, N).round(1)


def test_survey_weights_are_distinguished_from_body_weights() -> None:
    for name in ("PWGTP", "pond", "FNLWGT", "hrf", "weight", "wt", "survey_weight", "gewicht", "poids",
                 "pwgt", "pspwght", "anweight", "dweight", "WTINT2YR", "coef_elev", "hgew", "Personengewicht"):  # fmt: skip
        assert role(name, POSITIVE) == "weight", name
    assert role("gewinn", POSITIVE) == "numeric"
    assert role("weight", KILOS, height=RNG.normal(172, 9, N).round()) == "numeric"
    assert role("weight", KILOS, label="body weight in kg") == "numeric"
    assert role("Gewicht", KILOS, bmi=(KILOS / 2.9).round(1)) == "numeric"
    scaled = POSITIVE / POSITIVE.sum() * N
    assert role("v12", scaled) == "weight"
    population = (POSITIVE / POSITIVE.sum() * 81_000).round(2)
    population[0] += round(81_000 - population.sum(), 2)
    assert role("v12", population) == "weight" and role("v12", POSITIVE) == "numeric"


def test_weight_with_zeros_is_not_proposed(tmp_path: Path) -> None:
    assert role("pond", np.where(np.arange(N) < 3, 0.0, POSITIVE)) == "drop"
    path = tmp_path / "x.csv"
    pl.DataFrame({"pond": np.where(np.arange(N) < 3, 0.0, POSITIVE), "sex": [1, 2] * (N // 2)}).write_csv(path)
    look = sm.look(path)
    assert "3 rows are not above zero" in look.variables[0].why
    assert look.plan(path).data.read().unreleased_columns == ("pond",)  # type: ignore[union-attr]


def test_ids_households_panels_and_designs() -> None:
    assert role("id", np.arange(N) + 1) == "identifier" and role("v1", RNG.permutation(N)) == "identifier"
    assert role("v1", RNG.choice(10**9, N, replace=False) + 10**9) == "identifier"
    for name in ("hhid", "HH", "hh_id", "HHNR", "haushalt", "Haushaltsnummer", "idHogar", "b_hhnr"):
        assert role(name, np.arange(N) // 2) == "household"
    for name in ("household_income", "hh_inc", "haushaltseinkommen"):
        assert role(name, np.arange(N) // 2) == "numeric"
    assert role("pid", np.arange(N) // 2, wave=[1, 2] * (N // 2)) == "case"
    assert role("wave", [1, 2] * (N // 2)) == "wave"
    assert role("stratum", np.arange(N) % 12) == "stratum"
    assert role("income", (POSITIVE * 100).round()) == "numeric"


def test_wide_mixed_and_empty_files(tmp_path: Path) -> None:
    wide = sm.look(sm.read(pl.DataFrame({f"v{i}": RNG.integers(0, 9, 20) for i in range(1500)})))
    assert len(wide.variables) == 1500 and wide.identifying.columns < 1500
    texts = [f"{x:.2f}" if place % 50 else f"about {place}" for place, x in enumerate(POSITIVE)]
    mixed = sm.look(sm.read(pl.DataFrame({"income": texts, "sex": [1, 2] * (N // 2)})))
    assert mixed.mixed == {"income": N // 50} and mixed.variables[0].role == "drop"
    one = sm.look(sm.read(pl.DataFrame({"x": [1.0]})))
    assert one.rows == 1 and one.names_with_role("numeric", "other", "key") == ("x",)


@pytest.mark.parametrize("name", ["PERSNR", "laufend"])
def test_evenly_spaced_numbers_are_identifiers(name: str) -> None:
    """Regression test: such numbers were proposed as amounts, and a starting plan released them masked."""
    rng = np.random.default_rng(7)
    frame = pl.DataFrame({name: 100_000 + 7 * rng.permutation(300), "wage": rng.lognormal(8, 1, 300).round()})
    roles = {summary.name: summary.role for summary in sm.look(sm.read(frame)).variables}
    assert roles == {name: "identifier", "wage": "numeric"}


def test_published_tables_add_an_attack_with_the_profile_limit(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    columns = {name: rng.choice(list("abcdefghijklmno"), 200) for name in ("region", "branch", "town")}
    frame = pl.DataFrame({"sex": rng.choice(["f", "m"], 200), **columns})
    data = sm.read(frame, keys=frame.columns)
    paths = [tmp_path / f"{name}.csv" for name in ("sex-by-region", "branch-by-town")]
    for path, names in zip(paths, (("sex", "region"), ("branch", "town")), strict=True):
        frame.group_by(names).len("count").write_csv(path)
    plan = sm.look(data).plan("people.csv", "public-use", paths)
    (attack,) = [measure for measure in plan.measures if isinstance(measure, sm.risk.PublishedTables)]
    assert attack.on == ("sex", "region", "branch"), "450 combinations; with the town they would be 6,750"
    assert attack.text in plan.risk and plan.limits[attack.text] == plan.limits["WorstLinkage"]  # type: ignore[call-overload, index]
    assert sm.Plan.from_toml(plan.toml()) == plan
    pl.DataFrame({"color": ["red"], "count": [3]}).write_csv(tmp_path / "other.csv")
    with pytest.raises(SchemaError, match="contain none of the keys"):
        sm.look(data).plan("people.csv", tables=[tmp_path / "other.csv"])
