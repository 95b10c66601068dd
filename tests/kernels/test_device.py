"""The choice of the device that a kernel runs on."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator

import pytest

from sdcmap.kernels import device, gpu
from sdcmap.kernels.device import CpuFallbackWarning, GpuUnavailable, NotForGpu, class_on_device, on_device, use_device

created: list[str] = []


@on_device
def label(value: int) -> str:
    return f"cpu {value}"


@class_on_device
class Adder:
    def __init__(self, value: int) -> None:
        created.append("on the CPU")
        self.value = value

    def __call__(self, more: int) -> str:
        return f"cpu {self.value + more}"


class GpuAdder:
    def __init__(self, value: int) -> None:
        created.append("on the GPU")
        self.value = value

    def __call__(self, more: int) -> str:
        if more > 9:
            raise GpuUnavailable("the memory of the GPU is full")
        return f"gpu {self.value + more}"


def label_on_gpu(value: int) -> str:
    if value < 0:
        raise NotForGpu("not for the GPU")
    if value > 9:
        raise GpuUnavailable("the GPU does not answer")
    return f"gpu {value}"


@pytest.fixture(autouse=True)
def gpu_kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install stand-ins for GPU kernels; they lose the GPU for values above 9."""
    monkeypatch.setattr(gpu, "KERNELS", {"label": label_on_gpu, "Adder": GpuAdder})
    monkeypatch.setattr(device, "_fallback_reasons", [])
    created.clear()
    yield


def test_device_applies_to_its_block_and_thread() -> None:
    assert label(1) == "cpu 1"
    with use_device("gpu"):
        assert label(1) == "gpu 1"
        with use_device("cpu"):
            assert label(1) == "cpu 1"
        other: list[str] = []
        thread = threading.Thread(target=lambda: other.append(label(2)))
        thread.start()
        thread.join()
        assert other == ["cpu 2"]
    assert label(1) == "cpu 1"


def test_lost_gpu_raises_on_device_gpu() -> None:
    with use_device("gpu"), pytest.raises(GpuUnavailable, match="does not answer"):
        label(10)
    with use_device("gpu"), pytest.raises(GpuUnavailable, match="full"):
        Adder(1)(10)


def test_auto_falls_back_to_the_cpu_with_one_warning() -> None:
    with use_device("auto"):
        assert label(3) == "gpu 3"
        with pytest.warns(CpuFallbackWarning, match="the attacks run on the CPU: the GPU does not answer"):
            assert label(10) == "cpu 10"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert label(3) == "cpu 3"


def test_unsupported_input_runs_on_the_cpu() -> None:
    for device_name in ("gpu", "auto"):
        with use_device(device_name):
            assert label(-1) == "cpu -1"
            assert label(1) == "gpu 1"


def test_class_is_instantiated_once_per_device() -> None:
    adder = Adder(5)
    assert adder(1) == "cpu 6"
    with use_device("auto"):
        assert adder(1) == adder(1) == "gpu 6"
        with pytest.warns(CpuFallbackWarning):
            assert adder(10) == "cpu 15"
    assert created == ["on the CPU", "on the GPU"]
