"""The table behind the confidentiality plot: neighbors, perturbation and safety of each record of a masked file.

Reference: Seri (2005). The table is about single records, so it must not be published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import polars as pl

from sdcmap.core import Array, Column, Measure, Microdata, PlanError, SchemaError, did_you_mean
from sdcmap.core.catalog import draw_chart
from sdcmap.core.chart import Chart
from sdcmap.data.readable import Readable
from sdcmap.data.schema import Schema, Variable
from sdcmap.files.alignment import align
from sdcmap.files.reader import read
from sdcmap.kernels.neighbors.counting import is_safe
from sdcmap.recordwise.archive import Archive, read_archive_units
from sdcmap.recordwise.neighborhood import Assessment, Unsafe, assess

CURVE_Q = 0.5  # shape of the second safety line in figure 3 of Seri (2005)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RecordTable(Assessment):
    """One row for each judged record; see `Assessment` for the columns.

    `Protect(table.rule, method)` protects the records that the rule calls unsafe.
    """

    size: str  # the variable by which units are large; "" where the first variable is categorical
    sizes: Array  # its values in the original
    rows_in_file: int
    has_archive: bool = False  # the units are those of the attacker's own file, not the originals

    # ---- numbers ----------------------------------------------------------------------------------------------
    @property
    def uses_frequencies(self) -> bool:
        """Return whether neighbors are units with the same combination of categories."""
        return self.rule.neighborhood == "frequency"

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def links_in_reach(self) -> int:
        """Return the number of records whose own original is in their neighborhood."""
        return int(self.link_in.sum())

    @property
    def nearest_links(self) -> int:
        """Return the number of records with no unit closer than their own original; ties count (see `ties`)."""
        return int(self.nearest.sum())

    @property
    def ties(self) -> int:
        """Return the number of these records with another unit at exactly the same distance."""
        return int((self.rivals > 0).sum())

    @property
    def empty(self) -> int:
        """Return the number of records without a neighbor."""
        return int((self.neighbors == 0).sum())

    @property
    def unsafe(self) -> Array:
        """Return the unsafe records, as rows of the masked file."""
        return self.rows[~self.safe]

    @property
    def mean_perturbation(self) -> float:
        """Return the mean perturbation of the judged records."""
        return float(self.perturbation.mean())

    @property
    def largest(self) -> int:
        """Return the row of the masked file whose original has the largest `size`; -1 if there is no size."""
        return -1 if np.isnan(self.sizes).all() else int(self.rows[np.nanargmax(self.sizes)])

    def unsafe_at(self, q: float) -> int:
        """Return the number of unsafe records for another shape of the safety line."""
        if self.uses_frequencies:
            return len(self.unsafe)
        return int((~is_safe(self.neighbors, self.perturbation, self.rule.k, self.rule.r, q)).sum())

    @property
    def linked(self) -> int:
        """Return the number of records that are compared with their own original, so that an attacker can find it."""
        return len(self) if self.pairs is None else int(self.pairs.linked.sum())

    def summary(self) -> dict[str, float | int | None]:
        """Return the counts of the table, without values of single records."""
        return {
            "records": len(self), "left_out": len(self.left_out), "delta": self.delta,
            "linked": self.linked, "links_in_reach": self.links_in_reach, "nearest_links": self.nearest_links,
            "ties": self.ties, "empty": self.empty, "unsafe": len(self.unsafe),
            "unsafe_line": self.unsafe_at(1.0), "unsafe_curve": self.unsafe_at(CURVE_Q),
            "mean_neighbors": None if self.counted_to else float(self.neighbors.mean()),
            "mean_perturbation": self.mean_perturbation,
        }  # fmt: skip

    def frame(self) -> pl.DataFrame:
        """Return the table as a data frame, with a row for each judged record.

        The column "row" is the row of the masked file, "original_row" that of the original.
        """
        columns = {
            "row": self.rows, "original_row": self.links, "neighbors": self.neighbors,
            "perturbation": self.perturbation, "link_in_neighborhood": self.link_in, "nearest_is_link": self.nearest,
            "ties": self.rivals, "safe": self.safe,
        }  # fmt: skip
        return pl.DataFrame(columns)

    def biggest(self, top: int = 10) -> pl.DataFrame:
        """Return the biggest units as linked by rank, by an attacker who knows which unit is first, second and so on.

        Sizes are those of the variable `size`. Columns: row, rank (in the original), released_rank, and chance: the
        probability that matching the two ranked lists links the record correctly, with ties broken at random. Seri
        (2005), conclusions.
        """
        if (pairs := self.pairs) is None or top < 1:
            raise PlanError("the biggest units need a numeric first variable and `top` of at least 1.")
        column = self.rule.on.index(self.size)
        first, last = _rank_ranges(self.sizes)
        first_after, last_after = _rank_ranges(pairs.y[:, column])
        overlap = np.minimum(last, last_after) - np.maximum(first, first_after) + 1
        chance = np.maximum(overlap, 0) / ((last - first + 1) * (last_after - first_after + 1))
        order = np.lexsort((self.rows, first))[:top]
        columns = {"row": self.rows, "rank": first, "released_rank": first_after, "chance": chance}
        return pl.DataFrame({name: values[order] for name, values in columns.items()})

    def __repr__(self) -> str:
        summary = ", ".join(f"{name} {value:.6g}" for name, value in self.summary().items() if value is not None)
        return f"RecordTable({self.rule.text}: {summary})"

    # ---- pictures ---------------------------------------------------------------------------------------------
    def draw(self, *, audience: str = "internal", title: str = "", width: int = 560, height: int = 400) -> Chart:
        """Draw the confidentiality plot.

        audience : "internal" shows records; "external" shows only binned counts, none below 10
        """
        return draw_chart("draw_confidentiality", self, audience=audience, title=title, width=width, height=height)

    def draw_zoom(self, *rows: int, title: str = "") -> Chart:
        """Draw released records (rows of the masked file) among the originals, or the archive's units, and zoom in.

        By default these are the largest unit and one in the densest part of the cloud. Seri (2005), figure 1.
        """
        return draw_chart("draw_zoom", self, rows, title=title)

    def draw_densities(self, *, title: str = "") -> Chart:
        """Draw the densities m(z) of links and u(z) of nonlinks, with delta. Seri (2005), equation 3."""
        return draw_chart("draw_densities", self, title=title)


def _rank_ranges(sizes: Array) -> tuple[Array, Array]:
    """Return the first and last rank of each value, the largest first, from 1; equal values share their ranks."""
    rising = np.sort(sizes)
    above = len(sizes) - np.searchsorted(rising, sizes, side="right")
    return above + 1, len(sizes) - np.searchsorted(rising, sizes, side="left")


def records(
    original: Readable,
    masked: Readable,
    on: str | Sequence[str] = (),
    *,
    rule: Unsafe | None = None,
    by: str | None = None,
    intervals: Mapping[str, tuple[str, str]] | None = None,
    population: Readable | None = None,
    archive: Readable | None = None,
    row: str = "",
    loss: Measure | None = None,
    size: str = "",
    count_to: int | None = None,
    threads: int | None = None,
    **options: object,
) -> RecordTable:
    """Return the table behind the confidentiality plot: neighbors and perturbation of each released record.

    Parameters
    ----------
    original, masked : Microdata, paths or frames of the same records; `plan.make(data, choice)` returns the second.
        on, alpha, k, r, q, scale, delta, ... : the rule, as the fields of `Unsafe`; or `rule`, an `Unsafe` value.
    by : name of an id column in both files that identifies the records; by default row i corresponds to row i.
    intervals : {"turnover": ("turnover_low", "turnover_high")}: the released value lies between these columns of the
        masked file, and its midpoint is used: for the whole variable if the masked file lacks it, else where it is
        missing (a suppressed cell with its feasibility interval).
    population : with frequency="population": a file of the population, instead of weights.
    archive : with distances: the attacker's own file of units, such as a business register; by default the original. Its
        units are the neighbors. The perturbation is always measured against the original.
    row : the archive's column with the row number in the original, from 0, of each unit (missing: not in the original).
        Without `row`, units are matched by the id column `by` if the archive has it. Otherwise nobody knows which unit is
        which record: neighbors are counted, but no link is marked.
    loss : with frequencies: a measure whose record-level form is the vertical axis, instead of the share of
        information that each record lost.
    size : the variable of `on` by which units are large, such as the turnover; by default the first one. The plot marks
        the largest unit, and `biggest` ranks units by it.
    count_to : stop counting neighbors at this number (at least k), which is enough for safety: for millions of
        records.
    threads : threads for counting; by default one per core. The result does not depend on it.

    Formula: z = ||y - x|| / ||y||, N(y) = #{x: z < delta}, delta the alpha-quantile of z over all pairs of different
    records (inverted distribution function), p = ||y - x|| / ||x||.
    Reference: Seri (2005), eq. 2 to 4.

    Examples
    --------
    >>> import polars as pl
    >>> x = pl.DataFrame({"a": [3.0, 6, 0, 1], "b": [4.0, 8, 5, 1]})
    >>> y = pl.DataFrame({"a": [3.0, 6, 0.5, 4], "b": [4.5, 7, 5, 4]})
    >>> table = records(x, y, on=["a", "b"], alpha=0.25)
    >>> round(table.delta, 6), table.neighbors.tolist(), table.links_in_reach
    (0.535844, [1, 2, 1, 1], 3)
    """
    rule = _rule(rule, on, options)
    data = original if isinstance(original, Microdata) else read(original)
    if intervals:
        masked = _with_midpoints(masked, intervals)
    released = align(data, masked, by=by)
    resolved = rule.resolve(data)
    options_given = {
        "population": population,
        "archive": archive,
        "row": row or None,
        "loss": loss,
        "count_to": count_to,
    }
    _check_options(resolved, {name for name, value in options_given.items() if value is not None})
    units = _read_units(data, resolved, population, archive, row, by or "")
    assessment = assess(data, released, rule, count_to=count_to, threads=threads, archive=units)
    if loss is not None:
        assessment = replace(assessment, perturbation=loss.records(data, released)[assessment.rows])
    name = _size_variable(data, assessment.rule, size)
    sizes = data.numbers(name)[assessment.links] if name else np.full(len(assessment.rows), np.nan)
    return RecordTable(
        **vars(assessment), size=name, sizes=sizes, rows_in_file=len(released), has_archive=units is not None
    )


def _check_options(rule: Unsafe, stated: set[str]) -> None:
    """Raise PlanError for an option that has no effect with this rule, and say what to use instead."""
    if rule.neighborhood == "frequency":
        remedies = {"archive": "`archive` needs distances; with frequencies, state the file as `population`."}
    else:
        remedies = {
            "population": "`population` needs neighborhood='frequency'; with distances, state the attacker's file as "
            "`archive`.",
            "loss": "`loss` needs neighborhood='frequency'; with distances the vertical axis is the perturbation.",
        }
    if rule.neighborhood != "distance":
        remedies["count_to"] = f"`count_to` has no effect with {rule.neighborhood!r}, which counts all units."
    if "archive" not in stated:
        remedies["row"] = "`row` names a column of the archive; state `archive` as well."
    for name, remedy in remedies.items():
        if name in stated:
            raise PlanError(remedy)


def _read_units(
    data: Microdata, rule: Unsafe, population: Readable | None, archive: Readable | None, row: str, by: str
) -> Archive | None:
    """Return the attacker's own file, or None where the attacker holds the original."""
    if population is not None:
        return Archive(population if isinstance(population, Microdata) else read(population))
    if archive is None:
        return None
    file = archive if isinstance(archive, Microdata) else read(archive)
    return read_archive_units(
        file, data, (*rule.on, *rule.within), row=row, by=by if by in file.names and not row else ""
    )


def _size_variable(data: Microdata, rule: Unsafe, stated: str) -> str:
    """Return the variable by which units are large: the stated one, else the first; "" if that one is categorical."""
    if stated and stated not in rule.on:
        raise PlanError(f"size={stated!r} must be one of the compared variables: {', '.join(rule.on)}.")
    name = stated or rule.on[0]
    if data.column(name).levels is None:
        return name
    if stated:
        raise PlanError(f"size={stated!r} has categories. Name a numeric variable.")
    return ""


def compare_records(
    original: Readable, masked: Readable, attacks: Mapping[str, Mapping[str, object]], **common: object
) -> RecordSets:
    """Return the tables of several attackers, with other key variables or similarities. Seri (2005), conclusions.

    Parameters
    ----------
    attacks : a name and the options of `records` for each attack, such as {"size": {"on": ["turnover"]}, "both,
        unit-free": {"on": ["turnover", "employees"], "scale": "standardized"}}
    common : options of all attacks
    """
    if not attacks:
        raise PlanError("compare_records needs at least one attack: a name, and options of `records`.")
    options: dict[str, dict[str, Any]] = {name: {**common, **given} for name, given in attacks.items()}
    return RecordSets({name: records(original, masked, **given) for name, given in options.items()})


@dataclass(frozen=True)
class RecordSets:
    """The tables of several attacks on one file, by name."""

    tables: Mapping[str, RecordTable]

    @property
    def unsafe(self) -> Array:
        """Return the records that are unsafe in at least one attack, as rows of the masked file."""
        return np.unique(np.concatenate([table.unsafe for table in self.tables.values()]))

    def frame(self) -> pl.DataFrame:
        """Return the counts of each attack, one row each."""
        return pl.DataFrame([{"attack": name, **table.summary()} for name, table in self.tables.items()])

    def draw(self, *, audience: str = "internal") -> Chart:
        """Draw the confidentiality plots side by side."""
        return draw_chart("draw_side_by_side", dict(self.tables), audience=audience)


def _rule(rule: Unsafe | None, on: str | Sequence[str], options: Mapping[str, object]) -> Unsafe:
    """Return the rule with these options; PlanError for an option that does not exist."""
    known = [f.name for f in fields(Unsafe)]
    for name in options:
        if name not in known:
            raise PlanError(f"records has no parameter {name!r}.{did_you_mean(name, known)}")
    given: dict[str, Any] = {**options, **({"on": on} if len(on) else {})}
    return Unsafe(**given) if rule is None else replace(rule, **given)


def _with_midpoints(masked: Readable, intervals: Mapping[str, tuple[str, str]]) -> Microdata:
    """Return the masked file with interval midpoints where a value or its column is missing.

    Seri (2005), conclusions.
    """
    data = masked if isinstance(masked, Microdata) else read(masked)
    schema, columns = data.schema, {name: data.column(name) for name in data.names}
    for name, ends in intervals.items():
        low, high = (data.numbers(end) for end in ends)
        if (low > high).any():
            raise SchemaError(
                f"{int((low > high).sum())} intervals of {name!r} have a lower end above their upper end."
            )
        middle = low + (high - low) / 2
        if name not in data.names:
            schema = Schema((*schema.variables, Variable(name, "numeric")), schema.format)
        values = data.numbers(name) if name in data.names else middle
        columns[name] = Column(np.where(np.isnan(values), middle, values))
    return Microdata(schema, columns, data.origin)
