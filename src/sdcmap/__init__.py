"""sdcmap: choose what to release.

Microdata -> Plan -> candidates -> scores -> R-U map -> choice -> release. Names are resolved on first use, so that
importing the package costs nothing.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module, metadata
from typing import Any

_HOME = {
    "sdcmap.charts": ["draw_map"],
    "sdcmap.choose": ["Choice", "IdealPoint", "Linear", "Threshold"],
    "sdcmap.errors": [
        "Infeasible", "MissingExtra", "PlanError", "Refused", "SchemaError", "SdcmapError", "StudyDamaged",
        "StudyMismatch", "Undefined",
    ],
    "sdcmap.io": ["Source", "read", "write"],
    "sdcmap.map": ["RUMap"],
    "sdcmap.measure": ["Estimate", "Measure"],
    "sdcmap.method": ["Method"],
    "sdcmap.methods": ["Chain", "Identity", "Noise", "RankSwap", "Swap"],
    "sdcmap.microdata": ["Microdata"],
    "sdcmap.plan": ["Candidate", "Plan"],
    "sdcmap.release": ["Release", "release"],
    "sdcmap.report": ["report"],
    "sdcmap.risk": ["KnownIndex", "SmallCells"],
    "sdcmap.schema": ["Schema", "Variable"],
    "sdcmap.rule": ["Rule"],
    "sdcmap.scoring": ["mask", "score"],
    "sdcmap.study": ["Scores", "Study"],
    "sdcmap.sweep": ["sweep"],
    "sdcmap.utility": ["Hellinger", "IL1s", "MeanPrecision"],
    "sdcmap.value": ["Range", "grid", "subsets"],
}  # fmt: skip
_MODULES = ["demo", "errors", "testing"]
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = sorted([*_MODULE_OF, *_MODULES])  # noqa: PLE0605 - made from the table above
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(_MODULE_OF[name]), name)
    if name in _MODULES:
        return import_module(f"sdcmap.{name}")
    raise AttributeError(f"module 'sdcmap' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


@cache
def plug_ins() -> frozenset[str]:
    """Modules that installed packages offer to plans through the entry point group "sdcmap"."""
    return frozenset(point.value.partition(":")[0] for point in metadata.entry_points(group="sdcmap"))
