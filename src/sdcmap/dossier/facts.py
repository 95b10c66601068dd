"""The facts of a study in words: data, plan, measures, what could not be made, and how the study went."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from typing import TypedDict

import numpy as np
import polars as pl

from sdcmap import __version__
from sdcmap.core.audience import Audience
from sdcmap.core.docstring import docstring, one_line
from sdcmap.core.grid import Grid
from sdcmap.core.measure import Measure
from sdcmap.core.method import Method
from sdcmap.core.rule import Choice
from sdcmap.data.microdata import Microdata
from sdcmap.dossier.view import View
from sdcmap.errors import StudyDamaged
from sdcmap.explore.looking import look
from sdcmap.study.default_risk import not_measured
from sdcmap.study.folder import Study
from sdcmap.study.plan import Plan
from sdcmap.study.scores import Scores

ByReason = list[tuple[str, int, str]]  # what, how often, and the reason


class ColumnFacts(TypedDict):
    """One column, in words."""

    name: str
    label: str
    kind: str
    role: str
    missing: str


class DataFacts(TypedDict):
    """The file, in words; rare : records in small combinations of the keys."""

    rows: str
    columns: list[ColumnFacts]
    rare: list[tuple[str, str, str]]
    key_names: tuple[str, ...]


class MeasureFacts(TypedDict):
    """One measure of the plan, in words and exactly, and how to read it."""

    name: str
    text: str
    axis: str
    unit: str
    better: str
    words: str


class PlanFacts(TypedDict):
    """The plan, in words."""

    methods: list[tuple[str, str]]  # its name, and what it is exactly
    candidates: str
    replicates: int
    measures: list[MeasureFacts]
    axes: str
    limits: list[str]
    not_measured: list[str]
    rule: str


class HistoryFacts(TypedDict):
    """How the study went; times : what happened, and when."""

    fixed_first: bool
    overrides: list[dict[str, str]]
    releases: list[dict[str, str]]
    cards: list[str]  # GPUs that scores were made with
    times: list[tuple[str, str]]


def data_facts(data: Microdata, to: Audience) -> DataFacts:
    """Rows, columns, roles, kinds, missing shares, and how many records are rare on the keys."""
    seen = look(data)
    columns: list[ColumnFacts] = [
        {
            "name": glance.name,
            "label": data.schema[glance.name].label,
            "kind": glance.kind,
            "role": glance.role if glance.stated else "not stated",
            "missing": to.percent(glance.missing),
        }
        for glance in seen.variables
    ]
    rare = _rare(seen.sizes, to) if data.keys else []
    return {"rows": f"{len(data):,}", "columns": columns, "rare": rare, "key_names": data.keys}


def _rare(sizes: dict[str, int], to: Audience) -> list[tuple[str, str, str]]:
    """Records in small combinations."""
    return [(name, to.count(records), to.percent(records)) for name, records in sizes.items()]


def plan_facts(plan: Plan, data: Microdata) -> PlanFacts:
    """Methods, measures, axes, limits and rule, by their names for people."""
    measures: list[MeasureFacts] = [
        {
            "name": m.words,
            "text": m.text,
            "axis": m.axis,
            "unit": m.unit,
            "better": m.direction,
            "words": how_to_read(m),
        }
        for m in plan.measures
    ]
    words = {m.text: m.words for m in plan.measures}
    axes = f"{'; '.join(words.get(name, name) for name in plan.risk)} against {words.get(plan.utility, plan.utility)}"
    limits = [f"{words.get(name, name)}: {limit:g}" for name, limit in plan.limits.items()]
    return {
        "methods": [_method_facts(entry, plan) for entry in plan.methods],
        "candidates": f"{plan.count:,}",
        "replicates": plan.replicates,
        "measures": measures,
        "axes": axes,
        "limits": limits,
        "not_measured": not_measured(data, plan.measures),
        "rule": plan.rule.text if plan.rule else "",
    }


def how_to_read(measure: Measure) -> str:
    """The story of a measure: its docstring up to the parameters."""
    doc = docstring(type(measure))
    return one_line(f"{doc.summary} {doc.story}")


def _method_facts(entry: Method | Grid[Method], plan: Plan) -> tuple[str, str]:
    """A method by its name and as a person writes it; a grid with its axes."""
    if isinstance(entry, Method):
        return plan.name_of_method(entry), entry.text
    spec = entry.spec()
    folded = spec.pop("grid")
    fixed = [f"{name} = {value}" for name, value in spec.items() if name != "type"]
    axes = [f"{name} in {_axis_text(axis)}" for name, axis in folded.items()]
    return f"{spec['type']}: {'; '.join([*axes, *fixed])}", ""


def _axis_text(axis: Mapping[str, list[str]] | Sequence[object]) -> str:
    if isinstance(axis, Mapping):
        sizes = " or ".join(map(str, axis["sizes"]))
        return f"all sets of {sizes} of {', '.join(axis['subsets'])}"
    return ", ".join(str(value) for value in axis)


def missing_candidates(scores: Scores, to: Audience) -> dict[str, bool | ByReason]:
    """Candidates that were infeasible or failed and measures without a value; outside only that there were some."""
    tables: dict[str, ByReason] = {}
    for status in ("infeasible", "failed"):
        part = scores.candidate.filter(pl.col("status") == status)
        names = pl.col("method").replace(dict(scores.names))
        tables[status] = _by_reason(part.with_columns(names), "method")
    unvalued = scores.score.filter(pl.col("status").is_in(["undefined", "unpaired", "failed"]))
    words = {name: scores.words_of(name) for name in unvalued["measure"].unique()}
    tables["undefined"] = _by_reason(unvalued.with_columns(pl.col("measure").replace(words)), "measure")
    return {status: bool(rows) if to.external else rows for status, rows in tables.items()}


def _by_reason(table: pl.DataFrame, name: str) -> ByReason:
    grouped = table.group_by(name, maintain_order=True).agg(pl.len(), pl.col("reason").first())
    return [(str(what), int(count), str(reason)) for what, count, reason in grouped.sort(name).iter_rows()]


def tried(scores: Scores, choice: Choice | None, search: Mapping[str, str]) -> list[str]:
    """How many candidates were tried and what became of them, how far a search went, and how many draws were looked at."""
    counts = dict(scores.candidate.group_by("status").len().sort("status").iter_rows())
    kinds = ", ".join(f"{count:,} {status}" for status, count in counts.items())
    lines = [f"{scores.candidate.height:,} candidates were tried, the unmasked file among them: {kinds}."]
    if search.get("stopped"):
        lines.append(f"The search ended: {search['stopped'].rstrip('.')}.")
    if choice is not None and choice.candidate is not None:
        draws = max(1, choice.searched)
        lines.append(
            f"{draws:,} random draws of the chosen method were looked at before one was taken."
            if draws > 1
            else "Of the chosen method one draw was looked at, and taken."
        )
    return lines


def history(study: Study, view: View) -> HistoryFacts:
    """When the rule was fixed, what was overridden, what was released; times and reasons are told inside alone."""
    try:
        return _history(study, view)
    except (TypeError, KeyError, IndexError, AttributeError):
        raise StudyDamaged("manifest.json does not hold what a study writes there; restore it from a backup.") from None


def _history(study: Study, view: View) -> HistoryFacts:
    manifest = study.manifest
    overrides, releases = manifest.get("overrides", []), manifest.get("releases", [])
    facts: HistoryFacts = {
        "fixed_first": study.rule_was_fixed_first,
        "overrides": [{"check": entry.get("check", "")} for entry in overrides],
        "releases": [{"method": _public_name(entry, view), "when": _day(entry.get("when", ""))} for entry in releases],
        "cards": [],
        "times": [],
    }
    if view.to.external:
        return facts
    times: list[tuple[str, str]] = [
        ("study begun", manifest.get("created", "")),
        ("first score", manifest.get("first_score", "")),
    ]
    times += [(f"rule fixed: {entry['rule'][0]}", entry["fixed"]) for entry in manifest.get("rules", [])]
    times = sorted((when, what) for what, when in times if when)
    facts["cards"] = list(manifest.get("cards", []))
    facts["times"] = [(what, _second(when)) for when, what in times]
    facts["overrides"] = [{key: str(entry.get(key, "")) for key in ("check", "reason", "when")} for entry in overrides]
    told = ("method", "replicate", "profile", "folder", "when")
    facts["releases"] = [
        {key: str(entry.get(key, "")) for key in told}
        | {"method": _called(entry), "not_tried": "; ".join(entry.get("not_tried", []))}
        for entry in releases
    ]
    return facts


def _public_name(release: Mapping[str, object], view: View) -> str:
    return view.name_of_release(str(release.get("method", ""))) or "a method that the plan no longer has"


def _called(release: Mapping[str, object]) -> str:
    """The name under which something was released; in studies of earlier versions, the method's text."""
    return str(release.get("name") or release.get("method", ""))


def versions() -> list[tuple[str, str]]:
    return [
        ("sdcmap", __version__),
        ("Python", platform.python_version()),
        ("NumPy", np.__version__),
        ("Polars", pl.__version__),
    ]


def _day(when: str) -> str:
    return when[:10]


def _second(when: str) -> str:
    return when[:19].replace("T", " ") + " UTC"
