"""A plan to start from: chains over every released column, at several strengths, held to the limits of a profile.

A release is a whole file: where a chain masks the keys and leaves an amount open, everybody is found by the amount. So each
chain masks all columns that somebody could know, from weak to strong; the rule takes the least loss that holds every limit.
Weights that are a record's own, or tell its cell, are averaged in every chain. No chain carries people's own numbers or
dates on: whoever sees one knows that its owner is in the file, on whatever row it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sdcmap.choose import Threshold
from sdcmap.core import Array, Floats, Measure, Method, Microdata, PlanError, Roles, SchemaError
from sdcmap.data.amounts import holds_numbers
from sdcmap.data.cells import distinct_cells
from sdcmap.data.known_by import DATES
from sdcmap.files.reading import Source
from sdcmap.kernels.masking.rare_values import MIN_SHARING_RECORDS
from sdcmap.methods import PRAM, Chain, Derive, Microaggregate, Noise, RankSwap, Recode, Suppress, Synthesize
from sdcmap.methods.average_weights import AverageWeights, average_neighbors
from sdcmap.methods.microaggregate import MAX_RECORDS_GOWER
from sdcmap.risk import PublishedTables, WorstLinkage
from sdcmap.risk.published_tables import MAX_COMBINATIONS
from sdcmap.study.plan import Plan
from sdcmap.study.profiles import Profile
from sdcmap.utility import KolmogorovSmirnov, QueryError, TableError

FINE = 12  # categories, beyond which a column is made coarser first
MANY = 100  # categories, beyond which the rare ones are too many to list
FEW_ROWS, TARGETS = 5000, 2000  # beyond so many records so many are targets of each candidate; a release attacks more
MOST_KEYS = 8  # keys of a local suppression; with more nearly every value would be blanked
PERTURBED = ((0.9, 0.05), (0.7, 0.15), (0.5, 0.3), (0.3, 0.5), (0.15, 0.8))  # PRAM's stay, and the window of ranks
SHARED_NUMBERS = 5  # records that have a number before ranks are swapped
LEAVES = (5, 20, 100, 200)
KEPT = (20, 50)  # fewest records of each combination of the columns that a partly synthetic file keeps
OWN = 0.1  # share of the records whose category is their own, beyond which a column is made coarser before it is drawn
GROUPS = (5, 10, 25, 50)
SHARED = 25  # fewest records of one weight
WEIGHTS = (50, 20, 10, 5, 2)  # most different weights, as many as tell nothing
TELLS = 0.5  # share of the values that a guess without the weight misses, which the weight may tell


def starting_plan(
    data: Microdata,
    profile: Profile,
    source: Source | None = None,
    formulas: Mapping[str, str] | None = None,
    tables: Sequence[str] = (),
) -> Plan:
    """A plan of about 30 candidates for a file whose roles are stated or proposed.

    Every chain masks all columns that others could know, and computes those of `formulas` anew; utility is the error of
    counts of the keys and the numbers, with tables of the keys and the distributions of the numbers beside it; risk is
    the worst of the profile's measures, each as a share of its limit, at most 1. Published tables of the same people
    (`tables`: paths) add the attack of who holds them.
    """
    derived = tuple(_derived(data, formulas or {}))
    columns = Columns(data, tuple(step.on for step in derived))
    if not columns.categories and not columns.numbers:
        raise PlanError("the data have no keys and no numeric variables: state roles when reading them.")
    methods = [m for m in dict.fromkeys(columns.methods()) if next(m.incompatibilities(data), None) is None]
    held = profile.for_rows(len(data))
    risks = [_on_a_sample(measure, len(data)) for measure in held.measures(data).limits]
    risks += [with_tables(data, tables)] if tables else []
    return Plan(
        methods, [*risks, *columns.utilities()], risk=tuple(measure.text for measure in risks),
        rule=Threshold(risk=1.0), derive=derived, data=source, profile=held,
    )  # fmt: skip


def with_tables(data: Microdata, tables: Sequence[str]) -> PublishedTables:
    """The attack of who holds these tables: on the keys that they are of, the first that have so few combinations as it can
    look at. SchemaError where it does not fit the data."""
    attack = PublishedTables(tuple(tables))
    named, known, cells = attack.table_columns(data), [], 1
    for name in data.keys:
        if name in named and cells * data.level_count(name) <= MAX_COMBINATIONS:
            known.append(name)
            cells *= data.level_count(name)
    attack = replace(attack, on=tuple(known))
    problems = list(attack.incompatibilities(data)) if known else ["the published tables are of none of the keys."]
    if problems:
        raise SchemaError(" ".join(problems))
    return attack


def _derived(data: Microdata, formulas: Mapping[str, str]) -> Iterator[Derive]:
    """The steps that compute derived columns: of formulas that hold in the file as it is read."""
    for step in (Derive(name, formula) for name, formula in formulas.items()):
        if not any(step.incompatibilities(data)) and not any(step.doubts(data)):
            yield step


def _on_a_sample(measure: Measure, rows: int) -> Measure:
    """The same attack on some of the records, where all would be dear for each of many candidates."""
    return replace(measure, targets=TARGETS) if isinstance(measure, WorstLinkage) and rows > FEW_ROWS else measure


@dataclass(frozen=True)
class Columns:
    """What there is to mask: the columns that others could know, by kind; `derived` are computed from the others."""

    data: Microdata
    derived: tuple[str, ...] = ()

    @cached_property
    def categories(self) -> tuple[str, ...]:
        return tuple(name for name in self.data.knowable if self.data.schema[name].kind != "numeric")

    @cached_property
    def amounts(self) -> tuple[str, ...]:
        return tuple(name for name in self.data.numeric if self.data.schema[name].knowable)

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """The amounts that are not derived."""
        return tuple(name for name in self.amounts if name not in self.derived)

    @cached_property
    def keys(self) -> tuple[str, ...]:
        return tuple(name for name in self.data.keys if name in self.categories)

    def utilities(self) -> Iterator[Measure]:
        """Errors of counts first, for the map; then of tables of the keys, and of the numbers."""
        yield QueryError(on=(*self.categories, *self.amounts), queries=2000)
        if len(self.keys) > 1:
            yield TableError(self.keys, order=2)
        if self.amounts:
            yield KolmogorovSmirnov(on=self.amounts)

    # ---- chains -----------------------------------------------------------------------------------------------
    def methods(self) -> Iterator[Method]:
        """From weak to strong; each masks every column, but for the few that a partly synthetic file keeps."""
        for bins, strengths in ((10, PERTURBED[::2]), (5, PERTURBED)):
            coarse = self._coarser(bins)
            for stay, window in strengths:
                yield self._chain(coarse, self._moved(stay), self._ranked(window))
        for size in (3, 10):
            yield self._chain(coarse, self._crowded(size), self._grouped(size))
        for stay, variance in ((0.5, 0.5), (0.3, 2.0)):
            yield self._chain(coarse, self._moved(stay), [Noise(self.numbers, variance)] if self.numbers else [])
        if self.categories and self.numbers:
            for stay in (0.5, 0.3):
                drawn = Synthesize(self.numbers, given=self.categories)  # not what is derived of the numbers themselves
                yield self._chain(coarse, self._moved(stay), [drawn])
        yield from self._together()
        yield from self._partly_synthetic()
        yield from self._synthetic()

    def _together(self) -> Iterator[Method]:
        """Groups of records that become equal in every column."""
        names = (*self.categories, *self.numbers)
        if len(self.data) <= MAX_RECORDS_GOWER and len(names) > 1:
            for size in GROUPS:
                if 2 * size <= len(self.data):
                    yield self._chain([Microaggregate(names, size, method="gower")])

    def _partly_synthetic(self) -> Iterator[Method]:
        """Some keys kept as they are, every other column drawn given these."""
        for least in KEPT:
            kept = self._kept(least)
            drawn = tuple(name for name in self._drawn_in_turn if name not in (*kept, *self.derived))
            if kept and drawn:
                for leaf in LEAVES[2:]:
                    yield self._chain(self._less_own, [Synthesize(drawn, given=kept, leaf=leaf)])

    def _kept(self, least: int) -> tuple[str, ...]:
        """Keys, those with few categories first, of which every combination that is met has at least so many records."""
        kept: tuple[str, ...] = ()
        cell = np.zeros(len(self.data), dtype=np.int64)
        for name in sorted(self.keys, key=self.data.level_count):
            finer = cell * self.data.level_count(name) + self.data.codes(name)
            count = np.bincount(finer)
            if count[count > 0].min() >= least:
                kept, cell = (*kept, name), finer
        return kept

    def _synthetic(self) -> Iterator[Method]:
        """Files whose rows are nobody's."""
        drawn = (*self._drawn_in_turn, *([] if self.data.weight is None else [self.data.weight]))
        if len(self._drawn_in_turn) > 1:
            for leaf in LEAVES:
                yield self._chain(self._less_own, [Synthesize(drawn, leaf=leaf)])
            yield self._chain(self._less_own, [Synthesize(drawn, model="copula")])

    @cached_property
    def _drawn_in_turn(self) -> tuple[str, ...]:
        """All columns in the order in which they are drawn: those with few categories first, the amounts last."""
        names = Roles(self.data).descriptive_columns
        few_first = sorted((name for name in names if name not in self.amounts), key=self.data.level_count)
        return (*few_first, *(name for name in names if name in self.amounts))

    @cached_property
    def _less_own(self) -> list[Method]:
        """Columns such as dates, made coarser where many records have a category that is nearly theirs alone: drawn as it
        is, it would tell that its owner is in the file."""
        counts = {name: np.bincount(self.data.codes(name)) for name in self.categories}
        own = [name for name, count in counts.items() if count[count < MIN_SHARING_RECORDS].sum() / count.sum() > OWN]
        return [step for name in own for step in self._coarse(name, 10)]

    @cached_property
    def weighting(self) -> list[Method]:
        """Weights averaged, in as many groups as tell nothing of the columns that others could know; nothing where the
        weights are so already."""
        if self.data.weight is None or len(self.data) < SHARED:
            return []
        own = self.data.numbers(self.data.weight)
        sizes = [max(SHARED, -(-len(self.data) // groups)) for groups in WEIGHTS]
        size = next((size for size in sizes if not self._tells(average_neighbors(own, size))), len(self.data))
        return [] if (average_neighbors(own, size) == own).all() else [self._averaging(size)]

    def _averaging(self, size: int) -> Method:
        """Within strata, where each has enough records."""
        strata = self.data.schema.of_role("stratum")
        least = int(self.data.view(distinct_cells, strata).count.min()) if strata else 0
        return AverageWeights(min(size, least), within=strata) if least >= SHARED else AverageWeights(size)

    def _tells(self, weights: Floats) -> bool:
        """Whether a weight tells much of a column, beyond the best single guess."""
        group = np.unique(weights, return_inverse=True)[1]
        return any(_told(group, self.data.codes(name)) > TELLS for name in self.categories)

    def _chain(self, *parts: Sequence[Method]) -> Method:
        steps = tuple(step for part in (*parts, self.weighting) for step in part)
        return steps[0] if len(steps) == 1 else Chain(steps)

    def _coarser(self, bins: int) -> list[Method]:
        """Fewer categories of columns with many."""
        fine = [name for name in self.categories if self.data.level_count(name) > FINE]
        return [step for name in fine for step in self._coarse(name, bins)]

    def _coarse(self, name: str, bins: int) -> Iterator[Method]:
        """One column: intervals of numbers, years of dates, the rare together, or first letters."""
        is_date = self.data.schema[name].storage in DATES
        if holds_numbers(self.data.column(name)):
            yield Recode((name,), bins=bins, by="quantiles")
        elif is_date or self.data.level_count(name) > MANY:
            yield Recode((name,), prefix=4 if is_date else 1)
        elif len(rare := Roles(self.data).rare(name, 1 / (2 * bins))) > 1:
            yield Recode((name,), merge=(rare,), labels=("other",))

    def _moved(self, stay: float) -> list[Method]:
        return [PRAM(self.categories, stay, alpha=1.0)] if self.categories else []

    def _ranked(self, window: float) -> list[Method]:
        """Ranks swapped, of numbers that a few records share: swapped as they are, each would tell its owner."""
        if not self.numbers:
            return []
        return [Microaggregate(self.numbers, SHARED_NUMBERS, method="individual"), RankSwap(self.numbers, window)]

    def _crowded(self, size: int) -> list[Method]:
        """Blanked keys, and the other categories dealt out at random."""
        rest = tuple(name for name in self.categories if name not in self.keys[:MOST_KEYS])
        blanked: list[Method] = [Suppress(self.keys[:MOST_KEYS], size, unmet="leave")] if self.keys else []
        return [*blanked, *([PRAM(rest, 0.3, alpha=1.0)] if rest else [])]

    def _grouped(self, size: int) -> list[Method]:
        return [Microaggregate(self.numbers, size)] if self.numbers else []


def _told(group: Array, codes: Array) -> float:
    """The share of the values that the commonest value of the group tells, of those that the commonest of all misses."""
    shape = int(group.max()) + 1, int(codes.max()) + 1
    counts = np.bincount(group * shape[1] + codes, minlength=shape[0] * shape[1]).reshape(shape)
    missed = len(codes) - counts.sum(axis=0).max()
    return float((counts.max(axis=1).sum() - counts.sum(axis=0).max()) / missed) if missed else 0.0
