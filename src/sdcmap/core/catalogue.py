"""Names in place of imports: what a plan, or a room below, asks of a room above is found when it is asked for.

A plan names classes, so the rooms that hold them are listed here as text; a map draws itself, so the drawings are found
in the charts by name. Nothing else in the package looks upstairs.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from typing import TypeVar

from sdcmap.core.chart import Chart

ROOMS = ("sdcmap.methods", "sdcmap.risk", "sdcmap.utility", "sdcmap.choose")  # of the values that a plan may name
CHARTS = "sdcmap.charts"
T = TypeVar("T")


def members(names: Mapping[str, object], base: type[T]) -> tuple[type[T], ...]:
    """The classes among a room's names that are a `base`, sorted by name; `base` itself is none."""
    classes: dict[str, type[T]] = {}
    for name, thing in names.items():
        if isinstance(thing, type) and issubclass(thing, base) and thing is not base and not name.startswith("_"):
            classes[name] = thing
    return tuple(classes[name] for name in sorted(classes))


def named_class(name: str) -> type | None:
    """The class of this name in one of ROOMS; or "module:Class" of a module in use or of an installed plug-in."""
    module, _, attribute = name.rpartition(":")
    if module and module not in sys.modules and module in plug_ins():
        importlib.import_module(module)
    homes = [sys.modules.get(module)] if module else map(importlib.import_module, ROOMS)
    things = (vars(home).get(attribute) for home in homes if home is not None)
    return next((thing for thing in things if isinstance(thing, type)), None)


def names_of(base: type[T]) -> list[str]:
    """The names in ROOMS of every class that is a `base`."""
    return [cls.__name__ for room in ROOMS for cls in members(vars(importlib.import_module(room)), base)]


def offered(base: type[T]) -> tuple[type[T], ...]:
    """The classes that installed plug-ins offer and that are a `base`, by module and name."""
    homes = [importlib.import_module(module) for module in sorted(plug_ins())]
    return tuple(cls for home in homes for cls in members(vars(home), base) if cls.__module__ == home.__name__)


@cache
def plug_ins() -> frozenset[str]:
    """Modules that installed packages offer to plans through the entry point group "sdcmap"."""
    return frozenset(point.value.partition(":")[0] for point in metadata.entry_points(group="sdcmap"))


def drawn(drawing: str, *given: object, **options: object) -> Chart:
    """The chart that a drawing of sdcmap.charts makes of what is given."""
    chart: Chart = getattr(importlib.import_module(CHARTS), drawing)(*given, **options)
    return chart
