"""Charts: each is a table of what is shown, then its drawing as a Vega-Lite spec."""

from sdcmap.charts.chart import Chart
from sdcmap.charts.info import MapInfo, map_info
from sdcmap.charts.map import draw_map

__all__ = ["Chart", "MapInfo", "draw_map", "map_info"]
