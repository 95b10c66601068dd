"""The rule that decides which records of a masked file are not protected enough: few neighbors and little
perturbation.

`Unsafe` is the rule; `assess` applies it to a masked file and its original. The confidentiality plot (records), the
method `Protect` and the measure `UnsafeRecords` use both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Annotated, Literal

import numpy as np

from sdcmap.core import Array, Microdata, Positive, Range, SchemaError, Undefined, Value, did_you_mean
from sdcmap.data.identifiers import has_words
from sdcmap.kernels.neighbors.counting import GroupedPairs, PairDistances, Pairs, is_safe, likeliest_region
from sdcmap.kernels.quantiles import quantile_rank
from sdcmap.recordwise.archive import Archive
from sdcmap.recordwise.categories import original_agrees, record_loss, units_agreeing
from sdcmap.recordwise.same_categories import group_by_categories

MAX_CODE_VALUES = 20  # whole numbers with at most so many values look like codes of categories
CODE_NAMES = (
    r"nace\w*|naics\w*|isic\w*|sic\d*|ateco\w*|activity\w*|industry\w*|sector\w*|branch\w*|occupation\w*|isco\w*|region\w*|"
    r"nuts\w*|county|municipality|district|province|zip\w*|postcode|code"
)
# Fields that have an effect only with distances, or only with frequencies.
DISTANCE_FIELDS = ("r", "q", "alpha", "delta", "scale", "distance", "leave_out", "within", "amounts")
FREQUENCY_FIELDS = ("frequency",)


@dataclass(frozen=True)
class SafetyRule(Value):
    """The parameters that say which records are unsafe.

    Parameters
    ----------
    on : the variables an attacker compares; by default the keys of the file, without those of `within`.
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
    within : with distances: categories that must agree, such as the economic activity. A record is compared only with
        units of the category that it shows; a suppressed category agrees with all.
    amounts : variables of `on` that are amounts although they look like codes (whole numbers with few values, or a name
        such as "sector").
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
    within: tuple[str, ...] = field(default=(), kw_only=True)
    amounts: tuple[str, ...] = field(default=(), kw_only=True)

    def problems(self) -> Iterator[str]:
        if self.scale == "standardized" and self.distance == "relative":
            yield ".distance must be 'absolute' on the standardized scale, where the size of a record means nothing."
        if self.delta is not None and self.neighborhood == "fellegi-sunter":
            yield ".delta needs neighborhood 'distance'; with 'fellegi-sunter' the neighborhood follows from alpha."
        if self.delta is not None and self.alpha != SafetyRule.alpha:
            yield ".alpha has no effect beside .delta, which states the critical distance itself. State one of them."
        if self.neighborhood is not None:
            yield from (f".{sentence}" for sentence in self._find_unused_fields(self.neighborhood))
        if both := [name for name in self.on if name in self.within]:
            yield f".within and .on both name {', '.join(map(repr, both))}. Name a variable in one of them."
        if unknown := [name for name in self.amounts if self.on and name not in self.on]:
            yield f".amounts names {', '.join(map(repr, unknown))}, which .on does not compare."

    def _find_unused_fields(self, neighborhood: str) -> Iterator[str]:
        """Yield a sentence for each stated field that has no effect with this kind of neighborhood."""
        is_frequency = neighborhood == "frequency"
        unused = DISTANCE_FIELDS if is_frequency else FREQUENCY_FIELDS
        defaults = {f.name: f.default for f in fields(SafetyRule)}
        kind = (
            "frequencies: a record is safe if at least k units share its combination" if is_frequency else "distances"
        )
        for name in unused:
            if getattr(self, name) != defaults[name]:
                yield f"{name} has no effect with {kind}. Leave it out."

    def resolve(self, data: Microdata) -> Unsafe:
        """Return the rule with variables, distance and neighborhood filled in, or raise SchemaError with every
        problem.
        """
        if problems := list(self.rule_problems(data)):
            raise SchemaError(" ".join(problems))
        stated = {f.name: getattr(self, f.name) for f in fields(SafetyRule)}
        neighborhood = self._kind_of_neighborhood(data)
        distance = self.distance or ("absolute" if self.scale == "standardized" else "relative")
        filled = {"on": self.compared(data), "neighborhood": neighborhood}
        return Unsafe(**stated | filled | ({} if neighborhood == "frequency" else {"distance": distance}))

    def rule_problems(self, data: Microdata) -> Iterator[str]:
        """Yield every reason why this rule does not fit these data, a sentence each."""
        this, names = type(self).__name__, self.compared(data)
        if not names:
            yield f"{this} has no variables to compare. State the keys of the file, or name variables in `on`."
        unknown = [name for name in (*names, *self.within) if name not in data.names]
        for name in unknown:
            yield f"{this}: no column {name!r}.{did_you_mean(name, data.names)}"
        if unknown or not names:
            return
        neighborhood = self._kind_of_neighborhood(data)
        if self.neighborhood is None:
            yield from (f"{this}: {sentence}" for sentence in self._find_unused_fields(neighborhood))
        if neighborhood == "frequency":
            return
        categories = [name for name in names if data.column(name).levels is not None]
        if categories:
            listed = ", ".join(map(repr, categories))
            has, it = ("has", "it") if len(categories) == 1 else ("have", "them")
            yield (
                f"{this}: distances need numeric variables, but {listed} {has} categories. Name {it} in `within` to "
                "compare only units with the same category, or state neighborhood='frequency' to count equal combinations."
            )
        for name in names:
            if name not in categories and name not in self.amounts and looks_like_code(data, name):
                yield (
                    f"{this}: {name!r} looks like a code of categories, not like an amount, so a distance between its "
                    f"values means nothing. Name it in `within`, or in `amounts` if it is an amount."
                )

    def compared(self, data: Microdata) -> tuple[str, ...]:
        """Return the variables that an attacker compares: the stated ones, or the keys without those of `within`."""
        return self.on or tuple(name for name in data.keys if name not in self.within)

    def _kind_of_neighborhood(self, data: Microdata) -> Literal["distance", "fellegi-sunter", "frequency"]:
        """Return the stated neighborhood; by default frequencies if all variables have categories, else distances."""
        if self.neighborhood is not None:
            return self.neighborhood
        is_categorical = all(data.column(name).levels is not None for name in self.compared(data))
        return "frequency" if is_categorical and not self.within else "distance"


def looks_like_code(data: Microdata, name: str) -> bool:
    """Return whether a numeric column looks like codes of categories: integers with value labels, with few values that
    repeat, or with a name such as "nace" or "sector".
    """
    variable, values = data.schema[name], data.numbers(name)
    values = values[~np.isnan(values)]
    # Statistics packages store every number as a float; such files state a measurement level.
    is_integer = "Int" in variable.storage or (variable.measure != "" and bool((values == np.rint(values)).all()))
    if len(values) == 0 or not is_integer:
        return False
    count = len(np.unique(values))
    repeats = len(values) > 2 * count
    is_named = has_words(CODE_NAMES, name, variable.label)
    return repeats and (is_named or bool(variable.values) or 1 < count <= MAX_CODE_VALUES)


@dataclass(frozen=True)
class Unsafe(SafetyRule):
    """The rule that calls a record unsafe: too few similar units, and too little perturbation to make up for it.

    Formula: safe iff N >= k, or p >= r, or (N/k)^q + (p/r)^q >= 1; with frequencies, safe iff F_y >= k.
    Missing values: a record with one is not judged; where frequencies are counted, and in `within`, a missing value is
    a suppressed one and agrees with all. Weights count only in the population frequency. Households are not used.
    Reference: Seri (2005), sections 2 and 3.

    Examples
    --------
    >>> Unsafe(on=["turnover", "employees"], scale="log").text
    "Unsafe(on=['turnover', 'employees'], scale='log')"
    """

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        """Yield every reason why this rule does not fit these data, a sentence each."""
        return self.rule_problems(data)


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
    pairs: PairDistances | None = None  # the points on the rule's scale; None with frequencies
    counted_to: int | None = None  # where the counting of neighbors stopped, if it did


def assess(
    original: Microdata,
    masked: Microdata,
    rule: SafetyRule,
    *,
    count_to: int | None = None,
    threads: int | None = 1,
    archive: Archive | None = None,
) -> Assessment:
    """Apply the rule to a masked file whose rows correspond to those of `original` (or to `masked.origin`).

    archive : the attacker's own file, whose units are the neighbors; by default the original.
    """
    resolved = rule.resolve(original)
    if masked.origin is None and len(masked) != len(original):
        raise SchemaError(f"the masked file has {len(masked)} rows and the original {len(original)}.")
    links = np.arange(len(masked)) if masked.origin is None else masked.origin
    if resolved.neighborhood == "frequency":
        return _assess_frequencies(original, masked, resolved, links, archive)
    rows, pairs, perturbation = _build_cloud(original, masked, resolved, links, threads, archive)
    own = pairs.link_distances()
    if resolved.neighborhood == "fellegi-sunter":
        if not pairs.linked.any():
            raise Undefined("'fellegi-sunter' learns from true pairs, but no record is compared with its own original.")
        region = tuple(likeliest_region(pairs, _rank_of_delta(pairs, resolved)))
        delta = max((stop for _, stop in region), default=0.0)
        counts = sum((pairs.count(stop) - pairs.count(start) for start, stop in region), np.zeros(len(own), np.int64))
        link_in = np.logical_or.reduce([(start <= own) & (own < stop) for start, stop in region] or [own < 0])
    else:
        stated = resolved.delta
        delta = pairs.critical_distance(_rank_of_delta(pairs, resolved)) if stated is None else stated
        region = ((0.0, delta),)
        count_to = None if count_to is None else max(count_to, resolved.k)
        counts = pairs.count(delta, count_to)
        link_in = own < delta
    # Ties matter only where no unit is closer than the own original.
    nearest = pairs.link_is_nearest()
    ties = np.zeros(len(own), dtype=np.int64)
    ties[nearest] = pairs.ties(np.flatnonzero(nearest))
    safe = is_safe(counts, perturbation, resolved.k, resolved.r, resolved.q)
    left_out = np.delete(np.arange(len(masked)), rows)
    columns = counts, perturbation, link_in, nearest, ties, safe
    return Assessment(resolved, rows, links[rows], *columns, left_out, delta, region, pairs, count_to)


def _rank_of_delta(pairs: PairDistances, rule: Unsafe) -> int:
    """Return the rank of the critical distance, the alpha-quantile of the distances between different records."""
    if pairs.nonlinks == 0:
        raise Undefined(
            "no record is compared with a unit other than its own original. State `delta`, or compare more."
        )
    return quantile_rank(rule.alpha, pairs.nonlinks)


def _assess_frequencies(
    original: Microdata, masked: Microdata, rule: Unsafe, links: Array, archive: Archive | None
) -> Assessment:
    """Apply the rule by counting units with the same combination of categories."""
    if archive is not None and rule.frequency != "population":
        raise SchemaError("a population file has no effect with frequency='sample'. State frequency='population'.")
    by_weight = rule.frequency == "population" and archive is None
    if by_weight and masked.weight is None:
        raise SchemaError("the population frequency needs a weight in the file, or a population file.")
    weights = masked.weights if by_weight else None
    counts = units_agreeing(masked, rule.on, weights, None if archive is None else archive.units)
    link_in, loss = (of(original, masked, rule.on, links) for of in (original_agrees, record_loss))
    everyone, ties = np.arange(len(masked)), np.zeros(len(masked), dtype=np.int64)
    nearest, safe = link_in & (counts <= 1), counts >= rule.k
    return Assessment(rule, everyone, links, counts, loss, link_in, nearest, ties, safe, everyone[:0])


def _build_cloud(
    original: Microdata, masked: Microdata, rule: Unsafe, links: Array, threads: int | None, archive: Archive | None
) -> tuple[Array, PairDistances, Array]:
    """Return the judged rows, their pairs with the units on the rule's scale, and their perturbation."""
    own_file = archive is None
    if recoded := [name for name in rule.on if masked.column(name).levels is not None]:
        listed = ", ".join(map(repr, recoded))
        raise Undefined(
            f"{listed} was released as categories, which have no distance. Count equal combinations instead."
        )
    files = original, masked, original if archive is None else archive.units
    values = [file.matrix(rule.on) for file in files]
    if any((np.abs(part) > MAX_ABSOLUTE_VALUE).any() for part in values):
        raise SchemaError(f"infinite values in {_quote_names(rule)} have no distance. Make them missing.")
    has_x, has_y = (_has_scale_values(part, rule) for part in values[:2])
    has_unit = has_x if own_file else _has_scale_values(values[2], rule)
    judged = has_y & has_x[links]
    if has_x.sum() < 2 or not judged.any() or not has_unit.any():
        raise Undefined(TOO_FEW)
    x, y, units = _on_scale(values, has_x, rule)
    divisor, size = np.ones(len(y)), np.full(len(y), np.sqrt(len(rule.on)))
    if rule.distance == "relative":
        divisor, size = _row_norms(y), _row_norms(x)[links]
        judged = _has_positive_size(judged, divisor, size, rule)
    rows = np.flatnonzero(judged)
    perturbation = _row_norms(y[rows] - x[links[rows]]) / size[rows]  # ||y - x|| / ||x||  (eq. 2)
    unit_row = links[rows] if archive is None else archive.unit_of(links[rows])
    position = np.where(has_unit, np.cumsum(has_unit) - 1, -1)  # of each unit among those with values on the scale
    link = np.where(unit_row >= 0, position[unit_row], -1)
    y_rows, cloud, unit = y[rows], units[has_unit], divisor[rows]
    if not rule.within:
        return rows, Pairs.of(y_rows, cloud, unit, link, threads), perturbation
    with_values = np.flatnonzero(has_unit)
    groups = group_by_categories(original, masked, files[2], rule.within, rows, with_values)
    return rows, GroupedPairs.of(y_rows, cloud, unit, link, groups, threads), perturbation


MAX_ABSOLUTE_VALUE = 1e150  # the square of larger values would overflow
TOO_FEW = "neighbors need at least 2 original records with values on the scale, and one in the masked file."


def _quote_names(rule: Unsafe) -> str:
    """Return the variables of the rule, quoted, for an error message."""
    return ", ".join(map(repr, rule.on))


def _on_scale(files: list[Array], has_x: Array, rule: Unsafe) -> list[Array]:
    """Return the values of all files on the rule's scale; the first file is the original, which sets the scale."""
    if rule.scale == "log":
        with np.errstate(invalid="ignore", divide="ignore"):
            return [np.log(part) for part in files]
    if rule.scale == "raw":
        return files
    x = files[0]
    mean, spread = x[has_x].mean(axis=0), x[has_x].std(axis=0, ddof=1)
    if not (spread > 0).all():
        constant = ", ".join(repr(name) for name, s in zip(rule.on, spread, strict=True) if not s > 0)
        raise Undefined(f"{constant} does not vary, so it cannot be standardized.")
    return [(part - mean) / spread for part in files]


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
