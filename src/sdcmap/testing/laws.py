"""What the laws of methods and of measures share: test files, and the laws of a value."""

from __future__ import annotations

import pickle
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from sdcmap.core import Array, Column, Infeasible, Method, Microdata, SchemaError, Stream, Undefined
from sdcmap.core.value import Value, decode, parse, type_name
from sdcmap.data.schema import Schema, Variable
from sdcmap.study.plan import Candidate

OWN_ERRORS = (Infeasible, Undefined, SchemaError)
ROW_NUMBER = "row number of sdcmap.testing"


class LawBroken(AssertionError):  # noqa: N818
    """A method or measure violates one or more laws; `laws` contains one sentence for each."""

    def __init__(self, what: str, laws: Sequence[str]) -> None:
        self.laws = tuple(laws)
        super().__init__(f"{what} breaks {len(self.laws)} law(s): " + " ".join(self.laws))


# ---- what both share ------------------------------------------------------------------------------------------
def value_laws(value: Value, base: type[Value]) -> Iterator[str]:
    """Yield violations of the laws of a value: it survives pickle, TOML and its own text."""
    import tomli_w

    try:
        if pickle.loads(pickle.dumps(value)) != value:
            yield "It comes back from pickle as another value."
    except Exception as error:
        yield f"It cannot be pickled ({type(error).__name__}), so no worker process can run it."
    try:
        if decode(tomllib.loads(tomli_w.dumps(value.spec())), base) != value:
            yield "It comes back from TOML as another value."
        # `parse` reads names only, so that a class of another package ("module:Class") has no text to test
        ours = type_name(type(value)) == type(value).__name__
        if ours and parse(value.text, base) != value:
            yield "It comes back from its own text as another value."
    except Exception as error:
        yield f"It cannot be written to TOML and read back ({type(error).__name__})."


def fingerprint(data: Microdata) -> str:
    """Return a digest of every value, without using the cache of the file."""
    return Microdata(data.schema, data.columns, None, data.base, data.changes).digest


def permute_rows(data: Microdata, order: Array) -> Microdata:
    """Return the same file with its rows in another order, which it does not record."""
    moved = data.take(order)
    return Microdata(moved.schema, moved.columns)


def copy_writable(data: Microdata) -> Microdata:
    """Return a writable copy of the file, so that code that writes to its input is caught."""
    columns = {n: replace(data.column(n), values=data.column(n).values.copy()) for n in data.names}
    return Microdata(data.schema, columns)


def with_row_number(data: Microdata) -> Microdata:
    """Return the same file with one more column that nothing masks."""
    schema = Schema((*data.schema.variables, Variable(ROW_NUMBER, "numeric", "other")), data.schema.format)
    return Microdata(schema, {**data.columns, ROW_NUMBER: Column(np.arange(float(len(data))))})


def edge_cases(data: Microdata) -> Iterator[tuple[str, Microdata]]:
    """Yield difficult files with the same columns: one row, two equal rows, constant columns, missing values."""
    yield "one row", permute_rows(data, np.array([0]))
    yield "two equal rows", permute_rows(data, np.array([0, 0]))
    yield "constant columns", permute_rows(data, np.zeros(len(data), dtype=np.int64))
    plain = [v.name for v in data.schema.variables if v.role not in ("weight", "household", "identifier")]
    some = np.arange(len(data)) % 3 == 0
    for words, gone in (("missing values", some), ("all values missing", np.ones(len(data), dtype=bool))):
        columns = dict(data.columns)
        for name in plain:
            columns[name] = with_missing(data.column(name), gone)
        yield words, Microdata(data.schema, columns)


def with_missing(column: Column, gone: Array) -> Column:
    """Return the column with these values made missing."""
    if column.levels is None:
        return Column(np.where(gone, np.nan, column.values), None, column.reasons)
    levels = column.levels if column.levels.null_count() else pl.concat([column.levels, column.levels.clear(1)])
    code = levels.to_list().index(None)
    return Column(np.where(gone, code, column.values).astype(np.uint32), levels)


def edge_laws(data: Microdata, run: Callable[[Microdata], Iterator[str]]) -> Iterator[str]:
    """Yield violations on the edge cases: unexpected errors, changed input, and what `run` finds."""
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


def make_draw(method: Method, data: Microdata, replicate: int) -> Microdata:
    """Return one draw of a method, with a fixed seed."""
    return method.apply(data, draw_stream(method, replicate))


def draw_stream(method: Method, replicate: int) -> Stream:
    """Return the random stream of one draw, with a fixed seed."""
    return Candidate(method, replicate).stream(2**200 + 1)


_ANY_METHOD = Method()


def rng_of(number: int) -> np.random.Generator:
    return Candidate(_ANY_METHOD, number).rng(1)
