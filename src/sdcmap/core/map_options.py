"""The drawing options of `RUMap.draw` and of the charts behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

import polars as pl

from sdcmap.core.rule import Choice


class MapContents(TypedDict, total=False):
    """Options for the contents of a map: marks, curves, facets, colors and names."""

    mark: Choice | None
    curve: str | Sequence[str]
    facet: str | Mapping[str, str] | None
    color: str | Mapping[str, str] | None
    names: Mapping[str, str] | None
    units: str


class MapLook(MapContents, total=False):
    """Options for the appearance of a map, whichever points it shows."""

    label: bool | str
    width: int | None
    height: int | None
    title: str


class MapOptions(MapLook, total=False):
    """All options of `sdcmap.charts.draw_map`, which documents them."""

    by: str | None
    links: Mapping[str, str] | None
    subsamples: pl.DataFrame | None
