"""Prepare a masked file for release: drop identifiers, round numbers, renumber ids, shuffle rows, rebuild labels.

Every random number comes from the candidate's own stream under its own label, so the same candidate is always the same
file. Rows are shuffled individually, even in households: only the renumbered household id says who belongs together. The
row order of an original often follows the sampling, so no part of it is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np
import polars as pl

from sdcmap.core import Array, Generator, Method, PlanError, Stream, did_you_mean
from sdcmap.data.microdata import Column, Microdata, smallest_unsigned
from sdcmap.data.schema import NEVER_RELEASED, RENUMBERED_ROLES, Schema, Variable
from sdcmap.files.formats import FORMATS
from sdcmap.files.stat import drop_unused, format_code
from sdcmap.files.writer import as_excel_safe
from sdcmap.kernels.masking.granularity import align_changes_to_grid, granularity, round_to_decimals
from sdcmap.methods import Derive
from sdcmap.study.jobs import UNUSED_RNG

# ---- suppressed values ----------------------------------------------------------------------------------------
# Users must be able to tell suppressed values from missing answers, so suppressed values get a code of their own. Numbers
# get -97 (or the first such number that is free) and texts "*". Numbers in Stata and SAS files get a letter, and there
# numeric codes become letters too, with the number as their label. Where a format cannot store a code (dates in Parquet, a
# fourth code in SPSS), the value is simply missing, and the codebook names no code. Measures count suppressed values as
# missing, as they did in the study.
SUPPRESSED_LABEL = "suppressed"
NUMBER_CODES = (-97, -98, -99, -997, -998, -999, -9997, -9998, -9999)  # in the order in which they are tried
TEXT_CODES = ("*", "**", "***")
LETTER_CODES = "stuvwxyzrqponmlkjihgfedcba"
MAX_SPSS_CODES = 3  # missing-value codes that an SPSS variable can have

Code = float | str


def suppressed_cells(data: Microdata, method: Method, masked: Microdata, name: str) -> Array:
    """Return where a suppressing method removed a value that the original has.

    Where the method also draws which values are missing, nothing counts as suppressed: two kinds of missing values would
    reveal who gave no answer.
    """
    suppresses = any(step.missing == "added" for step in method.steps)
    if not suppresses or not masked.paired or name in columns_with_drawn_missings(data, method):
        return np.zeros(len(masked), dtype=bool)
    before = data.missing(name)
    return masked.missing(name) & ~(before if masked.origin is None else before[masked.origin])


def columns_with_drawn_missings(data: Microdata, method: Method) -> set[str]:
    """Return the columns whose missing values a step draws at random, and the columns derived from them."""
    names = {name for step in method.steps if step.missing == "category" for name in step.masks(data)}
    for step in method.steps:
        if isinstance(step, Derive) and not names.isdisjoint(step.arithmetic.names):
            names.add(step.on)
    return names


def mark_suppressed(
    variable: Variable, column: Column, suppressed: Array, form: str
) -> tuple[Variable, Column, Code | None]:
    """Return the column with a code of its own in the suppressed rows, and that code; None: no code can be stored."""
    code = _free_code(variable, column, form) if suppressed.any() else None
    if code is None:
        return variable, column, None
    reasons, missing = (*variable.reasons, code), (*variable.missing, code)
    named = replace(variable, reasons=reasons, missing=missing, values=(*variable.values, (code, SUPPRESSED_LABEL)))
    if column.levels is None:
        before = np.zeros(len(suppressed), dtype=np.int64) if column.reasons is None else column.reasons
        numbers = np.where(suppressed, len(reasons), before)
        return named, Column(column.values, None, numbers.astype(smallest_unsigned(1 + len(reasons)))), code
    valid = len(column.levels) - column.levels.null_count()
    levels = column.levels.head(valid).extend_constant(None, 1 + len(reasons))
    values = np.where(suppressed, valid + len(reasons), column.values)
    return named, Column(values.astype(smallest_unsigned(len(levels))), levels), code


def use_letter_codes(variable: Variable, form: str) -> Variable:
    """Return the variable with numeric missing codes as letters, as Stata and SAS need; the number becomes the label."""
    if form not in ("dta", "xpt") or all(isinstance(code, str) for code in variable.reasons):
        return variable
    taken = {str(code).lower() for code in variable.reasons}
    free = (letter for letter in reversed(_letters(form)) if letter.lower() not in taken)
    letters = {code: code if isinstance(code, str) else next(free) for code in variable.reasons}
    words = {code: "" if isinstance(code, str) else f"{code:g}" for code in variable.reasons} | dict(variable.values)
    labels = {letters.get(code, code): label for code, label in words.items() if label}
    codes = tuple(letters.values())
    return replace(variable, reasons=codes, missing=codes, values=tuple(labels.items()))


def _letters(form: str) -> str:
    return LETTER_CODES.upper() if form == "xpt" else LETTER_CODES


def _free_code(variable: Variable, column: Column, form: str) -> Code | None:
    """Return the first code that is not a value of the column and that the format can store; None: there is none."""
    if form == "sav" and len(variable.missing) >= MAX_SPSS_CODES:
        return None
    dtype = pl.Float64() if column.levels is None else column.levels.dtype
    choices: Sequence[Code] = NUMBER_CODES if dtype.is_numeric() else TEXT_CODES
    choices = _letters(form) if form in ("dta", "xpt") else choices
    values = pl.Series(column.values).unique() if column.levels is None else column.levels.drop_nulls()
    taken = {*values.to_list(), *variable.missing, *(str(code).lower() for code in variable.missing)}
    return next((code for code in choices if code not in taken and format_code(form, dtype, code) is not None), None)


# ---- numbers --------------------------------------------------------------------------------------------------
# Masked numbers get the granularity and type of the original. Decimals that the original never had would distinguish masked
# cells from unmasked ones.
MAX_EXACT_INTEGER = 2.0**53  # larger neighboring whole numbers are the same float64


def match_granularity(masked: Array, original: Array, variable: Variable) -> Array:
    """Return masked numbers rounded to the granularity of the original, within its type and off its user-missing codes."""
    k = granularity(original, variable.storage)
    rounded = _inside_type(masked if k is None else round_to_decimals(masked, k), variable.storage, k)
    rounded = _off_missing_codes(rounded, masked, variable, None if k is None else 10.0**k)
    return rounded.astype(np.float32).astype(np.float64) if variable.storage == "Float32" else rounded


def _inside_type(values: Array, storage: str, k: int | None) -> Array:
    if not storage.startswith(("Int", "UInt")):
        return values
    limits = np.iinfo(storage.lower())
    step = 10.0 ** max(k or 0, 0)
    low, high = max(float(limits.min), -MAX_EXACT_INTEGER), min(float(limits.max), MAX_EXACT_INTEGER)
    return np.clip(values, np.ceil(low / step) * step, np.floor(high / step) * step)


def _off_missing_codes(values: Array, before: Array, variable: Variable, step: float | None) -> Array:
    """Move masked numbers that fell on a user-missing code to the nearest number that is no code."""
    for low, high in _merge_intervals(variable, step or 0.0):
        hit = (values >= low) & (values <= high)
        if hit.any():
            # Move to the nearer side of the codes; an open interval has only one side.
            below = low - step if step else np.nextafter(low, -np.inf)
            above = high + step if step else np.nextafter(high, np.inf)
            upwards = np.isinf(low) | (~np.isinf(high) & (before - low > high - before))
            values = np.where(hit, np.where(upwards, above, below), values)
    return values


def _missing_intervals(variable: Variable) -> list[tuple[float, float]]:
    """Return the user-missing numbers as ascending intervals."""
    ends = [code if isinstance(code, tuple) else (code, code) for code in variable.missing]
    return sorted((float(a), float(b)) for a, b in ends if not isinstance(a, str) and not isinstance(b, str))


def _merge_intervals(variable: Variable, step: float) -> list[tuple[float, float]]:
    """Return the user-missing numbers as intervals, where intervals one step apart are joined."""
    merged: list[tuple[float, float]] = []
    for low, high in _missing_intervals(variable):
        if merged and low <= merged[-1][1] + step:
            low, before = merged.pop()
            high = max(high, before)
        merged.append((low, high))
    return merged


# ---- the file -------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Prepared:
    """The file to write, and what is known about it."""

    data: Microdata
    origin: Array  # the row of the original that each row came from; it is never written
    masked: tuple[str, ...]  # columns that the method may have changed
    renumbered: tuple[str, ...]  # columns with random ids
    suppressed: Mapping[str, Code]  # the code of suppressed values in each column that has some


def in_format(data: Microdata, form: str, *, excel_safe: bool = False) -> Microdata:
    """Return the data as they will be released in another format, without display formats; "" means their own format."""
    writable = [known.name for known in FORMATS if known.write is not None]
    if form not in ("", *writable):
        names = f"{', '.join(writable[:-1])} or {writable[-1]}"
        raise PlanError(f"a release is written as {names}.{did_you_mean(form, writable)}")
    if form not in ("", data.schema.format):
        variables = tuple(replace(variable, format="") for variable in data.schema.variables)
        data = replace(data, schema=replace(data.schema, variables=variables, format=form))
    return as_excel_safe(data) if excel_safe else data


def masked_names(data: Microdata, method: Method, masked: Microdata) -> tuple[str, ...]:
    """Return the released variables that the method may have changed, in file order."""
    touched = {*method.masks(data), *masked.changes} - ({data.weight} if method.reweights else set())
    return tuple(name for name in data.names if name in touched and name not in data.unreleased_columns)


def round_like_original(data: Microdata, masked: Microdata) -> Microdata:
    """Return the masked file with its changed numbers rounded to the granularity of the original.

    Adjusted weights are not rounded. Where rows were selected, any column may have changed, so all are rounded.
    """
    changed = masked.changes if masked.base is data else set(masked.names)
    amounts = [
        name for name in data.names if name in changed and name != data.weight
        and data.column(name).levels is None and masked.column(name).levels is None
    ]  # fmt: skip
    return masked.change(None, {name: _round_column(data, masked, name) for name in amounts})


def _round_column(data: Microdata, masked: Microdata, name: str) -> Array:
    """Return the masked numbers of a column at the granularity of the original; unchanged values stay as they are."""
    values, original = masked.numbers(name), data.numbers(name)
    if not masked.paired:
        return match_granularity(values, original, data.schema[name])
    own = original if masked.origin is None else original[masked.origin]
    rounded = match_granularity(align_changes_to_grid(values, own), original, data.schema[name])
    return np.where(values == own, values, rounded)


def as_written(data: Microdata, method: Method, masked: Microdata) -> Microdata:
    """Return the masked file with numbers as they will be written.

    Numbers are rounded. Columns that the last steps derive are computed from the rounded numbers, so that users who compute
    them get the same.
    """
    rounded = round_like_original(data, masked)
    derived = [*takewhile(lambda step: isinstance(step, Derive), reversed(method.steps))]
    for step in reversed(derived):
        rounded = round_like_original(data, step.mask(rounded, UNUSED_RNG))
    return rounded


def prepare_candidate(data: Microdata, method: Method, stream: Stream) -> Prepared:
    """Return the file that a method makes from the data with this stream, as it will be written."""
    return prepare(data, method, as_written(data, method, method.apply(data, stream)), stream)


def prepare(data: Microdata, method: Method, masked: Microdata, stream: Stream) -> Prepared:
    """Return the file as it will be written; `masked` is the candidate, rounded."""
    # The row order of the original often follows the sampling, so rows are shuffled.
    order = stream.child("release rows").rng().permutation(len(masked))
    variables, columns = [], {}
    codes: dict[str, Code] = {}
    for variable in masked.schema.variables:
        if variable.role in NEVER_RELEASED:
            continue
        suppressed = suppressed_cells(data, method, masked, variable.name)[order]
        variable = use_letter_codes(variable, data.schema.format)
        column = masked.column(variable.name).take(order)
        variable, column, code = mark_suppressed(variable, column, suppressed, data.schema.format)
        codes |= {} if code is None else {variable.name: code}
        if variable.role in RENUMBERED_ROLES:
            rng = stream.child(f"release {variable.role} {variable.name}").rng()
            variable, column = renumber_ids(variable, column, rng)
        variable, columns[variable.name] = drop_unused(variable, column)
        variables.append(variable)
    study = {name: getattr(data.schema, name) for name in ("title", "universe", "excel_safe")}
    schema = Schema(tuple(variables), data.schema.format, **study)
    origin = order if masked.origin is None else masked.origin[order]
    released, ids = Microdata(schema, columns, paired=masked.paired), schema.of_role(*RENUMBERED_ROLES)
    return Prepared(released, origin, masked_names(data, method, masked), ids, codes)


def renumber_ids(variable: Variable, column: Column, rng: Generator) -> tuple[Variable, Column]:
    """Renumber the ids of a column as a random permutation of 1, 2, ...; equal ids stay equal, missing ones missing."""
    variable = replace(variable, values=())
    if column.levels is None:
        values = column.values.copy()
        known = ~np.isnan(values)
        distinct, codes = np.unique(values[known], return_inverse=True)
        values[known] = rng.permutation(_free_numbers(len(distinct), variable))[codes]
        return variable, Column(values, None, column.reasons)
    missing = column.levels.is_null().to_numpy()
    used = np.unique(column.values[~missing[column.values]])
    new_code = np.zeros(len(missing), dtype=np.int64)
    new_code[used] = rng.permutation(len(used))
    new_code[missing] = len(used) + np.arange(int(missing.sum()))
    levels = _numbers_in(column.levels.dtype, _free_numbers(len(used), variable)).alias(variable.name)
    levels = levels.extend_constant(None, int(missing.sum()))
    storage = levels.dtype.base_type().__name__
    codes = new_code[column.values].astype(smallest_unsigned(len(levels)))
    return replace(variable, storage=storage), Column(codes, levels)


def _free_numbers(count: int, variable: Variable) -> Array:
    """Return the first `count` whole numbers from 1 that are no user-missing code."""
    numbers = np.arange(1, count + 1)
    for low, high in _missing_intervals(variable):
        inside = numbers[numbers >= low]
        if np.isfinite(high) and len(inside) and inside[0] <= high:
            numbers = np.where(numbers >= low, numbers + int(np.floor(high) - inside[0]) + 1, numbers)
    return numbers


def _numbers_in(dtype: pl.DataType, numbers: Array) -> pl.Series:
    """Return ids in the type of the original column, or in a wider one where they do not fit."""
    plain = pl.Series(numbers)
    if not (dtype.is_float() or dtype.is_integer()):
        return plain.cast(pl.String)
    fitting = plain.cast(dtype, strict=False)
    return plain if fitting.null_count() else fitting
