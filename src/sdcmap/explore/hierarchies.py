"""Hierarchies drawn up by hand: categories with their records, and what each level makes of them.

For the room only, since it names values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from sdcmap.core import Microdata, SchemaError
from sdcmap.data.hierarchy import Hierarchy
from sdcmap.explore.bars import Bar, column_counts, sum_bars

MOST_ROWS = 500  # categories that a person draws up; of more, a file is written elsewhere
MOST_LEVELS = 9
Row = tuple[str, ...]


@dataclass(frozen=True)
class Level:
    """What one level makes of the categories: its groups with their records, in the order of the rows; the rarest of those
    that occur; how many categories have no name yet."""

    groups: tuple[Bar, ...]
    rarest: Bar | None
    unnamed: int


@dataclass(frozen=True)
class DraftHierarchy:
    """A hierarchy that need not be whole yet.

    rows : each category and its name at level 1, 2, ..., "" where it has none yet; records : of each row; levels : what
    each makes of them; split : (row, level) of names that split what is one at the level below; problems : why it cannot
    be saved.
    """

    rows: tuple[Row, ...]
    records: tuple[int, ...]
    levels: tuple[Level, ...]
    split: tuple[tuple[int, int], ...]
    problems: tuple[str, ...]


def categories_of(data: Microdata, names: Iterable[str]) -> dict[str, int]:
    """The categories of these columns with their records, those of several columns together; missing is none of them."""
    bars = (bar for n in dict.fromkeys(names) if n in data.names for bar in column_counts(data.column(n)))
    return {bar.label: bar.count for bar in sum_bars((bar.label, bar.count) for bar in bars)}


def drafted(records: Mapping[str, int], rows: Iterable[Sequence[str]] = ()) -> DraftHierarchy:
    """Rows as they stand, with every category that they lack, counted and checked; without rows, one level without names.

    >>> draft = drafted({"a": 4, "b": 2, "c": 1}, [("a", "x", "*"), ("b", "x", "none")])
    >>> draft.levels[0]
    Level(groups=(Bar(label='x', count=6),), rarest=Bar(label='x', count=6), unnamed=1)
    >>> draft.problems[-1]
    '"x" of level 1 is split at level 2 into "*" and "none".'
    """
    whole = _completed(records, rows)
    if len(whole) > MOST_ROWS:
        raise SchemaError(f"{len(whole):,} categories are too many to draw up here: at most {MOST_ROWS}.")
    counts = tuple(records.get(row[0], 0) for row in whole)
    columns = list(zip(*whole, strict=True))
    levels = tuple(_level(names, counts) for names in columns[1:])
    parted = [_parted(fine, coarse) for fine, coarse in pairwise(columns)]
    split = tuple(
        (place, level)
        for level, (names, apart) in enumerate(zip(columns[:-1], parted, strict=True), 1)
        for place, name in enumerate(names)
        if name in apart
    )
    return DraftHierarchy(whole, counts, levels, split, tuple(_problems(len(whole), levels, parted)))


def _completed(records: Mapping[str, int], rows: Iterable[Sequence[str]]) -> tuple[Row, ...]:
    """One row a category, all as long as the longest; rows without a name whose category does not occur are left out."""
    given = {row[0]: tuple(row) for row in rows if row[0] in records or any(row[1:])}
    width = max([2, *map(len, given.values())])
    whole = [*given.values(), *((label,) for label in records if label not in given)]
    return tuple((*row, *[""] * (width - len(row))) for row in whole)


def _level(names: Sequence[str], counts: Sequence[int]) -> Level:
    bars = sum_bars((name, count) for name, count in zip(names, counts, strict=True) if name)
    rarest = min((bar for bar in bars if bar.count), key=lambda bar: bar.count, default=None)
    return Level(bars, rarest, names.count(""))


def _parted(fine: Sequence[str], coarse: Sequence[str]) -> dict[str, list[str]]:
    """The names of a level that the next one gives several names, and which."""
    above: dict[str, list[str]] = {}
    for name, next_name in dict.fromkeys(zip(fine, coarse, strict=True)):
        if name and next_name:
            above.setdefault(name, []).append(next_name)
    return {name: names for name, names in above.items() if len(names) > 1}


def _problems(count: int, levels: Sequence[Level], parted: Sequence[Mapping[str, Sequence[str]]]) -> Iterator[str]:
    if not count:
        yield "There is no category to name: pick a column."
    for number, level in enumerate(levels, 1):
        if level.unnamed:
            yield f"Level {number} has no name yet for {level.unnamed:,} of the {count:,} categories."
    for number, apart in enumerate(parted, 1):
        for name, names in list(apart.items())[:1]:
            others = [f"{len(names) - 2:,} more"] if len(names) > 2 else []
            *before, last = [f'"{one}"' for one in names[:2]] + others
            more = f"; so are {len(apart) - 1:,} more" if len(apart) > 1 else ""
            yield f'"{name}" of level {number - 1} is split at level {number} into {", ".join(before)} and {last}{more}.'


def by_first_characters(labels: Sequence[str]) -> tuple[Row, ...]:
    """Last characters hidden one by one (`Hierarchy.prefixes`): the levels that make fewer groups than the one before, at
    most the MOST_LEVELS coarsest of them.

    >>> by_first_characters(["8166", "8167", "9000"])
    (('8166', '816*', '****'), ('8167', '816*', '****'), ('9000', '900*', '****'))
    """
    if not labels:
        return ()
    first, *levels = zip(*Hierarchy.prefixes(labels).rows, strict=True)
    sizes = [len(first), *(len(set(level)) for level in levels)]
    coarser = [level for level, (before, now) in zip(levels, pairwise(sizes), strict=True) if now < before]
    return tuple(zip(first, *coarser[-MOST_LEVELS:], strict=True))


def written(rows: Iterable[Sequence[str]]) -> str:
    """The text of a hierarchy file, as `Recode` reads it; SchemaError where a name lacks or would not read back."""
    hierarchy = Hierarchy(tuple(map(tuple, rows)))
    if not hierarchy.levels or any(not name for row in hierarchy.rows for name in row[1:]):
        raise SchemaError("a hierarchy needs a level, and at each level a name for every category.")
    with suppress(SchemaError):
        if Hierarchy.parse(hierarchy.text.encode(), "the file") == hierarchy:
            return hierarchy.text
    raise SchemaError("a hierarchy file cannot hold these names: each must be one line of text.")
