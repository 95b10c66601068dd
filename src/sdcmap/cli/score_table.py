"""`sdcmap scores`: methods by losses, risks and overall scores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from sdcmap.cli import options
from sdcmap.cli.app import app, note, print_json


@app.command()
def scores(
    study: options.StudyFolder,
    out: Annotated[
        Path | None, Option("-o", "--out", help="File to write: .csv, .xlsx or .md. Default: print Markdown.")
    ] = None,
    parts: Annotated[
        bool, Option("--parts", help="Show the parts of every measure, such as links held for review.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Tabulate the losses, risks and overall scores of all methods of a study.

    Rows are methods, values are means over draws with their standard errors (Yancey, Winkler and Creecy 2002, tables 1
    to 3). With S0, S1 or S2 among the measures, the A-, D- and S-scores 50 (loss + risk) follow for every risk that is
    a share of records. The table contains the risk of every candidate, so do not publish it.

    Example: sdcmap scores cps-study -o table.xlsx
    """
    from sdcmap.data.private_folder import write_atomically
    from sdcmap.reports.score_tables import NO_SCORES, make_score_tables
    from sdcmap.study.folder import Study

    with Study.open(study) as opened:
        tables = make_score_tables(opened.scores(opened.plan), parts=parts)
    if out is not None:
        write_atomically(out, tables.write(out.suffix))
    if "Overall scores" not in tables.tables:
        note(NO_SCORES)
    if as_json:
        print_json({title: table.to_dicts() for title, table in tables.tables.items()})
    else:
        print(tables.markdown() if out is None else out)
