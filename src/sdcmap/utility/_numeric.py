"""What measures of numbers share: fields, the numbers and weights of both files, and the summary over variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Estimate, Measure, Microdata, Undefined
from sdcmap.data.amounts import amounts, has_numbers


@dataclass(frozen=True)
class WeightedMeasure(Measure):
    """A loss of utility with the fields `on` and `weighted`, for sums of survey weights in place of counts.

    Parameters
    ----------
    on : variables of any kind; by default the keys and the numeric variables.
    weighted : count each record with its survey weight; needs a weight.
    """

    axis: ClassVar[Literal["risk", "utility"]] = "utility"
    weights: ClassVar[str] = "used when `weighted`, else every record counts once"
    fewest: ClassVar[int] = 1  # variables it needs

    on: tuple[str, ...] = ()
    weighted: bool = False

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or keys_and_numbers(data)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().incompatibilities(data)
        if self.weighted and data.weight is None:
            yield f"{type(self).__name__}.weighted needs a file with a weight."
        if 0 < len(set(self.variables(data))) < self.fewest:
            yield f"{type(self).__name__} needs at least {self.fewest} variables."

    def weights_of(self, data: Microdata) -> Array:
        """The weights the measure counts with: the file's when `weighted`, else ones."""
        return sound_weights(data) if self.weighted else np.ones(len(data))

    def with_weight(self, data: Microdata, *names: str) -> tuple[str, ...]:
        """What a view of these variables depends on: they, and the weight where it is used."""
        return (*names, data.weight) if self.weighted and data.weight is not None else names


@dataclass(frozen=True)
class NumericMeasure(WeightedMeasure):
    """The same of numeric variables, and of ordinal ones whose categories are numbers; by default all numeric ones."""

    paired: ClassVar[bool] = False
    kinds: ClassVar[tuple[str, ...]] = ("numeric", "ordinal")
    missing: ClassVar[str] = "left out, in each file on its own"

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or data.numeric

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().incompatibilities(data)
        for name in self.variables(data):
            if name in data.schema and data.schema[name].kind == "ordinal" and not has_numbers(data.column(name)):
                yield f"{type(self).__name__} measures numbers; the categories of {name!r} are not."


def sound_weights(data: Microdata) -> Array:
    """The file's weights; Undefined where they cannot be used."""
    weights = data.weights
    bad = int((~(weights >= 0)).sum())
    if bad or not weights.sum() > 0:
        words = f"is missing or negative in {bad} records" if bad else "is 0 in every record"
        raise Undefined(f"the weight {data.weight!r} {words}.")
    return weights


def keys_and_numbers(data: Microdata) -> tuple[str, ...]:
    """The keys and the numeric variables of a file."""
    return tuple(dict.fromkeys((*data.keys, *data.numeric)))


def numbers_of(data: Microdata, name: str) -> Array:
    """The numbers of one variable, NaN where missing; Undefined where a released file has categories in their place."""
    if not has_numbers(data.column(name)):
        raise Undefined(f"{name!r} was recoded into categories, so its numbers cannot be compared: see CategoryLoss.")
    return amounts(data, name)


def matrix_of(data: Microdata, names: tuple[str, ...]) -> Array:
    """The numbers of several variables, n x m."""
    return np.column_stack([numbers_of(data, name) for name in names])


def over_variables(by_name: Mapping[str, float], summary: str) -> Estimate:
    """The mean or the worst over the variables; both, and each variable's own, in `parts`."""
    losses = list(by_name.values())
    mean, worst = float(np.mean(losses)), max(losses)
    parts = {f"on {name}": loss for name, loss in by_name.items()} | {"mean": mean, "worst": worst}
    return Estimate(value=worst if summary == "worst" else mean, parts=parts if len(losses) > 1 else {})
