"""Statements that are true of exactly one person, found in a release."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, Range, Undefined
from sdcmap.data.cells import joint_codes, recode_to_released_categories
from sdcmap.data.label_matching import check_one_depth
from sdcmap.kernels.jit import inner_jit, jit
from sdcmap.kernels.tables.attribution import share_error
from sdcmap.kernels.tables.coding import compress
from sdcmap.risk._control import Controlled, Split, compare_rates

# Predicates: how many records satisfy each of many conjunctions of simple conditions.


EQUAL, UNEQUAL, AT_LEAST, AT_MOST, ABOVE, BELOW, MISSING = range(7)


@jit
def count_matches(x: Array, column: Array, test: Array, at: Array, most: int) -> Array:
    """How many rows of x satisfy each predicate, counted up to `most`.

    A predicate is a row of conditions: x[:, column] compared as `test` says with `at`; a missing number (NaN) satisfies
    MISSING and UNEQUAL alone.
    """
    counts = np.zeros(len(column), dtype=np.int64)
    for q in range(len(column)):
        for i in range(len(x)):
            if _satisfies(x[i], column[q], test[q], at[q]):
                counts[q] += 1
                if counts[q] == most:
                    break
    return counts


@inner_jit
def _satisfies(row: Array, column: Array, test: Array, at: Array) -> bool:
    for j in range(len(column)):
        value, kind = row[column[j]], test[j]
        if kind == MISSING:
            holds = np.isnan(value)
        elif kind == EQUAL:
            holds = value == at[j]
        elif kind == UNEQUAL:
            holds = value != at[j]
        elif kind == AT_LEAST:
            holds = value >= at[j]
        elif kind == AT_MOST:
            holds = value <= at[j]
        elif kind == ABOVE:
            holds = value > at[j]
        else:
            holds = value < at[j]
        if not holds:
            return False
    return True


TRIES, ROUNDS = 20, 30  # statements drawn at a time for each that is wanted, and how often
ORDERED = np.array([EQUAL, UNEQUAL, AT_LEAST, AT_MOST, ABOVE, BELOW])


class Predicates(NamedTuple):
    """Conjunctions of conditions, a row each: columns, tests and values."""

    column: Array
    test: Array
    at: Array

    def take(self, rows: Array) -> Predicates:
        return Predicates(*(part[rows] for part in self))

    def with_others(self, others: Predicates) -> Predicates:
        """These and others, each once."""
        both = Predicates(*(np.concatenate(pair) for pair in zip(self, others, strict=True)))
        if len(both.at) == 0:
            return both
        values = np.unique(both.at, return_inverse=True)[1].reshape(both.at.shape)
        code, _ = compress([*both.column.T, *both.test.T, *values.T])
        return both.take(np.sort(np.unique(code, return_index=True)[1]))

    def alone(self, x: Array) -> Array:
        """Which of them exactly one record satisfies."""
        return np.asarray(count_matches(x, *self, 2) == 1)


# Which statements single somebody out inside and outside, of random ones the share inside, and how many people there are.
Outcome: TypeAlias = tuple[Array, Array, float, int]


@dataclass(frozen=True)
class SinglingOut(Controlled):
    """How much oftener statements that single out a released record single out a person who is in it than one who is not.

    The snooper looks for statements that are true of exactly one released record, such as "born in 1931 and a widower
    with at least 9 children", and says: there is exactly one such person among those of the original. He succeeds when
    there is. How often the same statements hold of exactly one of as many people who are not in the release is science;
    counted is what being in it adds. It is the first of the three risks of the European working party, beside
    linkability and inference.

    Parameters
    ----------
    mode : "multivariate": conjunctions of several conditions taken from a released record; "univariate": a value that one
        released record has, the smallest and the largest number, a single missing value.
    columns : of "multivariate": how many conditions a statement has, at least 1; fewer where there are fewer variables.
    queries : how many statements are looked for, at least 1.
    on : the variables he may use, of any kind; by default every column that somebody could know.
    held_out : the share of the people, in (0, 1), who are the people outside where no control file names others.
    targets : the most people in each group, at least 1.

    Formula: share of statements that exactly one person inside satisfies, less the same outside; both groups have
        equally many people, drawn at random from the larger. A condition is x = v of a category, x >= v of a released
        number above the released median and x <= v of others. Univariate statements are drawn column by column, so that one
        column of many values does not stand for all.
    `parts`: the shares "inside" and "outside", "naive" (of random statements, inside), Anonymeter's "residual" (inside
    - outside) / (1 - outside), and "queries", how many statements were found; 0 where there is none to be found.
    Missing is a category of its own. A recoded variable is compared in the categories of the release, where each value
    became one of them; undefined where its labels are of several depths ("37" beside "(35, 40]"): of such a record nobody
    can say whether a statement is true. Weights are not used. Households: persons are counted one by one; a making leaves
    whole households out.
    Reference: Giomi, Boenisch, Wehmeyer, Tasnadi (2023), section 4.2; Cohen and Nissim (2020); Article 29 Working Party
    (2014).

    Examples
    --------
    >>> SinglingOut("univariate", queries=200).text
    "SinglingOut(mode='univariate', queries=200)"
    """

    label: ClassVar[str] = "Singling out, gain over non-members"
    description: ClassVar[str] = (
        "How much more often a description unique in the release singles out a real person of the file than "
        "one outside it."
    )

    columns_by_default: ClassVar = "knowable"
    revision: ClassVar[int] = 3  # 2: one making leaves few people out; 3: undefined for labels of several depths

    mode: Literal["multivariate", "univariate"] = "multivariate"
    columns: Annotated[int, Range(1)] = 3
    queries: Annotated[int, Range(1)] = 500
    on: tuple[str, ...] = ()
    held_out: Annotated[float, Range(0, 1, "()")] = field(default=0.5, kw_only=True)
    targets: Annotated[int, Range(1)] = field(default=100_000, kw_only=True)

    def as_seen(self, original: Microdata, masked: Microdata) -> tuple[Microdata, Microdata]:
        return recode_to_released_categories(original, masked, self.variables(original)), masked

    def attack(self, drawn: Split, names: tuple[str, ...], ranges: dict[str, float], rng: Generator) -> Outcome:
        check_one_depth(drawn.insiders, drawn.archive, names)
        size = min(len(drawn.insiders), len(drawn.outsiders))
        released, insiders, outsiders = _numbers([drawn.archive, drawn.insiders, drawn.outsiders], names)
        insiders, outsiders = insiders[:size], outsiders[:size]
        ordered = np.array([drawn.archive.column(name).levels is None for name in names])
        found = self._singling(released, ordered, rng)
        guesses = _random(released, ordered, self._width(released), self.queries, rng)
        return found.alone(insiders), found.alone(outsiders), float(guesses.alone(insiders).mean()), size

    def _singling(self, released: Array, ordered: Array, rng: Generator) -> Predicates:
        """Different statements that single out a released record."""
        if self.mode == "univariate":
            return _rare(released, ordered, self.queries, rng)
        width = self._width(released)
        none = np.empty((0, width), dtype=np.int64)
        found = Predicates(none, none, none.astype(np.float64))
        for _ in range(ROUNDS):
            drawn, before = _from_records(released, ordered, width, self.queries * TRIES, rng), len(found.at)
            found = found.with_others(drawn.take(np.flatnonzero(drawn.alone(released))))
            if len(found.at) == before or len(found.at) >= self.queries:  # there are no others, or enough
                break
        return found.take(np.arange(min(len(found.at), self.queries)))

    def _width(self, released: Array) -> int:
        return 1 if self.mode == "univariate" else min(self.columns, released.shape[1])

    def estimate(self, outcomes: Sequence[Outcome]) -> Estimate:
        insiders, outsiders, guesses, people = zip(*outcomes, strict=True)
        inside, outside, naive = np.concatenate(insiders), np.concatenate(outsiders), float(np.mean(guesses))
        if len(inside) == 0:
            return Estimate(value=0.0, se=share_error(0.0, self.queries), parts={"naive": naive, "queries": 0.0})
        parts = compare_rates(inside, outside, naive)
        a, b, trials = parts["inside"], parts["outside"], min(len(inside), sum(people))  # one person is one trial
        se = math.hypot(share_error(a, trials), share_error(b, trials))
        return Estimate(value=a - b, se=se, parts=parts | {"queries": float(len(inside))})


def _numbers(files: Sequence[Microdata], names: tuple[str, ...]) -> list[Array]:
    """The variables of each file as numbers: amounts as they are, categories as common codes."""
    columns: list[list[Array]] = [[] for _ in files]
    for name in names:
        kinds = {file.column(name).levels is None for file in files}
        if len(kinds) > 1:
            raise Undefined(f"{name!r} was recoded, and nobody can say which released category each value went into.")
        parts = [file.numbers(name) for file in files] if kinds == {True} else joint_codes(files, name)[0]
        for column, part in zip(columns, parts, strict=True):
            column.append(np.asarray(part, dtype=np.float64))
    return [np.column_stack(column) for column in columns]


def _from_records(released: Array, ordered: Array, width: int, count: int, rng: Generator) -> Predicates:
    """Conditions that randomly drawn records satisfy, on randomly drawn columns."""
    middle = np.array([np.median(x[~np.isnan(x)]) if (~np.isnan(x)).any() else 0.0 for x in released.T])
    row = rng.integers(len(released), size=count)
    column = np.sort(rng.permuted(np.tile(np.arange(released.shape[1]), (count, 1)), axis=1)[:, :width], axis=1)
    at = released[row[:, np.newaxis], column]
    high = np.where(at > middle[column], AT_LEAST, AT_MOST)
    return Predicates(column, np.where(np.isnan(at), MISSING, np.where(ordered[column], high, EQUAL)), at)


def _rare(released: Array, ordered: Array, count: int, rng: Generator) -> Predicates:
    """Single conditions that one record satisfies, drawn column by column in turn."""
    by_column = []
    for j, x in enumerate(released.T):
        values, times = np.unique(x[~np.isnan(x)], return_counts=True)
        found = [(j, EQUAL, value) for value in values[times == 1]]
        if ordered[j] and len(values):
            found += [(j, test, values[end]) for test, end in ((AT_MOST, 0), (AT_LEAST, -1)) if times[end] == 1]
        if np.isnan(x).sum() == 1:
            found.append((j, MISSING, 0.0))
        by_column.append([found[place] for place in rng.permutation(len(found))])
    turns = [column[turn] for turn in range(max(map(len, by_column))) for column in by_column if turn < len(column)]
    table = np.array(turns[:count], dtype=np.float64).reshape(-1, 3, 1)
    return Predicates(table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), table[:, 2])


def _random(released: Array, ordered: Array, width: int, count: int, rng: Generator) -> Predicates:
    """Conditions with a random test and a random value that occurs."""
    column = rng.permuted(np.tile(np.arange(released.shape[1]), (count, 1)), axis=1)[:, :width]
    place, at = rng.random(column.shape), np.empty(column.shape)
    for j, x in enumerate(released.T):
        values, chosen = np.unique(x), column == j
        at[chosen] = values[(place[chosen] * len(values)).astype(np.int64)]
    test = ORDERED[(rng.random(column.shape) * np.where(ordered[column], len(ORDERED), 2)).astype(np.int64)]
    return Predicates(column, np.where(np.isnan(at), MISSING, test), at)
