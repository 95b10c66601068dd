"""The page of the report that compares attackers with different knowledge (Duncan et al. 2001, sections 3 and 4)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.charts.knowledge_errors import KnowledgeErrors, draw_knowledge
from sdcmap.reports.knowledge_states import KnowledgeTable, compare_knowledge
from sdcmap.risk import (
    Index,
    IntervalDisclosure,
    KnownIndex,
    MeanGuess,
    Position,
    PositionNoiseGuessed,
    PositionNoiseKnown,
)

STATES = [
    Position(on="income", target=0.9), PositionNoiseKnown(on="income", target=0.9), Index(on="income", target=0.9),
    PositionNoiseGuessed(on="income", target=0.9, believed_sd=9_000.0), MeanGuess(on="income", target="population"),
    MeanGuess(on="income"), KnownIndex(on="income"),
]  # fmt: skip
NOISE, SWAP = sm.Noise(on="income", variance=0.3), sm.RankSwap(on="income", p=0.2)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study whose rule needs no expectation, with one candidate that adds noise and one that does not."""
    x = np.random.default_rng(1).lognormal(10, 0.5, 80).round()
    data = sm.read(pl.DataFrame({"income": x}), numeric="all")
    axes = [IntervalDisclosure(on="income"), sm.utility.SseSst(on="income")]
    rule = sm.Threshold(risk=1.0)
    plan = sm.Plan(
        [NOISE, SWAP], [*axes, *STATES], replicates=12, seed=1, risk=[axes[0].text], utility=axes[1].text, rule=rule
    )
    folder = tmp_path_factory.mktemp("knowledge") / "study"
    sm.sweep(data, plan, folder, workers=1)
    return folder


def tables_of(study: Path, method: sm.Method) -> list[KnowledgeTable]:
    with sm.Study.open(study) as opened:
        scores = opened.scores()
        candidate = next(c for c in opened.plan.candidates if c.method == method and c.replicate == 0)
        rule = sm.Threshold(risk=1.0)
        return compare_knowledge(scores, sm.Choice(candidate.id, method.text, 0, None, None, rule, ""))


def test_rows_are_typical_errors_of_the_pooled_risk(study: Path) -> None:
    (table,) = tables_of(study, NOISE)
    with sm.Study.open(study) as opened:
        scores = opened.scores()
        risk = {state: scores.pooled_estimates(state.text)[NOISE.text].value for state in STATES}
    assert table.variable == "income" and len(table.rows) == len(STATES)
    errors = sorted(row.errors.release for row in table.rows)
    assert errors == pytest.approx(sorted(value**-0.5 for value in risk.values()))
    by_rank = [state for state in STATES if getattr(state, "target", None) == 0.9]
    closest = max(by_rank, key=lambda state: risk[state])
    bold = [row.class_name for row in table.rows if row.is_closest and row.target == "percentile 90"]
    assert bold == [type(closest).__name__]
    assert [row.target for row in table.rows].count("any record") == 2
    mean = next(row for row in table.rows if row.target == "a person of the population")
    assert (
        mean.unmasked == mean.nothing and not mean.is_closest
    )  # the mean of the unmasked file; nobody to compare with
    exact = next(row for row in table.rows if row.class_name == "Index")
    assert exact.unmasked == "none: exact" and "±" in exact.release


def test_states_without_a_value_are_left_out(study: Path) -> None:
    (table,) = tables_of(study, SWAP)
    assert "PositionNoiseKnown" not in {row.class_name for row in table.rows}
    with sm.Study.open(study) as opened:
        assert compare_knowledge(opened.scores(), None) == []


def test_one_state_is_no_comparison(study: Path) -> None:
    with sm.Study.open(study) as opened:
        scores = opened.scores()
        kept = {
            name: measure for name, measure in scores.values.items() if not isinstance(measure, Position | MeanGuess)
        }
        choice = sm.Choice("x", NOISE.text, 0, None, None, sm.Threshold(risk=1.0), "")
        assert compare_knowledge(sm.Scores(scores.candidate, scores.score, scores.measure, kept), choice) == []


def test_report_shows_the_states_to_the_board_only(study: Path) -> None:
    page = sm.report(study).html
    assert (
        "What attackers with different knowledge learn" in page and "How far attackers are from the true income" in page
    )
    assert "Of 7 attackers who want to know" in page or "Of 6 attackers who want to know" in page
    assert "different knowledge" not in sm.report(study, audience="external").html


def test_chart_has_a_logarithmic_axis_beyond_a_factor_of_20() -> None:
    narrow = [KnowledgeErrors("a", 5.0, 90.0), KnowledgeErrors("b", 0.0, None)]
    wide = [*narrow, KnowledgeErrors("c", 4.0, float("inf"))]
    for states, kind in ((narrow, "linear"), (wide, "log")):
        spec = draw_knowledge(states, "income").spec
        scales = [layer["encoding"]["x"]["scale"]["type"] for layer in spec["layer"]]
        assert set(scales) == {kind}
    assert draw_knowledge(wide, "income").spec["data"]["values"][1]["release"] == pytest.approx(4 / 1.25)


def test_chart_shows_the_smallest_tolerable_error_where_it_is_in_the_picture() -> None:
    states = [KnowledgeErrors("a", 5.0, 90.0)]
    first = draw_knowledge(states, "income", 40.0).spec["layer"][0]
    assert first["mark"]["type"] == "rule"
    assert first["data"]["values"] == [{"limit": 40.0}]
    assert draw_knowledge(states, "income", 4000.0).spec == draw_knowledge(states, "income").spec
