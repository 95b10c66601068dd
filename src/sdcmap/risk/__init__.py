"""Risk measures, one file each, or one a family: a line in `__init__.pyi` is all that a new one needs.

A process imports those it uses; RISKS are all of them, by name.
"""

from sdcmap.core.catalog import lazy_package
from sdcmap.core.measure import Measure

__getattr__, __dir__, __all__ = lazy_package(__name__, __file__, RISKS=Measure)
