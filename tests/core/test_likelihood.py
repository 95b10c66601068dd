"""Densities of released values, against scipy and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from sdcmap.core.likelihood import Density, Field, Mixture, Normal, Same, Transition, Window, block
from sdcmap.core.method import Method
from sdcmap.errors import Undefined

KNOWN, RELEASED = np.array([0.0, 1.0, 2.0]), np.array([0.5, 2.0])


def test_normal_and_mixture_densities_match_scipy() -> None:
    error = RELEASED - KNOWN[:, np.newaxis]
    normal = Field(KNOWN, RELEASED, Normal(0.7)).block(slice(None))
    np.testing.assert_allclose(normal - normal[0, 0], (e := stats.norm.logpdf(error, 0, 0.7)) - e[0, 0])
    parts = [(0.3, -1.0, 0.2), (0.7, 0.5, 0.4)]
    density = sum(w * stats.norm.pdf(error, c, s) for w, c, s in parts)
    mixture = Field(KNOWN, RELEASED, Mixture(*zip(*parts, strict=True))).block(slice(None))
    np.testing.assert_allclose(mixture - mixture[0, 0], np.log(density / density[0, 0]))


@pytest.mark.parametrize(
    ("density", "wanted"),
    [
        (Window(1.0), [[0, -np.inf], [0, -np.inf], [-np.inf, 0]]),
        (Same(), [[-np.inf, -np.inf], [-np.inf, -np.inf], [-np.inf, 0]]),
        (Transition(np.full((3, 3), 1 / 3)), np.full((3, 2), np.log(1 / 3))),
    ],
)
def test_window_same_and_transition_densities(density: Density, wanted: list[list[float]]) -> None:
    np.testing.assert_allclose(Field(KNOWN, RELEASED, density).block(slice(None)), wanted)


def test_missing_value_on_one_side_is_impossible_and_on_both_is_neutral() -> None:
    field = Field(np.array([np.nan, 1.0]), np.array([np.nan, 1.0]), Normal(1))
    np.testing.assert_array_equal(field.block(slice(None)), [[0, -np.inf], [-np.inf, 0]])


def test_block_sums_its_fields() -> None:
    fields = [Field(KNOWN, RELEASED, Normal(1)), Field(KNOWN, RELEASED, Window(1))]
    np.testing.assert_array_equal(block(fields, np.array([2])), fields[0].block([2]) + fields[1].block([2]))


def test_method_without_a_likelihood_raises_undefined() -> None:
    with pytest.raises(Undefined, match="states no likelihood"):
        Method().pair_fields(None, None)  # type: ignore[arg-type]
