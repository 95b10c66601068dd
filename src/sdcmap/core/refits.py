"""Makings: releases of the same method, each made without some of the people, who are then outside it.

A file whose rows are nobody's, or whose values were dealt out among records, leaves nobody to compare with: taking a row
out does not take its person out. So the method is run again without a fold of the people. Those who were in the making and
those who were not are exchangeable, because chance alone told them apart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from sdcmap.core.method import Method
from sdcmap.core.streams import Stream
from sdcmap.data.cells import cells
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Infeasible, SchemaError, Undefined
from sdcmap.kernels.arrays import Array


class Folds(NamedTuple):
    """The makings that a measure asks for: how many, each without another share `held_out` of the people."""

    times: int
    held_out: float


class Refit(NamedTuple):
    """One of them: the released file, its `origin` counted in the original, and who of the original is outside it."""

    released: Microdata
    outside: Array


def count_folds(held_out: float) -> int:
    """How many folds of a share `held_out` there are, at least 2.

    >>> count_folds(0.2), count_folds(0.9)
    (5, 2)
    """
    return max(2, round(min(1 / held_out, 2**53)))


def refit_without(data: Microdata, method: Method, stream: Stream, folds: Folds) -> tuple[Refit, ...]:
    """The makings of a method, drawn from streams of their own below `stream`; Undefined where one cannot be made."""
    own = stream.child(f"makings without {folds.held_out!r}")
    strata = tuple(dict.fromkeys((*data.schema.of_role("stratum"), *(n for step in method.steps for n in step.within))))
    fold = assign_folds(data, folds.held_out, strata, own.rng())
    return tuple(_refit(data, method, own.child(f"fold {k}"), fold == k) for k in range(folds.times))


def assign_folds(data: Microdata, held_out: float, strata: tuple[str, ...], rng: Generator) -> Array:
    """The fold of each record, 0, 1, ...: a share `held_out` of the people in each, households whole, and each stratum
    spread over the folds as evenly as it can be."""
    households = () if data.household is None else (data.household,)
    unit = data.view(cells, households).code if households else np.arange(len(data))
    _, first, place = np.unique(unit, return_index=True, return_inverse=True)
    order = rng.permutation(len(first))
    if strata:
        order = order[np.argsort(data.view(cells, strata).code[first][order], kind="stable")]
    rank = np.empty(len(first), dtype=np.int64)
    rank[order] = np.arange(len(first))
    return np.asarray((rank % count_folds(held_out))[place])


def _refit(data: Microdata, method: Method, stream: Stream, outside: Array) -> Refit:
    kept = np.flatnonzero(~outside)
    part = data.take(kept)
    try:
        made = method.apply(Microdata(part.schema, part.columns), stream)
    except (Infeasible, SchemaError) as reason:
        raise Undefined(f"the release cannot be made without some of the people, to compare with: {reason}") from None
    origin = kept if made.origin is None else kept[made.origin]
    columns = {name: made.column(name) for name in made.names}
    return Refit(Microdata(made.schema, columns, origin, paired=made.paired), outside)
