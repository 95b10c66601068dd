"""The public names of the package, imported on first use: private folders and atomic writes need no numpy."""

from .hierarchy import Hierarchy as Hierarchy
from .microdata import Microdata as Microdata
from .schema import Schema as Schema
from .schema import Variable as Variable

__all__: list[str]
