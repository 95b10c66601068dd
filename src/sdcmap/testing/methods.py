"""The laws of methods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from sdcmap.core import Column, Method, Microdata
from sdcmap.errors import ContractBroken
from sdcmap.study.plan import Candidate
from sdcmap.testing import laws


# ---- methods --------------------------------------------------------------------------------------------------
def check_method(method: Method, data: Microdata, *, may_refuse: bool = False) -> bool:
    """Raise LawBroken with every law of masking that `method` violates on `data`.

    The laws: it survives pickle and TOML; it has a title; the same candidate gives the same bytes, another replicate
    other bytes, together or one by one; it does not change the input, other columns, missing values (where `missing` is
    "kept") or numpy's global random state; `origin` records a changed row order; every code has a category; zero strength
    (`at_zero`) is the identity; one row, constant columns and missing values work, or raise Infeasible, Undefined or
    SchemaError. A method that refuses `data` violates a law too, because nothing was tested; with `may_refuse`, for
    random files, it does not. Returns whether it could be applied.
    """
    broken = [*laws.value_laws(method, Method), *_name_laws(method)]
    numbered = laws.with_row_number(laws.copy_writable(data))
    before = laws.fingerprint(numbered)
    state = np.random.get_state()  # noqa: NPY002 - this is what must not be used
    refusal = ""
    try:
        broken += _draw_laws(method, numbered, [laws.make_draw(method, numbered, replicate) for replicate in (0, 0, 1)])
    except laws.OWN_ERRORS as reason:
        refusal = str(reason)
    except ContractBroken as problem:
        raise laws.LawBroken(method.text, [*broken, str(problem)]) from problem
    except Exception as error:
        raise laws.LawBroken(method.text, [*broken, f"It raises {type(error).__name__} on good data."]) from error
    if refusal and not may_refuse:
        nothing = f"It cannot be applied to the data, so nothing was tested: {refusal}"
        raise laws.LawBroken(method.text, [*broken, nothing])
    if laws.fingerprint(numbered) != before:
        broken.append("It changes its input.")
    if not all(map(np.array_equal, np.random.get_state(), state)):  # noqa: NPY002
        broken.append("It draws from numpy's global random state.")
    broken += laws.edge_laws(data, lambda edge: _mask_laws(method, edge, laws.make_draw(method, edge, 0)))
    if broken:
        raise laws.LawBroken(method.text, broken)
    return not refusal


def _draw_laws(method: Method, data: Microdata, draws: Sequence[Microdata]) -> Iterator[str]:
    """Yield violations in three draws of a method: the same candidate twice, and another replicate."""
    first, again, other = draws
    yield from _mask_laws(method, data, first)
    if method.can_mask_batch:
        together = method.apply_batch(data, [laws.draw_stream(method, replicate) for replicate in (0, 1)])
        if [laws.fingerprint(together.file(index)) for index in (0, 1)] != [*map(laws.fingerprint, (first, other))]:
            yield "Several draws made together (`mask_batch`) differ from draws made one by one."
    if laws.fingerprint(first) != laws.fingerprint(again):
        yield "The same candidate gives other bytes: it draws from something else than its rng."
    # two draws may agree when the method changes nothing or happens to draw nothing, so these cases are excluded
    moved = laws.fingerprint(first) != laws.fingerprint(data)
    if method.random and moved and laws.fingerprint(first) == laws.fingerprint(other) and _draws_nothing(method, data):
        yield "Another replicate gives the same bytes: it ignores its rng."


def _name_laws(method: Method) -> Iterator[str]:
    for words in (method.title, method.action):
        if not words.strip() or not words.isprintable() or words == method.text:
            yield "It has no title: one printable line that differs from its text."


def _draws_nothing(method: Method, data: Microdata) -> bool:
    """Return whether masking leaves the generator unchanged; two draws of a narrow rank window may agree by chance."""
    if method.steps != (method,):
        return all(_draws_nothing(step, data) for step in method.steps)
    rng = laws.rng_of(0)
    before = str(rng.bit_generator.state)
    try:
        method.mask(data, rng)
    except laws.OWN_ERRORS:  # a step of a chain that needs the result of the step before
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
            if not same and name == laws.ROW_NUMBER:
                yield "It changes the row order without recording it in origin."
            elif not same:
                yield f"It changes {name!r}, which it does not mask."
    for name in method.masks(data):
        column = masked.column(name)
        if column.levels is not None and len(column.values) and int(column.values.max()) >= len(column.levels):
            yield f"It gives {name!r} a code without a category."
        if method.missing == "kept" and not np.array_equal(data.missing(name)[rows], masked.missing(name)):
            yield f"It changes which values of {name!r} are missing."
    # the parameters at which a method claims to change nothing
    if method.at_zero is not None:
        none = replace(method, **method.at_zero)
        unchanged = none.apply(data, Candidate(none).stream(1))
        if laws.fingerprint(unchanged) != laws.fingerprint(data):
            yield "Its zero strength is not the identity."


def _same(first: Column, second: Column) -> bool:
    levels = (first.levels is None) == (second.levels is None)
    if levels and first.levels is not None and second.levels is not None:
        levels = first.levels.equals(second.levels)
    return levels and np.array_equal(first.values, second.values, equal_nan=first.levels is None)
