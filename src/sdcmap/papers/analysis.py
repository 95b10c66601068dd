"""The analysis of a paper on a user's own file: sections with a figure, a table and a paragraph each, and their page."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from sdcmap import Plan, Scores
from sdcmap.core.chart import Chart
from sdcmap.core.rule import Choice
from sdcmap.data.private_folder import write_atomically
from sdcmap.papers.reference import Document
from sdcmap.reports.score_tables import markdown_table

FIGURE_FORMS = ("html", "svg", "png")
PAGE_NAME = "paper.html"
MAX_ROWS_SHOWN = 40  # of a table on the page; its csv file has all
DO_NOT_PUBLISH = (
    "These pages are for the agency. They show the risk of every candidate, so do not publish them, or the study "
    "folder."
)


@dataclass(frozen=True)
class Section:
    """One figure or table of the paper, drawn for this file, and what it shows here.

    name : of its files, such as "figure5". title : as a reader of the paper would look for it. text : a paragraph with the
    numbers of this file.
    """

    name: str
    title: str
    text: str
    chart: Chart | None = None
    table: pl.DataFrame | None = None


@dataclass(frozen=True)
class Analysis:
    """The analysis of a paper on a user's file.

    citation : the paper. introduction : paragraphs on the file, its roles and the plan. choice : what the plan's rule
    chooses; None where the paper states no rule.
    """

    paper: str
    citation: str
    introduction: tuple[str, ...]
    sections: tuple[Section, ...]
    plan: Plan = field(repr=False)
    scores: Scores = field(repr=False)
    choice: Choice | None = None

    @property
    def figures(self) -> dict[str, Chart]:
        """The figures by name."""
        return {part.name: part.chart for part in self.sections if part.chart is not None}

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """The tables by name."""
        return {part.name: part.table for part in self.sections if part.table is not None}

    @property
    def lines(self) -> tuple[str, ...]:
        """The page as text, without figures and tables."""
        parts = [line for part in self.sections for line in ("", part.title, part.text)]
        return (self.citation, *self.introduction, *parts)

    @property
    def document(self) -> Document:
        """The page as JSON."""
        sections = {
            part.name: {
                "title": part.title, "text": part.text, "table": None if part.table is None else part.table.to_dicts()
            }
            for part in self.sections
        }  # fmt: skip
        chosen = None if self.choice is None else {"name": self.choice.name, "reason": self.choice.reason}
        return {"paper": self.paper, "introduction": list(self.introduction), "sections": sections, "choice": chosen}

    def html(self) -> str:
        """Return one page with all paragraphs, figures and tables. It loads nothing."""
        body = "\n".join(_elements(self))
        return PAGE.format(title=html.escape(f"{self.citation} on {_file_name(self.plan)}"), body=body)

    def write(self, folder: str | Path) -> list[Path]:
        """Write the plan, the figures, the tables (.csv and .md) and the page; return the paths of all files."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        written = [self.plan.write(folder / "plan.toml")]
        for name, chart in self.figures.items():
            written += [chart.save(folder / f"{name}.{form}") for form in FIGURE_FORMS]
        for name, table in self.tables.items():
            written.append(write_atomically(folder / f"{name}.csv", table.write_csv()))
            written.append(write_atomically(folder / f"{name}.md", markdown_table(table) + "\n"))
        written.append(write_atomically(folder / PAGE_NAME, self.html()))
        return written


def _file_name(plan: Plan) -> str:
    return Path(plan.data.path).name if plan.data is not None else "a file"


def _elements(analysis: Analysis) -> Iterator[str]:
    yield f"<h1>{html.escape(analysis.citation)}</h1>"
    yield from (f"<p>{html.escape(text)}</p>" for text in analysis.introduction)
    for part in analysis.sections:
        yield f'<section id="{html.escape(part.name)}"><h2>{html.escape(part.title)}</h2>'
        yield f"<p>{html.escape(part.text)}</p>"
        if part.chart is not None:
            # As an image: the ids of several inline SVG pictures would clash.
            picture = base64.b64encode(part.chart.svg().encode()).decode()
            yield f'<figure><img alt="{html.escape(part.title)}" src="data:image/svg+xml;base64,{picture}"></figure>'
        if part.table is not None:
            yield _table(part.table, part.name)
        yield "</section>"
    yield f"<p>{html.escape(DO_NOT_PUBLISH)}</p>"


def _table(table: pl.DataFrame, name: str) -> str:
    """Return a table in HTML, cut to the rows that a page can show."""
    head = "".join(f"<th>{html.escape(column)}</th>" for column in table.columns)
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in table.head(MAX_ROWS_SHOWN).rows())
    more = table.height - MAX_ROWS_SHOWN
    rest = f"<p>{html.escape(f'and {more:,} more rows in {name}.csv')}</p>" if more > 0 else ""
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{rest}'


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return f"<td>{'yes' if value else 'no'}</td>"
    if isinstance(value, int | float):
        shown = f"{value:,}" if isinstance(value, int) else f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
        return f'<td class="number">{shown}</td>'
    return f"<td>{html.escape('–' if value is None else str(value))}</td>"


PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: #222; font: 16px/1.5 Helvetica, Arial, sans-serif; }}
h1 {{ font-size: 1.5rem; }} h2 {{ font-size: 1.15rem; margin-top: 2.2rem; }}
figure {{ margin: 1rem 0; }} figure img {{ max-width: 100%; height: auto; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: 0.85rem; }}
th, td {{ text-align: left; padding: 0.2rem 0.6rem; border-bottom: 1px solid #ddd; vertical-align: top; }}
td.number {{ text-align: right; font-variant-numeric: tabular-nums; }}
</style>
</head>
<body>
{body}
</body>
</html>
"""
