"""The cheapest columns of each row, from all pairs on the GPU.

Each pair has a key: the bits of its cost in single precision above the turn of the column, which is the column number XOR
the scatter bits of the row; with scatter 0 it is the file order. The result is the `keep` smallest keys of each row. No two
keys of a row are equal, so ties are broken by a fixed rule, however many there are.

The columns are scanned at least three times, each time with a tighter limit on the cost. The keep-th smallest cost of a
sample of FIRST_COLUMNS columns is the first limit. A scan of SCAN_GROWTH times as many columns lists all pairs within the
limit, and the keep-th cost of each list is the next limit; the last scan covers all columns. A row whose list overflows,
because too many columns have the same cost, is searched again on its own by a radix selection over the keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from . import cuda, layout
from .layout import SEARCH_THREADS, THREADS, TILE, Array, Field, GpuFiles, lay_out_fields

FIRST_COLUMNS = 1024  # columns of the first scan
SCAN_GROWTH = 8  # each further scan has this many times as many columns
SCAN_WORTHWHILE = 7  # an intermediate scan pays off only if the file has at least this many times its columns
LIST_BATCH = 8  # entries of a list that a thread reserves at a time; BATCH in pairs.cu
MAX_SORTED_KEYS = 512  # keys per row that one warp sorts in shared memory
MAX_RANKED_KEYS = 2048  # candidates per row that are ranked in double precision
MAX_TARGETS = 1 << 20  # targets of one search
GOLDEN = 0.6180339887498949  # its multiples are spread evenly over [0, 1)
COST_SHIFT, TURN_MASK = np.uint64(32), np.uint64(0xFFFFFFFF)  # the two halves of a key


def cheapest_keys(a: Array, slope: Array, cap: Array, b: Array, square: bool, keep: int) -> Array:
    """Return the `keep` smallest keys of each row, ascending.

    The cost, in single precision, is the sum of min(cap, slope |a - b|), or of (a - b)^2 if `square`.
    """
    with cuda.exclusive_gpu() as cupy:
        files = GpuFiles(layout.lay_out_capped(a, slope, cap, b, square))
        file_order = cupy.zeros(files.row_count, dtype=cupy.uint32)
        return np.asarray(smallest_keys(files, files.rows, min(keep, files.column_count), file_order).get())


def scan_of(costs: tuple[Array, Array, Array, Array, bool], chunks: Sequence[Array], enough: int) -> Any:
    """Return a function from rows to keys; the GPU counterpart of `risk.linkage.link_search.scan_of`.

    All rows are computed at once and handed out in chunks.
    """
    a, slope, cap, b, square = costs
    keys = cheapest_keys(a, slope, cap, b, square, enough)
    return lambda rows: (keys[rows], 0)


def likely_fields(costs: Any) -> list[Field]:
    """Return the windows, equalities and mixtures of `risk.linkage.field_links.FieldCosts` as fields.

    A mixture is represented by its likeliest component.
    """
    fields = []
    for f, (kind, cap) in enumerate(zip(costs.kind, costs.cap, strict=True)):
        kind = int(kind) if kind in (layout.SAME, layout.WINDOW, layout.BELOW) else layout.LIKELIEST
        sides, table = (costs.a[:, f], costs.b[:, f]), np.append(costs.parts[f].ravel(), 0.0)
        fields.append(Field(kind, *sides, float(costs.width[f]), float(cap), 0.0, float(cap), table))
    return fields


def scan_of_fields(costs: Any, scatter: Array, enough: int) -> Any:
    """Return a function from rows to keys; the GPU counterpart of `risk.linkage.field_links.scan_of_fields`.

    Costs are computed in double precision.
    """
    with cuda.exclusive_gpu() as cupy:
        files = GpuFiles(lay_out_fields(likely_fields(costs), mean=False, known_rows=True))
        keys = smallest_keys(files, files.rows, enough, cupy.asarray(scatter, dtype=cupy.uint32)).get()
    return lambda rows: keys[rows]


class CheapestSearch:
    """The cheapest known records of released ones, by fields of any kind.

    The GPU counterpart of `risk.linkage.pair_search.CheapestPairSearch`. Where records have the same cost, different
    targets get different ones, by their scatter bits.
    """

    def __init__(self, costs: Sequence[Field], *, mean: bool = False) -> None:
        with cuda.exclusive_gpu():
            self.files = GpuFiles(lay_out_fields(costs, mean=mean))

    def __call__(self, targets: Array, keep: int, *, threads: int | None = None) -> tuple[Array, Array]:
        """Return the `keep` cheapest records of each target and minus their costs, best first."""
        with cuda.exclusive_gpu():
            return cheapest(self.files, targets, scatter_bits(targets), keep)


def cheapest(files: GpuFiles, targets: Array, scatter: Array, keep: int) -> tuple[Array, Array]:
    """Return the `keep` cheapest columns of the rows `targets` and minus their costs, best first.

    Candidates, a few more than asked for, are found by their costs in single precision and then ranked in double
    precision.
    """
    cupy, keep = cuda.cupy(), min(keep, files.column_count)
    if keep > MAX_RANKED_KEYS:
        raise cuda.NotForGpu(f"the GPU ranks at most {MAX_RANKED_KEYS} candidates per record")
    index, cost = cupy.empty((len(targets), keep), dtype=cupy.int32), cupy.empty((len(targets), keep))
    for first in range(0, len(targets), MAX_TARGETS):
        part = slice(first, first + MAX_TARGETS)
        _rank(files, targets[part], scatter[part], keep, index[part], cost[part])
    return np.asarray(index.get()), -np.asarray(cost.get())


def _rank(files: GpuFiles, targets: Array, scatter: Array, keep: int, index: Any, cost: Any) -> None:
    cupy, count = cuda.cupy(), len(targets)
    # Spare candidates: rounding to single precision may order nearly equal costs wrongly.
    enough = min(files.column_count, keep + 8 + keep // 8)
    rows = cupy.ascontiguousarray(files.rows[:, cupy.asarray(targets)])
    turns = cupy.asarray(scatter, dtype=cupy.uint32)
    keys = smallest_keys(files, rows, enough, turns)
    files.kernel("rank_candidates")(
        (count,), (32,),
        (rows, np.int32(count), files.columns, np.int32(enough), np.int32(keep), turns, keys, index, cost),
        shared_mem=12 * enough,
    )  # fmt: skip


def scatter_bits(rows: Array) -> Array:
    """Return bits that permute the turns of the columns, different for each row."""
    return ((rows * GOLDEN) % 1 * (1 << 31)).astype(np.int64)


def plain_keys(cost: Array, keep: int, scatter: Array | None = None) -> Array:
    """Return the same as `smallest_keys`, in numpy, from all costs (row, column), which must not be negative."""
    turn = np.arange(cost.shape[1])[np.newaxis] ^ (0 if scatter is None else scatter[:, np.newaxis])
    bits = np.ascontiguousarray(cost, dtype=np.float32).view(np.uint32).astype(np.uint64)
    return np.sort(bits << COST_SHIFT | turn.astype(np.uint64), axis=1)[:, :keep]


def pair_costs(files: GpuFiles, row: Array, column: Array) -> Array:
    """Return the costs of a list of pairs, in double precision."""
    cupy = cuda.cupy()
    files.upload_constants()
    cost = cupy.empty(len(row))
    if len(row):
        files.kernel("pair_costs")(
            (cuda.blocks(len(row), THREADS),), (THREADS,),
            (files.rows, np.int32(files.row_count), files.columns, cupy.asarray(row, dtype=cupy.int32),
             cupy.asarray(column, dtype=cupy.int32), np.int32(len(row)), cost),
        )  # fmt: skip
    return np.asarray(cost.get())


def smallest_keys(files: GpuFiles, rows: Any, keep: int, scatter: Any) -> Any:
    """Return the `keep` smallest keys of each row, ascending.

    Rows are computed tile by tile, so that the lists stay within `cuda.free_bytes()`.
    """
    cupy, count = cuda.cupy(), rows.shape[1]
    keys = cupy.empty((count, keep), dtype=cupy.uint64)
    if count == 0 or keep == 0:
        return keys
    files.upload_constants()
    scans = scan_sizes(files.column_count, keep)
    per_block = THREADS * int(files.layout.settings["ROWS"])
    capacity = list_capacity(scans, keep, parts_for(files, count, per_block, scans[-1]))
    step = max(per_block, cuda.free_bytes() // (8 * capacity + 4 * scans[0]) // per_block * per_block)
    for first in range(0, count, step):
        last = min(count, first + step)
        RowTile(files, rows, first, last, keep, capacity, scans).run(keys[first:last], scatter[first:last])
    return keys


def scan_sizes(columns: int, keep: int) -> list[int]:
    """Return how many columns each scan covers."""
    scans = [min(columns, max(FIRST_COLUMNS, 2 * keep))]
    while scans[-1] * SCAN_GROWTH * SCAN_WORTHWHILE <= columns:
        scans.append(scans[-1] * SCAN_GROWTH)
    return [*scans, columns]


def list_capacity(scans: Sequence[int], keep: int, parts: int) -> int:
    """Return the entries of a list: four times what is expected between two scans, plus what batches leave unused."""
    growth = max(after / before for before, after in pairwise(scans))
    return int(4 * keep * growth) + LIST_BATCH * parts + 64


def parts_for(files: GpuFiles, count: int, per_block: int, columns: int) -> int:
    """Return into how many parts to divide the columns so that every multiprocessor has blocks to run."""
    # Registers (65,536) and threads (2,048) of a multiprocessor limit the blocks that it runs at the same time.
    fit = min(65536 // (files.kernel("list_within").num_regs * THREADS), 2048 // THREADS)
    return layout.column_parts(cuda.blocks(count, per_block), columns, fit * cuda.processors())


class RowTile:
    """Some of the rows, with a list of candidates for each."""

    def __init__(
        self, files: GpuFiles, rows: Any, first: int, last: int, keep: int, capacity: int, scans: Sequence[int]
    ) -> None:
        cupy = cuda.cupy()
        self.files, self.keep, self.capacity, self.scans = files, keep, capacity, scans
        self.rows, self.stride, self.count = rows[:, first:], rows.shape[1], last - first
        self.limit = cupy.empty(self.count, dtype=cupy.float32)
        self.lengths = cupy.empty(self.count, dtype=cupy.uint32)
        self.list = cupy.empty((self.count, capacity, 2), dtype=cupy.uint32)

    def run(self, keys: Any, scatter: Any) -> None:
        """Write the keys of these rows."""
        self.set_first_limit()
        for columns in self.scans[1:]:
            self.scan(columns)
            if columns < self.files.column_count:
                self.tighten_limit()
        self.select_keys(keys, scatter)

    def launch(self, name: str, columns: int, parts: int, *more: Any) -> None:
        """Run a kernel over the rows and `columns` evenly spaced columns, in `parts` parts."""
        per_block = THREADS * int(self.files.layout.settings["ROWS"])
        chunk = layout.chunk_size(columns, parts)
        self.files.kernel(name)(
            (cuda.blocks(self.count, per_block), cuda.blocks(columns, chunk)), (THREADS,),
            (self.rows, self.files.columns, np.int32(self.stride), np.int32(self.count), np.int32(columns),
             np.int32(max(1, self.files.column_count // columns)), np.int32(chunk), *more),
        )  # fmt: skip

    def set_first_limit(self) -> None:
        """Set the limit to the keep-th smallest cost of the first columns, or slightly more."""
        columns = self.scans[0]
        costs = cuda.cupy().empty((columns, self.count), dtype=np.float32)
        self.launch("all_costs", columns, max(1, columns // (4 * TILE)), costs)
        self.files.kernel("kth_smallest")(
            (cuda.blocks(self.count, THREADS),), (THREADS,),
            (costs, np.int32(self.count), np.int32(columns), np.int32(min(self.keep, columns)), self.limit),
        )  # fmt: skip

    def scan(self, columns: int) -> None:
        """List the pairs that cost at most the limit."""
        self.lengths.fill(0)
        parts = parts_for(self.files, self.count, THREADS * int(self.files.layout.settings["ROWS"]), columns)
        self.launch("list_within", columns, parts, self.limit, np.uint32(self.capacity), self.lengths, self.list)

    def tighten_limit(self) -> None:
        """Make the keep-th smallest cost of each list the next limit."""
        self.files.kernel("tighten_limit")(
            (cuda.blocks(self.count, 4),), (128,),
            (np.int32(self.count), np.uint32(self.keep), np.uint32(self.capacity), self.lengths, self.list, self.limit),
        )  # fmt: skip

    def select_keys(self, keys: Any, scatter: Any) -> None:
        """Write the smallest keys of each list; search all columns for rows whose list is incomplete."""
        cupy = cuda.cupy()
        incomplete = cupy.ones(self.count, dtype=cupy.bool_)
        if self.keep <= MAX_SORTED_KEYS:
            self.files.kernel("select_keys")(
                (cuda.blocks(self.count, 4),), (128,),
                (np.int32(self.count), np.uint32(self.keep), np.uint32(self.capacity), self.lengths, self.list, scatter,
                 keys, incomplete),
                shared_mem=4 * 8 * self.keep,
            )  # fmt: skip
        which = cupy.flatnonzero(incomplete).astype(cupy.int32)
        if len(which):
            self.files.kernel("search_rows")(
                (len(which),), (SEARCH_THREADS,),
                (self.rows, self.files.columns, np.int32(self.stride), np.int32(self.files.column_count), which,
                 np.uint32(self.keep), scatter, keys),
            )  # fmt: skip
            keys[which] = cupy.sort(keys[which], axis=1)
