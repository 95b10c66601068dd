"""Short plan files: named columns and steps, lists of strengths, and the text that is written."""

from __future__ import annotations

import contextlib
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sdcmap as sm
from sdcmap.core.grid import grid
from sdcmap.core.method import Method
from sdcmap.errors import PlanError
from sdcmap.methods import Chain, MaskMissing, Microaggregate, Protect, Recode, Synthesize
from sdcmap.recordwise import Unsafe
from sdcmap.risk import ExactMatch
from sdcmap.study.plan_layout import expand, format_plan
from sdcmap.utility import TableError

MEASURES = [sm.SmallCells(), sm.Hellinger()]
KEYS = ("age", "region", "sex", "school", "work", "union", "born")
SHORT = """
risk = "all"
utility = 'TableError(on=["keys", "-sex"], order=1)'
measures = [
  { type = "SmallCells", on = "keys" },
  { type = "ExactMatch", on = "keys" },
  { type = "TableError", on = ["keys", "-sex"], order = 1 },
]

[limits]
'SmallCells(on="keys")' = 0.1

[columns]
keys = ["age", "region", "sex", "school", "work", "union", "born"]

[steps]
coarsen = [{ type = "Recode", on = "age", width = 10.0 }, { type = "Recode", on = "region", prefix = 2 }]

[[methods]]
type = "Chain"
methods = [
  "coarsen",
  { type = "PRAM", on = ["keys", "-age"], stay = [0.9, 0.5] },
  { type = "RankSwap", on = "wage", p = [[0.1], [0.2]] },
]

[[methods]]
type = "Microaggregate"
on = "wage"
size = [3, 10]
method = ["mdav", "individual"]
"""


def test_names_and_lists_stand_for_what_they_say() -> None:
    plan = sm.Plan.from_toml(SHORT, seed=1)
    coarse = [Recode("age", width=10.0), Recode("region", prefix=2)]
    pairs = ((0.9, 0.1), (0.5, 0.2))
    assert list(plan.stated_methods) == [
        *(Chain([*coarse, sm.PRAM(KEYS[1:], stay), sm.RankSwap("wage", p)]) for stay, p in pairs),
        Microaggregate("wage", size=3, method="mdav"),
        Microaggregate("wage", size=10, method="individual"),
    ]
    small, match = sm.SmallCells(on=KEYS), ExactMatch(on=KEYS)
    assert plan.risk == (small.text, match.text) and plan.limits == {small.text: 0.1}
    assert plan.utility == TableError(on=[name for name in KEYS if name != "sex"], order=1).text


def test_short_and_full_plan_are_one_plan() -> None:
    """The digest, the candidates and their streams do not depend on how the plan is written."""
    short = sm.Plan.from_toml(SHORT, seed=1)
    full = sm.Plan(
        tuple(short.methods), short.measures, risk=short.risk, utility=short.utility, limits=short.limits, seed=1
    )
    assert full == short and full.digest == short.digest
    assert [c.id for c in full.candidates] == [c.id for c in short.candidates]
    assert len(full.toml()) > len(short.toml())
    assert sm.Plan.from_toml(full.toml(), seed=1) == short


def test_text_keeps_the_names() -> None:
    text = sm.Plan.from_toml(SHORT, seed=1).toml()
    assert 'risk = "all"' in text and 'on = ["keys", "-age"], stay = [0.9, 0.5]' in text and '"coarsen"' in text
    assert "p = [0.1, 0.2]" in text and '[[methods]]\ntype = "Microaggregate"' in text
    assert sm.Plan.from_toml(text, seed=1).toml() == text


@pytest.mark.parametrize(("on", "written"), [("wage", "[0.1, 0.2]"), (["wage", "age"], "[[0.1], [0.2]]")])
def test_a_number_for_each_column_is_no_list_of_strengths(on: str | list[str], written: str) -> None:
    several = sm.Plan([sm.RankSwap(on, 0.1), sm.RankSwap(on, 0.2)], MEASURES, seed=1)
    assert f"p = {written}" in several.toml() and sm.Plan.from_toml(several.toml(), seed=1) == several
    each = sm.Plan.from_toml('measures = [{ type = "SmallCells" }]\n[[methods]]\ntype = "RankSwap"\n'
                             'on = ["wage", "age"]\np = [0.1, 0.2]', seed=1)  # fmt: skip
    assert list(each.stated_methods) == [sm.RankSwap(["wage", "age"], (0.1, 0.2))]


def test_a_set_is_used_in_every_step_that_has_its_columns() -> None:
    """Regression test: a step `on = ["amounts", "region"]` was read as if the file had a column "amounts"."""
    amounts = tuple(f"amount {k:02}" for k in range(20))
    mask = MaskMissing((*amounts, "region"), 3)
    chains = [Chain([mask, sm.RankSwap(amounts, p)]) for p in (0.1, 0.2)]
    plan = sm.Plan(chains, MEASURES, columns={"amounts": amounts}, steps={"mask_missing": (mask,)}, seed=1)
    text = plan.toml()
    assert text.count('"amount 07"') == 1 and 'on = ["amounts", "region"]' in text
    assert sm.Plan.from_toml(text, seed=1) == plan


def test_a_set_may_be_written_without_another() -> None:
    keys, few = tuple("abcdefgh"), tuple("cdef")
    plan = sm.Plan([sm.PRAM((*few,)), sm.PRAM(("a", "b", "g", "h", "wage")), sm.PRAM(keys)], MEASURES, seed=1,
                   columns={"few": few, "keys": keys})  # fmt: skip
    text = plan.toml()
    assert 'on = ["keys", "-few", "wage"]' in text and sm.Plan.from_toml(text, seed=1) == plan


def test_no_line_is_longer_than_needed() -> None:
    merge = [f"category {k:02}" for k in range(30)]
    plan = sm.Plan(Chain([Recode("job", merge=[merge], labels=["other"]), sm.PRAM("sex")]), MEASURES, seed=1)
    text = plan.toml()
    assert max(map(len, text.splitlines())) <= 120 and sm.Plan.from_toml(text, seed=1) == plan
    assert text.count("\n") < 20


# ---- every plan ---------------------------------------------------------------------------------------------------
NAMES = ("sex", "age", "région", "a b", "-sex", 'q"1', "wage", "known")  # "known" is also the name of a set
columns = st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique=True).map(tuple)
share = st.sampled_from([0.1, 0.25, 0.5])
steps = st.one_of(
    st.builds(sm.PRAM, columns, share, alpha=st.sampled_from([0.0, 1.0])),
    st.builds(sm.Swap, columns, share),
    st.builds(sm.RankSwap, columns, st.sampled_from([0.1, 0.2])),
    st.builds(sm.Noise, columns, variance=share),
    st.builds(Microaggregate, columns, size=st.sampled_from([3, 5])),
    st.builds(Synthesize, columns, leaf=st.sampled_from([5, 20]), model=st.sampled_from(["trees", "regressions"])),
    st.builds(lambda on: Protect(Unsafe(on=on), sm.Noise(on, variance=0.1)), columns),
)
methods: st.SearchStrategy[Method] = st.one_of(steps, st.lists(steps, min_size=2, max_size=4).map(Chain))


@st.composite
def plans(draw: st.DrawFn) -> sm.Plan:
    sets = draw(st.dictionaries(st.sampled_from(["keys", "all 4", "é", "known"]), columns, max_size=3))
    named = draw(st.dictionaries(st.sampled_from(["coarsen", "pram-x"]), st.lists(steps, min_size=1, max_size=2)))
    chains = [Chain([*own, *draw(st.lists(steps, min_size=1, max_size=2))]) for own in named.values()]
    several = [Synthesize(draw(columns), leaf=leaf) for leaf in draw(st.lists(st.integers(1, 9), max_size=4))]
    measures = [sm.SmallCells(on=draw(columns)), ExactMatch(on=draw(columns)), TableError(draw(columns), order=1)]
    every = [*draw(st.lists(methods, max_size=4)), *chains, *several, grid(sm.Swap, on="sex", rate=[0.1, 0.2])]
    names = {own: f"number {i}" for i, own in enumerate(chains[:1])}
    limits = {measures[0].text: 0.1} if draw(st.booleans()) else {}
    risk = [own.text for own in measures[: draw(st.integers(1, 2))]]
    return sm.Plan(every, measures, risk=risk, limits=limits, names=names, columns=sets, steps=named, seed=1)


@settings(max_examples=200, deadline=None)
@given(plans())
def test_every_plan_survives_its_text(plan: sm.Plan) -> None:
    text = plan.toml()
    again = sm.Plan.from_toml(text, seed=1)
    assert again == plan and again.digest == plan.digest and again.toml() == text
    assert list(again.stated_methods) == list(plan.stated_methods)
    assert plan.columns.items() - again.columns.items() <= {("known", plan.columns.get("known"))}, "or ambiguous"
    assert again.steps == plan.steps


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
scalars = st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), texts)
inner = st.recursive(
    scalars, lambda own: st.one_of(st.lists(own, max_size=12), st.dictionaries(texts, own, max_size=3)), max_leaves=12
)


@settings(deadline=None)
@given(st.dictionaries(texts, inner, max_size=5))
def test_written_text_is_toml(table: dict[str, Any]) -> None:
    """Long lists are wrapped, so a text of any characters must survive it."""
    assert tomllib.loads(format_plan(table)) == table


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["columns", "steps", "methods", "measures", "risk", "limits", "x"]), inner))
def test_any_table_is_expanded_or_refused(table: dict[str, Any]) -> None:
    """A damaged plan never ends with anything but PlanError."""
    with contextlib.suppress(PlanError):
        expand(table, [])


# ---- mistakes -----------------------------------------------------------------------------------------------------
HEAD = '[[measures]]\ntype = "SmallCells"\n[[methods]]\ntype = "Chain"\nmethods = ["first"]\n'
STEP = "[steps]\nfirst = [{ type = 'PRAM', on = 'a' }]\n"
MISTAKES = {
    "strengths of different number": (
        STEP + HEAD + '[[methods]]\ntype = "PRAM"\non = "a"\nstay = [0.1, 0.2]\nalpha = [0.1, 0.2, 0.3]\n',
        "must have the same length, from 1 to 1,000",
    ),
    "no strength": (STEP + HEAD + '[[methods]]\ntype = "PRAM"\non = "a"\nstay = []\n', "must have the same length"),
    "a set that is a column": (STEP + '[columns]\na = ["a", "b"]\n' + HEAD, "is also the name of a column"),
    "an empty set": (STEP + "[columns]\nall = []\n" + HEAD, "columns.'all' must be a list of column names."),
    "a step that is unknown": ("[steps]\nother = [{ type = 'PRAM', on = 'a' }]\n" + HEAD, "there is no method 'first'"),
    "a step of a step": (
        "[steps]\nfirst = ['second']\nsecond = [{ type = 'PRAM', on = 'a' }]\n" + HEAD,
        "there is no method 'second'",
    ),
    "steps that are numbers": ("[steps]\nfirst = [1]\n" + HEAD, "steps.'first' must be a list of methods."),
    "columns that are a list": ("columns = ['a']\n" + STEP + HEAD, "columns must be a table of names."),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_mistakes_are_named(what: str) -> None:
    text, sentence = MISTAKES[what]
    with pytest.raises(PlanError) as caught:
        sm.Plan.from_toml(text)
    assert sentence in str(caught.value)


def test_a_short_text_cannot_fill_the_memory() -> None:
    """Two plans of less than 500,000 characters: a set of many columns in many lists, and a step in many chains."""
    many = ", ".join(f'"c{number}"' for number in range(20_000))
    users = "".join('[[methods]]\ntype = "PRAM"\non = "all"\nstay = [0.1, 0.2]\n' for _ in range(2_000))
    steps = ", ".join("{ type = 'PRAM', on = 'a' }" for _ in range(2_000))
    chains = "".join('[[methods]]\ntype = "Chain"\nmethods = ["all", "all"]\n' for _ in range(2_000))
    for text in (f"[columns]\nall = [{many}]\n{users}", f"[steps]\nall = [{steps}]\n{chains}"):
        with pytest.raises(PlanError, match="a plan names at most 1,000,000 columns and steps in all"):
            sm.Plan.from_toml(text)
