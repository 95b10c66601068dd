"""What masking did to the columns: values before and after, records that a column identifies, rules that still hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import or_
from typing import Any, NamedTuple

import numpy as np

from sdcmap.bundle.recoverable_columns import check_recoverable
from sdcmap.core import Array, Method, Microdata
from sdcmap.core.audience import MIN_SHOWN_RECORDS, RECORD_SHARES, Audience, format_significant
from sdcmap.core.edit_rule import parse_edit
from sdcmap.data.schema import NEVER_RELEASED, RENUMBERED_ROLES
from sdcmap.explore.first_look import look
from sdcmap.methods import Derive
from sdcmap.risk import ExactMatch
from sdcmap.study.plan import Plan

MAX_OTHER_COLUMNS = 2  # that an attacker knows besides the one
MAX_COMPARISONS = 400_000_000  # records times column sets: more would take minutes


class ExactMatches(NamedTuple):
    """Records that an exact lookup identifies, and the other columns that the attacker knows."""

    records: int
    others: tuple[str, ...] = ()


class ColumnRow(NamedTuple):
    """One column of the report's table.

    unique : records that the column identifies alone, in the unmasked file and in the release. combined : the same together
    with two other columns. None if the column is not released, or if there are too many columns to search.
    """

    name: str
    label: str
    role: str
    known_by: str
    treatment: str
    unique: tuple[ExactMatches, ...] | None
    combined: tuple[ExactMatches, ...] | None


def column_rows(original: Microdata, masked: Microdata, method: Method) -> list[ColumnRow]:
    """Return one row for each column of the original, with the records it identifies before and after masking."""
    excluded = (*NEVER_RELEASED, *RENUMBERED_ROLES)
    released = [v.name for v in original.schema.variables if v.role not in excluded and v.name in masked.names]
    is_affordable = 4 * len(released) ** 2 * len(original) <= MAX_COMPARISONS
    rows = []
    for variable in original.schema.variables:
        name, role = variable.name, variable.role or ""
        files, others = (original, masked) if name in released else (), [other for other in released if other != name]
        unique = tuple(_count_matches(original, file, (name,)) for file in files)
        combined = tuple(_search_worst_columns(original, file, name, others) for file in files if is_affordable)
        treatment, known_by = _describe_masking(original, method, name, role), variable.known_by or "anyone"
        shown = name, variable.label, role or "not stated", known_by, treatment
        rows.append(ColumnRow(*shown, unique or None, combined or None))
    return rows


def _count_matches(original: Microdata, file: Microdata, names: tuple[str, ...]) -> ExactMatches:
    return ExactMatches(int(ExactMatch(on=names).records(original, file).sum()), names[1:])


def _search_worst_columns(original: Microdata, file: Microdata, name: str, others: Sequence[str]) -> ExactMatches:
    """Return the matches with up to two other columns, added greedily: each time the one that identifies most records."""
    best = _count_matches(original, file, (name,))
    while len(best.others) < MAX_OTHER_COLUMNS:
        remaining = [other for other in others if other not in best.others]
        extended = (_count_matches(original, file, (name, *best.others, other)) for other in remaining)
        candidate = max(extended, key=lambda matches: matches.records, default=best)
        if candidate.records <= best.records:
            break
        best = candidate
    return best


def _describe_masking(data: Microdata, method: Method, name: str, role: str) -> str:
    if role in NEVER_RELEASED:
        return "not released"
    if role in RENUMBERED_ROLES:
        return "renumbered at random"
    actions = dict.fromkeys(step.action for step in method.steps if name in step.masks(data))
    return ", then ".join(actions) or "unchanged"


MAX_CATEGORIES_SHOWN = 12  # of a variable; the others are merged
MAX_LEVELS = 50  # of a variable whose relations are reported; more make Cramér's V unreliable
MAX_RELATIONS_SHOWN = 12


@dataclass(frozen=True)
class Table:
    """One table of the report: a head and rows of text."""

    name: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def change_tables(original: Microdata, masked: Microdata, names: tuple[str, ...], to: Audience) -> list[Table]:
    """Return each masked variable before and after, then the relations that changed most. Weights are not used."""
    both = {"before": original, "after": masked}
    # A number that masking turned into categories can only be shown after masking.
    numbers = [name for name in names if original.column(name).levels is None]
    recoded = [name for name in numbers if masked.column(name).levels is not None]
    tables = [_numeric_table(original, masked, name, to) for name in numbers if name not in recoded]
    tables += [_category_table({"after": masked}, name, to) for name in recoded]
    tables += [_category_table(both, name, to) for name in names if name not in numbers]
    relations = sorted(_relations(original, masked, names), key=lambda relation: -abs(relation[2] - relation[1]))
    digits = 2 if to.is_external else 3
    rows = [
        (what, format_significant(a, digits), format_significant(b, digits))
        for what, a, b in relations[:MAX_RELATIONS_SHOWN]
    ]
    return [*tables, Table("Relations that changed most", ("between", *both), tuple(rows))] if rows else tables


def _numeric_table(original: Microdata, masked: Microdata, name: str, to: Audience) -> Table:
    """Return mean and standard deviation; for the board also the quartiles."""
    pair = [values[~np.isnan(values)] for values in (original.numbers(name), masked.numbers(name))]
    head = ("", "before", "after")
    if min(map(len, pair)) < MIN_SHOWN_RECORDS:
        return Table(name, head, (("too few values to show", "", ""),))
    if to.is_external and any(np.isin(values, (0.0, 1.0)).all() for values in pair):  # the mean is a share of records
        return Table(name, head, (("mean", *(to.score(float(values.mean()), RECORD_SHARES[0]) for values in pair)),))
    statistics: dict[str, Callable[[Array], Any]] = {"mean": np.mean, "standard deviation": partial(np.std, ddof=1)}
    if not to.is_external:
        quartiles = {"lower quartile": 0.25, "median": 0.5, "upper quartile": 0.75}
        statistics |= {word: partial(np.quantile, q=q) for word, q in quartiles.items()}
    rows = tuple((word, *(to.number(float(of(values))) for values in pair)) for word, of in statistics.items())
    return Table(name, head, rows)


def _category_table(files: Mapping[str, Microdata], name: str, to: Audience) -> Table:
    """Return the share of each category in each file; small categories are merged and not named."""
    counts = [_counts(file, name) for file in files.values()]
    merged = merge_small({level: tuple(of[level] for of in counts) for level in reduce(or_, counts)})
    rows = tuple((level, *map(to.percent, own)) for level, own in merged.items())
    return Table(name, ("category", *files), rows or (("categories too small to show", *("" for _ in files)),))


def merge_small(counts: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Merge categories so that at most 12 remain, each with 10 records or more in each file.

    If the merged categories together have 1 to 9 records, the smallest named categories join them, so that no difference
    between totals reveals a small count.

    >>> merge_small({"a": (50, 48), "b": (30, 33), "c": (4, 3)})
    {'a': (50, 48), '2 other categories': (34, 36)}
    """
    # A category is named only if it is large in every file: the difference of two files must not reveal a small count.
    large = [level for level, own in counts.items() if min(own) >= MIN_SHOWN_RECORDS]
    large.sort(key=lambda level: -min(counts[level]))
    named = large if len(large) == len(counts) <= MAX_CATEGORIES_SHOWN else large[: MAX_CATEGORIES_SHOWN - 1]
    while True:
        others = [own for level, own in counts.items() if level not in named]
        total = tuple(map(sum, zip(*others, strict=True)))
        may_show = all(n == 0 or n >= MIN_SHOWN_RECORDS for n in total)
        if may_show or not named:
            break
        named = named[:-1]
    merged = {level: own for level, own in counts.items() if level in named}
    if may_show and any(total):
        merged[f"{len(others)} other categories" if len(others) > 1 else "one other category"] = total
    return merged


def _counts(data: Microdata, name: str) -> Counter[str]:
    column, records = data.column(name), Counter[str]()
    if column.levels is not None:
        counts = np.bincount(column.values, minlength=len(column.levels)).tolist()
        for level, count in zip(column.levels.to_list(), counts, strict=True):
            records["missing" if level is None else str(level)] += count
    return records


def _relations(original: Microdata, masked: Microdata, names: tuple[str, ...]) -> Iterator[tuple[str, float, float]]:
    """Yield (pair, before, after): the correlation or Cramér's V of each masked variable with every other variable."""
    for number, name in enumerate(names):
        for other in original.content_columns:
            if other == name or other in names[:number]:
                continue
            kinds = [data.column(both).levels is None for data in (original, masked) for both in (name, other)]
            if all(kinds) or (not any(kinds) and max(map(original.level_count, (name, other))) <= MAX_LEVELS):
                word, strength = ("correlation", _correlation) if all(kinds) else ("Cramér's V", _cramer)
                before, after = (strength(data, name, other) for data in (original, masked))
                yield f"{name}, {other} ({word})", before, after


def _correlation(data: Microdata, name: str, other: str) -> float:
    x, y = data.numbers(name), data.numbers(other)
    known = ~(np.isnan(x) | np.isnan(y))
    x, y = x[known], y[known]
    constant = len(x) < MIN_SHOWN_RECORDS or x.std() == 0 or y.std() == 0
    return 0.0 if constant else float(np.corrcoef(x, y)[0, 1])


def _cramer(data: Microdata, name: str, other: str) -> float:
    """Return Cramér's V = sqrt(chi^2 / (n (min(rows, columns) - 1))), over the categories that occur."""
    sizes = data.level_count(name), data.level_count(other)
    # Count all cells at once: each pair of codes is one number.
    cells = np.bincount(data.codes(name).astype(np.int64) * sizes[1] + data.codes(other), minlength=sizes[0] * sizes[1])
    table: Array = cells.reshape(sizes)
    # Categories without records would make the expected counts zero.
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0].astype(np.float64)
    least = min(table.shape) - 1
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return float(np.sqrt(((table - expected) ** 2 / expected).sum() / table.sum() / least)) if least else 0.0


NOT_CHECKABLE = "cannot be checked"


class ConstraintRow(NamedTuple):
    """An edit rule or a formula, and how well the original and the release satisfy it."""

    rule: str
    before: str
    after: str


def check_constraints(plan: Plan, original: Microdata, masked: Microdata) -> Iterator[ConstraintRow]:
    """Yield the plan's edit rules, and the formulas that the plan states or that hold in the original."""
    for text in plan.edits:
        rule = parse_edit(text)
        after = NOT_CHECKABLE
        if not any(rule.reading_problems(masked, original)):
            unknown = int(rule.undecided(masked).sum())
            after = _count_violations(rule.violations(masked))
            after += f"; intervals leave it open for {unknown:,} records" if unknown else ""
        yield ConstraintRow(text, _count_violations(rule.violations(original)), after)
    observed = {c.name: c.formula for c in look(original).variables if c.formula}
    for name, formula in {**observed, **{step.on: step.formula for step in plan.derive}}.items():
        step = Derive(name, formula)
        if not any(step.incompatibilities(original)):
            after = NOT_CHECKABLE if any(step.incompatibilities(masked)) else f"{step.agreement(masked):.1%} of records"
            yield ConstraintRow(f"{name} = {formula}", f"{step.agreement(original):.1%} of records", after)


def describe_recoverable(plan: Plan, original: Microdata, masked: Microdata, names: Sequence[str]) -> str:
    """Return a sentence on whether released columns determine a masked one; empty if rows have no originals."""
    if masked.origin is not None or not masked.paired:
        return ""
    sentence = check_recoverable(original, masked, names, plan.policy).reason
    return sentence[:1].upper() + sentence[1:]


def _count_violations(violations: Array) -> str:
    return f"violated by {violations.sum():,} records" if violations.any() else "satisfied by all records"
