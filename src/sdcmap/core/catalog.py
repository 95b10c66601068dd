"""Look up classes and charts by name, so that lower packages need not import higher ones.

A plan names classes, so the packages that define them are listed here as text. A map draws itself, so its charts are
found in `sdcmap.charts` by name. No other module imports a higher package.
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
    "sdcmap.recordwise",
)  # of the values that a plan may name
CHART_PACKAGE = "sdcmap.charts"
T = TypeVar("T")


def select_classes(names: Mapping[str, object], base: type[T]) -> tuple[type[T], ...]:
    """Return the classes among `names` that are subclasses of `base`, sorted by name, without `base` itself."""
    public = [thing for name, thing in sorted(names.items(), key=lambda item: item[0]) if not name.startswith("_")]
    return tuple(thing for thing in public if isinstance(thing, type) and issubclass(thing, base) and thing is not base)


def lazy_package(
    package: str, file: str, **registries: type
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package that imports the names of its `__init__.pyi` on first use.

    registries : names of tuples of all subclasses of a class, such as METHODS=Method.
    """
    find, names, public = lazy_loader.attach_stub(package, file)

    def resolve(name: str) -> Any:
        thing = find(name) if name not in registries else select_classes({n: find(n) for n in public}, registries[name])
        setattr(sys.modules[package], name, thing)  # so that the next access does not call this function
        return thing

    return resolve, names, [*public, *registries]


def find_class(name: str) -> type | None:
    """Return the class of this name in PLAN_PACKAGES, or None.

    "module:Class" names a class of a loaded module or of an installed plug-in.
    """
    module, _, attribute = name.rpartition(":")
    if module and module not in sys.modules and module in plug_in_modules():
        importlib.import_module(module)
    packages = [sys.modules.get(module)] if module else map(importlib.import_module, PLAN_PACKAGES)
    things = (getattr(package, attribute, None) for package in packages if package is not None)
    return next((thing for thing in things if isinstance(thing, type)), None)


def class_names(base: type[T]) -> list[str]:
    """Return the names of all subclasses of `base` in PLAN_PACKAGES."""
    packages = map(importlib.import_module, PLAN_PACKAGES)
    return [
        cls.__name__
        for package in packages
        for cls in select_classes({n: getattr(package, n) for n in _public(package)}, base)
    ]


def _public(package: ModuleType) -> list[str]:
    return list(getattr(package, "__all__", None) or vars(package))


def plug_in_classes(base: type[T]) -> tuple[type[T], ...]:
    """Return the subclasses of `base` that installed plug-ins offer, by module and name."""
    packages = [importlib.import_module(module) for module in sorted(plug_in_modules())]
    return tuple(
        cls for package in packages for cls in select_classes(vars(package), base) if cls.__module__ == package.__name__
    )


@cache
def plug_in_modules() -> frozenset[str]:
    """Return the modules that installed packages offer to plans through the entry point group "sdcmap"."""
    return frozenset(point.value.partition(":")[0] for point in metadata.entry_points(group="sdcmap"))


def draw_chart(drawing: str, *given: object, **options: object) -> Chart:
    """Return the chart that a function of `sdcmap.charts` draws with these arguments."""
    chart: Chart = getattr(importlib.import_module(CHART_PACKAGE), drawing)(*given, **options)
    return chart
