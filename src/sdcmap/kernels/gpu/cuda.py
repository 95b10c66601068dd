"""Access to the GPU: whether one is usable, compiled kernels, and how much memory they may take."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from multiprocessing import current_process
from pathlib import Path
from typing import Any

MAX_LIST_BYTES = 8 << 30  # for candidate lists on the GPU at a time; also at most half of what is free
LOCK = threading.RLock()  # constants in GPU memory belong to one task at a time


class GpuUnavailable(Exception):  # noqa: N818 - reads better than GpuUnavailableError in "except" clauses
    """No GPU can be used. The message is the reason, without a full stop."""


class NotForGpu(GpuUnavailable):
    """The GPU kernel does not support this input; the CPU computes it."""


@cache
def cupy() -> Any:
    """Return CuPy after checking that a GPU responds."""
    try:
        import cupy
    except ImportError:
        raise GpuUnavailable("CuPy is not installed: pip install 'sdcmap[gpu]'") from None
    with translate_errors(cupy):
        if cupy.cuda.runtime.getDeviceCount() == 0:
            raise GpuUnavailable("there is no GPU")
        cupy.zeros(1)
    return cupy


def gpu_index(process: str, gpus: int) -> int:
    """Return which of `gpus` GPUs a process uses: workers have numbered names and take the GPUs in turn."""
    number = re.search(r"-(\d+)$", process)
    return int(number[1]) % gpus if number else 0


@cache
def own_gpu() -> Any:
    """Return the GPU of this process."""
    return cupy().cuda.Device(gpu_index(current_process().name, cupy().cuda.runtime.getDeviceCount()))


def name() -> str:
    """Return the name of the GPU, such as "NVIDIA H200"; with several GPUs, "4 x NVIDIA H200"."""
    runtime = cupy().cuda.runtime
    gpus, model = int(runtime.getDeviceCount()), str(runtime.getDeviceProperties(own_gpu().id)["name"].decode())
    return f"{gpus} x {model}" if gpus > 1 else model


def free_bytes() -> int:
    """Return how many bytes candidate lists may take now."""
    return min(MAX_LIST_BYTES, int(own_gpu().mem_info[0] + cupy().get_default_memory_pool().free_bytes()) // 2)


@cache
def processors() -> int:
    """Return the number of multiprocessors of the GPU."""
    return int(own_gpu().attributes["MultiProcessorCount"])


@contextmanager
def exclusive_gpu() -> Iterator[Any]:
    """Yield CuPy to one task at a time; raise `GpuUnavailable` if the GPU is lost or its memory is full."""
    with LOCK, translate_errors(cupy()), own_gpu():
        yield cupy()


@contextmanager
def translate_errors(library: Any) -> Iterator[None]:
    """Turn CuPy's exceptions into `GpuUnavailable`, with a message that contains no data value."""
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
    """Return how many blocks of `size` cover `count` items."""
    return -(-count // size)


def compile_kernels(
    files: tuple[str, ...], settings: Mapping[str, int | str], *, fused: bool = True, together: bool = False
) -> Any:
    """Return the kernels of these CUDA files. CuPy compiles each combination once and caches it.

    settings : macros. fused : allow fused multiply-add. together : all blocks of a kernel must run at the same time,
    because they wait for each other.
    """
    source = "\n".join(Path(__file__).with_name(file).read_text(encoding="utf-8") for file in files)
    macros = tuple(f"-D{key}={value}" for key, value in settings.items())
    options = ("-std=c++17", *(() if fused else ("-fmad=false",)), *macros)
    return cupy().RawModule(code=source, options=options, enable_cooperative_groups=together)
