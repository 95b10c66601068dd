"""Random streams, derived from a secret seed by a keyed hash: no stream reveals the seed or depends on another stream."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from numpy.random import PCG64DXSM, Generator
from numpy.random.bit_generator import ISeedSequence

from sdcmap.kernels.arrays import Array


@dataclass(frozen=True)
class Stream:
    """A keyed source of random numbers; `child` streams are independent of it and of each other."""

    key: bytes = field(repr=False)

    @staticmethod
    def of_seed(seed: int, *labels: str) -> Stream:
        """Return the stream of a seed and its labels: HMAC-SHA256(seed, labels)."""
        length = max(32, (seed.bit_length() + 7) // 8)
        return Stream(hmac.digest(seed.to_bytes(length, "big"), "\x1f".join(labels).encode(), "sha256"))

    def child(self, label: str) -> Stream:
        """Return the stream with one more label, such as a stratum or a sampled measure."""
        return Stream(hmac.digest(self.key, label.encode(), "sha256"))

    @property
    def stream_id(self) -> str:
        """Twelve digits that identify this stream and do not reveal its key."""
        return hashlib.sha256(b"seal" + self.key).hexdigest()[:12]

    def rng(self) -> Generator:
        """Return the numpy generator of this stream. Its 256 bits of state are the key itself."""
        return Generator(PCG64DXSM(_Key(self.key)))  # type: ignore[arg-type]


class _Key(ISeedSequence):
    """A key in place of numpy's `SeedSequence`. Its bits are random already, so mixing them again (15 us) is not needed."""

    def __init__(self, key: bytes) -> None:
        self.key = key

    def generate_state(self, n_words: int, dtype: npt.DTypeLike = np.uint32) -> Array:
        """Return the four 64-bit words that the generator asks for, the same on every machine."""
        return np.frombuffer(self.key, np.dtype(dtype).newbyteorder("<"))[:n_words].astype(dtype, copy=False)
