"""The one place that imports numba.

Kernels release the GIL. They are cached on disk where a cache folder is writable and compiled anew elsewhere: numba
raises when a function is declared cacheable and no folder for it can be had.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def jit(function: Kernel) -> Kernel:
    """Compile `function` on first call."""
    try:
        return cast(Kernel, numba.njit(nogil=True, cache=True)(function))
    except RuntimeError:
        return cast(Kernel, numba.njit(nogil=True)(function))
