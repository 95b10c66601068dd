"""sdcmap: choose what to release.

Microdata -> Plan -> candidates -> scores -> R-U map -> choice -> release. The public names stand in `__init__.pyi` and
are resolved on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

import lazy_loader

__version__ = "0.2.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
