"""A pseudorandom function of 64-bit words: whoever lacks the key learns nothing from its values.

SipHash-2-4 of one word of eight bytes (Aumasson and Bernstein 2012, sections 2.1 to 2.4).
"""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import inner_jit, jit


def keyed_hash(words: Array, key: bytes) -> Array:
    """SipHash-2-4 of each word under the first 16 bytes of the key."""
    k0, k1 = np.frombuffer(key[:16], dtype="<u8")
    return _siphash(np.ascontiguousarray(words, dtype=np.uint64), k0, k1)


def stirred(words: Array) -> Array:
    """Each word sent to another, one to one, so that sums of several tell them apart (the finaliser of SplitMix64,
    Steele et al. 2014). Anybody can undo it."""
    word = words.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = word ^ (word >> np.uint64(31))
    return mixed


@jit
def _siphash(words: Array, k0: np.uint64, k1: np.uint64) -> Array:
    hashes = np.empty(len(words), dtype=np.uint64)
    length = np.uint64(8 << 56)  # the last block: eight bytes, and none left
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
        v1, v3 = _turned(v1, 13) ^ v0, _turned(v3, 16) ^ v2
        v0 = _turned(v0, 32)
        v2, v0 = v2 + v1, v0 + v3
        v1, v3 = _turned(v1, 17) ^ v2, _turned(v3, 21) ^ v0
        v2 = _turned(v2, 32)
    return v0, v1, v2, v3


@inner_jit
def _turned(word: np.uint64, bits: int) -> np.uint64:
    left = np.uint64(bits)
    return (word << left) | (word >> (np.uint64(64) - left))
