"""`sdcmap paper gomatam2003`."""

from __future__ import annotations

from typing import Annotated

import typer

from sdcmap.cli.app import Json
from sdcmap.cli.papers import DataFolder, Figures, paper, show


@paper.command()
def gomatam2003(
    seeds: Annotated[int, typer.Option(min=1, help="Random draws of each condition.")] = 100,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the whole run; by default a fresh one.")] = None,
    workers: Annotated[int, typer.Option(min=0, help="Number of workers; 0: one per core.")] = 0,
    data: DataFolder = None,
    out: Figures = None,
    as_json: Json = False,
) -> None:
    """Gomatam, Karr, Sanil (2003): 108 swaps and two constrained collections, figures 2 to 4, the linear optimum.

    Example: sdcmap paper gomatam2003 --seeds 100 -o figures
    """
    from sdcmap.papers.gomatam2003 import run

    show(run(seeds=seeds, data=data, seed=seed, workers=workers or None), out, as_json)
