"""Risk measures, one file each."""

from sdcmap.risk.known_index import KnownIndex
from sdcmap.risk.small_cells import SmallCells

RISKS = (KnownIndex, SmallCells)
