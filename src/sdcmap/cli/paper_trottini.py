"""`sdcmap paper trottini2001`."""

from __future__ import annotations

from typing import Annotated

import typer

from sdcmap.cli.app import Json
from sdcmap.cli.papers import DataFolder, Figures, paper, show


@paper.command()
def trottini2001(
    agency_limit: Annotated[float, typer.Option(help="t_A, limit of the intruder's estimated knowledge.")] = -40.0,
    intruder_limit: Annotated[float, typer.Option(help="t_INT, limit of the risk of discredit harm.")] = -0.8,
    seed: Annotated[int, typer.Option(min=0, help="Of the candidates of the worked choice.")] = 1,
    data: DataFolder = None,
    out: Figures = None,
    as_json: Json = False,
) -> None:
    """Trottini (2001): global risk and global utility of example 1, figures 1 and 2, and the choice on a real file.

    Example: sdcmap paper trottini2001 -o figures
    """
    from sdcmap.papers.trottini2001 import run

    show(run(agency_limit=agency_limit, intruder_limit=intruder_limit, data=data, seed=seed), out, as_json)
