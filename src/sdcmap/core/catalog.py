"""Names in place of imports: what a plan, or a room below, asks of a room above is found when it is asked for.

A plan names classes, so the rooms that hold them are listed here as text; a map draws itself, so the drawings are found
in the charts by name. Nothing else in the package looks upstairs.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import metadata
from types import ModuleType
from typing import Any, TypeVar

import lazy_loader

from sdcmap.core.chart import Chart

PLAN_PACKAGES = (
    "sdcmap.methods",
    "sdcmap.risk",
    "sdcmap.utility",
    "sdcmap.choose",
)  # of the values that a plan may name
CHART_PACKAGE = "sdcmap.charts"
T = TypeVar("T")


def select_classes(names: Mapping[str, object], base: type[T]) -> tuple[type[T], ...]:
    """The classes among a room's names that are a `base`, sorted by name; `base` itself is none."""
    public = [thing for name, thing in sorted(names.items(), key=lambda item: item[0]) if not name.startswith("_")]
    return tuple(thing for thing in public if isinstance(thing, type) and issubclass(thing, base) and thing is not base)


def lazy_package(
    room: str, file: str, **registries: type
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a room whose names stand in its `__init__.pyi` and are imported on first
    use. registries: names of tuples of all members that are a class, such as METHODS=Method."""
    find, names, public = lazy_loader.attach_stub(room, file)

    def resolve(name: str) -> Any:
        thing = find(name) if name not in registries else select_classes({n: find(n) for n in public}, registries[name])
        setattr(sys.modules[room], name, thing)  # from now on without asking
        return thing

    return resolve, names, [*public, *registries]


def find_class(name: str) -> type | None:
    """The class of this name in one of ROOMS; or "module:Class" of a module in use or of an installed plug-in."""
    module, _, attribute = name.rpartition(":")
    if module and module not in sys.modules and module in plug_in_modules():
        importlib.import_module(module)
    homes = [sys.modules.get(module)] if module else map(importlib.import_module, PLAN_PACKAGES)
    things = (getattr(home, attribute, None) for home in homes if home is not None)
    return next((thing for thing in things if isinstance(thing, type)), None)


def class_names(base: type[T]) -> list[str]:
    """The names in ROOMS of every class that is a `base`."""
    homes = map(importlib.import_module, PLAN_PACKAGES)
    return [
        cls.__name__ for home in homes for cls in select_classes({n: getattr(home, n) for n in _public(home)}, base)
    ]


def _public(room: ModuleType) -> list[str]:
    return list(getattr(room, "__all__", None) or vars(room))


def plug_in_classes(base: type[T]) -> tuple[type[T], ...]:
    """The classes that installed plug-ins offer and that are a `base`, by module and name."""
    homes = [importlib.import_module(module) for module in sorted(plug_in_modules())]
    return tuple(cls for home in homes for cls in select_classes(vars(home), base) if cls.__module__ == home.__name__)


@cache
def plug_in_modules() -> frozenset[str]:
    """Modules that installed packages offer to plans through the entry point group "sdcmap"."""
    return frozenset(point.value.partition(":")[0] for point in metadata.entry_points(group="sdcmap"))


def draw_chart(drawing: str, *given: object, **options: object) -> Chart:
    """The chart that a drawing of sdcmap.charts makes of what is given."""
    chart: Chart = getattr(importlib.import_module(CHART_PACKAGE), drawing)(*given, **options)
    return chart
