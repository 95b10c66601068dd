"""SPSS, Stata and SAS files: variables with their labels, and user-missing codes that stay the codes they were.

pyreadstat reads, in a process apart, and writes. What it cannot do is done here:

- a date column with user-missing codes is held as the file's own numbers (days, seconds) with its date format;
- special missings (.A to .Z, ._) of a SAS .xpt file are read from and written into its bytes (SAS paper TS-140);
- SAS keeps value labels outside the data: they are read from the .sas7bcat catalog beside a .sas7bdat file, and
  written as a PROC FORMAT program beside the .xpt file.

Not kept: file labels and notes, widths of text, Stata's byte, int and float storage (long and double are written).
A code that the target format cannot hold (a number in Stata, a letter in SPSS) is written as plain missing.
"""

from __future__ import annotations

from sdcmap.files.stat.process_apart import read_apart
from sdcmap.files.stat.statfile_reader import stat_cells
from sdcmap.files.stat.statfile_writer import write_statfile
from sdcmap.files.stat.user_missing import code_in, coded_frame, reason_numbers, rebuilt, split_missing
