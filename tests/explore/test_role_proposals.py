"""Proposals on small files of the kinds that real surveys come in: each shows a fault that proposals once had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.explore.first_look import ColumnSummary, Look
from sdcmap.explore.role_proposals import format_total

N = 600
MEMBERS = np.tile([1, 2, 3, 4], 60)  # sizes of 240 households with 600 people
HOUSEHOLD = np.repeat(np.arange(1, 241), MEMBERS)


def look(columns: dict[str, Any]) -> dict[str, ColumnSummary]:
    return {v.name: v for v in sm.look(sm.read(pl.DataFrame(columns)), identifying=False).variables}


def roles(columns: dict[str, Any]) -> dict[str, str]:
    return {name: v.role for name, v in look(columns).items()}


def people(seed: int) -> dict[str, Any]:
    """Return a Polish household survey: numbers of households, a weight that sums to no round number, and amounts."""
    rng = np.random.default_rng(seed)
    weight = (rng.lognormal(5, 0.4, 240)[HOUSEHOLD - 1]).round(3)
    return {
        "wiek": rng.integers(18, 90, N), "plec": rng.choice(["k", "m"], N), "dochod": rng.lognormal(8, 0.6, N).round(2),
        "woj": rng.integers(1, 17, N) * 2, "wydatki": rng.integers(100, 90_000, N), "orig_hid": 5000 + HOUSEHOLD,
        "household_weights": weight,
    }  # fmt: skip


def test_households_and_weights_are_not_amounts() -> None:
    seen = look(people(1))
    assert (seen["orig_hid"].role, seen["household_weights"].role) == ("household", "weight")
    assert seen["orig_hid"].evidence == "240 distinct values, up to 4 of 600 rows share one"
    assert "they sum to" in seen["household_weights"].evidence and seen["household_weights"].certainty == "likely"
    # without a telling name, a number that stands in runs of a few rows numbers households
    other = {name: values for name, values in people(1).items() if name != "orig_hid"}
    seen = look({"nr_ankiety_a": HOUSEHOLD, **other})
    assert (seen["nr_ankiety_a"].role, seen["nr_ankiety_a"].certainty) == ("household", "possible")
    assert roles({"dochod_a": np.sort(people(1)["wydatki"]), **other})["dochod_a"] == "numeric"


def test_further_weights_and_inclusion_probabilities_are_left_out() -> None:
    rng = np.random.default_rng(2)
    weight = rng.uniform(20, 400, N).round(4)
    columns = {
        "design_weight": weight, "cal_weight": (weight * rng.uniform(0.9, 1.1, N)).round(4),
        "scaled": weight / weight.mean(), "p1": 1 / weight, "pik": rng.uniform(0.01, 0.2, N),
        "share": rng.uniform(0.01, 0.99, N).round(4),
        "fpc": rng.choice([900, 1500, 4000], N), "pw": np.full(N, 31.5),
    }  # fmt: skip
    seen = look(columns)
    assert {name: v.role for name, v in seen.items()} == {
        "design_weight": "weight", "cal_weight": "drop", "scaled": "drop", "p1": "drop", "pik": "drop", "share": "numeric",
        "fpc": "drop", "pw": "other",
    }  # fmt: skip
    assert seen["p1"].certainty == "certain" and "1/design_weight" in seen["p1"].why
    assert "proportional to the weight" in seen["scaled"].why and "finite population" in seen["fpc"].why
    assert roles({"pik": columns["pik"], "wage": columns["cal_weight"]}) == {"pik": "drop", "wage": "numeric"}


def test_names_of_places_and_firms_are_not_names_of_people() -> None:
    rng = np.random.default_rng(3)
    places = np.array([f"Villanueva {k}" for k in range(80)])[rng.integers(0, 80, N)]
    seen = look(
        {
            "nombre_municipio": places, "Gemeindename": places, "country_name": places[rng.permutation(N)],
            "nombre": [f"Persona {k}" for k in range(N)], "name": places[rng.permutation(N)],
            "nom_commune": places[rng.permutation(N)], "vorname": places[rng.permutation(N)],
            "nombre_hijos": rng.integers(0, 30, N), "city": rng.choice(["yes", "no"], N),
        }
    )  # fmt: skip
    by_class = {name: (v.role, v.safe_harbor) for name, v in seen.items()}
    assert by_class["nombre_municipio"] == by_class["nom_commune"] == ("key", "B")
    assert by_class["nombre"] == by_class["vorname"] == ("identifier", "A")
    assert {by_class[name][1] for name in ("country_name", "name", "nombre_hijos", "city")} == {""}
    assert by_class["Gemeindename"][0] != "identifier" and by_class["name"][0] != "identifier"


def test_laboratory_values_are_not_biometric_identifiers(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    columns: dict[str, Any] = {
        "biometric_glucose": rng.normal(5.5, 0.8, N).round(2), "dna_ng_ul": rng.lognormal(4, 1, N).round(1),
        "crp": [f"<{x:.1f}" if x < 1 else f"{x:.1f}" for x in rng.lognormal(0.5, 1, N)],
        "finger_print": [f"{x:016x}" for x in rng.integers(1, 2**60, N)], "uric_acid": rng.integers(100, 600, N),
    }  # fmt: skip
    seen = look(columns)
    assert seen["biometric_glucose"].role == seen["dna_ng_ul"].role == seen["uric_acid"].role == "numeric"
    assert (seen["finger_print"].role, seen["finger_print"].safe_harbor) == ("identifier", "P")
    puma = np.array([f"{17 + k}-{3500 + k:05}" for k in range(20)])[rng.integers(0, 20, N)]
    assert roles({"puma": puma, "phone": [f"0171-{1_000_000 + k}" for k in range(N)]}) == {
        "puma": "key",
        "phone": "identifier",
    }


def test_amounts_that_spread_evenly_are_not_record_numbers() -> None:
    rng = np.random.default_rng(5)
    even = rng.permutation(np.arange(N) * 150_003 + rng.integers(0, 90_000, N))
    assert roles({"expenditure": even, "v7": even}) == {"expenditure": "numeric", "v7": "identifier"}


def test_numbers_that_repeat_are_no_identifiers() -> None:
    rng = np.random.default_rng(6)
    sex = rng.choice(["f", "m"], N)
    half = np.repeat(np.arange(N // 2), 2)[rng.permutation(N)]
    panel = {"person_id": np.tile(np.arange(150), 4), "year": np.repeat([2001, 2002, 2003, 2004], 150), "sex": sex}
    seen = look(panel)
    assert (seen["person_id"].role, seen["year"].role) == ("case", "key")
    assert "no value repeats within a value of year" in seen["person_id"].why
    seen = look({"id": half, "sex": sex})
    assert (seen["id"].role, seen["id"].certainty) == ("household", "possible") and "differ in sex" in seen["id"].why
    assert roles({"person_id": half, "sex": np.where(half % 2, "f", "m")})["person_id"] == "case"
    nearly = np.arange(N)
    nearly[-1] = 0
    seen = look({"person_id": nearly, "school_no": rng.choice(10**6, 40, replace=False)[rng.integers(0, 40, N)]})
    assert seen["person_id"].role == "identifier" and "up to 2 of 600 rows share one" in seen["person_id"].evidence
    assert (seen["school_no"].role, seen["school_no"].kind) == ("key", "nominal")


def test_indicators_squares_and_other_codes_are_computed() -> None:
    rng = np.random.default_rng(7)
    age, region = rng.integers(16, 90, N), rng.choice(["north", "south", "east"], N)
    columns: dict[str, Any] = {
        "age": age, "age_sq": age**2, "age2": age**2 / 100, "retired": (age >= 65).astype(int), "region": region,
        "reg_no": np.searchsorted(["east", "north", "south"], region) + 1, "d_north": (region == "north").astype(int),
        "smoker": (rng.random(N) < 0.3).astype(int), "q1": rng.integers(1, 6, N), "q2": rng.integers(1, 6, N),
        **{f"job_{k}": (rng.integers(0, 3, N) == k).astype(int) for k in (9,)},
    }  # fmt: skip
    seen = look(columns)
    computed = {name: v.why.partition(";")[0] for name, v in seen.items() if v.why.startswith("computed")}
    assert computed == {
        "age_sq": "computed: age**2", "age2": "computed: age**2 * 0.01",
        "retired": "computed: an indicator that splits the values of age",
        "reg_no": "computed: another code of the categories of region",
        "d_north": "computed: an indicator of one of the 3 categories of region",
    }  # fmt: skip
    assert {seen[name].role for name in computed} == {"drop"} and {seen[name].certainty for name in computed} == {
        "certain"
    }
    wages = rng.lognormal(8, 1, N).round()
    squared = look({"wage": wages, "wage_sq": wages**2})
    assert (squared["wage_sq"].role, squared["wage_sq"].formula) == ("numeric", "wage**2")


def test_sets_of_indicators_are_seen() -> None:
    job = np.random.default_rng(8).integers(0, 4, N)
    seen = look({f"praca_{k}": (job == k).astype(int) for k in range(4)} | {"tak": (job % 2).astype(int)})
    assert {v.why for name, v in seen.items() if name != "tak"} == {
        "one of 4 indicators of which exactly one is 1 in each record: make one column of them"
    }


def test_formula_that_tests_nothing_is_not_proposed() -> None:
    """A loss is 0 wherever there is a gain, so that age / gain rounds to it in all records with a gain."""
    rng = np.random.default_rng(9)
    gain = np.where(rng.random(N) < 0.3, rng.integers(5000, 90_000, N), 0)
    loss = np.where((gain == 0) & (rng.random(N) < 0.3), rng.integers(500, 3000, N), 0)
    assert not any(v.formula for v in look({"age": rng.integers(17, 90, N), "gain": gain, "loss": loss}).values())


def file_with_points(folder: Path) -> Path:
    """Write a file whose missing numbers are points, as SAS and Stata write them."""
    rng = np.random.default_rng(10)
    hidden = rng.random((N, 25)) < 0.05
    numbers = {f"x{k}": np.where(hidden[:, k], ".", rng.lognormal(3, 1, N).round(2).astype(str)) for k in range(25)}
    pl.DataFrame({"sex": rng.choice(["f", "m"], N), **numbers}).write_csv(folder / "points.csv")
    return folder / "points.csv"


def test_points_among_numbers_are_read_as_missing_and_counted(tmp_path: Path) -> None:
    path = file_with_points(tmp_path)
    seen = sm.look(path, identifying=False)
    assert seen.names_with_role("numeric") == tuple(f"x{k}" for k in range(25)) and seen.names_with_role("drop") == ()
    raw = pl.read_csv(path, infer_schema_length=0)
    assert seen.read_as_missing == {f"x{k}=.": int((raw[f"x{k}"] == ".").sum()) for k in range(25)}
    assert {v.name: v.missing for v in seen.variables if v.name != "sex"} == {
        name.removesuffix("=."): count for name, count in seen.read_as_missing.items()
    }
    plan = sm.Plan.from_toml(seen.plan(path).toml())
    assert plan.data is not None and set(plan.data.missing) == set(seen.read_as_missing)
    assert plan.data.read().missing("x3").sum() == seen.read_as_missing["x3=."]


def codes(columns: dict[str, Any]) -> tuple[str, ...]:
    return sm.look(sm.read(pl.DataFrame(columns)), identifying=False).codes


def test_frequent_or_ambiguous_texts_are_no_codes_for_missing_values() -> None:
    rng = np.random.default_rng(11)
    padded = np.where(rng.random(N) < 0.97, "N  ", "Y  ")
    grade = np.where(rng.random(N) < 0.97, "N", rng.integers(1, 7, N).astype(str))
    assert codes({"disabled": padded, "grade": grade, "state": rng.choice(["ND", "NR", "TX", "CA"], N)}) == ()
    assert codes({"often": rng.choice(["none", "some", "many"], N)}) == ()
    asked = np.where(rng.random(N) < 0.1, "N", rng.integers(1, 7, N).astype(str))
    assert codes({"asked": asked, "answer": rng.choice(["yes", "no", "N"], N)}) == ("asked=N", "answer=N")


def test_single_nines_are_no_codes() -> None:
    rng = np.random.default_rng(12)
    percent = rng.integers(0, 60, N)
    once, often = percent.copy(), percent.copy()
    once[0], often[:9] = 99, 99
    assert codes({"once": once, "often": often, "tested": rng.integers(94, 101, N)}) == ("often=99",)


def test_every_proposal_says_how_sure_it_is_and_what_it_saw() -> None:
    for name, column in look(
        people(13) | {"empty": pl.Series([None] * N, dtype=pl.Float64), "same": np.ones(N)}
    ).items():
        assert column.certainty in ("certain", "likely", "possible"), name
        assert column.why and "distinct value" in column.evidence, name
    stated = sm.look(sm.read(pl.DataFrame(people(13)), keys="plec"), identifying=False)
    assert {v.certainty for v in stated.variables if v.stated} == {"stated"}


def shares(seed: int = 14) -> dict[str, Any]:
    """Return columns of a shuffled household file: numbers far apart, and what the members of a household share."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(N)
    of_household = {
        "v9": rng.choice(10**6, 241, replace=False), "rooms": rng.integers(1, 9, 241),
        "total": rng.lognormal(9, 0.5, 241).round(),
    }  # fmt: skip
    return {name: values[HOUSEHOLD][order] for name, values in of_household.items()} | {
        "age": rng.integers(18, 90, N),
        "sex": rng.choice(["f", "m"], N),
    }


@pytest.mark.parametrize(
    "name",
    ["idhog", "folioviv", "hserial", "nquest", "idhh", "num_hog", "dwelling", "HHSERIAL", "id_menage", "haushaltsnr"],
)
def test_household_numbers_in_any_order_by_name(name: str) -> None:
    seen = look({name: shares()["v9"], "age": shares()["age"], "sex": shares()["sex"]})[name]
    assert (seen.role, seen.certainty) == ("household", "likely")


def test_household_and_person_numbers_in_any_order_by_what_their_records_share() -> None:
    seen = look(shares())
    assert (seen["v9"].role, seen["v9"].certainty) == ("household", "possible")
    assert "agree in rooms, total" in seen["v9"].why and "up to 4 of 600 rows" in seen["v9"].evidence
    rng = np.random.default_rng(15)
    person = rng.permutation(np.repeat(np.arange(100), 6))
    own = {"sex": rng.choice(["f", "m"], 100)[person], "born": rng.integers(1940, 2000, 100)[person]}
    seen = look({"v9": person * 37 + 4000, **own, "wage": rng.lognormal(8, 1, N).round()})
    assert (seen["v9"].role, seen["v9"].certainty) == ("case", "possible") and "agree in sex, born" in seen["v9"].why
    wage = rng.integers(10, 400, N) * 100  # an amount determines its tax and its band, but no household has one
    functions = {"v3": wage, "tax": np.maximum(wage - 5000, 0) // 5, "band": np.digitize(wage, [5000, 10_000, 20_000])}
    assert roles({**functions, "sex": shares()["sex"]})["v3"] == "numeric"


def test_weights_of_surveys_and_of_bodies() -> None:
    rng = np.random.default_rng(16)
    weight, kilos = rng.lognormal(5, 0.4, N).round(2), rng.normal(75, 12, N).round(1)
    for name in ("factor", "FACTOREL", "gew", "wgt"):
        assert roles({name: weight, "age": shares()["age"]})[name] == "weight", name
    for name in ("gew_kg", "peso_kg", "body_wgt", "koerpergewicht", "risk_factor", "factor1"):
        assert roles({name: kilos, "age": shares()["age"]})[name] == "numeric", name
    assert roles({"gew": kilos, "groesse": rng.normal(172, 9, N).round()})["gew"] == "numeric"


def test_inclusion_probability_of_any_scale() -> None:
    weight = np.random.default_rng(17).lognormal(3, 0.6, N).round(3)
    assert (50 / weight > 1).any()
    seen = look({"w": weight, "x": 50 / weight})
    assert (seen["x"].role, seen["x"].certainty) == ("drop", "certain") and "proportional to 1/w" in seen["x"].why
    assert seen["w"].role == "weight"


REPEATED = np.random.default_rng(18).permutation(np.repeat(np.arange(100), 6)) + 1000
PERSON_NAMES = (
    "patient_id", "mrn", "account_no", "ssn", "subject", "person", "idind", "worker", "subjid", "respid", "pat_nr", "pid",
)  # fmt: skip


@pytest.mark.parametrize("name", PERSON_NAMES)
def test_repeated_numbers_of_persons_are_cases(name: str) -> None:
    """They were plain identifiers, amounts or keys, so that each record counted as another person."""
    rng = np.random.default_rng(19)
    others = {"age": rng.integers(18, 90, N), "sex": rng.choice(["f", "m"], N)}
    seen = look({name: REPEATED, **others})[name]
    assert (seen.role, seen.certainty) == ("case", "possible") and "up to 6 of 600 rows share one" in seen.evidence
    for time in ("year", "visit"):
        panel = look({name: np.repeat(np.arange(100), 6), time: np.tile(np.arange(2001, 2007), 100), **others})
        assert (panel[name].role, panel[name].certainty) == ("case", "likely")
        assert f"no value repeats within a value of {time}" in panel[name].why
        assert (panel[time].role, panel[time].kind) == ("key", "ordinal") and f"because {name} tells" in panel[time].why
    assert look({name: np.arange(N) + 1000, **others})[name].role == "identifier"


def test_one_number_of_persons_is_the_case() -> None:
    seen = look({"mrn": REPEATED * 7 % 997, "patient_id": [f"P{k}" for k in REPEATED], "age": shares()["age"]})
    assert (seen["mrn"].role, seen["patient_id"].role) == ("case", "identifier")
    assert "a further number of persons beside mrn" in seen["patient_id"].why
    stated = sm.look(sm.read(pl.DataFrame({"pid": REPEATED, "mrn": REPEATED * 3}), case="pid"), identifying=False)
    assert stated.names_with_role("identifier") == ("mrn",)


def test_counts_and_amounts_are_no_identifiers() -> None:
    rng = np.random.default_rng(20)
    columns = {
        "email_count": rng.poisson(20, N), "phone_minutes": rng.integers(0, 300, N),
        "license_years": rng.integers(0, 50, N), "ip_rate": rng.integers(0, 100, N),
        "ssn_income": rng.integers(100, 40_000, N) * 10, "phone": rng.integers(0, 40, N),
        "mobile_usage": rng.normal(50, 9, N).round(1), "patient_age": rng.integers(18, 90, N),
    }  # fmt: skip
    seen = look(columns)
    assert {v.role for v in seen.values()} <= {"numeric", "key"} and seen["ssn_income"].role == "numeric"
    assert roles({"phone": rng.integers(10**9, 2 * 10**9, N), "license": rng.integers(10**6, 10**7, N)}) == {
        "phone": "identifier", "license": "identifier",
    }  # fmt: skip


def test_functions_of_an_identifier_are_identifiers() -> None:
    rng = np.random.default_rng(21)
    number, a = np.arange(1, N + 1) * 100 + 1, rng.normal(0, 1, N).round(2)
    seen = look({"person_number": number, "dec": number / 100, "a": a, "hx": (a + 200 * (number / 100)).round(2)})
    assert (seen["dec"].role, seen["dec"].certainty) == ("identifier", "certain") and not any(
        v.formula for v in seen.values()
    )
    assert "a function of person_number" in seen["dec"].why
    seen = look({"pid": REPEATED, "dec": REPEATED / 100, "log_pid": np.log(REPEATED), "a": a})
    assert [seen[name].role for name in ("pid", "dec", "log_pid", "a")] == [
        "case",
        "identifier",
        "identifier",
        "numeric",
    ]


def test_original_columns_stay_beside_what_is_computed_from_them() -> None:
    rng = np.random.default_rng(22)
    age, sex, educ = rng.integers(18, 90, N), rng.choice(["f", "m"], N), rng.integers(8, 18, N)
    income = rng.lognormal(8, 0.6, N).round(2)
    hours = np.where(rng.random(N) < 0.4, 0, rng.integers(5, 60, N))
    columns = {
        "age": age, "sex": sex, "educ": educ, "income": income, "inter": age * (sex == "f"), "educ_f": educ * (sex == "f"),
        "log_income": np.log(income), "log_age": np.log(age).round(3), "z": (income - income.mean()) / income.std(),
        "z_age": ((age - age.mean()) / age.std()).round(3), "exper": age - educ - 6, "hours": hours,
        "works": (hours > 0) * 1,
    }  # fmt: skip
    seen = look(columns)
    computed = {
        name: v.why.partition(";")[0].removeprefix("computed: ") for name, v in seen.items() if v.role == "drop"
    }
    assert computed == {
        "inter": "age for some categories of sex, and 0 for the others",
        "educ_f": "educ for some categories of sex, and 0 for the others",
        "log_age": "log(age)", "z": "a linear function of income", "z_age": "a linear function of age",
        "exper": "age - educ - 6",
    }  # fmt: skip
    assert {seen[name].certainty for name in computed} == {"certain"} and seen["log_income"].formula == "log(income)"
    first = {name: columns[name] for name in ("exper", "age", "educ")}
    assert roles(first) == {"exper": "drop", "age": "key", "educ": "key"}


def test_numbers_near_a_line_are_not_computed() -> None:
    rng = np.random.default_rng(23)
    x, years = rng.lognormal(8, 0.6, N).round(2), rng.integers(0, 18, N)
    near = {
        "x": x,
        "y": (1.3 * x + rng.normal(0, 5, N)).round(2),
        "years": years,
        "grade": years + (rng.random(N) < 0.1),
    }
    assert "drop" not in roles(near).values()
    tiny = {"p": rng.choice([0.001, 0.002, 0.004], N), "k": rng.choice([2, 3, 5], N)}
    assert "drop" not in roles(tiny).values(), "two decimals of numbers below 0.005 say nothing"


@pytest.mark.parametrize(("total", "words"), [(999.4, "999"), (1_250_000, "1.2 million"), (331_449_281, "331 million")])
def test_totals_in_words(total: float, words: str) -> None:
    assert format_total(total) == words


REAL: dict[str, dict[str, str]] = {  # what a statistician would state for some columns of real files
    "sdcmicro_testdata.csv": {"ori_hid": "household", "household_weights": "weight", "expend": "numeric", "age": "key"},
    "survey_apistrat.csv": {"pw": "weight", "fpc": "drop", "snum": "identifier", "stype": "key", "growth": "numeric"},
    "psid1976_household.csv": {"hage": "key", "college": "drop", "wage": "numeric", "heducation": "key"},
}  # fmt: skip


@pytest.mark.parametrize("name", REAL)
def test_proposals_on_real_files(name: str, shared: Path) -> None:
    seen: Look = sm.look(shared / "data" / name, identifying=False)
    assert {v.name: v.role for v in seen.variables if v.name in REAL[name]} == REAL[name]
