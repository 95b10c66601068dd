"""Attacks on a GPU, for what grows with the square of the records: arrays in, arrays out, with numpy and CuPy alone.

`KERNELS` are the answers to kernels of the same name elsewhere; `kernels/device.py` is the one place that asks for them.
CuPy is imported when the first of them runs; what a kernel computes stands beside it in plain numpy (`plain_...`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .groups import gower_groups, mdav_groups
from .nearest_records import nearest
from .neighbors import count_between
from .pair_scan import CheapestSearch, scan_of, scan_of_fields
from .rival_search import RivalSearch

LINKING = (scan_of, scan_of_fields, RivalSearch, CheapestSearch)
KERNELS: Mapping[str, Callable[..., Any]] = {
    kernel.__name__: kernel for kernel in (*LINKING, mdav_groups, gower_groups, nearest, count_between)
}
