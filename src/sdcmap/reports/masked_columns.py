"""What masking did to the columns: each before and after, whom it gives away, and which rules and relations still hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import or_
from typing import Any, NamedTuple

import numpy as np

from sdcmap.bundle.determines import check_determines
from sdcmap.core import Array, Method, Microdata
from sdcmap.core.audience import MIN_SHOWN_RECORDS, RECORD_SHARES, Audience, format_significant
from sdcmap.core.edit_rule import parse_edit
from sdcmap.data.schema import NEVER_RELEASED
from sdcmap.explore.first_look import look
from sdcmap.methods import Derive
from sdcmap.risk import ExactMatch
from sdcmap.study.plan import Plan

NUMBERED_ANEW = ("household", "stratum")  # equal numbers belong together; the numbers themselves tell nothing
MOST_OTHERS = 2  # columns known beside the one
MOST_WORK = 400_000_000  # records times sets of columns that are looked at for the most telling others


class Given(NamedTuple):
    """Records found by looking up what is known, and the other columns that are known beside this one."""

    records: int
    others: tuple[str, ...] = ()


class ColumnRow(NamedTuple):
    """One column; alone and together : whom it gives away by itself, and with two others, in the unmasked file and in the
    release; None where it is held back, or where there are too many columns to look at all sets."""

    name: str
    label: str
    role: str
    known_by: str
    done: str
    alone: tuple[Given, ...] | None
    together: tuple[Given, ...] | None


def column_rows(original: Microdata, masked: Microdata, method: Method) -> list[ColumnRow]:
    """One row a column of the original; whom it gives away in the unmasked file, and in the release."""
    apart = (*NEVER_RELEASED, *NUMBERED_ANEW)
    released = [v.name for v in original.schema.variables if v.role not in apart and v.name in masked.names]
    searched = 4 * len(released) ** 2 * len(original) <= MOST_WORK
    rows = []
    for variable in original.schema.variables:
        name, role = variable.name, variable.role or ""
        files, others = (original, masked) if name in released else (), [other for other in released if other != name]
        alone = tuple(_given(original, file, (name,)) for file in files)
        together = tuple(_most_given(original, file, name, others) for file in files if searched)
        done, known_by = _done(original, method, name, role), variable.known_by or "anybody"
        shown = name, variable.label, role or "not stated", known_by, done
        rows.append(ColumnRow(*shown, alone or None, together or None))
    return rows


def _given(original: Microdata, file: Microdata, names: tuple[str, ...]) -> Given:
    return Given(int(ExactMatch(on=names).records(original, file).sum()), names[1:])


def _most_given(original: Microdata, file: Microdata, name: str, others: Sequence[str]) -> Given:
    """With up to two others, each the one that gives most records away when it is added."""
    best = _given(original, file, (name,))
    while len(best.others) < MOST_OTHERS:
        tried = [_given(original, file, (name, *best.others, other)) for other in others if other not in best.others]
        more = max(tried, key=lambda given: given.records, default=best)
        if more.records <= best.records:
            break
        best = more
    return best


def _done(data: Microdata, method: Method, name: str, role: str) -> str:
    if role in NEVER_RELEASED:
        return "held back"
    if role in NUMBERED_ANEW:
        return "numbered anew at random"
    deeds = dict.fromkeys(step.action for step in method.steps if name in step.masks(data))
    return ", then ".join(deeds) or "nothing"


MOST_CATEGORIES = 12
MOST_LEVELS = 50  # relations of variables with more categories than this are left out
MOST_RELATIONS = 12


@dataclass(frozen=True)
class Table:
    """One variable: a head and rows of words."""

    name: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def changes(original: Microdata, masked: Microdata, names: tuple[str, ...], to: Audience) -> list[Table]:
    """Each masked variable before and after, then the relations that changed most. Every record counts once."""
    both = {"before": original, "after": masked}
    numbers = [name for name in names if original.column(name).levels is None]
    recoded = [name for name in numbers if masked.column(name).levels is not None]
    tables = [_amounts(original, masked, name, to) for name in numbers if name not in recoded]
    tables += [_shares({"after": masked}, name, to) for name in recoded]
    tables += [_shares(both, name, to) for name in names if name not in numbers]
    relations = sorted(_relations(original, masked, names), key=lambda relation: -abs(relation[2] - relation[1]))
    digits = 2 if to.is_external else 3
    rows = [
        (what, format_significant(a, digits), format_significant(b, digits))
        for what, a, b in relations[:MOST_RELATIONS]
    ]
    return [*tables, Table("Relations that changed most", ("between", *both), tuple(rows))] if rows else tables


def _amounts(original: Microdata, masked: Microdata, name: str, to: Audience) -> Table:
    """Mean and standard deviation; inside also the quartiles."""
    pair = [values[~np.isnan(values)] for values in (original.numbers(name), masked.numbers(name))]
    head = ("", "before", "after")
    if min(map(len, pair)) < MIN_SHOWN_RECORDS:
        return Table(name, head, (("too few values to show", "", ""),))
    if to.is_external and any(np.isin(values, (0.0, 1.0)).all() for values in pair):  # the mean is a share
        return Table(name, head, (("mean", *(to.score(float(values.mean()), RECORD_SHARES[0]) for values in pair)),))
    told: dict[str, Callable[[Array], Any]] = {"mean": np.mean, "standard deviation": partial(np.std, ddof=1)}
    if not to.is_external:
        quartiles = {"lower quartile": 0.25, "median": 0.5, "upper quartile": 0.75}
        told |= {word: partial(np.quantile, q=q) for word, q in quartiles.items()}
    rows = tuple((word, *(to.number(float(of(values))) for values in pair)) for word, of in told.items())
    return Table(name, head, rows)


def _shares(files: Mapping[str, Microdata], name: str, to: Audience) -> Table:
    """The share of each category in each file; small ones are merged and not named."""
    counts = [_counts(file, name) for file in files.values()]
    merged = merge_small({level: tuple(of[level] for of in counts) for level in reduce(or_, counts)})
    rows = tuple((level, *map(to.percent, own)) for level, own in merged.items())
    return Table(name, ("category", *files), rows or (("categories too small to show", *("" for _ in files)),))


def merge_small(counts: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """At most 12 categories: the largest with 10 records or more in each file, and all others as one.

    Where the others together have 1 to 9 records, the smallest named categories join them, so that no difference tells
    a small count.

    >>> merge_small({"a": (50, 48), "b": (30, 33), "c": (4, 3)})
    {'a': (50, 48), '2 other categories': (34, 36)}
    """
    large = [level for level, own in counts.items() if min(own) >= MIN_SHOWN_RECORDS]
    large.sort(key=lambda level: -min(counts[level]))
    named = large if len(large) == len(counts) <= MOST_CATEGORIES else large[: MOST_CATEGORIES - 1]
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
    """(what, before, after): correlations of numbers, Cramér's V of categories, a masked variable with any other."""
    for number, name in enumerate(names):
        for other in original.content_columns:
            if other == name or other in names[:number]:
                continue
            kinds = [data.column(both).levels is None for data in (original, masked) for both in (name, other)]
            if all(kinds) or (not any(kinds) and max(map(original.level_count, (name, other))) <= MOST_LEVELS):
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
    """V = sqrt(chi^2 / (n (min(rows, columns) - 1))), over the categories that occur."""
    sizes = data.level_count(name), data.level_count(other)
    cells = np.bincount(data.codes(name).astype(np.int64) * sizes[1] + data.codes(other), minlength=sizes[0] * sizes[1])
    table: Array = cells.reshape(sizes)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0].astype(np.float64)
    least = min(table.shape) - 1
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return float(np.sqrt(((table - expected) ** 2 / expected).sum() / table.sum() / least)) if least else 0.0


GONE = "can no longer be read"


class Held(NamedTuple):
    """One rule or relation, and how it stands in the original and in the release."""

    words: str
    before: str
    after: str


def what_holds(plan: Plan, original: Microdata, masked: Microdata) -> Iterator[Held]:
    """The plan's edit rules, and the relations that it states or that the original shows."""
    for text in plan.edits:
        rule = parse_edit(text)
        after = GONE if any(rule.reading_problems(masked, original)) else _records(rule.violations(masked))
        yield Held(text, _records(rule.violations(original)), after)
    shown = {glance.name: glance.formula for glance in look(original).variables if glance.formula}
    for name, formula in {**shown, **{step.on: step.formula for step in plan.derive}}.items():
        step = Derive(name, formula)
        if not any(step.incompatibilities(original)):
            after = GONE if any(step.incompatibilities(masked)) else f"{step.agreement(masked):.1%} of records"
            yield Held(f"{name} = {formula}", f"{step.agreement(original):.1%} of records", after)


def given_back(plan: Plan, original: Microdata, masked: Microdata, names: Sequence[str]) -> str:
    """Whether released columns give a masked one back, in a sentence; empty where rows are not those of the original."""
    if masked.origin is not None or not masked.paired:
        return ""
    sentence = check_determines(original, masked, names, plan.policy).reason
    return sentence[:1].upper() + sentence[1:]


def _records(broken: Array) -> str:
    return f"broken by {broken.sum():,}" if broken.any() else "broken by nobody"
