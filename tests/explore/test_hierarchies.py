"""Hierarchies drawn up by hand: counted as a recode counts, refused as a hierarchy refuses, read back as they were."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sdcmap as sm
from sdcmap.data.hierarchy import Hierarchy
from sdcmap.errors import SchemaError
from sdcmap.explore.bars import Bar, column_counts
from sdcmap.explore.hierarchies import (
    MOST_LEVELS,
    MOST_ROWS,
    by_first_characters,
    categories_of,
    drafted,
    written,
)

PLACES = ["north", "south", "south", "east", "west", "west", "west", None]
ROWS = [("north", "cold", "*"), ("south", "warm", "*"), ("east", "cold", "*"), ("west", "warm", "*")]
names = st.text(st.sampled_from("ab"), max_size=1)


def test_what_is_counted_is_what_the_recode_makes(tmp_path: Path) -> None:
    data = sm.read({"place": PLACES})
    draft = drafted(categories_of(data, ["place", "nobody"]), ROWS)
    (tmp_path / "places.csv").write_text(written(draft.rows))
    for number, level in enumerate(draft.levels, 1):
        recode = sm.Recode("place", hierarchy=str(tmp_path / "places.csv"), level=number)
        after = column_counts(sm.mask(data, recode, seed=1).column("place"))
        assert sorted(after, key=lambda bar: bar.label) == sorted(level.groups, key=lambda bar: bar.label)
    assert draft.levels[0].rarest == Bar("cold", 2) and draft.problems == () and sum(draft.records) == 7


def test_a_draft_begins_with_every_category_and_keeps_what_a_file_names() -> None:
    records = categories_of(sm.read({"one": ["a", "b", "b"], "two": ["b", "c", None]}), ["one", "two"])
    assert records == {"a": 1, "b": 3, "c": 1}
    assert drafted(records).rows == (("a", ""), ("b", ""), ("c", ""))
    opened = drafted(records, [("b", "x"), ("z", "x"), ("y", "")])  # z does not occur here, y has no name either
    assert opened.rows == (("b", "x"), ("z", "x"), ("a", ""), ("c", "")) and opened.records == (3, 0, 1, 1)
    assert opened.problems == ("Level 1 has no name yet for 2 of the 4 categories.",)
    assert drafted({}).problems == ("There is no category to name: pick a column.",)
    with pytest.raises(SchemaError, match="501 categories are too many"):
        drafted(dict.fromkeys(map(str, range(MOST_ROWS + 1)), 1))


@given(st.lists(st.tuples(names, names, names), min_size=1, max_size=5))
def test_it_has_no_problem_where_it_can_be_written(levels: list[tuple[str, str, str]]) -> None:
    rows = [(str(place), *row) for place, row in enumerate(levels)]
    draft = drafted({row[0]: 1 for row in rows}, rows)
    try:
        assert Hierarchy.parse(written(rows).encode(), "it").rows == tuple(rows)
    except SchemaError:
        assert draft.problems
    else:
        assert not draft.problems and not draft.split


def test_the_names_that_are_split_are_marked() -> None:
    rows = [("a", "x", "1"), ("b", "x", "2"), ("c", "y", "1"), ("d", "x", "1")]
    draft = drafted(dict.fromkeys("abcd", 1), rows)
    assert draft.split == ((0, 2), (1, 2), (3, 2))
    assert draft.problems == ('"x" of level 1 is split at level 2 into "1" and "2".',)


def test_first_characters_make_levels_that_differ() -> None:
    codes = ["81667", "81675", "81925", "9", "90001"]  # nothing is gained by hiding one character
    rows = by_first_characters(codes)
    whole = Hierarchy.prefixes(codes)
    assert [len({row[level] for row in rows}) for level in range(len(rows[0]))] == [5, 4, 3, 2, 1]
    assert set(zip(*rows, strict=True)) <= set(zip(*whole.rows, strict=True))
    long = by_first_characters(["a" * length for length in range(1, 30)])
    assert len(long[0]) == MOST_LEVELS + 1 and {row[-1] for row in long} == {"a" + "*" * 28}
    assert drafted({"only": 3}, by_first_characters(["only"])).rows == (("only", ""),)


@pytest.mark.parametrize("name", ["", "two\nlines", "a\u2028b"])
def test_names_that_a_file_cannot_hold_are_refused(name: str) -> None:
    with pytest.raises(SchemaError, match="name"):
        written([("a", "x"), ("b", name)])
