"""Synthetic data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Generator, Infeasible, Method, Range, Roles, Strengths, Trials
from sdcmap.core.value import Spec
from sdcmap.data.microdata import Microdata, without_reasons
from sdcmap.data.schema import KINDS
from sdcmap.kernels.masking.own_values import unowned_codes, unowned_numbers
from sdcmap.kernels.statistics.trees import bin_edges, binned, drawn_from, grow
from sdcmap.methods import shuffle

NO_PREDICTOR = ("identifier", "drop", "weight", "household")


def absence_scores(data: Microdata, name: str) -> Array:
    """The normal scores of being missing. A view."""
    return shuffle.normal_scores(data.missing(name))


@dataclass(frozen=True)
class Synthesize(Method):
    """Replace the values of some variables by draws from a model of them given the others; of all: synthetic data.

    Parameters
    ----------
    on : variables to replace, of any kind, in the order in which they are drawn. All others are kept as they are; where
        it names every variable but identifiers, weight and household, the file is fully synthetic, and no row of it
        came from a row of the original. The weight may be named too: else each row keeps its own, which says nothing of
        the new values.
    given : variables, kept, that the model looks at; by default all that are kept, but for identifiers, weight and
        household.
    model : "trees": one variable after the other, each drawn from the leaf of a tree on `given` and the variables drawn
        before; "copula": all at once, a normal regression between the normal scores of all variables, and back by the
        empirical distribution of each. A nominal variable has no order, so that "trees" suit it better.
    leaf : with trees: fewest records of a leaf, at least 1. A value is drawn from as many originals or more.

    Formula: y_j ~ F_j(. | given, y_1, ..., y_(j-1)), F_j by a tree; or y_j = F_j^-1(Phi(z_j)) with z ~ N(S b, C).
    Own values: a value that few records have would tell that its owner was in the file. A drawn number that fewer than ten
    have becomes any number between the eighth value below and the eighth above, on the column's grid; a category that fewer
    than three have, the nearest that three have, or any of these where there is no order.
    Missing values are drawn too: a missing category is one more category, whether a number is missing is drawn first, and
    for the copula present or missing is a variable of its own. Weights do not weigh: each row counts once; drawn weights
    are scaled to the total of the original. Households are not used: each row keeps its own.
    Reference: Reiter (2005); Nowok, Raab, Dibben (2016); Breiman et al. (1984); Sklar (1959).

    Examples
    --------
    >>> Synthesize(on=["wage", "age"], model="copula").text
    "Synthesize(on=['wage', 'age'], model='copula')"
    """

    label: ClassVar[str] = "Synthetic values (CART)"
    description: ClassVar[str] = (
        "Values are replaced by draws from a statistical model; if all variables are replaced, no row "
        "corresponds to a person."
    )

    kinds: ClassVar[tuple[str, ...]] = KINDS
    missing: ClassVar[str] = "category"
    weights: ClassVar[str] = "not used; each row keeps its own weight, or it is drawn and scaled to the total"
    masks_weight: ClassVar[bool] = True
    households: ClassVar[str] = "not used; each row keeps its own household"
    mixes_records: ClassVar[bool] = True
    kept: ClassVar[str] = (
        "nothing exactly, but for the variables that are not replaced; no number that fewer than ten records had, as it was"
    )
    distorted: ClassVar[str] = "all relations that the model does not see"
    searched: ClassVar[Strengths | None] = Strengths("leaf", 5, 200)

    revision: ClassVar[int] = 4  # 2: no value of one or two, weights drawn; 3: nor a number that few had; 4: grid

    on: tuple[str, ...]
    given: tuple[str, ...] = ()
    model: Literal["trees", "copula"] = "trees"
    leaf: Annotated[int, Range(1)] = 5

    @property
    def action(self) -> str:
        return (
            f"synthesized by trees, {self.leaf} records per leaf" if self.model == "trees" else "synthesized by copula"
        )

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        trials: dict[str, Method | str] = {}
        if roles.numbers and len(roles.numbers) < len(roles.descriptive_columns):
            trials[f"{cls.__name__} numbers"] = cls(roles.numbers)
        if len(roles.descriptive_columns) > 1:
            trials[f"{cls.__name__} all"] = cls(roles.descriptive_columns)
            trials[f"{cls.__name__} all copula"] = cls(roles.descriptive_columns, model="copula")
        return trials

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        yield from shuffle.name_problems(self.on, self.given, "replaced")

    def _columns(self) -> tuple[str, ...]:
        return (*super()._columns(), *self.given)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().incompatibilities(data)
        for name in self.given:
            if name in data.schema and data.schema[name].role in NO_PREDICTOR:
                yield f"Synthesize.given must not name {name!r}: it is the file's {data.schema[name].role}."
        if self.model == "copula":
            yield from shuffle.predictor_problems(data, self, self._predictors(data))

    def _other_names(self, data: Microdata) -> tuple[str, ...]:
        """The variables kept, but for those that are only there to tell records apart."""
        replaced = set(self.on)
        return tuple(v.name for v in data.schema.variables if v.role not in NO_PREDICTOR and v.name not in replaced)

    def _predictors(self, data: Microdata) -> tuple[str, ...]:
        return self.given or tuple(name for name in self._other_names(data) if name not in self.within)

    def identity(self) -> Spec:
        """Give the copula revision 5 (eigenvectors have the same sign on every machine); trees are unchanged."""
        return super().identity() | ({"revision": 5} if self.model == "copula" else {})

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        if len(data) < 2:
            raise Infeasible("a model needs at least 2 records.")
        drawn = self._by_trees(data, rng) if self.model == "trees" else self._by_copula(data, rng)
        values = {name: self._as_released(data, name, new, rng) for name, new in drawn.items()}
        synthetic = without_reasons(data, self.on).change(None, values)
        return replace(synthetic, paired=self.keeps_pairs(data) and data.paired)

    def keeps_pairs(self, data: Microdata) -> bool:
        return bool(self._other_names(data))

    def _as_released(self, data: Microdata, name: str, new: Array, rng: Generator) -> Array:
        """Drawn values, none of them one or two persons' own; weights scaled to their total."""
        new, column = _replace_rare_values(data, name, new, rng), data.column(name)
        if name == data.weight and np.nansum(new):
            new = new * (np.nansum(column.values) / np.nansum(new))
        return new.astype(column.values.dtype)

    def _by_copula(self, data: Microdata, rng: Generator) -> dict[str, Array]:
        """Present or missing is a variable of its own, beside the value."""
        drawn = {name: data.column(name).values.copy() for name in self.on}
        known = [name for name in self.on if not data.missing(name).all()]
        partly = [name for name in known if data.missing(name).any()]
        scores = [data.view(shuffle.present_scores, name) for name in known]
        scores += [data.view(absence_scores, name) for name in partly]
        if not scores:
            return drawn
        given = data.view(shuffle.predictor_columns, self._predictors(data))
        z = shuffle.draw_given(np.column_stack(scores), given, rng)
        for j, name in enumerate(known):
            values, missing = data.column(name).values, data.missing(name)
            drawn[name] = shuffle.map_by_quantile(values[~missing], z[:, j])
            if name in partly:
                gone = np.flatnonzero(shuffle.map_by_quantile(missing, z[:, len(known) + partly.index(name)]))
                drawn[name][gone] = rng.choice(values[missing], len(gone))
        return drawn

    def _by_trees(self, data: Microdata, rng: Generator) -> dict[str, Array]:
        drawn: dict[str, Array] = {}
        seen, asked = _Bins(), _Bins()  # the predictors as they were, and as they are in the new file
        for name in (*self._predictors(data), *self.on):
            values = data.column(name).values
            if name in self.on:
                drawn[name] = _draw_by_tree(data, name, seen, asked, self.leaf, rng)
            seen.add(data, name, values)
            asked.add(data, name, drawn.get(name, values))
        return drawn


def _replace_rare_values(data: Microdata, name: str, drawn: Array, rng: Generator) -> Array:
    """Drawn values of a column, none of them one or two persons' own."""
    column = data.column(name)
    if column.levels is None:
        return unowned_numbers(drawn, column.values, rng)
    known, ordered = len(column.levels) - column.levels.null_count(), data.schema[name].kind == "ordinal"
    codes = unowned_codes(drawn.astype(np.int64), column.values, known, ordered, rng)
    return codes.astype(column.values.dtype)


class _Bins:
    """Predictors as bins, side by side."""

    def __init__(self) -> None:
        self.columns: list[Array] = []
        self.sizes: list[int] = []
        self.ordered: list[bool] = []

    def add(self, data: Microdata, name: str, values: Array) -> None:
        edges = data.view(_edges, name) if data.column(name).levels is None else None
        self.ordered.append(data.schema[name].kind != "nominal")
        self.columns.append(values.astype(np.int64) if edges is None else binned(values, edges))
        self.sizes.append(data.level_count(name) if edges is None else len(edges) + 2)

    def matrix(self, count: int) -> Array:
        return np.column_stack(self.columns) if self.columns else np.empty((count, 0), dtype=np.int64)


def _edges(data: Microdata, name: str) -> Array:
    return bin_edges(data.numbers(name))


def _draw_by_tree(data: Microdata, name: str, seen: _Bins, asked: _Bins, leaf: int, rng: Generator) -> Array:
    """New values of one variable: draws from the leaves of its tree; of a number, first which are missing."""
    column, n = data.column(name), len(data)
    sizes, ordered = np.array(seen.sizes, dtype=np.int64), np.array(seen.ordered, dtype=np.bool_)
    known, new = seen.matrix(n), asked.matrix(n)
    if column.levels is not None:
        codes = column.values.astype(np.int64)
        return drawn_from(grow(known, sizes, ordered, codes, len(column.levels), leaf), new, codes, rng)
    gone = np.isnan(column.values)
    if gone.all():
        return column.values.copy()
    drawn, rows = np.full(n, np.nan), np.arange(n)
    if gone.any():
        which = gone.astype(np.int64)
        rows = np.flatnonzero(drawn_from(grow(known, sizes, ordered, which, 2, leaf), new, which, rng) == 0)
    y = column.values[~gone]
    drawn[rows] = drawn_from(grow(known[~gone], sizes, ordered, y, 0, leaf), new[rows], y, rng)
    return drawn
