"""The gate: the written file attacked by a snooper who knows every released column, whatever the plan measured.

Three levels of what he knows are told: the keys; every column that somebody beside the respondent could know, on which the
gate decides; and every column but weights, households and strata, as a yardstick (twelve opinions leave nearly everybody
alone, and nobody knows them).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sdcmap.bundle.checks import Check
from sdcmap.bundle.limit_checks import check_limits
from sdcmap.bundle.prepared_file import Prepared
from sdcmap.core import Measure, Method, Microdata
from sdcmap.core.limit import Limit
from sdcmap.core.release_policy import ReleasePolicy
from sdcmap.data.cells import common_codes
from sdcmap.kernels.tables.coding import compress
from sdcmap.kernels.tables.identifying_columns import alone_on, most_identifying
from sdcmap.methods import Identity
from sdcmap.risk import ExactMatch, WorstLinkage
from sdcmap.study.jobs import ScoreRow
from sdcmap.study.profiles import Profile

OFF = 0.1  # of a stated number, by which another may miss it
RELIABLE, FEW_COUNTED = 5, 0.1  # records from whose weights people can be counted; share of records that may have fewer
MOST_TOLD = 30  # columns whose sets of up to three are looked at
FEW, SAMPLE = 5000, 1000  # beyond so many records so many are targets, on levels on which nothing is decided
Score = Callable[[Sequence[Measure]], list[ScoreRow]]


@dataclass(frozen=True)
class Gate:
    """What is attacked: the original, the file as read back (aligned with it, and as prepared), how it was made, what is
    tolerable, and how a measure of it is scored."""

    data: Microdata
    released: Microdata
    prepared: Prepared
    method: Method
    profile: Profile
    policy: ReleasePolicy
    score: Score

    def checks(self) -> Iterator[Check]:
        """Everything, the decisive level first."""
        yield check_unmasked(self.data, self.released, self.method, self.policy.unmasked_agreement)
        yield self._alone()
        yield from self._held()
        yield from self._both_snoopers()
        yield from self._subgroups()
        yield from self._area()
        yield from self._levels()

    # ---- what decides -----------------------------------------------------------------------------------------
    def _alone(self) -> Check:
        """Who is alone on the columns that nothing masked, all of them together."""
        names, rows = self._unmasked(self.data.knowable), len(self.released)
        if not names:
            return Check("gate", True, "every column that others could know is masked.")
        alone, columns = self._alone_on(names), f"the {len(names)} unmasked columns that others could know"
        passed = alone / max(1, rows) <= self.profile.found
        advice = "" if passed else f", more than {self.profile.found:.2g}: {self._telling(names)}"
        return Check("gate", passed, f"{alone:,} of {rows:,} records are alone on {columns}, together{advice}.")

    def _telling(self, names: Sequence[str]) -> str:
        """The few unmasked columns that leave most records alone."""
        data = self.prepared.data
        ranked = sorted(names, key=lambda name: -data.level_count(name))[:MOST_TOLD]
        best: dict[int, str] = {}
        for places, alone in most_identifying([data.codes(name) for name in ranked], 1):
            if alone:
                best.setdefault(len(places), f"{' and '.join(ranked[place] for place in places)} ({alone:,})")
        return f"by {'; '.join(best.values())}" if best else "by no three of them"

    def _held(self) -> Iterator[Check]:
        """The measures of the profile, each against its limit."""
        profile, held = self.profile, self.profile.measures(self.data)
        limits = [Limit(measure, limit, f"the profile {profile.name}") for measure, limit in held.limits.items()]
        measured = list(zip(held.limits, self.score(list(held.limits)), strict=True))
        yield from check_limits(limits, measured, self.policy.release_level, what="", name="gate")
        for name, reason in held.off.items():
            yield Check("told", True, f"{name} is off: {reason}")
        share = next((row.value for m, row in measured if isinstance(m, WorstLinkage)), None)
        if share is not None and profile.people is not None:
            people = share * len(self.released)
            word = "at most" if (passed := people <= profile.people) else "more than"
            yield Check("gate", passed, f"{people:,.0f} people are expected to be found, {word} {profile.people:,}.")

    def _both_snoopers(self) -> Iterator[Check]:
        """Prosecutor and journalist side by side, and what is wrong with the numbers that a journalist is told by."""
        inclusion, part = self.profile.inclusion, self.profile.fraction
        rows = self.score([WorstLinkage(inclusion=inclusion)]) if self.released.paired else []
        for known in [row.value / inclusion for row in rows if row.value is not None]:
            told = f"prosecutor, who knows that his target is in the file: {known:.4g} found"
            other = f"{part * known:.4g}" if part else "not told, for no population and sampling fraction are stated"
            by = "prosecutor" if inclusion == 1 else "journalist"
            yield Check("told", True, f"{told}; journalist, who does not: {other}. The gate decides by the {by}.")
        yield from (Check("told", True, f"warning: {words}") for words in unreliable(self.data, self.profile))

    def _subgroups(self) -> Iterator[Check]:
        """The worst category of a key: a share over all people may hide it."""
        if not self.released.paired or not self.data.keys:
            return
        found = ExactMatch().records(self.data, self.released)
        worst, where = 0.0, ""
        for name in self.data.keys:
            code = self.released.codes(name)
            count = np.bincount(code)
            share = np.bincount(code, found) / np.maximum(count, 1)
            most = float(np.max(share, where=count >= self.policy.subgroup_records, initial=0.0))
            worst, where = (most, name) if most > worst else (worst, where)
        told = f"found by looking up in the worst subgroup{f', a category of {where}' if where else ''}: {worst:.4g}"
        word = "at most" if (passed := worst <= self.profile.subgroup) else "over"
        yield Check("gate", passed, f"{told}, {word} the line {self.profile.subgroup:g}.")

    def _area(self) -> Iterator[Check]:
        """The smallest area that is told."""
        name, smallest = self.profile.area, self.profile.smallest_area
        if name and name not in self.released.names:
            yield Check("gate", False, f"the profile's area {name!r} is no released column.")
        elif name:
            people = np.bincount(self.released.codes(name), self.released.weights)
            least = float(people[people > 0].min())
            word = "at least" if (passed := least >= smallest) else "fewer than"
            yield Check("gate", passed, f"the smallest {name} has {least:,.0f} people, {word} {smallest:,}.")

    # ---- what is told -----------------------------------------------------------------------------------------
    def _levels(self) -> Iterator[Check]:
        """What who knows less, or more, would find."""
        levels = {"the keys": self.data.keys, "all columns that others could know": self.data.knowable,
                  "every column but the survey's own, as a yardstick": self.data.content_columns}  # fmt: skip
        if not self.released.paired:
            known = "the keys, all columns that others could know, or every column"
            yield Check("told", True, f"who knows {known} finds nobody: the values of a row are nobody's.")
            return
        for words, names in levels.items():
            if names:
                yield Check("told", True, f"who knows {words} ({len(names)}): {self._found(names)}.")

    def _found(self, names: tuple[str, ...]) -> str:
        alone = self._alone_on(self._unmasked(names)) / max(1, len(self.released))
        on, targets = names, SAMPLE if len(self.released) > FEW else 0
        if names == self.data.knowable:  # the decisive level, which is scored whole
            on, targets = (), 0
        linkage = WorstLinkage(on=on, targets=targets, inclusion=self.profile.inclusion)
        attacks: dict[str, Measure] = {"found exactly": ExactMatch(on=on), "found by linkage": linkage}
        shares = [f"alone on the unmasked of them {alone:.4g}"]
        for word, row in zip(attacks, self.score(list(attacks.values())), strict=True):
            shares.append(f"{word} {row.value:.4g}" if row.value is not None else f"{word} could not be computed")
        return "; ".join(shares)

    def _unmasked(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(name for name in names if name not in self.prepared.masked and name in self.prepared.data.names)

    def _alone_on(self, names: Sequence[str]) -> int:
        return alone_on([self.prepared.data.codes(name) for name in names]) if names else 0


def check_unmasked(data: Microdata, released: Microdata, method: Method, most: float) -> Check:
    """Nothing is released as it was that tells amounts: the whole file, or an amount that somebody could know."""
    if isinstance(method, Identity):
        return Check("unmasked", False, "the file would be released as it is, unmasked.")
    amounts = [name for name in data.numeric if data.schema[name].knowable and _as_it_was(data, released, name, most)]
    if not amounts:
        return Check("unmasked", True, "no amount is released as it was.")
    told = f"{', '.join(map(repr, amounts))} would be released as {'it was' if len(amounts) == 1 else 'they were'}"
    return Check("unmasked", False, f"{told}: mask it in a chain, or drop it.")


def _as_it_was(data: Microdata, released: Microdata, name: str, most: float) -> bool:
    """Whether more values of a number stand where they stood, beyond chance (Cohen's kappa), than may."""
    if not released.paired or name not in released.names or released.column(name).levels is not None:
        return False
    code = common_codes(data, released, name)
    before, after = code[: len(data)], code[len(data) :]
    own = before if released.origin is None else before[released.origin]
    known = ~released.missing(name)
    if not known.any():
        return False
    same = float((own == after)[known].mean())
    shares = [np.bincount(codes[known], minlength=int(code.max()) + 1) / known.sum() for codes in (own, after)]
    chance = float(shares[0] @ shares[1])
    return same > chance + most * (1 - chance) or (chance == 1 and same == 1)


def unreliable(data: Microdata, profile: Profile) -> Iterator[str]:
    """Why population counts by weights, or those that are stated, are not to be trusted: a sentence each."""
    if profile.population and profile.fraction:
        stated = profile.population * profile.fraction
        if abs(stated - len(data)) > OFF * len(data):
            yield f"population times fraction is {stated:,.0f}, and the file has {len(data):,} records."
    if data.weight is None or not (profile.population or profile.area):
        return
    total = float(np.nansum(data.weights))
    if profile.population and abs(total - profile.population) > OFF * profile.population:
        yield f"the weights add up to {total:,.0f}, the stated population is {profile.population:,}: they count no people."
    if data.keys:
        cell, count = compress([data.codes(name) for name in data.keys])
        few = float((count[cell] < RELIABLE).mean())
        if few > FEW_COUNTED:
            yield (f"{few:.0%} of the records share their keys with fewer than {RELIABLE}: what their weights say of the "
                   "population is unreliable.")  # fmt: skip
