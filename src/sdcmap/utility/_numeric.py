"""Bases of the measures of numbers: common fields, the numbers and weights of a file, and summaries over variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Estimate, Measure, Microdata, Undefined
from sdcmap.data.amounts import amounts, has_numbers


@dataclass(frozen=True)
class WeightedMeasure(Measure):
    """A utility loss with the fields `on` and `weighted`.

    Parameters
    ----------
    on : variables of any kind; by default the keys and the numeric variables.
    weighted : count each record with its survey weight; needs a weight.
    """

    axis: ClassVar[Literal["risk", "utility"]] = "utility"
    weights: ClassVar[str] = "used when `weighted`, else every record counts once"
    min_variables: ClassVar[int] = 1  # that it needs

    on: tuple[str, ...] = ()
    weighted: bool = False

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or keys_and_numbers(data)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().incompatibilities(data)
        if self.weighted and data.weight is None:
            yield f"{type(self).__name__}.weighted needs a file with a weight."
        if 0 < len(set(self.variables(data))) < self.min_variables:
            yield f"{type(self).__name__} needs at least {self.min_variables} variables."

    def weights_of(self, data: Microdata) -> Array:
        """Return the weights to count with: those of the file if `weighted`, else ones."""
        return check_weights(data) if self.weighted else np.ones(len(data))

    def with_weight(self, data: Microdata, *names: str) -> tuple[str, ...]:
        """Return the columns that a view of these variables depends on: these, and the weight if it is used."""
        return (*names, data.weight) if self.weighted and data.weight is not None else names


@dataclass(frozen=True)
class NumericMeasure(WeightedMeasure):
    """A utility loss of numeric variables, and of ordinal ones whose categories are numbers."""

    paired: ClassVar[bool] = False
    kinds: ClassVar[tuple[str, ...]] = ("numeric", "ordinal")
    missing: ClassVar[str] = "left out, in each file separately"

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or data.numeric

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().incompatibilities(data)
        for name in self.variables(data):
            if name in data.schema and data.schema[name].kind == "ordinal" and not has_numbers(data.column(name)):
                yield f"{type(self).__name__} measures numbers; the categories of {name!r} are not numbers."


def check_weights(data: Microdata) -> Array:
    """Return the weights of the file; raise `Undefined` if they are negative, missing or all 0."""
    weights = data.weights
    bad = int((~(weights >= 0)).sum())
    if bad or not weights.sum() > 0:
        problem = f"is missing or negative in {bad:,} records" if bad else "is 0 in every record"
        raise Undefined(f"the weight {data.weight!r} {problem}.")
    return weights


def keys_and_numbers(data: Microdata) -> tuple[str, ...]:
    """Return the keys and the numeric variables of a file."""
    return tuple(dict.fromkeys((*data.keys, *data.numeric)))


def numbers_of(data: Microdata, name: str) -> Array:
    """Return the numbers of one variable, NaN if missing; raise `Undefined` if they were recoded into categories."""
    if not has_numbers(data.column(name)):
        raise Undefined(f"{name!r} was recoded into categories, so its numbers cannot be compared: see CategoryLoss.")
    return amounts(data, name)


def matrix_of(data: Microdata, names: tuple[str, ...]) -> Array:
    """Return the numbers of several variables, n x m."""
    return np.column_stack([numbers_of(data, name) for name in names])


def summarize_variables(by_name: Mapping[str, float], summary: str) -> Estimate:
    """Return the mean or the worst over the variables; `parts` contains both, and the loss of each variable."""
    losses = list(by_name.values())
    mean, worst = float(np.mean(losses)), max(losses)
    parts = {f"on {name}": loss for name, loss in by_name.items()} | {"mean": mean, "worst": worst}
    return Estimate(value=worst if summary == "worst" else mean, parts=parts if len(losses) > 1 else {})
