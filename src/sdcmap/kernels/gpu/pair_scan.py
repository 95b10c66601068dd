"""The cheapest columns of each row, all pairs on the card.

A cost has a key, its bits in single precision above the column's turn (its number, stirred by the row's `scatter`: 0 is the
order of the file); the `keep` smallest keys of each row are what is asked for, and no two are equal, so that ties are
settled by rule, however many they are. Pairs are looked at three times or more, each time with a bound from the time
before: of FIRST columns the keep-th smallest cost is found, so no more can be needed; of SPREAD times as many what is
within that bound is listed, and its keep-th is a closer bound; and so on to all of them. Rows whose list overflows, because
more columns cost the same than a list holds, are searched again one by one, by the digits of their keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from . import cuda, layout
from .layout import SEARCHERS, THREADS, TILE, Array, Field, OnCard, laid_fields

FIRST, SPREAD, WORTH = 1024, 8, 7  # columns of the first look; each look after it has so many times as many
BATCH = 8  # places of a list that are taken at once
SORTED, MOST = 512, 2048  # keys of a row that are brought in order at once; that are ranked, at most
PART = 1 << 20  # targets of one search
GOLDEN = 0.6180339887498949  # its multiples scatter evenly which of equals each row takes
HALF, LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


def cheapest_keys(a: Array, slope: Array, cap: Array, b: Array, square: bool, keep: int) -> Array:
    """The `keep` smallest keys of each row, rising; in single precision, sum min(cap, slope |a - b|) or sum (a - b)^2."""
    with cuda.alone() as cupy:
        files = OnCard(layout.laid_capped(a, slope, cap, b, square))
        order_of_file = cupy.zeros(files.count, dtype=cupy.uint32)
        return np.asarray(keys_on_card(files, files.rows, min(keep, files.of), order_of_file).get())


def scan_of(costs: tuple[Array, Array, Array, Array, bool], chunks: Sequence[Array], enough: int) -> Any:
    """The twin of `risk.linkage.link_search.scan_of`: all rows at once, handed out in chunks."""
    a, slope, cap, b, square = costs
    keys = cheapest_keys(a, slope, cap, b, square, enough)
    return lambda rows: (keys[rows], 0)


def likely_fields(costs: Any) -> list[Field]:
    """The windows, equalities and mixtures of `risk.linkage.field_links.FieldCosts` as fields; a mixture counts by its
    likeliest component."""
    fields = []
    for f, (kind, cap) in enumerate(zip(costs.kind, costs.cap, strict=True)):
        kind = int(kind) if kind in (layout.SAME, layout.WINDOW, layout.BELOW) else layout.LIKELIEST
        sides, table = (costs.a[:, f], costs.b[:, f]), np.append(costs.parts[f].ravel(), 0.0)
        fields.append(Field(kind, *sides, float(costs.width[f]), float(cap), 0.0, float(cap), table))
    return fields


def scan_of_fields(costs: Any, scatter: Array, enough: int) -> Any:
    """The twin of `risk.linkage.field_links.scan_of_fields`, in double precision."""
    with cuda.alone() as cupy:
        files = OnCard(laid_fields(likely_fields(costs), mean=False, known_rows=True))
        keys = keys_on_card(files, files.rows, enough, cupy.asarray(scatter, dtype=cupy.uint32)).get()
    return lambda rows: keys[rows]


class CheapestSearch:
    """Search for the cheapest known records of released ones; the twin of `risk.linkage.pair_search.CheapestSearch`.

    Each target takes different ones of equally cheap records, by its scatter.
    """

    def __init__(self, costs: Sequence[Field], *, mean: bool = False) -> None:
        with cuda.alone():
            self.files = OnCard(laid_fields(costs, mean=mean))

    def __call__(self, targets: Array, keep: int, *, threads: int | None = None) -> tuple[Array, Array]:
        """The `keep` cheapest of each target and minus their costs, best first."""
        with cuda.alone():
            return cheapest(self.files, targets, scatter_of(targets), keep)


def cheapest(files: OnCard, targets: Array, scatter: Array, keep: int) -> tuple[Array, Array]:
    """The `keep` cheapest columns of the rows `targets` and minus their costs, best first. Candidates are found by the
    first 24 binary digits of their costs, a few more than asked for, and then ranked by all of them."""
    cupy, keep = cuda.cupy(), min(keep, files.of)
    if keep > MOST:
        raise cuda.Unfit(f"candidates are ranked on the GPU up to {MOST} a record")
    index, cost = cupy.empty((len(targets), keep), dtype=cupy.int32), cupy.empty((len(targets), keep))
    for first in range(0, len(targets), PART):
        part = slice(first, first + PART)
        _rank(files, targets[part], scatter[part], keep, index[part], cost[part])
    return np.asarray(index.get()), -np.asarray(cost.get())


def _rank(files: OnCard, targets: Array, scatter: Array, keep: int, index: Any, cost: Any) -> None:
    cupy, count = cuda.cupy(), len(targets)
    enough = min(files.of, keep + 8 + keep // 8)
    rows = cupy.ascontiguousarray(files.rows[:, cupy.asarray(targets)])
    turns = cupy.asarray(scatter, dtype=cupy.uint32)
    keys = keys_on_card(files, rows, enough, turns)
    files.kernel("ranked")(
        (count,), (32,),
        (rows, np.int32(count), files.columns, np.int32(enough), np.int32(keep), turns, keys, index, cost),
        shared_mem=12 * enough,
    )  # fmt: skip


def scatter_of(rows: Array) -> Array:
    """Bits that stir the turns of columns, others for each row."""
    return ((rows * GOLDEN) % 1 * (1 << 31)).astype(np.int64)


def plain_keys(cost: Array, keep: int, scatter: Array | None = None) -> Array:
    """What `keys_on_card` gives, from all costs (row, column), float32 and none negative."""
    turn = np.arange(cost.shape[1])[np.newaxis] ^ (0 if scatter is None else scatter[:, np.newaxis])
    bits = np.ascontiguousarray(cost, dtype=np.float32).view(np.uint32).astype(np.uint64)
    return np.sort(bits << HALF | turn.astype(np.uint64), axis=1)[:, :keep]


def listed_costs(files: OnCard, row: Array, column: Array) -> Array:
    """The costs of pairs in double precision, one by one."""
    cupy = cuda.cupy()
    files.ready()
    cost = cupy.empty(len(row))
    if len(row):
        files.kernel("listed_costs")(
            (cuda.blocks(len(row), THREADS),), (THREADS,),
            (files.rows, np.int32(files.count), files.columns, cupy.asarray(row, dtype=cupy.int32),
             cupy.asarray(column, dtype=cupy.int32), np.int32(len(row)), cost),
        )  # fmt: skip
    return np.asarray(cost.get())


def keys_on_card(files: OnCard, rows: Any, keep: int, scatter: Any) -> Any:
    """The `keep` smallest keys of each row, rising; tile by tile of rows, so that lists stay within `card.room`."""
    cupy, count = cuda.cupy(), rows.shape[1]
    keys = cupy.empty((count, keep), dtype=cupy.uint64)
    if count == 0 or keep == 0:
        return keys
    files.ready()
    looks = looks_at(files.of, keep)
    per_block = THREADS * int(files.laid.settings["ROWS"])
    room = room_of(looks, keep, lanes_of(files, count, per_block, looks[-1]))
    step = max(per_block, cuda.room() // (8 * room + 4 * looks[0]) // per_block * per_block)
    for first in range(0, count, step):
        last = min(count, first + step)
        Tile(files, rows, first, last, keep, room, looks).run(keys[first:last], scatter[first:last])
    return keys


def looks_at(columns: int, keep: int) -> list[int]:
    """How many columns are looked at, one time after the other."""
    looks = [min(columns, max(FIRST, 2 * keep))]
    while looks[-1] * SPREAD * WORTH <= columns:
        looks.append(looks[-1] * SPREAD)
    return [*looks, columns]


def room_of(looks: Sequence[int], keep: int, lanes: int) -> int:
    """Places of a list: four times what is expected between two looks, and what batches leave empty."""
    wider = max(after / before for before, after in pairwise(looks))
    return int(4 * keep * wider) + BATCH * lanes + 64


def lanes_of(files: OnCard, count: int, per_block: int, seen: int) -> int:
    """Parts of the columns, so that every multiprocessor has blocks to run."""
    fit = min(65536 // (files.kernel("within").num_regs * THREADS), 2048 // THREADS)
    return layout.lanes_for(cuda.blocks(count, per_block), seen, fit * cuda.processors())


class Tile:
    """Some rows and their lists."""

    def __init__(
        self, files: OnCard, rows: Any, first: int, last: int, keep: int, room: int, looks: Sequence[int]
    ) -> None:
        cupy = cuda.cupy()
        self.files, self.keep, self.room, self.looks = files, keep, room, looks
        self.rows, self.stride, self.count = rows[:, first:], rows.shape[1], last - first
        self.limit = cupy.empty(self.count, dtype=cupy.float32)
        self.taken = cupy.empty(self.count, dtype=cupy.uint32)
        self.list = cupy.empty((self.count, room, 2), dtype=cupy.uint32)

    def run(self, keys: Any, scatter: Any) -> None:
        """Write the keys of these rows."""
        self.first_limit()
        for seen in self.looks[1:]:
            self.scan(seen)
            if seen < self.files.of:
                self.tighten()
        self.settle(keys, scatter)

    def launch(self, name: str, seen: int, lanes: int, *more: Any) -> None:
        """A kernel over the rows and `seen` of the columns, in so many parts."""
        per_block = THREADS * int(self.files.laid.settings["ROWS"])
        chunk = layout.chunk_of(seen, lanes)
        self.files.kernel(name)(
            (cuda.blocks(self.count, per_block), cuda.blocks(seen, chunk)), (THREADS,),
            (self.rows, self.files.columns, np.int32(self.stride), np.int32(self.count), np.int32(seen),
             np.int32(max(1, self.files.of // seen)), np.int32(chunk), *more),
        )  # fmt: skip

    def first_limit(self) -> None:
        """The keep-th smallest cost of the first columns, or a little more."""
        some = self.looks[0]
        costs = cuda.cupy().empty((some, self.count), dtype=np.float32)
        self.launch("all_costs", some, max(1, some // (4 * TILE)), costs)
        self.files.kernel("kth_smallest")(
            (cuda.blocks(self.count, THREADS),), (THREADS,),
            (costs, np.int32(self.count), np.int32(some), np.int32(min(self.keep, some)), self.limit),
        )  # fmt: skip

    def scan(self, seen: int) -> None:
        """List what costs at most the limit."""
        self.taken.fill(0)
        lanes = lanes_of(self.files, self.count, THREADS * int(self.files.laid.settings["ROWS"]), seen)
        self.launch("within", seen, lanes, self.limit, np.uint32(self.room), self.taken, self.list)

    def tighten(self) -> None:
        """The keep-th smallest cost of each list is the next limit."""
        self.files.kernel("tighten")(
            (cuda.blocks(self.count, 4),), (128,),
            (np.int32(self.count), np.uint32(self.keep), np.uint32(self.room), self.taken, self.list, self.limit),
        )  # fmt: skip

    def settle(self, keys: Any, scatter: Any) -> None:
        """The smallest keys of each list; of rows whose list does not tell, those of all columns."""
        cupy = cuda.cupy()
        odd = cupy.ones(self.count, dtype=cupy.bool_)
        if self.keep <= SORTED:
            self.files.kernel("settle")(
                (cuda.blocks(self.count, 4),), (128,),
                (np.int32(self.count), np.uint32(self.keep), np.uint32(self.room), self.taken, self.list, scatter, keys,
                 odd),
                shared_mem=4 * 8 * self.keep,
            )  # fmt: skip
        which = cupy.flatnonzero(odd).astype(cupy.int32)
        if len(which):
            self.files.kernel("search")(
                (len(which),), (SEARCHERS,),
                (self.rows, self.files.columns, np.int32(self.stride), np.int32(self.files.of), which, np.uint32(self.keep),
                 scatter, keys),
            )  # fmt: skip
            keys[which] = cupy.sort(keys[which], axis=1)
