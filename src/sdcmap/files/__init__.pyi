"""The names of the room, resolved on first use: the table of formats is read where polars is not needed yet."""

from .blocks import read_in_blocks as read_in_blocks
from .reading import Source as Source
from .reading import read as read
from .writing import write as write

__all__: list[str]
