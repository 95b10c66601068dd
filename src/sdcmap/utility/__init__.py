"""Utility measures, one module each (or one per family).

A new measure needs only a line in `__init__.pyi`. Modules are imported on first use; UTILITIES contains all classes.
"""

from sdcmap.core.catalog import lazy_package
from sdcmap.core.measure import Measure

__getattr__, __dir__, __all__ = lazy_package(__name__, __file__, UTILITIES=Measure)
