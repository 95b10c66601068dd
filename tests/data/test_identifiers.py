"""Identifiers are detected by names, labels, patterns and checksums, each with its Safe Harbor class."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.data.identifiers import CHECKSUMS, NAMES, SAFE_HARBOR, VALUES, Mark, detect_identifier, is_german_tax_id

N = 60
RNG = np.random.default_rng(3)


def seen(name: str, values: list[object]) -> Mark | None:
    return detect_identifier(sm.read(pl.DataFrame({name: values})), name)


@pytest.mark.parametrize(
    ("letter", "values"),
    [
        ("F", [f"p{i}@example.org" for i in range(N)]),
        ("D", [f"+49 170 {1_000_000 + 7 * i}" for i in range(N)]),
        ("D", [f"0171-{1_000_000 + 7 * i}" for i in range(N)]),
        ("N", [f"https://example.org/{i}" for i in range(N)]),
        ("O", [f"10.0.{i}.7" for i in range(N)]),
        ("G", [f"{100 + i}-12-{1000 + i}" for i in range(N)]),
        ("B", [f"52.{1000 + i}, 7.{2000 + i}" for i in range(N)]),
        ("J", [f"DE{10 + i} 3704 0044 0532 0130 00" for i in range(N)]),
        ("R", [f"The person number {i} told us at length what she thought." for i in range(N)]),
    ],
)
def test_identifiers_are_detected_by_values(letter: str, values: list[object]) -> None:
    mark = seen("v17", values)
    assert mark is not None and (mark.letter, mark.role) == (letter, "identifier")


def numbers(check: Callable[[str], bool], length: int) -> list[int]:
    """Return numbers of this length that pass a checksum, found by trying the last digits."""
    stems = RNG.integers(10 ** (length - 3), 10 ** (length - 2), 400)
    return [int(f"{s}{d:02}") for s in stems for d in range(100) if check(f"{s}{d:02}")][::3][:N]


@pytest.mark.parametrize(
    ("name", "length"), [("Dutch citizen numbers", 9), ("German tax numbers", 11), ("Norwegian birth numbers", 11)]
)
def test_checksums_are_detected_in_numbers_and_texts(name: str, length: int) -> None:
    passing = numbers(CHECKSUMS[name], length)
    for values in (passing, [str(number) for number in passing]):
        mark = seen("v17", list(values))
        assert mark is not None and mark.letter == "G" and "checksum" in mark.why
    assert seen("v17", [number + 1 for number in passing]) is None


def test_random_numbers_pass_no_checksum() -> None:
    assert seen("v17", RNG.integers(10**10, 10**11, 300).tolist()) is None
    assert not is_german_tax_id("86095742718")


@pytest.mark.parametrize(
    ("name", "letter", "role"),
    [
        ("firstName", "A", "identifier"), ("Nachname", "A", "identifier"), ("E-Mail", "F", "identifier"),
        ("home_address", "B", "identifier"), ("latitude", "B", "identifier"), ("SSN", "G", "identifier"),
        ("patient_id", "H", "identifier"), ("PLZ", "B", "key"), ("zip_code", "B", "key"), ("date_of_birth", "C", "key"),
    ],
)  # fmt: skip
def test_identifiers_are_detected_by_names(name: str, letter: str, role: str) -> None:
    mark = seen(name, [f"x{i}" for i in range(N)])
    assert mark is not None and (mark.letter, mark.role) == (letter, role)


def test_ordinary_columns_are_not_detected() -> None:
    for name, values in {"income": RNG.lognormal(8, 1, N).tolist(), "age": list(range(N)), "town_size": [1, 2] * 30,
                         "name": ["a", "b"] * 30, "opinion": ["agree", "disagree"] * 30}.items():  # fmt: skip
        mark = seen(name, list(values))
        assert mark is None or mark.role == "key", name


def test_every_safe_harbor_class_has_a_description() -> None:
    assert list(SAFE_HARBOR) == [chr(ord("A") + place) for place in range(18)]
    assert {row[0] for row in (*NAMES, *VALUES)} <= set(SAFE_HARBOR)
    assert set(SAFE_HARBOR) - {row[0] for row in NAMES} == {"R"}
