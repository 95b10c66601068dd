"""One file under additive noise: U, R of each intruder, the strongest attack, and the noise that is needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from numpy.typing import ArrayLike

from sdcmap.core import Floats, PlanError, Positive, Range, Value, did_you_mean
from sdcmap.theory import informed_intruders, positions, typical_targets
from sdcmap.theory.noise_search import (
    POINTS,
    Curve,
    Solution,
    Switch,
    crossings,
    noise_grid,
    solve,
    strongest,
    switches,
)
from sdcmap.theory.parameter_checks import require

PAPER = ("population", "index", "percentile", "extreme")  # the four curves of figure 4
EXACT = ("in_sample", "index", "percentile_exact", "extreme_in_sample")
SLOW_STATES = {"percentile_in_sample", "extreme_in_sample"}
SLOW_POINTS = 120  # grid points for these: each takes milliseconds


@dataclass(frozen=True)
class NoiseModel(Value):
    """Y = X + e: n records of variance s2 under noise of variance l2. All methods are vectorized over l2.

    Parameters
    ----------
    n : records of the file, at least 2.
    variance : s2 of the data, above 0, in unit^2.
    p : the percentile that percentile attacks target, in (0, 1) with n p at least 1; k = ceil(n p).
    r : the extreme that extreme attacks target, counted from the nearer end: 1 is the largest or the smallest.

    Knowledge states: see `KNOWLEDGE`. A tuple of them is an intruder who has them all; the risk is the largest.
    Reference: Duncan, Keller-McNulty, Stokes (2001), section 3, with its errata.

    >>> model = NoiseModel(n=200, variance=1.0, p=0.99)
    >>> print(model.solve(5, "index"))
    R falls to 5 at a noise variance of 0.2; U is 166.667 there, 83.3 % of the unmasked file's.
    >>> [str(switch) for switch in model.switches(PAPER)][0]
    'from index to percentile at l2 = 0.0849848, R = 11.7668'
    """

    n: Annotated[int, Range(2, None)]
    variance: Positive = 1.0
    p: Annotated[float, Range(0, 1, "()")] = 0.99
    r: Annotated[int, Range(1, None)] = 1

    def __post_init__(self) -> None:
        require(n=self.n, variance=self.variance, p=self.p, r=self.r)
        super().__post_init__()

    @property
    def rank(self) -> int:
        """The rank of the percentile, k = ceil(n p), counted from the smallest."""
        return positions.rank_of(self.p, self.n)

    def utility(self, noise_variance: ArrayLike) -> Floats:
        """Return U = n/(s2 + l2) of a user who estimates the mean."""
        return typical_targets.utility(noise_variance, n=self.n, variance=self.variance)

    def efficiency(self, noise_variance: ArrayLike) -> Floats:
        """Return U(l2)/U(0), the share of the unmasked file's utility that is left."""
        return self.utility(noise_variance) * (self.variance / self.n)

    def risk(self, noise_variance: ArrayLike, knowledge: str | Sequence[str]) -> Floats:
        """Return R of an intruder with this knowledge; with several states, of the strongest."""
        return strongest(self.attacks(knowledge), noise_variance)[0]

    def attacks(self, knowledge: str | Sequence[str]) -> dict[str, Curve]:
        """Return the risk curves of these knowledge states, by name."""
        names = (knowledge,) if isinstance(knowledge, str) else tuple(knowledge)
        if unknown := [name for name in names if name not in KNOWLEDGE]:
            known = f"Known: {', '.join(KNOWLEDGE)}."
            raise PlanError(
                [f"there is no knowledge state {name!r}.{did_you_mean(name, KNOWLEDGE)} {known}" for name in unknown]
            )
        return {name: partial(KNOWLEDGE[name], self) for name in names}

    def best(self, noise_variance: ArrayLike, among: Sequence[str] = PAPER) -> tuple[Floats, tuple[str, ...]]:
        """Return the largest risk at each noise variance, and the attack that has it."""
        return strongest(self.attacks(among), noise_variance)

    def switches(self, among: Sequence[str] = PAPER) -> tuple[Switch, ...]:
        """Return where the strongest attack changes, for l2 from 1e-9 s2 to 1e4 s2."""
        return switches(self.attacks(among), self._grid(among))

    def crossings(self, first: str, second: str) -> tuple[float, ...]:
        """Return every l2 at which the risk curves of two knowledge states cross."""
        curves = self.attacks((first, second))
        return crossings(curves[first], curves[second], self._grid((first, second)))

    def solve(
        self, max_risk: float, knowledge: str | Sequence[str] = PAPER, *, max_noise_variance: float | None = None
    ) -> Solution:
        """Return the smallest noise that keeps R at or below `max_risk`, for one knowledge state or for several.

        Parameters
        ----------
        max_risk : the largest tolerable R, above 0, in 1/unit^2.
        max_noise_variance : the most noise the agency would add, in unit^2; without it the search ends where every
            closed form is below `max_risk`.
        """
        require(max_risk=max_risk, max_noise_variance=1.0 if max_noise_variance is None else max_noise_variance)
        names = (knowledge,) if isinstance(knowledge, str) else knowledge
        grid = self._grid(names, max_noise_variance or max(1e4 * self.variance, 10 * self.n / max_risk))
        worst = partial(self.risk, knowledge=names)
        return solve(worst, self.utility, max_risk, grid, bounded=max_noise_variance is not None)

    def _grid(self, names: Sequence[str], most: float | None = None) -> Floats:
        return noise_grid(self.variance, most=most, points=SLOW_POINTS if SLOW_STATES & set(names) else POINTS)


def _bind(function: Callable[..., Floats], *parameters: str) -> Callable[[NoiseModel, ArrayLike], Floats]:
    return lambda model, l2: function(l2, **{name: getattr(model, name) for name in parameters})


KNOWLEDGE: Mapping[str, Callable[[NoiseModel, ArrayLike], Floats]] = {
    "population": _bind(typical_targets.in_population, "n", "variance"),  # eq. 2
    "in_sample": _bind(typical_targets.in_sample, "n", "variance"),  # exact
    "nearest_to_mean": _bind(typical_targets.largest_in_population, "n", "variance"),  # after eq. 1
    "index": _bind(typical_targets.index_known),  # eq. 4
    "percentile": _bind(positions.percentile, "n", "variance", "p"),  # eq. 8
    "percentile_exact": _bind(positions.percentile_exact, "n", "variance", "p"),
    "percentile_noise_known": _bind(informed_intruders.noise_known, "n", "variance", "p"),
    "percentile_in_sample": _bind(positions.position_known, "n", "variance", "rank"),  # exact
    "extreme": _bind(positions.extreme, "n", "variance", "r"),  # eq. 10
    "extreme_exact": _bind(positions.extreme_exact, "n", "variance", "r"),  # eq. 10 with exact moments
    "extreme_in_sample": _bind(positions.extreme_in_sample, "n", "variance", "r"),  # exact
}
