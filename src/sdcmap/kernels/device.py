"""Choose where kernels run: on the CPU or on a GPU. Nothing else in the package makes this choice.

A kernel marked with `on_device` or `class_on_device` has a counterpart of the same name in `kernels/gpu`, which returns the
same numbers up to documented ties. The counterpart runs inside a `use_device("gpu")` or `use_device("auto")` block. If the
GPU is absent, lost or out of memory, "gpu" raises an error, and "auto" warns once and uses the CPU for the rest of the
process. The choice applies to one `with` block and one thread.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any, TypeVar, cast

from sdcmap.kernels import gpu
from sdcmap.kernels.gpu.cuda import GpuUnavailable, NotForGpu
from sdcmap.kernels.gpu.cuda import name as gpu_name  # noqa: F401 - for callers that show the device

DEVICES = ("cpu", "gpu", "auto")
Kernel = TypeVar("Kernel", bound=Callable[..., Any])
_DEVICE: ContextVar[str] = ContextVar("sdcmap device", default="cpu")
_fallback_reasons: list[str] = []  # not empty: "auto" means the CPU from now on, for this reason


class CpuFallbackWarning(UserWarning):
    """A GPU was requested where one can be used, but none is usable."""


@contextmanager
def use_device(device: str) -> Iterator[None]:
    """Run the kernels of this block, in this thread only, on "cpu", "gpu" or "auto"."""
    before = _DEVICE.set(device)
    try:
        yield
    finally:
        _DEVICE.reset(before)


def fall_back_to_cpu(reason: GpuUnavailable) -> None:
    """Use the CPU for the rest of the process, and warn once with the reason."""
    if not _fallback_reasons:
        _fallback_reasons.append(str(reason))
        warnings.warn(f"the attacks run on the CPU: {reason}.", CpuFallbackWarning, stacklevel=2)


def on_device(kernel: Kernel) -> Kernel:
    """Make the function `kernel` run on the device of the block that calls it."""

    @wraps(kernel)
    def run(*args: Any, **kwargs: Any) -> Any:
        return _run_on_device(kernel, lambda chosen: chosen(*args, **kwargs))

    return cast(Kernel, run)


def class_on_device(kernel: Kernel) -> Kernel:
    """Make instances of the class `kernel` run on the device of each call.

    Such a class prepares its arrays in `__init__` and computes in `__call__`.
    """
    return cast(Kernel, partial(_DeviceInstances, kernel))


class _DeviceInstances:
    """One instance of a kernel class per device, created when the device is first used."""

    def __init__(self, kernel: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self.kernel, self.args, self.kwargs = kernel, args, kwargs
        self.instances: dict[Callable[..., Any], Callable[..., Any]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _run_on_device(self.kernel, lambda chosen: self._instance(chosen)(*args, **kwargs))

    def _instance(self, chosen: Callable[..., Any]) -> Callable[..., Any]:
        if chosen not in self.instances:
            self.instances[chosen] = chosen(*self.args, **self.kwargs)
        return self.instances[chosen]


def _run_on_device(kernel: Callable[..., Any], run: Callable[[Callable[..., Any]], Any]) -> Any:
    """Run the GPU's kernel of this name if the block asks for a GPU and one is usable, else the CPU's."""
    device = _DEVICE.get()
    if device == "gpu" or (device == "auto" and not _fallback_reasons):
        try:
            return run(gpu.KERNELS[kernel.__name__])
        except NotForGpu:
            pass  # only this call is for the CPU; the GPU stays in use
        except GpuUnavailable as reason:
            if device == "gpu":
                raise
            fall_back_to_cpu(reason)
    return run(kernel)
