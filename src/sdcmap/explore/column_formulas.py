"""Columns that are a formula of others, within rounding: sums with factors, products, ratios, and powers of these.

A formula is tried on a few records first, and what holds there is looked at in all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, permutations
from keyword import iskeyword

import numpy as np

from sdcmap.kernels.arrays import Array

FIRST = 64  # records that a formula is tried on
FEWEST = 10  # complete records below which nothing is said
MOST_COLUMNS = 40  # of which formulas are tried
HOLDS = 0.999  # share of the complete records in which a formula holds
TESTED = 0.05  # share of the complete records that no column of a formula gives alone: so many test it
CATEGORIES = 20  # a column with at most so many values is no amount that others make up
SUMMANDS = 12  # most columns of one sum
UNITS = (1.0, 0.1, 0.01, 0.001, 1e-4, 1e-5, 1 / 12)  # factors of a sum are whole multiples of one of these
MOSTLY = 0.75  # share of the first records in which a column of a sum is known
# in words: whether order matters, and the formula
PAIRS: Mapping[str, tuple[bool, Callable[[Array, Array], Array]]] = {
    "{a} + {b}": (False, lambda a, b: a + b),
    "{a} - {b}": (True, lambda a, b: a - b),
    "{a} * {b}": (False, lambda a, b: a * b),
    "{a} / {b}": (True, lambda a, b: a / b),
    "{a} / {b}**2": (True, lambda a, b: a / b**2),
    "{a} * {b}**2": (True, lambda a, b: a * b**2),
}
# units: percent, centimeters, thousands, months
SCALES = (1.0, 100.0, 0.01, 10_000.0, 0.0001, 1000.0, 0.001, 12.0, 1 / 12)


def formulas(columns: Mapping[str, Array]) -> dict[str, str]:
    """{column: its formula} for the columns that others give within their rounding; the last of a circle is derived.

    But a difference that is never below zero is a part of a sum, and the sum is derived: computed from masked columns, a
    difference would go below zero. A column may stand in the formulas of others only while it is not derived itself, so
    that every name in a formula is a column that is left. Missing values (NaN) are left out. At most MOST_COLUMNS columns
    are looked at.

    >>> a, b = np.arange(1.0, 40.0), np.arange(39.0, 0.0, -1.0) ** 2
    >>> formulas({"a": a, "b": b, "both": a + b, "share": np.round(a / b, 2)})
    {'both': 'a + b', 'share': 'a / b'}
    >>> formulas({"both": a + b, "a": a, "b": b})
    {'both': 'a + b'}
    """
    found: dict[str, str] = {}
    used: set[str] = set()
    names = [name for name in columns if _varies(columns[name])][:MOST_COLUMNS]
    amounts = [name for name in names if len(np.unique(columns[name][:2000])) > CATEGORIES]
    for target in reversed(amounts):  # a total mostly follows its parts
        if target in used or target in found:
            continue
        others = {name: columns[name] for name in names if name != target and name not in found}
        formula, parts = _formula(columns[target], others)
        derived = target
        is_difference = len(parts) == 2 and formula == " - ".join(map(_quoted, parts))
        if is_difference and parts[0] not in used and not (columns[target] < 0).any():
            derived, parts = parts[0], (parts[1], target)
            formula = " + ".join(_quoted(name) for name in columns if name in parts)
        if formula:
            found[derived] = formula
            used |= set(parts)
    return {name: found[name] for name in columns if name in found}


def rounding(values: Array) -> float:
    """Half a unit of the last decimal that the values have (at most six decimals)."""
    known = values[np.isfinite(values)][:2000]
    for places in range(7):
        if np.allclose(known, np.round(known, places), rtol=1e-12, atol=1e-9):
            return float(0.5 * 10.0**-places)
    return 0.5e-7


def _varies(values: Array) -> bool:
    known = values[np.isfinite(values)]
    return len(known) >= FEWEST and bool((known != known[0]).any())


def _quoted(name: str) -> str:
    """A name as a formula has it: in backticks where it is more than letters and digits."""
    return name if name.isidentifier() and not iskeyword(name) else f"`{name}`"


def _formula(target: Array, others: Mapping[str, Array]) -> tuple[str, tuple[str, ...]]:
    """The first formula of the others that gives the target, and the columns in it; empty where none does."""
    tolerance = rounding(target) * 1.001
    with np.errstate(all="ignore"):
        for words, value, names in _candidates(target, others, tolerance):
            parts = [others[name] for name in names]
            if _holds(target, value(*parts), parts, tolerance):
                return words, names
    return "", ()


def _holds(target: Array, value: Array, parts: Sequence[Array], tolerance: float) -> bool:
    """Whether the formula gives the target in nearly all complete records, and in those that no part of it gives alone."""
    known = np.isfinite(target) & np.isfinite(value)
    if known.sum() < FEWEST:
        return False
    slack = tolerance + 1e-9 * np.abs(target[known])
    right = np.abs(target[known] - value[known]) <= slack
    if right.mean() < HOLDS or len(parts) == 1:
        return bool(right.mean() >= HOLDS)
    tests = np.logical_and.reduce([~(np.abs(target[known] - part[known]) <= slack) for part in parts])
    return bool(tests.sum() >= max(FEWEST, TESTED * len(tests)) and right[tests].mean() >= HOLDS)


Candidate = tuple[str, Callable[..., Array], tuple[str, ...]]


def _candidates(target: Array, others: Mapping[str, Array], tolerance: float) -> Iterator[Candidate]:
    """Formulas that hold on a few complete records: of one column, of two, and the sum of several."""
    rows = _few(target, list(others.values()))
    y, few = target[rows], {name: values[rows] for name, values in others.items()}
    slack = tolerance + 1e-9 * np.abs(y)

    def gives(value: Array) -> bool:
        known = np.isfinite(value) & np.isfinite(y)
        return known.sum() >= FEWEST and bool((np.abs(value - y)[known] <= slack[known]).all())

    one = int(np.argmax(np.abs(y[:FEWEST]))) if len(y) else 0  # the record by which most formulas are ruled out
    for name, x in few.items():
        for scale in SCALES[1:]:
            if gives(scale * x):
                yield f"{_number(scale)} * {_quoted(name)}", lambda a, s=scale: s * a, (name,)
        if gives(x**2):
            yield f"{_quoted(name)}**2", lambda a: a**2, (name,)
    for words, (ordered, function) in PAIRS.items():
        for a, b in permutations(few, 2) if ordered else combinations(few, 2):
            scale = _scale(float(y[one]), float(function(few[a][one], few[b][one])), float(slack[one]))
            if scale and (scale == 1 or "/" in words or "*" in words) and gives(scale * function(few[a], few[b])):
                front = "" if scale == 1 else f"{_number(scale)} * "
                formula = front + words.format(a=_quoted(a), b=_quoted(b))
                yield formula, lambda a, b, f=function, s=scale: s * f(a, b), (a, b)
    yield from _sums(y, few, slack, gives)


def _scale(wanted: float, value: float, slack: float) -> float:
    """The scale by which a value would be the wanted one; 0 where none is, 1 where the value says nothing."""
    if not np.isfinite(value):
        return 1.0
    return next((scale for scale in SCALES if abs(scale * value - wanted) <= slack), 0.0)


def _sums(y: Array, few: Mapping[str, Array], slack: Array, gives: Callable[[Array], bool]) -> Iterator[Candidate]:
    """A sum of several columns, each with a factor of few digits or in twelfths: those that count, by least squares."""
    names = [name for name, x in few.items() if np.isfinite(x).mean() > MOSTLY]
    x = np.column_stack([few[name] for name in names]) if names else np.empty((len(y), 0))
    whole = np.isfinite(x).all(axis=1) & np.isfinite(y)
    if whole.sum() <= len(names) + 1 or not names:
        return
    counts = np.abs(_slopes(x[whole], y[whole])) * np.ptp(x[whole], axis=0) > 4 * slack.max()
    if not 0 < counts.sum() <= SUMMANDS:
        return
    parts = tuple(name for name, part in zip(names, counts, strict=True) if part)
    fitted = _slopes(x[whole][:, counts], y[whole])
    for unit in UNITS:
        factors = np.rint(fitted / unit) * unit
        if factors.all() and gives(x[:, counts] @ factors):
            yield _sum_in_words(parts, factors), lambda *given, f=factors: np.column_stack(given) @ f, parts
            return


def _slopes(x: Array, y: Array) -> Array:
    """Least squares without a constant, columns brought to one scale."""
    scale = np.abs(x).max(axis=0)
    scale[scale == 0] = 1.0
    return np.asarray(np.linalg.lstsq(x / scale, y, rcond=None)[0] / scale)


def _sum_in_words(names: Sequence[str], factors: Array) -> str:
    """
    >>> _sum_in_words(["wage", "rent", "tax"], np.array([1.0, 12.0, -0.5]))
    'wage + 12 * rent - 0.5 * tax'
    """
    terms = [
        f"{'' if abs(factor) == 1 else f'{_number(abs(factor))} * '}{_quoted(name)}"
        for name, factor in zip(names, factors, strict=True)
    ]
    more = (f" {'-' if factor < 0 else '+'} {term}" for factor, term in zip(factors[1:], terms[1:], strict=True))
    return f"{'-' if factors[0] < 0 else ''}{terms[0]}{''.join(more)}"


def _few(target: Array, others: Sequence[Array]) -> Array:
    """A few records spread over the file, those first in which most columns have a value other than 0."""
    rows = np.arange(0, len(target), max(1, len(target) // (8 * FIRST)))[: 8 * FIRST]
    telling = np.isfinite(target[rows]) * 1.0 + sum(np.isfinite(x[rows]) & (x[rows] != 0) for x in others)
    best = rows[np.argsort(-telling, kind="stable")[:FIRST]]
    return best[np.isfinite(target[best])]


def _number(scale: float) -> str:
    twelfths = round(12 * scale)
    plain = abs(scale - round(scale, 5)) < 1e-9 or abs(scale - twelfths / 12) > 1e-9
    return f"{scale:.9g}" if plain else f"{twelfths}/12"
