"""Risk measures, one file each."""

from sdcmap.risk.external_link import ExternalLink
from sdcmap.risk.index import Index
from sdcmap.risk.known_index import KnownIndex
from sdcmap.risk.position import Position
from sdcmap.risk.small_cells import SmallCells

RISKS = (ExternalLink, Index, KnownIndex, Position, SmallCells)
