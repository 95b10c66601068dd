"""Arithmetic on columns: formulas such as "weight / height**2", read from a text and computed for every record."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any

import numpy as np

from sdcmap.errors import PlanError
from sdcmap.kernels.arrays import Array, Floats

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
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool) and abs(node.value) < 1e300
    if isinstance(node, ast.UnaryOp):
        return type(node.op) in _OPERATORS and _allowed(node.operand)
    if isinstance(node, ast.BinOp):
        return type(node.op) in _OPERATORS and _allowed(node.left) and _allowed(node.right)
    if isinstance(node, ast.Call):
        named = node.func.id if isinstance(node.func, ast.Name) else ""
        low, high = _ARGUMENTS.get(named, (1, 1))
        return (
            named in _FUNCTIONS
            and not node.keywords
            and low <= len(node.args) <= high
            and all(map(_allowed, node.args))
        )
    return isinstance(node, ast.Name)


def _names(tree: ast.expr, quoted: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Each word of the tree that stands for a column, and the column's name."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and id(node) not in called:
            place = re.fullmatch(r"quoted_(\d+)_", node.id)
            yield node.id, quoted[int(place[1])] if place and int(place[1]) < len(quoted) else node.id


def _value(node: ast.expr, columns: Mapping[str, Floats]) -> Any:
    if isinstance(node, ast.Constant):
        return float(node.value)  # type: ignore[arg-type]
    if isinstance(node, ast.Name):
        return columns[node.id]
    if isinstance(node, ast.UnaryOp):
        return _OPERATORS[type(node.op)](_value(node.operand, columns))
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_value(node.left, columns), _value(node.right, columns))
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return _FUNCTIONS[node.func.id](*(_value(argument, columns) for argument in node.args))


def _rounded(x: Any, digits: Any) -> Any:
    """To so many decimals, halves up."""
    step = np.power(10.0, -np.asarray(digits, dtype=np.float64))
    return np.floor(x / step + 0.5) * step
