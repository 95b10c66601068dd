"""What the R-U map shows, as plain tables: everything is computed before anything is drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Unpack

import numpy as np
import polars as pl

from sdcmap.charts import guides
from sdcmap.charts.axis import Axis, axis, spans_widely
from sdcmap.charts.map_labels import label_rows
from sdcmap.charts.map_tables import MapInfo
from sdcmap.charts.method_names import MethodLabel, groups_of, label_methods, short_names
from sdcmap.charts.parameter_curves import (
    OTHER,
    OTHER_STYLE,
    curve_points,
    line_styles,
    name_parameters,
    resolve_layer,
)
from sdcmap.charts.style import group_styles
from sdcmap.core import Choice, PlanError
from sdcmap.core.chart import Row, Spec
from sdcmap.core.map_options import MapContents
from sdcmap.core.rule import Rule
from sdcmap.kernels.decision.pareto import is_undominated
from sdcmap.map import RUMap

UNITS = ("readable", "own")  # how an axis of a precision is labeled
MAX_METHODS_WITH_BANDS = 12  # of a panel; with more, only the frontier and the chosen method have bands
_TEXTS = ("panel", "group", "method", "short", "edge", "name", "text", "axis", "kind", "align")


def map_info(
    ru: RUMap, *, by: str | None = None, label: bool | str = True, width: int = 620, height: int = 430,
    subsamples: pl.DataFrame | None = None, **contents: Unpack[MapContents],
) -> MapInfo:  # fmt: skip
    """Return the tables of the map; parameters as in `draw_map`."""
    info = unlabeled_info(ru, by=by, subsamples=subsamples, **contents)
    labels = [row for name in info.panels for row in label_rows(info, name, names=label, width=width, height=height)]
    return replace(info, labels=_frame(labels))


def unlabeled_info(
    ru: RUMap, *, mark: Choice | None = None, by: str | None = None, curve: str | Sequence[str] = (),
    facet: str | Mapping[str, str] | None = None, color: str | Mapping[str, str] | None = None,
    names: Mapping[str, str] | None = None, subsamples: pl.DataFrame | None = None, units: str = "readable",
) -> MapInfo:  # fmt: skip
    """Return the tables of the map without labels, which depend on the size of the picture."""
    parameters = _parameters(curve)
    layer = resolve_layer(ru, by, parameters, shows_groups=bool(facet or color))
    if layer == "curve" and color:
        raise PlanError("on a map of curves each line has its own color: leave out the color, or draw it by 'mean'.")
    table = _masked_points(ru, layer, parameters)
    if "replicate" in table.columns:
        table = table.with_columns(draw=pl.col("replicate") + 1).drop("replicate")  # users count draws from 1
    methods = table["method"].unique(maintain_order=True).to_list()
    rows = label_methods(methods, ru.scores)
    color = color or "method"
    groups = groups_of(rows, color) if isinstance(color, str) else _stated_groups(methods, color)
    panels = _panels(rows, facet)
    short = _short_in_panels(rows, panels) | dict(names or {})
    table, styles = _with_groups(table, groups)
    table = _with(table, panel=panels, name={row.text: row.display_name for row in rows})
    table = _with_short_names(table, short)
    if facet and layer != "curve":
        table = _with_frontier_of_panels(ru, table)
    titles = tuple(dict.fromkeys(panels.values())) or ("",)
    chosen = guides.chosen_points(ru, mark, layer)
    if units not in UNITS:
        raise PlanError(f"a map is drawn in units {' or '.join(map(repr, UNITS))}. Got {units!r}.")
    x, y = _axes(ru, table, chosen, mark, units)
    positions = [guides.position(x, y, u, r) for u, r in table.select("utility", "risk").iter_rows()]
    schema = {"x": pl.Float64, "y": pl.Float64, "edge": pl.String}
    table = table.hstack(pl.DataFrame(positions, schema=schema, orient="row"))
    method = "" if mark is None else mark.method
    home = panels.get(method, titles[0])
    name = "unmasked original" if ru.scores.kinds.get(method) == "identity" else short.get(method, "")
    banded = (
        table
        if len(methods) <= MAX_METHODS_WITH_BANDS * len(titles)
        else table.filter(pl.col("frontier") | (pl.col("method") == method))
    )
    drawn = table.select(name for name in _COLUMNS if name in table.columns)
    lines = table.filter(pl.col("edge") == "", "on_curve") if layer == "curve" else table.clear()
    front = table.filter("frontier") if layer != "curve" else table.clear()
    return MapInfo(
        by=layer, panels=titles, styles=styles, parameter=name_parameters(table) if layer == "curve" else "", x=x, y=y,
        stepped="step-after" if ru.signs[1] > 0 else "step-before",
        draws=int(max(ru.means["count"].to_list(), default=1)),
        points=drawn if layer == "release" else drawn.clear(),
        means=drawn if layer != "release" else drawn.clear(),
        curves=lines.select("panel", "group", "x", "y"),
        frontier=front.select("panel", "x", "y").unique().sort("panel", "x", "y"),
        anchors=_frame(guides.anchor_rows(ru, x, y, titles)),
        bands=_frame(guides.band_rows(x, y, banded) if layer != "release" else guides.margin_rows(ru, y, table, mark)),
        marks=_frame(guides.mark_rows(x, y, home, chosen, mark, name)),
        lines=_frame([*guides.line_rows(ru, x, y, titles, home, mark), *guides.limit_rows(ru, x, y, titles, mark),
                      *guides.floor_rows(ru, x, y, titles)]),
        subsamples=_frame(guides.subsample_rows(subsamples, x, y, titles)),
        labels=_frame([]),
    )  # fmt: skip


def _parameters(curve: str | Sequence[str]) -> tuple[str, ...]:
    """Return the parameters of curves as a tuple."""
    return tuple(filter(None, (curve,) if isinstance(curve, str) else curve))


def _masked_points(ru: RUMap, by: str, parameters: Sequence[str] = ()) -> pl.DataFrame:
    if by == "curve":
        return curve_points(ru, parameters)
    return (ru.means if by == "mean" else ru.points).filter(~pl.col("anchor"))


def map_axes(ru: RUMap, by: str, rule: Rule | None = None) -> tuple[Axis, Axis]:
    """Return the utility axis and the risk axis of a map with this rule."""
    mark = None if rule is None else Choice(None, "", None, None, None, rule, "")
    return _axes(ru, _masked_points(ru, by), [], mark)


def _with_groups(table: pl.DataFrame, groups: Mapping[str, str]) -> tuple[pl.DataFrame, dict[str, Spec]]:
    """Return the table with the group of each row, and the style of each group; lines of curves are groups already."""
    if "group" not in table.columns:
        return _with(table, group=groups), group_styles([*dict.fromkeys(groups.values())])
    styles = line_styles(table)
    on_curve = table["group"].is_not_null()
    table = table.with_columns(pl.col("group").fill_null(OTHER), on_curve=on_curve)
    return table, styles | ({} if on_curve.all() else {OTHER: OTHER_STYLE})


def _with_short_names(table: pl.DataFrame, short: Mapping[str, str]) -> pl.DataFrame:
    """Return the table with a short name in each row that has none; points of curves have their number."""
    own = table["short"].to_list() if "short" in table.columns else [None] * len(table)
    names = [text or short[method] for text, method in zip(own, table["method"], strict=True)]
    return table.with_columns(pl.Series("short", names, dtype=pl.String))


def _stated_groups(methods: Sequence[str], color: Mapping[str, str]) -> dict[str, str]:
    """Return the group of each method, in the order in which the groups are stated."""
    known = {method: group for method, group in color.items() if method in set(methods)}
    return {**known, **{method: "others" for method in methods if method not in known}}


def _panels(rows: Sequence[MethodLabel], facet: str | Mapping[str, str] | None) -> dict[str, str]:
    """Return the panel of each method, in the order in which the panels are drawn."""
    texts = [row.text for row in rows]
    if facet is None:
        return dict.fromkeys(texts, "")
    if isinstance(facet, str):
        return groups_of(rows, facet)
    return {method: panel for method, panel in facet.items() if method in set(texts)}


_COLUMNS = (
    "panel", "group", "id", "method", "name", "short", "attacker", "draw", "count", "risk", "utility", "membership",
    "x", "y", "edge", "worse", "frontier",
)  # fmt: skip


def _short_in_panels(rows: Sequence[MethodLabel], panels: Mapping[str, str]) -> dict[str, str]:
    """Return short names, made for each panel separately: its title contains what its methods have in common."""
    short: dict[str, str] = {}
    for name in dict.fromkeys(panels.values()):
        short |= short_names([row for row in rows if panels.get(row.text) == name])
    return short


def _with(table: pl.DataFrame, **words: Mapping[str, str]) -> pl.DataFrame:
    """Return the table with a column for each mapping from a method to a text."""
    methods = table["method"].to_list()
    return table.with_columns(
        pl.Series(name, [of[method] for method in methods], dtype=pl.String) for name, of in words.items()
    )


def _with_frontier_of_panels(ru: RUMap, table: pl.DataFrame) -> pl.DataFrame:
    on_frontier = np.zeros(len(table), dtype=bool)
    risk, loss = ru.losses(table)
    for name in table["panel"].unique():
        rows = ((table["panel"] == name) & ~table["worse"]).to_numpy()
        on_frontier[rows] = is_undominated(risk[rows], loss[rows])
    return table.with_columns(pl.Series("frontier", on_frontier))


def _axes(
    ru: RUMap, table: pl.DataFrame, chosen: list[Row], mark: Choice | None, units: str = "own"
) -> tuple[Axis, Axis]:
    axes = []
    for index, (name, word) in enumerate(zip(("risk", "utility"), _axis_words(ru), strict=True)):
        better = "lower is better" if ru.signs[index] > 0 else "higher is better"
        single_risk = name == "risk" and len(ru.risk) == 1 and not ru.scales
        level = ru.end(ru.risk[0], "baseline_value") if single_risk else None
        nothing = level if ru.nothing is None else ru.nothing[index]
        anchors = [*([] if nothing is None else [nothing]), *ru.points.filter("anchor")[name]]
        if name == "risk" and mark is not None and hasattr(mark.rule, "risk"):
            anchors.append(float(mark.rule.risk))
        measure = ru.utility if name == "utility" else ru.risk[0] if single_risk else ""
        limit = ru.limits_by_name.get(measure, math.nan)  # an efficiency of an unknown unmasked file is NaN
        anchors += [] if math.isnan(limit) else [limit]
        # Bands and anchors may widen the axis only a little; see `axis`.
        ends = [f"{name}_{end}" for end in ("low", "high") if f"{name}_{end}" in table.columns]
        bands = [value for end in ends for value in table[end].drop_nulls()]
        real = [] if mark is None or mark.candidate is None else chosen
        points = [*table[name], *(row[name] for row in real)]
        is_log = name == "risk" and spans_widely(points)
        own = axis(_axis_title(ru, index, word, table), better, points, bands, anchors, is_log=is_log)
        axes.append(_label_readably(ru, own, name, "attacker" in table.columns) if units == "readable" else own)
    return axes[1], axes[0]


def _axis_words(ru: RUMap) -> tuple[str, str]:
    return guides.risk_word(ru).capitalize(), guides.loss_word(ru).capitalize()


def _axis_title(ru: RUMap, index: int, word: str, table: pl.DataFrame) -> str:
    """Return the title of an axis: 0 is risk, 1 is utility."""
    if index == 0 and "attacker" in table.columns:  # a line for each, not the worst of them
        return f"Risk of each attacker ({ru.risk_unit})" if ru.risk_unit else "Risk of each attacker"
    label = ru.labels[index]
    return word if label.casefold() == word.casefold() else f"{word}: {label}"


def _label_readably(ru: RUMap, own: Axis, name: str, shows_attackers: bool) -> Axis:
    """Return the axis of a precision 1/MSE with readable labels; other axes as they are.

    shows_attackers : each attacker has a line, so that the title names none of them.
    """
    measure = ru.scores.values.get(ru.risk[0] if name == "risk" else ru.utility)
    if measure is None or not measure.error_variable or (name == "risk" and not guides.shared_error_variable(ru)):
        return own
    if name == "risk" and shows_attackers:
        title = f"Risk of each attacker, as the typical error in {measure.error_variable}"
        return replace(own, title=title, better="a larger error is better").label_errors()
    title = f"Risk: {ru.risk_name}" if name == "risk" else f"Utility: {ru.scores.short_title_of(measure.text)}"
    whole = next(iter(ru.points.filter("anchor")["utility"]), None)
    if name == "utility" and whole is not None and math.isfinite(whole) and whole > 0:
        return replace(own, title=title).label_shares(whole)
    whose, size = ("the attacker's", "larger") if name == "risk" else ("the user's", "smaller")
    title += f", as {whose} typical error"
    return replace(own, title=title, better=f"a {size} error is better").label_errors()


def _frame(rows: Iterable[Row]) -> pl.DataFrame:
    rows = list(rows)
    names = list(rows[0]) if rows else ["panel"]
    return pl.DataFrame(rows, schema={name: pl.String if name in _TEXTS else pl.Float64 for name in names})
