"""Notebook output shows structure and scores, never a data value or the seed."""

from __future__ import annotations

import html

import polars as pl
import pytest

import sdcmap as sm
from sdcmap.data.notebook_html import MAX_ROWS, table

SEED = 2**200 + 987_654_321


@pytest.fixture(scope="module")
def file() -> sm.Microdata:
    frame = pl.DataFrame(
        {"<i>age": [31.5, 44.25, None] * 40, "town": ["Aberystwyth", "Zzyzx", "Ystad"] * 40, "x": range(120)}
    )
    return sm.read(frame, keys="town", numeric="<i>age", other="x")


def test_microdata_html_shows_no_values(file: sm.Microdata) -> None:
    page = file._repr_html_()
    assert "<td>town</td><td>nominal</td><td>key</td><td>0</td>" in page
    assert "&lt;i&gt;age</td><td>numeric</td>" in page and "<td>40</td>" in page and "<i>" not in page
    for value in ("31.5", "44.25", "Aberystwyth", "Zzyzx", "119"):
        assert value not in page


def test_long_table_counts_hidden_rows() -> None:
    page = table(["n"], [(i,) for i in range(MAX_ROWS + 5)], "columns")
    assert "and 5 more columns" in page and f"<td>{MAX_ROWS}</td>" not in page


def test_html_of_plan_scores_map_and_choice_hides_seed(file: sm.Microdata) -> None:
    swap = sm.Swap("town", 0.1)
    rule = sm.Threshold(risk=0.5)
    measures = [sm.SmallCells(on="town"), sm.Hellinger(on="town")]
    plan = sm.Plan(
        [swap, sm.Swap("town", 0.3)],
        measures,
        2,
        limits={measures[0]: 0.6},
        rule=rule,
        names={swap: "towns"},
        seed=SEED,
    )
    scores = sm.sweep(file, plan, workers=1)
    ru = sm.RUMap(scores, measures[0], measures[1], plan.limits)
    choice = ru.choose(rule)
    shown = {thing: thing._repr_html_() for thing in map(_Same, (plan, scores, ru, choice))}
    for thing, page in shown.items():
        assert str(SEED) not in page + thing.text and hex(SEED)[2:] not in page + thing.text
        assert len(thing.text) < 200 and "Swap(on=" not in page and "Aberystwyth" not in page
    pages = list(shown.values())
    assert all("towns" in page and "town swapped 30 %" in page for page in pages[:2])
    assert "<td>0.6</td>" in pages[0] and "Rule: Threshold(risk=0.5)" in pages[0]
    assert 'src="data:image/png;base64,' in pages[2] and "on the frontier" in pages[2]
    assert html.escape(choice.reason) in pages[3]
    assert (
        repr(plan) == "Plan(5 candidates of 3 methods, 2 measures: SmallCells(on='town') against Hellinger(on='town'))"
    )
    assert repr(scores).startswith("Scores(5 candidates, ")
    assert repr(choice).startswith(f"Choice({choice.name}: risk ")
    assert repr(ru.choose(sm.Threshold(risk=-1.0))) == "Choice(release nothing)"


class _Same:
    """A value with identity comparison."""

    def __init__(self, thing: sm.Plan | sm.Scores | sm.RUMap | sm.Choice) -> None:
        self.text, self._repr_html_ = repr(thing), thing._repr_html_
