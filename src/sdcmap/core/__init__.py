"""Base classes and shared values: methods, measures, rules, grids, limits and random streams.

`vocabulary.py` lists the names that most modules need. `from sdcmap.core import Array, Measure` loads it on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
