"""What was assessed: the attackers that were and were not considered, and the evidence for the terms of frameworks.

Each term of a framework gets a number with its definition, a fact, or "not assessed". The vocabulary is in frameworks.toml;
a new edition of a framework needs only a change there. No legal conclusion is drawn.
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
    """A term of a framework, its definition, and the evidence in sentences."""

    term: str
    definition: str
    lines: tuple[str, ...]


class Framework(NamedTuple):
    """A framework by its name, and its terms."""

    name: str
    rows: tuple[Evidence, ...]


class Attackers(NamedTuple):
    """The attackers that were considered, each with the measures that test it, and those that were not."""

    considered: tuple[tuple[str, tuple[str, ...]], ...]
    not_considered: tuple[str, ...]


@cache
def vocabulary() -> Mapping[str, Any]:
    """Return the attackers, and the frameworks with their terms."""
    return tomllib.loads(VOCABULARY.read_text(encoding="utf-8"))


def list_attackers(scores: Scores, choice: Choice | None, facts: Mapping[str, str]) -> Attackers:
    """Return every kind of attacker a board may ask about, by whether a measure or check of this study tests it.

    Measures that have no value for the chosen release are listed as not tested on it.
    """
    release = None if choice is None or choice.candidate is None else choice
    tests_by_name = {}
    for entry in vocabulary()["attacker"]:
        names = _measures(scores, entry.get("measures", ()))
        silent = [name for name in names if release and values_of(scores, name, release)[1] is None]
        tests = [scores.title_of(name) for name in names if name not in silent]
        tests += [facts[name] for name in entry.get("facts", ()) if facts.get(name)]
        if silent:
            tests.append(f"not tested on this release: {', '.join(map(scores.title_of, silent))}")
        tests_by_name[str(entry["name"])] = tuple(tests)
    considered = tuple((name, tests) for name, tests in tests_by_name.items() if tests)
    return Attackers(considered, tuple(name for name, tests in tests_by_name.items() if not tests))


def framework_evidence(
    scores: Scores, choice: Choice | None, facts: Mapping[str, str], to: Audience
) -> list[Framework]:
    """Return one table for each framework; numbers are those of the chosen release."""
    release = None if choice is None or choice.candidate is None else choice

    def row(term: Mapping[str, Any]) -> Evidence:
        lines = [f"{name}: {facts[name]}" for name in term.get("facts", ()) if facts.get(name)]
        for name in _measures(scores, term.get("measures", ())) if release else ():
            if release and (value := values_of(scores, name, release)[1]) is not None:
                lines.append(f"{scores.title_of(name)}: {to.number(value)} ({scores.values[name].value_unit})")
        return Evidence(str(term["name"]), str(term["definition"]), tuple(lines) or (NOT_ASSESSED,))

    return [Framework(str(entry["name"]), tuple(map(row, entry["term"]))) for entry in vocabulary()["framework"]]


def _measures(scores: Scores, classes: Sequence[str]) -> list[str]:
    """Return the study's measures of these classes, in the order of the vocabulary."""
    names = scores.measure.filter(pl.col("axis") == "risk")["name"].to_list()
    return [name for cls in classes for name in names if type(scores.values[name]).__name__ == cls]


def study_facts(study: Study, data: Microdata, choice: Choice | None) -> dict[str, str]:
    """Return the facts that the study itself provides, by the names that frameworks.toml uses."""
    plan, manifest, source = study.plan, study.manifest, study.plan.data
    # The study's own copies of the data never contain these columns.
    removed = () if source is None else (*source.identifiers, *source.drop)
    overrides, releases = manifest.get("overrides", []), manifest.get("releases", [])
    return {
        "records": f"{len(data):,} records, {len(data.names)} columns",
        "keys": join_names(data.keys),
        "sensitive columns": join_names(data.sensitive),
        "removed columns": join_names(removed),
        "profile": plan.profile.name if plan.profile else "",
        "method": (choice.name or choice.method) if choice is not None and choice.candidate else "",
        "utility": study.scores().title_of(plan.utility),
        "candidates tried": f"{plan.count:,}",
        "rule fixed first": "yes" if study.rule_was_fixed_first else "no",
        "overrides": join_names([str(entry.get("check", "")) for entry in overrides]) or "none",
        "earlier releases": f"{len(releases)} from this study; each release is checked against the ledger",
    }


def safe_harbor(data: Microdata) -> list[tuple[str, str, str]]:
    """Return the 18 classes of 45 CFR 164.514(b)(2)(i): letter, text, and the columns of the file that look like it."""
    marks = {name: mark.letter for name in data.names if (mark := detect_identifier(data, name)) is not None}
    return [
        (letter, text, ", ".join(name for name, own in marks.items() if own == letter) or NONE_FOUND)
        for letter, text in SAFE_HARBOR.items()
    ]
