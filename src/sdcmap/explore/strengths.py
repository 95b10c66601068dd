"""Default strengths: how each method is tried on a file of which only the roles are known."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sdcmap.core.method import Method
from sdcmap.data.microdata import Microdata
from sdcmap.methods import (
    PRAM,
    Chain,
    HouseholdSwap,
    Microaggregate,
    MixtureNoise,
    MultiplicativeNoise,
    Noise,
    Protect,
    RandomisedResponse,
    RankSwap,
    Recode,
    Round,
    Sample,
    Shuffle,
    Suppress,
    Swap,
    SwapReidentified,
    Synthesise,
    TopCode,
)
from sdcmap.recordwise.neighbourhood import Unsafe

MOST_GOWER = 20_000  # records; with more, groups of mixed variables take longer than all the rest
MOST_KEYS = 8  # of a rule of k-anonymity; with more, nearly every value would be blanked
MOST_LEVELS = 10  # of a variable that a shuffle looks at: each category is a column of its regression


@dataclass(frozen=True)
class Roles:
    """What the methods of a comparison are applied to."""

    data: Microdata

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The keys that are categories, fewest categories first."""
        found = [name for name in self.data.keys if self.data.schema[name].kind != "numeric"]
        return tuple(sorted(found, key=self.data.level_count))

    @property
    def numbers(self) -> tuple[str, ...]:
        return self.data.numeric

    @cached_property
    def varied(self) -> tuple[str, ...]:
        """The two keys in which two records differ most often: a swap needs pairs that differ."""

        def agreeing(name: str) -> float:
            count = np.bincount(self.data.codes(name))
            return float(((count / count.sum()) ** 2).sum())

        return tuple(sorted(self.keys, key=agreeing)[:2])

    @cached_property
    def everything(self) -> tuple[str, ...]:
        apart = ("identifier", "weight", "household")
        return tuple(v.name for v in self.data.schema.variables if v.role not in apart)

    @cached_property
    def secret(self) -> str:
        return next(iter(self.data.sensitive), "")

    @cached_property
    def known(self) -> tuple[str, ...]:
        """The keys and the numbers that are not sensitive: what the snooper of the first risk measure knows."""
        both = dict.fromkeys((*self.data.keys, *self.numbers))
        return tuple(name for name in both if name not in self.data.sensitive)

    def spread(self, name: str) -> float:
        x = self.data.numbers(name)
        x = x[np.isfinite(x)]
        return float(x.std()) if len(x) else 0.0

    def rare(self, name: str, share: float) -> tuple[str, ...]:
        """The categories that a smaller share of the records has."""
        levels = self.data.column(name).levels
        if levels is None:
            return ()
        count = np.bincount(self.data.codes(name), minlength=len(levels))
        each = zip(levels.to_list(), count, strict=False)
        return tuple(str(level) for level, n in each if level is not None and 0 < n < share * len(self.data))


Named = Iterator[tuple[str, Method | str]]  # a few words, and the method or why it is left out


def _short(value: float) -> str:
    """A number as a label has it: .05, 2."""
    return f"{value:g}".removeprefix("0")


def _noise(roles: Roles) -> Named:
    for variance in (0.05, 0.2, 0.5) if roles.numbers else ():
        yield f"Noise {_short(variance)}", Noise(roles.numbers, variance)


def _mixture_noise(roles: Roles) -> Named:
    for variance in (0.05, 0.2) if len(roles.numbers) > 1 else ():
        yield f"MixtureNoise {_short(variance)}", MixtureNoise(roles.numbers, variance)


def _multiplicative_noise(roles: Roles) -> Named:
    for variance in (0.01, 0.05) if roles.numbers else ():
        yield f"MultiplicativeNoise {_short(variance)}", MultiplicativeNoise(roles.numbers, variance)


def _swap_reidentified(roles: Roles) -> Named:
    """After noise, as the method needs: the records still found are swapped."""
    swapped = roles.numbers[: len(roles.numbers) // 2]
    if swapped:
        steps = (Noise(roles.numbers, 0.05, correlated=True), SwapReidentified(swapped))
        yield "SwapReidentified after Noise .05", Chain(steps)


def _protect(roles: Roles) -> Named:
    """After noise, more of it for the records that are still unsafe."""
    if roles.numbers:
        more = Protect(Unsafe(roles.numbers, scale="standardised"), Noise(roles.numbers, 0.5))
        yield "Protect after Noise .05", Chain((Noise(roles.numbers, 0.05), more))


def _rank_swap(roles: Roles) -> Named:
    for p in (0.02, 0.05, 0.15) if roles.numbers else ():
        yield f"RankSwap {_short(p)}", RankSwap(roles.numbers, p)


def _microaggregate(roles: Roles) -> Named:
    for size in (3, 10) if roles.numbers else ():
        yield f"Microaggregate {size}", Microaggregate(roles.numbers, size)
    if roles.keys:
        small = len(roles.data) <= MOST_GOWER
        mixed = Microaggregate((*roles.keys, *roles.numbers), 3, method="gower")
        yield "Microaggregate gower 3", mixed if small else f"too slow for more than {MOST_GOWER:,} records."


def _shuffle(roles: Roles) -> Named:
    others = (name for name in roles.everything if name not in roles.numbers)
    given = tuple(name for name in others if roles.data.level_count(name) <= MOST_LEVELS)
    if roles.numbers:
        yield "Shuffle", Shuffle(roles.numbers, given)


def _round(roles: Roles) -> Named:
    """To 1, 2 or 5 times a power of ten, near a share of the standard deviation of each variable."""
    for share in (0.25, 1.0):
        spreads = {name: roles.spread(name) for name in roles.numbers}
        steps = tuple(Round((name,), _handy(share * s), unbiased=True) for name, s in spreads.items() if s > 0)
        if steps:
            yield f"Round {_short(share)} sd", _together(steps)


def _handy(size: float) -> float:
    power = 10.0 ** math.floor(math.log10(size))
    return power * next(step for step in (5, 2, 1) if step * power <= size)


def _recode(roles: Roles) -> Named:
    for bins in (20, 5) if roles.numbers else ():
        yield f"Recode {bins} bins", Recode(roles.numbers, bins=bins, becomes="mean")
    for share in (0.01, 0.05):
        rare = {name: roles.rare(name, share) for name in roles.keys}
        steps = tuple(Recode((name,), merge=(found,)) for name, found in rare.items() if len(found) > 1)
        if steps:
            yield f"Recode rare {_short(share)}", _together(steps)


def _top_code(roles: Roles) -> Named:
    for share in (0.01, 0.05) if roles.numbers else ():
        coded = TopCode(roles.numbers, top_share=share, bottom_share=share, replaced_by="mean")
        yield f"TopCode {_short(share)}", coded


def _suppress(roles: Roles) -> Named:
    for k in (2, 5) if roles.keys else ():
        yield f"Suppress {k}", Suppress(roles.keys[:MOST_KEYS], k)


def _swap(roles: Roles) -> Named:
    for rate in (0.05, 0.25) if roles.keys else ():
        yield f"Swap {_short(rate)}", Swap(roles.varied, rate)


def _pram(roles: Roles) -> Named:
    for stay in (0.9, 0.6) if roles.keys else ():
        yield f"PRAM {_short(stay)}", PRAM(roles.keys, stay, alpha=1.0)


def _randomised_response(roles: Roles) -> Named:
    for epsilon in (5.0, 3.0) if roles.keys else ():
        yield f"RandomisedResponse {epsilon:g}", RandomisedResponse(roles.keys, epsilon)


def _sample(roles: Roles) -> Named:
    for rate in (0.5, 0.1):
        yield f"Sample {_short(rate)}", Sample(rate, whole_households=roles.data.household is not None)


def _household_swap(roles: Roles) -> Named:
    """Over the strata of the survey, the one geography that roles tell."""
    places = roles.data.schema.of_role("stratum")
    for rate in (0.05, 0.2) if roles.data.household is not None and places else ():
        yield f"HouseholdSwap {_short(rate)}", HouseholdSwap(places, rate, k=0, partial=True)


def _synthesise(roles: Roles) -> Named:
    if roles.numbers and len(roles.numbers) < len(roles.everything):
        yield "Synthesise numbers", Synthesise(roles.numbers)
    if len(roles.everything) > 1:
        yield "Synthesise all", Synthesise(roles.everything)
        yield "Synthesise all copula", Synthesise(roles.everything, model="copula")


def _chain(roles: Roles) -> Named:
    if roles.keys and roles.numbers:
        yield "Suppress 2 then Noise .05", Chain((Suppress(roles.keys[:MOST_KEYS], 2), Noise(roles.numbers, 0.05)))
        yield "PRAM .9 then RankSwap .05", Chain((PRAM(roles.keys, 0.9, alpha=1.0), RankSwap(roles.numbers, 0.05)))


def _together(steps: tuple[Method, ...]) -> Method:
    return steps[0] if len(steps) == 1 else Chain(steps)


WAYS: dict[str, Callable[[Roles], Named]] = {
    "Noise": _noise,
    "MixtureNoise": _mixture_noise,
    "MultiplicativeNoise": _multiplicative_noise,
    "Protect": _protect,
    "RankSwap": _rank_swap,
    "SwapReidentified": _swap_reidentified,
    "Microaggregate": _microaggregate,
    "Shuffle": _shuffle,
    "Round": _round,
    "Recode": _recode,
    "TopCode": _top_code,
    "Suppress": _suppress,
    "Swap": _swap,
    "PRAM": _pram,
    "RandomisedResponse": _randomised_response,
    "Sample": _sample,
    "HouseholdSwap": _household_swap,
    "Synthesise": _synthesise,
    "Chain": _chain,
}
