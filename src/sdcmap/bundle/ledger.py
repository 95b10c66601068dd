"""The private ledger: every release ever made, so that another one of the same records is noticed.

It lies in a folder of mode 0700 and holds a random key and a table. Data and seed are kept as keyed digests only, so
that the table confirms no guess without the key.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO, TypeAlias

import numpy as np
from filelock import FileLock

from sdcmap.bundle import promises
from sdcmap.bundle.sketch import Sketch, fingerprints, sketch_of, telling_names
from sdcmap.core.value import Spec
from sdcmap.data.microdata import Microdata
from sdcmap.errors import SdcmapError
from sdcmap.study.plan import Candidate, Plan

TABLE = (
    "create table if not exists release (made text, data blob, seed blob, method text, digest text, replicate integer, "
    "profile text, folder text, columns text, rows integer, singles integer, pairs integer, whole blob, smallest blob, "
    "counts blob)"
)
COLUMNS = "data, seed, method, digest, replicate, columns, rows, singles, pairs, whole, smallest, counts"
WAIT_SECONDS = 60.0
LedgerRow: TypeAlias = tuple[bytes, bytes, str, str, int, str, int, int, int, bytes, bytes, bytes]  # as in COLUMNS


@dataclass(frozen=True)
class Earlier:
    """One release in the ledger."""

    data: bytes = field(repr=False)
    seed: bytes = field(repr=False)
    method: Spec
    digest: str
    replicate: int
    columns: tuple[str, ...]
    sketch: Sketch = field(repr=False)


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
                    connection.execute(TABLE)
                    connection.execute(promises.TABLE)
                    promises.settle(connection)
                yield ledger
        except OSError as error:
            raise SdcmapError(f"the ledger {home} cannot be written ({error.strerror}).") from None

    def fingerprint(self, secret: str) -> bytes:
        """A keyed digest of a data digest or a seed."""
        return hmac.digest(self.key, secret.encode(), "sha256")

    def earlier(self) -> list[Earlier]:
        """Every release so far, oldest first."""
        if not (self.folder / "ledger.sqlite").exists():
            return []
        try:
            with self._connected() as connection:
                rows = connection.execute(f"select {COLUMNS} from release order by rowid").fetchall()
            return [_earlier(row) for row in rows]
        except (TypeError, ValueError):
            raise SdcmapError(f"the ledger {self.folder} is damaged: restore it from a backup.") from None

    @contextmanager
    def entered(
        self, data: Microdata, plan: Plan, candidate: Candidate, profile: str, folder: Path, part: Path
    ) -> Iterator[None]:
        """The release that lies in `part` is in the ledger before it becomes `folder`; should that fail, it is taken out
        again, now or by the next release after a kill (see `promises`)."""
        names = telling_names(data)
        sketch = sketch_of(fingerprints(data, names, self.key), self.key)
        row = (
            datetime.now(UTC).isoformat(timespec="seconds"), self.fingerprint(data.digest),
            self.fingerprint(hex(plan.seed)), json.dumps(candidate.method.spec()), candidate.method.digest,
            candidate.replicate, profile, str(folder), json.dumps(names), sketch.rows, sketch.singles, sketch.pairs,
            sketch.whole, sketch.smallest.tobytes(), sketch.counts.tobytes(),
        )  # fmt: skip
        with self._connected() as connection:
            entry = connection.execute(f"insert into release values ({','.join('?' * len(row))})", row).lastrowid
            promises.promise(connection, entry or 0, part)
            connection.commit()
            try:
                yield
            finally:
                promises.settle(connection)

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.folder / "ledger.sqlite", timeout=WAIT_SECONDS)) as connection:
                yield connection
        except sqlite3.Error as error:
            raise SdcmapError(f"the ledger {self.folder} cannot be used ({type(error).__name__}).") from None


def _home(folder: Path | None) -> Path:
    stated = os.environ.get("XDG_STATE_HOME", "")
    state = Path(stated) if stated else Path.home() / ".local" / "state"
    return Path(folder or os.environ.get("SDCMAP_LEDGER") or state / "sdcmap" / "ledger")


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


def _earlier(row: LedgerRow) -> Earlier:
    data, seed, method, digest, replicate, columns, rows, singles, pairs, whole, smallest, counts = row
    prints, multiples = np.frombuffer(smallest, dtype="<u8"), np.frombuffer(counts, dtype="<u4")
    sketch = Sketch(prints, multiples, rows, singles, pairs, whole)
    return Earlier(data, seed, json.loads(method), digest, replicate, tuple(json.loads(columns)), sketch)
