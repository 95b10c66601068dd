"""Families of methods that differ in one number only."""

from __future__ import annotations

import random

import pytest

import sdcmap as sm
from sdcmap.core import Method
from sdcmap.study.parameter_families import Family, MethodParameters, check_families, find_families


def families_of(methods: list[Method], *parameters: str) -> tuple[Family, ...]:
    return find_families(map(MethodParameters.of_method, methods), parameters)


def facts(families: tuple[Family, ...]) -> list[tuple[str, str, list[float]]]:
    return [(family.name, family.parameter, [value for value, _ in family.members]) for family in families]


def test_each_class_is_split_by_its_own_parameter() -> None:
    methods: list[Method] = [
        *sm.grid(sm.Noise, on="wage", variance=[0.5, 0.1, 0.2]),
        *sm.grid(sm.RankSwap, on="wage", p=[0.1, 0.02]),
        sm.TopCode(on="wage", top_share=0.1),
    ]
    expected = [("Additive noise", "variance", [0.1, 0.2, 0.5]), ("Rank swapping", "p", [0.02, 0.1])]
    assert facts(families_of(methods)) == expected
    random.Random(1).shuffle(methods)
    assert sorted(facts(families_of(methods))) == expected
    assert facts(families_of(methods, "p")) == expected[1:]


def test_families_of_one_class_are_named_by_their_difference() -> None:
    methods = [*sm.grid(sm.Noise, on=["wage", "rent"], variance=[0.1, 0.2], lower=[None, 0.0])]
    names = {family.name for family in families_of(methods)}
    assert names == {
        "Additive noise (on wage)",
        "Additive noise (on wage, lower 0)",
        "Additive noise (on rent)",
        "Additive noise (on rent, lower 0)",
    }


def test_second_number_in_proportion_belongs_to_the_parameter() -> None:
    """Unequal masking: noise of v below and 2v above a bound. Duncan et al. (2001), figure 7."""
    equal = [sm.Noise("wage", variance=v) for v in (0.1, 0.2)]
    unequal = [sm.Noise("wage", variance=v, above=35.0, variance_above=2 * v) for v in (0.05, 0.1, 0.3)]
    other = sm.Noise("wage", variance=0.1, above=35.0, variance_above=0.7)
    found = families_of([*equal, *unequal, other])
    assert facts(found) == [
        ("Additive noise", "variance", [0.1, 0.2]),
        ("Additive noise (above 35)", "variance", [0.05, 0.1, 0.3]),
    ]


def test_steps_of_chains_are_compared_step_by_step() -> None:
    chains = [
        sm.Chain([sm.Swap("sex", rate=r), sm.Noise("wage", variance=v)]) for r in (0.1, 0.2) for v in (0.1, 0.2, 0.3)
    ]
    found = families_of([*chains, sm.Chain([sm.Swap("sex", rate=0.1)] * 2)])
    assert facts(found) == [
        ("Data swapping + additive noise (rate 0.1)", "variance", [0.1, 0.2, 0.3]),
        ("Data swapping + additive noise (rate 0.2)", "variance", [0.1, 0.2, 0.3]),
    ]


def test_value_that_occurs_twice_traces_no_curve() -> None:
    """In a table made elsewhere two rows may have the same rate, and nothing else that tells them apart."""
    rows = [MethodParameters(name, (), ({"rate": rate},)) for name, rate in (("A", 0.1), ("B", 0.1), ("C", 0.2))]
    assert find_families(rows) == ()
    columns = [("A", "x", 0.1), ("B", "y", 0.1), ("C", "x", 0.2)]
    told = [MethodParameters(name, (), ({"rate": rate, "on": on},)) for name, on, rate in columns]
    assert find_families(told) == (Family("rate", "rate", ((0.1, "A"), (0.2, "C"))),)


def test_parameter_without_a_family_is_rejected() -> None:
    methods = [*map(MethodParameters.of_method, sm.grid(sm.Noise, on="wage", variance=[0.1, 0.2]))]
    check_families(find_families(methods, ("variance",)), methods, ("variance",))
    with pytest.raises(sm.errors.PlanError, match=r"differ in 'rate' only, so it traces no curve. These do: variance"):
        check_families(find_families(methods, ("rate",)), methods, ("rate",))
