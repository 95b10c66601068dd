"""Random streams: each derived from a secret seed by a keyed hash, so none leads back to it and none moves another."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field

import numpy as np
from numpy.random import PCG64DXSM, Generator


@dataclass(frozen=True)
class Stream:
    """A keyed source of random numbers; `child` streams are independent of it and of each other."""

    key: bytes = field(repr=False)

    @staticmethod
    def of_seed(seed: int, *labels: str) -> Stream:
        """The stream of a seed and its labels: HMAC-SHA256(seed, labels)."""
        length = max(32, (seed.bit_length() + 7) // 8)
        return Stream(hmac.digest(seed.to_bytes(length, "big"), "\x1f".join(labels).encode(), "sha256"))

    def child(self, label: str) -> Stream:
        """The stream with one more label, such as a stratum or a sampled measure."""
        return Stream(hmac.digest(self.key, label.encode(), "sha256"))

    @property
    def seal(self) -> str:
        """Twelve digits that tell this stream from others and lead back to none."""
        return hmac.digest(self.key, b"seal", "sha256").hex()[:12]

    def rng(self) -> Generator:
        """The numpy generator of this stream."""
        return Generator(PCG64DXSM(np.frombuffer(self.key[::-1], dtype="<u4")))
