"""Membership inference from the closest released record, and records that identify a person by distance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

import numpy as np

from sdcmap.core import Array, Column, Estimate, Generator, Microdata, Range, RiskMeasure, Undefined
from sdcmap.data.cells import recode_to_released_categories, stack_columns
from sdcmap.data.label_layers import spell_out_labels
from sdcmap.kernels.statistics.unit_errors import closer_influences, unit_error
from sdcmap.kernels.tables.attribution import closer_share, nearest, share_standard_error, two_nearest_distances
from sdcmap.risk._control import SECONDS_PER_COMPARISON, Controlled, Split, Units, distance_inputs, numeric_ranges

NORMAL_QUANTILE_95 = 1.6449  # one-sided 5 % test

# For members and non-members, the distance of each person to the closest record, and their rarity score. The lower
# either is, the more likely the person is a member. Last, the unit (household) of each person.
Outcome: TypeAlias = tuple[list[Array], list[Array], Units]


@dataclass(frozen=True)
class ClosestRecord(Controlled):
    """How well the released records distinguish members from non-members: by the closest record, or by rare values.

    The attacker knows everything about two people, one in the original file and one not, and wants to know which is
    which: membership may itself be the secret. They choose the person with the closer released record, or the person
    with more rare values that occur anywhere in the file. At 0.5 they learn nothing. In a census everyone is a member,
    so the measure is off.

    Parameters
    ----------
    on : the variables the attacker knows, of any kind; by default the keys and the numeric variables of the file.
    importance : the weight of each variable of `on` in the distance, above 0, one number each; empty: equal weights.

    Formula: P(d_in < d_out) + P(d_in = d_out) / 2 over random pairs of a member and a non-member, d the distance to the
        closest released record: Gower's, the mean of |x - y| / range, at most 1, for numbers and 0 or 1 for categories,
        weighted by `importance`. The same with d = sum of log(share of the people with the value) over the person's
        values that occur in the file counts if it is larger and significant (1.64 standard errors above 0.5).
    With refits the value describes the method on these data: the mean over refits, each compared with its members and
    non-members.
    `parts`: the success "by distance" and "by rare values"; "median distance, members" and "median distance,
    non-members"; and "exact copies", the share of members at distance 0.
    Missing is a category; a missing number has distance 1 to any number. Recoded variables are compared in the released
    categories, labels of several depths at their own depth. Weights are not used. Households: persons are attacked one
    by one; a refit leaves out whole households and keeps strata.
    Reference: Chen, Yu, Zhang, Fritz (2020); Platzer and Reutterer (2021) for the holdout.

    Examples
    --------
    >>> ClosestRecord(targets=500).text
    'ClosestRecord(targets=500)'
    """

    label: ClassVar[str] = "Membership inference (nearest record)"
    description: ClassVar[str] = (
        "Probability that an attacker distinguishes a member of the file from a non-member by comparing both with "
        "the released records."
    )

    unit: ClassVar[str] = "probability"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    baseline_value: ClassVar[float | None] = 0.5
    floor: ClassVar[str] = "no better than chance"
    # 5: labels of several depths, `importance`; 6: the standard error of DeLong; 7: people drawn by household
    revision: ClassVar[int] = 7

    on: tuple[str, ...] = ()
    importance: tuple[float, ...] = ()

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or tuple(dict.fromkeys((*data.keys, *data.numeric)))

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        if data.schema.census:
            yield "ClosestRecord is off: the file is a census, so membership is not a secret."

    def error_at_baseline(self, data: Microdata, rows: int | None = None) -> float | None:
        members, non_members = self.refit_groups(self.count_people(data, rows))
        return share_closer_error(members, non_members, self.folds) if min(members, non_members) >= 1 else None

    def attack(self, split: Split, names: tuple[str, ...], ranges: dict[str, float], rng: Generator) -> Outcome:
        distances = []
        for group in (split.members, split.non_members):
            no_secrets = np.zeros(len(group)), np.zeros(len(split.released))
            inputs = distance_inputs(group, split.released, names, ranges, self.importance)
            distances.append(nearest(*inputs, *no_secrets, 0.0)[0] / len(names))
        return distances, _rarity_scores(split, names), split.units

    def estimate(self, outcomes: Sequence[Outcome]) -> Estimate:
        """Return the result of the better attack."""
        distances, rarity, units = zip(*outcomes, strict=True)
        by_distance, by_rarity = _success_share(distances, units), _success_share(rarity, units)
        # the second attack counts only if it is significant: the larger of two noisy shares is biased upward
        second = by_rarity if by_rarity[0] > 0.5 + NORMAL_QUANTILE_95 * by_rarity[1] else by_distance
        parts = {
            "by distance": by_distance[0],
            "by rare values": by_rarity[0],
            "median distance, members": float(np.mean([np.median(members) for members, _ in distances])),
            "median distance, non-members": float(np.mean([np.median(others) for _, others in distances])),
            "exact copies": float(np.concatenate([members == 0 for members, _ in distances]).mean()),
        }
        value, se = max(by_distance, second)
        return Estimate(value=value, se=se, parts=parts)


def share_closer_error(members: float, non_members: float, refits: int) -> float:
    """Return the standard error of the mean success over refits if members and non-members are equally close.

    One refit has the variance of Mann and Whitney (1947), (m + m' + 1) / (12 m m') for m members and m' non-members.
    """
    return float(np.sqrt((members + non_members + 1) / (12 * members * non_members * refits)))


def _rarity_scores(split: Split, names: tuple[str, ...]) -> list[Array]:
    """Return, for members and non-members, the sum of log shares of the person's values that occur in the release.

    The rarer these values are among the people, the lower the score. A household counts once: a value that all its members
    share is not more frequent for that.
    """
    groups, unit = (split.members, split.non_members), np.concatenate(split.units)
    total, units = np.zeros(len(unit)), len(np.unique(unit))
    for name in names:
        ours, theirs = np.split(_equal_codes([file.column(name) for file in (*groups, split.released)]), [len(total)])
        is_released = np.bincount(theirs, minlength=int(ours.max(initial=0)) + 1)[ours] > 0
        known = ~np.concatenate([group.missing(name) for group in groups])
        sharing = np.bincount(np.unique(np.column_stack([unit, ours]), axis=0)[:, 1])[ours]
        total += np.where(is_released & known, np.log(sharing / units), 0.0)
    return np.split(total, [len(split.members)])


def _equal_codes(columns: Sequence[Column]) -> Array:
    """Return codes of the stacked columns that are equal where the values are equal."""
    column = stack_columns(columns)
    return column.values if column.levels is not None else np.unique(column.values, return_inverse=True)[1]


def _success_share(groups: Sequence[list[Array]], units: Sequence[Units]) -> tuple[float, float]:
    """Return how often the member has the lower score, as a mean over files, with its standard error.

    The error is that of DeLong et al. (1988). A person who is attacked in several files, and a household, count once.
    """
    share = float(np.mean([closer_share(*pair) for pair in groups]))
    influences = [influence / len(groups) for pair in groups for influence in closer_influences(*pair)]
    error = unit_error(np.concatenate([codes for pair in units for codes in pair]), np.concatenate(influences))
    # where all members are closer than all non-members, the observed variance is 0
    return share, max(error, share_standard_error(1.0, sum(min(map(len, pair)) for pair in groups)))


# Epsilon-identifiability: people to whom a released record is closer than any other person.


@dataclass(frozen=True)
class Identifiability(RiskMeasure):
    """Share of people who have a released record closer to them than any other person of the original.

    The attacker knows everything about a person. A released record that is closer to this person than every other
    person can hardly be about someone else. The measure needs no link between records, so it also applies to synthetic
    files. A file is epsilon-identifiable if the share is at most epsilon. There is no comparison with non-members;
    WorstMembership has one.

    Parameters
    ----------
    on : the variables the attacker knows, of any kind; by default every column that other people could know.
    targets : the largest number of people to check, drawn at random, at least 1.

    Formula: #{people i: min over released r of d(i, r) < min over other people j of d(i, j)} / people, with Gower's
        distance d: the mean of |x - y| / range for numbers and 0 or 1 for categories. People with an equal in the
        original are not identifiable.
    `parts`: "median distance to released" (nearest record) and "median distance to others" (nearest other person).
    Missing is a category; a missing number has distance 1 to any number. Recoded variables are compared in the released
    categories. Weights and households are not used.
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
        return 2.0 * min(self.targets, len(data)) * len(data) * len(self.variables(data)) * SECONDS_PER_COMPARISON

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.check_variables(original)
        if len(masked) == 0:
            raise Undefined("the file has no records.")
        known = recode_to_released_categories(original, masked, names)
        masked, ranges = spell_out_labels(known, masked, names), numeric_ranges(known, names)
        people = known.take(rng.permutation(len(known))[: self.targets])
        released = two_nearest_distances(*distance_inputs(people, masked, names, ranges))[:, 0] / len(names)
        other = two_nearest_distances(*distance_inputs(people, known, names, ranges))[:, 1] / len(
            names
        )  # the nearest is the person
        share = float((released < other).mean())
        se = 0.0 if len(people) == len(known) else share_standard_error(share, len(people))
        parts = {
            "median distance to released": float(np.median(released)),
            "median distance to others": float(np.median(other)),
        }
        return Estimate(value=share, se=se, parts=parts)
