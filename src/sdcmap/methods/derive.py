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
from sdcmap.core.method import Origin
from sdcmap.data.amounts import amounts, has_numbers
from sdcmap.data.microdata import Microdata, without_reasons
from sdcmap.kernels.masking.granularity import granularity

MAX_FORMULA_LENGTH = 300  # characters; keeps a formula from a plan cheap to parse
SYNTAX = "a formula may contain columns, numbers, + - * / ** and sqrt, log, exp, abs, round, min, max"

_OPERATORS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide, ast.Pow: np.power,
    ast.USub: np.negative, ast.UAdd: np.positive,
}  # fmt: skip
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "sqrt": np.sqrt, "log": np.log, "exp": np.exp, "abs": np.abs, "round": lambda x, digits=0.0: _round_half_up(x, digits),
    "min": lambda *x: reduce(np.minimum, x), "max": lambda *x: reduce(np.maximum, x),
}  # fmt: skip
_ARGUMENTS = {"round": (1, 2), "min": (2, 9), "max": (2, 9)}  # (fewest, most) arguments; the other functions take one


@dataclass(frozen=True)
class Arithmetic:
    """A formula and the columns it refers to.

    >>> parse_arithmetic("weight / height**2").names
    ('weight', 'height')
    """

    text: str
    names: tuple[str, ...]

    def values(self, columns: Mapping[str, Array]) -> Floats:
        """Return the value for each record: NaN where a column is missing or the result is undefined (1/0, log(-1))."""
        tree, quoted = _tree(self.text)
        known = {word: columns[name].astype(np.float64) for word, name in _names(tree, quoted)}
        with np.errstate(all="ignore"):
            values = np.asarray(_value(tree, known), dtype=np.float64)
        return np.where(np.isfinite(values), values, np.nan)


def parse_arithmetic(text: str) -> Arithmetic:
    """Parse a formula. A column name with characters other than letters and digits is put in `backticks`."""
    names = tuple(dict.fromkeys(name for _, name in _names(*_tree(text))))
    if not names:
        raise PlanError(f"{text!r} refers to no column: {SYNTAX}.")
    return Arithmetic(text, names)


@cache
def _tree(text: str) -> tuple[ast.expr, tuple[str, ...]]:
    """Return the formula as a syntax tree with allowed nodes only, and the names that were in backticks."""
    quoted = tuple(re.findall("`([^`]+)`", text))
    # Python cannot parse backticks, so each quoted name is replaced by a numbered placeholder.
    numbers = iter(range(len(quoted)))
    plain = re.sub("`[^`]+`", lambda _: f" quoted_{next(numbers)}_ ", text).strip()
    try:
        tree = ast.parse(plain, mode="eval").body if len(text) <= MAX_FORMULA_LENGTH else None
        if tree is None or not _is_allowed(tree):
            raise ValueError
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise PlanError(
            f"{text[:MAX_FORMULA_LENGTH]!r} cannot be read: {SYNTAX}, and has at most {MAX_FORMULA_LENGTH} signs."
        ) from None
    return tree, quoted


def _is_allowed(node: ast.expr) -> bool:
    match node:
        case ast.Constant(int() | float() as value):
            return not isinstance(value, bool) and abs(value) < 1e300
        case ast.UnaryOp(op, operand):
            return type(op) in _OPERATORS and _is_allowed(operand)
        case ast.BinOp(left, op, right):
            return type(op) in _OPERATORS and _is_allowed(left) and _is_allowed(right)
        case ast.Call(ast.Name(name), arguments, []) if name in _FUNCTIONS:
            low, high = _ARGUMENTS.get(name, (1, 1))
            return low <= len(arguments) <= high and all(map(_is_allowed, arguments))
    return isinstance(node, ast.Name)


def _names(tree: ast.expr, quoted: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield each identifier of the tree that refers to a column, and the name of the column."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and id(node) not in called:
            match = re.fullmatch(r"quoted_(\d+)_", node.id)
            yield node.id, quoted[int(match[1])] if match and int(match[1]) < len(quoted) else node.id


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


def _round_half_up(x: Any, digits: Any) -> Any:
    """Round to a number of decimals, halves up."""
    step = np.power(10.0, -np.asarray(digits, dtype=np.float64))
    return np.floor(x / step + 0.5) * step


MIN_AGREEMENT = 0.5  # share of the records; a formula that reproduces fewer of the file's values is probably wrong


@dataclass(frozen=True)
class Derive(Method):
    """Recompute a column, such as a body mass index, a total or a rate, after the columns it depends on were masked.

    If a derived column is left unchanged, the masked columns can be recovered from it (weight = bmi height^2). If it is
    masked separately, it no longer agrees with them. A plan lists its derived columns once, as in
    `derive = {bmi = "weight / height**2"}`; every candidate then ends with these steps.

    Parameters
    ----------
    on : the column to compute; numeric.
    formula : columns, numbers, + - * / ** and sqrt, log, exp, abs, round, min, max. A column name with characters other
        than letters and digits is put in `backticks`. At most 300 characters. A formula must not use an identifier, a
        dropped column, or a column that a release renumbers, such as the household: it would carry that number on.

    A record is recomputed if an earlier step may have changed the column or a column of its formula; in an unmasked file
    all records are. The value is missing where a column of the formula is missing or the result is undefined, such as
    after a division by zero. A release recomputes the column from the rounded numbers that it writes.
    The method has no likelihood of its own: the column contains no more information than the columns of the formula.
    Weights and households are not used.

    Examples
    --------
    >>> Derive("bmi", "weight / height**2").masked_names
    ('bmi',)
    """

    label: ClassVar[str] = "Recomputed columns"
    description: ClassVar[str] = (
        "Columns that are computed from others, such as a total, are recomputed after masking, so that they still agree."
    )

    missing: ClassVar[str] = "added"
    random: ClassVar[bool] = False
    revision: ClassVar[int] = 2  # 2: reasons for missing values are dropped where they no longer apply
    kept: ClassVar[str] = "the relation between the column and the columns it is computed from"
    distorted: ClassVar[str] = "the column itself, as far as the columns it is computed from are distorted"

    on: str
    formula: str

    @property
    def action(self) -> str:
        return "recomputed"

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        return {cls.__name__: "it recomputes the columns that a plan lists, and masks nothing by itself."}

    def problems(self) -> Iterator[str]:
        try:
            if self.on in self.arithmetic.names:
                yield f".formula must not contain {self.on!r}, the column that it computes."
        except PlanError as error:
            yield from (f".formula: {problem}" for problem in error.problems)
        if not self.on:
            yield ".on must name a variable."
        if self.within:
            yield ".within has no effect: the formula is the same in every stratum. Remove it."

    @property
    def arithmetic(self) -> Arithmetic:
        return parse_arithmetic(self.formula)

    @property
    def masked_names(self) -> tuple[str, ...]:
        return (self.on,)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().incompatibilities(data)
        yield from (
            f"{self.text}: {problem}" for problem in data.schema.formula_problems((*self.arithmetic.names, self.on))
        )
        for name in self.arithmetic.names:
            if name not in data.schema:
                yield f"{self.text}: no column {name!r}.{did_you_mean(name, data.names)}"
            elif not _is_number(data, name):
                yield f"{self.text}: {name!r} is not numeric, or an earlier step made it categorical."

    def origins(self, data: Microdata, before: Mapping[str, Origin]) -> Mapping[str, Origin]:
        is_drawn = all(before.get(name) == "model" for name in self.arithmetic.names)
        return {**before, self.on: "model" if is_drawn else "derived"}

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        rows = None if data.base is None else data.changed_rows((*self.arithmetic.names, self.on))
        if rows is not None and not len(rows):
            return data.change(None, {})
        values = self._values(data)
        computed = data.change(rows, {self.on: values if rows is None else values[rows]})
        return computed if self._keeps_missing_pattern(data) else without_reasons(computed, (self.on,))

    def _keeps_missing_pattern(self, data: Microdata) -> bool:
        """Return whether the columns of the formula are missing in the same records as before.

        If they are not, the stored reasons for missing values belong to other records and would reveal which ones.
        """
        base = data.base
        if base is None or len(base) != len(data) or data.origin is not None:
            return base is None
        return all(np.array_equal(data.missing(name), base.missing(name)) for name in self.arithmetic.names)

    def _values(self, data: Microdata) -> Floats:
        return self.arithmetic.values({name: amounts(data, name) for name in self.arithmetic.names})

    def agreement(self, data: Microdata) -> float:
        """Return the share of records for which the formula reproduces the file's value, within rounding or 1 %."""
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
        """Yield a sentence for each sign that the formula is wrong for this column. The data must be compatible."""
        values = self._values(data)
        whole = ~np.isnan(np.column_stack([amounts(data, name) for name in self.arithmetic.names])).any(axis=1)
        if failed := int((whole & np.isnan(values)).sum()):
            yield f"{self.text} is undefined for {failed} of {int(whole.sum())} records without missing values."
        if (agreement := self.agreement(data)) < MIN_AGREEMENT:
            yield f"{self.text} reproduces the file's value for only {agreement:.0%} of the records. Check the formula."


def _is_number(data: Microdata, name: str) -> bool:
    column = data.column(name)
    return data.schema[name].kind == "numeric" or (column.levels is not None and has_numbers(column))
