"""The release policy: every number, other than a stated limit, that can refuse a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Annotated

from sdcmap.core.value import Range, Share, Value

Level = Annotated[float, Range(0.5, 1, "()")]


@dataclass(frozen=True)
class ReleasePolicy(Value):
    """The numbers, beside the limits of the plan and the profile, that can refuse a file.

    Parameters
    ----------
    reason : why a number differs from its default; required as soon as one does.
    choosing_level : one-sided confidence level at which a candidate must meet its limits to be chosen (3 standard errors).
    release_level : one-sided confidence level at which the written file must meet its limits, on a new sample.
    seed_bits : fewest bits of the seed; a shorter one could be guessed.
    draws : most draws of one method that may be checked as written files.
    edit_violations : largest share of records that may violate an edit rule that holds in the original.
    unique_weights : largest share of records that may be unique on weight and stratum in a public-use file.
    unmasked_agreement : largest agreement with the original, beyond chance (Cohen's kappa), of an amount that an
        attacker could know.
    distinct_values : share of distinct values from which a text column counts as an identifier.
    subgroup_records : fewest records of a category whose own share of re-identified records is limited.
    recovered_share : largest share of masked values that the other released columns may predict exactly.
    recovered_gain : ... where they predict at least this share of the values that the best constant guess misses.
    overlap_share : share of either file, common to two releases, from which they count as releases of the same people.
    overlap_people : ... and the fewest people in common.

    Examples
    --------
    >>> ReleasePolicy(draws=5, reason="a pilot file that is destroyed after the test").changes
    {'draws': 5}
    """

    reason: str = ""
    choosing_level: Level = 0.99865
    release_level: Level = 0.95
    seed_bits: Annotated[int, Range(64)] = 128
    draws: Annotated[int, Range(1)] = 3
    edit_violations: Share = 0.001
    unique_weights: Share = 0.05
    unmasked_agreement: Share = 0.5
    distinct_values: Share = 0.95
    subgroup_records: Annotated[int, Range(1)] = 50
    recovered_share: Share = 0.95
    recovered_gain: Share = 0.8
    overlap_share: Share = 0.01
    overlap_people: Annotated[int, Range(1)] = 5

    @property
    def numbers(self) -> dict[str, float]:
        """Every number by its name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "reason"}

    @property
    def changes(self) -> dict[str, float]:
        """The numbers that differ from their defaults."""
        usual = {f.name: f.default for f in fields(self)}
        return {name: value for name, value in self.numbers.items() if value != usual[name]}

    @property
    def description(self) -> str:
        """Every number as text; the changed ones are marked, with the reason."""
        parts = (f"{n} {value:g}{' (changed)' if n in self.changes else ''}" for n, value in self.numbers.items())
        numbers = ", ".join(parts)
        return f"{numbers}.{f' Changed because: {self.reason}' if self.changes else ''}"

    def problems(self) -> Iterator[str]:
        if self.changes and not self.reason.strip():
            yield f".reason must say why {', '.join(self.changes)} differs from the default."


DEFAULT_POLICY = ReleasePolicy()
