"""How every chart looks: colours that colour-blind readers tell apart, shapes beside them, quiet axes."""

from __future__ import annotations

from sdcmap.core.chart import Spec

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
INK, GREY = "#222222", "#6b6b6b"
FONT = "Helvetica, Arial, Liberation Sans, sans-serif"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")  # Okabe and Ito, without yellow
SHAPES = ("circle", "square", "diamond", "triangle-up", "cross")  # 7 and 5: no pair comes again before 35 groups

CONFIG: Spec = {
    "font": FONT,
    "aria": False,
    "view": {"stroke": None},
    "axis": {
        "grid": False,
        "domainColor": GREY,
        "tickColor": GREY,
        "tickSize": 4,
        "labelColor": INK,
        "labelFontSize": 10,
        "titleColor": INK,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "titlePadding": 10,
        "titleLineHeight": 14,
    },
    "title": {"color": INK, "font": FONT},
}


def colour_of(groups: tuple[str, ...], group: str) -> str:
    return COLOURS[groups.index(group) % len(COLOURS)]


def shape_of(groups: tuple[str, ...], group: str) -> str:
    return SHAPES[groups.index(group) % len(SHAPES)]
