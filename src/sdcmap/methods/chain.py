"""Several methods in sequence, as one candidate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sdcmap.method import Method
from sdcmap.microdata import Microdata
from sdcmap.randomness import Stream


@dataclass(frozen=True)
class Chain(Method):
    """Apply `methods` one after the other, each with a random stream of its own.

    Parameters
    ----------
    methods : the steps, at least one; each works on what the step before has left.

    Missing values, weights, households and strata: as each step says.

    Examples
    --------
    >>> from sdcmap.methods import Noise, Swap
    >>> Chain([Swap(on="sex"), Noise(on="income")]).text
    "Chain(methods=[Swap(on='sex'), Noise(on='income')])"
    """

    methods: tuple[Method, ...]

    def problems(self) -> Iterator[str]:
        if not self.methods:
            yield ".methods must hold at least one method."
        if self.within:
            yield ".within belongs to the steps of a chain."

    @property
    def random(self) -> bool:  # type: ignore[override]
        """A chain is random when a step is."""
        return any(step.random for step in self.methods)

    @property
    def missing(self) -> str:  # type: ignore[override]
        """Missing values are kept when every step keeps them."""
        return next((step.missing for step in self.methods if step.missing != "kept"), "kept")

    @property
    def kept(self) -> str:  # type: ignore[override]
        return "; then ".join(f"{type(step).__name__}: {step.kept}" for step in self.methods)

    @property
    def distorted(self) -> str:  # type: ignore[override]
        return "; then ".join(f"{type(step).__name__}: {step.distorted}" for step in self.methods)

    @property
    def masked_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for step in self.methods for name in step.masked_names))

    def misfits(self, data: Microdata) -> Iterator[str]:
        for step in self.methods:
            yield from step.misfits(data)

    def apply(self, data: Microdata, stream: Stream) -> Microdata:
        for number, step in enumerate(self.methods):
            data = step.apply(data, stream.child(f"step {number}"))
        return data
