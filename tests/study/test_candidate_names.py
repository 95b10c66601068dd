"""Names of methods for people; a method is identified by its digest."""

from __future__ import annotations

import pytest

import sdcmap as sm
from sdcmap.core.method import Method
from sdcmap.core.roles import Roles
from sdcmap.methods import METHODS, Chain, Identity, Microaggregate, Recode, Round, Sample, Suppress, TopCode
from sdcmap.study.candidate_names import name_draw, name_methods


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (Identity(), "the file as it is"),
        (sm.Swap(on=["Age", "Sex"], rate=0.05), "Age, Sex swapped 5 %"),
        (sm.Swap("Age", 0.005, within="Region"), "Age swapped 0.5 % within Region"),
        (sm.RankSwap("income", p=[0.1]), "income rank swapped 10 %"),
        (Recode("age", width=10), "age recoded in steps of 10"),
        (Recode("age", breaks=[20, 65]), "age recoded to 3 classes"),
        (Recode("race", merge=[["1", "2", "3"]]), "race with 3 categories merged"),
        (Round("wage", base=1000), "wage rounded to 1,000"),
        (Sample(size=500), "random sample of 500 records"),
        (Suppress(k=5), "keys suppressed to k = 5"),
        (TopCode("age", top=85), "age top coded at 85"),
        (Microaggregate(["a", "b", "c", "d"]), "a, b and 2 more microaggregated in groups of 3"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_title_of_each_method(method: Method, words: str) -> None:
    assert method.title == words


def test_title_of_a_chain_names_equal_steps_once() -> None:
    chain = Chain(
        [Recode("age", width=10), Suppress(k=3), Round("a", base=10), sm.RankSwap("c", 0.1), Round("b", base=10)]
    )
    assert (
        chain.title == "age recoded in steps of 10; keys suppressed to k = 3; a, b rounded to 10; c rank swapped 10 %"
    )
    many = Chain([Round(f"v{i}", base=i + 1) for i in range(9)])
    assert many.title.endswith("v4 rounded to 5; 4 more")


def test_every_trial_method_has_a_short_unique_name() -> None:
    roles = Roles(sm.demo.population(200, seed=1))
    tried = [m for cls in METHODS for m in cls.trials(roles).values() if isinstance(m, Method)]
    with_trials = {cls for cls in METHODS if any(isinstance(trial, Method) for trial in cls.trials(roles).values())}
    assert len(with_trials) > len(METHODS) / 2
    assert {type(step) for method in tried for step in method.steps} >= with_trials - {Chain}
    names = name_methods(tried, {})
    assert len(set(names.values())) == len(tried)
    assert max(map(len, names.values())) <= 140
    assert not any("=[" in name or "(on" in name for name in names.values())


def test_equal_names_get_the_difference_or_a_number() -> None:
    one, two = sm.Swap("a", 0.05), sm.Swap("a", 0.05, same="b")
    assert list(name_methods([one, two], {}).values()) == ["a swapped 5 % (same)", "a swapped 5 % (same b)"]
    wide = [sm.Swap("a", 0.05, same=[f"variable{i}{j}" for i in range(5)]) for j in range(3)]
    assert list(name_methods(wide, {}).values()) == ["a swapped 5 %", "a swapped 5 % (2)", "a swapped 5 % (3)"]
    assert list(name_methods([one, two], {two.text: "with b"}).values()) == ["a swapped 5 %", "with b"]
    clash = name_methods([*wide, one, sm.Noise("w")], {sm.Noise("w").text: "a swapped 5 % (2)"})
    assert len(set(clash.values())) == len(clash)


def test_draw_is_named_where_there_are_several() -> None:
    assert (name_draw("a swapped", 3), name_draw("a swapped", None)) == ("a swapped, draw 4", "a swapped")


def test_name_does_not_change_a_methods_digest() -> None:
    swap = sm.Swap("a", 0.05)
    measures = [sm.SmallCells(), sm.Hellinger()]
    plain, named = sm.Plan(swap, measures, seed=1), sm.Plan(swap, measures, names={swap: "as"}, seed=1)
    assert [c.id for c in plain.candidates] == [c.id for c in named.candidates]
    assert "as" not in swap.text and plain != named
