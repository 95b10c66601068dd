"""Error of counting queries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
import polars as pl

from sdcmap.core import Array, Estimate, Generator, Measure, Microdata, Range, Stream, Undefined
from sdcmap.kernels.jit import inner_jit, jit
from sdcmap.utility._numeric import WeightedMeasure, numbers_of

# Counting queries, each with ranges in some variables.


CACHE_BLOCK_RECORDS = 4096  # so that a block stays in the processor cache while all queries scan it


def ranges_around(known: Array, values: Array, width: float, rng: Generator) -> tuple[Array, Array]:
    """Draw ranges around `values` that each contain a share `width` of the sorted numbers `known`.

    A range may lie anywhere around its value. Near an end of the data it is shifted rather than cut, so that all are
    equally wide.
    """
    position = np.searchsorted(known, values)
    span = max(round(width * len(known)), 1) - 1
    first, last = np.maximum(position - span, 0), np.minimum(position, len(known) - 1 - span)
    start = first + (rng.random(len(values)) * (last - first + 1)).astype(np.int64)
    return known[start], known[start + span]


@jit
def range_sums(columns: Array, weights: Array, low: Array, high: Array) -> Array:
    """Return, for each query, the sum of the weights of the records in its ranges.

    A record i is in query q if low[q, v] <= columns[v, i] <= high[q, v] for every variable v of the query (low is not
    NaN). Without weights (an empty array) records are counted. A missing value is in no range.
    """
    counts = np.zeros(len(low))
    count = columns.shape[1]
    for start in range(0, count, CACHE_BLOCK_RECORDS):
        stop = min(start + CACHE_BLOCK_RECORDS, count)
        inside = np.empty(stop - start, dtype=np.uint8)
        for q in range(len(low)):
            inside[:] = 1
            for v in range(len(columns)):
                if not np.isnan(low[q, v]):
                    _narrow(inside, columns[v, start:stop], low[q, v], high[q, v])
            counts[q] += _number(inside) if len(weights) == 0 else _weight(inside, weights[start:stop])
    return counts


@inner_jit
def _narrow(inside: Array, x: Array, low: float, high: float) -> None:
    """Exclude the records outside one range."""
    for i in range(len(inside)):
        inside[i] &= (x[i] >= low) & (x[i] <= high)


@inner_jit
def _number(inside: Array) -> float:
    """Count the records."""
    total = 0
    for i in range(len(inside)):
        total += inside[i]
    return float(total)


@inner_jit
def _weight(inside: Array, weights: Array) -> float:
    """Sum the weights of the records."""
    total = 0.0
    for i in range(len(inside)):
        total += weights[i] * inside[i]
    return total


@dataclass(frozen=True)
class QueryError(WeightedMeasure):
    """Relative error of a count that a user asks for: how many records lie in ranges of some variables.

    Parameters
    ----------
    weighted : weighted counts; needs a weight. Without it, counts are scaled to the original number of records, as a
        user of a sample or of synthetic data would do.
    queries : the number of random queries, at least 100.
    ways : the number of variables of a query, at least 1.
    width : the share of the records in the range of a variable, in (0, 1]; for a nominal variable a query asks for one
        category.
    draw : the number of the random draw of queries; all candidates of a study get the same queries.

    Formula: the mean over queries of |g - f|/f, f and g the counts before and after. A query is drawn around a record
        of the original, so that f > 0: random variables, each range anywhere around the record's value. `parts`: the
        median. The standard error is that of the draw.
    Missing values are in no range; if the drawn record has one, the query does not use that variable. A category that
    the original does not have is in no range either; undefined if numbers were recoded into categories. Weights: used
    when `weighted`; records are then drawn by weight. Households are not used. Works for sampled and synthetic files.
    Releasing nothing answers every query with 0: error 1.
    Reference: Zhang, Koudas, Srivastava, Yu (2007), section 5; LeFevre, DeWitt, Ramakrishnan (2006), section 5.

    Examples
    --------
    >>> QueryError(on=["age", "income"], queries=500).text
    "QueryError(on=['age', 'income'], queries=500)"
    """

    label: ClassVar[str] = "Mean error of random counts"
    description: ClassVar[str] = "Average relative error when a user counts the records that meet random conditions."

    unit: ClassVar[str] = "relative error of a count"
    paired: ClassVar[bool] = False
    baseline_value: ClassVar[float | None] = 1.0
    sampled: ClassVar[bool] = True
    missing: ClassVar[str] = "in no range"

    # 2: ranges near an end are as wide as the others; 3: the same queries for all candidates
    revision: ClassVar[int] = 3

    queries: Annotated[int, Range(100)] = 1000
    ways: Annotated[int, Range(1)] = 2
    width: Annotated[float, Range(0, 1, "(]")] = 0.3
    draw: Annotated[int, Range(0)] = 0

    def resample(self) -> Measure:
        return replace(self, draw=self.draw + 1)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.check_variables(original)
        low, high, truth = original.remember(("queries", self.digest), lambda: self._prepare_queries(original, names))
        after = np.stack([_numbers_after(original, masked, name) for name in names])
        answer = range_sums(after, self.weights_of(masked) if self.weighted else np.empty(0), low, high)
        if not self.weighted:
            answer *= len(original) / len(masked)
        error = np.abs(answer - truth) / truth
        se = float(error.std(ddof=1) / np.sqrt(self.queries))
        return Estimate(value=float(error.mean()), se=se, parts={"median": float(np.median(error))})

    def _prepare_queries(self, data: Microdata, names: tuple[str, ...]) -> tuple[Array, Array, Array]:
        """Return the queries and the true counts."""
        columns, weights = data.view(_own_numbers, names), self.weights_of(data)
        low, high = self._draw_queries(data, names, columns, weights)
        return low, high, range_sums(columns, weights if self.weighted else np.empty(0), low, high)

    def _draw_queries(
        self, data: Microdata, names: tuple[str, ...], columns: Array, weights: Array
    ) -> tuple[Array, Array]:
        """Draw the range of each query in each variable; NaN for variables that it does not use."""
        rng = Stream.of_seed(0, "queries", str(self.draw)).rng()
        shares = np.cumsum(weights)
        rows = np.searchsorted(shares, rng.random(self.queries) * shares[-1], side="right")
        if np.isnan(columns).all():
            raise Undefined("no measured value is known in the original.")
        order = rng.permuted(np.tile(np.arange(len(names)), (self.queries, 1)), axis=1)
        low, high = np.full((2, *order.shape), np.nan)
        for v, name in enumerate(names):
            known = np.sort(columns[v][~np.isnan(columns[v])])
            values = columns[v][rows]
            # a query uses the first `ways` variables of its random order
            used = np.flatnonzero((order[:, : self.ways] == v).any(axis=1) & ~np.isnan(values))
            if data.schema[name].kind == "nominal" or len(known) == 0:
                low[used, v] = high[used, v] = values[used]
            else:
                low[used, v], high[used, v] = ranges_around(known, values[used], self.width, rng)
        return low, high


def _own_numbers(data: Microdata, names: tuple[str, ...]) -> Array:
    """Return the variables as numbers, one per row, as a view: categories as codes, missing as NaN."""
    return np.stack([_numbers_after(data, data, name) for name in names])


def _numbers_after(original: Microdata, masked: Microdata, name: str) -> Array:
    """Return one released variable as numbers: categories by their code in the original, NaN if it has none."""
    levels, own = original.column(name).levels, masked.column(name).levels
    if levels is None:
        return numbers_of(masked, name)
    if own is None:
        raise Undefined(f"{name!r} has categories in the original and numbers in the released file.")
    if levels.dtype.is_numeric() != own.dtype.is_numeric():
        levels, own = levels.cast(pl.String), own.cast(pl.String)
    code_of = {level: float(code) for code, level in enumerate(levels.to_list()) if level is not None}
    codes = np.array([code_of.get(level, np.nan) for level in own.to_list()])
    return np.asarray(codes[masked.column(name).values])
