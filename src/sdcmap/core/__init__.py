"""The contract: values, methods, measures, rules, grids and random streams; what a method note lets its reader compute.

The names that most modules need stand in `vocabulary.py`; `from sdcmap.core import Array, Measure` loads it on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
