"""Formulas are found within rounding, and not by chance."""

from __future__ import annotations

import numpy as np
import polars as pl

import sdcmap as sm
from sdcmap.data.column_formulas import find_formulas, rounding

RNG = np.random.default_rng(2)
N = 400
KG, CM = RNG.normal(75, 12, N).round(1), RNG.normal(172, 9, N).round()
WAGE, RENT = RNG.lognormal(7, 1, N).round(2), RNG.lognormal(5, 1, N).round(2)
OTHER = np.where(RNG.random(N) < 0.2, np.nan, RNG.lognormal(4, 1, N).round(2))


def test_each_kind_of_formula() -> None:
    people = RNG.integers(1, 6, N).astype(float)
    columns = {
        "kg": KG, "cm": CM, "wage": WAGE, "rent": RENT, "other": OTHER, "people": people,
        "bmi": (KG / (CM / 100) ** 2).round(1), "total": (WAGE + RENT + OTHER).round(2), "net": (WAGE - RENT).round(2),
        "share": (100 * RENT / WAGE).round(1), "each": (WAGE / people).round(2), "year": (12 * RENT).round(2),
        "square": CM**2, "area": (KG * CM).round(),
    }  # fmt: skip
    assert find_formulas(columns) == {
        "bmi": "10000 * kg / cm**2", "total": "wage + rent + other", "net": "wage - rent", "share": "100 * rent / wage",
        "each": "wage / people", "year": "12 * rent", "square": "cm**2", "area": "kg * cm",
    }  # fmt: skip


def test_similar_columns_are_not_formulas() -> None:
    noise = RNG.normal(0, 5, N)
    assert find_formulas({"wage": WAGE, "rent": RENT, "near": (WAGE + RENT + noise).round(2)}) == {}
    mostly_zero = np.where(RNG.random(N) < 0.02, RENT, 0.0)
    assert find_formulas({"wage": WAGE, "gift": mostly_zero, "copy": (WAGE + mostly_zero).round(2)}) == {}
    assert find_formulas({"nothing": np.full(N, np.nan), "same": np.ones(N), "wage": WAGE}) == {}


def test_sum_is_derived_in_any_column_order() -> None:
    benefits = np.where(RNG.random(N) < 0.3, RENT, 0.0)  # most people have none, so their total equals their wage
    for names in (("wage", "benefits", "total"), ("total", "benefits", "wage"), ("benefits", "total", "wage")):
        given = {"wage": WAGE, "benefits": benefits, "total": (WAGE + benefits).round(2)}
        ((derived, formula),) = find_formulas({name: given[name] for name in names}).items()
        assert derived == "total" and set(formula.split(" + ")) == {"wage", "benefits"}
    assert (WAGE < RENT).any() and find_formulas({"wage": WAGE, "rent": RENT, "net": (WAGE - RENT).round(2)}) == {
        "net": "wage - rent"
    }


def test_rounding_is_half_a_unit_of_the_last_decimal() -> None:
    assert [rounding(x) for x in (CM, KG, WAGE)] == [0.5, 0.05, 0.005]


def test_sums_are_found_with_their_factors() -> None:
    known = {"wage": WAGE, "rent": RENT, "cm": CM}
    for words, values in {
        "wage + 12 * rent": WAGE + 12 * RENT, "0.19 * wage - 3 * cm": 0.19 * WAGE - 3 * CM,
        "1/12 * wage + 1/12 * rent": (WAGE + RENT) / 12, "1.95583 * wage": 1.95583 * WAGE,
    }.items():  # fmt: skip
        assert find_formulas({**known, "made": values.round(2)}) == {"made": words}
        assert find_formulas({**known, "made": (values + RNG.normal(0, 1, N)).round(2)}) == {}
    assert find_formulas({"my wage": WAGE, "rent": RENT, "made": (WAGE + 12 * RENT).round(2)}) == {
        "made": "`my wage` + 12 * rent"
    }


def test_a_sum_of_columns_with_gaps_is_found_among_many_columns() -> None:
    """Each part is unknown in a third of the records, other columns have gaps too, and the total is far from its parts."""
    rng = np.random.default_rng(4)

    def with_gaps(values: np.ndarray) -> np.ndarray:
        return np.where(rng.random(2000) < 0.34, np.nan, values)

    parts = {f"part_{k}": np.round(rng.gamma(2, 50.0 * 2**k, 2000)) for k in range(5)}
    others = {f"other_{k}": with_gaps(rng.lognormal(4, 1, 2000).round(1)) for k in range(60)}
    known = {name: with_gaps(values) for name, values in parts.items()}
    total = sum(parts.values())
    formula = " + ".join(parts)
    assert find_formulas({**known, **others, "total": total}) == {"total": formula}
    assert find_formulas({**known, **others, "total": total + rng.integers(0, 2, 2000)}) == {}


def test_small_whole_numbers_give_no_formula_by_chance() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        counts = {
            name: rng.poisson(mean, N).astype(float) for name, mean in zip("abcde", (30, 5, 60, 2, 40), strict=True)
        }
        assert find_formulas(counts) == {}


def test_formula_holds_in_every_complete_record() -> None:
    columns = {"wage": WAGE, "rent": RENT, "total": (WAGE + RENT).round(2)}
    assert find_formulas(columns) == {"total": "wage + rent"}
    for change in (0.02, np.nan):
        total = columns["total"].copy()
        total[N // 2 + 1] += change
        assert find_formulas({**columns, "total": total}) == ({"total": "wage + rent"} if np.isnan(change) else {})


def test_no_formula_over_numbers_of_people_and_households() -> None:
    """The household is the person number / 100, rounded, in every row; a release with that formula names the person."""
    household = np.repeat(np.arange(1001, 1001 + N // 2), 2)
    person = 100 * household + np.tile([1, 2], N // 2)
    frame = pl.DataFrame({"household": household, "person_id": person, "wage": WAGE, "tax": (WAGE / 5).round(2)})
    for names in ({}, {"household": "code"}, {"person_id": "kg"}):
        seen = sm.look(sm.read(frame.rename(names)), identifying=False)
        formulas = {v.name: (v.formula, v.rounding) for v in seen.variables if v.formula}
        assert formulas["tax"] == ("0.2 * wage", 0.005), names
        assert not {"household", "person_id"} & set(formulas) and "person_id" not in str(formulas), names
    stated = sm.look(
        sm.read(frame.rename({"person_id": "kg"}), identifiers="kg", household="household"), identifying=False
    )
    assert [v.name for v in stated.variables if v.formula] == ["tax"]
