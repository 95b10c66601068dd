"""Columns computed from others by arithmetic such as "weight / height**2"."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any, ClassVar

import numpy as np

from sdcmap.core import Array, Fields, Floats, Generator, Method, PlanError, Roles, Trials, did_you_mean
from sdcmap.data.amounts import amounts, has_numbers
from sdcmap.data.microdata import Microdata, without_reasons
from sdcmap.kernels.masking.granularity import granularity

# Arithmetic on columns: formulas such as "weight / height**2", read from a text and computed for every record.


LONGEST = 300  # characters
SHAPE = "a formula is made of columns, numbers, + - * / ** and sqrt, log, exp, abs, round, min, max"

_OPERATORS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide, ast.Pow: np.power,
    ast.USub: np.negative, ast.UAdd: np.positive,
}  # fmt: skip
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "sqrt": np.sqrt, "log": np.log, "exp": np.exp, "abs": np.abs, "round": lambda x, digits=0.0: _rounded(x, digits),
    "min": lambda *x: reduce(np.minimum, x), "max": lambda *x: reduce(np.maximum, x),
}  # fmt: skip
_ARGUMENTS = {"round": (1, 2), "min": (2, 9), "max": (2, 9)}  # the others take one


@dataclass(frozen=True)
class Arithmetic:
    """A formula of columns: `names` are the columns in it.

    >>> parse_arithmetic("weight / height**2").names
    ('weight', 'height')
    """

    text: str
    names: tuple[str, ...]

    def values(self, columns: Mapping[str, Array]) -> Floats:
        """The value for each record; NaN where a column has none or the formula has none (1/0, log of -1)."""
        tree, quoted = _tree(self.text)
        known = {word: columns[name].astype(np.float64) for word, name in _names(tree, quoted)}
        with np.errstate(all="ignore"):
            values = np.asarray(_value(tree, known), dtype=np.float64)
        return np.where(np.isfinite(values), values, np.nan)


def parse_arithmetic(text: str) -> Arithmetic:
    """The formula that a text stands for; a name with other signs than letters and digits stands in `backticks`."""
    names = tuple(dict.fromkeys(name for _, name in _names(*_tree(text))))
    if not names:
        raise PlanError(f"{text!r} names no column: {SHAPE}.")
    return Arithmetic(text, names)


@cache
def _tree(text: str) -> tuple[ast.expr, tuple[str, ...]]:
    """The formula as a tree that holds nothing but what `SHAPE` says, and the names that stood in backticks."""
    quoted = tuple(re.findall("`([^`]+)`", text))
    places = iter(range(len(quoted)))
    plain = re.sub("`[^`]+`", lambda _: f" quoted_{next(places)}_ ", text).strip()
    try:
        tree = ast.parse(plain, mode="eval").body if len(text) <= LONGEST else None
        if tree is None or not _allowed(tree):
            raise ValueError
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise PlanError(f"{text[:LONGEST]!r} cannot be read: {SHAPE}, and has at most {LONGEST} signs.") from None
    return tree, quoted


def _allowed(node: ast.expr) -> bool:
    match node:
        case ast.Constant(int() | float() as value):
            return not isinstance(value, bool) and abs(value) < 1e300
        case ast.UnaryOp(op, operand):
            return type(op) in _OPERATORS and _allowed(operand)
        case ast.BinOp(left, op, right):
            return type(op) in _OPERATORS and _allowed(left) and _allowed(right)
        case ast.Call(ast.Name(name), arguments, []) if name in _FUNCTIONS:
            low, high = _ARGUMENTS.get(name, (1, 1))
            return low <= len(arguments) <= high and all(map(_allowed, arguments))
    return isinstance(node, ast.Name)


def _names(tree: ast.expr, quoted: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Each word of the tree that stands for a column, and the column's name."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and id(node) not in called:
            place = re.fullmatch(r"quoted_(\d+)_", node.id)
            yield node.id, quoted[int(place[1])] if place and int(place[1]) < len(quoted) else node.id


def _value(node: ast.expr, columns: Mapping[str, Floats]) -> Any:
    match node:
        case ast.Constant(int() | float() as value):
            return float(value)
        case ast.Name(name):
            return columns[name]
        case ast.UnaryOp(op, operand):
            return _OPERATORS[type(op)](_value(operand, columns))
        case ast.BinOp(left, op, right):
            return _OPERATORS[type(op)](_value(left, columns), _value(right, columns))
        case ast.Call(ast.Name(name), arguments):
            return _FUNCTIONS[name](*(_value(argument, columns) for argument in arguments))


def _rounded(x: Any, digits: Any) -> Any:
    """To so many decimals, halves up."""
    step = np.power(10.0, -np.asarray(digits, dtype=np.float64))
    return np.floor(x / step + 0.5) * step


AGREES = 0.5  # share of the records for which a formula must give the file's own value


@dataclass(frozen=True)
class Derive(Method):
    """Compute one column from others, after these were masked: a body mass index, a total, a rate.

    A column that is left as it was gives back what it was computed from (weight = bmi height^2); one that is masked apart
    no longer fits. A plan states its derived columns once, `derive = {bmi = "weight / height**2"}`, and every candidate
    ends with these steps.

    Parameters
    ----------
    on : the column that is computed; numeric.
    formula : columns, numbers, + - * / ** and sqrt, log, exp, abs, round, min, max; a column whose name has other signs
        stands in `backticks`. At most 300 signs.

    Records of which an earlier step may have changed a column of the formula, or the column itself, are computed; of a
    file that no step has changed, all. The value is missing where a column of the formula is, or where the formula has
    none (a masked 0 below the line). A release computes once more, from the rounded numbers that it writes.
    Likelihood: none of its own, since it tells nothing that the columns of the formula do not.
    Weights and households are not used.

    Examples
    --------
    >>> Derive("bmi", "weight / height**2").masked_names
    ('bmi',)
    """

    label: ClassVar[str] = "Recomputed columns"
    description: ClassVar[str] = (
        "Columns that are computed from others, such as a total, are computed again after masking so that "
        "they still fit."
    )

    missing: ClassVar[str] = "added"
    random: ClassVar[bool] = False
    revision: ClassVar[int] = 2  # 2: no reasons of missing values that are no longer theirs
    kept: ClassVar[str] = "the relation between the column and those it is computed from"
    distorted: ClassVar[str] = "the column, as far as those are"

    on: str
    formula: str

    @property
    def action(self) -> str:
        return "computed anew"

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        return {cls.__name__: "it computes the columns that a plan states, and masks nothing by itself."}

    def problems(self) -> Iterator[str]:
        try:
            if self.on in self.arithmetic.names:
                yield f".formula must not hold {self.on!r}, which it computes."
        except PlanError as error:
            yield from (f".formula: {problem}" for problem in error.problems)
        if not self.on:
            yield ".on must name a variable."
        if self.within:
            yield ".within is of no use: a formula is the same in every stratum."

    @property
    def arithmetic(self) -> Arithmetic:
        return parse_arithmetic(self.formula)

    @property
    def masked_names(self) -> tuple[str, ...]:
        return (self.on,)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().incompatibilities(data)
        for name in self.arithmetic.names:
            if name not in data.schema:
                yield f"{self.text}: no column {name!r}.{did_you_mean(name, data.names)}"
            elif not _is_number(data, name):
                yield f"{self.text}: {name!r} holds no numbers, or none after the steps before."

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        rows = None if data.base is None else data.changed_rows((*self.arithmetic.names, self.on))
        if rows is not None and not len(rows):
            return data.change(None, {})
        values = self._values(data)
        computed = data.change(rows, {self.on: values if rows is None else values[rows]})
        return computed if self._missing_as_it_was(data) else without_reasons(computed, (self.on,))

    def _missing_as_it_was(self, data: Microdata) -> bool:
        """Whether the columns of the formula are missing where they were; else the reasons why the computed one was missing
        belong to other values, and would tell who had none."""
        base = data.base
        if base is None or len(base) != len(data) or data.origin is not None:
            return base is None
        return all(np.array_equal(data.missing(name), base.missing(name)) for name in self.arithmetic.names)

    def _values(self, data: Microdata) -> Floats:
        return self.arithmetic.values({name: amounts(data, name) for name in self.arithmetic.names})

    def agreement(self, data: Microdata) -> float:
        """The share of the records for which the formula gives the file's own value, within rounding or a percent."""
        values, own = self._values(data), data.numbers(self.on)
        both = ~(np.isnan(values) | np.isnan(own))
        if not both.any():
            return 1.0
        k = granularity(own[both], data.schema[self.on].storage)
        near = np.maximum(0.01 * np.abs(own[both]), 0.0 if k is None else 0.5001 * 10.0**k)
        return float((np.abs(values[both] - own[both]) <= near).mean())

    def pair_fields(self, known: Microdata, released: Microdata) -> Fields:
        return ()

    def doubts(self, data: Microdata) -> Iterator[str]:
        """Why the formula is not that of this column in these data, a sentence each; for data that it fits."""
        values = self._values(data)
        whole = ~np.isnan(np.column_stack([amounts(data, name) for name in self.arithmetic.names])).any(axis=1)
        if failed := int((whole & np.isnan(values)).sum()):
            yield f"{self.text} has no value for {failed} of {int(whole.sum())} records with all columns of the formula."
        if (agreement := self.agreement(data)) < AGREES:
            yield f"{self.text} gives the file's own value for {agreement:.0%} of the records: it is another relation."


def _is_number(data: Microdata, name: str) -> bool:
    column = data.column(name)
    return data.schema[name].kind == "numeric" or (column.levels is not None and has_numbers(column))
