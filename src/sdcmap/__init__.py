"""sdcmap: choose what to release.

Microdata -> Plan -> candidates -> scores -> R-U map -> choice -> release. The public names stand in `__init__.pyi` and
are resolved on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

import sys

# `python -m sdcmap.cli` searches the working folder first, where a file polars.py may lie beside the data.
if sys.argv[:1] == ["-m"] and any(word.startswith("sdcmap.") for word in sys.orig_argv) and not sys.flags.safe_path:
    del sys.path[0]

import lazy_loader

__version__ = "0.2.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
