"""The rule that decides which records of a masked file are not protected enough: few neighbors and little
perturbation.

`Unsafe` is the rule; `assess` applies it to a masked file and its original. The confidentiality plot (records) and the
method `Protect` use both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np

from sdcmap.core import Array, Microdata, Positive, Range, SchemaError, Undefined, Value, did_you_mean
from sdcmap.kernels.neighbors.counting import Pairs, is_safe, likeliest_region
from sdcmap.kernels.quantiles import quantile_rank
from sdcmap.recordwise.categories import original_agrees, record_loss, units_agreeing


@dataclass(frozen=True)
class Unsafe(Value):
    """The rule that calls a record unsafe: too few similar units, and too little perturbation to make up for it.

    Parameters
    ----------
    on : the variables an attacker compares; by default the keys of the file.
    k : number of neighbors that makes a record safe, at least 1.
    r : perturbation that makes a record safe, above 0: a share of the record's size, or in the unit of
        `distance="absolute"`.
    q : shape of the line between the two, above 0: 1 is straight (stricter), 0.5 a curve that calls fewer records
        unsafe.
    alpha : share of wrong pairs that lie in a neighborhood, in (0, 1]; it sets the critical distance.
    delta : the critical distance itself, instead of alpha.
    scale : "raw"; "log"; "standardized" by the original's mean and standard deviation.
    distance : "relative" divides by the size of the record, ||y|| (as in the paper; it depends on the units of
        measurement, also on logs); "absolute" does not: a log-difference, or standard deviations. Default: relative,
        but absolute if standardized.
    neighborhood : "distance" takes all units closer than delta; "fellegi-sunter" those at distances where m(z)/u(z) is
        largest, with the same error alpha; "frequency" those with the same combination of categories. Default: by the
        kinds of the variables.
    frequency : with "frequency": count in the "sample" (f_y), or in the "population" (F_y) by weights or its file.
    leave_out : leave out records without a value on the scale (0 and below on logs, size 0) instead of refusing the
        file.

    Formula: safe iff N >= k, or p >= r, or (N/k)^q + (p/r)^q >= 1; with frequencies, safe iff F_y >= k.
    Missing values: a record with one is not judged; where frequencies are counted, a missing value is a suppressed one
    and agrees with all. Weights count only in the population frequency. Households are not used.
    Reference: Seri (2005), sections 2 and 3.

    Examples
    --------
    >>> Unsafe(on=["turnover", "employees"], scale="log").text
    "Unsafe(on=['turnover', 'employees'], scale='log')"
    """

    on: tuple[str, ...] = ()
    k: Annotated[int, Range(1)] = 15
    r: Positive = 0.15
    q: Positive = 1.0
    alpha: Annotated[float, Range(0, 1, "(]")] = 0.05
    delta: Annotated[float | None, Range(0, None, "(]")] = None
    scale: Literal["raw", "log", "standardized"] = "raw"
    distance: Literal["relative", "absolute"] | None = None
    neighborhood: Literal["distance", "fellegi-sunter", "frequency"] | None = None
    frequency: Literal["sample", "population"] = "sample"
    leave_out: bool = False

    def problems(self) -> Iterator[str]:
        if self.scale == "standardized" and self.distance == "relative":
            yield ".distance must be 'absolute' on the standardized scale, where the size of a record means nothing."
        if self.delta is not None and self.neighborhood == "fellegi-sunter":
            yield ".delta needs neighborhood 'distance'; with 'fellegi-sunter' the neighborhood follows from alpha."

    def resolve(self, data: Microdata) -> Unsafe:
        """Return the rule with variables, distance and neighborhood filled in, or raise SchemaError with every
        problem.
        """
        if problems := list(self.incompatibilities(data)):
            raise SchemaError(" ".join(problems))
        names = self.on or data.keys
        numeric = all(data.column(name).levels is None for name in names)
        distance = self.distance or ("absolute" if self.scale == "standardized" else "relative")
        neighborhood = self.neighborhood or ("distance" if numeric else "frequency")
        return replace(self, on=names, distance=distance, neighborhood=neighborhood)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        """Yield every reason why this rule does not fit these data, a sentence each."""
        if not (names := self.on or data.keys):
            yield "Unsafe has no variables to compare. State the keys of the file, or name variables in `on`."
        unknown = [name for name in names if name not in data.names]
        for name in unknown:
            yield f"Unsafe: no column {name!r}.{did_you_mean(name, data.names)}"
        if unknown or self.neighborhood == "frequency":
            return
        categories = [name for name in names if data.column(name).levels is not None]
        if categories and (self.neighborhood is not None or len(categories) < len(names)):
            listed = ", ".join(map(repr, categories))
            yield (
                f"Unsafe: distances need numeric variables, but {listed} is not. State neighborhood='frequency' to count "
                "equal combinations, or name only numeric variables."
            )


@dataclass(frozen=True, eq=False, repr=False)
class Assessment:
    """The result of the rule, with one entry for each judged record."""

    rule: Unsafe
    rows: Array  # rows of the masked file
    links: Array  # their rows in the original
    neighbors: Array  # N(y), or F_y with frequencies
    perturbation: Array  # p, or the information loss with frequencies
    link_in: Array  # whether the record's own original is in the neighborhood
    nearest: Array  # whether no unit is closer than the own original (with frequencies: whether it is the only one)
    rivals: Array  # other units at exactly the same distance, if the own original is nearest
    safe: Array  # by the rule
    left_out: Array  # rows of the masked file without a value on the scale
    delta: float | None = None  # the critical distance; None with frequencies
    region: tuple[tuple[float, float], ...] = ()  # the distances [from, to) of neighbors
    pairs: Pairs | None = None  # the points on the rule's scale; None with frequencies
    counted_to: int | None = None  # where the counting of neighbors stopped, if it did


def assess(
    original: Microdata,
    masked: Microdata,
    rule: Unsafe,
    *,
    count_to: int | None = None,
    threads: int | None = 1,
    population: Microdata | None = None,
) -> Assessment:
    """Apply the rule to a masked file whose rows correspond to those of `original` (or to `masked.origin`)."""
    rule = rule.resolve(original)
    if masked.origin is None and len(masked) != len(original):
        raise SchemaError(f"the masked file has {len(masked)} rows and the original {len(original)}.")
    links = np.arange(len(masked)) if masked.origin is None else masked.origin
    if rule.neighborhood == "frequency":
        return _assess_frequencies(original, masked, rule, links, population)
    rows, pairs, size = _build_cloud(original, masked, rule, links, threads)
    own = pairs.link_distances()
    # The critical distance is the alpha-quantile of the distances between different records.
    rank = quantile_rank(rule.alpha, pairs.nonlinks)
    if rule.neighborhood == "fellegi-sunter":
        count_to = None
        region = tuple(likeliest_region(pairs, rank))
        delta = max((stop for _, stop in region), default=0.0)
        counts = sum((pairs.count(stop) - pairs.count(start) for start, stop in region), np.zeros(len(own), np.int64))
        link_in = np.logical_or.reduce([(start <= own) & (own < stop) for start, stop in region] or [own < 0])
    else:
        delta = pairs.critical_distance(rank) if rule.delta is None else rule.delta
        region = ((0.0, delta),)
        count_to = None if count_to is None else max(count_to, rule.k)
        counts = pairs.count(delta, count_to)
        link_in = own < delta
    perturbation = pairs.link_lengths() / size  # ||y - x|| / ||x||  (eq. 2)
    # Ties matter only where no unit is closer than the own original.
    nearest = ~pairs.has_nearer_than_link()
    ties = np.zeros(len(own), dtype=np.int64)
    ties[nearest] = pairs.ties(np.flatnonzero(nearest))
    safe = is_safe(counts, perturbation, rule.k, rule.r, rule.q)
    left_out = np.delete(np.arange(len(masked)), rows)
    columns = counts, perturbation, link_in, nearest, ties, safe
    return Assessment(rule, rows, links[rows], *columns, left_out, delta, region, pairs, count_to)


def _assess_frequencies(
    original: Microdata, masked: Microdata, rule: Unsafe, links: Array, population: Microdata | None
) -> Assessment:
    """Apply the rule by counting units with the same combination of categories."""
    by_weight = rule.frequency == "population" and population is None
    if by_weight and masked.weight is None:
        raise SchemaError("the population frequency needs a weight in the file, or a population file.")
    weights = masked.weights if by_weight else None
    counts = units_agreeing(masked, rule.on, weights, population if rule.frequency == "population" else None)
    link_in, loss = (of(original, masked, rule.on, links) for of in (original_agrees, record_loss))
    everyone, ties = np.arange(len(masked)), np.zeros(len(masked), dtype=np.int64)
    nearest, safe = link_in & (counts <= 1), counts >= rule.k
    return Assessment(rule, everyone, links, counts, loss, link_in, nearest, ties, safe, everyone[:0])


def _build_cloud(
    original: Microdata, masked: Microdata, rule: Unsafe, links: Array, threads: int | None
) -> tuple[Array, Pairs, Array]:
    """Return the judged rows, the points on the rule's scale, and the size that each perturbation is divided by."""
    x, y = original.matrix(rule.on), masked.matrix(rule.on)
    if (np.abs(x) > MAX_ABSOLUTE_VALUE).any() or (np.abs(y) > MAX_ABSOLUTE_VALUE).any():
        raise SchemaError(f"infinite values in {_quote_names(rule)} have no distance. Make them missing.")
    has_x, has_y = _has_scale_values(x, rule), _has_scale_values(y, rule)
    judged = has_y & has_x[links]
    if has_x.sum() < 2 or not judged.any():
        raise Undefined(TOO_FEW)
    x, y = _on_scale(x, y, has_x, rule)
    unit, size = np.ones(len(y)), np.full(len(y), np.sqrt(len(rule.on)))
    if rule.distance == "relative":
        unit, size = _row_norms(y), _row_norms(x)[links]
        judged = _has_positive_size(judged, unit, size, rule)
    rows, position = np.flatnonzero(judged), np.cumsum(has_x) - 1
    return rows, Pairs.of(y[rows], x[has_x], unit[rows], position[links[rows]], threads), size[rows]


MAX_ABSOLUTE_VALUE = 1e150  # the square of larger values would overflow
TOO_FEW = "neighbors need at least 2 original records with values on the scale, and one in the masked file."


def _quote_names(rule: Unsafe) -> str:
    """Return the variables of the rule, quoted, for an error message."""
    return ", ".join(map(repr, rule.on))


def _on_scale(x: Array, y: Array, has_x: Array, rule: Unsafe) -> tuple[Array, Array]:
    """Return both files on the rule's scale."""
    if rule.scale == "log":
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.log(x), np.log(y)
    if rule.scale == "raw":
        return x, y
    mean, spread = x[has_x].mean(axis=0), x[has_x].std(axis=0, ddof=1)
    if not (spread > 0).all():
        constant = ", ".join(repr(name) for name, s in zip(rule.on, spread, strict=True) if not s > 0)
        raise Undefined(f"{constant} does not vary, so it cannot be standardized.")
    return (x - mean) / spread, (y - mean) / spread


def _has_positive_size(judged: Array, unit: Array, size: Array, rule: Unsafe) -> Array:
    """Return which judged rows have a released and an original size above 0; SchemaError if others may not be left
    out.
    """
    empty = judged & ((unit == 0) | (size == 0))
    if empty.any() and not rule.leave_out:
        raise SchemaError(
            f"{int(empty.sum())} records have size 0 on {_quote_names(rule)}, and a relative distance divides by it. "
            "Leave them out with leave_out=True, or use distance='absolute'."
        )
    if empty.sum() == judged.sum():
        raise Undefined(TOO_FEW)
    return np.asarray(judged & ~empty)


def _has_scale_values(values: Array, rule: Unsafe) -> Array:
    """Return which rows have values on the scale: none missing, and on logs all above 0.

    SchemaError if rows with other values may not be left out.
    """
    known = ~np.isnan(values).any(axis=1)
    if rule.scale != "log":
        return np.asarray(known)
    low = known & (values <= 0).any(axis=1)
    if low.any() and not rule.leave_out:
        raise SchemaError(
            f"{int(low.sum())} records have values of 0 or below in {_quote_names(rule)}, which have no "
            "logarithm. Leave them out with leave_out=True, or use another scale."
        )
    return np.asarray(known & ~low)


def _row_norms(values: Array) -> Array:
    """Return the Euclidean norm of each row."""
    return np.asarray(np.sqrt(sum(column * column for column in values.T)))
