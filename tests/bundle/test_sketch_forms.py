"""Forms of a column: what each of them does not see."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.bundle.sketch_forms import Form, tally
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.masking.granularity import common_step

RNG = np.random.default_rng(5)
AMOUNTS = np.where(RNG.random(400) < 0.1, 0.0, RNG.integers(500, 90_000, 400) / 4)
NAMES = RNG.choice(["North", "South", "Old Town"], 400, p=[0.5, 0.3, 0.2])


def form(values: object, form: Form) -> Array:
    return tally(sm.read(pl.DataFrame({"x": values}), keys="x").column("x")).form(form)


@pytest.mark.parametrize(
    ("change", "forms"),
    [
        (lambda x: x / 1000, ["affine", "rank"]),
        (lambda x: x + 1, ["affine", "rank"]),
        (lambda x: 1.37 * x - 11, ["affine", "rank"]),
        (np.sqrt, ["rank"]),
        (lambda x: x.astype(np.float32), ["value", "affine", "rank"]),
    ],
)
def test_forms_ignore_change_of_unit(change: object, forms: list[Form]) -> None:
    for name in ("value", "affine", "rank"):
        same = (form(AMOUNTS, name) == form(change(AMOUNTS), name)).mean()  # type: ignore[operator]
        assert (same > 0.99) == (name in forms), name


def test_category_forms_use_lower_case_and_count() -> None:
    recoded = [{"North": "1", "South": "2", "Old Town": "3"}[name] for name in NAMES]
    assert (form(NAMES, "value") == form([f" {name.lower()} " for name in NAMES], "value")).all()
    assert (form(NAMES, "affine") == form(recoded, "affine")).all()
    assert (form(NAMES, "value") != form(recoded, "value")).all()


def test_subset_of_rows_keeps_anchor_and_step() -> None:
    assert (form(AMOUNTS, "affine")[:200] == form(AMOUNTS[:200] + 7, "affine")).all()


def test_common_step_is_divisor_or_zero() -> None:
    assert common_step(np.array([4.0, 10.0, 25.0])) == 3.0
    assert common_step(RNG.integers(0, 10_000, 500) * 1.37) == pytest.approx(1.37)
    assert common_step(RNG.normal(size=500)) == 0.0
    assert common_step(np.array([2.0, 2.0, np.nan])) == 0.0


def test_record_numbers_are_distinguished_from_amounts() -> None:
    counts = [RNG.permutation(400), 7000 + 2 * np.arange(400) - np.arange(400)]
    assert all(tally(sm.read(pl.DataFrame({"x": x}), other="x").column("x")).is_counter for x in counts)
    assert not tally(sm.read(pl.DataFrame({"x": AMOUNTS}), other="x").column("x")).is_counter
