"""Plans: candidates, streams, TOML, and every problem at once."""

from __future__ import annotations

import pytest

import sdcmap as sm
from sdcmap.study.plan import Candidate

MEASURES = [sm.SmallCells(), sm.Hellinger()]


def test_every_plan_contains_the_identity_once() -> None:
    plan = sm.Plan([sm.Swap(on="a"), sm.Identity(), sm.Swap(on=["a"])], MEASURES, replicates=3)
    assert [method.text for method in plan.all_methods] == ["Identity", "Swap(on='a')"]
    assert plan.count == 1 + 3
    assert [c.replicate for c in plan.candidates] == [0, 0, 1, 2]
    assert plan.risk == ("SmallCells",)
    assert plan.utility == "Hellinger"


def test_deterministic_chain_has_one_candidate() -> None:
    plan = sm.Plan(sm.Chain([sm.Identity(), sm.Identity()]), MEASURES, replicates=5)
    assert plan.count == 2


def test_streams_depend_on_the_whole_spec_and_the_replicate() -> None:
    one, two = Candidate(sm.Noise(on="x", variance=0.1)), Candidate(sm.Noise(on="x", variance=0.2))
    draws = {
        tuple(candidate.rng(seed).random(3))
        for candidate in (one, two, Candidate(one.method, 1))
        for seed in (1, 2, 2**255)
    }
    assert len(draws) == 9
    assert tuple(one.rng(1).random(3)) in draws  # the same again


def test_adding_a_method_changes_no_other_candidate() -> None:
    small = sm.Plan(sm.Swap(on="a"), MEASURES, seed=5)
    large = sm.Plan([sm.Noise(on="x"), sm.Swap(on="a")], [*MEASURES, sm.IL1s()], replicates=9, seed=5)
    ids = {candidate.id: candidate.stream(5).key for candidate in large.candidates}
    for candidate in small.candidates:
        assert ids[candidate.id] == candidate.stream(5).key


def test_the_seed_is_secret() -> None:
    plan = sm.Plan(sm.Swap(on="a"), MEASURES, seed=123456789123456789)
    assert "123456789123456789" not in repr(plan) + plan.toml() + plan.digest + str(plan)
    other = sm.Plan(sm.Swap(on="a"), MEASURES, seed=4)
    assert plan == other
    assert plan.digest == other.digest
    fresh = sm.Plan(sm.Swap(on="a"), MEASURES)
    assert fresh.seed != sm.Plan(sm.Swap(on="a"), MEASURES).seed
    assert fresh.seed.bit_length() > 200
    assert str(Candidate(sm.Swap(on="a")).stream(77).key.hex()) not in repr(Candidate(sm.Swap(on="a")).stream(77))


def test_plan_survives_toml() -> None:
    plan = sm.Plan(
        [
            sm.grid(sm.Swap, on=sm.subsets(["a", "b", "c"], 1, 2), rate=[0.005, 0.05], same="s"),
            sm.Chain([sm.Swap(on="a"), sm.Noise(on=["x", "y"], lower=0, above=3, variance_above=1, within="s")]),
            sm.Noise(on="x", variance=1e-12, correlated=True),
        ],
        [sm.SmallCells(n=5, on=["a", "b"]), sm.risk.KnownIndex(on="x"), sm.Hellinger(weighted=True)],
        replicates=7, risk=["SmallCells(n=5, on=['a', 'b'])", sm.risk.KnownIndex(on="x")], limits=[0.01, 2],
        utility=sm.Hellinger(weighted=True), rule=sm.Threshold(risk=1, by="quantile", quantile=0.9),
        data=sm.Source("data/x.csv", keys=["a", "b"], weight="w", missing=["NA"]),
    )  # fmt: skip
    back = sm.Plan.from_toml(plan.toml())
    assert back == plan
    assert back.toml() == plan.toml()
    assert [c.id for c in back.candidates] == [c.id for c in plan.candidates]


TWELVE = """
replicate = 3
replicates = 0
risk = ["SmallCell"]
utility = "Hellinger"

[rule]
type = "Treshold"
risk = 0.01

[data]
path = "x.csv"
key = ["a"]

[[methods]]
type = "Swapp"
on = ["a"]

[[methods]]
type = "Swap"
rate = 5

[[methods]]
type = "Noise"
on = ["x"]
variance = "big"
corelated = true

[[methods]]
type = "Swap"
on = ["a"]
grid.rate = [0.1, 0.7, -1]

[[measures]]
type = "SmallCells"
n = 1

[[measures]]
type = "Hellinger"

[[measures]]
type = "Hellinger"

[[measures]]
n = 3
"""


def test_plan_with_twelve_mistakes_reports_all_of_them() -> None:
    with pytest.raises(sm.errors.PlanError) as error:
        sm.Plan.from_toml(TWELVE)
    expected = [
        "a plan has no part 'replicate'. Did you mean 'replicates'?",
        "Plan.replicates must be in [1, 1000000]. Got 0.",
        "there is no rule 'Treshold'. Did you mean 'Threshold'?",
        "Source has no parameter 'key'. Did you mean 'keys'?",
        "there is no method 'Swapp'. Did you mean 'Swap'?",
        "Swap.on must be given.",
        "Swap.rate must be in (0, 0.5]. Got 5.",
        "Noise.variance must be a number. Got a str.",
        "Noise has no parameter 'corelated'. Did you mean 'correlated'?",
        "Swap.rate must be in (0, 0.5]. Got 0.7.",
        "Swap.rate must be in (0, 0.5]. Got -1.",
        "SmallCells.n must be in [2, inf). Got 1.",
        "a measure needs a type",
        "Plan.measures contains Hellinger twice.",
        "the axis 'SmallCell' is none of the plan's measures.",
    ]
    for sentence in expected:
        assert any(sentence in problem for problem in error.value.problems), sentence
    assert len(error.value.problems) == len(expected)


@pytest.mark.parametrize(
    "text",
    ["= 3", "methods = 3", "[[methods]]\ntype='Swap'\non='a'\ngrid=3\n[[measures]]\ntype='Hellinger'", "measures = [3]",
     "methods = 'x'\nmeasures = 'y'", "risk = 3\n[[measures]]\ntype='Hellinger'", "", "data = 3", "rule = []"],
)  # fmt: skip
def test_damaged_plan_raises_plan_error(text: str) -> None:
    with pytest.raises(sm.errors.PlanError):
        sm.Plan.from_toml(text)


def test_problems_with_data_are_reported_together() -> None:
    data = sm.demo.population(50)
    plan = sm.Plan(
        [sm.Swap(on=["Agee", "wage"]), sm.Noise(on="Sex"), sm.Noise(on="weight"), sm.Swap(on="Sex", same="Regio")],
        [sm.SmallCells(on="Ages"), sm.Hellinger(), sm.risk.KnownIndex(on="wages")],
    )
    problems = " ".join(plan.problems_with(data))
    for words in ("'Agee'. Did you mean 'Age'", "'wage' is numeric", "'Sex' is nominal", "it is the file's weight",
                  "'Regio'", "'Ages'", "'wages'. Did you mean 'wage'"):  # fmt: skip
        assert words in problems
    with pytest.raises(sm.errors.PlanError):
        sm.sweep(data, plan, workers=1)


def test_find_and_make() -> None:
    data = sm.demo.population(200)
    plan = sm.Plan(sm.Swap(on="Sex", rate=0.1), MEASURES, replicates=2, seed=9)
    candidate = list(plan.candidates)[1]
    made = plan.make(data, candidate.id[:8])
    assert made.frame().equals(plan.make(data, candidate).frame())
    for name in ("", "zzz"):
        with pytest.raises(sm.errors.PlanError):
            plan.find(name)


def test_axis_may_be_named_by_the_class_of_its_measure() -> None:
    plan = sm.Plan(sm.Noise(on="wage"), [sm.SmallCells(n=5), sm.IL1s(on="wage")], risk="SmallCells", utility="IL1s")
    assert plan.risk == ("SmallCells(n=5)",) and plan.utility == "IL1s(on='wage')"
    two = [sm.SmallCells(n=5), sm.SmallCells(n=4), sm.IL1s(on="wage")]
    with pytest.raises(sm.errors.PlanError, match="the axis 'SmallCells' is none of the plan's measures"):
        sm.Plan(sm.Noise(on="wage"), two, risk="SmallCells")


# ---- names ----------------------------------------------------------------------------------------------------
def named_plan(replicates: int = 3) -> sm.Plan:
    swap = sm.Swap("a", 0.1)
    many = sm.grid(sm.Swap, on=["a", "b"], rate=[0.01, 0.05])
    return sm.Plan([swap, many], [sm.SmallCells(), sm.Hellinger()], replicates, names={swap: "the first"})


def test_stated_names_survive_toml_and_find_their_candidate() -> None:
    plan = named_plan()
    again = sm.Plan.from_toml(plan.toml())
    assert again == plan and again.names == {sm.Swap("a", 0.1).text: "the first"}
    for candidate in plan.candidates:
        assert again.find(again.name_of(candidate)).id == candidate.id
    assert plan.name_of(plan.find("b swapped 5 %, draw 2")) == "b swapped 5 %, draw 2"
    assert named_plan(1).find("the first").method == sm.Swap("a", 0.1)
    with pytest.raises(sm.errors.PlanError, match="use the name or id"):
        plan.find("the first")  # which draw?


@pytest.mark.parametrize(
    ("name", "problem"),
    [('""', "one line of 1 to 80"), ('"a\\nb"', "one line"), ("3", "one line"), (f'"{"x" * 81}"', "1 to 80")],
)
def test_stated_name_must_be_one_short_line(name: str, problem: str) -> None:
    with pytest.raises(sm.errors.PlanError, match=problem):
        sm.Plan.from_toml(named_plan().toml().replace('"the first"', name))


def test_named_grid_and_duplicate_names_are_reported() -> None:
    grid = '\n[[methods]]\ntype = "Swap"\non = "c"\nname = "all"\ngrid.rate = [0.1]\n'
    with pytest.raises(sm.errors.PlanError, match="'all' names a grid"):
        sm.Plan.from_toml(named_plan().toml() + grid)
    twice = '\n[[methods]]\ntype = "Swap"\non = "c"\nname = "the first"\n'
    with pytest.raises(sm.errors.PlanError, match="two methods are named 'the first'"):
        sm.Plan.from_toml(named_plan().toml() + twice)


def test_plan_of_an_earlier_version_is_answered_with_the_new_names() -> None:
    text = """
        [[methods]]
        type = "Synthesise"
        on = ["a"]

        [[measures]]
        type = "AttributeInference"
        secret = "a"
        control = "makings"
        """
    with pytest.raises(sm.errors.PlanError) as error:
        sm.Plan.from_toml(text)
    assert "there is no method 'Synthesise'. Did you mean 'Synthesize'?" in str(error.value)
    assert "'refits'. Did you mean 'refits'?" in str(error.value)
