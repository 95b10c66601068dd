"""The review of a search: which choices matter, a replay of random search, and its charts."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
from search_samples import OWN, people_of, plan_of

from sdcmap.searches.forest import Predictors, draw_neighbors, importance
from sdcmap.searches.search_results import SearchResult
from sdcmap.searches.search_review import name_generations


def table(rows: int = 200) -> tuple[Predictors, np.ndarray]:
    """Three predictors, a number, a category with a missing value and noise; the answer depends on the first two."""
    rng = np.random.default_rng(3)
    number, category, noise = rng.random(rows), rng.integers(0, 4, rows).astype(float), rng.random(rows)
    y = 2 * number + np.array([0.0, 3.0, 0.0, 3.0])[category.astype(int)]
    category[rng.random(rows) < 0.1] = np.nan
    return Predictors.of(np.column_stack([number, category, noise]), np.array([True, False, True])), y


def test_forest_separates_important_from_unimportant_columns() -> None:
    x, y = table()
    groups = {"number": [0], "category": [1], "noise": [2], "both": [0, 1]}
    matters = importance(x, y, groups, np.random.default_rng(1))
    assert matters["both"] > matters["category"] > matters["number"] > 10 * matters["noise"]
    assert matters["noise"] < 0.05 and matters["category"] > 0.3


def test_replayed_point_gets_the_scores_of_a_similar_one() -> None:
    x, y = table()
    others = np.array([[0.5, 0.0, 0.5], [0.5, 3.0, 0.5]])
    drawn = np.array([y[draw_neighbors(x, y, others, np.random.default_rng(s))] for s in range(60)])
    low, high = drawn.mean(axis=0)
    assert low < 2.2 < high  # the truths are 1 and 4, and two of five trees do not use the category


def test_generations_are_named_in_a_few_spans() -> None:
    spans = name_generations({f"m{g}": g for g in range(12)})
    assert list(dict.fromkeys(spans.values())) == [
        "your plan", "starts", "generations 2 to 5", "generations 6 to 8", "generations 9 to 11",
    ]  # fmt: skip


def test_replay_starts_at_the_plan_and_never_decreases(found: SearchResult) -> None:
    front = found.table.select(tuple(c.id for c in plan_of().candidates if c.kind == "candidate"))
    replay = found.choices.replay([0, 24, 32], (front.x, front.y))
    assert np.allclose(replay.row(0)[1:], found.history.areas[0])
    low, area, high = (replay[name][1:] for name in ("low", "area", "high"))
    assert replay["area"].is_sorted() and (low <= area).all() and (area <= high).all()


def test_every_chart_of_a_search_is_drawn(found: SearchResult) -> None:
    assert list(found.pictures) == ["map", "progress", "importance", "choices", "methods"]
    drawn = {name: draw() for name, draw in found.pictures.items()}
    rings = drawn["map"].spec["hconcat"][0]["layer"][-1]["data"]["values"]
    own = found.map.points.filter(pl.col("method") == OWN.text)
    assert [(row["x"], row["y"]) for row in rings] == list(own.select("utility", "risk").iter_rows())
    for name, chart in drawn.items():
        if name != "map":
            chart.altair()  # checks the spec against the schema
        assert all(str(value) not in json.dumps(chart.spec) for value in people_of()["wage"] if value > 1000)
