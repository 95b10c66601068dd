"""Values: coercion, specs, texts, grids."""

from __future__ import annotations

import pickle
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pytest

import sdcmap as sm
from sdcmap.core.grid import decode_grid
from sdcmap.core.measure import Measure
from sdcmap.core.method import Method
from sdcmap.core.renamed_names import RENAMED
from sdcmap.core.value import Range, Value, decode, parse
from sdcmap.errors import PlanError


def one_spec(first: Value, second: Value) -> bool:
    return first == second and first.digest == second.digest and hash(first) == hash(second)


def test_equal_values_have_the_same_spec() -> None:
    swap = sm.Swap(on=("Age",), rate=0.5)
    assert one_spec(swap, sm.Swap(on="Age", rate=np.float64(0.5)))
    assert one_spec(swap, sm.Swap(on=["Age"], rate=0.5, same=[], differ=()))
    assert one_spec(sm.SmallCells(n=5), sm.SmallCells(n=np.int64(5)))
    assert one_spec(sm.Noise(on="x", variance=1), sm.Noise(on="x", variance=1.0))
    assert one_spec(sm.Noise(on="x", lower=-0.0), sm.Noise(on="x", lower=0))
    assert one_spec(sm.Noise(on="x", lower=None), sm.Noise(on="x"))
    for order in (1.0, np.int64(1), "1"):
        assert one_spec(sm.utility.Propensity(order=order), sm.utility.Propensity(order=1))  # type: ignore[arg-type]
    chain = sm.Chain([sm.Swap(on="Age"), sm.Noise(on=["x"])])
    assert one_spec(chain, sm.Chain(({"type": "Swap", "on": "Age"}, sm.Noise(on="x"))))  # type: ignore[arg-type]
    assert sm.Swap(on="Age", rate=0.4).digest != swap.digest


def test_spec_contains_only_fields_that_differ_from_defaults() -> None:
    assert sm.Swap(on="Age").spec() == {"type": "Swap", "on": ["Age"]}
    assert sm.Chain([sm.Noise(on="x", variance=0.2)]).spec()["methods"] == [
        {"type": "Noise", "on": ["x"], "variance": 0.2}
    ]


def test_new_revision_is_another_candidate() -> None:
    @dataclass(frozen=True)
    class Revised(sm.Swap):
        revision = sm.Swap.revision + 1

    plain = sm.Swap(on="Age")
    assert Revised(on="Age").identity()["revision"] == plain.identity()["revision"] + 1
    assert "revision" not in plain.spec()
    inside = sm.Chain([Revised(on="Age")]), sm.Chain([plain])
    assert inside[0].digest != inside[1].digest


def test_new_default_is_another_candidate() -> None:
    """A default is not in the text but determines the number, so it is in the digest, also of nested values."""

    def twin(width: float) -> sm.Measure:
        fields = {"__annotations__": {"width": "float"}, "width": width, "__module__": __name__, "__qualname__": "Twin"}
        return dataclass(frozen=True)(type("Twin", (sm.Measure,), fields))()

    assert twin(1.0).text == twin(2.0).text
    assert twin(1.0).digest != twin(2.0).digest
    assert twin(1.0).id == twin(1.0).id == twin(1.0).digest[:12]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: sm.Swap(on="Age", rate=5), "Swap.rate must be in (0, 0.5]. Got 5."),
        (lambda: sm.Swap(on="Age", rate=0), "Swap.rate must be in (0, 0.5]. Got 0."),
        (lambda: sm.Swap(on="Age", rate=float("nan")), "Swap.rate must be a finite number."),
        (lambda: sm.Noise(on="x", variance=float("inf")), "Noise.variance must be a finite number."),
        (lambda: sm.Noise(on="x", variance=-1), "Noise.variance must be in [0, inf). Got -1."),
        (lambda: sm.Noise(on="x", lower=2, upper=1), "Noise.lower must be below .upper."),
        (lambda: sm.Noise(on="x", above=2), "Noise.above and .variance_above must be set together."),
        (lambda: sm.Noise(on=()), "Noise.on must name at least one variable."),
        (lambda: sm.Swap(on=3), "Swap.on must be a text. Got a int."),
        (lambda: sm.Swap(on="Age", same="Age"), "Swap.same must not name a swapped variable: Age."),
        (lambda: sm.SmallCells(n=1), "SmallCells.n must be in [2, inf). Got 1."),
        (lambda: sm.SmallCells(n=2.5), "SmallCells.n must be a whole number. Got a float."),
        (lambda: sm.SmallCells(n=True), "SmallCells.n must be a whole number. Got a bool."),
        (lambda: sm.utility.Propensity(order=True), "Propensity.order must be one of 1, 2."),
        (lambda: sm.SmallCells(counting="unchangd"), "Did you mean 'unchanged'?"),
        (lambda: sm.RankSwap(on="x", p=10), "RankSwap.p must be in (0, 1]. Got 10."),
        (lambda: sm.Chain([]), "Chain.methods must hold at least one method."),
        (lambda: sm.Chain([sm.SmallCells()]), "Chain.methods must be Method. Got a SmallCells."),
    ],
)
def test_invalid_parameter_gets_one_sentence(make, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(sm.errors.PlanError) as error:
        make()
    assert words in str(error.value)


def test_all_invalid_fields_are_reported_together() -> None:
    with pytest.raises(sm.errors.PlanError) as error:
        sm.Noise(on=(3,), variance=-1, correlated="yes")  # type: ignore[arg-type]
    assert len(error.value.problems) == 3


@pytest.mark.parametrize(
    "value",
    [
        sm.Identity(),
        sm.Swap(on=["Age", "Sex"], rate=0.05, same="Race", within="Region"),
        sm.Noise(on="x", correlated=True, lower=0, above=35, variance_above=0.2),
        sm.Chain([sm.Swap(on="Age"), sm.Chain([sm.Noise(on="x")])]),
    ],
)
def test_text_and_pickle_round_trip(value: Method) -> None:
    assert parse(value.text, Method) == value
    assert decode(value.spec(), Method) == value
    assert pickle.loads(pickle.dumps(value)) == value


@pytest.mark.parametrize(
    "text", ["SmallCell", "SmallCells(", "SmallCells(5)", "__import__('os')", "SmallCells(n=x)", ""]
)
def test_parse_rejects_invalid_text_with_one_sentence(text: str) -> None:
    with pytest.raises(sm.errors.PlanError):
        parse(text, Measure)


def test_error_suggests_a_similar_measure() -> None:
    with pytest.raises(sm.errors.PlanError, match="Did you mean 'SmallCells'"):
        parse("SmalCells", Measure)
    with pytest.raises(sm.errors.PlanError, match="no parameter 'rat'. Did you mean 'rate'"):
        decode({"type": "Swap", "on": ["a"], "rat": 0.1}, Method)
    with pytest.raises(sm.errors.PlanError, match="there is no measure 'Swap'"):
        parse("Swap(on='a')", Measure)


@pytest.mark.parametrize(
    ("table", "hint"),
    [
        ({"type": "Synthesise", "on": ["a"]}, "there is no method 'Synthesise'. Did you mean 'Synthesize'?"),
        ({"type": "RandomisedResponse", "on": ["a"]}, "Did you mean 'RandomizedResponse'?"),
        ({"type": "MixtureNoise", "on": ["a"], "centres": [1.0]}, "Did you mean 'centers'?"),
        ({"type": "AttributeInference", "secret": "a", "control": "makings"}, "Did you mean 'refits'?"),
        ({"type": "NearestRecord", "metric": "standardised"}, "Did you mean 'standardized'?"),
    ],
)
def test_error_names_the_new_name_of_a_renamed_class_field_or_word(table: dict[str, object], hint: str) -> None:
    base = Measure if table["type"] in sm.risk.__all__ else Method
    with pytest.raises(sm.errors.PlanError, match=re.escape(hint)):
        decode(table, base)  # type: ignore[type-abstract]


def test_every_new_name_is_different_from_the_old_one_and_in_use() -> None:
    source = Path(sm.__file__).parent
    text = "".join(path.read_text("utf-8") for path in source.glob("[mrsu]*/**/*.py"))
    for old, new in RENAMED.items():
        assert old != new and re.search(rf"\b{new}\b", text), f"{old} was renamed to {new}, which is gone"


def test_subsets_and_grids_expand_in_order() -> None:
    assert list(sm.subsets("abc", 1, 2)) == [("a",), ("b",), ("c",), ("a", "b"), ("a", "c"), ("b", "c")]
    grid = sm.grid(sm.Swap, rate=[0.01, 0.05], on=sm.subsets(["a", "b"], 1, 2), same="s")
    assert len(list(grid)) == 6
    assert decode_grid(grid.spec(), Method) == grid
    assert all(method.same == ("s",) for method in grid)
    for sizes in ((), (0,), (3,)):
        with pytest.raises(sm.errors.PlanError):
            sm.subsets(["a", "b"], *sizes)
    with pytest.raises(sm.errors.PlanError, match="Did you mean 'rate'"):
        sm.grid(sm.Swap, on="a", rates=[0.1])


@dataclass(frozen=True)
class Foreign(Value):
    """A value of another package."""

    how: Literal["a", "b"] = "a"
    much: Annotated[float, Range(0, 1, "()")] = 0.5


def test_class_of_another_package_is_named_with_its_module() -> None:
    value = Foreign(how="b")
    assert value.spec()["type"].endswith(":Foreign")
    assert decode(value.spec(), Foreign) == value
    with pytest.raises(sm.errors.PlanError, match="there is no foreign"):
        decode({"type": "nowhere.to.be.found:Foreign"}, Foreign)


def test_modules_do_not_hide_public_names() -> None:
    import sdcmap.core.grid
    import sdcmap.study.sweep  # noqa: F401

    assert callable(sm.sweep)
    assert callable(sm.grid)


def test_nested_value_may_be_given_as_text() -> None:
    chain = decode({"type": "Chain", "methods": ["Noise(on='wage')", "RankSwap(on='wage', p=0.1)"]}, sm.Method)
    assert chain == sm.Chain([sm.Noise(on="wage"), sm.RankSwap(on="wage", p=0.1)])
    known = decode({"type": "IntruderKnowledge", "on": "x", "attack": "Linkage(metric='l')"}, sm.Measure)
    assert known == sm.risk.IntruderKnowledge(on="x", attack=sm.risk.Linkage("l"))
    with pytest.raises(sm.errors.PlanError, match="cannot be read as an attack: write Linkage"):
        decode({"type": "IntruderKnowledge", "on": "x", "attack": "__import__('os')"}, sm.Measure)
    with pytest.raises(sm.errors.PlanError, match="there is no attack 'Noise'"):
        decode({"type": "IntruderKnowledge", "on": "x", "attack": "Noise(on='x')"}, sm.Measure)


def test_list_beside_a_grid_is_a_fixed_value() -> None:
    spec = {"type": "Suppress", "on": ["a", "b"], "importance": ["b", "a"], "grid": {"k": [2, 3]}}
    grid = decode_grid(spec, Method)
    assert [(m.on, m.importance, m.k) for m in grid] == [(("a", "b"), ("b", "a"), k) for k in (2, 3)]  # type: ignore[attr-defined]
    assert grid.spec() == spec and decode_grid(grid.spec(), Method) == grid


def test_numbers_from_a_command_line_are_read() -> None:
    """Regression test: order="1" was refused with "Did you mean '1'?"."""
    assert sm.utility.Propensity(order="1") == sm.utility.Propensity(order=1)  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="must be one of 1, 2"):
        sm.utility.Propensity(order="3")  # type: ignore[arg-type]
