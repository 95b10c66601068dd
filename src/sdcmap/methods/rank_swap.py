"""Rank swapping."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, ClassVar

import numpy as np

from sdcmap.core import Array, Field, Fields, Generator, Infeasible, Method, Microdata, Range, Strengths, format_percent
from sdcmap.core.likelihood import Below, Window
from sdcmap.core.method import Origin
from sdcmap.kernels.jit import jit

# Random tries to find a free rank in a window; after that its free ranks are listed, which is slower but always succeeds.
# Either way each free rank is equally likely.
MAX_WINDOW_DRAWS = 64


def rank_swap(x: Array, p: float, rng: Generator) -> Array:
    """Swap each value with one of a nearby rank. The sorted values do not change.

    Visit the ranks i = 0, 1, ...; a rank not yet swapped draws k uniformly among the ranks not yet swapped with
    0 < k - i < p n (strict), and the two values are exchanged. If there is none, i is left unchanged.
    YWC (2002), section 3.1, interpreted so that it reproduces their Table 1.
    """
    order = np.argsort(x, kind="stable")
    partner = np.arange(len(x))
    width = largest_step(p, len(x))
    start = 0
    while width > 0 and start < len(x):
        start = _swap_from(partner, start, width, rng.random(4 * len(x) + MAX_WINDOW_DRAWS + 1), MAX_WINDOW_DRAWS)
    swapped = np.empty_like(x)
    swapped[order] = x[order][partner]
    return swapped


def largest_step(p: float, n: int) -> int:
    """Return the largest distance between two ranks that is strictly below p n."""
    return int(np.ceil(p * n)) - 1


def rank_spans(values: Array, x: Array) -> tuple[Array, Array]:
    """Return the first and the last rank that each x has, or would have, among the sorted `values`.

    A value that does not occur could have the rank before or after it. Missing values give NaN.
    """
    first = np.searchsorted(values, x, side="left").astype(float)
    last = np.searchsorted(values, x, side="right") - 1.0
    absent = last < first
    first[absent], last[absent] = first[absent] - 1, last[absent] + 1
    first[np.isnan(x)] = last[np.isnan(x)] = np.nan
    return first, last


@jit
def _swap_from(partner: Array, start: int, width: int, draws: Array, tries: int) -> int:
    """Swap from rank `start` on while draws last. Return the rank to continue from."""
    n = len(partner)
    used = 0
    for i in range(start, n):
        if partner[i] != i:
            continue
        reach = min(width, n - 1 - i)
        if used + tries + 1 > len(draws):
            return i
        chosen = -1
        # Draw ranks in the window until one is free, at most `tries` times.
        for _ in range(tries if reach > 0 else 0):
            k = i + 1 + int(draws[used] * reach)
            used += 1
            if partner[k] == k:
                chosen = k
                break
        # The window is nearly full: draw among its free ranks directly.
        if chosen < 0 and reach > 0:
            free = 0
            for k in range(i + 1, i + 1 + reach):
                free += partner[k] == k
            if free > 0:
                skip = int(draws[used] * free)
                used += 1
                for k in range(i + 1, i + 1 + reach):
                    if partner[k] == k:
                        if skip == 0:
                            chosen = k
                            break
                        skip -= 1
        if chosen >= 0:
            partner[i], partner[chosen] = chosen, i
    return n


@dataclass(frozen=True)
class RankSwap(Method):
    """Exchange each value with one whose rank is less than p n away, variable by variable.

    Parameters
    ----------
    on : numeric variables to mask, each independently.
    p : width of the window as a share of the records, in (0, 1], not in percent; one number for all variables, or one
        for each, in the order of `on`.

    Formula: strict window, 0 < |rank(i) - rank(l)| < p n; each value is exchanged at most once.
    Missing values are not ranked and do not move; n counts the other values. Weights and households are not used, so
    weighted distributions change. Equal values are ranked in file order.

    Likelihood: the released column contains the original values, so an informed attacker can look up the rank of a known
    value; the released value lies within the window around it, and all ranks in the window are equally likely. Equal
    values share all their ranks, which widens the window, so that the true record is never excluded.
    Reference: Yancey, Winkler, Creecy (2002), section 3.1.

    Examples
    --------
    >>> RankSwap(on="income", p=0.1).text
    "RankSwap(on='income', p=0.1)"
    """

    label: ClassVar[str] = "Rank swapping"
    description: ClassVar[str] = "Each value is exchanged with one of similar rank, variable by variable."

    mixes_records: ClassVar[bool] = True
    value_origin: ClassVar[Origin] = "permuted"
    kept: ClassVar[str] = "the unweighted distribution of each variable, exactly"
    distorted: ClassVar[str] = "relations between variables; weighted totals"
    searched: ClassVar[Strengths | None] = Strengths("p", 0.01, 0.9, tried=(0.02, 0.05, 0.15))

    on: tuple[str, ...]
    p: Annotated[float | tuple[float, ...], Range(0, 1, "(]")] = 0.05

    @property
    def action(self) -> str:
        shares = (self.p,) if isinstance(self.p, float) else dict.fromkeys(self.p)
        return f"rank swapped {', '.join(map(format_percent, shares))}"

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if isinstance(self.p, tuple) and len(self.p) != len(self.on):
            yield f".p must be one share, or {len(self.on)} shares, one for each variable of .on. Got {len(self.p)}."

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        return data.change(None, {name: _swap_values(data.numbers(name), p, name, rng) for name, p in self._windows()})

    def _windows(self) -> Iterator[tuple[str, float]]:
        shares = self.p if isinstance(self.p, tuple) else (self.p,) * len(self.on)
        return zip(self.on, shares, strict=True)

    def pair_fields(self, known: Microdata, released: Microdata) -> Fields:
        windows = ((name, p) for name, p in self._windows() if name in known.names)
        fields = (_window_fields(known.numbers(name), released.numbers(name), p) for name, p in windows)
        return tuple(chain.from_iterable(fields))


def _swap_values(x: Array, p: float, name: str, rng: Generator) -> Array:
    present = np.flatnonzero(~np.isnan(x))
    if p * len(present) <= 1:
        raise Infeasible(
            f"a window of p = {p:g} contains no other of the {len(present)} values of {name!r}; use a larger p."
        )
    swapped = x.copy()
    swapped[present] = rank_swap(x[present], p, rng)
    return swapped


def _window_fields(known: Array, released: Array, p: float) -> list[Field]:
    """Return the fields of |rank - rank| < p n, in units of the window: one, or two one-sided ones if there are ties."""
    values = np.sort(released[~np.isnan(released)])
    unit = (
        largest_step(p, len(values)) + 0.5
    )  # ranks are integers, so a distance of at most the largest step is below 1 unit
    first, last = (ranks / unit for ranks in rank_spans(values, known))
    other_first, other_last = (ranks / unit for ranks in rank_spans(values, released))
    if np.array_equal(first, last, equal_nan=True) and np.array_equal(other_first, other_last, equal_nan=True):
        return [Field(first, other_first, Window(1.0))]
    return [Field(last, other_first, Below(1.0)), Field(-first, -other_last, Below(1.0))]
