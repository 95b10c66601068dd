"""Microdata in memory: columns and their schema, tables of cells, hierarchies of categories."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
