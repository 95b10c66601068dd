"""The device of a sweep or a score: what was asked for, settled once before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from sdcmap.errors import PlanError, SdcmapError, did_you_mean
from sdcmap.kernels.device import DEVICES, GpuUnavailable, go_back, present_card


class Device(NamedTuple):
    """Where kernels run, and the card in words; empty: on the CPU."""

    name: str
    gpu: str


def resolve_device(device: str) -> Device:
    """The device that was asked for; without a GPU that can be used, "auto" is the CPU, and "gpu" an error."""
    if device not in DEVICES:
        raise PlanError(f"the device must be one of {', '.join(DEVICES)}.{did_you_mean(device, DEVICES)}")
    if device == "cpu":
        return Device("cpu", "")
    with explain_gpu_loss():
        try:
            return Device(device, present_card())
        except GpuUnavailable as reason:
            if device == "gpu":
                raise
            go_back(reason)
            return Device("cpu", "")


@contextmanager
def explain_gpu_loss() -> Iterator[None]:
    """A GPU that is absent, lost or full, where one was asked for, ends with one sentence."""
    try:
        yield
    except GpuUnavailable as reason:
        raise SdcmapError(f'no GPU can be used: {reason}; device="auto" would go on without one.') from None
