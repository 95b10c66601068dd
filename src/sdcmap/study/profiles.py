"""Profiles: limits on the risk of a file and on what it changes, by its intended use; and the default risk measures.

No number here is law. They are our own starting points; docs/profiles.md explains each of them, and what agencies
publish.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Literal, NamedTuple

from sdcmap.core import Measure, Microdata, PlanError, Roles, did_you_mean
from sdcmap.core.formatting import join_names
from sdcmap.core.limit import Limit
from sdcmap.core.release_policy import DEFAULT_POLICY
from sdcmap.core.renamed_names import suggest_name
from sdcmap.core.value import Range, Share, Value, coerce, field_types
from sdcmap.study.limits_at_size import limits_at_size

DEFAULT_RISK_CLASSES = ("WorstLinkage", "AttributeInference", "ClosestRecord")


def default_risk(data: Microdata) -> tuple[tuple[Measure, ...], dict[str, str]]:
    """Return the default risk measures that fit these data; and, by class name, why the others are left out.

    They are linkage by the best attack, which is on the axis of the map; inference of each sensitive variable from the keys
    (without keys: from the other numeric variables) at its worst category, or of a sample of four columns from all others
    where none is stated as sensitive; and membership. Each detects what the others
    miss, and has its own limit: linkage does not apply to fully synthetic files, a file without a single link may still
    allow inference, and being in the file may itself be the secret.
    """
    from sdcmap.risk import AttributeInference, ClosestRecord, WorstLinkage  # only where a plan names no risk

    known = () if set(data.keys) - set(data.sensitive) else Roles(data).known_to_attacker
    infers = [AttributeInference(secret, known, worst=True) for secret in data.sensitive]
    if not infers:
        infers = [
            AttributeInference(secret, tuple(name for name in data.knowable if name != secret), worst=True)
            for secret in sample_columns(data, MAX_SAMPLED_COLUMNS)
        ]
    few = "AttributeInference is off: no column is stated as sensitive, and there are not two that others could know."
    none = {} if infers else {"AttributeInference": few}
    measures, off = _split_fitting((WorstLinkage(), *infers, ClosestRecord()), data)
    return tuple(measures), none | off


def sample_columns(data: Microdata, most: int) -> tuple[str, ...]:
    """Return at most so many columns that an attacker may want to infer, where none is stated as sensitive.

    Half of them are amounts and half categories, as far as there are so many, evenly spaced in the order of the file. The
    largest of their gains stands for all columns.
    """
    kinds: tuple[list[str], list[str]] = [], []
    for name in data.knowable:
        kinds[data.schema[name].kind != "numeric"].append(name)
    amounts = min(len(kinds[0]), max(most // 2, most - len(kinds[1])))
    counts = amounts, min(len(kinds[1]), most - amounts)
    return (
        tuple(names[i * len(names) // count] for names, count in zip(kinds, counts, strict=True) for i in range(count))
        if len(data.knowable) > 1
        else ()
    )


def _split_fitting(measures: Iterable[Measure], data: Microdata) -> tuple[list[Measure], dict[str, str]]:
    """Return the measures that fit these data; and, by class name, why others do not."""
    problems = [(measure, next(measure.incompatibilities(data), None)) for measure in measures]
    off: dict[str, str] = {}
    for measure, problem in problems:
        if problem is not None and problem not in off.values():
            off[_name_of(measure)] = problem
    return [measure for measure, problem in problems if problem is None], off


def _name_of(measure: Measure) -> str:
    """Return the class of a measure, and its statistic where that is not the usual one."""
    statistic = getattr(measure, "statistic", "auc")
    return type(measure).__name__ + (f" ({statistic})" if statistic != "auc" else "")


def _explain_if_too_small(data: Microdata, measure: Measure, limit: float) -> str:
    """Return why a limit cannot be shown to hold with the records of a file, and how many would do; "" where it can."""
    prospects = limits_at_size(data, [Limit(measure, limit)], DEFAULT_POLICY)
    if not prospects or prospects[0].prospect != "cannot be shown":
        return ""
    needed = prospects[0].records_needed
    remedy = f"About {needed:,} records would be needed" if needed else "More units, or more refits, would be needed"
    return (
        f"{_name_of(measure)} is off: with {len(data):,} records its error alone exceeds the room below the limit of "
        f"{limit:g}. {remedy}."
    )


def _explain_left_out(secrets: Sequence[str], left: Sequence[str]) -> str:
    """Return which sensitive columns a profile does not infer, because there are many."""
    return (
        f"Of {len(secrets)} sensitive columns, the profile infers the first {MAX_INFERRED_COLUMNS}, not "
        f"{join_names(left)}. State AttributeInference for the others that matter."
    )


def explain_unmeasured(data: Microdata, measures: Iterable[Measure], profile: Profile | None = None) -> list[str]:
    """Return why a measure of the profile, or a default one, is left out where others are used, one sentence each."""
    kinds = {_name_of(measure) for measure in measures}
    if kinds.isdisjoint(DEFAULT_RISK_CLASSES):
        return []
    off = default_risk(data)[1] if profile is None else profile.measures(data).off
    return [reason for name, reason in off.items() if name not in kinds]


MAX_INFERRED_COLUMNS = 8  # sensitive columns, or a sample of all; each needs an attack of its own
MAX_SAMPLED_COLUMNS = 4  # of a plan that names no risk, and a file without sensitive columns
MAX_KEYS_FOR_TRIPLES, MAX_KEYS_FOR_UNIQUES = (
    15,
    60,
)  # up to so many special uniques are sought on three of them; no more are looked at
SMALL_FILE_RECORDS = 2_000  # smaller files need larger folds for stable membership and inference measures
NO_LIMIT = "none"  # what a plan states for a limit of the profile that it switches off
RANKED_UNITS = 10  # the largest units, such as the firms of a ranking
# Few people have a large error, and in a small file more refits are cheap. So a sweep makes as many as give
OUTLIER_SCORES = 1_800  # scores of outlying people: the error of an AUC that reveals nothing is then about 0.018
MIN_REFITS_OF_FEW, MAX_REFITS_OF_FEW = 20, 60


class MeasureLimits(NamedTuple):
    """The measures of a file with their limits; and, by class name, why others are left out."""

    limits: Mapping[Measure, float]
    off: Mapping[str, str]


@dataclass(frozen=True)
class Profile(Value):
    """Limits on the risk of a file and on what it changes, by its intended use. Each is the largest tolerable value.

    Parameters
    ----------
    name : "public-use", "scientific-use", "teaching" or "business"; the numbers may be changed.
    reidentification : share of records that the best attack re-identifies when every knowable column is known; in (0, 1].
    surest : share of true links among the surest links of an attacker (the surest 20, or 1 %); None: not measured.
    people : number of people whom that attack re-identifies: 0.05 of 200,000 are 10,000. At least 1; None: no limit.
    record : the largest risk of a single record: the probability that a match on the keys is correct; in (0, 1].
    subgroup : share re-identified by matching values, in the worst category of a key with at least 50 records; in (0, 1].
    k, small : at most a share `small` of the records may be in groups of fewer than k records with equal keys.
    special : share of the special uniques that are re-identified by the few values which make them special.
    inference : inference gain over non-members: how much better sensitive values are inferred for people in the file.
    reconstruction : how much more of a record is guessed for people in the file than for people outside it, rare values
        counting more; None: not measured.
    extremes : how much better the largest values of the amounts are estimated because their units are in the file; None:
        not measured.
    membership : probability that the distance to the closest record reveals membership; 0.5 is a coin toss.
    outlier_membership : probability that releases with and without an outlying person are distinguished; 0.5 is a coin
        toss; None: not measured.
    outlier_detection : share of outlying people who are recognized as members at 1 % false positives, where a sweep has
        1,000 scores of people outside; None: not measured.
    conclusions : share of users' clear conclusions that the file may change, beyond chance, where the plan measures
        ChangedConclusions; None: no limit.
    reversed : number of users' clear findings to which the file may give the opposite sign; None: no limit.
    largest : share of the ten largest units that is re-identified; None: not measured.
    p, totals : at most a share `totals` of the totals, by the categories of each key, may reveal the largest unit within
        p % to the second largest; None: not measured.
    size : the amount that measures the size of a unit and is added up; by default the first amount.
    area, smallest_area : column of the areas, and the fewest people that one may have, counted by weights where there are
        some; empty and 0: not checked.
    population, fraction : people in the population, and the share of them in the file.
    taking_part : "known": the attacker knows that their target is in the file (a prosecutor); "secret": participation is
        unknown, which needs population and fraction; the target is then in the file with that probability (a journalist).

    Examples
    --------
    >>> find_profile("teaching").reidentification < find_profile("public-use").reidentification
    True
    """

    name: str = "public-use"
    reidentification: Annotated[float, Range(0, 1, "(]")] = 0.05
    surest: Annotated[float | None, Range(0, 1, "(]")] = 0.5
    people: Annotated[int | None, Range(1)] = 1000
    record: Annotated[float | None, Range(0, 1, "(]")] = 0.34
    subgroup: Annotated[float, Range(0, 1, "(]")] = 0.1
    k: Annotated[int, Range(2)] = 3
    small: Annotated[float, Range(0, 1, "(]")] = 0.05
    special: Annotated[float, Range(0, 1, "(]")] = 0.05
    inference: Annotated[float, Range(0, 1, "(]")] = 0.1
    reconstruction: Annotated[float | None, Range(0, 1, "(]")] = 0.1
    extremes: Annotated[float | None, Range(0, 1, "(]")] = 0.2
    membership: Annotated[float, Range(0.5, 1, "(]")] = 0.6
    outlier_membership: Annotated[float | None, Range(0.5, 1, "(]")] = 0.7
    outlier_detection: Annotated[float | None, Range(0, 1, "(]")] = 0.1
    conclusions: Annotated[float | None, Range(0, 1, "(]")] = 0.1
    reversed: Annotated[int | None, Range(0)] = 0
    largest: Annotated[float | None, Range(0, 1, "(]")] = None
    p: Annotated[float, Range(0, 100, "()")] = 10.0
    totals: Annotated[float | None, Range(0, 1, "(]")] = None
    size: str = ""
    area: str = ""
    smallest_area: Annotated[int, Range(0)] = 0
    population: Annotated[int | None, Range(1)] = None
    fraction: Share | None = None
    taking_part: Literal["known", "secret"] = "known"

    def problems(self) -> Iterator[str]:
        if bool(self.area) != bool(self.smallest_area):
            yield ".area and .smallest_area are stated together."
        if self.fraction == 0:
            yield ".fraction must be above 0."
        if self.taking_part == "secret" and not (self.population and self.fraction):
            yield '.taking_part = "secret" needs .population and .fraction: who took part is one of how many?'

    @property
    def inclusion(self) -> float:
        """The probability that the attacker's target is in the file."""
        return self.fraction if self.taking_part == "secret" and self.fraction else 1.0

    @property
    def words(self) -> str:
        """The name, and the limits that differ from those of that name."""
        pairs = {name: (getattr(self, name), getattr(PROFILES[self.name], name)) for name in LIMITS}
        changed = [f"{name} {now:g}" for name, (now, usual) in pairs.items() if now not in (None, usual)]
        return self.name + (f" (changed: {', '.join(changed)})" if changed else "")

    def measures(self, data: Microdata) -> MeasureLimits:
        """Return the measures that fit a file, with their limits: for a starting plan and for the release checks."""
        measures, off = _split_fitting(self._measures(data), data)
        limits = {m: limit for m in measures if (limit := self.limit_of(m)) is not None}
        # a limit that a file is too small to show must not refuse every candidate, so it is off, with the reason
        of_few = {m: limit for m, limit in limits.items() if m.can_be_spared}
        small = {m: why for m, limit in of_few.items() if (why := _explain_if_too_small(data, m, limit))}
        off |= {_name_of(m): why for m, why in small.items()}
        if left := data.sensitive[MAX_INFERRED_COLUMNS:]:
            off |= {"AttributeInference of further columns": _explain_left_out(data.sensitive, left)}
        return MeasureLimits({m: limit for m, limit in limits.items() if m not in small}, off)

    def _measures(self, data: Microdata) -> Iterator[Measure]:
        from sdcmap import risk  # only where a profile is measured

        # re-identification: by the best attack, by exact matches, by record, and of special uniques
        yield risk.WorstLinkage(inclusion=self.inclusion)
        if self.surest is not None:
            yield risk.SurestLinks(inclusion=self.inclusion)
        yield risk.ExactMatch()
        if data.keys:
            yield risk.ExactMatch(on=data.keys, k=max(3, self.k))
            yield risk.RecordRisk(on=data.keys, inclusion=self.inclusion)
            yield risk.SpecialUniques(
                on=data.keys[:MAX_KEYS_FOR_UNIQUES], largest=3 if len(data.keys) <= MAX_KEYS_FOR_TRIPLES else 2
            )
        # A small file needs as many people outside as inside for a stable comparison. Otherwise few are left out,
        # because a method masks a smaller file more strongly.
        outside: dict[str, Any] = {"held_out": 0.5, "folds": 4} if len(data) < SMALL_FILE_RECORDS else {}
        # what an attacker would like to learn: the sensitive columns, or a sample of all columns where none is stated
        secrets = data.sensitive or sample_columns(data, MAX_INFERRED_COLUMNS)
        for secret in secrets[:MAX_INFERRED_COLUMNS]:
            known = tuple(name for name in data.knowable if name != secret)
            yield risk.AttributeInference(secret, known, worst=True, **outside)
        if self.reconstruction is not None:
            yield risk.Reconstruction(**outside)
        if self.membership < 1:
            yield risk.ClosestRecord(on=data.knowable, **outside)
        outliers = risk.OutlierMembership()
        scores = OUTLIER_SCORES / max(outliers.fewest, outliers.share * data.people)
        refits = min(MAX_REFITS_OF_FEW, max(MIN_REFITS_OF_FEW, 2 * math.ceil(scores / 2)))
        if self.extremes is not None and data.numeric:
            yield risk.ExtremeValues(times=refits)  # the same refits
        outliers = replace(outliers, times=refits)
        if self.outlier_membership is not None:
            yield outliers
        if self.outlier_detection is not None:
            yield replace(outliers, statistic="detection")
        size = self.size or next(iter(data.numeric), "")
        if self.largest is not None and size:
            yield risk.LargestUnits(on=size, largest=RANKED_UNITS)
        if self.totals is not None and size:
            yield risk.PPercent(on=size, by=data.keys, p=self.p)

    def limit_of(self, measure: Measure) -> float | None:
        """Return the limit of a measure, or None where the profile has none for its class."""
        if type(measure).__name__ == "ExactMatch":
            return self.small if getattr(measure, "k", 2) > 2 else self.reidentification
        names = type(measure).__name__, getattr(measure, "statistic", "")
        return getattr(self, LIMIT_FIELDS_OF_STATISTICS.get(names) or LIMIT_FIELDS.get(names[0], ""), None)

    def for_rows(self, rows: int) -> Profile:
        """Return the profile for a file of this size: its share of re-identified records within its number of people."""
        most = 1.0 if self.people is None else self.people / rows
        return self if most >= self.reidentification else replace(self, reidentification=float(f"{most:.2g}"))

    def table(self) -> dict[str, Any]:
        """Return every limit, as a plan states it."""
        own, usual = ({f.name: getattr(one, f.name) for f in fields(self)} for one in (self, PROFILES[self.name]))
        off = {name: NO_LIMIT for name, value in own.items() if value is None and usual[name] is not None}
        return {name: value for name, value in own.items() if value or value != usual[name]} | off


LIMIT_FIELDS = {
    "WorstLinkage": "reidentification", "PublishedTables": "reidentification", "SpecialUniques": "special",
    "AttributeInference": "inference", "ClosestRecord": "membership", "OutlierMembership": "outlier_membership",
    "LargestUnits": "largest", "RecordRisk": "record", "PPercent": "totals", "SurestLinks": "surest",
    "ExtremeValues": "extremes", "Reconstruction": "reconstruction", "ChangedConclusions": "conclusions",
}  # fmt: skip
LIMIT_FIELDS_OF_STATISTICS = {
    ("OutlierMembership", "detection"): "outlier_detection", ("ChangedConclusions", "reversed"): "reversed",
}  # fmt: skip
LIMITS = (
    "reidentification", "surest", "people", "record", "subgroup", "k", "small", "special", "inference", "reconstruction",
    "extremes", "membership", "outlier_membership", "outlier_detection", "conclusions", "reversed", "largest",
    "p", "totals",
)  # fmt: skip
_PROFILE_LIMITS: dict[str, dict[str, Any]] = {  # limits that are not those of "public-use"
    "public-use": {},
    "scientific-use": dict.fromkeys(("reidentification", "small", "special", "inference"), 0.2)
    | {"people": None, "record": None, "subgroup": 0.4, "membership": 1.0,
       "surest": 0.8, "reconstruction": 0.2, "extremes": 0.4, "outlier_membership": None, "outlier_detection": None},
    "teaching": {"reidentification": 0.02, "people": 100, "record": 0.2, "subgroup": 0.05, "k": 5,
                 "special": 0.02, "membership": 0.55, "surest": 0.3, "conclusions": 0.2},
    "business": {"largest": 0.05, "totals": 0.05},
}  # fmt: skip
PROFILES = {name: Profile(name, **changed) for name, changed in _PROFILE_LIMITS.items()}


def find_profile(name: str) -> Profile:
    """Return the profile with this name, or raise PlanError."""
    if name not in PROFILES:
        hint = did_you_mean(name, PROFILES)
        raise PlanError(f"there is no profile {name!r:.40}: one of {', '.join(PROFILES)}.{hint}")
    return PROFILES[name]


def to_profile(given: Profile | str | Mapping[str, Any]) -> Profile:
    """Return a profile from what a plan states: a name, or a table with a name and changed limits."""
    if isinstance(given, Profile):
        return given
    if isinstance(given, str):
        return find_profile(given)
    known = field_types(Profile)
    unknown = [name for name in given if name not in known]
    problems = [f"a profile has no limit {name!r:.40}.{suggest_name(name, known)}" for name in unknown]
    changed: dict[str, Any] = {}
    for name, value in given.items():
        try:
            changed |= {name: coerce(known[name], None if value == NO_LIMIT else value)} if name in known else {}
        except ValueError as problem:
            problems.append(f"Profile.{name} {problem}")
    usual = find_profile(str(given.get("name", "public-use")))
    if problems:
        raise PlanError(problems)
    return replace(usual, **changed)
