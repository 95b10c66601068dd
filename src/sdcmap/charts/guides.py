"""What the map shows beside its points: anchors, bands, the chosen point, and the line of its rule."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Final

import polars as pl

from sdcmap.charts.axis import Axis
from sdcmap.core.chart import Row
from sdcmap.core.limit import explain_limit, format_limit
from sdcmap.core.readable_units import describe_error
from sdcmap.core.rule import Choice
from sdcmap.map import RUMap

UNMASKED: Final = "unmasked file"
NOTHING: Final = "release nothing"
TANGENT_PIECES = 60  # of a line of equal cost on a logarithmic axis
NORMAL_QUANTILE = 1.96  # for 95 % intervals
MAX_MARGINS = 40  # with more candidates within the threshold, only the frontier has lines


def position(x: Axis, y: Axis, utility: float, risk: float) -> tuple[float, float, str]:
    """Return where a point is drawn, and the direction of its arrow if it lies beyond the picture."""
    (across, side), (up, end) = x.locate(utility), y.locate(risk)
    directions = {"low": ("left", "down"), "high": ("right", "up")}
    return across, up, directions[end][1] if end else directions[side][0] if side else ""


def loss_word(ru: RUMap) -> str:
    """Return what the utility axis is called."""
    return _axis_word(ru, ru.utility, ru.signs[1])


def risk_word(ru: RUMap) -> str:
    """Return what the risk axis is called: a map may also show two utilities, or two risks."""
    return _axis_word(ru, ru.risk[0], ru.signs[0])


def _axis_word(ru: RUMap, measure: str, sign: float) -> str:
    return "risk" if ru.axis_of(measure) == "risk" else "loss" if sign > 0 else "utility"


def anchor_rows(ru: RUMap, x: Axis, y: Axis, panels: Iterable[str]) -> list[Row]:
    """Return both anchors of the map for every panel; the label of one beyond the picture contains its values."""
    ends = [(UNMASKED, row["risk"], row["utility"]) for row in ru.points.filter("anchor").to_dicts()]
    ends += [] if ru.nothing is None else [(NOTHING, *ru.nothing)]
    rows = []
    for name, risk, utility in ends:
        across, up, edge = position(x, y, utility, risk)
        beyond = [f"{risk_word(ru)} {format_value(risk)}"] * (y.locate(risk)[1] != "")
        beyond += [f"{loss_word(ru)} {format_value(utility)}"] * (x.locate(utility)[1] != "")
        row = {"name": name, "risk": risk, "utility": utility, "x": across, "y": up, "edge": edge}
        text = f"{name}: {', '.join(beyond)}" if beyond else name
        rows += [{"panel": panel, **row, "text": text} for panel in panels]
    return rows


def band_rows(x: Axis, y: Axis, means: pl.DataFrame) -> list[Row]:
    """Return the spread of single releases and the error of the mean along both axes, cut to the picture."""
    rows = []
    for mean in means.filter(pl.col("count") > 1).to_dicts():
        for axis, along in (("risk", y), ("utility", x)):
            middle, error = mean[axis], mean[f"{axis}_se"]
            ends: dict[str, tuple[Any, Any]] = {"spread": (mean.get(f"{axis}_low"), mean.get(f"{axis}_high"))}
            half = None if error is None else NORMAL_QUANTILE * error
            ends["error"] = (None, None) if half is None else (middle - half, middle + half)
            for kind, pair in ends.items():
                # Methods with few replicates have no spread, and infinite ends cannot be drawn.
                if pair[0] is None or not all(map(math.isfinite, pair)):
                    continue
                low, high = map(along.clip, pair)
                line = (mean["x"], low, mean["x"], high) if axis == "risk" else (low, mean["y"], high, mean["y"])
                row = {name: mean[name] for name in ("panel", "group", "method")} | {"axis": axis, "kind": kind}
                rows.append(row | dict(zip(("x", "y", "x2", "y2"), line, strict=True)))
    return rows


def margin_rows(ru: RUMap, y: Axis, points: pl.DataFrame, mark: Choice | None) -> list[Row]:
    """Return lines from the risk of candidates to the risk with its margins, which a threshold is compared with.

    They are drawn for the frontier and for candidates within the threshold, which may exceed it with their margins.
    """
    if mark is None or not hasattr(mark.rule, "risk"):
        return []
    sign, ends = ru.signs[0], points.filter(pl.col("edge") == "", pl.col("risk_end").is_finite())
    ends = ends.filter(sign * pl.col("risk_end") > sign * pl.col("risk"))
    near = ends.filter(pl.col("frontier") | (sign * pl.col("risk") <= sign * mark.rule.risk))
    return [
        {name: row[name] for name in ("panel", "group", "method", "x", "y")}
        | {"axis": "risk", "kind": "margin", "x2": row["x"], "y2": y.clip(row["risk_end"])}
        for row in (near if len(near) <= MAX_MARGINS else ends.filter("frontier")).to_dicts()
    ]


def chosen_points(ru: RUMap, mark: Choice | None, by: str) -> list[Row]:
    """Return the chosen point; by mean, the mean of the chosen method, and its chosen draw where draws were compared."""
    if mark is None:
        return []
    if mark.candidate is None:
        return [] if ru.nothing is None else [{"kind": "chosen", "risk": ru.nothing[0], "utility": ru.nothing[1]}]
    draws = ru.points.filter(pl.col("id") == mark.candidate).select("risk", "utility").to_dicts()
    own = {"kind": "chosen", "risk": mark.risk, "utility": mark.utility} | (draws[0] if draws else {})
    if by == "release":
        return [own]
    means = ru.means.filter(pl.col("method") == mark.method).select("risk", "utility").to_dicts()
    show_draw = mark.replicate is not None and compares_draws(ru, mark)
    return [{"kind": "chosen", **row} for row in means] + ([{**own, "kind": "draw"}] if show_draw else [])


def compares_draws(ru: RUMap, mark: Choice) -> bool:
    """Return whether the rule compared single releases."""
    return getattr(mark.rule, "by", "") == "release" and not ru.is_expectation


def mark_rows(x: Axis, y: Axis, home: str, points: list[Row], mark: Choice | None, short: str) -> list[Row]:
    rows = []
    for point in points:
        across, up, edge = position(x, y, point["utility"], point["risk"])
        text = ""
        if mark is not None and mark.candidate is not None:
            draw = mark.replicate if point["kind"] == "draw" else None
            text = f"chosen: {short}" if draw is None else f"draw {draw + 1}"
        row = {"panel": home, "kind": point["kind"], "x": across, "y": up, "edge": edge}
        rows.append({**row, "short": short, "text": text})
    return rows


def floor_of(ru: RUMap) -> tuple[float, str] | None:
    """Return the level of risk without any release, and its name; None where several measures are on the axis.

    Also None where the level is the bound of the measure: the axis itself shows it.
    """
    name = ru.risk[0]
    level, measure = ru.end(name, "baseline_value"), ru.scores.values.get(name)
    if len(ru.risk) > 1 or ru.scales or level is None or measure is None or level in measure.bounds:
        return None
    return level, f"{measure.floor}: {describe_error(measure, level) or format_value(level)}"


def floor_rows(ru: RUMap, x: Axis, y: Axis, panels: Iterable[str]) -> list[Row]:
    """Return the line at the level of risk without any release."""
    floor = floor_of(ru)
    if floor is None or y.locate(floor[0])[1]:  # beyond the picture: the label of the anchor contains the value
        return []
    return _level_line("floor", x, floor[0], "", floor[1], panels)


def _level_line(kind: str, x: Axis, at: float, edge: str, text: str, panels: Iterable[str]) -> list[Row]:
    """Return a horizontal line through every panel."""
    ends = {"x": x.low, "y": at, "x2": x.high, "y2": at, "edge": edge, "text": text}
    return [{"panel": panel, "kind": kind, **ends} for panel in panels]


def shared_error_variable(ru: RUMap) -> str:
    """Return the variable about whose value all attackers of the risk axis err; "" where they differ or have none."""
    measures = [ru.scores.values.get(name) for name in ru.risk]
    variables = {"" if measure is None else measure.error_variable for measure in measures}
    return variables.pop() if len(variables) == 1 and not ru.scales else ""


def line_rows(ru: RUMap, x: Axis, y: Axis, panels: Iterable[str], home: str, mark: Choice | None) -> list[Row]:
    """Return the limit of a threshold in every panel, or the tangent of a linear rule in the panel of the chosen point."""
    if mark is not None and hasattr(mark.rule, "slope") and mark.candidate is not None:
        return _tangent(ru, x, y, home, float(mark.rule.slope), mark)
    if mark is None or not hasattr(mark.rule, "risk"):
        return []
    limit = float(mark.rule.risk)
    at, side = y.locate(limit)
    means = {"mean": "mean risk", "quantile": f"{getattr(mark.rule, 'quantile', 0):g} quantile of risk"}
    measure = ru.scores.values.get(ru.risk[0])
    readable = describe_error(measure, limit) if measure is not None and shared_error_variable(ru) else ""
    shown = f"{limit:.3g} ({readable})" if readable else f"{limit:g}"
    text = f"limit: {means.get(getattr(mark.rule, 'by', ''), 'risk')} {'≤' if ru.signs[0] > 0 else '≥'} {shown}"
    text += {"high": ", above the picture", "low": ", below the picture", "": ""}[side]
    return _level_line("limit", x, at, side, text, panels)


def limit_rows(ru: RUMap, x: Axis, y: Axis, panels: Sequence[str], mark: Choice | None) -> list[Row]:
    """Return the limits of the measures on the axes: of the utility across, and of a single risk up.

    The limit of a `Threshold` is drawn as its own line, and shares of limits have none.
    """
    rows = []
    for limit in ru.limits:
        name, bound = limit.measure.text, "≤" if limit.is_upper else "≥"
        if math.isnan(limit.value):  # an efficiency, and the unmasked file has no score yet
            continue
        if name == ru.utility and not x.locate(limit.value)[1]:
            ends = {"x": limit.value, "y": y.low, "x2": limit.value, "y2": y.high, "edge": ""}
            # An efficiency is enough: the axis shows efficiencies, and a short text stays beside its line.
            value = explain_limit(limit.value) or format_limit(limit.value, limit.measure)
            text = f"limit: {loss_word(ru)} {bound} {value}"
            rows += [{"panel": panel, "kind": "limit", **ends, "text": text} for panel in panels]
        is_drawn = mark is not None and hasattr(mark.rule, "risk") and float(mark.rule.risk) == limit.value
        if ru.risk == (name,) and not is_drawn and not y.locate(limit.value)[1]:
            text = f"limit: {risk_word(ru)} {bound} {format_limit(limit.value, limit.measure)}"
            rows += _level_line("limit", x, limit.value, "", text, panels)
    return rows


def _tangent(ru: RUMap, x: Axis, y: Axis, home: str, slope: float, mark: Choice) -> list[Row]:
    """Return the line risk + slope * loss = const through the chosen point (Gomatam, Karr, Sanil 2003, figure 1)."""
    own = chosen_points(ru, mark, "release" if compares_draws(ru, mark) else "mean")[0]
    risk, utility = own["risk"], own["utility"]
    if not math.isfinite(risk + utility):
        return []
    rise = -slope * ru.signs[1] / ru.signs[0]  # change of risk per unit of utility along the line
    ends = [x.low, x.high]
    if rise != 0:
        # Cut the line where it leaves the picture at the top or the bottom.
        crossings = sorted(utility + (end - risk) / rise for end in (y.low, y.high))
        ends = [max(x.low, crossings[0]), min(x.high, crossings[1])]
    constant = ru.signs[0] * risk + slope * ru.signs[1] * utility
    sign = "+" if ru.signs[1] > 0 else "−"
    text = f"{'' if ru.signs[0] > 0 else '−'}risk {sign} {slope:g} × {loss_word(ru)} = {constant:.2g}"
    # On a logarithmic axis the line is a curve, drawn in short pieces; the first has the text.
    pieces = TANGENT_PIECES if y.is_log and rise != 0 else 1
    across = [ends[0] + share * (ends[1] - ends[0]) / pieces for share in range(pieces + 1)]
    heights = [y.clip(risk + rise * (at - utility)) for at in across]
    lines = [
        {"x": x1, "y": y1, "x2": x2, "y2": y2, "edge": "", "text": "" if i else text}
        for i, ((x1, y1), (x2, y2)) in enumerate(pairwise(zip(across, heights, strict=True)))
    ]
    return [{"panel": home, "kind": "tangent", **line} for line in lines]


def subsample_rows(table: pl.DataFrame | None, x: Axis, y: Axis, panels: Iterable[str]) -> list[Row]:
    """Return random subsamples of the original as a path, the smallest last, with the share of records left out."""
    rows = []
    for thrown, risk, utility in () if table is None else table.select("thrown", "risk", "utility").iter_rows():
        inside = not (x.locate(utility)[1] or y.locate(risk)[1])
        if math.isfinite(risk) and math.isfinite(utility):
            share = f"{100 * thrown:.3g} %"
            row = {"x": utility, "y": risk, "inside": float(inside), "name": share, "text": f"{share} thrown away"}
            rows += [{"panel": panel, **row} for panel in panels]
    return rows


def format_value(value: float) -> str:
    """Return a value with three significant digits."""
    return "infinite" if math.isinf(value) else f"{value:.3g}"
