"""The demo population agrees with its documentation."""

from __future__ import annotations

import numpy as np
import pytest

from sdcmap import Microdata, demo
from sdcmap.errors import PlanError


@pytest.fixture(scope="module")
def persons() -> Microdata:
    return demo.population(100_000, seed=7)


def share(data: Microdata, name: str, category: str, rows: np.ndarray | None = None) -> float:
    """Return the share of rows with this category."""
    hit = data[name] == category
    return float(hit.mean() if rows is None else hit[rows].mean())


def test_shape_roles_and_kinds(persons: Microdata) -> None:
    assert len(persons) == 100_000
    assert persons.keys == ("Age", "WrkTyp", "Educ", "MarStat", "Race", "Sex", "Hours", "Income")
    assert persons.sensitive == persons.numeric == ("wage", "interest", "benefits", "total")
    assert (persons.household, persons.weight) == ("household", "weight")
    assert not persons.schema.of_role(None), "every column has a stated role"
    kinds = {variable.name: variable.kind for variable in persons.schema.variables}
    assert {name for name, kind in kinds.items() if kind == "ordinal"} == {"Age", "Educ", "Hours", "Income"}
    assert not any(persons.missing(name).any() for name in persons.names)


def test_population_depends_on_seed() -> None:
    first = demo.population(500, seed=3).frame()
    assert demo.population(500, seed=3).frame().equals(first)
    other = demo.population(500, seed=4).frame()
    assert all((first[name] != other[name]).any() for name in first.columns if name != "household")


@pytest.mark.parametrize("name", demo.SHARES)
def test_margins_equal_stated_shares(persons: Microdata, name: str) -> None:
    for category, stated in demo.SHARES[name].items():
        assert share(persons, name, category) == pytest.approx(stated, abs=0.012)


def test_stated_shares_equal_cps8d(cps8d: Microdata) -> None:
    for name, shares in demo.SHARES.items():
        for category, stated in shares.items():
            assert share(cps8d, name, category) == pytest.approx(stated, abs=0.001)


@pytest.mark.parametrize(
    ("name", "category", "given", "more", "less"),
    [
        ("Educ", "Bach+", "Age", "25-55", "<25"),
        ("WrkTyp", "Self-Emp", "Age", ">55", "<25"),
        ("WrkTyp", "Govt", "Educ", "Bach+", "<HS"),
        ("MarStat", "Married", "Age", "25-55", "<25"),
        ("Hours", ">40", "Sex", "Male", "Female"),
        ("Income", "50K+", "Educ", "Bach", "HS"),
        ("Income", "50K+", "MarStat", "Married", "Other"),
        ("Income", "50K+", "Hours", ">40", "<40"),
    ],
)
def test_keys_depend_on_each_other(
    persons: Microdata, name: str, category: str, given: str, more: str, less: str
) -> None:
    high = share(persons, name, category, persons[given] == more)
    low = share(persons, name, category, persons[given] == less)
    assert high > 1.5 * low


@pytest.mark.parametrize(("name", "zeros"), [("wage", 0.15), ("interest", 0.5), ("benefits", 0.77), ("total", 0.0)])
def test_amounts_have_their_zeros_and_are_skewed(persons: Microdata, name: str, zeros: float) -> None:
    x = persons.numbers(name)
    assert (x >= 0).all() and (x == np.rint(x)).all()
    assert (x == 0).mean() == pytest.approx(zeros, abs=0.03)
    assert ((x - x.mean()) ** 3).mean() / x.std() ** 3 > 2


def test_no_amount_is_a_function_of_the_others(persons: Microdata) -> None:
    parts = persons.matrix(["wage", "interest", "benefits"])
    total = persons.numbers("total")
    assert (total >= parts.sum(axis=1)).all() and (total == parts.sum(axis=1)).mean() < 0.001
    x = np.column_stack([parts, np.ones(len(parts))])
    residual = total - x @ np.linalg.lstsq(x, total, rcond=None)[0]
    assert residual.var() > 0.05 * total.var()
    rich = share(persons, "Income", "50K+", total >= 50_000)
    assert 0.6 < rich < 0.9, "the group of usual income is near last year's total, but no function of it"


def test_households(persons: Microdata) -> None:
    household = persons.codes("household")
    sizes = np.bincount(household)
    assert sizes.min() == 1 and sizes.max() == 6 and 1.8 < sizes.mean() < 2.1
    first = np.flatnonzero(np.diff(household.astype(int), prepend=-1))[household]
    assert (persons.weights == persons.weights[first]).all()
    alone = first == np.arange(len(persons))
    race = persons["Race"]
    assert 0.95 < (race == race[first])[~alone].mean() < 1
    means = np.log(persons.numbers("total"))
    second = np.flatnonzero(~alone)
    assert np.corrcoef(means[second], means[first[second]])[0, 1] > 0.1


def test_couples_are_of_opposite_sex_and_mostly_of_one_age_group(persons: Microdata) -> None:
    household = persons.codes("household").astype(int)
    married = persons["MarStat"] == "Married"
    partner = np.flatnonzero(married[1:] & married[:-1] & (household[1:] == household[:-1])) + 1
    assert len(partner) > 5_000
    sex, age = persons["Sex"], persons["Age"]
    assert (sex[partner] != sex[partner - 1]).all()
    assert 0.8 < (age[partner] == age[partner - 1]).mean() < 1


def test_weights_are_coarse_and_positive(persons: Microdata) -> None:
    assert set(np.unique(persons.weights)) == set(demo.WEIGHTS)
    white = persons["Race"] == "White"
    assert persons.weights[white].mean() > 1.2 * persons.weights[~white].mean()


@pytest.mark.parametrize("n", [1, 2, 3, 17])
def test_small_populations(n: int) -> None:
    for seed in range(20):
        data = demo.population(n, seed=seed)
        assert len(data) == n
        assert data.codes("household").max() < n


@pytest.mark.parametrize(
    ("n", "seed", "named"), [(0, 1, "n"), (-5, 1, "n"), (2.5, 1, "n"), (True, 1, "n"), (9, -1, "seed")]
)
def test_population_rejects_invalid_size(n: int, seed: int, named: str) -> None:
    with pytest.raises(PlanError, match=rf"{named} must be a whole number in \[[01], inf\)"):
        demo.population(n, seed)
