"""Whole measures and methods give the same numbers on a GPU, or by its kernels' arithmetic in numpy, as on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

import sdcmap as sm
from sdcmap.core.measure import Measure
from sdcmap.core.streams import Stream
from sdcmap.data.microdata import Microdata
from sdcmap.kernels import gpu
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.device import GpuUnavailable, gpu_name, use_device
from sdcmap.kernels.gpu import (
    auction_rounds,
    groups,
    layout,
    nearest_records,
    neighbors,
    pair_scan,
    patterns,
    rival_search,
)
from sdcmap.recordwise.neighborhood import Unsafe, assess
from sdcmap.risk.linkage import cost_models, file_pair
from sdcmap.risk.linkage.attack import Attack
from sdcmap.risk.linkage.field_costs import Cost

RNG = np.random.default_rng(0)


# ---- stand-ins for the GPU kernels, by their arithmetic in plain numpy ----------------------------------------
def every_cost(costs: Sequence[Cost], mean: bool, known_rows: bool = False) -> Array:
    arranged = layout.lay_out_fields(costs, mean=mean, known_rows=known_rows)
    return layout.plain_fields(arranged, np.arange(arranged.rows.shape[1]), np.arange(len(arranged.columns)))


def best(cost: Array, keep: int, scatter: Array) -> tuple[Array, Array]:
    """Select candidates by key, a few more than asked for, and rank them by cost, as the kernel `rank_candidates` does."""
    keys = pair_scan.plain_keys(cost, min(cost.shape[1], keep + 8 + keep // 8), scatter)
    index = (keys & pair_scan.TURN_MASK).astype(np.int64) ^ scatter[:, np.newaxis]
    candidates = np.take_along_axis(cost, index, axis=1)
    order = np.lexsort([keys & pair_scan.TURN_MASK, candidates])[:, :keep]
    return np.take_along_axis(index, order, axis=1), -np.take_along_axis(candidates, order, axis=1)


def scan_of(costs: Any, chunks: Sequence[Array], enough: int) -> Callable[[Array], tuple[Array, int]]:
    arranged = layout.lay_out_capped(*costs)
    keys = pair_scan.plain_keys(layout.plain_capped(arranged, np.arange(len(costs.a)), np.arange(len(costs.b))), enough)
    return lambda rows: (keys[rows], 0)


def scan_of_fields(costs: Any, scatter: Array, enough: int) -> Callable[[Array], Array]:
    arranged = layout.lay_out_fields(pair_scan.likely_fields(costs), mean=False, known_rows=True)
    total = layout.plain_fields(arranged, np.arange(len(costs.a)), np.arange(len(costs.b)))
    keys = pair_scan.plain_keys(total, enough, scatter.astype(np.int64))
    return lambda rows: keys[rows]


class RivalSearch:
    def __init__(self, costs: Sequence[Cost], truth: Array, *, mean: bool = False) -> None:
        self.cost, self.truth = every_cost(costs, mean), truth

    def __call__(self, targets: Array, *, threads: int | None = None) -> tuple[Array, Array]:
        return rival_search.plain_rival_search(self.cost[targets], self.truth[targets])


class CheapestSearch:
    def __init__(self, costs: Sequence[Cost], *, mean: bool = False) -> None:
        self.cost = every_cost(costs, mean)

    def __call__(self, targets: Array, keep: int, *, threads: int | None = None) -> tuple[Array, Array]:
        return best(self.cost[targets], min(keep, self.cost.shape[1]), pair_scan.scatter_bits(targets))


def mdav_groups(x: Array, size: int) -> Array:
    return groups.plain_groups(x, np.zeros((len(x), 0), dtype=int), size, mixed=False)


def gower_groups(numbers: Array, codes: Array, size: int, price: Array | None = None) -> Array:
    return groups.plain_groups(numbers, codes, size, mixed=True)


def nearest(
    x: Array, c: Array, y: Array, d: Array, weight: Array, secret: Array, guess: Array, tolerance: float
) -> tuple[Array, Array]:
    arranged = layout.lay_out_fields(nearest_records.fields_of(x, c, y, d, weight), mean=False)
    cost = layout.plain_fields(arranged, np.arange(len(x)), np.arange(len(y)))
    return nearest_records.plain_nearest(cost, secret, guess, tolerance)


def count_between(points: Any, near: Array, far: Array, most: int | None = None) -> tuple[Array, Array]:
    return neighbors.plain_between(points, near, far)


def count_pattern_numbers(files: Any, threads: int | None = None) -> tuple[Array, Array]:
    return patterns.plain_pattern_numbers(files)


def auction_prices(graph: Any, reverse: Any, price: Array, steps: list[float]) -> Array:
    return auction_rounds.plain_auction_prices(graph, reverse, price, steps)


PLAIN = (
    scan_of, scan_of_fields, RivalSearch, CheapestSearch, auction_prices, count_pattern_numbers, mdav_groups,
    gower_groups, nearest, count_between,
)  # fmt: skip


def no_gpu() -> str:
    try:
        gpu_name()
    except GpuUnavailable as reason:
        return str(reason)
    return ""


called: set[str] = set()


def record_calls(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel, wrapped so that its calls are recorded."""

    def run(*args: Any, **kwargs: Any) -> Any:
        called.add(kernel.__name__)
        return kernel(*args, **kwargs)

    return run


@pytest.fixture(params=["numpy", pytest.param("gpu", marks=pytest.mark.skipif(bool(no_gpu()), reason=no_gpu()))])
def called_kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """Install the GPU kernels, or their arithmetic in numpy, and yield the names of those that were called."""
    kernels = {kernel.__name__: kernel for kernel in PLAIN} if request.param == "numpy" else gpu.KERNELS
    assert set(kernels) == set(gpu.KERNELS)
    monkeypatch.setattr(gpu, "KERNELS", {name: record_calls(kernel) for name, kernel in kernels.items()})
    monkeypatch.setattr(file_pair, "MAX_DENSE_PAIRS", 0)  # so that even small files need candidates
    monkeypatch.setattr(cost_models, "MAX_MATRIX_PAIRS", 0)
    called.clear()
    yield called


@pytest.fixture(scope="module")
def people() -> Microdata:
    """Return persons with categories, amounts, ties and missing values."""
    frame = sm.demo.population(260, seed=3).frame()
    frame = frame.with_columns(wage=frame["wage"].set(frame["wage"] > frame["wage"].quantile(0.9), None))
    return sm.read(frame, keys=["Age", "Educ", "Sex"], numeric=["wage", "interest", "total"])


CHAIN = sm.Chain((sm.PRAM(("Educ",), 0.2), sm.Noise(("wage", "interest", "total"), 0.1)))
SWAPPED = sm.RankSwap(("interest", "total"), 0.1)
MIXED = sm.methods.MixtureNoise(("interest", "total"))
NEAREST = partial(sm.risk.NearestRecord, open_columns="as any")
CASES: list[tuple[Measure, set[str]]] = [
    *((sm.risk.Linkage(metric, open_columns="as any"), {"scan_of"}) for metric in ("d", "l", "unit-free l")),
    (sm.risk.Linkage("d", weights="em", open_columns="as any"), {"scan_of", "count_pattern_numbers"}),
    *((NEAREST(metric), {"scan_of"}) for metric in ("standardized", "scaled", "mahalanobis")),
    (NEAREST(one_to_one=True), {"scan_of"}),
    (NEAREST("gower"), {"CheapestSearch"}),
    (NEAREST("gower", one_to_one=True), {"CheapestSearch"}),
    *((sm.risk.Linkage(metric), {"CheapestSearch"}) for metric in ("d", "l")),  # Age and Sex are open columns
    *((sm.risk.NearestRecord(metric), {"CheapestSearch"}) for metric in ("standardized", "gower", "mixed")),
    (sm.WorstLinkage().for_informed_attacker(CHAIN), set()),  # open columns leave few pairs, which the CPU compares
    (
        sm.WorstLinkage(on=("wage", "interest", "total")).for_informed_attacker(CHAIN),
        {"RivalSearch", "CheapestSearch"},
    ),  # some person is not linked
    (sm.risk.ClosestRecord(targets=40), {"nearest"}),
    (sm.risk.AttributeInference("Sex", targets=40), {"nearest"}),
]


@pytest.mark.parametrize(("measure", "kernels"), CASES, ids=lambda case: case.text if isinstance(case, Measure) else "")
def test_measures_equal_cpu_values(
    people: Microdata, called_kernels: set[str], measure: Measure, kernels: set[str]
) -> None:
    masked = CHAIN.apply(people, Stream.of_seed(5))
    on_cpu = measure.apply(people, masked, np.random.default_rng(1), ())
    assert not called_kernels
    with use_device("gpu"):
        on_gpu = measure.apply(people, masked, np.random.default_rng(1), ())
    assert called_kernels >= kernels
    assert on_gpu.value == pytest.approx(on_cpu.value, rel=1e-6)
    # Attacks that do not lead are run one-to-one among the best candidates of each record. Of candidates that tie at the
    # end of such a list, others may be taken, which moves a few links.
    tie = 5 / len(people) if isinstance(measure, sm.WorstLinkage) else 0.0
    for name, value in on_cpu.parts.items():
        if name not in ("gap", "zone"):
            abs_tolerance = tie if name == "linked" or "one-to-one" in name else 0.0
            assert on_gpu.parts[name] == pytest.approx(value, rel=1e-6, abs=abs_tolerance), name


@pytest.mark.parametrize(
    "attack", [sm.risk.Linkage("d"), sm.risk.NearestRecord("gower"), sm.WorstLinkage().for_informed_attacker(CHAIN)]
)
def test_links_equal_cpu_links(people: Microdata, called_kernels: set[str], attack: Attack) -> None:
    masked = CHAIN.apply(people, Stream.of_seed(5))
    here = attack.links(people, masked)
    with use_device("gpu"):
        there = attack.links(people, masked)
    np.testing.assert_array_equal(here.partner, there.partner)
    np.testing.assert_allclose(here.weight, there.weight, rtol=1e-6)
    np.testing.assert_allclose(here.correct, there.correct, rtol=1e-6)


@pytest.mark.parametrize("method", [SWAPPED, MIXED], ids=lambda method: type(method).__name__)
def test_informed_attack_links_by_windows_and_mixtures(
    people: Microdata, called_kernels: set[str], method: sm.Method
) -> None:
    masked = method.apply(people, Stream.of_seed(6))
    attack = sm.risk.Informed(method, on=("interest", "total"))
    here = attack.links(people, masked)
    with use_device("gpu"):
        there = attack.links(people, masked)
    assert "scan_of_fields" in called_kernels
    np.testing.assert_array_equal(here.partner, there.partner)
    np.testing.assert_allclose(here.correct, there.correct, rtol=1e-6)


def test_microaggregation_equals_cpu_result(people: Microdata, called_kernels: set[str]) -> None:
    for how, names in (("mdav", ("interest", "total")), ("gower", ("interest", "total", "Sex"))):
        method = sm.Microaggregate(names, 4, method=how)
        here = method.apply(people, Stream.of_seed(1))
        with use_device("gpu"):
            there = method.apply(people, Stream.of_seed(1))
        assert here.frame().equals(there.frame())
    assert called_kernels == {"mdav_groups", "gower_groups"}


def test_confidentiality_plot_equals_cpu_result(people: Microdata, called_kernels: set[str]) -> None:
    masked = sm.Noise(("interest", "total"), 0.1).apply(people, Stream.of_seed(2))
    rule = Unsafe(on=("interest", "total"), scale="standardized")
    here = assess(people, masked, rule)
    with use_device("gpu"):
        there = assess(people, masked, rule)
    assert here.delta == there.delta and called_kernels == {"count_between"}
    np.testing.assert_array_equal(here.neighbors, there.neighbors)
    np.testing.assert_array_equal(here.nearest, there.nearest)
    np.testing.assert_array_equal(here.safe, there.safe)
