"""Where kernels run: on the CPU, or on a GPU. The one place that chooses.

A kernel that is marked here has an answer of the same name in `kernels/gpu`, with the same numbers up to stated ties. It is
asked where the block says "gpu" or "auto". A GPU that is absent, lost or full is an error in "gpu"; in "auto" the CPU takes
over in this process, and one line says so. A device holds in its own `with` block and thread.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any, TypeVar, cast

from sdcmap.kernels import gpu
from sdcmap.kernels.gpu.cuda import GpuUnavailable, Unfit
from sdcmap.kernels.gpu.cuda import name as present_card  # noqa: F401 - for those who show the device

DEVICES = ("cpu", "gpu", "auto")
Kernel = TypeVar("Kernel", bound=Callable[..., Any])
_DEVICE: ContextVar[str] = ContextVar("sdcmap device", default="cpu")
_gone: list[str] = []  # why this process went back to the CPU


class OnTheCPU(UserWarning):
    """A GPU was wanted where one can be used, and none can."""


@contextmanager
def running_on(device: str) -> Iterator[None]:
    """In this block, and in this thread alone, run kernels on "cpu", "gpu" or "auto"."""
    before = _DEVICE.set(device)
    try:
        yield
    finally:
        _DEVICE.reset(before)


def go_back(reason: GpuUnavailable) -> None:
    """Stay on the CPU from now on, and say why, once."""
    if not _gone:
        _gone.append(str(reason))
        warnings.warn(f"the attacks run on the CPU: {reason}.", OnTheCPU, stacklevel=2)


def on_device(kernel: Kernel) -> Kernel:
    """The function `kernel`, on the device of the block that calls it."""

    @wraps(kernel)
    def run(*given: Any, **named: Any) -> Any:
        return _asked(kernel, lambda chosen: chosen(*given, **named))

    return cast(Kernel, run)


def held_on_device(kernel: Kernel) -> Kernel:
    """The class `kernel`, whose values lay their arrays out once and are then called, on the device of each call."""
    return cast(Kernel, partial(_Held, kernel))


class _Held:
    """A value of a class of kernels, made on each device when it is first needed there."""

    def __init__(self, kernel: Callable[..., Any], *given: Any, **named: Any) -> None:
        self.kernel, self.given, self.named = kernel, given, named
        self.made: dict[Callable[..., Any], Callable[..., Any]] = {}

    def __call__(self, *given: Any, **named: Any) -> Any:
        return _asked(self.kernel, lambda chosen: self._on(chosen)(*given, **named))

    def _on(self, chosen: Callable[..., Any]) -> Callable[..., Any]:
        if chosen not in self.made:
            self.made[chosen] = chosen(*self.given, **self.named)
        return self.made[chosen]


def _asked(kernel: Callable[..., Any], ask: Callable[[Callable[..., Any]], Any]) -> Any:
    """What the GPU's kernel of this name answers where the block wants one, and else the CPU's."""
    device = _DEVICE.get()
    if device == "gpu" or (device == "auto" and not _gone):
        try:
            return ask(gpu.KERNELS[kernel.__name__])
        except Unfit:
            pass
        except GpuUnavailable as reason:
            if device == "gpu":
                raise
            go_back(reason)
    return ask(kernel)
