"""Fingerprints of records under a secret key, to recognise records that were released before.

A record's fingerprint is a keyed hash of its original values; without the key it confirms no guess. Of each release a
bottom-k sketch is kept: the k smallest fingerprints, and how many records have each.

Records of different persons can agree in all values when these are few and coarse. Good and Turing's estimates say what
chance gives between two samples of one population: a new record meets a combination that was seen once with probability
2 pairs/rows, and one that was never seen with probability singles/rows. Only what chance does not give is an overlap, so
a part of a coarse file that mixes with new records can go unnoticed; one that holds nothing else does not.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sdcmap.data.microdata import Microdata
from sdcmap.data.schema import NEVER_RELEASED
from sdcmap.kernels.arrays import Array

SKETCH_SIZE = 4096
BLOCK = 1 << 16  # records hashed at a time
SHARE = 0.01  # overlapping share of either file that makes two releases one matter
A_FEW = 5
SURELY_NEW = 10.0  # new combinations that chance must promise before having none is taken as a sign
MISSING = struct.pack("<d", float("nan"))


@dataclass(frozen=True)
class Sketch:
    """The smallest fingerprints and their counts; of the whole file, how many records there are, how many are alone
    with their fingerprint (`singles`) and how many fingerprints two records share (`pairs`)."""

    smallest: Array
    counts: Array
    rows: int
    singles: int
    pairs: int
    whole: bytes  # keyed digest of all fingerprints, sorted: the same records in any order have the same

    def count_of(self, prints: Array) -> Array:
        """How many records of the sketch have each of these fingerprints."""
        place = np.minimum(np.searchsorted(self.smallest, prints), len(self.smallest) - 1)
        return np.where(self.smallest[place] == prints, self.counts[place], 0)

    def below(self, last: np.uint64) -> Sketch:
        """The sketch up to one fingerprint."""
        kept = int(np.searchsorted(self.smallest, last, side="right"))
        return replace(self, smallest=self.smallest[:kept], counts=self.counts[:kept])


def telling_names(data: Microdata) -> tuple[str, ...]:
    """The released columns that records are recognised by: weights, households and strata may be made anew for a second
    release of the same persons, so they are left out where anything else is there."""
    released = [v for v in data.schema.variables if v.role not in NEVER_RELEASED]
    telling = [v for v in released if v.role not in ("weight", "household", "stratum")]
    return tuple(variable.name for variable in telling or released)


def fingerprints(data: Microdata, names: Sequence[str], key: bytes) -> Array:
    """A keyed 64-bit hash of each record's values of `names`, the same in whatever order, kind or type they come."""
    columns = [_eight_bytes(data, name) for name in sorted(names)]
    prints = np.empty(len(data), dtype=np.uint64)
    for start in range(0, len(data), BLOCK):
        block = np.stack([column[start : start + BLOCK] for column in columns], axis=1)
        width = block.shape[1] * 8
        content = block.tobytes()
        hashes = b"".join(
            hashlib.blake2b(content[at : at + width], digest_size=8, key=key).digest()
            for at in range(0, len(content), width)
        )
        prints[start : start + len(block)] = np.frombuffer(hashes, dtype="<u8")
    return prints


def _eight_bytes(data: Microdata, name: str) -> Array:
    """Eight bytes a value: a number's own, a hash of a text."""
    column = data.column(name)
    if column.levels is None:
        values = np.where(np.isnan(column.values), np.nan, column.values + 0.0)
        return np.frombuffer(np.ascontiguousarray(values, dtype="<f8"), dtype="<u8")
    table = np.frombuffer(b"".join(map(_level_bytes, column.levels.to_list())), dtype="<u8")
    hashes: Array = table[column.values]
    return hashes


def _level_bytes(level: object) -> bytes:
    if level is None:
        return MISSING
    if isinstance(level, int | float):
        return struct.pack("<d", float(level) + 0.0)
    return hashlib.blake2b(str(level).encode(), digest_size=8).digest()


def sketch_of(prints: Array, key: bytes, size: int | None = SKETCH_SIZE) -> Sketch:
    """The sketch of a file from the fingerprints of its records; size None: of all of them."""
    distinct, count = np.unique(prints, return_counts=True)
    whole = hmac.digest(key, np.sort(prints).astype("<u8").tobytes(), "sha256")
    singles, pairs = int((count == 1).sum()), int((count == 2).sum())
    return Sketch(distinct[:size].astype("<u8"), count[:size].astype("<u4"), len(prints), singles, pairs, whole)


def overlaps(earlier: Sketch, prints: Array, key: bytes) -> bool:
    """Whether these records include at least 1 % (and a few) of the earlier release's, or are a part of it, or it of
    them, more than chance can explain."""
    now = sketch_of(prints, key, None)
    if now.whole == earlier.whole:
        return True
    complete = int(earlier.counts.sum()) == earlier.rows
    now = now if complete else now.below(earlier.smallest[-1])
    if len(now.smallest) == 0:
        return False
    lone = earlier.smallest[earlier.counts == 1]
    hits = int((now.count_of(lone) > 0).sum())
    by_chance = now.rows * (2 * earlier.pairs / earlier.rows) * (len(lone) / max(1, earlier.singles))
    enough = hits >= A_FEW + 1.25 * by_chance + 6 * by_chance**0.5
    share = hits / max(1, min(len(lone), len(now.smallest)))
    return (enough and share >= SHARE) or _is_part(now, earlier) or _is_part(earlier, now)


def _is_part(small: Sketch, large: Sketch) -> bool:
    """Whether every record of one file is in the other, where another sample would have brought new combinations."""
    new_by_chance = int(small.counts.sum()) * large.singles / large.rows
    return new_by_chance >= SURELY_NEW and bool((small.counts <= large.count_of(small.smallest)).all())
