"""A table of risks and utilities made elsewhere as a map (Gomatam, Karr, Sanil 2003, figures 1 and 3)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sdcmap as sm
from sdcmap.charts import draw_map, map_info

# Hypothetical pairs as in figure 1 of the paper: a release is on the frontier if none has less risk and more utility.
PAIRS = {
    "name": ["A", "B", "C", "D", "E", "F"],
    "risk": [0.1, 0.2, 0.3, 0.4, 0.35, 0.9],
    "utility": [0.2, 0.5, 0.45, 0.8, 0.5, 0.85],
    "rate": [0.05, 0.05, 0.01, 0.01, 0.01, 0.005],
}


def plain_frontier(pairs: dict[str, Any], sign: float) -> set[str]:
    """The frontier from its definition; sign: 1 for a utility, -1 for a loss."""
    rows = list(zip(pairs["name"], pairs["risk"], [sign * u for u in pairs["utility"]], strict=True))
    return {
        name for name, risk, good in rows
        if not any(r <= risk and g >= good and (r < risk or g > good) for _, r, g in rows)
    }  # fmt: skip


@pytest.mark.parametrize("is_loss", [False, True])
def test_frontier_of_pairs_is_that_of_its_definition(is_loss: bool) -> None:
    ru = sm.RUMap.of_pairs(PAIRS, loss=is_loss)
    assert set(ru.frontier["method"]) == plain_frontier(PAIRS, -1 if is_loss else 1)
    assert set(ru.frontier["method"]) == ({"A"} if is_loss else {"A", "B", "D", "F"})
    assert ru.signs == (1.0, 1.0 if is_loss else -1.0)


def test_tangent_of_figure_1_touches_the_chosen_pair() -> None:
    """The line Risk = a Utility + c (section 2): minimize risk - a utility."""
    ru = sm.RUMap.of_pairs(PAIRS)
    slope = 0.5
    values = {n: r - slope * u for n, r, u in zip(PAIRS["name"], PAIRS["risk"], PAIRS["utility"], strict=True)}
    choice = ru.choose(sm.Linear(slope=slope))
    assert choice.method == min(values, key=values.__getitem__) == "B"
    line = map_info(ru, mark=choice).lines.row(0, named=True)
    for end in ("", "2"):
        assert line[f"y{end}"] - slope * line[f"x{end}"] == pytest.approx(values["B"])


def test_further_columns_color_and_trace_points(tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    pl.DataFrame(PAIRS).with_columns(on=pl.Series(["x", "y", "x", "y", "z", "x"])).write_csv(file)
    ru = sm.RUMap.of_pairs(file)
    info = map_info(ru, color="rate")
    assert [*info.styles] == ["rate 0.005", "rate 0.01", "rate 0.05"]
    assert dict(info.points.select("method", "group").iter_rows())["A"] == "rate 0.05"
    assert map_info(ru, facet="on").panels == ("on x", "on y", "on z")
    curves = ru.curves("rate").group_by("family", maintain_order=True).agg("method").rows()
    assert curves == [("on x", ["F", "C", "A"]), ("on y", ["D", "B"])]
    assert map_info(ru).by == "release"


def test_rows_with_the_same_name_are_draws_and_original_is_an_anchor() -> None:
    table = {
        "name": ["A", "A", "original", "B"],
        "linked": [0.2, 0.4, 0.9, math.inf],
        "distortion": [0.3, 0.5, 0.0, 0.1],
    }
    ru = sm.RUMap.of_pairs(table, risk="linked")
    assert ru.signs == (1.0, 1.0)
    means = dict(ru.means.select("method", "risk").iter_rows())
    assert means["A"] == pytest.approx(0.3) and math.isinf(means["B"])
    assert ru.points.filter("anchor")["method"].to_list() == ["original"]
    info = map_info(ru)
    assert info.anchors["name"].to_list() == ["unmasked file"]
    assert info.y.title == "Risk: linked" and info.x.title == "Loss: distortion"
    assert draw_map(ru).svg().startswith("<svg")


def test_several_risk_columns_share_the_axis() -> None:
    table = PAIRS | {"second": [0.5, 0.1, 0.1, 0.1, 0.1, 0.1]}
    ru = sm.RUMap.of_pairs(table, risk=["risk", "second"])
    assert ru.points["risk"].to_list() == [0.5, 0.2, 0.3, 0.4, 0.35, 0.9]


@pytest.mark.parametrize(
    ("table", "options", "words"),
    [
        ({"name": ["A"], "risk": [1.0]}, {}, "the table has no column 'utility'. Its columns are name, risk."),
        (PAIRS, {"risk": "linked", "utility": "loss"}, "the table has no columns 'linked', 'loss'"),
        (PAIRS, {"utility": "risk"}, "must be different columns"),
        ({**PAIRS, "risk": ["a", *["0.1"] * 5]}, {}, "column 'risk' is not a number in row 1 of the table"),
        ({**PAIRS, "utility": [None] * 6}, {}, "in rows 1, 2, 3, 4, 5 and 1 more of the table"),
        ({**PAIRS, "name": ["A", None, *"CDEF"]}, {}, "column 'name' has no name in row 2"),
        ({"name": [], "risk": [], "utility": []}, {}, "the table has no rows"),
    ],
)
def test_unusable_table_is_rejected_without_its_values(table: dict[str, Any], options: Any, words: str) -> None:
    with pytest.raises(sm.errors.SchemaError, match=words):
        sm.RUMap.of_pairs(table, **options)
