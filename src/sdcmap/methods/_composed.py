"""Steps of a chain that mask the same variables, one after the other: their likelihood together, where there is one.

Noise after noise adds up (`_noises`), and so do the logarithms of factors; transitions after transitions are the product of
their matrices; what a deterministic step does to values after they were moved is integrated over, or, where values only
changed places, done to them before. Other steps together state no likelihood: Undefined, with the two that do not fit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from sdcmap.core.likelihood import Field, Transition
from sdcmap.core.method import Method
from sdcmap.core.steps import done_again
from sdcmap.data.cells import common_codes
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.methods._noises import noises_together
from sdcmap.methods._transition import TransitionMethod
from sdcmap.methods.mixture_noise import MixtureNoise
from sdcmap.methods.multiplicative_noise import MultiplicativeNoise
from sdcmap.methods.noise import Noise
from sdcmap.methods.rank_swap import RankSwap
from sdcmap.methods.suppress import Suppress
from sdcmap.methods.swap import Swap


def composed(steps: Sequence[Method], known: Microdata, released: Microdata) -> tuple[Field, ...]:
    """The fields of steps that mask variables in common; the first is random."""
    if len(steps) == 1:
        return steps[0].log_likelihood(known, released)
    _check_order(steps)
    moved, after = [step for step in steps if step.random], [step for step in steps if not step.random]
    noises = [step for step in moved if isinstance(step, Noise | MixtureNoise)]
    factors = [step for step in moved if isinstance(step, MultiplicativeNoise)]
    transitions = [step for step in moved if isinstance(step, TransitionMethod)]
    permuted = [step for step in moved if isinstance(step, RankSwap | Swap)]
    fields: list[Field] = []
    if noises:
        fields += noises_together(noises, _of(noises, after), known, released)
    if factors:
        fields += _factors(factors, _of(factors, after), known, released)
    if transitions:
        fields += _transitions(transitions, _of(transitions, after), known, released)
    for step in permuted:
        fields += _permuted(step, _of([step], after), known, released)
    return tuple(fields)


def _family(step: Method) -> type[Method] | None:
    """Which steps state a likelihood together with it: those of one family; None: no other."""
    if isinstance(step, MixtureNoise):
        return Noise
    families: tuple[type[Method], ...] = (Noise, MultiplicativeNoise, TransitionMethod)
    return next((family for family in families if isinstance(step, family)), None)


def _check_order(steps: Sequence[Method]) -> None:
    """Undefined where two steps that share variables state no likelihood together."""
    for place, step in enumerate(steps):
        for other in steps[place + 1 :]:
            shared = sorted(set(step.masked_names) & set(other.masked_names))
            if not shared:
                continue
            alike = other.random and _family(step) is not None and _family(step) is _family(other)
            plain = not other.random and ((other.by_value and not other.within) or isinstance(other, Suppress))
            if not (alike or plain) or (other.random and not step.random) or not _states(step):
                what = f"{type(other).__name__} masks what {type(step).__name__} has masked ({', '.join(shared)})"
                raise Undefined(f"{what}, and no likelihood of the two together is stated.")


def _states(step: Method) -> bool:
    """Whether a step may be followed by others."""
    return not step.random or isinstance(
        step, Noise | MixtureNoise | MultiplicativeNoise | TransitionMethod | RankSwap | Swap
    )


def _of(moved: Sequence[Method], after: Sequence[Method]) -> list[Method]:
    """The deterministic steps that mask what these have moved."""
    names = {name for step in moved for name in step.masked_names}
    return [step for step in after if not names.isdisjoint(step.masked_names)]


def _factors(
    factors: Sequence[MultiplicativeNoise], after: Sequence[Method], known: Microdata, released: Microdata
) -> tuple[Field, ...]:
    """Factors after factors: log-normal ones multiply to one.  1 + v = (1 + v_1)(1 + v_2)"""
    first = factors[0]
    if len(factors) == 1 and not after:
        return first.log_likelihood(known, released)
    same = all(replace(step, variance=first.variance) == first for step in factors)
    if after or not same or first.distribution != "lognormal":
        raise Undefined("multiplicative noise states a likelihood with log-normal factors of the same variables alone.")
    variance = math.prod(1 + step.variance for step in factors) - 1
    return replace(first, variance=variance).log_likelihood(known, released)


def _permuted(step: Method, after: Sequence[Method], known: Microdata, released: Microdata) -> tuple[Field, ...]:
    """Values that changed places and were then rounded, cut or classed: done before, it gives the same file."""
    if any(isinstance(other, Suppress) for other in after):
        raise Undefined(f"Suppress blanks what {type(step).__name__} moved, and no likelihood of the two is stated.")
    return step.log_likelihood(done_again(known, after, in_chain=True).file, released)


# ---- transitions ----------------------------------------------------------------------------------------------
def _transitions(
    steps: Sequence[TransitionMethod], after: Sequence[Method], known: Microdata, released: Microdata
) -> tuple[Field, ...]:
    """One field a variable: the product of the matrices, and what became of the categories after them."""
    names = dict.fromkeys(name for step in steps for name in step.on if name in known.names)
    return tuple(
        _transition(
            name,
            [replace(step, on=(name,)) for step in steps if name in step.on],
            [step for step in after if name in step.masked_names],
            known,
            released,
        )
        for name in names
    )


def _transition(
    name: str, steps: Sequence[TransitionMethod], after: Sequence[Method], known: Microdata, released: Microdata
) -> Field:
    if len({step.within for step in steps}) > 1:
        raise Undefined(f"{name!r} was changed in different strata, and no likelihood of these together is stated.")
    fields = [step.log_likelihood(known, known if after else released)[0] for step in steps]
    matrix = reduce(np.matmul, [_matrix(field) for field in fields])
    if not after:
        return Field(fields[0].known, fields[0].released, Transition(matrix))
    if steps[0].within:
        raise Undefined(f"{name!r} was changed in strata and recoded, and no likelihood of the two is stated.")
    recoded = done_again(known, [step for step in after if not isinstance(step, Suppress)], in_chain=True)
    if recoded.failed:
        raise Undefined(next(iter(recoded.failed.values())))
    both = common_codes(recoded.file, released, name).astype(np.int64)
    became, seen = both[: len(known)], both[len(known) :]
    into = np.zeros((len(matrix), int(both.max()) + 1))
    into[fields[0].known.astype(np.int64), became] = 1.0
    chances: Array = matrix @ into
    if any(isinstance(step, Suppress) for step in after):
        chances[:, np.unique(seen[released.missing(name)])] = 1.0  # a blank says nothing
    return Field(fields[0].known, seen.astype(float), Transition(chances))


def _matrix(field: Field) -> Array:
    if not isinstance(field.density, Transition):
        raise Undefined("a transition states no matrix.")
    return field.density.matrix
