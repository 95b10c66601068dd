"""People whose closest released record discloses that they are in the file, or whose record identifies them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

import numpy as np

from sdcmap.core import Array, Column, Estimate, Generator, Microdata, Range, RiskMeasure, Undefined
from sdcmap.data.cells import recode_to_released_categories, stack_columns
from sdcmap.data.label_layers import spell_out_labels
from sdcmap.kernels.tables.attribution import closer_share, nearest, share_error, two_nearest
from sdcmap.risk._control import PAIR, Controlled, Split, positions, ranges_of

ONE_SIDED = 1.6449  # normal quantile of .95

# The distance of each person, inside and outside, to the closest record, and how strange they are to the file: the
# lower, the more they seem to be in it.
Outcome: TypeAlias = tuple[list[Array], list[Array]]


@dataclass(frozen=True)
class ClosestRecord(Controlled):
    """How well the released records tell people in the file from people outside it: by the closest, or by own values.

    The snooper knows everything about two people, one in the original file and one not, and wants to know which is which:
    being in it may itself be the secret. He bets on the one who has the closer released record, or on the one of whose
    values more are in the file, in whosever record, and succeeds when that is the one in the file. At one half he learns
    nothing. In a census everybody is in the file: there it is off.

    Parameters
    ----------
    on : the variables he knows, of any kind; by default the keys and the numeric variables of the file.
    importance : how much each variable of `on` counts in the distance, above 0, one number each; empty: all alike.

    Formula: P(d_in < d_out) + P(d_in = d_out) / 2 over pairs of people drawn at random, d the distance to the closest
        released record: Gower's, the mean of |x - y| / range, at most 1, for numbers and 0 or 1 for categories, weighted by
        `importance`. The same of d = sum of log(share of the people with his value) over his values that are in the file
        counts where it is more, and beyond chance (1.64 standard errors above one half).
    By makings the value is that of the method on these data, the mean over the makings: each is compared with people who
    were in it and people who were not, and the released file itself is not looked at.
    `parts`: the shares "by distance" and "by own values"; the median distance "inside" and "outside", and the share of
    "copies" (distance 0) inside.
    Missing is a category of its own; a missing number is at distance 1 from a known one. A recoded variable is compared in
    the categories of the release, where each value became one of them, and as their labels read where they are of several
    depths. Weights are not used. Households: persons are looked at one by one; a making leaves whole households out, and
    keeps strata.
    Reference: Chen, Yu, Zhang, Fritz (2020); Platzer and Reutterer (2021) for the holdout.

    Examples
    --------
    >>> ClosestRecord(targets=500).text
    'ClosestRecord(targets=500)'
    """

    label: ClassVar[str] = "Membership inference (nearest record)"
    description: ClassVar[str] = (
        "Probability that an attacker tells a person in the file from one outside it by comparing both with "
        "the released records."
    )

    unit: ClassVar[str] = "probability"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    baseline_value: ClassVar[float | None] = 0.5
    floor: ClassVar[str] = "no better than chance"
    revision: ClassVar[int] = 5  # 4: one making leaves few people out; 5: labels of several depths, `importance`

    on: tuple[str, ...] = ()
    importance: tuple[float, ...] = ()

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or tuple(dict.fromkeys((*data.keys, *data.numeric)))

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        if data.schema.census:
            yield "ClosestRecord is off: the file is a census, and that somebody is in it is no secret."

    def attack(self, drawn: Split, names: tuple[str, ...], ranges: dict[str, float], rng: Generator) -> Outcome:
        distances = []
        for group in (drawn.insiders, drawn.outsiders):
            nobody = np.zeros(len(group)), np.zeros(len(drawn.archive))
            places = positions(group, drawn.archive, names, ranges, self.importance)
            distances.append(nearest(*places, *nobody, 0.0)[0] / len(names))
        return distances, _strangeness(drawn, names)

    def estimate(self, outcomes: Sequence[Outcome]) -> Estimate:
        """Return the better of both attacks."""
        distances, strangeness = zip(*outcomes, strict=True)
        by_distance, by_values = _share(distances), _share(strangeness)
        own = by_values if by_values[0] > 0.5 + ONE_SIDED * by_values[1] else by_distance
        parts = {
            "by distance": by_distance[0],
            "by own values": by_values[0],
            "inside": float(np.mean([np.median(inside) for inside, _ in distances])),
            "outside": float(np.mean([np.median(outside) for _, outside in distances])),
            "copies": float(np.concatenate([inside == 0 for inside, _ in distances]).mean()),
        }
        value, se = max(by_distance, own)
        return Estimate(value=value, se=se, parts=parts)


def _strangeness(drawn: Split, names: tuple[str, ...]) -> list[Array]:
    """The logarithms of how many people have each of somebody's values that are in the file, added up: the rarer, the
    lower; of those inside and those outside."""
    groups = drawn.insiders, drawn.outsiders
    total = np.zeros(sum(map(len, groups)))
    for name in names:
        ours, theirs = np.split(_equal_codes([file.column(name) for file in (*groups, drawn.archive)]), [len(total)])
        there = np.bincount(theirs, minlength=int(ours.max(initial=0)) + 1)[ours] > 0
        known = ~np.concatenate([group.missing(name) for group in groups])
        total += np.where(there & known, np.log(np.bincount(ours)[ours] / len(ours)), 0.0)
    return np.split(total, [len(drawn.insiders)])


def _equal_codes(columns: Sequence[Column]) -> Array:
    """Codes of these columns, one below the other, that are equal where values are."""
    both = stack_columns(columns)
    return both.values if both.levels is not None else np.unique(both.values, return_inverse=True)[1]


def _share(groups: Sequence[list[Array]]) -> tuple[float, float]:
    """How often who is inside has the lower number, the mean over files; and its standard error."""
    share = float(np.mean([closer_share(*pair) for pair in groups]))
    return share, share_error(share, sum(min(map(len, pair)) for pair in groups))


# People to whom a released record is nearer than any other person: epsilon-identifiability.


@dataclass(frozen=True)
class Identifiability(RiskMeasure):
    """The share of people to whom some released record is nearer than every other person of the original.

    The snooper knows everything about a person. Where a released record is nearer to the person than the person is to
    anybody else in the original, it cannot well be about anybody else: he succeeds. It needs no link between records, so
    that synthetic files can be measured; a file is epsilon-identifiable where the share is at most epsilon. It has no
    people outside to compare with: see WorstMembership.

    Parameters
    ----------
    on : the variables he knows, of any kind; by default every column that somebody could know.
    targets : the most people looked at, drawn at random, at least 1.

    Formula: #{people i: min over released r of d(i, r) < min over other people j of d(i, j)} / people, d Gower's: the
        mean of |x - y| / range for numbers and 0 or 1 for categories. People who have an equal in the original are not
        identified.
    `parts`: the median distance to the nearest "released" record and to the nearest "other" person.
    Missing is a category of its own; a missing number is at distance 1 from a known one. A recoded variable is compared in
    the categories of the release, where each value became one of them. Weights and households are not used.
    Reference: Yoon, Drumright, van der Schaar (2020), definition 1, there with weights by entropy.

    Examples
    --------
    >>> Identifiability(targets=500).text
    'Identifiability(targets=500)'
    """

    label: ClassVar[str] = "Identifiability score"
    description: ClassVar[str] = "Share of people who have a released record closer to them than any other person is."

    unit: ClassVar[str] = "share of people"
    paired: ClassVar[bool] = False
    sampled: ClassVar[bool] = True
    columns_by_default: ClassVar = "knowable"

    on: tuple[str, ...] = ()
    targets: Annotated[int, Range(1)] = 1000

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        if len(data) < 2:
            yield "Identifiability needs at least 2 people."

    def seconds(self, data: Microdata) -> float | None:
        return 2.0 * min(self.targets, len(data)) * len(data) * len(self.variables(data)) * PAIR

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.check_variables(original)
        if len(masked) == 0:
            raise Undefined("the file has no records.")
        known = recode_to_released_categories(original, masked, names)
        masked, ranges = spell_out_labels(known, masked, names), ranges_of(known, names)
        people = known.take(rng.permutation(len(known))[: self.targets])
        released = two_nearest(*positions(people, masked, names, ranges))[:, 0] / len(names)
        other = two_nearest(*positions(people, known, names, ranges))[:, 1] / len(names)  # the nearest is the person
        share = float((released < other).mean())
        se = 0.0 if len(people) == len(known) else share_error(share, len(people))
        parts = {"released": float(np.median(released)), "other": float(np.median(other))}
        return Estimate(value=share, se=se, parts=parts)
