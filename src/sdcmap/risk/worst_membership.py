"""Whether somebody was in the file at all: the best of several attacks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, TypeAlias

import numpy as np

from sdcmap.core import Array, Generator, Microdata, Range, Undefined
from sdcmap.core.estimate import Estimate, Skipped
from sdcmap.kernels.statistics.precision import wilson_interval
from sdcmap.kernels.tables.attribution import crowds, two_nearest
from sdcmap.risk._control import Controlled, Difference, Split, positions

# Telling two groups apart by scores: a threshold learned on one half of both, and tried on the other.


RIDGE = 1e-3  # of a covariance of ranks


def best_threshold(first: Array, second: Array) -> float:
    """The score from which on more of the first group than of the second are found, by the largest difference of
    shares; half way to the next lower score, and infinite where no threshold is better than none."""
    scores = np.unique(np.concatenate([first, second]))
    found = [1 - np.searchsorted(np.sort(group), scores) / len(group) for group in (first, second)]
    gain = found[0] - found[1]
    place = int(gain.argmax())
    if gain[place] <= 0:
        return math.inf
    below = scores[place - 1] if place and np.isfinite(scores[place - 1]) else scores[place]
    return float((scores[place] + below) / 2) if np.isfinite(scores[place]) else float(scores[place])


def cross_fitted(first: Array, second: Array) -> Difference:
    """The advantage over both halves of each group, each judged by the threshold of the other half; the groups lie in
    random order. Learning on those who are judged would find an advantage in noise."""
    hits, false = np.zeros(len(first)), np.zeros(len(second))
    for half in (0, 1):
        threshold = best_threshold(first[half::2], second[half::2])
        hits[1 - half :: 2] = first[1 - half :: 2] >= threshold
        false[1 - half :: 2] = second[1 - half :: 2] >= threshold
    shares = [((group.mean() * len(group) + 1) / (len(group) + 2), len(group)) for group in (hits, false)]
    return Difference(float(hits.mean() - false.mean()), math.sqrt(sum(p * (1 - p) / n for p, n in shares)))


def ranks_of(scores: Array, like: Array) -> Array:
    """The share of `like` that is below each score, ties by halves: the same scale for every score."""
    order = np.sort(like)
    below, upto = np.searchsorted(order, scores, side="left"), np.searchsorted(order, scores, side="right")
    return np.asarray((below + upto) / 2 / len(order))


def discriminant(first: Array, second: Array) -> Array:
    """The direction along which two groups of points differ most against their spread.  Fisher (1936), with a ridge"""
    spread = sum(len(group) * np.atleast_2d(np.cov(group.T, bias=True)) for group in (first, second))
    spread = spread / (len(first) + len(second)) + RIDGE * np.eye(first.shape[1])
    return np.linalg.solve(spread, first.mean(axis=0) - second.mean(axis=0))


LEVEL = 0.95  # beyond chance: for all attacks together
FALSE = 0.01  # false positives at which true ones are told
CONTROLS = 1000  # people outside without whom so small a share says nothing
FEWEST = 4  # people in a group, of whom half teach a threshold
TINY = 1e-9


# The scores of people inside and outside one release, a pair for each attack (higher: more likely inside); and the reason
# for each attack that was not run.
Scored: TypeAlias = tuple[dict[str, list[Array]], dict[str, str]]


@dataclass(frozen=True)
class WorstMembership(Controlled):
    """How well the best of several attacks tells whether a person was in the file.

    The snooper knows everything about a person and wants to know whether he is in the original: being in it (patients of a
    clinic, debtors, offenders) may itself be the secret. He looks at the released records near what he knows, in several
    ways, says yes or no, and succeeds when it is right. At 0 he does no better than without the release, at 1 he is
    always right. In a census everybody is in the file: there it is off.

    Parameters
    ----------
    on : the variables he knows, of any kind; by default every column that somebody could know.
    importance : how much each variable of `on` counts in the distance, above 0, one number each; empty: all alike.
    folds : how many makings, at least 1, each without another `held_out` / `folds` of the people; shadows need two.

    Formula: true positives less false positives (the advantage, Youden's J), at a threshold that was learned on one half
        of the people and tried on the other, both ways; the largest over the attacks that are beyond chance, at 95 %
        for all together, and 0 where none is. With d Gower's distance to released records, "closest": -d_1, the nearest;
        "ratio": -d_1/d_2, the second nearest; "reference": ln of the distance to the nearest of other people outside
        over d_1 (adversarial accuracy, person by person); "density": ln of the mean of exp(-d/h) over the same among
        other people outside (DOMIAS); "counting": the share of records with d <= h (Monte Carlo); h the median d_1 of
        all attacked. "shadow": a linear discriminant of the ranks of these, learned on the other makings, where the
        snooper knows who was in.
    `parts`: the advantage of each attack; with 1,000 people outside or more, "found at 1 % false" of the best one, the
    share of people inside above the 99 % point of those outside, and its Wilson "lower" and "upper" ends (95 %); and
    each attack that was not run, with the reason. Half of the people outside serve as the other people of "reference" and
    "density"; where there are more than twice `targets`, all but these.
    By makings the value is that of the method on these data; the released file itself is not looked at.
    Missing is a category of its own; a missing number is at distance 1 from a known one. A recoded variable is compared in
    the categories of the release, where each value became one of them, and as their labels read where they are of several
    depths. Weights are not used. Households: persons are attacked one by one; a making leaves whole households out, and
    keeps strata.
    Reference: Chen, Yu, Zhang, Fritz (2020); Hilprecht, Haerterich, Bernau (2019); Yale et al. (2020); van Breugel,
    Sun, Qian, van der Schaar (2023); Stadler, Oprisanu, Troncoso (2022) for shadows; Carlini et al. (2022) for 1 %
    false positives.

    Examples
    --------
    >>> WorstMembership(control="refits", folds=4).text
    "WorstMembership(control='makings', folds=4)"
    """

    label: ClassVar[str] = "Membership inference, best attack"
    description: ClassVar[str] = (
        "Advantage over guessing with which the best of several attacks tells who was in the file."
    )

    unit: ClassVar[str] = "advantage over chance"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    floor: ClassVar[str] = "no better than chance"
    columns_by_default: ClassVar = "knowable"
    revision: ClassVar[int] = 3  # 2: one making leaves few people out; 3: labels of several depths, `importance`

    on: tuple[str, ...] = ()
    importance: tuple[float, ...] = ()
    targets: Annotated[int, Range(1)] = field(default=1000, kw_only=True)

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        if data.schema.census:
            yield "WorstMembership is off: the file is a census, and that somebody is in it is no secret."

    def seconds(self, data: Microdata) -> float | None:
        return 2 * self.pair_seconds(data)

    def most_drawn(self) -> int:
        return 2**31  # all the people there are: those who are not attacked are a reference

    def attack(self, drawn: Split, names: tuple[str, ...], ranges: dict[str, float], rng: Generator) -> Scored:
        outside = min(self.targets, (len(drawn.outsiders) + 1) // 2)
        groups = _part(drawn.insiders, 0, self.targets), _part(drawn.outsiders, 0, outside)
        if min(map(len, groups)) < FEWEST:
            raise Undefined(f"fewer than {FEWEST} people are left to attack, inside or outside.")
        rest = _part(drawn.outsiders, outside, outside + len(drawn.archive))
        places = [positions(people, drawn.archive, names, ranges, self.importance) for people in groups]
        near = [two_nearest(*place) for place in places]
        width = _width(np.concatenate([distance[:, 0] for distance in near]))
        crowded = [crowds(*place, width) for place in places]  # the share of records within `width`, and their density
        scores = {
            "closest": [-distance[:, 0] for distance in near],
            "ratio": [-(distance[:, 0] + TINY) / (distance[:, 1] + TINY) for distance in near],
            "counting": [crowd[:, 0] for crowd in crowded],
        }
        if len(rest) == 0:
            return scores, dict.fromkeys(("reference", "density"), "nobody else is outside to compare with.")
        others = [positions(people, rest, names, ranges, self.importance) for people in groups]
        pairs = list(zip(others, near, crowded, strict=True))
        scores["reference"] = [_log_ratio(two_nearest(*o)[:, 0], distance[:, 0]) for o, distance, _ in pairs]
        scores["density"] = [_log_ratio(crowd[:, 1], crowds(*o, width)[:, 1]) for o, _, crowd in pairs]
        return scores, {}

    def estimate(self, outcomes: Sequence[Scored]) -> Estimate:
        from scipy.special import ndtri

        files = [scores for scores, _ in outcomes]
        not_run = {name: reason for _, missing in outcomes for name, reason in missing.items()}
        attacks = {name: [file[name] for file in files] for name in files[0] if all(name in file for file in files)}
        if len(files) > 1:
            attacks["shadow"] = _shadowed(attacks)
        else:
            not_run["shadow"] = "it needs two makings of the method or more."
        judged = {name: _judged(pairs) for name, pairs in attacks.items()}
        beyond = float(ndtri(1 - (1 - LEVEL) / len(judged)))
        proven = {name: a for name, a in judged.items() if a.value > beyond * a.se}
        best = max(proven or judged, key=lambda name: judged[name].value)
        parts = {name: advantage.value for name, advantage in judged.items()} | _at_few_false(attacks[best])
        skipped = tuple(Skipped(attack=attack, reason=reason) for attack, reason in not_run.items())
        value = max(judged[best].value, 0.0) if proven else 0.0
        return Estimate(value=value, se=judged[best].se, parts=parts, skipped=skipped)


def _part(people: Microdata, low: int, high: int) -> Microdata:
    return people.take(np.arange(low, min(high, len(people))))


def _width(distances: Array) -> float:
    """The median distance; where most are 0, the smallest other one."""
    middle = float(np.median(distances)) or float(distances[distances > 0].min(initial=np.inf))
    return middle if math.isfinite(middle) else 1.0


def _log_ratio(above: Array, below: Array) -> Array:
    return np.asarray(np.log(above + TINY) - np.log(below + TINY))


def _judged(pairs: Sequence[list[Array]]) -> Difference:
    """The mean advantage over the files."""
    each = [cross_fitted(*pair) for pair in pairs]
    se = math.sqrt(sum(one.se**2 for one in each)) / len(each)
    return Difference(float(np.mean([one.value for one in each])), se)


def _shadowed(attacks: dict[str, list[list[Array]]]) -> list[list[Array]]:
    """The scores of each making by what the others teach."""
    points = []
    for file in zip(*attacks.values(), strict=True):
        like = [np.concatenate(pair) for pair in file]
        ranks = ([ranks_of(pair[side], both) for pair, both in zip(file, like, strict=True)] for side in (0, 1))
        points.append([np.column_stack(columns) for columns in ranks])
    scores = []
    for place, own in enumerate(points):
        others = points[:place] + points[place + 1 :]
        direction = discriminant(*(np.concatenate(group) for group in zip(*others, strict=True)))
        scores.append([group @ direction for group in own])
    return scores


def _at_few_false(pairs: Sequence[list[Array]]) -> dict[str, float]:
    """True positives at 1 % false ones, with their interval; none where fewer than 1,000 people are outside."""
    if sum(len(outside) for _, outside in pairs) < CONTROLS:
        return {}
    found = [inside > np.quantile(outside, 1 - FALSE, method="higher") for inside, outside in pairs]
    hits, trials = float(sum(one.sum() for one in found)), sum(map(len, found))
    low, high = wilson_interval(hits / trials, trials)
    return {"found at 1 % false": hits / trials, "lower": low, "upper": high}
