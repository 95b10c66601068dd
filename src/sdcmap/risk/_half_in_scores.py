"""Scores of people over refits that each of them enters with probability 1/2: what they reveal about who was in.

Scores are compared with the same person's scores in other refits, as in the likelihood ratio attack of Carlini et al.
(2022), for many scores at once. Arrays have the axes person, pair of refits, (with, without) the person, and score. The
person's refits are paired at random. A fold of the pairs is judged by what was learned on the others, in which each person
is as often in as out; otherwise the means to compare with would depend on the answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from sdcmap.core import Array, Generator
from sdcmap.risk.worst_membership import FALSE_POSITIVE_RATE, MIN_CONTROLS

PRIOR_DF = 4.0  # a variance is averaged with that of all people, which counts as so many degrees of freedom
RIDGE = 0.1  # added to the variances of standardized scores
FOLDS = 10  # of the pairs of refits
MIN_REFITS = 4  # two with each person, so that one is left to learn from
SPLITS = 5  # random pairings of the refits over which results are averaged
PERMUTATIONS = 200  # of who was in, for the largest success by chance
CHANCE_LEVEL = 0.95  # quantile of the largest success by chance
WORST_PERSON = "most recognizable person"
WORST_BY_CHANCE = "most recognizable person, by chance"


class Evidence(NamedTuple):
    """The log likelihood ratio of each person in each refit, up to a constant, and the refit of each."""

    ratio: Array
    refit: Array


class ClusteredMean(NamedTuple):
    """A mean with its standard error, and the part of the error that more refits do not reduce."""

    value: float
    se: float
    between_people: float


def pair_refits(inside: Array, rng: Generator) -> Array:
    """Return the refits of each person in random pairs, one with and one without the person.

    inside : which people (rows) are in which refits (columns), each in half of them.
    """
    order = np.argsort(rng.random(inside.shape) + ~inside, axis=1)  # random, and those with the person first
    return np.stack(np.split(order, 2, axis=1), axis=2)


def standardize_people(scores: Array) -> Array:
    """Return each person's scores minus their mean, over their standard deviation; 0 where nobody's scores differ.

    The variance is shrunk towards the median variance of the people whose scores differ. All refits count, the judged ones
    too: which the attacker knows, and no score says who was in. Without a leak the AUC is the same as with the other refits
    alone (0.000 +- 0.001 simulated); with one it is a little higher, by 0.012 in 8 refits and by 0.002 in 40.
    """
    df = scores.shape[1] - 1
    gap = scores - scores.mean(axis=1, keepdims=True)
    squares = (gap**2).sum(axis=1, keepdims=True)
    varies = squares[squares > 0]
    if not len(varies):
        return np.zeros_like(scores)
    return np.asarray(gap / np.sqrt((squares + PRIOR_DF * np.median(varies) / df) / (df + PRIOR_DF)))


def log_likelihood_ratios(points: Array) -> Array:
    """Return ln p(scores | in) - ln p(scores | out), up to a factor of each fold, learned from the other folds of pairs.

    All scores are jointly normal, with one covariance for all people. A person's differences of means are an empirical
    Bayes estimate: their own ones, shrunk towards the means of all people as far as the people differ no more than by
    chance.
    """
    people, pairs, _, count = points.shape
    ratios = np.empty((people, pairs, 2))
    for fold in range(min(FOLDS, pairs)):
        judged = np.arange(pairs) % FOLDS == fold
        learn = points[:, ~judged]
        means = learn.mean(axis=1)
        own, center = means[:, 0] - means[:, 1], means.mean(axis=1)
        residuals = (learn - means[:, np.newaxis]).reshape(-1, count)
        df, prior = 2 * people * (learn.shape[1] - 1), PRIOR_DF * np.eye(count)
        covariance = (residuals.T @ residuals + prior) / (df + PRIOR_DF) + RIDGE * np.eye(count)
        error = 2 * np.diag(covariance) / learn.shape[1]
        common = own.mean(axis=0)
        between = np.maximum(0.0, own.var(axis=0) - error)  # variance of the true differences between people
        difference = (common * error + between * own) / (error + between)
        weights = np.linalg.solve(covariance, difference.T).T
        learned = np.einsum("npgk,nk->npg", learn - center[:, np.newaxis, np.newaxis], weights)
        found = np.einsum("npgk,nk->npg", points[:, judged] - center[:, np.newaxis, np.newaxis], weights)
        ratios[:, judged] = found / (float(learned.std()) or 1.0)  # so that folds can be compared
    return ratios


def weigh_splits(
    attacks: Mapping[str, Array], inside: Array, rng: Generator
) -> tuple[list[Evidence], dict[str, float]]:
    """Return the evidence of several random pairings of the refits, and the AUC of each score alone."""
    standard = [standardize_people(scores) for scores in attacks.values()]
    splits = [weigh_evidence(standard, inside, rng) for _ in range(SPLITS)]
    refit = splits[0].refit
    areas = {name: area(_by_pair(scores, refit)) for name, scores in zip(attacks, standard, strict=True)}
    return splits, areas


def weigh_evidence(standard: Sequence[Array], inside: Array, rng: Generator) -> Evidence:
    """Return the evidence of all scores together, for one random pairing of the refits of each person."""
    refit = pair_refits(inside, rng)
    return Evidence(log_likelihood_ratios(np.stack([_by_pair(one, refit) for one in standard], axis=-1)), refit)


def _by_pair(scores: Array, refit: Array) -> Array:
    """Return scores of people (rows) in refits (columns) by pair of refits, with and without the person."""
    return np.take_along_axis(scores, refit.reshape(len(refit), -1), axis=1).reshape(refit.shape)


def area(scores: Array) -> float:
    """Return the AUC: P(score in > score out) + P(equal) / 2 over all people and refits."""
    return float(_placements(scores)[..., 0].mean())


def _placements(scores: Array) -> Array:
    """Return, for each score, the share of the scores of the other group that are on the right side of it."""
    members, others = np.sort(scores[..., 0], axis=None), np.sort(scores[..., 1], axis=None)
    return np.stack([_share_below(scores[..., 0], others), 1 - _share_below(scores[..., 1], members)], axis=-1)


def _share_below(scores: Array, ordered: Array) -> Array:
    both = np.searchsorted(ordered, scores, side="left") + np.searchsorted(ordered, scores, side="right")
    return np.asarray(both / 2 / len(ordered))


def group_area(splits: Sequence[Evidence]) -> ClusteredMean:
    """Return the mean AUC over pairings of the refits, with its error."""
    return _average([_area_with_influence(split) for split in splits])


def _average(each: Sequence[tuple[float, Array]]) -> ClusteredMean:
    """Return the mean over splits, each with its value and the influence of the scores on it.

    The error is that of a single pairing. A mean over pairings varies less by the choice of the folds, but it also varies
    by what is learned, which the influences do not contain. Simulated coverage: tests/risk/test_outlier_membership.py.
    """
    value = float(np.mean([one for one, _ in each]))
    variances = np.mean([_clustered_variances(influence) for _, influence in each], axis=0)
    # one success and one failure more, so that the error is never 0
    count = each[0][1].size / 2
    floor = (value * count + 1) * ((1 - value) * count + 1) / (count + 2) ** 2 / count / 3
    return ClusteredMean(value, math.sqrt(max(variances[0], floor)), math.sqrt(variances[1]))


def _area_with_influence(evidence: Evidence) -> tuple[float, Array]:
    """Return the AUC, and the influence of the scores of each person (row) in each refit (column) on it."""
    share = _placements(evidence.ratio)
    value = float(share[..., 0].mean())
    return value, _by_refit((share - value) / (share.size / 2), evidence.refit)


def _by_refit(values: Array, refit: Array) -> Array:
    """Return the values of each person in the order of the refits."""
    table = np.empty((len(values), values[0].size))
    np.put_along_axis(table, refit.reshape(table.shape), values.reshape(table.shape), axis=1)
    return table


def _clustered_variances(influence: Array) -> tuple[float, float]:
    """Return the variance, clustered by person (row) and by refit (column), and its part between people.

    Cameron, Gelbach, Miller (2011)
    """
    people, times = influence.shape
    single = float((influence**2).sum())
    by_person = float((influence.sum(axis=1) ** 2).sum()) * people / (people - 1)
    by_refit = float((influence.sum(axis=0) ** 2).sum()) * times / (times - 1)
    return max(single, by_person, by_refit, by_person + by_refit - single), max(0.0, by_person - single)


def detection_rate(splits: Sequence[Evidence], rng: Generator) -> ClusteredMean:
    """Return the mean true positive rate at 1 % false positives over splits of the people, with its error."""
    return _average([_detect(split, rng) for split in splits])


def _detect(evidence: Evidence, rng: Generator) -> tuple[float, Array]:
    """Return the true positive rate, and the influence of the scores of each person (row) in each refit (column) on it.

    The threshold is that of other people: at most 1 % of new scores without a person would exceed it.
    """
    hit = np.zeros(evidence.ratio.shape)
    people = rng.permutation(len(evidence.ratio))
    for judged, others in ((people[::2], people[1::2]), (people[1::2], people[::2])):
        outside = np.sort(evidence.ratio[others][..., 1], axis=None)
        # of m scores, the j-th largest is exceeded by a new one with probability j / (m + 1)
        rank = max(1, math.floor(FALSE_POSITIVE_RATE * (len(outside) + 1)))
        hit[judged] = evidence.ratio[judged] > outside[-rank]
    rates = hit.mean(axis=(0, 1))
    # the error of the threshold moves both rates, by at most the ratio that a concave curve has at this point
    slope = max(1.0, rates[0] / FALSE_POSITIVE_RATE)
    return float(rates[0]), _by_refit((hit - rates) * [1, -slope] / (hit.size / 2), evidence.refit)


def worst_person(attacks: Mapping[str, Array], inside: Array, rng: Generator) -> dict[str, float]:
    """Return the largest AUC of one person over the refits by any attack, and the largest to expect by chance.

    By chance: the 95 % quantile of the same maximum when who was in is permuted among the refits of each person.
    """
    half = inside.shape[1] // 2
    ranks = [_mean_ranks(scores) for scores in attacks.values()]

    def largest(members: Array) -> float:
        sums = max(float((rank * members).sum(axis=1).max()) for rank in ranks)
        return float(sums - half * (half + 1) / 2) / float(half**2)

    orders = (np.argsort(rng.random(inside.shape), axis=1) for _ in range(PERMUTATIONS))
    chance = [largest(np.take_along_axis(inside, order, axis=1)) for order in orders]
    return {
        WORST_PERSON: largest(inside),
        WORST_BY_CHANCE: float(np.quantile(chance, CHANCE_LEVEL)),
    }


def _mean_ranks(scores: Array) -> Array:
    """Return the rank of each score in its row, from 1; equal scores share their mean rank."""
    below = (scores[:, :, np.newaxis] > scores[:, np.newaxis, :]).sum(axis=2)
    up_to = (scores[:, :, np.newaxis] >= scores[:, np.newaxis, :]).sum(axis=2)
    return np.asarray((below + up_to + 1) / 2)


def has_enough_controls(people: int, times: int) -> bool:
    """Return whether there are enough scores without a person for a rate at 1 % false positives."""
    return people * times // 2 >= MIN_CONTROLS
