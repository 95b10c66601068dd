"""Steps of a chain that mask the same variables, one after the other: their likelihood together, where there is one.

Noise after noise adds up (`_noises`), and so do the logarithms of factors; transitions after transitions are the product of
their matrices; what a deterministic step does to values after they were moved is integrated over, or, where values only
changed places, done to them before. Other steps together state no likelihood: Undefined, with the two that do not fit.
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
from sdcmap.kernels.masking.noise_covariance import spreads
from sdcmap.methods import _noise_likelihood
from sdcmap.methods._noise_likelihood import AdditiveNoise, means_of, rounding_covariance, rounding_step, whiten_fields
from sdcmap.methods._transition_matrix import TransitionMethod
from sdcmap.methods.mixture_noise import MixtureNoise
from sdcmap.methods.noise import MultiplicativeNoise
from sdcmap.methods.rank_swap import RankSwap
from sdcmap.methods.suppress import Suppress
from sdcmap.methods.swap import Swap

# Noise after noise, and rounding, cutting or classing after it: what a reader of the note can compute of both together.
#
# Sums of normal noises are normal, and their variances add up: y = c x + s + N(0, V), where each noise adds its share
# of the covariance that those before it have left, and each rescaling draws in all that is there. What was rounded or
# cut after it lies in a cell, and the chance of the cell stands in the place of a density. A mixture with normal noise
# beside it is a mixture whose components have the variances of both.


GRID_TOLERANCE = 1e-6  # by how much of itself the width of cells may vary on a grid
WHOLE_NUMBER_VARIANCE = 1 / 12  # what rounding to whole numbers adds to a variance

Ends = tuple[Array, Array]  # between which each released value lay; NaN: missing
Names = tuple[str, ...]
Noises = Sequence[AdditiveNoise]
Steps = Sequence[Method]


def noise_fields(noises: Noises, after: Steps, known: Microdata, released: Microdata) -> Fields:
    """The fields of noises of the same variables, and of the deterministic steps after them."""
    if any(isinstance(noise, MixtureNoise) for noise in noises):
        return _fields_with_mixture(noises, after, known, released)
    if len({noise.within for noise in noises}) > 1:
        raise Undefined("noises were added in different strata, and no likelihood of these together is stated.")
    if not all(noise.is_plain for noise in noises):
        raise Undefined("noise with bounds, kept zeros or larger noise above states no likelihood with other steps.")
    names = tuple(dict.fromkeys(name for noise in noises for name in noise.on if name in known.names))
    if not names:
        return ()
    steps_on = {name: [step for step in after if name in step.masked_names] for name in names}
    ends = {name: _interval_ends(steps, name, known, released) for name, steps in steps_on.items() if steps}

    def fields_of(rows: Array, others: Array) -> Fields:
        x = known.matrix(names)[rows]
        y = np.column_stack([_numbers(released, name)[others] for name in names])
        there = {j: (ends[name][0][others], ends[name][1][others]) for j, name in enumerate(names) if name in ends}
        return _fields(noises, names, x, y, there)

    return fields_by_stratum(noises[0].within, known, released, fields_of)


def _numbers(released: Microdata, name: str) -> Array:
    """The numbers of a column; of one that became classes, none."""
    return released.numbers(name) if released.column(name).levels is None else np.full(len(released), np.nan)


def _interval_ends(after: Steps, name: str, known: Microdata, released: Microdata) -> Ends:
    """Between which values each released one lay before the deterministic steps. A value that was blanked lay anywhere."""
    steps = [step for step in after if not isinstance(step, Suppress)]
    low = high = _numbers(released, name)
    for place in reversed(range(len(steps))):
        moved = max((_half_step(step, name, released) for step in steps[:place]), default=0.0)
        low, high = steps[place].preimage(name, low - moved, high + moved, released)
    blanks = len(steps) < len(after)
    if blanks and known.missing(name).any():
        raise Undefined(f"some values of {name!r} were blanked and some are missing, and nobody can tell them apart.")
    blank = released.missing(name) & blanks
    return np.where(blank, -np.inf, low), np.where(blank, np.inf, high)


def _half_step(step: Method, name: str, released: Microdata) -> float:
    """Half the step of the grid that a rounding makes: so far a chain moves what a later step changes, to stay on it."""
    numbers = _numbers(released, name)
    low, high = step.preimage(name, numbers, numbers, released)
    width = (high - low)[np.isfinite(high - low)]
    return float(width.max()) / 2 if len(width) and np.ptp(width) <= GRID_TOLERANCE * width.max() else 0.0


def _fields(noises: Noises, names: Names, x: Array, y: Array, ends: dict[int, Ends]) -> Fields:
    """All variables together where their noise is correlated and what came after it is not wide; else one by one."""
    center = np.where(np.isnan(y).all(axis=0) | np.isin(np.arange(len(names)), list(ends)), means_of(x), means_of(y))
    before = _covariance_before(noises, names, x, y, ends)
    scale, shift, added = accumulate_noise(noises, names, before, center, ends)
    own = scale * x + shift
    added += np.diag([0.0 if j in ends else rounding_step(column) ** 2 / 12 for j, column in enumerate(y.T)])
    narrow = all(np.isfinite(high - low)[~np.isnan(low)].all() for low, high in ends.values())
    if np.count_nonzero(added - np.diag(np.diag(added))) and narrow:
        seen = y.copy()
        for j, (low, high) in ends.items():
            seen[:, j] = (low + high) / 2
            added[j, j] += np.nanmean((high - low) ** 2) / 12
        return whiten_fields(own, seen, added, means_of(x))
    sds = np.sqrt(np.diag(added))
    live = np.flatnonzero(np.diag(before) > 0).tolist()  # a constant variable has no noise and tells no record apart
    return tuple(
        _in_cells(own[:, j], sds[j], ends[j]) if j in ends else Field(own[:, j] / sds[j], y[:, j] / sds[j], Normal(1.0))
        for j in live
    )


def _in_cells(own: Array, sd: float, ends: Ends) -> Field:
    """The field of values that are known by their cells: the number of each."""
    cell, number = np.unique(np.column_stack(ends), axis=0, return_inverse=True, equal_nan=True)
    seen = np.where(np.isnan(ends[0]), np.nan, number.ravel().astype(float))
    return Field(own, seen, Cells(float(sd), cell[:, 0], cell[:, 1]))


def accumulate_noise(
    noises: Noises, names: Names, before: Array, center: Array, ends: dict[int, Ends]
) -> tuple[Array, Array, Array]:
    """c, s and V of y = c x + s + N(0, V). before: Cov x. Rounding to whole numbers on the way counts by its variance."""
    scale, shift, added, spread = np.ones(len(names)), np.zeros(len(names)), np.zeros_like(before), before.copy()
    for turn, noise in enumerate(noises):
        here = [names.index(name) for name in noise.on if name in names]
        later = {name for other in noises[turn + 1 :] for name in other.on}
        new = max(noise.variance, _noise_likelihood.MIN_NOISE_SHARE) * spread[np.ix_(here, here)]
        new = new if noise.correlated else np.diag(np.diag(new))
        rounded = [WHOLE_NUMBER_VARIANCE if noise.integers and (names[j] in later or j in ends) else 0.0 for j in here]
        for total in (added, spread):
            total[np.ix_(here, here)] += new + np.diag(rounded)
        if noise.rescale:
            c = np.ones(len(names))
            c[here] = noise.scale
            scale, shift = scale * c, c * shift + (1 - c) * center
            added, spread = added * np.outer(c, c), spread * np.outer(c, c)
    return scale, shift, added


def _covariance_before(noises: Noises, names: Names, x: Array, y: Array, ends: dict[int, Ends]) -> Array:
    """Cov x as a snooper has it: of his own records where he knows everybody, else of the released ones, where these are
    numbers, with the noise taken off."""
    theirs = len(x) != len(y) and not ends
    table = y if theirs else x
    if len(complete := table[~np.isnan(table).any(axis=1)]) < 2:
        raise Undefined(_noise_likelihood.UNKNOWN_SHAPE)
    spread = spreads(table)
    shape = np.atleast_2d(np.cov(complete, rowvar=False))
    sd = np.sqrt(np.diag(shape))
    shape = shape / np.where(np.outer(sd, sd) > 0, np.outer(sd, sd), 1.0)
    np.fill_diagonal(shape, 1.0)
    return np.asarray(shape * np.outer(spread, spread) / (_growth(noises, names) if theirs else 1.0))


def _growth(noises: Noises, names: Names) -> Array:
    """By how much the noises have multiplied each covariance."""
    growth = np.ones((len(names), len(names)))
    for noise in noises:
        here = np.array([name in noise.on for name in names])
        both = np.outer(here, here) if noise.correlated else np.diag(here)
        growth *= np.where(both, 1.0 + noise.variance, 1.0)
        c = np.where(here, noise.scale, 1.0)
        growth *= np.outer(c, c)
    return growth


# ---- mixtures ---------------------------------------------------------------------------------------------------
def _fields_with_mixture(noises: Noises, after: Steps, known: Microdata, released: Microdata) -> Fields:
    """One mixture and normal noises of its variables, along the coordinates of the mixture. Normal noise of another shape
    than the file's covariance counts there by its variances alone."""
    mixtures = [noise for noise in noises if isinstance(noise, MixtureNoise)]
    names, within = mixtures[0].on, {noise.within for noise in noises}
    plain = all(noise.is_plain and not noise.rescale and not noise.integers for noise in noises)
    inside = all(set(noise.on) <= set(names) for noise in noises) and set(names) <= set(known.names)
    if after or len(mixtures) > 1 or len(within) > 1 or not plain or not inside:
        raise Undefined("mixture noise states a likelihood together with plain noise of its own variables alone.")

    def fields_of(rows: Array, others: Array) -> Fields:
        return _mixture_fields(noises, names, known.matrix(names)[rows], released.matrix(names)[others])

    return fields_by_stratum(within.pop(), known, released, fields_of)


def _mixture_fields(noises: Noises, names: Names, x: Array, y: Array) -> Fields:
    spread = _covariance_before(noises, names, x, y, {})
    beside, mixed = rounding_covariance(y), np.zeros_like(spread)
    mixture_fields = None
    for noise in noises:
        new = accumulate_noise([noise], names, spread, np.zeros(len(names)), {})[2]
        if isinstance(noise, MixtureNoise):
            mixture_fields, mixed = noise.unmix(spread), new
        else:
            beside = beside + new
        spread = spread + new
    if mixture_fields is None:
        raise Undefined("the shape of the mixture noise cannot be undone, so it states no likelihood with other noise.")
    return whiten_fields(x, y, mixed + beside, means_of(x), lambda own, seen: mixture_fields(own, seen, beside))


def _factor_fields(
    factors: Sequence[MultiplicativeNoise], after: Steps, known: Microdata, released: Microdata
) -> Fields:
    """Factors after factors: log-normal ones multiply to one.  1 + v = (1 + v_1)(1 + v_2)"""
    first = factors[0]
    if len(factors) == 1 and not after:
        return first.log_likelihood(known, released)
    same = all(replace(step, variance=first.variance) == first for step in factors)
    if after or not same or first.distribution != "lognormal":
        raise Undefined("multiplicative noise states a likelihood with log-normal factors of the same variables alone.")
    variance = math.prod(1 + step.variance for step in factors) - 1
    return replace(first, variance=variance).log_likelihood(known, released)


def _permutation_fields(step: Method, after: Steps, known: Microdata, released: Microdata) -> Fields:
    """Values that changed places and were then rounded, cut or classed: done before, it gives the same file."""
    if any(isinstance(other, Suppress) for other in after):
        raise Undefined(f"Suppress blanks what {type(step).__name__} moved, and no likelihood of the two is stated.")
    return step.log_likelihood(redo_steps(known, after, in_chain=True)[0], released)


# ---- transitions ----------------------------------------------------------------------------------------------
def _transition_fields(
    steps: Sequence[TransitionMethod], after: Steps, known: Microdata, released: Microdata
) -> Fields:
    """One field a variable: the product of the matrices, and what became of the categories after them."""
    names = dict.fromkeys(name for step in steps for name in step.on if name in known.names)
    return tuple(_transition_field(name, steps, after, known, released) for name in names)


def _transition_field(
    name: str, steps: Sequence[TransitionMethod], after: Steps, known: Microdata, released: Microdata
) -> Field:
    steps = [replace(step, on=(name,)) for step in steps if name in step.on]
    after = [step for step in after if name in step.masked_names]
    if len({step.within for step in steps}) > 1:
        raise Undefined(f"{name!r} was changed in different strata, and no likelihood of these together is stated.")
    fields = [step.log_likelihood(known, known if after else released)[0] for step in steps]
    matrix = reduce(np.matmul, [f.density.matrix for f in fields if isinstance(f.density, Transition)])
    if not after:
        return Field(fields[0].known, fields[0].released, Transition(matrix))
    if steps[0].within:
        raise Undefined(f"{name!r} was changed in strata and recoded, and no likelihood of the two is stated.")
    recoded, failed = redo_steps(known, [step for step in after if not isinstance(step, Suppress)], in_chain=True)
    if failed:
        raise Undefined(next(iter(failed.values())))
    both = common_codes(recoded, released, name).astype(np.int64)
    became, seen = np.split(both, [len(known)])
    into = np.zeros((len(matrix), int(both.max()) + 1))
    into[fields[0].known.astype(np.int64), became] = 1.0
    chances: Array = matrix @ into
    if any(isinstance(step, Suppress) for step in after):
        chances[:, np.unique(seen[released.missing(name)])] = 1.0  # a blank says nothing
    return Field(fields[0].known, seen.astype(float), Transition(chances))


# ---- all together ---------------------------------------------------------------------------------------------
# Steps that state a likelihood together with others of their family, and what states it.
FAMILIES: dict[type[Method], Callable[[Any, Steps, Microdata, Microdata], Fields]] = {
    AdditiveNoise: noise_fields, MultiplicativeNoise: _factor_fields, TransitionMethod: _transition_fields,
}  # fmt: skip


def compose_fields(steps: Steps, known: Microdata, released: Microdata) -> Fields:
    """The fields of steps that mask variables in common; the first is random."""
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
    """Undefined where two steps that share variables state no likelihood together."""
    for step, other in combinations(steps, 2):
        if shared := sorted(set(step.masked_names) & set(other.masked_names)):
            alike = any(isinstance(step, family) and isinstance(other, family) for family in FAMILIES)
            plain = not other.random and ((other.is_value_map and not other.within) or isinstance(other, Suppress))
            ends = step.random and not isinstance(step, (*FAMILIES, RankSwap, Swap))  # no step may follow it
            if not (alike or plain) or (other.random and not step.random) or ends:
                what = f"{type(other).__name__} masks what {type(step).__name__} has masked ({', '.join(shared)})"
                raise Undefined(f"{what}, and no likelihood of the two together is stated.")


def _steps_after(moved: Steps, steps: Steps) -> list[Method]:
    """The deterministic steps that mask what these have moved."""
    names = {name for step in moved for name in step.masked_names}
    return [step for step in steps if not step.random and not names.isdisjoint(step.masked_names)]
