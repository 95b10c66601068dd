"""Hierarchy drafts count like a recode, report what a hierarchy rejects, and survive a round trip."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sdcmap as sm
from sdcmap.data.hierarchy import Hierarchy
from sdcmap.errors import SchemaError
from sdcmap.explore.column_bars import Bar, count_values
from sdcmap.explore.hierarchy_drafts import (
    MAX_LEVELS,
    MAX_ROWS,
    check_draft,
    count_categories,
    format_hierarchy,
    prefix_levels,
)

PLACES = ["north", "south", "south", "east", "west", "west", "west", None]
ROWS = [("north", "cold", "*"), ("south", "warm", "*"), ("east", "cold", "*"), ("west", "warm", "*")]
names = st.text(st.sampled_from("ab"), max_size=1)


def test_draft_counts_equal_recode(tmp_path: Path) -> None:
    data = sm.read({"place": PLACES})
    draft = check_draft(count_categories(data, ["place", "nobody"]), ROWS)
    (tmp_path / "places.csv").write_text(format_hierarchy(draft.rows))
    for number, level in enumerate(draft.levels, 1):
        recode = sm.Recode("place", hierarchy=str(tmp_path / "places.csv"), level=number)
        after = count_values(sm.mask(data, recode, seed=1).column("place"))
        assert sorted(after, key=lambda bar: bar.label) == sorted(level.groups, key=lambda bar: bar.label)
    assert draft.levels[0].rarest == Bar("cold", 2) and draft.problems == () and sum(draft.records) == 7


def test_draft_has_every_category_and_keeps_given_rows() -> None:
    records = count_categories(sm.read({"one": ["a", "b", "b"], "two": ["b", "c", None]}), ["one", "two"])
    assert records == {"a": 1, "b": 3, "c": 1}
    assert check_draft(records).rows == (("a", ""), ("b", ""), ("c", ""))
    opened = check_draft(records, [("b", "x"), ("z", "x"), ("y", "")])  # z does not occur, and y has no name
    assert opened.rows == (("b", "x"), ("z", "x"), ("a", ""), ("c", "")) and opened.records == (3, 0, 1, 1)
    assert opened.problems == ("Level 1 has no name yet for 2 of the 4 categories.",)
    assert check_draft({}).problems == ("There is no category to name: choose a column.",)
    with pytest.raises(SchemaError, match="501 categories are too many"):
        check_draft(dict.fromkeys(map(str, range(MAX_ROWS + 1)), 1))


@given(st.lists(st.tuples(names, names, names), min_size=1, max_size=5))
def test_draft_without_problems_can_be_written(levels: list[tuple[str, str, str]]) -> None:
    rows = [(str(place), *row) for place, row in enumerate(levels)]
    draft = check_draft({row[0]: 1 for row in rows}, rows)
    try:
        assert Hierarchy.parse(format_hierarchy(rows).encode(), "it").rows == tuple(rows)
    except SchemaError:
        assert draft.problems
    else:
        assert not draft.problems and not draft.split


def test_split_names_are_marked() -> None:
    rows = [("a", "x", "1"), ("b", "x", "2"), ("c", "y", "1"), ("d", "x", "1")]
    draft = check_draft(dict.fromkeys("abcd", 1), rows)
    assert draft.split == ((0, 2), (1, 2), (3, 2))
    assert draft.problems == ('"x" of level 1 is split at level 2 into "1" and "2".',)


def test_prefix_levels_differ() -> None:
    codes = ["81667", "81675", "81925", "9", "90001"]  # hiding one character merges nothing
    rows = prefix_levels(codes)
    whole = Hierarchy.prefixes(codes)
    assert [len({row[level] for row in rows}) for level in range(len(rows[0]))] == [5, 4, 3, 2, 1]
    assert set(zip(*rows, strict=True)) <= set(zip(*whole.rows, strict=True))
    long = prefix_levels(["a" * length for length in range(1, 30)])
    assert len(long[0]) == MAX_LEVELS + 1 and {row[-1] for row in long} == {"a" + "*" * 28}
    assert check_draft({"only": 3}, prefix_levels(["only"])).rows == (("only", ""),)


@pytest.mark.parametrize("name", ["", "two\nlines", "a\u2028b"])
def test_names_with_line_breaks_are_rejected(name: str) -> None:
    with pytest.raises(SchemaError, match="name"):
        format_hierarchy([("a", "x"), ("b", name)])
