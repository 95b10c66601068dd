"""Released columns that give a masked one away, although it was masked.

Exact relations are looked for in the original, in files of any size: a linear one (a total and its parts), and a column
whose value fixes the masked one (age and age group). Whatever else holds for nearly all records is learned (`relations`).
Time is linear in the records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from sdcmap.bundle.checks import Check
from sdcmap.bundle.prepared_file import RENUMBERED_ROLES
from sdcmap.bundle.relations import numbers_of, relations
from sdcmap.core import Array, Microdata
from sdcmap.core.release_policy import ReleasePolicy

EXACT = 1e-9  # relative residual of a linear relation that holds exactly
USED = 1e-6  # smallest standardized coefficient of a column that is named as part of the relation
SURPRISING_PAIRS = 20.0  # pairs of records that would differ if the columns were independent


def check_determines(data: Microdata, released: Microdata, masked: Sequence[str], policy: ReleasePolicy) -> Check:
    """No released columns give a masked one back; what they tell of it short of that is said with its figure.

    data : the original. released : the masked file in the order of its rows. masked : names of the masked columns.
    """
    ids = data.schema.of_role(*RENUMBERED_ROLES)
    open_names = [name for name in data.names if name not in (*masked, *data.unreleased_columns, *ids)]
    exact = dict([*_fixing_columns(data, masked, open_names), *_linear_relations(data, masked, open_names)])
    learned = [relation for relation in relations(data, released, masked, ids) if relation.name not in exact]
    told = "; ".join(str(relation) for relation in learned if not relation.gives_back(policy))
    given = [f"{name!r} is masked, but unmasked {by} it" for name, by in exact.items()]
    given += [str(relation) for relation in learned if relation.gives_back(policy)]
    if given:
        advice = "mask these too, state how they are derived (`derive`), or drop them from the data"
        return Check("determines", False, f"{'; '.join(given)}: {advice}.{f' Also: {told}.' if told else ''}")
    none = f"no released columns give a masked one back for {policy.recovered_share:.0%} of it"
    return Check("determines", True, f"{none}{f' (told are: {told})' if told else ''}.")


def _linear_relations(data: Microdata, masked: Sequence[str], unmasked: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Masked numbers that are exactly a + sum b_j x_j of unmasked ones."""
    known = {name: numbers for name in unmasked if (numbers := numbers_of(data.column(name))) is not None}
    for name in masked:
        target = numbers_of(data.column(name))
        if target is not None and (parts := _exact_parts(target, known)):
            yield name, f"{' and '.join(map(repr, parts))} {'gives' if len(parts) == 1 else 'together give'}"


def _exact_parts(target: Array, known: dict[str, Array]) -> list[str]:
    """Names of the columns that make up `target` exactly; none where no columns do."""
    names = sorted(known, key=lambda name: int(np.isnan(known[name]).sum()))
    while names:  # leave out the columns with most missing values until enough complete records remain
        x = np.column_stack([known[name] for name in names])
        complete = ~(np.isnan(x).any(axis=1) | np.isnan(target))
        if complete.sum() >= 2 * (len(names) + 1):
            break
        names.pop()
    else:
        return []
    x, y = _standardized(x[complete]), _standardized(target[complete])
    if not y.any() or not (np.isfinite(x).all() and np.isfinite(y).all()):
        return []  # constant, or too large to have a variance
    coefficients, *_ = np.linalg.lstsq(x, y, rcond=None)
    if np.linalg.norm(y - x @ coefficients) >= EXACT * np.linalg.norm(y):
        return []
    return [name for name, b in zip(names, coefficients, strict=True) if abs(b) > USED]


def _standardized(values: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):  # too large to have a variance: the caller looks
        centered: Array = values - values.mean(axis=0)
        spread = np.sqrt((centered**2).mean(axis=0))
        return centered / np.where(spread > 0, spread, 1.0)


def _fixing_columns(data: Microdata, masked: Sequence[str], unmasked: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Masked columns whose value is the same in all records that agree in one unmasked column.

    One record a household is looked at: that its members share both columns does not make one fix the other.
    """
    one = np.full(len(data), data.household is None)
    if data.household is not None:
        one[np.unique(data.codes(data.household), return_index=True)[1]] = True
    for name, other in product(masked, unmasked):
        both = one & ~(data.missing(name) | data.missing(other))
        if _fixes(data.codes(other)[both], data.codes(name)[both]):
            yield name, f"{other!r} fixes"


def _fixes(x: Array, y: Array) -> bool:
    """Whether x fixes y, although so many pairs with equal x would differ in y if the two were independent."""
    if len(x) < 2:
        return False
    representative = np.zeros(int(x.max()) + 1, dtype=y.dtype)
    representative[x] = y
    groups = np.bincount(x).astype(float)
    shares = np.bincount(y) / len(y)
    pairs = (groups * (groups - 1)).sum() / 2
    surprising = pairs * (1 - (shares**2).sum()) >= SURPRISING_PAIRS
    return bool(surprising and (representative[x] == y).all())
