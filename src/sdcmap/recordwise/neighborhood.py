"""Which records of a masked file are not protected enough: few neighbors and little perturbation.

`Unsafe` is the rule as a value; `assess` applies it to a file and its original. Both the confidentiality plot (records) and
the method `Protect` stand on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np

from sdcmap.core import Array, Microdata, Positive, Range, SchemaError, Undefined, Value, did_you_mean
from sdcmap.kernels.neighbors.counting import Pairs, is_safe, likeliest_region
from sdcmap.kernels.quantiles import rank_of
from sdcmap.recordwise.categories import original_agrees, record_loss, units_agreeing


@dataclass(frozen=True)
class Unsafe(Value):
    """The rule that calls a record unsafe: too few similar units, and too little perturbation to make up for it.

    Parameters
    ----------
    on : the variables a snooper compares; by default the keys of the file.
    k : so many neighbors make a record safe, at least 1.
    r : so much perturbation makes it safe, above 0: a share of the record's size, or in the unit of `distance="absolute"`.
    q : shape of the line between the two, above 0: 1 is straight (stricter), 0.5 a curve that calls fewer unsafe.
    alpha : share of wrong pairs that lie in a neighborhood, in (0, 1]; it sets the critical distance.
    delta : the critical distance itself, instead of alpha.
    scale : "raw"; "log"; "standardized" by the original's mean and standard deviation.
    distance : "relative" divides by the size of the record, ||y|| (the paper's; it moves with the units of measurement,
        also on logs); "absolute" does not: a log-difference, or standard deviations. Default: relative, and absolute where
        standardized.
    neighborhood : "distance" takes all units nearer than delta; "fellegi-sunter" those at distances where m(z)/u(z) is
        largest, with the same error alpha; "frequency" those with the same combination of categories. Default: by the
        kinds of the variables.
    frequency : with "frequency": counted in the "sample" (f_y), or in the "population" (F_y) by weights or its file.
    leave_out : leave out records that have no place on the scale (0 and below on logs, size 0) and do not refuse the file.

    Formula: safe iff N >= k, or p >= r, or (N/k)^q + (p/r)^q >= 1; with frequencies, safe iff F_y >= k.
    Missing values: a record with one has no place and is not judged; where frequencies are counted, a missing value is a
    suppressed one and agrees with all. Weights count in the population frequency alone. Households are not used.
    Reference: Seri (2005), sections 2 and 3.

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
            yield ".delta belongs to the neighborhood 'distance': that of 'fellegi-sunter' follows from alpha."

    def resolved(self, data: Microdata) -> Unsafe:
        """The same rule with variables, distance and neighborhood written out, or SchemaError with every misfit."""
        if problems := list(self.incompatibilities(data)):
            raise SchemaError(" ".join(problems))
        names = self.on or data.keys
        numeric = all(data.column(name).levels is None for name in names)
        distance = self.distance or ("absolute" if self.scale == "standardized" else "relative")
        neighborhood = self.neighborhood or ("distance" if numeric else "frequency")
        return replace(self, on=names, distance=distance, neighborhood=neighborhood)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        """Every reason why this rule does not fit these data, a sentence each."""
        if not (names := self.on or data.keys):
            yield "Unsafe has no variables to compare: state keys, or name them in `on`."
        unknown = [name for name in names if name not in data.names]
        for name in unknown:
            yield f"Unsafe: no column {name!r}.{did_you_mean(name, data.names)}"
        if unknown or self.neighborhood == "frequency":
            return
        categories = [name for name in names if data.column(name).levels is not None]
        if categories and (self.neighborhood is not None or len(categories) < len(names)):
            listed = ", ".join(map(repr, categories))
            yield (
                f"Unsafe: distances need numeric variables, and {listed} is not. State neighborhood='frequency' to count "
                "equal combinations, or name numeric variables alone."
            )


@dataclass(frozen=True, eq=False, repr=False)
class Assessment:
    """What the rule finds, one entry a judged record.

    rows : the judged records, as rows of the masked file. links : their rows in the original.
    neighbors : N(y) or F_y. perturbation : p, or the record's information loss where frequencies are counted.
    link_in : whether its own original is in the neighborhood. nearest : whether no unit is nearer than its own original
        (with frequencies: whether it is the only one). rivals : other units exactly as near, where it is nearest.
    safe : by the rule. left_out : rows of the masked file that have no place.
    delta : the critical distance; None with frequencies. region : the distances [from, to) that make a neighbor.
    pairs : the cloud of points on the rule's scale; None with frequencies. counted_to : where counting stopped, if it did.
    """

    rule: Unsafe
    rows: Array
    links: Array
    neighbors: Array
    perturbation: Array
    link_in: Array
    nearest: Array
    rivals: Array
    safe: Array
    left_out: Array
    delta: float | None = None
    region: tuple[tuple[float, float], ...] = ()
    pairs: Pairs | None = None
    counted_to: int | None = None


def assess(
    original: Microdata, masked: Microdata, rule: Unsafe, *, count_to: int | None = None, threads: int | None = 1,
    population: Microdata | None = None,
) -> Assessment:  # fmt: skip
    """The rule applied to a masked file whose rows are known to be those of `original` (or `masked.origin`)."""
    rule = rule.resolved(original)
    if masked.origin is None and len(masked) != len(original):
        raise SchemaError(f"the masked file has {len(masked)} rows and the original {len(original)}.")
    links = np.arange(len(masked)) if masked.origin is None else masked.origin
    if rule.neighborhood == "frequency":
        return _by_frequency(original, masked, rule, links, population)
    rows, pairs, size = _cloud(original, masked, rule, links, threads)
    own = pairs.link_distances()
    rank = rank_of(rule.alpha, pairs.nonlinks)
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
    nearest = ~pairs.nearer_than_link()
    ties = np.zeros(len(own), dtype=np.int64)
    ties[nearest] = pairs.ties(np.flatnonzero(nearest))
    safe = is_safe(counts, perturbation, rule.k, rule.r, rule.q)
    left_out = np.delete(np.arange(len(masked)), rows)
    found = counts, perturbation, link_in, nearest, ties, safe
    return Assessment(rule, rows, links[rows], *found, left_out, delta, region, pairs, count_to)


def _by_frequency(
    original: Microdata, masked: Microdata, rule: Unsafe, links: Array, population: Microdata | None
) -> Assessment:
    by_weight = rule.frequency == "population" and population is None
    if by_weight and masked.weight is None:
        raise SchemaError("the population frequency needs a weight in the file, or a population file.")
    weights = masked.weights if by_weight else None
    counts = units_agreeing(masked, rule.on, weights, population if rule.frequency == "population" else None)
    link_in, loss = (of(original, masked, rule.on, links) for of in (original_agrees, record_loss))
    everyone, ties = np.arange(len(masked)), np.zeros(len(masked), dtype=np.int64)
    nearest, safe = link_in & (counts <= 1), counts >= rule.k
    return Assessment(rule, everyone, links, counts, loss, link_in, nearest, ties, safe, everyone[:0])


def _cloud(
    original: Microdata, masked: Microdata, rule: Unsafe, links: Array, threads: int | None
) -> tuple[Array, Pairs, Array]:
    """The judged rows, the cloud of points on the rule's scale, and the size that each perturbation is divided by."""
    x, y = original.matrix(rule.on), masked.matrix(rule.on)
    if (np.abs(x) > LARGEST).any() or (np.abs(y) > LARGEST).any():
        raise SchemaError(f"infinite values in {_listed(rule)} have no distance: make them missing.")
    has_x, has_y = _with_place(x, rule), _with_place(y, rule)
    judged = has_y & has_x[links]
    if has_x.sum() < 2 or not judged.any():
        raise Undefined(TOO_FEW)
    x, y = _on_scale(x, y, has_x, rule)
    unit, size = np.ones(len(y)), np.full(len(y), np.sqrt(len(rule.on)))
    if rule.distance == "relative":
        unit, size = _norm(y), _norm(x)[links]
        judged = _with_size(judged, unit, size, rule)
    rows, place = np.flatnonzero(judged), np.cumsum(has_x) - 1
    return rows, Pairs.of(y[rows], x[has_x], unit[rows], place[links[rows]], threads), size[rows]


LARGEST = 1e150  # the square of anything beyond is infinite
TOO_FEW = "neighbors need at least 2 records with a place on the scale, and one of them in the masked file."


def _listed(rule: Unsafe) -> str:
    return ", ".join(map(repr, rule.on))


def _on_scale(x: Array, y: Array, has_x: Array, rule: Unsafe) -> tuple[Array, Array]:
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


def _with_size(judged: Array, unit: Array, size: Array, rule: Unsafe) -> Array:
    """The judged rows whose released and original size are above 0; SchemaError where others may not be left out."""
    empty = judged & ((unit == 0) | (size == 0))
    if empty.any() and not rule.leave_out:
        raise SchemaError(
            f"{int(empty.sum())} records have size 0 on {_listed(rule)}, and a relative distance divides by it: leave them "
            "out with leave_out=True, or take distance='absolute'."
        )
    if empty.sum() == judged.sum():
        raise Undefined(TOO_FEW)
    return np.asarray(judged & ~empty)


def _with_place(values: Array, rule: Unsafe) -> Array:
    """The rows without missing values; on logs those above 0 alone, SchemaError where others may not be left out."""
    known = ~np.isnan(values).any(axis=1)
    if rule.scale != "log":
        return np.asarray(known)
    low = known & (values <= 0).any(axis=1)
    if low.any() and not rule.leave_out:
        raise SchemaError(
            f"{int(low.sum())} records have values of 0 or below in {_listed(rule)}, which have no "
            "logarithm: leave them out with leave_out=True, or take another scale."
        )
    return np.asarray(known & ~low)


def _norm(values: Array) -> Array:
    return np.asarray(np.sqrt(sum(column * column for column in values.T)))
