"""The one place that chooses where a kernel runs."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator

import pytest

from sdcmap.kernels import device, gpu
from sdcmap.kernels.device import GpuUnavailable, OnTheCPU, Unfit, held_on_device, on_device, running_on

asked: list[str] = []


@on_device
def named(value: int) -> str:
    return f"cpu {value}"


@held_on_device
class Held:
    def __init__(self, value: int) -> None:
        asked.append("made on the CPU")
        self.value = value

    def __call__(self, more: int) -> str:
        return f"cpu {self.value + more}"


class OnCard:
    def __init__(self, value: int) -> None:
        asked.append("made on the GPU")
        self.value = value

    def __call__(self, more: int) -> str:
        if more > 9:
            raise GpuUnavailable("the memory of the GPU is full")
        return f"gpu {self.value + more}"


def named_on_card(value: int) -> str:
    if value < 0:
        raise Unfit("not for the card")
    if value > 9:
        raise GpuUnavailable("the GPU does not answer")
    return f"gpu {value}"


@pytest.fixture(autouse=True)
def card(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kernels that stand in for a card's, which lose it when they are asked for more than 9."""
    monkeypatch.setattr(gpu, "KERNELS", {"named": named_on_card, "Held": OnCard})
    monkeypatch.setattr(device, "_gone", [])
    asked.clear()
    yield


def test_a_device_holds_in_its_own_block_and_thread() -> None:
    assert named(1) == "cpu 1"
    with running_on("gpu"):
        assert named(1) == "gpu 1"
        with running_on("cpu"):
            assert named(1) == "cpu 1"
        other: list[str] = []
        thread = threading.Thread(target=lambda: other.append(named(2)))
        thread.start()
        thread.join()
        assert other == ["cpu 2"]
    assert named(1) == "cpu 1"


def test_a_lost_gpu_is_an_error_where_it_was_asked_for() -> None:
    with running_on("gpu"), pytest.raises(GpuUnavailable, match="does not answer"):
        named(10)
    with running_on("gpu"), pytest.raises(GpuUnavailable, match="full"):
        Held(1)(10)


def test_auto_goes_back_to_the_cpu_with_one_line() -> None:
    with running_on("auto"):
        assert named(3) == "gpu 3"
        with pytest.warns(OnTheCPU, match="the attacks run on the CPU: the GPU does not answer"):
            assert named(10) == "cpu 10"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert named(3) == "cpu 3"


def test_what_is_not_for_the_card_is_done_by_the_cpu() -> None:
    for where in ("gpu", "auto"):
        with running_on(where):
            assert named(-1) == "cpu -1"
            assert named(1) == "gpu 1"


def test_a_value_is_laid_out_once_on_each_device() -> None:
    held = Held(5)
    assert held(1) == "cpu 6"
    with running_on("auto"):
        assert held(1) == held(1) == "gpu 6"
        with pytest.warns(OnTheCPU):
            assert held(10) == "cpu 15"
    assert asked == ["made on the CPU", "made on the GPU"]
