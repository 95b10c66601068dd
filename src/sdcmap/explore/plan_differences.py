"""List the differences between two plans in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sdcmap.core.formatting import join_names
from sdcmap.core.limit import format_limit
from sdcmap.files.reader import Source
from sdcmap.study.plan import Plan

ROLE_OF_FIELD = {  # field of a source -> role
    "keys": "key", "numeric": "numeric", "sensitive": "sensitive", "identifiers": "identifier", "weight": "weight",
    "household": "household", "stratum": "stratum", "other": "other", "drop": "drop",
}  # fmt: skip
MAX_NAMES = 8  # methods or measures listed by name; the others are counted


@dataclass(frozen=True)
class Difference:
    """One difference: the subject, and what each plan states."""

    what: str
    first: str
    second: str


def plan_differences(first: Plan, second: Plan) -> list[Difference]:
    """Return all differences in the order of a plan: file, roles, methods, measures, draws, axes, limits, rule, profile.

    >>> import sdcmap as sm
    >>> measures = [sm.SmallCells(), sm.Hellinger()]
    >>> plans = [sm.Plan([sm.Swap(on="Age", rate=rate)], measures, replicates=3) for rate in (0.1, 0.2)]
    >>> for difference in plan_differences(*plans):
    ...     print(difference.what, difference.first, difference.second, sep=" | ")
    methods | Age swapped 10 % | Age swapped 20 %
    """
    plans = (first, second)
    methods = [{text: name for text, name in p.method_names.items() if text != "Identity"} for p in plans]
    measures = [{measure.text: measure.text for measure in p.measures} for p in plans]
    own = [Difference("methods", *_only_in_one(*methods)), Difference("measures", *_only_in_one(*measures))]
    differences = [
        *_pair_differences(*(_data_facts(p.data) for p in plans)),
        *own,
        *_pair_differences(*map(_choice_facts, plans)),
    ]
    return [difference for difference in differences if difference.first != difference.second]


def _pair_differences(first: Mapping[str, str], second: Mapping[str, str]) -> list[Difference]:
    return [Difference(name, first.get(name, ""), second.get(name, "")) for name in dict.fromkeys([*first, *second])]


def _data_facts(source: Source | None) -> dict[str, str]:
    """Return the file and the role of each column."""
    if source is None:
        return {}
    roles = {f"role of {name}": ROLE_OF_FIELD[role] for role in ROLE_OF_FIELD for name in getattr(source, role)}
    return {"file": source.path} | dict(sorted(roles.items()))


def _choice_facts(plan: Plan) -> dict[str, str]:
    """Return how a plan draws, measures and chooses."""
    return {
        "draws of a method": str(plan.replicates),
        "risk axis": join_names(plan.risk) if plan.risk else "",
        "utility axis": plan.utility,
        "limits": "; ".join(f"{name} at most {format_limit(limit)}" for name, limit in plan.limits.items()),
        "rule": plan.rule.text if plan.rule else "none",
        "profile": plan.profile.name if plan.profile else "none",
    }


def _only_in_one(first: Mapping[str, str], second: Mapping[str, str]) -> Iterator[str]:
    """Yield the names that only the first has, then those that only the second has."""
    for own, other in ((first, second), (second, first)):
        names = [name for text, name in own.items() if text not in other]
        more = [f"and {len(names) - MAX_NAMES:,} more"] if len(names) > MAX_NAMES else []
        yield "; ".join([*names[:MAX_NAMES], *more])
