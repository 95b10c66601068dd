"""The links of which a linkage attacker is surest, and how many of them are true."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Measure, Method, Microdata, Range, RiskMeasure, Stream, Undefined
from sdcmap.core.estimate import Skipped
from sdcmap.core.refits import EveryoneIn, HalfIn, Refit, RefitRequest
from sdcmap.kernels.tables.attribution import share_standard_error
from sdcmap.risk.linkage.attack import Attack
from sdcmap.risk.linkage.calibrated_attack import Calibrated
from sdcmap.risk.linkage.cost_models import (
    CostModel,
    find_certain_fields,
    find_missing_fields,
    find_open_fields,
    link_to_cheapest,
    require_equality,
)
from sdcmap.risk.linkage.file_pair import Pair
from sdcmap.risk.linkage.informed_attack import Informed
from sdcmap.risk.linkage.nearest_record import NearestRecord

MAX_PAIRS_ALL_RECORDS = 100_000_000  # pairs; up to here every released record is linked
MAX_TIES = 8  # different known records that tie for the nearest; a link that ties with more counts as one of 8
SAMPLED_RECORDS = 2_500  # released records of larger files that are linked
DRAWS_AT_RELEASE = 10  # draws of the method over which the release checks take the mean
SECONDS_TO_START, SECONDS_PER_PAIR = 0.1, 1.2e-8  # the latter for each column


def precision_of_surest(margin: Array, correct: Array, count: int) -> float:
    """Return the share of true links among the `count` links with the largest margins.

    Links that tie with the last one count with the mean of those that tie.

    >>> precision_of_surest(np.array([3.0, 1.0, 1.0, 0.0]), np.array([1.0, 1.0, 0.0, 0.0]), 2)
    0.75
    """
    count = min(count, len(margin))
    last = np.sort(margin)[len(margin) - count]
    above, tied = margin > last, margin == last
    return (math.fsum(correct[above]) + (count - int(above.sum())) * float(correct[tied].mean())) / count


@dataclass(frozen=True)
class SurestLinks(RiskMeasure):
    """The share of true links among the links of which an attacker is surest.

    A share of all records hides the few. An attacker who is right about 3 % of the records does little harm if they
    cannot tell which; if all of their 20 surest links are true, 20 people are re-identified with certainty. The attacker
    ranks the links without knowing the truth: by the margin, how much better the linked person fits than the next best.

    Parameters
    ----------
    on : the variables the attacker knows; by default every column that others could know.
    links : how many of the surest links are judged, at least 1.
    share : the share of the records whose surest links are judged, if these are more than `links`; in [0, 1].
    draws : how many draws of the method the value is the mean of, at least 1; 1: the masked file itself. The release
        checks take 10 new draws of a random method.
    inclusion : the probability that the target is in the file, in (0, 1]; the share of true links is multiplied by it.
    method : how the file was made, for an attacker who has read the method note; a sweep and a release fill it in.

    Formula: the largest value over the attacks Informed, Calibrated and NearestRecord ("gower" where there are
        categories, and "mahalanobis" where there are numbers) of #{true links} / max(links, share x records) among the
        links with the largest margins; the mean over the draws, then the largest. A link that ties with t - 1 others has
        margin 0 and is true with probability 1/t (at least 1/8 where no two records are equal). Links with equal margins
        at the cut count with their mean. The largest of a few shares of 20 links is too high by up to about 0.1 for one
        draw, and by 0.03 for ten.
    `parts`: the value of each attack, and "links", how many are judged. Beyond 100 million pairs of records, 2,500
        released records drawn at random are linked, and the value has a standard error for this draw.
    Missing values are compared too: where no record became missing, or none was imputed, a pair that differs so is
        ruled out. So a person with a unique pattern of missing values is re-identified with certainty if the pattern was
        not masked. Otherwise as in each attack. Columns that were released unchanged for all records must be equal.
    Weights and households are not used. Releasing nothing leaves a guess: 1/n. Undefined for fully synthetic files.
    Reference: Winkler (2004) judges the surest links only; the limit is on the share of them that is true.

    Examples
    --------
    >>> SurestLinks(links=50).text
    'SurestLinks(links=50)'
    """

    label: ClassVar[str] = "True links among the surest"
    description: ClassVar[str] = "Share of the links of which an attacker is surest that are true."
    unit: ClassVar[str] = "share of links"
    missing: ClassVar[str] = "the pattern of missing values is compared too, unless it was masked"
    columns_by_default: ClassVar = "knowable"
    growth: ClassVar[float] = 2.0
    can_be_spared: ClassVar[bool] = True

    on: tuple[str, ...] = ()
    links: Annotated[int, Range(1)] = 20
    share: Annotated[float, Range(0, 1)] = 0.01
    draws: Annotated[int, Range(1)] = field(default=1, kw_only=True)
    inclusion: Annotated[float, Range(0, 1, "(]")] = field(default=1.0, kw_only=True)
    method: Method | None = field(default=None, kw_only=True)

    def for_informed_attacker(self, method: Method) -> Measure:
        return replace(self, method=method)

    def baseline(self, original: Microdata) -> float | None:
        """Return the value of guessing: one of the n records at random."""
        return self.inclusion / len(original) if len(original) else None

    def error_at_baseline(self, data: Microdata, rows: int | None = None) -> float | None:
        """Return the error of a share of independent links of which hardly any is true, over all draws."""
        judged = self._count_links(rows or len(data)) * self.draws
        return self.inclusion * share_standard_error(0.0, judged) if judged else None

    def seconds(self, data: Microdata) -> float | None:
        pairs = min(len(data) ** 2, max(MAX_PAIRS_ALL_RECORDS, SAMPLED_RECORDS * len(data)))
        return self.draws * (SECONDS_TO_START + len(self.variables(data)) * pairs * SECONDS_PER_PAIR)

    def refits(self, masked: Microdata) -> RefitRequest | None:
        is_random = self.method is not None and self.method.random
        return HalfIn(self.draws, EveryoneIn()) if is_random and masked.paired and self.draws > 1 else None

    def release_variant(self) -> Measure:
        return replace(self, draws=max(self.draws, DRAWS_AT_RELEASE))

    def release_error(self, estimate: Estimate) -> float:
        """Return the error of a share of independent links, over all draws of the release checks."""
        judged = round(estimate.parts.get("links", self.links))
        draws = max(self.draws, DRAWS_AT_RELEASE)
        return self.inclusion * share_standard_error(min(1.0, estimate.value / self.inclusion), judged * draws)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        return self._estimate(original, [masked])

    def score_refits(self, original: Microdata, refits: Sequence[Refit], rng: Generator) -> Estimate:
        return self._estimate(original, [refit.released for refit in refits])

    def _estimate(self, original: Microdata, draws: Sequence[Microdata]) -> Estimate:
        """Return the mean over these masked files, for the attack whose mean is largest."""
        names = self.check_variables(original)
        shares: dict[str, list[float]] = {}
        skipped: dict[str, str] = {}
        judged, is_sample = 0, False
        for masked in draws:
            pair = WHOLE_FILE.pair(original, masked, names)
            positions = _draw_positions(pair)
            judged, is_sample = self._count_links(len(positions)), len(positions) < len(pair.targets)
            for name, models in self._cost_models(pair, skipped).items():
                value = precision_of_surest(*_link(pair, models, positions), judged)
                shares.setdefault(name, []).append(self.inclusion * value)
        # an attack that could not run on every draw has no mean over the draws
        complete = {name: values for name, values in shares.items() if len(values) == len(draws)}
        if not complete:
            raise Undefined(next(iter(skipped.values())))
        means = {name: math.fsum(values) / len(draws) for name, values in complete.items()}
        best = max(means, key=lambda name: means[name])
        se = df = None
        if len(draws) > 1:
            # The spread of a few shares may be 0 by chance, but a share below 1 of so many links is never that certain.
            least = self.inclusion / (judged * len(draws) + 2) if means[best] < self.inclusion else 0.0
            se = max(float(np.std(complete[best], ddof=1)) / math.sqrt(len(draws)), least)
            df = float(len(draws) - 1)
        elif is_sample:
            se = self.inclusion * share_standard_error(min(1.0, means[best] / self.inclusion), judged)
        parts = {"links": float(judged), **means}
        reasons = tuple(Skipped(attack=name, reason=reason) for name, reason in skipped.items())
        return Estimate(value=means[best], se=se, df=df, parts=parts, skipped=reasons)

    def _count_links(self, records: int) -> int:
        """Return how many links are judged among those of so many records."""
        return min(records, max(self.links, math.ceil(self.share * records)))

    def _cost_models(self, pair: Pair, skipped: dict[str, str]) -> dict[str, list[CostModel]]:
        """Return what each attack compares, by name; write the reason of each that cannot run to `skipped`."""
        certain = find_open_fields(pair) | find_certain_fields(pair, self.method)
        patterns = [cost for index, cost in find_missing_fields(pair).items() if index not in certain]
        attacks: dict[str, Attack] = {"informed": Informed(self.method), "calibrated": Calibrated(self.method)}
        attacks |= {"gower": NearestRecord("gower")} if pair.categorical.any() else {}
        attacks |= {} if pair.categorical.all() else {"mahalanobis": NearestRecord("mahalanobis")}
        models = {}
        for name, attack in attacks.items():
            try:
                own = require_equality(attack.cost_models(pair), certain, has_column_costs=attack.has_column_costs)
                models[name] = [model._replace(costs=[*model.costs, *patterns]) for model in own]
            except Undefined as reason:
                skipped[name] = str(reason)
        return models


def _link(pair: Pair, models: Sequence[CostModel], positions: Array) -> tuple[Array, Array]:
    """Return the margin of the link of each of these released records, and the probability that it is true."""
    table, rows = link_to_cheapest(pair, models, positions, MAX_TIES), pair.released_rows[positions]
    # a table has the mean over all records with equal values, of which a sample has linked only some
    group = pair.released_group[positions]
    linked = np.bincount(group, minlength=len(pair.released_size))
    return table.margin[rows], table.correct[rows] * (pair.released_size / np.maximum(linked, 1))[group]


WHOLE_FILE = NearestRecord("gower")  # the attacker whose file is the original; it lays out both files


def _draw_positions(pair: Pair) -> Array:
    """Return the positions of the released records to link: all, or a sample of the same people for every candidate."""
    if len(pair.known) * len(pair.released) <= MAX_PAIRS_ALL_RECORDS or len(pair.targets) <= SAMPLED_RECORDS:
        return pair.targets
    rng = Stream.of_seed(0, "surest links").rng()
    return pair.order_of_targets()[rng.choice(len(pair.targets), SAMPLED_RECORDS, replace=False)]
