"""The card: whether there is one, its kernels, compiled on first use and kept by CuPy, and how much memory they take."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from multiprocessing import current_process
from pathlib import Path
from typing import Any

MOST_BYTES = 8 << 30  # of lists on the card at once, and never more than half of what is free
LOCK = threading.RLock()  # one kernel's constants on the card at a time


class GpuUnavailable(Exception):  # noqa: N818 - what it says
    """No GPU can be used; the text is the reason, a sentence without its end."""


class Unfit(GpuUnavailable):
    """What is asked is not for the card: the CPU does it."""


@cache
def cupy() -> Any:
    """CuPy, with a card that answers."""
    try:
        import cupy
    except ImportError:
        raise GpuUnavailable("CuPy is not installed: pip install 'sdcmap[gpu]'") from None
    with guarded(cupy):
        if cupy.cuda.runtime.getDeviceCount() == 0:
            raise GpuUnavailable("there is no GPU")
        cupy.zeros(1)
    return cupy


def turn(process: str, cards: int) -> int:
    """Which of so many cards a process takes: workers are numbered by their names, and take them in turn."""
    number = re.search(r"-(\d+)$", process)
    return int(number[1]) % cards if number else 0


@cache
def mine() -> Any:
    """The card of this process."""
    return cupy().cuda.Device(turn(current_process().name, cupy().cuda.runtime.getDeviceCount()))


def name() -> str:
    """The card in words, such as "NVIDIA H200"; several with their number."""
    runtime = cupy().cuda.runtime
    cards, words = int(runtime.getDeviceCount()), str(runtime.getDeviceProperties(mine().id)["name"].decode())
    return f"{cards} x {words}" if cards > 1 else words


def room() -> int:
    """Bytes that lists may take now."""
    return min(MOST_BYTES, int(mine().mem_info[0] + cupy().get_default_memory_pool().free_bytes()) // 2)


@cache
def processors() -> int:
    """Multiprocessors of the card."""
    return int(mine().attributes["MultiProcessorCount"])


@contextmanager
def alone() -> Iterator[Any]:
    """CuPy, for one task at a time; a card that is lost, or whose memory is full, is NoCard."""
    with LOCK, guarded(cupy()), mine():
        yield cupy()


@contextmanager
def guarded(library: Any) -> Iterator[None]:
    """What CuPy raises, as a sentence that holds no value of the data."""
    cuda = library.cuda
    try:
        yield
    except cuda.memory.OutOfMemoryError:
        library.get_default_memory_pool().free_all_blocks()
        raise GpuUnavailable("the memory of the GPU is full") from None
    except (cuda.runtime.CUDARuntimeError, cuda.driver.CUDADriverError) as problem:
        raise GpuUnavailable(f"the GPU does not answer ({str(problem).split(':')[0]})") from None
    except (cuda.compiler.CompileException, cuda.nvrtc.NVRTCError):
        raise GpuUnavailable("the kernels could not be compiled for this GPU") from None


def blocks(count: int, size: int) -> int:
    """How many parts of this size hold so many."""
    return -(-count // size)


def compiled(
    files: tuple[str, ...], settings: Mapping[str, int | str], *, fused: bool = True, together: bool = False
) -> Any:
    """The kernels of these files under these settings (macros), compiled once; fused: a product may be added in one
    rounding; together: all blocks of a kernel run at once, because they wait for each other."""
    source = "\n".join(Path(__file__).with_name(file).read_text(encoding="utf-8") for file in files)
    macros = tuple(f"-D{key}={value}" for key, value in settings.items())
    options = ("-std=c++17", *(() if fused else ("-fmad=false",)), *macros)
    return cupy().RawModule(code=source, options=options, enable_cooperative_groups=together)
