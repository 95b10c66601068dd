"""What two plans state differently, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sdcmap.core.formatting import join_names
from sdcmap.files.reading import Source
from sdcmap.study.plan import Plan

ROLES = {  # fields of a source -> the word for the role
    "keys": "key", "numeric": "numeric", "sensitive": "sensitive", "identifiers": "identifier", "weight": "weight",
    "household": "household", "stratum": "stratum", "other": "other", "drop": "drop",
}  # fmt: skip
MOST_NAMED = 8  # methods or measures that only one plan has


@dataclass(frozen=True)
class Difference:
    """One thing that is stated differently: what, and what each plan says."""

    what: str
    first: str
    second: str


def plan_differences(first: Plan, second: Plan) -> list[Difference]:
    """Every difference, in the order of a plan: file and roles, methods, measures, draws, axes, limits, rule, profile.

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
    own = [Difference("methods", *_alone(*methods)), Difference("measures", *_alone(*measures))]
    found = [*_paired(*(_data(p.data) for p in plans)), *own, *_paired(*map(_choosing, plans))]
    return [difference for difference in found if difference.first != difference.second]


def _paired(first: Mapping[str, str], second: Mapping[str, str]) -> list[Difference]:
    return [Difference(name, first.get(name, ""), second.get(name, "")) for name in dict.fromkeys([*first, *second])]


def _data(source: Source | None) -> dict[str, str]:
    """The file, and a line a column."""
    if source is None:
        return {}
    roles = {f"role of {name}": ROLES[role] for role in ROLES for name in getattr(source, role)}
    return {"file": source.path} | dict(sorted(roles.items()))


def _choosing(plan: Plan) -> dict[str, str]:
    """How a plan draws, measures and chooses."""
    return {
        "draws of a method": str(plan.replicates),
        "risk axis": join_names(plan.risk) if plan.risk else "",
        "utility axis": plan.utility,
        "limits": "; ".join(f"{name} at most {limit:g}" for name, limit in plan.limits.items()),
        "rule": plan.rule.text if plan.rule else "none",
        "profile": plan.profile.name if plan.profile else "none",
    }


def _alone(first: Mapping[str, str], second: Mapping[str, str]) -> Iterator[str]:
    """What only one of them has, by name."""
    for own, other in ((first, second), (second, first)):
        names = [name for text, name in own.items() if text not in other]
        more = [f"and {len(names) - MOST_NAMED:,} more"] if len(names) > MOST_NAMED else []
        yield "; ".join([*names[:MOST_NAMED], *more])
