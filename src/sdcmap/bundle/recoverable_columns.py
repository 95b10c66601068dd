"""Masked columns that other released columns give back.

Exact relations are searched in the original, whatever its size: linear relations (a total and its parts), and columns whose
value determines the masked one (age and age group). Relations that hold for nearly all records are learned (`relations`).
The time is linear in the number of records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from sdcmap.bundle.checks import Check
from sdcmap.bundle.relations import numbers_of, relations
from sdcmap.core import Array, Microdata
from sdcmap.core.formatting import format_percent
from sdcmap.core.release_policy import ReleasePolicy
from sdcmap.data.schema import RENUMBERED_ROLES

MAX_RELATIVE_RESIDUAL = 1e-9  # of a linear relation that holds exactly, up to floating-point error
MIN_COEFFICIENT = 1e-6  # standardized; a column with a smaller one is not part of the relation
MIN_EXPECTED_DIFFERENCES = 20.0  # pairs that would differ if columns were independent; fewer may agree by chance


def check_recoverable(data: Microdata, released: Microdata, masked: Sequence[str], policy: ReleasePolicy) -> Check:
    """Check that the released columns do not give a masked one back; weaker relations are reported with their share.

    data : the original. released : the masked file in the row order of the original. masked : names of masked columns.
    """
    ids = data.schema.of_role(*RENUMBERED_ROLES)
    unmasked = [name for name in data.names if name not in (*masked, *data.unreleased_columns, *ids)]
    exact = dict([*_determining_columns(data, masked, unmasked), *_linear_relations(data, masked, unmasked)])
    learned = [relation for relation in relations(data, released, masked, ids) if relation.name not in exact]
    weaker = [f"{relation}." for relation in learned if not relation.is_recovered(policy)]
    recovered = [f"{name!r} is masked, but the unmasked {by} it." for name, by in exact.items()]
    recovered += [f"{relation}." for relation in learned if relation.is_recovered(policy)]
    if recovered:
        advice = "Mask these columns too, state how they are derived (`derive`), or drop them from the data."
        also = ["Also:", *weaker] if weaker else []
        return Check("recoverable", False, " ".join([*recovered, advice, *also]))
    share = format_percent(policy.recovered_share)
    passed = f"No other columns give back {share} or more of the changed values of a masked column."
    return Check("recoverable", True, " ".join([passed, *weaker]))


def _linear_relations(data: Microdata, masked: Sequence[str], unmasked: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield masked numbers that are exactly a + sum b_j x_j of unmasked ones, and those in words."""
    known = {name: numbers for name in unmasked if (numbers := numbers_of(data.column(name))) is not None}
    for name in masked:
        target = numbers_of(data.column(name))
        if target is not None and (parts := _exact_parts(target, known)):
            yield name, f"{' and '.join(map(repr, parts))} {'determines' if len(parts) == 1 else 'together determine'}"


def _exact_parts(target: Array, known: dict[str, Array]) -> list[str]:
    """Return the names of the columns of which `target` is an exact linear function; empty where there is none."""
    names = sorted(known, key=lambda name: int(np.isnan(known[name]).sum()))
    # Leave out the columns with most missing values until enough complete records remain for the regression.
    while names:
        x = np.column_stack([known[name] for name in names])
        complete = ~(np.isnan(x).any(axis=1) | np.isnan(target))
        if complete.sum() >= 2 * (len(names) + 1):
            break
        names.pop()
    else:
        return []
    x, y = _standardize(x[complete]), _standardize(target[complete])
    if not y.any() or not (np.isfinite(x).all() and np.isfinite(y).all()):
        return []  # constant, or too large to have a variance
    coefficients, *_ = np.linalg.lstsq(x, y, rcond=None)
    if np.linalg.norm(y - x @ coefficients) >= MAX_RELATIVE_RESIDUAL * np.linalg.norm(y):
        return []
    return [name for name, b in zip(names, coefficients, strict=True) if abs(b) > MIN_COEFFICIENT]


def _standardize(values: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):  # numbers too large to have a variance: the caller checks
        centered: Array = values - values.mean(axis=0)
        spread = np.sqrt((centered**2).mean(axis=0))
        return centered / np.where(spread > 0, spread, 1.0)


def _determining_columns(data: Microdata, masked: Sequence[str], unmasked: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield masked columns whose value is the same in all records with the same value of one unmasked column.

    Only one record of each person or household is used: that its records share both columns does not mean that one
    determines the other.
    """
    one = np.zeros(len(data), dtype=np.bool_)
    one[np.unique(data.units, return_index=True)[1]] = True
    for name, other in product(masked, unmasked):
        both = one & ~(data.missing(name) | data.missing(other))
        if _determines(data.codes(other)[both], data.codes(name)[both]):
            yield name, f"{other!r} determines"


def _determines(x: Array, y: Array) -> bool:
    """Return whether x determines y, and not merely because few records have equal x."""
    if len(x) < 2:
        return False
    # x determines y if every record has the value of the last record with the same x.
    representative = np.zeros(int(x.max()) + 1, dtype=y.dtype)
    representative[x] = y
    groups = np.bincount(x).astype(float)
    shares = np.bincount(y) / len(y)
    pairs = (groups * (groups - 1)).sum() / 2
    expected_differences = pairs * (1 - (shares**2).sum())
    return bool(expected_differences >= MIN_EXPECTED_DIFFERENCES and (representative[x] == y).all())
