"""The ledger: a private record of every release, so that another release of the same records is noticed.

It is a folder of mode 0700 with a random key and a database. Data and seeds are stored only as keyed digests, people only
as keyed sketches (`sketch`). Without the key, the database confirms no guess.

A release is compared with every ledger that can be found: the one that was named, $SDCMAP_LEDGER, and those in the user's
state folder and home folder, as the system knows them, whatever $HOME says. So naming another ledger hides nothing.

A release and its entry are one transaction. The entry is pending until the folder has its final name. If the process is
killed in between, the next use of the ledger resolves the entry. If the bundle is still in its private folder, nothing was
released and the entry is deleted; otherwise the file may have been seen and the entry stays.

The ledger also remembers each release procedure: which candidates were fixed before the first of them was drawn anew, and
which tries have begun. A try counts from its beginning, however it ends. A procedure has sketches of its original records,
so that the same data with other roles, kinds, codes or a few other records do not count as other data. Ledgers of earlier
versions have no procedures.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import shutil
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

import numpy as np
from filelock import FileLock

from sdcmap.bundle.sketch import People, Sketch, recognition_columns, recognize
from sdcmap.core import Microdata, SdcmapError
from sdcmap.core.release_policy import ReleasePolicy
from sdcmap.core.value import Spec
from sdcmap.data.private_folder import CLAIMED_NAME
from sdcmap.study.database import check_plain_tables
from sdcmap.study.plan import Candidate, Plan

TABLES = (
    "create table if not exists release (made text, data blob, seed blob, method text, digest text, replicate integer, "
    "profile text, folder text, columns text)",
    "create table if not exists sketch (entry integer, form text, width integer, names text, rows integer, "
    "singles integer, pairs integer, prints blob)",
    "create table if not exists promise (entry integer, part text)",
    # candidates: [[digest of the method, number of the new draw], ...]; identity: digest of all that determines the figures
    "create table if not exists procedure (made text, data blob, profile text, identity blob, candidates text)",
    "create table if not exists procedure_sketch (entry integer, form text, width integer, names text, rows integer, "
    "singles integer, pairs integer, prints blob)",
    "create table if not exists try (procedure integer, candidate integer, error real, made text, outcome text)",
)
COLUMNS = "data, seed, method, digest, replicate, columns"  # of table release that are read
LOCK_TIMEOUT_SECONDS = 60.0  # a release writes its entry in far less
# Two files are the same data if they share this much of the smaller one's fingerprints in any set of columns.
SAME_DATA = ReleasePolicy(overlap_share=0.9, reason="the same data, and not only some people in common")


@dataclass(frozen=True)
class LedgerEntry:
    """One release in the ledger."""

    data: bytes = field(repr=False)
    seed: bytes = field(repr=False)
    method: Spec
    digest: str
    replicate: int
    columns: tuple[str, ...]
    # Empty in entries of version 0.1, which are recognized only by the same data.
    sketches: tuple[Sketch, ...] = field(repr=False)


@dataclass(frozen=True)
class ProcedureEntry:
    """A release procedure in the ledger: the candidates that were fixed, and the tries that have begun.

    draws : the digest of the method and the number of the new draw of each candidate. errors : the error probability that
    the try of a candidate spends, by its place among them, in the order of the tries.
    """

    row: int
    profile: str
    identity: bytes = field(repr=False)
    draws: tuple[tuple[str, int], ...]
    errors: Mapping[int, float]


@dataclass(frozen=True)
class Ledger:
    """The ledger in a folder: `open_readonly` to search it, `open_locked` to record a release."""

    folder: Path
    key: bytes = field(repr=False)

    @staticmethod
    def open_readonly(folder: Path | None) -> Ledger:
        """Return the ledger in `folder`, by default $SDCMAP_LEDGER or sdcmap/ledger in the user's state folder.

        A ledger that does not exist has no releases and is not created.
        """
        home = _ledger_folder(folder)
        return Ledger(home, _read_key(home) or bytes(32))

    @staticmethod
    @contextmanager
    def open_locked(folder: Path | None) -> Iterator[Ledger]:
        """Open the ledger for one release at a time, and create it where there is none."""
        home = _ledger_folder(folder)
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            key = _read_key(home)
            home.chmod(0o700)
            with FileLock(home / "lock", mode=0o600):
                key = key or _read_key(home)
                if key is None:
                    key = secrets.token_bytes(32)
                    with _open_private(home / "key") as file:
                        file.write(key.hex())
                _open_private(home / "ledger.sqlite").close()
                ledger = Ledger(home, key)
                with ledger._connect() as connection:
                    for table in TABLES:
                        connection.execute(table)
                    _resolve_pending(connection)
                yield ledger
        except OSError as error:
            raise SdcmapError(f"the ledger {home} cannot be written ({error.strerror}).") from None

    @property
    def id(self) -> str:
        """Twelve digits that identify this ledger; they do not reveal its key."""
        return hmac.digest(self.key, b"the ledger's name", "sha256").hex()[:12]

    @property
    def exists(self) -> bool:
        """Whether the folder contains a ledger."""
        return (self.folder / "ledger.sqlite").exists()

    def fingerprint(self, secret: str) -> bytes:
        """Return a keyed digest of a data digest or a seed."""
        return hmac.digest(self.key, secret.encode(), "sha256")

    def entries(self) -> list[LedgerEntry]:
        """Return every release so far, oldest first."""
        if not self.exists:
            return []
        try:
            with self._connect() as connection:
                rows = connection.execute(f"select rowid, {COLUMNS} from release order by rowid").fetchall()
                sketches = _read_sketches(connection, "sketch")
            return [
                LedgerEntry(
                    data, seed, json.loads(method), digest, replicate, tuple(json.loads(names)), tuple(sketches[entry])
                )
                for entry, data, seed, method, digest, replicate, names in rows
            ]
        except (TypeError, ValueError):
            raise SdcmapError(f"the ledger {self.folder} is damaged. Restore it from a backup.") from None

    def has_release(self, data: Microdata, plan: Plan, candidate: Candidate) -> bool:
        """Return whether this very draw of these data was released."""
        ours = (
            self.fingerprint(data.digest),
            self.fingerprint(hex(plan.seed)),
            candidate.method.digest,
            candidate.replicate,
        )
        if not self.exists:
            return False
        with self._connect() as connection:
            same = "select 1 from release where data = ? and seed = ? and digest = ? and replicate = ?"
            return connection.execute(same, ours).fetchone() is not None

    # ---- procedures -------------------------------------------------------------------------------------------
    def procedures(self, data: str, records: Microdata | None = None) -> list[ProcedureEntry]:
        """Return the procedures of a data set, oldest first.

        data : its digest. records : with it, procedures of nearly the same records count too, whatever their roles, kinds
        and missing codes were.
        """
        if not self.exists:
            return []
        with self._connect() as connection:
            if not _has_table(connection, "procedure"):  # a ledger of an earlier version
                return []
            same = self._procedures_of_records(connection, records) if records is not None else set()
            query = "select rowid, data, profile, identity, candidates from procedure order by rowid"
            tries = "select candidate, error from try where procedure = ? order by rowid"
            return [
                ProcedureEntry(
                    row, profile, own, _draws(candidates), dict(connection.execute(tries, (row,)).fetchall())
                )
                for row, digest, profile, own, candidates in connection.execute(query).fetchall()
                if digest == self.fingerprint(data) or row in same
            ]

    def _procedures_of_records(self, connection: sqlite3.Connection, records: Microdata) -> set[int]:
        """Return the rows of the procedures whose original records are nearly the same as these."""
        sketches = _read_sketches(connection, "procedure_sketch")
        if not sketches:
            return set()
        matches = recognize([*sketches.values()], People(records, self.key), SAME_DATA)
        return {row for row, is_same in zip(sketches, matches, strict=True) if is_same}

    def record_procedure(
        self, data: str, profile: str, identity: str, draws: Sequence[tuple[str, int]], records: Microdata | None = None
    ) -> ProcedureEntry:
        """Record the candidates of a release before the first of them is drawn anew; records : the original ones."""
        candidates, own = json.dumps(draws), self.fingerprint(identity)
        row = _now(), self.fingerprint(data), profile, own, candidates
        sketches = [] if records is None else [*People(records, self.key).sketches()]
        with self._connect() as connection:
            entry = connection.execute("insert into procedure values (?,?,?,?,?)", row).lastrowid or 0
            _insert_sketches(connection, "procedure_sketch", entry, sketches)
            connection.commit()
        return ProcedureEntry(entry, profile, own, _draws(candidates), {})

    def replace_draw(self, procedure: int, candidate: int, digest: str, number: int) -> None:
        """Record another draw of a candidate, whose draw before could not be made."""
        with self._connect() as connection:
            (before,) = connection.execute("select candidates from procedure where rowid = ?", (procedure,)).fetchone()
            draws = [[digest, number] if at == candidate else draw for at, draw in enumerate(json.loads(before))]
            connection.execute("update procedure set candidates = ? where rowid = ?", (json.dumps(draws), procedure))
            connection.commit()

    def record_try(self, procedure: int, candidate: int, error: float) -> None:
        """Record that a try has begun, unless the same try began before: it gives the same figures again."""
        same = "select 1 from try where procedure = ? and candidate = ?"
        with self._connect() as connection:
            if not connection.execute(same, (procedure, candidate)).fetchone():
                row = procedure, candidate, error, _now(), "begun"
                connection.execute("insert into try values (?,?,?,?,?)", row)
                connection.commit()

    def record_outcome(self, procedure: int, candidate: int, outcome: str) -> None:
        """Record how a try ended: "passed" or "failed"."""
        update = "update try set outcome = ? where procedure = ? and candidate = ?"
        with self._connect() as connection:
            connection.execute(update, (outcome, procedure, candidate))
            connection.commit()

    # ---- releases ---------------------------------------------------------------------------------------------
    @contextmanager
    def record_release(
        self, data: Microdata, plan: Plan, candidate: Candidate, profile: str, folder: Path, part: Path
    ) -> Iterator[None]:
        """Record the release in folder `part` before the block renames the folder to `folder`.

        If the block fails, the entry is deleted at its end; if the process is killed, by the next use of the ledger (see
        `_resolve_pending`).
        """
        created, method = _now(), candidate.method
        row = (
            self.fingerprint(data.digest), self.fingerprint(hex(plan.seed)), json.dumps(method.spec()), method.digest,
            candidate.replicate, json.dumps(recognition_columns(data)), created, profile, str(folder),
        )  # fmt: skip
        sketches = list(People(data, self.key).sketches())
        with self._connect() as connection:
            insert = f"insert into release ({COLUMNS}, made, profile, folder) values (?,?,?,?,?,?,?,?,?)"
            entry = connection.execute(insert, row).lastrowid
            _insert_sketches(connection, "sketch", entry or 0, sketches)
            (part.parent / CLAIMED_NAME).touch(mode=0o600)  # from now on only the ledger removes this folder
            connection.execute("insert into promise values (?,?)", (entry, str(part)))
            connection.commit()
            try:
                yield
            finally:
                _resolve_pending(connection)

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.folder / "ledger.sqlite", timeout=LOCK_TIMEOUT_SECONDS)) as connection:
                check_plain_tables(connection)
                yield connection
        except sqlite3.Error as error:
            raise SdcmapError(f"the ledger {self.folder} cannot be used ({type(error).__name__}).") from None


def find_other_ledgers(ledger: Ledger) -> tuple[list[Ledger], list[Path]]:
    """Return the other ledgers of this user, and the folders of those that cannot be read."""
    readable, unreadable = [], []
    for home in dict.fromkeys(_default_folders()):
        try:
            if home.resolve() != ledger.folder.resolve() and (home / "ledger.sqlite").exists():
                readable.append(Ledger.open_readonly(home))
        except (OSError, SdcmapError):
            unreadable.append(home)
    return readable, unreadable


def _ledger_folder(folder: Path | None) -> Path:
    return Path(folder) if folder else next(_default_folders())


def _default_folders() -> Iterator[Path]:
    """Yield the folders where a ledger is searched when none is named; a new one is created in the first."""
    stated, state = os.environ.get("SDCMAP_LEDGER"), os.environ.get("XDG_STATE_HOME")
    if stated:
        yield Path(stated)
    if state:
        yield Path(state) / "sdcmap" / "ledger"
    yield Path.home() / ".local" / "state" / "sdcmap" / "ledger"
    with suppress(ImportError, KeyError):
        import pwd  # not on Windows

        yield Path(pwd.getpwuid(os.getuid()).pw_dir) / ".local" / "state" / "sdcmap" / "ledger"


def _read_key(home: Path) -> bytes | None:
    """Return the ledger's key, or None where there is no ledger yet; a ledger that lost its key is not replaced."""
    try:
        if (home / "key").exists():
            return bytes.fromhex((home / "key").read_text())
        has_files = home.exists() and any(path.name != "lock" for path in home.iterdir())
    except (OSError, ValueError):
        raise SdcmapError(f"the ledger {home} cannot be read.") from None
    if has_files:
        raise SdcmapError(f"{home} is not empty and has no ledger key. Name another folder, or restore the key.")
    return None


def _open_private(path: Path) -> TextIO:
    """Open a file for appending that only its owner can read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a")


def _read_sketches(connection: sqlite3.Connection, table: str) -> Mapping[int, list[Sketch]]:
    """Return the sketches of each entry; a ledger of an earlier version may not have the table."""
    sketches: dict[int, list[Sketch]] = defaultdict(list)
    if _has_table(connection, table):
        for entry, form, width, names, rows, singles, pairs, prints in connection.execute(f"select * from {table}"):
            fingerprints = np.frombuffer(prints, dtype="<u8")
            sketches[entry].append(Sketch(form, width, tuple(json.loads(names)), rows, singles, pairs, fingerprints))
    return sketches


def _insert_sketches(connection: sqlite3.Connection, table: str, entry: int, sketches: Sequence[Sketch]) -> None:
    facts = [
        (entry, s.form, s.width, json.dumps(s.names), s.rows, s.singles, s.pairs, s.prints.tobytes()) for s in sketches
    ]
    connection.executemany(f"insert into {table} values (?,?,?,?,?,?,?,?)", facts)


def _has_table(connection: sqlite3.Connection, name: str) -> bool:
    return connection.execute("select 1 from sqlite_master where name = ?", (name,)).fetchone() is not None


def _draws(candidates: str) -> tuple[tuple[str, int], ...]:
    return tuple((digest, number) for digest, number in json.loads(candidates))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _resolve_pending(connection: sqlite3.Connection) -> None:
    """Confirm or delete every pending entry; the caller has the lock, so no other release is under way."""
    for entry, part in connection.execute("select entry, part from promise").fetchall():
        if Path(part).exists():  # the bundle never got its final name, so nothing was released
            connection.execute("delete from release where rowid = ?", (entry,))
            connection.execute("delete from sketch where entry = ?", (entry,))
        connection.execute("delete from promise where entry = ?", (entry,))
        connection.commit()
        shutil.rmtree(Path(part).parent, ignore_errors=True)
