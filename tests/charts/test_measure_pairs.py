"""Several users: small maps of all measures, two utilities on one map, and limits of losses on every map."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

import sdcmap as sm
from sdcmap.charts import draw_measure_pairs, map_info
from sdcmap.map import RUMap
from sdcmap.study.scores import Scores

RISKS, LOSSES = ("R", "S"), ("users' means", "users' tables")


@pytest.fixture(scope="module")
def scores() -> Scores:
    """Two risks and two losses of five methods, in one table."""
    table = pl.DataFrame(
        {
            "name": ["A", "B", "C", "D", "E"],
            "R": [0.1, 0.2, 0.3, 0.4, 0.5],
            "S": [5.0, 4.0, 9.0, 3.0, 1.0],
            "users' means": [0.9, 0.7, 0.5, 0.3, 0.1],
            "users' tables": [0.2, 0.8, 0.1, 0.6, 0.4],
        }
    )
    first = RUMap.of_pairs(table, risk=RISKS, utility=LOSSES[0], loss=True).scores
    second = RUMap.of_pairs(table, risk=RISKS, utility=LOSSES[1], loss=True).scores
    rows, fact = second.score.filter(measure=LOSSES[1]), second.measure.filter(name=LOSSES[1])
    return replace(first, score=pl.concat([first.score, rows]), measure=pl.concat([first.measure, fact]))


def rings(spec: Any) -> list[tuple[float, float]]:
    """Where each panel marks the choice."""
    if isinstance(spec, dict):
        mark = spec.get("mark")
        own = isinstance(mark, dict) and mark.get("size") == 190 and spec.get("data", {}).get("values")
        found = [(row["x"], row["y"]) for row in own or []]
        return found + [ring for child in spec.values() for ring in rings(child)]
    return [ring for child in spec for ring in rings(child)] if isinstance(spec, list) else []


def test_page_has_a_map_for_each_pair_and_marks_the_choice_in_each(scores: Scores) -> None:
    ru = RUMap(scores, "R", LOSSES[0])
    choice = ru.choose(sm.Threshold(risk=0.3))
    assert choice.method == "C"
    chart = ru.draw_all(mark=choice)
    grid = chart.to_dict()["hconcat"][0]
    assert (len(grid["concat"]), grid["columns"]) == (4, 2)
    titles = [(p["encoding"]["x"]["axis"]["title"][0], p["encoding"]["y"]["axis"]["title"][0]) for p in grid["concat"]]
    assert all(
        loss in x and risk in y
        for (x, y), (risk, loss) in zip(titles, [(r, u) for r in RISKS for u in LOSSES], strict=True)
    )
    assert rings(grid) == [(0.5, 0.3), (0.1, 0.3), (0.5, 9.0), (0.1, 9.0)]
    assert chart.svg().startswith("<svg")


def test_page_without_values_or_with_too_many_maps_is_rejected(scores: Scores) -> None:
    ru = RUMap(scores, "R", LOSSES[0])
    none = replace(scores, score=scores.score.filter(pl.col("measure") != "R").filter(pl.col("measure") != "S"))
    with pytest.raises(sm.errors.PlanError, match="need a risk measure and a utility measure that have values"):
        draw_measure_pairs(RUMap(none, "R", LOSSES[0]))
    many = [scores.measure.filter(name="R").with_columns(name=pl.lit(f"R{i}")) for i in range(31)]
    rows = [scores.score.filter(measure="R").with_columns(measure=pl.lit(f"R{i}")) for i in range(31)]
    crowded = replace(scores, score=pl.concat([scores.score, *rows]), measure=pl.concat([scores.measure, *many]))
    with pytest.raises(sm.errors.PlanError, match="33 risk and 2 utility measures make 66 maps, more than the 60"):
        draw_measure_pairs(RUMap(crowded, ru.risk, ru.utility))


def test_limits_of_both_axes_are_lines(scores: Scores) -> None:
    ru = RUMap(scores, "R", LOSSES[0], {"R": 0.35, LOSSES[0]: 0.6})
    lines = map_info(ru).lines.select("kind", "x", "x2", "y", "y2", "text").rows()
    info = map_info(ru)
    assert lines == [
        ("limit", info.x.low, info.x.high, 0.35, 0.35, "limit: risk ≤ 0.35"),
        ("limit", 0.6, 0.6, info.y.low, info.y.high, "limit: loss ≤ 0.6"),
    ]
    # A threshold of the same value is drawn once; another one has its own line.
    texts = [map_info(ru, mark=ru.choose(sm.Threshold(risk=r))).lines["text"].to_list() for r in (0.35, 0.2)]
    assert texts[0] == ["limit: risk ≤ 0.35", "limit: loss ≤ 0.6"]
    assert texts[1] == ["limit: risk ≤ 0.2", "limit: risk ≤ 0.35", "limit: loss ≤ 0.6"]


def test_limit_of_another_users_loss_decides(scores: Scores) -> None:
    """B has the least risk among methods whose means are good enough, but its tables are not; C has both."""
    means_only = RUMap(scores, "R", LOSSES[0], {LOSSES[0]: 0.75})
    both = RUMap(scores, "R", LOSSES[0], {LOSSES[0]: 0.75, LOSSES[1]: 0.5})
    assert means_only.choose(sm.Linear(slope=0.0)).method == "B"
    assert both.choose(sm.Linear(slope=0.0)).method == "C"


def test_two_losses_share_a_map(scores: Scores) -> None:
    info = map_info(RUMap(scores, LOSSES[1], LOSSES[0]))
    assert (info.x.title, info.y.title) == ("Loss: users' means", "Loss: users' tables")
    assert set(info.frontier.select("x", "y").rows()) == {(0.1, 0.4), (0.5, 0.1)}
