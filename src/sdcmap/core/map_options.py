"""How a map may be drawn: the options of `RUMap.draw` and of the drawings behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

import polars as pl

from sdcmap.core.rule import Choice


class MapContents(TypedDict, total=False):
    """What a map tells of its points."""

    mark: Choice | None
    facet: str | Mapping[str, str] | None
    color: str | Mapping[str, str]
    names: Mapping[str, str] | None


class MapLook(MapContents, total=False):
    """How a map looks, whichever points it shows."""

    label: bool | str
    width: int | None
    height: int | None
    title: str


class MapOptions(MapLook, total=False):
    """Options of `sdcmap.charts.draw_map`, which says what each does."""

    by: str | None
    links: Mapping[str, str] | None
    subsamples: pl.DataFrame | None
