"""A masked file record by record: neighbors, perturbation, and whether that is enough."""

from sdcmap.recordwise.neighborhood import Unsafe
from sdcmap.recordwise.table import RecordSets, RecordTable, compare_records, records

__all__ = ["RecordSets", "RecordTable", "Unsafe", "compare_records", "records"]
