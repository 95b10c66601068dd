"""Recoding into coarser categories."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Annotated, ClassVar, Literal

import numpy as np
import polars as pl

from sdcmap.core import Array, Generator, Infeasible, Method, Positive, Range, Roles, SchemaError, Trials, format_number
from sdcmap.core.formatting import count_of, format_percent
from sdcmap.core.method import Origin
from sdcmap.core.named_files import read_verified
from sdcmap.core.roles import Strengths, format_strength
from sdcmap.data.amounts import amounts, has_numbers, has_ordered_numbers
from sdcmap.data.hierarchy import Hierarchy, number_text
from sdcmap.data.known_by import DATES
from sdcmap.data.label_layers import parse_interval
from sdcmap.data.microdata import Column, Microdata, smallest_unsigned
from sdcmap.data.schema import KINDS, Schema
from sdcmap.kernels.masking import breaks as cuts
from sdcmap.kernels.masking.rare_values import MIN_SHARING_RECORDS
from sdcmap.methods.chain import combine_steps

WAYS = ("breaks", "bins", "width", "merge", "rare", "prefix", "hierarchy")
NUMERIC_WAYS = ("breaks", "bins", "width")
MAX_INTERVALS = 10_000  # of one variable; more are almost certainly a mistake in `width`
MAX_CATEGORIES_TO_MERGE = 100  # with more categories, rare ones keep their first characters
OTHER = "other"  # what rare categories become


@dataclass(frozen=True)
class Recode(Method):
    """Replace values by coarser categories: intervals of numbers, merged categories, or a level of a hierarchy.

    Parameters
    ----------
    on : variables to mask, all in the same way. Exactly one of the next seven parameters must be set, or `rare` with
        `prefix`.
    breaks : increasing cut points, in the variable's unit; the two end intervals are open.
    bins : the approximate number of intervals, at least 2, found from the data as `by` says; breaks are round numbers.
    by : with bins: equal "width" (at multiples of a round number), equal "log width" (positive values; breaks with one
        digit) or "quantiles" (about equally many records).
    width : intervals of this width, in the variable's unit, from `start` on, such as five years of age; above 0.
    merge : lists of categories; each list becomes one category, and others do not change. Written as text:
        [["1", "2"], ["8", "9"]].
    rare : categories that fewer than this share of the records have become one, between 0 and 1. With `prefix` they are
        cut instead, such as rare industries to their division.
    prefix : keep this number of first characters of each category, at least 1; with `rare`, of rare categories alone.
    hierarchy : path of a CSV file in ARX format: value;level 1;level 2;... without a header (see `Hierarchy`).
    start : with width: where an interval begins, in the variable's unit.
    closed : which end belongs to an interval, "right" or "left".
    labels : names for the intervals of `breaks` (one more than breaks), for the lists of `merge`, or for what rare
        categories become (default "other").
    level : with a hierarchy: the level to recode to; 0 is the values themselves.
    becomes : what numbers become. "label": an ordinal variable with intervals such as "(20, 25]" as categories; measures
        that need numbers are then undefined. "midpoint" (for end intervals the mean), "mean" or "median" of the values
        in the interval: the variable stays numeric. In an interval with fewer than three values, a mean or median would
        reveal them, so the midpoint is used, or the break of an end interval.
    sha256 : the first 16 digits of the hierarchy file's SHA-256, filled in if left out; a file with another hash is
        refused.

    Formula: intervals (b_i, b_i+1], or [b_i, b_i+1) if closed on the left. Numeric categories are treated as numbers.
    Missing values stay missing. Weights are not used: quantiles and means count every record once. Households are not
    used. Breaks found from the data are rounded, because exact ones would reveal the smallest and the largest value, or a
    person's value at a quantile.
    Reference: Hundepool et al. (2012), section 3.2.2; sdcMicro's globalRecode; ARX for hierarchies.

    Examples
    --------
    >>> Recode(on="age", width=5, closed="left").text
    "Recode(on='age', width=5.0, closed='left')"
    """

    label: ClassVar[str] = "Global recoding"
    description: ClassVar[str] = (
        "Values are replaced by broader categories, or numbers by an average of their interval."
    )

    kinds: ClassVar[tuple[str, ...]] = KINDS
    random: ClassVar[bool] = False
    value_origin: ClassVar[Origin] = "derived"
    kept: ClassVar[str] = "every value to within its category or interval"
    distorted: ClassVar[str] = "the detail within categories and intervals"
    is_value_map: ClassVar[bool] = True

    revision: ClassVar[int] = 4  # 2: no mean or median of one or two values; 3: round breaks; 4: rare categories

    on: tuple[str, ...]
    breaks: tuple[float, ...] = ()
    bins: Annotated[int | None, Range(2)] = None
    by: Literal["width", "log width", "quantiles"] = "width"
    width: Positive | None = None
    merge: tuple[tuple[str, ...], ...] = ()
    rare: Annotated[float | None, Range(0, 1, "()")] = None
    prefix: Annotated[int | None, Range(1)] = None
    hierarchy: str = ""
    start: float = 0.0
    closed: Literal["right", "left"] = "right"
    labels: tuple[str, ...] = ()
    level: Annotated[int, Range(0)] = 1
    becomes: Literal["label", "midpoint", "mean", "median"] = "label"
    sha256: str = ""

    @property
    def action(self) -> str:
        if self.width is not None:
            return f"recoded in steps of {format_number(self.width)}"
        if self.prefix is not None and self.rare is not None:
            return f"with categories below {format_percent(self.rare)} cut to {count_of(self.prefix, 'character')}"
        if self.prefix is not None:
            return f"cut to {self.prefix} characters"
        if self.rare is not None:
            return f"with categories below {format_percent(self.rare)} merged"
        if self.merge:
            return f"with {sum(map(len, self.merge))} categories merged"
        return (
            f"recoded to {f'level {self.level}' if self.hierarchy else f'{self.bins or len(self.breaks) + 1} classes'}"
        )

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        trials: dict[str, Method | str] = {}
        for count in (20, 5) if roles.numbers else ():
            trials[f"{cls.__name__} {count} bins"] = cls(roles.numbers, bins=count, becomes="mean")
        for share in (0.01, 0.05):
            if names := tuple(name for name in roles.keys if len(roles.rare(name, share)) > 1):
                trials[f"{cls.__name__} rare {format_strength(share)}"] = cls(names, rare=share)
        return trials

    @classmethod
    def at_strength(cls, strength: float, names: tuple[str, ...], roles: Roles) -> Method | None:
        """Replace numbers by the means of 50 to 3 intervals with equally many records, and categories as `coarsen` does."""
        if roles.are_numbers(names):
            return cls(names, bins=Strengths("bins", 50, 3).at(strength)["bins"], by="quantiles", becomes="mean")
        steps = [step for name in names if (step := cls.coarsen(name, strength, roles)) is not None]
        return combine_steps(steps) if len(steps) == len(names) else None

    @classmethod
    def coarsen(cls, name: str, strength: float, roles: Roles) -> Recode | None:
        """Return a recoding of one column into fewer categories, or None if there is nothing to merge.

        Numbers become 20 to 2 intervals, and dates become years. Of other columns, categories below 1 to 30 % of the
        records are merged, or, if there are very many categories, cut to their first characters.
        """
        data, share = roles.data, float(f"{Strengths('share', 0.01, 0.3).at(strength)['share']:.2g}")
        if has_ordered_numbers(data, name):
            bins = Strengths("bins", 20, 2).at(strength)["bins"]
            return cls((name,), bins=bins, by="quantiles") if data.level_count(name) > bins else None
        if data.schema[name].storage in DATES:
            return cls((name,), prefix=4)
        if data.level_count(name) > MAX_CATEGORIES_TO_MERGE:
            return cls((name,), rare=share, prefix=Strengths("prefix", 3, 1).at(strength)["prefix"])
        return cls.merge_rare(name, share, roles)

    @classmethod
    def merge_rare(cls, name: str, share: float, roles: Roles) -> Recode | None:
        """Return a recoding that merges the categories below a share of the records into "other".

        Return None if there are fewer than two of them, or if no other category would remain.
        """
        rare = roles.rare(name, share)
        if len(rare) < 2 or len(rare) + int(roles.data.missing(name).any()) >= roles.data.level_count(name):
            return None
        return cls((name,), rare=share)

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        ways = [way for way in WAYS if getattr(self, way)]
        if len(ways) != 1 and ways != ["rare", "prefix"]:
            yield f" needs one of {', '.join(WAYS)}. Got {' and '.join(ways) or 'none'}."
        if any(low >= high for low, high in pairwise(self.breaks)):
            yield ".breaks must be increasing."
        if len({*chain.from_iterable(self.merge)}) < sum(map(len, self.merge)):
            yield ".merge must name each category once."
        if any(len(names) < 2 for names in self.merge) and not self.labels:
            yield '.merge must contain lists of at least two categories, such as [["1", "2"]].'
        wanted = len(self.breaks) + 1 if self.breaks else len(self.merge) or int(ways == ["rare"])
        if self.labels and len(self.labels) != wanted:
            yield f".labels must contain {count_of(wanted, 'name')}, one for each interval or list. Got {len(self.labels)}."
        if self.becomes != "label" and ways and ways[0] not in NUMERIC_WAYS:
            yield f".becomes = {self.becomes!r} needs breaks, bins or width."

    @property
    def _is_numeric(self) -> bool:
        return any(getattr(self, way) for way in NUMERIC_WAYS)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().incompatibilities(data)
        for name in self.on:
            if name not in data.schema:
                continue
            kind, numeric = data.schema[name].kind, data.column(name).levels is None
            if self._is_numeric and not has_numbers(data.column(name)):
                yield f"Recode by breaks, bins or width needs numbers; {name!r} is {kind} without numeric categories."
            if not self._is_numeric and not self.hierarchy and kind == "numeric":
                yield f"Recode by merge, rare or prefix needs categories; {name!r} is numeric."
            if self.becomes != "label" and not numeric:
                yield f"Recode.becomes = {self.becomes!r} needs a numeric variable; {name!r} is {kind}."

    def recoded_rows(self, released: Microdata, name: str) -> Array | None:
        levels = released.column(name).levels
        if not self._merge_labels or levels is None:
            return ~released.missing(name)
        merged = levels.cast(pl.String).is_in(self._merge_labels).fill_null(value=False).to_numpy()
        return np.asarray(merged[released.column(name).values])

    def preimage(self, name: str, low: Array, high: Array, released: Microdata) -> tuple[Array, Array]:
        """Return the interval of each label. Numbers give the interval that contains them, if the breaks are stated."""
        levels, ends = released.column(name).levels, np.array([-np.inf, *self.breaks, np.inf])
        if levels is None and self.breaks:
            index = cuts.interval_of(np.where(np.isnan(low), 0.0, low), ends[1:-1], self.closed)
            return np.where(np.isnan(low), np.nan, ends[index]), np.where(np.isnan(low), np.nan, ends[index + 1])
        labels = [] if levels is None else levels.cast(pl.String).to_list()
        interval: dict[str | None, tuple[float, float]] = {None: (np.nan, np.nan)}
        if self.labels and self.breaks:
            interval |= dict(zip(self.labels, pairwise(ends.tolist()), strict=True))
        else:
            interval |= {label: pair[:2] for label in labels if label and (pair := parse_interval(label))}
        if not labels or any(label not in interval for label in labels):
            return super().preimage(name, low, high, released)
        edges = np.array([interval[label] for label in labels])[released.column(name).values]
        return edges[:, 0], edges[:, 1]

    @property
    def _merge_labels(self) -> tuple[str, ...]:
        """Return the category that each list of `merge`, or all rare categories, become."""
        if self.rare is not None:
            return () if self.prefix is not None else self.labels or (OTHER,)
        return self.labels or tuple("|".join(group) for group in self.merge)

    def schema_after(self, schema: Schema) -> Schema:
        if self.becomes != "label":
            return schema
        return schema.with_categories({name: "String" for name in self.on if name in schema.names})

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        if self.becomes != "label":
            return data.change(None, {name: self._typical(data.numbers(name), name) for name in self.on})
        recoded = {name: self._recode_column(data, name) for name in self.on}
        levels = {name: column.levels for name, column in recoded.items() if column.levels is not None}
        return data.change(None, {name: column.values for name, column in recoded.items()}, levels)

    def _recode_column(self, data: Microdata, name: str) -> Column:
        column = data.column(name)
        if self._is_numeric:
            x = amounts(data, name)
            breaks = self._breaks(x[~np.isnan(x)], name)
            labels = list(self.labels) or cuts.interval_labels(breaks.tolist(), self.closed)
            index = np.where(np.isnan(x), len(labels), cuts.interval_of(x, breaks, self.closed))
            return _column(index, labels, name)
        if column.levels is None:
            distinct, index = np.unique(column.values, return_inverse=True)
            texts = [number_text(number) for number in distinct[~np.isnan(distinct)]]
        else:
            null = column.levels.is_null().to_numpy()
            texts = [str(level) for level in column.levels.drop_nulls().to_list()]
            index = np.where(null, len(texts), np.cumsum(~null) - 1)[column.values]
        new = self._new_labels(texts, np.bincount(index, minlength=len(texts)), name)
        order = {label: code for code, label in enumerate(dict.fromkeys(new))}
        return _column(np.array([*(order[label] for label in new), len(order)])[index], list(order), name)

    def _breaks(self, known: Array, name: str) -> Array:
        """Return the cut points for these values, which are not missing."""
        if self.breaks:
            return np.array(self.breaks)
        if len(known) == 0:
            raise Infeasible(f"{name!r} has only missing values, so no intervals can be found.")
        if self.width is not None:
            farthest = np.abs(known - self.start).max()
            if known.max() - known.min() > MAX_INTERVALS * self.width or farthest > cuts.LARGEST_WHOLE * self.width:
                many = f"more than {MAX_INTERVALS:,} intervals"
                raise Infeasible(f"a width of {self.width:g} divides {name!r} into {many}; use a larger width.")
            return cuts.whole_steps(known, self.width, self.start)
        if self.by == "log width" and known.min() <= 0:
            raise Infeasible(f"{name!r} has values of 0 or below, so intervals of equal log width do not exist.")
        find = {"width": cuts.equal_width, "log width": cuts.log_width, "quantiles": cuts.quantiles}[self.by]
        return cuts.round_breaks(find(known, self.bins or 2))

    def _typical(self, x: Array, name: str) -> Array:
        """Replace each number by the typical value of its interval."""
        known = ~np.isnan(x)
        if not known.any():
            return x
        breaks = self._breaks(x[known], name)
        index = cuts.interval_of(x[known], breaks, self.closed)
        typical = np.concatenate([breaks[:1], (breaks[:-1] + breaks[1:]) / 2, breaks[-1:]])
        average = np.median if self.becomes == "median" else np.mean
        # The average of fewer than MIN_SHARING_RECORDS values would reveal them, so such an interval keeps its midpoint.
        for interval, count in enumerate(np.bincount(index, minlength=len(typical))):
            at_end = interval in (0, len(breaks))
            if count >= MIN_SHARING_RECORDS and (at_end or self.becomes != "midpoint"):
                typical[interval] = average(x[known][index == interval])
        released = x.copy()
        released[known] = typical[index]
        return released

    def _new_labels(self, texts: list[str], counts: Array, name: str) -> list[str]:
        """Return the new category of each old one, which `counts` records have."""
        if self.prefix is not None or self.rare is not None:
            cut = [text[: self.prefix] if self.prefix is not None else self._merge_labels[0] for text in texts]
            kept = np.zeros(len(texts), dtype=bool) if self.rare is None else counts >= self.rare * counts.sum()
            return [text if stays else short for text, short, stays in zip(texts, cut, kept, strict=False)]
        if self.merge:
            into = {old: new for group, new in zip(self.merge, self._merge_labels, strict=True) for old in group}
            return [into.get(text, text) for text in texts]
        group_of = Hierarchy.parse(read_verified(self.hierarchy, self.sha256), self.hierarchy).at(self.level)
        if lost := sum(text not in group_of for text in texts):
            raise SchemaError(
                f"the hierarchy {self.hierarchy} lacks {lost} of the {len(texts)} values of {name!r}. Add them to the file."
            )
        return [group_of[text] for text in texts]


def _column(index: Array, labels: list[str], name: str) -> Column:
    """Return a column from the index of each record's label. An index of len(labels) means missing."""
    levels = pl.Series(name, labels, dtype=pl.String)
    if len(index) and int(index.max()) == len(labels):
        levels = levels.extend_constant(None, 1)
    return Column(index.astype(smallest_unsigned(len(levels))), levels)
