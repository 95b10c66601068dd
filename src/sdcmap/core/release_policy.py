"""The release policy: every number, other than a stated limit, that can refuse a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Annotated, TypeAlias

from sdcmap.core.value import Range, Share, Value

Level: TypeAlias = Annotated[float, Range(0.5, 1, "()")]
Multiple: TypeAlias = Annotated[float, Range(0, 10)]  # of a standard error
PolicyNumber: TypeAlias = float | list[float]


@dataclass(frozen=True)
class ReleasePolicy(Value):
    """The numbers, beside the limits of the plan and the profile, that can refuse a file.

    Parameters
    ----------
    reason : why a number differs from its default; required as soon as one does.
    z_release, z_study : a candidate of a study is eligible if value + z_release * s_release + z_study * sqrt(s_study^2 +
        s_release^2) is within every tested limit, with the standard errors s_study of the study and s_release of the
        measurement at release; from 0 to 10.
    try_errors : the probabilities that the first try of a release, the second, ... passes above a limit, each in (0, 0.5).
        The written file is measured anew and must be within its limits at the confidence level 1 minus this number. Their
        sum is the share of studies in which a file above a limit is written.
    comparison_level : one-sided confidence level at which a candidate counts as worse than the unmasked file, and which the
        draws of an expectation must allow (3 standard errors).
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
    z_release: Multiple = 2.33
    z_study: Multiple = 1.5
    try_errors: tuple[Annotated[float, Range(0, 0.5, "()")], ...] = (0.03, 0.01, 0.01)
    comparison_level: Level = 0.99865
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
    def first_level(self) -> float:
        """The confidence level of the first try."""
        return 1 - self.try_errors[0]

    @property
    def numbers(self) -> dict[str, PolicyNumber]:
        """Every number, or list of numbers, by its name."""
        return {f.name: _to_list(getattr(self, f.name)) for f in fields(self) if f.name != "reason"}

    @property
    def changes(self) -> dict[str, PolicyNumber]:
        """The numbers that differ from their defaults."""
        usual = {f.name: _to_list(f.default) for f in fields(self)}
        return {name: value for name, value in self.numbers.items() if value != usual[name]}

    @property
    def description(self) -> str:
        """Every number as text; the changed ones are marked, with the reason."""
        parts = (f"{n} {_format(v)}{' (changed)' if n in self.changes else ''}" for n, v in self.numbers.items())
        numbers = ", ".join(parts)
        return f"{numbers}.{f' Changed because: {self.reason}' if self.changes else ''}"

    def problems(self) -> Iterator[str]:
        if self.changes and not self.reason.strip():
            yield f".reason must say why {', '.join(self.changes)} differs from the default."
        if not self.try_errors:
            yield ".try_errors must contain at least one probability."


def _to_list(value: object) -> PolicyNumber:
    return [*value] if isinstance(value, tuple) else value  # type: ignore[return-value]


def _format(value: PolicyNumber) -> str:
    return " + ".join(f"{number:g}" for number in value) if isinstance(value, list) else f"{value:g}"


DEFAULT_POLICY = ReleasePolicy()
