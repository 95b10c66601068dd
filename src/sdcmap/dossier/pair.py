"""One dossier for two nested releases: what the report of the second file says of the first, and of both in one hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict

from sdcmap.choose import Threshold
from sdcmap.core.rule import Choice
from sdcmap.dossier.decision import three_sentences
from sdcmap.study.folder import Study
from sdcmap.study.plan import Candidate, Plan


class TriedRow(TypedDict):
    """A pair that was tried: both names, what each loses, what both find in one hand, and what speaks against it."""

    names: list[str]
    utilities: list[float | None]
    joint: float | None
    problem: str


class Pair(TypedDict):
    """The first file: its profile, when it was released (empty: not yet), its decision in three sentences; what was
    measured of both when the second was released, nothing before that; and, where the two were chosen together, why these
    and every pair that was tried."""

    profile: str
    when: str
    decision: list[str]
    told: list[str]
    reason: str
    tried: list[TriedRow]


def pair_of(study: Study) -> Pair | None:
    """Of a study whose data are a file that another study released, or may release; None of any other."""
    source = study.plan.data
    if source is None or not source.within:
        return None
    chosen = study.manifest.get("pair") or {}
    told = [line for entry in study.manifest.get("releases", []) for line in entry.get("nested", {}).get("told", [])]
    said: Pair = {
        "profile": "", "when": "", "decision": [], "told": told, "reason": chosen.get("reason", ""),
        "tried": [_row(pair) for pair in chosen.get("pairs", [])],
    }  # fmt: skip
    with Study.open(source.within) as first:
        plan, scores = first.plan, first.scores()
        candidate, when, profile = _first_of(plan, first, Path(source.path).parent.resolve(), chosen.get("first", ""))
        if candidate is None:
            return said
        rule = plan.rule or Threshold(risk=1.0)
        choice = Choice(
            candidate.id, candidate.method.text, candidate.replicate, None, None, rule, "", name=plan.name_of(candidate)
        )
        decision = three_sentences(plan, scores, choice, len(first.data))
    return {**said, "profile": profile, "when": when, "decision": decision}


def _row(pair: dict[str, Any]) -> TriedRow:
    problem = pair["problems"][0] if pair["problems"] else ""
    return {"names": pair["names"], "utilities": pair["utilities"], "joint": pair["joint"], "problem": problem}


def _first_of(plan: Plan, first: Study, folder: Path, chosen: str) -> tuple[Candidate | None, str, str]:
    """The candidate that the first file is, when it was released, and for whom: the one that was released into this folder,
    or the one that was chosen together with the second."""
    candidates = {(c.method.text, c.replicate): c for c in plan.candidates}
    for entry in first.manifest.get("releases", [])[::-1]:
        made = candidates.get((entry["method"], int(entry["replicate"])))
        if made is not None and (Path(entry["folder"]) == folder or made.id == chosen):
            return made, str(entry["when"])[:10], str(entry["profile"])
    made = next((candidate for candidate in candidates.values() if candidate.id == chosen), None)
    return made, "", plan.profile.name if plan.profile else "scientific-use"
