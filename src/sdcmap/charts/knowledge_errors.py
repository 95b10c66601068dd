"""The typical errors of attackers with different knowledge, one row for each state."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sdcmap.charts.legend import STYLES
from sdcmap.charts.style import COLORS, GRAY, INK, layer, number, page
from sdcmap.core.chart import Chart, Row, Spec

MAX_LINEAR_RATIO = 20.0  # between the largest and the smallest error; a wider axis is logarithmic
RELEASE, NOTHING = COLORS[0], COLORS[6]
WHOLE_FROM = 100.0  # from this largest error on, the axis shows whole numbers
ROOM = 1.25  # beyond the largest error, so that no mark is at the edge


@dataclass(frozen=True)
class KnowledgeErrors:
    """The typical error of one attacker for the release, and without any release (None: there is none)."""

    name: str
    release: float
    nothing: float | None


def draw_knowledge(states: Sequence[KnowledgeErrors], variable: str, limit: float | None = None) -> Chart:
    """Draw each attacker's typical error: blue for the release, gray if nothing were released.

    limit : the smallest tolerable error, drawn as a line.

    The further to the left a mark is, the closer the attacker comes to the true value. An error of 0 is drawn at the left
    end.
    """
    title = f"How far attackers are from the true {variable}"
    both = (error for state in states for error in (state.release, state.nothing))
    errors = [error for error in both if error is not None and 0 < error < math.inf]
    is_log = bool(errors) and max(errors) > MAX_LINEAR_RATIO * min(errors)
    low, high = min(errors, default=1.0) / ROOM if is_log else 0.0, max(errors, default=1.0) * ROOM

    def place(error: float | None) -> float | None:
        return None if error is None else min(max(error, low), high)

    rows: list[Row] = [
        {
            "name": state.name, "release": place(state.release), "nothing": place(state.nothing),
            "true release": f"{state.release:,.4g}",
            "true nothing": "" if state.nothing is None else f"{state.nothing:,.4g}",
        }
        for state in states
    ]  # fmt: skip
    words = f"typical error, in the unit of {variable}" + (" (logarithmic)" if is_log else "")
    scale = {"type": "log" if is_log else "linear", "domain": [low, high], "nice": False}
    x = {"scale": scale, "axis": {"title": words, "format": ",.0f" if high >= WHOLE_FROM else "~g", "tickCount": 6}}
    names = {"field": "name", "type": "nominal", "sort": None, "title": None,
             "axis": {"labelLimit": 420, "ticks": False, "domain": False, "labelPadding": 8}}  # fmt: skip
    layers: list[Spec] = [
        *_limit_line(limit if limit is not None and low <= limit <= high else None, x),
        {"mark": {"type": "rule", "color": GRAY, "strokeWidth": 1.5},
         "encoding": {"y": names, "x": number("release", **x), "x2": {"field": "nothing"}}},
    ]  # fmt: skip
    for field, color, shape in (("nothing", NOTHING, "circle"), ("release", RELEASE, "diamond")):
        tips = [{"field": "name", "title": "the attacker knows"}, {"field": f"true {field}", "title": "typical error"}]
        mark = {"type": "point", "filled": True, "size": 90, "opacity": 1, "color": color, "shape": shape}
        layers.append({"mark": mark, "encoding": {"y": names, "x": number(field, **x), "tooltip": tips}})
    layers += _words(rows, x, names)
    spec = page(
        title, head={"frame": "group", "offset": 24}, data={"values": rows}, width=420, height={"step": 30},
        layer=layers, padding={"left": 44, "right": 28, "top": 12, "bottom": 12},
    )  # fmt: skip
    return Chart(spec, title)


def _limit_line(limit: float | None, x: Spec) -> Iterator[Spec]:
    """Yield the line of the smallest tolerable error, with its value above the picture."""
    if limit is None:
        return
    at = [{"limit": limit}]
    yield layer(at, {"type": "rule", **STYLES["limit"]}, x=number("limit", **x))
    label = {"type": "text", "fontSize": 10, "color": STYLES["limit"]["color"], "baseline": "bottom"}
    yield layer(at, label, x=number("limit", **x), y={"value": -4}, text={"value": f"limit: {limit:,.4g}"})


def _words(rows: list[Row], x: Spec, names: Spec) -> Iterator[Spec]:
    """Yield a label for each mark of the attacker whose two errors differ most, so that the labels do not overlap."""
    both = [row for row in rows if row["nothing"] is not None and row["release"] != row["nothing"]]
    widest = sorted(both or rows, key=lambda row: -abs((row["nothing"] or row["release"]) - row["release"]))[:1]
    for word, field, color, align in (
        ("this release", "release", RELEASE, "left"),
        ("nothing released", "nothing", INK, "right"),
    ):
        mark = {
            "type": "text",
            "fontSize": 10,
            "dy": -11,
            "dx": -6 if align == "left" else 6,
            "color": color,
            "align": align,
        }
        shown = [row for row in widest if row in both or field == "release"]
        yield layer(shown, mark, y=names, x=number(field, **x), text={"value": word})
