"""Charts: each is a table of what is shown, then its drawing as a Vega-Lite spec."""

from sdcmap.charts.chart import Chart
from sdcmap.charts.info import MapInfo, map_info
from sdcmap.charts.map import draw_map
from sdcmap.charts.planes import draw_criterion

__all__ = ["Chart", "MapInfo", "draw_criterion", "draw_map", "map_info"]
