"""Membership inference: whether a person was in the file at all, by the best of several attacks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, TypeAlias

import numpy as np

from sdcmap.core import Array, Generator, Microdata, Range, Undefined
from sdcmap.core.estimate import Estimate, Skipped
from sdcmap.kernels.statistics.precision import wilson_interval
from sdcmap.kernels.statistics.unit_errors import mean_influences, unit_error
from sdcmap.kernels.tables.attribution import neighbor_densities, two_nearest_distances
from sdcmap.risk._control import Controlled, Difference, Split, Units, distance_inputs

# Separating two groups by a score: a threshold is learned on one half of both groups and applied to the other half.


RANK_COVARIANCE_RIDGE = 1e-3  # keeps the covariance of the ranks invertible


def best_threshold(first: Array, second: Array) -> float:
    """Return the score from which on the share of the first group exceeds that of the second by most.

    The threshold lies halfway to the next lower score; it is infinite if no threshold separates the groups.
    """
    scores = np.unique(np.concatenate([first, second]))
    shares = [1 - np.searchsorted(np.sort(group), scores) / len(group) for group in (first, second)]
    gain = shares[0] - shares[1]
    best = int(gain.argmax())
    if gain[best] <= 0:
        return math.inf
    below = scores[best - 1] if best and np.isfinite(scores[best - 1]) else scores[best]
    return float((scores[best] + below) / 2) if np.isfinite(scores[best]) else float(scores[best])


def cross_fit_advantage(first: Array, second: Array, units: Units | None = None) -> Difference:
    """Return the advantage over both halves of each group, each judged by the threshold of the other half.

    Learning on the people who are judged would find an advantage in noise. The groups must be in random order.
    units : the units (households) of both groups; the error is at least that between units.
    """
    hits, false = np.zeros(len(first)), np.zeros(len(second))
    for half in (0, 1):
        threshold = best_threshold(first[half::2], second[half::2])
        hits[1 - half :: 2] = first[1 - half :: 2] >= threshold
        false[1 - half :: 2] = second[1 - half :: 2] >= threshold
    # add one success and one failure to each group, so that the standard error is never 0
    shares = [((group.mean() * len(group) + 1) / (len(group) + 2), len(group)) for group in (hits, false)]
    error = math.sqrt(sum(p * (1 - p) / n for p, n in shares))
    if units is not None:
        influences = np.concatenate([mean_influences(hits), -mean_influences(false)])
        error = max(error, unit_error(np.concatenate(units), influences))
    return Difference(float(hits.mean() - false.mean()), error)


def rank_shares(scores: Array, reference: Array) -> Array:
    """Return the share of `reference` below each score, ties counting one half: the same scale for every score."""
    ordered = np.sort(reference)
    below, up_to = np.searchsorted(ordered, scores, side="left"), np.searchsorted(ordered, scores, side="right")
    return np.asarray((below + up_to) / 2 / len(ordered))


def discriminant(first: Array, second: Array) -> Array:
    """Return the direction along which two groups of points differ most relative to their spread.

    Fisher (1936), with a ridge
    """
    spread = sum(len(group) * np.atleast_2d(np.cov(group.T, bias=True)) for group in (first, second))
    spread = spread / (len(first) + len(second)) + RANK_COVARIANCE_RIDGE * np.eye(first.shape[1])
    return np.linalg.solve(spread, first.mean(axis=0) - second.mean(axis=0))


JOINT_CONFIDENCE = 0.95  # confidence level of the test that an advantage is above 0, for all attacks together
FALSE_POSITIVE_RATE = 0.01  # at which the true positive rate is reported
MIN_CONTROLS = 1000  # non-members needed to estimate so small a rate
MIN_GROUP_SIZE = 4  # people; half of a group serve to learn a threshold
LOG_OFFSET = 1e-9  # added to distances and densities before a logarithm or ratio


# For each attack the scores of members and non-members of one release (higher: more likely a member); the reason for
# each attack that was not run; and the units (households) of the people.
Scored: TypeAlias = tuple[dict[str, list[Array]], dict[str, str], Units]


@dataclass(frozen=True)
class WorstMembership(Controlled):
    """How well the best of several attacks detects whether a person was in the file.

    The attacker knows everything about a person and wants to know whether they are in the original: membership
    (patients of a clinic, debtors, offenders) may itself be the secret. They compare the released records with the
    person in several ways. At 0 they do no better than without the release, at 1 they are always right. In a census
    everyone is a member, so the measure is off.

    Parameters
    ----------
    on : the variables the attacker knows, of any kind; by default every column that other people could know.
    importance : the weight of each variable of `on` in the distance, above 0, one number each; empty: equal weights.
    folds : the number of refits, at least 1; each leaves out another `held_out` / `folds` of the people. The shadow
        attack needs two.

    Formula: true positive rate minus false positive rate (the advantage, Youden's J), at a threshold learned on one
        half of the people and applied to the other, both ways; the largest over the attacks that are significant, at 95
        % for all together, and 0 if none is. With d Gower's distance to released records, "closest": -d_1, the nearest;
        "ratio": -d_1/d_2, the second nearest; "reference": ln of the distance to the nearest of other non-members over
        d_1 (adversarial accuracy, for single people); "density": ln of the mean of exp(-d/h) over the same among other
        non-members (DOMIAS); "counting": the share of records with d <= h (Monte Carlo); h the median d_1 of all
        attacked. "shadow": a linear discriminant of the ranks of these, learned on the other refits, for which the
        attacker knows the members.
    `parts`: the advantage of each attack; with at least 1,000 non-members "true positives at 1 % false positives" of
    the best attack, the share of members above the 99 % quantile of non-members, and its Wilson limits (95 %) "lower"
    and "upper". Attacks that were not run are listed with the reason. Half of the non-members serve as the other
    non-members of "reference" and "density"; with more than twice `targets`, all but the attacked ones.
    With refits the value describes the method on these data; the released file itself is not used.
    Missing is a category; a missing number has distance 1 to any number. Recoded variables are compared in the released
    categories, labels of several depths at their own depth. Weights are not used. Households: persons are attacked one
    by one; a refit leaves out whole households and keeps strata.
    Reference: Chen, Yu, Zhang, Fritz (2020); Hilprecht, Haerterich, Bernau (2019); Yale et al. (2020); van Breugel,
    Sun, Qian, van der Schaar (2023); Stadler, Oprisanu, Troncoso (2022) for shadows; Carlini et al. (2022) for 1 %
    false positives.

    Examples
    --------
    >>> WorstMembership(control="refits", folds=4).text
    "WorstMembership(control='refits', folds=4)"
    """

    label: ClassVar[str] = "Membership inference, best attack"
    description: ClassVar[str] = (
        "Advantage over guessing with which the best of several attacks recognizes who was in the file."
    )

    unit: ClassVar[str] = "advantage over chance"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    floor: ClassVar[str] = "no better than chance"
    columns_by_default: ClassVar = "knowable"
    # 3: labels of several depths, `importance`; 4: the error of a value that is not significant; 5: people drawn by
    # household
    revision: ClassVar[int] = 5

    on: tuple[str, ...] = ()
    importance: tuple[float, ...] = ()
    targets: Annotated[int, Range(1)] = field(default=1000, kw_only=True)

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        if data.schema.census:
            yield "WorstMembership is off: the file is a census, so membership is not a secret."

    def seconds(self, data: Microdata) -> float | None:
        return 2 * self.pair_seconds(data)

    def max_people_drawn(self) -> int:
        return 2**31  # everyone: people who are not attacked serve as a reference

    def attack(self, split: Split, names: tuple[str, ...], ranges: dict[str, float], rng: Generator) -> Scored:
        attacked = min(self.targets, (len(split.non_members) + 1) // 2)
        groups = _part(split.members, 0, self.targets), _part(split.non_members, 0, attacked)
        if min(map(len, groups)) < MIN_GROUP_SIZE:
            raise Undefined(f"fewer than {MIN_GROUP_SIZE} members or non-members are left to attack.")
        units = split.units[0][: len(groups[0])], split.units[1][: len(groups[1])]
        # the reference contains nobody of an attacked household: only non-members would be near it
        rest = split.non_members.take(np.flatnonzero(~np.isin(split.units[1], units[1]))[: len(split.released)])
        inputs = [distance_inputs(people, split.released, names, ranges, self.importance) for people in groups]
        near = [two_nearest_distances(*one) for one in inputs]
        width = median_width(np.concatenate([distance[:, 0] for distance in near]))
        crowded = [
            neighbor_densities(*one, width) for one in inputs
        ]  # the share of records within `width`, and their density
        scores = {
            "closest": [-distance[:, 0] for distance in near],
            "ratio": [-(distance[:, 0] + LOG_OFFSET) / (distance[:, 1] + LOG_OFFSET) for distance in near],
            "counting": [crowd[:, 0] for crowd in crowded],
        }
        if len(rest) == 0:
            return (
                scores,
                dict.fromkeys(("reference", "density"), "there are no other non-members to compare with."),
                units,
            )
        others = [distance_inputs(people, rest, names, ranges, self.importance) for people in groups]
        pairs = list(zip(others, near, crowded, strict=True))
        scores["reference"] = [_log_ratio(two_nearest_distances(*o)[:, 0], distance[:, 0]) for o, distance, _ in pairs]
        scores["density"] = [_log_ratio(crowd[:, 1], neighbor_densities(*o, width)[:, 1]) for o, _, crowd in pairs]
        return scores, {}, units

    def estimate(self, outcomes: Sequence[Scored]) -> Estimate:
        from scipy.special import ndtri

        files, units = [scores for scores, _, _ in outcomes], [own for _, _, own in outcomes]
        not_run = {name: reason for _, missing, _ in outcomes for name, reason in missing.items()}
        attacks = {name: [file[name] for file in files] for name in files[0] if all(name in file for file in files)}
        if len(files) > 1:
            attacks["shadow"] = _shadow_scores(attacks)
        else:
            not_run["shadow"] = "it needs at least two refits of the method."
        advantages = {name: _mean_advantage(pairs, units) for name, pairs in attacks.items()}
        # Bonferroni: without it, the best of several attacks would beat chance by chance
        quantile = float(ndtri(1 - (1 - JOINT_CONFIDENCE) / len(advantages)))
        significant = {name: a for name, a in advantages.items() if a.value > quantile * a.se}
        best = max(significant or advantages, key=lambda name: advantages[name].value)
        parts = {name: advantage.value for name, advantage in advantages.items()} | _true_positive_rate(attacks[best])
        skipped = tuple(Skipped(attack=attack, reason=reason) for attack, reason in not_run.items())
        value, se = advantages[best]
        if not significant:
            # the value is 0, and the error includes what the best attack seemed to gain
            value, se = 0.0, math.hypot(se, max(value, 0.0))
        return Estimate(value=max(value, 0.0), se=se, parts=parts, skipped=skipped)


def _part(people: Microdata, low: int, high: int) -> Microdata:
    """Return the people from row `low` up to row `high`."""
    return people.take(np.arange(low, min(high, len(people))))


def median_width(distances: Array) -> float:
    """Return the median distance, or the smallest positive one if most are 0."""
    middle = float(np.median(distances)) or float(distances[distances > 0].min(initial=np.inf))
    return middle if math.isfinite(middle) else 1.0


def _log_ratio(above: Array, below: Array) -> Array:
    """Return ln(above / below), with an offset that keeps both finite."""
    return np.asarray(np.log(above + LOG_OFFSET) - np.log(below + LOG_OFFSET))


def _mean_advantage(pairs: Sequence[list[Array]], units: Sequence[Units]) -> Difference:
    """Return the mean advantage over the files."""
    each = [cross_fit_advantage(pair[0], pair[1], own) for pair, own in zip(pairs, units, strict=True)]
    se = math.sqrt(sum(one.se**2 for one in each)) / len(each)
    return Difference(float(np.mean([one.value for one in each])), se)


def _shadow_scores(attacks: dict[str, list[list[Array]]]) -> list[list[Array]]:
    """Score the people of each refit by a discriminant that was learned on the other refits."""
    points = []
    for file in zip(*attacks.values(), strict=True):
        both_groups = [np.concatenate(pair) for pair in file]
        ranks = ([rank_shares(pair[g], both) for pair, both in zip(file, both_groups, strict=True)] for g in (0, 1))
        points.append([np.column_stack(columns) for columns in ranks])
    scores = []
    for index, own in enumerate(points):
        others = points[:index] + points[index + 1 :]
        direction = discriminant(*(np.concatenate(group) for group in zip(*others, strict=True)))
        scores.append([group @ direction for group in own])
    return scores


def _true_positive_rate(pairs: Sequence[list[Array]]) -> dict[str, float]:
    """Return the true positive rate at 1 % false positives, with its interval; empty with too few non-members."""
    if sum(len(others) for _, others in pairs) < MIN_CONTROLS:
        return {}
    detected = [members > np.quantile(others, 1 - FALSE_POSITIVE_RATE, method="higher") for members, others in pairs]
    hits, trials = float(sum(one.sum() for one in detected)), sum(map(len, detected))
    low, high = wilson_interval(hits / trials, trials)
    return {"true positives at 1 % false positives": hits / trials, "lower": low, "upper": high}
