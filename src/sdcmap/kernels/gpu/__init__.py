"""Kernels on a GPU for work that grows with the square of the number of records, with numpy and CuPy only.

Each entry of `KERNELS` replaces the CPU kernel of the same name; only `kernels/device.py` looks them up. CuPy is imported
when the first of them runs. Beside each kernel stands the same computation in plain numpy (`plain_...`), for the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .auction_rounds import auction_prices
from .groups import gower_groups, mdav_groups
from .nearest_records import nearest
from .neighbors import count_between
from .pair_scan import CheapestSearch, scan_of, scan_of_fields
from .patterns import count_pattern_numbers
from .rival_search import RivalSearch

LINKAGE_KERNELS = (scan_of, scan_of_fields, RivalSearch, CheapestSearch, auction_prices, count_pattern_numbers)
KERNELS: Mapping[str, Callable[..., Any]] = {
    kernel.__name__: kernel for kernel in (*LINKAGE_KERNELS, mdav_groups, gower_groups, nearest, count_between)
}
