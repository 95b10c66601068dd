"""The one place that imports numba.

Kernels release the GIL. They are cached on disk where a cache folder is writable and compiled anew elsewhere: numba
raises when a function is declared cacheable and no folder for it can be had.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., object])
Part = TypeVar("Part")


def jit(function: Kernel) -> Kernel:
    """Compile `function` on first call."""
    return _compiled(function)


def lane_jit(function: Kernel) -> Kernel:
    """The same for loops over lanes without NaN: min, max and abs become single instructions. Nothing is reordered, so
    that sums stay what they are."""
    return _compiled(function, fastmath={"nnan", "nsz"})


def fused_jit(function: Kernel) -> Kernel:
    """The same, and a product may be added in one rounding: sums may differ in their last bits between two loops."""
    return _compiled(function, fastmath={"nnan", "nsz", "contract"})


def inner_jit(function: Kernel) -> Kernel:
    """The same for what only kernels call and what makes no array: numba counts no references to the arrays it is given.
    Where little is done with each, counting takes half of the time, and threads wait for one another's counts."""
    return _compiled(function, _nrt=False)


def own_threads() -> int:
    """Threads a task may use: one inside a worker (a thread, or a process told so by NUMBA_NUM_THREADS), else all."""
    alone = threading.current_thread() is threading.main_thread()
    return int(cast(Any, numba.config).NUMBA_NUM_THREADS) if alone else 1


def run_parts(run: Callable[[Part], object], parts: Iterable[Part], threads: int | None = None) -> None:
    """Run each part, on so many threads (by default `own_threads`); the kernels' results do not depend on their number."""
    threads = threads or own_threads()
    for _ in (_pool(threads).map if threads > 1 else map)(run, parts):
        pass


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads that wait for the next part: to start them takes longer than many a part does."""
    return ThreadPoolExecutor(threads)


os.register_at_fork(after_in_child=_pool.cache_clear)  # a fork has none of its parent's threads


def _compiled(function: Kernel, **options: Any) -> Kernel:
    options |= {"nogil": True, "no_cfunc_wrapper": True}  # nothing calls them from C
    try:
        dispatcher = numba.njit(cache=True, **options)(function)
    except RuntimeError:
        dispatcher = numba.njit(**options)(function)
    return cast(Kernel, _plain_numbers(dispatcher))


def _plain_numbers(dispatcher: Any) -> Any:
    """A kernel that another calls with -1 is the one it calls with any number: numba would compile it for each again."""
    template = dispatcher.get_call_template
    dispatcher.get_call_template = lambda given, named: template(
        tuple(numba.types.unliteral(kind) for kind in given),
        {name: numba.types.unliteral(kind) for name, kind in named.items()},
    )
    return dispatcher
