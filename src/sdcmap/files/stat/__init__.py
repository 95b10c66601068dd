"""Read and write SPSS, Stata and SAS files with variable labels, value labels and user-missing codes.

pyreadstat reads files, in a subprocess, and writes them. This package adds what it lacks:

- A date column with user-missing codes is stored as the numbers of the file (days, seconds) with its date format.
- Special missing values (.A to .Z, ._) of a SAS .xpt file are read from and written to its bytes (SAS paper TS-140).
- SAS stores value labels outside the data file. They are read from the .sas7bcat catalog beside a .sas7bdat file, and
  written as a PROC FORMAT program beside the .xpt file.

Not preserved: file labels and notes, text widths, and Stata's byte, int and float storage (long and double are written).
A code that the target format cannot store (a number in Stata, a letter in SPSS) is written as system-missing.
"""

from __future__ import annotations

from sdcmap.files.stat.reader_process import read_in_subprocess
from sdcmap.files.stat.statfile_reader import stat_cells
from sdcmap.files.stat.statfile_writer import write_statfile
from sdcmap.files.stat.user_missing import drop_unused, format_code, frame_with_codes, reason_numbers, split_missing
