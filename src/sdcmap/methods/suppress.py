"""Local suppression."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, ClassVar, Literal

import numpy as np
import polars as pl

from sdcmap.core import Array, Generator, Infeasible, Method, Range, Roles, Strengths, Trials, format_percent
from sdcmap.core.method import Origin
from sdcmap.data.cells import DistinctCells, distinct_cells
from sdcmap.data.microdata import Column, Microdata, smallest_unsigned
from sdcmap.data.schema import KINDS
from sdcmap.methods import _suppression

MAX_KEYS = 60  # each key is a bit of a 64-bit integer
MAX_KEYS_TRIED = 8  # keys in a trial; with more, nearly every value would be blanked
MAX_ROUNDS = 20  # if missing is a category, blanking for one set of variables may violate the rule for another


def without_values(column: Column, rows: Array) -> tuple[Array, pl.Series | None]:
    """Return the column with the values of `rows` set to missing, and its new categories if it had no missing value."""
    if column.levels is None:
        values = column.values.copy()
        values[rows] = np.nan
        return values, None
    null = column.levels.is_null().arg_true()
    levels = column.levels if len(null) else column.levels.clone().extend_constant(None, 1)
    values = column.values.astype(smallest_unsigned(len(levels)))
    values[rows] = null[0] if len(null) else len(levels) - 1
    return values, None if len(null) else levels


@dataclass(frozen=True)
class Suppress(Method):
    """Blank single values of the keys until every record shares its combination of keys with enough others.

    Parameters
    ----------
    on : the variables that an attacker may know, of any kind; by default the keys of the file.
    k : the minimum number of records with each combination, at least 2.
    risk : instead of k: the maximum individual risk of a record, in (0, 1); uses the weights.
    importance : variables from the most to the least important; less important ones are blanked first. Variables not
        named are less important than these; among them, those with most categories are blanked first.
    blank : the variables that may be blanked; by default all of `on`.
    up_to : require the rule only for each set of this many variables (and smaller sets), not for all together.
    missing_is : "any value": a missing value matches every value; "a category": it matches only missing values.
    alpha : with "any value": how much a record counts that is missing where the compared record has a value, in [0, 1].
    linked : lists of a key and variables that are blanked together with it, such as [["region", "district"]].
    unmet : what to do if the rule cannot be satisfied: "refuse" (the candidate is infeasible), or "leave": blank
        everything allowed in the records in question, and release them.

    Formula: two records match if they agree on every variable that is present in both. With f matching records and F the
    sum of their weights, the rule is f >= k, or E(1/F | f) <= risk. Sets of variables are tried from small to large,
    less important ones first. A set is blanked in a record if that satisfies the rule and earlier blanks do not.
    The result is recounted independently; if the rule does not hold, the candidate is infeasible.
    Missing values stay missing and count as `missing_is` says. Weights are used only with `risk` and must be positive.
    Households are not used: persons are masked one by one.
    Reference: Templ, Kowarik, Meindl (2015), sdcMicro's localSuppression; Benedetti and Franconi (1998) for the risk.

    Examples
    --------
    >>> Suppress(k=3, importance=["sex"]).text
    "Suppress(importance='sex')"
    """

    label: ClassVar[str] = "Local suppression"
    description: ClassVar[str] = (
        "Single values are removed until every record shares its combination of keys with enough others."
    )

    kinds: ClassVar[tuple[str, ...]] = KINDS
    missing: ClassVar[str] = "added"
    weights: ClassVar[str] = "used only with `risk`; otherwise every record counts once"
    random: ClassVar[bool] = False
    value_origin: ClassVar[Origin] = "derived"
    kept: ClassVar[str] = "every value that is not blanked"
    distorted: ClassVar[str] = "counts of categories: values are not blanked at random, but where combinations are rare"

    on: tuple[str, ...] = ()
    k: Annotated[int, Range(2)] = 3
    risk: Annotated[float | None, Range(0, 1, "()")] = None
    importance: tuple[str, ...] = ()
    blank: tuple[str, ...] = ()
    up_to: Annotated[int | None, Range(1)] = None
    missing_is: Literal["any value", "a category"] = "any value"
    alpha: Annotated[float, Range(0, 1)] = 1.0
    linked: tuple[tuple[str, ...], ...] = ()
    unmet: Literal["refuse", "leave"] = "refuse"

    @property
    def action(self) -> str:
        return f"suppressed to {f'k = {self.k}' if self.risk is None else f'a risk of {format_percent(self.risk)}'}"

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        return {f"{cls.__name__} {k}": cls(roles.keys[:MAX_KEYS_TRIED], k) for k in ((2, 5) if roles.keys else ())}

    @classmethod
    def at_strength(cls, strength: float, names: tuple[str, ...], roles: Roles) -> Method | None:
        """Return a variant with k from 2 to 20 that blanks what it can, or None if there are too many keys or numbers."""
        if len(names) > MAX_KEYS_TRIED or any(name in roles.numbers for name in names):
            return None
        return cls(names, Strengths("k", 2, 20).at(strength)["k"], unmet="leave")

    def problems(self) -> Iterator[str]:
        if self.missing_is == "a category" and self.risk is not None:
            yield ".risk can only be used with missing_is = 'any value'."
        if any(len(names) < 2 for names in self.linked):
            yield ".linked must contain lists of a key and at least one variable to blank with it."
        if len(self.on) > MAX_KEYS:
            yield f".on must name at most {MAX_KEYS} variables."
        for parameter in ("importance", "blank"):
            if others := [n for n in getattr(self, parameter) if self.on and n not in self.on]:
                yield f".{parameter} must only name variables of .on, which does not contain {', '.join(others)}."

    @property
    def masked_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.on, *(name for names in self.linked for name in names))))

    def masks(self, data: Microdata) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*(self.on or data.keys), *self.masked_names)))

    def _columns(self) -> tuple[str, ...]:
        return (*super()._columns(), *self.importance, *self.blank)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().incompatibilities(data)
        if not (keys := self.on or data.keys):
            yield "Suppress has no variables to protect: give the file keys, or name variables in `on`."
        for names in self.linked:
            if names[0] not in keys:
                yield f"Suppress.linked must begin with a key; {names[0]!r} is not one."
        if self.risk is not None and data.weight is not None and (bad := int((~(data.weights > 0)).sum())):
            yield f"Suppress.risk needs positive weights; {data.weight!r} is missing, zero or negative in {bad} records."

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        names = self.on or data.keys
        cells = data.view(distinct_cells, names)
        weights = data.weights if self.risk is not None else np.ones(len(data))
        sums = np.column_stack([cells.count, np.bincount(cells.code, weights)])
        mask = self._masks(cells, sums, self._cheapest_first(data, names))
        self._verify(cells, sums, mask, len(data))
        return self._blank(data, names, mask[cells.code])

    def _cheapest_first(self, data: Microdata, names: tuple[str, ...]) -> list[int]:
        rank = {name: position for position, name in enumerate(self.importance)}
        allowed = [j for j, name in enumerate(names) if not self.blank or name in self.blank]
        return sorted(allowed, key=lambda j: (-rank.get(names[j], len(rank)), -data.level_count(names[j])))

    @property
    def _rule(self) -> _suppression.Rule:
        return _suppression.Rule(self.k, -1.0 if self.risk is None else self.risk, self.alpha)

    def _sets(self, width: int) -> list[tuple[int, ...]]:
        """Return the sets of variables for which the rule must hold; it then holds for their subsets."""
        return list(combinations(range(width), min(self.up_to or width, width)))

    def _masks(self, cells: DistinctCells, sums: Array, cheapest_first: Sequence[int]) -> Array:
        """Return the variables to blank in each combination, as bits."""
        mask = np.zeros(len(cells.codes), dtype=np.int64)
        # With wildcards of full weight, blanking never removes a match, so one round is enough.
        is_monotone = self.missing_is == "any value" and self.alpha == 1
        for _ in range(1 if is_monotone else MAX_ROUNDS):
            before = mask.copy()
            for chosen in self._sets(cells.codes.shape[1]):
                cheap = [chosen.index(j) for j in cheapest_first if j in chosen]
                mask |= self._masks_of(_suppression.blank_cells(cells.codes, mask), sums, chosen, cheap)
            if (mask == before).all():
                break
        return mask

    def _masks_of(self, codes: Array, sums: Array, chosen: tuple[int, ...], cheap: Sequence[int]) -> Array:
        """Return the bits to blank so that the rule holds for the table of the `chosen` variables."""
        cells, totals, index = _suppression.merge_equal_cells(codes[:, chosen], sums)
        if self.missing_is == "a category":
            blanked, safe = _suppression.suppress_to_cells(cells, totals[:, 0].astype(np.int64), cheap, self.k)
            blanked[~safe] |= sum(1 << j for j in cheap) if self.unmet == "leave" else 0
        else:
            blanked, _ = _suppression.suppress(cells, totals, cheap, self._rule)
        return np.asarray(sum((blanked >> own & 1) << j for own, j in enumerate(chosen)))[index]

    def _verify(self, cells: DistinctCells, sums: Array, mask: Array, records: int) -> None:
        """Recount the result, and raise Infeasible if the rule does not hold."""
        if self.unmet == "leave":
            return
        released = _suppression.blank_cells(cells.codes, mask)
        exposed = 0
        for chosen in self._sets(cells.codes.shape[1]):
            table = released[:, chosen]
            if self.missing_is == "a category":
                index = _suppression.index_cells(table)[1]
                safe = np.bincount(index, sums[:, 0])[index] >= self.k
            else:
                safe = self._rule.find_safe(_suppression.matching_sums(table, sums, self._rule))
            exposed = max(exposed, int(sums[~safe, 0].sum()))
        if exposed:
            rule = f"k = {self.k}" if self.risk is None else f"a risk of {self.risk:g}"
            raise Infeasible(f"suppression cannot bring {exposed} of {records} records to {rule}.")

    def _blank(self, data: Microdata, names: tuple[str, ...], mask: Array) -> Microdata:
        bits = {name: 1 << j for j, name in enumerate(names)}
        for key, *others in self.linked:
            for name in others:
                bits[name] = bits.get(name, 0) | bits[key]
        rows = {name: np.flatnonzero(mask & own) for name, own in bits.items()}
        columns = {name: without_values(data.column(name), blank) for name, blank in rows.items() if len(blank)}
        levels = {name: new for name, (_, new) in columns.items() if new is not None}
        return data.change(None, {name: values for name, (values, _) in columns.items()}, levels)
