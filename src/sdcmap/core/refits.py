"""Refits: releases of the same method, each fitted without some of the people.

In a synthetic or shuffled file, removing a row does not remove the influence of its person. Membership and inference
therefore need people whom the method has never seen, so the method is run again without a fold of the people. People
inside and outside a refit are exchangeable, because the folds are random.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.random import Generator
from threadpoolctl import threadpool_limits

from sdcmap.core.method import Method
from sdcmap.core.streams import Stream
from sdcmap.data.cells import cells
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Infeasible, SchemaError, Undefined
from sdcmap.kernels.arrays import Array

MAX_CELLS_AT_ONCE = 100_000_000  # of the files that are refitted at the same time


class Folds(NamedTuple):
    """The refits that a measure requests: how many, each without another share `held_out` of the people.

    More refits than there are folds deal the people to new folds.
    """

    times: int
    held_out: float

    @property
    def records(self) -> float:
        """The records of all refits together, as a multiple of the file."""
        return self.times * (1 - self.held_out)


class HalfIn(NamedTuple):
    """The refits that a measure of a few people requests: how many, and who enters each with probability 1/2.

    choose : returns the unit of each record, 0, 1, ...; -1 for records that are in every refit. It is a value that can be
        hashed, so that measures with the same request share the refits.
    """

    times: int
    choose: Callable[[Microdata], Array]

    @property
    def records(self) -> float:
        """The records of all refits together, as a multiple of the file. Nearly everyone is in each refit."""
        return float(self.times)


RefitRequest: TypeAlias = Folds | HalfIn


@dataclass(frozen=True)
class EveryoneIn:
    """The choice of `HalfIn` that leaves nobody out: each refit is another draw of the method on the whole file."""

    def __call__(self, data: Microdata) -> Array:
        return np.full(len(data), -1)


class Refit(NamedTuple):
    """One refit: the released file, with `origin` counted in the original file, and the records left out of it."""

    released: Microdata
    outside: Array


def count_folds(held_out: float) -> int:
    """Return the number of folds for a share `held_out`, at least 2.

    >>> count_folds(0.2), count_folds(0.9)
    (5, 2)
    """
    return max(2, round(min(1 / held_out, 2**53)))


def refit_without(
    data: Microdata, method: Method, stream: Stream, request: RefitRequest, threads: int = 1
) -> tuple[Refit, ...]:
    """Return the refits of a method, each with its own stream below `stream`; raise Undefined where one is not possible.

    threads : that make refits at the same time; results do not depend on their number. A large file is refitted by fewer.
    """
    if isinstance(request, HalfIn):
        parts = _plan_half_in(data, stream, request)
    else:
        parts = _plan_folds(data, method, stream, request)
    make = partial(_refit, data, method)
    threads = min(threads, len(parts), MAX_CELLS_AT_ONCE // max(1, len(data) * len(data.names)))
    if threads < 2:
        return tuple(make(*part) for part in parts)
    # each thread has one core, so the libraries that a method calls take no other
    with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
        running = [pool.submit(copy_context().run, partial(make, *part)) for part in parts]
        return tuple(refit.result() for refit in running)


def _plan_folds(data: Microdata, method: Method, stream: Stream, request: Folds) -> list[tuple[Stream, Array]]:
    """Return the stream of each refit, and who is left out of it."""
    own = stream.child(f"makings without {request.held_out!r}")
    # the folds respect the strata of the file and of the method, so that no refit lacks a whole stratum
    strata = tuple(dict.fromkeys((*data.schema.of_role("stratum"), *(n for step in method.steps for n in step.within))))
    count = count_folds(request.held_out)
    streams = [own, *(own.child(f"deal {number}") for number in range(1, math.ceil(request.times / count)))]
    deals = [assign_folds(data, request.held_out, strata, deal.rng()) for deal in streams]
    return [(own.child(f"fold {k}"), deals[k // count] == k % count) for k in range(request.times)]


def _plan_half_in(data: Microdata, stream: Stream, request: HalfIn) -> list[tuple[Stream, Array]]:
    own = stream.child(f"half in: {request.choose!r}")
    unit = request.choose(data)
    inside = draw_half_in(int(unit.max(initial=-1)) + 1, request.times, own.rng())
    parts = []
    for k in range(request.times):
        outside = np.zeros(len(data), dtype=bool)
        outside[unit >= 0] = ~inside[unit[unit >= 0], k]
        parts.append((own.child(f"refit {k}"), outside))
    return parts


def draw_half_in(units: int, times: int, rng: Generator) -> Array:
    """Return which units (rows) are in which refits (columns): each with probability 1/2, and in half of the refits.

    Units 0 and 1, 2 and 3, and so on have opposite refits. Half of the units of any such pairs are in each refit, so what
    all scores of a refit have in common does not make members differ from others.
    """
    is_in = np.argsort(rng.random(((units + 1) // 2, times)), axis=1) < times // 2
    return np.stack([is_in, ~is_in], axis=1).reshape(-1, times)[:units]


def assign_folds(data: Microdata, held_out: float, strata: tuple[str, ...], rng: Generator) -> Array:
    """Return the fold of each record: 0, 1, ....

    Each fold has a share `held_out` of the people. The records of a person, else of a household, stay together, and each
    stratum is spread over the folds as evenly as possible.
    """
    _, first, unit_of_record = np.unique(data.units, return_index=True, return_inverse=True)
    # Units are dealt to the folds in a random order. Sorting them by stratum afterwards keeps that order within a
    # stratum and deals each stratum evenly.
    order = rng.permutation(len(first))
    if strata:
        order = order[np.argsort(data.view(cells, strata).code[first][order], kind="stable")]
    rank = np.empty(len(first), dtype=np.int64)
    rank[order] = np.arange(len(first))
    return np.asarray((rank % count_folds(held_out))[unit_of_record])


def _refit(data: Microdata, method: Method, stream: Stream, outside: Array) -> Refit:
    inside = np.flatnonzero(~outside)
    part = data.take(inside)
    try:
        release = method.apply(Microdata(part.schema, part.columns), stream)
    except (Infeasible, SchemaError) as reason:
        raise Undefined(f"the method cannot be refitted without some of the people: {reason}") from None
    origin = inside if release.origin is None else inside[release.origin]
    columns = {name: release.column(name) for name in release.names}
    return Refit(Microdata(release.schema, columns, origin, paired=release.paired), outside)
