"""Repair of a damaged study: every row that is whole is read off the pages of the database, whatever else is broken.

SQLite keeps rows in pages, and pages in a tree. When the tree is broken the pages are still there, so they are read one by
one, those of the write-ahead log too. A row is whole when it decodes and its checksum holds; rows are only ever added to a
study, so an old copy of a row is as good as the last. What is lost the next sweep makes again, with the same numbers.
Reference: the database file format of SQLite, sections 1.6 (b-tree pages), 2.1 (records) and 4 (the write-ahead log).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sdcmap.errors import SdcmapError, StudyDamaged
from sdcmap.study.database import TABLES, columns_of, is_whole, typed
from sdcmap.study.folder import Study, locked

STORED = tuple(name for name in TABLES if name != "tally")  # the tally is counted anew
PAGE_SIZE = 4096  # SQLite's own default, and ours, where the file no longer says
INDEX_PAGES = {2: 4, 10: 0}  # the pages of our tables, which have no row ids: kind -> bytes before each row's length
INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}  # serial type -> bytes


@dataclass(frozen=True)
class Repaired:
    """What a repair found."""

    candidates: int
    scores: int
    kept: Path | None  # the damaged database, put aside; None: nothing was damaged

    def __str__(self) -> str:
        what = f"{self.candidates:,} candidates and {self.scores:,} scores are whole"
        if self.kept is None:
            return f"{what}; nothing is damaged."
        return f"{what} and were kept. The damaged file is {self.kept.name}. Sweep again to make what is missing."


def repair(path: str | Path) -> Repaired:
    """Rescue every whole row of a study's damaged database into a new one; an undamaged study is left as it is.

    >>> from sdcmap import Noise, IL1s, Plan, demo, sweep
    >>> from tempfile import mkdtemp
    >>> folder = mkdtemp()
    >>> scores = sweep(demo.population(50, seed=1), Plan(Noise(on="wage"), IL1s(on="wage")), folder, workers=1)
    >>> print(repair(folder))
    2 candidates and 2 scores are whole; nothing is damaged.
    """
    path = Path(path)
    Study.manifest_of(path)  # a folder without one is no study
    file, log = path / "scores.sqlite", path / "scores.sqlite-wal"
    with locked(path):
        whole = _whole(path)
        if whole is not None:
            return Repaired(*whole, None)
        rows = _rescued(file, log)
        kept = _aside(file)
        for tail in ("-wal", "-shm"):
            file.with_name(file.name + tail).unlink(missing_ok=True)
        with Study.open(path) as study:
            study.database.insert({name: [record[:-1] for record in records] for name, records in rows.items()})
            with suppress(SdcmapError):  # plan or data are damaged too: the next sweep writes them, and the measures
                study.add_measures(study.plan.measures, study.data)
            counts = [len(study.database.rows(name)) for name in rows]
    return Repaired(counts[0], counts[1], kept)


def _whole(path: Path) -> tuple[int, int] | None:
    """Numbers of candidates and scores, when every row of the database can be read and is whole, and none is lost."""
    try:
        with Study.open(path) as study:
            counts = [len(study.database.rows(name)) for name in STORED]
    except StudyDamaged:
        return None
    return counts[0], counts[1]


def _aside(file: Path) -> Path:
    number = 1
    while (kept := file.with_name(f"scores.damaged-{number}.sqlite")).exists():
        number += 1
    if file.exists():
        file.replace(kept)
    return kept


# ---- rows off pages -------------------------------------------------------------------------------------------
def _rescued(file: Path, log: Path) -> dict[str, list[list[Any]]]:
    """Every whole row of each table."""
    rows: dict[str, list[list[Any]]] = {name: [] for name in STORED}
    for pages in (_file_pages(file), _log_pages(log)):
        for page in pages.values():
            for record in _records(page, pages):
                for name, whole in rows.items():
                    if _belongs(record, name):
                        whole.append(record)
    return rows


def _belongs(record: list[Any], table: str) -> bool:
    """Whether a record off a page, where a whole number of a real column lies as an integer, is a whole row of a table."""
    try:
        return len(record) == len(columns_of(table)) and is_whole(table, (*typed(table, record[:-1]), record[-1]))
    except (TypeError, ValueError):  # a text where a number belongs
        return False


def _file_pages(file: Path) -> dict[int, bytes]:
    """Page number -> page; page 1 without the header of the file."""
    content = file.read_bytes() if file.exists() else b""
    size = int.from_bytes(content[16:18], "big") if content[:16] == b"SQLite format 3\0" else PAGE_SIZE
    size = size if size >= 512 and size & (size - 1) == 0 else PAGE_SIZE
    return {1 + place // size: content[place : place + size] for place in range(0, len(content), size)}


def _log_pages(log: Path) -> dict[int, bytes]:
    """Pages of the write-ahead log: a header of 32 bytes, then frames of 24 bytes and a page each."""
    content = log.read_bytes() if log.exists() else b""
    size = int.from_bytes(content[8:12], "big")
    size = size if size >= 512 and size & (size - 1) == 0 else PAGE_SIZE
    return {frame: content[place + 24 : place + 24 + size] for frame, place in
            enumerate(range(32, len(content), 24 + size), 1)}  # fmt: skip


def _records(page: bytes, pages: dict[int, bytes]) -> Iterator[list[Any]]:
    """The records of one page, as far as they decode."""
    if len(page) < 8 or page[0] not in INDEX_PAGES:
        return
    before = INDEX_PAGES[page[0]]
    start = 8 + before
    for number in range(int.from_bytes(page[3:5], "big")):
        try:
            place = int.from_bytes(page[start + 2 * number : start + 2 * number + 2], "big") + before
            length, place = _varint(page, place)
            yield _decoded(_payload(page, place, length, pages))
        except (IndexError, ValueError, struct.error, KeyError, OverflowError):
            continue


def _payload(page: bytes, place: int, length: int, pages: dict[int, bytes]) -> bytes:
    """A record's bytes; a long one goes on in overflow pages."""
    usable = len(page)
    most = (usable - 12) * 64 // 255 - 23
    if length <= most:
        return page[place : place + length]
    least = (usable - 12) * 32 // 255 - 23
    here = least + (length - least) % (usable - 4)
    here = here if here <= most else least
    payload = page[place : place + here]
    follow = int.from_bytes(page[place + here : place + here + 4], "big")
    while len(payload) < length:
        more = pages[follow]
        follow, payload = int.from_bytes(more[:4], "big"), payload + more[4:]
        if not follow:
            break
    return payload[:length]


def _decoded(payload: bytes) -> list[Any]:
    """The values of a record: a header of serial types, then the values."""
    end, place = _varint(payload, 0)
    kinds = []
    while place < end:
        kind, place = _varint(payload, place)
        kinds.append(kind)
    values: list[Any] = []
    for kind in kinds:
        if kind == 0:
            values.append(None)
        elif kind in INTEGERS:
            size = INTEGERS[kind]
            values.append(int.from_bytes(payload[place : place + size], "big", signed=True))
            place += size
        elif kind == 7:
            values.append(struct.unpack_from(">d", payload, place)[0])
            place += 8
        elif kind in (8, 9):
            values.append(kind - 8)
        elif kind >= 13 and kind % 2:
            size = (kind - 13) // 2
            values.append(payload[place : place + size].decode("utf-8"))
            place += size
        else:
            raise ValueError("a kind of value that a study does not hold")
    if place != len(payload):
        raise ValueError("a record that does not fill its place")
    return values


def _varint(content: bytes, place: int) -> tuple[int, int]:
    """A number of one to nine bytes, seven bits in each, and the place after it."""
    number = 0
    for count in range(9):
        byte = content[place + count]
        if count == 8:
            return number << 8 | byte, place + 9
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            return number, place + count + 1
    raise ValueError("no number")
