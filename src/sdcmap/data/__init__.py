"""What a file is: columns with their schema, cells and tables of them, hierarchies of their categories."""

from sdcmap.data.hierarchy import Hierarchy
from sdcmap.data.microdata import Microdata
from sdcmap.data.schema import Schema, Variable

__all__ = ["Hierarchy", "Microdata", "Schema", "Variable"]
