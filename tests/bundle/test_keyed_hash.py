"""The keyed hash against the values that its authors print."""

from __future__ import annotations

import numpy as np

from sdcmap.bundle.sketch_forms import keyed_hash, mix_words


def test_siphash_matches_published_test_vector() -> None:
    """SipHash-2-4 of the bytes 0 .. 7 under the key 0 .. 15: entry 8 of vectors.h of the reference code."""
    word = np.frombuffer(bytes(range(8)), dtype="<u8")
    assert keyed_hash(word, bytes(range(16)))[0].astype("<u8").tobytes().hex() == "6224939a79f5f593"


def test_mix_words_is_one_to_one() -> None:
    words = np.arange(100_000, dtype=np.uint64)
    assert len(np.unique(mix_words(words))) == len(words)
