"""Statements that are true for exactly one person, found in a release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, Range, Undefined
from sdcmap.data.cells import joint_codes, recode_to_released_categories
from sdcmap.data.label_matching import check_one_depth
from sdcmap.kernels.jit import inner_jit, jit
from sdcmap.kernels.statistics.unit_errors import mean_influences, unit_error
from sdcmap.kernels.tables.attribution import share_standard_error
from sdcmap.kernels.tables.coding import compress
from sdcmap.risk._control import Controlled, Split, compare_rates

# Predicates are conjunctions of simple conditions; the kernel finds the record that alone satisfies each.


EQUAL, UNEQUAL, AT_LEAST, AT_MOST, ABOVE, BELOW, MISSING = range(7)


@jit
def find_single_matches(x: Array, column: Array, test: Array, at: Array) -> Array:
    """Return the row of x that alone satisfies each predicate, or -1 if none or several rows do.

    A predicate is a row of conditions: x[:, column] is compared with `at` by `test`. A missing number (NaN) satisfies
    only MISSING and UNEQUAL.
    """
    rows = np.full(len(column), -1, dtype=np.int64)
    for q in range(len(column)):
        for i in range(len(x)):
            if _satisfies(x[i], column[q], test[q], at[q]):
                if rows[q] >= 0:
                    rows[q] = -1
                    break
                rows[q] = i
    return rows


@inner_jit
def _satisfies(row: Array, column: Array, test: Array, at: Array) -> bool:
    """Return whether a row satisfies all conditions of a predicate."""
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


TRIES_PER_STATEMENT = 20  # statements drawn in one round for each that is asked for
MAX_DRAWING_ROUNDS = 30  # then the search gives up, with the statements it has
ORDERED_TESTS = np.array([EQUAL, UNEQUAL, AT_LEAST, AT_MOST, ABOVE, BELOW])


class Predicates(NamedTuple):
    """Conjunctions of conditions, one per row: columns, tests and values."""

    column: Array
    test: Array
    at: Array

    def take(self, rows: Array) -> Predicates:
        """Return these rows."""
        return Predicates(*(part[rows] for part in self))

    def merge(self, others: Predicates) -> Predicates:
        """Return these predicates and others, without duplicates."""
        both = Predicates(*(np.concatenate(pair) for pair in zip(self, others, strict=True)))
        if len(both.at) == 0:
            return both
        values = np.unique(both.at, return_inverse=True)[1].reshape(both.at.shape)
        code, _ = compress([*both.column.T, *both.test.T, *values.T])
        return both.take(np.sort(np.unique(code, return_index=True)[1]))

    def single_out(self, x: Array) -> Array:
        """Return which predicates exactly one row of x satisfies."""
        return np.asarray(self.find_single(x) >= 0)

    def find_single(self, x: Array) -> Array:
        """Return the row of x that alone satisfies each predicate, or -1."""
        return np.asarray(find_single_matches(x, *self))


# Which statements single out a member and which a non-member, the share of random statements that single out a member,
# and the released record that each statement singles out.
Outcome: TypeAlias = tuple[Array, Array, float, Array]


@dataclass(frozen=True)
class SinglingOut(Controlled):
    """How much more often statements unique in the release single out a member than a non-member.

    The attacker looks for statements that are true for exactly one released record, such as "born in 1931 and a widower
    with at least 9 children", and claims that exactly one person of the original satisfies them. The same statements
    also single out non-members now and then; only the gain over that rate counts. It is the first of the three risks of
    the Article 29 Working Party, beside linkability and inference.

    Parameters
    ----------
    mode : "multivariate": conjunctions of several conditions taken from a released record; "univariate": a value of
        only one released record, the smallest and the largest number, a single missing value.
    columns : for "multivariate": the number of conditions in a statement, at least 1; fewer if there are fewer
        variables.
    queries : the number of statements to look for, at least 1.
    on : the variables the attacker may use, of any kind; by default every column that other people could know.
    held_out : the share of the people, in (0, 1), who are the non-members when no control file names others.
    targets : the largest number of people in each group, at least 1.

    Formula: share of statements that exactly one member satisfies, minus the same for non-members; both groups have
        equally many people, drawn at random from the larger one. A condition is x = v for a category, x >= v for a
        released number above the released median and x <= v for other numbers. Univariate statements are drawn from the
        columns in turn, so that a column with many values does not dominate.
    `parts`: "members", "non-members", "naive" (random statements, members), Anonymeter's "residual" (members -
    non-members) / (1 - non-members), and "queries", the number of statements found. The value is 0 if there are none.
    Missing is a category. Recoded variables are compared in the released categories; undefined for labels of several
    depths ("37" and "(35, 40]"), for which a statement may be neither true nor false. Weights are not used.
    Households: persons are counted one by one; a refit leaves out whole households.
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
    # 3: undefined for labels of several depths; 4: the standard error counts released records; 5: people drawn by
    # household
    revision: ClassVar[int] = 5

    mode: Literal["multivariate", "univariate"] = "multivariate"
    columns: Annotated[int, Range(1)] = 3
    queries: Annotated[int, Range(1)] = 500
    on: tuple[str, ...] = ()
    held_out: Annotated[float, Range(0, 1, "()")] = field(default=0.5, kw_only=True)
    targets: Annotated[int, Range(1)] = field(default=100_000, kw_only=True)

    def align_categories(self, original: Microdata, masked: Microdata) -> tuple[Microdata, Microdata]:
        return recode_to_released_categories(original, masked, self.variables(original)), masked

    def attack(self, split: Split, names: tuple[str, ...], ranges: dict[str, float], rng: Generator) -> Outcome:
        check_one_depth(split.members, split.released, names)
        size = min(len(split.members), len(split.non_members))
        released, members, others = _numbers([split.released, split.members, split.non_members], names)
        # in a larger group fewer statements are unique, so both groups must have the same size
        members, others = members[:size], others[:size]
        ordered = np.array([split.released.column(name).levels is None for name in names])
        statements = self._find_statements(released, ordered, rng)
        guesses = _random_conditions(released, ordered, self._width(released), self.queries, rng)
        naive = float(guesses.single_out(members).mean())
        return statements.single_out(members), statements.single_out(others), naive, statements.find_single(released)

    def _find_statements(self, released: Array, ordered: Array, rng: Generator) -> Predicates:
        """Return distinct statements that single out a released record."""
        if self.mode == "univariate":
            return _unique_conditions(released, ordered, self.queries, rng)
        width = self._width(released)
        none = np.empty((0, width), dtype=np.int64)
        statements = Predicates(none, none, none.astype(np.float64))
        for _ in range(MAX_DRAWING_ROUNDS):
            count = len(statements.at)
            drawn = _conditions_of_records(released, ordered, width, self.queries * TRIES_PER_STATEMENT, rng)
            statements = statements.merge(drawn.take(np.flatnonzero(drawn.single_out(released))))
            # stop if a whole round found nothing new, or if there are enough
            if len(statements.at) == count or len(statements.at) >= self.queries:
                break
        return statements.take(np.arange(min(len(statements.at), self.queries)))

    def _width(self, released: Array) -> int:
        """Return the number of conditions in a statement."""
        return 1 if self.mode == "univariate" else min(self.columns, released.shape[1])

    def estimate(self, outcomes: Sequence[Outcome]) -> Estimate:
        member_hits, other_hits, guesses, records = zip(*outcomes, strict=True)
        members, others, naive = np.concatenate(member_hits), np.concatenate(other_hits), float(np.mean(guesses))
        if len(members) == 0:
            return Estimate(
                value=0.0, se=share_standard_error(0.0, self.queries), parts={"naive": naive, "queries": 0.0}
            )
        parts = compare_rates(members, others, naive)
        # several statements may single out the same released record, and so the same person: they count once
        file = np.repeat(np.arange(len(records)), [len(rows) for rows in records])
        record = compress([file, np.concatenate(records)])[0]
        error = unit_error(record, mean_influences(members * 1.0 - others))
        # where no statement tells the groups apart, the observed error is 0
        error = error or share_standard_error(0.0, len(np.unique(record)))
        value = parts["members"] - parts["non-members"]
        return Estimate(value=value, se=error, parts=parts | {"queries": float(len(members))})


def _numbers(files: Sequence[Microdata], names: tuple[str, ...]) -> list[Array]:
    """Return the variables of each file as numbers: categories as common codes."""
    columns: list[list[Array]] = [[] for _ in files]
    for name in names:
        kinds = {file.column(name).levels is None for file in files}
        if len(kinds) > 1:
            raise Undefined(f"{name!r} was recoded, and the released category of each value is not known.")
        parts = [file.numbers(name) for file in files] if kinds == {True} else joint_codes(files, name)[0]
        for column, part in zip(columns, parts, strict=True):
            column.append(np.asarray(part, dtype=np.float64))
    return [np.column_stack(column) for column in columns]


def _conditions_of_records(released: Array, ordered: Array, width: int, count: int, rng: Generator) -> Predicates:
    """Return conditions that randomly drawn records satisfy, on randomly drawn columns."""
    middle = np.array([np.median(x[~np.isnan(x)]) if (~np.isnan(x)).any() else 0.0 for x in released.T])
    row = rng.integers(len(released), size=count)
    column = np.sort(rng.permuted(np.tile(np.arange(released.shape[1]), (count, 1)), axis=1)[:, :width], axis=1)
    at = released[row[:, np.newaxis], column]
    high = np.where(at > middle[column], AT_LEAST, AT_MOST)
    return Predicates(column, np.where(np.isnan(at), MISSING, np.where(ordered[column], high, EQUAL)), at)


def _unique_conditions(released: Array, ordered: Array, count: int, rng: Generator) -> Predicates:
    """Return single conditions that exactly one record satisfies, drawn from the columns in turn."""
    by_column = []
    for j, x in enumerate(released.T):
        values, times = np.unique(x[~np.isnan(x)], return_counts=True)
        conditions = [(j, EQUAL, value) for value in values[times == 1]]
        if ordered[j] and len(values):
            conditions += [(j, test, values[end]) for test, end in ((AT_MOST, 0), (AT_LEAST, -1)) if times[end] == 1]
        if np.isnan(x).sum() == 1:
            conditions.append((j, MISSING, 0.0))
        by_column.append([conditions[index] for index in rng.permutation(len(conditions))])
    turns = [column[turn] for turn in range(max(map(len, by_column))) for column in by_column if turn < len(column)]
    table = np.array(turns[:count], dtype=np.float64).reshape(-1, 3, 1)
    return Predicates(table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), table[:, 2])


def _random_conditions(released: Array, ordered: Array, width: int, count: int, rng: Generator) -> Predicates:
    """Return conditions with a random test and a random value that occurs."""
    column = rng.permuted(np.tile(np.arange(released.shape[1]), (count, 1)), axis=1)[:, :width]
    uniform, at = rng.random(column.shape), np.empty(column.shape)
    for j, x in enumerate(released.T):
        values, chosen = np.unique(x), column == j
        at[chosen] = values[(uniform[chosen] * len(values)).astype(np.int64)]
    test = ORDERED_TESTS[(rng.random(column.shape) * np.where(ordered[column], len(ORDERED_TESTS), 2)).astype(np.int64)]
    return Predicates(column, np.where(np.isnan(at), MISSING, test), at)
