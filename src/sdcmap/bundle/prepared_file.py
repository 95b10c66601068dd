"""The masked file made fit to leave: identifiers dropped, numbers rounded, ids renumbered, rows shuffled, labels rebuilt.

Every random number comes from the candidate's own stream under a label of its own, so the same candidate is the same
file whenever it is written. Rows are shuffled one by one, households too: only the renumbered household id says who
belongs together. The file order of an original often follows the sampling, so no part of it is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np
import polars as pl

from sdcmap.core import Array, Generator, Method, PlanError, Stream, did_you_mean
from sdcmap.data.microdata import Column, Microdata, smallest_unsigned
from sdcmap.data.schema import NEVER_RELEASED, Schema, Variable
from sdcmap.files.formats import FORMATS
from sdcmap.files.stat import drop_unused, format_code
from sdcmap.kernels.masking.granularity import granularity, in_decimals, in_step_with
from sdcmap.methods import Derive
from sdcmap.study.jobs import UNUSED_RNG

# What is missing in a release is told apart: suppressed values get a code of their own, and each code its format's
# form.
#
# Numbers get -97 (or the first such number that is free), texts "*", numbers of Stata and SAS a letter, and there codes
# that are numbers become letters too, with the number as their words. A format that cannot hold a code (dates in
# Parquet, a fourth code in SPSS) holds a plain missing value, and the codebook names no code. Measures count a
# suppressed value as missing, as they did in the study.


WORDS = "suppressed"
NUMBERS = (-97, -98, -99, -997, -998, -999, -9997, -9998, -9999)
TEXTS = ("*", "**", "***")
LETTERS = "stuvwxyzrqponmlkjihgfedcba"
MOST_IN_SPSS = 3  # codes of one variable

Code = float | str


def suppressed_cells(data: Microdata, method: Method, masked: Microdata, name: str) -> Array:
    """Where a method that blanks values left none, although the original has one. Where missing values are drawn none is
    suppressed: two kinds of missing values would tell who had none."""
    blanks = any(step.missing == "added" for step in method.steps)
    if not blanks or not masked.paired or name in _drawn(data, method):
        return np.zeros(len(masked), dtype=bool)
    before = data.missing(name)
    return masked.missing(name) & ~(before if masked.origin is None else before[masked.origin])


def _drawn(data: Microdata, method: Method) -> set[str]:
    """The columns of which a step draws also whether they are missing, and what is computed of these."""
    names = {name for step in method.steps if step.missing == "category" for name in step.masks(data)}
    for step in method.steps:
        if isinstance(step, Derive) and not names.isdisjoint(step.arithmetic.names):
            names.add(step.on)
    return names


def marked(variable: Variable, column: Column, gone: Array, form: str) -> tuple[Variable, Column, Code | None]:
    """The column with a code of its own in the rows `gone`, and that code; None where the format can hold none."""
    code = _free_code(variable, column, form) if gone.any() else None
    if code is None:
        return variable, column, None
    reasons, missing = (*variable.reasons, code), (*variable.missing, code)
    named = replace(variable, reasons=reasons, missing=missing, values=(*variable.values, (code, WORDS)))
    if column.levels is None:
        before = np.zeros(len(gone), dtype=np.int64) if column.reasons is None else column.reasons
        held = np.where(gone, len(reasons), before)
        return named, Column(column.values, None, held.astype(smallest_unsigned(1 + len(reasons)))), code
    valid = len(column.levels) - column.levels.null_count()
    levels = column.levels.head(valid).extend_constant(None, 1 + len(reasons))
    values = np.where(gone, valid + len(reasons), column.values)
    return named, Column(values.astype(smallest_unsigned(len(levels))), levels), code


def lettered(variable: Variable, form: str) -> Variable:
    """Codes that are numbers as the letters by which Stata and SAS tell missing values; the number stays as their words."""
    if form not in ("dta", "xpt") or all(isinstance(code, str) for code in variable.reasons):
        return variable
    taken = {str(code).lower() for code in variable.reasons}
    free = (letter for letter in reversed(_letters(form)) if letter.lower() not in taken)
    renamed = {code: code if isinstance(code, str) else next(free) for code in variable.reasons}
    words = {code: "" if isinstance(code, str) else f"{code:g}" for code in variable.reasons} | dict(variable.values)
    labels = {renamed.get(code, code): label for code, label in words.items() if label}
    codes = tuple(renamed.values())
    return replace(variable, reasons=codes, missing=codes, values=tuple(labels.items()))


def _letters(form: str) -> str:
    return LETTERS.upper() if form == "xpt" else LETTERS


def _free_code(variable: Variable, column: Column, form: str) -> Code | None:
    """The first code that is no value of the column, and that the format can hold in it."""
    if form == "sav" and len(variable.missing) >= MOST_IN_SPSS:
        return None
    dtype = pl.Float64() if column.levels is None else column.levels.dtype
    choices: Sequence[Code] = NUMBERS if dtype.is_numeric() else TEXTS
    choices = _letters(form) if form in ("dta", "xpt") else choices
    values = pl.Series(column.values).unique() if column.levels is None else column.levels.drop_nulls()
    met = {*values.to_list(), *variable.missing, *(str(code).lower() for code in variable.missing)}
    return next((code for code in choices if code not in met and format_code(form, dtype, code) is not None), None)


# Numbers as the original would have written them: its granularity, its type, none of its user-missing codes.
#
# Decimals that the original never had would tell masked cells from unmasked ones.


WHOLE = 2.0**53  # beyond this a float64 no longer tells neighboring whole numbers apart


def like_the_original(masked: Array, original: Array, variable: Variable) -> Array:
    """Masked numbers rounded to the original's granularity, inside its type and off its user-missing codes."""
    k = granularity(original, variable.storage)
    rounded = _inside_type(masked if k is None else in_decimals(masked, k), variable.storage, k)
    rounded = _off_missing_codes(rounded, masked, variable, None if k is None else 10.0**k)
    return rounded.astype(np.float32).astype(np.float64) if variable.storage == "Float32" else rounded


def _inside_type(values: Array, storage: str, k: int | None) -> Array:
    if not storage.startswith(("Int", "UInt")):
        return values
    limits = np.iinfo(storage.lower())
    step = 10.0 ** max(k or 0, 0)
    low, high = max(float(limits.min), -WHOLE), min(float(limits.max), WHOLE)
    return np.clip(values, np.ceil(low / step) * step, np.floor(high / step) * step)


def _off_missing_codes(values: Array, before: Array, variable: Variable, step: float | None) -> Array:
    """A masked number that came to lie on a user-missing code is moved to the nearest number beside the codes."""
    for low, high in _merged(variable, step or 0.0):
        hit = (values >= low) & (values <= high)
        if hit.any():
            below = low - step if step else np.nextafter(low, -np.inf)
            above = high + step if step else np.nextafter(high, np.inf)
            upwards = np.isinf(low) | (~np.isinf(high) & (before - low > high - before))
            values = np.where(hit, np.where(upwards, above, below), values)
    return values


def _missing_intervals(variable: Variable) -> list[tuple[float, float]]:
    """The user-missing numbers as intervals, rising."""
    ends = [code if isinstance(code, tuple) else (code, code) for code in variable.missing]
    return sorted((float(a), float(b)) for a, b in ends if not isinstance(a, str) and not isinstance(b, str))


def _merged(variable: Variable, step: float) -> list[tuple[float, float]]:
    """The user-missing numbers as intervals, those one step apart joined."""
    merged: list[tuple[float, float]] = []
    for low, high in _missing_intervals(variable):
        if merged and low <= merged[-1][1] + step:
            low, before = merged.pop()
            high = max(high, before)
        merged.append((low, high))
    return merged


RENUMBERED_ROLES = ("household", "stratum")


@dataclass(frozen=True)
class Prepared:
    """The file to write. `origin`, the row of the original that each row came from, stays in memory."""

    data: Microdata
    origin: Array
    masked: tuple[str, ...]
    renumbered: tuple[str, ...]
    suppressed: Mapping[str, Code]  # the code of suppressed values in each column that has some


def in_format(data: Microdata, form: str) -> Microdata:
    """The same data, to be released in another format; how another program shows its numbers goes. "": in their own."""
    writable = [known.name for known in FORMATS if known.write is not None]
    if form not in ("", *writable):
        names = f"{', '.join(writable[:-1])} or {writable[-1]}"
        raise PlanError(f"a release is written as {names}.{did_you_mean(form, writable)}")
    if form in ("", data.schema.format):
        return data
    variables = tuple(replace(variable, format="") for variable in data.schema.variables)
    return replace(data, schema=replace(data.schema, variables=variables, format=form))


def masked_names(data: Microdata, method: Method, masked: Microdata) -> tuple[str, ...]:
    """The released variables that the method may have changed, in file order."""
    touched = {*method.masks(data), *masked.changes} - ({data.weight} if method.reweights else set())
    return tuple(name for name in data.names if name in touched and name not in data.unreleased_columns)


def rounded(data: Microdata, masked: Microdata) -> Microdata:
    """The masked file with its changed numbers at the original's granularity, and on the grid of those beside them that did
    not change; adjusted weights stay as they are. Where rows were taken, any column may have changed before."""
    changed = masked.changes if masked.base is data else set(masked.names)
    amounts = [
        name for name in data.names if name in changed and name != data.weight
        and data.column(name).levels is None and masked.column(name).levels is None
    ]  # fmt: skip
    return masked.change(None, {name: _as_original(data, masked, name) for name in amounts})


def _as_original(data: Microdata, masked: Microdata, name: str) -> Array:
    """The masked numbers of a column as the original would have written them; one that did not change is as it is."""
    values, original = masked.numbers(name), data.numbers(name)
    if not masked.paired:
        return like_the_original(values, original, data.schema[name])
    own = original if masked.origin is None else original[masked.origin]
    whole = like_the_original(in_step_with(values, own), original, data.schema[name])
    return np.where(values == own, values, whole)


def as_written(data: Microdata, method: Method, masked: Microdata) -> Microdata:
    """The masked file with its numbers as they will stand in the release: rounded, and what its last steps derive computed
    from the rounded ones, so that a reader who computes it finds the same."""
    whole = rounded(data, masked)
    derived = [*takewhile(lambda step: isinstance(step, Derive), reversed(method.steps))]
    for step in reversed(derived):
        whole = rounded(data, step.mask(whole, UNUSED_RNG))
    return whole


def prepare_candidate(data: Microdata, method: Method, stream: Stream) -> Prepared:
    """The file that a method makes of the data with this stream, as it will be written."""
    return prepare(data, method, as_written(data, method, method.apply(data, stream)), stream)


def prepare(data: Microdata, method: Method, masked: Microdata, stream: Stream) -> Prepared:
    """The file as it will be written; `masked` is the candidate, rounded."""
    order = stream.child("release rows").rng().permutation(len(masked))
    variables, columns = [], {}
    codes: dict[str, Code] = {}
    for variable in masked.schema.variables:
        if variable.role in NEVER_RELEASED:
            continue
        gone = suppressed_cells(data, method, masked, variable.name)[order]
        variable = lettered(variable, data.schema.format)
        variable, column, code = marked(variable, masked.column(variable.name).take(order), gone, data.schema.format)
        codes |= {} if code is None else {variable.name: code}
        if variable.role in RENUMBERED_ROLES:
            rng = stream.child(f"release {variable.role} {variable.name}").rng()
            variable, column = renumbered(variable, column, rng)
        variable, columns[variable.name] = drop_unused(variable, column)
        variables.append(variable)
    schema = Schema(tuple(variables), data.schema.format, title=data.schema.title, universe=data.schema.universe)
    origin = order if masked.origin is None else masked.origin[order]
    released, ids = Microdata(schema, columns, paired=masked.paired), schema.of_role(*RENUMBERED_ROLES)
    return Prepared(released, origin, masked_names(data, method, masked), ids, codes)


def renumbered(variable: Variable, column: Column, rng: Generator) -> tuple[Variable, Column]:
    """The ids of a column as a random permutation of 1, 2, ...: equal ids stay equal, missing ids stay missing."""
    variable = replace(variable, values=())
    if column.levels is None:
        values = column.values.copy()
        known = ~np.isnan(values)
        distinct, codes = np.unique(values[known], return_inverse=True)
        values[known] = rng.permutation(_free_numbers(len(distinct), variable))[codes]
        return variable, Column(values, None, column.reasons)
    gone = column.levels.is_null().to_numpy()
    met = np.unique(column.values[~gone[column.values]])
    place = np.zeros(len(gone), dtype=np.int64)
    place[met] = rng.permutation(len(met))
    place[gone] = len(met) + np.arange(int(gone.sum()))
    levels = _numbers_in(column.levels.dtype, _free_numbers(len(met), variable)).alias(variable.name)
    levels = levels.extend_constant(None, int(gone.sum()))
    storage = levels.dtype.base_type().__name__
    codes = place[column.values].astype(smallest_unsigned(len(levels)))
    return replace(variable, storage=storage), Column(codes, levels)


def _free_numbers(count: int, variable: Variable) -> Array:
    """The first `count` whole numbers from 1 that are no user-missing code."""
    numbers = np.arange(1, count + 1)
    for low, high in _missing_intervals(variable):
        inside = numbers[numbers >= low]
        if np.isfinite(high) and len(inside) and inside[0] <= high:
            numbers = np.where(numbers >= low, numbers + int(np.floor(high) - inside[0]) + 1, numbers)
    return numbers


def _numbers_in(dtype: pl.DataType, numbers: Array) -> pl.Series:
    """Ids in the type the column came in, or in a wider one."""
    plain = pl.Series(numbers)
    if not (dtype.is_float() or dtype.is_integer()):
        return plain.cast(pl.String)
    fitting = plain.cast(dtype, strict=False)
    return plain if fitting.null_count() else fitting
