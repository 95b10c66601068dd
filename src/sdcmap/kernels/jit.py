"""Compile kernels with numba. No other module imports numba.

Compiled kernels release the GIL. They are cached on disk where a cache folder is writable, and compiled in every process
elsewhere: numba raises an error if a function is declared cacheable and it finds no folder.
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
    """Compile `function` on its first call."""
    return _compile(function)


def lane_jit(function: Kernel) -> Kernel:
    """Compile a function whose loops can use vector lanes and never see NaN.

    min, max and abs become single instructions. Nothing is reordered, so sums keep their values.
    """
    return _compile(function, fastmath={"nnan", "nsz"})


def fused_jit(function: Kernel) -> Kernel:
    """Compile as `lane_jit` does, and allow fused multiply-add.

    A sum may then differ in its last bits between two loops.
    """
    return _compile(function, fastmath={"nnan", "nsz", "contract"})


def inner_jit(function: Kernel) -> Kernel:
    """Compile a function that only kernels call and that creates no array.

    numba then does not count references to the arrays it receives. In short functions the counting takes half of the
    time, and threads wait for each other's counters.
    """
    return _compile(function, _nrt=False)


def own_threads() -> int:
    """Return how many threads a task may use.

    One inside a worker (a thread, or a process with NUMBA_NUM_THREADS=1), otherwise all.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    return int(cast(Any, numba.config).NUMBA_NUM_THREADS) if in_main_thread else 1


def run_parts(run: Callable[[Part], object], parts: Iterable[Part], threads: int | None = None) -> None:
    """Run each part, on `threads` threads (default `own_threads()`); results do not depend on their number."""
    threads = threads or own_threads()
    for _ in (_pool(threads).map if threads > 1 else map)(run, parts):
        pass


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Return a pool whose threads stay alive between calls: starting them takes longer than many parts."""
    return ThreadPoolExecutor(threads)


os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked process does not inherit threads


def _compile(function: Kernel, **options: Any) -> Kernel:
    options |= {"nogil": True, "no_cfunc_wrapper": True}  # never called from C
    try:
        dispatcher = numba.njit(cache=True, **options)(function)
    except RuntimeError:
        dispatcher = numba.njit(**options)(function)
    return cast(Kernel, _without_literal_types(dispatcher))


def _without_literal_types(dispatcher: Any) -> Any:
    """Make a kernel treat a literal argument such as -1 as any other number.

    Otherwise numba compiles the kernel again for each literal that another kernel passes to it.
    """
    template = dispatcher.get_call_template
    dispatcher.get_call_template = lambda args, kwargs: template(
        tuple(numba.types.unliteral(kind) for kind in args),
        {name: numba.types.unliteral(kind) for name, kind in kwargs.items()},
    )
    return dispatcher
