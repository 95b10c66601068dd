"""Curves of the R-U map: a line for each family of methods and each attacker, as the parameter grows.

Duncan, Keller-McNulty, Stokes (2001), section 2 and figures 2 to 7.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import fields
from typing import Literal, NamedTuple, TypeAlias

import polars as pl

from sdcmap.charts.style import COLORS, GRAY, SHAPES
from sdcmap.core import PlanError
from sdcmap.core.chart import Spec
from sdcmap.map import RUMap
from sdcmap.methods import HouseholdSwap, Swap
from sdcmap.study.candidate_names import format_parameter

Layer: TypeAlias = Literal["release", "mean", "curve"]
LAYERS: tuple[Layer, ...] = ("release", "mean", "curve")
MIN_VALUES_BY_DEFAULT = 3  # of a parameter, in a family of a map that shows curves unless points are asked for
MAX_LINES_BY_DEFAULT = len(COLORS)  # more lines than colors cannot be told apart
DASHES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3))  # of the attackers, where families have colors
OTHER = "other methods"
OTHER_STYLE: Spec = {"color": GRAY, "shape": "circle"}


def default_layer(ru: RUMap) -> Layer:
    """Return what a map shows unless asked: curves of a parameter, means of methods, or single releases.

    Curves are shown where most methods belong to families of at least three values of one parameter. A search has no such
    families. Swaps are compared by single releases (Gomatam et al. 2003), and so are tables made elsewhere.
    """
    return "curve" if _shows_curves(ru) else _point_layer(ru)


def _point_layer(ru: RUMap) -> Layer:
    return "mean" if ru.is_expectation else "release"


def _shows_curves(ru: RUMap) -> bool:
    scores, masked = ru.scores, set(ru.points.filter(~pl.col("anchor"))["method"])
    methods = [scores.methods[text] for text in masked if text in scores.methods]
    is_search = scores.plan is not None and len(scores.plan.search_methods) > 0
    if is_search or any(isinstance(step, Swap | HouseholdSwap) for method in methods for step in method.steps):
        return False
    families = [family for family in ru.families(least=MIN_VALUES_BY_DEFAULT) if family.members[0][1] in scores.methods]
    traced = sum(len(family.members) for family in families)
    return 0 < len(families) <= MAX_LINES_BY_DEFAULT and 2 * traced > len(masked)


def resolve_layer(ru: RUMap, by: str | None, curve: Sequence[str], shows_groups: bool = False) -> Layer:
    """Return the layer that is drawn: the stated one, curves where a parameter is stated, or the default.

    shows_groups : whether colors or panels show a parameter; the default is then points.
    """
    if curve and by not in (None, "curve"):
        raise PlanError(f"a curve goes through the means of methods: leave out by={by!r}, or leave out the curve.")
    if by is None:
        return "curve" if curve else _point_layer(ru) if shows_groups else default_layer(ru)
    for layer in LAYERS:
        if by == layer:
            return layer
    raise PlanError(f"a map is drawn by 'release', by 'mean' or by 'curve'. Got {by!r}.")


def curve_points(ru: RUMap, parameters: Sequence[str] = ()) -> pl.DataFrame:
    """Return the points of all curves, then the means of the methods that are in no family.

    Columns are those of `RUMap.means` without membership, and group (the name of the line, null beside the curves), value
    and, where there are several, attacker. Where no parameter is stated and the attackers would give too many lines, the
    worst of them is drawn.
    """
    curves = ru.curves(parameters)
    if not len(curves):
        raise PlanError("no two methods of this map differ in one number only, so there is no curve to draw.")
    means = ru.means.filter(~pl.col("anchor"))
    if not parameters and curves.select("family", "measure").n_unique() > MAX_LINES_BY_DEFAULT:
        members = curves.unique("method", maintain_order=True).select("family", "parameter", "value", "method")
        worst = means.select("method", "count", "risk", "utility", "risk_se", "utility_se")
        curves = members.join(worst, on="method", maintain_order="left").with_columns(measure=pl.lit(""))
    names = _name_lines(ru, curves)
    keys = curves.select("family", "measure").rows()
    values = [format_parameter(_whole(value)) for value in curves["value"]]
    traced = curves.with_columns(
        pl.Series("group", [names[key] for key in keys], dtype=pl.String),
        pl.Series("short", values, dtype=pl.String),
        pl.Series("attacker", [_name_attacker(ru, measure) for _, measure in keys], dtype=pl.String),
        frontier=pl.lit(True),
    )
    loose = means.filter(~pl.col("method").is_in(curves["method"].implode())).select(pl.exclude("^membership.*$"))
    points = pl.concat([traced, loose], how="diagonal_relaxed")
    return points if curves["measure"].n_unique() > 1 else points.drop("attacker")


def _whole(value: float) -> float:
    return int(value) if value == int(value) else value


def _name_attacker(ru: RUMap, measure: str) -> str:
    return ru.scores.short_title_of(measure) if measure else "worst"


def _name_lines(ru: RUMap, curves: pl.DataFrame) -> dict[tuple[str, str], str]:
    """Return the name of each line, by its family and measure: only what tells the lines apart."""
    keys = curves.select("family", "measure").unique(maintain_order=True).rows()
    families, measures = ({key[i] for key in keys} for i in (0, 1))
    briefs = _tell_apart(ru, measures)
    if len(measures) == 1:
        return {key: key[0] for key in keys}
    if len(families) == 1:
        return {key: briefs[key[1]] for key in keys}
    return {key: f"{key[0]}: {briefs[key[1]]}" for key in keys}


def _tell_apart(ru: RUMap, measures: Collection[str]) -> dict[str, str]:
    """Return the name of each attacker; attackers of the same class also have their target, such as "maximum"."""
    known = {measure: ru.scores.values[measure] for measure in measures if measure in ru.scores.values}
    labels = Counter(value.label for value in known.values())
    names = {measure: _name_attacker(ru, measure) for measure in measures}
    for measure, value in known.items():
        texts = {part.name: getattr(value, part.name) for part in fields(value)}
        others = {name: text for name, text in texts.items() if name not in value.texts_in_title}
        words = [text for text in others.values() if isinstance(text, str) and text]
        if labels[value.label] > 1:
            names[measure] = ", ".join([value.title, *words])
    alike = Counter(names.values())
    return {measure: name if alike[name] == 1 else measure for measure, name in names.items()}


class LineLook(NamedTuple):
    """How a line is drawn: the numbers of its color and of its shape, and its dashes in pixels."""

    color: int
    shape: int
    dash: tuple[int, ...]


def line_looks(points: pl.DataFrame) -> dict[str, LineLook]:
    """Return the look of each line: colors tell families apart and dashes attackers; or colors, attackers."""
    lines = points.drop_nulls("family").unique("group", maintain_order=True).select("group", "family", "measure").rows()
    families = list(dict.fromkeys(family for _, family, _ in lines))
    measures = list(dict.fromkeys(measure for _, _, measure in lines))
    looks: dict[str, LineLook] = {}
    for group, family, measure in sorted(lines, key=lambda line: families.index(line[1])):
        own, attacker = families.index(family), measures.index(measure)
        if len(families) > 1 and len(measures) > 1:
            looks[group] = LineLook(own, attacker, DASHES[attacker % len(DASHES)])
        else:
            looks[group] = LineLook(own or attacker, own or attacker, DASHES[0])
    return looks


def line_styles(points: pl.DataFrame) -> dict[str, Spec]:
    """Return color, shape and dash of each line as Vega-Lite states them."""
    return {
        group: {"color": COLORS[look.color % len(COLORS)], "shape": SHAPES[look.shape % len(SHAPES)],
                "strokeDash": list(look.dash)}
        for group, look in line_looks(points).items()
    }  # fmt: skip


def name_parameters(points: pl.DataFrame) -> str:
    """Return what the numbers at the points are: "variance", or "variance of Noise, p of RankSwap"."""
    pairs = points.drop_nulls("family").unique(["family", "parameter"], maintain_order=True)
    by_family = dict(pairs.select("family", "parameter").iter_rows())
    if len(set(by_family.values())) == 1:
        return str(next(iter(by_family.values())))
    kinds = {family.partition(" (")[0]: parameter for family, parameter in by_family.items()}
    return ", ".join(f"{parameter} of {kind}" for kind, parameter in kinds.items())
