"""Tables of a study: methods by losses, by risks, and by overall scores. Yancey, Winkler, Creecy (2002), tables 1 to 3."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from sdcmap.core import PlanError
from sdcmap.core.formatting import escape_markdown
from sdcmap.files.xlsx_writer import workbook
from sdcmap.map import SCORE_NAMES, overall_score
from sdcmap.study.scores import Scores

SUMMARIES = tuple(SCORE_NAMES)  # losses whose parts are losses themselves: S0, S1, S2
S0_PARTS = ("IL2", "IL3", "IL4", "IL5")  # whose mean is S0; S1 has them as parts
ERROR = " se"  # ends the name of the column with the standard error of a mean over draws
NO_SCORES = (
    "There are no overall scores: they add S0, S1 or S2 to a risk that is a share of records. Add S0, S1 and S2 to the "
    "measures of the plan."
)


@dataclass(frozen=True)
class ScoreTables:
    """Three tables with a row for each method: losses, risks and overall scores, pooled over the draws.

    A column "X se" after "X" is the standard error of its mean; it is missing where there is one draw. The tables are
    for the agency: they contain the risk of every candidate.
    """

    losses: pl.DataFrame
    risks: pl.DataFrame
    overall: pl.DataFrame

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """The tables that have a column of numbers, by title."""
        every = {"Losses and utilities": self.losses, "Disclosure risks": self.risks, "Overall scores": self.overall}
        return {title: table for title, table in every.items() if len(table.columns) > 2}

    def frame(self) -> pl.DataFrame:
        """Return all columns in one table."""
        others = [table.drop("method", "draws") for table in (self.risks, self.overall)]
        return pl.concat([self.losses, *others], how="horizontal")

    def write(self, ending: str) -> bytes:
        """Return the tables as a file: ".csv" (one table), ".xlsx" (a sheet each) or ".md"."""
        if ending == ".csv":
            return self.frame().write_csv().encode()
        if ending == ".xlsx":
            return workbook(self.tables)
        if ending == ".md":
            return self.markdown().encode()
        raise PlanError(f"scores are written as .csv, .xlsx or .md, not as {ending or 'a file without an ending'}.")

    def markdown(self) -> str:
        """Return the tables in Markdown, with each mean and its standard error in one cell."""
        parts = (f"## {title}\n\n{markdown_table(table)}" for title, table in self.tables.items())
        return escape_markdown("\n\n".join(parts)) + "\n"


def make_score_tables(scores: Scores, *, parts: bool = False) -> ScoreTables:
    """Return the tables of a study.

    parts : show the parts of every measure, such as the share of a zone; parts of S0, S1 and S2 are always shown.
    """
    draws = scores.candidate.filter(pl.col("status") == "ok").group_by("method", maintain_order=True).len()
    counts = dict(draws.iter_rows())
    # Methods are in the order of the plan; those of a search, and of a table made elsewhere, follow.
    methods = [method for method in dict.fromkeys([*scores.methods, *counts]) if method in counts]
    head = {"method": [scores.name_of(method) for method in methods], "draws": [counts[m] for m in methods]}
    by_axis: dict[str, dict[str, Columns]] = {"utility": {}, "risk": {}}
    shown: dict[str, Columns] = {}
    axes = dict(scores.measure.select("name", "axis").iter_rows())
    # Measures are in the order of the plan.
    for name in dict.fromkeys([*(name for name in scores.values if name in axes), *axes]):
        own = by_axis[axes[name]]
        for part, columns in _parts_of(scores, name).items() if parts or _class_of(scores, name) in SUMMARIES else ():
            # IL2 to IL5 are parts of several summaries: show each once.
            label = part if _class_of(scores, name) in SUMMARIES else f"{_short_name(scores, name)}: {part}"
            own.setdefault(label, columns)
        own[_short_name(scores, name)] = shown[name] = _pooled(scores, name)
    tables = {axis: _table(methods, head, columns) for axis, columns in by_axis.items()}
    return ScoreTables(tables["utility"], tables["risk"], _table(methods, head, _overall(scores, shown)))


Columns = Mapping[str, tuple[float, float | None]]  # method -> value and standard error


def _class_of(scores: Scores, name: str) -> str:
    measure = scores.values.get(name)
    return name if measure is None else type(measure).__name__


def _short_name(scores: Scores, name: str) -> str:
    """Return the class of a measure if no other measure of the study has it, else its brief text."""
    kind = _class_of(scores, name)
    is_unique = sum(_class_of(scores, other) == kind for other in scores.measure["name"]) == 1
    return kind if is_unique else scores.brief_of(name)


def _pooled(scores: Scores, name: str) -> Columns:
    return {method: (estimate.value, estimate.se) for method, estimate in scores.pooled_estimates(name).items()}


def _parts_of(scores: Scores, name: str) -> dict[str, Columns]:
    """Return the mean of each part over the draws of a method, with its standard error."""
    estimates = scores.estimates(name)
    values: dict[str, dict[str, list[float]]] = {}
    for key, method in scores.column(name).select("id", "method").iter_rows():
        for part, value in estimates[key].parts.items():
            values.setdefault(part, {}).setdefault(method, []).append(value)
    return {part: {method: _mean(draws) for method, draws in columns.items()} for part, columns in values.items()}


def _mean(draws: Sequence[float]) -> tuple[float, float | None]:
    """Return the mean of draws and its standard error; no error for a single draw."""
    mean = math.fsum(draws) / len(draws)
    if len(draws) < 2:
        return mean, None
    spread = math.fsum((value - mean) ** 2 for value in draws) / (len(draws) - 1)
    return mean, math.sqrt(spread / len(draws))


def _overall(scores: Scores, pooled: Mapping[str, Columns]) -> dict[str, Columns]:
    """Return the A-, D- and S-score of each method for every risk that is a share: 50 (loss + risk).

    The standard error is that of the mean over draws of the scores of single files.
    """
    losses = _summary_losses(scores)
    shares = [name for name, axis, low, high in scores.measure.select("name", "axis", "low", "high").iter_rows()
              if axis == "risk" and (low, high) == (0.0, 1.0) and name in pooled]  # fmt: skip
    columns: dict[str, Columns] = {}
    for risk in shares:
        rates = {key: estimate.value for key, estimate in scores.estimates(risk).items()}
        for summary, loss in losses.items():
            draws: dict[str, list[float]] = {}
            for key, method in scores.column(risk).select("id", "method").iter_rows():
                if key in loss:
                    draws.setdefault(method, []).append(overall_score(loss[key], rates[key]))
            columns[f"{SCORE_NAMES[summary]}, {_short_name(scores, risk)}"] = {
                m: _mean(own) for m, own in draws.items()
            }
    return columns


def _summary_losses(scores: Scores) -> dict[str, dict[str, float]]:
    """Return S0, S1 and S2 of each candidate, of those that were measured; S0 also follows from the parts of S1."""
    losses: dict[str, dict[str, float]] = {}
    for name in scores.measure["name"]:
        if (summary := _class_of(scores, name)) in SUMMARIES and summary not in losses:
            losses[summary] = {key: estimate.value for key, estimate in scores.estimates(name).items()}
            if summary == "S1":
                of_parts = {key: estimate.parts for key, estimate in scores.estimates(name).items()}
                means = {k: sum(p[i] for i in S0_PARTS) / 4 for k, p in of_parts.items() if p.keys() >= set(S0_PARTS)}
                losses.setdefault("S0", means)
    return {summary: losses[summary] for summary in SUMMARIES if losses.get(summary)}


def _table(methods: Sequence[str], head: Mapping[str, object], columns: Mapping[str, Columns]) -> pl.DataFrame:
    table: dict[str, object] = dict(head)
    for name, values in columns.items():
        pairs = [values.get(method, (None, None)) for method in methods]
        table[name] = pl.Series([value for value, _ in pairs], dtype=pl.Float64)
        if any(error is not None for _, error in pairs):
            table[name + ERROR] = pl.Series([error for _, error in pairs], dtype=pl.Float64)
    return pl.DataFrame(table)


def markdown_table(table: pl.DataFrame) -> str:
    names = [name for name in table.columns if not (name.endswith(ERROR) and name[: -len(ERROR)] in table.columns)]
    lines = [names, ["---", *["---:"] * (len(names) - 1)]]
    for row in table.to_dicts():
        lines.append([_markdown_cell(row[name], row.get(name + ERROR)) for name in names])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _markdown_cell(value: object, error: float | None) -> str:
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value).replace("|", "\\|")
    return f"{value:.4g}" if error is None else f"{value:.4g} ± {error:.2g}"
