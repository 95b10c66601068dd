"""`sdcmap paper yancey2002`."""

from __future__ import annotations

from typing import Annotated

import typer

from sdcmap.cli.app import Json
from sdcmap.cli.papers import DataFolder, Figures, paper, show


@paper.command()
def yancey2002(
    seeds: Annotated[int, typer.Option(min=1, help="Random draws of each row of Tables 1 to 3.")] = 20,
    large: Annotated[bool, typer.Option("--large", help="All 59,315 records of the large file, not a sixth.")] = False,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the whole run; by default a fresh one.")] = None,
    workers: Annotated[int, typer.Option(min=0, help="Number of workers; 0: one per core.")] = 0,
    data: DataFolder = None,
    out: Figures = None,
    as_json: Json = False,
) -> None:
    """Yancey, Winkler, Creecy (2002): noise, rank swaps and linkage, Tables 1 to 9 beside the printed cells.

    Takes a few minutes on two cores, with --large a minute or two more.

    Example: sdcmap paper yancey2002 --seeds 20 -o figures
    """
    from sdcmap.papers.yancey2002 import run

    show(run(seeds=seeds, large=large, data=data, seed=seed, workers=workers or None), out, as_json)
