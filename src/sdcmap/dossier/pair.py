"""One dossier for two nested releases: what the report of the second file says of the first, and of both in one hand."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

from sdcmap.choose import Threshold
from sdcmap.core.rule import Choice
from sdcmap.dossier.decision import three_sentences
from sdcmap.study.folder import Study
from sdcmap.study.plan import Candidate


class Pair(TypedDict):
    """The first file: its profile, when it was released, its decision in three sentences; and what was measured of both
    when the second was released, nothing before that."""

    profile: str
    when: str
    decision: list[str]
    told: list[str]


def pair_of(study: Study) -> Pair | None:
    """Of a study whose data are a file that another study released; None of any other."""
    source = study.plan.data
    if source is None or not source.within:
        return None
    told = [line for entry in study.manifest.get("releases", []) for line in entry.get("nested", {}).get("told", [])]
    folder = Path(source.path).parent.resolve()
    with Study.open(source.within) as first:
        made = [entry for entry in first.manifest.get("releases", []) if Path(entry["folder"]) == folder]
        plan, scores = first.plan, first.scores()
        method = next((one for one in plan.expanded if made and one.text == made[-1]["method"]), None)
        if method is None:
            return {"profile": "", "when": "", "decision": [], "told": told}
        candidate = Candidate(method, int(made[-1]["replicate"]))
        rule = plan.rule or Threshold(risk=1.0)
        choice = Choice(
            candidate.id, method.text, candidate.replicate, None, None, rule, "", name=plan.name_of(candidate)
        )
        said = three_sentences(plan, scores, choice, len(first.data))
    return {"profile": str(made[-1]["profile"]), "when": str(made[-1]["when"])[:10], "decision": said, "told": told}
