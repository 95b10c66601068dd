"""The rows of the report's tables, computed from plan, scores and manifest; the template formats them."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl

from sdcmap import __version__
from sdcmap.bundle.checks import check_label
from sdcmap.bundle.limit_checks import decisive_bounds
from sdcmap.core import Choice, Measure, Method
from sdcmap.core.audience import Audience, format_significant
from sdcmap.core.docstring import docstring, one_line
from sdcmap.core.grid import Grid
from sdcmap.core.limit import format_limit
from sdcmap.core.readable_units import describe_readably
from sdcmap.errors import StudyDamaged
from sdcmap.reports.audience_view import View
from sdcmap.reports.decision import describe_pooling
from sdcmap.study.folder import Manifest
from sdcmap.study.plan import Plan
from sdcmap.study.scores import Scores

Row = dict[str, Any]
ByReason = list[tuple[str, int, str]]  # method or measure, number of candidates, and the reason


# ---- plan -------------------------------------------------------------------------------------------------
def axes_of(plan: Plan) -> str:
    """Return what the axes show, in words."""
    return f"{'; '.join(_words(plan, name) for name in plan.risk)} against {_words(plan, plan.utility)}"


def limits_of(plan: Plan) -> list[str]:
    """Return every limit, in words."""
    by_name = {measure.text: measure for measure in plan.measures}
    return [f"{_words(plan, name)}: {format_limit(limit, by_name.get(name))}" for name, limit in plan.limits.items()]


def _words(plan: Plan, name: str) -> str:
    return next((measure.title for measure in plan.measures if measure.text == name), name)


def methods_of(plan: Plan) -> list[tuple[str, str]]:
    """Return the name of each method and its text as in a plan; for a grid, its axes."""
    return [
        (_grid_words(entry), "") if isinstance(entry, Grid) else (plan.name_of_method(entry), entry.text)
        for entry in plan.methods
    ]


def _grid_words(grid: Grid[Method]) -> str:
    spec = grid.spec()
    words = [f"{name} in {_axis_words(axis)}" for name, axis in spec.pop("grid").items()]
    words += [f"{name} = {value}" for name, value in spec.items() if name != "type"]
    return f"{spec['type']}: {'; '.join(words)}"


def _axis_words(axis: Mapping[str, list[str]] | Sequence[object]) -> str:
    if isinstance(axis, Mapping):
        return f"all sets of {' or '.join(map(str, axis['sizes']))} of {', '.join(axis['subsets'])}"
    return ", ".join(map(str, axis))


@dataclass(frozen=True)
class MethodStep:
    """One step of a method: its label, what it does in one sentence, its class, and its title with parameters."""

    label: str
    description: str
    class_name: str
    title: str


def method_steps(method: Method) -> list[MethodStep]:
    """Return the steps of a method for readers."""
    return [MethodStep(step.label, step.description, type(step).__name__, step.title) for step in method.steps]


def explanation_of(measure: Measure) -> str:
    """Return how to read a measure: the summary and story of its docstring."""
    doc = docstring(type(measure))
    return one_line(f"{doc.summary} {doc.story}")


# ---- scores -----------------------------------------------------------------------------------------------
def frontier_rows(view: View) -> list[Row]:
    """Return the undominated methods of the map, with how often a draw of each is undominated."""
    names = ("membership", "membership_low", "membership_high")
    shown = view.shown.means.filter("frontier").drop("count", *names).sort("risk", "utility")
    drawn = view.map.means.select("method", "count", *names)
    return shown.join(drawn, on="method", how="left", maintain_order="left").to_dicts()


def worse_methods(view: View) -> list[str]:
    """Return the names of the methods that are worse than not masking, by exact numbers and by those that are shown."""
    exact = set(view.map.means.filter("worse")["method"])
    names = view.shown.means.filter("worse")["method"]
    return [view.map.scores.name_of(method) for method in names if method in exact]


@dataclass(frozen=True)
class MeasureRow:
    """One measure: its limit and its values for the chosen release, its method, the original, and releasing nothing.

    name : the title. description : one sentence for readers without statistics. class_name : as in a plan.
    """

    name: str
    description: str
    class_name: str
    limit: str
    status: str  # of the chosen release: "met", "exceeded", "not tested" or "no value"
    unit: str
    better: str
    release_value: str
    mean: str
    mean_note: str  # how the value of the method was pooled, in readable units
    error: str
    spread: str
    original: str
    baseline: str


def score_table(
    scores: Scores, choice: Choice | None, axis: str, to: Audience, limits: Mapping[str, float]
) -> list[MeasureRow]:
    """Return every measure of one axis with its limit and its values."""
    return [_measure_row(scores, choice, row, to, limits) for row in scores.measure.filter(axis=axis).to_dicts()]


def _measure_row(
    scores: Scores, choice: Choice | None, measure: Row, to: Audience, limits: Mapping[str, float]
) -> MeasureRow:
    name, unit = measure["name"], measure["unit"]
    verdicts = () if choice is None else choice.verdicts
    pooled = {row["method"]: row for row in scores.pooled(name).to_dicts()}
    mean = pooled.get(choice.method) if choice is not None and choice.candidate is not None else None
    unmasked = next((row for method, row in pooled.items() if scores.kinds[method] == "identity"), None)
    bands = {} if mean is None or to.is_external else mean  # only the board sees intervals
    return MeasureRow(
        name=scores.title_of(name),
        description=scores.values[name].description if name in scores.values else "",
        class_name=type(scores.values[name]).__name__ if name in scores.values else name,
        limit=f"{limits[name]:g}" if name in limits else "",
        status=next((v.status for v in verdicts if v.limit.measure.text == name), ""),
        unit=unit,
        better=measure["direction"],
        release_value=_release_value(scores, name, choice, to),
        mean="–" if mean is None else to.score(mean["value"], unit),
        mean_note="" if mean is None or choice is None else _mean_note(scores, name, choice, to, mean, unmasked),
        error="" if bands.get("se") is None else format_significant(bands["se"], 2),
        spread="" if bands.get("low") is None else f"{to.number(bands['low'])} to {to.number(bands['high'])}",
        original="–" if unmasked is None else to.score(unmasked["value"], unit),
        baseline=to.score(measure["baseline_value"], unit),
    )


def _mean_note(scores: Scores, name: str, choice: Choice, to: Audience, mean: Row, unmasked: Row | None) -> str:
    """Return how to read the value of a method; external readers get rounded readable units only."""
    if not to.is_external:
        return describe_pooling(scores, name, choice)
    value, whole = (None if row is None else float(f"{row['value']:.2g}") for row in (mean, unmasked))
    return describe_readably(scores.measure_named(name), value, whole, to.digits)


def _release_value(scores: Scores, name: str, choice: Choice | None, to: Audience) -> str:
    if to.is_external or choice is None:
        return ""
    measure = scores.measure_named(name)
    if measure.expectation and not measure.has_release_value:
        return "–"  # one draw says nothing about an expectation
    values = scores.column(name).filter(pl.col("id") == (choice.candidate or ""))["value"].to_list()
    return to.number(values[0]) if values else "–"


def skipped_attacks(scores: Scores, choice: Choice | None) -> list[str]:
    """Return the attacks that could not run on the chosen release, with their reasons and upper bounds."""
    lines = []
    candidate = "" if choice is None else choice.candidate or ""
    for name in scores.measure.filter(axis="risk")["name"]:
        if (estimate := scores.estimates(name).get(candidate)) is not None:
            title = scores.title_of(name)
            lines += [f"{title}: {skipped}" for skipped in estimate.skipped]
            # A bound above the estimate means that the skipped attack might succeed more often.
            bounds = decisive_bounds(estimate)
            lines += [f"{title}: at most {bound.estimate.value:.2g}, by {bound.attack}" for bound in bounds]
    return lines


def parts_without_limit(scores: Scores, choice: Choice | None) -> list[str]:
    """Return what measures say of the chosen release beside the value that has a limit, a sentence each."""
    candidate = "" if choice is None else choice.candidate or ""
    found = ((name, scores.estimates(name).get(candidate)) for name in scores.measure.filter(axis="risk")["name"])
    said = [scores.values[name].describe_parts(own) for name, own in found if own is not None and name in scores.values]
    return [sentence for sentence in said if sentence]


def missing_candidates(scores: Scores) -> dict[str, ByReason]:
    """Return the candidates that were infeasible or failed, and the measures without a value, by reason."""
    candidates = scores.candidate.with_columns(pl.col("method").replace(dict(scores.names)))
    tables = {s: _by_reason(candidates.filter(status=s), "method") for s in ("infeasible", "failed")}
    # A measure without a value is reported with its reason, never dropped silently.
    unvalued = {"undefined": ["undefined", "unpaired", "failed"], "spared": ["spared"]}
    titled = scores.score.with_columns(
        pl.col("measure").replace({n: scores.title_of(n) for n in scores.measure["name"]})
    )
    of_status = {what: titled.filter(pl.col("status").is_in(statuses)) for what, statuses in unvalued.items()}
    return tables | {what: _by_reason(rows, "measure") for what, rows in of_status.items()}


def _by_reason(table: pl.DataFrame, name: str) -> ByReason:
    grouped = table.group_by(name, maintain_order=True).agg(pl.len(), pl.col("reason").first())
    return [(str(what), int(count), str(reason)) for what, count, reason in grouped.sort(name).iter_rows()]


def summarize_search(scores: Scores, choice: Choice | None, search: Mapping[str, str]) -> list[str]:
    """Return how many candidates were tried with which result, why a search ended, and how many draws were compared."""
    counts = scores.candidate.group_by("status").len().sort("status").iter_rows()
    by_status = ", ".join(f"{count:,} {status}" for status, count in counts)
    lines = [f"{scores.candidate.height:,} candidates were tried, including the unmasked file: {by_status}."]
    if search.get("stopped"):
        lines.append(f"The search ended because {search['stopped'].rstrip('.')}.")
    if choice is not None and choice.candidate is not None:
        # The best of many draws looks better than it is, so the reader must know their number.
        one = "One random draw of the chosen method was created."
        several = f"{choice.searched:,} random draws of the chosen method were compared, and one was chosen."
        lines.append(several if choice.searched > 1 else one)
    return lines


# ---- history ---------------------------------------------------------------------------------------
def history(manifest: Manifest, public_name: Callable[[str], str] | None = None) -> Row:
    """Return overridden checks and releases; for the board with times, reasons and folders.

    public_name : returns the public name of a method, by its text; None: the board sees everything.
    """
    try:
        overrides = [{**entry, "check": check_label(entry["check"])} for entry in manifest.get("overrides", [])]
        releases = manifest.get("releases", [])
        if public_name is not None:
            releases = [{"method": public_name(r.get("method", "")), "when": r.get("when", "")[:10]} for r in releases]
            return {"overrides": [{"check": entry["check"]} for entry in overrides], "releases": releases}
        times = [(manifest.get("created", ""), "study created"), (manifest.get("first_score", ""), "first score")]
        times += [(entry["fixed"], f"rule fixed: {entry['rule'][0]}") for entry in manifest.get("rules", [])]
        return {
            "gpus": manifest.get("gpus", []),
            "times": [
                (what, f"{datetime.fromisoformat(at):%Y-%m-%d %H:%M:%S} UTC") for at, what in sorted(times) if at
            ],
            "overrides": overrides,
            "releases": [{**entry, "method": entry.get("name") or entry.get("method", "")} for entry in releases],
        }
    except (TypeError, KeyError, IndexError, AttributeError):
        raise StudyDamaged("manifest.json of the study is damaged. Restore it from a backup.") from None


def versions() -> list[tuple[str, str]]:
    """Return the versions of the software that wrote the report."""
    ours = ("sdcmap", __version__), ("Python", platform.python_version())
    return [*ours, ("NumPy", np.__version__), ("Polars", pl.__version__)]
