"""A masked file record by record: neighbours, perturbation, and whether that is enough."""

from sdcmap.recordwise.neighbourhood import Unsafe
from sdcmap.recordwise.table import RecordSets, RecordTable, compare_records, records

__all__ = ["RecordSets", "RecordTable", "Unsafe", "compare_records", "records"]
