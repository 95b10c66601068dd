"""The private ledger: every release ever made, so that another one of the same records is noticed.

It lies in a folder of mode 0700 and holds a random key and two tables. Data and seed are kept as keyed digests only,
people as keyed sketches (`sketch`), so that the tables confirm no guess without the key.

A release is held against every ledger that can be found: the one that was named, $SDCMAP_LEDGER, and those of the
user's state folder and of the home folder that the system knows, whatever $HOME says. So another ledger hides nothing.

A release and its entry are one step: the entry is a promise until the folder has its name. Whatever ends the process in
between, what it leaves tells the rest: where the bundle still lies in its private folder, the release never was, and the
entry is taken back; where it does not, the release may be out, and the entry stays.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import shutil
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

import numpy as np
from filelock import FileLock

from sdcmap.bundle.sketch import People, Sketch, telling_names
from sdcmap.core import Microdata, SdcmapError
from sdcmap.core.value import Spec
from sdcmap.data.private_folder import CLAIMED_NAME
from sdcmap.study.plan import Candidate, Plan

TABLES = (
    "create table if not exists release (made text, data blob, seed blob, method text, digest text, replicate integer, "
    "profile text, folder text, columns text)",
    "create table if not exists sketch (entry integer, form text, width integer, names text, rows integer, "
    "singles integer, pairs integer, prints blob)",
    "create table if not exists promise (entry integer, part text)",
)
COLUMNS = "data, seed, method, digest, replicate, columns"  # what is read of a release
WAIT_SECONDS = 60.0


@dataclass(frozen=True)
class Earlier:
    """One release in the ledger."""

    data: bytes = field(repr=False)
    seed: bytes = field(repr=False)
    method: Spec
    digest: str
    replicate: int
    columns: tuple[str, ...]
    sketches: tuple[Sketch, ...] = field(repr=False)  # none in an entry of version 0.1, which its data alone tell


@dataclass(frozen=True)
class Ledger:
    """The ledger in a folder: `seen` to look into it, `opened` to enter a release."""

    folder: Path
    key: bytes = field(repr=False)

    @staticmethod
    def seen(folder: Path | None) -> Ledger:
        """The ledger in `folder` as it is, by default $SDCMAP_LEDGER or sdcmap/ledger in the user's state folder; one
        that does not exist has no releases and is not made."""
        home = _home(folder)
        return Ledger(home, _key(home) or bytes(32))

    @staticmethod
    @contextmanager
    def opened(folder: Path | None) -> Iterator[Ledger]:
        """The ledger, made where there is none, held by one release at a time."""
        home = _home(folder)
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            key = _key(home)
            home.chmod(0o700)
            with FileLock(home / "lock", mode=0o600):
                key = key or _key(home)
                if key is None:
                    key = secrets.token_bytes(32)
                    with _private(home / "key") as file:
                        file.write(key.hex())
                _private(home / "ledger.sqlite").close()
                ledger = Ledger(home, key)
                with ledger._connected() as connection:
                    for table in TABLES:
                        connection.execute(table)
                    _settle(connection)
                yield ledger
        except OSError as error:
            raise SdcmapError(f"the ledger {home} cannot be written ({error.strerror}).") from None

    @property
    def id(self) -> str:
        """Twelve digits that tell this ledger from others; its key cannot be had from them."""
        return hmac.digest(self.key, b"the ledger's name", "sha256").hex()[:12]

    @property
    def exists(self) -> bool:
        return (self.folder / "ledger.sqlite").exists()

    def fingerprint(self, secret: str) -> bytes:
        """A keyed digest of a data digest or a seed."""
        return hmac.digest(self.key, secret.encode(), "sha256")

    def earlier(self) -> list[Earlier]:
        """Every release so far, oldest first."""
        if not self.exists:
            return []
        try:
            with self._connected() as connection:
                rows = connection.execute(f"select rowid, {COLUMNS} from release order by rowid").fetchall()
                sketches = _sketches(connection)
            return [
                Earlier(
                    data, seed, json.loads(method), digest, replicate, tuple(json.loads(names)), tuple(sketches[entry])
                )
                for entry, data, seed, method, digest, replicate, names in rows
            ]
        except (TypeError, ValueError):
            raise SdcmapError(f"the ledger {self.folder} is damaged: restore it from a backup.") from None

    @contextmanager
    def entered(
        self, data: Microdata, plan: Plan, candidate: Candidate, profile: str, folder: Path, part: Path
    ) -> Iterator[None]:
        """The release that lies in `part` is in the ledger before it becomes `folder`; should that fail, it is taken out
        again, now or by the next release after a kill (see `_settle`)."""
        made, method = datetime.now(UTC).isoformat(timespec="seconds"), candidate.method
        row = (
            self.fingerprint(data.digest), self.fingerprint(hex(plan.seed)), json.dumps(method.spec()), method.digest,
            candidate.replicate, json.dumps(telling_names(data)), made, profile, str(folder),
        )  # fmt: skip
        sketches = list(People(data, self.key).sketches())
        with self._connected() as connection:
            insert = f"insert into release ({COLUMNS}, made, profile, folder) values (?,?,?,?,?,?,?,?,?)"
            entry = connection.execute(insert, row).lastrowid
            facts = [
                (entry, s.form, s.width, json.dumps(s.names), s.rows, s.singles, s.pairs, s.prints.tobytes())
                for s in sketches
            ]
            connection.executemany("insert into sketch values (?,?,?,?,?,?,?,?)", facts)
            (part.parent / CLAIMED_NAME).touch(mode=0o600)  # nobody else cleans up there from now on
            connection.execute("insert into promise values (?,?)", (entry, str(part)))
            connection.commit()
            try:
                yield
            finally:
                _settle(connection)

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.folder / "ledger.sqlite", timeout=WAIT_SECONDS)) as connection:
                yield connection
        except sqlite3.Error as error:
            raise SdcmapError(f"the ledger {self.folder} cannot be used ({type(error).__name__}).") from None


def others(ledger: Ledger) -> tuple[list[Ledger], list[Path]]:
    """The other ledgers that this user has, and the folders of those that cannot be read."""
    known, closed = [], []
    for home in dict.fromkeys(_usual_homes()):
        try:
            if home.resolve() != ledger.folder.resolve() and (home / "ledger.sqlite").exists():
                known.append(Ledger.seen(home))
        except (OSError, SdcmapError):
            closed.append(home)
    return known, closed


def _home(folder: Path | None) -> Path:
    return Path(folder) if folder else next(_usual_homes())


def _usual_homes() -> Iterator[Path]:
    """Where a ledger is looked for when none is named, the first being where one is made."""
    stated, state = os.environ.get("SDCMAP_LEDGER"), os.environ.get("XDG_STATE_HOME")
    if stated:
        yield Path(stated)
    if state:
        yield Path(state) / "sdcmap" / "ledger"
    yield Path.home() / ".local" / "state" / "sdcmap" / "ledger"
    with suppress(ImportError, KeyError):
        import pwd  # not on Windows

        yield Path(pwd.getpwuid(os.getuid()).pw_dir) / ".local" / "state" / "sdcmap" / "ledger"


def _key(home: Path) -> bytes | None:
    """The ledger's key; None where there is no ledger yet. A ledger that lost its key is not begun anew."""
    try:
        if (home / "key").exists():
            return bytes.fromhex((home / "key").read_text())
        strange = home.exists() and any(path.name != "lock" for path in home.iterdir())
    except (OSError, ValueError):
        raise SdcmapError(f"the ledger {home} cannot be read.") from None
    if strange:
        raise SdcmapError(f"{home} is not empty and has no ledger key: name another folder, or restore the key.")
    return None


def _private(path: Path) -> TextIO:
    """A file that its owner alone can read, opened for writing at its end."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a")


def _sketches(connection: sqlite3.Connection) -> Mapping[int, list[Sketch]]:
    """The sketches of each entry; a ledger of version 0.1 has no table of them."""
    sketches: dict[int, list[Sketch]] = defaultdict(list)
    if connection.execute("select 1 from sqlite_master where name = 'sketch'").fetchone():
        for entry, form, width, names, rows, singles, pairs, prints in connection.execute("select * from sketch"):
            kept = np.frombuffer(prints, dtype="<u8")
            sketches[entry].append(Sketch(form, width, tuple(json.loads(names)), rows, singles, pairs, kept))
    return sketches


def _settle(connection: sqlite3.Connection) -> None:
    """Keep or take back every promised entry; whoever calls this holds the ledger, so no other release is under way."""
    for entry, part in connection.execute("select entry, part from promise").fetchall():
        if Path(part).exists():
            connection.execute("delete from release where rowid = ?", (entry,))
            connection.execute("delete from sketch where entry = ?", (entry,))
        connection.execute("delete from promise where entry = ?", (entry,))
        connection.commit()
        shutil.rmtree(Path(part).parent, ignore_errors=True)
