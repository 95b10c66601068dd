"""Read and write every file format; working copies that workers map into memory; files larger than memory."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
