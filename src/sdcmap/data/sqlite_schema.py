"""Check a SQLite database that somebody else may have made: it may contain plain tables only.

A view in place of a table can be an endless query. A generated column, a constraint or a trigger can compute for hours.
"""

from __future__ import annotations

import re
import sqlite3

# Columns with a type each, and a primary key. Anything that computes would need further parentheses.
PLAIN_TABLE = re.compile(
    r'create table "?\w+"? ?\([\w\s,"]*(primary key \([\w\s,"]*\))?\)( without rowid)?', re.IGNORECASE
)


def check_plain_tables(connection: sqlite3.Connection) -> None:
    """Raise DatabaseError if the database contains anything but plain tables. Nothing of it is run."""
    statements = connection.execute("select sql from sqlite_master").fetchall()
    if not all(sql is not None and PLAIN_TABLE.fullmatch(sql) for (sql,) in statements):
        raise sqlite3.DatabaseError("not only plain tables")
