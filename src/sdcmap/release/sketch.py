"""Fingerprints of records under a secret key, to recognise records that were released before.

A record's fingerprint is a keyed hash of its original values; without the key it confirms no guess. Of each release a
bottom-k sketch is kept: the k smallest fingerprints of records that are alone in theirs.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sdcmap.microdata import Array, Microdata

SKETCH_SIZE = 4096
BLOCK = 1 << 16  # records hashed at a time
SHARE = 0.01  # overlapping share of either file that makes two releases one matter
A_FEW = 5
MISSING = struct.pack("<d", float("nan"))


@dataclass(frozen=True)
class Sketch:
    """The smallest fingerprints of lone records; how many records there are, alone (`singles`) and in pairs."""

    smallest: Array
    rows: int
    singles: int
    pairs: int
    whole: bytes  # keyed digest of all fingerprints in order: the same records in any order have the same


def fingerprints(data: Microdata, names: Sequence[str], key: bytes) -> Array:
    """A keyed 64-bit hash of each record's values of `names`, the same in whatever order, kind or type they come."""
    columns = [_eight_bytes(data, name) for name in sorted(names)]
    found = np.empty(len(data), dtype=np.uint64)
    for start in range(0, len(data), BLOCK):
        block = np.stack([column[start : start + BLOCK] for column in columns], axis=1)
        width = block.shape[1] * 8
        content = block.tobytes()
        hashes = b"".join(
            hashlib.blake2b(content[at : at + width], digest_size=8, key=key).digest()
            for at in range(0, len(content), width)
        )
        found[start : start + len(block)] = np.frombuffer(hashes, dtype="<u8")
    return found


def _eight_bytes(data: Microdata, name: str) -> Array:
    """Eight bytes a value: a number's own, a hash of a text."""
    column = data.column(name)
    if column.levels is None:
        values = np.where(np.isnan(column.values), np.nan, column.values + 0.0)
        return np.frombuffer(np.ascontiguousarray(values, dtype="<f8"), dtype="<u8")
    table = np.frombuffer(b"".join(map(_level_bytes, column.levels.to_list())), dtype="<u8")
    found: Array = table[column.values]
    return found


def _level_bytes(level: object) -> bytes:
    if level is None:
        return MISSING
    if isinstance(level, int | float):
        return struct.pack("<d", float(level) + 0.0)
    return hashlib.blake2b(str(level).encode(), digest_size=8).digest()


def sketch_of(prints: Array, key: bytes) -> Sketch:
    """The sketch of a file from the fingerprints of its records."""
    distinct, count = np.unique(prints, return_counts=True)
    alone = distinct[count == 1]
    whole = hmac.digest(key, np.sort(prints).astype("<u8").tobytes(), "sha256")
    return Sketch(alone[:SKETCH_SIZE].astype("<u8"), len(prints), len(alone), int((count == 2).sum()), whole)


def overlaps(earlier: Sketch, prints: Array, key: bytes) -> bool:
    """Whether these records include at least 1 % (and a few) of the earlier release's, or the other way round.

    Records of different persons can agree in all values when these are few and coarse. Good and Turing's estimate says
    how many such agreements chance gives: a new record meets a combination seen once with probability 2 pairs/rows.
    Only what is clearly more counts as an overlap.
    """
    if sketch_of(prints, key).whole == earlier.whole:
        return True
    if len(earlier.smallest) == 0:
        return False
    hits = int(np.isin(earlier.smallest, prints).sum())
    complete = len(earlier.smallest) == earlier.singles
    within = len(prints) if complete else int((prints <= earlier.smallest[-1]).sum())
    sampled = len(earlier.smallest) / earlier.singles
    by_chance = len(prints) * (2 * earlier.pairs / earlier.rows) * sampled
    share = hits / max(1, min(len(earlier.smallest), within))
    return hits >= A_FEW + 1.25 * by_chance + 6 * by_chance**0.5 and share >= SHARE
