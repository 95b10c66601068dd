"""Masking methods, one file for each method or family. To add one, write its file and a line in `__init__.pyi`.

Each method is imported when it is first used. METHODS lists all of them.
"""

from sdcmap.core.catalog import lazy_package
from sdcmap.core.method import Method

__getattr__, __dir__, __all__ = lazy_package(__name__, __file__, METHODS=Method)
