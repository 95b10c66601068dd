"""Protection of each record of a masked file: its neighbors, its perturbation, and whether they are enough."""

from sdcmap.recordwise.neighborhood import Unsafe, looks_like_code
from sdcmap.recordwise.table import RecordSets, RecordTable, compare_records, records

__all__ = ["RecordSets", "RecordTable", "Unsafe", "compare_records", "looks_like_code", "records"]
