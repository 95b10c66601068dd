"""Check hierarchies that are being edited: the groups of each level with their records, and what is still missing.

A draft names values of the data, so it must not be published.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from sdcmap.core import Microdata, SchemaError
from sdcmap.data.hierarchy import Hierarchy
from sdcmap.explore.column_bars import Bar, count_values, sum_bars

MAX_ROWS = 500  # categories in the editor; for more, write the file with another tool
MAX_LEVELS = 9  # levels that fit beside each other in the editor
Row = tuple[str, ...]


@dataclass(frozen=True)
class Level:
    """One level of a draft.

    groups : the groups with their records, in the order of the rows.
    rarest : the smallest group that occurs.
    unnamed : the number of categories without a group name.
    """

    groups: tuple[Bar, ...]
    rarest: Bar | None
    unnamed: int


@dataclass(frozen=True)
class DraftHierarchy:
    """A hierarchy that may be incomplete.

    rows : each category and its group name at level 1, 2, ...; "" if it has none yet.
    records : the number of records of each row.
    levels : the groups of each level.
    split : (row, level) of names that split a group of the level below.
    problems : why the hierarchy cannot be saved.
    """

    rows: tuple[Row, ...]
    records: tuple[int, ...]
    levels: tuple[Level, ...]
    split: tuple[tuple[int, int], ...]
    problems: tuple[str, ...]


def count_categories(data: Microdata, names: Iterable[str]) -> dict[str, int]:
    """Return the categories of these columns with their records, summed over columns; missing is not counted."""
    bars = (bar for n in dict.fromkeys(names) if n in data.names for bar in count_values(data.column(n)))
    return {bar.label: bar.count for bar in sum_bars((bar.label, bar.count) for bar in bars)}


def check_draft(records: Mapping[str, int], rows: Iterable[Sequence[str]] = ()) -> DraftHierarchy:
    """Return rows completed with all further categories, counted and checked; without rows, one level without names.

    >>> draft = check_draft({"a": 4, "b": 2, "c": 1}, [("a", "x", "*"), ("b", "x", "none")])
    >>> draft.levels[0]
    Level(groups=(Bar(label='x', count=6),), rarest=Bar(label='x', count=6), unnamed=1)
    >>> draft.problems[-1]
    '"x" of level 1 is split at level 2 into "*" and "none".'
    """
    complete = _complete_rows(records, rows)
    if len(complete) > MAX_ROWS:
        raise SchemaError(f"{len(complete):,} categories are too many to edit here: at most {MAX_ROWS} are possible.")
    counts = tuple(records.get(row[0], 0) for row in complete)
    columns = list(zip(*complete, strict=True))
    levels = tuple(_level(names, counts) for names in columns[1:])
    split_names = [_split_names(fine, coarse) for fine, coarse in pairwise(columns)]
    split = tuple(
        (row, level)
        for level, (names, is_split) in enumerate(zip(columns[:-1], split_names, strict=True), 1)
        for row, name in enumerate(names)
        if name in is_split
    )
    return DraftHierarchy(complete, counts, levels, split, tuple(_problems(len(complete), levels, split_names)))


def _complete_rows(records: Mapping[str, int], rows: Iterable[Sequence[str]]) -> tuple[Row, ...]:
    """Return one row per category, all of one length; rows without names for categories that do not occur are dropped."""
    given = {row[0]: tuple(row) for row in rows if row[0] in records or any(row[1:])}
    width = max([2, *map(len, given.values())])
    every = [*given.values(), *((label,) for label in records if label not in given)]
    return tuple((*row, *[""] * (width - len(row))) for row in every)


def _level(names: Sequence[str], counts: Sequence[int]) -> Level:
    bars = sum_bars((name, count) for name, count in zip(names, counts, strict=True) if name)
    rarest = min((bar for bar in bars if bar.count), key=lambda bar: bar.count, default=None)
    return Level(bars, rarest, names.count(""))


def _split_names(fine: Sequence[str], coarse: Sequence[str]) -> dict[str, list[str]]:
    """Return the names of a level that have several names at the next level, and these names."""
    above: dict[str, list[str]] = {}
    for name, next_name in dict.fromkeys(zip(fine, coarse, strict=True)):
        if name and next_name:
            above.setdefault(name, []).append(next_name)
    return {name: names for name, names in above.items() if len(names) > 1}


def _problems(count: int, levels: Sequence[Level], split: Sequence[Mapping[str, Sequence[str]]]) -> Iterator[str]:
    if not count:
        yield "There is no category to name: choose a column."
    for number, level in enumerate(levels, 1):
        if level.unnamed:
            yield f"Level {number} has no name yet for {level.unnamed:,} of the {count:,} categories."
    for number, split_names in enumerate(split, 1):
        for name, names in list(split_names.items())[:1]:  # one example per level is enough
            others = [f"{len(names) - 2:,} more"] if len(names) > 2 else []
            *before, last = [f'"{one}"' for one in names[:2]] + others
            more = f"; so are {len(split_names) - 1:,} more" if len(split_names) > 1 else ""
            yield f'"{name}" of level {number - 1} is split at level {number} into {", ".join(before)} and {last}{more}.'


def prefix_levels(labels: Sequence[str]) -> tuple[Row, ...]:
    """Return rows that hide the last characters one by one, as `Hierarchy.prefixes` does.

    Levels that do not merge any groups are left out; at most the MAX_LEVELS coarsest remain.

    >>> prefix_levels(["8166", "8167", "9000"])
    (('8166', '816*', '****'), ('8167', '816*', '****'), ('9000', '900*', '****'))
    """
    if not labels:
        return ()
    first, *levels = zip(*Hierarchy.prefixes(labels).rows, strict=True)
    sizes = [len(first), *(len(set(level)) for level in levels)]
    coarser = [level for level, (before, now) in zip(levels, pairwise(sizes), strict=True) if now < before]
    return tuple(zip(first, *coarser[-MAX_LEVELS:], strict=True))


def format_hierarchy(rows: Iterable[Sequence[str]]) -> str:
    """Return the text of a hierarchy file for `Recode`; SchemaError if a name is missing or cannot be stored in a file."""
    hierarchy = Hierarchy(tuple(map(tuple, rows)))
    if not hierarchy.levels or any(not name for row in hierarchy.rows for name in row[1:]):
        raise SchemaError("a hierarchy needs at least one level, and a name for every category at each level.")
    with suppress(SchemaError):
        if Hierarchy.parse(hierarchy.text.encode(), "the file") == hierarchy:
            return hierarchy.text
    raise SchemaError("a hierarchy file cannot hold these names: each must be one line of text.")
