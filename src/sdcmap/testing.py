"""The laws every method and measure obeys; authors of plug-ins run them too.

    from sdcmap import testing
    testing.check_method(MyMethod(on="income"), data)
    testing.check_measure(MyMeasure(), data)

Each check collects every law that is broken and raises LawBroken with all of them.
"""

from __future__ import annotations

import math
import pickle
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from sdcmap.errors import Infeasible, SchemaError, Undefined
from sdcmap.measure import Estimate, Measure
from sdcmap.method import Method
from sdcmap.microdata import Array, Column, Microdata
from sdcmap.plan import Candidate
from sdcmap.schema import Schema, Variable
from sdcmap.value import Value, decode, parse

OWN_ERRORS = (Infeasible, Undefined, SchemaError)
ROW_NUMBER = "row number of sdcmap.testing"


class LawBroken(AssertionError):  # noqa: N818
    """A method or measure breaks one or more laws; `laws` holds a sentence each."""

    def __init__(self, what: str, laws: Sequence[str]) -> None:
        self.laws = tuple(laws)
        super().__init__(f"{what} breaks {len(self.laws)} law(s): " + " ".join(self.laws))


# ---- what both share ------------------------------------------------------------------------------------------
def _value_laws(value: Value, base: type[Value]) -> Iterator[str]:
    import tomli_w

    try:
        if pickle.loads(pickle.dumps(value)) != value:
            yield "It comes back from pickle as another value."
    except Exception as error:
        yield f"It cannot be pickled ({type(error).__name__}), so no worker process can run it."
    try:
        if decode(tomllib.loads(tomli_w.dumps(value.spec())), base) != value:
            yield "It comes back from TOML as another value."
        if ":" not in value.text.partition("(")[0] and parse(value.text, base) != value:
            yield "It comes back from its own text as another value."
    except Exception as error:
        yield f"It cannot be written to TOML and read back ({type(error).__name__})."


def fingerprint(data: Microdata) -> str:
    """A digest of every value, computed anew."""
    return Microdata(data.schema, data.columns, None, data.base, data.changes).digest


def permuted(data: Microdata, order: Array) -> Microdata:
    """The same file with its rows in another order, and no memory of it."""
    moved = data.take(order)
    return Microdata(moved.schema, moved.columns)


def writable(data: Microdata) -> Microdata:
    """The same file in memory of its own that can be written to, so that whoever does so is caught."""
    columns = {n: replace(data.column(n), values=data.column(n).values.copy()) for n in data.names}
    return Microdata(data.schema, columns)


def with_row_number(data: Microdata) -> Microdata:
    """The same file with one more column that nothing masks."""
    schema = Schema((*data.schema.variables, Variable(ROW_NUMBER, "numeric", "other")), data.schema.format)
    return Microdata(schema, {**data.columns, ROW_NUMBER: Column(np.arange(float(len(data))))})


def edge_cases(data: Microdata) -> Iterator[tuple[str, Microdata]]:
    """Files with the same columns that go wrong easily: one row, two equal rows, constant columns, missing values."""
    yield "one row", permuted(data, np.array([0]))
    yield "two equal rows", permuted(data, np.array([0, 0]))
    yield "constant columns", permuted(data, np.zeros(len(data), dtype=np.int64))
    plain = [v.name for v in data.schema.variables if v.role not in ("weight", "household", "identifier")]
    some = np.arange(len(data)) % 3 == 0
    for words, gone in (("missing values", some), ("all values missing", np.ones(len(data), dtype=bool))):
        columns = dict(data.columns)
        for name in plain:
            columns[name] = with_missing(data.column(name), gone)
        yield words, Microdata(data.schema, columns)


def with_missing(column: Column, gone: Array) -> Column:
    """The column with these values made missing."""
    if column.levels is None:
        return Column(np.where(gone, np.nan, column.values), None, column.reasons)
    levels = column.levels
    null = levels.is_null().arg_true()
    if len(null) == 0:
        levels = levels.clone().extend(levels.clear(1))
    code = null[0] if len(null) else len(levels) - 1
    return Column(np.where(gone, code, column.values).astype(np.uint32), levels)


# ---- methods --------------------------------------------------------------------------------------------------
def check_method(method: Method, data: Microdata) -> None:
    """Raise LawBroken with every law of masking that `method` breaks on `data`.

    The laws: it pickles and survives TOML; the same candidate gives the same bytes, another replicate other bytes; the
    input, other columns, missing values (where `missing` is "kept") and numpy's global random state stay untouched; a
    changed row order is told by `origin`; codes have a category; zero strength (`at_zero`) is the identity; one row,
    constant columns and missing values work, or raise Infeasible, Undefined or SchemaError.
    """
    laws = list(_value_laws(method, Method))
    numbered = with_row_number(writable(data))
    before = fingerprint(numbered)
    state = str(np.random.get_state())  # noqa: NPY002 - this is what must not be used
    make = partial(_made, method, numbered)
    try:
        first, again, other = make(0), make(0), make(1)
    except OWN_ERRORS:
        first = None
    except Exception as error:
        raise LawBroken(method.text, [*laws, f"It raises {type(error).__name__} on good data."]) from error
    if first is not None:
        laws += _mask_laws(method, numbered, first)
        if fingerprint(first) != fingerprint(again):
            laws.append("The same candidate gives other bytes: it draws from something else than its rng.")
        moved = fingerprint(first) != before
        if method.random and moved and fingerprint(first) == fingerprint(other) and _draws_nothing(method, numbered):
            laws.append("Another replicate gives the same bytes: it ignores its rng.")
    if fingerprint(numbered) != before:
        laws.append("It changes its input.")
    if str(np.random.get_state()) != state:  # noqa: NPY002
        laws.append("It draws from numpy's global random state.")
    laws += _edge_laws(data, lambda edge: _mask_laws(method, edge, _made(method, edge, 0)))
    if laws:
        raise LawBroken(method.text, laws)


def _made(method: Method, data: Microdata, replicate: int) -> Microdata:
    return method.apply(data, Candidate(method, replicate).stream(2**200 + 1))


def _draws_nothing(method: Method, data: Microdata) -> bool:
    """Whether masking leaves the generator as it was; two draws of a narrow rank window may agree by chance."""
    steps = getattr(method, "methods", None)
    if steps is not None:
        return all(_draws_nothing(step, data) for step in steps)
    rng = _rng(0)
    before = str(rng.bit_generator.state)
    method.mask(data, rng)
    return str(rng.bit_generator.state) == before


def _mask_laws(method: Method, data: Microdata, masked: Microdata) -> Iterator[str]:
    rows = np.arange(len(data)) if masked.origin is None else masked.origin
    if masked.origin is None and len(masked) != len(data):
        yield "It changes the number of rows without an origin."
        return
    for name in data.names:
        if name not in method.masked_names and name in masked.names:
            same = _same(data.column(name).take(rows), masked.column(name))
            if not same and name == ROW_NUMBER:
                yield "It changes the row order without saying so in origin."
            elif not same:
                yield f"It changes {name!r}, which it does not mask."
    for name in method.masked_names:
        column = masked.column(name)
        if column.levels is not None and len(column.values) and int(column.values.max()) >= len(column.levels):
            yield f"It gives {name!r} a code without a category."
        if method.missing == "kept" and not np.array_equal(data.missing(name)[rows], masked.missing(name)):
            yield f"It changes which values of {name!r} are missing."
    if method.at_zero is not None:
        none = replace(method, **method.at_zero)
        unchanged = none.apply(data, Candidate(none).stream(1))
        if fingerprint(unchanged) != fingerprint(data):
            yield "Its zero strength is not the identity."


def _same(first: Column, second: Column) -> bool:
    levels = (first.levels is None) == (second.levels is None)
    if levels and first.levels is not None and second.levels is not None:
        levels = first.levels.equals(second.levels)
    return levels and np.array_equal(first.values, second.values, equal_nan=first.levels is None)


def _edge_laws(data: Microdata, run: Callable[[Microdata], Iterator[str]]) -> Iterator[str]:
    for words, edge in edge_cases(data):
        before = fingerprint(edge)
        try:
            for law in run(edge):
                yield f"With {words}: {law}"
        except OWN_ERRORS:
            pass
        except Exception as error:
            yield f"With {words} it raises {type(error).__name__} and not one of our errors."
        if fingerprint(edge) != before:
            yield f"With {words} it changes its input."


# ---- measures -------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Files:
    original: Microdata
    masked: Microdata


def check_measure(measure: Measure, data: Microdata, methods: Sequence[Method] = ()) -> None:
    """Raise LawBroken with every law of measuring that `measure` breaks on `data`, masked by each of `methods`.

    The laws: it pickles and survives TOML; the identity has loss 0; values lie in the bounds; the same rng gives the same
    value; a permutation of the rows of both files changes nothing (a sampled measure: within 5 standard errors); files
    stay untouched; pooling one estimate changes nothing; the record-level form has one number a record and moves with it;
    one row, constant columns and missing values work, or raise Undefined or SchemaError.
    """
    laws = list(_value_laws(measure, Measure))
    data = writable(data)
    same = data.change(None, {})
    try:
        identity = measure.score(data, same, _rng(0))
        if measure.axis == "utility" and measure.direction == "lower" and identity.value != 0:
            laws.append("The identity has a loss that is not 0.")
    except OWN_ERRORS:
        pass
    except Exception as error:
        raise LawBroken(measure.text, [*laws, f"It raises {type(error).__name__} on good data."]) from error
    for masked in [same, *_masked_by(methods, data)]:
        laws += _score_laws(measure, _Files(data, masked))
    laws += _edge_laws(data, lambda edge: _bounds_law(measure, measure.score(edge, edge.change(None, {}), _rng(0))))
    if laws:
        raise LawBroken(measure.text, list(dict.fromkeys(laws)))


def _masked_by(methods: Sequence[Method], data: Microdata) -> Iterator[Microdata]:
    for method in methods:
        try:
            yield _made(method, data, 0)
        except OWN_ERRORS:
            continue


def _rng(number: int) -> np.random.Generator:
    return Candidate(_NOTHING, number).rng(1)


_NOTHING = Method()


def _score_laws(measure: Measure, files: _Files) -> Iterator[str]:
    before = fingerprint(files.original), fingerprint(files.masked)
    try:
        found = measure.score(files.original, files.masked, _rng(0))
    except OWN_ERRORS:
        return
    yield from _bounds_law(measure, found)
    if not _close(measure.score(files.original, files.masked, _rng(0)).value, found.value, 0):
        yield "The same rng gives another value."
    order = np.random.default_rng(5).permutation(len(files.original))
    moved = _Files(permuted(files.original, order), permuted(files.masked, order))
    shifted = measure.score(moved.original, moved.masked, _rng(1 if measure.sampled else 0))
    slack = 5 * math.hypot(found.se or 0, shifted.se or 0) if measure.sampled else 0.0
    if not _close(shifted.value, found.value, slack):
        yield "A permutation of the rows of both files changes the value."
    if measure.pool([found]).value != found.value:
        yield "Pooling one estimate changes it."
    yield from _bounds_law(measure, measure.pool([found, found, found]))
    yield from _records_laws(measure, files, moved, order)
    if (fingerprint(files.original), fingerprint(files.masked)) != before:
        yield "It changes the files it measures."


def _records_laws(measure: Measure, files: _Files, moved: _Files, order: Array) -> Iterator[str]:
    try:
        each = measure.records(files.original, files.masked)
    except Undefined:
        return
    if each.shape != (len(files.masked),):
        yield "Its record-level form has not one number a record."
    elif not np.allclose(measure.records(moved.original, moved.masked), each[order], equal_nan=True):
        yield "Its record-level form does not move with the records."


def _bounds_law(measure: Measure, found: Estimate) -> Iterator[str]:
    low, high = measure.bounds
    outside = (low is not None and found.value < low - 1e-12) or (high is not None and found.value > high + 1e-12)
    if outside or math.isnan(found.value):
        yield "Its value lies outside its bounds."
    if found.se is not None and not found.se >= 0:
        yield "Its standard error is not a number of at least 0."


def _close(first: float, second: float, slack: float) -> bool:
    return first == second or math.isclose(first, second, rel_tol=1e-9, abs_tol=max(slack, 1e-12))
