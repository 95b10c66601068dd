"""The tables of a study that is kept in memory."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from operator import itemgetter
from typing import Any

from sdcmap.study.database import TABLES, Row
from sdcmap.study.jobs import CandidateRow


class MemoryTables:
    """The tables of a study in memory, with the functions of `Database`.

    Candidates are kept as they arrive. SQLite in memory took a third of the time of a sweep of small files.
    """

    def __init__(self) -> None:
        self._candidates: dict[str, Row] = {}  # by id
        self._scores: dict[str, tuple[Row, ...]] = {}  # of a candidate, by id
        self._others: dict[str, dict[Row, Row]] = {name: {} for name in TABLES}  # the first two cells identify a row
        self._changes = 0

    @property
    def version(self) -> tuple[int, int]:
        """A pair of numbers that changes with every write."""
        return self._changes, 0

    def snapshot(self) -> AbstractContextManager[None]:
        """Return an empty context: nobody else writes."""
        return nullcontext()

    def rows(self, table: str) -> list[Row]:
        """Return every row of a table in the order of its key."""
        return [*zip(*self.columns(table), strict=True)]

    read_in_snapshot = rows

    def columns(self, table: str) -> list[Row]:
        """Return the columns of a table, its rows in the order of the key; an empty list where it has no rows."""
        if table == "candidate":
            return [*zip(*(self._candidates[name] for name in sorted(self._candidates)), strict=True)]
        if table == "score":
            candidates = sorted(self._scores)
            names = tuple(name for name in candidates for _ in self._scores[name])
            scores = chain.from_iterable(sorted(self._scores[name], key=itemgetter(0)) for name in candidates)
            return [names, *zip(*scores, strict=True)] if names else []
        return [*zip(*(row for _, row in sorted(self._others[table].items())), strict=True)]

    def add(self, rows: Sequence[CandidateRow]) -> None:
        """Add candidates and their scores. Existing rows stay."""
        for row in rows:
            self._candidates.setdefault(row.id, row[:-1])  # all but the scores
            before = self._scores.get(row.id, ())
            have = {score[0] for score in before}
            added = [score for score in row.scores if score.measure_id not in have] if have else row.scores
            # as plain tuples of texts and numbers, which the garbage collector need not visit again
            self._scores[row.id] = (*before, *map(tuple, added))
        self._changes += 1

    def insert(self, tables: dict[str, Sequence[Sequence[Any]]], *, replace: bool = False) -> None:
        """Insert rows into tables other than those of `add`. Existing rows of the same key stay, or are replaced."""
        for name, rows in tables.items():
            new = {tuple(row[:2]): tuple(row) for row in rows}
            self._others[name] = self._others[name] | new if replace else new | self._others[name]
        self._changes += 1

    def delete_scores(self, keys: Sequence[tuple[str, str]]) -> None:
        """Delete the scores of these candidates and measures (ids)."""
        for name, measure in keys:
            self._scores[name] = tuple(score for score in self._scores[name] if score[0] != measure)
        self._changes += 1

    def close(self) -> None:
        """Do nothing: the tables end with the study."""
