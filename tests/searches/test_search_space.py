"""The search space follows from roles and from the methods' class data; fixed settings stay fixed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from numpy.random import Generator
from search_samples import plan_of

import sdcmap as sm
from sdcmap.core.roles import Strengths
from sdcmap.data.microdata import Microdata
from sdcmap.errors import PlanError
from sdcmap.searches import search_space as spaces
from sdcmap.searches.generations import search_digest
from sdcmap.searches.search_proposals import OptionOutcomes, draw_children, draw_starts, vary_strength
from sdcmap.searches.search_space import AS_IT_IS, BY_KIND, Space
from sdcmap.study.search_settings import Search

KEYS, NUMBERS = ("Age", "Educ", "Sex"), ("wage", "total")
NOTHING: frozenset[str] = frozenset()


def points(space: Space, count: int, seed: int = 1) -> list[tuple[float, ...]]:
    rng = np.random.default_rng(seed)
    return [tuple(map(float, rng.random(len(space.dimensions)))) for _ in range(count)]


def test_every_point_masks_every_number(people: Microdata) -> None:
    space = Space(people, Search()).check()
    for point in points(space, 100):
        method = space.method(point)
        assert method is not None and next(method.incompatibilities(people), None) is None
        assert set(NUMBERS) <= set(method.masks(people))
        left = {name for name, value in space.settings_of(point).items() if value == AS_IT_IS}
        assert {f"{name}: method" for name in set(KEYS) - set(method.masks(people))} <= left


def test_points_cover_joint_separate_whole_file_and_recoding(people: Microdata) -> None:
    space = Space(people, Search())
    observed = {(name, value) for p in points(space, 300) for name, value in space.settings_of(p).items()}
    for name, value in (
        ("shape", BY_KIND), ("shape", "Synthesize"), ("shape", "Microaggregate"), ("categories: joined", "joined"),
        ("categories: joined", "apart"), ("numbers: joined", "apart"), ("rare merged", "yes"), ("order", "recoded last"),
    ):  # fmt: skip
        assert (name, value) in observed


def test_models_that_keep_relations_are_searched_over_their_leaves(people: Microdata) -> None:
    """Regressions, trees, and, for the whole file only, adversarial forests, which have no predictors."""
    space = Space(people, Search(methods=["Synthesize"])).check()
    steps = [step for p in points(space, 300) for step in space.method(p).steps]  # type: ignore[union-attr]
    leaves: dict[str, list[int]] = {}
    for step in steps:
        if isinstance(step, sm.Synthesize):
            leaves.setdefault(step.model, []).append(step.leaf)
            assert step.model != "adversarial forest" or set(step.on) == {*KEYS, *NUMBERS}
    assert set(leaves) == {"regressions", "trees", "adversarial forest"}
    assert all(min(own) < 30 and max(own) > 150 for own in leaves.values())
    assert max(leaves["regressions"]) > 300


def test_synthetic_files_are_excluded_where_every_risk_compares_records(people: Microdata) -> None:
    space = Space(people, Search(), paired=True).check()
    assert "Synthesize" not in space.shape.options and "Microaggregate" in space.shape.options
    partly = [p for p in points(space, 300) if "Synthesize" in space.settings_of(p).values()]
    assert partly and all(space.method(p).keeps_pairs(people) for p in partly)  # type: ignore[union-attr]
    assert plan_of().compares_records


def test_strength_increases_with_the_coordinate() -> None:
    assert sm.Noise.searched is not None and sm.Noise.searched.at(0)["variance"] < sm.Noise.searched.at(1)["variance"]
    assert Strengths("stay", 0.97, 0.05, log=False).at(1.0) == {"stay": 0.05}
    people = sm.demo.population(150, seed=3)
    sizes = [sm.Microaggregate.at_strength(s, NUMBERS, spaces.Roles(people)).size for s in (0.0, 0.5, 1.0)]  # type: ignore[union-attr]
    assert sizes == sorted(sizes) and sizes[0] == 3


def test_fixed_steps_and_left_columns_stay_fixed(people: Microdata) -> None:
    fixed = sm.Recode("Age", merge=[["<25", "25-55"]])
    space = Space(people, Search(fixed=[fixed], leave=["Sex"], methods=["PRAM", "RankSwap"]))
    for point in points(space, 30):
        method = space.method(point)
        assert method is not None and method.steps[0] == fixed
        assert not {"Age", "Sex"} & {name for step in method.steps[1:] for name in step.masks(people)}
        assert {type(step).__name__ for step in method.steps[1:]} <= {"PRAM", "RankSwap"}


def test_derived_columns_are_computed_last_and_not_masked(people: Microdata) -> None:
    plan = sm.Plan([], [sm.SmallCells(), sm.Hellinger()], derive={"total": "2 * wage"})
    space = Space(people, Search(), plan.derive)
    method = space.method(points(space, 1)[0])
    assert method is not None and method.steps[-1] == plan.derive[0]
    assert all("total" not in step.masks(people) for step in method.steps[:-1])


@pytest.mark.parametrize("columns", [KEYS, NUMBERS], ids=["no numbers", "no keys"])
def test_space_with_one_kind_of_columns(people: Microdata, columns: tuple[str, ...]) -> None:
    space = Space(people.only(columns), Search()).check()
    assert len(draw_starts(space, 24, np.random.default_rng(1), NOTHING)) == 24


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (Search(methods=["Noise"]), "no method of Noise fits the categories of this file: allow others."),
        (Search(methods=["Nois"]), "Search.methods names 'Nois', which is no method. Did you mean 'Noise'?"),
        (Search(leave=[*KEYS, *NUMBERS]), "there is nothing to search"),
    ],
)
def test_space_without_methods_is_refused(people: Microdata, settings: Search, said: str) -> None:
    with pytest.raises(PlanError, match=said.replace(".", r"\.").replace("?", r"\?")):
        Space(people, settings).check()


def test_space_of_one_method_varies_its_strength(people: Microdata) -> None:
    space = Space(people.only(NUMBERS), Search(methods=["Noise"])).check()
    assert {type(s) for p in points(space, 20) for s in space.method(p).steps} == {sm.Noise}  # type: ignore[union-attr]


@dataclass(frozen=True)
class Halve(sm.Method):
    """Halves every number: a plug-in that states only the range of its strength."""

    searched: ClassVar[Strengths | None] = Strengths("by", 1.5, 8.0)

    on: tuple[str, ...]
    by: float = 2.0

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        return data.change(None, {name: data.numbers(name) / self.by for name in self.on})


def test_plug_in_is_searched_over_its_own_range(people: Microdata, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spaces, "plug_in_classes", lambda base: (Halve,))
    space = Space(people.only(NUMBERS), Search(methods=["Halve"])).check()
    made = [step.by for p in points(space, 40) for step in space.method(p).steps]  # type: ignore[union-attr, attr-defined]
    assert 1.5 <= min(made) < 2 and 6 < max(made) <= 8


def test_a_search_with_other_options_is_another_search(people: Microdata, monkeypatch: pytest.MonkeyPatch) -> None:
    """The points of an earlier one mean other methods, so they are not continued; its methods stay in the study."""
    before, again = (search_digest(plan_of(), Search(), Space(people, Search())) for _ in range(2))
    monkeypatch.setattr(spaces, "plug_in_classes", lambda base: (Halve,))
    assert before == again != search_digest(plan_of(), Search(), Space(people, Search()))


# ---- proposals ------------------------------------------------------------------------------------------------
def test_starts_and_children_are_new_and_the_same_for_the_same_stream(people: Microdata) -> None:
    space = Space(people, Search())
    first = draw_starts(space, 24, np.random.default_rng(4), NOTHING)
    again = draw_starts(space, 24, np.random.default_rng(4), NOTHING)
    assert first == again and len({p.method.digest for p in first}) == 24
    taken = frozenset(p.method.digest for p in first)
    assert not taken & {p.method.digest for p in draw_starts(space, 24, np.random.default_rng(4), taken)}
    parents = [(str(i), p.method, p.point) for i, p in enumerate(first[:4])]
    made = draw_children(space, parents, OptionOutcomes(), 24, np.random.default_rng(5), taken)
    assert len({p.method.digest for p in made} - taken) == 24
    assert {name for child in made for name in child.parents} == {"0", "1", "2", "3"}


def test_options_that_failed_are_drawn_less_often(people: Microdata) -> None:
    space = Space(people, Search())
    dimension = next(d for d in space.dimensions if d.name == "numbers: method")
    tried = [p for p in points(space, 800) if space.settings_of(p).get("numbers: method") == "Noise"]
    shares = dict(
        zip(dimension.options, OptionOutcomes.of(space, [(p, False) for p in tried]).shares(dimension), strict=True)
    )
    assert len(tried) > 5 and np.isclose(shares["Noise"], shares["RankSwap"] / (len(tried) + 1))


def test_children_of_plan_methods_have_other_strengths() -> None:
    rng = np.random.default_rng(1)
    chain = sm.Chain((sm.PRAM(KEYS, 0.6, alpha=1.0), sm.RankSwap(NUMBERS, 0.2)))
    made = [vary_strength(chain, rng) for _ in range(20)]
    windows = [m.steps[1].p for m in made if m is not None]  # type: ignore[attr-defined]
    assert min(windows) < 0.2 < max(windows)
    assert vary_strength(sm.Identity(), rng) is None


def test_every_candidate_ends_with_the_repair_of_edit_rules() -> None:
    data = sm.demo.population(120, seed=2).only(["Age", "Sex", "wage"])
    rule = 'Sex = "Male" -> wage >= 0'
    plan = sm.Plan([], [sm.SmallCells(), sm.Hellinger()], edits=[rule])
    space = Space(data, Search(), plan.last_steps)
    assert not space.excluded_columns
    proposed = [method for point in points(space, 24) if (method := space.method(point))]
    assert proposed and all(method.steps[-1] == sm.methods.Repair((rule,)) for method in proposed)
