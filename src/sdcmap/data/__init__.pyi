"""The names of the room, resolved on first use: private folders and whole files need no numpy."""

from .hierarchy import Hierarchy as Hierarchy
from .microdata import Microdata as Microdata
from .schema import Schema as Schema
from .schema import Variable as Variable

__all__: list[str]
