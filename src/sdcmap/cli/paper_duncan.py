"""`sdcmap paper duncan2001`."""

from __future__ import annotations

from typing import Annotated

import typer

from sdcmap.cli.app import Json
from sdcmap.cli.papers import DataFolder, Figures, paper, show


@paper.command()
def duncan2001(
    n: Annotated[int, typer.Option(help="Records, figures 2 to 4.")] = 200,
    sigma2: Annotated[float, typer.Option(help="Variance of the data, figures 2 to 4.")] = 1.0,
    p: Annotated[float, typer.Option(help="Percentile as a share, figures 3 and 4.")] = 0.99,
    max_risk: Annotated[float, typer.Option(help="Largest tolerable risk, figures 2 to 4.")] = 5.0,
    replicates: Annotated[int, typer.Option(min=2, help="Draws of each masking, figures 5 to 7 (paper: 200).")] = 1000,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the simulation; by default a fresh one.")] = None,
    data: DataFolder = None,
    out: Figures = None,
    as_json: Json = False,
) -> None:
    """Duncan, Keller-McNulty, Stokes (2001): the R-U map, figures 2 to 7, beside the printed values.

    Example: sdcmap paper duncan2001 --replicates 200 -o figures
    """
    from sdcmap.papers.duncan2001 import run

    show(run(n=n, sigma2=sigma2, p=p, max_risk=max_risk, replicates=replicates, data=data, seed=seed), out, as_json)
