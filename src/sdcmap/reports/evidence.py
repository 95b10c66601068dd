"""What was assessed, in the terms of those who ask: snoopers that were and were not considered, and the terms of
frameworks, each with a number and its definition, a fact, or "not assessed".

The vocabulary is the file frameworks.toml beside this one: another edition is an edit there. No legal conclusion is drawn.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from sdcmap.core import Choice, Microdata
from sdcmap.core.audience import Audience
from sdcmap.core.formatting import join_names
from sdcmap.data.identifiers import SAFE_HARBOR, detect_identifier
from sdcmap.reports.decision import values_of
from sdcmap.study.folder import Study
from sdcmap.study.scores import Scores

VOCABULARY = Path(__file__).with_name("frameworks.toml")
NOT_ASSESSED = "not assessed"
NONE_FOUND = "none found by name, label or value"


class Evidence(NamedTuple):
    """A term of a framework, and what there is to say: sentences, or that it was not assessed."""

    term: str
    definition: str
    found: tuple[str, ...]


class Framework(NamedTuple):
    """A framework by its name, and its terms."""

    name: str
    rows: tuple[Evidence, ...]


class Snoopers(NamedTuple):
    """Who was assumed to attack, each with the measures that hold it; and who was not considered."""

    considered: tuple[tuple[str, tuple[str, ...]], ...]
    not_considered: tuple[str, ...]


@cache
def vocabulary() -> Mapping[str, Any]:
    """The snoopers and frameworks with their terms."""
    return tomllib.loads(VOCABULARY.read_text(encoding="utf-8"))


def snoopers(scores: Scores, facts: Mapping[str, str]) -> Snoopers:
    """Every kind of snooper that a board may ask about, by whether a measure or a check of this study holds it."""
    held = {}
    for entry in vocabulary()["snooper"]:
        by = [scores.title_of(name) for name in _measures(scores, entry.get("measures", ()))]
        by += [facts[name] for name in entry.get("facts", ()) if facts.get(name)]
        held[str(entry["name"])] = tuple(by)
    return Snoopers(tuple((name, by) for name, by in held.items() if by), tuple(n for n, by in held.items() if not by))


def evidence(scores: Scores, choice: Choice | None, facts: Mapping[str, str], to: Audience) -> list[Framework]:
    """One table a framework; a number is the chosen release's."""
    chosen = None if choice is None or choice.candidate is None else choice

    def row(term: Mapping[str, Any]) -> Evidence:
        told = [f"{name}: {facts[name]}" for name in term.get("facts", ()) if facts.get(name)]
        for name in _measures(scores, term.get("measures", ())) if chosen else ():
            if chosen and (value := values_of(scores, name, chosen)[1]) is not None:
                told.append(f"{scores.title_of(name)}: {to.number(value)} ({scores.values[name].unit})")
        return Evidence(str(term["name"]), str(term["definition"]), tuple(told) or (NOT_ASSESSED,))

    return [Framework(str(entry["name"]), tuple(map(row, entry["term"]))) for entry in vocabulary()["framework"]]


def _measures(scores: Scores, classes: Sequence[str]) -> list[str]:
    """The measures of the study that are of these classes, in the order of the vocabulary."""
    names = scores.measure.filter(pl.col("axis") == "risk")["name"].to_list()
    return [name for cls in classes for name in names if type(scores.values[name]).__name__ == cls]


def study_facts(study: Study, data: Microdata, choice: Choice | None) -> dict[str, str]:
    """What the study itself is evidence of, by the names that frameworks.toml uses."""
    plan, manifest, source = study.plan, study.manifest, study.plan.data
    held = () if source is None else (*source.identifiers, *source.drop)  # no copy of the study has these columns
    overrides, releases = manifest.get("overrides", []), manifest.get("releases", [])
    return {
        "records": f"{len(data):,} records, {len(data.names)} columns",
        "keys": join_names(data.keys),
        "sensitive columns": join_names(data.sensitive),
        "held back": join_names(held),
        "profile": plan.profile.name if plan.profile else "",
        "method": (choice.name or choice.method) if choice is not None and choice.candidate else "",
        "utility": study.scores().title_of(plan.utility),
        "candidates tried": f"{plan.count:,}",
        "rule fixed first": "yes" if study.rule_was_fixed_first else "no",
        "overrides": join_names([str(entry.get("check", "")) for entry in overrides]) or "none",
        "earlier releases": f"{len(releases)} from this study; the ledger is looked into at each release",
    }  # fmt: skip


def safe_harbor(data: Microdata) -> list[tuple[str, str, str]]:
    """The 18 classes of 45 CFR 164.514(b)(2)(i): letter, words, and the columns of the file that look like it."""
    marks = {name: mark.letter for name in data.names if (mark := detect_identifier(data, name)) is not None}
    return [
        (letter, words, ", ".join(name for name, found in marks.items() if found == letter) or NONE_FOUND)
        for letter, words in SAFE_HARBOR.items()
    ]
