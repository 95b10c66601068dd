"""The chain of a ledger: keyed hashes of its entries, so that deleted, changed, added or exchanged rows are noticed.

Each link holds the state of one entry: a keyed digest of its row and of the rows that belong to it, empty where the entry
was removed. Its head is a keyed digest of the head before and of the link. A change of the ledger and its link are one
transaction. A ledger of an earlier version has no chain: it begins with one link for each entry that is there.

Count and last head say how far a chain had come. Studies, bundles and the user's register record them, so that a ledger
that was set back is noticed: its chain does not contain them. They reveal nothing without the key, except the count.
"""

from __future__ import annotations

import hmac
import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypedDict

from sdcmap.bundle.ledger_key import DIGEST

# Tables whose rows are entries, and the tables of rows that belong to them (their column `entry`).
PARTS: Mapping[str, tuple[str, ...]] = {
    "release": ("sketch", "promise"),
    "procedure": ("procedure_sketch",),
    "try": (),
    "restart": (),
}
CHAIN_TABLE = (
    "create table if not exists chain (number integer primary key, part text, entry integer, state blob, head blob)"
)
REMOVED = b""  # state of an entry that was removed


class HeadFacts(TypedDict):
    """A head as studies and bundles store it."""

    ledger: str
    entries: int
    head: str


class Head(NamedTuple):
    """How far the chain of a ledger had come: its id, the number of links, and the last head."""

    ledger: str
    entries: int
    digest: str

    @staticmethod
    def of_facts(facts: HeadFacts) -> Head:
        """Return a head as it was stored."""
        return Head(str(facts["ledger"]), int(facts["entries"]), str(facts["head"]))

    @property
    def facts(self) -> HeadFacts:
        """The head as it is stored."""
        return {"ledger": self.ledger, "entries": self.entries, "head": self.digest}


@dataclass(frozen=True)
class Chain:
    """The chain in the database of a ledger."""

    connection: sqlite3.Connection
    key: bytes = field(repr=False)  # of the ledger

    def begin(self) -> None:
        """Begin the chain with one link for each entry that is there."""
        self.connection.execute(CHAIN_TABLE)
        for table in PARTS:
            for entry, state in sorted(self._states(table).items()):
                self._append(table, entry, state)

    def append(self, table: str, entry: int) -> None:
        """Append the present state of an entry, in the transaction that changed it."""
        self._append(table, entry, self._states(table, entry).get(entry, REMOVED))

    def head(self) -> tuple[int, str]:
        """Return the number of links and the last head."""
        return self._head("order by number desc")

    def first_head(self, table: str, entry: int) -> tuple[int, str]:
        """Return number and head of the first link of an entry."""
        return self._head("where part = ? and entry = ? order by number", table, entry)

    def contains(self, entries: int, digest: str) -> bool:
        """Return whether the chain had this head after so many links."""
        return entries > 0 and self._head("where number = ?", entries) == (entries, digest)

    def find_problem(self) -> str:
        """Return what is wrong with the chain or with the entries it states; empty where both are whole."""
        head, latest = b"", dict[tuple[str, int], bytes]()
        query = "select number, part, entry, state, head from chain order by number"
        for place, (number, table, entry, state, stored) in enumerate(self.connection.execute(query), 1):
            head = self._next_head(head, table, entry, state)
            if (number, stored) != (place, head):
                return f"link {place} of its chain is missing or was changed"
            latest[table, entry] = state
        stated = {entry: state for entry, state in latest.items() if state != REMOVED}
        present = {(table, entry): state for table in PARTS for entry, state in self._states(table).items()}
        changed = {entry for entry in {*stated, *present} if stated.get(entry) != present.get(entry)}
        return f"{len(changed)} of its entries were deleted, changed or added by another program" if changed else ""

    def _append(self, table: str, entry: int, state: bytes) -> None:
        row = self.connection.execute("select head from chain order by number desc limit 1").fetchone()
        head = self._next_head(row[0] if row else b"", table, entry, state)
        values = table, entry, state, head
        self.connection.execute("insert into chain (part, entry, state, head) values (?,?,?,?)", values)

    def _head(self, where: str, *values: str | int) -> tuple[int, str]:
        row = self.connection.execute(f"select number, head from chain {where} limit 1", values).fetchone()
        return (0, "") if row is None else (int(row[0]), row[1].hex())

    def _next_head(self, before: bytes, table: str, entry: int, state: bytes) -> bytes:
        return hmac.digest(self._own_key, _encode([before, table, entry, state]), DIGEST)

    def _states(self, table: str, entry: int | None = None) -> dict[int, bytes]:
        """Return the state of each entry of a table, or of this one."""
        digests: dict[int, hmac.HMAC] = {}
        for part, column in ((table, "rowid"), *((part, "entry") for part in PARTS[table])):
            where, values = ("", ()) if entry is None else (f"where {column} = ?", (entry,))
            cursor = self.connection.execute(f"select {column}, * from {part} {where} order by rowid", values)
            names = [name for name, *_ in cursor.description][1:]
            for owner, *row in cursor:
                # Without the columns that have no value, so that a later version can add columns.
                facts = {name: value for name, value in zip(names, row, strict=True) if value is not None}
                digest = digests.setdefault(owner, hmac.new(self._own_key, digestmod=DIGEST))
                digest.update(_encode([part, facts]))
        return {owner: digest.digest() for owner, digest in digests.items()}

    @property
    def _own_key(self) -> bytes:
        """A key for chains alone, so that no published head is a digest that the ledger keeps secret."""
        return hmac.digest(self.key, b"the ledger's chain", DIGEST)


def _encode(facts: list[object]) -> bytes:
    return json.dumps(facts, default=bytes.hex).encode()
