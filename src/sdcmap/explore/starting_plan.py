"""A starting plan: chains of methods over every released column, at several strengths, with the limits of a profile.

A release contains all columns. If a chain masked the keys but not an amount, the amount would identify people. So each
chain masks all columns that others could know, from weak to strong, and the rule chooses the least loss within all limits.
Weights that are unique, or that reveal a category, are averaged in every chain. Patterns of missing values that few
records share are changed first, except in fully synthetic files, whose missing values are drawn. No chain keeps numbers or
dates that only one person has: such a value shows that this person is in the file, whatever row it is on. In every chain
the extremes of amounts are drawn from a model of the tail, because the largest released number would tell the largest
amount.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from sdcmap.choose import Threshold
from sdcmap.core import Array, Floats, Infeasible, Measure, Method, Microdata, PlanError, Roles, SchemaError, Stream
from sdcmap.data.amounts import has_ordered_numbers
from sdcmap.data.cells import distinct_cells
from sdcmap.data.known_by import DATES
from sdcmap.explore.edit_proposals import propose_edits
from sdcmap.files.reader import Source
from sdcmap.kernels.masking.rare_values import MIN_SHARING_RECORDS
from sdcmap.methods import (
    PRAM,
    Chain,
    Derive,
    MaskMissing,
    Microaggregate,
    Noise,
    ProtectTails,
    RankSwap,
    Recode,
    Suppress,
    Synthesize,
)
from sdcmap.methods.average_weights import AverageWeights, average_neighbors
from sdcmap.methods.mask_missing import find_rare_patterns
from sdcmap.methods.microaggregate import MAX_RECORDS_GOWER
from sdcmap.risk import PublishedTables, WorstLinkage
from sdcmap.risk.published_tables import MAX_COMBINATIONS
from sdcmap.study.plan import Plan
from sdcmap.study.profiles import Profile
from sdcmap.utility import AnalysisError, ChangedConclusions, EditViolations, KolmogorovSmirnov, QueryError, TableError
from sdcmap.utility.analysis_change import MIN_CLEAR_FINDINGS, count_clear_findings

MAX_FINE_CATEGORIES = 12  # a column with more categories is recoded first
MAX_MERGED_CATEGORIES = 100  # of more categories, the rare ones keep their first character
MANY_BINS, MANY_RARE = 10, 0.02  # intervals, and share of rare categories, where only rare values would show people
SAMPLE_TARGETS_ABOVE = 5000  # records; in larger files each candidate is attacked on a sample of targets ...
TARGET_SAMPLE_SIZE = 2000  # ... of this size; the release checks attack more
MAX_SUPPRESSED_KEYS = 8  # keys of a local suppression; with more, nearly every value would be suppressed
FEW_BINS = 5  # of a column that is recoded first
PRAM_AND_RANK_STRENGTHS = ((0.9, 0.05), (0.7, 0.15), (0.4, 0.4), (0.15, 0.8))  # PRAM's stay, and the rank window
MIN_NAMED_COLUMNS = 3  # in a set of columns that the plan names
MIN_RECORDS_PER_NUMBER = 5  # numbers are averaged over so many records before ranks are swapped
LEAF_SIZES = (100, 300)  # records per leaf of synthesizing regressions
SYNTHESES: tuple[tuple[Literal["regressions", "trees", "adversarial forest", "copula"], int], ...] = (
    *(("regressions", leaf) for leaf in LEAF_SIZES),
    ("trees", 20),
    ("trees", 100),
    ("adversarial forest", 20),
    ("copula", 20),
)  # models of fully synthetic files, and their records per leaf; a copula has none, but so both are one entry of the plan
MIN_RECORDS_PER_KEY_COMBINATION = 50  # of the keys that a partly synthetic file leaves unmasked
MAX_RARE_SHARE = 0.1  # with more records in nearly unique categories, a column is recoded before synthesis
GROUP_SIZES = (5, 25)  # of microaggregation over all columns
MIN_RECORDS_PER_WEIGHT = 25
MAX_TRIAL_RECORDS = 5_000  # a method is tried on; if it fails, it is not planned
MIN_SURE_RECORDS = 200  # with more, and no missing numbers, no trial is needed
WEIGHT_COUNTS = (50, 20, 10, 5, 2)  # numbers of distinct weights to try, until they do not reveal categories
MAX_INFERENCE_GAIN = 0.5  # largest tolerated gain in guessing a category from the weight


def starting_plan(
    data: Microdata,
    profile: Profile,
    source: Source | None = None,
    formulas: Mapping[str, str] | None = None,
    tables: Sequence[str] = (),
) -> Plan:
    """Return a plan of about 20 candidates for a file whose roles are stated or proposed.

    Every chain masks all columns that others could know, repairs records that break a rule which every record of the file
    satisfies, and recomputes the columns in `formulas`. Utility is the error of users' analyses; changed conclusions, and
    errors of counts, of tables of the keys and of the distributions of the numbers, and records that break a rule, are
    measured too. Risk is the worst of
    the profile's measures, each as a share of its limit; it must be at most 1. If tables about the same people were
    published (`tables`: paths), an attack that uses them is added.
    """
    derived = tuple(_derive_steps(data, formulas or {}))
    inputs = frozenset(name for step in derived for name in step.arithmetic.names)
    columns = Columns(data, tuple(step.on for step in derived), profile.k, inputs)
    if not columns.categories and not columns.numbers:
        raise PlanError("the data have no keys and no numeric variables: state their roles when reading the file.")
    # Chains that coincide, do not fit the data or cannot mask them are dropped.
    fitting = [m for m in dict.fromkeys(columns.methods()) if next(m.incompatibilities(data), None) is None]
    methods = [method for method in fitting if columns.can_make(method)]
    edits = propose_edits(data, columns.derived)
    utilities = [*columns.utilities(), *([EditViolations(edits)] if edits else [])]
    adapted = profile.for_rows(len(data))
    if not any(_can_limit(measure, data) for measure in utilities):
        adapted = replace(adapted, conclusions=None)
    risks = [_sample_targets(measure, len(data)) for measure in adapted.measures(data).limits]
    risks += [published_tables_attack(data, tables)] if tables else []
    return Plan(
        methods,
        [*risks, *utilities],
        risk=tuple(measure.text for measure in risks),
        rule=Threshold(risk=1.0),
        edits=edits,
        derive=derived,
        data=None if source is None else columns.sort_names(source),
        profile=adapted,
        columns=columns.sets,
        steps=columns.named_steps,
    )


def _can_limit(measure: Measure, data: Microdata) -> bool:
    """Return whether a measure is the share of changed conclusions, and a file has enough clear ones for a limit."""
    return (
        isinstance(measure, ChangedConclusions)
        and measure.statistic == "share"
        and count_clear_findings(data, measure.half, measure.models, measure.kept) >= MIN_CLEAR_FINDINGS
    )


def published_tables_attack(data: Microdata, tables: Sequence[str]) -> PublishedTables:
    """Return the attack with published tables, on the first keys in the tables that have few enough combinations.

    SchemaError if the tables do not fit the data.
    """
    attack = PublishedTables(tuple(tables))
    named, known, cells = attack.table_columns(data), [], 1
    for name in data.keys:
        if name in named and cells * data.level_count(name) <= MAX_COMBINATIONS:
            known.append(name)
            cells *= data.level_count(name)
    attack = replace(attack, on=tuple(known))
    problems = list(attack.incompatibilities(data)) if known else ["the published tables contain none of the keys."]
    if problems:
        raise SchemaError(" ".join(problems))
    return attack


def _derive_steps(data: Microdata, formulas: Mapping[str, str]) -> Iterator[Derive]:
    """Yield the steps that recompute derived columns, for formulas that hold in the file as read."""
    for step in (Derive(name, formula) for name, formula in formulas.items()):
        if not any(step.incompatibilities(data)) and not any(step.doubts(data)):
            yield step


def _sample_targets(measure: Measure, rows: int) -> Measure:
    """Return the attack on a sample of targets, if attacking all records would take too long for every candidate."""
    return (
        replace(measure, targets=TARGET_SAMPLE_SIZE)
        if isinstance(measure, WorstLinkage) and rows > SAMPLE_TARGETS_ABOVE
        else measure
    )


@dataclass(frozen=True)
class Columns:
    """The columns to mask, by kind: those that others could know.

    derived : columns that are computed from the others, the `inputs`. k : how many records must share a pattern of missing
    values.
    """

    data: Microdata
    derived: tuple[str, ...] = ()
    k: int = 3
    inputs: frozenset[str] = frozenset()

    @cached_property
    def categories(self) -> tuple[str, ...]:
        """Columns of categories that others could know, the keys first."""
        known = [name for name in self.data.knowable if self.data.schema[name].kind != "numeric"]
        return tuple(sorted(known, key=lambda name: name not in self.data.keys))

    @cached_property
    def amounts(self) -> tuple[str, ...]:
        """Numbers that others could know, the derived ones last."""
        known = [name for name in self.data.numeric if self.data.schema[name].knowable]
        return tuple(sorted(known, key=lambda name: name in self.derived))

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """Amounts that are not derived."""
        return tuple(name for name in self.amounts if name not in self.derived)

    @cached_property
    def keys(self) -> tuple[str, ...]:
        return tuple(name for name in self.data.keys if name in self.categories)

    def can_make(self, method: Method) -> bool:
        """Return whether a method can mask the file: by a trial, where a column could have too few numbers for it."""
        if not self._few_numbers or any(isinstance(step, Synthesize) for step in method.steps):
            return True
        try:
            method.apply(self._few_records, Stream.of_seed(0, "trial"))
        except Infeasible:
            return False
        return True

    @cached_property
    def _few_records(self) -> Microdata:
        step = math.ceil(len(self.data) / MAX_TRIAL_RECORDS)
        return self.data if step < 2 else self.data.take(np.arange(0, len(self.data), step))

    @cached_property
    def _few_numbers(self) -> bool:
        """Return whether values of a number are missing, or the file is small."""
        return len(self.data) < MIN_SURE_RECORDS or any(self.data.missing(name).any() for name in self.numbers)

    def utilities(self) -> Iterator[Measure]:
        """Yield the utility measures: the error of users' analyses first, for the map.

        The other half of these analyses tells which conclusions change, so that no candidate is preferred by what it shows.
        """
        changed = ChangedConclusions(half="report"), ChangedConclusions(statistic="reversed")
        analyses = AnalysisError(half="search"), *changed
        yield from (measure for measure in analyses if next(measure.incompatibilities(self.data), None) is None)
        yield QueryError(on=(*self.categories, *self.amounts), queries=2000)
        if len(self.keys) > 1:
            yield TableError(self.keys, order=2)
        if self.amounts:
            yield KolmogorovSmirnov(on=self.amounts)

    @cached_property
    def sets(self) -> dict[str, tuple[str, ...]]:
        """The sets of columns that the plan names."""
        drawn = (*self._synthesis_order, *([] if self.data.weight is None else [self.data.weight]))
        first_keys = self.keys[:MAX_SUPPRESSED_KEYS]
        others = tuple(name for name in self.categories if name not in first_keys)
        sets = {"amounts": self.numbers} | ({} if first_keys == self.data.keys else {"first_keys": first_keys})
        sets |= {"keys": self.data.keys, "categories": self.categories, "other_categories": others}
        sets |= {"with_gaps": self._with_gaps if self.missing_steps else ()}
        sets |= {"knowable": self.data.knowable, "drawn": drawn}
        named: dict[str, tuple[str, ...]] = {}
        for name, own in sets.items():
            if len(own) >= MIN_NAMED_COLUMNS and own not in named.values():
                named[f"{name}_columns" if name in self.data.names else name] = own
        return named

    def sort_names(self, source: Source) -> Source:
        """Return the source with the longest lists in the order of the sets, so that the plan can write them by name."""
        as_known, as_numbers = (
            list(dict.fromkeys((*first, *self.data.names))) for first in (self.data.knowable, self.amounts)
        )
        return replace(
            source,
            numeric=tuple(sorted(source.numeric, key=as_numbers.index)),
            proposed=tuple(sorted(source.proposed, key=as_known.index)),
        )

    @cached_property
    def named_steps(self) -> dict[str, tuple[Method, ...]]:
        """The steps that the plan names."""
        steps = {
            "coarsen": self._recode_fine(FEW_BINS), "coarsen_rare": self._coarsen_rare, "mask_missing": self.missing_steps,
            "protect_tails": self._protect_tails, "average_weights": self.weight_steps,
        }  # fmt: skip
        named: dict[str, tuple[Method, ...]] = {}
        for name, own in steps.items():
            if own and tuple(own) not in named.values():
                named[name] = tuple(own)
        return named

    # ---- chains -----------------------------------------------------------------------------------------------
    def methods(self) -> Iterator[Method]:
        """Yield methods from weak to strong. Each masks every column, except for some keys in partly synthetic files."""
        coarse = self._recode_fine(FEW_BINS)
        # Perturbation: PRAM for categories and rank swapping for numbers, after a recode.
        for stay, window in PRAM_AND_RANK_STRENGTHS:
            yield self._chain(coarse, self._pram(stay), self._rank_swap(window))
        # Grouping: local suppression of keys and microaggregation of numbers.
        for size in (3, 10):
            yield self._chain(coarse, self._suppress(size), self._microaggregate(size))
        # PRAM with additive noise instead of rank swapping.
        yield self._chain(coarse, self._pram(0.3), self._add_noise(2.0))
        if self.categories and self.numbers:
            synthesis = Synthesize(self.numbers, given=self.categories, model="regressions", leaf=LEAF_SIZES[0])
            yield self._chain(coarse, self._pram(0.3), [synthesis])  # derived columns are recomputed later
        yield from self._microaggregated()
        yield from self._partly_synthetic()
        yield from self._synthetic()

    def _microaggregated(self) -> Iterator[Method]:
        """Yield microaggregation over all columns: the records of a group become equal in every column."""
        names = (*self.categories, *self.numbers)
        if len(self.data) <= MAX_RECORDS_GOWER and len(names) > 1:
            for size in GROUP_SIZES:
                if 2 * size <= len(self.data):
                    yield self._chain(self._protect_tails, [Microaggregate(names, size, method="gower")])

    def _partly_synthetic(self) -> Iterator[Method]:
        """Yield a partly synthetic file: some keys stay unmasked, every other column is drawn given these."""
        unmasked = self._unmasked_keys(MIN_RECORDS_PER_KEY_COMBINATION)
        drawn = tuple(name for name in self._synthesis_order if name not in (*unmasked, *self.derived))
        if unmasked and drawn:
            yield self._chain(self._coarsen_rare, [Synthesize(drawn, given=unmasked, model="regressions", leaf=100)])

    def _unmasked_keys(self, least: int) -> tuple[str, ...]:
        """Return keys, those with few categories first, whose occurring combinations all have at least `least` records."""
        chosen: tuple[str, ...] = ()
        cell = np.zeros(len(self.data), dtype=np.int64)
        for name in sorted(self.keys, key=self.data.level_count):
            finer = cell * self.data.level_count(name) + self.data.codes(name)
            count = np.bincount(finer)
            if count[count > 0].min() >= least:
                chosen, cell = (*chosen, name), finer
        return chosen

    def _synthetic(self) -> Iterator[Method]:
        """Yield fully synthetic files, whose rows do not correspond to people."""
        drawn = (*self._synthesis_order, *([] if self.data.weight is None else [self.data.weight]))
        if len(self._synthesis_order) > 1:
            for model, leaf in SYNTHESES:
                if 2 * leaf <= len(self.data):  # with fewer records nothing is split
                    yield self._chain(self._coarsen_rare, [Synthesize(drawn, model=model, leaf=leaf)])

    @cached_property
    def _synthesis_order(self) -> tuple[str, ...]:
        """All columns in the order of synthesis: those with few categories first, amounts last."""
        names = Roles(self.data).descriptive_columns
        few_first = sorted((name for name in names if name not in self.amounts), key=self.data.level_count)
        return (*few_first, *(name for name in self.amounts if name in names))

    @cached_property
    def _coarsen_rare(self) -> list[Method]:
        """Recodes of columns such as dates, in which many records have a nearly unique category.

        If such a category appeared in a synthetic file, it would show that its owner is in the data.
        """
        counts = {name: np.bincount(self.data.codes(name)) for name in self.categories}
        rare = [
            name
            for name, count in counts.items()
            if count[count < MIN_SHARING_RECORDS].sum() / count.sum() > MAX_RARE_SHARE
        ]
        return [step for name in rare for step in self._recode_column(name, MANY_BINS, MANY_RARE)]

    @cached_property
    def weight_steps(self) -> list[Method]:
        """The step that averages weights, in as many groups as do not reveal categories; empty if none is needed."""
        if self.data.weight is None or len(self.data) < MIN_RECORDS_PER_WEIGHT:
            return []
        own = self.data.numbers(self.data.weight)
        # Try fewer and fewer distinct weights until they reveal no category.
        sizes = [max(MIN_RECORDS_PER_WEIGHT, -(-len(self.data) // groups)) for groups in WEIGHT_COUNTS]
        size = next(
            (size for size in sizes if not self._reveals_category(average_neighbors(own, size))), len(self.data)
        )
        return [] if (average_neighbors(own, size) == own).all() else [self._average_weights(size)]

    def _average_weights(self, size: int) -> Method:
        """Return the step that averages weights, within strata if each has enough records."""
        strata = self.data.schema.of_role("stratum")
        least = int(self.data.view(distinct_cells, strata).count.min()) if strata else 0
        return (
            AverageWeights(min(size, least), within=strata) if least >= MIN_RECORDS_PER_WEIGHT else AverageWeights(size)
        )

    def _reveals_category(self, weights: Floats) -> bool:
        """Return whether the weight reveals much more of a category than the best guess without it."""
        group = np.unique(weights, return_inverse=True)[1]
        return any(_inference_gain(group, self.data.codes(name)) > MAX_INFERENCE_GAIN for name in self.categories)

    @cached_property
    def missing_steps(self) -> list[Method]:
        """The step that makes rare patterns of missing values frequent; empty if there are none."""
        has_rare = find_rare_patterns(self.data, self._with_gaps, self.k).any()
        return [MaskMissing(self._with_gaps, self.k)] if has_rare else []

    @cached_property
    def _with_gaps(self) -> tuple[str, ...]:
        """The columns with missing values that others could know, in the order of the sets."""
        names = (*self.categories, *self.numbers)
        return tuple(name for name in names if self.data.missing(name).any())

    def _chain(self, *parts: Sequence[Method]) -> Method:
        # missing values of a fully synthetic file are drawn from the model
        is_synthetic = any(not step.keeps_pairs(self.data) for part in parts for step in part)
        first = [] if is_synthetic else self.missing_steps
        steps = tuple(step for part in (first, *parts, self.weight_steps) for step in part)
        return steps[0] if len(steps) == 1 else Chain(steps)

    def _recode_fine(self, bins: int) -> list[Method]:
        """Return recodes of the columns with many categories."""
        fine = [name for name in self.categories if self.data.level_count(name) > MAX_FINE_CATEGORIES]
        return [step for name in fine for step in self._recode_column(name, bins, 1 / (2 * bins))]

    def _recode_column(self, name: str, bins: int, rare: float) -> Iterator[Method]:
        """Yield the recode of one column: intervals of numbers, years, or rare categories merged or cut to a character."""
        if has_ordered_numbers(self.data, name):
            if name not in self.inputs:  # a formula needs numbers, not intervals
                yield Recode((name,), bins=bins, by="quantiles")
        elif self.data.schema[name].storage in DATES:
            yield Recode((name,), prefix=4)
        elif self.data.level_count(name) > MAX_MERGED_CATEGORIES:
            yield Recode((name,), rare=rare, prefix=1)
        elif len(Roles(self.data).rare(name, rare)) > 1:
            yield Recode((name,), rare=rare)

    def _pram(self, stay: float) -> list[Method]:
        return [PRAM(self.categories, stay, alpha=1.0)] if self.categories else []

    def _rank_swap(self, window: float) -> list[Method]:
        """Return rank swapping of averaged numbers. A number that only one person has would show who it belongs to."""
        if not self.numbers:
            return []
        return [
            *self._protect_tails,
            Microaggregate(self.numbers, MIN_RECORDS_PER_NUMBER, method="individual"),
            RankSwap(self.numbers, window),
        ]

    def _suppress(self, size: int) -> list[Method]:
        """Return local suppression of the first keys, and PRAM for the other categories."""
        rest = tuple(name for name in self.categories if name not in self.keys[:MAX_SUPPRESSED_KEYS])
        suppressed: list[Method] = [Suppress(self.keys[:MAX_SUPPRESSED_KEYS], size, unmet="leave")] if self.keys else []
        return [*suppressed, *([PRAM(rest, 0.3, alpha=1.0)] if rest else [])]

    def _microaggregate(self, size: int) -> list[Method]:
        return [*self._protect_tails, Microaggregate(self.numbers, size)] if self.numbers else []

    def _add_noise(self, variance: float) -> list[Method]:
        return [*self._protect_tails, Noise(self.numbers, variance)] if self.numbers else []

    @property
    def _protect_tails(self) -> list[Method]:
        """Return the step that replaces the extremes of the numbers, for methods that keep or exchange numbers."""
        return [ProtectTails(self.numbers)] if self.numbers else []


def _inference_gain(group: Array, codes: Array) -> float:
    """Return the gain in guessing a value from its group, as a share of the errors of the best guess without groups."""
    shape = int(group.max()) + 1, int(codes.max()) + 1
    counts = np.bincount(group * shape[1] + codes, minlength=shape[0] * shape[1]).reshape(shape)
    # Goodman and Kruskal's lambda: errors of the overall mode, and how many of them the mode of the group avoids.
    errors = len(codes) - counts.sum(axis=0).max()
    return float((counts.max(axis=1).sum() - counts.sum(axis=0).max()) / errors) if errors else 0.0
