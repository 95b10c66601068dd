"""The R-U map: what it shows, then that it can be drawn and saved."""

from __future__ import annotations

import json
import math
import re
import struct
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl
import pytest
import vl_convert

import sdcmap as sm
from sdcmap.charts import Chart, MapInfo, draw_map, map_info
from sdcmap.charts.axis import axis
from sdcmap.charts.label_placement import NEAREST_DISTANCE, LabelRequest, _box, position_labels
from sdcmap.charts.legend import legend_entries
from sdcmap.charts.method_names import MethodLabel, groups_of, short_names
from sdcmap.map import RUMap
from sdcmap.study.scores import Scores
from sdcmap.study.sweep import sweep

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def swaps() -> RUMap:
    """Swaps of a small population: 6 sets, 2 rates, 40 draws."""
    data = sm.demo.population(600, seed=3)
    methods = sm.grid(sm.Swap, on=sm.subsets(["Age", "Race", "Sex"], 1, 2), rate=[0.02, 0.1])
    plan = sm.Plan(methods, [sm.SmallCells(), sm.Hellinger()], replicates=40, seed=11)
    return RUMap(sweep(data, plan, workers=1), plan.risk, plan.utility)


@pytest.fixture(scope="module")
def noise() -> RUMap:
    """Noise of three strengths under expectation measures: the original has infinite risk."""
    data = sm.demo.population(300, seed=3)
    measures = [sm.risk.KnownIndex(on="wage"), sm.utility.MeanPrecision(on="wage")]
    plan = sm.Plan(sm.grid(sm.Noise, on="wage", variance=[0.1, 0.5, 1.0]), measures, replicates=5, seed=11)
    return RUMap(sweep(data, plan, workers=1), plan.risk, plan.utility)


def table(points: list[tuple[str, int, float, float]]) -> RUMap:
    """A map of numbers made elsewhere: (method, draw, risk, distortion) each."""
    ids = [f"{number:012x}" for number in range(len(points))]
    candidate = {
        "id": ids,
        "kind": ["identity" if p[0] == "Identity" else "candidate" for p in points],
        "method": [p[0] for p in points],
        "replicate": [p[1] for p in points],
        "status": "ok",
        "reason": "",
        "seconds": 0.0,
    }
    rows = [(one, name, p[i]) for one, p in zip(ids, points, strict=True) for name, i in (("R", 2), ("D", 3))]
    score = pl.DataFrame(
        [
            (one, name, None if math.isinf(v) else v, None, "{}", "infinite" if math.isinf(v) else "ok", "")
            for one, name, v in rows
        ],
        schema={
            "candidate": pl.String, "measure": pl.String, "value": pl.Float64, "se": pl.Float64, "details": pl.String,
            "status": pl.String, "reason": pl.String,
        },
        orient="row",
    )  # fmt: skip
    measure = pl.DataFrame(
        {
            "name": ["R", "D"],
            "direction": "lower",
            "low": 0.0,
            "high": None,
            "unit": "share",
            "axis": ["risk", "utility"],
        }
    ).with_columns(baseline_value=pl.Series([0.0, 1.0]))
    schema = {"id": pl.String, "kind": pl.String, "method": pl.String, "replicate": pl.Int64, "status": pl.String}
    return RUMap(Scores(pl.DataFrame(candidate, schema_overrides=schema), score, measure), ("R",), "D")


def marks_inside(info: MapInfo) -> bool:
    tables = [info.points, info.means, info.anchors, info.marks, info.labels]
    return all(
        bool(t["x"].is_between(info.x.low, info.x.high).all() and t["y"].is_between(info.y.low, info.y.high).all())
        for t in tables
        if len(t)
    )


# ---- what is shown --------------------------------------------------------------------------------------------


def test_points_and_frontier_are_those_of_the_map(swaps: RUMap) -> None:
    info = map_info(swaps)
    assert info.by == "release" and len(info.points) == len(swaps.points) - 1
    path = info.frontier.select(utility="x", risk="y").sort("utility", "risk")
    assert path.equals(swaps.frontier.select("utility", "risk").unique().sort("utility", "risk"))
    assert info.means.is_empty() and info.bands.is_empty()
    assert marks_inside(info)


def test_means_have_two_distinct_bands(swaps: RUMap) -> None:
    info = map_info(swaps, by="mean")
    front = swaps.means.filter("frontier").select("utility", "risk").sort("utility", "risk")
    assert info.frontier.select(utility="x", risk="y").sort("utility", "risk").equals(front)
    method = info.means["method"][0]
    mean = swaps.means.filter(pl.col("method") == method).row(0, named=True)
    band = info.bands.filter(pl.col("method") == method, pl.col("axis") == "risk")
    spread, error = (band.filter(pl.col("kind") == kind).row(0, named=True) for kind in ("spread", "error"))
    assert (spread["y"], spread["y2"]) == pytest.approx((mean["risk_low"], mean["risk_high"]))
    assert (error["y"] + error["y2"]) / 2 == pytest.approx(mean["risk"])
    assert (error["y2"] - error["y"]) / 2 == pytest.approx(1.96 * mean["risk_se"])
    words = [row[2] for row in legend_entries(info)]
    assert "2.5 to 97.5 % of 40 releases" in words and "mean ± 1.96 standard errors" in words


def test_of_many_methods_only_the_frontier_has_bands(swaps: RUMap, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sdcmap.charts.map_contents.MAX_METHODS_WITH_BANDS", 1)
    front = swaps.means.filter("frontier")["method"]
    assert 0 < len(front) < swaps.means.filter(~pl.col("anchor")).height
    assert set(map_info(swaps, by="mean").bands["method"]) == set(front)


def test_anchors_are_shown_and_do_not_squeeze_the_points(swaps: RUMap) -> None:
    info = map_info(swaps)
    nothing = info.anchors.filter(pl.col("name") == "release nothing").row(0, named=True)
    assert (nothing["risk"], nothing["utility"]) == (0.0, 1.0)
    assert nothing["edge"] and nothing["text"].endswith("loss 1")
    points = swaps.points.filter(~pl.col("anchor"))["utility"]
    assert info.x.high - info.x.low <= 1.5 * 1.1 * (points.max() - points.min())  # type: ignore[operator]
    whole = info.anchors.filter(pl.col("name") == "unmasked file").row(0, named=True)
    assert whole["risk"] == swaps.points.filter("anchor")["risk"][0]


def test_axis_includes_near_guide_and_excludes_far_one() -> None:
    found = axis("", "", [0.0, 1.0], guides=[1.4, 9.0])
    assert found.locate(1.4) == (1.4, "") and found.locate(9.0)[1] == "high"
    assert found.locate(math.inf)[1] == "high" and found.locate(-1.0)[1] == "low"
    assert axis("", "", [], guides=[math.inf]).locate(0.5) == (0.5, "")
    one = axis("", "", [2.0])
    assert one.low < 2.0 < one.high


def test_threshold_line_and_chosen_point(swaps: RUMap) -> None:
    limit = float(swaps.frontier["risk_end"].median())  # type: ignore[arg-type]
    choice = swaps.choose(sm.Threshold(risk=limit))
    info = map_info(swaps, mark=choice)
    line = info.lines.row(0, named=True)
    assert (line["kind"], line["y"], line["y2"]) == ("limit", limit, limit)
    assert line["text"] == f"limit: risk ≤ {limit:g}"
    assert info.marks.select("x", "y").row(0) == (choice.utility, choice.risk)
    assert any(text.startswith("chosen: ") and " swapped " in text for text in info.labels["text"])


def test_margins_lead_to_what_a_threshold_is_compared_with() -> None:
    """Of the candidates whose risk is within the threshold, those are refused whose line ends above it."""
    data = sm.demo.population(300, seed=3)
    measures = [
        sm.risk.AttributeInference("wage", held_out=0.5, folds=4),
        sm.utility.KolmogorovSmirnov(["wage", "interest"]),
    ]
    plan = sm.Plan(sm.grid(sm.Synthesize, on=[["wage", "interest"]], leaf=[5, 20, 80]), measures, seed=11)
    ru = RUMap(sweep(data, plan, workers=1), plan.risk, plan.utility)
    points = ru.points.filter(~pl.col("anchor"), pl.col("risk_end") > pl.col("risk"))
    between = points.sort("risk")[0].select((pl.col("risk") + pl.col("risk_end")) / 2).item()
    choice = ru.choose(sm.Threshold(risk=between))
    info = map_info(ru, mark=choice, by="release")
    ends = dict(info.bands.filter(kind="margin").select("x", "y2").iter_rows())
    assert choice.candidate is None and ends
    for x, risk_end in points.select("utility", "risk_end").iter_rows():
        assert x not in ends or ends[x] == pytest.approx(info.y.clip(risk_end))
    assert all(end > between for end in ends.values())
    assert not len(map_info(ru, by="release").bands)


def test_tangent_of_linear_rule_touches_no_other_point(swaps: RUMap) -> None:
    choice = swaps.choose(sm.Linear(slope=0.05))
    line = map_info(swaps, mark=choice).lines.row(0, named=True)
    constant = choice.risk + 0.05 * choice.utility
    for end in ("", "2"):
        assert line[f"y{end}"] + 0.05 * line[f"x{end}"] == pytest.approx(constant)
    masked = swaps.points.filter(~pl.col("anchor"))
    assert (masked["risk"] + 0.05 * masked["utility"]).min() == pytest.approx(constant)


def test_chosen_draw_is_marked_beside_its_mean(swaps: RUMap) -> None:
    choice = swaps.choose(sm.Linear(slope=0.05))
    marks = map_info(swaps, mark=choice, by="mean").marks
    assert marks["kind"].to_list() == ["chosen", "draw"]
    assert marks.filter(pl.col("kind") == "draw").select("x", "y").row(0) == (choice.utility, choice.risk)


def test_releasing_nothing_is_marked(swaps: RUMap) -> None:
    choice = swaps.choose(sm.Threshold(risk=1e-9))
    assert choice.candidate is None
    info = map_info(swaps, mark=choice)
    nothing = info.anchors.filter(pl.col("name") == "release nothing").row(0, named=True)
    assert info.marks.select("x", "y").row(0) == (nothing["x"], nothing["y"])
    assert info.lines["text"][0].endswith("below the picture")


def test_expectations_are_drawn_by_mean_and_infinity_at_the_edge(noise: RUMap) -> None:
    info = map_info(noise, mark=noise.choose(sm.Threshold(risk=1.0)), by="mean")
    assert map_info(noise, color="variance").by == "mean" and info.stepped == "step-before"
    whole = info.anchors.filter(pl.col("name") == "unmasked file").row(0, named=True)
    assert math.isinf(whole["risk"]) and whole["edge"] == "up" and "risk infinite" in whole["text"]
    assert "higher is better" in " ".join(info.x.lines(40)) and "a larger error is better" in info.y.lines(400)[0]
    assert marks_inside(info)
    json.dumps(draw_map(noise).to_dict(), allow_nan=False)


def test_infinite_points_are_triangles_at_the_edge() -> None:
    ru = table([("Identity", 0, 0.5, 0.0), ("A", 0, 0.2, 0.3), ("A", 1, math.inf, 0.2), ("B", 0, 0.1, math.inf)])
    info = map_info(ru)
    assert dict(info.points.select("risk", "edge").iter_rows()) == {0.2: "", math.inf: "up", 0.1: "right"}
    spec = json.dumps(draw_map(ru).to_dict(), allow_nan=False)
    assert "triangle-up" in spec and "triangle-right" in spec and '"infinite"' in spec


def test_facets_have_their_own_frontier_and_short_names(swaps: RUMap) -> None:
    info = map_info(swaps, facet="rate", width=290, height=250)
    assert info.panels == ("rate 0.02", "rate 0.1")
    for panel in info.panels:
        mine = info.points.filter(pl.col("panel") == panel)
        best = mine.filter("frontier")
        assert set(info.frontier.filter(pl.col("panel") == panel)["x"]) == set(best["utility"])
        for risk, loss in best.select("risk", "utility").iter_rows():
            beaten = (mine["risk"] <= risk) & (mine["utility"] <= loss)
            strictly = beaten & ((mine["risk"] < risk) | (mine["utility"] < loss))
            assert not strictly.any()
    assert "Age, Sex swapped 2 %" in set(info.points["short"])
    with pytest.raises(sm.errors.PlanError, match="no method of this map has a parameter 'color'"):
        map_info(swaps, facet="color")


@pytest.mark.parametrize(
    "points", [[], [("Identity", 0, 0.5, 0.0)], [("A", 0, 0.2, 0.3)]], ids=["none", "original", "one"]
)
def test_few_points_can_be_drawn(points: list[tuple[str, int, float, float]]) -> None:
    ru = table(points)
    for by in ("release", "mean"):
        chart = draw_map(ru, by=by, mark=ru.choose(sm.Threshold(risk=0.1)))
        assert chart.svg().startswith("<svg")
    assert map_info(ru).frontier.height == sum(method != "Identity" for method, *_ in points)


def test_unknown_by_is_rejected(swaps: RUMap) -> None:
    with pytest.raises(sm.errors.PlanError, match="by 'release', by 'mean' or by 'curve'"):
        draw_map(swaps, by="median")


# ---- names and labels -----------------------------------------------------------------------------------------


def test_short_names_contain_differences() -> None:
    methods = [
        sm.Swap(on=["WrkTyp", "Race"], rate=0.05),
        sm.Swap(on="Sex"),
        sm.Noise(on="wage", variance=0.5),
        sm.Chain([sm.Swap(on="Sex"), sm.Noise(on="wage")]),
    ]
    rows = [MethodLabel(method.text, method) for method in methods]
    file = MethodLabel("a.csv", None, "file")
    short = short_names([*rows, file])
    assert [short[row.text] for row in rows] == [
        "WrkTyp, Race swapped 5 %",
        "Sex swapped 1 %",
        "with 50 % noise",
        "Sex swapped 1 %; with 10 % noise",
    ]
    assert (rows[3].family(), file.family()) == ("Data swapping + additive noise", "file made elsewhere")
    families = ["Additive noise", "Data swapping", "Data swapping", "Data swapping + additive noise"]
    assert list(groups_of(rows, "method").values()) == families
    ends = [sm.Chain([method, sm.methods.AverageWeights()]) for method in (sm.Noise(on="income"), sm.Swap(on="sex"))]
    shared = groups_of([MethodLabel(chain.text, chain) for chain in ends], "method")
    assert list(shared.values()) == ["Additive noise", "Data swapping"]
    many = [f"column{i}" for i in range(9)]
    long = [sm.Synthesize(many, leaf=100), sm.Synthesize(many[:5], leaf=5)]
    names = short_names([MethodLabel(method.text, method) for method in long])
    assert names[long[0].text] == "synthesized (CART, at least 100 records per leaf)"  # without its nine columns
    same = short_names([MethodLabel("mine:Blur(a=1)", None), MethodLabel("mine:Blur(a=2)", None)])
    assert len(set(same.values())) == 2


def test_stated_name_is_label_and_tooltip() -> None:
    swap = sm.Swap(on="Sex", rate=0.1)
    population = sm.demo.population(100, seed=3)
    plan = sm.Plan(
        [swap, sm.Swap(on="Age", rate=0.1)], [sm.SmallCells(), sm.Hellinger()], names={swap: "sexes"}, seed=1
    )
    ru = RUMap(sm.sweep(population, plan, workers=1), "SmallCells", "Hellinger")
    info = map_info(ru)
    assert set(info.points["short"]) == set(info.points["name"]) == {"sexes", "Age swapped 10 %"}
    assert "Swap(on=" not in str(draw_map(ru).to_dict())


def test_labels_do_not_touch_and_stay_inside() -> None:
    requests = [LabelRequest("a label of some length", ((60.0 + 7 * i, 80.0 + 3 * i),)) for i in range(20)]
    found = position_labels(requests, [(x, y, 4.0) for request in requests for x, y in request.near], 400, 200)
    boxes = [_box(one, requests[one.request].text) for one in found]
    assert 3 <= len(boxes) < 20
    for number, one in enumerate(boxes):
        assert one[0] >= 0 and one[1] >= 0 and one[2] <= 400 and one[3] <= 200
        assert all(one[2] < b[0] or b[2] < one[0] or one[3] <= b[1] or b[3] <= one[1] for b in boxes[:number])
    assert found == position_labels(requests, [(x, y, 4.0) for request in requests for x, y in request.near], 400, 200)
    assert not position_labels([LabelRequest("x" * 100, ((5.0, 5.0),), True, NEAREST_DISTANCE)], [], 100, 50)


# ---- the drawing ----------------------------------------------------------------------------------------------


def test_spec_is_valid_and_contains_only_names_and_scores(swaps: RUMap) -> None:
    before = alt.data_transformers.active
    spec = draw_map(swaps, mark=swaps.choose(sm.Linear(slope=0.05)), facet="rate").to_dict()
    alt.HConcatChart.from_dict(spec)
    fields = {name for values in _values(spec) for row in values for name in row}
    assert fields <= {"id", "name", "draw", "x", "y", "x2", "y2", "text", "what", "risk", "utility"}
    assert alt.data_transformers.active == before


def test_chart_can_be_extended_in_altair(swaps: RUMap) -> None:
    """The altair chart draws the same picture, its row limit untouched: the tables go by name."""
    before = alt.data_transformers.active
    chart = draw_map(swaps, mark=swaps.choose(sm.Linear(slope=0.05)))
    made = chart.altair()
    assert isinstance(made, alt.HConcatChart) and alt.data_transformers.active == before
    ours, theirs = chart.svg(), vl_convert.vegalite_to_svg(made.to_dict(), allowed_base_urls=[])
    assert ours.count("<path") == theirs.count("<path") > 400
    assert ours.count("<text") == theirs.count("<text")


def _values(node: Any) -> list[list[dict[str, Any]]]:
    if isinstance(node, dict):
        own = [node["values"]] if isinstance(node.get("values"), list) else []
        return own + [found for child in node.values() for found in _values(child)]
    return [found for child in node for found in _values(child)] if isinstance(node, list) else []


def test_saving(swaps: RUMap, tmp_path: Path) -> None:
    chart = draw_map(swaps, title="Swaps")
    svg = chart.save(tmp_path / "map.svg").read_text()
    assert svg.startswith("<svg") and "unmasked file" in svg
    sizes = []
    for scale in (1, 2):
        png = chart.save(tmp_path / "map.png", scale=scale).read_bytes()
        assert png.startswith(b"\x89PNG")
        sizes.append(struct.unpack(">II", png[16:24]))
    assert sizes[1][0] == pytest.approx(2 * sizes[0][0], abs=2)
    with pytest.raises(sm.errors.SdcmapError, match=".html, .svg or .png"):
        chart.save(tmp_path / "map.pdf")
    with pytest.raises(sm.errors.SdcmapError, match="cannot be written"):
        chart.save(tmp_path / "no" / "map.svg")
    bundle = chart._repr_mimebundle_()
    assert bundle["image/png"].startswith(b"\x89PNG") and bundle["application/vnd.vegalite.v6+json"] == chart.spec


def test_html_loads_nothing_and_escapes_names(tmp_path: Path) -> None:
    ru = table([("Identity", 0, 0.5, 0.0), (f"Swap(on={HOSTILE!r})", 0, 0.2, 0.3)])
    page = draw_map(ru, title=HOSTILE).save(tmp_path / "map.html").read_text()
    assert HOSTILE not in page and "&lt;script&gt;" in page
    assert not re.findall(r"""(?:src|href)\s*=\s*["']?https?:""", page)
    assert not re.findall(r"""\bimport\s*\(?[^;\n]{0,80}["']https?:""", page)
    assert HOSTILE not in draw_map(ru, title=HOSTILE).svg()


def test_chart_returns_copy_of_spec() -> None:
    chart = Chart({"mark": {"type": "point"}})
    chart.to_dict()["mark"]["type"] = "bar"
    assert chart.spec == {"mark": {"type": "point"}}
