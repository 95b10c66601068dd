"""Check the parameters of the theory's functions."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdcmap.core import Floats, PlanError, Range

Numbers: TypeAlias = float | Floats  # one number, or one per record
Flags: TypeAlias = bool | np.bool_ | NDArray[np.bool_]

POSITIVE = ("variance", "max_risk", "max_noise_variance", "prior_variance", "prior_df", "density")
RANGES = {
    **dict.fromkeys(POSITIVE, Range(0, None, "(]")), **dict.fromkeys(("noise_variance", "doubles"), Range(0, None)),
    **dict.fromkeys(("sampling_fraction", "link_probability"), Range(0, 1)), "p": Range(0, 1, "()"),
    **dict.fromkeys(("rank", "r", "entities"), Range(1, None)), "n": Range(2, None),
}  # fmt: skip
WHOLE = {"n", "rank", "r", "entities"}
MAY_BE_INFINITE = "prior_df"


def require(**values: object) -> None:
    """Raise PlanError with every parameter that is out of its range; names without a range must be finite numbers."""
    problems = [problem for name, value in values.items() for problem in _problems(name, value)]
    if problems := problems or list(_between(values)):
        raise PlanError(problems)


def _problems(name: str, value: object) -> Iterator[str]:
    allowed = RANGES.get(name, Range())
    if name in WHOLE:
        if isinstance(value, bool) or not isinstance(value, numbers.Integral) or float(value) not in allowed:
            yield f"{name} must be a whole number in {allowed}. Got {value!r}."
        return
    try:
        array = np.asarray(value, dtype=float).ravel()
    except (TypeError, ValueError):
        yield f"{name} must be a number in {allowed}. Got a {type(value).__name__}."
        return
    for number in array:
        if number not in allowed or not (math.isfinite(number) or (name == MAY_BE_INFINITE and number == math.inf)):
            yield f"{name} must be a finite number in {allowed}. Got {number:g}."
            return


def _between(values: dict[str, Any]) -> Iterator[str]:
    """Yield the problems of combinations of parameters that are each in their own range."""
    if (n := values.get("n")) is None:
        return
    if "p" in values and bool(np.any(np.asarray(values["p"], dtype=float) * n < 1 - 1e-9)):
        yield f"p must be in [1/n, 1), with n*p at least 1: the sample has no such percentile. Got n={n}, p={values['p']}."
    for name in ("rank", "r"):
        if name in values and values[name] > n:
            yield f"{name} must be a whole number in [1, n]. Got {values[name]} with n={n}."


def noise_variances(noise_variance: ArrayLike) -> Floats:
    """Return the noise variances as an array of floats, each finite and at least 0."""
    require(noise_variance=noise_variance)
    return np.asarray(noise_variance, dtype=float)


def records(x: ArrayLike) -> Floats:
    """Return the values of a file: one dimension, at least 2, none missing. An error does not show them."""
    values = np.asarray(x, dtype=float)
    if values.ndim != 1 or len(values) < 2 or not np.isfinite(values).all():
        raise PlanError("x must be a list of at least 2 finite numbers, one per record.")
    return values


def reciprocal(mse: Floats) -> Floats:
    """Return R = 1/MSE, infinite where the MSE is 0; a number for a number, an array for an array."""
    with np.errstate(divide="ignore", over="ignore"):
        risk: Floats = 1 / np.asarray(mse, dtype=float)[()]
    return risk
