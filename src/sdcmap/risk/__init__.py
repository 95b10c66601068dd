"""Risk measures, one file each."""

from sdcmap.risk.index import Index
from sdcmap.risk.known_index import KnownIndex
from sdcmap.risk.position import Position
from sdcmap.risk.small_cells import SmallCells

RISKS = (Index, KnownIndex, Position, SmallCells)
