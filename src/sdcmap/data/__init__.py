"""What a file is: columns with their schema, cells and tables of them, hierarchies of their categories."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
