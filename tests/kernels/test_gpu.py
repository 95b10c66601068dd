"""GPU kernels against CPU kernels: their arithmetic in plain numpy everywhere, the kernels themselves where a GPU is."""

from __future__ import annotations

import ast
import sys
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from numpy.random import default_rng

import sdcmap
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.device import GpuUnavailable, gpu_name, use_device
from sdcmap.kernels.gpu import KERNELS, cuda, layout, nearest_records, neighbors, pair_scan, rival_search
from sdcmap.kernels.gpu.groups import plain_groups
from sdcmap.kernels.neighbors.counting import Pairs, count_between
from sdcmap.kernels.tables.attribution import nearest
from sdcmap.methods._gower_groups import gower_groups
from sdcmap.methods._mdav import mdav_groups
from sdcmap.risk.linkage.agreement_patterns import count_patterns
from sdcmap.risk.linkage.field_costs import (
    BELOW,
    CATEGORY,
    CELL,
    GAP,
    MIXTURE,
    NUMBER,
    RELATIVE,
    SAME,
    SQUARE,
    WINDOW,
    Cost,
    block_costs,
    mean_costs,
)
from sdcmap.risk.linkage.link_search import (
    Costs,
    _agreement_costs,
    _distance_costs,
    agreement_links,
    make_pair_scan,
    nearest_links,
)
from sdcmap.risk.linkage.pair_search import CheapestSearch, RivalSearch

N, M = 700, 60


def no_gpu() -> str:
    """Return why no GPU can be used here; empty if one can."""
    try:
        gpu_name()
    except GpuUnavailable as reason:
        return str(reason)
    return ""


on_a_gpu = pytest.mark.skipif(bool(no_gpu()), reason=f"no GPU: {no_gpu()}")


def fields(seed: int, gaps: float = 0.15) -> list[Cost]:
    """Return a field of each kind that `plain_fields` covers, with ties, and a share `gaps` of missing values."""
    rng = default_rng(seed)

    def numbers() -> tuple[Array, Array]:
        known = rng.integers(-4, 9, N) / 4
        sides = known, known[:M] + rng.integers(-1, 2, M) / 4
        return tuple(np.where(rng.random(len(side)) < gaps, np.nan, side) for side in sides)  # type: ignore[return-value]

    codes = rng.integers(0, 5, N).astype(float), rng.integers(0, 4, M).astype(float)
    table = np.concatenate([[0.5, 0.7, 0.9, 0.0], np.cumsum(rng.random(25))])
    return [
        Cost(NUMBER, *numbers(), scale=1 / 0.3, table=table), Cost(CATEGORY, *codes, scale=4, table=rng.random(20)),
        Cost(SQUARE, *numbers(), scale=0.3, cap=4.0, both=0.1, one=0.4), Cost(GAP, *numbers(), scale=5.0, cap=2.0, one=0.5),
        Cost(RELATIVE, *numbers(), scale=0.5, cap=1.5, both=0.2), Cost(SAME, *numbers(), cap=3.0, one=3.0),
        Cost(WINDOW, *numbers(), scale=0.5, cap=2.5, both=1.0), Cost(BELOW, *numbers(), scale=0.25, cap=1.0),
    ]  # fmt: skip


def densities() -> list[Cost]:
    """Return a mixture, and cells (one open at either end, two wide, one with a single value), with missing values."""
    rng = default_rng(3)
    known, cell = rng.normal(size=N), rng.integers(0, 5, M).astype(float)
    for side in (known, cell):
        side[rng.random(len(side)) < 0.1] = np.nan
    low, high = np.array([-np.inf, -1.0, 0.0, 0.5, 0.5]), np.array([-1.0, 0.0, 0.5, 0.5, np.inf])
    cells = np.column_stack([low, high, [0.0, -0.3, -0.6, 0.0, 0.0]]).ravel()
    mixture = np.array([-0.5, -1.0, 2.0, -0.7, 1.0, 1.5, 0.1])
    return [
        Cost(MIXTURE, known, known[:M] + 0.25, cap=6.0, one=0.5, table=mixture),
        Cost(CELL, known, cell, cap=6.0, one=0.5, table=np.concatenate([[0.6], cells])),
    ]


def plain(costs: list[Cost], mean: bool = False) -> Array:
    """Return the costs (released, known), summed as on the GPU."""
    return layout.plain_fields(layout.lay_out_fields(costs, mean=mean), np.arange(M), np.arange(N))


# ---- plain numpy against the CPU ------------------------------------------------------------------------------
@pytest.mark.parametrize("known_rows", [False, True])
@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("gaps", [0.0, 0.15])
def test_field_costs_equal_cpu_costs(gaps: float, mean: bool, known_rows: bool) -> None:
    costs = fields(1, gaps)[2:] if mean else fields(1, gaps)
    arranged = layout.lay_out_fields(costs, mean=mean, known_rows=known_rows)
    total = layout.plain_fields(arranged, np.arange(arranged.rows.shape[1]), np.arange(len(arranged.columns)))
    expected = (mean_costs if mean else block_costs)(costs, slice(None))
    np.testing.assert_allclose(total if known_rows else total.T, expected, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("mean", [False, True])
def test_true_pairs_equal_cpu_results(mean: bool) -> None:
    costs = fields(2)[2:] if mean else fields(2)
    truth = np.where(np.arange(M) % 7 == 0, -1, np.arange(M))
    cheaper, ties = rival_search.plain_rival_search(plain(costs, mean), truth)
    beaten, equal = RivalSearch(costs, truth, mean=mean)(np.arange(M))
    assert 5 < beaten.sum() < M
    np.testing.assert_array_equal(cheaper, beaten)
    np.testing.assert_array_equal(ties[~beaten], equal[~beaten])


@pytest.mark.parametrize("mean", [False, True])
def test_cheapest_pairs_have_cpu_costs_and_no_record_twice(mean: bool) -> None:
    costs, keep = fields(3)[2:] if mean else fields(3), 20
    total, scatter = plain(costs, mean), pair_scan.scatter_bits(np.arange(M))
    keys = pair_scan.plain_keys(total, keep, scatter)
    index = (keys & pair_scan.TURN_MASK).astype(np.int64) ^ scatter[:, np.newaxis]
    assert all(len(set(row)) == keep for row in index.tolist())
    score = CheapestSearch(costs, mean=mean)(np.arange(M), keep)[1]
    np.testing.assert_allclose(np.take_along_axis(total, index, axis=1), -score, rtol=1e-6)


def capped(digits: int, gaps: float) -> tuple[Costs, Costs]:
    """Return agreement costs, with a reach per value, and squared distances of 3 fields."""
    rng = default_rng(5)
    known, released = np.round(rng.normal(size=(M, 3)), digits), np.round(rng.normal(size=(N, 3)), digits)
    for side in (known, released):
        side[rng.random(side.shape) < gaps] = np.nan
    reach = np.where(np.isnan(known), 1.0, 0.2 * np.maximum(np.abs(known), 0.1))
    agreement = _agreement_costs(known, released, reach, np.array([-1.0, -0.5, 0.0]), np.array([2.0, 1.0, 0.7]))
    return agreement, _distance_costs(np.nan_to_num(known), np.nan_to_num(released))


@pytest.mark.parametrize("digits", [1, 6])
def test_single_precision_keys_equal_cpu_keys(digits: int) -> None:
    for costs in capped(digits, 0.1):
        total = layout.plain_capped(layout.lay_out_capped(*costs), np.arange(M), np.arange(N))
        keys = np.sort(make_pair_scan(costs, 40)(np.arange(M))[0][:, :40], axis=1)
        mine = pair_scan.plain_keys(total, 40)
        bits = [(side >> pair_scan.COST_SHIFT).astype(np.uint32).view(np.float32) for side in (keys, mine)]
        np.testing.assert_allclose(*bits, rtol=1e-5, atol=1e-7)
        if digits == 1 and costs.square:  # squares of tenths tie exactly; the lower row wins
            assert ((keys & pair_scan.TURN_MASK) == (mine & pair_scan.TURN_MASK)).mean() > 0.9


def test_shared_slope_is_multiplied_into_both_files() -> None:
    a, b = default_rng(6).normal(size=(2, 30, 2)).astype(np.float32)
    slope, cap = np.array([2.0, 0.5], dtype=np.float32), np.ones(2, dtype=np.float32)
    arranged = layout.lay_out_capped(a, np.broadcast_to(slope, a.shape), cap, b, False)
    assert arranged.settings["SLOPED"] == 0
    expected = np.minimum(slope * np.abs(a[:, np.newaxis] - b), 1.0).sum(axis=2)
    np.testing.assert_allclose(
        layout.plain_capped(arranged, np.arange(30), np.arange(30)), expected, rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("size", [1, 2, 3, 10])
@pytest.mark.parametrize("digits", [0, 6])
def test_plain_groups_equal_cpu_groups(size: int, digits: int) -> None:
    rng = default_rng(size)
    x, codes = np.round(rng.normal(size=(300, 3)), digits), rng.integers(0, 4, (300, 2))
    np.testing.assert_array_equal(plain_groups(x, codes[:, :0], size, mixed=False), mdav_groups(x, size))
    np.testing.assert_array_equal(plain_groups(x, codes, size, mixed=True), gower_groups(x, codes, size))


@pytest.mark.parametrize("numeric", [0, 3])
def test_plain_nearest_equals_cpu_nearest(numeric: int) -> None:
    rng = default_rng(10)
    x, y = (np.round(rng.random((count, numeric)), 1) for count in (M, N))
    for side in (x, y):
        side[rng.random(side.shape) < 0.1] = np.nan
    codes = rng.integers(0, 3, (M, 2)), rng.integers(0, 3, (N, 2))
    secret, guess = rng.integers(0, 3, M).astype(float), rng.integers(0, 3, N).astype(float)
    weight = rng.integers(1, 4, numeric + 2).astype(float)
    fields = nearest_records.fields_of(x, codes[0], y, codes[1], weight)
    cost = layout.plain_fields(layout.lay_out_fields(fields, mean=False), np.arange(M), np.arange(N))
    expected = nearest(x, codes[0], y, codes[1], weight, secret, guess, 0.1)
    for mine, theirs in zip(nearest_records.plain_nearest(cost, secret, guess, 0.1), expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def cloud() -> Pairs:
    """Return points with tied distances, each with its own unit."""
    rng = default_rng(11)
    x = np.round(rng.normal(size=(400, 3)), 1)
    return Pairs.of(x[:90] + np.round(rng.normal(size=(90, 3)), 1), x, rng.uniform(0.5, 2, 90), np.arange(90))


def test_plain_neighbor_counts_equal_cpu_counts() -> None:
    pairs_of_points = cloud()
    near = pairs_of_points.link_distances()
    for far in (near, np.nextafter(near, np.inf), 2 * near, np.full(90, np.inf)):
        expected = count_between(pairs_of_points, near, far)
        for mine, theirs in zip(neighbors.plain_between(pairs_of_points, near, far), expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)


# ---- scans and parts of the columns ---------------------------------------------------------------------------
@pytest.mark.parametrize("columns", [1, 50, 1024, 57_343, 57_344, 59_315, 10_000_000])
def test_scans_grow_to_all_columns(columns: int) -> None:
    scans = pair_scan.scan_sizes(columns, 16)
    assert scans[-1] == columns and scans == sorted(scans)
    assert all(after <= pair_scan.SCAN_GROWTH * pair_scan.SCAN_WORTHWHILE * before for before, after in pairwise(scans))
    assert pair_scan.list_capacity(scans, 16, 9) >= 4 * 16 * scans[-1] / scans[-2]


@pytest.mark.parametrize("blocks", [1, 7, 116, 660, 1270])
def test_column_parts_fill_the_gpu(blocks: int) -> None:
    parts = layout.column_parts(blocks, 10_000_000, 660)
    rounds = blocks * parts / 660
    assert rounds <= layout.MAX_WAVES or parts <= layout.MAX_PARTS
    assert rounds / np.ceil(rounds) > 0.95


# ---- imports, workers and sources -----------------------------------------------------------------------------
def test_gpu_package_imports_only_numpy_and_cupy() -> None:
    folder = Path(sdcmap.__file__).parent / "kernels" / "gpu"
    imported = set()
    for file in folder.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            if isinstance(node, ast.ImportFrom) and not node.level:
                imported.add(str(node.module).split(".")[0])
    assert imported - sys.stdlib_module_names == {"numpy", "cupy"}


def test_workers_take_the_gpus_in_turn() -> None:
    workers = [get_context("spawn").Process().name for _ in range(4)]
    assert {cuda.gpu_index(name, 2) for name in workers} == {0, 1}
    assert [cuda.gpu_index(name, 1) for name in workers] == [0] * 4 and cuda.gpu_index("MainProcess", 8) == 0


def test_package_contains_all_cuda_sources_and_kernels() -> None:
    folder = Path(sdcmap.__file__).parent / "kernels" / "gpu"
    assert {file.name for file in folder.glob("*.cu")} == {
        "auction.cu", "capped.cu", "fields.cu", "groups.cu", "neighbors.cu", "pairs.cu", "patterns.cu",
    }  # fmt: skip
    linkage = {"scan_of", "scan_of_fields", "RivalSearch", "CheapestSearch", "auction_prices", "count_pattern_numbers"}
    assert set(KERNELS) == linkage | {"mdav_groups", "gower_groups", "nearest", "count_between"}


# ---- on a GPU -------------------------------------------------------------------------------------------------
@on_a_gpu
@pytest.mark.parametrize("mean", [False, True])
def test_gpu_pair_searches_equal_cpu_searches(mean: bool) -> None:
    costs = fields(2)[2:] if mean else [*fields(2), *densities()]
    targets = np.arange(M)

    def search() -> tuple[tuple[Array, Array], ...]:
        cheapest = CheapestSearch(costs, mean=mean)(targets, 20)
        return RivalSearch(costs, targets, mean=mean)(targets), cheapest

    on_cpu = search()
    with use_device("gpu"):
        on_gpu = search()
    np.testing.assert_array_equal(on_cpu[0][0], on_gpu[0][0])
    np.testing.assert_array_equal(on_cpu[0][1][~on_cpu[0][0]], on_gpu[0][1][~on_cpu[0][0]])
    np.testing.assert_allclose(on_cpu[1][1], on_gpu[1][1], rtol=1e-12)


@on_a_gpu
@pytest.mark.parametrize("digits", [1, 6])
def test_gpu_links_equal_cpu_links(digits: int) -> None:
    rng = default_rng(8)
    known, released = np.round(rng.normal(size=(900, 3)), digits), np.round(rng.normal(size=(3000, 3)), digits)
    reach, low, gain = np.full(known.shape, 0.3), -np.ones(3), np.ones(3)
    on_cpu = agreement_links(known, released, reach, low, gain, 50), nearest_links(known, released, 50)
    with use_device("gpu"):
        on_gpu = agreement_links(known, released, reach, low, gain, 50), nearest_links(known, released, 50)
    for here, there in zip(on_cpu, on_gpu, strict=True):
        np.testing.assert_allclose(here.score, there.score, rtol=1e-6)
        step = np.abs(np.diff(here.score, axis=1)) > 1e-6 * np.abs(here.score[:, 1:])
        apart = step[:, :-1] & step[:, 1:]  # neither tied nor last; tied decimals may differ by rounding
        np.testing.assert_array_equal(here.index[:, 1:-1][apart], there.index[:, 1:-1][apart])
        assert apart.any()


@on_a_gpu
def test_gpu_groups_equal_cpu_groups() -> None:
    rng = default_rng(9)
    x, codes = np.round(rng.normal(size=(3000, 3)), 1), rng.integers(0, 4, (3000, 2))
    on_cpu = mdav_groups(x, 3), gower_groups(x, codes, 3)
    with use_device("gpu"):
        on_gpu = mdav_groups(x, 3), gower_groups(x, codes, 3)
    for here, there in zip(on_cpu, on_gpu, strict=True):
        np.testing.assert_array_equal(here, there)


@on_a_gpu
def test_gpu_neighbor_counts_and_guesses_equal_cpu() -> None:
    points, rng = cloud(), default_rng(12)
    near = points.link_distances()
    x, y = rng.random((M, 2)), rng.random((N, 2))
    codes = rng.integers(0, 3, (M, 2)), rng.integers(0, 3, (N, 2))
    weight = np.array([1.0, 0.5, 2.0, 1.0])
    arguments = x, codes[0], y, codes[1], weight, rng.integers(0, 3, M), rng.integers(0, 3, N), 0.1
    on_cpu = *count_between(points, near, 2 * near), *nearest(*arguments)
    with use_device("gpu"):
        on_gpu = *count_between(points, near, 2 * near), *nearest(*arguments)
    for here, there in zip(on_cpu, on_gpu, strict=True):
        np.testing.assert_allclose(here, there, rtol=1e-12)


@on_a_gpu
@pytest.mark.parametrize(("fields", "gaps"), [(1, 0.0), (6, 0.0), (6, 0.2), (10, 0.1), (14, 0.0), (12, 0.1)])
def test_gpu_patterns_equal_cpu_patterns(fields: int, gaps: float) -> None:
    rng = default_rng(13)
    known, released = np.round(rng.normal(size=(900, fields)), 1), np.round(rng.normal(size=(3000, fields)), 1)
    known[rng.random(known.shape) < gaps] = np.nan
    on_cpu = count_patterns(known, released, np.full(known.shape, 0.3))
    with use_device("gpu"):
        on_gpu = count_patterns(known, released, np.full(known.shape, 0.3))
    for here, there in zip(on_cpu, on_gpu, strict=True):
        np.testing.assert_array_equal(here, there)
