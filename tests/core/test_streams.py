"""Random streams: masking draws from ChaCha with the published numbers, and its state is the key alone."""

import numpy as np

from sdcmap.core import Stream

# The first block of ChaCha with 12 rounds, a key of 256 zero bits and IV 0 (Strombergson 2013,
# draft-strombergson-chacha-test-vectors-01, TC1).
FIRST_BLOCK = (
    "9bf49a6a0755f953811fce125f2683d50429c3bb49e074147e0089a52eae155f"
    "0564f879d27ae3c02ce82834acfa8c793a629f2ca0de6919610be82f411326be"
)


def test_masking_draws_the_published_numbers_of_chacha() -> None:
    words = Stream(bytes(32)).rng().bit_generator.random_raw(8)
    assert words.astype("<u8").tobytes().hex() == FIRST_BLOCK


def test_every_bit_of_the_key_changes_the_numbers() -> None:
    key = bytes(range(32))
    draws = {tuple(Stream(key).rng().integers(2**63, size=4))}
    for bit in range(256):
        other = (int.from_bytes(key, "big") ^ (1 << bit)).to_bytes(32, "big")
        draws.add(tuple(Stream(other).rng().integers(2**63, size=4)))
    assert len(draws) == 257


def test_attacks_draw_other_numbers_than_masking() -> None:
    stream = Stream(bytes(range(32)))
    assert not np.allclose(stream.rng().random(8), stream.fast_rng().random(8))
