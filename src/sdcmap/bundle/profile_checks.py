"""Checks of the written file against the limits of its release profile, whatever the plan measured.

The file is attacked at three levels of knowledge: the keys; every column that somebody other than the respondent could
know; and every column except weights, households and strata. The second level decides. The third is a yardstick only:
most records are unique on a dozen opinions, but no attacker knows them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sdcmap.bundle.checks import Check
from sdcmap.bundle.limit_checks import check_limits
from sdcmap.bundle.written_draw import WrittenDraw
from sdcmap.core import Measure, Method, Microdata
from sdcmap.core.formatting import format_percent
from sdcmap.core.limit import Limit
from sdcmap.core.release_policy import ReleasePolicy
from sdcmap.data.cells import common_codes
from sdcmap.kernels.tables.coding import compress
from sdcmap.kernels.tables.identifying_columns import count_unique, most_identifying
from sdcmap.methods import Identity
from sdcmap.risk import ExactMatch, WorstLinkage
from sdcmap.study.profiles import Profile

MAX_RELATIVE_DISCREPANCY = 0.1  # between a stated number and the same number computed from the file
MIN_RECORDS_PER_CELL = 5  # fewer records estimate the size of a population cell badly ...
MAX_SPARSE_SHARE = 0.1  # ... and a warning is due if more than this share of the records lie in such cells
MAX_COLUMNS_COMBINED = 30  # unmasked columns of which all sets of up to three are examined; the work grows cubically
INFORMATIONAL_SAMPLE_ABOVE = 5_000  # records; larger files are attacked on a sample ...
INFORMATIONAL_SAMPLE_SIZE = 1_000  # ... of this size, for levels that cannot fail a release


@dataclass(frozen=True)
class ProfileChecks:
    """The checks of one written file against a release profile.

    profile, policy : what is acceptable. level : the confidence level of the limits. draw : the written file.
    """

    profile: Profile
    policy: ReleasePolicy
    level: float
    draw: WrittenDraw

    def checks_without_scores(self) -> Iterator[Check]:
        """Yield the checks that count and need no attack."""
        yield check_unmasked(self.draw.data, self.draw.released, self.draw.method, self.policy.unmasked_agreement)
        yield self._unique_records()
        yield from self._area_size()

    def checks(self) -> Iterator[Check]:
        """Yield the checks that attack the file, those that can fail first."""
        yield from self._profile_limits()
        yield from self._attack_scenarios()
        yield from self._subgroups()
        yield from self._knowledge_levels()

    # ---- checks that can fail ---------------------------------------------------------------------------------
    def _unique_records(self) -> Check:
        """Check how many records are unique on all unmasked columns that others could know."""
        names, rows = self._unmasked_names(self.draw.data.knowable), len(self.draw.released)
        if not names:
            return Check("profile", True, "Every column that others could know is masked.")
        unique, columns = self._count_unique(names), f"the {len(names)} unmasked columns that others could know"
        sentence = f"{unique:,} of {rows:,} records are unique on {columns}, taken together"
        if unique / max(1, rows) <= self.profile.reidentification:
            return Check("profile", True, f"{sentence}.")
        return Check(
            "profile",
            False,
            f"{sentence}, more than {format_percent(self.profile.reidentification)}{self._most_identifying(names)}.",
        )

    def _most_identifying(self, names: Sequence[str]) -> str:
        """Return which one, two and three unmasked columns make most records unique."""
        data = self.draw.prepared.data
        ranked = sorted(names, key=lambda name: -data.level_count(name))[:MAX_COLUMNS_COMBINED]
        best: dict[int, str] = {}
        for positions, unique in most_identifying([data.codes(name) for name in ranked], 1):
            if unique:
                columns = " and ".join(ranked[position] for position in positions)
                best.setdefault(len(positions), f"{columns} ({unique:,} unique records)")
        return f"; the most identifying are {'; '.join(best.values())}" if best else "; no three of them suffice"

    def _profile_limits(self) -> Iterator[Check]:
        """Compare every measure of the profile with its limit."""
        profile, measures = self.profile, self.profile.measures(self.draw.data)
        limits = [Limit(measure, limit, f"the profile {profile.name}") for measure, limit in measures.limits.items()]
        scores = list(zip(measures.limits, self.draw.score(list(measures.limits)), strict=True))
        yield from check_limits(limits, scores, self.level, what="", name="profile")
        for name, reason in measures.off.items():
            yield Check("information", True, f"{name} was not tested. {reason}", tested=False)
        share = next((row.value for m, row in scores if isinstance(m, WorstLinkage)), None)
        # A small share of a large file is still many people, so the profile also limits their number.
        if share is not None and profile.people is not None:
            people = share * len(self.draw.released)
            passed = people <= profile.people
            compared = f"{'at most' if passed else 'more than'} the {profile.people:,} of the profile"
            sentence = f"About {people:,.0f} people are expected to be re-identified, {compared}."
            yield Check("profile", passed, sentence)

    def _attack_scenarios(self) -> Iterator[Check]:
        """Report both attack scenarios, prosecutor and journalist, and doubts about the population numbers.

        The prosecutor knows that the target is in the file. The journalist does not, so their success is multiplied by
        the sampling fraction.
        """
        inclusion, fraction = self.profile.inclusion, self.profile.fraction
        rows = self.draw.score([WorstLinkage(inclusion=inclusion)]) if self.draw.released.paired else []
        for share in [row.value / inclusion for row in rows if row.value is not None]:
            other = f"{fraction * share:.4g}" if fraction else "not tested, because no sampling fraction is stated"
            scenario = "prosecutor" if inclusion == 1 else "journalist"
            yield Check(
                "information",
                True,
                f"Re-identified if the attacker knows that the target is in the file (prosecutor): {share:.4g}. If not "
                f"(journalist): {other}. The {scenario} scenario decides.",
            )
        for warning in population_warnings(self.draw.data, self.profile):
            yield Check("information", True, f"Warning: {warning}")

    def _subgroups(self) -> Iterator[Check]:
        """Check the worst category of a key: a share over all people may hide it."""
        if not self.draw.released.paired or not self.draw.data.keys:
            return
        matches = ExactMatch().records(self.draw.data, self.draw.released)
        worst, column = 0.0, ""
        for name in self.draw.data.keys:
            code = self.draw.released.codes(name)
            count = np.bincount(code)
            share = np.bincount(code, matches) / np.maximum(count, 1)
            # The share of a small category is mostly noise, so small ones are left out.
            largest = float(np.max(share, where=count >= self.policy.subgroup_records, initial=0.0))
            worst, column = (largest, name) if largest > worst else (worst, column)
        where = f", a category of {column}" if column else ""
        passed = worst <= self.profile.subgroup
        compared = f"{'within' if passed else 'exceeds'} the limit of {self.profile.subgroup:g}"
        sentence = f"Re-identified by exact match in the worst subgroup{where}: {worst:.4g}, {compared}."
        yield Check("profile", passed, sentence)

    def _area_size(self) -> Iterator[Check]:
        """Check how many people live in the smallest released area."""
        name, smallest = self.profile.area, self.profile.smallest_area
        if name and name not in self.draw.released.names:
            yield Check("profile", False, f"The area {name!r} of the profile is not a released column.")
        elif name:
            people = np.bincount(self.draw.released.codes(name), self.draw.released.weights)
            least = float(people[people > 0].min())
            passed = least >= smallest
            compared = f"{'at least' if passed else 'fewer than'} the required {smallest:,}"
            yield Check("profile", passed, f"The smallest {name} has {least:,.0f} people, {compared}.")

    # ---- for information --------------------------------------------------------------------------------------
    def _knowledge_levels(self) -> Iterator[Check]:
        """Report what an attacker achieves who knows less, or more, than the level that decides."""
        levels = {
            "the keys": self.draw.data.keys,
            "all columns that others could know": self.draw.data.knowable,
            "every column except weights, households and strata, as a yardstick": self.draw.data.content_columns,
        }
        if not self.draw.released.paired:
            reason = "Record linkage was not tested because the file is fully synthetic"
            yield Check("information", True, f"{reason}: its rows do not correspond to people.", tested=False)
            return
        for level, names in levels.items():
            if names:
                columns = f"{level} ({len(names)} column{'s' if len(names) > 1 else ''})"
                yield Check("information", True, f"An attacker who knows {columns}: {self._attack_shares(names)}.")

    def _attack_shares(self, names: tuple[str, ...]) -> str:
        """Return what shares of the records are unique, exactly matched and linked on these columns, in words."""
        unique = self._count_unique(self._unmasked_names(names)) / max(1, len(self.draw.released))
        on, targets = names, INFORMATIONAL_SAMPLE_SIZE if len(self.draw.released) > INFORMATIONAL_SAMPLE_ABOVE else 0
        if names == self.draw.data.knowable:  # the level that decides is scored on all records, and is in the cache
            on, targets = (), 0
        linkage = WorstLinkage(on=on, targets=targets, inclusion=self.profile.inclusion)
        attacks: dict[str, Measure] = {"exact match": ExactMatch(on=on), "linkage": linkage}
        shares = []
        for attack, row in zip(attacks, self.draw.score(list(attacks.values())), strict=True):
            value = f"{row.value:.4g}" if row.value is not None else "not tested"
            shares.append(f"{value} by {attack}")
        return f"re-identified {', '.join(shares)}; unique on the unmasked columns among them {unique:.4g}"

    def _unmasked_names(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the columns that no step masks, except that a few of their missing values may have been changed."""
        changing = {
            name
            for step in self.draw.method.steps
            if step.value_origin != "unmasked"
            for name in step.masks(self.draw.data)
        }
        nearly = {name for step in self.draw.method.steps for name in step.masks(self.draw.data)} - changing
        masked = {*self.draw.prepared.masked} - nearly
        return tuple(name for name in names if name not in masked and name in self.draw.prepared.data.names)

    def _count_unique(self, names: Sequence[str]) -> int:
        return count_unique([self.draw.prepared.data.codes(name) for name in names]) if names else 0


def check_unmasked(data: Microdata, released: Microdata, method: Method, max_agreement: float) -> Check:
    """Check that the file is masked, and that no amount that others could know is released as it was."""
    if isinstance(method, Identity):
        return Check("unmasked", False, "The file would be released as it is, unmasked.")
    amounts = [
        name
        for name in data.numeric
        if data.schema[name].knowable and _is_released_unmasked(data, released, name, max_agreement)
    ]
    if not amounts:
        return Check("unmasked", True, "No amount is released unmasked.")
    one = len(amounts) == 1
    problem = f"{', '.join(map(repr, amounts))} would be released unmasked."
    return Check(
        "unmasked", False, f"{problem} Mask {'it' if one else 'them'} in a chain, or drop {'it' if one else 'them'}."
    )


def _is_released_unmasked(data: Microdata, released: Microdata, name: str, max_agreement: float) -> bool:
    """Return whether the values of a number agree with the original by more than this, beyond chance (Cohen's kappa)."""
    if not released.paired or name not in released.names or released.column(name).levels is not None:
        return False
    code = common_codes(data, released, name)
    before, after = code[: len(data)], code[len(data) :]
    own = before if released.origin is None else before[released.origin]
    known = ~released.missing(name)
    if not known.any():
        return False
    # Kappa: the agreement of both columns, less the agreement of two independent columns with the same values.
    agreement = float((own == after)[known].mean())
    shares = [np.bincount(codes[known], minlength=int(code.max()) + 1) / known.sum() for codes in (own, after)]
    chance = float(shares[0] @ shares[1])
    return agreement > chance + max_agreement * (1 - chance) or (chance == 1 and agreement == 1)


def population_warnings(data: Microdata, profile: Profile) -> Iterator[str]:
    """Yield why the stated population numbers, or those estimated from weights, are doubtful, a sentence each."""
    if profile.population and profile.fraction:
        expected = profile.population * profile.fraction
        if abs(expected - len(data)) > MAX_RELATIVE_DISCREPANCY * len(data):
            yield f"The population times the fraction is {expected:,.0f}, but the file has {len(data):,} records."
    if data.weight is None or not (profile.population or profile.area):
        return
    total = float(np.nansum(data.weights))
    if profile.population and abs(total - profile.population) > MAX_RELATIVE_DISCREPANCY * profile.population:
        yield (
            f"The weights sum to {total:,.0f}, but the stated population is {profile.population:,}. Weights must be "
            "population weights to check area sizes."
        )
    if data.keys:
        cell, count = compress([data.codes(name) for name in data.keys])
        sparse = float((count[cell] < MIN_RECORDS_PER_CELL).mean())
        if sparse > MAX_SPARSE_SHARE:
            yield (
                f"{format_percent(sparse)} of the records share their keys with fewer than {MIN_RECORDS_PER_CELL} records. "
                "Population counts estimated from their weights are unreliable."
            )
