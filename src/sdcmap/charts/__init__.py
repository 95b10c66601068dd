"""Charts: each first computes a table of what is shown, then draws it as a Vega-Lite spec."""

from sdcmap.charts.change_charts import draw_density_change, draw_table_change
from sdcmap.charts.confidentiality import draw_confidentiality, draw_side_by_side
from sdcmap.charts.densities import draw_densities
from sdcmap.charts.fronts import draw_fronts
from sdcmap.charts.map_contents import map_info
from sdcmap.charts.map_tables import MapInfo
from sdcmap.charts.measure_pairs import draw_measure_pairs
from sdcmap.charts.planes import draw_criterion
from sdcmap.charts.ru_map import draw_map
from sdcmap.charts.search_charts import (
    draw_choices,
    draw_importance,
    draw_method_shares,
    draw_progress,
    draw_search_map,
)
from sdcmap.charts.zoom import draw_zoom
from sdcmap.core.chart import Chart
