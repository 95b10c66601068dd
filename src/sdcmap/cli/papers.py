"""`sdcmap paper NAME`: a seed paper's experiment, beside its printed numbers. Each paper adds its command here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sdcmap.cli.app import app, note, print_json

if TYPE_CHECKING:
    from sdcmap.papers.reference import Result

paper = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="A seed paper's experiment, beside its printed numbers."
)
app.add_typer(paper, name="paper")

DataFolder = Annotated[
    Path | None, typer.Option("--data", help="Folder of reference files (data/, golden/); default: $SDCMAP_DATA.")
]
Figures = Annotated[
    Path | None, typer.Option("-o", "--out", help="Folder to write the figures to, as HTML, SVG and PNG.")
]


def show(result: Result, out: Path | None, as_json: bool) -> None:
    """Write the figures, then print the document or the lines."""
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        for name, chart in result.figures.items():
            for form in ("html", "svg", "png"):
                chart.save(out / f"{name}.{form}")
        note(f"{out}: {', '.join(result.figures)}")
    if as_json:
        print_json(result.document)
    else:
        print("\n".join(result.lines))
