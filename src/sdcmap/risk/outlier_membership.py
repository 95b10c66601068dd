"""Membership inference for the most outlying people, who are in half of the refits each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Measure, Method, Microdata, Range, RiskMeasure, Stream, Undefined
from sdcmap.core.estimate import Skipped
from sdcmap.core.refits import HalfIn, Refit, refit_without
from sdcmap.data.cells import common_codes
from sdcmap.kernels.tables.attribution import describe_neighborhoods, neighbor_densities
from sdcmap.kernels.tables.coding import compress
from sdcmap.risk._control import SECONDS_PER_COMPARISON, distance_inputs, recode_by_method
from sdcmap.risk._half_in_scores import (
    MIN_REFITS,
    WORST_BY_CHANCE,
    WORST_PERSON,
    detection_rate,
    group_area,
    has_enough_controls,
    weigh_splits,
    worst_person,
)
from sdcmap.risk._outlying_units import (
    OutlyingUnits,
    Subjects,
    WatchedUnits,
    count_release_refits,
    robust_spread,
)
from sdcmap.risk.worst_membership import FALSE_POSITIVE_RATE, LOG_OFFSET, MIN_CONTROLS, median_width

ATTACKS = 5.0  # the cost of all attacks, in comparisons of a person with all records
SECONDS_PER_SCORE = 4e-4  # to judge a person in a refit, on one core
FEW_NEIGHBORS, MANY_NEIGHBORS = 5, 25  # records whose mean distance is a score
NEAR_VALUE = 0.1  # on the scale asinh((x - median) / spread)
CLUSTERED_ERROR = 1.15  # the error clustered by person and refit, relative to that of independent scores (simulated)
DETECTION = "true positives at 1 % false positives"
BETWEEN_PEOPLE = "standard error between people"
NO_METHOD = "membership of outlying people needs the method that made the file, to make it again with and without them."


@dataclass(frozen=True)
class OutlierMembership(RiskMeasure):
    """How well an attacker detects whether the most outlying people are in the file.

    An average over all people hides the few who stand out: the largest incomes, rare categories, unusual combinations. The
    most outlying people are chosen from the original. The method is run again several times, each time without a random
    half of them and of the people with the largest values, whom `ExtremeValues` attacks in the same refits. The attacker
    knows everything about a person and everybody else, and knows how the released files with and without this person look.
    At 0.5 they learn nothing. In a census everyone is a member, so the measure is off.

    Parameters
    ----------
    on : the variables the attacker knows, of any kind; by default every column that other people could know.
    share, fewest : as many people as this share of all people, but at least `fewest`, are attacked; in (0, 1), at least 4.
    most : the largest share of the records that may be left out of refits, in (0, 1].
    statistic : "auc": the probability that a member has a higher score than a non-member; "detection": the share of
        members who are recognized at 1 % false positives, which needs 1,000 scores of non-members.
    times : the number of refits in a sweep, even and at least 4. A release uses twice as many, from 40 to 100.
    method : how the file was made; a sweep or release fills it in.

    Formula: the AUC of ln p(s | in) - ln p(s | out), both normal with one covariance, for the scores s of a person in one
        refit; the means are learned from the person's other refits and shrunk towards those of other people, by empirical
        Bayes. People are ordered by sqrt(mean b^2) over columns and pairs of the first 20 categorical columns. b is -log2
        of the share with the value for categories; for numbers -log2 min(1, 2 P(X <= x), 2 P(X >= x)), plus log2 of
        |x - median| over three robust standard deviations (1.4826 MAD) if that is above 1.
    The scores use distances over all columns, with amounts as ranks in the original: "closest" and "density" as in
    WorstMembership, and the mean distance to the 5 and the 25 nearest records; the same for amounts alone; the shares of
    records with all categories of the person, and with all but one. For each of the person's three most outlying numbers:
    the distance to the nearest released value ("value"), the shares of values near it and beyond it, and the largest (or
    smallest) released value ("extreme"). For each of their three rarest categories or pairs of categories how often it
    occurs ("rare values").
    `parts`: the AUC of each score; the other statistic; "most recognizable person", the largest AUC of one person over the
    refits, which has no limit, and the value that such a maximum exceeds by chance with probability 5 %; "people" attacked;
    the part of the standard error that more refits do not reduce. The standard error is clustered by person and by refit.
    The value describes the method on these data; the released file itself is not used. Missing is a category; a missing
    number has -log2 of the share missing. Weights are not used. A person with several records enters a refit with all of
    them, and the most outlying one is attacked. The same holds for households.
    Reference: Carlini et al. (2022); Stadler, Oprisanu, Troncoso (2022); Cameron, Gelbach, Miller (2011) for the error.

    Examples
    --------
    >>> OutlierMembership(times=20).text
    'OutlierMembership(times=20)'
    """

    label: ClassVar[str] = "Membership inference (outlying people)"
    description: ClassVar[str] = (
        "Probability that an attacker distinguishes releases with an outlying person from releases without this person."
    )

    unit: ClassVar[str] = "probability"
    baseline_value: ClassVar[float | None] = 0.5
    floor: ClassVar[str] = "no better than chance"
    sampled: ClassVar[bool] = True
    paired: ClassVar[bool] = False
    columns_by_default: ClassVar = "knowable"
    texts_in_title: ClassVar[tuple[str, ...]] = ("on", "statistic")
    omitted_from_title: ClassVar[tuple[str, ...]] = ("times",)
    can_be_spared: ClassVar[bool] = True
    # 2: the refits also lack half of the largest units, as those of ExtremeValues; 3: people with all their records
    revision: ClassVar[int] = 3
    households: ClassVar[str] = "left out of refits as a whole; the most outlying person of each is attacked"

    on: tuple[str, ...] = ()
    share: Annotated[float, Range(0, 1, "()")] = field(default=0.01, kw_only=True)
    fewest: Annotated[int, Range(4)] = field(default=30, kw_only=True)
    most: Annotated[float, Range(0, 1, "(]")] = field(default=0.1, kw_only=True)
    statistic: Literal["auc", "detection"] = field(default="auc", kw_only=True)
    times: Annotated[int, Range(MIN_REFITS)] = field(default=8, kw_only=True)
    method: Method | None = field(default=None, kw_only=True)

    def problems(self) -> Iterator[str]:
        if self.times % 2:
            yield f".times must be even, because each person is in half of the refits. Got {self.times}."

    @property
    def value_unit(self) -> str:
        return self.unit if self.statistic == "auc" else "share of people"

    def baseline(self, original: Microdata) -> float | None:
        return 0.5 if self.statistic == "auc" else FALSE_POSITIVE_RATE

    def for_informed_attacker(self, method: Method) -> Measure:
        return replace(self, method=method)

    def error_at_baseline(self, data: Microdata, rows: int | None = None) -> float | None:
        """Return the error if all scores are alike: that of Mann and Whitney, or of a share and the threshold it needs."""
        if rows is None:
            people = len(self._units.targets(data))
        else:
            people = self._units.count_units(math.ceil(data.people * rows / max(1, len(data))))
        pairs = max(1, people) * self.times / 2  # scores with a person, and as many without one
        if self.statistic == "detection":
            return math.sqrt(2 * FALSE_POSITIVE_RATE * (1 - FALSE_POSITIVE_RATE) / pairs)
        return CLUSTERED_ERROR * math.sqrt((2 * pairs + 1) / (12 * pairs**2))

    def release_variant(self) -> Measure:
        return replace(self, times=count_release_refits(self.times))

    def release_error(self, estimate: Estimate) -> float:
        """Return the error with the refits of a release: only the part between people does not shrink."""
        fixed = estimate.parts.get(BETWEEN_PEOPLE, 0.0) ** 2
        rest = max(0.0, (estimate.se or 0.0) ** 2 - fixed)
        return math.sqrt(fixed + rest * self.times / count_release_refits(self.times))

    def describe_parts(self, estimate: Estimate) -> str:
        worst, chance = (estimate.parts.get(name) for name in (WORST_PERSON, WORST_BY_CHANCE))
        if worst is None or chance is None or self.statistic != "auc":
            return ""
        return (
            f"The most recognizable of the {estimate.parts['people']:,.0f} outlying people: an attacker who compares a "
            f"release with this person and one without tells which is which with probability {worst:.2f}. The largest of "
            f"so many is above {chance:.2f} by chance alone in 5 % of cases. No limit is compared with this number."
        )

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        if data.schema.census:
            yield "OutlierMembership is off: the file is a census, so membership is not a secret."
            return
        people = len(self._units.targets(data))
        if people < self.fewest:
            needed = math.ceil(len(data) * self.fewest / max(1, people) / 100) * 100
            yield (
                f"OutlierMembership is off: it attacks at least {self.fewest} people, and they and their households may be "
                f"at most {100 * self.most:g} % of the file, which are {people}. About {needed:,} records would be needed."
            )
        elif self.statistic == "detection" and not has_enough_controls(people, self.times):
            yield (
                f"One statistic of OutlierMembership is off: {DETECTION} need {MIN_CONTROLS:,} scores of people without "
                f"them, and {people} people in {self.times} refits have {people * self.times // 2:,}. Its AUC needs fewer. "
                f"With 20 refits, about {math.ceil(MIN_CONTROLS / 10 / self.share):,} records would be needed."
            )

    def seconds(self, data: Microdata) -> float | None:
        people = max(self.fewest, self.share * data.people)
        comparisons = len(data) * len(self.variables(data)) * SECONDS_PER_COMPARISON
        return self.times * people * (ATTACKS * comparisons + SECONDS_PER_SCORE)

    def refits(self, masked: Microdata) -> HalfIn | None:
        return None if self.method is None else self._request

    @property
    def _request(self) -> HalfIn:
        return HalfIn(self.times, WatchedUnits(self._units))

    @property
    def _units(self) -> OutlyingUnits:
        return OutlyingUnits(self.on, self.share, self.fewest, self.most)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        if self.method is None:
            raise Undefined(NO_METHOD)
        self.check_variables(original)
        refits = refit_without(original, self.method, Stream(rng.bytes(32)), self._request)
        return self.score_refits(original, refits, rng)

    def score_refits(self, original: Microdata, refits: Sequence[Refit], rng: Generator) -> Estimate:
        names = self.check_variables(original)
        rows = self._units.targets(original)
        inside = np.column_stack([~refit.outside[rows] for refit in refits])
        attacks = self._attack(original, rows, refits, names)
        splits, parts = weigh_splits(attacks, inside, rng)
        group, skipped = group_area(splits), tuple[Skipped, ...]()
        parts |= worst_person(attacks, inside, rng) | {"people": float(len(rows)), "AUC": group.value}
        if has_enough_controls(*inside.shape):
            detection = detection_rate(splits, rng)
            parts[DETECTION] = detection.value
            group = detection if self.statistic == "detection" else group
        else:
            outside = f"there are {int((~inside).sum()):,}"
            reason = f"it needs {MIN_CONTROLS:,} scores of people without them; {outside}."
            if self.statistic == "detection":
                raise Undefined(f"{DETECTION}: {reason}")
            skipped = (Skipped(attack=DETECTION, reason=reason),)
        parts[BETWEEN_PEOPLE] = group.between_people
        return Estimate(value=group.value, se=group.se, df=len(refits) - 1.0, parts=parts, skipped=skipped)

    def _attack(
        self, original: Microdata, rows: Array, refits: Sequence[Refit], names: tuple[str, ...]
    ) -> dict[str, Array]:
        """Return the scores of each attack for the people `rows` (rows of the result) in each refit (columns)."""
        known = recode_by_method(original, self.method, names)
        released = [refit.released for refit in refits]
        if not all(map(len, released)):
            raise Undefined("a refit has no records.")
        # Amounts are compared by their ranks: by their values, all but the largest ones would look alike.
        people, *files = _rank_amounts(original, [known.take(rows), *released], names)
        inputs = [distance_inputs(people, file, names, dict.fromkeys(names, 1.0)) for file in files]
        seen = np.stack([describe_neighborhoods(*one, FEW_NEIGHBORS, MANY_NEIGHBORS) for one in inputs], axis=-1)
        width = median_width(seen[:, 0])
        crowd = np.column_stack([neighbor_densities(*one, width)[:, 1] for one in inputs])
        amounts, categories = self._units.subjects(original)
        scores = {
            "closest": -seen[:, 0], "few nearest": -seen[:, 1], "many nearest": -seen[:, 2],
            "density": np.log(crowd + LOG_OFFSET), "closest amounts": -seen[:, 3], "few nearest amounts": -seen[:, 4],
            "same categories": np.sqrt(seen[:, 5]), "similar categories": np.sqrt(seen[:, 6]),
        }  # fmt: skip
        for number, subjects in enumerate(amounts, 1):
            named = _score_amounts(original, rows, released, subjects)
            scores |= {name if number == 1 else f"{name} {number}": one for name, one in named.items()}
        for number, subjects in enumerate(categories, 1):
            name = "rare values" if number == 1 else f"rare values {number}"
            scores[name] = _count_rare_values(known.take(rows), released, subjects)
        return scores


def _rank_amounts(original: Microdata, files: Sequence[Microdata], names: tuple[str, ...]) -> list[Microdata]:
    """Return files with each amount as its rank in the original, from 0 to 1."""
    ranked = list(files)
    for name in names:
        if original.column(name).levels is not None:
            continue
        x = original.numbers(name)
        ordered = np.sort(x[np.isfinite(x)])
        for k, file in enumerate(ranked):
            if file.column(name).levels is None:
                y = file.numbers(name)
                places = np.searchsorted(ordered, y, side="left") + np.searchsorted(ordered, y, side="right")
                rank = np.where(np.isfinite(y), places / 2 / max(1, len(ordered)), np.nan)
                ranked[k] = ranked[k].change(None, {name: rank})
    return ranked


def _score_amounts(data: Microdata, rows: Array, released: Sequence[Microdata], amounts: Subjects) -> dict[str, Array]:
    """Return what the released values say about the person's most outlying number.

    They are how near the nearest released value is, the share of values near it and that of values beyond it, and the
    largest released value (of a person below the median the smallest one). Distances are of asinh((x - median) / s), s a
    robust standard deviation, so that one error of a large number does not outweigh all others. All are 0 where the
    number was recoded.
    """
    value, near, beyond, extreme = np.zeros((4, len(rows), len(released)))
    for (name,), people in amounts.items():
        x = data.numbers(name)
        v = x[np.isfinite(x)]
        center, spread = (float(np.median(v)), robust_spread(v)) if len(v) else (0.0, 1.0)
        own = np.arcsinh((x[rows[people]] - center) / spread)
        known = np.isfinite(own)
        own, who = own[known], people[known]
        for k, file in enumerate(released):
            y = file.numbers(name) if file.column(name).levels is None else v[:0]
            if not np.isfinite(y).any():
                continue
            y = np.arcsinh((np.sort(y[np.isfinite(y)]) - center) / spread)
            place = np.searchsorted(y, own)
            gaps = np.abs(own - y[np.maximum(place - 1, 0)]), np.abs(y[np.minimum(place, len(y) - 1)] - own)
            value[who, k] = -np.minimum(*gaps)
            around = np.searchsorted(y, own + NEAR_VALUE, side="right") - np.searchsorted(y, own - NEAR_VALUE)
            near[who, k] = np.sqrt(around / len(y))
            up_to = np.searchsorted(y, own, side="right")
            beyond[who, k] = np.sqrt(np.where(own >= 0, len(y) - place, up_to) / len(y))
            extreme[who, k] = np.where(own >= 0, y[-1], -y[0])
    return {"value": value, "values near": near, "values beyond": beyond, "extreme": extreme}


def _count_rare_values(people: Microdata, released: Sequence[Microdata], categories: Subjects) -> Array:
    """Return the log of the share of released records with the person's rarest category or pair of categories."""
    shares = np.zeros((len(people), len(released)))
    for subject, who in categories.items():
        for k, file in enumerate(released):
            code, _ = compress([common_codes(people, file, name) for name in subject])
            count = np.bincount(code[len(people) :], minlength=int(code.max()) + 1)[code[: len(people)]]
            shares[who, k] = np.log((count[who] + 0.5) / len(file))
    return shares
