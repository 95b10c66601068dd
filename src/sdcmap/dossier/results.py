"""The results of a study in words: the frontier, the choice, and its scores beside the original's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

import polars as pl

from sdcmap.core.audience import Audience, significant
from sdcmap.core.rule import Choice
from sdcmap.map import RUMap
from sdcmap.study.scores import Scores


class FrontierRow(TypedDict):
    """An undominated method, in words."""

    method: str
    count: int
    risk: str
    risk_se: str
    utility: str
    utility_se: str
    membership: str
    interval: str


class ReleaseRow(TypedDict):
    """An undominated single release."""

    id: str
    method: str
    replicate: int
    risk: str
    utility: str


class ChoiceFacts(TypedDict):
    """What was chosen and why, in words."""

    nothing: bool
    method: str
    why: str
    rule: str
    picked: bool
    runners_up: tuple[str, ...]
    single: str


@dataclass(frozen=True)
class MeasureRow:
    """One measure: its limit, the chosen release, its method, the original, and releasing nothing."""

    name: str
    limit: str
    unit: str
    better: str
    own: str
    mean: str
    error: str
    spread: str
    original: str
    nothing: str


def frontier_table(ru: RUMap, shown: RUMap, to: Audience) -> list[FrontierRow]:
    """The undominated methods of the map that is shown, with how often a draw of each is undominated."""
    membership = {row["method"]: row for row in ru.membership.to_dicts()}
    counts = dict(ru.means.select("method", "count").iter_rows())
    units = [_unit(ru, name) for name in (ru.risk[0], ru.utility)]
    rows: list[FrontierRow] = []
    for row in shown.means.filter("frontier").sort("risk", "utility").to_dicts():
        share = membership[row["method"]]
        low, high = (_percent(share[f"membership_{end}"]) for end in ("low", "high"))
        errors = ["" if row[se] is None else significant(row[se], 2) for se in ("risk_se", "utility_se")]
        rows.append(
            {
                "method": ru.scores.name_of(row["method"]),
                "count": counts[row["method"]],
                "risk": to.score(row["risk"], "" if ru.scales else units[0]),
                "risk_se": errors[0],
                "utility": to.score(row["utility"], units[1]),
                "utility_se": errors[1],
                "membership": _percent(share["membership"]),
                "interval": f"{low} to {high} %",
            }
        )
    return rows


def release_frontier(ru: RUMap, to: Audience) -> list[ReleaseRow]:
    """The undominated single releases; inside alone, and where single releases may be compared."""
    if to.external or ru.is_expectation:
        return []
    rows = ru.frontier.select("id", "method", "replicate", "risk", "utility").iter_rows()
    return [
        {
            "id": name,
            "method": ru.scores.name_of(method),
            "replicate": draw,
            "risk": to.number(risk),
            "utility": to.number(utility),
        }
        for name, method, draw, risk, utility in rows
    ]


def choice_facts(choice: Choice, rule: str, to: Audience) -> ChoiceFacts:
    """What was chosen and why, in words; a rule that may not be told has no text."""
    named = f"rule {rule}" if rule else "rule that was stated"
    if not to.external:
        why = choice.reason
    elif choice.is_picked:
        why = f"Release {choice.name or choice.method}: a person picked it, for a reason that the study keeps."
    elif choice.candidate is None:
        why = f"Release nothing: no candidate passes the {named}."
    else:
        why = f"Release {choice.name or choice.method}: the {named} chooses it."
        if choice.searched > 1:
            why += f" {choice.searched} random draws of this method were searched."
    single = choice.candidate if choice.candidate is not None and not to.external else ""
    return {
        "nothing": choice.candidate is None,
        "method": choice.name or choice.method,
        "why": why,
        "rule": "" if choice.is_picked else rule,
        "picked": choice.is_picked,
        "runners_up": tuple(r.name if to.external else str(r) for r in choice.runners_up),
        "single": f"Its id is {single}." if single else "",
    }


def untried(scores: Scores, choice: Choice | None, to: Audience) -> list[str]:
    """The attacks that could not be tried on the chosen release, each with its reason, and their bounds; inside alone."""
    if to.external or choice is None or choice.candidate is None:
        return []
    lines = []
    for name in scores.measure.filter(pl.col("axis") == "risk")["name"]:
        own = scores.estimates(name).get(choice.candidate)
        if own is not None:
            lines += [f"{name}: {skipped}" for skipped in own.skipped]
            above = [bound for bound in own.bounds if bound.estimate.value > own.value]
            lines += [f"{name}: at most {bound.estimate.value:.2g}, by {bound.attack}" for bound in above]
    return lines


def score_table(
    scores: Scores, choice: Choice | None, axis: str, to: Audience, limits: Mapping[str, float]
) -> list[MeasureRow]:
    """Every measure of one axis: its limit, the chosen release, its method with both bands, the original, nothing."""
    rows: list[MeasureRow] = []
    for name, unit, direction, nothing in (
        scores.measure.filter(pl.col("axis") == axis).select("name", "unit", "direction", "at_nothing").iter_rows()
    ):
        pooled = {row["method"]: row for row in scores.pooled(name).to_dicts()}
        mean = pooled.get(choice.method) if choice is not None and choice.candidate is not None else None
        whole = next((row for method, row in pooled.items() if scores.kinds[method] == "identity"), None)
        spread = "" if mean is None or to.external or mean["low"] is None else _range(mean["low"], mean["high"], to)
        rows.append(
            MeasureRow(
                name=scores.words_of(name),
                limit=f"{limits[name]:g}" if name in limits else "",
                unit=unit,
                better=direction,
                own=_own(scores, name, choice, to),
                mean="–" if mean is None else to.score(mean["value"], unit),
                error="" if mean is None or mean["se"] is None or to.external else significant(mean["se"], 2),
                spread=spread,
                original="–" if whole is None else to.score(whole["value"], unit),
                nothing=to.score(nothing, unit),
            )
        )
    return rows


def is_nobodys(scores: Scores, choice: Choice | None) -> bool:
    """Whether the rows of the chosen file are nobody's, so that measures that compare records have no value."""
    if choice is None or choice.candidate is None:
        return False
    risks = scores.measure.filter(pl.col("axis") == "risk")["name"]
    return any(choice.method in scores.unpaired(name)["method"].to_list() for name in risks)


def _own(scores: Scores, name: str, choice: Choice | None, to: Audience) -> str:
    if to.external or choice is None:
        return ""
    values = scores.column(name).filter(pl.col("id") == (choice.candidate or ""))["value"].to_list()
    return to.number(values[0]) if values else "–"


def _range(low: float, high: float, to: Audience) -> str:
    return f"{to.number(low)} to {to.number(high)}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}"


def _unit(ru: RUMap, name: str) -> str:
    return str(ru.scores.measure.filter(pl.col("name") == name)["unit"][0])
