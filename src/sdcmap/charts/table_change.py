"""The table of two columns before and after masking, as heat maps side by side."""

from __future__ import annotations

import polars as pl

from sdcmap.charts.style import CONFIG, SCHEMA
from sdcmap.core.chart import Chart, Row, Spec
from sdcmap.data.microdata import Microdata

MOST = 12  # categories of a column that are drawn: those with the most records
CELL = 34  # pixels across
SHARE, CHANGE = ["#ffffff", "#0072B2"], ["#D55E00", "#ffffff", "#0072B2"]  # shades


def draw_table_change(original: Microdata, masked: Microdata, down: str, across: str) -> Chart:
    """Per cent of the records in each cell of two categorical columns: before, after, and the difference in points.

    For people who may see the original: cells of few records are not hidden. Of a column with more than 12 categories those
    with the most records are drawn; shares are of all records. Every record counts once; missing is a category.
    """
    cells = cell_shares(original, masked, down, across)
    orders = [_largest(cells, place, original, name) for place, name in (("down", down), ("across", across))]
    shown = cells.filter(pl.col("down").is_in(orders[0]), pl.col("across").is_in(orders[1]))
    most = max(1.0, *(float(shown[file].max() or 0) for file in ("before", "after")))  # type: ignore[arg-type]
    least = max(0.1, float(shown["change"].abs().max() or 0))  # type: ignore[arg-type]
    ends = {"before": [0, most], "after": [0, most], "change": [-least, 0, least]}
    rows = shown.to_dicts()
    panels = [_panel(rows, file, (down, across), orders, domain) for file, domain in ends.items()]
    title = f"{down} by {across}: per cent of the records"
    spec: Spec = {"$schema": SCHEMA, "background": "white", "padding": 12, "config": CONFIG, "columns": 3, "spacing": 22,
                  "resolve": {"scale": {"color": "independent"}}, "concat": panels,
                  "title": {"text": title, "anchor": "start", "fontSize": 13, "offset": 12}}  # fmt: skip
    return Chart(spec, title)


def cell_shares(original: Microdata, masked: Microdata, down: str, across: str) -> pl.DataFrame:
    """A row a cell that occurs in either file: its categories in words, per cent before and after, and the change."""
    before, after = (_counted(data, down, across) for data in (original, masked))
    both = before.join(after, on=["down", "across"], how="full", coalesce=True, suffix=" after")
    shares = both.select(
        "down", "across", before=pl.col("share").fill_null(0), after=pl.col("share after").fill_null(0)
    )
    return shares.with_columns(change=pl.col("after") - pl.col("before")).sort("down", "across")


def _counted(data: Microdata, down: str, across: str) -> pl.DataFrame:
    frame = data.only([down, across]).frame()
    words = [
        pl.col(name).cast(pl.String).fill_null("missing").alias(to) for name, to in ((down, "down"), (across, "across"))
    ]
    return frame.select(*words).group_by("down", "across").agg(share=100 * pl.len() / max(1, len(frame)))


def _largest(cells: pl.DataFrame, place: str, original: Microdata, name: str) -> list[str]:
    """The categories with the most records, in the order of the file; those that masking made come last."""
    sums = cells.group_by(place).agg(size=(pl.col("before") + pl.col("after")).sum())
    kept = sums.sort("size", place, descending=[True, False]).head(MOST)[place].to_list()
    levels = original.column(name).levels
    known = [str(level) for level in (levels.to_list() if levels is not None else []) if level is not None]
    return sorted(kept, key=lambda word: (known.index(word) if word in known else len(known), word))


def _panel(rows: list[Row], file: str, names: tuple[str, str], orders: list[list[str]], domain: list[float]) -> Spec:
    """One heat map: before, after or the change; the first names its rows."""
    quiet = {"labelLimit": 110, "ticks": False, "domain": False, "labels": file == "before"}
    turned = {**quiet, "labels": True, "labelAngle": -40}
    title = names[0] if file == "before" else None
    at = {
        "x": {"field": "across", "type": "nominal", "sort": orders[1], "title": names[1], "axis": turned},
        "y": {"field": "down", "type": "nominal", "sort": orders[0], "title": title, "axis": quiet},
    }
    scale = {"domain": domain, "range": CHANGE if file == "change" else SHARE, "interpolate": "rgb"}
    shade = {"field": file, "type": "quantitative", "legend": None, "scale": scale}
    ink = {"condition": {"test": f"abs(datum['{file}']) > {0.6 * domain[-1]}", "value": "white"}, "value": "#222222"}
    text = {"field": file, "type": "quantitative", "format": "+.1f" if file == "change" else ".1f"}
    numbers = [{"field": one, "type": "quantitative", "format": ".2f"} for one in ("before", "after", "change")]
    tips = [{"field": "down", "title": names[0]}, {"field": "across", "title": names[1]}, *numbers]
    layer = [
        {"mark": {"type": "rect", "stroke": "white"}, "encoding": {**at, "color": shade, "tooltip": tips}},
        {"mark": {"type": "text", "fontSize": 9.5}, "encoding": {**at, "text": text, "color": ink}},
    ]
    head = {"text": file, "anchor": "start", "fontSize": 12, "fontWeight": "normal"}
    return {
        "data": {"values": rows},
        "width": {"step": CELL},
        "height": {"step": 22},
        "layer": layer,
        "title": head,
    }
