"""The public names of the package, imported on first use: the table of formats is needed before polars."""

from .block_reader import read_in_blocks as read_in_blocks
from .reader import Source as Source
from .reader import read as read
from .writer import write as write

__all__: list[str]
