"""Profiles: for whom a file is, and how much risk that allows; limits that are stated before the first score. And the risk
measures of a plan that names none.

No number here is law. They are our own, to start from; docs/profiles.md says how each was meant, and what agencies
publish.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Literal, NamedTuple

from sdcmap.core import Measure, Microdata, PlanError, Roles, did_you_mean
from sdcmap.core.renamed_names import suggest_name
from sdcmap.core.value import Range, Share, Value, coerce, field_types

DEFAULT_RISK_CLASSES = ("WorstLinkage", "AttributeInference", "ClosestRecord")


def default_risk(data: Microdata) -> tuple[tuple[Measure, ...], dict[str, str]]:
    """Linkage by the best attack, which is on the axis of the map, inference of each sensitive variable from the keys (without keys: from the other numbers) at its worst category, and membership. And by class name why others are off, since they do not fit the data, in a sentence that names the class.

    Each sees what the others do not, and has a limit of its own: linkage is blind for fully synthetic files, a file
    without a single link may still allow inference, and being in the file may itself be the secret.
    """
    from sdcmap.risk import AttributeInference, ClosestRecord, WorstLinkage  # only where a plan names no risk

    known = () if set(data.keys) - set(data.sensitive) else Roles(data).known_to_attacker
    infers = [AttributeInference(secret, known, worst=True) for secret in data.sensitive]
    none = {} if infers else {"AttributeInference": "AttributeInference is off: no column is stated as sensitive."}
    measures, off = _split_fitting((WorstLinkage(), *infers, ClosestRecord()), data)
    return tuple(measures), none | off


def _split_fitting(measures: Iterable[Measure], data: Microdata) -> tuple[list[Measure], dict[str, str]]:
    """Return the measures that fit these data; and, by class name, why others do not."""
    problems = [(measure, next(measure.incompatibilities(data), None)) for measure in measures]
    off = {type(measure).__name__: problem for measure, problem in problems if problem is not None}
    return [measure for measure, problem in problems if problem is None], off


def explain_unmeasured(data: Microdata, measures: Iterable[Measure]) -> list[str]:
    """Say why a side of the default risk is off, where these measures hold another of its sides, a sentence each."""
    kinds = {type(measure).__name__ for measure in measures}
    if kinds.isdisjoint(DEFAULT_RISK_CLASSES):
        return []
    return [reason for name, reason in default_risk(data)[1].items() if name not in kinds]


MAX_INFERRED_COLUMNS = 8  # columns that are inferred, each by an attack of its own
MAX_KEYS_FOR_TRIPLES, MAX_KEYS_FOR_UNIQUES = (
    15,
    60,
)  # up to so many special uniques are sought on three of them; no more are looked at
SMALL_FILE_RECORDS = 2000
RANKED_UNITS = 10  # units that a ranking names


class MeasureLimits(NamedTuple):
    """Measures of a file with the limit of each; and why others are off, by class name."""

    limits: Mapping[Measure, float]
    off: Mapping[str, str]


@dataclass(frozen=True)
class Profile(Value):
    """For whom a file is, and how much risk that allows. Each limit is the largest tolerable value.

    Parameters
    ----------
    name : "public-use", "scientific-use", "teaching" or "business"; the numbers may be changed.
    found : share of the records that the best attack finds, every knowable column being known; in (0, 1].
    people : number of people whom that attack finds: .05 of 200,000 are 10,000. At least 1; None: no limit.
    record : the largest risk of a record: how sure anybody can be who looks a person up on the keys; in (0, 1].
    subgroup : share found by looking values up, in the worst category of a key with at least 50 records; in (0, 1].
    k, small : at most a share `small` of the records may be among fewer than k that share the values of the keys.
    special : share of the special uniques that are found by the few values which make them special.
    inferred : by how much a sensitive value is inferred better of people in the file than of people outside.
    membership : probability that the distance to the closest record tells who is in the file; .5 is a coin.
    largest : share of the ten largest units that is found; None: not asked.
    p, totals : at most a share `totals` of the totals, by the categories of each key, may tell the largest unit within p %
        to the second largest; None: not asked.
    size : the amount that says how large a unit is, and is added up; by default the first amount.
    area, smallest_area : column of the areas, and the fewest people that one may have, counted by weights where there are
        some; empty and 0: not asked.
    population, fraction : people in the population, and the share of them in the file.
    taking_part : "known": the snooper knows that his target is in the file (a prosecutor); "secret": nobody knows who took
        part, which needs population and fraction; he then is right with that probability (a journalist).

    Examples
    --------
    >>> find_profile("teaching").found < find_profile("public-use").found
    True
    """

    name: str = "public-use"
    found: Annotated[float, Range(0, 1, "(]")] = 0.05
    people: Annotated[int | None, Range(1)] = 1000
    record: Annotated[float | None, Range(0, 1, "(]")] = 0.34
    subgroup: Annotated[float, Range(0, 1, "(]")] = 0.1
    k: Annotated[int, Range(2)] = 3
    small: Annotated[float, Range(0, 1, "(]")] = 0.05
    special: Annotated[float, Range(0, 1, "(]")] = 0.05
    inferred: Annotated[float, Range(0, 1, "(]")] = 0.1
    membership: Annotated[float, Range(0.5, 1, "(]")] = 0.6
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
        """The probability that the snooper's target is in the file."""
        return self.fraction if self.taking_part == "secret" and self.fraction else 1.0

    @property
    def words(self) -> str:
        """The name, and which limits are not those of that name."""
        pairs = {name: (getattr(self, name), getattr(PROFILES[self.name], name)) for name in LIMITS}
        changed = [f"{name} {now:g}" for name, (now, usual) in pairs.items() if now not in (None, usual)]
        return self.name + (f" (changed: {', '.join(changed)})" if changed else "")

    def measures(self, data: Microdata) -> MeasureLimits:
        """Return what is measured of a file and held against a limit.

        By the sweep of a starting plan, and by the gate.
        """
        measures, off = _split_fitting(self._measures(data), data)
        return MeasureLimits({m: limit for m in measures if (limit := self.limit_of(m)) is not None}, off)

    def _measures(self, data: Microdata) -> Iterator[Measure]:
        from sdcmap import risk  # only where a profile is measured

        yield risk.WorstLinkage(inclusion=self.inclusion)
        yield risk.ExactMatch()
        if data.keys:
            yield risk.ExactMatch(on=data.keys, k=max(3, self.k))
            yield risk.RecordRisk(on=data.keys, inclusion=self.inclusion)
            yield risk.SpecialUniques(
                on=data.keys[:MAX_KEYS_FOR_UNIQUES], largest=3 if len(data.keys) <= MAX_KEYS_FOR_TRIPLES else 2
            )
        # of few people as many are outside as inside; one making leaves few out, for a file of fewer is masked more
        outside: dict[str, Any] = {"held_out": 0.5, "folds": 4} if len(data) < SMALL_FILE_RECORDS else {}
        # what a snooper would like to learn: the sensitive columns, or the amounts where none is stated
        secrets = data.sensitive or [name for name in data.numeric if data.schema[name].knowable]
        for secret in secrets[:MAX_INFERRED_COLUMNS]:
            known = tuple(name for name in data.knowable if name != secret)
            yield risk.AttributeInference(secret, known, worst=True, **outside)
        if self.membership < 1:
            yield risk.ClosestRecord(on=data.knowable, **outside)
        size = self.size or next(iter(data.numeric), "")
        if self.largest is not None and size:
            yield risk.LargestUnits(on=size, largest=RANKED_UNITS)
        if self.totals is not None and size:
            yield risk.PPercent(on=size, by=data.keys, p=self.p)

    def limit_of(self, measure: Measure) -> float | None:
        """Return the limit of a measure; None where the profile has none for its kind."""
        if type(measure).__name__ == "ExactMatch":
            return self.small if getattr(measure, "k", 2) > 2 else self.found
        return getattr(self, LIMIT_FIELDS.get(type(measure).__name__, ""), None)

    def for_rows(self, rows: int) -> Profile:
        """Return the same, with a share found that is not more than the people who may be."""
        most = 1.0 if self.people is None else self.people / rows
        return self if most >= self.found else replace(self, found=float(f"{most:.2g}"))

    def table(self) -> dict[str, Any]:
        """Return every limit, as a plan states it."""
        return {f.name: value for f in fields(self) if (value := getattr(self, f.name))}


LIMIT_FIELDS = {
    "WorstLinkage": "found", "PublishedTables": "found", "SpecialUniques": "special", "AttributeInference": "inferred",
    "ClosestRecord": "membership", "LargestUnits": "largest", "RecordRisk": "record", "PPercent": "totals",
}  # fmt: skip
LIMITS = (
    "found", "people", "record", "subgroup", "k", "small", "special", "inferred", "membership", "largest", "p", "totals",
)  # fmt: skip
_PROFILE_LIMITS: dict[str, dict[str, Any]] = {  # limits that are not those of "public-use"
    "public-use": {},
    "scientific-use": dict.fromkeys(("found", "small", "special", "inferred"), 0.2)
    | {"people": None, "record": None, "subgroup": 0.4, "membership": 1.0},
    "teaching": {"found": 0.02, "people": 100, "record": 0.2, "subgroup": 0.05, "k": 5, "special": 0.02,
                 "membership": 0.55},
    "business": {"largest": 0.05, "totals": 0.05},
}  # fmt: skip
PROFILES = {name: Profile(name, **changed) for name, changed in _PROFILE_LIMITS.items()}


def find_profile(name: str) -> Profile:
    """Return the profile of that name; one sentence where there is none."""
    if name not in PROFILES:
        hint = did_you_mean(name, PROFILES)
        raise PlanError(f"there is no profile {name!r:.40}: one of {', '.join(PROFILES)}.{hint}")
    return PROFILES[name]


def to_profile(given: Profile | str | Mapping[str, Any]) -> Profile:
    """Return a profile as a plan has it: a name, or a table of its name and the limits that are not its own."""
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
            changed |= {name: coerce(known[name], value)} if name in known else {}
        except ValueError as problem:
            problems.append(f"Profile.{name} {problem}")
    usual = find_profile(str(given.get("name", "public-use")))
    if problems:
        raise PlanError(problems)
    return replace(usual, **changed)
