"""A release and its entry in the ledger are one step: the entry is a promise until the folder has its name.

Whatever ends the process in between, what it leaves tells the rest: where the bundle still lies in its private folder, the
release never was, and the entry is taken back; where it does not, the release may be out, and the entry stays.
"""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

from sdcmap.data.private_folder import PROMISED

TABLE = "create table if not exists promise (entry integer, part text)"


def promise(connection: sqlite3.Connection, entry: int, part: Path) -> None:
    """This entry, not committed yet, is of the release that lies in `part` and is about to get its name."""
    (part.parent / PROMISED).touch(mode=0o600)  # nobody else cleans up there from now on
    connection.execute("insert into promise values (?, ?)", (entry, str(part)))


def settle(connection: sqlite3.Connection) -> None:
    """Keep or take back every promised entry; whoever calls this holds the ledger, so no other release is under way."""
    for entry, part in connection.execute("select entry, part from promise").fetchall():
        if Path(part).exists():
            connection.execute("delete from release where rowid = ?", (entry,))
            connection.execute("delete from sketch where entry = ?", (entry,))
        connection.execute("delete from promise where entry = ?", (entry,))
        connection.commit()
        shutil.rmtree(Path(part).parent, ignore_errors=True)
