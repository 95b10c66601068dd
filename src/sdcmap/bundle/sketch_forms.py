"""A column in three forms, so that people are recognized after it was renamed, recoded or rescaled.

value   : a number to nine digits, a text in lower case. Every subset of the rows keeps it.
affine  : a number as (x - anchor) / step. The anchor is the most common value, if it is common enough, else the smallest
          one. The step is the greatest common divisor of all differences, or the interquartile range where there is none. A
          category is the rank of its count. Scaling, shifting and recoding do not change it.
rank    : the sixteenth of the ranking that a number is in; a category as before. Increasing functions, rounding and random
          subsets of the rows hardly change it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sdcmap.core import Array, Column
from sdcmap.kernels.jit import inner_jit, jit
from sdcmap.kernels.masking.granularity import common_step

# ---- a pseudorandom function of 64-bit words: without the key, its values reveal nothing ---------------------------
# SipHash-2-4 of one word of eight bytes (Aumasson and Bernstein 2012, sections 2.1 to 2.4).


def keyed_hash(words: Array, key: bytes) -> Array:
    """Return SipHash-2-4 of each word under the first 16 bytes of the key."""
    k0, k1 = np.frombuffer(key[:16], dtype="<u8")
    return _siphash(np.ascontiguousarray(words, dtype=np.uint64), k0, k1)


def mix_words(words: Array) -> Array:
    """Map each word to another, one to one, so that sums of words differ (finalizer of SplitMix64, Steele et al. 2014).

    The map is public and can be inverted; it is no hash.
    """
    word = words.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(word ^ (word >> np.uint64(31)))


@jit
def _siphash(words: Array, k0: np.uint64, k1: np.uint64) -> Array:
    hashes = np.empty(len(words), dtype=np.uint64)
    length = np.uint64(8 << 56)  # the last block: a message of eight bytes, and no bytes left
    for i in range(len(words)):
        v0, v1 = k0 ^ np.uint64(0x736F6D6570736575), k1 ^ np.uint64(0x646F72616E646F6D)
        v2, v3 = k0 ^ np.uint64(0x6C7967656E657261), k1 ^ np.uint64(0x7465646279746573)
        for block in (words[i], length):
            v3 ^= block
            v0, v1, v2, v3 = _rounds(v0, v1, v2, v3, 2)
            v0 ^= block
        v0, v1, v2, v3 = _rounds(v0, v1, v2 ^ np.uint64(0xFF), v3, 4)
        hashes[i] = v0 ^ v1 ^ v2 ^ v3
    return hashes


@inner_jit
def _rounds(
    v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64, count: int
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    for _ in range(count):
        v0, v2 = v0 + v1, v2 + v3
        v1, v3 = _rotate_left(v1, 13) ^ v0, _rotate_left(v3, 16) ^ v2
        v0 = _rotate_left(v0, 32)
        v2, v0 = v2 + v1, v0 + v3
        v1, v3 = _rotate_left(v1, 17) ^ v2, _rotate_left(v3, 21) ^ v0
        v2 = _rotate_left(v2, 32)
    return v0, v1, v2, v3


@inner_jit
def _rotate_left(word: np.uint64, bits: int) -> np.uint64:
    left = np.uint64(bits)
    return (word << left) | (word >> (np.uint64(64) - left))


Form = Literal["value", "affine", "rank"]
RANK_CLASSES = 16  # coarse enough that a random subset of rows changes few ranks
MANTISSA_SCALE = 2.0**30  # about nine digits
MIN_FINE_SHARE = 0.05  # of distinct values among the records; a column with more is fine, such as amounts
MIN_ANCHOR_SHARE = 0.02  # of the records that have a value, before it serves as an anchor
MISSING_WORD = np.uint64(0x6D697373696E67)


@dataclass(frozen=True)
class Tally:
    """The distinct values of a column."""

    numbers: Array | None  # the values, ascending; NaN: missing; None: they are texts
    texts: tuple[str | None, ...]  # the values, if they are texts
    counts: Array  # how many records have each value
    positions: Array  # the index of each record's value

    @property
    def entropy(self) -> float:
        """The Shannon entropy of the column in bits: -sum p log2 p."""
        shares = self.counts[self.counts > 0] / max(1, self.counts.sum())
        return float(-(shares * np.log2(shares)).sum())

    @property
    def is_counter(self) -> bool:
        """Whether it only numbers the records: all values are distinct and fill at least half of a grid."""
        if self.numbers is None or (self.counts > 1).any():
            return False
        known = self.numbers[~np.isnan(self.numbers)]
        step = common_step(known)
        return step > 0 and bool(np.ptp(known) < 2 * step * len(known))

    @property
    def is_fine(self) -> bool:
        """Whether there are many distinct values, as in amounts and record numbers."""
        return len(self.counts) >= MIN_FINE_SHARE * len(self.positions)

    def form(self, form: Form, shifted: bool = False) -> Array:
        """Return one word for each record; `shifted`: that of the next distinct value."""
        if self.numbers is None:
            words = _texts(self.texts) if form == "value" else self.count_ranks.astype(np.uint64)
        else:
            code = {"value": significant, "affine": self._affine, "rank": self._ranks}[form](self.numbers)
            words = np.where(np.isnan(self.numbers), MISSING_WORD, code)
        positions = (self.positions.astype(np.int64) + 1) % len(words) if shifted else self.positions
        return np.asarray(mix_words(words)[positions])

    @property
    def count_ranks(self) -> Array:
        """The rank of each value's count, the largest first; equal counts have the same rank."""
        return np.unique(-self.counts.astype(np.int64), return_inverse=True)[1]

    def _affine(self, numbers: Array) -> Array:
        known = ~np.isnan(numbers)
        if not known.any():
            return np.zeros(len(numbers), dtype=np.uint64)
        values, counts = numbers[known], self.counts[known]
        top = int(counts.argmax())
        is_common = counts[top] >= max(10, MIN_ANCHOR_SHARE * counts.sum())
        low, high = values[np.searchsorted(np.cumsum(counts) / counts.sum(), (0.25, 0.75))]
        step = common_step(values) or float(high - low) or 1.0
        return significant((numbers - values[top if is_common else 0]) / step)

    def _ranks(self, numbers: Array) -> Array:
        counts = np.where(np.isnan(numbers), 0, self.counts)
        # The middle rank of a value: ties share it, and a random subset hardly moves it.
        middle = (np.cumsum(counts) - counts / 2) / max(1, counts.sum())
        return np.asarray(np.minimum(middle * RANK_CLASSES, RANK_CLASSES - 1).astype(np.uint64))


def tally(column: Column) -> Tally:
    """Return the distinct values of a column, ascending if they are numbers."""
    if column.levels is None:
        distinct, positions, counts = np.unique(column.values, return_inverse=True, return_counts=True)
        return Tally(distinct, (), counts, positions)
    counts, levels = np.bincount(column.values, minlength=len(column.levels)), column.levels.to_list()
    if not column.levels.dtype.is_numeric():
        return Tally(None, tuple(None if v is None else str(v) for v in levels), counts, column.values)
    numbers = np.array([np.nan if v is None else float(v) for v in levels])
    order = np.argsort(numbers, kind="stable")
    return Tally(numbers[order], (), counts[order], np.argsort(order, kind="stable")[column.values])


def significant(numbers: Array) -> Array:
    """Return a word for each number; numbers that agree to nine digits have the same word."""
    with np.errstate(invalid="ignore"):
        mantissa, exponent = np.frexp(numbers)
        whole = np.where(np.isfinite(numbers), np.rint(mantissa * MANTISSA_SCALE), 0.0)
        over = np.abs(whole) >= MANTISSA_SCALE  # the mantissa was rounded up to the next power of two
        whole, exponent = np.where(over, whole / 2, whole), exponent + over
    return np.asarray((whole.astype(np.int64) * 4096 + exponent).astype(np.uint64))


def _texts(texts: tuple[str | None, ...]) -> Array:
    """Return a word for each text in lower case, without surrounding blanks."""
    return np.array([MISSING_WORD if text is None else text_word(text) for text in texts], dtype=np.uint64)


def text_word(text: str) -> int:
    """Return eight bytes of a hash of a text in lower case."""
    return int.from_bytes(hashlib.blake2b(text.strip().casefold().encode(), digest_size=8).digest(), "little")
