"""How much the analyses of users change: standardized differences of estimates, and changed conclusions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from scipy.special import ndtr

from sdcmap.core import Array, Estimate, Generator, Measure, Microdata, PlanError, SchemaError, Undefined
from sdcmap.core.formula import parse_nested_formula
from sdcmap.utility.analyses import Analysis, FileView, Findings, Regression
from sdcmap.utility.battery import propose_battery
from sdcmap.utility.stated_model import parse_model

CLEAR_T, LOST_T, REVERSED_T = 3.0, 1.64, 2.0  # sizes of t of clear findings, of lost and of reversed ones
NULL_T = 1.0  # of clear nulls
MIN_CLEAR_FINDINGS = 20  # with fewer, a single one would decide whether a limit on changed conclusions holds
HALF_OF_CAP = 5.0  # a difference of so many standard errors counts as half of the largest possible one
Half = Literal["all", "search", "report"]


class Comparison(NamedTuple):
    """An analysis with its estimates from the original and from the released file."""

    analysis: Analysis
    before: Findings
    after: Findings

    @property
    def differences(self) -> Array:
        """Return the differences of the estimates in standard errors of the original; infinite where one is lost.

        Estimates that the original does not give are left out.
        """
        known = np.isfinite(self.before.values) & (self.before.errors > 0)
        gap = np.abs(self.after.values - self.before.values)[known] / self.before.errors[known]
        return np.where(np.isfinite(gap), gap, np.inf)

    @property
    def conclusions(self) -> Conclusions:
        """Return which conclusions were clear, and which of them change."""
        if not self.before.has_null:
            none = np.zeros(len(self.before.values), dtype=bool)
            return Conclusions(none, none, none, none, none)
        before, after = self.before.t, self.after.t
        known = np.isfinite(self.before.values) & (self.before.errors > 0)
        clear, null = known & (np.abs(before) >= CLEAR_T), known & (np.abs(before) < NULL_T)
        reversed_ = clear & (before * after < 0) & (np.abs(after) >= REVERSED_T)
        lost = clear & ~reversed_ & (np.abs(after) < LOST_T)
        return Conclusions(clear, lost, reversed_, null, null & (np.abs(after) >= CLEAR_T))


class Conclusions(NamedTuple):
    """Which estimates of an analysis are clear findings or clear nulls, and which of these change."""

    clear: Array
    lost: Array
    reversed: Array
    null: Array
    new: Array

    @property
    def can_change(self) -> bool:
        """Whether there is a clear finding that can be lost, or a clear null that can become one."""
        return bool(self.clear.any() or self.null.any())


def saturate(differences: Array) -> Array:
    """Return differences, in standard errors, as a loss from 0 to 1: a difference of 5 counts one half.

    A cap alone would give a search no direction among candidates that are all beyond it.

    >>> saturate(np.array([0.0, 5.0, np.inf])).tolist()
    [0.0, 0.5, 1.0]
    """
    return np.asarray(1.0 - HALF_OF_CAP / (HALF_OF_CAP + differences))


def find_analyses(
    data: Microdata, half: Half = "all", models: Sequence[str] = (), kept: Sequence[str] = ()
) -> tuple[Analysis, ...]:
    """Return the stated models and the battery of a file, or a half of it.

    kept : models that a method was told to keep; equal regressions of the battery are left out.
    """
    stated = [parse_model(text, data) for text in models]
    left_out = {parse_nested_formula(text).key for text in kept}
    battery = select_half(propose_battery(data), half)
    chosen = (one for one in battery if not (isinstance(one, Regression) and one.key in left_out))
    return tuple(dict.fromkeys((*stated, *chosen)))


def compare_analyses(
    original: Microdata, masked: Microdata, half: Half = "all", models: Sequence[str] = (), kept: Sequence[str] = ()
) -> list[Comparison]:
    """Return the analyses of the original with the estimates from both files; `kept` as in `find_analyses`."""
    analyses = find_analyses(original, half, models, kept)
    before = original.remember(("findings", "original"), dict[Analysis, Findings])
    after = before if masked is original else masked.remember(("findings", "released"), dict[Analysis, Findings])
    views = FileView(original, original), FileView(masked, original)
    for view, found in zip(views, (before, after), strict=True):
        found.update({analysis: analysis.find(view) for analysis in analyses if analysis not in found})
    return [Comparison(analysis, before[analysis], after[analysis]) for analysis in analyses]


def count_clear_findings(
    data: Microdata, half: Half = "all", models: Sequence[str] = (), kept: Sequence[str] = ()
) -> int:
    """Return how many estimates of the analyses of a file are clear findings."""
    return sum(int(one.conclusions.clear.sum()) for one in compare_analyses(data, data, half, models, kept))


def select_half(battery: Sequence[Analysis], half: Half) -> tuple[Analysis, ...]:
    """Return every second analysis of each kind: a search must not see those that the report shows."""
    if half == "all":
        return tuple(battery)
    seen: dict[str, int] = {}
    chosen = []
    for analysis in battery:
        number = seen[analysis.kind] = seen.get(analysis.kind, -1) + 1
        if (number % 2 == 0) == (half == "search"):
            chosen.append(analysis)
    return tuple(chosen)


@dataclass(frozen=True)
class _AnalysisMeasure(Measure):
    """Base of the measures that repeat analyses.

    Parameters
    ----------
    models : regressions of your own, such as "log(wage) ~ educ + sex + educ:sex" or "region=north ~ age"; they always
        count. Categories are relative to the most frequent one.
    kept : regressions that a method was told to keep; equal ones among the automatic analyses do not count.
    half : "all" analyses; "search" or "report": one half of them each, so that a search does not see what is reported.
    """

    axis: ClassVar[Literal["risk", "utility"]] = "utility"
    paired: ClassVar[bool] = False
    # 2: no coefficient where a column separates the groups, no error of an exact fit; 3: kept models are left out, no sum
    # is explained by its parts, or they by it, and several categories of a sensitive column are explained
    revision: ClassVar[int] = 3
    missing: ClassVar[str] = "left out of means and regressions; in no category of a table"
    weights: ClassVar[str] = "used where the file has them"
    households: ClassVar[str] = "standard errors count households, or persons with several records"

    models: tuple[str, ...] = ()
    half: Half = field(default="all", kw_only=True)
    kept: tuple[str, ...] = field(default=(), kw_only=True)

    def problems(self) -> Iterator[str]:
        for name in ("models", "kept"):
            for text in getattr(self, name):
                try:
                    parse_nested_formula(text)
                except PlanError as problem:
                    yield f".{name}: {problem}"

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for analysis in self._analyses(data) for name in analysis.columns))

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from data.schema.unsupported_roles("wave")
        try:
            if not self._analyses(data):
                yield f"{type(self).__name__} needs columns with two values or more, each in at least 30 records."
        except (PlanError, SchemaError) as problem:
            yield f"{type(self).__name__}.models: {problem}"

    def _analyses(self, data: Microdata) -> tuple[Analysis, ...]:
        return find_analyses(data, self.half, self.models, self.kept)

    def compare(self, original: Microdata, masked: Microdata) -> list[Comparison]:
        """Return each analysis with its estimates from both files."""
        self.check_variables(original)
        return compare_analyses(original, masked, self.half, self.models, self.kept)


@dataclass(frozen=True)
class AnalysisError(_AnalysisMeasure):
    """How far the estimates of users move: regressions, tables, subgroup means and distributions.

    The analyses are chosen from the original by its roles, before anything is masked: each amount, sensitive column and
    indicator is explained by up to eight others (linear or logistic regression), categories are cross-tabulated, means
    are compared between groups, and amounts are described by mean and shares. All analyses weigh equally.

    Formula: the mean over analyses of the mean over their estimates of d / (5 + d), d = |released - original| / standard
        error of the original. A difference of five standard errors counts one half, and an estimate that the released
        file does not give counts 1. `parts`: the mean of each kind of analysis, and "analyses", their number. The value is
        exact for one file and these analyses.
    Missing values are left out. Weights are used where the file has them. Standard errors count households, or persons
    with several records. Works for sampled, recoded and synthetic files: a class of numbers is read as its midpoint.
    Releasing nothing gives 1.
    Reference: Snoke, Raab, Nowok, Dibben, Slavkovic (2018), standardized differences; Woo, Slavkovic (2015).

    Examples
    --------
    >>> AnalysisError(half="search").text
    "AnalysisError(half='search')"
    """

    label: ClassVar[str] = "Error of users' analyses"
    description: ClassVar[str] = (
        "How far regressions, tables, means and distributions of users move, in standard errors."
    )

    unit: ClassVar[str] = "loss from 0 to 1"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    baseline_value: ClassVar[float | None] = 1.0

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        losses: list[float] = []
        by_kind: dict[str, list[float]] = {}
        for one in self.compare(original, masked):
            differences = one.differences
            if len(differences):
                losses.append(float(saturate(differences).mean()))
                by_kind.setdefault(one.analysis.kind, []).append(losses[-1])
        if not losses:
            raise Undefined("no analysis can be made with the original.")
        parts = {kind: float(np.mean(own)) for kind, own in by_kind.items()} | {"analyses": float(len(losses))}
        return Estimate(value=float(np.mean(losses)), parts=parts)


@dataclass(frozen=True)
class ChangedConclusions(_AnalysisMeasure):
    """Share of clear conclusions that the released file changes, or the number of clear findings that it reverses.

    Parameters
    ----------
    models, half : the analyses that are repeated, as in AnalysisError.
    statistic : "share" of changed conclusions, or "reversed": how many clear findings have the opposite sign.

    A clear finding (|t| at least 3 in the original) is lost if the released file has |t| below 1.64, and reversed if it has
    the opposite sign and |t| at least 2. A clear null (|t| below 1) becomes a finding if the released file has |t| at least
    3. The analyses are those of `AnalysisError`; descriptions of distributions have no null and do not count.

    Formula: (share of clear findings lost or reversed + share of clear nulls that become findings) / 2, minus what a
        bootstrap resample of the original changes by chance, at least 0. The estimates of a resample are normal around
        those of the original with their standard errors, so t has variance 1 and the expected shares need no resampling.
        Both shares are means over analyses. `parts`: the numbers "clear findings", "lost", "reversed", "clear nulls",
        "new findings", and "by chance", what is subtracted. The value is exact for one file and these analyses.
    Missing values, weights and households as in AnalysisError. Works for sampled, recoded and synthetic files.
    Releasing nothing loses every finding: 0.5 minus what chance changes.
    A share hides that one finding is turned into its opposite. With `statistic="reversed"` the value is the number of clear
    findings that are reversed; in a resample of the original, chance reverses fewer than one of a million.
    Reference: the classes of Barrientos et al. (2018), section 5, with margins; the bootstrap is ours.

    Examples
    --------
    >>> ChangedConclusions().text
    'ChangedConclusions'
    """

    label: ClassVar[str] = "Changed conclusions"
    description: ClassVar[str] = (
        "Share of clear findings and clear nulls of users' analyses that are different in the released file."
    )

    revision: ClassVar[int] = 4  # 4: `statistic`, which changes no share
    unit: ClassVar[str] = "share of conclusions"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, None)
    texts_in_title: ClassVar[tuple[str, ...]] = ("statistic",)

    statistic: Literal["share", "reversed"] = field(default="share", kw_only=True)

    @property
    def title(self) -> str:
        return super().title if self.statistic == "share" else "Reversed findings"

    @property
    def value_unit(self) -> str:
        return self.unit if self.statistic == "share" else "findings"

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        compared = self.compare(original, masked)
        counts = np.sum([[part.sum() for part in one.conclusions] for one in compared], axis=0)
        names = ("clear findings", "lost", "reversed", "clear nulls", "new findings")
        parts = dict(zip(names, map(float, counts), strict=True))
        if self.statistic == "reversed":
            return Estimate(value=parts["reversed"], parts=parts)
        chance = expect_change(compared)
        return Estimate(value=max(0.0, measure_change(compared) - chance), parts=parts | {"by chance": chance})

    def baseline(self, original: Microdata) -> float | None:
        if self.statistic == "reversed":
            return 0.0
        compared = self.compare(original, original)
        has_finding, has_null = (any(own(one).any() for one in compared) for own in (_clear, _null))
        return max(0.0, has_finding / (has_finding + has_null or 1) - expect_change(compared))


def _clear(one: Comparison) -> Array:
    return one.conclusions.clear


def _null(one: Comparison) -> Array:
    return one.conclusions.null


def measure_change(compared: Sequence[Comparison]) -> float:
    """Return the mean of two shares that change, of clear findings and of clear nulls; all analyses weigh equally."""
    conclusions = [one.conclusions for one in compared]
    findings = [float((c.lost | c.reversed)[c.clear].mean()) for c in conclusions if c.clear.any()]
    nulls = [float(c.new[c.null].mean()) for c in conclusions if c.null.any()]
    return _mean_of_shares(findings, nulls)


def expect_change(compared: Sequence[Comparison]) -> float:
    """Return the expectation of `measure_change` for a bootstrap resample of the original: its t are normal around ours."""
    findings, nulls = [], []
    for one in compared:
        t, conclusions = np.abs(one.before.t), one.conclusions
        lost = ndtr(LOST_T - t) - ndtr(-LOST_T - t) + ndtr(-REVERSED_T - t)
        new = ndtr(t - CLEAR_T) + ndtr(-CLEAR_T - t)
        if conclusions.clear.any():
            findings.append(float(lost[conclusions.clear].mean()))
        if conclusions.null.any():
            nulls.append(float(new[conclusions.null].mean()))
    return _mean_of_shares(findings, nulls)


def _mean_of_shares(findings: Sequence[float], nulls: Sequence[float]) -> float:
    kinds = [own for own in (findings, nulls) if own]
    if not kinds:
        raise Undefined("the analyses of the original have neither a clear finding nor a clear null.")
    return sum(float(np.mean(own)) for own in kinds) / len(kinds)


def stated_models(measures: Sequence[Measure]) -> tuple[str, ...]:
    """Return the regressions that measures name."""
    own = [measure for measure in measures if isinstance(measure, AnalysisError | ChangedConclusions)]
    return tuple(dict.fromkeys(model for measure in own for model in measure.models))
