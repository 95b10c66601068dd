"""Every format in and out; working copies that workers map; files larger than memory."""

from sdcmap.files.blocks import read_in_blocks
from sdcmap.files.reading import Source, read
from sdcmap.files.writing import write

__all__ = ["Source", "read", "read_in_blocks", "write"]
