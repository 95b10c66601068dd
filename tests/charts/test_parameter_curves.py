"""The map of curves: a line for each family of methods and each attacker, as the parameter grows."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.charts import draw_map, map_info
from sdcmap.charts.legend import legend_entries
from sdcmap.charts.parameter_curves import default_layer
from sdcmap.core import Method
from sdcmap.map import RUMap
from sdcmap.study.scores import Scores
from sdcmap.study.sweep import sweep

VARIANCES = (0.5, 0.1, 1.0)  # not in order: a curve sorts them
DRAWS = 5


def noises() -> list[Method]:
    return [*sm.grid(sm.Noise, on="wage", variance=list(VARIANCES))]


@pytest.fixture(scope="module")
def people() -> sm.Microdata:
    return sm.demo.population(300, seed=3)


@pytest.fixture(scope="module")
def noise(people: sm.Microdata) -> Scores:
    """Noise of three strengths, and one other method, under two attackers."""
    measures = [
        sm.risk.KnownIndex(on="wage"),
        sm.risk.Position(on="wage", target=0.5),
        sm.utility.MeanPrecision(on="wage"),
    ]
    plan = sm.Plan([*noises(), sm.Microaggregate("wage", 3)], measures, replicates=DRAWS, seed=11)
    return sweep(people, plan, workers=1)


def drawn_map(scores: Scores, *risk: str) -> RUMap:
    return RUMap(scores, risk or "KnownIndex(on='wage')", "MeanPrecision(on='wage')")


BOTH = ("KnownIndex(on='wage')", "Position(on='wage', target=0.5)")


def test_curve_goes_through_pooled_points_in_order_of_parameter(noise: Scores, people: sm.Microdata) -> None:
    """With a known index R = 1/lambda^2 (Duncan et al. 2001, eq. 4), so R lambda^2 = 1 at every point of the curve."""
    ru = drawn_map(noise)
    curve = ru.curves("variance")
    assert curve["value"].to_list() == sorted(VARIANCES) and set(curve["family"]) == {"Additive noise"}
    assert curve["utility"].is_sorted(descending=True) and curve["risk"].is_sorted(descending=True)
    wage = people.numbers("wage")
    noise_variance = curve["value"].to_numpy() * np.nanvar(wage, ddof=1)
    count = DRAWS * np.isfinite(wage).sum()
    # The pooled MSE is a mean of so many squared normals, each of relative variance 2; 4 standard errors.
    assert curve["risk"].to_numpy() * noise_variance == pytest.approx(1.0, abs=4 * np.sqrt(2 / count))
    info = map_info(ru)
    assert info.by == "curve" and info.parameter == "variance"
    assert info.curves.select("x", "y").rows() == curve.select("utility", "risk").rows()
    assert {"0.1", "0.5", "1"} <= set(info.labels["text"])
    assert not len(info.frontier)


def test_pooled_points_are_those_of_the_means(noise: Scores) -> None:
    ru = drawn_map(noise)
    means = {row["method"]: row for row in ru.means.to_dicts()}
    for row in ru.curves().to_dicts():
        for name in ("risk", "utility", "risk_se", "utility_se", "count"):
            assert row[name] == means[row["method"]][name]


def test_each_attacker_has_a_line(noise: Scores) -> None:
    ru = drawn_map(noise, *BOTH)
    info = map_info(ru, curve="variance")
    labels = [noise.values[name].label for name in BOTH]
    lines = info.curves.group_by("group", maintain_order=True).agg("x", "y").rows()
    assert [(name, len(x)) for name, x, _ in lines] == [(label, 3) for label in labels]
    for (_, _, risk), name in zip(lines, BOTH, strict=True):
        pooled = dict(noise.pooled(name).select("method", "value").iter_rows())
        assert risk == [pooled[sm.Noise("wage", variance=v).text] for v in sorted(VARIANCES)]
    assert "of each attacker" in info.y.title
    assert set(info.bands["kind"]) == {"error"}
    words = [entry.words for entry in legend_entries(info)]
    assert words[:2] == labels and "numbers at points: variance" in words


def test_attackers_on_one_variable_share_an_axis_of_typical_errors(noise: Scores) -> None:
    ru = drawn_map(noise, *BOTH)
    limit = sm.Choice(None, "", None, None, None, sm.Threshold(risk=1 / 1234.5**2), "")
    info = map_info(ru, curve="variance", mark=limit)
    assert info.y.title == "Risk of each attacker, as the typical error in wage"
    errors = [1 / np.sqrt(tick) for tick in info.y.ticks]
    assert errors == pytest.approx([float(f"{error:.2g}") for error in errors])  # the labels are round errors
    assert "(typical error 1,230 in wage)" in info.lines["text"][0]
    own = map_info(ru, curve="variance", units="own")
    assert not own.y.label.startswith("format(1 / sqrt") and own.y.title.endswith("(1/(variable's unit)^2)")


def test_lines_of_families_and_attackers_differ_in_color_and_dash(people: sm.Microdata) -> None:
    methods = [*noises(), *sm.grid(sm.Noise, on="wage", variance=list(VARIANCES), lower=0.0)]
    measures = [sm.risk.KnownIndex(on="wage"), sm.risk.Position(on="wage"), sm.utility.MeanPrecision(on="wage")]
    scores = sweep(people, sm.Plan(methods, measures, replicates=2, seed=11), workers=1)
    info = map_info(RUMap(scores, measures[:2], measures[2]), by="curve")
    styles = list(info.styles.values())
    assert len(styles) == len({json.dumps(style, sort_keys=True) for style in styles}) == 4
    assert len({style["color"] for style in styles}) == len({str(style["strokeDash"]) for style in styles}) == 2


def test_worst_attacker_is_drawn_where_lines_would_be_too_many(noise: Scores) -> None:
    """A profile has many attackers: unless a parameter is stated, more lines than colors become the worst of them."""
    measures = [f"R{number}" for number in range(8)]
    known = noise.column("KnownIndex(on='wage')")
    rows = [
        {
            "candidate": row["id"],
            "measure": name,
            "value": row["value"] * (i + 1),
            "se": None,
            "status": "ok",
            "reason": "",
        }
        for i, name in enumerate(measures)
        for row in known.filter(pl.col("value").is_finite()).to_dicts()
    ]
    facts = {"direction": "lower", "low": 0.0, "high": None, "unit": "u", "axis": "risk", "baseline_value": None}
    measure = pl.DataFrame([{"name": name, **facts} for name in measures], schema=noise.measure.schema)
    utility = noise.measure.filter(name="MeanPrecision(on='wage')")
    score = pl.DataFrame(rows, schema_overrides={"se": pl.Float64}).with_columns(details=pl.lit("{}"))
    own = noise.score.filter(measure="MeanPrecision(on='wage')").select(score.columns)
    scores = Scores(noise.candidate, pl.concat([score, own]), pl.concat([measure, utility]), methods=noise.methods)
    ru = RUMap(scores, measures, "MeanPrecision(on='wage')")
    worst = dict(ru.means.select("method", "risk").iter_rows())
    info = map_info(ru, by="curve")
    assert info.curves["group"].n_unique() == 1
    assert info.curves["y"].to_list() == [worst[sm.Noise("wage", variance=v).text] for v in sorted(VARIANCES)]
    assert map_info(ru, curve="variance").curves["group"].n_unique() == len(measures)


def test_method_in_no_family_is_a_point(noise: Scores) -> None:
    info = map_info(drawn_map(noise), curve="variance")
    beside = info.means.filter(group="other methods")
    assert beside["method"].to_list() == [sm.Microaggregate("wage", 3).text]
    assert len(info.means) == 4


@pytest.mark.parametrize(
    ("methods", "layer"),
    [
        (noises(), "curve"),
        (noises()[:2], "mean"),
        ([*noises(), *(sm.TopCode("wage", top_share=s) for s in (0.1, 0.2)), sm.Microaggregate("wage", 3),
          sm.RankSwap("wage", 0.1)], "mean"),
        ([*noises(), sm.Swap("Sex", rate=0.1)], "mean"),
    ],
    ids=["family", "two values", "minority", "swaps"],
)  # fmt: skip
def test_curves_are_the_default_of_families(methods: Sequence[Method], layer: str) -> None:
    ids = [method.id for method in methods]
    candidate = pl.DataFrame(
        {"id": ids, "method": [m.text for m in methods], "replicate": 0, "status": "ok", "reason": "", "seconds": 0.0}
    )
    measures = [sm.risk.KnownIndex(on="wage"), sm.utility.MeanPrecision(on="wage")]
    score = pl.DataFrame(
        [(one, m.text, 0.1 + 0.01 * i, None, "ok", "") for m in measures for i, one in enumerate(ids)],
        schema={"candidate": pl.String, "measure": pl.String, "value": pl.Float64, "se": pl.Float64, "status": pl.String,
                "reason": pl.String}, orient="row",
    )  # fmt: skip
    facts = {"low": 0.0, "high": None, "unit": "u", "baseline_value": None}
    measure = pl.DataFrame(
        [{"name": m.text, "direction": m.direction, "axis": m.axis, **facts} for m in measures],
        schema_overrides={"high": pl.Float64, "baseline_value": pl.Float64},
    )
    scores = Scores(candidate, score, measure, {m.text: m for m in measures}, {m.text: m for m in methods})
    assert default_layer(RUMap(scores, measures[0], measures[1])) == layer


def test_contradicting_options_are_rejected(noise: Scores) -> None:
    ru = drawn_map(noise)
    for options, words in (
        ({"curve": "variance", "by": "release"}, "leave out by='release'"),
        ({"curve": "rate"}, "These do: variance"),
        ({"curve": "variance", "color": "variance"}, "each line has its own color"),
    ):
        with pytest.raises(sm.errors.PlanError, match=words):
            draw_map(ru, **options)  # type: ignore[arg-type]
    plan = sm.Plan([sm.Noise("wage")], [sm.risk.KnownIndex("wage"), sm.IL1s()], seed=1)
    one = RUMap(sweep(sm.demo.population(60, seed=1), plan, workers=1), plan.risk, plan.utility)
    with pytest.raises(sm.errors.PlanError, match="there is no curve to draw"):
        draw_map(one, by="curve")


def test_picture_has_a_line_and_no_infinite_number(noise: Scores) -> None:
    chart = draw_map(drawn_map(noise, *BOTH), curve="variance")
    json.dumps(chart.to_dict(), allow_nan=False)
    assert chart.svg().count("mark-line") >= 2
