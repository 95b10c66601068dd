"""The laws of methods."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from sdcmap.core.method import Method
from sdcmap.data.microdata import Column, Microdata
from sdcmap.study.plan import Candidate
from sdcmap.testing.laws import (
    OWN_ERRORS,
    ROW_NUMBER,
    LawBroken,
    edge_laws,
    fingerprint,
    made,
    rng_of,
    value_laws,
    with_row_number,
    writable,
)  # fmt: skip


# ---- methods --------------------------------------------------------------------------------------------------
def check_method(method: Method, data: Microdata) -> None:
    """Raise LawBroken with every law of masking that `method` breaks on `data`.

    The laws: it pickles and survives TOML; it has a name in words; the same candidate gives the same bytes, another
    replicate other bytes; the input, other columns, missing values (where `missing` is "kept") and numpy's global random
    state stay untouched; a changed row order is told by `origin`; codes have a category; zero strength (`at_zero`) is the
    identity; one row, constant columns and missing values work, or raise Infeasible, Undefined or SchemaError.
    """
    laws = [*value_laws(method, Method), *_name_laws(method)]
    numbered = with_row_number(writable(data))
    before = fingerprint(numbered)
    state = str(np.random.get_state())  # noqa: NPY002 - this is what must not be used
    make = partial(made, method, numbered)
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
    laws += edge_laws(data, lambda edge: _mask_laws(method, edge, made(method, edge, 0)))
    if laws:
        raise LawBroken(method.text, laws)


def _name_laws(method: Method) -> Iterator[str]:
    for words in (method.words, method.deed):
        if not words.strip() or not words.isprintable() or words == method.text:
            yield "It has no name in words: one printable line, other than its text."


def _draws_nothing(method: Method, data: Microdata) -> bool:
    """Whether masking leaves the generator as it was; two draws of a narrow rank window may agree by chance."""
    if method.steps != (method,):
        return all(_draws_nothing(step, data) for step in method.steps)
    rng = rng_of(0)
    before = str(rng.bit_generator.state)
    try:
        method.mask(data, rng)
    except OWN_ERRORS:  # a step that works on what the step before has left
        return False
    return str(rng.bit_generator.state) == before


def _mask_laws(method: Method, data: Microdata, masked: Microdata) -> Iterator[str]:
    rows = np.arange(len(data)) if masked.origin is None else masked.origin
    if masked.origin is None and len(masked) != len(data):
        yield "It changes the number of rows without an origin."
        return
    masks = (*method.masks(data), data.weight) if method.reweights else method.masks(data)
    for name in data.names:
        if name not in masks and name in masked.names:
            same = _same(data.column(name).take(rows), masked.column(name))
            if not same and name == ROW_NUMBER:
                yield "It changes the row order without saying so in origin."
            elif not same:
                yield f"It changes {name!r}, which it does not mask."
    for name in method.masks(data):
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
