"""Resolve the requested device of a sweep or a score once, before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from sdcmap.errors import PlanError, SdcmapError, did_you_mean
from sdcmap.kernels.device import DEVICES, GpuUnavailable, fall_back_to_cpu, gpu_name


class Device(NamedTuple):
    """The device that kernels run on, and the name of the GPU; "" on the CPU."""

    name: str
    gpu: str


def resolve_device(device: str) -> Device:
    """Return the device to run on.

    "auto" falls back to the CPU when no GPU is usable; "gpu" raises `SdcmapError`.
    """
    if device not in DEVICES:
        raise PlanError(f"the device must be one of {', '.join(DEVICES)}.{did_you_mean(device, DEVICES)}")
    if device == "cpu":
        return Device("cpu", "")
    with explain_gpu_loss():
        try:
            return Device(device, gpu_name())
        except GpuUnavailable as reason:
            if device == "gpu":
                raise
            fall_back_to_cpu(reason)
            return Device("cpu", "")


@contextmanager
def explain_gpu_loss() -> Iterator[None]:
    """Turn the loss of a required GPU into one `SdcmapError`: it is absent, lost or out of memory."""
    try:
        yield
    except GpuUnavailable as reason:
        raise SdcmapError(f'no GPU can be used: {reason}; device="auto" would continue without one.') from None
