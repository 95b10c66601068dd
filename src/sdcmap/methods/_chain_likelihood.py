"""The joint likelihood of steps of a chain that mask the same variables.

Successive noises add up (`noise_fields`), as do the logarithms of multiplicative factors; transition matrices are
multiplied. A deterministic step after a random one gives the probability of an interval; after a swap, it is applied to the
known values instead. Other combinations have no likelihood: Undefined names the two steps that cannot be combined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from itertools import combinations
from typing import Any

import numpy as np

from sdcmap.core import Array, Field, Fields, Method, Microdata, Undefined
from sdcmap.core.likelihood import Cells, Normal, Transition
from sdcmap.core.method import fields_by_stratum
from sdcmap.core.steps import redo_steps
from sdcmap.data.cells import common_codes
from sdcmap.kernels.masking.noise_covariance import column_spreads
from sdcmap.methods import _noise_likelihood
from sdcmap.methods._noise_likelihood import AdditiveNoise, means_of, rounding_covariance, rounding_step, whiten_fields
from sdcmap.methods._transition_matrix import TransitionMethod
from sdcmap.methods.mixture_noise import MixtureNoise
from sdcmap.methods.noise import MultiplicativeNoise
from sdcmap.methods.rank_swap import RankSwap
from sdcmap.methods.suppress import Suppress
from sdcmap.methods.swap import Swap

# Sums of normal noises are normal, so y = c x + s + N(0, V). Each noise adds its share of the covariance so far, and each
# rescaling shrinks everything so far. A value that was rounded or coded afterward lies in an interval, whose probability
# replaces the density. A mixture plus normal noise is a mixture whose components have the sum of both variances.

GRID_TOLERANCE = 1e-6  # relative variation of interval widths that still counts as a regular grid
WHOLE_NUMBER_VARIANCE = 1 / 12  # variance that rounding to whole numbers adds

Ends = tuple[Array, Array]  # the interval in which each value lay before it was rounded or coded; NaN: missing
Names = tuple[str, ...]
Noises = Sequence[AdditiveNoise]
Steps = Sequence[Method]


def noise_fields(noises: Noises, after: Steps, known: Microdata, released: Microdata) -> Fields:
    """Return the fields of noises on the same variables and of the deterministic steps after them."""
    if any(isinstance(noise, MixtureNoise) for noise in noises):
        return _fields_with_mixture(noises, after, known, released)
    if len({noise.within for noise in noises}) > 1:
        raise Undefined("the noises were added in different strata, and their joint likelihood is not implemented.")
    if not all(noise.is_plain for noise in noises):
        raise Undefined("noise with bounds, kept zeros or `above` states no likelihood together with other steps.")
    names = tuple(dict.fromkeys(name for noise in noises for name in noise.on if name in known.names))
    if not names:
        return ()
    steps_on = {name: [step for step in after if name in step.masked_names] for name in names}
    ends = {name: _interval_ends(steps, name, known, released) for name, steps in steps_on.items() if steps}

    def fields_of(rows: Array, others: Array) -> Fields:
        x = known.matrix(names)[rows]
        y = np.column_stack([_numbers(released, name)[others] for name in names])
        intervals = {j: (ends[name][0][others], ends[name][1][others]) for j, name in enumerate(names) if name in ends}
        return _fields(noises, names, x, y, intervals)

    return fields_by_stratum(noises[0].within, known, released, fields_of)


def _numbers(released: Microdata, name: str) -> Array:
    """Return the numbers of a column, NaN if it was recoded to classes."""
    return released.numbers(name) if released.column(name).levels is None else np.full(len(released), np.nan)


def _interval_ends(after: Steps, name: str, known: Microdata, released: Microdata) -> Ends:
    """Return the interval of each released value before the deterministic steps; unbounded for suppressed values."""
    steps = [step for step in after if not isinstance(step, Suppress)]
    low = high = _numbers(released, name)
    # Go back from the last step to the first. A chain keeps changed values on the grid of earlier roundings, which may
    # have moved them by half a grid step.
    for number in reversed(range(len(steps))):
        moved = max((_half_step(step, name, released) for step in steps[:number]), default=0.0)
        low, high = steps[number].preimage(name, low - moved, high + moved, released)
    blanks = len(steps) < len(after)
    if blanks and known.missing(name).any():
        raise Undefined(
            f"some values of {name!r} were suppressed and others missing before, and they cannot be distinguished."
        )
    blank = released.missing(name) & blanks
    return np.where(blank, -np.inf, low), np.where(blank, np.inf, high)


def _half_step(step: Method, name: str, released: Microdata) -> float:
    """Return half the grid step of a rounding, the most by which a chain moves later changes to stay on the grid."""
    numbers = _numbers(released, name)
    low, high = step.preimage(name, numbers, numbers, released)
    width = (high - low)[np.isfinite(high - low)]
    return float(width.max()) / 2 if len(width) and np.ptp(width) <= GRID_TOLERANCE * width.max() else 0.0


def _fields(noises: Noises, names: Names, x: Array, y: Array, ends: dict[int, Ends]) -> Fields:
    """Return joint fields if the noise is correlated and later intervals are finite; otherwise one per variable."""
    center = np.where(np.isnan(y).all(axis=0) | np.isin(np.arange(len(names)), list(ends)), means_of(x), means_of(y))
    before = _covariance_before(noises, names, x, y, ends)
    scale, shift, added = accumulate_noise(noises, names, before, center, ends)
    own = scale * x + shift
    added += np.diag([0.0 if j in ends else rounding_step(column) ** 2 / 12 for j, column in enumerate(y.T)])
    # Finite intervals are treated as rounding of their midpoints, so that correlated noise can be evaluated jointly.
    narrow = all(np.isfinite(high - low)[~np.isnan(low)].all() for low, high in ends.values())
    if np.count_nonzero(added - np.diag(np.diag(added))) and narrow:
        seen = y.copy()
        for j, (low, high) in ends.items():
            seen[:, j] = (low + high) / 2
            added[j, j] += np.nanmean((high - low) ** 2) / 12
        return whiten_fields(own, seen, added, means_of(x))
    sds = np.sqrt(np.diag(added))
    live = np.flatnonzero(np.diag(before) > 0).tolist()  # a constant variable does not distinguish records
    return tuple(
        _interval_field(own[:, j], sds[j], ends[j])
        if j in ends
        else Field(own[:, j] / sds[j], y[:, j] / sds[j], Normal(1.0))
        for j in live
    )


def _interval_field(own: Array, sd: float, ends: Ends) -> Field:
    """Return the field of values that are known only by their interval, given as its number."""
    cell, number = np.unique(np.column_stack(ends), axis=0, return_inverse=True, equal_nan=True)
    seen = np.where(np.isnan(ends[0]), np.nan, number.ravel().astype(float))
    return Field(own, seen, Cells(float(sd), cell[:, 0], cell[:, 1]))


def accumulate_noise(
    noises: Noises, names: Names, before: Array, center: Array, ends: dict[int, Ends]
) -> tuple[Array, Array, Array]:
    """Return c, s and V of y = c x + s + N(0, V), where before = Cov x.

    Rounding to whole numbers between noises counts as additional variance.
    """
    scale, shift, added, spread = np.ones(len(names)), np.zeros(len(names)), np.zeros_like(before), before.copy()
    for turn, noise in enumerate(noises):
        columns = [names.index(name) for name in noise.on if name in names]
        later = {name for other in noises[turn + 1 :] for name in other.on}
        new = max(noise.variance, _noise_likelihood.MIN_NOISE_SHARE) * spread[np.ix_(columns, columns)]
        new = new if noise.correlated else np.diag(np.diag(new))
        rounded = [
            WHOLE_NUMBER_VARIANCE if noise.integers and (names[j] in later or j in ends) else 0.0 for j in columns
        ]
        for total in (added, spread):
            total[np.ix_(columns, columns)] += new + np.diag(rounded)
        if noise.rescale:
            c = np.ones(len(names))
            c[columns] = noise.scale
            scale, shift = scale * c, c * shift + (1 - c) * center
            added, spread = added * np.outer(c, c), spread * np.outer(c, c)
    return scale, shift, added


def _covariance_before(noises: Noises, names: Names, x: Array, y: Array, ends: dict[int, Ends]) -> Array:
    """Return the attacker's estimate of Cov x.

    It is computed from the known records if these are all records, or if the released values are no longer numbers;
    otherwise from the released file, with the noise removed.
    """
    from_released = len(x) != len(y) and not ends
    table = y if from_released else x
    if len(complete := table[~np.isnan(table).any(axis=1)]) < 2:
        raise Undefined(_noise_likelihood.UNKNOWN_SHAPE)
    spread = column_spreads(table)
    shape = np.atleast_2d(np.cov(complete, rowvar=False))
    sd = np.sqrt(np.diag(shape))
    shape = shape / np.where(np.outer(sd, sd) > 0, np.outer(sd, sd), 1.0)
    np.fill_diagonal(shape, 1.0)
    return np.asarray(shape * np.outer(spread, spread) / (_growth(noises, names) if from_released else 1.0))


def _growth(noises: Noises, names: Names) -> Array:
    """Return the factor by which the noises have multiplied each covariance."""
    growth = np.ones((len(names), len(names)))
    for noise in noises:
        is_masked = np.array([name in noise.on for name in names])
        both = np.outer(is_masked, is_masked) if noise.correlated else np.diag(is_masked)
        growth *= np.where(both, 1.0 + noise.variance, 1.0)
        c = np.where(is_masked, noise.scale, 1.0)
        growth *= np.outer(c, c)
    return growth


# ---- mixtures ---------------------------------------------------------------------------------------------------
def _fields_with_mixture(noises: Noises, after: Steps, known: Microdata, released: Microdata) -> Fields:
    """Return the fields of one mixture and normal noises on its variables, along the coordinates of the mixture.

    Normal noise whose covariance is not proportional to that of the file is reduced to its variances there.
    """
    mixtures = [noise for noise in noises if isinstance(noise, MixtureNoise)]
    names, within = mixtures[0].on, {noise.within for noise in noises}
    plain = all(noise.is_plain and not noise.rescale and not noise.integers for noise in noises)
    inside = all(set(noise.on) <= set(names) for noise in noises) and set(names) <= set(known.names)
    if after or len(mixtures) > 1 or len(within) > 1 or not plain or not inside:
        raise Undefined("mixture noise states a likelihood only together with plain noise on its own variables.")

    def fields_of(rows: Array, others: Array) -> Fields:
        return _mixture_fields(noises, names, known.matrix(names)[rows], released.matrix(names)[others])

    return fields_by_stratum(within.pop(), known, released, fields_of)


def _mixture_fields(noises: Noises, names: Names, x: Array, y: Array) -> Fields:
    spread = _covariance_before(noises, names, x, y, {})
    normal_covariance, mixture_covariance = rounding_covariance(y), np.zeros_like(spread)
    mixture_fields = None
    for noise in noises:
        new = accumulate_noise([noise], names, spread, np.zeros(len(names)), {})[2]
        if isinstance(noise, MixtureNoise):
            mixture_fields, mixture_covariance = noise.unmix(spread), new
        else:
            normal_covariance = normal_covariance + new
        spread = spread + new
    if mixture_fields is None:
        raise Undefined(
            "the root of the mixture noise is singular, so it states no likelihood together with other noise."
        )
    return whiten_fields(
        x,
        y,
        mixture_covariance + normal_covariance,
        means_of(x),
        lambda own, seen: mixture_fields(own, seen, normal_covariance),
    )


def _factor_fields(
    factors: Sequence[MultiplicativeNoise], after: Steps, known: Microdata, released: Microdata
) -> Fields:
    """Return the fields of successive multiplicative noises.

    The product of log-normal factors is log-normal, with 1 + v = (1 + v_1)(1 + v_2).
    """
    first = factors[0]
    if len(factors) == 1 and not after:
        return first.log_likelihood(known, released)
    same = all(replace(step, variance=first.variance) == first for step in factors)
    if after or not same or first.distribution != "lognormal":
        raise Undefined(
            "multiplicative noise states a likelihood only together with log-normal noise on the same variables."
        )
    variance = math.prod(1 + step.variance for step in factors) - 1
    return replace(first, variance=variance).log_likelihood(known, released)


def _permutation_fields(step: Method, after: Steps, known: Microdata, released: Microdata) -> Fields:
    """Return the fields of a swap followed by rounding or recoding, which would give the same file before the swap."""
    if any(isinstance(other, Suppress) for other in after):
        raise Undefined(
            f"Suppress follows {type(step).__name__} on the same variables, and their joint likelihood is not implemented."
        )
    return step.log_likelihood(redo_steps(known, after, in_chain=True)[0], released)


# ---- transitions ----------------------------------------------------------------------------------------------
def _transition_fields(
    steps: Sequence[TransitionMethod], after: Steps, known: Microdata, released: Microdata
) -> Fields:
    """Return one field for each variable: the product of the matrices, and of later recodings."""
    names = dict.fromkeys(name for step in steps for name in step.on if name in known.names)
    return tuple(_transition_field(name, steps, after, known, released) for name in names)


def _transition_field(
    name: str, steps: Sequence[TransitionMethod], after: Steps, known: Microdata, released: Microdata
) -> Field:
    steps = [replace(step, on=(name,)) for step in steps if name in step.on]
    after = [step for step in after if name in step.masked_names]
    if len({step.within for step in steps}) > 1:
        raise Undefined(f"{name!r} was changed in different strata, and their joint likelihood is not implemented.")
    fields = [step.log_likelihood(known, known if after else released)[0] for step in steps]
    matrix = reduce(np.matmul, [f.density.matrix for f in fields if isinstance(f.density, Transition)])
    if not after:
        return Field(fields[0].known, fields[0].released, Transition(matrix))
    if steps[0].within:
        raise Undefined(
            f"{name!r} was changed in strata and then recoded, and the joint likelihood is not implemented."
        )
    recoded, failed = redo_steps(known, [step for step in after if not isinstance(step, Suppress)], in_chain=True)
    if failed:
        raise Undefined(next(iter(failed.values())))
    both = common_codes(recoded, released, name).astype(np.int64)
    # A deterministic recoding is a matrix of zeros and ones from original to recoded categories.
    became, seen = np.split(both, [len(known)])
    into = np.zeros((len(matrix), int(both.max()) + 1))
    into[fields[0].known.astype(np.int64), became] = 1.0
    chances: Array = matrix @ into
    if any(isinstance(step, Suppress) for step in after):
        chances[:, np.unique(seen[released.missing(name)])] = 1.0  # a suppressed value excludes nothing
    return Field(fields[0].known, seen.astype(float), Transition(chances))


# ---- all together ---------------------------------------------------------------------------------------------
# Methods whose steps can be combined with others of the same family, and the function that computes their fields.
FAMILIES: dict[type[Method], Callable[[Any, Steps, Microdata, Microdata], Fields]] = {
    AdditiveNoise: noise_fields,
    MultiplicativeNoise: _factor_fields,
    TransitionMethod: _transition_fields,
}


def compose_fields(steps: Steps, known: Microdata, released: Microdata) -> Fields:
    """Return the joint fields of steps that mask common variables; the first step is random."""
    if len(steps) == 1:
        return steps[0].log_likelihood(known, released)
    _check_order(steps)
    fields: list[Field] = []
    for family, fields_of in FAMILIES.items():
        if moved := [step for step in steps if isinstance(step, family)]:
            fields += fields_of(moved, _steps_after(moved, steps), known, released)
    for step in steps:
        if isinstance(step, RankSwap | Swap):
            fields += _permutation_fields(step, _steps_after([step], steps), known, released)
    return tuple(fields)


def _check_order(steps: Steps) -> None:
    """Raise Undefined if two steps on common variables state no joint likelihood."""
    for step, other in combinations(steps, 2):
        if shared := sorted(set(step.masked_names) & set(other.masked_names)):
            alike = any(isinstance(step, family) and isinstance(other, family) for family in FAMILIES)
            plain = not other.random and ((other.is_value_map and not other.within) or isinstance(other, Suppress))
            ends = step.random and not isinstance(step, (*FAMILIES, RankSwap, Swap))  # no step may follow it
            if not (alike or plain) or (other.random and not step.random) or ends:
                what = f"{type(other).__name__} masks what {type(step).__name__} has masked ({', '.join(shared)})"
                raise Undefined(f"{what}, and their joint likelihood is not implemented.")


def _steps_after(moved: Steps, steps: Steps) -> list[Method]:
    """Return the deterministic steps that mask variables of the given random steps."""
    names = {name for step in moved for name in step.masked_names}
    return [step for step in steps if not step.random and not names.isdisjoint(step.masked_names)]
