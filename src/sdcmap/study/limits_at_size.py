"""Which limits can be shown to hold with the records of a file, before anything is made: predicted errors and margins.

A limit is compared with a value and a margin for its error. In a small file the margin alone may exceed the limit; then
no candidate can be within it, however little it reveals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from sdcmap.core import Measure, Microdata
from sdcmap.core.formatting import list_names
from sdcmap.core.limit import Limit
from sdcmap.core.release_policy import ReleasePolicy
from sdcmap.errors import SchemaError, Undefined

Prospect = Literal["exact", "can be shown", "doubtful", "cannot be shown", "unknown"]
MIN_SHARE_OF_ERROR = 0.7  # the errors that measures report are at least this share of the predicted ones (simulated)
MAX_RECORDS_NEEDED = 10_000_000  # if more were needed, it is said that more records do not help
NO_PRIVATE_RELEASE = "A private release (differential privacy), which needs no such estimate, is not offered yet"


@dataclass(frozen=True)
class LimitAtSize:
    """Whether a limit can be shown to hold with the records of a file, if a release reveals as little as is possible.

    measure, kind, subject : the measure's text and class, and the variable that it is about, if it is about one.
    limit, baseline : the largest tolerable value, and the best possible one.
    error : the standard error to expect at the baseline; 0: none; None: not known.
    margin : what is added to the value before it is compared with the limit.
    applies_to_all : whether the limit also applies to fully synthetic files, and so to every candidate.
    prospect : "exact" (no estimate is needed), "can be shown", "doubtful", "cannot be shown", or "unknown".
    records_needed : about how many records would do; None if the file suffices, or if more records do not help.
    """

    measure: str
    kind: str
    subject: str
    limit: float
    baseline: float
    error: float | None
    margin: float
    applies_to_all: bool
    prospect: Prospect
    records_needed: int | None = None


def margin_to_pass(study_error: float, release_error: float, policy: ReleasePolicy) -> float:
    """Return how far below its limit an estimate must be for its candidate to be eligible for release.

    It is z_release * s_release + z_study * sqrt(s_study^2 + s_release^2): the margin of the release itself, and what the
    study may have underestimated.
    """
    return policy.z_release * release_error + policy.z_study * math.hypot(study_error, release_error)


def limits_at_size(data: Microdata, limits: Iterable[Limit], policy: ReleasePolicy) -> tuple[LimitAtSize, ...]:
    """Return for each upper limit of a risk whether it can be shown to hold with the records of these data."""
    chosen = [limit for limit in limits if limit.measure.axis == "risk" and limit.is_upper]
    prospects = (_limit_at_size(data, limit, policy) for limit in chosen)
    return tuple(prospect for prospect in prospects if prospect is not None)


def _limit_at_size(data: Microdata, limit: Limit, policy: ReleasePolicy) -> LimitAtSize | None:
    measure = limit.measure
    try:
        baseline = measure.baseline(data)
        error = measure.release_variant().error_at_baseline(data)
        margin = _margin(measure, data, len(data), policy)
    except (SchemaError, Undefined):  # reported where the measure is checked
        return None
    if baseline is None:
        return None
    facts = measure.text, type(measure).__name__, str(getattr(measure, "secret", "")), limit.value, baseline
    if margin is None:
        return LimitAtSize(*facts, None, 0.0, not measure.paired, "unknown")
    room = limit.value - baseline
    if margin <= room:
        prospect: Prospect = "can be shown" if margin else "exact"
        return LimitAtSize(*facts, error, margin, not measure.paired, prospect)
    prospect = "doubtful" if MIN_SHARE_OF_ERROR * margin <= room else "cannot be shown"
    sizes = (count for count in _round_sizes(len(data)) if (_margin(measure, data, count, policy) or 0.0) <= room)
    return LimitAtSize(*facts, error, margin, not measure.paired, prospect, next(sizes, None))


def _margin(measure: Measure, data: Microdata, rows: int, policy: ReleasePolicy) -> float | None:
    """Return the margin at the baseline, if the file had so many records; None if its error is not known."""
    study = measure.error_at_baseline(data, rows)
    release = measure.release_variant().error_at_baseline(data, rows)
    return None if study is None or release is None else margin_to_pass(study, release, policy)


def _round_sizes(above: int) -> Iterator[int]:
    """Yield numbers with two significant digits above this one, up to MAX_RECORDS_NEEDED.

    >>> from itertools import islice
    >>> list(islice(_round_sizes(97), 5))
    [98, 99, 100, 110, 120]
    """
    size = above
    while size < MAX_RECORDS_NEEDED:
        step = 10 ** max(0, len(str(size)) - 2)
        size = (size // step + 1) * step
        yield size


def nothing_can_pass(prospects: Sequence[LimitAtSize]) -> bool:
    """Return whether every candidate has a limit that cannot be shown to hold."""
    return any(one.prospect == "cannot be shown" and one.applies_to_all for one in prospects)


def describe_limits(prospects: Sequence[LimitAtSize], data: Microdata) -> Iterator[str]:
    """Yield which limits can be shown to hold with these records, and what can be promised instead, a sentence each."""
    size = partial(_count_records, people_per_record=data.people / max(1, len(data)))
    now = size(len(data))
    hopeless = [one for one in prospects if one.prospect == "cannot be shown"]
    if nothing_can_pass(prospects):
        hopeless = [one for one in hopeless if one.applies_to_all]
        yield f"No candidate can be released: with {now}, a limit cannot be shown to hold for any file."
    yield from _describe(hopeless, "cannot be shown to hold", size)
    if hopeless:
        yield _promises_instead(prospects, hopeless, size)
    yield from _describe([one for one in prospects if one.prospect == "doubtful"], "can hardly be shown to hold", size)
    for prospect, words in (
        ("can be shown", f"Limits that can be shown to hold with {now}"),
        ("exact", "Limits that need no estimate, because their values are exact for this file"),
        ("unknown", "Limits whose error is known only after the sweep"),
    ):
        if names := [_name(group) for group in _groups([one for one in prospects if one.prospect == prospect])]:
            yield f"{words}: {', '.join(names)}."


def _count_records(records: int, people_per_record: float) -> str:
    """Return a number of records, and of how many people they are where these have several.

    >>> _count_records(1200, 1.0), _count_records(600, 1 / 6)
    ('1,200 records', '600 records of 100 people')
    """
    people = round(records * people_per_record)
    return f"{records:,} records" + ("" if people == records else f" of {people:,} people")


def _describe(prospects: Sequence[LimitAtSize], verdict: str, size: Callable[[int], str]) -> Iterator[str]:
    """Yield a sentence for the limits of each class of measures: what would be compared, and the records needed."""
    for group in _groups(prospects):
        worst = max(group, key=lambda one: one.margin)
        end = (
            f"{worst.baseline + worst.margin:.3g} ({worst.baseline:g} and a margin of {worst.margin:.3g} for its error)"
        )
        sentence = f"{_name(group)} {verdict}: even a file that reveals nothing is compared as {end}."
        if worst.baseline >= worst.limit:
            yield f"{sentence} No number of records would do, because the limit is not above the value of a mere guess."
        elif all(one.records_needed for one in group):
            yield f"{sentence} About {size(max(one.records_needed or 0 for one in group))} would be needed."
        else:
            yield f"{sentence} More people must be attacked: state more `targets` of the measure."


def _promises_instead(
    prospects: Sequence[LimitAtSize], hopeless: Sequence[LimitAtSize], size: Callable[[int], str]
) -> str:
    """Return what can be promised where limits cannot be shown to hold."""
    options = []
    if all(one.records_needed for one in hopeless):
        options.append(f"Use a file of about {size(max(one.records_needed or 0 for one in hopeless))} or more.")
    options.append("Release under a contract: the limits of the profile scientific-use are wider.")
    exact = list(dict.fromkeys(one.kind for one in prospects if one.prospect == "exact"))
    if exact:
        kinds = list(dict.fromkeys(one.kind for one in hopeless))
        untested = f"{list_names(kinds)} {'was' if len(kinds) == 1 else 'were'} not tested"
        rules = (
            f"State limits only for what needs no estimate, such as the group sizes of k-anonymity ({', '.join(exact)})"
        )
        options.append(f"{rules}, and tell users that {untested}.")
    numbered = " ".join(f"({number}) {option}" for number, option in enumerate(options, 1))
    return f"What can be done instead: {numbered} {NO_PRIVATE_RELEASE}."


def _groups(prospects: Sequence[LimitAtSize]) -> list[list[LimitAtSize]]:
    """Return the prospects by class of measure and limit, in the order of their first one."""
    groups: dict[tuple[str, float], list[LimitAtSize]] = {}
    for one in prospects:
        groups.setdefault((one.kind, one.limit), []).append(one)
    return list(groups.values())


def _name(group: Sequence[LimitAtSize]) -> str:
    """Return the class, the variables and the limit of measures of one class."""
    subjects = ", ".join(one.subject for one in group if one.subject)
    return f"{group[0].kind}{' of ' if subjects else ''}{subjects} (limit {group[0].limit:g})"
