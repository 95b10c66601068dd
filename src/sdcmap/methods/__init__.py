"""Masking methods, one file each, or one a family: a line in `__init__.pyi` is all that a new one needs.

A process imports those it uses; METHODS are all of them, by name.
"""

from sdcmap.core.catalog import lazy_package
from sdcmap.core.method import Method

__getattr__, __dir__, __all__ = lazy_package(__name__, __file__, METHODS=Method)
