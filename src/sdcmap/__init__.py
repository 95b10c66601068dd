"""sdcmap: choose what to release.

Microdata -> Plan -> candidates -> scores -> R-U map -> choice -> release. The public names stand in `__init__.pyi` and
are resolved on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

import ast
import sys
from functools import cache
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType
from typing import Any

_STUB = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
_IMPORTS = [line for line in _STUB.body if isinstance(line, ast.ImportFrom)]
_HOME = {name.name: str(line.module) for line in _IMPORTS for name in line.names}

__all__ = sorted(_HOME)
__version__ = "0.1.0"


class _Package(ModuleType):
    """The package as a module in which `sdcmap.sweep` stays the function when the module of that name is imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and _HOME.get(name, "sdcmap") != "sdcmap"):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sdcmap' has no attribute {name!r}")
    home = _HOME[name]
    return import_module(f"sdcmap.{name}") if home == "sdcmap" else getattr(import_module(home), name)


def __dir__() -> list[str]:
    return __all__


def names_of(*homes: str) -> list[str]:
    """The public names that live in these modules."""
    return [name for name, home in _HOME.items() if home in homes]


@cache
def plug_ins() -> frozenset[str]:
    """Modules that installed packages offer to plans through the entry point group "sdcmap"."""
    return frozenset(point.value.partition(":")[0] for point in metadata.entry_points(group="sdcmap"))
