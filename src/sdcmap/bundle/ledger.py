"""The ledger: a private record of every release, so that another release of the same records is noticed.

It is a folder of mode 0700 with a random key and a database. Data and seeds are stored only as keyed digests, people only
as keyed sketches (`sketch`). Without the key, the database confirms no guess.

Key, database and entries vouch for each other (`ledger_key`, `ledger_chain`): a ledger whose key or database is missing,
damaged or exchanged, or whose rows were deleted or changed, refuses to be used. A ledger that was set back as a whole is
sound in itself. It is noticed by what studies and the user's register recorded of it (`known_ledgers`).

A release and its entry are one transaction. The entry is pending until the folder has its final name. If the process is
killed in between, the next use of the ledger resolves the entry. If the bundle is still in its private folder, nothing was
released and the entry is deleted; otherwise the file may have been seen and the entry stays.

The ledger also remembers each release procedure: which candidates were fixed before the first of them was drawn anew, and
which tries have begun. A try counts from its beginning, however it ends. A procedure has sketches of its original records,
so that the same data with other roles, kinds, codes or a few other records do not count as other data. Ledgers of earlier
versions have no procedures and no chain; the chain begins at their next use with the entries that are there.
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
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from filelock import FileLock

from sdcmap.bundle.ledger_chain import CHAIN_TABLE, PARTS, Chain, Head
from sdcmap.bundle.ledger_folder import DATABASE_NAME, LOCK_NAME, check_files, ledger_folder
from sdcmap.bundle.ledger_key import KEY_BYTES, KEY_NAME, UntrustedLedger, digest_key, read_key, write_key
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
    "create table if not exists restart (made text, reason text)",
    "create table if not exists key_check (digest text)",
    CHAIN_TABLE,
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
        home = ledger_folder(folder)
        stored = read_key(home)
        if stored is None:
            _check_without_key(home)
            return Ledger(home, bytes(KEY_BYTES))
        ledger = Ledger(home, stored.key)
        ledger._verify(has_check=stored.has_check)
        return ledger

    @staticmethod
    @contextmanager
    def open_locked(folder: Path | None) -> Iterator[Ledger]:
        """Open the ledger for one release at a time, and create it where there is none."""
        home = ledger_folder(folder)
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            _check_without_key(home)
            home.chmod(0o700)
            with FileLock(home / LOCK_NAME, mode=0o600):
                ledger = Ledger._open_or_create(home)
                with ledger._connect() as connection:
                    ledger._resolve_pending(connection)
                yield ledger
        except OSError as error:
            raise SdcmapError(f"the ledger {home} cannot be written ({error.strerror}).") from None

    @staticmethod
    def _open_or_create(home: Path) -> Ledger:
        """Return the ledger in a locked folder: a new one, or one with the chain that earlier versions did not have.

        The database is written before the key. So a process that is killed in between leaves no key without a database.
        """
        stored = read_key(home)
        ledger = Ledger(home, secrets.token_bytes(KEY_BYTES) if stored is None else stored.key)
        if stored is None:
            _check_without_key(home)
            os.close(os.open(home / DATABASE_NAME, os.O_WRONLY | os.O_CREAT, 0o600))
        else:
            ledger._verify(has_check=stored.has_check)
        with ledger._connect() as connection:
            for table in TABLES:
                connection.execute(table)
            if stored is None or not connection.execute("select 1 from key_check").fetchone():
                connection.execute("delete from key_check")
                connection.execute("insert into key_check values (?)", (digest_key(ledger.key),))
                Chain(connection, ledger.key).begin()
                connection.commit()
        if stored is None or not stored.has_check:
            write_key(home, ledger.key)
        return ledger

    def _verify(self, *, has_check: bool) -> None:
        """Check that key, database and entries belong together; has_check : whether the key was stored with its check."""
        if not (self.folder / DATABASE_NAME).exists():
            raise UntrustedLedger(self.folder, "its database is missing")
        with self._connect() as connection:
            if not _has_table(connection, "release"):
                raise UntrustedLedger(self.folder, "its database is empty")
            is_checked = _has_table(connection, "key_check") and _has_table(connection, "chain")
            check = connection.execute("select digest from key_check").fetchone() if is_checked else None
            if check is None and not has_check:
                return  # of an earlier version
            if check is None or check[0] != digest_key(self.key):
                raise UntrustedLedger(self.folder, "its key and its database do not belong together")
            if problem := Chain(connection, self.key).find_problem():
                raise UntrustedLedger(self.folder, problem)

    @property
    def id(self) -> str:
        """Twelve digits that identify this ledger; they do not reveal its key."""
        return hmac.digest(self.key, b"the ledger's name", "sha256").hex()[:12]

    @property
    def exists(self) -> bool:
        """Whether the folder contains a ledger."""
        return (self.folder / DATABASE_NAME).exists()

    @property
    def head(self) -> Head:
        """How far the chain of this ledger has come; a ledger of an earlier version has none."""
        with self._connect() as connection:
            has_chain = _has_table(connection, "chain")
            return Head(self.id, *(Chain(connection, self.key).head() if has_chain else (0, "")))

    def contains(self, head: Head) -> bool:
        """Return whether the chain of this ledger has come to this head, or beyond it."""
        with self._connect() as connection:
            has_chain = _has_table(connection, "chain")
            return has_chain and Chain(connection, self.key).contains(head.entries, head.digest)

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
            self._commit(connection, "procedure", entry)
        return ProcedureEntry(entry, profile, own, _draws(candidates), {})

    def replace_draw(self, procedure: int, candidate: int, digest: str, number: int) -> None:
        """Record another draw of a candidate, whose draw before could not be made."""
        with self._connect() as connection:
            (before,) = connection.execute("select candidates from procedure where rowid = ?", (procedure,)).fetchone()
            draws = [[digest, number] if at == candidate else draw for at, draw in enumerate(json.loads(before))]
            connection.execute("update procedure set candidates = ? where rowid = ?", (json.dumps(draws), procedure))
            self._commit(connection, "procedure", procedure)

    def record_try(self, procedure: int, candidate: int, error: float) -> Head:
        """Record that a try has begun, unless the same try began before: it gives the same figures again.

        Return the head of the chain at its beginning.
        """
        with self._connect() as connection:
            entry = _find_try(connection, procedure, candidate)
            if entry is None:
                row = procedure, candidate, error, _now(), "begun"
                entry = connection.execute("insert into try values (?,?,?,?,?)", row).lastrowid or 0
                self._commit(connection, "try", entry)
            return Head(self.id, *Chain(connection, self.key).first_head("try", entry))

    def record_outcome(self, procedure: int, candidate: int, outcome: str) -> None:
        """Record how a try ended: "passed" or "failed"."""
        with self._connect() as connection:
            entry = _find_try(connection, procedure, candidate)
            connection.execute("update try set outcome = ? where rowid = ?", (outcome, entry))
            self._commit(connection, "try", entry or 0)

    def record_restart(self, reason: str) -> None:
        """Record why this ledger was started in place of another."""
        with self._connect() as connection:
            entry = connection.execute("insert into restart values (?,?)", (_now(), reason)).lastrowid or 0
            self._commit(connection, "restart", entry)

    def restart_reasons(self) -> list[tuple[str, str]]:
        """Return when and why this ledger was started in place of another."""
        with self._connect() as connection:
            if not _has_table(connection, "restart"):  # a ledger of an earlier version
                return []
            return connection.execute("select made, reason from restart order by rowid").fetchall()

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
            entry = connection.execute(insert, row).lastrowid or 0
            _insert_sketches(connection, "sketch", entry, sketches)
            (part.parent / CLAIMED_NAME).touch(mode=0o600)  # from now on only the ledger removes this folder
            connection.execute("insert into promise values (?,?)", (entry, str(part)))
            self._commit(connection, "release", entry)
            try:
                yield
            finally:
                self._resolve_pending(connection)

    def _resolve_pending(self, connection: sqlite3.Connection) -> None:
        """Confirm or delete every pending entry; the caller has the lock, so no other release is under way."""
        for entry, part in connection.execute("select entry, part from promise").fetchall():
            if Path(part).exists():  # the bundle never got its final name, so nothing was released
                connection.execute("delete from release where rowid = ?", (entry,))
                connection.execute("delete from sketch where entry = ?", (entry,))
            connection.execute("delete from promise where entry = ?", (entry,))
            self._commit(connection, "release", entry)
            shutil.rmtree(Path(part).parent, ignore_errors=True)

    def _commit(self, connection: sqlite3.Connection, table: str, entry: int) -> None:
        """Commit a change of an entry together with its link in the chain."""
        Chain(connection, self.key).append(table, entry)
        connection.commit()

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.folder / DATABASE_NAME, timeout=LOCK_TIMEOUT_SECONDS)) as connection:
                check_plain_tables(connection)
                yield connection
        except sqlite3.Error as error:
            raise SdcmapError(f"the ledger {self.folder} cannot be used ({type(error).__name__}).") from None


def _check_without_key(home: Path) -> None:
    """Check that a folder without a key contains no ledger that lost its key, and no files of others."""
    if (home / KEY_NAME).exists():
        return
    check_files(home)
    if (home / DATABASE_NAME).exists():
        with Ledger(home, bytes(KEY_BYTES))._connect() as connection:
            tables = [table for table in PARTS if _has_table(connection, table)]
            if any(connection.execute(f"select 1 from {table}").fetchone() for table in tables):
                raise UntrustedLedger(home, "its key is missing")


def _find_try(connection: sqlite3.Connection, procedure: int, candidate: int) -> int | None:
    same = "select rowid from try where procedure = ? and candidate = ?"
    row = connection.execute(same, (procedure, candidate)).fetchone()
    return row and int(row[0])


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
