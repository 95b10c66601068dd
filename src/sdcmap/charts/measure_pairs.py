"""Small multiples: a small R-U map for every risk measure and every utility measure of a study.

A file has several attackers and several users (Trottini 2001, paragraph 5). This page shows all of them at once.
"""

from __future__ import annotations

from dataclasses import replace

from sdcmap.charts.legend import legend_entries, legend_view
from sdcmap.charts.map_contents import map_info
from sdcmap.charts.map_tables import MapInfo
from sdcmap.charts.parameter_curves import default_layer
from sdcmap.charts.ru_map import draw_panel
from sdcmap.charts.style import page
from sdcmap.core import PlanError
from sdcmap.core.chart import Chart, Spec
from sdcmap.core.rule import Choice, Rule
from sdcmap.map import RUMap

TITLE = "All measures: risk up, utility across"
WIDTH, HEIGHT = 230, 170  # pixels of a panel
MAX_PANELS = 60  # more cannot be read on one page


def draw_measure_pairs(
    ru: RUMap, *, mark: Choice | None = None, width: int = WIDTH, height: int = HEIGHT, title: str = TITLE
) -> Chart:
    """Draw a small map for every pair of a risk and a utility measure: a row for each risk, a column for each utility.

    Points are means of methods, joined by curves where `draw_map` would join them. The limits of both measures are lines.
    Measures without a value for any candidate are left out.

    mark : a choice; its candidate is marked in every panel.
    """
    risks, utilities = measured_names(ru)
    count = len(risks) * len(utilities)
    if not count:
        raise PlanError("small multiples need a risk measure and a utility measure that have values.")
    if count > MAX_PANELS:
        what = f"{len(risks)} risk and {len(utilities)} utility measures make {count} maps"
        raise PlanError(f"{what}, more than the {MAX_PANELS} that a page can show. Draw some of them, each by itself.")
    layer = "curve" if default_layer(ru) == "curve" else "mean"
    infos = [_pair_info(ru, risk, utility, mark, layer, width, height) for risk in risks for utility in utilities]
    panels = [_titled(draw_panel(info, 0, 1, width, height)) for info in infos]
    legend = {entry.words: entry for info in infos for entry in legend_entries(info)}  # one for all panels
    grid: Spec = {"concat": panels, "columns": len(utilities), "spacing": 26}
    return Chart(page(title, hconcat=[grid, legend_view(legend.values())], spacing=18), title)


def measured_names(ru: RUMap) -> tuple[list[str], list[str]]:
    """Return the risk measures and the utility measures that have a value for some candidate."""
    names = [ru.scores.measure.filter(axis=axis)["name"] for axis in ("risk", "utility")]
    risks, utilities = ([name for name in every if len(ru.scores.column(name))] for every in names)
    return risks, utilities


def _pair_info(ru: RUMap, risk: str, utility: str, mark: Choice | None, layer: str, width: int, height: int) -> MapInfo:
    """Return the tables of the map of two measures, with the limits of these two."""
    pair = RUMap(ru.scores, risk, utility, ru.limits, ru.policy)
    by = layer if layer == "mean" or pair.families() else "mean"
    info = map_info(pair, mark=_choice_on(pair, mark), by=by, label=False, width=width, height=height)
    return replace(info, labels=info.labels.clear(), parameter="")  # a small panel has no room for names and numbers


def _choice_on(pair: RUMap, mark: Choice | None) -> Choice | None:
    """Return a choice with its values on the axes of another map; None where it has none there."""
    if mark is None or mark.candidate is None:
        return None
    for row in pair.points.filter(id=mark.candidate).to_dicts():
        return replace(mark, risk=row["risk"], utility=row["utility"], rule=Rule())
    return None


def _titled(panel: Spec) -> Spec:
    """Return a panel with small axis titles: a page has many."""
    small = {"titleFontSize": 9, "labelFontSize": 8, "titlePadding": 6, "titleLineHeight": 11}
    encoding = {name: {**channel, "axis": {**channel["axis"], **small}} for name, channel in panel["encoding"].items()}
    return {**panel, "encoding": encoding}
