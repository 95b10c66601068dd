"""Find columns that are formulas of other columns, within rounding: sums with factors, products, ratios, squares.

A formula is tried on a few records first; if it holds there, it is checked on all records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations, permutations
from keyword import iskeyword

import numpy as np

from sdcmap.kernels.arrays import Array

TRIAL_RECORDS = 64  # records on which a formula is tried first
MIN_COMPLETE_RECORDS = 10  # with fewer, a formula may hold by chance
MAX_COLUMNS = 40  # columns that are tried; the number of pairs grows with the square
MIN_SHARE_TESTED = 0.05  # share of records that really test it: no single column of the formula equals the target
MAX_CATEGORY_VALUES = 20  # a column with at most so many values is a category, not a computed amount
MAX_SUMMANDS = 12  # columns in one sum
FACTOR_UNITS = (1.0, 0.1, 0.01, 0.001, 1e-4, 1e-5, 1 / 12)  # factors of a sum are multiples of one of these
MIN_KNOWN_SHARE = 0.75  # share of the trial records in which a column of a sum must be known
# the text of a formula: whether the order of its columns matters, and the function
PAIR_FORMULAS: Mapping[str, tuple[bool, Callable[[Array, Array], Array]]] = {
    "{a} + {b}": (False, lambda a, b: a + b),
    "{a} - {b}": (True, lambda a, b: a - b),
    "{a} * {b}": (False, lambda a, b: a * b),
    "{a} / {b}": (True, lambda a, b: a / b),
    "{a} / {b}**2": (True, lambda a, b: a / b**2),
    "{a} * {b}**2": (True, lambda a, b: a * b**2),
}
ONE_COLUMN_FORMULAS: Mapping[str, Callable[[Array], Array]] = {
    "{a}**2": lambda a: a**2,
    "log({a})": np.log,
    "log({a} + 1)": np.log1p,
}
# units: percent, centimeters, thousands, months
SCALES = (1.0, 100.0, 0.01, 10_000.0, 0.0001, 1000.0, 0.001, 12.0, 1 / 12)


def find_formulas(columns: Mapping[str, Array]) -> dict[str, str]:
    """Return {column: its formula} for the columns that others determine within rounding.

    If several columns determine each other, the last one is taken as computed. A difference that is never negative is an
    exception: the sum is taken as computed, because a difference of masked columns could become negative. A computed
    column does not occur in other formulas, so every name in a formula is a column that remains. Missing values (NaN) are
    ignored. At most MAX_COLUMNS columns are tried. A formula holds in every complete record: it gives the value after
    rounding to the last decimal of the column (`rounding` is half a unit of it).

    >>> a, b = np.arange(1.0, 40.0), np.arange(39.0, 0.0, -1.0) ** 2
    >>> find_formulas({"a": a, "b": b, "both": a + b, "share": np.round(a / b, 2)})
    {'both': 'a + b', 'share': 'a / b'}
    >>> find_formulas({"both": a + b, "a": a, "b": b})
    {'both': 'a + b'}
    """
    result: dict[str, str] = {}
    used: set[str] = set()
    names = [name for name in columns if _varies(columns[name])][:MAX_COLUMNS]
    amounts = [name for name in names if len(np.unique(columns[name][:2000])) > MAX_CATEGORY_VALUES]
    for target in reversed(amounts):  # a total usually comes after its parts
        if target in used or target in result:
            continue
        others = {name: columns[name] for name in names if name != target and name not in result}
        formula, parts = _formula(columns[target], others)
        derived = target
        is_difference = len(parts) == 2 and formula == " - ".join(map(_quote, parts))
        if is_difference and parts[0] not in used and not (columns[target] < 0).any():
            # target = a - b is never negative: take a = b + target as the computed column instead.
            derived, parts = parts[0], (parts[1], target)
            formula = " + ".join(_quote(name) for name in columns if name in parts)
        if formula:
            result[derived] = formula
            used |= set(parts)
    return {name: result[name] for name in columns if name in result}


def rounding(values: Array) -> float:
    """Return half a unit of the last decimal of the values (at most six decimals)."""
    known = values[np.isfinite(values)][:2000]
    for decimals in range(7):
        if np.allclose(known, np.round(known, decimals), rtol=1e-12, atol=1e-9):
            return float(0.5 * 10.0**-decimals)
    return 0.5e-7


def _varies(values: Array) -> bool:
    known = values[np.isfinite(values)]
    return len(known) >= MIN_COMPLETE_RECORDS and bool((known != known[0]).any())


def _quote(name: str) -> str:
    """Return a name as a formula writes it: in backticks unless it is a plain identifier."""
    return name if name.isidentifier() and not iskeyword(name) else f"`{name}`"


def _formula(target: Array, others: Mapping[str, Array]) -> tuple[str, tuple[str, ...]]:
    """Return the first formula that gives the target, and its columns; empty if there is none."""
    tolerance = rounding(target) * 1.001
    with np.errstate(all="ignore"):
        for text, value, names in _candidates(target, others, tolerance):
            parts = [others[name] for name in names]
            if _is_exact(target, value(*parts), parts, tolerance):
                return text, names
    return "", ()


def _is_exact(target: Array, value: Array, parts: Sequence[Array], tolerance: float) -> bool:
    """Return whether a formula gives the target in all complete records, and in enough of them not by chance.

    It must be tested where no single column equals the target: `wage + bonus` is not shown by records without a bonus.
    """
    known = np.isfinite(target) & np.isfinite(value)
    if known.sum() < MIN_COMPLETE_RECORDS:
        return False
    slack = tolerance + 1e-9 * np.abs(target[known])
    if not (np.abs(target[known] - value[known]) <= slack).all():
        return False
    if len(parts) == 1:
        return True
    tests = np.logical_and.reduce([~(np.abs(target[known] - part[known]) <= slack) for part in parts])
    return bool(tests.sum() >= max(MIN_COMPLETE_RECORDS, MIN_SHARE_TESTED * len(tests)))


Candidate = tuple[str, Callable[..., Array], tuple[str, ...]]


def _candidates(target: Array, others: Mapping[str, Array], tolerance: float) -> Iterator[Candidate]:
    """Yield formulas that hold on the trial records: of one column, of two, and sums of several."""
    rows = _trial_rows(target, list(others.values()))
    y, trial = target[rows], {name: values[rows] for name, values in others.items()}
    slack = tolerance + 1e-9 * np.abs(y)

    def gives(value: Array) -> bool:
        known = np.isfinite(value) & np.isfinite(y)
        return known.sum() >= MIN_COMPLETE_RECORDS and bool((np.abs(value - y)[known] <= slack[known]).all())

    # One large value rules out most pairs of columns before the whole trial is computed.
    one = int(np.argmax(np.abs(y[:MIN_COMPLETE_RECORDS]))) if len(y) else 0
    for name, x in trial.items():
        for scale in SCALES[1:]:
            if gives(scale * x):
                yield f"{_format_factor(scale)} * {_quote(name)}", lambda a, s=scale: s * a, (name,)
        for template, function_of_one in ONE_COLUMN_FORMULAS.items():
            if gives(function_of_one(x)):
                yield template.format(a=_quote(name)), function_of_one, (name,)
    for template, (is_ordered, function) in PAIR_FORMULAS.items():
        for a, b in permutations(trial, 2) if is_ordered else combinations(trial, 2):
            scale = _scale(float(y[one]), float(function(trial[a][one], trial[b][one])), float(slack[one]))
            can_scale = scale == 1 or "/" in template or "*" in template
            if scale and can_scale and gives(scale * function(trial[a], trial[b])):
                front = "" if scale == 1 else f"{_format_factor(scale)} * "
                formula = front + template.format(a=_quote(a), b=_quote(b))
                yield formula, lambda a, b, f=function, s=scale: s * f(a, b), (a, b)
    yield from _sums(y, trial, slack, gives)


def _scale(target: float, value: float, slack: float) -> float:
    """Return the scale that turns a value into the target; 0 if there is none, 1 if the value is not finite."""
    if not np.isfinite(value):
        return 1.0
    return next((scale for scale in SCALES if abs(scale * value - target) <= slack), 0.0)


def _sums(y: Array, trial: Mapping[str, Array], slack: Array, gives: Callable[[Array], bool]) -> Iterator[Candidate]:
    """Yield a sum of several columns by least squares; factors have few digits or are twelfths."""
    names = [name for name, x in trial.items() if np.isfinite(x).mean() > MIN_KNOWN_SHARE]
    x = np.column_stack([trial[name] for name in names]) if names else np.empty((len(y), 0))
    complete = np.isfinite(x).all(axis=1) & np.isfinite(y)
    if complete.sum() <= len(names) + 1 or not names:
        return
    for has_constant in (False, True):
        slopes, _ = _slopes(x[complete], y[complete], has_constant)
        # A column belongs to the sum if its range times its slope exceeds rounding; fit again with these columns only.
        contributes = np.abs(slopes) * np.ptp(x[complete], axis=0) > 4 * slack.max()
        if not 0 < contributes.sum() <= MAX_SUMMANDS:
            continue
        parts = tuple(name for name, part in zip(names, contributes, strict=True) if part)
        slopes, constant = _slopes(x[complete][:, contributes], y[complete], has_constant)
        for unit in FACTOR_UNITS:
            factors, offset = np.rint(slopes / unit) * unit, round(constant / unit) * unit
            if factors.all() and (offset or not has_constant) and gives(x[:, contributes] @ factors + offset):
                yield _format_sum(parts, factors, offset), partial(_add_up, factors, offset), parts
                return


def _add_up(factors: Array, constant: float, *columns: Array) -> Array:
    return np.asarray(np.column_stack(columns) @ factors + constant)


def _slopes(x: Array, y: Array, has_constant: bool) -> tuple[Array, float]:
    """Return the least-squares slopes, and the constant or 0; columns are scaled for numerical stability."""
    scale = np.abs(x).max(axis=0)
    scale[scale == 0] = 1.0
    scaled = np.column_stack([x / scale, np.ones(len(y))]) if has_constant else x / scale
    slopes = np.linalg.lstsq(scaled, y, rcond=None)[0]
    return np.asarray(slopes[: len(scale)] / scale), float(slopes[-1]) if has_constant else 0.0


def _format_sum(names: Sequence[str], factors: Array, constant: float) -> str:
    """Return the text of a sum.

    >>> _format_sum(["wage", "rent", "tax"], np.array([1.0, 12.0, -0.5]), 0.0)
    'wage + 12 * rent - 0.5 * tax'
    >>> _format_sum(["age", "educ"], np.array([1.0, -1.0]), -6.0)
    'age - educ - 6'
    """
    terms = [
        f"{'' if abs(factor) == 1 else f'{_format_factor(abs(factor))} * '}{_quote(name)}"
        for name, factor in zip(names, factors, strict=True)
    ]
    more = (f" {'-' if factor < 0 else '+'} {term}" for factor, term in zip(factors[1:], terms[1:], strict=True))
    end = f" {'-' if constant < 0 else '+'} {_format_factor(abs(constant))}" if constant else ""
    return f"{'-' if factors[0] < 0 else ''}{terms[0]}{''.join(more)}{end}"


def _trial_rows(target: Array, others: Sequence[Array]) -> Array:
    """Return rows for the trial, spread over the file; rows with many known values other than 0 come first."""
    rows = np.arange(0, len(target), max(1, len(target) // (8 * TRIAL_RECORDS)))[: 8 * TRIAL_RECORDS]
    informative = np.isfinite(target[rows]) * 1.0 + sum(np.isfinite(x[rows]) & (x[rows] != 0) for x in others)
    best = rows[np.argsort(-informative, kind="stable")[:TRIAL_RECORDS]]
    return best[np.isfinite(target[best])]


def _format_factor(scale: float) -> str:
    twelfths = round(12 * scale)
    is_decimal = abs(scale - round(scale, 5)) < 1e-9 or abs(scale - twelfths / 12) > 1e-9
    return f"{scale:.9g}" if is_decimal else f"{twelfths}/12"
